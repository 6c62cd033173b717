//! The UE's transmissions on PUSCH, and what the base station learns from them.

use airpath_base::{Direction, Instant};

use super::access::ReceivedBlock;
use super::carrier_id::{CarrierId, PRIMARY};
use super::component::Component;
use super::downlink::log_block;
use super::engine::Engine;
use super::event::RadioEventKind;
use super::event_queue::EventKind;
use super::grant::Grant;
use super::link::MacPdu;
use super::ue::Ue;
use crate::harq::ProcessId;
use crate::mac::bsr::BsrKind;
use crate::mac::drx::{Transmission, TransmissionKind};

const UP: Direction = Direction::Uplink;

impl Engine {
    /// Sends the PUSCHs of a carrier's `slot`.
    pub(super) fn send_granted(&mut self, id: CarrierId, slot: u64) {
        let due = |grant: &Grant| grant.slot <= slot;
        while let Some(grant) = self.carriers[id].grants.front().copied().filter(due) {
            let component = &mut self.carriers[id];
            component.grants.pop_front();
            let now = component.carrier.start(slot);
            let Grant { ue: index, process, .. } = grant;
            if grant.is_new {
                let access = &mut self.ues.aside(index).access;
                access.grants -= 1;
                if !access.is_connected(now) || !access.is_aligned(now) {
                    // The UE has left: the base station sees an empty PUSCH.
                    self.ues.aside(index).link(id.up()).harq.release(process);
                    self.hear_nothing((id, slot), index, grant.size);
                } else {
                    self.assemble(id, &grant, now, true);
                    self.send_pusch((id, slot), index, process, true);
                }
            } else {
                self.send_pusch((id, slot), index, process, false);
            }
            self.update_uplink(index, now);
            self.collect_drops(index);
            self.consider_uplink(index, now);
            self.arm(index, now);
        }
    }

    /// An occasion of a configured grant has come.
    pub(super) fn send_configured(&mut self, index: u32, now: Instant) {
        let Component { carrier, grants, .. } = &self.carriers.primary;
        let access = &mut self.ues.aside(index).access;
        let Some(slot) = access.configured_next.filter(|&slot| carrier.start(slot) <= now) else {
            return;
        };
        access.configured_from = slot + 1;
        access.plan_configured(carrier, slot + 1);
        // Packets that are still being prepared wait for the next TTI.
        let ready = !carrier.uplink.is_dedicated() || self.ues.aside(index).has_uplink(now);
        let granted = grants.iter().any(|grant| grant.slot == slot && grant.ue == index);
        let waits = self.ues[index].access.bsr.available() > 0;
        if !waits {
            self.ues.aside(index).access.configured_next = None;
        }
        // TS 38.321 5.4.1: a dynamic grant for the same slot overrides it. Without data nothing is
        // sent (TS 38.321 5.4.3.1.3, skipUplinkTxDynamic's rule for configured grants).
        let usable = !granted && waits && ready && carrier.start(slot) >= now;
        let Some(grant) = self.configured_grant(index, slot).filter(|_| usable) else {
            return;
        };
        let access = &mut self.ues.aside(index).access;
        if !access.is_connected(now) || !access.is_aligned(now) {
            return;
        }
        self.assemble(PRIMARY, &grant, now, false);
        self.send_pusch((PRIMARY, slot), index, grant.process, true);
        let kind = TransmissionKind::Configured;
        let (process, harq_rtt_starts) = (grant.process.0, self.carriers.primary.carrier.end(slot));
        let announced = Transmission { direction: UP, kind, process, harq_rtt_starts };
        self.ues.aside(index).access.on_transmission(now, &announced);
        self.update_uplink(index, now);
        self.collect_drops(index);
    }

    /// The base station has processed a block, or its absence.
    pub(super) fn on_received(&mut self, index: u32, now: Instant) {
        let access = &mut self.ues.aside(index).access;
        let Some(block) = access.received.pop_front() else { return };
        let size = if block.granted { block.size } else { 0 };
        match &block.report {
            Some(report) => access.estimate.on_report(now, size, block.assembled, report),
            None => {
                access.estimate.on_transport_block(now, size);
                if block.full {
                    access.estimate.on_full_block(now, block.size);
                }
            }
        }
        self.consider_uplink(index, now);
    }

    /// Fills the block of a grant.
    fn assemble(&mut self, id: CarrierId, grant: &Grant, now: Instant, granted: bool) {
        let &Grant { ue: index, process, prbs, mcs, size, .. } = grant;
        self.settle(index, now);
        let ue = self.ues.aside(index);
        let needed = ue.needed(UP, now);
        let waiting = ue.reportable(now);
        let mut block = core::mem::take(&mut ue.link(id.up()).harq.payload_mut(process).block);
        block.clear();
        let Ue { access, bearer, .. } = ue;
        access.bsr.on_available(now, 0, waiting);
        let reports = !self.carriers.primary.carrier.has_standing_grants();
        let mut plan = access.bsr.plan(now, size, needed).filter(|_| reports);
        let room = size - plan.map_or(0, |plan| plan.bytes);
        let used = bearer.touch().fill(UP, now, room, &mut block);
        let left = bearer.buffered_bytes(UP, now) + bearer.up.prepared().bytes;
        access.bsr.on_available(now, 0, left);
        if plan.is_none() && reports {
            // TS 38.321 5.4.5: a report in place of padding
            plan = access.bsr.plan(now, size, u64::from(used));
        }
        let reported = plan.map_or(0, |plan| plan.bytes).min(size - used);
        let report = plan.map(|plan| access.bsr.assemble(now, plan));
        if let Some(report) = &report {
            access.counters.reports += 1;
            let format = access.bsr_format();
            let levels = report.levels.iter().flatten();
            let estimate = levels.map(|&level| format.estimate(report.kind, level)).sum();
            self.out.log(now, index, || RadioEventKind::BufferStatus { bytes: estimate });
            access.sr.on_pdu(now);
        }
        if left == 0 {
            // TS 38.321 5.4.4: the grant holds everything that waited
            access.sr.cancel();
        }
        access.tell_drx_of_request(now);
        if used > 0 {
            access.last_data = Some(now);
            access.on_activity(now);
        }
        let used = used + reported;
        if granted {
            access.counters.wasted_bytes += u64::from(size - used);
        }
        let pdu =
            MacPdu { block, report, assembled: now, failed: now, size, used, prbs, mcs, granted };
        *ue.link(id.up()).harq.payload_mut(process) = pdu;
        if ue.is_accounted() {
            ue.note_uplink_left(now, left, granted);
        }
    }

    fn send_pusch(
        &mut self,
        (id, slot): (CarrierId, u64),
        index: u32,
        process: ProcessId,
        is_new: bool,
    ) {
        let carrier = &self.carriers[id].carrier;
        let (now, end) = (carrier.start(slot), carrier.block_end(UP, slot));
        let feedback = carrier.uplink_feedback(slot);
        let ue = self.ues.aside(index);
        if id == PRIMARY {
            ue.access.last_pusch = Some(slot);
        }
        let end = ue.access.fach(now).map_or(end, |fach| now + fach.uplink_time);
        let up = ue.link(id.up());
        let decoded = up.send(process, is_new, (now, feedback), &carrier.uplink);
        log_block(ue, id.up(), process, decoded, (now, end), &mut self.out);
        self.events.add(feedback, index, EventKind::Feedback(id.up()));
        if !decoded {
            return;
        }
        let up = ue.link(id.up());
        let &MacPdu { size, used, report, assembled, granted, .. } = up.harq.payload(process);
        up.receive(process, now, end);
        ue.access.align(now);
        // If there was room for a report, padding would have been used for it (TS 38.321 5.4.5).
        let full = size - used < ue.access.bsr_format().bytes(BsrKind::Short, 1);
        let times = self.config.base_station;
        let at = end + times.grant;
        ue.access.receive(ReceivedBlock { at, size, assembled, report, granted, full });
        self.events.add(end + times.uplink, index, EventKind::Block(id.up()));
        self.events.add(at, index, EventKind::Received);
    }

    /// The base station receives nothing where a block of `size` bytes was expected.
    fn hear_nothing(&mut self, (id, slot): (CarrierId, u64), index: u32, size: u32) {
        let carrier = &self.carriers[id].carrier;
        let at = carrier.end(slot) + self.config.base_station.grant;
        let assembled = carrier.start(slot);
        let (report, granted, full) = (None, true, false);
        let nothing = ReceivedBlock { at, size, assembled, report, granted, full };
        self.ues.aside(index).access.receive(nothing);
        self.events.add(at, index, EventKind::Received);
    }

    /// The configured grant of `slot`, if a process is free.
    fn configured_grant(&mut self, index: u32, slot: u64) -> Option<Grant> {
        let primary = &self.carriers.primary.carrier;
        let now = primary.start(slot);
        let class = primary.class(UP, slot)?;
        let ue = self.ues.aside(index);
        let bytes = ue.access.standing_grant(now)?.bytes;
        let process = ue.up.harq.free(now)?;
        let carrier = &primary.uplink;
        let mcs = ue.up.choose_mcs(now, carrier, primary.slot());
        let prbs = carrier.prbs_for(class, mcs, u64::from(bytes)).min(carrier.prbs);
        let fits = carrier.bytes(class, mcs, prbs);
        // A serving grant is the largest amount that the UE may send.
        let size = if carrier.is_dedicated() { ue.up.bounded_block(bytes, fits) } else { fits };
        Some(Grant { slot, ue: index, process, prbs, mcs, size, is_new: true })
    }
}
