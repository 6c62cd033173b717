//! The words that every other crate speaks: time, rates, packets, random streams, events.
//!
//! Nothing here reads a clock, allocates per packet or knows a protocol's rules.

mod event;
mod histogram;
mod packet;
mod random;
mod rate;
mod time;

pub use event::{Event, EventKind, SendLimit, SlowStartExitReason, UndoReason};
pub use histogram::{Folded, Histogram};
pub use packet::{
    Datagram, Drop, DropReason, Ecn, Flags, FlowId, MAX_SACK_BLOCKS, Packet, Payload, SackBlock,
    SackBlocks, Segment, Tunnel,
};
pub use random::Stream;
pub use rate::Rate;
pub use time::{Duration, Instant};
