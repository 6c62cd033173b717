//! RLC of NR, LTE and UMTS (TS 38.322, TS 36.322, TS 25.322): PDUs, windows, polls, STATUS reports.
//!
//! Both ends are in one process and share the packets: a [`TransportBlock`] carries references to
//! bytes. Header bytes, windows and timers are those of the specifications; sequence numbers do not
//! wrap, and their length only affects headers and windows.

mod am_receiver;
mod am_transmitter;
mod assembler;
mod block;
mod config;
mod cutter;
mod entities;
mod framing;
mod pieces;
mod poll;
mod reassembly;
mod sent_unit;
mod um_receiver;
mod um_transmitter;

pub(crate) use assembler::Outcome;
#[cfg(test)]
pub(crate) use block::Nack;
pub use block::{Pdu, Status, TransportBlock};
pub use config::{ArqConfig, LteMode, LteUmSn, NrAmSn, NrMode, NrUmSn, RlcConfig, UmtsAm, UmtsPdu};
pub(crate) use entities::{Receiver, Technology, Transmitter, entities};
pub use framing::Subheaders;
pub(crate) use framing::{lte_cost, nr_largest_pdu, nr_subheader};
pub(crate) use um_receiver::sdus_of;
