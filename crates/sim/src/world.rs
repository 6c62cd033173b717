//! The virtual clock: the network between the endpoints, the flows, and the loop over events.
//!
//! TCP ends at a proxy; everything else passes it at the same instant.

use std::collections::{BTreeMap, VecDeque};

use airpath_base::{Direction, DropReason, Duration, Instant, Packet};
use airpath_metrics::fairness;
use airpath_network::{CellDeparture, Destination, Hop, HopSet, SteppedNetwork};
use airpath_record::{DropSummary, Name, RunSummary, Tables};
use airpath_scenario::{FlowConfig, Scenario, Traffic};
use airpath_tcp::CongestionConfig;

use crate::event_queue::EventQueue;
use crate::flow::{Context, Flow, Routes, Summary};
use crate::goodput::Goodputs;
use crate::observers::{Observers, Options};
use crate::stopped::Stopped;

/// Sources of events: the network's hops, the sampler, then the flows.
const SAMPLER: usize = Hop::ALL.len();
const FIRST_FLOW: usize = SAMPLER + 1;

/// Most events between two calls of `progress`, which take some hundredths of a second.
const PROGRESS_EVENTS: u64 = 1 << 16;

/// Why a run pauses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Advance {
    /// Congestion controls are to decide.
    Decision,
    /// The run has ended.
    Ended,
}

/// The complete state of a run.
pub(crate) struct World<'a> {
    now: Instant,
    end: Instant,
    sample_interval: Duration,
    ack_table: bool,
    queue: EventQueue,
    network: SteppedNetwork,
    flows: Vec<Flow>,
    tables: Tables,
    /// Packets lost, by place, reason and flow.
    drops: BTreeMap<(Name, DropReason, Name), u64>,
    /// Buffer for packets that leave the radio together.
    departed: VecDeque<CellDeparture>,
    sampled_at: Instant,
    events: u64,
    seed: u64,
    /// Flows whose congestion control is from outside, and may decide apart from acknowledgements.
    deciders: Vec<usize>,
    /// What the hosts know about each other.
    routes: Routes,
    /// Additional observers.
    observers: Option<Box<Observers<'a>>>,
}

impl<'a> World<'a> {
    pub(crate) fn new(scenario: &Scenario, seed: u64, options: Options<'a>) -> Self {
        let Options { accounted, on_packet } = options;
        let mut tables = Tables::default();
        let proxy = scenario.proxy.as_ref();
        // The names of flows are added in order, so that a flow is found by its name.
        for flow in &scenario.flows {
            tables.names.add(&flow.id);
        }
        let flows: Vec<Flow> = (0..)
            .zip(&scenario.flows)
            .map(|(index, config)| {
                let ue = scenario.radio.as_ref().map(|radio| &radio.ues[config.ue]);
                Flow::new(config, index, ue, proxy, seed, &mut tables.names)
            })
            .collect();
        let mut network = SteppedNetwork::new(scenario, seed, &mut tables.names, accounted);
        for (index, flow) in (0..).zip(&scenario.flows) {
            network.add_flow(Name(index), flow.ue);
        }
        if on_packet.is_some() {
            network.keep_entered();
        }
        let goodputs = accounted.then(|| Goodputs::new(&scenario.flows)).flatten();
        let is_observed = goodputs.is_some() || on_packet.is_some();
        let observers = is_observed.then(|| Box::new(Observers { goodputs, on_packet }));
        let mut queue = EventQueue::new(FIRST_FLOW + flows.len());
        for (index, flow) in flows.iter().enumerate() {
            queue.arm(FIRST_FLOW + index, flow.next_wake());
        }
        queue.arm(SAMPLER, Some(Instant::ZERO + scenario.run.sample_interval));
        Self {
            now: Instant::ZERO,
            end: Instant::ZERO + scenario.run.duration,
            sample_interval: scenario.run.sample_interval,
            ack_table: scenario.run.ack_table,
            queue,
            network,
            flows,
            tables,
            drops: BTreeMap::new(),
            departed: VecDeque::new(),
            sampled_at: Instant::ZERO,
            events: 0,
            seed,
            deciders: deciders(scenario),
            routes: Routes::new(),
            observers,
        }
    }

    /// Runs until the scenario's end, or until every flow is done. `progress` receives the time and
    /// the number of events so far at every sample and sometimes in between.
    ///
    /// # Errors
    ///
    /// [`Stopped`]: `progress` returned false, or a congestion control cannot go on.
    pub(crate) fn run(
        &mut self,
        progress: &mut dyn FnMut(Instant, u64) -> bool,
    ) -> Result<(), Stopped> {
        while self.advance(progress)? == Advance::Decision {
            self.decide();
        }
        Ok(())
    }

    /// Runs until congestion controls are to decide, or to the end; [`Self::decide`] lets them.
    ///
    /// # Errors
    ///
    /// As [`Self::run`].
    pub(crate) fn advance(
        &mut self,
        progress: &mut dyn FnMut(Instant, u64) -> bool,
    ) -> Result<Advance, Stopped> {
        while let Some((source, at)) = self.queue.first() {
            if at > self.end {
                break;
            }
            self.now = at;
            self.events += 1;
            // Also when simulated time crawls, so that a run can always be stopped.
            if self.events.is_multiple_of(PROGRESS_EVENTS) && !progress(at, self.events) {
                return Err(Stopped::ByCaller);
            }
            match Hop::ALL.get(source) {
                Some(Hop::Radio) => self.run_radio(),
                Some(&path) => self.run_path(path),
                None if source == SAMPLER => {
                    self.sample();
                    if !progress(at, self.events) {
                        return Err(Stopped::ByCaller);
                    }
                    self.check_flows()?;
                    if self.flows.iter().all(Flow::is_done) {
                        return Ok(Advance::Ended);
                    }
                    self.queue.rearm(SAMPLER, at + self.sample_interval);
                }
                None => self.run_flow(source - FIRST_FLOW, Flow::on_wake),
            }
            if self.deciders.iter().any(|&index| self.flows[index].decision_due()) {
                return Ok(Advance::Decision);
            }
        }
        self.now = self.end;
        if self.sampled_at < self.end {
            self.sample();
        }
        self.check_flows()?;
        Ok(Advance::Ended)
    }

    /// Lets the congestion controls decide that are due, at the instant of the last event.
    #[cold]
    pub(crate) fn decide(&mut self) {
        for place in 0..self.deciders.len() {
            let index = self.deciders[place];
            if self.flows[index].decision_due() {
                self.run_flow(index, Flow::decide);
            }
        }
    }

    /// The time on the run's clock.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// Whether a flow will not send or wait for anything more.
    pub(crate) fn is_done(&self, flow: usize) -> bool {
        self.flows[flow].is_done()
    }

    /// Whether the congestion control of each flow can go on.
    fn check_flows(&self) -> Result<(), Stopped> {
        match self.flows.iter().find_map(Flow::failure) {
            Some(why) => Err(Stopped::ByCongestionControl(why.to_owned())),
            None => Ok(()),
        }
    }

    /// Something leaves a path, or happens inside it.
    #[inline]
    fn run_path(&mut self, path: Hop) {
        let mut sent = HopSet::default();
        if let (Destination::Radio(direction), None) =
            (self.network.after_path(path), &self.observers)
        {
            if self.network.pass_to_radio(path, direction, self.now) {
                sent.add(Hop::Radio);
            }
            return self.rearm(path, self.next_of(path), sent);
        }
        let mut next = Instant::MAX;
        while let Some(ref packet) = self.network.poll_path(path, self.now, &mut next) {
            self.go_on(self.network.after_path(path), packet, &mut sent);
            if sent.has(path) {
                next = self.next_of(path);
            }
            debug_assert_eq!(next, self.next_of(path), "of what has not entered it, a path knows");
            if next > self.now {
                break;
            }
        }
        self.rearm(path, next, sent);
    }

    /// Something leaves the radio, or happens inside it.
    #[inline(never)]
    fn run_radio(&mut self) {
        let mut sent = HopSet::default();
        let mut departed = std::mem::take(&mut self.departed);
        loop {
            self.network.take_departed(self.now, &mut departed);
            if departed.is_empty() {
                break;
            }
            for departure in &departed {
                let (direction, packet) = (departure.direction, &departure.packet);
                if let (Direction::Uplink, Some(observers)) = (direction, &mut self.observers) {
                    observers.at_base_station(self.now, Direction::Uplink, packet);
                }
                self.go_on(self.network.after_radio(direction), packet, &mut sent);
            }
            departed.clear();
        }
        self.departed = departed;
        self.rearm(Hop::Radio, self.next_of(Hop::Radio), sent);
    }

    /// Moves a packet that left a hop to its destination.
    #[inline(always)]
    fn go_on(&mut self, to: Destination, packet: &Packet, sent: &mut HopSet) {
        let index = packet.flow.0 as usize;
        let flow = &mut self.flows[index];
        match to {
            Destination::Path(next) => {
                self.network.forward(self.now, to, packet);
                sent.add(next);
            }
            Destination::Radio(direction) => {
                if let (Direction::Downlink, Some(observers)) = (direction, &mut self.observers) {
                    observers.at_base_station(self.now, direction, packet);
                }
                self.network.forward(self.now, to, packet);
                sent.add(Hop::Radio);
            }
            Destination::Proxy(direction) if flow.ignores_proxy() => {
                self.network.forward(self.now, to, packet);
                sent.add(Hop::from_proxy(direction));
            }
            Destination::Proxy(direction) | Destination::Endpoint(direction) => {
                let at_proxy = matches!(to, Destination::Proxy(_));
                if let Some(observers) = self.observers.as_mut().filter(|_| !at_proxy) {
                    observers.on_arrival(self.now, direction, packet);
                }
                let mut context = Context {
                    now: self.now,
                    network: &mut self.network,
                    tables: &mut self.tables,
                    ack_table: self.ack_table,
                    sent: *sent,
                    routes: &mut self.routes,
                };
                let due = match at_proxy {
                    true => flow.on_packet_at_proxy(direction, packet, &mut context),
                    false => flow.on_packet(direction, packet, &mut context),
                };
                *sent = context.sent;
                if let Some(observers) = &mut self.observers {
                    observers.follow(self.now, index, flow.is_measured(), &mut self.network);
                }
                arm_earlier(&mut self.queue, FIRST_FLOW + index, due);
                debug_assert!(
                    flow.next_wake().is_none_or(|at| at >= self.queue.due(FIRST_FLOW + index)),
                    "a time of flow {index} is missing"
                );
            }
        }
    }

    /// When a hop may next yield something, [`Instant::MAX`] if never.
    #[inline]
    fn next_of(&self, hop: Hop) -> Instant {
        self.network.next_of(hop).unwrap_or(Instant::MAX)
    }

    /// Re-arms a hop that is done for now, and those that have received something.
    #[inline(always)]
    fn rearm(&mut self, hop: Hop, next: Instant, sent: HopSet) {
        self.queue.rearm(hop.index(), next);
        for other in sent.iter().filter(|&other| other != hop) {
            self.queue.arm(other.index(), self.network.next_of(other));
        }
    }

    /// Lets a flow act.
    #[inline(always)]
    fn run_flow(&mut self, index: usize, act: fn(&mut Flow, &mut Context<'_>)) {
        let mut context = Context {
            now: self.now,
            network: &mut self.network,
            tables: &mut self.tables,
            ack_table: self.ack_table,
            sent: HopSet::default(),
            routes: &mut self.routes,
        };
        let flow = &mut self.flows[index];
        // Timers are re-armed lazily: this call may be early, and then only sets the next wake-up.
        act(flow, &mut context);
        let sent = context.sent;
        if let Some(observers) = &mut self.observers {
            observers.follow(self.now, index, flow.is_measured(), &mut self.network);
        }
        self.queue.rearm(FIRST_FLOW + index, flow.next_wake().unwrap_or(Instant::MAX));
        for hop in sent.iter() {
            self.queue.arm(hop.index(), self.network.next_of(hop));
        }
    }

    fn sample(&mut self) {
        self.sampled_at = self.now;
        let Self { now, network, tables, flows, ack_table, drops, observers, routes, .. } = self;
        network.settle(*now);
        network.drain_drops(&mut |_, place, drop| {
            let flow = drop.packet.flow.0;
            flows[flow as usize].on_drop(&drop.packet);
            *drops.entry((place, drop.reason, Name(flow))).or_default() += 1;
        });
        network.sample(*now, tables);
        if let Some(goodputs) = observers.as_mut().and_then(|all| all.goodputs.as_mut()) {
            goodputs.mark(*now, network);
        }
        for flow in flows.iter_mut() {
            let (now, ack_table, sent) = (*now, *ack_table, HopSet::default());
            let mut context = Context { now, network, tables, ack_table, sent, routes };
            flow.sample(&mut context);
        }
    }

    /// Ends the run: returns the summary and the tables.
    pub(crate) fn finish(mut self) -> (RunSummary, Tables) {
        let mut summary = RunSummary {
            seed: self.seed,
            duration_s: self.now.as_secs_f64(),
            events: self.events,
            ..RunSummary::default()
        };
        self.network.summarise(self.now, &mut summary);
        let names = &self.tables.names;
        summary.drops = (self.drops.iter())
            .map(|(&(place, reason, flow), &packets)| DropSummary {
                place: names.name(place).to_owned(),
                reason: reason.name(),
                flow: names.name(flow).to_owned(),
                packets,
            })
            .collect();
        let Self { now, mut network, mut tables, ack_table, flows, observers, mut routes, .. } =
            self;
        let mut goodputs = observers.and_then(|observers| observers.goodputs);
        if let Some(goodputs) = &mut goodputs {
            goodputs.mark(now, &mut network);
        }
        let activities: Vec<_> = flows.iter().map(Flow::activities).collect();
        let mut name = |place| Some(tables.names.name(network.place(place)?).to_owned());
        summary.breakdowns = flows.iter().flat_map(|flow| flow.breakdowns(&mut name)).collect();
        for (index, flow) in (0..).zip(flows) {
            let (network, tables, sent) = (&mut network, &mut tables, HopSet::default());
            let routes = &mut routes;
            let mut context = Context { now, network, tables, ack_table, sent, routes };
            match flow.finish(&mut context) {
                Summary::Flow(flow) => {
                    tables.flow(Name(index), &flow);
                    summary.flows.push(*flow);
                }
                Summary::Split(flow, proxy) => {
                    tables.flow(Name(index), &flow);
                    summary.flows.push(*flow);
                    summary.proxies.extend(proxy.map(|proxy| *proxy));
                }
                Summary::Ping(ping, flow) => {
                    tables.flow(Name(index), &flow);
                    summary.pings.push(ping);
                }
            }
        }
        summary.fairness = fairness(&summary.flows);
        if let Some(goodputs) = &goodputs {
            let mut name = |place| Some(tables.names.name(network.place(place)?).to_owned());
            for (index, activities) in activities.iter().enumerate() {
                let id = tables.names.name(Name(index as u32));
                let flow = summary.flows.iter().find(|flow| flow.id == id);
                let goodput = flow.and_then(|flow| flow.goodput_mbps);
                let Some((goodput, activities)) = goodput.zip(activities.as_ref()) else {
                    continue;
                };
                let known = summary.breakdowns.iter_mut().find(|breakdown| breakdown.id == id);
                if let Some(breakdown) = known {
                    breakdown.goodput_mbps =
                        goodputs.breakdown(index, goodput, activities, &mut name);
                }
            }
        }
        (summary, tables)
    }
}

/// Flows whose congestion control is from outside, by place.
fn deciders(scenario: &Scenario) -> Vec<usize> {
    let is_external = |flow: &FlowConfig| match &flow.traffic {
        Traffic::Bulk { tcp, .. } | Traffic::File { tcp, .. } => {
            matches!(tcp.sender.congestion, CongestionConfig::External(_))
        }
        Traffic::Ping { .. } | Traffic::Udp { .. } | Traffic::Quic { .. } => false,
    };
    (0..).zip(&scenario.flows).filter(|(_, flow)| is_external(flow)).map(|(at, _)| at).collect()
}

/// A timer is only re-armed to an earlier time: a later one is noticed when it fires.
#[inline]
fn arm_earlier(queue: &mut EventQueue, source: usize, at: Instant) {
    if at < queue.due(source) {
        queue.arm(source, Some(at));
    }
}
