//! One server with one queue.

use std::collections::VecDeque;

use airpath_base::{DropReason, Instant, Packet};
use airpath_queue::{CoDel, Load};

use crate::link::{Admission, Server};
use crate::service::Service;
use crate::{Aqm, Departure, LinkConfig, LinkMeter};

/// Serves packets one at a time, first come first served.
///
/// One ring holds everything: packets that left and have not been polled, then the one in service,
/// then those that wait. A packet is copied once on its way in and once on its way out.
#[derive(Debug)]
pub(crate) struct Fifo {
    service: Service,
    admission: Admission,
    codel: Option<CoDel>,
    ring: VecDeque<Entry>,
    /// Entries before this index have left or were dropped at the head.
    left: usize,
    phase: Phase,
    served: Served,
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

impl Fifo {
    /// Creates the server. `config.queue.aqm` must not have one queue per flow.
    pub(crate) fn new(config: &LinkConfig, admission: Admission) -> Self {
        let codel = match config.queue.aqm {
            Aqm::DropTail | Aqm::FqCoDel(_) => None,
            Aqm::CoDel { target, interval } => Some(CoDel::new(target, interval)),
        };
        Self {
            service: Service::new(&config.service),
            admission,
            codel,
            ring: VecDeque::new(),
            left: 0,
            phase: Phase::Idle,
            served: Served { arrived: Instant::ZERO, departs: Instant::ZERO, wire_bytes: 0 },
        }
    }

    /// The first waiting packet is next, from `at` on.
    #[inline]
    fn next_head(&mut self, at: Instant, continuing: bool) {
        if self.admission.meter.queued.packets == 0 {
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
            let queued = &mut self.admission.meter.queued;
            queued.remove_wire(&entry.packet);
            let drops = self.codel.as_mut().is_some_and(|codel| {
                let sojourn = at.saturating_since(entry.arrived);
                codel.drops_head(at, sojourn, queued.bytes)
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
            self.left += 1;
            let is_empty = queued.packets == 0;
            self.admission.discard(at, entry.packet, DropReason::Aqm);
            if is_empty {
                self.codel.iter_mut().for_each(CoDel::emptied);
                self.phase = Phase::Idle;
                break;
            }
        }
        if self.codel.is_some() {
            self.forget_dropped();
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

impl Server for Fifo {
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
                    let Served { arrived, departs, wire_bytes } = self.served;
                    if departs > now {
                        break;
                    }
                    self.admission.count(arrived, departs, wire_bytes);
                    self.left += 1;
                    self.next_head(departs, true);
                }
            }
        }
    }

    #[inline]
    fn admit(&mut self, at: Instant, packet: &Packet) {
        let mut waiting = self.admission.meter.queued;
        waiting.add_wire(packet);
        if self.phase != Phase::Idle && self.admission.is_exceeded_by(waiting) {
            self.admission.discard(at, *packet, DropReason::QueueFull);
            return;
        }
        self.ring.push_back(Entry { packet: *packet, arrived: at, departs: at, dropped: false });
        self.admission.meter.queued = waiting;
        if self.phase == Phase::Idle {
            self.next_head(at, false);
        }
    }

    #[inline(always)]
    fn next(&self) -> Instant {
        match self.phase {
            _ if self.left > 0 => self.ring[0].departs,
            Phase::Idle => Instant::MAX,
            Phase::Starting(at) => at,
            Phase::Serving => self.ring[0].departs,
        }
    }

    #[inline(always)]
    fn has_left(&self) -> bool {
        self.left > 0
    }

    #[inline(always)]
    fn take(&mut self, now: Instant) -> Option<Departure> {
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

    fn load(&self) -> Load {
        let mut load = Load::default();
        let held = self.ring.iter().filter(|entry| !entry.dropped);
        held.for_each(|entry| load.add(&entry.packet));
        load
    }

    fn meter(&mut self, now: Instant) -> &LinkMeter {
        self.admission.metered(&self.service, now)
    }

    fn admission(&mut self) -> &mut Admission {
        &mut self.admission
    }
}
