//! The radio link of NR, LTE, UMTS and EV-DO, as a model without a clock.
//!
//! The modules [`nr`], [`lte`] and [`umts`] have the numbers that 3GPP fixes, and [`evdo`] those of
//! 3GPP2. Others are parts of a cell: [`channel`], link [`adaptation`], [`harq`], [`scheduler`],
//! [`rlc`] and [`pdcp`], the UE's [`mac`] procedures and [`rrc`] states. [`cell`] joins the parts into
//! a slot engine of many UEs, and [`ran`] joins cells by handover.
//!
//! It knows neither scenario files nor result tables: it takes configuration structs and emits events.
//!
//! It may use: `base`, `queue`. Start reading at [`cell`].

pub mod adaptation;
pub mod bearer;
pub mod buffer;
pub mod cell;
pub mod channel;
mod decibel;
pub mod evdo;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod harq;
pub mod lte;
pub mod mac;
pub mod nr;
pub mod pdcp;
pub mod ran;
pub mod rlc;
pub mod rrc;
pub mod scheduler;
pub mod scheme;
pub mod umts;
mod wait_meter;

/// Which of the two the specifications are: what has one name in both may differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Generation {
    /// The 36 series.
    Lte,
    /// The 38 series.
    Nr,
}
