//! PDCP of NR and LTE (TS 38.323, TS 36.323): what is sent first and again, discarding, and order at the
//! receiver.
//!
//! Not here: header compression, ciphering, duplication and split bearers. COUNT does not wrap.

mod config;
mod receiver;
mod transmitter;

pub use config::{PdcpConfig, Release, StatusReport};
pub(crate) use receiver::{Cause, PdcpOrder, PdcpReceiver};
pub(crate) use transmitter::PdcpTransmitter;
