//! Ingress: packets from a device into the model.

use std::io::IoSlice;

use airpath_base::{FlowId, Instant, Packet, Payload, Tunnel};
use airpath_network::Hop;

use super::{Forwarder, direction_from};
use crate::device::slab::SLOT_BYTES;
use crate::observation::journal::Entry;
use crate::offload::segments::{MOST_SEGMENTS, Segments};
use crate::wire::flows::{Key, Numbered};
use crate::wire::header;
use crate::wire::packet::{Layout, Offload, complete};

/// Most reads from one device before departures are handled again.
const BATCH: usize = 16;

/// Name in tables for flows that have no row of their own.
pub(super) const OTHERS: &str = "others";

impl Forwarder {
    /// Reads packets and passes them to the model.
    #[inline]
    pub(super) fn admit(&mut self, end: usize, buffer: &mut [u8]) {
        for _ in 0..BATCH {
            let (offload, packet) = match self.devices[end].port.read(buffer) {
                Ok(Some(read)) => read,
                Ok(None) => return,
                // The device no longer exists.
                Err(_) => {
                    self.devices[end].gone = Some(self.clock.now());
                    return;
                }
            };
            if self.settings.bare {
                let said = offload.bytes();
                let other = &self.devices[usize::from(end == 0)].port;
                let parts = [IoSlice::new(&said), IoSlice::new(packet)];
                let refused = other.write(&[], &parts).is_err();
                self.counts[direction_from(end)].written.refused += u64::from(refused);
                continue;
            }
            let now = self.clock.now();
            // Earlier departures come first: the model's times never decrease.
            if self.network.next_event().is_some_and(|due| due <= now) {
                self.deliver(now);
            }
            match self.flow(end, packet) {
                Some(flow) => self.take(now, end, flow, offload, packet, &[]),
                None => self.counts[direction_from(end)].ignored += 1,
            }
        }
    }

    /// Passes a packet from the kernel to the model, or the segments that it represents. `link` is
    /// its link header, if it has one.
    #[inline]
    pub(super) fn take(
        &mut self,
        now: Instant,
        end: usize,
        flow: FlowId,
        offload: Offload,
        packet: &[u8],
        link: &[u8],
    ) {
        let direction = direction_from(end);
        let ecn = header::ecn(packet);
        let segments = Segments::of(packet, offload);
        let (count, largest) =
            segments.map_or((1, packet.len()), |segments| (segments.count(), segments.largest()));
        if largest > SLOT_BYTES || count > MOST_SEGMENTS {
            self.counts[direction].refuse(1, largest);
            return;
        }
        for index in 0..count {
            let slot = self.slab.vacant();
            let room = self.slab.slot(slot);
            let length = match segments {
                Some(segments) => segments.write(packet, index, room),
                None => {
                    room[..packet.len()].copy_from_slice(packet);
                    packet.len()
                }
            };
            let slot = self.slab.keep(length, offload.checksum);
            if !link.is_empty() {
                self.slab.keep_link(slot, link);
            }
            let size = length as u32;
            let payload = Payload::Opaque(u64::from(slot));
            if let Some(journal) = &mut self.journal {
                let ue = self.ends[usize::from(self.flow_ends[flow.0 as usize])].ue;
                journal.push(Entry::Entered { at: now, direction, flow, ue, size, ecn });
            }
            if let Some(capture) = &mut self.capture {
                complete(capture.packet(end, now, self.slab.bytes(slot)), offload.checksum);
            }
            self.meters.on_sent(flow.0, direction, now, self.slab.bytes(slot));
            self.scheduled.on_sent(flow.0, direction, now);
            let counts = &mut self.counts[direction];
            counts.entered += 1;
            counts.entered_bytes += u64::from(size);
            let packet =
                Packet { flow, size, ecn, tunnel: Tunnel::default(), journey: None, payload };
            self.network.enter(now, Hop::from_endpoint(direction), &packet);
        }
    }

    /// The flow of a packet that arrives from `end`; `None` if it has no destination.
    #[inline]
    fn flow(&mut self, end: usize, packet: &[u8]) -> Option<FlowId> {
        let layout = Layout::of(packet)?;
        let up = end > 0;
        let destination = header::destination(packet, &layout);
        if destination.is_multicast() {
            return None;
        }
        let ue_end = match (up, self.ends.len()) {
            (true, _) => end,
            (false, 2) => 1,
            (false, _) => *self.routes.get(&destination)?,
        };
        let key = Key::of(packet, &layout, ue_end, up);
        Some(self.number(key, |ue| key.name(ue)))
    }

    /// The number of a flow, whose name is made from that of its UE if it gets a row.
    #[inline]
    pub(super) fn number(&mut self, key: Key, id_of: impl Fn(&str) -> String) -> FlowId {
        let Numbered { flow, new, shared } = self.flows.number(key);
        if new {
            let has_room = !shared && self.meters.has_room();
            let id = has_room.then(|| id_of(&self.ends[key.end].name));
            self.add_flow(flow, key, id, false);
        } else if !shared && !self.meters.has_row(flow.0) && self.meters.has_room() {
            let id = id_of(&self.ends[key.end].name);
            let name = self.tables.names.add(&id);
            self.meters.open(flow.0, name, id, key, false);
        }
        flow
    }

    /// Adds the next flow; without a name it is one of the others. The scenario's flows are pinned.
    pub(super) fn add_flow(&mut self, flow: FlowId, key: Key, id: Option<String>, pinned: bool) {
        let (ue, names) = (self.ends[key.end].ue, &mut self.tables.names);
        let name = match id {
            Some(id) => {
                let name = names.add(&id);
                self.meters.open(flow.0, name, id, key, pinned);
                name
            }
            None => {
                self.meters.join_others(flow.0);
                *self.others.get_or_insert_with(|| names.add(OTHERS))
            }
        };
        self.network.add_ue(ue, &mut self.tables.names);
        self.network.add_flow(name, ue);
        self.flow_ends.push(key.end as u16);
    }
}
