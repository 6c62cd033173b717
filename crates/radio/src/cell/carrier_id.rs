//! Numbers of component carriers, and of their directions.

use airpath_base::Direction;

/// Number of a component carrier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct CarrierId(pub(super) u8);

/// The primary carrier.
pub(super) const PRIMARY: CarrierId = CarrierId(0);

/// One direction of a component carrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LinkId {
    pub(super) carrier: CarrierId,
    pub(super) direction: Direction,
}

impl CarrierId {
    #[inline]
    pub(super) const fn down(self) -> LinkId {
        LinkId { carrier: self, direction: Direction::Downlink }
    }

    #[inline]
    pub(super) const fn up(self) -> LinkId {
        LinkId { carrier: self, direction: Direction::Uplink }
    }

    /// Position among the secondary carriers; `None`: it is the primary one.
    #[inline]
    pub(super) fn secondary(self) -> Option<usize> {
        usize::from(self.0).checked_sub(1)
    }
}

/// Numbers of this many secondary carriers.
#[inline]
pub(super) fn secondary_ids(count: usize) -> impl Iterator<Item = CarrierId> {
    // At most 7.
    (1..=count as u8).map(CarrierId)
}
