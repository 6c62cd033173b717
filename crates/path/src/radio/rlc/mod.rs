//! RLC and PDCP of NR and LTE, RLC of UMTS, with the buffer above them.
//!
//! A [`Bearer`] carries packets between a UE and its base station in blocks that a MAC asks for
//! and that HARQ may lose or reorder. Both ends are here, in one process, and share the packets:
//! what travels in a [`TransportBlock`] are names of bytes. Header bytes, windows, timers, polls
//! and STATUS reports are those of TS 38.322, 38.323, 36.322, 36.323 and 25.322.
//!
//! Not here: slots, HARQ, the scheduler, buffer status reports, header compression, ciphering,
//! duplication and split bearers. Sequence numbers do not wrap: their length shows in headers
//! and windows.

mod am_receiver;
mod am_transmitter;
mod assembler;
mod bearer;
mod block;
mod buffer;
mod config;
mod cutter;
mod entities;
mod fq_codel;
mod framing;
mod one_way;
mod pdcp;
mod pieces;
mod poll;
mod reassembly;
mod sdus;
mod sent_unit;
mod source;
mod um_receiver;
mod um_transmitter;

#[cfg(test)]
mod tests;

pub use bearer::Bearer;
pub use block::{Pdu, Status, TransportBlock};
pub use config::{
    ArqConfig, BufferConfig, CoDelConfig, Discipline, EcnCapable, EcnConfig, Isolation, LteMode,
    LteUmSn, NrAmSn, NrMode, NrUmSn, OneWayConfig, PdcpConfig, Release, RlcConfig, StatusReport,
    UmtsAm, UmtsPdu,
};
pub use one_way::{Counters, Forwarding, OneWay};
pub use sdus::Sojourn;
