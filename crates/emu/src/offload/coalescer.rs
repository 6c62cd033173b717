//! Packets that leave for one end at the same time: consecutive segments of one connection are
//! passed to the kernel as one, as a card with receive offload would deliver them.

use std::io::IoSlice;

use airpath_base::{FlowId, Histogram, Instant};

use crate::device::slab::Slab;
use crate::offload::segments::{BATCH_SEGMENTS, GsoBatch};
use crate::wire::packet::Offload;
use crate::{Clock, Port};

/// Most connections whose segments are held together at a time.
const BATCHES: usize = 8;

/// Packets to be written now.
#[derive(Debug)]
pub(crate) struct Coalescer {
    /// Bytes of a batch, IP header included; 0: every packet is written alone.
    limit: usize,
    held: Vec<Held>,
    /// Lists for reuse.
    spare: Vec<Vec<Departing>>,
}

#[derive(Debug)]
struct Held {
    flow: FlowId,
    batch: GsoBatch,
    packets: Vec<Departing>,
}

/// A packet and its logical time of departure.
#[derive(Clone, Copy, Debug)]
struct Departing {
    slot: u32,
    at: Instant,
}

/// Where packets are written, and what is recorded meanwhile.
pub(crate) struct Writing<'a> {
    pub(crate) port: &'a Port,
    pub(crate) clock: &'a Clock,
    pub(crate) slab: &'a mut Slab,
    pub(crate) written: &'a mut Written,
}

/// What was written in one direction.
#[derive(Debug)]
pub(crate) struct Written {
    /// Time of writing minus logical time.
    pub(crate) lateness: Histogram,
    pub(crate) packets: u64,
    /// Number of writes to the device.
    pub(crate) writes: u64,
    /// Packets that the kernel refused.
    pub(crate) refused: u64,
}

impl Coalescer {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: limit.min(65_535), held: Vec::new(), spare: Vec::new() }
    }

    /// A packet leaves; it is written now or with [`flush`](Self::flush), and keeps its slot until
    /// then.
    #[inline]
    pub(crate) fn push(&mut self, flow: FlowId, slot: u32, at: Instant, to: &mut Writing<'_>) {
        let departing = Departing { slot, at };
        let offload = Offload::single(to.slab.checksum(slot));
        let place = self.held.iter().position(|held| held.flow == flow);
        if let Some(place) = place {
            let held = &mut self.held[place];
            let (first, packet) = (to.slab.bytes(held.packets[0].slot), to.slab.bytes(slot));
            if held.packets.len() < BATCH_SEGMENTS
                && to.slab.link(held.packets[0].slot) == to.slab.link(slot)
                && held.batch.add(first, packet, offload, self.limit)
            {
                held.packets.push(departing);
                return;
            }
            self.release(place, to);
        }
        let batch = GsoBatch::begin(to.slab.bytes(slot), offload).filter(|_| self.limit > 0);
        let Some(batch) = batch else {
            to.write(&[departing], offload);
            return;
        };
        if self.held.len() == BATCHES {
            self.release(0, to);
        }
        let mut packets = self.spare.pop().unwrap_or_default();
        packets.push(departing);
        self.held.push(Held { flow, batch, packets });
    }

    /// Writes everything that is held.
    #[inline]
    pub(crate) fn flush(&mut self, to: &mut Writing<'_>) {
        while !self.held.is_empty() {
            self.release(0, to);
        }
    }

    fn release(&mut self, place: usize, to: &mut Writing<'_>) {
        let Held { batch, mut packets, .. } = self.held.remove(place);
        let last = packets[packets.len() - 1].slot;
        let last_flags = batch.flags(to.slab.bytes(last));
        let offload = Offload::single(to.slab.checksum(packets[0].slot));
        let offload = batch.finish(to.slab.packet(packets[0].slot), last_flags, offload);
        to.write_batch(&packets, batch.header_bytes(), offload);
        packets.clear();
        self.spare.push(packets);
    }
}

impl Writing<'_> {
    fn write(&mut self, packets: &[Departing], offload: Offload) {
        self.write_batch(packets, 0, offload);
    }

    /// Writes the first packet, and the payload of the others.
    fn write_batch(&mut self, packets: &[Departing], header_bytes: usize, offload: Offload) {
        let said = offload.bytes();
        let mut parts = [IoSlice::new(&[]); BATCH_SEGMENTS + 1];
        parts[0] = IoSlice::new(&said);
        for (index, packet) in packets.iter().enumerate() {
            let bytes = self.slab.bytes(packet.slot);
            let from = if index == 0 { 0 } else { header_bytes };
            parts[index + 1] = IoSlice::new(&bytes[from..]);
        }
        let now = self.clock.now();
        let link = self.slab.link(packets[0].slot);
        let result = self.port.write(link, &parts[..=packets.len()]);
        let written = &mut *self.written;
        written.writes += 1;
        written.packets += packets.len() as u64;
        written.refused += if result.is_err() { packets.len() as u64 } else { 0 };
        for packet in packets {
            written.lateness.record(now.saturating_since(packet.at));
        }
    }
}

impl Written {
    pub(crate) fn new() -> Self {
        Self { lateness: Histogram::new(), packets: 0, writes: 0, refused: 0 }
    }
}
