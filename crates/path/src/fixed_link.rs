//! A link with a fixed rate that drops at the tail: the departure of a packet is known when it
//! enters.

use std::collections::VecDeque;

use airpath_base::{Drop, DropReason, Instant, Packet, Rate, push_tightly};
use airpath_queue::Load;

use crate::service::{RateService, fixed_capacity_bytes};
use crate::{Departure, LinkMeter, Path, QueueConfig};

/// Does what a [`Link`](crate::Link) does with a constant rate and without an AQM, with less work
/// per packet: the end of its service is computed when it enters, and it is metered later, together
/// with many others.
#[derive(Debug)]
pub(crate) struct FixedLink<P> {
    upstream: P,
    service: RateService,
    packet_limit: u64,
    byte_limit: u64,
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
    drops: VecDeque<Drop>,
    meter: LinkMeter,
}

#[derive(Debug)]
struct Entry {
    /// End of service.
    departs: Instant,
    arrived: Instant,
    packet: Packet,
}

impl<P: Path> FixedLink<P> {
    /// A link after `upstream`, called `name` in tables, the `stage`-th stage of its direction.
    pub(crate) fn new(
        upstream: P,
        rate: Rate,
        queue: &QueueConfig,
        name: &str,
        stage: u32,
    ) -> Self {
        Self {
            upstream,
            service: RateService::new(rate),
            packet_limit: queue.packets.map_or(u64::MAX, u64::from),
            byte_limit: queue.bytes.unwrap_or(u64::MAX),
            ring: VecDeque::new(),
            known: Instant::ZERO,
            metered: 0,
            unmetered_bytes: 0,
            busy_until: Instant::ZERO,
            first: Instant::MAX,
            drops: VecDeque::new(),
            meter: LinkMeter::new(name, stage),
        }
    }

    /// Does everything that is due until `now`, including arrivals from upstream.
    #[inline(never)]
    fn advance(&mut self, now: Instant) {
        while let Some(at) = self.upstream.next_event() {
            if at > now {
                break;
            }
            self.known = self.known.max(at);
            while let Some(Departure { at, ref packet }) = self.upstream.poll(at) {
                self.admit(at, packet);
            }
        }
        self.known = self.known.max(now);
    }

    /// A packet arrives at `at`; everything before that time has been done.
    #[inline(never)]
    fn admit(&mut self, at: Instant, packet: &Packet) {
        let size = packet.wire_size();
        let start = if self.busy_until <= self.known {
            self.service.begin_anew();
            at
        } else if self.may_be_full(size) && self.is_full(size) {
            self.drop_at_tail(at, packet);
            return;
        } else {
            self.busy_until
        };
        self.push(at, start, packet);
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
        let packets = (self.ring.len() - self.metered) as u64;
        packets > self.packet_limit || self.unmetered_bytes + u64::from(size) > self.byte_limit
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

    #[cold]
    fn drop_at_tail(&mut self, at: Instant, packet: &Packet) {
        let (packet, stage) = (*packet, self.meter.stage);
        self.drops.push_back(Drop { at, packet, stage, reason: DropReason::QueueFull });
    }

    /// Whether there is no room for a packet of this size.
    #[inline(never)]
    fn is_full(&mut self, size: u32) -> bool {
        self.meter_departed();
        let waiting = self.waiting();
        waiting.packets >= self.packet_limit || waiting.bytes + u64::from(size) > self.byte_limit
    }

    /// Adds everything that has left to the meter.
    #[inline(never)]
    fn meter_departed(&mut self) {
        let Self { ring, meter, metered, unmetered_bytes, known, .. } = self;
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

    /// When the next packet can leave, [`Instant::MAX`] if never.
    #[inline(always)]
    fn next(&self) -> Instant {
        // Packets that have left do not depend on later arrivals.
        if self.first <= self.known {
            return self.first;
        }
        self.upstream.next_event().map_or(self.first, |at| at.min(self.first))
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

impl<P: Path> Path for FixedLink<P> {
    #[inline(always)]
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        self.enter(now, packet);
    }

    #[inline(always)]
    fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        if !self.upstream.transit(now, packet) {
            self.advance(now);
            return true;
        }
        self.known = self.known.max(now);
        let first = self.ring.is_empty();
        match self.is_steady(packet.wire_size()) {
            true => self.push(now, self.busy_until, packet),
            false => self.admit(now, packet),
        }
        first
    }

    #[inline(always)]
    fn next_event(&self) -> Option<Instant> {
        let next = self.next();
        (next < Instant::MAX).then_some(next)
    }

    #[inline(always)]
    fn poll(&mut self, now: Instant) -> Option<Departure> {
        if self.first > self.known {
            self.advance(now);
        }
        let at = self.first;
        let packet = self.poll_next(now, &mut { Instant::MAX })?;
        Some(Departure { at, packet })
    }

    #[inline(always)]
    fn poll_next(&mut self, now: Instant, next: &mut Instant) -> Option<Packet> {
        if self.first > self.known {
            self.advance(now);
        }
        if self.first > now {
            *next = self.next();
            return None;
        }
        if self.metered == 0 {
            self.meter_departed();
        }
        let entry = self.ring.pop_front()?;
        self.metered -= 1;
        self.first = self.ring.front().map_or(Instant::MAX, |entry| entry.departs);
        *next = self.next();
        Some(entry.packet)
    }

    fn poll_drop(&mut self) -> Option<Drop> {
        self.upstream.poll_drop().or_else(|| self.drops.pop_front())
    }

    fn load(&self) -> Load {
        let mut load = self.upstream.load();
        self.ring.iter().for_each(|entry| load.add(&entry.packet));
        load
    }

    fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&LinkMeter)) {
        self.upstream.observe(now, visit);
        self.advance(now);
        self.meter_departed();
        self.meter.queued = self.waiting();
        self.meter.capacity_bytes = fixed_capacity_bytes(self.service.rate(), now);
        visit(&self.meter);
    }
}

#[cfg(test)]
mod tests {
    use airpath_base::{Duration, Ecn, FlowId, Payload, Tunnel};
    use proptest::prelude::*;

    use super::*;
    use crate::{Aqm, Delay, Link, LinkConfig, ServiceConfig, Wire};

    /// What a user does with a link after a pause.
    #[derive(Clone, Copy, Debug)]
    enum Operation {
        Enqueue(u32, u16),
        Poll,
        PollNext,
        Observe,
    }

    fn operation() -> impl Strategy<Value = (u64, Operation)> {
        let operation = prop_oneof![
            4 => (40u32..3000, 0u16..3).prop_map(|(size, header)| Operation::Enqueue(size, header)),
            2 => Just(Operation::Poll),
            2 => Just(Operation::PollNext),
            1 => Just(Operation::Observe),
        ];
        // Packets of 1,000 bytes take a whole number of microseconds, so that arrivals and
        // departures coincide.
        (prop_oneof![Just(0u64), Just(8_000), 0u64..30_000], operation)
    }

    fn packet(id: u64, size: u32, header_bytes: u16) -> Packet {
        // One size is frequent.
        let size = if size > 1500 { 1000 } else { size };
        let tunnel = Tunnel { header_bytes, further_fragments: 0 };
        let payload = Payload::Opaque(id);
        Packet { flow: FlowId(0), size, ecn: Ecn::NotEct, tunnel, journey: None, payload }
    }

    fn seen(path: &mut dyn Path, now: Instant) -> String {
        let mut seen = String::new();
        path.observe(now, &mut |meter| seen = format!("{meter:?}"));
        seen
    }

    /// Asserts that both do the same at every step, with `path` around the link.
    fn compare(fixed: &mut dyn Path, link: &mut dyn Path, operations: &[(u64, Operation)]) {
        let mut now = Instant::ZERO;
        for (id, &(gap, operation)) in (0..).zip(operations) {
            now += Duration::from_nanos(gap);
            match operation {
                Operation::Enqueue(size, header_bytes) => {
                    let packet = packet(id, size, header_bytes);
                    let before = fixed.next_event();
                    assert!(fixed.enter(now, &packet) || fixed.next_event() == before);
                    link.enqueue(now, &packet);
                }
                Operation::Poll => loop {
                    let departure = fixed.poll(now);
                    assert_eq!(departure, link.poll(now));
                    if departure.is_none() {
                        break;
                    }
                },
                Operation::PollNext => loop {
                    let mut next = Instant::ZERO;
                    let packet = fixed.poll_next(now, &mut next);
                    assert_eq!(packet, link.poll(now).map(|departure| departure.packet));
                    assert_eq!(next, link.next_event().unwrap_or(Instant::MAX));
                    if packet.is_none() {
                        break;
                    }
                },
                Operation::Observe => assert_eq!(seen(fixed, now), seen(link, now)),
            }
            assert_eq!(fixed.next_event(), link.next_event());
            assert_eq!(fixed.load(), link.load());
            assert_eq!(fixed.poll_drop(), link.poll_drop());
        }
        assert_eq!(seen(fixed, now), seen(link, now));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn a_fixed_link_is_a_link(
            operations in proptest::collection::vec(operation(), 0..300),
            bps in prop_oneof![Just(1_000_000_000u64), 1_000u64..3_000_000_000],
            packets in proptest::option::of(0u32..20),
            bytes in proptest::option::of(0u64..20_000),
            (before, after) in (0u64..50_000, 0u64..50_000),
        ) {
            let rate = Rate::from_bps(bps).unwrap();
            let queue = QueueConfig { packets, bytes, aqm: Aqm::DropTail };
            let config = LinkConfig { service: ServiceConfig::Rate(rate), queue };
            let (before, after) = (Duration::from_nanos(before), Duration::from_nanos(after));
            let fixed = || FixedLink::new(Wire::new(), rate, &queue, "link", 1);
            let link = || Link::new(Wire::new(), &config, "link", 1);
            compare(&mut fixed(), &mut link(), &operations);
            // Polled at an earlier time than it has been told.
            compare(&mut Delay::new(fixed(), after), &mut Delay::new(link(), after), &operations);
            let upstream = || Delay::new(Wire::new(), before);
            compare(
                &mut FixedLink::new(upstream(), rate, &queue, "link", 1),
                &mut Link::new(upstream(), &config, "link", 1),
                &operations,
            );
        }
    }
}
