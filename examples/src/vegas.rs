//! TCP Vegas (Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global
//! Internet", IEEE JSAC 13(8), 1995).

use airpath_base::Duration;
use airpath_tcp::{
    AckSample, Congestion, CongestionControl, SlowStartExit, SlowStartExitReason, Window,
};

/// Segments in the queue below which cwnd grows.
const ALPHA: f64 = 2.0;
/// Segments in the queue above which cwnd shrinks.
const BETA: f64 = 4.0;
/// Segments in the queue at which slow start ends.
const GAMMA: f64 = 1.0;

/// Compares the actual rate with the rate that the smallest RTT would allow: the difference, times
/// that RTT, is what waits in the queue. cwnd is adjusted by one segment per round trip.
#[derive(Debug, Default)]
pub struct Vegas {
    /// The round ends when this sequence number is acknowledged.
    round_end: u64,
    /// Smallest RTT of the round, which excludes delayed acknowledgements.
    rtt: Option<Duration>,
    /// Slow start grows only in every second round, so that the rounds in between can measure.
    grows: bool,
}

impl Vegas {
    /// Segments of the window that wait in queues.
    fn queued(rtt: Duration, base: Duration, cwnd: f64) -> f64 {
        cwnd * (1.0 - base.as_secs_f64() / rtt.as_secs_f64())
    }

    fn end_round(&mut self, queued: f64, window: &mut Window) -> Option<SlowStartExit> {
        self.grows = !self.grows;
        if !window.in_slow_start() {
            window.cwnd += if queued < ALPHA {
                1.0
            } else if queued > BETA {
                -1.0
            } else {
                0.0
            };
            window.cwnd = window.cwnd.max(2.0);
        } else if queued > GAMMA {
            // The queued segments exceed what the path holds.
            window.cwnd = (window.cwnd - queued).max(2.0);
            window.ssthresh = window.cwnd;
            let reason = SlowStartExitReason::Delay;
            return Some(SlowStartExit { reason, round_rtt: self.rtt, base_rtt: None });
        }
        None
    }
}

impl CongestionControl for Vegas {
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window) -> Option<SlowStartExit> {
        if let Some(rtt) = ack.rtt {
            self.rtt = Some(self.rtt.map_or(rtt, |least| least.min(rtt)));
        }
        if window.in_slow_start() && self.grows && ack.cwnd_limited {
            window.cwnd += f64::from(ack.acked);
        }
        if ack.una <= self.round_end {
            return None;
        }
        self.round_end = ack.nxt;
        let queued = self.rtt.map(|rtt| Self::queued(rtt, ack.min_rtt, window.cwnd))?;
        let exit = self.end_round(queued, window);
        self.rtt = None;
        exit
    }

    fn on_congestion(&mut self, congestion: &Congestion, window: &mut Window) {
        window.ssthresh = (f64::from(congestion.flight) / 2.0).max(2.0);
    }
}
