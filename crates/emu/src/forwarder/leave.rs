//! Out: from the model to a device, or dropped.

use std::hint::black_box;

use airpath_base::{Ecn, FlowId, Instant, Packet, Payload};
use airpath_network::{FROM_UE, Goes, Leaving};

use super::{End, Forwarder};
use crate::header;
use crate::journal::Entry;
use crate::log::Point;
use crate::outbox::Writing;
use crate::packet::complete;

/// A packet that left the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    at: Instant,
    path: usize,
    /// Place of the end that it goes to.
    end: usize,
    flow: FlowId,
    slot: u32,
}

impl Forwarder {
    /// Lets out what is due.
    #[inline]
    pub(super) fn deliver(&mut self, now: Instant) {
        if let Some(journal) = &mut self.journal {
            journal.asked(now);
        }
        self.let_out(now);
        for index in 0..self.left.len() {
            let Left { at, path, end, flow, slot } = self.left[index];
            let way = &mut self.ways[path];
            way.note_slot(self.slot, at, now);
            if let Some(log) = &mut self.log {
                log.push(self.clock.now(), at, path, Point::Out, self.slab.bytes(slot));
            }
            let End { tun, outbox, .. } = &mut self.ends[end];
            let (clock, slab, written) = (&self.clock, &mut self.slab, &mut way.written);
            outbox.push(flow, slot, at, &mut Writing { tun, clock, slab, written });
        }
        for (place, End { tun, outbox, .. }) in self.ends.iter_mut().enumerate() {
            let written = &mut self.ways[usize::from(place == 0)].written;
            let (clock, slab) = (&self.clock, &mut self.slab);
            outbox.flush(&mut Writing { tun, clock, slab, written });
        }
        if let Some(tunnel) = &mut self.tunnel {
            tunnel.flush(&self.clock, &mut self.slab);
        }
        self.account();
        self.drain_drops();
        debug_assert_eq!(
            self.slab.occupied() as u64,
            self.network.load().packets,
            "what is in the slab is inside the network"
        );
    }

    /// Takes what is due out of the model.
    #[inline]
    fn let_out(&mut self, now: Instant) {
        while let Some((path, Leaving { at, packet, .. })) = self.poll(now) {
            let Payload::Opaque(handle) = packet.payload else { continue };
            let (slot, flow) = (handle as u32, packet.flow);
            if packet.ecn == Ecn::Ce {
                self.ways[path].marked += u64::from(header::mark(self.slab.packet(slot)));
            }
            if let Some(journal) = &mut self.journal {
                let size = packet.size;
                journal.push(Entry::Left { at, path, flow, size });
            }
            let end = if path == FROM_UE { 0 } else { self.flow_ends[flow.0 as usize].into() };
            if let Some(capture) = &mut self.capture {
                let copy = capture.packet(end, at, self.slab.bytes(slot));
                complete(copy, self.slab.checksum(slot));
            }
            self.left.push(Left { at, path, end, flow, slot });
        }
        // They have long left the cache. In a loop of its own, headers come side by side.
        for left in &self.left {
            black_box(self.slab.bytes(left.slot)[0]);
        }
    }

    /// What is only counted comes after writing.
    #[inline]
    fn account(&mut self) {
        let Self { meters, ledger, slab, ways, .. } = self;
        for Left { at, path, flow: FlowId(flow), slot, .. } in self.left.drain(..) {
            let bytes = slab.bytes(slot);
            ways[path].left_bytes += bytes.len() as u64;
            meters.on_left(flow, path, at, bytes);
            ledger.on_left(flow, path, at, bytes, |path| meters.delivered(flow, path));
            slab.release(slot);
        }
    }

    /// The next packet that has reached an end, and the path at whose end that is. What goes from
    /// hop to hop goes on, or into the tunnel.
    #[inline]
    fn poll(&mut self, now: Instant) -> Option<(usize, Leaving)> {
        loop {
            let leaving = self.network.poll_leaving(now)?;
            match leaving.goes {
                Goes::Out(path) => return Some((path, leaving)),
                Goes::On(hop) | Goes::ToProxy(hop) if self.tunnel.is_some() => {
                    self.hand(leaving.at, hop, &leaving.packet);
                }
                Goes::On(hop) | Goes::ToProxy(hop) => {
                    self.capture_at_cell(leaving.at, &leaving.packet);
                    self.network.pass(leaving.at, hop, leaving.packet);
                }
            }
        }
    }

    /// A packet passes the base station.
    #[inline]
    pub(super) fn capture_at_cell(&mut self, at: Instant, packet: &Packet) {
        let (Some(capture), Payload::Opaque(slot)) = (&mut self.capture, packet.payload) else {
            return;
        };
        let slot = slot as u32;
        let copy = capture.packet(self.ends.len(), at, self.slab.bytes(slot));
        complete(copy, self.slab.checksum(slot));
    }

    /// Takes note of what the model has dropped.
    pub(super) fn drain_drops(&mut self) {
        let Self { network, slab, log, journal, ways, clock, meters, ledger, .. } = self;
        network.drain_drops(&mut |path, _, drop| {
            let Payload::Opaque(handle) = drop.packet.payload else { return };
            let (slot, reason) = (handle as u32, drop.reason);
            if let Some(log) = log {
                log.push(clock.now(), drop.at, path, Point::Dropped(reason), slab.bytes(slot));
            }
            if let Some(journal) = journal {
                let (flow, size) = (drop.packet.flow, drop.packet.size);
                journal.push(Entry::Dropped { at: drop.at, path, flow, size, reason });
            }
            meters.on_drop(drop.packet.flow.0, path);
            ledger.on_drop(drop.packet.flow.0, path, slab.bytes(slot));
            *ways[path].dropped.entry(reason).or_default() += 1;
            slab.release(slot);
        });
    }
}
