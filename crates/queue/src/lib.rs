//! The building blocks of a queue, whether in a link of the path or in a radio buffer.
//!
//! - [`Load`]: packets and their bytes;
//! - [`CoDel`]: which packet at a queue's head is dropped or marked (RFC 8289);
//! - [`RoundRobin`]: which queue is served next if each flow has its own (RFC 8290);
//! - [`TokenBucket`]: how much a rate and a burst allow, exact to the bit.
//!
//! This crate knows neither stages nor the radio. The user of these parts holds the packets.
//!
//! It may use: `base`. Start reading at [`CoDel`].

mod bucket;
mod codel;
mod load;
mod round_robin;

pub use bucket::TokenBucket;
pub use codel::CoDel;
pub use load::Load;
pub use round_robin::{Isolation, RoundRobin};
