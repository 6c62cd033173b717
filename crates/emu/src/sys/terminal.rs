//! Modes of a terminal, and who gives them back when this process is killed.

use std::io::{self, PipeWriter};
use std::mem::zeroed;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::null_mut;

use libc::{c_int, pid_t};

use super::checked;
use super::process::copy;

/// What the line discipline does with what is typed and written: termios(3).
#[derive(Clone, Copy)]
pub(crate) struct Modes(libc::termios);

impl Modes {
    /// Those of a terminal.
    ///
    /// # Errors
    ///
    /// Where there is none.
    pub(crate) fn of(terminal: RawFd) -> io::Result<Self> {
        // SAFETY: the call fills `modes`, which is plain data.
        unsafe {
            let mut modes: libc::termios = zeroed();
            checked(libc::tcgetattr(terminal, &raw mut modes))?;
            Ok(Self(modes))
        }
    }

    /// Every byte goes through as it is, also that of Ctrl-C.
    pub(crate) fn raw(mut self) -> Self {
        // SAFETY: the call changes plain data.
        unsafe { libc::cfmakeraw(&raw mut self.0) };
        self
    }

    /// Gives a terminal these.
    ///
    /// # Errors
    ///
    /// Where there is none any more.
    pub(crate) fn set(&self, terminal: RawFd) -> io::Result<()> {
        // SAFETY: the call reads `self`.
        checked(unsafe { libc::tcsetattr(terminal, libc::TCSANOW, &raw const self.0) })
    }

    fn is(&self, other: &Self) -> bool {
        let flags = |modes: &libc::termios| {
            (modes.c_iflag, modes.c_oflag, modes.c_cflag, modes.c_lflag, modes.c_cc)
        };
        flags(&self.0) == flags(&other.0)
    }
}

/// A process that outlives this one for as long as it takes to give a terminal its modes back.
pub(crate) struct Guard {
    pid: pid_t,
    /// Closed by the kernel, too, when this process ends.
    alive: Option<PipeWriter>,
}

impl Guard {
    /// When this process has ended, however that came: gives `terminal` the modes `before`, if it still
    /// has the modes `raw`. A shell may have set others.
    ///
    /// # Errors
    ///
    /// No pipe, or no process.
    pub(crate) fn start(terminal: RawFd, before: Modes, raw: Modes) -> io::Result<Self> {
        let (ended, alive) = io::pipe()?;
        // SAFETY: the child never leaves `wait_and_restore`, which uses only async-signal-safe calls.
        match unsafe { copy(libc::SIGCHLD, null_mut()) } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: this is the child.
            0 => unsafe { wait_and_restore(terminal, ended.as_raw_fd(), before, raw) },
            pid => Ok(Self { pid, alive: Some(alive) }),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.alive.take());
        let mut status = 0;
        // SAFETY: waits for a child of ours, once.
        unsafe {
            while libc::waitpid(self.pid, &raw mut status, 0) < 0
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
    }
}

/// The guard, with nothing open but the terminal and the pipe, in a session of its own: what ends this
/// process and all of its group leaves it alone.
///
/// # Safety
///
/// The caller is a child of one thread, which [`copy`] made; it closes every other descriptor. `terminal` and `ended` are
/// open.
unsafe fn wait_and_restore(terminal: RawFd, ended: RawFd, before: Modes, raw: Modes) -> ! {
    const TERMINAL: c_int = 0;
    const ENDED: c_int = 1;
    // SAFETY: only system calls, on this function's own memory.
    unsafe {
        let mut all: libc::sigset_t = zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, null_mut());
        libc::setsid();
        // `ended` is 3 or more: 0 to 2 are this process's standard streams, or devices in their place.
        libc::dup2(terminal, TERMINAL);
        libc::dup2(ended, ENDED);
        for descriptor in 2..1 << 16 {
            if libc::syscall(libc::SYS_close_range, descriptor, c_int::MAX, 0) == 0 {
                break;
            }
            // Before Linux 5.9.
            libc::close(descriptor);
        }
        let mut byte = [0u8; 1];
        while libc::read(ENDED, byte.as_mut_ptr().cast(), 1) < 0
            && *libc::__errno_location() == libc::EINTR
        {}
        if let Ok(now) = Modes::of(TERMINAL)
            && now.is(&raw)
        {
            let _ = before.set(TERMINAL);
        }
        libc::_exit(0);
    }
}
