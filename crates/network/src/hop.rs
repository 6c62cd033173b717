//! The hops of a network, and where a packet that leaves one goes.

use airpath_base::{Direction, Instant, Packet};

/// A part of a network that packets go through: the stages of a path, a UE's host, or the radio.
///
/// Without a proxy, the first two go all the way, and the two that begin at the proxy are not used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Hop {
    /// The path that begins at the server.
    FromServer,
    /// The path that begins at the UE.
    FromUe,
    /// The path on which data goes on from the proxy to the UE.
    ProxyToUe,
    /// The path on which data goes on from the proxy to the server.
    ProxyToServer,
    /// Behind the UEs' radios, down: from the radio to the endpoint.
    ToUeHost,
    /// The same, up: from the endpoint to the radio.
    FromUeHost,
    /// The cells, both directions.
    Radio,
}

impl Hop {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::FromServer,
        Self::FromUe,
        Self::ProxyToUe,
        Self::ProxyToServer,
        Self::ToUeHost,
        Self::FromUeHost,
        Self::Radio,
    ];

    /// The paths in the order of the results: all of one direction, then all of the other.
    pub(crate) const PATHS: [Self; 6] = [
        Self::FromServer,
        Self::ProxyToUe,
        Self::ToUeHost,
        Self::FromUeHost,
        Self::FromUe,
        Self::ProxyToServer,
    ];

    /// The path that begins at the endpoint from which packets go in this direction.
    #[inline]
    pub const fn from_endpoint(direction: Direction) -> Self {
        match direction {
            Direction::Downlink => Self::FromServer,
            Direction::Uplink => Self::FromUe,
        }
    }

    /// The path on which packets go on in this direction where the first one ends at the proxy.
    #[inline]
    pub const fn from_proxy(direction: Direction) -> Self {
        match direction {
            Direction::Downlink => Self::ProxyToUe,
            Direction::Uplink => Self::ProxyToServer,
        }
    }

    /// In which direction packets go through it; `None`: in both.
    pub const fn direction(self) -> Option<Direction> {
        match self {
            Self::FromServer | Self::ProxyToUe | Self::ToUeHost => Some(Direction::Downlink),
            Self::FromUe | Self::ProxyToServer | Self::FromUeHost => Some(Direction::Uplink),
            Self::Radio => None,
        }
    }

    /// It is behind the UEs' radios.
    pub(crate) const fn is_ue_host(self) -> bool {
        matches!(self, Self::ToUeHost | Self::FromUeHost)
    }

    /// Its place in [`ALL`](Self::ALL).
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// A packet that left a hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HopDeparture {
    /// When; not later than the `now` of the poll.
    pub at: Instant,
    /// It, with the marks that stages have set.
    pub packet: Packet,
    /// Where to.
    pub to: Destination,
}

/// Where a packet that left a hop goes, at the same instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destination {
    /// Into another path.
    Path(Hop),
    /// Into the radio, going in this direction.
    Radio(Direction),
    /// To the proxy, going in this direction. What does not end there goes into
    /// [`Hop::from_proxy`].
    Proxy(Direction),
    /// To the endpoint at the end of this direction.
    Endpoint(Direction),
}

impl Destination {
    /// Where packets go that have come over the backhaul, which is between path and radio.
    pub const fn beyond_backhaul(direction: Direction) -> Self {
        match direction {
            Direction::Downlink => Self::Radio(direction),
            Direction::Uplink => Self::Path(Hop::FromUe),
        }
    }

    /// In which direction a packet that goes there crosses the backhaul, if it does.
    #[inline]
    pub const fn over_backhaul(self) -> Option<Direction> {
        match self {
            Self::Radio(Direction::Downlink) => Some(Direction::Downlink),
            Self::Path(Hop::FromUe) => Some(Direction::Uplink),
            _ => None,
        }
    }

    /// The hop that it goes into, where it does not end there; `None` at an endpoint.
    #[inline]
    pub const fn hop(self) -> Option<Hop> {
        match self {
            Self::Path(hop) => Some(hop),
            Self::Radio(_) => Some(Hop::Radio),
            Self::Proxy(direction) => Some(Hop::from_proxy(direction)),
            Self::Endpoint(_) => None,
        }
    }
}

/// Which hops have something to do, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HopSet(u8);

impl HopSet {
    /// Puts it in; a second time changes nothing.
    #[inline]
    pub fn add(&mut self, hop: Hop) {
        self.0 |= 1 << hop.index();
    }

    /// Whether a hop was put into the set.
    #[inline]
    pub const fn has(self, hop: Hop) -> bool {
        self.0 & (1 << hop.index()) != 0
    }

    /// In the order of [`Hop::ALL`].
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = Hop> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let hop = Hop::ALL.get(left.trailing_zeros() as usize);
            left &= left.wrapping_sub(1);
            hop.copied()
        })
    }
}
