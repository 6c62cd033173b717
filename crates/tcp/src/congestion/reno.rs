//! Reno (RFC 5681).

use super::slow_start::{SlowStart, Step};
use super::{
    AckSample, Congestion, CongestionControl, HystartSnapshot, SenderSnapshot, SlowStartExit,
    Window,
};
use crate::{GrowthUnit, Halved, RenoConfig};

/// One segment per round trip; half after congestion.
#[derive(Clone, Debug)]
pub struct Reno {
    slow_start: SlowStart,
    config: RenoConfig,
}

impl Reno {
    pub(crate) fn new(slow_start: SlowStart, config: RenoConfig) -> Self {
        Self { slow_start, config }
    }
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window) -> Option<SlowStartExit> {
        let Step { left, exit } = self.slow_start.on_ack(ack, window);
        // RFC 5681 (3), for each acknowledged segment, or for each acknowledgement.
        let counted = match self.config.grows_by {
            GrowthUnit::Segments => left,
            GrowthUnit::Acknowledgements => left.min(1),
        };
        window.cwnd += f64::from(counted) / window.cwnd;
        exit
    }

    fn on_congestion(&mut self, congestion: &Congestion, window: &mut Window) {
        // RFC 5681 (4)
        let half = match self.config.halves {
            Halved::Flight => f64::from(congestion.flight) / 2.0,
            Halved::Cwnd => (window.cwnd.floor() / 2.0).floor(),
        };
        window.ssthresh = half.max(2.0);
    }

    fn on_timeout(&mut self, congestion: &Congestion, window: &mut Window) {
        self.on_congestion(congestion, window);
        self.slow_start.on_timeout();
    }

    fn phase(&self) -> &'static str {
        self.slow_start.phase()
    }

    fn hystart(&self, sender: &SenderSnapshot) -> Option<HystartSnapshot> {
        self.slow_start.hystart(sender)
    }
}
