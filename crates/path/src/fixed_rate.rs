//! One server with a fixed rate and one drop-tail queue: the departure of a packet is known when it
//! enters.

use std::collections::VecDeque;

use airpath_base::{DropReason, Instant, Packet, Rate, push_tightly};
use airpath_queue::Load;

use crate::link::{Admission, Server};
use crate::service::{RateService, fixed_capacity_bytes};
use crate::{Departure, LinkMeter};

/// The fast path of a [`Fifo`](crate::fifo::Fifo) with a constant rate and without an AQM. The end
/// of a packet's service is computed when the packet enters. The meter counts many packets
/// together, later.
#[derive(Debug)]
pub(crate) struct FixedRate {
    service: RateService,
    admission: Admission,
    /// Packets that have not been polled yet, in order.
    ring: VecDeque<Entry>,
    /// Time up to which everything is done: packets that depart by then have left.
    known: Instant,
    /// Entries before this index have left and are in the meter; some after it may have left, too.
    metered: usize,
    /// Bytes of the entries that are not in the meter.
    unmetered_bytes: u64,
    /// Departure of the packet that entered last.
    busy_until: Instant,
    /// Departure of the first packet in the ring, [`Instant::MAX`] if there is none.
    first: Instant,
}

#[derive(Debug)]
struct Entry {
    /// End of service.
    departs: Instant,
    arrived: Instant,
    packet: Packet,
}

impl FixedRate {
    pub(crate) fn new(rate: Rate, admission: Admission) -> Self {
        Self {
            service: RateService::new(rate),
            admission,
            ring: VecDeque::new(),
            known: Instant::ZERO,
            metered: 0,
            unmetered_bytes: 0,
            busy_until: Instant::ZERO,
            first: Instant::MAX,
        }
    }

    /// Whether there is certainly room for a packet of this size, which is served after others and
    /// takes as long as the previous one: then it is [pushed](Self::push) without further work.
    #[inline(always)]
    fn is_steady(&self, size: u32) -> bool {
        self.busy_until > self.known
            && !self.may_be_full(size)
            && self.service.served_last(size)
            && self.ring.len() < self.ring.capacity()
    }

    /// Whether the ring's content would fill the queue if all of it were waiting.
    #[inline(always)]
    fn may_be_full(&self, size: u32) -> bool {
        self.admission.is_exceeded_by(Load {
            packets: (self.ring.len() - self.metered) as u64,
            bytes: self.unmetered_bytes + u64::from(size),
        })
    }

    /// A packet that arrived at `at` is served from `start` on.
    #[inline(always)]
    fn push(&mut self, at: Instant, start: Instant, packet: &Packet) {
        let size = packet.wire_size();
        let departs = start + self.service.serve(size);
        self.busy_until = departs;
        self.unmetered_bytes += u64::from(size);
        if self.ring.is_empty() {
            self.first = departs;
        }
        push_tightly(&mut self.ring, Entry { departs, arrived: at, packet: *packet });
    }

    /// Whether the queue has no room for this packet.
    #[inline(never)]
    fn is_full(&mut self, packet: &Packet) -> bool {
        self.meter_departed();
        let mut waiting = self.waiting();
        waiting.add_wire(packet);
        self.admission.is_exceeded_by(waiting)
    }

    /// Adds everything that has left to the meter.
    #[inline(never)]
    fn meter_departed(&mut self) {
        let Self {
            ring, admission: Admission { meter, .. }, metered, unmetered_bytes, known, ..
        } = self;
        let (front, back) = ring.as_slices();
        let skipped = (*metered).min(front.len());
        let known = *known;
        // One slice after the other; otherwise each step would have to check which of them it is
        // in.
        for entries in [&front[skipped..], &back[*metered - skipped..]] {
            let mut departed = Load::default();
            let has_left = entries.iter().take_while(|entry| entry.departs <= known);
            meter.sojourn.record_all(has_left.map(|entry| {
                departed.add_bytes(entry.packet.wire_size());
                entry.departs.saturating_since(entry.arrived)
            }));
            *metered += departed.packets as usize;
            *unmetered_bytes -= departed.bytes;
            meter.departed = meter.departed + departed;
        }
        meter.sojourn_sum = meter.sojourn.sum();
    }

    /// Packets that wait, without the packet in service; valid after [`Self::meter_departed`].
    fn waiting(&self) -> Load {
        match self.ring.get(self.metered) {
            None => Load::default(),
            Some(served) => Load {
                packets: (self.ring.len() - self.metered - 1) as u64,
                bytes: self.unmetered_bytes - u64::from(served.packet.wire_size()),
            },
        }
    }
}

impl Server for FixedRate {
    #[inline(always)]
    fn serve_until(&mut self, now: Instant) {
        self.known = self.known.max(now);
    }

    #[inline(never)]
    fn admit(&mut self, at: Instant, packet: &Packet) {
        let start = if self.busy_until <= self.known {
            self.service.begin_anew();
            at
        } else if self.may_be_full(packet.wire_size()) && self.is_full(packet) {
            self.admission.discard(at, *packet, DropReason::QueueFull);
            return;
        } else {
            self.busy_until
        };
        self.push(at, start, packet);
    }

    #[inline(always)]
    fn enter(&mut self, at: Instant, packet: &Packet) -> bool {
        let first = self.ring.is_empty();
        match self.is_steady(packet.wire_size()) {
            true => self.push(at, self.busy_until, packet),
            false => self.admit(at, packet),
        }
        first
    }

    #[inline(always)]
    fn next(&self) -> Instant {
        self.first
    }

    #[inline(always)]
    fn has_left(&self) -> bool {
        self.first <= self.known
    }

    #[inline(always)]
    fn take(&mut self, now: Instant) -> Option<Departure> {
        let at = self.first;
        let packet = self.take_packet(now)?;
        Some(Departure { at, packet })
    }

    #[inline(always)]
    fn take_packet(&mut self, now: Instant) -> Option<Packet> {
        if self.first > now {
            return None;
        }
        if self.metered == 0 {
            self.meter_departed();
        }
        let entry = self.ring.pop_front()?;
        self.metered -= 1;
        self.first = self.ring.front().map_or(Instant::MAX, |entry| entry.departs);
        Some(entry.packet)
    }

    fn load(&self) -> Load {
        let mut load = Load::default();
        self.ring.iter().for_each(|entry| load.add(&entry.packet));
        load
    }

    fn meter(&mut self, now: Instant) -> &LinkMeter {
        self.meter_departed();
        let queued = self.waiting();
        let meter = &mut self.admission.meter;
        meter.queued = queued;
        meter.capacity_bytes = fixed_capacity_bytes(self.service.rate(), now);
        meter
    }

    fn admission(&mut self) -> &mut Admission {
        &mut self.admission
    }
}
