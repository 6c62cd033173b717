//! What a queue is made of, whether it stands in a link of the path or in a radio buffer.
//!
//! - [`Load`]: packets and their bytes;
//! - [`CoDel`]: which packet at a queue's head is dropped or marked (RFC 8289);
//! - [`RoundRobin`]: whose turn it is where each flow has a queue (RFC 8290);
//! - [`TokenBucket`]: what a rate and a burst allow, exact to the bit.
//!
//! Stages and radio are unknown here. Whoever uses these parts holds the packets.
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
