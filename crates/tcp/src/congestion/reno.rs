//! Reno (RFC 5681).

use super::slow_start::SlowStart;
use super::{AckSample, Congestion, CongestionControl, SlowStartExit, Window};

/// One segment per round trip; half after congestion.
#[derive(Clone, Debug)]
pub struct Reno {
    slow_start: SlowStart,
}

impl Reno {
    pub(crate) fn new(slow_start: SlowStart) -> Self {
        Self { slow_start }
    }
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window) -> Option<SlowStartExit> {
        if !ack.cwnd_limited {
            return None;
        }
        let mut acked = ack.acked;
        if window.in_slow_start() {
            acked = self.slow_start.grow(acked, window);
        }
        // RFC 5681 (3), for each acknowledged segment.
        window.cwnd += f64::from(acked) / window.cwnd;
        None
    }

    fn on_congestion(&mut self, congestion: &Congestion, window: &mut Window) {
        // RFC 5681 (4)
        window.ssthresh = (f64::from(congestion.flight) / 2.0).max(2.0);
    }
}
