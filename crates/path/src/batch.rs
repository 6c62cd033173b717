//! Departures in batches, as with a grant period, an interrupt timer or a slotted medium.

use airpath_base::{Duration, Instant};

use crate::shift::Shift;

/// Releases packets only at multiples of an interval, all that arrived since the last one together.
/// A packet that arrives exactly at a multiple has missed it.
#[derive(Debug)]
pub(crate) struct Batch {
    interval: Duration,
}

impl Batch {
    /// Creates the stage; an interval of 0 counts as 1 ns.
    pub(crate) fn new(interval: Duration) -> Self {
        Self { interval: interval.max(Duration::from_nanos(1)) }
    }
}

impl Shift for Batch {
    fn leaves(&self, at: Instant) -> Instant {
        let interval = self.interval.as_nanos();
        let periods = at.as_nanos() / interval + 1;
        Instant::from_nanos(periods.saturating_mul(interval))
    }

    fn arrived(&self, now: Instant) -> Option<Instant> {
        let interval = self.interval.as_nanos();
        (now.as_nanos() / interval * interval).checked_sub(1).map(Instant::from_nanos)
    }
}
