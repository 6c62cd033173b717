//! The radio access network: several cells, and the UEs that move between them.
//!
//! A UE has one bearer. During a handover no cell has the bearer: the source has stopped, what it
//! did not deliver is forwarded or lost, and the target begins when the UE arrives. Until the core
//! has switched the path, packets go to the old base station, which forwards or drops them.
//!
//! Not modelled: conditional and make-before-break handover, measurement gaps, signalling load,
//! random access to the target (its time is part of the interruption), interference that depends on
//! what the other cells send. An idle UE reselects by the same event A3, without interruption.
//!
//! A UE with a split bearer (`split`) is in two cells at once and stays there.

mod config;
mod event;
mod measure;
mod mobile;
mod split;

use std::collections::VecDeque;

use airpath_base::{
    Direction, Drop, DropReason, Duration, Instant, Journeys, Packet, Site, Stream,
};

use super::cell::{Cell, CellDeparture, RadioEvent, Stalled, UeConfig, UeIndex, UeMeter, UeState};
use crate::bearer::Forwarding;
use airpath_queue::Load;
pub use config::{
    A3Config, CellIndex, FailureConfig, HandoverConfig, Leg, MeasurementConfig, MobileConfig,
    PlannedHandover, RanConfig, RanConfigError, SplitConfig, SplitPolicy,
};
pub use event::{MobilityEvent, MobilityEventKind};
use measure::Measurements;
use mobile::{Between, Location, Mobile, Phase};
use split::Split;

/// Cells and their UEs; it is used like a single [`Cell`].
///
/// ```
/// use airpath_base::{Duration, Instant};
/// use airpath_radio::cell::{CellConfig, LteCarrier, UeConfig};
/// use airpath_radio::ran::*;
///
/// let cell = CellConfig::lte(LteCarrier::fdd_20_mhz());
/// let ue = UeConfig::plain(&cell.access);
/// let config = RanConfig {
///     cells: vec![cell.clone(), cell],
///     ues: vec![MobileConfig { in_cell: vec![ue.clone(), ue] }],
///     handover: HandoverConfig::default(),
///     planned: vec![PlannedHandover {
///         at: Duration::from_secs(1),
///         every: None,
///         ue: None,
///         to: CellIndex(1),
///     }],
///     measurements: None,
///     split: None,
/// };
/// let mut ran = Ran::new(&config, 1);
/// assert!(ran.poll(Instant::ZERO + Duration::from_secs(2)).is_none());
/// let names: Vec<_> =
///     std::iter::from_fn(|| ran.poll_mobility()).map(|event| event.kind.name()).collect();
/// assert_eq!(names, ["handover_command", "handover_complete", "path_switch"]);
/// ```
#[derive(Debug)]
pub struct Ran {
    cells: Vec<Cell>,
    mobiles: Vec<Mobile>,
    /// Cells of the two legs of split bearers; `None`: there are none.
    legs: Option<[usize; 2]>,
    handover: HandoverConfig,
    measurements: Option<MeasurementConfig>,
    /// When UEs next measure.
    measured_next: Option<Instant>,
    /// When each planned handover is next due; `None`: never again.
    planned: Vec<(Option<Instant>, PlannedHandover)>,
    /// When something is due outside the cells.
    due: Option<Instant>,
    /// Packets that left while no cell had the UE.
    departures: VecDeque<CellDeparture>,
    drops: VecDeque<Drop>,
    events: VecDeque<MobilityEvent>,
}

impl Ran {
    /// A RAN at the beginning of SFN 0. UEs are in the first cell; with event A3, in the best one.
    /// The random streams of the first cell are those of a single cell.
    ///
    /// Panics if [`RanConfig::check`] finds something wrong.
    pub fn new(config: &RanConfig, seed: u64) -> Self {
        config.check().expect("a checked configuration of the RAN");
        let cells = (0..).zip(&config.cells).map(|(index, cell)| {
            let ues: Vec<UeConfig> = (0..)
                .map(UeIndex)
                .zip(&config.ues)
                .map(|(ue, each)| {
                    let leg = config.split_of(ue).is_some();
                    if leg { each.in_cell[index].leg() } else { each.in_cell[index].clone() }
                })
                .collect();
            let seed = match index {
                0 => seed,
                _ => Stream::new(seed, &format!("cell.{index}")).bits(),
            };
            Cell::new(cell, &ues, seed)
        });
        let start = |at: Duration| Some(Instant::ZERO + at);
        let mut ran = Self {
            cells: cells.collect(),
            mobiles: Vec::with_capacity(config.ues.len()),
            legs: config.split.map(|split| [0, split.secondary.0 as usize]),
            handover: config.handover,
            measurements: config.measurements,
            measured_next: config.measurements.and_then(|config| start(config.period)),
            planned: config.planned.iter().map(|planned| (start(planned.at), *planned)).collect(),
            due: None,
            departures: VecDeque::new(),
            drops: VecDeque::new(),
            events: VecDeque::new(),
        };
        for ue in (0..config.ues.len() as u32).map(UeIndex) {
            let split = config.split_of(ue).map(|split| {
                let cells = &config.ues[ue.0 as usize].in_cell;
                Split::new(split, [&cells[0], &cells[split.secondary.0 as usize]])
            });
            ran.add(ue, split);
        }
        ran.find_due();
        ran
    }

    /// Puts a UE into its first cell, and that of its second leg, and removes it from all others.
    fn add(&mut self, ue: UeIndex, split: Option<Split>) {
        let mut measurements =
            self.measurements.as_ref().map(|config| Measurements::new(config, self.cells.len()));
        let mut serving = 0;
        if self.measurements.is_some_and(|config| config.a3.is_some())
            && let Some(measurements) = &mut measurements
        {
            for (index, cell) in self.cells.iter_mut().enumerate() {
                measurements.add(index, cell.measure(Instant::ZERO, ue));
            }
            serving = measurements.best();
        }
        for (index, cell) in self.cells.iter_mut().enumerate() {
            let second = split.as_ref().map(|split| split.config.secondary.0 as usize);
            if index != serving && second != Some(index) {
                cell.leave(Instant::ZERO, ue, Forwarding::Nothing);
            }
        }
        self.mobiles
            .push(Mobile { split: split.map(Box::new), ..Mobile::new(serving, measurements) });
    }

    /// Number of UEs.
    pub fn ues(&self) -> u32 {
        self.mobiles.len() as u32
    }

    /// The cell that a UE is in, or changes to.
    pub fn cell_of(&self, ue: UeIndex) -> CellIndex {
        CellIndex(self.mobiles[ue.0 as usize].target() as u32)
    }

    /// A packet reaches the base station, or the UE's radio.
    #[inline(always)]
    pub fn enqueue(&mut self, now: Instant, direction: Direction, ue: UeIndex, packet: &Packet) {
        // If nothing can happen between cells, there is only one.
        match (&mut *self.cells, self.due) {
            ([cell], None) => cell.enqueue(now, direction, ue, packet),
            _ => self.enqueue_to_one_of_many(now, direction, ue, packet),
        }
    }

    #[inline(never)]
    fn enqueue_to_one_of_many(
        &mut self,
        now: Instant,
        direction: Direction,
        ue: UeIndex,
        packet: &Packet,
    ) {
        self.advance(now);
        if let Some(legs) = self.legs
            && self.mobiles[ue.0 as usize].split.is_some()
        {
            self.enqueue_to_a_leg(now, direction, ue, packet, legs);
            return;
        }
        let mobile = &mut self.mobiles[ue.0 as usize];
        match &mut mobile.location {
            Location::In(cell) if direction == Direction::Uplink => {
                self.cells[*cell].enqueue(now, direction, ue, packet);
            }
            Location::In(cell) if mobile.anchor == *cell && mobile.forwarded.is_empty() => {
                self.cells[*cell].enqueue(now, direction, ue, packet);
            }
            Location::Between(between) if direction == Direction::Uplink => {
                between.context.add(now, direction, *packet);
            }
            _ => self.forward(now, ue, *packet),
        }
    }

    /// A packet of a split bearer gets a COUNT and a leg.
    fn enqueue_to_a_leg(
        &mut self,
        now: Instant,
        direction: Direction,
        ue: UeIndex,
        packet: &Packet,
        legs: [usize; 2],
    ) {
        let queued = legs.map(|cell| self.cells[cell].meter(now, ue, direction).queued);
        let Some(split) = &mut self.mobiles[ue.0 as usize].split else { return };
        if let (leg, Some(pdu)) = split.send(now, direction, packet, queued) {
            self.cells[legs[leg as usize]].enqueue(now, direction, ue, &pdu);
        }
        self.find_due();
    }

    /// A downlink packet reaches a base station that the UE has left, or follows one that did.
    fn forward(&mut self, now: Instant, ue: UeIndex, packet: Packet) {
        let mobile = &mut self.mobiles[ue.0 as usize];
        let delay = match (mobile.anchor == mobile.target(), self.handover.forwarding) {
            (true, _) => Duration::ZERO,
            (false, Forwarding::Buffer) => self.handover.forwarding_delay,
            (false, Forwarding::Nothing) => {
                let reason = DropReason::Handover;
                self.drops.push_back(Drop { at: now, packet, stage: 0, reason });
                return;
            }
        };
        let at = (now + delay).max(mobile.forwarded.back().map_or(now, |&(at, _)| at));
        mobile.forwarded.push_back((at, packet));
        self.due = self.due.map_or(Some(at), |due| Some(due.min(at)));
    }

    /// When polling may next yield something or has internal work; `None`: not before an enqueue.
    #[inline]
    pub fn next_event(&self) -> Option<Instant> {
        if let ([cell], None, true) = (&*self.cells, self.due, self.departures.is_empty()) {
            return cell.next_event();
        }
        let cells = self.cells.iter().filter_map(Cell::next_event).min();
        let own = self.departures.front().map(|departure| departure.at);
        [cells, own, self.due].into_iter().flatten().min()
    }

    /// The next packet that has left by `now`, in order of departure, the first cell first.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<CellDeparture> {
        match (&mut *self.cells, self.due, self.departures.is_empty()) {
            ([cell], None, true) => cell.poll(now),
            _ => self.poll_one_of_many(now),
        }
    }

    /// Takes all packets that have left by `now`, as [`poll`](Self::poll) would return them one by
    /// one. `departed` must be empty.
    #[inline]
    pub fn take_departed(&mut self, now: Instant, departed: &mut VecDeque<CellDeparture>) {
        match (&mut *self.cells, self.due, self.departures.is_empty()) {
            ([cell], None, true) => cell.take_departed(now, departed),
            _ => departed.extend(std::iter::from_fn(|| self.poll(now))),
        }
    }

    #[inline(never)]
    fn poll_one_of_many(&mut self, now: Instant) -> Option<CellDeparture> {
        self.advance(now);
        let own = self.departures.front().map(|departure| departure.at).filter(|&at| at <= now);
        let mut first = own.map(|at| (at, None));
        for (index, cell) in self.cells.iter_mut().enumerate() {
            if let Some(at) = cell.front(now)
                && first.is_none_or(|(best, _)| at < best)
            {
                first = Some((at, Some(index)));
            }
        }
        match first? {
            (_, Some(cell)) => self.cells[cell].poll(now),
            (_, None) => self.departures.pop_front(),
        }
    }

    /// The next packet that was dropped, not in order of time. Stage 0 is the downlink, 1 the
    /// uplink.
    pub fn poll_drop(&mut self) -> Option<Drop> {
        if self.legs.is_some() {
            return self.poll_drop_of_legs();
        }
        self.drops.pop_front().or_else(|| self.cells.iter_mut().find_map(Cell::poll_drop))
    }

    /// [`poll_drop`](Self::poll_drop) if some bearers are split.
    fn poll_drop_of_legs(&mut self) -> Option<Drop> {
        for index in 0..self.cells.len() {
            while let Some((ue, drop)) = self.cells[index].poll_drop_of_ue() {
                match &mut self.mobiles[ue.0 as usize].split {
                    Some(split) => split.on_drop(&drop),
                    None => self.drops.push_back(drop),
                }
            }
        }
        let splits = self.mobiles.iter_mut().filter_map(|mobile| mobile.split.as_deref_mut());
        self.drops.pop_front().or_else(|| splits.into_iter().find_map(Split::poll_drop))
    }

    /// The next event of a UE between cells.
    pub fn poll_mobility(&mut self) -> Option<MobilityEvent> {
        self.events.pop_front()
    }

    /// Accounts for packets with a journey: a UE's downlink and uplink are two places, and those of
    /// the first UE begin at `first`. Only valid before anything enters.
    pub fn account(&mut self, journeys: &Journeys, first: Site) {
        for (ue, mobile) in (0..).zip(&mut self.mobiles) {
            let first = Site(first.0 + 2 * ue);
            if let (Some(split), Some(legs)) = (&mut mobile.split, self.legs) {
                split.account(journeys, first);
                for cell in legs {
                    self.cells[cell].account(UeIndex(ue), journeys, first);
                }
            } else if let Location::In(cell) = mobile.location {
                self.cells[cell].account(UeIndex(ue), journeys, first);
            }
        }
    }

    /// How long packets of one direction of a UE waited to be sent, until `now`; zero if it is not
    /// accounted for.
    pub fn busy(&mut self, now: Instant, ue: UeIndex, direction: Direction) -> Duration {
        self.advance(now);
        if let (Some(_), Some(legs)) = (&self.mobiles[ue.0 as usize].split, self.legs) {
            let busy = legs.map(|cell| self.cells[cell].busy(now, ue, direction));
            return busy[0].max(busy[1]);
        }
        match &mut self.mobiles[ue.0 as usize].location {
            Location::In(cell) => self.cells[*cell].busy(now, ue, direction),
            Location::Between(between) => between.context.bearer.direction(direction).busy(now),
        }
    }

    /// From now on keeps the cells' logs.
    pub fn keep_log(&mut self) {
        self.cells.iter_mut().for_each(Cell::keep_log);
    }

    /// The next entry of the cells' logs, in order of time as far as each cell has got.
    pub fn poll_event(&mut self) -> Option<RadioEvent> {
        let times = self.cells.iter().map(Cell::next_logged).enumerate();
        let (_, cell) = times.filter_map(|(cell, at)| Some((at?, cell))).min()?;
        self.cells[cell].poll_event()
    }

    /// What is inside: entered, and neither returned by `poll` nor dropped.
    pub fn load(&self) -> Load {
        let mut load = Load::default();
        for cell in &self.cells {
            load = load + cell.load();
        }
        for mobile in &self.mobiles {
            load = load + mobile.load();
        }
        for departure in &self.departures {
            load.add(&departure.packet);
        }
        load
    }

    /// Advances everything to `now` and visits the meters, downlink before uplink, UE by UE:
    /// counters are the sum over all cells, buffers are those where the UE is.
    pub fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&UeMeter<'_>)) {
        for ue in 0..self.ues() {
            self.observe_ue(now, UeIndex(ue), visit);
        }
    }

    /// Packets of a UE that are due by `now` enter its buffers, or are dropped, which
    /// [`Ran::poll_drop`] then reports.
    pub fn settle(&mut self, now: Instant, ue: UeIndex) {
        self.advance(now);
        self.cells.iter_mut().for_each(|cell| cell.settle(now, ue));
    }

    /// Advances everything to `now` and visits the meters of one UE.
    pub fn observe_ue(&mut self, now: Instant, ue: UeIndex, visit: &mut dyn FnMut(&UeMeter<'_>)) {
        self.advance(now);
        let mobile = &self.mobiles[ue.0 as usize];
        let here = match &mobile.location {
            Location::In(cell) => *cell,
            Location::Between(between) => between.from,
        };
        let (before, rest) = self.cells.split_at_mut(here);
        let Some((serving, after)) = rest.split_first_mut() else { return };
        for direction in [Direction::Downlink, Direction::Uplink] {
            let mut meter = serving.meter(now, ue, direction);
            let awake = meter.awake;
            if let Location::Between(between) = &mobile.location {
                between.context.show(direction, &mut meter);
            }
            for other in before.iter_mut().chain(after.iter_mut()) {
                let other = other.meter(now, ue, direction);
                if mobile.split.is_some() {
                    meter.add_leg(&other);
                }
                meter.add(&other);
            }
            if let Some(split) = &mobile.split {
                meter.sojourn = split.sojourn(direction);
                meter.awake = awake;
            }
            visit(&meter);
        }
    }

    /// The states of a UE's RRC and DRX; `None` while it is between cells.
    pub fn state(&mut self, now: Instant, ue: UeIndex) -> Option<UeState> {
        self.advance(now);
        match self.mobiles[ue.0 as usize].location {
            Location::In(cell) => Some(self.cells[cell].state(now, ue)),
            Location::Between(_) => None,
        }
    }

    /// The cells, in their order.
    pub fn cells(&mut self, now: Instant) -> &mut [Cell] {
        self.advance(now);
        &mut self.cells
    }

    /// The first buffer that holds something although nothing is due for its UE. This is a bug, for
    /// which the tests look.
    pub fn stalled(&self) -> Option<Stalled> {
        self.cells.iter().find_map(Cell::stalled)
    }

    #[inline]
    fn advance(&mut self, now: Instant) {
        if let Some(legs) = self.legs {
            self.advance_legs(now, legs);
        }
        while let Some(at) = self.due.filter(|&at| at <= now) {
            self.do_due(at);
            self.find_due();
        }
    }

    /// Does everything until `now` if some bearers are split: what leaves the cells is put in order.
    /// No UE moves.
    fn advance_legs(&mut self, now: Instant, legs: [usize; 2]) {
        let secondary = &mut self.cells[legs[Leg::Secondary as usize]];
        loop {
            let splits = (0..).map(UeIndex).zip(&mut self.mobiles);
            let splits = splits.filter_map(|(ue, mobile)| Some((ue, mobile.split.as_deref_mut()?)));
            let arrivals =
                splits.filter_map(|(ue, split)| Some((split.next_arrival()?, ue, split)));
            let first = arrivals.min_by_key(|&(at, ue, _)| (at, ue));
            let Some((at, ue, split)) = first.filter(|&(at, ..)| at <= now) else { break };
            if let Some(pdu) = split.take_arrival() {
                secondary.enqueue(at, Direction::Downlink, ue, &pdu);
            }
        }
        loop {
            let left =
                (0..self.cells.len()).filter_map(|cell| Some((self.cells[cell].front(now)?, cell)));
            let left = left.min();
            let receivers = (0..).map(UeIndex).zip(&self.mobiles);
            let receivers = receivers
                .filter_map(|(ue, mobile)| Some((mobile.split.as_ref()?.receivers_due()?, ue)));
            let due = receivers.min().filter(|&(at, _)| at <= now);
            match (left, due) {
                (left, Some((at, ue))) if left.is_none_or(|(first, _)| at <= first) => {
                    let Some(split) = &mut self.mobiles[ue.0 as usize].split else { break };
                    let departures = &mut self.departures;
                    split.do_receivers(at, &mut |direction, at, packet| {
                        departures.push_back(CellDeparture { direction, ue, at, packet: *packet });
                    });
                }
                (Some((at, cell)), _) => {
                    let Some(departure) = self.cells[cell].poll(now) else { break };
                    let CellDeparture { direction, ue, packet: pdu, .. } = departure;
                    let departures = &mut self.departures;
                    let Some(split) = &mut self.mobiles[ue.0 as usize].split else {
                        departures.push_back(departure);
                        continue;
                    };
                    let leg = if cell == legs[0] { Leg::Master } else { Leg::Secondary };
                    split.on_left(at, direction, leg, &pdu, &mut |direction, at, packet| {
                        departures.push_back(CellDeparture { direction, ue, at, packet: *packet });
                    });
                }
                (None, _) => break,
            }
        }
        self.find_due();
    }

    fn find_due(&mut self) {
        let planned = self.planned.iter().filter_map(|&(next, _)| next).min();
        let mobiles = self.mobiles.iter().filter_map(Mobile::due).min();
        self.due = [planned, mobiles, self.measured_next].into_iter().flatten().min();
    }

    fn do_due(&mut self, now: Instant) {
        for index in 0..self.planned.len() {
            let (next, planned) = self.planned[index];
            if next.is_some_and(|next| next <= now) {
                self.planned[index].0 = planned.every.map(|every| now + every);
                for ue in 0..self.ues() {
                    if planned.ue.is_none_or(|only| only == UeIndex(ue)) {
                        self.mobiles[ue as usize].command = Some((now, planned.to.0 as usize));
                    }
                }
            }
        }
        let measures = self.measured_next.is_some_and(|next| next <= now);
        if measures {
            self.measured_next = self.measurements.map(|config| now + config.period);
        }
        for ue in (0..self.ues()).map(UeIndex) {
            if measures {
                self.measure(now, ue);
            }
            if self.mobiles[ue.0 as usize].due().is_some_and(|at| at <= now) {
                self.move_on(now, ue);
            }
        }
    }

    /// Makes a UE measure all cells.
    fn measure(&mut self, now: Instant, ue: UeIndex) {
        let Mobile { location, measurements, command, .. } = &mut self.mobiles[ue.0 as usize];
        let Some(measurements) = measurements else { return };
        let mut here_db = f64::NEG_INFINITY;
        for (index, cell) in self.cells.iter_mut().enumerate() {
            let sinr_db = cell.measure(now, ue);
            measurements.add(index, sinr_db);
            if matches!(location, Location::In(serving) if *serving == index) {
                here_db = sinr_db;
            }
        }
        let &mut Location::In(serving) = location else { return };
        let better = measurements.a3(now, serving);
        if !self.cells[serving].is_connected(now, ue) {
            if let Some(to) = better {
                self.reselect(now, ue, serving, to);
            }
            return;
        }
        let monitors = self.measurements.is_some_and(|config| config.failure.is_some());
        if measurements.monitor(now, here_db) {
            self.fail(now, ue, MobilityEventKind::OutOfSync);
        } else if monitors && self.cells[serving].has_failed(ue) {
            self.fail(now, ue, MobilityEventKind::MaxRetransmissions);
        } else if let Some(to) = better.filter(|_| command.is_none()) {
            *command = Some((now + self.handover.preparation, to));
        }
    }

    /// Does what is due for a UE: forwarded packets come before events.
    fn move_on(&mut self, now: Instant, ue: UeIndex) {
        let mobile = &mut self.mobiles[ue.0 as usize];
        while let Some(&(at, packet)) = mobile.forwarded.front().filter(|(at, _)| *at <= now) {
            mobile.forwarded.pop_front();
            match &mut mobile.location {
                Location::In(cell) => {
                    self.cells[*cell].enqueue(at, Direction::Downlink, ue, &packet)
                }
                Location::Between(between) => between.context.add(at, Direction::Downlink, packet),
            }
        }
        if let Location::Between(between) = &mut mobile.location {
            let departures = &mut self.departures;
            between.context.on_timer(now, &mut self.drops, &mut |direction, at, packet| {
                departures.push_back(CellDeparture { direction, ue, at, packet: *packet });
            });
            if between.until <= now {
                self.arrive(now, ue);
            }
        }
        let mobile = &mut self.mobiles[ue.0 as usize];
        if mobile.switch_at.take_if(|at| *at <= now).is_some() {
            let (from, to) = (mobile.anchor, mobile.target());
            mobile.anchor = to;
            self.tell(now, ue, (from, to), MobilityEventKind::PathSwitch);
        }
        let mobile = &mut self.mobiles[ue.0 as usize];
        if let Location::In(serving) = mobile.location
            && let Some((_, to)) = mobile.command.take_if(|(at, _)| *at <= now)
            && to != serving
        {
            if self.cells[serving].is_connected(now, ue) {
                self.hand_over(now, ue, serving, to);
            } else {
                self.reselect(now, ue, serving, to);
            }
        }
    }

    /// The UE receives the handover command.
    fn hand_over(&mut self, now: Instant, ue: UeIndex, from: usize, to: usize) {
        let HandoverConfig { interruption, forwarding_delay, .. } = self.handover;
        self.tell(now, ue, (from, to), MobilityEventKind::Command);
        let until = now + interruption.max(forwarding_delay);
        self.depart(now, ue, from, Phase::Handover, (to, until));
    }

    /// The link has failed: the UE looks for the best cell.
    fn fail(&mut self, now: Instant, ue: UeIndex, cause: MobilityEventKind) {
        let Some(failure) = self.measurements.and_then(|config| config.failure) else { return };
        let mobile = &self.mobiles[ue.0 as usize];
        let (from, to) = (mobile.target(), mobile.best());
        self.tell(now, ue, (from, from), cause);
        self.depart(now, ue, from, Phase::Reestablishment, (to, now + failure.reestablishment));
    }

    /// Takes a UE out of its cell.
    fn depart(
        &mut self,
        now: Instant,
        ue: UeIndex,
        from: usize,
        phase: Phase,
        (to, until): (usize, Instant),
    ) {
        let context = self.cells[from].leave(now, ue, self.handover.forwarding);
        let mobile = &mut self.mobiles[ue.0 as usize];
        mobile.switch_at = None;
        mobile.command = None;
        mobile.location =
            Location::Between(Box::new(Between { context, from, to, left: now, until, phase }));
    }

    /// The time between two cells is over, if the target is in sync.
    fn arrive(&mut self, now: Instant, ue: UeIndex) {
        let mobile = &mut self.mobiles[ue.0 as usize];
        let best = mobile.best();
        let Location::Between(between) = &mut mobile.location else { return };
        let failure = self.measurements.and_then(|config| config.failure);
        if let Some(failure) = failure
            && (between.phase == Phase::Failing
                || self.cells[between.to].measure(now, ue) < failure.q_out_db)
        {
            let (from, to, expiry) = (between.from, between.to, between.left + failure.t304);
            if between.phase == Phase::Handover && expiry > now {
                (between.phase, between.until) = (Phase::Failing, expiry);
                return;
            }
            let failed = between.phase != Phase::Reestablishment;
            between.phase = Phase::Reestablishment;
            (between.to, between.until) = (best, now + failure.reestablishment);
            if failed {
                self.tell(now, ue, (from, to), MobilityEventKind::HandoverFailed);
            }
            return;
        }
        let arrived = Location::In(between.to);
        let location = core::mem::replace(&mut mobile.location, arrived);
        let Location::Between(between) = location else { return };
        let Between { context, from, to, left, .. } = *between;
        mobile.switch_at = (mobile.anchor != to).then_some(now + self.handover.path_switch);
        mobile.measurements.iter_mut().for_each(Measurements::moved);
        self.cells[to].join(now, ue, context);
        let interruption = now - left;
        self.tell(now, ue, (from, to), MobilityEventKind::Complete { interruption });
    }

    /// An idle UE camps on another cell: there is nothing to interrupt or to switch.
    fn reselect(&mut self, now: Instant, ue: UeIndex, from: usize, to: usize) {
        let context = self.cells[from].leave(now, ue, Forwarding::Buffer);
        debug_assert!(!context.state.carries_data(), "it would be a handover");
        self.cells[to].join(now, ue, context);
        let mobile = &mut self.mobiles[ue.0 as usize];
        mobile.location = Location::In(to);
        (mobile.anchor, mobile.switch_at, mobile.command) = (to, None, None);
        mobile.measurements.iter_mut().for_each(Measurements::moved);
        self.tell(now, ue, (from, to), MobilityEventKind::Reselection);
    }

    fn tell(
        &mut self,
        at: Instant,
        ue: UeIndex,
        (from, to): (usize, usize),
        kind: MobilityEventKind,
    ) {
        let cell = |index: usize| CellIndex(index as u32);
        let event = MobilityEvent { at, ue, from: cell(from), to: cell(to), kind };
        self.events.push_back(event);
    }
}
