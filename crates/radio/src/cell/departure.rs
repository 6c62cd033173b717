//! Which UE, and what leaves the cell.

use airpath_base::{Direction, Instant, Packet};

/// Number of a UE in its cell, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UeIndex(pub u32);

/// A packet leaving the cell, and the logical time at which it left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CellDeparture {
    /// Which way it went.
    pub direction: Direction,
    /// From or to which UE.
    pub ue: UeIndex,
    /// When; not later than the `now` of the poll.
    pub at: Instant,
    /// It, with the marks that its buffer has set.
    pub packet: Packet,
}
