//! A network for a driver that wakes up when it can and then takes everything that is due.

use std::ops::{Deref, DerefMut};

use airpath_base::{Direction, Instant, Packet};
use airpath_path::{Departure, Path};
use airpath_radio::cell::CellDeparture;
use airpath_record::Names;
use airpath_scenario::Scenario;

use crate::hop::{Destination, Hop, HopDeparture, HopSet};
use crate::network::Network;

/// A [`Network`] with the three verbs of a [`Path`]: [`enter`](Self::enter),
/// [`next_event`](Self::next_event) and [`poll`](Self::poll). Times never decrease.
pub struct PolledNetwork {
    network: Network,
    /// Hops that packets pass.
    used: HopSet,
}

/// A packet that reached an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// When it arrived, in logical time.
    pub at: Instant,
    /// The packet, with the marks that stages have set.
    pub packet: Packet,
    /// The direction in which it went.
    pub direction: Direction,
}

impl PolledNetwork {
    /// Builds the network of `scenario`. Stages draw from streams of `seed`; their names are added
    /// to `names`.
    pub fn new(scenario: &Scenario, seed: u64, names: &mut Names) -> Self {
        let network = Network::new(scenario, seed, names, false);
        let used = used(&network, scenario.proxy.is_some());
        Self { network, used }
    }

    /// Takes a packet from an endpoint. The packet enters the path that begins at the endpoint, or
    /// the UE's host or the radio if one comes before that path.
    #[inline]
    pub fn enter(&mut self, now: Instant, hop: Hop, packet: &Packet) {
        self.network.enter(now, hop, packet);
    }

    /// When polling may next yield something or has internal work; `None`: not before a packet
    /// enters.
    pub fn next_event(&self) -> Option<Instant> {
        self.next_hop().map(|(_, at)| at)
    }

    /// The next packet that has reached an endpoint by `now`, in order of arrival. Packets pass
    /// through a proxy unchanged.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<Arrival> {
        loop {
            let HopDeparture { at, packet, to } = self.poll_departure(now)?;
            if let Destination::Endpoint(direction) = to {
                return Some(Arrival { at, packet, direction });
            }
            self.forward(at, to, &packet);
        }
    }

    /// The next packet that has left any hop by `now`, for a driver that moves it itself with
    /// [`forward`](Self::forward), at once or later.
    #[inline]
    pub fn poll_departure(&mut self, now: Instant) -> Option<HopDeparture> {
        loop {
            let (hop, at) = self.next_hop().filter(|&(_, at)| at <= now)?;
            if let Some(departure) = self.poll_hop(hop, at) {
                return Some(departure);
            }
        }
    }

    /// Moves a packet that left a hop to its destination. A packet for an endpoint has already
    /// arrived.
    #[inline]
    pub fn forward(&mut self, now: Instant, to: Destination, packet: &Packet) {
        self.network.forward(now, to, packet);
    }

    /// The hop that is due first.
    #[inline]
    fn next_hop(&self) -> Option<(Hop, Instant)> {
        let due = |hop| Some((hop, self.network.next_of(hop)?));
        self.used.iter().filter_map(due).min_by_key(|&(_, at)| at)
    }

    /// The next packet that has left a hop by `now`.
    fn poll_hop(&mut self, hop: Hop, now: Instant) -> Option<HopDeparture> {
        let network = &mut self.network;
        if hop == Hop::Radio {
            let CellDeparture { direction, at, packet, .. } = network.radio.as_mut()?.poll(now)?;
            return Some(HopDeparture { at, packet, to: network.after_radio(direction) });
        }
        let Departure { at, packet } = network.paths[hop.index()].poll(now)?;
        Some(HopDeparture { at, packet, to: network.after_path(hop) })
    }
}

/// The hops that packets pass; `proxied`: there is a proxy.
fn used(network: &Network, proxied: bool) -> HopSet {
    let mut used = HopSet::default();
    for direction in Direction::BOTH {
        used.add(Hop::from_endpoint(direction));
        if proxied {
            used.add(Hop::from_proxy(direction));
        }
    }
    for (hosted, hop) in network.hosted.into_iter().zip([Hop::ToUeHost, Hop::FromUeHost]) {
        if hosted {
            used.add(hop);
        }
    }
    if network.radio.is_some() {
        used.add(Hop::Radio);
    }
    used
}

impl Deref for PolledNetwork {
    type Target = Network;

    fn deref(&self) -> &Network {
        &self.network
    }
}

impl DerefMut for PolledNetwork {
    fn deref_mut(&mut self) -> &mut Network {
        &mut self.network
    }
}
