//! The cell: one base station, many UEs, both directions.
//!
//! A slot engine joins the other modules: bearers (`rlc`), HARQ, link adaptation, schedulers, and
//! the UE's procedures (`mac`, `rrc`). Work is only done in slots in which something can happen; an
//! idle UE has no slots and no events.
//!
//! Simplifications within a slot: PDCCH, PDSCH and PUSCH take a whole slot and are received at its
//! end; the part of a slot that TDD gives to one direction decides how much fits, not when it ends.
//! PDCCH never fails and has room for all. The downlink is scheduled in the slot of its PDSCH: K_0
//! adds to the base station's processing. In UMTS and EV-DO a block may take several slots.
//!
//! In UMTS and EV-DO every UE has its own uplink channel and a standing grant: it sends neither
//! requests nor reports.
//!
//! Where the specification leaves it open, this base station
//! - answers a scheduling request with a grant of a configured size, and ignores requests while a
//!   grant is pending;
//! - adds room for headers to the reported size;
//! - assumes that a block without a report and without room for one, or one that HARQ lost, hides
//!   more data: a UE whose grant was just too small would otherwise be silent until retxBSR-Timer.
//!
//! Not modelled: several bearers per UE, signalling bearers, PDCCH load and errors, PUCCH errors
//! except missed requests, semi-persistent downlink, radio link failure (RLC continues after
//! maxRetxThreshold, random access after preambleTransMax), carrier aggregation. A UE can leave and
//! join: handover is up to the RAN ([`ran`](super::ran)).

mod access;
mod asking;
mod carrier;
mod config;
mod departure;
mod direction_scheduler;
mod downlink;
mod event;
mod event_queue;
mod grant;
mod meter;
mod moving;
mod output;
mod presence;
mod procedures;
mod pusch;
mod stalled;
mod ue;
mod uplink;
mod waits;

use std::collections::VecDeque;

use airpath_base::{Direction, Drop, Duration, Instant, Packet};

use crate::scheduler::Scheduler;
use airpath_queue::Load;
use carrier::Carrier;
pub use config::{
    Access, AlignmentConfig, BaseStationConfig, CellConfig, CellConfigError, LteCarrier, LteDuplex,
    LteLayers, NrCarrier, NrDuplex, NrLink, UeConfig, UeLinkConfig, UeProcessing, UmtsCarrier,
    UmtsDownlink, UmtsUplink,
};
pub use departure::{CellDeparture, UeIndex};
use direction_scheduler::{DirectionScheduler, SlotSizes};
pub use event::{BlockEvent, GrantCause, RadioEvent, RadioEventKind};
use event_queue::{EventKind, EventQueue};
use grant::Grant;
pub use meter::{AccessCounters, RadioCounters, UeMeter};
pub use moving::{UeContext, UeState};
use output::{Output, collect_drops};
pub use stalled::{Stalled, WaitsFor};
use ue::Ue;

/// A base station and its UEs.
///
/// It is used like a `Path` of `airpath-path` with two directions: [`enqueue`](Cell::enqueue) with
/// times that never decrease, return at [`next_event`](Cell::next_event), [`poll`](Cell::poll)
/// until `None`. Nothing depends on when it is polled.
///
/// ```
/// use airpath_base::{Ecn, FlowId, Instant, Packet, Payload, Tunnel};
/// use airpath_base::Direction;
/// use airpath_radio::cell::{Cell, CellConfig, NrCarrier, UeConfig, UeIndex};
///
/// let config = CellConfig::nr(NrCarrier::n78_100_mhz());
/// let mut cell = Cell::new(&config, &[UeConfig::plain(&config.access)], 1);
/// let packet = Packet {
///     flow: FlowId(0),
///     size: 1500,
///     ecn: Ecn::NotEct,
///     tunnel: Tunnel::default(),
///     journey: None,
///     payload: Payload::Opaque(1),
/// };
/// cell.enqueue(Instant::ZERO, Direction::Downlink, UeIndex(0), &packet);
/// let departure = loop {
///     let at = cell.next_event().expect("it is on its way");
///     if let Some(departure) = cell.poll(at) {
///         break departure;
///     }
/// };
/// // 0.5 ms in the base station, but slot 1 begins then; slot 1; 0.5 ms in the UE.
/// assert_eq!(departure.at.as_nanos(), 1_500_000);
/// ```
#[derive(Debug)]
pub struct Cell {
    carrier: Carrier,
    config: CellConfig,
    configs: Vec<UeConfig>,
    seed: u64,
    ues: Vec<Ue>,
    downlink: DirectionScheduler,
    uplink: DirectionScheduler,
    events: EventQueue,
    /// Grants, in order of their slots.
    grants: VecDeque<Grant>,
    /// UEs with a configured grant.
    configured: Vec<u32>,
    /// The first slot that is not finished.
    cursor: u64,
    /// Everything up to this time is done.
    done: Option<Instant>,
    /// When the event queue or a slot next has work.
    due: Option<Instant>,
    out: Output,
}

impl Cell {
    /// A cell at the beginning of SFN 0, with `ues` present. Random numbers come from streams named
    /// `ue.0.down.harq` and so on.
    ///
    /// Panics if [`UeConfig::check`] or [`CellConfig::check`] finds something wrong.
    pub fn new(config: &CellConfig, ues: &[UeConfig], seed: u64) -> Self {
        config.check().expect("a checked configuration of the cell");
        let carrier = Carrier::new(config);
        let mut cell = Self {
            downlink: DirectionScheduler::new(Scheduler::new(config.downlink_scheduler)),
            uplink: DirectionScheduler::new(Scheduler::new(config.uplink_scheduler)),
            ues: Vec::with_capacity(ues.len()),
            events: EventQueue::default(),
            grants: VecDeque::new(),
            configured: Vec::new(),
            cursor: 0,
            done: None,
            due: None,
            out: Output::default(),
            config: config.clone(),
            configs: ues.to_vec(),
            seed,
            carrier,
        };
        for (index, ue) in (0..).zip(ues) {
            ue.check(config).expect("a checked configuration of the UE");
            cell.downlink.scheduler.add_ue(ue.downlink.cap);
            cell.uplink.scheduler.add_ue(ue.uplink.cap);
            cell.ues.push(Ue::new(index, ue, config, &cell.carrier, (seed, 0)));
            if ue.configured.is_some() {
                cell.configured.push(index);
            }
            cell.consider_uplink(index, Instant::ZERO);
            cell.arm(index, Instant::ZERO);
        }
        cell.find_due();
        cell
    }

    /// Resource blocks of a direction per second; 0 if it has none to share.
    pub fn blocks_per_s(&self, direction: Direction) -> f64 {
        self.carrier.blocks_per_s(direction)
    }

    /// Number of UEs.
    pub fn ues(&self) -> u32 {
        // The list was numbered in 32 bits.
        self.ues.len() as u32
    }

    /// A packet reaches the base station, or the UE's radio. Everything until `now` is done first,
    /// so that it can use only slots that begin later.
    #[inline]
    pub fn enqueue(&mut self, now: Instant, direction: Direction, ue: UeIndex, packet: &Packet) {
        self.advance(now);
        self.out.log(now, ue.0, || event::RadioEventKind::Enters {
            direction,
            flow: packet.flow,
            bytes: packet.size,
        });
        let Ue { bearer, down, up, presence, .. } = &mut self.ues[ue.0 as usize];
        let (one_way, link) = match direction {
            Direction::Downlink => (&mut bearer.down, down),
            Direction::Uplink => (&mut bearer.up, up),
        };
        if let Some(id) = packet.journey {
            // A request need not wait until the packet is prepared.
            one_way.arrive(now, id, direction == Direction::Uplink);
        }
        let processing = link.processing;
        one_way.prepare(now + processing, packet);
        if one_way.prepared().packets == 1 && presence.is_here {
            self.expect_first(ue.0, direction, now, now + processing);
        }
    }

    /// The first packet of a UE in this direction will be prepared at `at`.
    #[inline(never)]
    fn expect_first(&mut self, index: u32, direction: Direction, now: Instant, at: Instant) {
        self.downlink.keep_until(index, at);
        let ue = &mut self.ues[index as usize];
        let (down, up) = (ue.next_downlink(), ue.next_uplink(now));
        let (expected, other) = match direction {
            Direction::Downlink => (down, up),
            Direction::Uplink => (up, down),
        };
        if !ue.is_quiet() || other.is_some() || ue.is_accounted() {
            self.arm(index, now);
            return self.find_due();
        }
        // Everything else was checked when the UE was armed, and is unchanged.
        let expected = expected.filter(|&at| ue.armed.is_none_or(|armed| at < armed));
        debug_assert_eq!(
            expected.or(ue.armed),
            Instant::earliest([ue.armed, ue.next_wake(now, &self.carrier)]),
            "UE {index} at {now:?}"
        );
        if let Some(at) = expected {
            ue.armed = Some(at);
            self.events.add(at, index, EventKind::Wake);
            self.due = Some(self.due.map_or(at, |due| due.min(at)));
        }
    }

    /// When polling may next yield something or has internal work; `None`: not before an enqueue.
    pub fn next_event(&self) -> Option<Instant> {
        let departure = self.out.departures.front().map(|departure| departure.at);
        match (departure, self.due) {
            (Some(departure), Some(due)) => Some(departure.min(due)),
            (departure, due) => departure.or(due),
        }
    }

    /// The next packet that has left by `now`, in order of departure.
    pub fn poll(&mut self, now: Instant) -> Option<CellDeparture> {
        self.advance(now);
        if self.out.departures.front()?.at > now {
            return None;
        }
        self.out.departures.pop_front()
    }

    /// Takes all packets that have left by `now`, as [`poll`](Self::poll) would return them one by
    /// one. `departed` must be empty.
    pub fn take_departed(&mut self, now: Instant, departed: &mut VecDeque<CellDeparture>) {
        debug_assert!(departed.is_empty(), "what was taken before has been handed on");
        self.advance(now);
        let waiting = &mut self.out.departures;
        let due = waiting.iter().take_while(|departure| departure.at <= now).count();
        match due == waiting.len() {
            // Two rings in turn: nothing is copied.
            true => std::mem::swap(waiting, departed),
            false => departed.extend(waiting.drain(..due)),
        }
    }

    /// The next packet that was dropped, UE by UE, not in order of time. Stage 0 is the downlink,
    /// 1 the uplink.
    pub fn poll_drop(&mut self) -> Option<Drop> {
        self.out.drops.pop_front()
    }

    /// What is inside: entered, and neither returned by `poll` nor dropped.
    pub fn load(&self) -> Load {
        let mut load = self.ues.iter().fold(Load::default(), |sum, ue| sum + ue.load());
        self.out.departures.iter().for_each(|departure| load.add(&departure.packet));
        load
    }

    /// From now on keeps a log for [`poll_event`](Self::poll_event). Nothing else changes.
    pub fn keep_log(&mut self) {
        self.out.log.get_or_insert_with(VecDeque::new);
    }

    /// The next entry of the log, in the order in which the cell computed them: by time, except for
    /// what is decided in advance.
    pub fn poll_event(&mut self) -> Option<RadioEvent> {
        self.out.log.as_mut()?.pop_front()
    }

    /// Advances the cell to `now` and visits the meters, downlink before uplink, UE by UE.
    pub fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&UeMeter<'_>)) {
        for ue in 0..self.ues() {
            self.observe_ue(now, UeIndex(ue), visit);
        }
    }

    /// Advances the cell to `now` and visits the meters of one UE, which is faster than visiting
    /// all.
    pub fn observe_ue(&mut self, now: Instant, ue: UeIndex, visit: &mut dyn FnMut(&UeMeter<'_>)) {
        self.advance(now);
        for direction in [Direction::Downlink, Direction::Uplink] {
            visit(&self.ues[ue.0 as usize].meter(now, direction));
        }
    }

    /// Does everything until `now`.
    #[inline]
    fn advance(&mut self, now: Instant) {
        if self.due.is_some_and(|due| due <= now) {
            self.work_until(now);
        }
        self.note_done(now);
    }

    #[inline]
    fn note_done(&mut self, now: Instant) {
        if self.done.is_none_or(|done| done < now) {
            self.done = Some(now);
        }
    }

    /// Events in the queue come before the slot that begins at the same time.
    fn work_until(&mut self, now: Instant) {
        self.skip_done();
        loop {
            let slot = self.next_slot();
            let slot_at = slot.map(|slot| self.carrier.start(slot));
            match (self.events.next(), slot, slot_at) {
                (Some(at), _, slot_at) if at <= now && slot_at.is_none_or(|slot| at <= slot) => {
                    self.do_event();
                }
                (_, Some(slot), Some(at)) if at <= now => self.do_slot(slot),
                _ => break,
            }
        }
        self.note_done(now);
        self.find_due();
    }

    /// Skips slots that have begun.
    fn skip_done(&mut self) {
        if let Some(done) = self.done.filter(|&done| done >= self.carrier.start(self.cursor)) {
            self.cursor = self.carrier.containing(done) + 1;
        }
        debug_assert!(
            self.done.is_none_or(|done| self.cursor > self.carrier.containing(done)),
            "the cursor at {:?}",
            self.done
        );
    }

    /// Finds out when there is work next.
    fn find_due(&mut self) {
        self.skip_done();
        let slot = self.next_slot().map(|slot| self.carrier.start(slot));
        self.due = match (self.events.next(), slot) {
            (Some(event), Some(slot)) => Some(event.min(slot)),
            (event, slot) => event.or(slot),
        };
    }

    /// The next slot in which something can happen.
    fn next_slot(&self) -> Option<u64> {
        let mut next = self.grants.front().map_or(u64::MAX, |grant| grant.slot);
        if !self.downlink.active.is_empty() {
            next = next.min(self.carrier.next_downlink(self.cursor));
        }
        if !self.uplink.active.is_empty() {
            next = next.min(self.carrier.next_granting(self.cursor));
        }
        (next < u64::MAX).then_some(next)
    }

    fn do_slot(&mut self, slot: u64) {
        self.cursor = slot;
        self.downlink_slot(slot);
        self.grant_uplink(slot);
        self.send_granted(slot);
        self.cursor = slot + 1;
    }

    fn do_event(&mut self) {
        let Some(due) = self.events.pop() else { return };
        // Earlier slots had nothing to do.
        if due.at > self.carrier.start(self.cursor) {
            self.cursor = self.carrier.at_or_after(due.at);
        }
        debug_assert!(
            self.cursor >= self.carrier.at_or_after(due.at),
            "the cursor at {:?}",
            due.at
        );
        if !self.ues[due.ue as usize].presence.concerns(due.number) {
            // The UE has left since.
            return;
        }
        if due.kind.changes_downlink() {
            self.downlink.forget(due.ue);
        }
        match due.kind {
            EventKind::Block(direction) => self.on_block(due.ue, direction, due.at),
            EventKind::Feedback(direction) => {
                if !self.on_feedback(due.ue, direction, due.at) {
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
                let armed = &mut self.ues[due.ue as usize].armed;
                if *armed != Some(due.at) {
                    // An earlier wake-up was added since.
                    return;
                }
                *armed = None;
                self.wake(due.ue, due.at);
            }
            EventKind::LogDrx => return self.log_drx(due.ue, due.at),
        }
        self.arm(due.ue, due.at);
    }

    /// Advances a UE's bearer to `now`.
    fn settle(&mut self, index: u32, now: Instant) {
        // Arrivals do not concern the scheduler: it knows what is being prepared.
        if self.ues[index as usize].settle(now, &mut self.out) {
            self.downlink.forget(index);
        }
    }

    /// Something happened to a UE that can only have changed what the scheduler waits for.
    #[inline]
    fn arm_waits(&mut self, index: u32, now: Instant) {
        let ue = &mut self.ues[index as usize];
        if !ue.is_armed() || ue.is_accounted() {
            return self.arm(index, now);
        }
        debug_assert!(
            ue.next_wake(now, &self.carrier).is_none_or(|at| ue.armed.is_some_and(|due| due <= at)),
            "UE {index} at {now:?}"
        );
    }

    /// Something happened to a UE: adds the next time at which it has something to do to the event
    /// queue.
    fn arm(&mut self, index: u32, now: Instant) {
        self.reconsider(index, now);
        if self.out.log.is_some() {
            self.log_drx(index, now);
        }
        if self.ues[index as usize].is_accounted() {
            self.note_waits(index, now);
        }
        let ue = &mut self.ues[index as usize];
        let Some(at) = ue.next_wake(now, &self.carrier) else { return };
        if ue.armed.is_none_or(|armed| at < armed) {
            ue.armed = Some(at);
            self.events.add(at, index, EventKind::Wake);
        }
    }

    /// Logs the DRX state if it changed, and schedules the next change.
    fn log_drx(&mut self, index: u32, now: Instant) {
        let ue = &mut self.ues[index as usize];
        let Some(drx) = &mut ue.access.drx else { return };
        let state = drx.state(now);
        let change = drx.next_change(now).map(|at| at.max(now + Duration::from_nanos(1)));
        if ue.access.drx_logged != Some(state) {
            ue.access.drx_logged = Some(state);
            self.out.log(now, index, || event::RadioEventKind::Drx(state));
        }
        ue.drx_log_due = ue.drx_log_due.filter(|&at| at > now);
        if let Some(at) = change.filter(|&at| ue.drx_log_due.is_none_or(|due| at < due)) {
            ue.drx_log_due = Some(at);
            self.events.add(at, index, EventKind::LogDrx);
        }
    }

    /// What waits for the UE to wake up may be sent earlier than it seemed.
    fn reconsider(&mut self, index: u32, now: Instant) {
        let ue = &mut self.ues[index as usize];
        if ue.access.drx.is_none() {
            return;
        }
        let (downlink, uplink) = (ue.down.wait.is_some(), ue.up.wait.is_some());
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
    fn collect_drops(&mut self, index: u32) {
        if self.ues[index as usize].bearer.has_drops() {
            self.collect_some_drops(index);
        }
    }

    #[inline(never)]
    fn collect_some_drops(&mut self, index: u32) {
        let Self { ues, out, .. } = self;
        collect_drops(&mut ues[index as usize].bearer, |drop| out.drops.push_back(drop));
    }
}
