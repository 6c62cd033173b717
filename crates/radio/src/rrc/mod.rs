//! RRC states: the delay before a UE may send, and when it stops being ready.
//!
//! [`connection::Connection`] is the state machine of LTE, NR and EV-DO, [`umts::Umts`] that of
//! UMTS. Both evaluate lazily: a UE without traffic has one timer, and one event when it expires.

pub mod connection;
pub mod enumerations;
pub mod paging;
mod state_machine;
mod transitions;
pub mod umts;

use airpath_base::Instant;

pub(crate) use state_machine::Rrc;
pub use state_machine::RrcConfig;

/// The state of a UE, for all generations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RrcState {
    /// RRC_IDLE (TS 36.331 4.2.1, TS 38.331 4.2.1); Idle in UMTS (TS 25.331 7.1).
    Idle,
    /// RRC_INACTIVE (TS 38.331 4.2.1).
    Inactive,
    /// CELL_PCH or URA_PCH (TS 25.331 7.2).
    CellPch,
    /// CELL_FACH (TS 25.331 7.2).
    CellFach,
    /// CELL_DCH (TS 25.331 7.2).
    CellDch,
    /// RRC_CONNECTED.
    Connected,
}

impl RrcState {
    /// Whether data may be sent.
    pub const fn carries_data(self) -> bool {
        matches!(self, Self::Connected | Self::CellFach | Self::CellDch)
    }

    /// Name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Inactive => "inactive",
            Self::CellPch => "cell_pch",
            Self::CellFach => "cell_fach",
            Self::CellDch => "cell_dch",
            Self::Connected => "connected",
        }
    }
}

/// A change of state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition {
    /// When the state changed.
    pub at: Instant,
    /// The state that the UE leaves.
    pub from: RrcState,
    /// The state that it enters.
    pub to: RrcState,
}
