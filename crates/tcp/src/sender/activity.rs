//! What a sender is doing at an instant, to account for its time.

use super::Sender;
use super::recovery::Phase;
use crate::event::SendLimit;

/// What a sender is doing. Reasons for which it cannot send take precedence over how its window
/// grows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Activity {
    /// The connection is not established yet, or the stream has ended.
    Handshake,
    /// cwnd is below ssthresh and grows fast.
    SlowStart,
    /// cwnd has left slow start, and no recent loss is being repaired.
    CongestionAvoidance,
    /// Fast recovery, or another reduction of cwnd.
    Recovery,
    /// Recovery after a retransmission time-out.
    TimeOut,
    /// The peer's window is full.
    ReceiveWindow,
    /// The send buffer is full.
    SendBuffer,
    /// The application has nothing to send.
    Application,
}

impl Activity {
    /// All activities, in the order of tables.
    pub const ALL: [Self; 8] = [
        Self::Handshake,
        Self::SlowStart,
        Self::CongestionAvoidance,
        Self::Recovery,
        Self::TimeOut,
        Self::ReceiveWindow,
        Self::SendBuffer,
        Self::Application,
    ];

    /// The activity's stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::SlowStart => "slow_start",
            Self::CongestionAvoidance => "congestion_avoidance",
            Self::Recovery => "recovery",
            Self::TimeOut => "time_out",
            Self::ReceiveWindow => "receive_window",
            Self::SendBuffer => "send_buffer",
            Self::Application => "application",
        }
    }
}

impl Sender {
    pub(crate) fn activity(&self) -> Activity {
        if self.limits.is_idle() {
            return Activity::Handshake;
        }
        match (self.recovery.phase(), self.limits.current()) {
            (Phase::Loss(_), _) => Activity::TimeOut,
            (_, SendLimit::ReceiveWindow) => Activity::ReceiveWindow,
            (_, SendLimit::SendBuffer) => Activity::SendBuffer,
            (_, SendLimit::Application) => Activity::Application,
            (Phase::Recovery(_) | Phase::Reduced(_), _) => Activity::Recovery,
            (Phase::Open, _) if self.congestion.is_in_slow_start() => Activity::SlowStart,
            (Phase::Open, _) => Activity::CongestionAvoidance,
        }
    }
}
