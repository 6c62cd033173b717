//! The growth of cwnd in slow start.

use crate::congestion::Window;

/// The growth of cwnd in slow start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Most segments of growth per acknowledgement.
    pub(super) limit: Option<u32>,
    pub(super) divisor: f64,
}

impl Pace {
    /// Grows the window for `acked` segments; returns those left over for congestion avoidance.
    pub(super) fn grow(self, acked: u32, window: &mut Window) -> u32 {
        // RFC 5681 (2): by at most the limit per acknowledgement.
        let room = window.ssthresh - window.cwnd;
        let step = f64::from(acked.min(self.limit.unwrap_or(u32::MAX))) / self.divisor;
        window.cwnd += step.min(room);
        if step > room { (step - room) as u32 } else { 0 }
    }
}
