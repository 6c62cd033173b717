//! Reno (RFC 5681).

use super::slow_start::{SlowStart, Step};
use super::{
    AckSample, Congestion, CongestionControl, HystartSnapshot, SenderSnapshot, SlowStartExit,
    Window,
};
use crate::{GrowthUnit, Halved, RenoConfig};

/// Reno: cwnd grows by one segment per round trip, and is halved by congestion.
#[derive(Clone, Debug)]
pub struct Reno {
    slow_start: SlowStart,
    config: RenoConfig,
    /// Acknowledged segments that count towards the next segment of growth.
    counted: f64,
}

impl Reno {
    pub(crate) fn new(slow_start: SlowStart, config: RenoConfig) -> Self {
        Self { slow_start, config, counted: 0.0 }
    }

    /// RFC 3465 2.1: cwnd grows by one segment when as many as it holds are acknowledged. As in
    /// Linux 6.18, where cwnd was 16 at the fifteenth acknowledged segment after a recovery that
    /// left 15.
    fn count(&mut self, acked: u32, window: &mut Window) {
        let cwnd = window.cwnd.max(1.0);
        if self.counted >= cwnd {
            // The credit was counted for a larger window: it is worth one segment.
            (window.cwnd, self.counted) = (cwnd + 1.0, 0.0);
        }
        self.counted += f64::from(acked);
        if self.counted >= cwnd {
            let grown = (self.counted / cwnd).floor();
            self.counted -= grown * cwnd;
            window.cwnd += grown;
        }
    }
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window) -> Option<SlowStartExit> {
        let Step { left, exit } = self.slow_start.on_ack(ack, window);
        match self.config.grows_by {
            GrowthUnit::Segments if left > 0 => self.count(left, window),
            GrowthUnit::Segments => {}
            // RFC 5681 (3)
            GrowthUnit::Acknowledgements => window.cwnd += f64::from(left.min(1)) / window.cwnd,
        }
        exit
    }

    fn on_congestion(&mut self, congestion: &Congestion, window: &mut Window) {
        self.counted = 0.0;
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

    fn hystart(&self, sender: &SenderSnapshot) -> Option<HystartSnapshot> {
        self.slow_start.hystart(sender)
    }
}
