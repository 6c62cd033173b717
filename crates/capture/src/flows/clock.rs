//! The step in which a capture's clock advances.

use airpath_base::{Duration, Instant};

/// Shorter steps are not examined: the slots of radio links, in which packets come, have up to 2 ms.
/// The tick of a kernel with 250 Hz is longer, and so is that of Windows (15.6 ms).
const SHORTEST: Duration = Duration::from_micros(3_900);

/// By how much a time may be off, for each step that lies between two times: files have
/// microseconds.
const ROUNDING: Duration = Duration::from_micros(2);

/// Times that are more steps apart tell nothing, because what is known of the step is not exact
/// enough.
const MOST_STEPS: u64 = 64;

/// Different times that it takes, and how many packets there are for each: packets that share a
/// time come from one clock tick, and not from hosts that send at regular times.
const LEAST_TIMES: u64 = 8;
const PACKETS_PER_TIME: u64 = 8;

/// Finds out whether all times of a capture are multiples of one step.
#[derive(Default, Debug)]
pub(super) struct Clock {
    last: Option<Instant>,
    /// The common step of all times until now; once it is too short, nothing is examined any more.
    step: Option<Duration>,
    is_fine: bool,
    times: u64,
    packets: u64,
}

impl Clock {
    /// Adds the time of the next packet.
    #[inline]
    pub(super) fn add(&mut self, now: Instant) {
        if !self.is_fine {
            self.examine(now);
        }
    }

    fn examine(&mut self, now: Instant) {
        self.packets += 1;
        let Some(last) = self.last.replace(now) else { return };
        let apart = now.saturating_since(last).max(last.saturating_since(now));
        if apart == Duration::ZERO {
            return;
        }
        self.times += 1;
        let step = self.step.map_or(apart, |step| common(step, apart));
        self.is_fine = step < SHORTEST;
        self.step = Some(step);
    }

    /// The step, if all times are multiples of it.
    pub(super) fn step(&self) -> Option<Duration> {
        let enough = self.times >= LEAST_TIMES && self.packets >= PACKETS_PER_TIME * self.times;
        self.step.filter(|_| enough && !self.is_fine)
    }
}

/// The largest duration of which both are multiples, to their rounding (Euclid).
fn common(one: Duration, other: Duration) -> Duration {
    let (mut long, mut short) = (one.max(other), one.min(other));
    loop {
        let steps = long.as_nanos() / short.as_nanos().max(1);
        let rest = Duration::from_nanos(long.as_nanos() % short.as_nanos().max(1));
        let rest = rest.min(short - rest);
        if steps > MOST_STEPS || rest <= ROUNDING * (steps + 1) {
            return short;
        }
        (long, short) = (short, rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step_of(micros: impl Iterator<Item = u64>) -> Option<Duration> {
        let mut clock = Clock::default();
        for at in micros {
            clock.add(Instant::ZERO + Duration::from_micros(at));
        }
        clock.step()
    }

    #[test]
    fn a_coarse_clock_shows_its_step() {
        // Packets come every 0.7 ms; Windows' tick is 15.6001 ms, in whole microseconds here.
        let tick = |at: u64| (at * 7_000 / 156_001) * 156_001 / 10;
        let found = step_of((0..5_000).map(tick)).expect("it is coarse");
        assert!(found.as_nanos().abs_diff(15_600_100) <= 1_000, "{found:?}");
        let second = step_of((0..11_000).map(|at| at * 700 / 1_000_000 * 1_000_000));
        assert_eq!(second, None, "seven different times are too few");
        let second = step_of((0..20_000).map(|at| at * 700 / 1_000_000 * 1_000_000));
        assert_eq!(second, Some(Duration::from_secs(1)));
    }

    #[test]
    fn a_fine_clock_and_a_regular_sender_show_none() {
        assert_eq!(step_of((0..5_000).map(|at| at * 700)), None);
        // A packet every 20 ms, and its answer 40 ms later.
        assert_eq!(step_of((0..500).map(|at| at * 20_000)), None);
        // Ticks of a millisecond.
        assert_eq!(step_of((0..50_000).map(|at| at / 16 * 1_000)), None);
    }
}
