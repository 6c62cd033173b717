//! A USB modem's driver: packets cross the bus in blocks.
//!
//! A block is a transfer of several packets: an NTB of CDC NCM (USB NCM 1.0 3.2) and MBIM, or a
//! QMAP aggregate. The driver waits for more packets until the block is full or a timer has expired,
//! and sends it when the bus is free. While it is not, the block goes on growing. This is a server
//! with bulk service (Bailey 1954).

use std::collections::VecDeque;

use airpath_base::{Drop, DropReason, Instant, Packet};
use airpath_queue::Load;

use crate::{Departure, LinkMeter, ModemConfig, Path};

/// A modem's driver. Packets wait until a block is full or its timer has expired, and until the bus
/// is free. Then they cross the bus together.
#[derive(Debug)]
pub(crate) struct Modem<P> {
    pub(crate) upstream: P,
    config: ModemConfig,
    /// When the transfer of the previous block ends.
    free: Instant,
    waiting: VecDeque<Departure>,
    /// The first of the packets that wait.
    block: Block,
    /// Packets whose transfer has begun, with the time at which it ends.
    sent: VecDeque<Departure>,
    load: Load,
    stage: u32,
    drops: VecDeque<Drop>,
}

/// The next block, as far as it has arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    packets: usize,
    bytes: u64,
    /// When the packet arrived that filled the block, or that did not fit.
    full: Option<Instant>,
}

impl<P: Path> Modem<P> {
    /// The `stage`-th stage of its direction, after `upstream`.
    pub(crate) fn new(upstream: P, config: &ModemConfig, stage: u32) -> Self {
        Self {
            upstream,
            config: config.clone(),
            free: Instant::ZERO,
            waiting: VecDeque::new(),
            block: Block::default(),
            sent: VecDeque::new(),
            load: Load::default(),
            stage,
            drops: VecDeque::new(),
        }
    }

    fn advance(&mut self, now: Instant) {
        while let Some(arrival) = self.upstream.poll(now) {
            self.send(arrival.at);
            self.admit(arrival);
        }
        self.send(now);
    }

    fn admit(&mut self, arrival: Departure) {
        let Departure { at, packet } = arrival;
        if self.config.ring_packets.is_some_and(|most| self.waiting.len() >= most as usize) {
            let (stage, reason) = (self.stage, DropReason::RingFull);
            self.drops.push_back(Drop { at, packet, stage, reason });
            return;
        }
        self.load.add(&packet);
        self.waiting.push_back(arrival);
        self.fill();
    }

    /// Fills the block from the packets that wait.
    fn fill(&mut self) {
        let (block, config) = (&mut self.block, &self.config);
        let most = u64::from(config.block_bytes);
        while block.full.is_none()
            && let Some(&Departure { at, packet }) = self.waiting.get(block.packets)
        {
            let bytes = block.bytes + u64::from(packet.size);
            // A packet that is larger than a block has one to itself.
            if bytes <= most || block.packets == 0 {
                (block.packets, block.bytes) = (block.packets + 1, bytes);
            }
            let is_full = bytes >= most || block.packets >= config.block_packets as usize;
            block.full = is_full.then_some(at);
        }
    }

    /// When the next block leaves, as far as its packets have arrived.
    fn start(&self) -> Option<Instant> {
        let expires = self.waiting.front()?.at + self.config.timer;
        Some(self.free.max(self.block.full.map_or(expires, |full| full.min(expires))))
    }

    /// Begins the transfers that are due by `until`. A packet that arrives as the timer expires, or
    /// as the bus becomes free, misses the block.
    fn send(&mut self, until: Instant) {
        while let Some(start) = self.start().filter(|&start| start <= until) {
            let arrived = |packets: &usize| self.waiting[*packets - 1].at < start;
            let expires = self.waiting[0].at + self.config.timer;
            let whole = self.block.full.is_some_and(|full| full < start) || expires > start;
            let packets = match self.block.packets {
                all if whole => all,
                all => (1..=all).rev().find(arrived).unwrap_or(1),
            };
            let at = start + self.config.transfer;
            self.sent.extend(self.waiting.drain(..packets).map(|one| Departure { at, ..one }));
            self.free = at;
            self.block = Block::default();
            self.fill();
        }
    }
}

impl<P: Path> Path for Modem<P> {
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        self.upstream.enqueue(now, packet);
    }

    fn next_event(&self) -> Option<Instant> {
        let sent = self.sent.front().map(|departure| departure.at);
        // A packet still upstream may fill the block before its timer expires.
        sent.or_else(|| self.start().into_iter().chain(self.upstream.next_event()).min())
    }

    fn poll(&mut self, now: Instant) -> Option<Departure> {
        self.advance(now);
        if self.sent.front()?.at > now {
            return None;
        }
        let departure = self.sent.pop_front()?;
        self.load.remove(&departure.packet);
        Some(departure)
    }

    fn poll_drop(&mut self) -> Option<Drop> {
        self.upstream.poll_drop().or_else(|| self.drops.pop_front())
    }

    fn load(&self) -> Load {
        self.upstream.load() + self.load
    }

    fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&LinkMeter)) {
        self.upstream.observe(now, visit);
    }
}
