//! One queue of a buffer: first in, first out, with CoDel and marking if configured.

use std::collections::VecDeque;

use airpath_base::{DropReason, Duration, Ecn, Instant, Packet};
use airpath_queue::{CoDel, Load};

use super::config::{CoDelConfig, EcnCapable, EcnConfig};
use super::sdus::{Sdus, Waiting};

/// First in, first out, with or without CoDel.
#[derive(Debug)]
pub(super) struct FlowQueue {
    ring: VecDeque<Waiting>,
    bytes: u64,
    codel: Option<CoDel>,
}

impl FlowQueue {
    pub(super) fn new(codel: Option<&CoDelConfig>) -> Self {
        let codel = codel.map(|config| CoDel::new(config.target, config.interval));
        Self { ring: VecDeque::new(), bytes: 0, codel }
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn packets(&self) -> usize {
        self.ring.len()
    }

    #[inline]
    pub(super) fn push(&mut self, now: Instant, packet: &Packet) {
        self.bytes += u64::from(packet.size);
        self.ring.push_back(Waiting { packet: *packet, arrived: now });
    }

    /// Takes the head, without consulting CoDel.
    #[inline]
    pub(super) fn pop_head(&mut self) -> Option<Packet> {
        let head = self.ring.pop_front()?;
        self.bytes -= u64::from(head.packet.size);
        Some(head.packet)
    }

    #[inline]
    pub(super) fn pop(
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
    pub(super) fn discard(
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
pub(super) struct Marker {
    config: EcnConfig,
    marked: u64,
}

impl Marker {
    pub(super) const fn new(config: EcnConfig) -> Self {
        Self { config, marked: 0 }
    }

    pub(super) const fn marked(&self) -> u64 {
        self.marked
    }

    /// L4S: returns true if the packet is subject to the step, whether it is marked or not (RFC
    /// 9331 5.2: an ECT(1) packet is marked far more often than a classic one).
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

    /// RFC 8290 4.2: marks an ECN-capable packet where another would be dropped.
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
