//! The hops of a network, and where packets that leave them go.

use airpath_base::{Direction, Instant, Packet};

/// A part of a network through which packets go: the stages of a path, a UE's host, or the radio.
///
/// Without a proxy, the first two span the whole way, and the two that begin at the proxy are not
/// used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Hop {
    /// The path that begins at the server.
    FromServer,
    /// The path that begins at the UE.
    FromUe,
    /// The path from the proxy to the UE.
    ProxyToUe,
    /// The path from the proxy to the server.
    ProxyToServer,
    /// The UEs' hosts, down: from the radio to the endpoint.
    ToUeHost,
    /// The UEs' hosts, up: from the endpoint to the radio.
    FromUeHost,
    /// The cells, in both directions.
    Radio,
}

impl Hop {
    /// All hops.
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

    /// The path that begins at the endpoint that sends in this direction.
    #[inline]
    pub const fn from_endpoint(direction: Direction) -> Self {
        match direction {
            Direction::Downlink => Self::FromServer,
            Direction::Uplink => Self::FromUe,
        }
    }

    /// The path on which packets continue in this direction if the first one ends at the proxy.
    #[inline]
    pub const fn from_proxy(direction: Direction) -> Self {
        match direction {
            Direction::Downlink => Self::ProxyToUe,
            Direction::Uplink => Self::ProxyToServer,
        }
    }

    /// The direction of packets in this hop; `None`: both.
    pub const fn direction(self) -> Option<Direction> {
        match self {
            Self::FromServer | Self::ProxyToUe | Self::ToUeHost => Some(Direction::Downlink),
            Self::FromUe | Self::ProxyToServer | Self::FromUeHost => Some(Direction::Uplink),
            Self::Radio => None,
        }
    }

    /// Whether it is a UE's host.
    pub(crate) const fn is_ue_host(self) -> bool {
        matches!(self, Self::ToUeHost | Self::FromUeHost)
    }

    /// Index in [`ALL`](Self::ALL).
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// A packet that left a hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HopDeparture {
    /// When it left; not later than the `now` of the poll.
    pub at: Instant,
    /// The packet, with the marks that stages have set.
    pub packet: Packet,
    /// Where it goes next.
    pub to: Destination,
}

/// Where a packet goes at the instant at which it left a hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destination {
    /// To another path.
    Path(Hop),
    /// To the radio, in this direction.
    Radio(Direction),
    /// To the proxy, in this direction. Packets that do not end there continue into
    /// [`Hop::from_proxy`].
    Proxy(Direction),
    /// To the endpoint at the end of this direction.
    Endpoint(Direction),
}

impl Destination {
    /// Where packets go after the backhaul, which lies between path and radio.
    pub const fn beyond_backhaul(direction: Direction) -> Self {
        match direction {
            Direction::Downlink => Self::Radio(direction),
            Direction::Uplink => Self::Path(Hop::FromUe),
        }
    }

    /// The direction in which a packet with this destination crosses the backhaul, if it does.
    #[inline]
    pub const fn over_backhaul(self) -> Option<Direction> {
        match self {
            Self::Radio(Direction::Downlink) => Some(Direction::Downlink),
            Self::Path(Hop::FromUe) => Some(Direction::Uplink),
            _ => None,
        }
    }

    /// The hop that the packet enters, unless it ends there; `None` at an endpoint.
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

/// The hops that have something to do, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HopSet(u8);

impl HopSet {
    /// Adds a hop; adding it twice changes nothing.
    #[inline]
    pub fn add(&mut self, hop: Hop) {
        self.0 |= 1 << hop.index();
    }

    /// Whether the set contains a hop.
    #[inline]
    pub const fn has(self, hop: Hop) -> bool {
        self.0 & (1 << hop.index()) != 0
    }

    /// The hops of the set, in the order of [`Hop::ALL`].
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
