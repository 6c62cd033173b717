//! Times that repeat with the system frame number.

use airpath_base::{Duration, Instant};

/// 1024 radio frames of 10 ms, after which the SFN is 0 again.
pub const SFN_PERIOD: Duration = Duration::from_millis(10_240);

/// The times that 3GPP specifies by `[(SFN × 10) + subframe number] modulo period = offset`.
///
/// The SFN wraps. With a period that does not divide [`SFN_PERIOD`] (a DRX cycle of 60 or 70 ms)
/// the last interval before each wrap is therefore shorter, exactly as the formula requires.
///
/// ```
/// use airpath_base::{Duration, Instant};
/// use airpath_radio::mac::Occasions;
///
/// let ms = Duration::from_millis;
/// let every_70 = Occasions::new(ms(70), ms(30));
/// assert_eq!(every_70.at_or_after(Instant::ZERO + ms(31)), Instant::ZERO + ms(100));
/// // 10240 = 146 × 70 + 20: the SFN wraps 10 ms before the next one was due.
/// assert_eq!(every_70.at_or_after(Instant::ZERO + ms(10_181)), Instant::ZERO + ms(10_270));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occasions {
    period: u64,
    offset: u64,
}

impl Occasions {
    /// Occasions every `period`, the first one `offset` after the beginning of SFN 0. An offset of
    /// a period or more counts modulo the period; a period above [`SFN_PERIOD`] counts as that.
    ///
    /// Panics if `period` is zero.
    pub const fn new(period: Duration, offset: Duration) -> Self {
        assert!(period.as_nanos() > 0, "occasions need a period");
        let period = if period.as_nanos() < SFN_PERIOD.as_nanos() { period } else { SFN_PERIOD };
        Self { period: period.as_nanos(), offset: offset.as_nanos() % period.as_nanos() }
    }

    /// Occasions from numbers of slots, as in TS 38.331 SchedulingRequestResourceConfig.
    ///
    /// Panics if `period` is zero.
    pub const fn in_slots(slot: Duration, period: u32, offset: u32) -> Self {
        Self::new(
            Duration::from_nanos(slot.as_nanos() * period as u64),
            Duration::from_nanos(slot.as_nanos() * offset as u64),
        )
    }

    /// Time between two occasions, except at the wrap of the SFN.
    pub const fn period(&self) -> Duration {
        Duration::from_nanos(self.period)
    }

    /// The first occasion that is not before `time`.
    pub const fn at_or_after(&self, time: Instant) -> Instant {
        let (wraps, within) = split(time);
        let next = if within <= self.offset {
            self.offset
        } else {
            self.offset + (within - self.offset).div_ceil(self.period) * self.period
        };
        if next < SFN_PERIOD.as_nanos() { join(wraps, next) } else { join(wraps + 1, self.offset) }
    }

    /// The last occasion before `time`.
    pub const fn before(&self, time: Instant) -> Option<Instant> {
        let (wraps, within) = split(time);
        if within > self.offset {
            let index = (within - 1 - self.offset) / self.period;
            Some(join(wraps, self.offset + index * self.period))
        } else if wraps > 0 {
            Some(join(wraps - 1, self.last_in_period()))
        } else {
            None
        }
    }

    /// The part of `[first, last)` that lies less than `length` after an occasion, where `first`
    /// and `last` are occasions: the time for which a timer started at each has run.
    pub(super) const fn covered(&self, first: Instant, last: Instant, length: Duration) -> u64 {
        let (first_wraps, first_within) = split(first);
        let (last_wraps, last_within) = split(last);
        let wraps = last_wraps - first_wraps;
        let gap = SFN_PERIOD.as_nanos() - self.last_in_period() + self.offset;
        let span = wraps * SFN_PERIOD.as_nanos() + last_within - first_within;
        let regular = (span - wraps * gap) / self.period;
        regular * min(length.as_nanos(), self.period) + wraps * min(length.as_nanos(), gap)
    }

    /// Nanoseconds from SFN 0 to the last occasion before the SFN wraps.
    const fn last_in_period(&self) -> u64 {
        let room = SFN_PERIOD.as_nanos() - 1 - self.offset;
        self.offset + room / self.period * self.period
    }
}

/// Number of times that the SFN has wrapped, and nanoseconds since.
const fn split(time: Instant) -> (u64, u64) {
    let nanos = time.as_nanos();
    (nanos / SFN_PERIOD.as_nanos(), nanos % SFN_PERIOD.as_nanos())
}

const fn join(wraps: u64, within: u64) -> Instant {
    Instant::from_nanos(wraps * SFN_PERIOD.as_nanos() + within)
}

const fn min(first: u64, second: u64) -> u64 {
    if first < second { first } else { second }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The formula of TS 38.321 5.7, evaluated for one subframe.
    fn formula(subframes: u64, period: u64, offset: u64) -> bool {
        let (sfn, subframe) = (subframes / 10 % 1024, subframes % 10);
        (sfn * 10 + subframe) % period == offset
    }

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    proptest! {
        #[test]
        fn occasions_are_those_of_the_formula(
            period in 1u64..200, offset in 0u64..200, from in 10_000u64..10_600,
        ) {
            let offset = offset % period;
            let occasions =
                Occasions::new(Duration::from_millis(period), Duration::from_millis(offset));
            let next = (from..).find(|&t| formula(t, period, offset)).unwrap();
            prop_assert_eq!(occasions.at_or_after(ms(from)), ms(next));
            let last = (0..from).rev().find(|&t| formula(t, period, offset)).unwrap();
            prop_assert_eq!(occasions.before(ms(from)), Some(ms(last)));
        }

        #[test]
        fn covered_time_is_that_of_every_millisecond(
            period in 1u64..300, offset in 0u64..300, length in 1u64..320,
            from in 9_500u64..10_300, span in 0u64..20_000,
        ) {
            let occasions = Occasions::new(
                Duration::from_millis(period), Duration::from_millis(offset % period));
            let first = occasions.at_or_after(ms(from));
            let last = occasions.at_or_after(ms(from + span));
            let mut covered = 0;
            let mut runs_until = first.as_nanos() / 1_000_000;
            for t in first.as_nanos() / 1_000_000..last.as_nanos() / 1_000_000 {
                if formula(t, period, offset % period) {
                    runs_until = t + length;
                }
                covered += u64::from(t < runs_until);
            }
            let computed = occasions.covered(first, last, Duration::from_millis(length));
            prop_assert_eq!(computed, covered * 1_000_000);
        }
    }

    #[test]
    fn no_drift_after_a_thousand_wraps() {
        let occasions = Occasions::in_slots(Duration::from_micros(500), 80, 3);
        let hours = ms(1000 * 10_240);
        assert_eq!(occasions.at_or_after(hours), hours + Duration::from_micros(1_500));
        assert_eq!(occasions.before(hours), hours.checked_sub(Duration::from_micros(38_500)));
    }
}
