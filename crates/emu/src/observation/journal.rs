//! What entered the network and when, what left it and when it should have: enough to repeat the
//! run on the virtual clock.

use airpath_base::{Direction, DropReason, Ecn, FlowId, Instant, Packet, Payload, Tunnel};
use airpath_network::{Destination, Hop, HopDeparture, PolledNetwork};
use airpath_record::Names;
use airpath_scenario::Scenario;
use serde::Serialize;

/// A run's packets, in the order in which the model saw them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Journal {
    entries: Vec<Entry>,
    /// UEs of the flows that were known before their first packet.
    scheduled: Vec<usize>,
    /// The model was polled for everything due until this time.
    until: Instant,
}

/// An event of a packet. All times are logical.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// An endpoint's packet entered.
    Entered {
        /// When it entered.
        at: Instant,
        /// The direction in which its sender sends.
        direction: Direction,
        /// The flow of the packet.
        flow: FlowId,
        /// The flow's UE.
        ue: usize,
        /// Size of the IP packet in bytes.
        size: u32,
        /// ECN codepoint of the packet.
        ecn: Ecn,
    },
    /// A packet left the model between path and cell, and entered the tunnel.
    Handed {
        /// When it left.
        at: Instant,
        /// The direction in which it went.
        direction: Direction,
        /// The flow of the packet.
        flow: FlowId,
        /// Size of the IP packet in bytes.
        size: u32,
    },
    /// A packet came out of the tunnel and entered the model again.
    Reentered {
        /// When it entered.
        at: Instant,
        /// The direction in which it went.
        direction: Direction,
        /// The flow of the packet.
        flow: FlowId,
        /// Size of the IP packet in bytes.
        size: u32,
        /// ECN codepoint of the packet.
        ecn: Ecn,
    },
    /// A packet reached an endpoint.
    Left {
        /// When it reached the endpoint.
        at: Instant,
        /// The direction in which it went.
        direction: Direction,
        /// The flow of the packet.
        flow: FlowId,
        /// Size of the IP packet in bytes.
        size: u32,
    },
    /// A packet was dropped.
    Dropped {
        /// When it was dropped.
        at: Instant,
        /// The direction in which it went.
        direction: Direction,
        /// The flow of the packet.
        flow: FlowId,
        /// Size of the IP packet in bytes.
        size: u32,
        /// Why it was dropped.
        reason: DropReason,
    },
}

/// The result of a replay.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Parity {
    /// Packets that left.
    pub left: usize,
    /// Packets that were dropped.
    pub dropped: usize,
    /// Whether nothing differs.
    pub same: bool,
    /// The first packet that differs; also `None` if only the numbers of packets differ.
    pub first_difference: Option<String>,
}

impl Journal {
    /// Adds the next flow of the scenario, with its UE.
    pub(crate) fn schedule(&mut self, ue: usize) {
        self.scheduled.push(ue);
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// The model was polled for everything due until `now`.
    pub(crate) fn asked(&mut self, now: Instant) {
        self.until = now;
    }

    /// The events, in the order in which the forwarder saw them.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What left, in order, and what was dropped, sorted, because drops are only noticed when
    /// polled.
    pub fn outcome(&self) -> (Vec<Entry>, Vec<Entry>) {
        let is_drop = |entry: &&Entry| matches!(entry, Entry::Dropped { .. });
        let has_left = |entry: &&Entry| matches!(entry, Entry::Left { .. } | Entry::Handed { .. });
        let left = self.entries.iter().filter(has_left).copied();
        let mut dropped: Vec<Entry> = self.entries.iter().filter(is_drop).copied().collect();
        dropped.sort_by_key(|entry| format!("{entry:?}"));
        (left.collect(), dropped)
    }

    /// Law 3: whether the same arrivals on the virtual clock leave at the same logical times.
    pub fn parity(&self, scenario: &Scenario, seed: u64) -> Parity {
        let again = self.replay(scenario, seed);
        let ((left, dropped), (left_again, dropped_again)) = (self.outcome(), again.outcome());
        let differs = |(one, other): (&Entry, &Entry)| {
            (one != other).then(|| format!("{one:?} on the real clock, {other:?} on the virtual"))
        };
        let first = left.iter().zip(&left_again).find_map(differs);
        let first = first.or_else(|| dropped.iter().zip(&dropped_again).find_map(differs));
        let same = left == left_again && dropped == dropped_again;
        Parity { left: left.len(), dropped: dropped.len(), same, first_difference: first }
    }

    /// Replays the same arrivals on the virtual clock; returns a journal of what comes out.
    pub fn replay(&self, scenario: &Scenario, seed: u64) -> Self {
        let mut names = Names::default();
        let mut network = PolledNetwork::new(scenario, seed, &mut names);
        let mut again = Self::default();
        for &ue in &self.scheduled {
            network.add_flow(names.add("flow"), ue);
            again.schedule(ue);
        }
        let mut flows = self.scheduled.len() as u32;
        let tunnelled = self.entries.iter().any(|entry| matches!(entry, Entry::Handed { .. }));
        let packet = |flow, size, ecn| {
            let (tunnel, payload) = (Tunnel::default(), Payload::Opaque(0));
            Packet { flow, size, ecn, tunnel, journey: None, payload }
        };
        for entry in &self.entries {
            match *entry {
                Entry::Entered { at, direction, flow, ue, size, ecn } => {
                    // Time advances in the steps of the events, not in those of a thread that wakes
                    // up.
                    again.advance_until(&mut network, tunnelled, at);
                    if flow.0 == flows {
                        network.add_ue(ue, &mut names);
                        network.add_flow(names.add("flow"), ue);
                        flows += 1;
                    }
                    network.enter(at, Hop::from_endpoint(direction), &packet(flow, size, ecn));
                }
                Entry::Reentered { at, direction, flow, size, ecn } => {
                    again.advance_until(&mut network, tunnelled, at);
                    let to = Destination::beyond_backhaul(direction);
                    network.forward(at, to, &packet(flow, size, ecn));
                }
                _ => continue,
            }
            again.push(*entry);
        }
        again.advance_until(&mut network, tunnelled, self.until);
        again
    }

    fn advance_until(&mut self, network: &mut PolledNetwork, tunnelled: bool, end: Instant) {
        self.until = end;
        while let Some(due) = network.next_event().filter(|&due| due <= end) {
            while let Some(HopDeparture { at, packet, to }) = network.poll_departure(due) {
                let (flow, size) = (packet.flow, packet.size);
                if let Destination::Endpoint(direction) = to {
                    self.push(Entry::Left { at, direction, flow, size });
                } else if let Some(direction) = to.over_backhaul().filter(|_| tunnelled) {
                    self.push(Entry::Handed { at, direction, flow, size });
                } else {
                    network.forward(at, to, &packet);
                }
            }
        }
        network.drain_drops(&mut |direction, _, drop| {
            let (at, packet, reason) = (drop.at, drop.packet, drop.reason);
            self.push(Entry::Dropped {
                at,
                direction,
                flow: packet.flow,
                size: packet.size,
                reason,
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use airpath_scenario::{Source, parse, shipped};
    use proptest::prelude::*;

    use super::*;

    /// Two flows through a network, driven by a thread that wakes up at arbitrary times: a journal
    /// as the forwarder writes it.
    fn recorded(scenario: &Scenario, arrivals: &[(u64, u32, u32)], wakes: &[u64]) -> Journal {
        let mut names = Names::default();
        let mut network = PolledNetwork::new(scenario, 1, &mut names);
        let mut journal = Journal::default();
        for _ in 0..2 {
            network.add_flow(names.add("flow"), 0);
        }
        // Both flows are present from the start, in the order of their numbers.
        let first = [(0, 0, 100), (0, 1, 100)];
        let mut arrivals: Vec<_> = first.iter().chain(arrivals).copied().collect();
        arrivals.sort_by_key(|arrival| arrival.0);
        let mut waiting = arrivals.iter().peekable();
        let mut wakes: Vec<u64> = wakes.to_vec();
        wakes.sort_unstable();
        wakes.push(3_000_000_000);
        for now in wakes {
            let now = Instant::from_nanos(now);
            journal.asked(now);
            while let Some(arrival) = network.poll(now) {
                let (at, direction, packet) = (arrival.at, arrival.direction, arrival.packet);
                journal.push(Entry::Left { at, direction, flow: packet.flow, size: packet.size });
            }
            // What has arrived since is read late: it enters now.
            while waiting.peek().is_some_and(|arrival| arrival.0 <= now.as_nanos()) {
                let &(_, flow, size) = waiting.next().expect("it was just seen");
                let (direction, flow) = (Direction::BOTH[flow as usize], FlowId(flow));
                let (ue, ecn, at) = (0, Ecn::Ect0, now);
                journal.push(Entry::Entered { at, direction, flow, ue, size, ecn });
                let (tunnel, payload) = (Tunnel::default(), Payload::Opaque(9));
                let hop = Hop::from_endpoint(direction);
                let packet = Packet { flow, size, ecn, tunnel, journey: None, payload };
                network.enter(at, hop, &packet);
            }
        }
        network.drain_drops(&mut |direction, _, drop| {
            let (at, packet, reason) = (drop.at, drop.packet, drop.reason);
            journal.push(Entry::Dropped {
                at,
                direction,
                flow: packet.flow,
                size: packet.size,
                reason,
            });
        });
        journal
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
        #[test]
        fn a_late_thread_changes_no_logical_time(
            arrivals in prop::collection::vec((0u64..2_000_000_000, 0u32..2, 40u32..1500), 1..400),
            wakes in prop::collection::vec(0u64..2_500_000_000, 1..600),
        ) {
            for (name, text) in shipped() {
                let source = Source { name, text, directory: None };
                let scenario = parse(&source, &[]).unwrap_or_else(|error| panic!("{error}")).scenario;
                let journal = recorded(&scenario, &arrivals, &wakes);
                let again = journal.replay(&scenario, 1);
                let ((left, dropped), (left_again, dropped_again)) = (journal.outcome(), again.outcome());
                let other = left.iter().zip(&left_again).find(|(one, other)| one != other);
                prop_assert_eq!(other, None, "{}", name);
                prop_assert_eq!(left.len(), left_again.len(), "{}", name);
                prop_assert_eq!(dropped, dropped_again, "{}", name);
            }
        }
    }
}
