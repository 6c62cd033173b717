//! Yields a part of the processor's time to other work.
//!
//! A thread with real-time priority that never sleeps is suspended for 50 ms of every second, so
//! that others are not starved (`sched_rt_runtime_us`; the fair server since Linux 6.12). A thread
//! that yields 5 % of the time in small pieces is not.

use airpath_base::Duration;

/// One part in sixteen of the time.
const PARTS: u64 = 16;

/// Length of a yield: short compared with the tolerated lateness, long compared with the time to
/// fall asleep and wake up.
const NAP: Duration = Duration::from_micros(40);

/// A shorter wait does not count as a yield.
const SHORTEST: Duration = Duration::from_micros(5);

/// Time that the thread still has to yield.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct CpuYield {
    owed: Duration,
}

impl CpuYield {
    /// The thread was busy for this long.
    #[inline]
    pub(crate) fn worked(&mut self, time: Duration) {
        self.owed += time / PARTS;
    }

    /// The thread polled for packets, ready to wait for this long.
    #[inline]
    pub(crate) fn waited(&mut self, time: Duration, ready: Duration) {
        if ready < SHORTEST || time < SHORTEST {
            self.worked(time);
        } else {
            self.owed = self.owed.saturating_sub(time);
        }
    }

    /// Whether it has to sleep now.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.owed > NAP
    }

    /// How long it has to sleep.
    pub(crate) fn take(&mut self) -> Duration {
        self.owed = self.owed.saturating_sub(NAP);
        NAP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fraction of the time yielded by a thread that is busy for `work` between two waits of
    /// `wait`.
    fn asked(work: u64, wait: u64, rounds: u64) -> f64 {
        let [work, wait] = [work, wait].map(Duration::from_micros);
        let (mut share, mut slept) = (CpuYield::default(), Duration::ZERO);
        for _ in 0..rounds {
            share.worked(work);
            share.waited(wait, wait);
            if share.is_due() {
                slept += share.take();
            }
        }
        slept.as_secs_f64() / ((work + wait) * rounds + slept).as_secs_f64()
    }

    #[test]
    fn who_never_waits_gives_a_sixteenth() {
        let share = asked(10, 0, 100_000);
        // One part in sixteen of the work: 1/17 of all.
        assert!((0.058..0.059).contains(&share), "{share}");
    }

    #[test]
    fn who_waits_enough_gives_nothing_more() {
        assert!(asked(90, 10, 1000) == 0.0);
        let share = asked(970, 30, 10_000);
        // 970/16 - 30 in 1000.
        assert!((0.029..0.031).contains(&share), "{share}");
    }
}
