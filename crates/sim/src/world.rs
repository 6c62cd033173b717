//! The virtual clock: the network between the endpoints, the flows, and whose turn it is.
//!
//! At a proxy TCP ends; everything else goes on at the same instant.

use std::collections::BTreeMap;

use airpath_base::{DropReason, Duration, Instant, Packet};
use airpath_network::{Goes, HOPS, Hops, Network, RADIO};
use airpath_record::{DropSummary, FairnessSummary, Name, RunSummary, Tables};
use airpath_scenario::Scenario;

use crate::agenda::Agenda;
use crate::flow::{Context, Flow, Summary};

/// Sources of the agenda: the network's hops, the sampler, then the flows.
const SAMPLER: usize = HOPS;
const FIRST_FLOW: usize = SAMPLER + 1;

/// Events, some hundredths of a second of work, after which `progress` is told at the latest.
const PROGRESS_EVENTS: u64 = 1 << 16;

/// Everything that a run consists of.
pub(crate) struct World {
    now: Instant,
    end: Instant,
    sample_interval: Duration,
    ack_table: bool,
    agenda: Agenda,
    network: Network,
    flows: Vec<Flow>,
    tables: Tables,
    /// Packets lost, by place, reason and flow.
    drops: BTreeMap<(Name, DropReason, Name), u64>,
    sampled_at: Instant,
    events: u64,
    seed: u64,
}

impl World {
    pub(crate) fn new(scenario: &Scenario, seed: u64) -> Self {
        let mut tables = Tables::default();
        let proxy = scenario.proxy.as_ref();
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
        let mut network = Network::new(scenario, seed, &mut tables.names);
        for (index, flow) in (0..).zip(&scenario.flows) {
            network.add_flow(Name(index), flow.ue);
        }
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
            network,
            flows,
            tables,
            drops: BTreeMap::new(),
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

    /// Something leaves a path, or happens in it.
    #[inline]
    fn run_path(&mut self, path: usize) {
        let mut sent = Hops::default();
        let next = loop {
            let Some(ref departure) = self.network.poll_path(path, self.now) else {
                break self.network.next_of(path);
            };
            self.go_on(path, self.network.after_path(path), &departure.packet, &mut sent);
            let next = self.network.next_of(path);
            if next.is_none_or(|at| at > self.now) {
                break next;
            }
        };
        self.rearm(path, next, sent);
    }

    /// Something leaves the radio, or happens in it.
    fn run_radio(&mut self) {
        let mut sent = Hops::default();
        while let Some(ref departure) = self.network.poll_radio(self.now) {
            let goes = self.network.after_radio(departure.direction);
            self.go_on(RADIO, goes, &departure.packet, &mut sent);
        }
        self.rearm(RADIO, self.network.next_of(RADIO), sent);
    }

    /// A packet that left a hop goes where it goes.
    #[inline(always)]
    fn go_on(&mut self, hop: usize, goes: Goes, packet: &Packet, sent: &mut Hops) {
        let index = packet.flow.0 as usize;
        let flow = &mut self.flows[index];
        match goes {
            Goes::On(next) => {
                self.network.pass(self.now, next, *packet);
                sent.add(next);
            }
            Goes::ToProxy(next) if flow.passes_proxy() => {
                self.network.pass(self.now, next, *packet);
                sent.add(next);
            }
            Goes::ToProxy(_) | Goes::Out(_) => {
                let path = if let Goes::Out(path) = goes { path } else { hop };
                let mut context = Context {
                    now: self.now,
                    network: &mut self.network,
                    tables: &mut self.tables,
                    ack_table: self.ack_table,
                    sent: *sent,
                };
                flow.on_packet(path, packet, &mut context);
                *sent = context.sent;
                arm_earlier(&mut self.agenda, FIRST_FLOW + index, flow.next_wake());
            }
        }
    }

    /// A hop is done for now, and others have something new.
    #[inline]
    fn rearm(&mut self, hop: usize, next: Option<Instant>, sent: Hops) {
        self.agenda.rearm(hop, next.unwrap_or(Instant::MAX));
        for other in sent.iter().filter(|&other| other != hop) {
            self.agenda.arm(other, self.network.next_of(other));
        }
    }

    fn run_flow(&mut self, index: usize) {
        let mut context = Context {
            now: self.now,
            network: &mut self.network,
            tables: &mut self.tables,
            ack_table: self.ack_table,
            sent: Hops::default(),
        };
        let flow = &mut self.flows[index];
        // Timers are re-armed lazily: this may be early, and then only sets the next wake.
        flow.on_wake(&mut context);
        let sent = context.sent;
        self.agenda.rearm(FIRST_FLOW + index, flow.next_wake().unwrap_or(Instant::MAX));
        for hop in sent.iter() {
            self.agenda.arm(hop, self.network.next_of(hop));
        }
    }

    fn sample(&mut self) {
        self.sampled_at = self.now;
        let Self { now, network, tables, flows, ack_table, drops, .. } = self;
        network.drain_drops(&mut |_, place, drop| {
            let flow = drop.packet.flow.0;
            flows[flow as usize].on_drop(&drop.packet);
            *drops.entry((place, drop.reason, Name(flow))).or_default() += 1;
        });
        network.sample(*now, tables);
        for flow in flows.iter_mut() {
            let (now, ack_table, sent) = (*now, *ack_table, Hops::default());
            let mut context = Context { now, network, tables, ack_table, sent };
            flow.sample(&mut context);
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
        let Self { now, mut network, mut tables, ack_table, flows, .. } = self;
        for (index, flow) in (0..).zip(flows) {
            let (network, tables, sent) = (&mut network, &mut tables, Hops::default());
            let mut context = Context { now, network, tables, ack_table, sent };
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
