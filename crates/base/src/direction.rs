//! The direction in which packets travel.

use core::fmt;
use core::ops::{Index, IndexMut};

/// The direction in which packets travel between a server and a UE.
///
/// Values that exist once per direction are in an array of two, which a direction indexes:
///
/// ```
/// use airpath_base::Direction;
///
/// let mut bytes = [0_u64; 2];
/// bytes[Direction::Uplink] += 40;
/// assert_eq!(bytes, [0, 40]);
/// assert_eq!(Direction::Uplink.reverse().to_string(), "down");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// From the server, through the base station, to the UE.
    Downlink,
    /// From the UE, through the base station, to the server.
    Uplink,
}

impl Direction {
    /// Both directions, in the order in which results list them.
    pub const BOTH: [Self; 2] = [Self::Downlink, Self::Uplink];

    /// The opposite direction.
    #[inline]
    pub const fn reverse(self) -> Self {
        match self {
            Self::Downlink => Self::Uplink,
            Self::Uplink => Self::Downlink,
        }
    }

    /// The direction's name in scenarios and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Downlink => "down",
            Self::Uplink => "up",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl<T> Index<Direction> for [T; 2] {
    type Output = T;

    #[inline]
    fn index(&self, direction: Direction) -> &T {
        let [down, up] = self;
        match direction {
            Direction::Downlink => down,
            Direction::Uplink => up,
        }
    }
}

impl<T> IndexMut<Direction> for [T; 2] {
    #[inline]
    fn index_mut(&mut self, direction: Direction) -> &mut T {
        let [down, up] = self;
        match direction {
            Direction::Downlink => down,
            Direction::Uplink => up,
        }
    }
}
