//! Measures how much more than expected is acknowledged at once: radio links and offloads aggregate
//! acknowledgements (draft-ietf-ccwg-bbr-06 5.5.9; Linux since 5.2).

use airpath_base::Instant;

/// Segments after which a sampling interval restarts.
const RESET: f64 = (1 << 20) as f64;

/// Measures `extra_acked`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckAggregation {
    /// `extra_acked_interval_start`
    since: Instant,
    /// `extra_acked_delivered`
    delivered: f64,
}

impl AckAggregation {
    /// Starts an interval: initially, and after idling.
    pub(super) fn restart(&mut self, now: Instant) {
        *self = Self { since: now, delivered: 0.0 };
    }

    /// Segments delivered in this interval beyond what `bw` explains.
    pub(super) fn extra(&mut self, now: Instant, delivered: u32, bw: f64, cwnd: f64) -> f64 {
        let delivered = f64::from(delivered);
        // Seen with Linux 6.18, which computes in whole numbers: a fraction of a segment is not
        // expected yet.
        let mut expected = super::floor(bw * now.saturating_since(self.since).as_secs_f64());
        if self.delivered <= expected || self.delivered + delivered >= RESET {
            self.restart(now);
            expected = 0.0;
        }
        self.delivered += delivered;
        (self.delivered - expected).min(cwnd)
    }
}

#[cfg(test)]
mod tests {
    use airpath_base::Duration;

    use super::*;

    #[test]
    fn a_part_of_a_segment_is_not_expected() {
        // Linux 6.18 over LTE: with 9 segments after 36 ms at 50 segments per second, the excess is
        // 8, not 7.2.
        let mut aggregation = AckAggregation::default();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert_eq!(aggregation.extra(at(0), 1, 50.0, 100.0), 1.0);
        assert_eq!(aggregation.extra(at(16), 5, 50.0, 100.0), 6.0);
        assert_eq!(aggregation.extra(at(36), 3, 50.0, 100.0), 8.0);
        assert_eq!(aggregation.extra(at(40), 3, 50.0, 9.0), 9.0, "cwnd at most");
    }
}
