//! A link with one queue per flow, each with CoDel: FQ-CoDel (RFC 8290).

use std::collections::VecDeque;

use airpath_base::{Drop, DropReason, Instant, Packet};
use airpath_queue::{CoDel, Load, RoundRobin};

use crate::service::Service;
use crate::{Departure, FqCoDelConfig, LinkConfig, LinkMeter, Path};

/// Serves flows in turn. The packet being sent has left its queue; when a limit is exceeded, the
/// longest queue drops packets at its head.
#[derive(Debug)]
pub(crate) struct FairLink<P> {
    upstream: P,
    service: Service,
    packet_limit: u64,
    byte_limit: u64,
    fair: FqCoDelConfig,
    queues: RoundRobin<FlowQueue>,
    phase: Phase,
    /// Packets that left and have not been polled yet.
    left: VecDeque<Departure>,
    drops: VecDeque<Drop>,
    meter: LinkMeter,
}

/// One flow's packets, in bytes with their tunnel headers.
#[derive(Debug)]
struct FlowQueue {
    ring: VecDeque<(Packet, Instant)>,
    bytes: u64,
    codel: CoDel,
}

/// What the server is doing.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Nothing waits.
    Idle,
    /// A packet waits for the next opportunity, at this time.
    Starting(Instant),
    /// The packet is being sent; it arrived and departs at these times.
    Serving { packet: Packet, arrived: Instant, departs: Instant },
}

impl<P: Path> FairLink<P> {
    /// A link after `upstream`, called `name` in tables, the `stage`-th stage of its direction.
    pub(crate) fn new(
        upstream: P,
        config: &LinkConfig,
        fair: &FqCoDelConfig,
        name: &str,
        stage: u32,
    ) -> Self {
        Self {
            upstream,
            service: Service::new(&config.service),
            packet_limit: config.queue.packets.map_or(u64::MAX, u64::from),
            byte_limit: config.queue.bytes.unwrap_or(u64::MAX),
            fair: *fair,
            queues: RoundRobin::new(fair.quantum, fair.isolation),
            phase: Phase::Idle,
            left: VecDeque::new(),
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

    fn serve_until(&mut self, now: Instant) {
        loop {
            match self.phase {
                Phase::Starting(at) if at <= now => self.start(at),
                Phase::Serving { packet, arrived, departs } if departs <= now => {
                    let sojourn = departs.saturating_since(arrived);
                    self.meter.departed.add_bytes(packet.wire_size());
                    self.meter.sojourn_sum += sojourn;
                    self.meter.sojourn.record(sojourn);
                    self.left.push_back(Departure { at: departs, packet });
                    self.next(departs, true);
                }
                _ => break,
            }
        }
    }

    /// The queue whose turn it is sends next, from `at` on.
    fn next(&mut self, at: Instant, continuing: bool) {
        if self.meter.queued.packets == 0 {
            self.phase = Phase::Idle;
            return;
        }
        let start = self.service.begin(at, continuing);
        if start > at {
            self.phase = Phase::Starting(start);
        } else {
            self.start(at);
        }
    }

    /// Takes a packet out of the queues at `at`, dropping as CoDel decides.
    fn start(&mut self, at: Instant) {
        let Self { queues, meter, drops, .. } = self;
        let next = queues.pop(|queue| {
            let (packet, arrived) = queue.pop(at, meter, drops)?;
            Some(((packet, arrived), packet.wire_size()))
        });
        self.phase = match next {
            None => Phase::Idle,
            Some((packet, arrived)) => {
                let departs = self.service.serve(at, packet.wire_size());
                Phase::Serving { packet, arrived, departs }
            }
        };
    }

    fn admit(&mut self, at: Instant, packet: &Packet) {
        let FqCoDelConfig { target, interval, .. } = self.fair;
        let fresh =
            || FlowQueue { ring: VecDeque::new(), bytes: 0, codel: CoDel::new(target, interval) };
        self.queues.arrival(packet.flow, fresh).push(at, packet);
        self.meter.queued.add_wire(packet);
        if matches!(self.phase, Phase::Idle) {
            self.next(at, false);
            return;
        }
        while self.meter.queued.packets > self.packet_limit
            || self.meter.queued.bytes > self.byte_limit
        {
            self.shorten(at);
        }
    }

    fn shorten(&mut self, at: Instant) {
        let longest = self.queues.longest(|queue| (queue.bytes, queue.ring.len()));
        let (queue, count) = longest.expect("over a limit, so not empty");
        for packet in (0..count).map_while(|_| queue.pop_head()) {
            self.meter.queued.remove_wire(&packet.0);
            let (packet, stage) = (packet.0, self.meter.stage);
            self.drops.push_back(Drop { at, packet, stage, reason: DropReason::QueueFull });
        }
    }
}

impl FlowQueue {
    fn push(&mut self, at: Instant, packet: &Packet) {
        self.bytes += u64::from(packet.wire_size());
        self.ring.push_back((*packet, at));
    }

    fn pop_head(&mut self) -> Option<(Packet, Instant)> {
        let head = self.ring.pop_front()?;
        self.bytes -= u64::from(head.0.wire_size());
        Some(head)
    }

    fn pop(
        &mut self,
        at: Instant,
        meter: &mut LinkMeter,
        drops: &mut VecDeque<Drop>,
    ) -> Option<(Packet, Instant)> {
        while let Some((packet, arrived)) = self.pop_head() {
            meter.queued.remove_wire(&packet);
            if !self.codel.drops_head(at, at.saturating_since(arrived), self.bytes) {
                return Some((packet, arrived));
            }
            drops.push_back(Drop { at, packet, stage: meter.stage, reason: DropReason::Aqm });
        }
        self.codel.emptied();
        None
    }
}

impl<P: Path> Path for FairLink<P> {
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        if self.upstream.transit(now, packet) {
            self.serve_until(now);
            self.admit(now, packet);
        } else {
            self.advance(now);
        }
    }

    fn next_event(&self) -> Option<Instant> {
        if let Some(departure) = self.left.front() {
            return Some(departure.at);
        }
        let own = match self.phase {
            Phase::Idle => None,
            Phase::Starting(at) | Phase::Serving { departs: at, .. } => Some(at),
        };
        match (own, self.upstream.next_event()) {
            (Some(own), Some(other)) => Some(own.min(other)),
            (own, other) => own.or(other),
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Departure> {
        // Packets that have left do not depend on later arrivals: only if there are none is there
        // more to do.
        if self.left.is_empty() {
            self.advance(now);
        }
        self.left.front().filter(|departure| departure.at <= now)?;
        self.left.pop_front()
    }

    fn poll_drop(&mut self) -> Option<Drop> {
        self.upstream.poll_drop().or_else(|| self.drops.pop_front())
    }

    fn load(&self) -> Load {
        let mut load = self.upstream.load();
        let waiting = self.queues.queues().flat_map(|queue| &queue.ring).map(|(packet, _)| packet);
        waiting.chain(self.left.iter().map(|one| &one.packet)).for_each(|packet| load.add(packet));
        if let Phase::Serving { packet, .. } = &self.phase {
            load.add(packet);
        }
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
