//! A network for a driver with an event queue, which moves packets from hop to hop.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use airpath_base::{Direction, Instant, Packet};
use airpath_radio::cell::CellDeparture;
use airpath_record::Names;
use airpath_scenario::Scenario;

use crate::hop::{Destination, Hop};
use crate::network::Network;

/// A [`Network`] whose driver polls each hop when it is due, and forwards the packets that have
/// left.
///
/// Times never decrease. After [`enter`](Self::enter), [`forward`](Self::forward) or a poll, the
/// driver asks when the hop is due [next](Self::next_of).
pub struct SteppedNetwork(Network);

impl SteppedNetwork {
    /// Builds the network of `scenario`. Stages draw from streams of `seed`; their names are added
    /// to `names`. `accounted`: every packet that enters gets a journey, which
    /// [`end_journey`](Network::end_journey) returns.
    pub fn new(scenario: &Scenario, seed: u64, names: &mut Names, accounted: bool) -> Self {
        Self(Network::new(scenario, seed, names, accounted))
    }

    /// Takes a packet from an endpoint. The packet enters the path that begins at the endpoint, or
    /// the UE's host or the radio if one comes before that path. Returns the hop that the packet
    /// entered; `None`: the hop's next event has not changed.
    #[inline(always)]
    pub fn enter(&mut self, now: Instant, hop: Hop, packet: &Packet) -> Option<Hop> {
        self.0.enter(now, hop, packet)
    }

    /// Moves a packet that left a hop to its destination. A packet for an endpoint has already
    /// arrived.
    #[inline(always)]
    pub fn forward(&mut self, now: Instant, to: Destination, packet: &Packet) {
        self.0.forward(now, to, packet);
    }

    /// When a hop may next yield something.
    #[inline(always)]
    pub fn next_of(&self, hop: Hop) -> Option<Instant> {
        self.0.next_of(hop)
    }

    /// The next packet that has left a path by `now`; see [`after_path`](Self::after_path). Writes
    /// into `next` when that path may yield something afterwards, [`Instant::MAX`] if never.
    #[inline]
    pub fn poll_path(&mut self, path: Hop, now: Instant, next: &mut Instant) -> Option<Packet> {
        self.0.paths[path.index()].poll_next(now, next)
    }

    /// Moves the packets that have left a path by `now` into the radio; returns false if there are
    /// none.
    #[inline]
    pub fn pass_to_radio(&mut self, path: Hop, direction: Direction, now: Instant) -> bool {
        let Network { paths, radio: Some(radio), .. } = &mut self.0 else { return false };
        paths[path.index()]
            .poll_all(now, &mut |packet: &Packet| radio.enqueue(now, direction, packet))
    }

    /// Takes all packets that have left the radio by `now`; see
    /// [`after_radio`](Self::after_radio). `departed` must be empty.
    #[inline]
    pub fn take_departed(&mut self, now: Instant, departed: &mut VecDeque<CellDeparture>) {
        if let Some(radio) = self.0.radio.as_deref_mut() {
            radio.take_departed(now, departed);
        }
    }

    /// The destination of packets that leave a path.
    #[inline]
    pub fn after_path(&self, path: Hop) -> Destination {
        self.0.after_path(path)
    }

    /// The destination of packets that leave the radio.
    #[inline]
    pub fn after_radio(&self, direction: Direction) -> Destination {
        self.0.after_radio(direction)
    }
}

impl Deref for SteppedNetwork {
    type Target = Network;

    fn deref(&self) -> &Network {
        &self.0
    }
}

impl DerefMut for SteppedNetwork {
    fn deref_mut(&mut self) -> &mut Network {
        &mut self.0
    }
}
