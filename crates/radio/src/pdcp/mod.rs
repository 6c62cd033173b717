//! PDCP of NR and LTE (TS 38.323, TS 36.323): transmission and retransmission, discarding, and
//! in-order delivery at the receiver.
//!
//! Not modelled: header compression, ciphering and duplication. COUNT does not wrap. A split bearer has
//! its PDCP above the cells ([`ran`](crate::ran)).

mod config;
mod receiver;
mod transmitter;

pub use config::{PdcpConfig, Release, StatusReport};
pub(crate) use receiver::{Cause, PdcpOrder, PdcpReceiver};
pub(crate) use transmitter::PdcpTransmitter;
