//! Where packets wait for their first transmission.

use std::collections::VecDeque;

use airpath_base::{DropReason, Duration, Ecn, Instant, Packet};

use super::config::{BufferConfig, CoDelConfig, Discipline, EcnCapable, EcnConfig};
use super::fq_codel::FqCoDel;
use super::sdus::Sdus;
use crate::Load;
use crate::codel::CoDel;

/// A bearer's buffer.
#[derive(Debug)]
pub(crate) struct Buffer {
    packet_limit: Option<u32>,
    byte_limit: Option<u64>,
    /// discardTimer.
    discard: Option<Duration>,
    /// No packet is discarded before this; of no meaning while it is empty.
    next_discard: Option<Instant>,
    queues: Queues,
    load: Load,
    marker: Marker,
}

#[derive(Debug)]
enum Queues {
    One(FlowQueue),
    Many(FqCoDel),
}

impl Buffer {
    pub(crate) fn new(config: &BufferConfig, discard: Option<Duration>) -> Self {
        let queues = match config.discipline {
            Discipline::DropTail => Queues::One(FlowQueue::new(None)),
            Discipline::CoDel(codel) => Queues::One(FlowQueue::new(Some(&codel))),
            Discipline::FqCoDel { codel, quantum, isolation } => {
                Queues::Many(FqCoDel::new(codel, quantum, isolation))
            }
        };
        Self {
            packet_limit: config.packets,
            byte_limit: config.bytes,
            discard,
            next_discard: None,
            queues,
            load: Load::default(),
            marker: Marker { config: config.ecn, marked: 0 },
        }
    }

    /// What waits.
    pub(crate) const fn load(&self) -> Load {
        self.load
    }

    /// Packets marked CE so far.
    pub(crate) const fn marked(&self) -> u64 {
        self.marker.marked
    }

    /// A packet, already counted as inside, enters or is dropped.
    #[inline]
    pub(crate) fn push(&mut self, now: Instant, packet: Packet, sdus: &mut Sdus) {
        if self.load.packets == 0 {
            self.next_discard = self.discard.map(|discard| now + discard);
        }
        match &mut self.queues {
            Queues::One(queue) => {
                let mut after = self.load;
                after.add(&packet);
                if exceeds(after, self.packet_limit, self.byte_limit) {
                    sdus.drop(now, packet, DropReason::QueueFull);
                    return;
                }
                self.load = after;
                queue.push(now, packet);
            }
            Queues::Many(queues) => {
                self.load.add(&packet);
                queues.push(now, packet);
                while exceeds(self.load, self.packet_limit, self.byte_limit) {
                    queues.shorten(now, &mut self.load, sdus);
                }
            }
        }
    }

    /// Hands the next packet to send, as the discipline says, to `send`.
    #[inline]
    pub(crate) fn pop<T>(
        &mut self,
        now: Instant,
        sdus: &mut Sdus,
        send: impl FnOnce(&Waiting, &mut Sdus) -> T,
    ) -> Option<T> {
        if self.load.packets == 0 {
            return None;
        }
        let waiting = match &mut self.queues {
            Queues::One(queue)
                if queue.codel.is_none() && self.marker.config.l4s_step.is_none() =>
            {
                // Nothing can happen to it here: it is copied once.
                let head = queue.ring.front()?;
                let sent = send(head, sdus);
                self.load.remove(&head.packet);
                queue.pop_head();
                return Some(sent);
            }
            Queues::One(queue) => queue.pop(now, &mut self.marker, &mut self.load, sdus),
            Queues::Many(queues) => queues.pop(now, &mut self.marker, &mut self.load, sdus),
        };
        waiting.map(|waiting| send(&waiting, sdus))
    }

    /// When a packet may have to be discarded. It may turn out to have left in time.
    pub(crate) fn next_discard(&self) -> Option<Instant> {
        if self.load.packets == 0 { None } else { self.next_discard }
    }

    /// Drops what has waited for the discard timer's time (TS 38.323 5.3, TS 36.323 5.4).
    pub(crate) fn discard(&mut self, now: Instant, sdus: &mut Sdus) {
        let Some(discard) = self.discard else { return };
        let oldest = match &mut self.queues {
            Queues::One(queue) => queue.discard(now, discard, &mut self.load, sdus),
            Queues::Many(queues) => queues.discard(now, discard, &mut self.load, sdus),
        };
        self.next_discard = oldest.map(|arrived| arrived + discard);
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self, now: Instant, reason: DropReason, sdus: &mut Sdus) {
        let mut clear = |queue: &mut FlowQueue| {
            while let Some(packet) = queue.pop_head() {
                sdus.drop(now, packet, reason);
            }
        };
        match &mut self.queues {
            Queues::One(queue) => clear(queue),
            Queues::Many(queues) => queues.each(clear),
        }
        self.load = Load::default();
        self.next_discard = None;
    }
}

fn exceeds(load: Load, packets: Option<u32>, bytes: Option<u64>) -> bool {
    packets.is_some_and(|limit| load.packets > u64::from(limit))
        || bytes.is_some_and(|limit| load.bytes > limit)
}

/// First in, first out, with or without CoDel.
#[derive(Debug)]
pub(crate) struct FlowQueue {
    ring: VecDeque<Waiting>,
    bytes: u64,
    codel: Option<CoDel>,
}

/// A packet, and when it entered the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) packet: Packet,
    pub(crate) arrived: Instant,
}

impl FlowQueue {
    pub(crate) fn new(codel: Option<&CoDelConfig>) -> Self {
        let codel = codel.map(|config| CoDel::new(config.target, config.interval));
        Self { ring: VecDeque::new(), bytes: 0, codel }
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn packets(&self) -> usize {
        self.ring.len()
    }

    #[inline]
    pub(crate) fn push(&mut self, now: Instant, packet: Packet) {
        self.bytes += u64::from(packet.size);
        self.ring.push_back(Waiting { packet, arrived: now });
    }

    /// Takes the head, whatever CoDel would say.
    #[inline]
    pub(crate) fn pop_head(&mut self) -> Option<Packet> {
        let head = self.ring.pop_front()?;
        self.bytes -= u64::from(head.packet.size);
        Some(head.packet)
    }

    #[inline]
    pub(crate) fn pop(
        &mut self,
        now: Instant,
        marker: &mut Marker,
        load: &mut Load,
        sdus: &mut Sdus,
    ) -> Option<Waiting> {
        while let Some(mut head) = self.ring.pop_front() {
            self.bytes -= u64::from(head.packet.size);
            load.remove(&head.packet);
            let sojourn = now.saturating_since(head.arrived);
            let is_l4s = marker.step(&mut head.packet, sojourn);
            let Some(codel) = &mut self.codel else { return Some(head) };
            if is_l4s || !codel.drops_head(now, sojourn, self.bytes) {
                return Some(head);
            }
            if marker.mark_instead(&mut head.packet) {
                codel.marked_instead();
                return Some(head);
            }
            sdus.drop(now, head.packet, DropReason::Aqm);
        }
        self.codel.iter_mut().for_each(CoDel::emptied);
        None
    }

    /// Drops the packets that arrived `discard` ago or earlier; returns the oldest arrival left.
    pub(crate) fn discard(
        &mut self,
        now: Instant,
        discard: Duration,
        load: &mut Load,
        sdus: &mut Sdus,
    ) -> Option<Instant> {
        while let Some(arrived) = self.ring.front().map(|head| head.arrived) {
            if arrived + discard > now {
                return Some(arrived);
            }
            let packet = self.pop_head()?;
            load.remove(&packet);
            sdus.drop(arrived + discard, packet, DropReason::Discarded);
        }
        None
    }
}

/// Marks packets, and counts them.
#[derive(Debug)]
pub(crate) struct Marker {
    config: EcnConfig,
    marked: u64,
}

impl Marker {
    /// L4S: true if the packet is the step's business, marked or not (RFC 9331 5.2: an ECT(1)
    /// packet is marked far more often than a classic one).
    #[inline]
    fn step(&mut self, packet: &mut Packet, sojourn: Duration) -> bool {
        let Some(step) = self.config.l4s_step else { return false };
        if packet.ecn != Ecn::Ect1 {
            return false;
        }
        if sojourn > step {
            self.mark(packet);
        }
        true
    }

    /// RFC 8290 4.2: an ECN-capable packet is marked where another would be dropped.
    fn mark_instead(&mut self, packet: &mut Packet) -> bool {
        let capable = self.config.codel == EcnCapable::Marked && packet.ecn != Ecn::NotEct;
        if capable {
            self.mark(packet);
        }
        capable
    }

    fn mark(&mut self, packet: &mut Packet) {
        self.marked += u64::from(packet.ecn != Ecn::Ce);
        packet.ecn = Ecn::Ce;
    }
}
