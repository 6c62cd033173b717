//! Time as an integer count of nanoseconds. There is no `now()`: the driver of the model passes the
//! time.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A point in time, in nanoseconds since the run began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Instant {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than any time that a run reaches (584 years).
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start, for people and plots.
    pub fn as_secs_f64(self) -> f64 {
        to_f64(self.0) / 1e9
    }

    /// Time since `earlier`; zero if that is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// The earliest of several times; both `None` and [`Instant::MAX`] mean never.
    #[inline]
    pub fn earliest<const N: usize>(times: [Option<Self>; N]) -> Option<Self> {
        // Avoids a branch per time: this is called after every event.
        let first =
            times.into_iter().fold(Self::MAX, |first, at| first.min(at.unwrap_or(Self::MAX)));
        (first < Self::MAX).then_some(first)
    }

    /// This instant moved back; `None` if it would be before [`Instant::ZERO`].
    pub const fn checked_sub(self, by: Duration) -> Option<Self> {
        match self.0.checked_sub(by.0) {
            Some(nanos) => Some(Self(nanos)),
            None => None,
        }
    }
}

impl Duration {
    /// The zero duration.
    pub const ZERO: Self = Self(0);
    /// Longer than any run.
    pub const MAX: Self = Self(u64::MAX);

    /// From nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// From microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// From milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// From seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// From fractional seconds, rounded to the nearest nanosecond; negative and NaN give zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        // A float-to-int cast saturates and maps NaN to 0, as documented.
        Self((secs * 1e9 + 0.5) as u64)
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds, for people and plots.
    pub fn as_secs_f64(self) -> f64 {
        to_f64(self.0) / 1e9
    }

    /// Milliseconds, for people and plots.
    pub fn as_millis_f64(self) -> f64 {
        to_f64(self.0) / 1e6
    }

    /// `self - other`; zero if that would be negative.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self * factor`; [`Duration::MAX`] if that would overflow.
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

/// The nearest float, as a cast gives it: processors have an instruction for signed integers only.
#[inline]
pub(crate) fn to_f64(nanos: u64) -> f64 {
    match i64::try_from(nanos) {
        Ok(nanos) => nanos as f64,
        Err(_) => nanos as f64,
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, by: Duration) {
        *self = *self + by;
    }
}

impl Sub for Instant {
    type Output = Duration;
    /// Panics in debug builds if `earlier` is later, which is a bug in the order of events.
    fn sub(self, earlier: Self) -> Duration {
        debug_assert!(self >= earlier, "{self:?} is before {earlier:?}");
        self.saturating_since(earlier)
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        debug_assert!(self >= other, "{self:?} is shorter than {other:?}");
        self.saturating_sub(other)
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        self.saturating_mul(factor)
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, by: u64) -> Self {
        Self(self.0 / by)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t+{:.9}s", self.as_secs_f64())
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}ms", self.as_millis_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_round_to_the_nearest_nanosecond() {
        assert_eq!(Duration::from_secs_f64(0.4), Duration::from_millis(400));
        assert_eq!(Duration::from_secs_f64(1e-9), Duration::from_nanos(1));
        assert_eq!(Duration::from_secs_f64(-1.0), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(f64::NAN), Duration::ZERO);
    }

    #[test]
    fn never_is_not_the_earliest() {
        let (early, late) = (Some(Instant::from_nanos(5)), Some(Instant::from_nanos(6)));
        assert_eq!(Instant::earliest([None, late, early, None]), early);
        assert_eq!(Instant::earliest([None, Some(Instant::MAX)]), None);
        assert_eq!(Instant::earliest([]), None);
    }

    #[test]
    fn moving_back_past_the_start_is_none() {
        let early = Instant::from_nanos(5);
        assert_eq!(early.checked_sub(Duration::from_nanos(6)), None);
        assert_eq!(early.checked_sub(Duration::from_nanos(5)), Some(Instant::ZERO));
    }
}
