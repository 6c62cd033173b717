//! The index of a UE, and packets that leave the cell.

use airpath_base::{Direction, Instant, Packet};

/// Number of a UE in its cell, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UeIndex(pub u32);

/// A packet that leaves the cell, and the logical time at which it left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CellDeparture {
    /// The direction in which it went.
    pub direction: Direction,
    /// The UE from or to which it went.
    pub ue: UeIndex,
    /// When it left; not later than the `now` of the poll.
    pub at: Instant,
    /// The packet, with the marks that its buffer has set.
    pub packet: Packet,
}
