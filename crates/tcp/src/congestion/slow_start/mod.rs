//! Slow start, shared by the loss-based algorithms. Variants that leave it early plug in here.

use super::Window;
use crate::SlowStartConfig;

/// Grows cwnd below ssthresh.
#[derive(Clone, Debug)]
pub(crate) struct SlowStart {
    limit: u32,
}

impl SlowStart {
    pub(crate) fn new(config: SlowStartConfig) -> Self {
        Self { limit: config.limit.unwrap_or(u32::MAX) }
    }

    /// Grows the window for `acked` segments; returns those left over for congestion avoidance.
    pub(crate) fn grow(&mut self, acked: u32, window: &mut Window) -> u32 {
        // RFC 5681 (2): by at most the limit per acknowledgement.
        let room = window.ssthresh - window.cwnd;
        let step = f64::from(acked.min(self.limit));
        window.cwnd += step.min(room);
        if step > room { (step - room) as u32 } else { 0 }
    }
}
