//! A constant window: no congestion control.

use super::{AckSample, Congestion, CongestionControl, SlowStartExit, Window};

/// Never changes its window.
#[derive(Debug)]
pub(super) struct Fixed {
    pub(super) window: f64,
}

impl CongestionControl for Fixed {
    fn on_ack(&mut self, _ack: &AckSample, _window: &mut Window) -> Option<SlowStartExit> {
        None
    }

    fn on_congestion(&mut self, _congestion: &Congestion, window: &mut Window) {
        window.ssthresh = window.cwnd;
    }

    fn loss_window(&self) -> f64 {
        self.window
    }
}
