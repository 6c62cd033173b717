//! A stage that blocks packets at regular times.

use airpath_base::{Drop, Duration, Instant, Packet};
use airpath_path::{Departure, LinkMeter, Path};
use airpath_queue::Load;

/// Delays packets that would leave in the first `length` of each `period` to the end of that time.
///
/// The stage stores no packets itself. A packet's departure depends only on when the upstream
/// stages release it, so polling early, late or often changes nothing: the law of slicing, which
/// every stage obeys (see [`Path`]).
#[derive(Debug)]
pub struct Outage<P> {
    upstream: P,
    period: Duration,
    length: Duration,
}

impl<P: Path> Outage<P> {
    /// Interrupts the packets that leave `upstream`; `length` must be shorter than `period`.
    pub fn new(upstream: P, period: Duration, length: Duration) -> Self {
        assert!(length < period, "an outage without end");
        Self { upstream, period, length }
    }

    /// The outage that contains `at`: its first instant, and the first instant after it.
    fn around(&self, at: Instant) -> Option<(Instant, Instant)> {
        let start = at.checked_sub(Duration::from_nanos(at.as_nanos() % self.period.as_nanos()))?;
        let end = start + self.length;
        (at < end).then_some((start, end))
    }

    fn leaves(&self, at: Instant) -> Instant {
        self.around(at).map_or(at, |(_, end)| end)
    }
}

impl<P: Path> Path for Outage<P> {
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        self.upstream.enqueue(now, packet);
    }

    fn next_event(&self) -> Option<Instant> {
        Some(self.leaves(self.upstream.next_event()?))
    }

    fn poll(&mut self, now: Instant) -> Option<Departure> {
        // During an outage, only packets that left before it.
        let until = match self.around(now) {
            Some((start, _)) => start.checked_sub(Duration::from_nanos(1))?,
            None => now,
        };
        let Departure { at, packet } = self.upstream.poll(until)?;
        Some(Departure { at: self.leaves(at), packet })
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

#[cfg(test)]
mod tests {
    use airpath_base::{Ecn, FlowId, Payload, Tunnel};
    use airpath_path::Wire;

    use super::*;

    const PACKETS: u64 = 100;

    /// Sends a packet every 3 ms through an outage of 20 ms in every 100 ms, polling every `step`.
    /// Returns the departure times in milliseconds.
    fn departures(step: Duration) -> Vec<u64> {
        let mut path =
            Outage::new(Wire::new(), Duration::from_millis(100), Duration::from_millis(20));
        let mut found = Vec::new();
        let mut take = |path: &mut Outage<Wire>, now| {
            while let Some(Departure { at, .. }) = path.poll(now) {
                found.push(at.as_nanos() / 1_000_000);
            }
        };
        for number in 0..PACKETS {
            let now = Instant::ZERO + Duration::from_millis(3 * number);
            let packet = Packet {
                flow: FlowId(0),
                size: 1500,
                ecn: Ecn::NotEct,
                tunnel: Tunnel::default(),
                journey: None,
                payload: Payload::Opaque(number),
            };
            path.enqueue(now, &packet);
            if (3 * number).is_multiple_of(step.as_nanos() / 1_000_000) {
                take(&mut path, now);
            }
        }
        take(&mut path, Instant::ZERO + Duration::from_secs(1));
        found
    }

    #[test]
    fn what_meets_an_outage_leaves_at_its_end() {
        let expected: Vec<u64> = (0..PACKETS)
            .map(|number| 3 * number)
            .map(|at| if at % 100 < 20 { at / 100 * 100 + 20 } else { at })
            .collect();
        assert_eq!(departures(Duration::from_millis(3)), expected);
    }

    #[test]
    fn polling_seldom_yields_the_same() {
        let often = departures(Duration::from_millis(3));
        assert_eq!(departures(Duration::from_millis(21)), often);
        assert_eq!(departures(Duration::from_secs(100)), often);
    }
}
