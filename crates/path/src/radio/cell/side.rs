//! What a scheduler needs besides itself.

use airpath_base::Instant;

use super::air::Air;
use super::ue::Ue;
use crate::radio::Direction;
use crate::radio::scheduler::{Allocation, BlockSizes, Candidate, Scheduler, UeId};

/// One direction's scheduler.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) scheduler: Scheduler,
    /// UEs that it looks at in every slot, in order.
    pub(super) active: Vec<u32>,
    /// Scratch.
    pub(super) candidates: Vec<Candidate>,
    pub(super) allocations: Vec<Allocation>,
}

impl Side {
    pub(super) fn new(scheduler: Scheduler) -> Self {
        let (active, candidates, allocations) = (Vec::new(), Vec::new(), Vec::new());
        Self { scheduler, active, candidates, allocations }
    }

    /// The scheduler looks at a UE from now on.
    pub(super) fn activate(&mut self, ue: u32) {
        if let Err(place) = self.active.binary_search(&ue) {
            self.active.insert(place, ue);
        }
    }

    /// When the UE's rate cap lets it send.
    pub(super) fn eligible_at(&self, ue: u32, now: Instant) -> Instant {
        self.scheduler.eligible_at(UeId(ue), now)
    }
}

/// Block sizes of one slot, for the scheduler.
pub(super) struct SlotSizes<'a> {
    pub(super) ues: &'a [Ue],
    pub(super) air: &'a Air,
    pub(super) direction: Direction,
    pub(super) class: usize,
}

impl SlotSizes<'_> {
    fn mcs(&self, ue: UeId) -> u8 {
        let ue = &self.ues[ue.0 as usize];
        match self.direction {
            Direction::Downlink => ue.down.mcs,
            Direction::Uplink => ue.up.mcs,
        }
    }
}

impl BlockSizes for SlotSizes<'_> {
    fn bytes(&self, ue: UeId, prbs: u32) -> u32 {
        self.air.link(self.direction).bytes(self.class, self.mcs(ue), prbs)
    }

    fn prbs_for(&self, ue: UeId, bytes: u64) -> u32 {
        self.air.link(self.direction).prbs_for(self.class, self.mcs(ue), bytes)
    }
}
