//! Observers of a run besides its tables: what the path could have carried, and what passed its
//! ends.

use airpath_base::{Direction, Instant, Packet};
use airpath_network::{Hop, Network};

use crate::goodput::Goodputs;

/// A place where packets are seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeenAt {
    /// The end that is not mobile.
    Server,
    /// The base station: downlink packets arrive there from the wire, uplink packets leave it.
    BaseStation,
    /// The end at the flow's UE.
    Ue,
}

/// A packet at an end of the path, or at the base station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passage {
    /// When it was seen.
    pub at: Instant,
    /// Where it was seen.
    pub place: SeenAt,
    /// The direction in which it goes.
    pub direction: Direction,
    /// The packet as it was sent, or as it arrived.
    pub packet: Packet,
}

/// What a run records in addition to its tables. These options do not change the result, but the
/// run takes longer.
#[derive(Default)]
pub struct Options<'a> {
    /// Whether the summary shows where the time of each flow went
    /// ([`RunSummary::breakdowns`](airpath_record::RunSummary::breakdowns)).
    pub accounted: bool,
    /// Visits each packet when an endpoint sends it, when the other end receives it and, with a
    /// radio, when it is at the base station, in order of time.
    pub on_packet: Option<&'a mut dyn FnMut(&Passage)>,
}

/// The observers of a run; without any they cost nothing.
#[derive(Default)]
pub(crate) struct Observers<'a> {
    /// What the path could have carried, if it is accounted for.
    pub(crate) goodputs: Option<Goodputs>,
    /// Called for packets at the ends.
    pub(crate) on_packet: Option<&'a mut dyn FnMut(&Passage)>,
}

impl Observers<'_> {
    /// A packet has reached an endpoint.
    pub(crate) fn on_arrival(&mut self, now: Instant, direction: Direction, packet: &Packet) {
        if let Some(goodputs) = &mut self.goodputs {
            goodputs.on_arrival(direction, packet);
        }
        if let Some(on_packet) = &mut self.on_packet {
            let place = match direction {
                Direction::Uplink => SeenAt::Server,
                Direction::Downlink => SeenAt::Ue,
            };
            on_packet(&Passage { at: now, place, direction, packet: *packet });
        }
    }

    /// A packet is at the base station.
    pub(crate) fn at_base_station(&mut self, now: Instant, direction: Direction, packet: &Packet) {
        if let Some(on_packet) = &mut self.on_packet {
            let place = SeenAt::BaseStation;
            on_packet(&Passage { at: now, place, direction, packet: *packet });
        }
    }

    /// Something happened to a flow, and it has sent what it had to send.
    pub(crate) fn follow(
        &mut self,
        now: Instant,
        flow: usize,
        is_measured: bool,
        network: &mut Network,
    ) {
        if let Some(goodputs) = &mut self.goodputs {
            goodputs.follow(now, flow, is_measured, network);
        }
        if let Some(on_packet) = &mut self.on_packet {
            network.take_entered(&mut |hop, packet| {
                let (place, direction) = match hop {
                    Hop::FromServer => (SeenAt::Server, Direction::Downlink),
                    Hop::FromUe => (SeenAt::Ue, Direction::Uplink),
                    // What a proxy sends is not at an end.
                    _ => return,
                };
                on_packet(&Passage { at: now, place, direction, packet: *packet });
            });
        }
    }
}
