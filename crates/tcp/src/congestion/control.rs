//! The trait that congestion control algorithms implement, and what the sender passes to it.

use core::fmt::Debug;

use airpath_base::{Duration, Instant};

use crate::event::SlowStartExitReason;

/// Decides how much may be in flight. The sender measures and retransmits; an algorithm only
/// computes.
///
/// A loss-based algorithm is called for acknowledgements while cwnd may grow, and for congestion
/// events; the sender then reduces cwnd to the ssthresh that the algorithm sets. A model-based one
/// ([`Self::is_model_based`]) is called for every acknowledgement and controls cwnd alone, in
/// recovery too.
pub trait CongestionControl: Debug + Send {
    /// Data was delivered. Returns an exit if the algorithm itself ends slow start here.
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window) -> Option<SlowStartExit>;

    /// The handshake is complete; `_rtt` is its round trip, if it was measured.
    fn on_established(&mut self, _rtt: Option<Duration>, _window: &Window) {}

    /// A congestion event: a loss was inferred from acknowledgements, or marked packets arrived
    /// (RFC 3168 6.1.2). Called once per recovery. Sets ssthresh.
    fn on_congestion(&mut self, congestion: &Congestion, window: &mut Window);

    /// The retransmission timer expired for a segment for the first time: sets ssthresh. The sender
    /// sets cwnd to [`CongestionControl::loss_window`].
    fn on_timeout(&mut self, congestion: &Congestion, window: &mut Window) {
        self.on_congestion(congestion, window);
    }

    /// A segment was inferred lost; called before [`Self::on_ack`] for the acknowledgement that
    /// revealed it. Only for model-based algorithms.
    fn on_lost(&mut self, _lost: &LostSegment, _window: &mut Window) {}

    /// The last congestion event was spurious: `window` has been restored to its state before it
    /// (RFC 4015 3.3, RFC 9438 4.9).
    fn on_undo(&mut self, _window: &mut Window) {}

    /// A recovery that began with congestion has ended.
    fn on_recovered(&mut self, _now: Instant, _window: &mut Window) {}

    /// Data is sent after nothing was in flight (RFC 9438 5.8). `_since` is the time of the last
    /// transmission.
    fn on_restart(&mut self, _now: Instant, _since: Instant, _window: &mut Window) {}

    /// Whether an algorithm that decides apart from acknowledgements is to decide now. A driver asks
    /// after each event, for an algorithm from outside, and then calls
    /// [`Endpoint::decide`](crate::Endpoint::decide) at the same instant.
    fn decision_due(&self) -> bool {
        false
    }

    /// Decides apart from acknowledgements.
    fn on_decision(&mut self, _window: &mut Window) {}

    /// cwnd after a time-out (RFC 5681 3.1: one segment).
    fn loss_window(&self) -> f64 {
        1.0
    }

    /// Whether the algorithm receives every acknowledgement, with a [`RateSample`], and alone
    /// controls cwnd.
    fn is_model_based(&self) -> bool {
        false
    }

    /// Pacing rate in payload bytes per second; `None`: the profile's.
    fn pacing_rate(&self) -> Option<f64> {
        None
    }

    /// Most segments in a burst of segmentation offload; `None`: the profile's.
    fn burst(&self) -> Option<u32> {
        None
    }

    /// How many times cwnd the send buffer holds, if it grows with cwnd; `None`: the profile's.
    fn send_buffer_factor(&self) -> Option<u32> {
        None
    }

    /// Why the algorithm cannot go on, if it cannot. A driver reads this now and then, and ends the
    /// run; until then the algorithm leaves the window as it is.
    fn failure(&self) -> Option<&str> {
        None
    }

    /// The state of HyStart or HyStart++ that the next acknowledgement meets, for tables. `None`:
    /// there is no such algorithm, or no RTT yet.
    fn hystart(&self, _sender: &SenderSnapshot) -> Option<HystartSnapshot> {
        None
    }
}

/// Information from one acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// When the acknowledgement arrived.
    pub now: Instant,
    /// First byte not acknowledged, after this acknowledgement (SND.UNA).
    pub una: u64,
    /// Next byte to send for the first time (SND.NXT).
    pub nxt: u64,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Segments for which a loss-based cwnd may grow: those acknowledged cumulatively; after a
    /// time-out, only those not SACKed before.
    pub acked: u32,
    /// Segments newly known to be delivered, cumulatively or by SACK.
    pub delivered: u32,
    /// Segments newly marked lost.
    pub lost: u32,
    /// Whether it reports marked packets (ECE).
    pub ecn_echo: bool,
    /// RTT of the newest segment that it delivers; `None` if that was retransmitted.
    pub rtt: Option<Duration>,
    /// Smoothed RTT.
    pub srtt: Duration,
    /// Smallest RTT of the connection.
    pub min_rtt: Duration,
    /// Segments in flight after this acknowledgement, before anything is sent in response.
    pub in_flight: u32,
    /// Whether cwnd, and nothing else, limited the sender in the window that it acknowledges.
    pub cwnd_limited: bool,
    /// Whether the sender paces.
    pub paced: bool,
    /// How long pacing delays the next transmission.
    pub pacing_wait: Duration,
    /// The recovery state after this acknowledgement.
    pub state: State,
    /// Delivery rate; only for model-based algorithms.
    pub rate: Option<RateSample>,
}

/// The recovery state of the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// No recovery in progress.
    Open,
    /// Fast recovery, or a reduction in response to ECN.
    Recovery,
    /// After a retransmission time-out.
    Loss,
}

/// Delivery rate sample of one acknowledgement (draft-ietf-ccwg-bbr 4.1.2), taken from the newest
/// segment that it delivers. Volumes are in segments.
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// Segments delivered on the connection, this acknowledgement included (C.delivered).
    pub total_delivered: u64,
    /// Segments delivered on the connection when the segment was sent (RS.prior_delivered).
    pub prior_delivered: u64,
    /// The longer of the times in which the segments delivered since were sent and were
    /// acknowledged; `None` if it is shorter than the smallest RTT, so that the sample must not be
    /// used.
    pub interval: Option<Duration>,
    /// Whether the application was the limit when the segment was sent.
    pub app_limited: bool,
    /// Segments in flight before this acknowledgement (prior_inflight).
    pub prior_in_flight: u32,
    /// Segments in flight when the segment was sent, itself included (RS.tx_in_flight).
    pub tx_in_flight: u32,
    /// Segments lost on the connection so far (C.lost).
    pub total_lost: u64,
    /// Segments lost on the connection when the segment was sent (P.lost).
    pub prior_lost: u64,
}

impl RateSample {
    /// Segments delivered since the segment was sent (RS.delivered).
    pub fn delivered(&self) -> u64 {
        self.total_delivered - self.prior_delivered
    }

    /// The delivery rate in segments per second.
    pub fn per_second(&self) -> Option<f64> {
        let seconds = self.interval?.as_secs_f64();
        (seconds > 0.0).then(|| self.delivered() as f64 / seconds)
    }
}

/// A lost segment, and the state of the connection when it was sent (draft-ietf-ccwg-bbr-06
/// 4.1.2.1).
#[derive(Clone, Copy, Debug)]
pub struct LostSegment {
    /// When the loss was inferred.
    pub now: Instant,
    /// The segment's first byte.
    pub seq: u64,
    /// The byte after the segment's last.
    pub end: u64,
    /// Segments in flight when it was sent, itself included (P.tx_in_flight).
    pub tx_in_flight: u32,
    /// Whether the application was the limit when it was sent.
    pub app_limited: bool,
    /// Segments delivered on the connection so far (C.delivered).
    pub total_delivered: u64,
    /// Segments lost on the connection so far, itself included (C.lost).
    pub total_lost: u64,
    /// Segments lost on the connection when it was sent (P.lost).
    pub prior_lost: u64,
}

/// An end of slow start that the algorithm itself decided.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SlowStartExit {
    /// Why slow start ended.
    pub reason: SlowStartExitReason,
    /// RTT of the round that a delay test compared with `base_rtt`.
    pub round_rtt: Option<Duration>,
    /// The reference RTT of the test: the smallest one of data; for HyStart++ that of the previous
    /// round.
    pub base_rtt: Option<Duration>,
}

impl SlowStartExit {
    /// An exit that did not follow from a comparison of RTTs.
    pub(crate) const fn by(reason: SlowStartExitReason) -> Self {
        Self { reason, round_rtt: None, base_rtt: None }
    }
}

/// The part of a sender's state that HyStart's tests depend on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SenderSnapshot {
    /// cwnd and ssthresh, in segments.
    pub window: Window,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Smoothed RTT.
    pub srtt: Duration,
    /// Whether the sender paces.
    pub paced: bool,
}

/// The round of HyStart (Ha and Rhee 2011) or HyStart++ (RFC 9406), and what its tests compare.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HystartSnapshot {
    /// Whether it may still end this slow start.
    pub active: bool,
    /// Smallest RTT sample of the round (currentRoundMinRTT).
    pub round_min_rtt: Option<Duration>,
    /// For HyStart: the round's RTT above which the delay test ends slow start. For HyStart++: the
    /// RTT at which conservative slow start (CSS) begins; in CSS, the RTT below which CSS ends
    /// (cssBaselineMinRtt).
    pub threshold: Option<Duration>,
    /// RTT samples of the round, up to the eight that complete its sampling.
    pub samples: Option<u32>,
    /// Length so far of the ACK train that began with the round.
    pub ack_train: Option<Duration>,
    /// Length above which an ACK train ends slow start.
    pub ack_train_limit: Option<Duration>,
    /// Whether HyStart++ is in CSS; `None` for HyStart.
    pub css: Option<bool>,
}

/// The sender's state when it infers congestion.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// When congestion was inferred.
    pub now: Instant,
    /// Segments sent and not acknowledged (FlightSize, RFC 5681 2) without those of limited
    /// transmit: at most cwnd.
    pub flight: u32,
}

/// The window that an algorithm controls, in segments; fractions accumulate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Window {
    /// Congestion window.
    pub cwnd: f64,
    /// Slow start threshold; infinite before the first congestion.
    pub ssthresh: f64,
}

impl Window {
    /// The window of a new connection: `segments`, and no ssthresh yet.
    pub fn initial(segments: u32) -> Self {
        Self { cwnd: f64::from(segments.max(1)), ssthresh: f64::INFINITY }
    }

    /// Whether cwnd is below ssthresh (RFC 5681 3.1).
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whole segments of cwnd.
    pub fn segments(&self) -> u32 {
        self.cwnd as u32
    }
}
