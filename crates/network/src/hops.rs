//! The parts of a network, by number, and where a packet that leaves one goes.
//!
//! 0 goes down to the UE, 1 up from it. With a proxy they end there, and 2 and 3 go on from it,
//! down and up; without one 2 and 3 are not used. 4 is the UE's host, from its radio to its TCP; 5 the
//! radio.

use airpath_base::{Instant, Packet};

/// The path that begins at the server.
pub const FROM_SERVER: usize = 0;

/// The path that begins at the UE.
pub const FROM_UE: usize = 1;

/// A UE's host: from the radio to the endpoint.
pub(crate) const HOST: usize = 4;

/// The cell, both directions.
pub const RADIO: usize = 5;

/// How many there are.
pub const HOPS: usize = 6;

/// The path that goes on where `direction` ends at the proxy.
pub const fn beyond_proxy(direction: usize) -> usize {
    direction + 2
}

/// A packet that left a hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaving {
    /// When; not later than the `now` of the poll.
    pub at: Instant,
    /// The packet.
    pub packet: Packet,
    /// Where to.
    pub goes: Goes,
}

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goes {
    /// Into another hop, at the same instant.
    On(usize),
    /// To the proxy. What does not end there goes into this hop.
    ToProxy(usize),
    /// To the endpoint at the end of this path.
    Out(usize),
}

/// A set of hops.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Hops(u8);

impl Hops {
    /// Adds one.
    #[inline]
    pub fn add(&mut self, hop: usize) {
        self.0 |= 1 << hop;
    }

    /// Smallest first.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let hop = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (hop < 8).then_some(hop)
        })
    }
}
