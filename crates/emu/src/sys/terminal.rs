//! Modes of a terminal, and a process that restores them when this process is killed.

use std::io::{self, PipeWriter};
use std::mem::zeroed;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::null_mut;

use libc::{c_int, pid_t};

use super::checked;
use super::process::{close_except, copy};

/// How the line discipline treats what is typed and written: termios(3).
#[derive(Clone, Copy)]
pub(crate) struct Modes(libc::termios);

impl Modes {
    /// The modes of a terminal.
    ///
    /// # Errors
    ///
    /// If it is not a terminal.
    pub(crate) fn of(terminal: RawFd) -> io::Result<Self> {
        // SAFETY: the call fills `modes`, which is plain data.
        unsafe {
            let mut modes: libc::termios = zeroed();
            checked(libc::tcgetattr(terminal, &raw mut modes))?;
            Ok(Self(modes))
        }
    }

    /// The modes in which every byte passes unchanged, including that of Ctrl-C.
    pub(crate) fn raw(mut self) -> Self {
        // SAFETY: the call changes plain data.
        unsafe { libc::cfmakeraw(&raw mut self.0) };
        self
    }

    /// Sets the modes of a terminal.
    ///
    /// # Errors
    ///
    /// If the terminal no longer exists.
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

/// A process that outlives this one just long enough to restore the modes of a terminal.
pub(crate) struct Guard {
    pid: pid_t,
    /// The kernel also closes it when this process ends.
    alive: Option<PipeWriter>,
}

impl Guard {
    /// When this process has ended, for whatever reason: restores the modes `before` of `terminal`,
    /// if it still has the modes `raw`. A shell may have set others.
    ///
    /// # Errors
    ///
    /// If no pipe or process can be created.
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
        // SAFETY: waits for a child of this process, once.
        unsafe {
            while libc::waitpid(self.pid, &raw mut status, 0) < 0
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
    }
}

/// The guard process, with nothing open but the terminal and the pipe, in a session of its own:
/// what ends this process and its whole group does not affect it.
///
/// # Safety
///
/// The caller must be a child with one thread, created by [`copy`]; every other descriptor is
/// closed. `terminal` and `ended` must be open.
unsafe fn wait_and_restore(terminal: RawFd, ended: RawFd, before: Modes, raw: Modes) -> ! {
    const TERMINAL: c_int = 0;
    const ENDED: c_int = 1;
    // SAFETY: only system calls, on this function's own memory.
    unsafe {
        let mut all: libc::sigset_t = zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, null_mut());
        libc::setsid();
        // `ended` is at least 3: 0 to 2 are this process's standard streams, or devices in their
        // place.
        libc::dup2(terminal, TERMINAL);
        libc::dup2(ended, ENDED);
        close_except(&[TERMINAL, ENDED]);
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
