//! Uplink grants of the base station.

use airpath_base::{Direction, Instant};

use super::access::UplinkAccess;
use super::carrier::Carrier;
use super::direction_scheduler::SlotSizes;
use super::engine::Engine;
use super::event::{GrantCause, RadioEventKind};
use super::grant::Grant;
use super::link::Readiness;
use super::ue::Ue;
use crate::mac::drx::{Transmission, TransmissionKind};
use crate::scheduler::{Allocation, AllocationKind, Candidate, Retransmission, UeId};

const UP: Direction = Direction::Uplink;

impl Engine {
    /// Grants the PUSCHs that the PDCCH of `slot` can grant.
    pub(super) fn grant_uplink(&mut self, slot: u64) {
        for at in 0..self.carrier.grants(slot).len() {
            if self.uplink.active.is_empty() {
                return;
            }
            let pusch = slot + self.carrier.grants(slot)[at];
            if let Some(class) = self.carrier.class(UP, pusch) {
                self.grant_slot(slot, pusch, class);
            }
        }
    }

    fn grant_slot(&mut self, slot: u64, pusch: u64, class: usize) {
        let now = self.carrier.start(slot);
        let mut active = core::mem::take(&mut self.uplink.active);
        let mut candidates = core::mem::take(&mut self.uplink.candidates);
        candidates.clear();
        active.retain(|&index| {
            let candidate = self.uplink_candidate(index, class, slot, pusch);
            candidates.extend(candidate);
            candidate.is_some()
        });
        (self.uplink.active, self.uplink.candidates) = (active, candidates);
        let prbs = self.carrier.uplink.room() - self.configured_prbs(pusch, class);
        let sizes = SlotSizes { ues: &self.ues, carrier: &self.carrier, direction: UP, class };
        let side = &mut self.uplink;
        let allocations = side.scheduler.allocate(now, prbs, &side.candidates, &sizes);
        side.allocations.clear();
        side.allocations.extend_from_slice(allocations);
        for at in 0..self.uplink.allocations.len() {
            let Allocation { ue, prbs, kind } = self.uplink.allocations[at];
            self.grant(ue.0, (slot, pusch), class, prbs, kind);
            self.arm_waits(ue.0, now);
        }
        for at in 0..self.uplink.candidates.len() {
            let index = self.uplink.candidates[at].ue.0;
            let access = &mut self.ues.aside(index).access;
            let proactive = access.proactive_next.is_some_and(|(_, due)| due <= pusch);
            if proactive {
                access.plan_proactive(&self.carrier, slot, pusch + 1);
            }
            // Nothing has happened to a UE that got nothing; but DRX may remove more UEs.
            if proactive || access.drx.is_some() {
                self.arm(index, now);
            }
        }
    }

    /// What an active UE needs; deactivates it if it needs nothing.
    fn uplink_candidate(
        &mut self,
        index: u32,
        class: usize,
        slot: u64,
        pusch: u64,
    ) -> Option<Candidate> {
        let now = self.carrier.start(slot);
        let eligible = self.uplink.eligible_at(index, now);
        let ue = self.ues.aside(index);
        let readiness = ue.uplink_readiness(now, eligible, &self.carrier);
        let stays = ue.up.note(readiness);
        if !stays {
            self.arm(index, now);
            return None;
        }
        let sent = self.carrier.start(pusch);
        let carrier = &self.carrier.uplink;
        let mcs = ue.up.choose_mcs(now, carrier, self.carrier.slot());
        // A synchronous process has its turn in the slot of the PUSCH.
        let time = if ue.up.synchronous { sent } else { now };
        let harq = &ue.up.harq;
        let retransmission = harq.retransmission(time).map(|process| Retransmission {
            prbs: harq.payload(process).prbs,
            since: harq.payload(process).failed,
        });
        let hears = ue.access.hears(now);
        let backlog = match harq.free(time) {
            _ if self.carrier.has_standing_grants() => 0,
            Some(_) if hears && eligible <= now => ue.access.bytes_to_grant(now, pusch),
            _ => 0,
        };
        Some(Candidate {
            ue: UeId(index),
            backlog,
            bits_per_prb: carrier.bits_per_prb(class, mcs),
            retransmission,
        })
    }

    fn grant(
        &mut self,
        index: u32,
        (slot, pusch): (u64, u64),
        class: usize,
        prbs: u32,
        kind: AllocationKind,
    ) {
        let (now, sent) = (self.carrier.start(slot), self.carrier.start(pusch));
        let ue = self.ues.aside(index);
        let harq = &mut ue.up.harq;
        let time = if ue.up.synchronous { sent } else { now };
        let is_new = kind == AllocationKind::New;
        let process = if is_new { harq.free(time) } else { harq.retransmission(time) };
        let Some(process) = process else { return };
        harq.reserve(process);
        let (size, mcs) = if is_new {
            let mcs = ue.access.estimate.grant_mcs(ue.up.mcs());
            (self.carrier.uplink.bytes(class, mcs, prbs), mcs)
        } else {
            (harq.payload(process).size, harq.payload(process).mcs)
        };
        let access = &mut ue.access;
        let cause = match kind {
            AllocationKind::Retransmission => GrantCause::Retransmission,
            AllocationKind::New if access.estimate.wanted(now) == 0 => GrantCause::Proactive,
            AllocationKind::New => GrantCause::Buffer,
        };
        if is_new {
            access.estimate.on_grant(now, size);
            access.bsr.on_grant(now);
            access.grants += 1;
            access.counters.grants += 1;
            access.counters.granted_bytes += u64::from(size);
        } else {
            access.estimate.on_retransmission();
        }
        // LTE requests a retransmission by PHICH, without a PDCCH (TS 36.321 5.4.2.1).
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
                harq_rtt_starts: self.carrier.end(pusch),
            },
        );
        self.out.log(now, index, || RadioEventKind::Grant { pusch: sent, bytes: size, cause });
        self.grants.push_back(Grant { slot: pusch, ue: index, process, prbs, mcs, size, is_new });
    }

    /// Decides whether the scheduler can use a UE's uplink; if so, it considers the UE.
    pub(super) fn consider_uplink(&mut self, index: u32, now: Instant) {
        let eligible = self.uplink.eligible_at(index, now);
        let access = &mut self.ues.aside(index).access;
        let first = self.cursor.max(self.carrier.at_or_after(now));
        if access.proactive.is_some()
            && access.proactive_next.is_none_or(|(granting, _)| granting < first)
        {
            access.plan_proactive(&self.carrier, first, first);
        }
        let ue = self.ues.aside(index);
        let readiness = ue.uplink_readiness(now, eligible, &self.carrier);
        if ue.up.note(readiness) {
            self.uplink.activate(index);
        }
    }

    /// PRBs reserved for configured grants in `slot`.
    fn configured_prbs(&self, slot: u64, class: usize) -> u32 {
        if self.carrier.uplink.is_dedicated() {
            return 0;
        }
        let mut prbs = 0;
        for &index in &self.configured {
            let ue = &self.ues[index];
            let Some(configured) = &ue.access.configured else { continue };
            let (from, end) = (self.carrier.start(slot), self.carrier.end(slot));
            let last = ue.access.last_data;
            if configured.next(from, last).is_some_and(|at| at < end) {
                let bytes = u64::from(configured.bytes);
                prbs += self.carrier.uplink.prbs_for(class, ue.up.mcs(), bytes);
            }
        }
        prbs.min(self.carrier.uplink.prbs)
    }
}

impl Ue {
    /// Whether, and from when, uplink can be granted; new data from `eligible` on.
    fn uplink_readiness(
        &mut self,
        now: Instant,
        eligible: Instant,
        carrier: &Carrier,
    ) -> Readiness {
        let again = self.up.harq.next_retransmission(now);
        let wanted = !carrier.has_standing_grants() && self.access.estimate.wanted(now) > 0;
        let proactive = self.access.proactive_next.map(|(granting, _)| carrier.start(granting));
        if again.is_none() && !wanted && proactive.is_none() {
            return Readiness::Never;
        }
        if again.is_some() && self.up.synchronous {
            // The scheduler finds the process's turn; the UE need not be awake for PHICH.
            return Readiness::Now;
        }
        if !self.access.is_connected(now) || !self.access.is_aligned(now) {
            return Readiness::Never;
        }
        let can_start = self.up.synchronous || self.up.harq.free(now).is_some();
        let new = Instant::earliest([wanted.then_some(now), proactive]);
        let new = new.filter(|_| can_start).map(|at| at.max(eligible));
        match Instant::earliest([again, new]) {
            None => Readiness::Never,
            Some(at) if at > now => Readiness::At(at),
            Some(_) if !self.access.hears(now) => Readiness::At(self.access.next_hearing(now)),
            Some(_) => Readiness::Now,
        }
    }
}

impl UplinkAccess {
    /// Bytes to grant for the PUSCH in slot `pusch`.
    fn bytes_to_grant(&mut self, now: Instant, pusch: u64) -> u64 {
        let wanted = self.estimate.grant(now);
        let due = self.proactive_next.is_some_and(|(_, slot)| slot <= pusch);
        let proactive = self.proactive.filter(|_| due).map_or(0, |grant| u64::from(grant.bytes));
        wanted.max(proactive)
    }
}
