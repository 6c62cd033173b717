//! The base station's downlink, and the UE's reception of it.

use airpath_base::{Direction, Instant, is_planted};

use super::carrier_id::{CarrierId, LinkId, PRIMARY};
use super::component::Component;
use super::direction_scheduler::SlotSizes;
use super::engine::Engine;
use super::event::{BlockEvent, RadioEventKind};
use super::event_queue::EventKind;
use super::link::{MacPdu, Readiness};
use super::output::Output;
use super::ue::Ue;
use crate::harq::{Outcome, ProcessId};
use crate::mac::drx::{Transmission, TransmissionKind};
use crate::mac::rach::Preamble;
use crate::scheduler::{AllocationKind, Candidate, Retransmission, UeId};

const DOWN: Direction = Direction::Downlink;

/// Stands in for a UE that is no longer active.
const GONE: u32 = u32::MAX;

impl Engine {
    /// Schedules and sends the PDSCH of a carrier's `slot`.
    pub(super) fn downlink_slot(&mut self, id: CarrierId, slot: u64) {
        let component = &self.carriers[id];
        let Some(class) =
            component.carrier.class(DOWN, slot).filter(|_| !component.downlink.active.is_empty())
        else {
            return;
        };
        let now = component.carrier.start(slot);
        self.find_candidates(id, class, now);
        let Component { carrier, downlink: side, .. } = &mut self.carriers[id];
        let sizes = SlotSizes { ues: &self.ues, carrier, link: id.down(), class };
        let prbs = carrier.downlink.room();
        let allocations = side.scheduler.allocate(now, prbs, &side.candidates, &sizes);
        side.allocations.clear();
        side.allocations.extend_from_slice(allocations);
        for at in 0..self.carriers[id].downlink.allocations.len() {
            let allocation = self.carriers[id].downlink.allocations[at];
            let index = allocation.ue.0;
            match allocation.kind {
                AllocationKind::New => self.send_new((id, slot), index, class, allocation.prbs),
                AllocationKind::Retransmission => {
                    let harq = &self.ues[index].link_ref(id.down()).harq;
                    if let Some(process) = harq.retransmission(now) {
                        self.send_block((id, slot), index, process, false);
                    }
                }
            }
            self.collect_drops(index);
            self.arm(index, now);
        }
    }

    /// Decides which schedulers can use a UE's downlink; they consider the UE.
    #[inline]
    pub(super) fn consider_downlink(&mut self, index: u32, now: Instant) {
        self.consider_downlink_of(PRIMARY, index, now);
        if !self.ues[index].secondary.is_empty() {
            self.consider_others(index, now);
        }
    }

    #[inline(never)]
    fn consider_others(&mut self, index: u32, now: Instant) {
        for id in self.ues[index].secondary_carriers() {
            self.consider_downlink_of(id, index, now);
        }
    }

    #[inline]
    fn consider_downlink_of(&mut self, id: CarrierId, index: u32, now: Instant) {
        let eligible = self.carriers.primary.downlink.eligible_at(index, now);
        let ue = self.ues.aside(index);
        let readiness = ue.downlink_readiness(id, now, eligible);
        let link = ue.link(id.down());
        let was_active = link.active;
        let downlink = &mut self.carriers[id].downlink;
        if link.note(readiness) && !was_active {
            // The UE's need is not known yet.
            self.ues.touch(index);
            downlink.activate(index);
        }
        debug_assert!(
            !self.ues[index].link_ref(id.down()).active || downlink.is_active(index),
            "UE {index} is looked at"
        );
    }

    /// Finds out what each active UE needs in a slot of `class` at `now`, and deactivates those
    /// that need nothing.
    fn find_candidates(&mut self, id: CarrierId, class: usize, now: Instant) {
        let side = &mut self.carriers[id].downlink;
        // What is known of a UE is about the primary carrier.
        let is_another = side.changes_class(class) || id != PRIMARY;
        let mut active = core::mem::take(&mut side.active);
        let mut candidates = core::mem::take(&mut side.candidates);
        let (mut at, mut gone) = (0, 0);
        while at < active.len() {
            if !is_another {
                // With many busy UEs, nothing has happened to most of them.
                at += self.ues.count_same(&active[at..], now);
            }
            let (Some(&index), Some(before)) = (active.get(at), candidates.get_mut(at)) else {
                break;
            };
            match self.candidate(id, index, class, now, before) {
                Some(candidate) => *before = candidate,
                None => {
                    active[at] = GONE;
                    gone += 1;
                }
            }
            at += 1;
        }
        if gone > 0 {
            let mut stays = active.iter().map(|&index| index != GONE);
            candidates.retain(|_| stays.next() == Some(true));
            active.retain(|&index| index != GONE);
        }
        let side = &mut self.carriers[id].downlink;
        debug_assert!(side.active.is_empty(), "nobody is activated meanwhile");
        (side.active, side.candidates) = (active, candidates);
    }

    /// What an active UE needs in a slot of `class`; `None`: nothing.
    #[inline(never)]
    pub(super) fn find_candidate(
        &mut self,
        id: CarrierId,
        index: u32,
        class: usize,
        now: Instant,
    ) -> Option<Candidate> {
        let eligible = self.carriers.primary.downlink.eligible_at(index, now);
        let allowed = self.carriers.allowed(id.down(), index, now);
        let ue = self.ues.touch(index);
        // Timers that expire by now were in the event queue, and have been handled.
        ue.admit(|arrival| arrival <= now);
        let readiness = ue.downlink_readiness(id, now, eligible);
        let fach = ue.access.fach(now);
        let down = ue.link(id.down());
        if !down.note(readiness) {
            self.collect_drops(index);
            self.arm(index, now);
            return None;
        }
        let Component { carrier, .. } = &self.carriers[id];
        let (carrier, slot) = (&carrier.downlink, carrier.slot());
        let mcs = match fach {
            None => down.choose_mcs(now, carrier, slot),
            Some(fach) => down.common_mcs(now, &fach, carrier),
        };
        let retransmission = down.harq.retransmission(now);
        let retransmission = retransmission.map(|process| Retransmission {
            prbs: down.harq.payload(process).prbs,
            since: down.harq.payload(process).failed,
        });
        let rests = is_planted("rest every second millisecond")
            && !(now.as_nanos() / 1_000_000).is_multiple_of(2);
        let new = down.harq.free(now).is_some() && eligible <= now && !rests;
        let candidate = Candidate {
            ue: UeId(index),
            backlog: if new { ue.needed(DOWN, now).min(allowed) } else { 0 },
            bits_per_prb: carrier.bits_per_prb(class, mcs),
            retransmission,
        };
        if id == PRIMARY {
            self.remember_candidate(index, now);
        }
        Some(candidate)
    }

    fn send_new(&mut self, (id, slot): (CarrierId, u64), index: u32, class: usize, prbs: u32) {
        let carrier = &self.carriers[id].carrier;
        let now = carrier.start(slot);
        let ue = self.ues.touch(index);
        let down = ue.link(id.down());
        let Some(process) = down.harq.free(now) else { return };
        let mcs = down.mcs();
        let size = carrier.downlink.bytes(class, mcs, prbs);
        let mut block = core::mem::take(&mut down.harq.payload_mut(process).block);
        block.clear();
        let fach = ue.access.fach(now);
        let size = fach.map_or(size, |fach| ue.down.bounded_block(fach.bytes, size));
        let used = ue.bearer.touch().fill(DOWN, now, size, &mut block);
        if ue.is_accounted() {
            ue.down.note_left(ue.bearer.buffered_bytes(DOWN, now));
        }
        let pdu = ue.link(id.down()).harq.payload_mut(process);
        if used == 0 {
            // Everything that waited was dropped, or the window is full.
            pdu.block = block;
            return;
        }
        *pdu = MacPdu {
            block,
            report: None,
            assembled: now,
            failed: now,
            size,
            used,
            prbs,
            mcs,
            granted: true,
        };
        self.carriers.spend(id.down(), index, used);
        self.send_block((id, slot), index, process, true);
    }

    fn send_block(
        &mut self,
        (id, slot): (CarrierId, u64),
        index: u32,
        process: ProcessId,
        is_new: bool,
    ) {
        let feedback = self.carriers.feedback(id, slot);
        let carrier = &self.carriers[id].carrier;
        let (now, end) = (carrier.start(slot), carrier.block_end(DOWN, slot));
        let ue = self.ues.touch(index);
        let end = ue.access.fach(now).map_or(end, |fach| now + fach.downlink_time);
        let down = ue.link(id.down());
        let decoded = down.send(process, is_new, (now, feedback), &carrier.downlink);
        log_block(ue, id.down(), process, decoded, (now, end), &mut self.out);
        let down = ue.link(id.down());
        let number = down.number(process);
        if decoded {
            down.receive(process, now, end);
            self.events.add(end + ue.processing, index, EventKind::Block(id.down()));
        }
        self.events.add(feedback, index, EventKind::Feedback(id.down()));
        let kind = if is_new { TransmissionKind::New } else { TransmissionKind::Retransmission };
        // TS 38.321 5.7: after the end of the feedback; TS 36.321 5.7: in the subframe of the
        // assignment
        let harq_rtt_starts = if carrier.is_lte() { now } else { feedback };
        let announced = Transmission { direction: DOWN, kind, process: number, harq_rtt_starts };
        ue.access.on_transmission(now, &announced);
        ue.access.on_activity(now);
        ue.access.align(now);
    }

    /// A decoded block reaches RLC, in the UE or in the base station.
    pub(super) fn on_block(&mut self, index: u32, id: LinkId, now: Instant) {
        self.settle(index, now);
        let direction = id.direction;
        let ue = match direction {
            DOWN => self.ues.aside(index),
            // An uplink block may contain a STATUS for the downlink, or poll for a STATUS in the
            // downlink.
            Direction::Uplink => self.ues.touch(index),
        };
        if let Some((_, block)) = ue.link(id).arriving.pop_front() {
            let out = &mut self.out;
            ue.bearer.touch().on_block(direction, now, &block, &mut |at, packet| {
                out.depart(direction, index, at, packet);
            });
            ue.link(id).recycle(block);
        }
        self.collect_drops(index);
        // A STATUS may have to be sent, and one that arrived may require a retransmission.
        self.update_uplink(index, now);
        self.consider_downlink(index, now);
    }

    /// HARQ feedback of either direction has arrived; returns whether a block was lost.
    pub(super) fn on_feedback(&mut self, index: u32, id: LinkId, now: Instant) -> bool {
        let mut lost = false;
        let direction = id.direction;
        let carrier = &self.carriers[id.carrier].carrier;
        let (answered, ends_early) = (carrier.answers_uplink(), carrier.ends_early());
        self.settle(index, now);
        let ue = match direction {
            DOWN => self.ues.touch(index),
            Direction::Uplink => self.ues.aside(index),
        };
        while let Some(feedback) = ue.link(id).harq.poll_feedback(now) {
            let link = ue.link(id);
            let counts = match ends_early {
                true => feedback.outcome != Outcome::Retransmit,
                false => feedback.transmissions == 1,
            };
            if counts {
                link.adapt(feedback.outcome.is_ack());
            }
            let process = feedback.process;
            let number = link.number(process);
            match feedback.outcome {
                Outcome::Acknowledged => {
                    if let Some(drx) = &mut ue.access.drx {
                        match direction {
                            DOWN => drx.on_decoded(now, number),
                            // TS 36.321 5.7: PHICH. NR has none: the timer starts (TS 38.321 5.7).
                            Direction::Uplink if answered => drx.on_acknowledged(now, number),
                            Direction::Uplink => {}
                        }
                    }
                }
                Outcome::Retransmit => {
                    // Since when it has waited, for the scheduler.
                    link.harq.payload_mut(process).failed = now;
                }
                Outcome::Lost | Outcome::FalselyAcknowledged => {
                    lost = true;
                    link.counters.lost_blocks += 1;
                    let bytes = link.harq.payload(process).size;
                    let spare = core::mem::take(&mut link.harq.payload_mut(process).block);
                    ue.bearer.touch().on_loss(direction, now, &spare);
                    let pdu = ue.link(id).harq.payload_mut(process);
                    pdu.block = spare;
                    pdu.block.clear();
                    self.out.log(now, index, || RadioEventKind::Lost { direction, bytes });
                    if direction == Direction::Uplink {
                        // The block may have contained a report: the base station asks.
                        ue.access.estimate.on_transport_block(now, bytes);
                        ue.access.estimate.on_request(now);
                    }
                }
            }
        }
        self.collect_drops(index);
        match direction {
            DOWN => self.consider_downlink(index, now),
            Direction::Uplink => self.consider_uplink(index, now),
        }
        lost
    }
}

impl Ue {
    /// Whether, and from when, the downlink can be scheduled; data may be sent from `eligible` on.
    pub(super) fn downlink_readiness(
        &mut self,
        id: CarrierId,
        now: Instant,
        eligible: Instant,
    ) -> Readiness {
        let again = self.link_ref(id.down()).harq.next_retransmission(now);
        let new = self.bearer.is_ready(DOWN, now);
        if again.is_none() && !new {
            return Readiness::Never;
        }
        if let Some(rrc) = &mut self.access.rrc {
            let ready = rrc.request(now, DOWN, || self.bearer.buffered_bytes(DOWN, now));
            let ready = rrc.fach(now).map_or(ready, |fach| fach.downlink.at_or_after(ready));
            if ready > now {
                return Readiness::At(ready);
            }
        }
        if !self.access.is_aligned(now) {
            // TS 38.321 5.1.1: a PDCCH order
            return match self.access.hears(now) {
                true => {
                    self.access.order_random_access(now, Preamble::ContentionFree);
                    Readiness::Never
                }
                false => Readiness::At(self.access.next_hearing(now)),
            };
        }
        let new = (new && self.link_ref(id.down()).harq.free(now).is_some()).then_some(eligible);
        match Instant::earliest([again, new]) {
            None => Readiness::Never,
            Some(at) if at > now => Readiness::At(at),
            Some(_) if !self.access.hears(now) => Readiness::At(self.access.next_hearing(now)),
            Some(_) => Readiness::Now,
        }
    }
}

pub(super) fn log_block(
    ue: &Ue,
    id: LinkId,
    process: ProcessId,
    decoded: bool,
    (at, end): (Instant, Instant),
    out: &mut Output,
) {
    out.log(at, ue.index, || {
        let link = ue.link_ref(id);
        let &MacPdu { mcs, prbs, size, used, .. } = link.harq.payload(process);
        RadioEventKind::Block(BlockEvent {
            direction: id.direction,
            carrier: id.carrier.0,
            end,
            process: process.0,
            transmission: link.harq.transmissions(process),
            decoded,
            mcs,
            prbs,
            bytes: size,
            used,
            sinr_db: link.sinr_db,
        })
    });
}
