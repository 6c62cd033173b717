//! How much more than expected is acknowledged at once: radio links and offloads collect
//! acknowledgements (draft-ietf-ccwg-bbr-06 5.5.9; Linux since 5.2).

use airpath_base::Instant;

/// A sampling interval starts again after so many segments.
const RESET: f64 = (1 << 20) as f64;

/// Samples of `extra_acked`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckAggregation {
    /// `extra_acked_interval_start`
    since: Instant,
    /// `extra_acked_delivered`
    delivered: f64,
}

impl AckAggregation {
    /// Starts an interval: at the beginning, and after idling.
    pub(super) fn restart(&mut self, now: Instant) {
        *self = Self { since: now, delivered: 0.0 };
    }

    /// Segments delivered in this interval beyond what `bw` explains.
    pub(super) fn extra(&mut self, now: Instant, delivered: u32, bw: f64, cwnd: f64) -> f64 {
        let delivered = f64::from(delivered);
        let mut expected = bw * now.saturating_since(self.since).as_secs_f64();
        if self.delivered <= expected || self.delivered + delivered >= RESET {
            self.restart(now);
            expected = 0.0;
        }
        self.delivered += delivered;
        (self.delivered - expected).min(cwnd)
    }
}
