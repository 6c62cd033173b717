//! The virtual clock: both directions of the path, the flows, and whose turn it is.

use std::collections::BTreeMap;

use airpath_base::{DropReason, Duration, FlowId, Instant};
use airpath_path::{LinkMeter, StageConfig, build_pair};
use airpath_record::{
    EventRow, FairnessSummary, LinkRow, LinkSummary, Name, Quantiles, RunSummary, Tables,
};
use airpath_scenario::{NamedStage, Scenario};

use crate::agenda::Agenda;
use crate::flow::{Context, Flow, Paths, Summary, mbps};

/// Sources of the agenda: two paths, the sampler, then the flows.
const SAMPLER: usize = 2;
const FIRST_FLOW: usize = 3;

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
    flows: Vec<Flow>,
    links: Vec<LinkHistory>,
    tables: Tables,
    /// Names of all stages, by direction.
    stages: [Vec<Name>; 2],
    dropped: Drops,
    sampled_at: Instant,
    events: u64,
    seed: u64,
}

/// Packets by direction, stage and reason.
type Drops = BTreeMap<(usize, u32, DropReason), u64>;

/// A link at the last sample.
struct LinkHistory {
    name: Name,
    direction: usize,
    departed_bytes: u64,
    departed_packets: u64,
    sojourn_sum: Duration,
    capacity_bytes: f64,
    sampled_at: Instant,
}

impl World {
    pub(crate) fn new(scenario: &Scenario, seed: u64) -> Self {
        let mut tables = Tables::default();
        let mut paths = build_pair(named(&scenario.down), named(&scenario.up), seed);
        let flows: Vec<Flow> = (0..)
            .zip(&scenario.flows)
            .map(|(index, config)| {
                let name = tables.names.add(&config.id);
                Flow::new(config, FlowId(index), name, seed)
            })
            .collect();
        let mut names = |stages: &[NamedStage]| -> Vec<Name> {
            stages.iter().map(|stage| tables.names.add(&stage.name)).collect()
        };
        let stages = [names(&scenario.down), names(&scenario.up)];
        let mut links = Vec::new();
        for (direction, path) in paths.iter_mut().enumerate() {
            path.observe(Instant::ZERO, &mut |meter| {
                let name = stages[direction][meter.stage as usize];
                links.push(LinkHistory::new(name, direction));
            });
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
            paths,
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
                0 | 1 => self.run_path(source),
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
    fn run_path(&mut self, direction: usize) {
        let mut sent = [false; 2];
        let next = loop {
            let Some(ref departure) = self.paths[direction].poll(self.now) else {
                break self.paths[direction].next_event();
            };
            let index = departure.packet.flow.0 as usize;
            let mut context = Context {
                now: self.now,
                paths: &mut self.paths,
                tables: &mut self.tables,
                ack_table: self.ack_table,
                sent,
            };
            let flow = &mut self.flows[index];
            flow.on_packet(direction, &departure.packet, &mut context);
            sent = context.sent;
            arm_earlier(&mut self.agenda, FIRST_FLOW + index, flow.next_wake());
            let next = self.paths[direction].next_event();
            if next.is_none_or(|at| at > self.now) {
                break next;
            }
        };
        self.agenda.rearm(direction, next.unwrap_or(Instant::MAX));
        let other = 1 - direction;
        if sent[other] {
            self.agenda.arm(other, self.paths[other].next_event());
        }
    }

    fn run_flow(&mut self, index: usize) {
        let mut context = Context {
            now: self.now,
            paths: &mut self.paths,
            tables: &mut self.tables,
            ack_table: self.ack_table,
            sent: [false; 2],
        };
        let flow = &mut self.flows[index];
        // Timers are re-armed lazily: this may be early, and then only sets the next wake.
        flow.on_wake(&mut context);
        let sent = context.sent;
        self.agenda.rearm(FIRST_FLOW + index, flow.next_wake().unwrap_or(Instant::MAX));
        for direction in (0..2).filter(|&direction| sent[direction]) {
            self.agenda.arm(direction, self.paths[direction].next_event());
        }
    }

    fn sample(&mut self) {
        let dropped = self.collect_drops();
        self.sampled_at = self.now;
        let Self { now, paths, links, tables, flows, ack_table, .. } = self;
        let mut histories = links.iter_mut();
        for path in paths.iter_mut() {
            path.observe(*now, &mut |meter| {
                if let Some(link) = histories.next() {
                    link.sample(*now, meter, &dropped, tables);
                }
            });
        }
        for flow in flows.iter_mut() {
            let (now, ack_table, sent) = (*now, *ack_table, [false; 2]);
            let mut context = Context { now, paths, tables, ack_table, sent };
            flow.sample(&mut context);
        }
    }

    /// Takes the drops since the last sample to their flows and into the events.
    fn collect_drops(&mut self) -> Drops {
        let mut drops = Drops::new();
        for (direction, path) in self.paths.iter_mut().enumerate() {
            while let Some(drop) = path.poll_drop() {
                *drops.entry((direction, drop.stage, drop.reason)).or_default() += 1;
                self.flows[drop.packet.flow.0 as usize].on_drop(&drop.packet);
            }
        }
        for (&(direction, stage, reason), &packets) in &drops {
            *self.dropped.entry((direction, stage, reason)).or_default() += packets;
            self.tables.event(EventRow {
                time_ns: self.now.as_nanos() as i64,
                flow: None,
                link: Some(self.stages[direction][stage as usize]),
                kind: "drop",
                reason: Some(reason.name()),
                cwnd_segments: None,
                value: None,
                packets: Some(packets),
            });
        }
        drops
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
        let Self { now, mut paths, mut tables, ack_table, flows, .. } = self;
        for (index, flow) in (0..).zip(flows) {
            let (paths, tables, sent) = (&mut paths, &mut tables, [false; 2]);
            let mut context = Context { now, paths, tables, ack_table, sent };
            match flow.finish(&mut context) {
                Summary::Flow(flow) => {
                    tables.flow(Name(index), &flow);
                    summary.flows.push(*flow);
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
        for (direction, path) in self.paths.iter_mut().enumerate() {
            let dropped = &self.dropped;
            path.observe(self.now, &mut |meter| {
                let rate =
                    |bytes: f64| if seconds > 0.0 { bytes * 8.0 / seconds / 1e6 } else { 0.0 };
                let sent = meter.departed.bytes as f64;
                summary.links.push(LinkSummary {
                    id: meter.name.clone(),
                    throughput_mbps: rate(sent),
                    capacity_mbps: rate(meter.capacity_bytes),
                    utilisation: if meter.capacity_bytes > 0.0 {
                        sent / meter.capacity_bytes
                    } else {
                        0.0
                    },
                    queue_delay_ms: Quantiles::of(&meter.sojourn),
                    dropped_packets: dropped
                        .iter()
                        .filter(|((way, stage, _), _)| *way == direction && *stage == meter.stage)
                        .map(|((_, _, reason), &packets)| (reason.name(), packets))
                        .collect(),
                });
            });
        }
    }
}

/// Stages with their names, as the path model takes them.
fn named(stages: &[NamedStage]) -> impl Iterator<Item = (&str, &StageConfig)> {
    stages.iter().map(|stage| (stage.name.as_str(), &stage.stage))
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

impl LinkHistory {
    fn new(name: Name, direction: usize) -> Self {
        Self {
            name,
            direction,
            departed_bytes: 0,
            departed_packets: 0,
            sojourn_sum: Duration::ZERO,
            capacity_bytes: 0.0,
            sampled_at: Instant::ZERO,
        }
    }

    fn sample(&mut self, now: Instant, meter: &LinkMeter, drops: &Drops, tables: &mut Tables) {
        let seconds = now.saturating_since(self.sampled_at).as_secs_f64();
        let Some(throughput_mbps) = mbps(meter.departed.bytes - self.departed_bytes, seconds)
        else {
            return;
        };
        let packets = meter.departed.packets - self.departed_packets;
        let sojourn = meter.sojourn_sum.saturating_sub(self.sojourn_sum);
        let here = |key: &(usize, u32, DropReason)| (key.0, key.1) == (self.direction, meter.stage);
        tables.link(LinkRow {
            time_ns: now.as_nanos() as i64,
            link: self.name,
            throughput_mbps,
            capacity_mbps: (meter.capacity_bytes - self.capacity_bytes) * 8.0 / seconds / 1e6,
            queue_packets: meter.queued.packets,
            queue_bytes: meter.queued.bytes,
            queue_delay_ms: (packets > 0).then(|| (sojourn / packets).as_millis_f64()),
            dropped_packets: drops.iter().filter(|(key, _)| here(key)).map(|(_, n)| n).sum(),
        });
        self.departed_bytes = meter.departed.bytes;
        self.departed_packets = meter.departed.packets;
        self.sojourn_sum = meter.sojourn_sum;
        self.capacity_bytes = meter.capacity_bytes;
        self.sampled_at = now;
    }
}
