//! Stages with a delay that hold no packets: they poll the stages before them for an earlier time.

use airpath_base::{Drop, Instant, Packet};
use airpath_queue::Load;

use crate::{Departure, LinkMeter, Path};

/// How a stage delays packets if the delay depends only on arrival times. Packets keep their order.
pub(crate) trait Shift {
    /// When a packet that arrives at `at` leaves.
    fn leaves(&self, at: Instant) -> Instant;

    /// The latest arrival time of packets that have left by `now`; `None`: no packet can have left.
    fn arrived(&self, now: Instant) -> Option<Instant>;
}

/// A stage that delays what leaves `upstream`.
#[derive(Debug)]
pub(crate) struct Shifted<P, S> {
    pub(crate) upstream: P,
    pub(crate) shift: S,
}

impl<P: Path, S: Shift> Path for Shifted<P, S> {
    #[inline]
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        self.upstream.enqueue(now, packet);
    }

    #[inline]
    fn next_event(&self) -> Option<Instant> {
        Some(self.shift.leaves(self.upstream.next_event()?))
    }

    #[inline]
    fn poll(&mut self, now: Instant) -> Option<Departure> {
        let mut departure = self.upstream.poll(self.shift.arrived(now)?);
        // Change it in place: a copy would cost more than the addition.
        if let Some(departure) = &mut departure {
            departure.at = self.shift.leaves(departure.at);
        }
        departure
    }

    fn poll_drop(&mut self) -> Option<Drop> {
        self.upstream.poll_drop()
    }

    fn load(&self) -> Load {
        self.upstream.load()
    }

    fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&LinkMeter)) {
        self.upstream.observe(now, visit);
    }
}
