//! Uplink grants of the base station.

use airpath_base::{Direction, Instant};

use super::access::UplinkAccess;
use super::carrier::Carrier;
use super::carrier_id::{CarrierId, PRIMARY};
use super::component::Component;
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
    /// Grants the PUSCHs that the PDCCH of a carrier's `slot` can grant.
    pub(super) fn grant_uplink(&mut self, id: CarrierId, slot: u64) {
        for at in 0..self.carriers[id].carrier.grants(slot).len() {
            let Component { carrier, uplink, .. } = &self.carriers[id];
            if uplink.active.is_empty() {
                return;
            }
            let pusch = slot + carrier.grants(slot)[at];
            if let Some(class) = carrier.class(UP, pusch) {
                self.grant_slot(id, (slot, pusch), class);
            }
        }
    }

    fn grant_slot(&mut self, id: CarrierId, (slot, pusch): (u64, u64), class: usize) {
        let Component { carrier, uplink, .. } = &mut self.carriers[id];
        let now = carrier.start(slot);
        let mut active = core::mem::take(&mut uplink.active);
        let mut candidates = core::mem::take(&mut uplink.candidates);
        candidates.clear();
        active.retain(|&index| {
            let candidate = self.uplink_candidate(id, index, class, (slot, pusch));
            candidates.extend(candidate);
            candidate.is_some()
        });
        let configured = self.configured_prbs(id, pusch, class);
        let Component { carrier, uplink: side, .. } = &mut self.carriers[id];
        (side.active, side.candidates) = (active, candidates);
        let prbs = carrier.uplink.room() - configured;
        let sizes = SlotSizes { ues: &self.ues, carrier, link: id.up(), class };
        let allocations = side.scheduler.allocate(now, prbs, &side.candidates, &sizes);
        side.allocations.clear();
        side.allocations.extend_from_slice(allocations);
        for at in 0..self.carriers[id].uplink.allocations.len() {
            let Allocation { ue, prbs, kind } = self.carriers[id].uplink.allocations[at];
            self.grant(id, ue.0, (slot, pusch), class, prbs, kind);
            self.arm_waits(ue.0, now);
        }
        for at in 0..self.carriers[id].uplink.candidates.len() {
            let index = self.carriers[id].uplink.candidates[at].ue.0;
            let access = &mut self.ues.aside(index).access;
            let due = access.proactive_next.is_some_and(|(_, due)| due <= pusch);
            let proactive = id == PRIMARY && due;
            if proactive {
                access.plan_proactive(&self.carriers.primary.carrier, slot, pusch + 1);
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
        id: CarrierId,
        index: u32,
        class: usize,
        (slot, pusch): (u64, u64),
    ) -> Option<Candidate> {
        let now = self.carriers[id].carrier.start(slot);
        let eligible = self.carriers.primary.uplink.eligible_at(index, now);
        let allowed = self.carriers.allowed(id.up(), index, now);
        let carrier = &self.carriers[id].carrier;
        let ue = self.ues.aside(index);
        let readiness = ue.uplink_readiness(id, now, eligible, carrier);
        let stays = ue.link(id.up()).note(readiness);
        if !stays {
            self.arm(index, now);
            return None;
        }
        let sent = carrier.start(pusch);
        let mcs = ue.link(id.up()).choose_mcs(now, &carrier.uplink, carrier.slot());
        let hears = ue.access.hears(now);
        let up = ue.link_ref(id.up());
        // A synchronous process has its turn in the slot of the PUSCH.
        let time = if up.synchronous { sent } else { now };
        let harq = &up.harq;
        let retransmission = harq.retransmission(time).map(|process| Retransmission {
            prbs: harq.payload(process).prbs,
            since: harq.payload(process).failed,
        });
        let backlog = match harq.free(time) {
            _ if carrier.has_standing_grants() => 0,
            Some(_) if hears && eligible <= now => match id {
                PRIMARY => ue.access.bytes_to_grant(now, pusch),
                _ => ue.access.estimate.grant(now).min(allowed),
            },
            _ => 0,
        };
        Some(Candidate {
            ue: UeId(index),
            backlog,
            bits_per_prb: carrier.uplink.bits_per_prb(class, mcs),
            retransmission,
        })
    }

    fn grant(
        &mut self,
        id: CarrierId,
        index: u32,
        (slot, pusch): (u64, u64),
        class: usize,
        prbs: u32,
        kind: AllocationKind,
    ) {
        let carrier = &self.carriers[id].carrier;
        let (now, sent) = (carrier.start(slot), carrier.start(pusch));
        let ue = self.ues.aside(index);
        let up = ue.link(id.up());
        let (synchronous, adapted) = (up.synchronous, up.mcs());
        let harq = &mut up.harq;
        let time = if synchronous { sent } else { now };
        let is_new = kind == AllocationKind::New;
        let process = if is_new { harq.free(time) } else { harq.retransmission(time) };
        let Some(process) = process else { return };
        harq.reserve(process);
        let (size, mcs) = if is_new {
            let mcs = ue.access.estimate.grant_mcs(adapted);
            (carrier.uplink.bytes(class, mcs, prbs), mcs)
        } else {
            (harq.payload(process).size, harq.payload(process).mcs)
        };
        let number = ue.link_ref(id.up()).number(process);
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
        let announced = match (is_new, synchronous) {
            (true, _) => TransmissionKind::New,
            (false, true) => TransmissionKind::Configured,
            (false, false) => TransmissionKind::Retransmission,
        };
        access.on_transmission(
            now,
            &Transmission {
                direction: UP,
                kind: announced,
                process: number,
                harq_rtt_starts: carrier.end(pusch),
            },
        );
        self.out.log(now, index, || RadioEventKind::Grant { pusch: sent, bytes: size, cause });
        if is_new {
            self.carriers.spend(id.up(), index, size);
        }
        let grant = Grant { slot: pusch, ue: index, process, prbs, mcs, size, is_new };
        self.carriers[id].grants.push_back(grant);
    }

    /// Decides which schedulers can use a UE's uplink; they consider the UE.
    #[inline]
    pub(super) fn consider_uplink(&mut self, index: u32, now: Instant) {
        let Component { carrier, cursor, .. } = &self.carriers.primary;
        let access = &mut self.ues.aside(index).access;
        let first = (*cursor).max(carrier.at_or_after(now));
        if access.proactive.is_some()
            && access.proactive_next.is_none_or(|(granting, _)| granting < first)
        {
            access.plan_proactive(carrier, first, first);
        }
        self.consider_uplink_of(PRIMARY, index, now);
        if !self.ues[index].secondary.is_empty() {
            self.consider_other_uplinks(index, now);
        }
    }

    #[inline(never)]
    fn consider_other_uplinks(&mut self, index: u32, now: Instant) {
        for id in self.ues[index].secondary_carriers() {
            if self.ues[index].uses(id.up()) {
                self.consider_uplink_of(id, index, now);
            }
        }
    }

    #[inline]
    fn consider_uplink_of(&mut self, id: CarrierId, index: u32, now: Instant) {
        let eligible = self.carriers.primary.uplink.eligible_at(index, now);
        let Component { carrier, uplink, .. } = &mut self.carriers[id];
        let ue = self.ues.aside(index);
        let readiness = ue.uplink_readiness(id, now, eligible, carrier);
        if ue.link(id.up()).note(readiness) {
            uplink.activate(index);
        }
    }

    /// PRBs reserved for configured grants in `slot`.
    fn configured_prbs(&self, id: CarrierId, slot: u64, class: usize) -> u32 {
        let carrier = &self.carriers.primary.carrier;
        if id != PRIMARY || carrier.uplink.is_dedicated() {
            return 0;
        }
        let mut prbs = 0;
        for &index in &self.configured {
            let ue = &self.ues[index];
            let Some(configured) = &ue.access.configured else { continue };
            let (from, end) = (carrier.start(slot), carrier.end(slot));
            let last = ue.access.last_data;
            if configured.next(from, last).is_some_and(|at| at < end) {
                let bytes = u64::from(configured.bytes);
                prbs += carrier.uplink.prbs_for(class, ue.up.mcs(), bytes);
            }
        }
        prbs.min(carrier.uplink.prbs)
    }
}

impl Ue {
    /// Whether, and from when, uplink can be granted; new data from `eligible` on.
    fn uplink_readiness(
        &mut self,
        id: CarrierId,
        now: Instant,
        eligible: Instant,
        carrier: &Carrier,
    ) -> Readiness {
        let again = self.link_ref(id.up()).harq.next_retransmission(now);
        let wanted = !carrier.has_standing_grants() && self.access.estimate.wanted(now) > 0;
        let proactive = self.access.proactive_next.filter(|_| id == PRIMARY);
        let proactive = proactive.map(|(granting, _)| carrier.start(granting));
        if again.is_none() && !wanted && proactive.is_none() {
            return Readiness::Never;
        }
        if again.is_some() && self.link_ref(id.up()).synchronous {
            // The scheduler finds the process's turn; the UE need not be awake for PHICH.
            return Readiness::Now;
        }
        if !self.access.is_connected(now) || !self.access.is_aligned(now) {
            return Readiness::Never;
        }
        let up = self.link_ref(id.up());
        let can_start = up.synchronous || up.harq.free(now).is_some();
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
