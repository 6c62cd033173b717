//! A link: one server with one queue.

use std::collections::VecDeque;

use airpath_base::{Drop, DropReason, Instant, Packet};
use airpath_queue::Load;

use crate::service::Service;
use crate::{Aqm, Departure, LinkConfig, LinkMeter, Path};
use airpath_queue::CoDel;

/// Serves packets one at a time, first come first served.
///
/// One ring holds everything: packets that left and have not been polled, then the one in service,
/// then those that wait. A packet is copied once on its way in and once on its way out.
#[derive(Debug)]
pub struct Link<P> {
    upstream: P,
    service: Service,
    packet_limit: u64,
    byte_limit: u64,
    codel: Option<CoDel>,
    ring: VecDeque<Entry>,
    /// Entries before this index have left or were dropped at the head.
    left: usize,
    phase: Phase,
    served: Served,
    drops: VecDeque<Drop>,
    meter: LinkMeter,
}

#[derive(Debug)]
struct Entry {
    packet: Packet,
    arrived: Instant,
    /// End of service; undefined while the packet waits.
    departs: Instant,
    /// Dropped at the head by the AQM: it is never polled.
    dropped: bool,
}

/// A copy of what is in service, to avoid access to the ring; undefined if nothing is.
#[derive(Clone, Copy, Debug)]
struct Served {
    arrived: Instant,
    departs: Instant,
    wire_bytes: u32,
}

/// What the server does with the entry `ring[left]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// There is no such entry.
    Idle,
    /// It waits for the next opportunity, at this time.
    Starting(Instant),
    /// It is being sent, until its `departs`.
    Serving,
}

impl<P: Path> Link<P> {
    /// A link after `upstream`, called `name` in tables, the `stage`-th stage of its direction.
    pub fn new(upstream: P, config: &LinkConfig, name: &str, stage: u32) -> Self {
        let codel = match config.queue.aqm {
            // Links with one queue per flow have a type of their own (`fair_link.rs`).
            Aqm::DropTail | Aqm::FqCoDel(_) => None,
            Aqm::CoDel { target, interval } => Some(CoDel::new(target, interval)),
        };
        Self {
            upstream,
            service: Service::new(&config.service),
            packet_limit: config.queue.packets.map_or(u64::MAX, u64::from),
            byte_limit: config.queue.bytes.unwrap_or(u64::MAX),
            codel,
            ring: VecDeque::new(),
            left: 0,
            phase: Phase::Idle,
            served: Served { arrived: Instant::ZERO, departs: Instant::ZERO, wire_bytes: 0 },
            drops: VecDeque::new(),
            meter: LinkMeter::new(name, stage),
        }
    }

    /// Does everything that is due until `now`, including arrivals from upstream.
    fn advance(&mut self, now: Instant) {
        while let Some(at) = self.upstream.next_event() {
            if at > now {
                break;
            }
            self.serve_until(at);
            while let Some(Departure { at, ref packet }) = self.upstream.poll(at) {
                self.admit(at, packet);
            }
        }
        self.serve_until(now);
    }

    #[inline]
    fn serve_until(&mut self, now: Instant) {
        loop {
            match self.phase {
                Phase::Idle => break,
                Phase::Starting(at) => {
                    if at > now {
                        break;
                    }
                    self.start_head(at);
                }
                Phase::Serving => {
                    let Served { arrived, departs: done, wire_bytes } = self.served;
                    if done > now {
                        break;
                    }
                    let sojourn = done.saturating_since(arrived);
                    self.meter.departed.add_bytes(wire_bytes);
                    self.meter.sojourn_sum += sojourn;
                    self.meter.sojourn.record(sojourn);
                    self.left += 1;
                    self.next_head(done, true);
                }
            }
        }
    }

    /// The first waiting packet is next, from `at` on.
    #[inline]
    fn next_head(&mut self, at: Instant, continuing: bool) {
        if self.meter.queued.packets == 0 {
            self.phase = Phase::Idle;
            return;
        }
        let start = self.service.begin(at, continuing);
        if start > at {
            self.phase = Phase::Starting(start);
        } else {
            self.start_head(at);
        }
    }

    /// Takes the head out of the queue at `at`, dropping as the AQM decides.
    #[inline]
    fn start_head(&mut self, at: Instant) {
        loop {
            let entry = &mut self.ring[self.left];
            self.meter.queued.remove_wire(&entry.packet);
            let drops = self.codel.as_mut().is_some_and(|codel| {
                let sojourn = at.saturating_since(entry.arrived);
                codel.drops_head(at, sojourn, self.meter.queued.bytes)
            });
            if !drops {
                let wire_bytes = entry.packet.wire_size();
                entry.departs = self.service.serve(at, wire_bytes);
                let Entry { arrived, departs, .. } = *entry;
                self.served = Served { arrived, departs, wire_bytes };
                self.phase = Phase::Serving;
                break;
            }
            entry.dropped = true;
            let (packet, stage) = (entry.packet, self.meter.stage);
            self.drops.push_back(Drop { at, packet, stage, reason: DropReason::Aqm });
            self.left += 1;
            if self.meter.queued.packets == 0 {
                self.codel.iter_mut().for_each(CoDel::emptied);
                self.phase = Phase::Idle;
                break;
            }
        }
        if self.codel.is_some() {
            self.forget_dropped();
        }
    }

    #[inline]
    fn admit(&mut self, at: Instant, packet: &Packet) {
        if self.phase != Phase::Idle
            && (self.meter.queued.packets >= self.packet_limit
                || self.meter.queued.bytes + u64::from(packet.wire_size()) > self.byte_limit)
        {
            let stage = self.meter.stage;
            let packet = *packet;
            self.drops.push_back(Drop { at, packet, stage, reason: DropReason::QueueFull });
            return;
        }
        self.ring.push_back(Entry { packet: *packet, arrived: at, departs: at, dropped: false });
        self.meter.queued.add_wire(packet);
        if self.phase == Phase::Idle {
            self.next_head(at, false);
        }
    }

    /// Removes dropped packets, so that the front of the ring is one to be polled.
    fn forget_dropped(&mut self) {
        while self.left > 0 && self.ring.front().is_some_and(|entry| entry.dropped) {
            self.ring.pop_front();
            self.left -= 1;
        }
    }
}

impl<P: Path> Path for Link<P> {
    #[inline(always)]
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        if self.upstream.transit(now, packet) {
            self.serve_until(now);
            self.admit(now, packet);
        } else {
            self.advance(now);
        }
    }

    #[inline(always)]
    fn next_event(&self) -> Option<Instant> {
        let own = if self.left > 0 {
            return Some(self.ring[0].departs);
        } else {
            match self.phase {
                Phase::Idle => None,
                Phase::Starting(at) => Some(at),
                Phase::Serving => Some(self.ring[0].departs),
            }
        };
        match (own, self.upstream.next_event()) {
            (Some(own), Some(other)) => Some(own.min(other)),
            (own, other) => own.or(other),
        }
    }

    #[inline(always)]
    fn poll(&mut self, now: Instant) -> Option<Departure> {
        // Packets that have left do not depend on later arrivals: only if there are none is there
        // more to do.
        if self.left == 0 {
            self.advance(now);
        }
        if self.left == 0 || self.ring[0].departs > now {
            return None;
        }
        let entry = self.ring.pop_front()?;
        self.left -= 1;
        if self.codel.is_some() {
            self.forget_dropped();
        }
        Some(Departure { at: entry.departs, packet: entry.packet })
    }

    fn poll_drop(&mut self) -> Option<Drop> {
        self.upstream.poll_drop().or_else(|| self.drops.pop_front())
    }

    fn load(&self) -> Load {
        let mut load = self.upstream.load();
        let held = self.ring.iter().filter(|entry| !entry.dropped);
        held.for_each(|entry| load.add(&entry.packet));
        load
    }

    fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&LinkMeter)) {
        self.upstream.observe(now, visit);
        self.advance(now);
        self.meter.capacity_bytes = self.service.capacity_bytes(now);
        self.meter.stored_bytes = self.service.stored_bytes(now);
        visit(&self.meter);
    }
}
