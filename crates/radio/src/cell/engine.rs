//! The engine of a cell: events and slots, in order of time.

use airpath_base::{Direction, Duration, Instant, Packet};

use super::carrier_id::{CarrierId, PRIMARY};
use super::component::{Component, Components};
use super::config::{CellConfig, UeConfig};
use super::event::RadioEventKind;
use super::event_queue::{EventKind, EventQueue};
use super::output::{Output, collect_drops};
use super::ue::Ue;
use super::ues::Ues;

/// A base station and its UEs, and what happens to them.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) carriers: Components,
    pub(super) config: CellConfig,
    pub(super) configs: Vec<UeConfig>,
    pub(super) seed: u64,
    pub(super) ues: Ues,
    pub(super) events: EventQueue,
    /// UEs with a configured grant.
    pub(super) configured: Vec<u32>,
    /// Everything up to this time is done.
    done: Option<Instant>,
    pub(super) out: Output,
}

impl Engine {
    /// An engine at the beginning of SFN 0, with all UEs present.
    pub(super) fn new(config: &CellConfig, ues: &[UeConfig], seed: u64) -> Self {
        let mut engine = Self {
            carriers: Components::new(config),
            ues: Ues::with_capacity(ues.len()),
            events: EventQueue::new(ues.len()),
            configured: Vec::new(),
            done: None,
            out: Output::default(),
            config: config.clone(),
            configs: ues.to_vec(),
            seed,
        };
        for (index, ue) in (0..).zip(ues) {
            let Components { primary, secondary } = &mut engine.carriers;
            primary.downlink.scheduler.add_ue(ue.downlink.cap);
            primary.uplink.scheduler.add_ue(ue.uplink.cap);
            for component in secondary {
                component.downlink.scheduler.add_ue(None);
                component.uplink.scheduler.add_ue(None);
            }
            engine.ues.push(Ue::new(index, ue, config, &engine.carriers.carriers(), (seed, 0)));
            if ue.configured.is_some() {
                engine.configured.push(index);
            }
            engine.consider_uplink(index, Instant::ZERO);
            engine.arm(index, Instant::ZERO);
        }
        engine
    }

    /// Takes a packet that reaches the base station or the UE's radio at `now`; returns when it
    /// will be prepared.
    #[inline]
    pub(super) fn prepare(
        &mut self,
        now: Instant,
        direction: Direction,
        index: u32,
        packet: &Packet,
    ) -> Instant {
        self.out.log(now, index, || RadioEventKind::Enters {
            direction,
            flow: packet.flow,
            bytes: packet.size,
        });
        let Ue { bearer, down, up, .. } = self.ues.aside(index);
        let bearer = bearer.aside();
        let (one_way, link) = match direction {
            Direction::Downlink => (&mut bearer.down, down),
            Direction::Uplink => (&mut bearer.up, up),
        };
        if let Some(id) = packet.journey {
            // A request need not wait until the packet is prepared.
            one_way.arrive(now, id, direction == Direction::Uplink);
        }
        let at = now + link.processing;
        one_way.prepare(at, packet);
        at
    }

    #[inline]
    pub(super) fn note_done(&mut self, now: Instant) {
        if self.done.is_none_or(|done| done < now) {
            self.done = Some(now);
        }
    }

    /// Does everything until `now`. Events in the queue come before the slot that begins at the same
    /// time.
    pub(super) fn work_until(&mut self, now: Instant) {
        self.carriers.open(self.done);
        loop {
            let slot = self.next_slot(|component| component.cursor);
            match (self.events.next(), slot) {
                (Some(at), slot) if at <= now && slot.is_none_or(|(slot, ..)| at <= slot) => {
                    self.do_event();
                }
                (_, Some((at, carrier, slot))) if at <= now => self.do_slot(carrier, slot),
                _ => break,
            }
        }
        self.note_done(now);
    }

    /// When there is work next; [`Instant::MAX`]: not before a packet arrives.
    pub(super) fn next_work(&self) -> Instant {
        let event = self.events.next().unwrap_or(Instant::MAX);
        let slot = self.next_slot(|component| component.first_open(self.done));
        slot.map_or(event, |(at, ..)| event.min(at))
    }

    /// The next slot from `first` on in which something can happen, of any carrier, and its
    /// beginning. Of slots that begin together, that of the first carrier comes first.
    #[inline]
    fn next_slot(&self, first: impl Fn(&Component) -> u64) -> Option<(Instant, CarrierId, u64)> {
        let primary = self.next_slot_of(PRIMARY, first(&self.carriers.primary));
        if self.carriers.secondary.is_empty() {
            return primary;
        }
        let of = |id| self.next_slot_of(id, first(&self.carriers[id]));
        self.carriers.secondary_ids().filter_map(of).chain(primary).min()
    }

    #[inline]
    fn next_slot_of(&self, id: CarrierId, first: u64) -> Option<(Instant, CarrierId, u64)> {
        let Component { carrier, grants, .. } = &self.carriers[id];
        let mut next = grants.front().map_or(u64::MAX, |grant| grant.slot);
        if self.has_candidates(id.down(), first) {
            next = next.min(carrier.next_downlink(first));
        }
        if self.has_candidates(id.up(), first) {
            next = next.min(carrier.next_granting(first));
        }
        (next < u64::MAX).then(|| (carrier.start(next), id, next))
    }

    fn do_slot(&mut self, id: CarrierId, slot: u64) {
        self.carriers.begin(id, slot);
        self.consider_all(id);
        self.downlink_slot(id, slot);
        self.grant_uplink(id, slot);
        self.send_granted(id, slot);
        self.carriers[id].cursor = slot + 1;
    }

    fn do_event(&mut self) {
        let Some(due) = self.events.pop() else { return };
        self.carriers.reach(due.at);
        if !self.ues[due.ue].presence.is_here || !self.events.concerns(&due) {
            // The UE has left since.
            return;
        }
        match due.kind {
            EventKind::Block(link) => self.on_block(due.ue, link, due.at),
            EventKind::Feedback(link) => {
                if !self.on_feedback(due.ue, link, due.at) {
                    return self.arm_waits(due.ue, due.at);
                }
            }
            EventKind::Received => {
                self.on_received(due.ue, due.at);
                return self.arm_waits(due.ue, due.at);
            }
            EventKind::Request => {
                self.on_request(due.ue, due.at);
                return self.arm_waits(due.ue, due.at);
            }
            EventKind::Wake => {
                if !self.events.take_wake(&due) {
                    return;
                }
                self.wake(due.ue, due.at);
            }
            EventKind::LogDrx => return self.log_drx(due.ue, due.at),
        }
        self.arm(due.ue, due.at);
    }

    /// Advances a UE's bearer to `now`.
    pub(super) fn settle(&mut self, index: u32, now: Instant) {
        // Arrivals do not concern the scheduler: it knows what is being prepared.
        if self.ues.aside(index).settle(now, &mut self.out) {
            self.ues.touch(index);
        }
    }

    /// Something happened to a UE: adds the next time at which it has something to do to the event
    /// queue.
    pub(super) fn arm(&mut self, index: u32, now: Instant) {
        self.reconsider(index, now);
        if self.out.log.is_some() {
            self.log_drx(index, now);
        }
        if self.ues[index].is_accounted() {
            self.note_waits(index, now);
        }
        if let Some(at) = self.ues.aside(index).next_wake(now, &self.carriers.primary.carrier) {
            self.events.wake(at, index);
        }
    }

    /// Logs the DRX state if it changed, and schedules the next change.
    fn log_drx(&mut self, index: u32, now: Instant) {
        let ue = self.ues.aside(index);
        let Some(drx) = &mut ue.access.drx else { return };
        let state = drx.state(now);
        let change = drx.next_change(now).map(|at| at.max(now + Duration::from_nanos(1)));
        if ue.access.drx_logged != Some(state) {
            ue.access.drx_logged = Some(state);
            self.out.log(now, index, || RadioEventKind::Drx(state));
        }
        ue.drx_log_due = ue.drx_log_due.filter(|&at| at > now);
        if let Some(at) = change.filter(|&at| ue.drx_log_due.is_none_or(|due| at < due)) {
            ue.drx_log_due = Some(at);
            self.events.add(at, index, EventKind::LogDrx);
        }
    }

    /// What waits for the UE to wake up may be sent earlier than it seemed.
    fn reconsider(&mut self, index: u32, now: Instant) {
        let ue = self.ues.aside(index);
        if ue.access.drx.is_none() {
            return;
        }
        let (mut downlink, mut uplink) = (ue.down.wait.is_some(), ue.up.wait.is_some());
        for links in &ue.secondary {
            downlink |= links.down.wait.is_some();
            uplink |= links.up.wait.is_some();
        }
        if ue.access.request_wait.take().is_some() {
            ue.access.request_uplink(now);
        }
        if downlink {
            self.consider_downlink(index, now);
        }
        if uplink {
            self.consider_uplink(index, now);
        }
    }

    /// Moves packets that a UE's buffers have dropped to the cell's list.
    #[inline]
    pub(super) fn collect_drops(&mut self, index: u32) {
        if self.ues[index].bearer.has_drops() {
            self.collect_some_drops(index);
        }
    }

    #[inline(never)]
    fn collect_some_drops(&mut self, index: u32) {
        let Self { ues, out, .. } = self;
        collect_drops(ues.aside(index).bearer.aside(), |drop| out.drops.push_back((index, drop)));
    }
}
