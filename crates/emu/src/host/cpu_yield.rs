//! The share of the processor that others get.
//!
//! A thread with real-time priority that never sleeps is put aside for 50 ms of every second, so that
//! others are not starved (`sched_rt_runtime_us`; the fair server since Linux 6.12). One that gives
//! them 5 % of the time in small pieces is not.

use airpath_base::Duration;

/// A sixteenth of the time.
const PARTS: u64 = 16;

/// What is given at a time: short beside what a packet may be late, long beside the way to sleep and
/// back.
const NAP: Duration = Duration::from_micros(40);

/// A shorter wait gave nobody anything.
const SHORTEST: Duration = Duration::from_micros(5);

/// What the thread owes the others.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct CpuYield {
    owed: Duration,
}

impl CpuYield {
    /// The thread was busy.
    #[inline]
    pub(crate) fn worked(&mut self, time: Duration) {
        self.owed += time / PARTS;
    }

    /// It asked for packets, ready to wait for so long.
    #[inline]
    pub(crate) fn waited(&mut self, time: Duration, ready: Duration) {
        if ready < SHORTEST || time < SHORTEST {
            self.worked(time);
        } else {
            self.owed = self.owed.saturating_sub(time);
        }
    }

    /// It has to sleep now.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.owed > NAP
    }

    /// For how long.
    pub(crate) fn take(&mut self) -> Duration {
        self.owed = self.owed.saturating_sub(NAP);
        NAP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time asked for, of a thread that is busy for `work` between two waits of `wait`.
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
