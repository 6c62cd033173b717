//! The radio link: the numbers that 3GPP fixes (`nr`, `lte`, `bsr`, `enumerations`), and what is
//! made of them: channel, link adaptation, HARQ, schedulers.

pub mod adaptation;
pub mod bsr;
pub mod channel;
mod decibel;
pub mod enumerations;
pub mod harq;
pub mod lte;
pub mod nr;
pub mod scheduler;
pub mod scheme;
