//! Inputs and outputs of DRX.

use airpath_base::{Direction, Instant};

/// A transmission on a HARQ process, or its scheduling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmission {
    /// Direction of the data.
    pub direction: Direction,
    /// How it was announced.
    pub kind: TransmissionKind,
    /// The HARQ process, below the configured number.
    pub process: u8,
    /// When drx-HARQ-RTT-Timer starts. Downlink: the end of the HARQ feedback; in LTE the
    /// beginning of the subframe of the assignment. Uplink: the end of the (first) PUSCH.
    pub harq_rtt_starts: Instant,
}

/// How a transmission was announced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransmissionKind {
    /// By a PDCCH, for new data.
    New,
    /// By a PDCCH, for a HARQ retransmission.
    Retransmission,
    /// Not at all: by a configured grant or assignment.
    Configured,
}

/// A MAC control element that ends Active Time (TS 38.321 6.1.3.5, 6.1.3.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DrxCommand {
    /// DRX Command: the short cycle follows, if there is one.
    Drx,
    /// Long DRX Command.
    LongDrx,
}

/// The state of DRX at an instant, for tables: the first that applies, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DrxState {
    /// Awake: drx-InactivityTimer runs.
    Inactivity,
    /// Awake: drx-onDurationTimer runs.
    OnDuration,
    /// Awake: a scheduling request is pending.
    SchedulingRequest,
    /// Awake: random access is in progress.
    RandomAccess,
    /// Awake: a HARQ retransmission may arrive, or a PDCCH is being received.
    Retransmission,
    /// Asleep, in the short cycle.
    ShortSleep,
    /// Asleep, in the long cycle.
    LongSleep,
}

impl DrxState {
    /// Name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inactivity => "inactivity",
            Self::OnDuration => "on_duration",
            Self::SchedulingRequest => "scheduling_request",
            Self::RandomAccess => "random_access",
            Self::Retransmission => "retransmission",
            Self::ShortSleep => "short_sleep",
            Self::LongSleep => "long_sleep",
        }
    }
}
