//! Component carriers of a cell (TS 38.300 6.7, TS 36.300 5.5): the primary one and, with carrier
//! aggregation, secondary ones.
//!
//! Each has its own slots, schedulers, grants, and HARQ entities of the UEs; a block is retransmitted
//! on the carrier on which it was sent. All carry the same bearers. PUCCH, random access, DRX and
//! everything else of a UE are on the primary carrier.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use airpath_base::{Direction, Duration, Instant};

use super::carrier::Carrier;
use super::carrier_id::{CarrierId, LinkId, PRIMARY, secondary_ids};
use super::config::CellConfig;
use super::direction_scheduler::DirectionScheduler;
use super::grant::Grant;
use crate::scheduler::{Scheduler, UeId};

/// A component carrier: its slots, who is served in them, and what was granted.
#[derive(Debug)]
pub(super) struct Component {
    pub(super) carrier: Carrier,
    pub(super) downlink: DirectionScheduler,
    pub(super) uplink: DirectionScheduler,
    /// Grants, in order of their slots.
    pub(super) grants: VecDeque<Grant>,
    /// The first slot that is not finished.
    pub(super) cursor: u64,
}

impl Component {
    fn new(config: &CellConfig) -> Self {
        Self {
            carrier: Carrier::new(config),
            downlink: DirectionScheduler::new(Scheduler::new(config.downlink_scheduler)),
            uplink: DirectionScheduler::new(Scheduler::new(config.uplink_scheduler)),
            grants: VecDeque::new(),
            cursor: 0,
        }
    }

    /// The first slot that has not begun, if everything until `done` is done.
    #[inline]
    pub(super) fn first_open(&self, done: Option<Instant>) -> u64 {
        match done {
            Some(done) if done >= self.carrier.start(self.cursor) => {
                self.carrier.containing(done) + 1
            }
            _ => self.cursor,
        }
    }

    /// An event is due at `at`: earlier slots had nothing to do.
    #[inline]
    fn reach(&mut self, at: Instant) {
        if at > self.carrier.start(self.cursor) {
            self.cursor = self.carrier.at_or_after(at);
        }
        debug_assert!(self.cursor >= self.carrier.at_or_after(at), "the cursor at {at:?}");
    }
}

/// All component carriers of a cell.
#[derive(Debug)]
pub(super) struct Components {
    pub(super) primary: Component,
    pub(super) secondary: Vec<Component>,
}

impl Components {
    pub(super) fn new(config: &CellConfig) -> Self {
        Self {
            primary: Component::new(config),
            secondary: config.secondary.iter().map(Component::new).collect(),
        }
    }

    #[inline]
    pub(super) fn secondary_ids(&self) -> impl Iterator<Item = CarrierId> + use<> {
        secondary_ids(self.secondary.len())
    }

    /// The slots and block sizes of all, the primary one's first.
    pub(super) fn carriers(&self) -> Vec<&Carrier> {
        self.iter().map(|component| &component.carrier).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Component> {
        std::iter::once(&self.primary).chain(&self.secondary)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Component> {
        std::iter::once(&mut self.primary).chain(&mut self.secondary)
    }

    /// Everything until `done` is done.
    #[inline]
    pub(super) fn open(&mut self, done: Option<Instant>) {
        self.primary.cursor = self.primary.first_open(done);
        for component in &mut self.secondary {
            component.cursor = component.first_open(done);
        }
    }

    /// An event is due at `at`.
    #[inline]
    pub(super) fn reach(&mut self, at: Instant) {
        self.primary.reach(at);
        self.secondary.iter_mut().for_each(|component| component.reach(at));
    }

    /// `slot` of a carrier begins: what others had to do by then is over.
    #[inline]
    pub(super) fn begin(&mut self, id: CarrierId, slot: u64) {
        if !self.secondary.is_empty() {
            let at = self[id].carrier.start(slot);
            for (component, other) in self.iter_mut().zip(0..) {
                match other < id.0 {
                    // A slot of that carrier that begins now came first.
                    true => component.reach(at + Duration::from_nanos(1)),
                    false => component.reach(at),
                }
            }
        }
        self[id].cursor = slot;
    }

    /// When the base station has the feedback of a PDSCH in `slot` of a carrier, on the PUCCH of the
    /// primary one.
    #[inline]
    pub(super) fn feedback(&self, id: CarrierId, slot: u64) -> Instant {
        match id.secondary() {
            None => self.primary.carrier.feedback(slot),
            Some(index) => self.primary.carrier.feedback_of(&self.secondary[index].carrier, slot),
        }
    }

    /// Bytes that the rate cap of a UE allows on a secondary carrier. The scheduler of the primary
    /// one counts for all.
    #[inline]
    pub(super) fn allowed(&mut self, id: LinkId, ue: u32, now: Instant) -> u64 {
        match id.carrier {
            PRIMARY => u64::MAX,
            _ => self.cap(id.direction).allowed(UeId(ue), now),
        }
    }

    /// A secondary carrier sends or grants `bytes`.
    #[inline]
    pub(super) fn spend(&mut self, id: LinkId, ue: u32, bytes: u32) {
        if id.carrier != PRIMARY {
            self.cap(id.direction).spend(UeId(ue), u64::from(bytes));
        }
    }

    #[inline(never)]
    fn cap(&mut self, direction: Direction) -> &mut Scheduler {
        match direction {
            Direction::Downlink => &mut self.primary.downlink.scheduler,
            Direction::Uplink => &mut self.primary.uplink.scheduler,
        }
    }
}

impl Index<CarrierId> for Components {
    type Output = Component;

    #[inline]
    fn index(&self, id: CarrierId) -> &Component {
        match id.secondary() {
            None => &self.primary,
            Some(index) => &self.secondary[index],
        }
    }
}

impl IndexMut<CarrierId> for Components {
    #[inline]
    fn index_mut(&mut self, id: CarrierId) -> &mut Component {
        match id.secondary() {
            None => &mut self.primary,
            Some(index) => &mut self.secondary[index],
        }
    }
}
