//! What packets wait for, if they are accounted for.

use airpath_base::{Direction, Duration, Instant, Journeys, Site};

use super::Cell;
use super::access::UplinkAccess;
use super::asking::Asking;
use super::departure::UeIndex;
use super::engine::Engine;
use super::link::Link;
use super::ue::Ue;
use crate::wait_meter::Wait;

impl Cell {
    /// From now on accounts for packets of a UE in this cell, in two places from `first` on.
    pub(crate) fn account(&mut self, ue: UeIndex, journeys: &Journeys, first: Site) {
        let ue = self.engine.aside().ues.aside(ue.0);
        let aggregates = ue.aggregates();
        let bearer = ue.bearer.aside();
        bearer.account(journeys, first);
        bearer.aggregate(aggregates);
    }

    /// How long packets of one direction of a UE have waited to be sent.
    pub(crate) fn busy(&self, now: Instant, ue: UeIndex, direction: Direction) -> Duration {
        let bearer = &self.engine.ues[ue.0].bearer;
        match direction {
            Direction::Downlink => bearer.down.busy(now),
            Direction::Uplink => bearer.up.busy(now),
        }
    }
}

impl Engine {
    /// Something happened to a UE: its packets may wait for something else.
    pub(super) fn note_waits(&mut self, index: u32, now: Instant) {
        let standing = self.carriers.primary.carrier.has_standing_grants();
        let ue = self.ues.aside(index);
        let (down, up) = (ue.downlink_wait(now), ue.uplink_wait(now, standing));
        let bearer = ue.bearer.aside();
        bearer.down.wait(now, down);
        bearer.up.wait(now, up);
    }
}

impl Link {
    /// A block was filled; `bytes` are left.
    pub(super) fn note_left(&mut self, bytes: u64) {
        self.asking = if bytes > 0 { Asking::Known } else { Asking::Not };
    }
}

impl UplinkAccess {
    fn connection_wait(&mut self, now: Instant) -> Option<Wait> {
        if !self.is_connected(now) {
            return Some(Wait::Rrc);
        }
        let accessing = self.rach.as_ref().is_some_and(|rach| rach.is_ongoing());
        (accessing || !self.is_aligned(now)).then_some(Wait::RandomAccess)
    }
}

impl Ue {
    fn downlink_wait(&mut self, now: Instant) -> Wait {
        match self.access.connection_wait(now) {
            Some(wait) => wait,
            None if !self.access.hears(now) => Wait::Drx,
            None if self.down.asking == Asking::Known => Wait::Queue,
            None => Wait::Slot,
        }
    }

    fn uplink_wait(&mut self, now: Instant, standing_grants: bool) -> Wait {
        let access = &mut self.access;
        if let Some(wait) = access.connection_wait(now) {
            return wait;
        }
        let unasked = access.proactive_next.is_some() || access.configured_next.is_some();
        match self.up.asking {
            Asking::Known => Wait::Queue,
            Asking::Reported => Wait::Bsr,
            Asking::Requested => Wait::Grant,
            Asking::Not if standing_grants => Wait::Slot,
            Asking::Not if access.request_wait.is_some() => Wait::Drx,
            Asking::Not if unasked || access.grants > 0 => Wait::Grant,
            Asking::Not if access.sr.pending_since().is_some() => Wait::Sr,
            Asking::Not => Wait::Grant,
        }
    }

    /// An uplink block was filled; `left` bytes are left, on which the block may contain a report.
    pub(super) fn note_uplink_left(&mut self, now: Instant, left: u64, granted: bool) {
        let access = &mut self.access;
        let known = !granted || access.grants > 0 || access.estimate.wanted(now) > 0;
        self.up.asking = match (left, known) {
            (0, _) => Asking::Not,
            (_, true) => Asking::Known,
            (_, false) => Asking::Reported,
        };
    }

    /// Whether the bearer's packets are accounted for.
    #[inline]
    pub(super) fn is_accounted(&self) -> bool {
        self.bearer.down.is_accounted()
    }
}
