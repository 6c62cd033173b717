//! Handles signals to this process while commands run: they are forwarded to the commands.

use std::io::{self, PipeReader, Read};
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use libc::c_int;

/// The last two concern the terminal.
const CAUGHT: [c_int; 8] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGCONT,
];

/// Most that may be caught at once, by threads of one process.
const MOST: usize = 64;

/// Descriptors to which the handler writes; -1: not in use.
static TO: [AtomicI32; MOST] = [const { AtomicI32::new(-1) }; MOST];

/// Number of threads inside the handler.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

static HANDLER: Mutex<Handler> =
    Mutex::new(Handler { wanted: 0, before: [const { MaybeUninit::uninit() }; CAUGHT.len()] });

/// The handler of this process.
struct Handler {
    /// Number of values that catch signals.
    wanted: usize,
    /// The previous actions, before the first of them.
    before: [MaybeUninit<libc::sigaction>; CAUGHT.len()],
}

/// Catches signals until it is dropped. If there are several, each gets all signals.
pub(crate) struct Signals {
    caught: PipeReader,
    place: usize,
}

impl Signals {
    /// The size of the terminal changed.
    pub(crate) const RESIZED: c_int = libc::SIGWINCH;
    /// This process was stopped and continues.
    pub(crate) const CONTINUED: c_int = libc::SIGCONT;
    /// Signals that ask a program to end.
    pub(crate) const ENDING: [c_int; 4] =
        [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

    /// Whether a signal ends a program that does not handle it.
    pub(crate) const fn ends(signal: c_int) -> bool {
        !matches!(signal, Self::RESIZED | Self::CONTINUED)
    }

    /// Starts to catch signals.
    ///
    /// # Errors
    ///
    /// If no pipe can be created, or too many values catch signals.
    pub(crate) fn catch() -> io::Result<Self> {
        let (caught, to) = io::pipe()?;
        let mut handler = HANDLER.lock().unwrap_or_else(PoisonError::into_inner);
        let free = TO.iter().position(|to| to.load(Ordering::SeqCst) < 0);
        let place = free.ok_or_else(|| {
            io::Error::other(format!("{MOST} emulations at once is the most of one process"))
        })?;
        TO[place].store(to.into_raw_fd(), Ordering::SeqCst);
        if handler.wanted == 0 {
            handler.install();
        }
        handler.wanted += 1;
        Ok(Self { caught, place })
    }

    /// The next signal; call it when the descriptor of [`AsFd`] is readable.
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
        let mut handler = HANDLER.lock().unwrap_or_else(PoisonError::into_inner);
        handler.wanted -= 1;
        if handler.wanted == 0 {
            handler.remove();
        }
        let to = TO[self.place].swap(-1, Ordering::SeqCst);
        // A handler in another thread may have read it before.
        while INSIDE.load(Ordering::SeqCst) > 0 {
            std::hint::spin_loop();
        }
        // SAFETY: `catch` passed the descriptor on to be closed here, and nothing uses it any more.
        unsafe { libc::close(to) };
    }
}

impl Handler {
    fn install(&mut self) {
        for (signal, before) in CAUGHT.into_iter().zip(&mut self.before) {
            // SAFETY: the handler does only what a handler may do, and `before` has room.
            unsafe {
                let mut action: libc::sigaction = zeroed();
                let handler: extern "C" fn(c_int) = on_signal;
                action.sa_sigaction = handler as libc::sighandler_t;
                action.sa_flags = libc::SA_RESTART;
                libc::sigaction(signal, &raw const action, before.as_mut_ptr());
            }
        }
    }

    fn remove(&self) {
        for (signal, before) in CAUGHT.into_iter().zip(&self.before) {
            // SAFETY: `install` has filled it.
            unsafe { libc::sigaction(signal, before.as_ptr(), std::ptr::null_mut()) };
        }
    }
}

/// Forwards the signal whoever sent it: the programs are in sessions of their own, so a terminal
/// sends them nothing.
extern "C" fn on_signal(signal: c_int) {
    INSIDE.fetch_add(1, Ordering::SeqCst);
    // SAFETY: write is async-signal-safe.
    unsafe {
        let error = *libc::__errno_location();
        let byte = signal as u8;
        for to in &TO {
            let to = to.load(Ordering::SeqCst);
            if to >= 0 {
                libc::write(to, (&raw const byte).cast(), 1);
            }
        }
        *libc::__errno_location() = error;
    }
    INSIDE.fetch_sub(1, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::time::Timespec;

    use super::*;

    fn caught(signals: &mut Signals) -> Option<c_int> {
        let mut wanted = [PollFd::new(&*signals, PollFlags::IN)];
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        let any = poll(&mut wanted, Some(&second)).unwrap() > 0;
        if any { signals.next() } else { None }
    }

    fn send(signal: c_int) {
        // SAFETY: this process has a handler for it.
        unsafe { libc::kill(libc::getpid(), signal) };
    }

    fn action(signal: c_int) -> libc::sighandler_t {
        // SAFETY: the call only writes `now`.
        unsafe {
            let mut now: libc::sigaction = zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut now);
            now.sa_sigaction
        }
    }

    #[test]
    fn two_at_once_hear_each_signal_until_each_is_gone() {
        let before = action(libc::SIGUSR1);
        let mut first = Signals::catch().unwrap();
        let mut second = Signals::catch().unwrap();
        send(libc::SIGUSR1);
        assert_eq!([&mut first, &mut second].map(caught), [Some(libc::SIGUSR1); 2]);
        drop(first);
        send(libc::SIGUSR2);
        assert_eq!(caught(&mut second), Some(libc::SIGUSR2));
        drop(second);
        assert_eq!(action(libc::SIGUSR1), before);
    }
}
