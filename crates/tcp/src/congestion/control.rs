//! The trait behind which congestion control lives, and what the sender tells it.

use core::fmt::Debug;

use airpath_base::{Duration, Instant};

use crate::event::SlowStartExitReason;

/// Decides how much may be in flight. The sender measures and retransmits; an algorithm only
/// computes.
///
/// A loss-based one is told of acknowledgements while cwnd may grow, and of congestion; the sender
/// brings cwnd down to the ssthresh that it sets. A model-based one ([`Self::is_model_based`]) is
/// told of every acknowledgement and steers cwnd alone, in recovery too.
pub trait CongestionControl: Debug + Send {
    /// Data was delivered. Tells if slow start ends here by the algorithm's own judgement.
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window) -> Option<SlowStartExit>;

    /// The handshake is over; it took this long if that was measured.
    fn on_established(&mut self, _rtt: Option<Duration>, _window: &Window) {}

    /// Congestion: a loss was inferred from acknowledgements, or marked packets arrived (RFC 3168
    /// 6.1.2). Once per recovery. Sets ssthresh.
    fn on_congestion(&mut self, congestion: &Congestion, window: &mut Window);

    /// The retransmission timer ran out for a segment for the first time: sets ssthresh. The
    /// sender sets cwnd to [`CongestionControl::loss_window`].
    fn on_timeout(&mut self, congestion: &Congestion, window: &mut Window) {
        self.on_congestion(congestion, window);
    }

    /// A segment was inferred to be lost; before the acknowledgement that told so is handed in.
    /// Only for model-based algorithms.
    fn on_lost(&mut self, _lost: &LostSegment, _window: &mut Window) {}

    /// The last congestion was none: `window` is as before it (RFC 4015 3.3, RFC 9438 4.9).
    fn on_undo(&mut self, _window: &mut Window) {}

    /// A recovery that congestion began has ended.
    fn on_recovered(&mut self, _now: Instant, _window: &mut Window) {}

    /// Data is sent after nothing was in flight (RFC 9438 5.8). `since` is the last transmission.
    fn on_restart(&mut self, _now: Instant, _since: Instant, _window: &mut Window) {}

    /// cwnd after a time-out (RFC 5681 3.1: one segment).
    fn loss_window(&self) -> f64 {
        1.0
    }

    /// Gets every acknowledgement, with a [`RateSample`], and has cwnd to itself.
    fn is_model_based(&self) -> bool {
        false
    }

    /// Pacing rate in payload bytes per second; `None` leaves pacing to the profile.
    fn pacing_rate(&self) -> Option<f64> {
        None
    }

    /// Most segments in a burst of segmentation offload; `None` leaves it to the profile.
    fn burst(&self) -> Option<u32> {
        None
    }

    /// Windows that the send buffer has room for, where it grows with cwnd; `None` leaves it to the
    /// profile.
    fn send_buffer_factor(&self) -> Option<u32> {
        None
    }

    /// What it is doing, for tables: a BBR state; empty if there is nothing to say.
    fn phase(&self) -> &'static str {
        ""
    }

    /// HyStart or HyStart++, for tables: what the next acknowledgement finds. `None`: it has
    /// neither, or no RTT yet.
    fn hystart(&self, _sender: &SenderSnapshot) -> Option<HystartSnapshot> {
        None
    }
}

/// What one acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// When it came.
    pub now: Instant,
    /// First byte not acknowledged, after it (SND.UNA).
    pub una: u64,
    /// Next byte to send for the first time (SND.NXT).
    pub nxt: u64,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Segments for which a loss-based cwnd may grow: acknowledged cumulatively; after a time-out,
    /// of these the ones not SACKed before.
    pub acked: u32,
    /// Segments newly known to be delivered, cumulatively or by SACK.
    pub delivered: u32,
    /// Segments newly marked lost.
    pub lost: u32,
    /// It reports marked packets (ECE).
    pub ecn_echo: bool,
    /// RTT of the newest of them; `None` if it was retransmitted.
    pub rtt: Option<Duration>,
    /// Smoothed RTT.
    pub srtt: Duration,
    /// Smallest RTT of the connection.
    pub min_rtt: Duration,
    /// Segments in flight after it, before anything is sent in answer.
    pub in_flight: u32,
    /// cwnd, and nothing else, held the sender back in the window that it acknowledges.
    pub cwnd_limited: bool,
    /// The sender paces.
    pub paced: bool,
    /// How long the pacer holds back what would be sent next.
    pub pacing_wait: Duration,
    /// Where recovery stands after it.
    pub state: State,
    /// Delivery rate; only for model-based algorithms.
    pub rate: Option<RateSample>,
}

/// Where recovery stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// No recovery.
    Open,
    /// Fast recovery, or the reduction that ECN asked for.
    Recovery,
    /// After a retransmission time-out.
    Loss,
}

/// Delivery rate by one acknowledgement (draft-ietf-ccwg-bbr 4.1.2), of the newest segment that
/// it delivers. In segments.
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// Delivered on the connection, this acknowledgement included (C.delivered).
    pub total_delivered: u64,
    /// Delivered on the connection when the segment was sent (RS.prior_delivered).
    pub prior_delivered: u64,
    /// The longer of sending and acknowledging what was delivered since; `None` if the sample is
    /// not to be used, because it is shorter than the smallest RTT.
    pub interval: Option<Duration>,
    /// The application was the limit when the segment was sent.
    pub app_limited: bool,
    /// In flight before this acknowledgement (prior_inflight).
    pub prior_in_flight: u32,
    /// In flight when the segment was sent, itself included (RS.tx_in_flight).
    pub tx_in_flight: u32,
    /// Lost on the connection so far, and when the segment was sent (C.lost, P.lost).
    pub total_lost: u64,
    /// See [`RateSample::total_lost`].
    pub prior_lost: u64,
}

impl RateSample {
    /// Segments delivered since the segment was sent (RS.delivered).
    pub fn delivered(&self) -> u64 {
        self.total_delivered - self.prior_delivered
    }

    /// Segments per second.
    pub fn per_second(&self) -> Option<f64> {
        let seconds = self.interval?.as_secs_f64();
        (seconds > 0.0).then(|| self.delivered() as f64 / seconds)
    }
}

/// A segment that was lost, and the connection when it was sent (draft-ietf-ccwg-bbr-06 4.1.2.1).
#[derive(Clone, Copy, Debug)]
pub struct LostSegment {
    /// When the loss was inferred.
    pub now: Instant,
    /// Its first byte, and the one after its last.
    pub seq: u64,
    /// See [`LostSegment::seq`].
    pub end: u64,
    /// In flight when it was sent, itself included (P.tx_in_flight).
    pub tx_in_flight: u32,
    /// The application was the limit when it was sent.
    pub app_limited: bool,
    /// Delivered on the connection so far (C.delivered).
    pub total_delivered: u64,
    /// Lost on the connection so far, itself included, and when it was sent (C.lost, P.lost).
    pub total_lost: u64,
    /// See [`LostSegment::total_lost`].
    pub prior_lost: u64,
}

/// Slow start ends by the algorithm's own judgement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SlowStartExit {
    /// Why.
    pub reason: SlowStartExitReason,
    /// RTT of the round that a delay test compared with `base_rtt`.
    pub round_rtt: Option<Duration>,
    /// The RTT from which the test starts: the smallest one of data; for HyStart++ that of the
    /// round before.
    pub base_rtt: Option<Duration>,
}

impl SlowStartExit {
    /// An exit that no comparison of RTTs brought about.
    pub(crate) const fn by(reason: SlowStartExitReason) -> Self {
        Self { reason, round_rtt: None, base_rtt: None }
    }
}

/// What of a sender the tests of HyStart depend on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SenderSnapshot {
    /// cwnd and ssthresh.
    pub window: Window,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Smoothed RTT.
    pub srtt: Duration,
    /// The sender paces.
    pub paced: bool,
}

/// The round of HyStart (Ha and Rhee 2011) or HyStart++ (RFC 9406), and what its tests compare.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HystartSnapshot {
    /// It may still end this slow start.
    pub active: bool,
    /// Smallest RTT sample of the round (currentRoundMinRTT).
    pub round_min_rtt: Option<Duration>,
    /// The round's RTT above which the delay test ends slow start. HyStart++: the RTT from which
    /// conservative slow start (CSS) begins; in CSS the one below which it ends
    /// (cssBaselineMinRtt).
    pub threshold: Option<Duration>,
    /// RTT samples of the round, at most the eight with which its sampling is complete.
    pub samples: Option<u32>,
    /// The train of acknowledgements that began with the round: its length so far.
    pub ack_train: Option<Duration>,
    /// The length above which a train ends slow start.
    pub ack_train_limit: Option<Duration>,
    /// HyStart++ is in CSS; `None` for HyStart.
    pub css: Option<bool>,
}

/// What the sender knows when it infers congestion.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// When.
    pub now: Instant,
    /// Segments sent and not acknowledged (FlightSize, RFC 5681 2), those of limited transmit left
    /// out: at most cwnd.
    pub flight: u32,
}

/// The window that an algorithm steers, in segments; fractions accumulate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Window {
    /// Congestion window.
    pub cwnd: f64,
    /// Slow start threshold; infinite before the first congestion.
    pub ssthresh: f64,
}

impl Window {
    /// That of a connection that starts: so many segments, and no ssthresh yet.
    pub fn initial(segments: u32) -> Self {
        Self { cwnd: f64::from(segments.max(1)), ssthresh: f64::INFINITY }
    }

    /// cwnd is below ssthresh (RFC 5681 3.1).
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whole segments of cwnd.
    pub fn segments(&self) -> u32 {
        self.cwnd as u32
    }
}
