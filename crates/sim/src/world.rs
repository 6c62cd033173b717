//! The virtual clock: both directions of the path, the flows, and whose turn it is.
//!
//! A proxy cuts both directions in two. What leaves the first part of one is at the proxy, which
//! ends TCP there; everything else enters the second part at the same instant.
//!
//! A radio stands at the UE's end: what leaves the last path down enters the cell, and what leaves
//! the cell upwards enters the first path up.

use std::collections::BTreeMap;

use airpath_base::{DropReason, Duration, Instant};
use airpath_path::build_pair;
use airpath_path::radio::Direction;
use airpath_record::{FairnessSummary, Name, Quantiles, RunSummary, Tables};
use airpath_scenario::{NamedStage, Scenario};

use crate::agenda::Agenda;
use crate::flow::{Context, FROM_UE, Flow, Paths, RADIO, Sent, Summary, beyond_proxy};
use crate::links::{self, LinkHistory, drop_event};
use crate::radio::Radio;

/// Sources of the agenda: [`Paths`], the radio, the sampler, then the flows.
const SAMPLER: usize = RADIO + 1;
const FIRST_FLOW: usize = SAMPLER + 1;

/// [`Paths`] in the order of the results: all of one direction, then all of the other.
const BY_DIRECTION: [usize; 4] = [0, 2, 1, 3];

/// Events, some hundredths of a second of work, after which `progress` is told at the latest.
const PROGRESS_EVENTS: u64 = 1 << 16;

/// Everything that a run consists of.
pub(crate) struct World {
    now: Instant,
    end: Instant,
    sample_interval: Duration,
    ack_table: bool,
    agenda: Agenda,
    paths: Paths,
    /// There is a proxy: all of the paths are in use.
    proxied: bool,
    /// Where the last path down ends.
    to_ue: usize,
    radio: Option<Box<Radio>>,
    flows: Vec<Flow>,
    /// Links by path, in the order in which they are observed.
    links: Vec<(usize, LinkHistory)>,
    tables: Tables,
    /// Names of all stages, by path.
    stages: [Vec<Name>; 4],
    dropped: Drops,
    sampled_at: Instant,
    events: u64,
    seed: u64,
}

/// Packets by path, stage and reason.
type Drops = BTreeMap<(usize, u32, DropReason), u64>;

impl World {
    pub(crate) fn new(scenario: &Scenario, seed: u64) -> Self {
        let mut tables = Tables::default();
        let parts = parts(scenario);
        let proxy = scenario.proxy.as_ref();
        let mut paths = build_sides(parts, proxy.is_some(), seed);
        // Flows are looked up by their names' places.
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
        let stages =
            parts.map(|stages| stages.iter().map(|stage| tables.names.add(&stage.name)).collect());
        let mut links = Vec::new();
        for path in BY_DIRECTION {
            let stages: &Vec<Name> = &stages[path];
            paths[path].observe(Instant::ZERO, &mut |meter| {
                links.push((path, LinkHistory::new(stages[meter.stage as usize])));
            });
        }
        let radio = scenario
            .radio
            .as_ref()
            .map(|radio| Box::new(Radio::new(radio, scenario, seed, &mut tables.names)));
        let mut agenda = Agenda::new(FIRST_FLOW + flows.len());
        for (index, flow) in flows.iter().enumerate() {
            agenda.arm(FIRST_FLOW + index, flow.next_wake());
        }
        agenda.arm(SAMPLER, Some(Instant::ZERO + scenario.run.sample_interval));
        Self {
            now: Instant::ZERO,
            end: Instant::ZERO + scenario.run.duration,
            sample_interval: scenario.run.sample_interval,
            ack_table: scenario.run.ack_table,
            agenda,
            paths,
            proxied: proxy.is_some(),
            to_ue: if proxy.is_some() { beyond_proxy(0) } else { 0 },
            radio,
            flows,
            links,
            tables,
            stages,
            dropped: Drops::new(),
            sampled_at: Instant::ZERO,
            events: 0,
            seed,
        }
    }

    /// Runs until the scenario's end, or until every flow is done. `progress` is told the time at
    /// every sample and now and then between; false stops the run: the result is then `false`.
    pub(crate) fn run(&mut self, progress: &mut dyn FnMut(Instant) -> bool) -> bool {
        while let Some((source, at)) = self.agenda.first() {
            if at > self.end {
                break;
            }
            self.now = at;
            self.events += 1;
            // Also where simulated time crawls, so that a run can always be stopped.
            if self.events.is_multiple_of(PROGRESS_EVENTS) && !progress(at) {
                return false;
            }
            match source {
                0..RADIO => self.run_path(source),
                RADIO => self.run_radio(),
                SAMPLER => {
                    self.sample();
                    if !progress(at) {
                        return false;
                    }
                    if self.flows.iter().all(Flow::is_done) {
                        return true;
                    }
                    self.agenda.rearm(SAMPLER, at + self.sample_interval);
                }
                flow => self.run_flow(flow - FIRST_FLOW),
            }
        }
        self.now = self.end;
        if self.sampled_at < self.end {
            self.sample();
        }
        true
    }

    #[inline]
    fn run_path(&mut self, path: usize) {
        let at_proxy = self.proxied && path < 2;
        let mut sent = Sent::default();
        let next = loop {
            let Some(ref departure) = self.paths[path].poll(self.now) else {
                break self.paths[path].next_event();
            };
            let index = departure.packet.flow.0 as usize;
            let mut context = Context {
                now: self.now,
                paths: &mut self.paths,
                radio: self.radio.as_deref_mut(),
                tables: &mut self.tables,
                ack_table: self.ack_table,
                sent,
            };
            let flow = &mut self.flows[index];
            if let Some(radio) = context.radio.as_deref_mut().filter(|_| path == self.to_ue) {
                radio.enqueue(self.now, Direction::Downlink, departure.packet);
                sent.add(RADIO);
            } else if at_proxy && flow.passes_proxy() {
                context.send(beyond_proxy(path), departure.packet);
                sent = context.sent;
            } else {
                flow.on_packet(path, &departure.packet, &mut context);
                sent = context.sent;
                arm_earlier(&mut self.agenda, FIRST_FLOW + index, flow.next_wake());
            }
            let next = self.paths[path].next_event();
            if next.is_none_or(|at| at > self.now) {
                break next;
            }
        };
        self.agenda.rearm(path, next.unwrap_or(Instant::MAX));
        for other in sent.paths().filter(|&other| other != path) {
            self.agenda.arm(other, self.paths[other].next_event());
        }
        self.arm_radio(sent);
    }

    /// Something leaves the cell, or happens in it.
    fn run_radio(&mut self) {
        let mut sent = Sent::default();
        let next = loop {
            let Some(radio) = self.radio.as_deref_mut() else { return };
            let Some(ref departure) = radio.poll(self.now) else {
                break radio.next_event();
            };
            let mut context = Context {
                now: self.now,
                paths: &mut self.paths,
                radio: None,
                tables: &mut self.tables,
                ack_table: self.ack_table,
                sent,
            };
            match departure.direction {
                Direction::Uplink => context.send(FROM_UE, departure.packet),
                Direction::Downlink => {
                    context.radio = Some(radio);
                    let index = departure.packet.flow.0 as usize;
                    let flow = &mut self.flows[index];
                    flow.on_packet(self.to_ue, &departure.packet, &mut context);
                    arm_earlier(&mut self.agenda, FIRST_FLOW + index, flow.next_wake());
                }
            }
            sent = context.sent;
        };
        self.agenda.rearm(RADIO, next.unwrap_or(Instant::MAX));
        for path in sent.paths() {
            self.agenda.arm(path, self.paths[path].next_event());
        }
    }

    /// After packets were sent: the radio may have something to do earlier.
    #[inline]
    fn arm_radio(&mut self, sent: Sent) {
        if let Some(radio) = self.radio.as_deref().filter(|_| sent.has_radio()) {
            self.agenda.arm(RADIO, radio.next_event());
        }
    }

    fn run_flow(&mut self, index: usize) {
        let mut context = Context {
            now: self.now,
            paths: &mut self.paths,
            radio: self.radio.as_deref_mut(),
            tables: &mut self.tables,
            ack_table: self.ack_table,
            sent: Sent::default(),
        };
        let flow = &mut self.flows[index];
        // Timers are re-armed lazily: this may be early, and then only sets the next wake.
        flow.on_wake(&mut context);
        let sent = context.sent;
        self.agenda.rearm(FIRST_FLOW + index, flow.next_wake().unwrap_or(Instant::MAX));
        for path in sent.paths() {
            self.agenda.arm(path, self.paths[path].next_event());
        }
        self.arm_radio(sent);
    }

    fn sample(&mut self) {
        let dropped = self.collect_drops();
        self.sampled_at = self.now;
        let Self { now, paths, links, tables, flows, ack_table, radio, .. } = self;
        let mut histories = links.iter_mut();
        for path in BY_DIRECTION {
            paths[path].observe(*now, &mut |meter| {
                if let Some((path, link)) = histories.next() {
                    let here =
                        |key: &(usize, u32, DropReason)| (key.0, key.1) == (*path, meter.stage);
                    let lost = dropped.iter().filter(|(key, _)| here(key)).map(|(_, n)| n).sum();
                    link.sample(*now, meter.into(), lost, tables);
                }
            });
        }
        if let Some(radio) = radio {
            radio.sample(*now, tables);
        }
        for flow in flows.iter_mut() {
            let (now, ack_table, sent) = (*now, *ack_table, Sent::default());
            let mut context = Context { now, paths, radio: None, tables, ack_table, sent };
            flow.sample(&mut context);
        }
    }

    /// Takes the drops since the last sample to their flows and into the events.
    fn collect_drops(&mut self) -> Drops {
        let mut drops = Drops::new();
        for path in BY_DIRECTION {
            while let Some(drop) = self.paths[path].poll_drop() {
                *drops.entry((path, drop.stage, drop.reason)).or_default() += 1;
                self.flows[drop.packet.flow.0 as usize].on_drop(&drop.packet);
            }
        }
        self.collect_radio_drops();
        for (&(path, stage, reason), &packets) in &drops {
            *self.dropped.entry((path, stage, reason)).or_default() += packets;
            let link = self.stages[path][stage as usize];
            self.tables.event(drop_event(self.now, link, reason, packets));
        }
        drops
    }

    fn collect_radio_drops(&mut self) {
        let Some(radio) = &mut self.radio else { return };
        radio.write_mobility(&mut self.tables);
        let mut drops: BTreeMap<(u32, DropReason), u64> = BTreeMap::new();
        while let Some((drop, link)) = radio.poll_drop() {
            *drops.entry((link.0, drop.reason)).or_default() += 1;
            self.flows[drop.packet.flow.0 as usize].on_drop(&drop.packet);
        }
        for ((link, reason), packets) in drops {
            self.tables.event(drop_event(self.now, Name(link), reason, packets));
        }
    }

    /// Ends the run: tables and summary.
    pub(crate) fn finish(mut self) -> (RunSummary, Tables) {
        let mut summary = RunSummary {
            seed: self.seed,
            simulated_s: self.now.as_secs_f64(),
            events: self.events,
            ..RunSummary::default()
        };
        self.summarise_links(&mut summary);
        if let Some(radio) = &mut self.radio {
            radio.summarise(self.now, &mut summary);
        }
        let Self { now, mut paths, mut tables, ack_table, flows, .. } = self;
        for (index, flow) in (0..).zip(flows) {
            let (paths, tables, sent) = (&mut paths, &mut tables, Sent::default());
            let mut context = Context { now, paths, radio: None, tables, ack_table, sent };
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
        Self::summarise_fairness(&mut summary);
        (summary, tables)
    }

    /// TCP flows that ran, by direction.
    fn summarise_fairness(summary: &mut RunSummary) {
        for direction in ["down", "up"] {
            let goodputs: Vec<f64> = summary
                .flows
                .iter()
                .filter(|flow| flow.direction == direction && flow.congestion.is_some())
                .filter_map(|flow| flow.goodput_mbps)
                .collect();
            summary.fairness.extend(FairnessSummary::of(direction, &goodputs));
        }
    }

    fn summarise_links(&mut self, summary: &mut RunSummary) {
        let seconds = self.now.as_secs_f64();
        for path in BY_DIRECTION {
            let dropped = &self.dropped;
            self.paths[path].observe(self.now, &mut |meter| {
                let here = dropped
                    .iter()
                    .filter(|((way, stage, _), _)| *way == path && *stage == meter.stage)
                    .map(|((_, _, reason), &packets)| (*reason, packets));
                let delay = Quantiles::of(&meter.sojourn);
                summary.links.push(links::summary(&meter.name, seconds, meter.into(), delay, here));
            });
        }
    }
}

/// The stages of each of [`Paths`].
fn parts(scenario: &Scenario) -> [&[NamedStage]; 4] {
    let (before_down, before_up) = match &scenario.proxy {
        Some(proxy) => (proxy.down.stages_before, proxy.up.stages_before),
        None => (scenario.down.len(), scenario.up.len()),
    };
    let ((down, beyond_down), (up, beyond_up)) =
        (scenario.down.split_at(before_down), scenario.up.split_at(before_up));
    [down, up, beyond_down, beyond_up]
}

/// Builds [`Paths`], the two of each side of the proxy as a pair: the first part down and the last
/// part up are the server's side, the others the UE's. Without a proxy all stages are one side.
fn build_sides(parts: [&[NamedStage]; 4], proxied: bool, seed: u64) -> Paths {
    let pair = |down: usize, up: usize| {
        build_pair(NamedStage::named(parts[down]), NamedStage::named(parts[up]), seed)
    };
    if proxied {
        let ([from_server, to_server], [to_ue, from_ue]) = (pair(0, 3), pair(2, 1));
        [from_server, from_ue, to_ue, to_server]
    } else {
        let ([down, up], [no_down, no_up]) = (pair(0, 1), pair(2, 3));
        [down, up, no_down, no_up]
    }
}

/// A timer may be re-armed to an earlier time only: a later one is noticed when it fires.
#[inline]
fn arm_earlier(agenda: &mut Agenda, source: usize, at: Option<Instant>) {
    if let Some(at) = at
        && at < agenda.due(source)
    {
        agenda.arm(source, Some(at));
    }
}
