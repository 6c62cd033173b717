//! The types that all other crates share: time, rates, packets and random streams.
//!
//! [`Instant`] and [`Duration`] count nanoseconds, [`Rate`] bits per second. A [`Packet`] has a
//! flow, a size and a payload. A [`Stream`] is a source of random numbers with a seed and a name. A
//! [`Histogram`] gives quantiles. [`Journeys`] record where packets spent their time.
//!
//! Nothing here reads a clock, allocates per packet or knows the rules of a protocol.
//!
//! It may use: nothing of airpath. Start reading at [`Instant`] and [`Packet`].

mod direction;
mod histogram;
mod journey;
mod memo;
mod packet;
mod random;
mod rate;
pub mod recording;
mod ring;
mod sparse;
mod time;

pub use direction::Direction;
pub use histogram::{Folded, Histogram};
pub use journey::{Journey, JourneyId, Journeys, Part, Site, Spent};
pub use memo::{Memo, fast_paths, is_planted};
#[cfg(debug_assertions)]
pub use memo::{reference, with_rule};
pub use packet::{
    Datagram, Drop, DropReason, Ecn, Flags, FlowId, MAX_SACK_BLOCKS, Packet, Payload, SackBlock,
    SackBlocks, Segment, Timestamps, Tunnel,
};
pub use random::Stream;
pub use rate::Rate;
pub use ring::push_tightly;
pub use sparse::SparseHistogram;
pub use time::{Duration, Instant};
