//! Translates between the run's clock and the type of time that quinn takes.

use airpath_base::{Duration, Instant};

/// The clock of one end.
pub(super) struct Clock {
    /// What the start of the run is to quinn. Only differences count.
    start: std::time::Instant,
    last: Instant,
}

impl Clock {
    #[allow(clippy::disallowed_methods, reason = "the type has no other value to start from")]
    pub(super) fn new() -> Self {
        Self { start: std::time::Instant::now(), last: Instant::ZERO }
    }

    /// The run's time `now` for quinn.
    pub(super) fn at(&mut self, now: Instant) -> std::time::Instant {
        self.last = now;
        self.start + std::time::Duration::from_nanos(now.as_nanos())
    }

    /// The last time that quinn was told.
    pub(super) const fn last(&self) -> Instant {
        self.last
    }

    /// quinn's time `at` in the run.
    pub(super) fn virtual_time(&self, at: std::time::Instant) -> Instant {
        Instant::ZERO + duration(at.saturating_duration_since(self.start))
    }
}

/// A duration of quinn.
pub(super) fn duration(duration: std::time::Duration) -> Duration {
    Duration::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
