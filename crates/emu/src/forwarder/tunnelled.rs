//! Passing the tunnel: out of the model on one side, back into it on the other.

use airpath_base::{Direction, Ecn, Instant, Packet, Payload, Tunnel};
use airpath_capture::gtpu;
use airpath_network::Destination;

use super::Forwarder;
use crate::device::slab::SLOT_BYTES;
use crate::host::tunnel::{Batch, outer};
use crate::observation::journal::Entry;
use crate::wire::flows::Key;
use crate::wire::header;
use crate::wire::packet::{Layout, complete, reopen_checksum};

impl Forwarder {
    /// Passes a packet from the model to the tunnel.
    pub(super) fn hand(&mut self, at: Instant, direction: Direction, packet: &Packet) {
        let (Some(tunnel), Payload::Opaque(slot)) = (&mut self.tunnel, packet.payload) else {
            return;
        };
        let (slot, flow, size) = (slot as u32, packet.flow, packet.size);
        if let Some(journal) = &mut self.journal {
            journal.push(Entry::Handed { at, direction, flow, size });
        }
        let checksum = self.slab.checksum(slot);
        let bytes = self.slab.packet(slot);
        if packet.ecn == Ecn::Ce {
            self.counts[direction].marked += u64::from(header::mark(bytes));
        }
        complete(bytes, checksum);
        let around = tunnel.header(direction, self.flow_ends[flow.0 as usize].into(), bytes.len());
        if let Some(capture) = &mut self.capture {
            if direction == Direction::Uplink {
                capture.packet(self.ends.len(), at, bytes);
            }
            let outer = outer(direction, &around, bytes.len());
            capture.tunnelled(self.ends.len() + 1, at, &outer, bytes);
        }
        tunnel.push(direction, slot, around, at);
    }

    /// Packets that came out of the tunnel enter the model again, now.
    pub(super) fn receive(&mut self, batch: &mut Batch) {
        for direction in Direction::BOTH {
            let count = self.tunnel.as_ref().map_or(0, |tunnel| tunnel.receive(direction, batch));
            for index in 0..count {
                let now = self.clock.now();
                // Earlier departures come first, as in `admit`.
                if self.network.next_event().is_some_and(|due| due <= now) {
                    self.deliver(now);
                }
                if self.take_back(now, direction, batch.datagram(index)).is_none() {
                    self.tunnel.iter_mut().for_each(|tunnel| tunnel.ignore(direction));
                }
            }
        }
    }

    /// Passes a datagram's packet to the model; `None` if it does not belong to the run.
    fn take_back(&mut self, now: Instant, direction: Direction, datagram: &[u8]) -> Option<()> {
        let packet = gtpu::read(datagram)?;
        let end = self.tunnel.as_ref()?.end_of(direction, packet.teid)?;
        let packet = packet.packet;
        let (layout, up) = (Layout::of(packet)?, direction == Direction::Uplink);
        let flow = self.flows.known(&Key::of(packet, &layout, end, up))?;
        if packet.len() > SLOT_BYTES || !self.tunnel.as_mut()?.count(direction, packet, now) {
            return None;
        }
        let (slot, length) = (self.slab.vacant(), packet.len());
        let room = self.slab.slot(slot).get_mut(..length)?;
        room.copy_from_slice(packet);
        let checksum = reopen_checksum(room);
        let slot = self.slab.keep(length, checksum);
        let (size, ecn) = (length as u32, header::ecn(packet));
        if let Some(journal) = &mut self.journal {
            journal.push(Entry::Reentered { at: now, direction, flow, size, ecn });
        }
        let payload = Payload::Opaque(u64::from(slot));
        let packet = Packet { flow, size, ecn, tunnel: Tunnel::default(), journey: None, payload };
        if !up {
            self.capture_at_cell(now, &packet);
        }
        self.network.forward(now, Destination::beyond_backhaul(direction), &packet);
        Some(())
    }
}
