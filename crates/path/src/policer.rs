//! A policer: packets for which a token bucket holds too few tokens are dropped or marked at once.

use std::collections::VecDeque;

use airpath_base::{Drop, DropReason, Ecn, Instant, Packet};
use airpath_queue::Load;

use crate::{Departure, Excess, LinkMeter, Path, PolicerConfig};
use airpath_queue::TokenBucket;

/// Passes what conforms to its rate and burst, without delay.
///
/// An aggregate maximum bit rate (TS 23.501 5.7.2.6) can be enforced this way, or by a
/// [`Link`](crate::Link) with a bucket, which queues.
#[derive(Debug)]
pub struct Policer<P> {
    upstream: P,
    bucket: TokenBucket,
    excess: Excess,
    stage: u32,
    drops: VecDeque<Drop>,
}

impl<P: Path> Policer<P> {
    /// The `stage`-th stage of its direction: polices what leaves `upstream`.
    pub fn new(upstream: P, config: &PolicerConfig, stage: u32) -> Self {
        let bucket = TokenBucket::new(config.rate, config.burst);
        Self { upstream, bucket, excess: config.excess, stage, drops: VecDeque::new() }
    }

    /// The packet as it passes; `None` if it is dropped.
    fn police(&mut self, at: Instant, packet: Packet) -> Option<Packet> {
        if self.bucket.take(at, packet.wire_size()) {
            return Some(packet);
        }
        match (self.excess, packet.ecn) {
            // RFC 3168 5: mark instead of dropping, if the endpoints support ECN.
            (Excess::Mark, Ecn::Ect0 | Ecn::Ect1 | Ecn::Ce) => {
                Some(Packet { ecn: Ecn::Ce, ..packet })
            }
            (Excess::Mark, Ecn::NotEct) | (Excess::Drop, _) => None,
        }
    }
}

impl<P: Path> Path for Policer<P> {
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        self.upstream.enqueue(now, packet);
    }

    fn next_event(&self) -> Option<Instant> {
        self.upstream.next_event()
    }

    fn poll(&mut self, now: Instant) -> Option<Departure> {
        loop {
            let Departure { at, packet } = self.upstream.poll(now)?;
            if let Some(packet) = self.police(at, packet) {
                return Some(Departure { at, packet });
            }
            let (stage, reason) = (self.stage, DropReason::Policed);
            self.drops.push_back(Drop { at, packet, stage, reason });
        }
    }

    fn poll_drop(&mut self) -> Option<Drop> {
        self.upstream.poll_drop().or_else(|| self.drops.pop_front())
    }

    fn load(&self) -> Load {
        self.upstream.load()
    }

    fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&LinkMeter)) {
        self.upstream.observe(now, visit);
    }
}
