//! One server with one queue per flow, each with CoDel: FQ-CoDel (RFC 8290).

use std::collections::VecDeque;

use airpath_base::{DropReason, Instant, Packet};
use airpath_queue::{CoDel, Load, RoundRobin};

use crate::link::{Admission, Server};
use crate::service::Service;
use crate::{Departure, FqCoDelConfig, LinkMeter, ServiceConfig};

/// Serves flows in turn. The packet being sent has left its queue; when a limit is exceeded, the
/// longest queue drops packets at its head.
#[derive(Debug)]
pub(crate) struct FairQueue {
    service: Service,
    admission: Admission,
    fair: FqCoDelConfig,
    queues: RoundRobin<FlowQueue>,
    phase: Phase,
    /// Packets that left and have not been polled yet.
    left: VecDeque<Departure>,
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

impl FairQueue {
    pub(crate) fn new(service: &ServiceConfig, fair: &FqCoDelConfig, admission: Admission) -> Self {
        Self {
            service: Service::new(service),
            admission,
            fair: *fair,
            queues: RoundRobin::new(fair.quantum, fair.isolation),
            phase: Phase::Idle,
            left: VecDeque::new(),
        }
    }

    /// The queue whose turn it is sends next, from `at` on.
    fn serve_next(&mut self, at: Instant, continuing: bool) {
        if self.admission.meter.queued.packets == 0 {
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
        let Self { queues, admission, .. } = self;
        let next = queues.pop(|queue| {
            let (packet, arrived) = queue.pop(at, admission)?;
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

    fn shorten(&mut self, at: Instant) {
        let longest = self.queues.longest(|queue| (queue.bytes, queue.ring.len()));
        let (queue, count) = longest.expect("over a limit, so not empty");
        for packet in (0..count).map_while(|_| queue.pop_head()) {
            self.admission.meter.queued.remove_wire(&packet.0);
            self.admission.discard(at, packet.0, DropReason::QueueFull);
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

    fn pop(&mut self, at: Instant, admission: &mut Admission) -> Option<(Packet, Instant)> {
        while let Some((packet, arrived)) = self.pop_head() {
            admission.meter.queued.remove_wire(&packet);
            if !self.codel.drops_head(at, at.saturating_since(arrived), self.bytes) {
                return Some((packet, arrived));
            }
            admission.discard(at, packet, DropReason::Aqm);
        }
        self.codel.emptied();
        None
    }
}

impl Server for FairQueue {
    fn serve_until(&mut self, now: Instant) {
        loop {
            match self.phase {
                Phase::Starting(at) if at <= now => self.start(at),
                Phase::Serving { packet, arrived, departs } if departs <= now => {
                    self.admission.count(arrived, departs, packet.wire_size());
                    self.left.push_back(Departure { at: departs, packet });
                    self.serve_next(departs, true);
                }
                _ => break,
            }
        }
    }

    fn admit(&mut self, at: Instant, packet: &Packet) {
        let FqCoDelConfig { target, interval, .. } = self.fair;
        let fresh =
            || FlowQueue { ring: VecDeque::new(), bytes: 0, codel: CoDel::new(target, interval) };
        self.queues.arrival(packet.flow, fresh).push(at, packet);
        self.admission.meter.queued.add_wire(packet);
        if matches!(self.phase, Phase::Idle) {
            self.serve_next(at, false);
            return;
        }
        while self.admission.is_exceeded_by(self.admission.meter.queued) {
            self.shorten(at);
        }
    }

    fn next(&self) -> Instant {
        match (self.left.front(), self.phase) {
            (Some(departure), _) => departure.at,
            (None, Phase::Idle) => Instant::MAX,
            (None, Phase::Starting(at) | Phase::Serving { departs: at, .. }) => at,
        }
    }

    fn has_left(&self) -> bool {
        !self.left.is_empty()
    }

    fn take(&mut self, now: Instant) -> Option<Departure> {
        self.left.front().filter(|departure| departure.at <= now)?;
        self.left.pop_front()
    }

    fn load(&self) -> Load {
        let mut load = Load::default();
        let waiting = self.queues.queues().flat_map(|queue| &queue.ring).map(|(packet, _)| packet);
        waiting.chain(self.left.iter().map(|one| &one.packet)).for_each(|packet| load.add(packet));
        if let Phase::Serving { packet, .. } = &self.phase {
            load.add(packet);
        }
        load
    }

    fn meter(&mut self, now: Instant) -> &LinkMeter {
        self.admission.metered(&self.service, now)
    }

    fn admission(&mut self) -> &mut Admission {
        &mut self.admission
    }
}
