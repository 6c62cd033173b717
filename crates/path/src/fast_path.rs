//! Fast paths of the stages: shorter versions of the verbs, for conditions that are cheap to check.
//! The results are the same without them. Only [`Stack`] takes them.
//!
//! The fast path of a link at a fixed rate is its server ([`FixedRate`](crate::fixed_rate)), which
//! [`build`](crate::build) chooses.

use airpath_base::{Instant, Packet};

use crate::branches::Branches;
use crate::delay::RandomDelay;
use crate::filter::{Filter, Filtered};
use crate::host::Host;
use crate::link::{Link, Server};
use crate::middlebox::Outward;
use crate::modem::Modem;
use crate::offload::Joined;
use crate::shared::SharedHost;
use crate::shift::{Shift, Shifted};
use crate::stack::FastPath;
use crate::{Path, Wire};

impl FastPath for Wire {
    /// If a packet is already inside, it stays first and the next event does not change.
    #[inline]
    fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        self.enqueue(now, packet);
        self.inside.len() == 1
    }

    /// If the wire is empty, the packet would leave at once.
    #[inline]
    fn transit(&mut self, now: Instant, packet: &Packet) -> bool {
        if self.inside.is_empty() {
            return true;
        }
        self.enqueue(now, packet);
        false
    }

    /// The next event is the departure of the packet that is first afterwards.
    #[inline(always)]
    fn poll_next(&mut self, now: Instant, next: &mut Instant) -> Option<Packet> {
        let first = self.inside.front().map_or(Instant::MAX, |departure| departure.at);
        if first > now {
            *next = first;
            return None;
        }
        let second = self.inside.get(1);
        *next = second.map_or(Instant::MAX, |departure| departure.at);
        self.inside.pop_front().map(|departure| departure.packet)
    }

    /// Packets are in order of departure, and those that are due come first.
    #[inline]
    fn poll_all(&mut self, now: Instant, take: &mut dyn FnMut(&Packet)) -> bool {
        let due = self.inside.iter().take_while(|departure| departure.at <= now).count();
        self.inside.range(..due).for_each(|departure| take(&departure.packet));
        self.inside.drain(..due);
        due > 0
    }
}

/// A shift passes every packet unchanged, and the next event depends only on that of `upstream`.
impl<P: FastPath, S: Shift> FastPath for Shifted<P, S> {
    #[inline]
    fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        self.upstream.enter(now, packet)
    }

    #[inline(always)]
    fn poll_next(&mut self, now: Instant, next: &mut Instant) -> Option<Packet> {
        let Some(arrived) = self.shift.arrived(now) else {
            *next = self.next_event().unwrap_or(Instant::MAX);
            return None;
        };
        let packet = self.upstream.poll_next(arrived, next);
        if *next < Instant::MAX {
            *next = self.shift.leaves(*next);
        }
        packet
    }

    #[inline]
    fn poll_all(&mut self, now: Instant, take: &mut dyn FnMut(&Packet)) -> bool {
        self.shift.arrived(now).is_some_and(|arrived| self.upstream.poll_all(arrived, take))
    }
}

impl<P: FastPath, S: Server> FastPath for Link<P, S> {
    /// A packet that would leave `upstream` at once goes directly to the server.
    #[inline(always)]
    fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        if !self.upstream.transit(now, packet) {
            self.advance(now);
            return true;
        }
        self.server.serve_until(now);
        self.server.enter(now, packet)
    }

    /// The server returns the packet without the departure time.
    #[inline(always)]
    fn poll_next(&mut self, now: Instant, next: &mut Instant) -> Option<Packet> {
        if !self.server.has_left() {
            self.advance(now);
        }
        let packet = self.server.take_packet(now);
        *next = self.next();
        packet
    }
}

// The stages below have no fast paths of their own. They take the fast paths of the stages before
// them.

impl<P: FastPath, F: Filter> FastPath for Filtered<P, F> {
    fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        self.upstream.enter(now, packet);
        true
    }
}

impl<P: FastPath> FastPath for RandomDelay<P> {
    fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        self.upstream.enter(now, packet);
        true
    }
}

impl<P: FastPath> FastPath for Host<P> {
    fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        self.upstream.enter(now, packet);
        true
    }
}

impl<P: FastPath> FastPath for Modem<P> {
    fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        self.upstream.enter(now, packet);
        true
    }
}

impl<P: FastPath> FastPath for Joined<P> {
    fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        self.upstream.enter(now, packet);
        true
    }
}

impl FastPath for SharedHost {}

impl FastPath for Outward {
    fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        self.advance_upstream(now, |upstream| {
            upstream.enter(now, packet);
        });
        true
    }
}

impl FastPath for Branches {
    fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        let branch = self.branch_for(now, packet);
        self.paths[branch as usize].enter(now, packet);
        self.arm(branch);
        true
    }
}
