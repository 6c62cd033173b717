//! Events of UEs that move.

use airpath_base::{Duration, Instant};

use super::CellIndex;
use crate::cell::UeIndex;

/// An event of a UE between cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MobilityEvent {
    /// When it happened.
    pub at: Instant,
    /// The UE to which it happened.
    pub ue: UeIndex,
    /// The cell that the UE was in before.
    pub from: CellIndex,
    /// The cell to which it goes; after a link failure, the cell it was in.
    pub to: CellIndex,
    /// What happened.
    pub kind: MobilityEventKind,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MobilityEventKind {
    /// The UE received the handover command: the source no longer sends anything.
    Command,
    /// The UE is in the target cell.
    Complete {
        /// Time without data.
        interruption: Duration,
    },
    /// From now on the core sends to the target.
    PathSwitch,
    /// In a handover the target was out of sync, and T304 expired.
    HandoverFailed,
    /// T310 expired.
    OutOfSync,
    /// RLC reached the maximum number of retransmissions.
    MaxRetransmissions,
    /// An idle UE camps on another cell.
    Reselection,
}

impl MobilityEventKind {
    /// Name in tables.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Command => "handover_command",
            Self::Complete { .. } => "handover_complete",
            Self::PathSwitch => "path_switch",
            Self::HandoverFailed => "handover_failed",
            Self::OutOfSync => "radio_link_failure",
            Self::MaxRetransmissions => "radio_link_failure_rlc",
            Self::Reselection => "cell_reselection",
        }
    }
}
