//! The UE's transmissions on PUSCH, and what the base station learns from them.

use airpath_base::Instant;

use super::Cell;
use super::access::Heard;
use super::agenda::EventKind;
use super::downlink::log_block;
use super::event::RadioEventKind;
use super::ue::{MacPdu, Ue};
use super::uplink::Grant;
use crate::radio::Direction;
use crate::radio::harq::ProcessId;
use crate::radio::mac::drx::{Transmission, TransmissionKind};

const UP: Direction = Direction::Uplink;

impl Cell {
    /// Sends the PUSCHs of `slot`.
    pub(super) fn send_granted(&mut self, slot: u64) {
        while let Some(grant) = self.grants.front().copied().filter(|grant| grant.slot <= slot) {
            self.grants.pop_front();
            let now = self.air.start(slot);
            let Grant { ue: index, process, .. } = grant;
            if grant.is_new {
                let access = &mut self.ues[index as usize].access;
                access.grants -= 1;
                if !access.is_connected(now) || !access.is_aligned(now) {
                    // It is gone: the base station sees an empty PUSCH.
                    self.ues[index as usize].up.harq.release(process);
                    self.hear_nothing(index, slot, grant.size);
                } else {
                    self.assemble(&grant, now, true);
                    self.send_pusch(index, slot, process, true);
                }
            } else {
                self.send_pusch(index, slot, process, false);
            }
            self.look_at_uplink(index, now);
            self.collect_drops(index);
            self.consider_uplink(index, now);
            self.arm(index, now);
        }
    }

    /// A configured grant's occasion has come.
    pub(super) fn send_configured(&mut self, index: u32, now: Instant) {
        let access = &mut self.ues[index as usize].access;
        let Some(slot) = access.configured_next.filter(|&slot| self.air.start(slot) <= now) else {
            return;
        };
        access.configured_from = slot + 1;
        access.plan_configured(&self.air, slot + 1);
        // What is still being prepared waits for the next TTI.
        let ready = !self.air.uplink.is_dedicated() || self.ues[index as usize].has_uplink(now);
        let granted = self.grants.iter().any(|grant| grant.slot == slot && grant.ue == index);
        let waits = self.ues[index as usize].access.bsr.available() > 0;
        if !waits {
            self.ues[index as usize].access.configured_next = None;
        }
        // TS 38.321 5.4.1: a dynamic grant for the same slot overrides it. Nothing to send:
        // nothing is sent (TS 38.321 5.4.3.1.3, skipUplinkTxDynamic's rule for configured grants).
        let usable = !granted && waits && ready && self.air.start(slot) >= now;
        let Some(grant) = self.configured_grant(index, slot).filter(|_| usable) else {
            return;
        };
        let access = &mut self.ues[index as usize].access;
        if !access.is_connected(now) || !access.is_aligned(now) {
            return;
        }
        self.assemble(&grant, now, false);
        self.send_pusch(index, slot, grant.process, true);
        let kind = TransmissionKind::Configured;
        let (process, harq_rtt_starts) = (grant.process.0, self.air.end(slot));
        let announced = Transmission { direction: UP, kind, process, harq_rtt_starts };
        self.ues[index as usize].access.on_transmission(now, &announced);
        self.look_at_uplink(index, now);
        self.collect_drops(index);
    }

    /// The base station has read a block, or its absence.
    pub(super) fn on_heard(&mut self, index: u32, now: Instant) {
        let access = &mut self.ues[index as usize].access;
        let Some(heard) = access.heard.pop_front() else { return };
        let size = if heard.granted { heard.size } else { 0 };
        match &heard.report {
            Some(report) => access.believed.on_report(now, size, heard.assembled, report),
            None => {
                access.believed.on_transport_block(now, size);
                if heard.full {
                    access.believed.on_full_block(now, heard.size);
                }
            }
        }
        self.consider_uplink(index, now);
    }

    /// Fills the block of a grant.
    fn assemble(&mut self, grant: &Grant, now: Instant, granted: bool) {
        let &Grant { ue: index, process, prbs, mcs, size, .. } = grant;
        let ue = &mut self.ues[index as usize];
        ue.settle(now, &mut self.out);
        let needed = ue.needed(UP, now);
        let waiting = ue.reportable(now);
        let Ue { access, bearer, up, .. } = ue;
        access.bsr.on_available(now, 0, waiting);
        let reports = !self.air.has_standing_grants();
        let mut plan = access.bsr.plan(now, size, needed).filter(|_| reports);
        let pdu = up.harq.payload_mut(process);
        pdu.block.clear();
        let room = size - plan.map_or(0, |plan| plan.bytes);
        let used = bearer.fill(UP, now, room, &mut pdu.block);
        let left = bearer.buffered_bytes(UP, now) + up.incoming_load.bytes;
        access.bsr.on_available(now, 0, left);
        if plan.is_none() && reports {
            // TS 38.321 5.4.5: a report in what would be padding
            plan = access.bsr.plan(now, size, u64::from(used));
        }
        let reported = plan.map_or(0, |plan| plan.bytes).min(size - used);
        let report = plan.map(|plan| access.bsr.assemble(now, plan));
        if let Some(report) = &report {
            access.counters.reports += 1;
            let format = access.bsr_format();
            let levels = report.levels.iter().flatten();
            let believed = levels.map(|&level| format.believed(report.kind, level)).sum();
            self.out.log(now, index, || RadioEventKind::BufferStatus { bytes: believed });
            access.sr.on_pdu(now);
        }
        if left == 0 {
            // TS 38.321 5.4.4: the grant holds all that waited
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
    }

    fn send_pusch(&mut self, index: u32, slot: u64, process: ProcessId, is_new: bool) {
        let (now, end) = (self.air.start(slot), self.air.block_end(UP, slot));
        let feedback = self.air.uplink_feedback(slot);
        let ue = &mut self.ues[index as usize];
        let end = ue.access.fach(now).map_or(end, |fach| now + fach.uplink_time);
        let decoded = ue.up.send(process, is_new, (now, feedback), &self.air.uplink);
        log_block(ue, UP, process, decoded, (now, end), &mut self.out);
        self.agenda.add(feedback, index, EventKind::Feedback(UP));
        if !decoded {
            return;
        }
        let &MacPdu { size, used, report, assembled, granted, .. } = ue.up.harq.payload(process);
        ue.access.align(now);
        ue.up.receive(process, end);
        let full = used >= size;
        ue.access.heard.push_back(Heard { size, assembled, report, granted, full });
        let times = self.config.base_station;
        self.agenda.add(end + times.uplink, index, EventKind::Block(UP));
        self.agenda.add(end + times.grant, index, EventKind::Heard);
    }

    /// The base station finds nothing where a block of `size` bytes was to be.
    fn hear_nothing(&mut self, index: u32, slot: u64, size: u32) {
        let (end, assembled) = (self.air.end(slot), self.air.start(slot));
        let nothing = Heard { size, assembled, report: None, granted: true, full: false };
        self.ues[index as usize].access.heard.push_back(nothing);
        self.agenda.add(end + self.config.base_station.grant, index, EventKind::Heard);
    }

    /// The configured grant of `slot`, if a process is free.
    fn configured_grant(&mut self, index: u32, slot: u64) -> Option<Grant> {
        let now = self.air.start(slot);
        let class = self.air.class(UP, slot)?;
        let ue = &mut self.ues[index as usize];
        let bytes = ue.access.standing_grant(now)?.bytes;
        let process = ue.up.harq.free(now)?;
        let air = &self.air.uplink;
        let mcs = ue.up.choose_mcs(now, air, self.air.slot());
        let prbs = air.prbs_for(class, mcs, u64::from(bytes)).min(air.prbs);
        let fits = air.bytes(class, mcs, prbs);
        // A serving grant is the most that the UE may send.
        let size = if air.is_dedicated() { ue.up.bounded_block(bytes, fits) } else { fits };
        Some(Grant { slot, ue: index, process, prbs, mcs, size, is_new: true })
    }
}
