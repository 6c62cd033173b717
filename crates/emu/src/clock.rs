//! The only module that reads a clock.

use std::os::unix::net::UnixDatagram;
use std::sync::OnceLock;

use airpath_base::{Duration, Instant};
use rustix::thread::nanosleep;
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

/// Offset of [`Instant::ZERO`] from a whole number of [`GRID_NANOS`]: events at whole or half
/// milliseconds then fall between the kernel's ticks, so that a late one does not cross a tick, and
/// do not coincide with its interrupts.
const PHASE_NANOS: u64 = 250_000;

/// Grid of [`Instant::ZERO`], so that ticks fall in the same way in each run: Linux's TCP counts
/// the milliseconds of CLOCK_MONOTONIC (in timestamps, and hence in what its receivers take for a
/// round trip), and its timers count ticks of 1, 4 or 10 ms.
const GRID_NANOS: u64 = 20_000_000;

/// CLOCK_MONOTONIC as the model's time, counted from when the clock was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: u64,
}

impl Clock {
    /// A clock whose [`Instant::ZERO`] is now.
    #[expect(clippy::new_without_default, reason = "reading a clock is no default")]
    pub fn new() -> Self {
        Self { origin: monotonic() }
    }

    /// A clock whose [`Instant::ZERO`] is at `origin` on CLOCK_MONOTONIC, in nanoseconds.
    pub(crate) const fn since(origin: u64) -> Self {
        Self { origin }
    }

    /// A clock whose [`Instant::ZERO`] is `length` ahead, and up to 20 ms more; until then it reads
    /// zero. With a wheel it is up to eight times as much more: the kernel's coarse timers then
    /// fire at the same model times in each run.
    pub(crate) fn ahead(length: Duration, wheel: Option<Wheel>) -> Self {
        let first = (monotonic() + length.as_nanos()).next_multiple_of(GRID_NANOS);
        let mut all = (0..Wheel::STEP).map(|more| first + more * GRID_NANOS);
        let origin = wheel.and_then(|wheel| all.find(|&at| wheel.fires(at))).unwrap_or(first);
        Self { origin: origin + PHASE_NANOS }
    }

    /// Time since the clock was made.
    #[inline]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(monotonic().saturating_sub(self.origin))
    }

    /// Time left until [`Instant::ZERO`].
    pub(crate) fn before_zero(&self) -> Duration {
        Duration::from_nanos(self.origin.saturating_sub(monotonic()))
    }

    /// Sleeps, and leaves the processor to others.
    pub(crate) fn sleep(length: Duration) {
        // A signal may end it early.
        let _ = nanosleep(&timespec(length));
    }

    /// Nanoseconds since 1970 at [`Instant::ZERO`], by the current CLOCK_REALTIME.
    pub fn epoch_nanos(&self) -> u64 {
        let wall = nanos(clock_gettime(ClockId::Realtime));
        (wall + self.origin).saturating_sub(monotonic())
    }

    /// CLOCK_MONOTONIC at [`Instant::ZERO`], in nanoseconds.
    pub const fn origin_nanos(&self) -> u64 {
        self.origin
    }
}

/// When the kernel's coarse timers fire, such as those of a SYN: timers of 63 ticks and more fire
/// at every eighth tick only. Which of the eight differs from boot to boot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wheel {
    /// Tick in nanoseconds.
    tick: u64,
    /// Remainder of the number of ticks of CLOCK_MONOTONIC.
    place: u64,
}

impl Wheel {
    const STEP: u64 = 8;
    /// Length in ticks of a timer that fires then.
    const COARSE: u32 = 64;
    const LOOKS: usize = 4;

    /// Finds out when such timers fire, which takes a second, once per process. `None`: the machine
    /// is too busy to tell, or no socket is available.
    pub(crate) fn of_kernel() -> Option<Self> {
        static FOUND: OnceLock<Option<Wheel>> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let seen = (0..Self::LOOKS).map(|_| Self::see()).collect::<Option<Vec<_>>>()?;
            Self::earliest(&seen)
        })
    }

    /// Timers sometimes fire a tick late, on a busy machine several ticks, and never early.
    fn earliest(seen: &[Self]) -> Option<Self> {
        let late =
            |first: Self| move |other: &Self| (other.place + Self::STEP - first.place) % Self::STEP;
        let first =
            |&&first: &&Self| seen.iter().map(late(first)).all(|ticks| ticks < Self::STEP / 2);
        seen.iter().find(first).copied()
    }

    /// Nothing is ever sent: the time-out of the socket is a coarse timer.
    fn see() -> Option<Self> {
        let (socket, _other) = UnixDatagram::pair().ok()?;
        let tick = tick();
        let wait = std::time::Duration::from_nanos((tick * u64::from(Self::COARSE)).as_nanos());
        socket.set_read_timeout(Some(wait)).ok()?;
        socket.recv(&mut [0]).err()?;
        let tick = tick.as_nanos();
        Some(Self { tick, place: monotonic() / tick % Self::STEP })
    }

    const fn fires(self, at: u64) -> bool {
        at.is_multiple_of(self.tick) && at / self.tick % Self::STEP == self.place
    }
}

/// CLOCK_MONOTONIC in nanoseconds.
#[inline]
pub(crate) fn monotonic() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// The kernel's tick, which is the resolution of its coarse clock.
pub(crate) fn tick() -> Duration {
    Duration::from_nanos(nanos(clock_getres(ClockId::MonotonicCoarse)))
}

const fn nanos(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A length of time as a `timespec`.
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
        let origin = Clock::ahead(Duration::from_millis(5), None).origin_nanos();
        assert_eq!(origin % GRID_NANOS, PHASE_NANOS);
        assert!(origin >= before + 5_000_000);
    }

    #[test]
    fn of_coarse_timers_the_earliest_counts() {
        let earliest = |places: [u64; 4]| {
            let seen = places.map(|place| Wheel { tick: 4_000_000, place });
            Wheel::earliest(&seen).map(|wheel| wheel.place)
        };
        assert_eq!(earliest([6, 6, 6, 6]), Some(6));
        assert_eq!(earliest([7, 7, 6, 7]), Some(6));
        assert_eq!(earliest([0, 1, 7, 0]), Some(7));
        assert_eq!(earliest([0, 4, 2, 6]), None);
    }

    #[test]
    fn time_0_is_where_coarse_timers_fire() {
        let tick = 4_000_000;
        for place in 0..8 {
            let before = monotonic();
            let clock = Clock::ahead(Duration::from_millis(5), Some(Wheel { tick, place }));
            let origin = clock.origin_nanos() - PHASE_NANOS;
            assert_eq!((origin % GRID_NANOS, origin / tick % 8), (0, place));
            assert!((5_000_000..=165_000_000).contains(&(origin - before)));
        }
        // A kernel with 300 ticks per second has no such time.
        let clock = Clock::ahead(Duration::ZERO, Some(Wheel { tick: 3_333_333, place: 1 }));
        assert_eq!(clock.origin_nanos() % GRID_NANOS, PHASE_NANOS);
    }

    #[test]
    fn a_clock_that_is_ahead_stands_at_0_and_says_for_how_long() {
        let clock = Clock::ahead(Duration::from_secs(60), None);
        assert_eq!(clock.now(), Instant::ZERO);
        assert!(clock.before_zero() > Duration::from_secs(59));
        assert_eq!(Clock::new().before_zero(), Duration::ZERO);
    }
}
