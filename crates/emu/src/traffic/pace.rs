//! How the threads of flows wait: for the model's time, for a socket, for the end of the run.

use std::io::{self, PipeReader};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use airpath_base::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::Clock;
use crate::clock::timespec;

/// A sleeping thread wakes up this late at most, even on a processor that stays awake.
const WAKE_UP: Duration = Duration::from_micros(200);

/// The clock of a run, and its end.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    pub(super) clock: Clock,
    /// Closed at the other end when the run is over.
    pub(super) over: Arc<PipeReader>,
    /// Set when the network is about to end, and with it the run.
    pub(super) ending: Arc<AtomicBool>,
}

/// What ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Woken {
    /// The socket is ready, or has failed.
    Ready,
    /// The time has come.
    Time,
    /// The run is over.
    Over,
}

impl Pace {
    /// Waits until `at`; returns false if the run is over before.
    pub(super) fn until(&self, at: Instant) -> io::Result<bool> {
        // Before time 0 the clock reads 0: a packet sent then would have a longer round trip than
        // in the model.
        while self.clock.now() < at || self.clock.before_zero() > Duration::ZERO {
            if self.wait(None::<(&io::PipeReader, PollFlags)>, Some(at))? == Woken::Over {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Like [`until`](Self::until), but does not sleep at the end, so that waking up does not make
    /// it late.
    pub(super) fn punctually(&self, at: Instant) -> io::Result<bool> {
        while self.left(at) > WAKE_UP {
            let sleep = self.left(at).saturating_sub(WAKE_UP);
            if self.sleep(None::<(&io::PipeReader, PollFlags)>, Some(sleep))? == Woken::Over {
                return Ok(false);
            }
        }
        while self.left(at) > Duration::ZERO {
            std::hint::spin_loop();
        }
        Ok(true)
    }

    /// The time before `at` at which a thread that waits for something else must return to be
    /// punctual.
    pub(super) const fn ahead_of(at: Instant) -> Option<Instant> {
        at.checked_sub(WAKE_UP)
    }

    /// Time until `at`, which is not before time 0.
    fn left(&self, at: Instant) -> Duration {
        at.saturating_since(self.clock.now()) + self.clock.before_zero()
    }

    /// Whether the run is over or about to be, for a thread that has no time to wait.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Waits for a socket.
    pub(super) fn ready(
        &self,
        socket: &impl AsFd,
        flags: PollFlags,
        until: Option<Instant>,
    ) -> io::Result<Woken> {
        self.wait(Some((socket, flags)), until)
    }

    fn wait<Socket: AsFd>(
        &self,
        socket: Option<(&Socket, PollFlags)>,
        until: Option<Instant>,
    ) -> io::Result<Woken> {
        self.sleep(socket, until.map(|at| self.left(at)))
    }

    fn sleep<Socket: AsFd>(
        &self,
        socket: Option<(&Socket, PollFlags)>,
        length: Option<Duration>,
    ) -> io::Result<Woken> {
        let mut wanted = vec![PollFd::new(&*self.over, PollFlags::IN)];
        wanted.extend(socket.map(|(socket, flags)| PollFd::new(socket, flags)));
        let time = length.map(timespec);
        match poll(&mut wanted, time.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut woken = wanted.iter().map(|wanted| !wanted.revents().is_empty());
        Ok(match (woken.next(), woken.next()) {
            (Some(true), _) => Woken::Over,
            (_, Some(true)) => Woken::Ready,
            _ => Woken::Time,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_punctual_is_not_early() {
        let (over, stop) = io::pipe().unwrap();
        let ending = Arc::new(AtomicBool::new(false));
        let clock = Clock::ahead(Duration::from_millis(1), None);
        let pace = Pace { clock, over: Arc::new(over), ending };
        for at in [Instant::ZERO, Instant::ZERO + Duration::from_millis(2)] {
            assert!(pace.punctually(at).unwrap());
            assert!(clock.now() >= at && clock.before_zero() == Duration::ZERO);
        }
        drop(stop);
        assert!(!pace.punctually(Instant::ZERO + Duration::from_secs(60)).unwrap());
    }

    #[test]
    fn nothing_begins_before_time_0() {
        let (over, _stop) = io::pipe().unwrap();
        let ending = Arc::new(AtomicBool::new(false));
        let clock = Clock::ahead(Duration::from_millis(5), None);
        let pace = Pace { clock, over: Arc::new(over), ending };
        assert!(clock.before_zero() > Duration::ZERO);
        assert!(pace.until(Instant::ZERO).unwrap());
        assert_eq!(clock.before_zero(), Duration::ZERO);
    }
}
