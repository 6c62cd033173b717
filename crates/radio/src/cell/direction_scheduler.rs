//! What a scheduler needs besides itself.

use airpath_base::{Direction, Instant};

use super::carrier::Carrier;
use super::ue::Ue;
use crate::scheduler::{Allocation, BlockSizes, Candidate, Scheduler, UeId};

/// One direction's scheduler.
#[derive(Debug)]
pub(super) struct DirectionScheduler {
    pub(super) scheduler: Scheduler,
    /// UEs that it looks at in every slot, in order.
    pub(super) active: Vec<u32>,
    /// Scratch.
    pub(super) candidates: Vec<Candidate>,
    pub(super) allocations: Vec<Allocation>,
    /// By UE: what it wanted the last time, if nothing has happened to it since. Downlink only.
    known: Vec<Option<Known>>,
}

/// What a UE wants, and will want while nothing happens to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Until then at most.
    pub(super) until: Instant,
    /// When another report counts for the MCS.
    pub(super) reported: Instant,
    pub(super) backlog: u64,
    /// What a PRB carries, which is the same in all slots of a class.
    pub(super) bits_per_prb: u32,
    pub(super) class: u8,
    pub(super) mcs: u8,
}

impl Known {
    pub(super) const fn candidate(&self, ue: UeId) -> Candidate {
        let Self { backlog, bits_per_prb, .. } = *self;
        Candidate { ue, backlog, bits_per_prb, retransmission: None }
    }
}

impl DirectionScheduler {
    pub(super) fn new(scheduler: Scheduler) -> Self {
        let (active, candidates, allocations) = (Vec::new(), Vec::new(), Vec::new());
        Self { scheduler, active, candidates, allocations, known: Vec::new() }
    }

    /// What a UE wants at `now`, if it is what it wanted before.
    #[inline]
    pub(super) fn recall(&mut self, ue: u32, now: Instant) -> Option<&mut Known> {
        self.known.get_mut(ue as usize)?.as_mut().filter(|known| now < known.until)
    }

    /// A UE wants this, until it is [forgotten](Self::forget).
    pub(super) fn remember(&mut self, ue: u32, known: Known) {
        let place = ue as usize;
        if self.known.len() <= place {
            self.known.resize(place + 1, None);
        }
        self.known[place] = Some(known);
    }

    /// Something will happen to a UE at `at`.
    #[inline]
    pub(super) fn keep_until(&mut self, ue: u32, at: Instant) {
        if let Some(Some(known)) = self.known.get_mut(ue as usize) {
            known.until = known.until.min(at);
        }
    }

    /// Something has happened to a UE that may change what it wants.
    #[inline]
    pub(super) fn forget(&mut self, ue: u32) {
        if let Some(known) = self.known.get_mut(ue as usize) {
            *known = None;
        }
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
    pub(super) carrier: &'a Carrier,
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
        self.carrier.link(self.direction).bytes(self.class, self.mcs(ue), prbs)
    }

    fn prbs_for(&self, ue: UeId, bytes: u64) -> u32 {
        self.carrier.link(self.direction).prbs_for(self.class, self.mcs(ue), bytes)
    }
}
