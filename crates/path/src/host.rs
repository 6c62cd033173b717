//! A host that forwards packets in software, on a CPU that a hypervisor takes away at times.
//!
//! The two directions of a host may share its CPU ([`shared`](crate::shared)).

use std::collections::VecDeque;

use airpath_base::{Drop, DropReason, Duration, Instant, Packet, Stream};
use airpath_queue::Load;

use crate::delay::draw;
use crate::{Departure, HostConfig, LinkMeter, Path, Stalls};

/// A host with a CPU of its own for this direction.
#[derive(Debug)]
pub(crate) struct Host<P> {
    pub(crate) upstream: P,
    cpu: Cpu,
    ring: Ring,
}

/// A CPU that processes packets one after another, while no hypervisor takes it away.
#[derive(Debug)]
pub(crate) struct Cpu {
    away: Away,
    /// When the CPU becomes idle.
    busy_until: Instant,
}

/// Packets wait in a receive ring for an interrupt, then for the CPU, which takes them one after
/// another until the ring is empty. While the CPU is away nothing happens; what arrived meanwhile
/// leaves in a burst.
///
/// A packet whose processing was interrupted continues where it stopped. The fate of a packet is
/// decided when it arrives: later arrivals do not change it.
#[derive(Debug)]
pub(crate) struct Ring {
    processing: Duration,
    coalescing: Duration,
    ring_packets: u64,
    inside: VecDeque<Entry>,
    /// Entries before this index had been taken by the CPU when the last packet arrived.
    taken: usize,
    load: Load,
    stage: u32,
    drops: VecDeque<Drop>,
}

#[derive(Debug)]
struct Entry {
    /// When the CPU takes it out of the ring.
    taken: Instant,
    departure: Departure,
}

impl Cpu {
    /// A CPU with these stalls; random ones are drawn from `stream`.
    pub(crate) fn new(stalls: Stalls, stream: Stream) -> Self {
        Self { away: Away::new(stalls, stream), busy_until: Instant::ZERO }
    }
}

impl Ring {
    /// The ring of the `stage`-th stage of its direction.
    pub(crate) fn new(config: &HostConfig, stage: u32) -> Self {
        Self {
            processing: config.processing,
            coalescing: config.coalescing,
            ring_packets: config.ring_packets.map_or(u64::MAX, u64::from),
            inside: VecDeque::new(),
            taken: 0,
            load: Load::default(),
            stage,
            drops: VecDeque::new(),
        }
    }

    /// Admits a packet that `cpu` will process, or drops it if the ring is full.
    pub(crate) fn admit(&mut self, cpu: &mut Cpu, at: Instant, packet: Packet) {
        while self.inside.get(self.taken).is_some_and(|entry| entry.taken <= at) {
            self.taken += 1;
        }
        if (self.inside.len() - self.taken) as u64 >= self.ring_packets {
            let (stage, reason) = (self.stage, DropReason::RingFull);
            self.drops.push_back(Drop { at, packet, stage, reason });
            return;
        }
        // At equal times the CPU becomes idle before the packet arrives.
        let ready = if cpu.busy_until <= at { at + self.coalescing } else { cpu.busy_until };
        let taken = cpu.away.back_at(ready);
        let done = cpu.away.work(taken, self.processing);
        cpu.busy_until = done;
        self.load.add(&packet);
        self.inside.push_back(Entry { taken, departure: Departure { at: done, packet } });
    }

    /// When the next packet leaves; `None` if the ring is empty.
    pub(crate) fn next_departure(&self) -> Option<Instant> {
        self.inside.front().map(|entry| entry.departure.at)
    }

    /// The next packet that has left by `now`.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Departure> {
        if self.next_departure()? > now {
            return None;
        }
        let entry = self.inside.pop_front()?;
        self.taken = self.taken.saturating_sub(1);
        self.load.remove(&entry.departure.packet);
        Some(entry.departure)
    }

    /// The next packet that found the ring full.
    pub(crate) fn poll_drop(&mut self) -> Option<Drop> {
        self.drops.pop_front()
    }

    /// The packets that have not left yet.
    pub(crate) fn load(&self) -> Load {
        self.load
    }
}

impl<P: Path> Host<P> {
    /// The `stage`-th stage of its direction, after `upstream`; random stalls are drawn from
    /// `stream`.
    pub(crate) fn new(upstream: P, config: &HostConfig, stream: Stream, stage: u32) -> Self {
        let (cpu, ring) = (Cpu::new(config.stalls, stream), Ring::new(config, stage));
        Self { upstream, cpu, ring }
    }

    fn pull(&mut self, until: Instant) {
        while let Some(Departure { at, packet }) = self.upstream.poll(until) {
            self.ring.admit(&mut self.cpu, at, packet);
        }
    }
}

impl<P: Path> Path for Host<P> {
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        self.upstream.enqueue(now, packet);
    }

    fn next_event(&self) -> Option<Instant> {
        // Nothing overtakes: packets still upstream change nothing before that time.
        self.ring.next_departure().or_else(|| self.upstream.next_event())
    }

    fn poll(&mut self, now: Instant) -> Option<Departure> {
        self.pull(now);
        self.ring.poll(now)
    }

    fn poll_drop(&mut self) -> Option<Drop> {
        self.upstream.poll_drop().or_else(|| self.ring.poll_drop())
    }

    fn load(&self) -> Load {
        self.upstream.load() + self.ring.load()
    }

    fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&LinkMeter)) {
        self.upstream.observe(now, visit);
    }
}

/// The sequence of stalls; times asked about must never decrease.
#[derive(Debug)]
struct Away {
    stalls: Stalls,
    stream: Stream,
    /// The first stall that ends after the last time asked about; `None` if there are no more.
    current: Option<Stall>,
}

/// A stall, [from, until).
#[derive(Clone, Copy, Debug)]
struct Stall {
    from: Instant,
    until: Instant,
}

impl Away {
    fn new(stalls: Stalls, mut stream: Stream) -> Self {
        let current = match stalls {
            Stalls::None => None,
            Stalls::Periodic { offset, duration, .. } => {
                Some(Stall { from: offset, until: offset + duration })
            }
            Stalls::Random { .. } => Some(Stall::random(stalls, Instant::ZERO, &mut stream)),
        };
        Self { stalls, stream, current }
    }

    /// The first time from `at` on at which the CPU is available.
    fn back_at(&mut self, at: Instant) -> Instant {
        self.skip_to(at);
        match self.current {
            Some(stall) if stall.from <= at => stall.until,
            _ => at,
        }
    }

    /// When `time` on the CPU, which is available at `start`, has been used.
    fn work(&mut self, start: Instant, time: Duration) -> Instant {
        let (mut at, mut left) = (start, time);
        loop {
            self.skip_to(at);
            match self.current {
                Some(stall) if stall.from < at + left => {
                    left -= stall.from.saturating_since(at);
                    at = stall.until;
                }
                _ => return at + left,
            }
        }
    }

    fn skip_to(&mut self, at: Instant) {
        while let Some(stall) = self.current.filter(|stall| stall.until <= at) {
            self.current = match self.stalls {
                Stalls::None => None,
                Stalls::Periodic { period, .. } => {
                    // Skip to the last start not after `at`, even over a long time without packets.
                    let behind = at.saturating_since(stall.from).as_nanos();
                    let periods = (behind / period.as_nanos().max(1)).max(1);
                    let length = stall.until - stall.from;
                    let from = stall.from + period * periods;
                    // If that does not advance, the end of time is reached.
                    (from > stall.from).then_some(Stall { from, until: from + length })
                }
                Stalls::Random { .. } => {
                    let next = Stall::random(self.stalls, stall.until, &mut self.stream);
                    (next.from < Instant::MAX).then_some(next)
                }
            };
        }
    }
}

impl Stall {
    fn random(stalls: Stalls, after: Instant, stream: &mut Stream) -> Self {
        let Stalls::Random { mean_between, duration } = stalls else {
            unreachable!("only random stalls are drawn");
        };
        // Two draws per stall, whatever the configuration.
        let between = draw(crate::Distribution::Exponential { mean: mean_between }, stream);
        // A CPU that is never available would hold packets for ever.
        let from = after + between.max(Duration::from_nanos(1));
        Self { from, until: from + draw(duration, stream) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn every_100_for_30() -> Away {
        let (period, duration) = (Duration::from_millis(100), Duration::from_millis(30));
        let stalls = Stalls::Periodic { offset: ms(50), period, duration };
        Away::new(stalls, Stream::new(1, "host"))
    }

    #[test]
    fn a_stall_begins_with_its_first_instant_and_ends_before_its_last() {
        let mut away = every_100_for_30();
        let asked = [0, 49, 50, 79, 80, 100, 1060, 1080].map(|at| away.back_at(ms(at)));
        assert_eq!(asked, [0, 49, 80, 80, 80, 100, 1080, 1080].map(ms));
    }

    #[test]
    fn work_goes_on_after_a_stall() {
        let mut away = every_100_for_30();
        assert_eq!(away.work(ms(40), Duration::from_millis(10)), ms(50));
        let mut away = every_100_for_30();
        assert_eq!(away.work(ms(40), Duration::from_millis(11)), ms(81));
        let mut away = every_100_for_30();
        // 40 to 50, 80 to 150, 180 to 200.
        assert_eq!(away.work(ms(40), Duration::from_millis(100)), ms(200));
    }

    #[test]
    fn random_stalls_take_their_share_of_the_time() {
        let mean = Duration::from_millis(30);
        let stalls = Stalls::Random {
            mean_between: Duration::from_millis(70),
            duration: crate::Distribution::Exponential { mean },
        };
        let mut away = Away::new(stalls, Stream::new(5, "host"));
        let there = (0..2_000_000).filter(|at| away.back_at(ms(*at)) == ms(*at)).count();
        assert!((there as f64 / 2e6 - 0.7).abs() < 0.01, "{there}");
    }
}
