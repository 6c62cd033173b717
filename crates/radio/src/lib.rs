//! The radio link of NR, LTE, UMTS and EV-DO, as a model without a clock.
//!
//! The modules [`nr`], [`lte`] and [`umts`] contain the numbers that 3GPP specifies, and [`evdo`]
//! those of 3GPP2. Others are parts of a cell: [`channel`], link [`adaptation`], [`harq`],
//! [`scheduler`], [`rlc`] and [`pdcp`], the UE's [`mac`] procedures and [`rrc`] states. [`cell`]
//! joins the parts into a slot engine of many UEs, and [`ran`] joins cells by handover.
//!
//! The crate knows neither scenario files nor result tables: it takes configuration structs and
//! emits events.
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

/// The series of specifications that applies: what has the same name in both may differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Generation {
    /// LTE: the 36 series.
    Lte,
    /// NR: the 38 series.
    Nr,
}
