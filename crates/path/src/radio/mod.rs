//! The radio link: the numbers that 3GPP and 3GPP2 fix (`nr`, `lte`, `umts`, `evdo`, `bsr`,
//! `enumerations`), and what is made of them: channel, link adaptation, HARQ, schedulers, RLC and
//! PDCP, a UE's MAC procedures and RRC states.

pub mod adaptation;
pub mod bsr;
pub mod cell;
pub mod channel;
mod decibel;
pub mod enumerations;
pub mod evdo;
pub mod harq;
pub mod lte;
pub mod mac;
pub mod nr;
pub mod ran;
pub mod rlc;
pub mod rrc;
pub mod scheduler;
pub mod scheme;
pub mod umts;

/// Which way data travels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// From the base station to the UE.
    Downlink,
    /// From the UE to the base station.
    Uplink,
}

impl Direction {
    /// The other one.
    pub const fn reverse(self) -> Self {
        match self {
            Self::Downlink => Self::Uplink,
            Self::Uplink => Self::Downlink,
        }
    }
}

/// Which of the two the specifications are: what has one name in both may differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Generation {
    /// The 36 series.
    Lte,
    /// The 38 series.
    Nr,
}
