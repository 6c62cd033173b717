//! UEs that join and leave.

use std::collections::VecDeque;

use airpath_base::{Direction, Drop, DropReason, Instant, Memo, Packet};

use super::Cell;
use super::carrier_id::PRIMARY;
use super::departure::UeIndex;
use super::engine::Engine;
use super::meter::UeMeter;
use super::output::collect_drops;
use super::ue::Ue;
use crate::bearer::{Bearer, Forwarding, OneWay};
use crate::mac::drx::DrxState;
use crate::rrc::RrcState;
use crate::wait_meter::Wait;
use airpath_queue::Load;

/// What moves with a UE to another cell.
#[derive(Debug)]
pub struct UeContext {
    /// Both ends of the bearer: packets in its buffers, or being processed by base station and UE
    /// on the way there, and the state of PDCP.
    pub bearer: Bearer,
    /// RRC state.
    pub state: RrcState,
}

impl UeContext {
    /// Packets inside.
    pub fn load(&self) -> Load {
        let of = |one_way: &OneWay| one_way.load() + one_way.prepared();
        of(&self.bearer.down) + of(&self.bearer.up)
    }

    /// A packet arrives while no cell has the UE.
    pub(crate) fn add(&mut self, now: Instant, direction: Direction, packet: Packet) {
        self.bearer.direction(direction).prepare(now, &packet);
    }

    /// Handles the bearer's timers.
    pub(crate) fn on_timer(
        &mut self,
        now: Instant,
        drops: &mut VecDeque<Drop>,
        deliver: &mut impl FnMut(Direction, Instant, &Packet),
    ) {
        self.bearer.on_timer(now, deliver);
        collect_drops(&mut self.bearer, |drop| drops.push_back(drop));
    }

    /// Visits what one direction's buffers have counted so far, and hold.
    pub(crate) fn show<'a>(&'a self, direction: Direction, meter: &mut UeMeter<'a>) {
        let one_way = match direction {
            Direction::Downlink => &self.bearer.down,
            Direction::Uplink => &self.bearer.up,
        };
        meter.queued = one_way.queued() + one_way.prepared();
        let counters = one_way.counters();
        meter.sojourn = one_way.sojourn();
        meter.marked = counters.marked;
        meter.rlc_retransmissions = counters.retransmitted_pdus;
    }
}

/// The state of a UE at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UeState {
    /// RRC state; connected if RRC is not modelled.
    pub rrc: RrcState,
    /// DRX state; `None` without DRX.
    pub drx: Option<DrxState>,
}

impl Cell {
    /// A UE leaves at `now`: MAC is reset and RLC re-established (TS 38.331 5.3.5.5.2, TS 36.331
    /// 5.3.5.4). What was decoded by then is delivered. Nothing may be enqueued until it joins.
    pub fn leave(&mut self, now: Instant, ue: UeIndex, forwarding: Forwarding) -> UeContext {
        self.advance(now);
        self.engine.touch().leave(now, ue.0, forwarding)
    }

    /// A UE that was elsewhere is in this cell from `now` on.
    pub fn join(&mut self, now: Instant, ue: UeIndex, context: UeContext) {
        self.advance(now);
        self.engine.touch().join(now, ue.0, context);
    }

    /// SINR in dB of a UE's downlink at `now`, which never decreases: what it measures of this
    /// cell, whether it is in it or not.
    pub fn measure(&mut self, now: Instant, ue: UeIndex) -> f64 {
        let engine = self.engine.aside();
        let quality = engine.ues.aside(ue.0).down.measure(now);
        engine.carriers.primary.carrier.downlink.tables.sinr_db(quality)
    }

    /// Whether RRC is connected.
    pub fn is_connected(&mut self, now: Instant, ue: UeIndex) -> bool {
        self.ue(now, ue).access.is_connected(now)
    }

    /// The states of RRC and DRX.
    pub fn state(&mut self, now: Instant, ue: UeIndex) -> UeState {
        let access = &mut self.ue(now, ue).access;
        let rrc = access.rrc_state(now);
        UeState { rrc, drx: access.drx.as_mut().map(|drx| drx.state(now)) }
    }

    /// Whether RLC of one direction has reached maxRetxThreshold.
    pub fn has_failed(&self, ue: UeIndex) -> bool {
        let bearer = &self.engine.ues[ue.0].bearer;
        bearer.down.failed_at().or(bearer.up.failed_at()).is_some()
    }

    /// The meter of one direction of a UE in this cell.
    pub(crate) fn meter(&mut self, now: Instant, ue: UeIndex, way: Direction) -> UeMeter<'_> {
        self.ue(now, ue).meter(now, way)
    }

    /// When the next entry of the log was made.
    pub(crate) fn next_logged(&self) -> Option<Instant> {
        Some(self.engine.out.log.as_ref()?.front()?.at)
    }

    /// When the next packet that has left by `now` left.
    pub(crate) fn front(&mut self, now: Instant) -> Option<Instant> {
        self.advance(now);
        self.engine.out.departures.front().map(|departure| departure.at).filter(|&at| at <= now)
    }

    /// Packets of a UE that are due by `now` enter its buffers, or are dropped. Otherwise they do
    /// when a buffer is next used.
    pub(crate) fn settle(&mut self, now: Instant, ue: UeIndex) {
        self.advance(now);
        let engine = self.engine.aside();
        engine.settle(ue.0, now);
        engine.collect_drops(ue.0);
    }

    /// A UE at `now`, for state that is evaluated only when it is read.
    pub(super) fn ue(&mut self, now: Instant, ue: UeIndex) -> &mut Ue {
        self.settle(now, ue);
        self.engine.aside().ues.aside(ue.0)
    }
}

impl Engine {
    /// A UE leaves; see [`Cell::leave`].
    fn leave(&mut self, now: Instant, index: u32, forwarding: Forwarding) -> UeContext {
        let (slot, out) = (self.carriers.primary.carrier.slot(), &mut self.out);
        let ue = self.ues.touch(index);
        ue.settle(now, out);
        let bearer = ue.bearer.touch();
        bearer.down.wait(now, Wait::Handover);
        bearer.up.wait(now, Wait::Handover);
        let state = ue.access.rrc_state(now);
        let carriers = std::iter::once(PRIMARY).chain(ue.secondary_carriers());
        for id in carriers.flat_map(|id| [id.down(), id.up()]) {
            let direction = id.direction;
            while let Some((_, block)) =
                ue.link(id).arriving.pop_front().filter(|&(end, _)| end <= now)
            {
                ue.bearer.touch().on_block(direction, now, &block, &mut |at, packet| {
                    out.depart(direction, index, at, packet);
                });
            }
            ue.link(id).capacity.set(now, 0.0, slot);
        }
        ue.bearer.touch().reestablish(now, forwarding, &mut |direction, at, packet| {
            out.depart(direction, index, at, packet);
        });
        self.collect_drops(index);
        self.void_grants(index);
        self.configured.retain(|&other| other != index);
        for component in self.carriers.iter_mut() {
            component.downlink.deactivate(index);
            component.uplink.deactivate(index);
        }
        let absent = self.fresh(index, now);
        let left = core::mem::replace(self.ues.touch(index), absent);
        let mut context = UeContext { bearer: left.bearer.into_state(), state };
        if forwarding == Forwarding::Nothing {
            let reason = DropReason::Handover;
            let drops = &mut self.out.drops;
            context.bearer.down.take_prepared(|packet| {
                drops.push_back((index, Drop { at: now, packet, stage: 0, reason }));
            });
        }
        context
    }

    /// A UE joins; see [`Cell::join`].
    fn join(&mut self, now: Instant, index: u32, context: UeContext) {
        let config = &self.configs[index as usize];
        let ue = self.ues.touch(index);
        ue.presence.arrive(now, &mut ue.access);
        self.events.join(index);
        let mut bearer = context.bearer;
        bearer.aggregate(ue.aggregates());
        bearer.change_to(&config.downlink.bearer, &config.uplink.bearer);
        bearer.down.set_subheaders(config.downlink.subheaders);
        bearer.up.set_subheaders(config.uplink.subheaders);
        // Their processing is over, or continues here.
        bearer.down.prepare_anew(now);
        bearer.up.prepare_anew(now);
        ue.bearer = Memo::new(bearer);
        ue.access.arrive(now, context.state);
        if config.configured.is_some() {
            self.configured.push(index);
            self.configured.sort_unstable();
        }
        ue.settle(now, &mut self.out);
        self.collect_drops(index);
        self.update_uplink(index, now);
        if context.state.carries_data() && self.ues[index].reportable(now) > 0 {
            // The message that completes the handover contains a buffer status report.
            self.ues.aside(index).access.estimate.on_request(now);
        }
        self.consider_downlink(index, now);
        self.consider_uplink(index, now);
        self.arm(index, now);
    }

    /// The UE as it is while it is elsewhere; only its counters are kept.
    fn fresh(&mut self, index: u32, now: Instant) -> Ue {
        let left = self.ues.touch(index);
        let presence = left.presence.leave(now, &mut left.access);
        let config = &self.configs[index as usize];
        let mut ue = Ue::new(
            index,
            config,
            &self.config,
            &self.carriers.carriers(),
            (self.seed, presence.visits),
        );
        ue.presence = presence;
        ue.access.counters = left.access.counters;
        let carriers = std::iter::once(PRIMARY).chain(ue.secondary_carriers());
        for id in carriers.flat_map(|id| [id.down(), id.up()]) {
            let (link, old) = (ue.link(id), left.link_ref(id));
            link.counters = old.counters;
            link.capacity = old.capacity;
        }
        ue
    }
}
