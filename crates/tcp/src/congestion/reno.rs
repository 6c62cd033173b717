//! Reno (RFC 5681).

use super::slow_start::{SlowStart, Step};
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
        let Step { left, exit } = self.slow_start.on_ack(ack, window);
        // RFC 5681 (3), for each acknowledged segment.
        window.cwnd += f64::from(left) / window.cwnd;
        exit
    }

    fn on_congestion(&mut self, congestion: &Congestion, window: &mut Window) {
        // RFC 5681 (4)
        window.ssthresh = (f64::from(congestion.flight) / 2.0).max(2.0);
    }

    fn on_timeout(&mut self, congestion: &Congestion, window: &mut Window) {
        self.on_congestion(congestion, window);
        self.slow_start.on_timeout();
    }

    fn phase(&self) -> &'static str {
        self.slow_start.phase()
    }
}
