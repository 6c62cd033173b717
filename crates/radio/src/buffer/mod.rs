//! The buffer in which a bearer's packets wait for their first transmission, and what is known
//! about them until they are delivered or dropped (`sdus.rs`).

mod config;
mod flow_queue;
mod fq_codel;
mod sdus;

use airpath_base::{DropReason, Duration, Instant, Packet};
use airpath_queue::Load;

pub use airpath_queue::Isolation;
pub use config::{BufferConfig, CoDelConfig, Discipline, EcnCapable, EcnConfig};
use flow_queue::{FlowQueue, Marker};
use fq_codel::FqCoDel;
pub use sdus::Sojourn;
pub(crate) use sdus::{Fate, Sdus, Waiting};

/// A bearer's buffer.
#[derive(Debug)]
pub(crate) struct Buffer {
    packet_limit: Option<u32>,
    byte_limit: Option<u64>,
    /// discardTimer.
    discard: Option<Duration>,
    /// No packet is discarded before this time; undefined while the buffer is empty.
    next_discard: Option<Instant>,
    queues: Queues,
    load: Load,
    marker: Marker,
}

#[derive(Debug)]
enum Queues {
    /// First in, first out, without AQM: packets wait behind the [SDUs](Sdus).
    BehindSdus,
    One(FlowQueue),
    Many(FqCoDel),
}

impl Buffer {
    pub(crate) fn new(config: &BufferConfig, discard: Option<Duration>) -> Self {
        let queues = match config.discipline {
            Discipline::DropTail if discard.is_none() && config.ecn.l4s_step.is_none() => {
                Queues::BehindSdus
            }
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
            marker: Marker::new(config.ecn),
        }
    }

    /// Packets that wait.
    pub(crate) const fn load(&self) -> Load {
        self.load
    }

    /// Packets marked CE so far.
    pub(crate) const fn marked(&self) -> u64 {
        self.marker.marked()
    }

    /// A packet that is already counted as inside enters or is dropped.
    #[inline]
    pub(crate) fn push(&mut self, now: Instant, packet: &Packet, sdus: &mut Sdus) {
        if self.load.packets == 0 {
            self.next_discard = self.discard.map(|discard| now + discard);
        }
        let queue = match &mut self.queues {
            Queues::BehindSdus => None,
            Queues::One(queue) => Some(queue),
            Queues::Many(queues) => {
                self.load.add(packet);
                queues.push(now, packet);
                while exceeds(self.load, self.packet_limit, self.byte_limit) {
                    queues.shorten(now, &mut self.load, sdus);
                }
                return;
            }
        };
        let mut after = self.load;
        after.add(packet);
        if exceeds(after, self.packet_limit, self.byte_limit) {
            sdus.drop(now, *packet, DropReason::QueueFull);
            return;
        }
        self.load = after;
        match queue {
            None => sdus.wait(now, packet),
            Some(queue) => queue.push(now, packet),
        }
    }

    /// Whether packets wait behind the SDUs, where they can be prepared, too.
    #[inline]
    pub(crate) const fn is_behind_sdus(&self) -> bool {
        matches!(self.queues, Queues::BehindSdus)
    }

    /// For packets prepared [behind the SDUs](Self::is_behind_sdus): those that are due enter, or
    /// are dropped. Returns them.
    #[inline]
    pub(crate) fn admit_prepared(
        &mut self,
        sdus: &mut Sdus,
        is_due: impl Fn(Instant) -> bool,
    ) -> Load {
        let mut all = Load::default();
        loop {
            let before = self.load;
            sdus.admit_prepared(|at, packet| {
                let mut after = self.load;
                after.add(packet);
                let admits = is_due(at) && !exceeds(after, self.packet_limit, self.byte_limit);
                if admits {
                    self.load = after;
                }
                admits
            });
            all = all + (self.load - before);
            // A packet that is due and was not admitted has no room.
            match sdus.first_prepared().filter(|sdu| is_due(sdu.arrived)) {
                Some(sdu) => all.add(&sdu.packet),
                None => return all,
            }
            sdus.drop_prepared(DropReason::QueueFull);
        }
    }

    /// Begins the first transmission of the next packet, as chosen by the discipline: returns its
    /// COUNT, and its size with the header.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        header_bytes: u32,
        sdus: &mut Sdus,
    ) -> Option<(u64, u32)> {
        if self.load.packets == 0 {
            return None;
        }
        let waiting = match &mut self.queues {
            Queues::BehindSdus => return self.begin_behind_sdus(header_bytes, sdus),
            Queues::One(queue) => queue.pop(now, &mut self.marker, &mut self.load, sdus),
            Queues::Many(queues) => queues.pop(now, &mut self.marker, &mut self.load, sdus),
        }?;
        let size = waiting.packet.size + header_bytes;
        Some((sdus.push(&waiting, size), size))
    }

    /// Begins the first transmission of the next packet if packets wait [behind the
    /// SDUs](Self::is_behind_sdus).
    #[inline]
    pub(crate) fn begin_behind_sdus(
        &mut self,
        header_bytes: u32,
        sdus: &mut Sdus,
    ) -> Option<(u64, u32)> {
        let (count, sdu) = sdus.begin(header_bytes)?;
        self.load.remove(&sdu.packet);
        Some((count, sdu.size))
    }

    /// Begins the first transmission of all waiting packets except the last, as long as `takes`
    /// accepts them by COUNT and size with the header.
    #[inline]
    pub(crate) fn begin_run(
        &mut self,
        header_bytes: u32,
        sdus: &mut Sdus,
        takes: impl FnMut(u64, u32) -> bool,
    ) {
        if self.is_behind_sdus() {
            self.load = self.load - sdus.begin_run(header_bytes, takes);
        }
    }

    /// When a packet may have to be discarded; by then it may already have left.
    pub(crate) fn next_discard(&self) -> Option<Instant> {
        if self.load.packets == 0 { None } else { self.next_discard }
    }

    /// Drops packets whose discard timer has expired (TS 38.323 5.3, TS 36.323 5.4).
    pub(crate) fn discard(&mut self, now: Instant, sdus: &mut Sdus) {
        let Some(discard) = self.discard else { return };
        let oldest = match &mut self.queues {
            Queues::BehindSdus => None,
            Queues::One(queue) => queue.discard(now, discard, &mut self.load, sdus),
            Queues::Many(queues) => queues.discard(now, discard, &mut self.load, sdus),
        };
        self.next_discard = oldest.map(|arrived| arrived + discard);
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self, now: Instant, reason: DropReason, sdus: &mut Sdus) {
        let clear = |queue: &mut FlowQueue, sdus: &mut Sdus| {
            while let Some(packet) = queue.pop_head() {
                sdus.drop(now, packet, reason);
            }
        };
        match &mut self.queues {
            Queues::BehindSdus => sdus.drop_waiting(now, reason),
            Queues::One(queue) => clear(queue, sdus),
            Queues::Many(queues) => queues.each(|queue| clear(queue, sdus)),
        }
        self.load = Load::default();
        self.next_discard = None;
    }
}

fn exceeds(load: Load, packets: Option<u32>, bytes: Option<u64>) -> bool {
    packets.is_some_and(|limit| load.packets > u64::from(limit))
        || bytes.is_some_and(|limit| load.bytes > limit)
}
