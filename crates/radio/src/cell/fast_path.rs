//! Fast paths of a cell: what it remembers of its UEs from slot to slot, and from event to event.
//! The results are the same without them, but then each slot examines all UEs, and each event arms
//! its UE again.

use airpath_base::{Direction, Instant, fast_paths};

use super::carrier_id::{CarrierId, LinkId, PRIMARY};
use super::component::Component;
use super::engine::Engine;
use super::ue::Ue;
use crate::bearer::Bearer;
use crate::scheduler::{Candidate, UeId};

impl Engine {
    /// Whether the scheduler of a carrier's direction may use `slot`.
    #[inline]
    pub(super) fn has_candidates(&self, id: LinkId, slot: u64) -> bool {
        let Component { carrier, downlink, uplink, .. } = &self.carriers[id.carrier];
        if fast_paths() {
            return match id.direction {
                Direction::Downlink => !downlink.active.is_empty(),
                Direction::Uplink => !uplink.active.is_empty(),
            };
        }
        let (now, standing) = (carrier.start(slot), carrier.has_standing_grants());
        self.ues.iter().filter(|ue| ue.uses(id)).any(|ue| match id.direction {
            Direction::Downlink => ue.has_downlink(id, now),
            Direction::Uplink => ue.may_be_granted(id, standing),
        })
    }

    /// Begins a slot: without fast paths, makes the schedulers consider all UEs. With fast paths,
    /// they already know the UEs that may need the slot.
    #[inline]
    pub(super) fn consider_all(&mut self, id: CarrierId) {
        if !fast_paths() {
            let here = |id: LinkId| {
                let here = self.ues.iter().filter(move |ue| ue.presence.is_here && ue.uses(id));
                here.map(|ue| ue.index)
            };
            let Component { downlink, uplink, .. } = &mut self.carriers[id];
            downlink.consider(here(id.down()));
            uplink.consider(here(id.up()));
        }
    }

    /// What an active UE needs in a slot of `class`, if anything; `before`: what it needed last
    /// time.
    #[inline(never)]
    pub(super) fn candidate(
        &mut self,
        id: CarrierId,
        index: u32,
        class: usize,
        now: Instant,
        before: &Candidate,
    ) -> Option<Candidate> {
        match self.ues.unchanged_until(index, now).filter(|_| id == PRIMARY) {
            None => self.find_candidate(id, index, class, now),
            Some(until) => {
                let bits_per_prb = self.renew(index, class, now, until);
                Some(Candidate { bits_per_prb, ..*before })
            }
        }
    }

    /// Returns the bits per PRB when another report applies or the slot is of another class.
    /// Everything else is unchanged until `until`.
    fn renew(&mut self, index: u32, class: usize, now: Instant, until: Instant) -> u32 {
        let carrier = &self.carriers.primary.carrier;
        let (carrier, slot) = (&carrier.downlink, carrier.slot());
        let down = &mut self.ues.aside(index).down;
        let mcs = down.choose_mcs(now, carrier, slot);
        let mcs_until = down.mcs_stays_until().unwrap_or(now);
        self.ues.remember(index, until, mcs_until);
        carrier.bits_per_prb(class, mcs)
    }

    /// Remembers how long a UE whose candidate was found at `now` needs the same.
    #[inline]
    pub(super) fn remember_candidate(&mut self, index: u32, now: Instant) {
        let ue = &self.ues[index];
        if let (Some(until), Some(mcs)) = (ue.same_until(now), ue.down.mcs_stays_until())
            && !self.carriers.primary.downlink.scheduler.is_capped(UeId(index))
        {
            self.ues.remember(index, until, mcs);
        }
    }

    /// Something happened to a UE that can only have changed what the scheduler waits for.
    #[inline]
    pub(super) fn arm_waits(&mut self, index: u32, now: Instant) {
        if !self.is_armed(index) || self.ues[index].next_downlink().is_some() {
            return self.arm(index, now);
        }
        debug_assert!(self.wakes_in_time(index, now), "UE {index} at {now:?}");
    }

    /// Expects the first packet of a UE in this direction, which will be prepared at `prepared`. Without the
    /// packet, the next work was at `next_work`; returns when it is now.
    #[inline(never)]
    pub(super) fn expect_first(
        &mut self,
        index: u32,
        direction: Direction,
        (now, prepared): (Instant, Instant),
        next_work: Option<Instant>,
    ) -> Instant {
        self.ues.expect(index, prepared);
        let ue = &self.ues[index];
        let (down, up) = (ue.next_downlink(), ue.next_uplink(now));
        let (expected, other) = match direction {
            Direction::Downlink => (down, up),
            Direction::Uplink => (up, down),
        };
        match next_work {
            // Everything else was checked when the UE was armed, and is unchanged.
            Some(next_work) if other.is_none() && self.is_armed(index) => {
                let Some(at) = expected else { return next_work };
                self.events.wake(at, index);
                debug_assert!(self.wakes_in_time(index, now), "UE {index} at {now:?}");
                next_work.min(at)
            }
            _ => {
                self.arm(index, now);
                self.next_work()
            }
        }
    }

    /// Whether a UE wakes early enough for everything except packets that are being prepared,
    /// provided that nothing but what the scheduler checks has happened since the UE was armed.
    #[inline]
    fn is_armed(&self, index: u32) -> bool {
        let ue = &self.ues[index];
        let wakes = self.events.next_wake(index).unwrap_or(Instant::MAX);
        let waits = ue.down.wait.is_some() || ue.up.wait.is_some() || ue.is_accounted();
        let waits = waits || !ue.secondary.is_empty();
        !waits && ue.access.is_always_on() && ue.bearer.known().is_some_and(|timer| wakes <= timer)
    }

    /// Whether a UE wakes by the time it next has something to do.
    fn wakes_in_time(&mut self, index: u32, now: Instant) -> bool {
        let wakes = self.events.next_wake(index);
        let next = self.ues.aside(index).next_wake(now, &self.carriers.primary.carrier);
        next.is_none_or(|next| wakes.is_some_and(|wakes| wakes <= next))
    }
}

impl Ue {
    /// Whether the packet that was last added to those being prepared may change when the UE wakes.
    /// A packet behind others does not.
    #[inline]
    pub(super) fn heeds_prepared(&self, direction: Direction) -> bool {
        let one_way = match direction {
            Direction::Downlink => &self.bearer.down,
            Direction::Uplink => &self.bearer.up,
        };
        self.presence.is_here && (one_way.prepared().packets == 1 || !fast_paths())
    }

    /// Until when the downlink looks the same to the scheduler, except for the MCS, if nothing
    /// happens to the UE before; expiring timers count as something. `None`: it is not certain.
    fn same_until(&self, now: Instant) -> Option<Instant> {
        if !self.access.is_always_on() || self.down.synchronous {
            return None;
        }
        if self.down.harq.next_retransmission(now).is_some() {
            return None;
        }
        let Bearer { down, up } = &*self.bearer;
        let prepared = Instant::earliest([down.next_prepared(), up.next_prepared()]);
        Some(prepared.unwrap_or(Instant::MAX))
    }

    /// Whether the downlink scheduler could send anything now or soon.
    fn has_downlink(&self, id: LinkId, now: Instant) -> bool {
        let again = self.link_ref(id).harq.has_failed();
        let soon = self.bearer.down.prepared().packets > 0;
        self.presence.is_here && (again || soon || self.bearer.is_ready(Direction::Downlink, now))
    }

    /// Whether the uplink scheduler could grant anything.
    fn may_be_granted(&self, id: LinkId, standing_grants: bool) -> bool {
        let again = self.link_ref(id).harq.has_failed();
        let wanted = !standing_grants && self.access.estimate.may_want();
        let proactive = id.carrier == PRIMARY && self.access.proactive_next.is_some();
        self.presence.is_here && (again || wanted || proactive)
    }
}
