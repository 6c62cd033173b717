//! Departures in batches, as with a grant period, an interrupt timer or a slotted medium.

use airpath_base::{Drop, Duration, Instant, Packet};
use airpath_queue::Load;

use crate::{Departure, LinkMeter, Path};

/// Releases packets only at multiples of an interval, all that arrived since the last one together.
/// A packet that arrives exactly at a multiple has missed it.
///
/// It holds no packet of its own: it asks the stages before it about an earlier time.
#[derive(Debug)]
pub struct Batch<P> {
    upstream: P,
    interval: Duration,
}

impl<P: Path> Batch<P> {
    /// Batches what leaves `upstream`; an interval of 0 counts as 1 ns.
    pub fn new(upstream: P, interval: Duration) -> Self {
        Self { upstream, interval: interval.max(Duration::from_nanos(1)) }
    }

    /// The first multiple of the interval after `at`.
    fn after(&self, at: Instant) -> Instant {
        let interval = self.interval.as_nanos();
        let periods = at.as_nanos() / interval + 1;
        Instant::from_nanos(periods.saturating_mul(interval))
    }

    /// The last arrival time for which packets have left by `now`.
    fn before(&self, now: Instant) -> Option<Instant> {
        let interval = self.interval.as_nanos();
        (now.as_nanos() / interval * interval).checked_sub(1).map(Instant::from_nanos)
    }
}

impl<P: Path> Path for Batch<P> {
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        self.upstream.enqueue(now, packet);
    }

    fn next_event(&self) -> Option<Instant> {
        Some(self.after(self.upstream.next_event()?))
    }

    fn poll(&mut self, now: Instant) -> Option<Departure> {
        let mut departure = self.upstream.poll(self.before(now)?)?;
        departure.at = self.after(departure.at);
        Some(departure)
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
