//! Events that an endpoint reports, with their times. Tests, tables and plots read them; the model
//! itself never prints.

use airpath_base::{Duration, Instant};

/// Something that an endpoint did or noticed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Event {
    /// Logical time.
    pub at: Instant,
    /// What happened.
    pub kind: EventKind,
}

/// Kinds of events of a TCP endpoint.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum EventKind {
    /// The handshake is complete.
    Established,
    /// Slow start ended.
    SlowStartExit {
        /// Why slow start ended.
        reason: SlowStartExitReason,
        /// cwnd at that time, in segments.
        cwnd: u32,
        /// Smoothed RTT at that time.
        srtt: Duration,
        /// The reference RTT of a delay test: the smallest so far; for HyStart++ that of the
        /// previous round.
        min_rtt: Duration,
        /// RTT of the round that a delay test compared with `min_rtt`.
        round_rtt: Option<Duration>,
    },
    /// Loss was inferred from acknowledgements; recovery began.
    RecoveryStart {
        /// cwnd before the reduction, in segments.
        cwnd: u32,
        /// ssthresh after the reduction, in segments.
        ssthresh: u32,
        /// Segments marked lost.
        lost: u32,
    },
    /// Everything that was outstanding when recovery began is acknowledged.
    RecoveryEnd {
        /// cwnd at that time, in segments.
        cwnd: u32,
    },
    /// The retransmission timer fired (RFC 6298 5.4).
    RetransmissionTimeout {
        /// Number of time-outs in a row.
        backoff: u32,
        /// The RTO that expired.
        rto: Duration,
    },
    /// A tail loss probe was sent (RFC 8985 7.3).
    TailLossProbe,
    /// cwnd began to be reduced without a retransmission: for marked packets, or for a loss that a
    /// probe repaired.
    Reduction {
        /// cwnd before the reduction, in segments.
        cwnd: u32,
        /// ssthresh after the reduction, in segments.
        ssthresh: u32,
        /// Whether marked packets were the reason.
        ecn: bool,
    },
    /// A reduction was undone: nothing had been lost.
    Undo {
        /// cwnd after the undo, in segments.
        cwnd: u32,
        /// What showed that nothing had been lost.
        by: UndoReason,
    },
    /// A zero window probe was sent.
    WindowProbe,
    /// All data of the sender is acknowledged, FIN included.
    Finished,
}

impl EventKind {
    /// Name in tables.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Established => "established",
            Self::SlowStartExit { .. } => "slow_start_exit",
            Self::RecoveryStart { .. } => "recovery_start",
            Self::RecoveryEnd { .. } => "recovery_end",
            Self::RetransmissionTimeout { .. } => "retransmission_timeout",
            Self::TailLossProbe => "tail_loss_probe",
            Self::Reduction { .. } => "reduction",
            Self::Undo { .. } => "undo",
            Self::WindowProbe => "window_probe",
            Self::Finished => "finished",
        }
    }
}

/// What showed that nothing had been lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UndoReason {
    /// The original was acknowledged: the echoed timestamp is older than the retransmission (Eifel).
    Timestamp,
    /// Each retransmission arrived as a duplicate.
    Dsack,
    /// F-RTO: a segment that was sent only once arrived after the time-out.
    Frto,
}

impl UndoReason {
    /// Name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timestamp => "timestamp",
            Self::Dsack => "dsack",
            Self::Frto => "frto",
        }
    }
}

/// Why slow start ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlowStartExitReason {
    /// A loss was detected or the retransmission timer fired.
    Loss,
    /// cwnd reached an ssthresh set by an earlier congestion event.
    Ssthresh,
    /// HyStart: the RTT of a round rose.
    Delay,
    /// HyStart: the minimum RTT fell, which left the round's RTT above it.
    FallingMinimum,
    /// HyStart: the ACK train of a round became too long.
    AckTrain,
    /// HyStart++: the RTT stayed high throughout conservative slow start.
    ConservativeSlowStart,
    /// BBR: the delivery rate stopped growing.
    FullPipe,
    /// ECN: packets were marked with CE.
    Ecn,
}

impl SlowStartExitReason {
    /// Every reason.
    const ALL: [Self; 8] = [
        Self::Loss,
        Self::Ssthresh,
        Self::Delay,
        Self::FallingMinimum,
        Self::AckTrain,
        Self::ConservativeSlowStart,
        Self::FullPipe,
        Self::Ecn,
    ];

    /// The reason with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// Name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Ssthresh => "ssthresh",
            Self::Delay => "delay",
            Self::FallingMinimum => "falling_minimum",
            Self::AckTrain => "ack_train",
            Self::ConservativeSlowStart => "css",
            Self::FullPipe => "full_pipe",
            Self::Ecn => "ecn",
        }
    }
}

/// What limits a sender, for time accounting as in TCP_INFO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendLimit {
    /// The congestion window.
    Cwnd,
    /// Pacing: the next burst waits for its time.
    Pacing,
    /// The window that the receiver advertised.
    ReceiveWindow,
    /// The send buffer: the application has more data than fits.
    SendBuffer,
    /// The application had nothing to send.
    Application,
}
