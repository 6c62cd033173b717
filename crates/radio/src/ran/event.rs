//! What is told about UEs that move.

use airpath_base::{Duration, Instant};

use super::CellIndex;
use crate::cell::UeIndex;

/// Something that happened to a UE between cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MobilityEvent {
    /// When.
    pub at: Instant,
    /// To whom.
    pub ue: UeIndex,
    /// The cell it was in before.
    pub from: CellIndex,
    /// The cell it goes to; that it was in, where a link failed.
    pub to: CellIndex,
    /// What.
    pub kind: MobilityEventKind,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MobilityEventKind {
    /// The UE was told to go: the source sends nothing any more.
    Command,
    /// It is in the target.
    Complete {
        /// Without data for so long.
        interruption: Duration,
    },
    /// The core sends to the target from now on.
    PathSwitch,
    /// A handover found the target out of sync, and T304 is over.
    HandoverFailed,
    /// T310 is over.
    OutOfSync,
    /// RLC sent something as often as it may.
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
