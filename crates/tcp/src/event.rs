//! What an endpoint reports: events with their time. Tests, tables and plots read them; nothing in
//! the model prints.

use airpath_base::{Duration, Instant};

/// Something that an endpoint did or noticed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Event {
    /// Logical time.
    pub at: Instant,
    /// What.
    pub kind: EventKind,
}

/// Kinds of events of a TCP endpoint.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum EventKind {
    /// The handshake is complete.
    Established,
    /// Slow start ended.
    SlowStartExit {
        /// Why.
        reason: SlowStartExitReason,
        /// cwnd then, in segments.
        cwnd: u32,
        /// Smoothed RTT then.
        srtt: Duration,
        /// Smallest RTT so far, or what else a delay test started from: that of the round before
        /// for HyStart++.
        min_rtt: Duration,
        /// RTT of the round that a delay test compared with it.
        round_rtt: Option<Duration>,
    },
    /// Loss was inferred from acknowledgements; recovery began.
    RecoveryStart {
        /// cwnd before the reduction.
        cwnd: u32,
        /// ssthresh after it.
        ssthresh: u32,
        /// Segments marked lost.
        lost: u32,
    },
    /// Everything outstanding when recovery began is acknowledged.
    RecoveryEnd {
        /// cwnd now.
        cwnd: u32,
    },
    /// The retransmission timer fired (RFC 6298 5.4).
    RetransmissionTimeout {
        /// How many times in a row.
        backoff: u32,
        /// RTO that ran out.
        rto: Duration,
    },
    /// A tail loss probe was sent (RFC 8985 7.3).
    TailLossProbe,
    /// cwnd began to come down without a loss: marked packets, or a loss that a probe repaired.
    Reduction {
        /// cwnd before.
        cwnd: u32,
        /// ssthresh after it.
        ssthresh: u32,
        /// Marked packets were the reason.
        ecn: bool,
    },
    /// A reduction was taken back: nothing had been lost.
    Undo {
        /// cwnd now.
        cwnd: u32,
        /// What told.
        by: UndoReason,
    },
    /// A zero window was probed.
    WindowProbe,
    /// The sender's data is all acknowledged, FIN included.
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

/// What told that nothing had been lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UndoReason {
    /// The original was acknowledged: the echoed timestamp is older than the retransmission (Eifel).
    Timestamp,
    /// Each retransmission arrived as a duplicate.
    Dsack,
    /// F-RTO: what was sent once arrived after the time-out.
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
    /// HyStart: the minimum RTT fell, so that the round's RTT was above it.
    FallingMinimum,
    /// HyStart: the acknowledgements of a round came as one train for too long.
    AckTrain,
    /// HyStart++: the rise of the RTT lasted through conservative slow start.
    ConservativeSlowStart,
    /// BBR: the delivery rate stopped growing.
    FullPipe,
    /// ECN: congestion was experienced.
    Ecn,
}

impl SlowStartExitReason {
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

/// What kept a sender from sending more, for time accounting as in TCP_INFO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendLimit {
    /// The congestion window.
    Cwnd,
    /// Pacing: the next burst waits for its time.
    Pacing,
    /// The window that the receiver advertised.
    ReceiveWindow,
    /// The send buffer: the application has more, the buffer does not take it.
    SendBuffer,
    /// The application had nothing to send.
    Application,
}
