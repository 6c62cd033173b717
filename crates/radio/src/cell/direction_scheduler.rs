//! The state that a scheduler needs for its direction.

use airpath_base::{Direction, Instant};

use super::carrier::Carrier;
use super::carrier_id::LinkId;
use super::ues::Ues;
use crate::scheduler::{Allocation, BlockSizes, Candidate, Scheduler, UeId};

/// The scheduler of one direction.
#[derive(Debug)]
pub(super) struct DirectionScheduler {
    pub(super) scheduler: Scheduler,
    /// UEs that it considers in every slot, in order.
    pub(super) active: Vec<u32>,
    /// What each of them needs, in the same order. Downlink: kept from slot to slot.
    pub(super) candidates: Vec<Candidate>,
    /// Scratch.
    pub(super) allocations: Vec<Allocation>,
    /// Class of the slots for which the candidates were computed.
    class: usize,
}

impl DirectionScheduler {
    pub(super) fn new(scheduler: Scheduler) -> Self {
        let (active, candidates, allocations) = (Vec::new(), Vec::new(), Vec::new());
        Self { scheduler, active, candidates, allocations, class: 0 }
    }

    /// Notes that a slot of `class` is next; returns whether the candidates are those of another
    /// class.
    pub(super) const fn changes_class(&mut self, class: usize) -> bool {
        let changes = self.class != class;
        self.class = class;
        changes
    }

    /// Whether the scheduler considers a UE.
    pub(super) fn is_active(&self, ue: u32) -> bool {
        self.active.binary_search(&ue).is_ok()
    }

    /// The scheduler considers a UE from now on.
    pub(super) fn activate(&mut self, ue: u32) {
        if let Err(place) = self.active.binary_search(&ue) {
            self.active.insert(place, ue);
            self.candidates.insert(place, unknown(ue));
        }
    }

    /// Makes the scheduler consider these UEs and no others.
    pub(super) fn consider(&mut self, ues: impl Iterator<Item = u32>) {
        self.active.clear();
        self.active.extend(ues);
        self.candidates.clear();
        self.candidates.extend(self.active.iter().map(|&ue| unknown(ue)));
    }

    /// The scheduler no longer considers a UE.
    pub(super) fn deactivate(&mut self, ue: u32) {
        if let Ok(place) = self.active.binary_search(&ue) {
            self.active.remove(place);
            self.candidates.remove(place);
        }
    }

    /// When the UE's rate cap allows it to send.
    pub(super) fn eligible_at(&self, ue: u32, now: Instant) -> Instant {
        self.scheduler.eligible_at(UeId(ue), now)
    }
}

/// The candidate for a UE whose need is not known yet.
const fn unknown(ue: u32) -> Candidate {
    Candidate { ue: UeId(ue), backlog: 0, bits_per_prb: 0, retransmission: None }
}

/// Block sizes of one slot, for the scheduler.
pub(super) struct SlotSizes<'a> {
    pub(super) ues: &'a Ues,
    pub(super) carrier: &'a Carrier,
    pub(super) link: LinkId,
    pub(super) class: usize,
}

impl SlotSizes<'_> {
    fn mcs(&self, ue: UeId) -> u8 {
        self.ues[ue.0].link_ref(self.link).mcs()
    }
}

impl BlockSizes for SlotSizes<'_> {
    fn bytes(&self, ue: UeId, prbs: u32) -> u32 {
        self.carrier.link(self.link.direction).bytes(self.class, self.mcs(ue), prbs)
    }

    fn prbs_for(&self, ue: UeId, bytes: u64) -> u32 {
        let prbs = self.carrier.link(self.link.direction).prbs_for(self.class, self.mcs(ue), bytes);
        match self.link.direction {
            Direction::Downlink => prbs,
            Direction::Uplink => prbs.max(self.ues[ue.0].access.estimate.least_prbs()),
        }
    }
}
