//! Delay that does not depend on load: fixed, or random with or without overtaking.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use airpath_base::{Drop, Duration, Instant, Packet, Stream};
use airpath_queue::Load;

use crate::shift::Shift;
use crate::{Departure, Distribution, Jitter, LinkMeter, Path};

/// The same delay for every packet.
#[derive(Debug)]
pub(crate) struct Delay(pub(crate) Duration);

impl Shift for Delay {
    #[inline(always)]
    fn leaves(&self, at: Instant) -> Instant {
        at + self.0
    }

    #[inline(always)]
    fn arrived(&self, now: Instant) -> Option<Instant> {
        now.checked_sub(self.0)
    }
}

/// A random delay for each packet in addition to a fixed one.
#[derive(Debug)]
pub(crate) struct RandomDelay<P> {
    pub(crate) upstream: P,
    base: Duration,
    distribution: Distribution,
    stream: Stream,
    /// If packets of one instant get the same delay: the last such instant, and its delay.
    together: Option<(Instant, Duration)>,
    waiting: Waiting,
    load: Load,
}

#[derive(Debug)]
enum Waiting {
    /// Each packet waits for the one before it.
    InOrder(VecDeque<Departure>),
    /// Packets may overtake; ties leave in order of arrival.
    Free { heap: BinaryHeap<Reverse<Due>>, arrivals: u64 },
}

#[derive(Debug)]
struct Due {
    departure: Departure,
    arrival: u64,
}

impl<P: Path> RandomDelay<P> {
    /// Delays what leaves `upstream` by `base` plus a draw from `stream`.
    pub(crate) fn new(upstream: P, base: Duration, jitter: &Jitter, stream: Stream) -> Self {
        let waiting = if jitter.keep_order {
            Waiting::InOrder(VecDeque::new())
        } else {
            Waiting::Free { heap: BinaryHeap::new(), arrivals: 0 }
        };
        let distribution = jitter.distribution;
        // Before the first arrival there is no delay to share.
        let together = jitter.together.then_some((Instant::MAX, Duration::ZERO));
        Self { upstream, base, distribution, stream, together, waiting, load: Load::default() }
    }

    /// Takes in everything that left upstream by `until`.
    fn pull(&mut self, until: Instant) {
        while let Some(mut departure) = self.upstream.poll(until) {
            departure.at += self.base + self.draw(departure.at);
            self.load.add(&departure.packet);
            match &mut self.waiting {
                Waiting::InOrder(queue) => {
                    if let Some(last) = queue.back() {
                        departure.at = departure.at.max(last.at);
                    }
                    queue.push_back(departure);
                }
                Waiting::Free { heap, arrivals } => {
                    heap.push(Reverse(Due { departure, arrival: *arrivals }));
                    *arrivals += 1;
                }
            }
        }
    }

    fn draw(&mut self, arrived: Instant) -> Duration {
        if let Some((at, jitter)) = self.together
            && at == arrived
        {
            return jitter;
        }
        let jitter = draw(self.distribution, &mut self.stream);
        if let Some(together) = &mut self.together {
            *together = (arrived, jitter);
        }
        jitter
    }

    fn first(&self) -> Option<Instant> {
        match &self.waiting {
            Waiting::InOrder(queue) => queue.front().map(|departure| departure.at),
            Waiting::Free { heap, .. } => heap.peek().map(|due| due.0.departure.at),
        }
    }
}

impl<P: Path> Path for RandomDelay<P> {
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        self.upstream.enqueue(now, packet);
    }

    fn next_event(&self) -> Option<Instant> {
        // What is still upstream cannot leave before its departure there plus the fixed delay.
        let upstream = self.upstream.next_event().map(|at| at + self.base);
        match (self.first(), upstream) {
            (Some(own), Some(other)) => Some(own.min(other)),
            (own, other) => own.or(other),
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Departure> {
        self.pull(now.checked_sub(self.base)?);
        if self.first()? > now {
            return None;
        }
        let departure = match &mut self.waiting {
            Waiting::InOrder(queue) => queue.pop_front(),
            Waiting::Free { heap, .. } => heap.pop().map(|due| due.0.departure),
        }?;
        self.load.remove(&departure.packet);
        Some(departure)
    }

    fn poll_drop(&mut self) -> Option<Drop> {
        self.upstream.poll_drop()
    }

    fn load(&self) -> Load {
        self.upstream.load() + self.load
    }

    fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&LinkMeter)) {
        self.upstream.observe(now, visit);
    }
}

/// Draws a delay.
pub(crate) fn draw(distribution: Distribution, stream: &mut Stream) -> Duration {
    // `libm` rather than the platform's library: the result has the same bits on every machine.
    let scale =
        |length: Duration, factor: f64| Duration::from_secs_f64(length.as_secs_f64() * factor);
    match distribution {
        Distribution::Uniform { max } => scale(max, stream.unit()),
        Distribution::Exponential { mean } => scale(mean, -libm::log(1.0 - stream.unit())),
        Distribution::HalfNormal { sd } => {
            // Box-Muller; one of the pair is used.
            let radius = libm::sqrt(-2.0 * libm::log(1.0 - stream.unit()));
            let angle = 2.0 * core::f64::consts::PI * stream.unit();
            scale(sd, (radius * libm::cos(angle)).abs())
        }
    }
}

impl Due {
    fn key(&self) -> (Instant, u64) {
        (self.departure.at, self.arrival)
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_ms(distribution: Distribution) -> f64 {
        let mut stream = Stream::new(1, "test");
        let total: f64 = (0..20_000).map(|_| draw(distribution, &mut stream).as_millis_f64()).sum();
        total / 20_000.0
    }

    #[test]
    fn distributions_have_their_means() {
        let ten = Duration::from_millis(10);
        assert!((mean_ms(Distribution::Uniform { max: ten }) - 5.0).abs() < 0.1);
        assert!((mean_ms(Distribution::Exponential { mean: ten }) - 10.0).abs() < 0.2);
        // sd * sqrt(2 / pi)
        assert!((mean_ms(Distribution::HalfNormal { sd: ten }) - 7.979).abs() < 0.15);
    }
}
