//! The base station's grants, and the UE's transmissions on them.

use airpath_base::Instant;

use super::access::{Heard, UplinkAccess};
use super::agenda::EventKind;
use super::air::Air;
use super::downlink::log_block;
use super::event::{GrantCause, RadioEventKind};
use super::ue::{MacPdu, Readiness, Ue};
use super::{Cell, SlotSizes};
use crate::radio::Direction;
use crate::radio::harq::ProcessId;
use crate::radio::mac::drx::{Transmission, TransmissionKind};
use crate::radio::rlc;
use crate::radio::scheduler::{AllocationKind, Candidate, Retransmission, UeId};

const UP: Direction = Direction::Uplink;

/// A PUSCH that was granted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    /// Its slot.
    pub(super) slot: u64,
    pub(super) ue: u32,
    process: ProcessId,
    prbs: u32,
    mcs: u8,
    size: u32,
    is_new: bool,
}

impl Cell {
    /// Grants the PUSCHs that the PDCCH of `slot` can.
    pub(super) fn grant_uplink(&mut self, slot: u64) {
        for at in 0..self.air.grants(slot).len() {
            if self.uplink.active.is_empty() {
                return;
            }
            let pusch = slot + self.air.grants(slot)[at];
            if let Some(class) = self.air.class(UP, pusch) {
                self.grant_slot(slot, pusch, class);
            }
        }
    }

    fn grant_slot(&mut self, slot: u64, pusch: u64, class: usize) {
        let now = self.air.start(slot);
        let mut active = core::mem::take(&mut self.uplink.active);
        self.uplink.candidates.clear();
        active.retain(|&index| self.is_uplink_candidate(index, class, slot, pusch));
        self.uplink.active = active;
        let prbs = self.air.uplink.prbs - self.configured_prbs(pusch, class);
        let sizes = SlotSizes { ues: &self.ues, air: &self.air, direction: UP, class };
        let side = &mut self.uplink;
        let allocations = side.scheduler.allocate(now, prbs, &side.candidates, &sizes);
        side.allocations.clear();
        side.allocations.extend_from_slice(allocations);
        for at in 0..self.uplink.allocations.len() {
            let allocation = self.uplink.allocations[at];
            self.grant(allocation.ue.0, (slot, pusch), class, allocation.prbs, allocation.kind);
        }
        for at in 0..self.uplink.candidates.len() {
            let index = self.uplink.candidates[at].ue.0;
            let access = &mut self.ues[index as usize].access;
            if access.proactive_next.is_some_and(|(_, due)| due <= pusch) {
                access.plan_proactive(&self.air, slot, pusch + 1);
            }
            self.arm(index, now);
        }
    }

    fn is_uplink_candidate(&mut self, index: u32, class: usize, slot: u64, pusch: u64) -> bool {
        let now = self.air.start(slot);
        let eligible = self.uplink.eligible_at(index, now);
        let ue = &mut self.ues[index as usize];
        let readiness = ue.uplink_readiness(now, eligible, &self.air);
        let stays = ue.up.note(readiness);
        if !stays {
            self.arm(index, now);
            return false;
        }
        let sent = self.air.start(pusch);
        let air = &self.air.uplink;
        let mcs = ue.up.choose_mcs(now, air, self.air.slot());
        // A synchronous process has its turn in the slot of the PUSCH.
        let time = if ue.up.synchronous { sent } else { now };
        let harq = &ue.up.harq;
        let retransmission = harq.retransmission(time).map(|process| Retransmission {
            prbs: harq.payload(process).prbs,
            since: harq.payload(process).failed,
        });
        let hears = ue.access.hears(now);
        let backlog = match harq.free(time) {
            Some(_) if hears && eligible <= now => ue.access.to_grant(now, pusch),
            _ => 0,
        };
        self.uplink.candidates.push(Candidate {
            ue: UeId(index),
            backlog,
            bits_per_prb: 8 * air.bytes(class, mcs, air.prbs) / air.prbs.max(1),
            retransmission,
        });
        true
    }

    fn grant(
        &mut self,
        index: u32,
        (slot, pusch): (u64, u64),
        class: usize,
        prbs: u32,
        kind: AllocationKind,
    ) {
        let (now, sent) = (self.air.start(slot), self.air.start(pusch));
        let ue = &mut self.ues[index as usize];
        let harq = &mut ue.up.harq;
        let time = if ue.up.synchronous { sent } else { now };
        let is_new = kind == AllocationKind::New;
        let process = if is_new { harq.free(time) } else { harq.retransmission(time) };
        let Some(process) = process else { return };
        harq.reserve(process);
        let (size, mcs) = if is_new {
            (self.air.uplink.bytes(class, ue.up.mcs, prbs), ue.up.mcs)
        } else {
            (harq.payload(process).size, harq.payload(process).mcs)
        };
        let access = &mut ue.access;
        let cause = match kind {
            AllocationKind::Retransmission => GrantCause::Retransmission,
            AllocationKind::New if access.believed.wanted(now) == 0 => GrantCause::Proactive,
            AllocationKind::New => GrantCause::Buffer,
        };
        if is_new {
            access.believed.on_grant(now, size);
            access.bsr.on_grant(now);
            access.grants += 1;
            access.counters.grants += 1;
            access.counters.granted_bytes += u64::from(size);
        }
        // LTE's retransmission is asked for by PHICH: no PDCCH (TS 36.321 5.4.2.1).
        let announced = match (is_new, ue.up.synchronous) {
            (true, _) => TransmissionKind::New,
            (false, true) => TransmissionKind::Configured,
            (false, false) => TransmissionKind::Retransmission,
        };
        access.on_transmission(
            now,
            &Transmission {
                direction: UP,
                kind: announced,
                process: process.0,
                harq_rtt_starts: self.air.end(pusch),
            },
        );
        self.out.log(now, index, || RadioEventKind::Grant { pusch: sent, bytes: size, cause });
        self.grants.push_back(Grant { slot: pusch, ue: index, process, prbs, mcs, size, is_new });
    }

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
        let granted = self.grants.iter().any(|grant| grant.slot == slot && grant.ue == index);
        let waits = self.ues[index as usize].access.bsr.available() > 0;
        if !waits {
            self.ues[index as usize].access.configured_next = None;
        }
        // TS 38.321 5.4.1: a dynamic grant for the same slot overrides it. Nothing to send:
        // nothing is sent (TS 38.321 5.4.3.1.3, skipUplinkTxDynamic's rule for configured grants).
        let late = self.air.start(slot) < now;
        let Some(grant) = self.configured_grant(index, slot).filter(|_| !granted && waits && !late)
        else {
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

    /// Decides whether the scheduler can use a UE's uplink, and looks at it then.
    pub(super) fn consider_uplink(&mut self, index: u32, now: Instant) {
        let eligible = self.uplink.eligible_at(index, now);
        let access = &mut self.ues[index as usize].access;
        let first = self.cursor.max(self.air.at_or_after(now));
        if access.proactive.is_some()
            && access.proactive_next.is_none_or(|(granting, _)| granting < first)
        {
            access.plan_proactive(&self.air, first, first);
        }
        let ue = &mut self.ues[index as usize];
        let readiness = ue.uplink_readiness(now, eligible, &self.air);
        if ue.up.note(readiness) {
            self.uplink.activate(index);
        }
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
        let mut plan = access.bsr.plan(now, size, needed);
        let pdu = up.harq.payload_mut(process);
        pdu.block.clear();
        let room = size - plan.map_or(0, |plan| plan.bytes);
        let used = bearer.fill(rlc::Direction::Up, now, room, &mut pdu.block);
        let left = bearer.buffered_bytes(rlc::Direction::Up, now) + up.incoming_load.bytes;
        access.bsr.on_available(now, 0, left);
        if plan.is_none() {
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
        let (now, end) = (self.air.start(slot), self.air.end(slot));
        let feedback = self.air.uplink_feedback(slot);
        let ue = &mut self.ues[index as usize];
        let decoded = ue.up.send(process, is_new, (now, feedback), &self.air.uplink);
        log_block(ue, UP, process, decoded, (now, end), &mut self.out);
        self.agenda.add(feedback, index, EventKind::Feedback(UP));
        if !decoded {
            return;
        }
        let &MacPdu { size, used, report, assembled, granted, .. } = ue.up.harq.payload(process);
        ue.up.receive(process);
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

    /// PRBs that configured grants keep in `slot`.
    fn configured_prbs(&self, slot: u64, class: usize) -> u32 {
        let mut prbs = 0;
        for &index in &self.configured {
            let ue = &self.ues[index as usize];
            let Some(configured) = &ue.access.configured else { continue };
            let (from, end) = (self.air.start(slot), self.air.end(slot));
            let last = ue.access.last_data;
            if configured.next(from, last).is_some_and(|at| at < end) {
                let bytes = u64::from(configured.bytes);
                prbs += self.air.uplink.prbs_for(class, ue.up.mcs, bytes);
            }
        }
        prbs.min(self.air.uplink.prbs)
    }

    /// The configured grant of `slot`, if a process is free.
    fn configured_grant(&mut self, index: u32, slot: u64) -> Option<Grant> {
        let now = self.air.start(slot);
        let class = self.air.class(UP, slot)?;
        let ue = &mut self.ues[index as usize];
        let bytes = ue.access.configured?.bytes;
        let process = ue.up.harq.free(now)?;
        let air = &self.air.uplink;
        let mcs = ue.up.choose_mcs(now, air, self.air.slot());
        let prbs = air.prbs_for(class, mcs, u64::from(bytes)).min(air.prbs);
        let size = air.bytes(class, mcs, prbs);
        Some(Grant { slot, ue: index, process, prbs, mcs, size, is_new: true })
    }
}

impl Ue {
    /// Whether, and from when, uplink can be granted; new data from `eligible` on.
    fn uplink_readiness(&mut self, now: Instant, eligible: Instant, air: &Air) -> Readiness {
        let again = self.up.harq.next_retransmission(now);
        let wanted = self.access.believed.wanted(now) > 0;
        let proactive = self.access.proactive_next.map(|(granting, _)| air.start(granting));
        if again.is_none() && !wanted && proactive.is_none() {
            return Readiness::Never;
        }
        if again.is_some() && self.up.synchronous {
            // The scheduler finds the process's turn; PHICH needs no awake UE.
            return Readiness::Now;
        }
        if !self.access.is_connected(now) || !self.access.is_aligned(now) {
            return Readiness::Never;
        }
        let can_start = self.up.synchronous || self.up.harq.free(now).is_some();
        let new = [wanted.then_some(now), proactive].into_iter().flatten().min();
        let new = new.filter(|_| can_start).map(|at| at.max(eligible));
        match [again, new].into_iter().flatten().min() {
            None => Readiness::Never,
            Some(at) if at > now => Readiness::At(at),
            Some(_) if !self.access.hears(now) => Readiness::At(self.access.next_hearing(now)),
            Some(_) => Readiness::Now,
        }
    }
}

impl UplinkAccess {
    /// Bytes to grant for the PUSCH in slot `pusch`.
    fn to_grant(&mut self, now: Instant, pusch: u64) -> u64 {
        let wanted = match self.believed.bytes() {
            0 => self.believed.wanted(now),
            // Room for headers, of which a report says nothing.
            bytes => self.believed.wanted(now).max(bytes + bytes / 16 + GRANT_HEADERS),
        };
        let due = self.proactive_next.is_some_and(|(_, slot)| slot <= pusch);
        let proactive = self.proactive.filter(|_| due).map_or(0, |grant| u64::from(grant.bytes));
        wanted.max(proactive)
    }
}

/// Bytes that a grant has for headers, beside a sixteenth of what waits.
const GRANT_HEADERS: u64 = 16;
