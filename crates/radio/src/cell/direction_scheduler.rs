//! The state that a scheduler needs for its direction.

use airpath_base::{Direction, Instant};

use super::carrier::Carrier;
use super::ue::Ue;
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
    /// For each UE, the time up to which its candidate stays the same in slots of the same class.
    /// It is stored separately from the rest, because each slot reads all of them. Downlink only.
    same_until: Vec<Instant>,
    known: Vec<Known>,
}

/// What is known of a UE's downlink as long as nothing happens to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Until when it is valid at most.
    pub(super) until: Instant,
    /// When another report determines the MCS.
    pub(super) reported: Instant,
    pub(super) mcs: u8,
}

impl Known {
    const NOTHING: Self = Self { until: Instant::ZERO, reported: Instant::ZERO, mcs: 0 };
}

impl DirectionScheduler {
    pub(super) fn new(scheduler: Scheduler) -> Self {
        let (active, candidates, allocations) = (Vec::new(), Vec::new(), Vec::new());
        let (same_until, known) = (Vec::new(), Vec::new());
        Self { scheduler, active, candidates, allocations, class: 0, same_until, known }
    }

    /// Notes that a slot of `class` is next; returns whether the candidates are those of another
    /// class.
    pub(super) const fn changes_class(&mut self, class: usize) -> bool {
        let changes = self.class != class;
        self.class = class;
        changes
    }

    /// How many of these UEs, in sequence, need at `now` what they needed before, in slots of this
    /// class.
    #[inline]
    pub(super) fn count_same(&self, ues: &[u32], now: Instant) -> usize {
        let is_same =
            |&ue: &u32| self.same_until.get(ue as usize).is_some_and(|&until| now < until);
        ues.iter().position(|ue| !is_same(ue)).unwrap_or(ues.len())
    }

    /// What is known of a UE at `now`.
    #[inline]
    pub(super) fn recall(&self, ue: u32, now: Instant) -> Option<Known> {
        self.known.get(ue as usize).copied().filter(|known| now < known.until)
    }

    /// Stores what is known of a UE, until it is [forgotten](Self::forget).
    pub(super) fn remember(&mut self, ue: u32, known: Known) {
        let place = ue as usize;
        if self.known.len() <= place {
            self.known.resize(place + 1, Known::NOTHING);
            self.same_until.resize(place + 1, Instant::ZERO);
        }
        self.known[place] = known;
        self.same_until[place] = known.until.min(known.reported);
    }

    /// Something will happen to a UE at `at`.
    #[inline]
    pub(super) fn keep_until(&mut self, ue: u32, at: Instant) {
        if let Some(known) = self.known.get_mut(ue as usize) {
            let same = &mut self.same_until[ue as usize];
            (known.until, *same) = (known.until.min(at), at.min(*same));
        }
    }

    /// Something happened to a UE that may change what it needs.
    #[inline]
    pub(super) fn forget(&mut self, ue: u32) {
        self.keep_until(ue, Instant::ZERO);
    }

    /// Whether the scheduler considers a UE.
    pub(super) fn is_active(&self, ue: u32) -> bool {
        self.active.binary_search(&ue).is_ok()
    }

    /// The scheduler considers a UE from now on.
    pub(super) fn activate(&mut self, ue: u32) {
        if let Err(place) = self.active.binary_search(&ue) {
            let unknown =
                Candidate { ue: UeId(ue), backlog: 0, bits_per_prb: 0, retransmission: None };
            self.active.insert(place, ue);
            self.candidates.insert(place, unknown);
            self.forget(ue);
        }
    }

    /// The scheduler no longer considers a UE.
    pub(super) fn deactivate(&mut self, ue: u32) {
        if let Ok(place) = self.active.binary_search(&ue) {
            self.active.remove(place);
            self.candidates.remove(place);
        }
        self.forget(ue);
    }

    /// When the UE's rate cap allows it to send.
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
