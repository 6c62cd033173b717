//! HyStart++ (RFC 9406): when a round's RTT rises, growth first slows down (conservative slow
//! start, CSS); slow start ends only if the rise lasts.

use airpath_base::Duration;

use super::pace::Pace;
use crate::congestion::{AckSample, HystartSnapshot, SenderSnapshot, SlowStartExit};
use crate::event::SlowStartExitReason;

/// RFC 9406 4.3
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;
/// L of a sender that does not pace; a sender that paces has no limit.
const L: u32 = 8;

/// Names follow RFC 9406 4.2.
#[derive(Clone, Debug, Default)]
pub(super) struct HystartPlusPlus {
    /// End of this round in the stream; `None` before the first.
    window_end: Option<u64>,
    last_round_min_rtt: Option<Duration>,
    current_round_min_rtt: Option<Duration>,
    rtt_sample_count: u32,
    css: Option<Css>,
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Css {
    /// RTT of the round in which CSS began.
    baseline_min_rtt: Duration,
    /// RTT of the round before that.
    last_round_min_rtt: Duration,
    rounds: u32,
}

impl HystartPlusPlus {
    /// The growth of cwnd at present.
    pub(super) fn pace(&self, paced: bool) -> Pace {
        Pace {
            limit: (!paced).then_some(L),
            divisor: if self.css.is_some() { CSS_GROWTH_DIVISOR } else { 1.0 },
        }
    }

    /// Processes an acknowledgement of the initial slow start, after cwnd has grown by it.
    pub(super) fn on_ack(&mut self, ack: &AckSample) -> Option<SlowStartExit> {
        let window_end = *self.window_end.get_or_insert(ack.nxt);
        if let Some(rtt) = ack.rtt {
            self.current_round_min_rtt =
                Some(self.current_round_min_rtt.map_or(rtt, |min| min.min(rtt)));
            self.rtt_sample_count += 1;
        }
        self.compare();
        if ack.una < window_end {
            return None;
        }
        let exit = self.css.as_mut().and_then(Css::end_round);
        self.window_end = Some(ack.nxt);
        self.last_round_min_rtt = self.current_round_min_rtt.take();
        self.rtt_sample_count = 0;
        if exit.is_some() {
            self.css = None;
        }
        exit
    }

    /// Switches between slow start and CSS.
    fn compare(&mut self) {
        let Some(current) = self.current_round_min_rtt else { return };
        if self.rtt_sample_count < N_RTT_SAMPLE {
            return;
        }
        match (self.css, self.last_round_min_rtt) {
            (Some(css), _) if current < css.baseline_min_rtt => self.css = None,
            (None, Some(last)) if current >= last + rtt_thresh(last) => {
                self.css =
                    Some(Css { baseline_min_rtt: current, last_round_min_rtt: last, rounds: 0 });
            }
            _ => {}
        }
    }

    /// The state that the next acknowledgement meets.
    pub(super) fn snapshot(&self, sender: &SenderSnapshot) -> HystartSnapshot {
        // RFC 9406 4.3: later slow starts are standard.
        let active = sender.window.ssthresh.is_infinite();
        let threshold = match self.css {
            Some(css) => Some(css.baseline_min_rtt),
            None => self.last_round_min_rtt.map(|last| last + rtt_thresh(last)),
        };
        HystartSnapshot {
            active,
            round_min_rtt: self.current_round_min_rtt.filter(|_| active),
            threshold: threshold.filter(|_| active),
            samples: active.then_some(self.rtt_sample_count.min(N_RTT_SAMPLE)),
            ack_train: None,
            ack_train_limit: None,
            css: Some(self.css.is_some()),
        }
    }
}

/// RttThresh (RFC 9406 4.2)
fn rtt_thresh(last_round_min_rtt: Duration) -> Duration {
    (last_round_min_rtt / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)
}

impl Css {
    /// Ends a round, which may be the one in which CSS began.
    fn end_round(&mut self) -> Option<SlowStartExit> {
        self.rounds += 1;
        (self.rounds >= CSS_ROUNDS).then_some(SlowStartExit {
            reason: SlowStartExitReason::ConservativeSlowStart,
            round_rtt: Some(self.baseline_min_rtt),
            base_rtt: Some(self.last_round_min_rtt),
        })
    }
}
