//! Signals for this process while a command runs: they are the command's business.

use std::io::{self, PipeReader, Read};
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use libc::{c_int, c_void, siginfo_t};

const PASSED_ON: [c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// Where the handler writes; -1: nobody listens.
static TO: AtomicI32 = AtomicI32::new(-1);

/// Catches signals until it is dropped. One at a time.
pub(crate) struct Signals {
    caught: PipeReader,
    before: [MaybeUninit<libc::sigaction>; PASSED_ON.len()],
}

impl Signals {
    /// From now on.
    pub(crate) fn catch() -> io::Result<Self> {
        let (caught, to) = io::pipe()?;
        TO.store(to.into_raw_fd(), Ordering::SeqCst);
        let mut before = [const { MaybeUninit::uninit() }; PASSED_ON.len()];
        for (signal, before) in PASSED_ON.into_iter().zip(&mut before) {
            // SAFETY: the handler does only what a handler may do, and `before` has room.
            unsafe {
                let mut action: libc::sigaction = zeroed();
                let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = on_signal;
                action.sa_sigaction = handler as libc::sighandler_t;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                libc::sigaction(signal, &raw const action, before.as_mut_ptr());
            }
        }
        Ok(Self { caught, before })
    }

    /// The next one; call it when [`AsFd`] can be read.
    pub(crate) fn next(&mut self) -> Option<c_int> {
        let mut signal = [0];
        self.caught.read_exact(&mut signal).ok()?;
        Some(c_int::from(signal[0]))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.caught.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, before) in PASSED_ON.into_iter().zip(&self.before) {
            // SAFETY: `catch` has filled it.
            unsafe { libc::sigaction(signal, before.as_ptr(), std::ptr::null_mut()) };
        }
        let to = TO.swap(-1, Ordering::SeqCst);
        // SAFETY: `catch` gave the descriptor away to be closed here.
        unsafe { libc::close(to) };
    }
}

/// What somebody sent is passed on. What a terminal sends, it sends to the command as well.
extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, _context: *mut c_void) {
    let to = TO.load(Ordering::SeqCst);
    // SAFETY: with SA_SIGINFO the kernel gives a valid `info`; write is async-signal-safe.
    unsafe {
        if to >= 0 && (*info).si_code <= 0 {
            let error = *libc::__errno_location();
            let byte = signal as u8;
            libc::write(to, (&raw const byte).cast(), 1);
            *libc::__errno_location() = error;
        }
    }
}
