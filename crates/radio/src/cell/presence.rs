//! Whether a UE is in the cell, and for how long it has been.

use airpath_base::{Duration, Instant};

use super::access::UplinkAccess;

/// Where a UE is, as seen by one cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Presence {
    pub(super) is_here: bool,
    /// How often it has left.
    pub(super) visits: u32,
    since: Instant,
    /// DRX Active Time before `since`, as DRX counts it, and that of earlier visits.
    not_counted: Duration,
    awake_before: Duration,
}

impl Default for Presence {
    /// In the cell from the start.
    fn default() -> Self {
        Self {
            is_here: true,
            visits: 0,
            since: Instant::ZERO,
            not_counted: Duration::ZERO,
            awake_before: Duration::ZERO,
        }
    }
}

impl Presence {
    /// The UE leaves.
    pub(super) fn leave(&self, now: Instant, access: &mut UplinkAccess) -> Self {
        let awake_before = self.awake(now, access);
        Self { is_here: false, visits: self.visits + 1, awake_before, ..*self }
    }

    pub(super) fn arrive(&mut self, now: Instant, access: &mut UplinkAccess) {
        (self.is_here, self.since) = (true, now);
        self.not_counted = access.drx.as_mut().map_or(Duration::ZERO, |drx| drx.awake(now));
    }

    /// How long it has been in Active Time in this cell; without DRX the whole time.
    pub(super) fn awake(&self, now: Instant, access: &mut UplinkAccess) -> Duration {
        let this_visit = match &mut access.drx {
            _ if !self.is_here => Duration::ZERO,
            Some(drx) => drx.awake(now) - self.not_counted,
            None => now - self.since,
        };
        self.awake_before + this_visit
    }
}
