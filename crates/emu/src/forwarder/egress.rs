//! Egress: packets from the model to a device, and drops.

use std::hint::black_box;

use airpath_base::{Direction, Ecn, FlowId, Instant, Packet, Payload};
use airpath_network::{Destination, HopDeparture};

use super::{End, Forwarder, Left, direction_from};
use crate::observation::journal::Entry;
use crate::offload::coalescer::Writing;
use crate::wire::header;
use crate::wire::packet::complete;

/// Size of a line of the cache in bytes.
const CACHE_LINE: usize = 64;

impl Forwarder {
    /// Delivers packets that are due.
    #[inline]
    pub(super) fn deliver(&mut self, now: Instant) {
        if let Some(journal) = &mut self.journal {
            journal.asked(now);
        }
        self.let_out(now);
        for index in 0..self.left.len() {
            let Left { at, direction, end, flow, slot } = self.left[index];
            let counts = &mut self.counts[direction];
            counts.note_slot(self.slot, at, now);
            let End { device, coalescer, .. } = &mut self.ends[end];
            let port = &self.devices[*device].port;
            let (clock, slab, written) = (&self.clock, &mut self.slab, &mut counts.written);
            coalescer.push(flow, slot, at, &mut Writing { port, clock, slab, written });
        }
        for (end, End { device, coalescer, .. }) in self.ends.iter_mut().enumerate() {
            let written = &mut self.counts[direction_from(end).reverse()].written;
            let port = &self.devices[*device].port;
            let (clock, slab) = (&self.clock, &mut self.slab);
            coalescer.flush(&mut Writing { port, clock, slab, written });
        }
        if let Some(tunnel) = &mut self.tunnel {
            tunnel.flush(&self.clock, &mut self.slab);
        }
        self.count_out();
        self.drain_drops();
        debug_assert_eq!(
            self.slab.occupied() as u64,
            self.network.load().packets,
            "what is in the slab is inside the network"
        );
    }

    /// Takes packets that are due out of the model.
    #[inline]
    fn let_out(&mut self, now: Instant) {
        while let Some((direction, HopDeparture { at, packet, .. })) = self.poll(now) {
            let Payload::Opaque(handle) = packet.payload else { continue };
            let (slot, flow) = (handle as u32, packet.flow);
            if packet.ecn == Ecn::Ce {
                self.counts[direction].marked += u64::from(header::mark(self.slab.packet(slot)));
            }
            if let Some(journal) = &mut self.journal {
                let size = packet.size;
                journal.push(Entry::Left { at, direction, flow, size });
            }
            let end = match direction {
                Direction::Uplink => 0,
                Direction::Downlink => self.flow_ends[flow.0 as usize].into(),
            };
            if let Some(capture) = &mut self.capture {
                let copy = capture.packet(end, at, self.slab.bytes(slot));
                complete(copy, self.slab.checksum(slot));
            }
            self.left.push(Left { at, direction, end, flow, slot });
        }
        // They have long left the cache. A separate loop fetches headers in parallel: both lines of
        // the cache that they lie on.
        for left in &self.left {
            let bytes = self.slab.bytes(left.slot);
            black_box((bytes[0], bytes[(bytes.len() - 1).min(CACHE_LINE)]));
        }
    }

    /// Updates counters that can wait until packets are written.
    #[inline]
    fn count_out(&mut self) {
        if self.left.is_empty() {
            return;
        }
        let handed = self.clock.now();
        let Self { meters, scheduled, slab, counts, .. } = self;
        for Left { at, direction, flow: FlowId(flow), slot, .. } in self.left.drain(..) {
            let bytes = slab.bytes(slot);
            counts[direction].left_bytes += bytes.len() as u64;
            meters.on_left(flow, direction, (at, handed), bytes);
            scheduled.on_left(flow, direction, at, bytes, || meters.delivered(flow, direction));
            slab.release(slot);
        }
    }

    /// The next packet that has reached an end, and the direction in which it went. Packets between
    /// hops continue, or enter the tunnel.
    #[inline]
    fn poll(&mut self, now: Instant) -> Option<(Direction, HopDeparture)> {
        loop {
            let departure = self.network.poll_departure(now)?;
            let HopDeparture { at, ref packet, to } = departure;
            if let Destination::Endpoint(direction) = to {
                return Some((direction, departure));
            }
            match to.over_backhaul() {
                Some(direction) if self.tunnel.is_some() => {
                    self.hand(at, direction, packet);
                    continue;
                }
                Some(_) => self.capture_at_cell(at, packet),
                None => {}
            }
            self.network.forward(at, to, packet);
        }
    }

    /// Captures a packet that passes the base station.
    #[inline]
    pub(super) fn capture_at_cell(&mut self, at: Instant, packet: &Packet) {
        let (Some(capture), Payload::Opaque(slot)) = (&mut self.capture, packet.payload) else {
            return;
        };
        let slot = slot as u32;
        let copy = capture.packet(self.ends.len(), at, self.slab.bytes(slot));
        complete(copy, self.slab.checksum(slot));
    }

    /// Processes the model's drops.
    pub(super) fn drain_drops(&mut self) {
        let Self { network, slab, journal, counts, meters, scheduled, .. } = self;
        network.drain_drops(&mut |direction, _, drop| {
            let Payload::Opaque(handle) = drop.packet.payload else { return };
            let (slot, reason) = (handle as u32, drop.reason);
            if let Some(journal) = journal {
                let (flow, size) = (drop.packet.flow, drop.packet.size);
                journal.push(Entry::Dropped { at: drop.at, direction, flow, size, reason });
            }
            meters.on_drop(drop.packet.flow.0, direction);
            scheduled.on_drop(drop.packet.flow.0, direction, slab.bytes(slot));
            *counts[direction].dropped.entry(reason).or_default() += 1;
            slab.release(slot);
        });
    }
}
