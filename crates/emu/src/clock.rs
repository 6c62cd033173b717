//! The only place that reads a clock.

use airpath_base::{Duration, Instant};
use rustix::thread::nanosleep;
#[cfg(feature = "bpf")]
use rustix::time::clock_getres;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// [`Instant::ZERO`] is that much after a whole number of [`GRID_NANOS`]: what happens at whole or
/// half milliseconds is between the kernel's ticks, where it can be late without passing one, and
/// does not have its interrupts at the same time.
const PHASE_NANOS: u64 = 250_000;

/// Linux's TCP counts the milliseconds of CLOCK_MONOTONIC (in timestamps, and hence in what its
/// receivers take for a round trip), its timers count ticks of 1, 4 or 10 ms: so these fall in the
/// same way in each run.
const GRID_NANOS: u64 = 20_000_000;

/// CLOCK_MONOTONIC as the model's time, counted from when the clock was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: u64,
}

impl Clock {
    /// Now is [`Instant::ZERO`].
    #[expect(clippy::new_without_default, reason = "reading a clock is no default")]
    pub fn new() -> Self {
        Self { origin: monotonic() }
    }

    /// [`Instant::ZERO`] is at `origin` on CLOCK_MONOTONIC, in nanoseconds.
    pub(crate) const fn since(origin: u64) -> Self {
        Self { origin }
    }

    /// [`Instant::ZERO`] is that far ahead, and up to 20 ms more; until then it is that.
    pub(crate) fn ahead(length: Duration) -> Self {
        let origin = (monotonic() + length.as_nanos()).next_multiple_of(GRID_NANOS) + PHASE_NANOS;
        Self { origin }
    }

    /// Time since the clock was made.
    #[inline]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(monotonic().saturating_sub(self.origin))
    }

    /// How long it still is to [`Instant::ZERO`].
    pub(crate) fn before_zero(&self) -> Duration {
        Duration::from_nanos(self.origin.saturating_sub(monotonic()))
    }

    /// Lets others have the processor.
    pub(crate) fn sleep(length: Duration) {
        // A signal may end it early.
        let _ = nanosleep(&timespec(length));
    }

    /// Nanoseconds since 1970 at [`Instant::ZERO`], by CLOCK_REALTIME as it is now.
    pub fn epoch_nanos(&self) -> u64 {
        let wall = nanos(clock_gettime(ClockId::Realtime));
        (wall + self.origin).saturating_sub(monotonic())
    }

    /// CLOCK_MONOTONIC, in nanoseconds, at [`Instant::ZERO`].
    pub const fn origin_nanos(&self) -> u64 {
        self.origin
    }
}

/// CLOCK_MONOTONIC in nanoseconds.
#[inline]
pub(crate) fn monotonic() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// The kernel's tick: the resolution of its coarse clock.
#[cfg(feature = "bpf")]
pub(crate) fn tick() -> Duration {
    Duration::from_nanos(nanos(clock_getres(ClockId::MonotonicCoarse)))
}

const fn nanos(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A length of time as the kernel wants it.
pub(crate) fn timespec(length: Duration) -> Timespec {
    let nanos = length.as_nanos();
    Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_0_is_between_ticks() {
        let before = monotonic();
        let origin = Clock::ahead(Duration::from_millis(5)).origin_nanos();
        assert_eq!(origin % GRID_NANOS, PHASE_NANOS);
        assert!(origin >= before + 5_000_000);
    }

    #[test]
    fn a_clock_that_is_ahead_stands_at_0_and_says_for_how_long() {
        let clock = Clock::ahead(Duration::from_secs(60));
        assert_eq!(clock.now(), Instant::ZERO);
        assert!(clock.before_zero() > Duration::from_secs(59));
        assert_eq!(Clock::new().before_zero(), Duration::ZERO);
    }
}
