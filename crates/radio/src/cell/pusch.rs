//! The UE's transmissions on PUSCH, and what the base station learns from them.

use airpath_base::{Direction, Instant};

use super::access::ReceivedBlock;
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
    /// Sends the PUSCHs of `slot`.
    pub(super) fn send_granted(&mut self, slot: u64) {
        while let Some(grant) = self.grants.front().copied().filter(|grant| grant.slot <= slot) {
            self.grants.pop_front();
            let now = self.carrier.start(slot);
            let Grant { ue: index, process, .. } = grant;
            if grant.is_new {
                let access = &mut self.ues.aside(index).access;
                access.grants -= 1;
                if !access.is_connected(now) || !access.is_aligned(now) {
                    // The UE has left: the base station sees an empty PUSCH.
                    self.ues.aside(index).up.harq.release(process);
                    self.hear_nothing(index, slot, grant.size);
                } else {
                    self.assemble(&grant, now, true);
                    self.send_pusch(index, slot, process, true);
                }
            } else {
                self.send_pusch(index, slot, process, false);
            }
            self.update_uplink(index, now);
            self.collect_drops(index);
            self.consider_uplink(index, now);
            self.arm(index, now);
        }
    }

    /// An occasion of a configured grant has come.
    pub(super) fn send_configured(&mut self, index: u32, now: Instant) {
        let access = &mut self.ues.aside(index).access;
        let Some(slot) = access.configured_next.filter(|&slot| self.carrier.start(slot) <= now)
        else {
            return;
        };
        access.configured_from = slot + 1;
        access.plan_configured(&self.carrier, slot + 1);
        // Packets that are still being prepared wait for the next TTI.
        let ready = !self.carrier.uplink.is_dedicated() || self.ues.aside(index).has_uplink(now);
        let granted = self.grants.iter().any(|grant| grant.slot == slot && grant.ue == index);
        let waits = self.ues[index].access.bsr.available() > 0;
        if !waits {
            self.ues.aside(index).access.configured_next = None;
        }
        // TS 38.321 5.4.1: a dynamic grant for the same slot overrides it. Without data nothing is
        // sent (TS 38.321 5.4.3.1.3, skipUplinkTxDynamic's rule for configured grants).
        let usable = !granted && waits && ready && self.carrier.start(slot) >= now;
        let Some(grant) = self.configured_grant(index, slot).filter(|_| usable) else {
            return;
        };
        let access = &mut self.ues.aside(index).access;
        if !access.is_connected(now) || !access.is_aligned(now) {
            return;
        }
        self.assemble(&grant, now, false);
        self.send_pusch(index, slot, grant.process, true);
        let kind = TransmissionKind::Configured;
        let (process, harq_rtt_starts) = (grant.process.0, self.carrier.end(slot));
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
    fn assemble(&mut self, grant: &Grant, now: Instant, granted: bool) {
        let &Grant { ue: index, process, prbs, mcs, size, .. } = grant;
        self.settle(index, now);
        let ue = self.ues.aside(index);
        let needed = ue.needed(UP, now);
        let waiting = ue.reportable(now);
        let Ue { access, bearer, up, .. } = ue;
        access.bsr.on_available(now, 0, waiting);
        let reports = !self.carrier.has_standing_grants();
        let mut plan = access.bsr.plan(now, size, needed).filter(|_| reports);
        let pdu = up.harq.payload_mut(process);
        pdu.block.clear();
        let room = size - plan.map_or(0, |plan| plan.bytes);
        let used = bearer.touch().fill(UP, now, room, &mut pdu.block);
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
        let block = core::mem::take(&mut pdu.block);
        *pdu =
            MacPdu { block, report, assembled: now, failed: now, size, used, prbs, mcs, granted };
        if ue.is_accounted() {
            ue.note_uplink_left(now, left, granted);
        }
    }

    fn send_pusch(&mut self, index: u32, slot: u64, process: ProcessId, is_new: bool) {
        let (now, end) = (self.carrier.start(slot), self.carrier.block_end(UP, slot));
        let feedback = self.carrier.uplink_feedback(slot);
        let ue = self.ues.aside(index);
        ue.access.last_pusch = Some(slot);
        let end = ue.access.fach(now).map_or(end, |fach| now + fach.uplink_time);
        let decoded = ue.up.send(process, is_new, (now, feedback), &self.carrier.uplink);
        log_block(ue, UP, process, decoded, (now, end), &mut self.out);
        self.events.add(feedback, index, EventKind::Feedback(UP));
        if !decoded {
            return;
        }
        let &MacPdu { size, used, report, assembled, granted, .. } = ue.up.harq.payload(process);
        ue.access.align(now);
        ue.up.receive(process, now, end);
        // If there was room for a report, padding would have been used for it (TS 38.321 5.4.5).
        let full = size - used < ue.access.bsr_format().bytes(BsrKind::Short, 1);
        ue.access.received.push_back(ReceivedBlock { size, assembled, report, granted, full });
        let times = self.config.base_station;
        self.events.add(end + times.uplink, index, EventKind::Block(UP));
        self.events.add(end + times.grant, index, EventKind::Received);
    }

    /// The base station receives nothing where a block of `size` bytes was expected.
    fn hear_nothing(&mut self, index: u32, slot: u64, size: u32) {
        let (end, assembled) = (self.carrier.end(slot), self.carrier.start(slot));
        let nothing = ReceivedBlock { size, assembled, report: None, granted: true, full: false };
        self.ues.aside(index).access.received.push_back(nothing);
        self.events.add(end + self.config.base_station.grant, index, EventKind::Received);
    }

    /// The configured grant of `slot`, if a process is free.
    fn configured_grant(&mut self, index: u32, slot: u64) -> Option<Grant> {
        let now = self.carrier.start(slot);
        let class = self.carrier.class(UP, slot)?;
        let ue = self.ues.aside(index);
        let bytes = ue.access.standing_grant(now)?.bytes;
        let process = ue.up.harq.free(now)?;
        let carrier = &self.carrier.uplink;
        let mcs = ue.up.choose_mcs(now, carrier, self.carrier.slot());
        let prbs = carrier.prbs_for(class, mcs, u64::from(bytes)).min(carrier.prbs);
        let fits = carrier.bytes(class, mcs, prbs);
        // A serving grant is the largest amount that the UE may send.
        let size = if carrier.is_dedicated() { ue.up.bounded_block(bytes, fits) } else { fits };
        Some(Grant { slot, ue: index, process, prbs, mcs, size, is_new: true })
    }
}
