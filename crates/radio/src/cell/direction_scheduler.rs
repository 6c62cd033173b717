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
    /// By UE: what it was the last time, if nothing has happened to it since. Downlink only.
    known: Vec<Option<Known>>,
}

/// A UE's wishes in all slots of one class, while nothing happens to it.
#[derive(Clone, Copy, Debug)]
struct Known {
    class: usize,
    until: Instant,
    candidate: Candidate,
}

impl DirectionScheduler {
    pub(super) fn new(scheduler: Scheduler) -> Self {
        let (active, candidates, allocations) = (Vec::new(), Vec::new(), Vec::new());
        Self { scheduler, active, candidates, allocations, known: Vec::new() }
    }

    /// The UE in a slot of `class` at `now`, if it wants what it wanted in one before.
    #[inline]
    pub(super) fn recall(&self, ue: u32, class: usize, now: Instant) -> Option<Candidate> {
        let known = self.known.get(ue as usize)?.as_ref()?;
        (known.class == class && now < known.until).then_some(known.candidate)
    }

    /// A UE wants the same in all slots of `class` before `until`, or until it is
    /// [forgotten](Self::forget).
    pub(super) fn remember(&mut self, candidate: Candidate, class: usize, until: Instant) {
        let place = candidate.ue.0 as usize;
        if self.known.len() <= place {
            self.known.resize(place + 1, None);
        }
        self.known[place] = Some(Known { class, until, candidate });
    }

    /// Something has happened to a UE.
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
