//! A link: packets that leave the stages before it wait in a queue for a server.
//!
//! There are three kinds: [one queue](crate::fifo), [one queue at a fixed rate](crate::fixed_rate),
//! and [one queue per flow](crate::fair_queue).

use std::collections::VecDeque;

use airpath_base::{Drop, DropReason, Instant, Packet};
use airpath_queue::Load;

use crate::service::Service;
use crate::{Departure, LinkMeter, Path, QueueConfig};

/// The queue of a link and the server behind it. Times never decrease.
pub(crate) trait Server {
    /// Does everything that is due until `now` if nothing else arrives.
    fn serve_until(&mut self, now: Instant);

    /// Handles a packet that arrives at `at`; everything that is due until then has been done.
    fn admit(&mut self, at: Instant, packet: &Packet);

    /// Admits a packet as [`admit`](Self::admit) does; returns false if [`next`](Self::next) has
    /// not changed.
    #[inline(always)]
    fn enter(&mut self, at: Instant, packet: &Packet) -> bool {
        self.admit(at, packet);
        true
    }

    /// When the first packet that has left and was not taken did so. Without such a packet, when
    /// there is something to do; [`Instant::MAX`]: never.
    fn next(&self) -> Instant;

    /// Whether any packets have left and have not been taken.
    fn has_left(&self) -> bool;

    /// Takes the first packet that has left by `now`.
    fn take(&mut self, now: Instant) -> Option<Departure>;

    /// Takes a packet as [`take`](Self::take) does, without the departure time.
    #[inline(always)]
    fn take_packet(&mut self, now: Instant) -> Option<Packet> {
        self.take(now).map(|departure| departure.packet)
    }

    /// The packets that have entered, and were neither dropped nor taken.
    fn load(&self) -> Load;

    /// The meter at `now`; everything that is due until then has been done.
    fn meter(&mut self, now: Instant) -> &LinkMeter;

    /// The limits, drops and meter of the queue.
    fn admission(&mut self) -> &mut Admission;
}

/// The limits of a link's queue, the packets dropped, and the link's meter.
#[derive(Debug)]
pub(crate) struct Admission {
    packet_limit: u64,
    byte_limit: u64,
    drops: VecDeque<Drop>,
    pub(crate) meter: LinkMeter,
}

impl Admission {
    /// Creates the admission of the link that is called `name` in tables and is the `stage`-th
    /// stage of a direction.
    pub(crate) fn new(queue: &QueueConfig, name: &str, stage: u32) -> Self {
        Self {
            packet_limit: queue.packets.map_or(u64::MAX, u64::from),
            byte_limit: queue.bytes.unwrap_or(u64::MAX),
            drops: VecDeque::new(),
            meter: LinkMeter::new(name, stage),
        }
    }

    /// Whether `waiting` exceeds a limit.
    #[inline(always)]
    pub(crate) fn is_exceeded_by(&self, waiting: Load) -> bool {
        waiting.packets > self.packet_limit || waiting.bytes > self.byte_limit
    }

    /// Records that a packet is dropped at `at`.
    pub(crate) fn discard(&mut self, at: Instant, packet: Packet, reason: DropReason) {
        self.drops.push_back(Drop { at, packet, stage: self.meter.stage, reason });
    }

    /// Counts a packet that arrived at `arrived` and leaves at `at`; `bytes`: size on the link.
    #[inline]
    pub(crate) fn count(&mut self, arrived: Instant, at: Instant, bytes: u32) {
        let sojourn = at.saturating_since(arrived);
        self.meter.departed.add_bytes(bytes);
        self.meter.sojourn_sum += sojourn;
        self.meter.sojourn.record(sojourn);
    }

    /// The meter at `now`, with what `service` could have carried until then.
    pub(crate) fn metered(&mut self, service: &Service, now: Instant) -> &LinkMeter {
        self.meter.capacity_bytes = service.capacity_bytes(now);
        self.meter.stored_bytes = service.stored_bytes(now);
        &self.meter
    }
}

/// A server, and the stages before it.
#[derive(Debug)]
pub(crate) struct Link<P, S> {
    pub(crate) upstream: P,
    pub(crate) server: S,
}

impl<P: Path, S: Server> Link<P, S> {
    /// Does everything that is due until `now`, including arrivals from upstream.
    #[inline(never)]
    pub(crate) fn advance(&mut self, now: Instant) {
        while let Some(at) = self.upstream.next_event() {
            if at > now {
                break;
            }
            self.server.serve_until(at);
            while let Some(Departure { at, ref packet }) = self.upstream.poll(at) {
                self.server.admit(at, packet);
            }
        }
        self.server.serve_until(now);
    }

    /// Returns [`next_event`](Path::next_event), or [`Instant::MAX`] for `None`.
    #[inline(always)]
    pub(crate) fn next(&self) -> Instant {
        let own = self.server.next();
        // Packets that have left do not depend on later arrivals.
        if self.server.has_left() {
            return own;
        }
        self.upstream.next_event().map_or(own, |at| at.min(own))
    }
}

impl<P: Path, S: Server> Path for Link<P, S> {
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        self.upstream.enqueue(now, packet);
        self.advance(now);
    }

    #[inline(always)]
    fn next_event(&self) -> Option<Instant> {
        let next = self.next();
        (next < Instant::MAX).then_some(next)
    }

    #[inline(always)]
    fn poll(&mut self, now: Instant) -> Option<Departure> {
        // A packet that has left is taken before any other work.
        if !self.server.has_left() {
            self.advance(now);
        }
        self.server.take(now)
    }

    fn poll_drop(&mut self) -> Option<Drop> {
        self.upstream.poll_drop().or_else(|| self.server.admission().drops.pop_front())
    }

    fn load(&self) -> Load {
        self.upstream.load() + self.server.load()
    }

    fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&LinkMeter)) {
        self.upstream.observe(now, visit);
        self.advance(now);
        visit(self.server.meter(now));
    }
}
