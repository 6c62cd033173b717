//! The input of the causes before anything is tried: the scenario and one run of it.

use std::collections::BTreeMap;

use airpath_base::Direction;
use airpath_path::{LinkConfig, ServiceConfig, StageConfig};
use airpath_record::{DropSummary, FlowSummary, LinkSummary, RadioSummary, RunSummary};
use airpath_scenario::{FlowConfig, NamedStage, Parsed, Scenario, StageId, TcpConfig};

use crate::by_name::ByName;
use crate::evidence::Losses;
use crate::subject::Subject;

/// A scenario and one run of it.
#[derive(Clone, Debug)]
pub(crate) struct Observed<'a> {
    /// The scenario's file.
    pub(crate) parsed: &'a Parsed,
    /// The scenario.
    pub(crate) scenario: &'a Scenario,
    /// The run.
    pub(crate) run: &'a RunSummary,
    flows: ByName<'a, FlowSummary>,
    /// Links and radio buffers.
    pub(crate) queues: Vec<(Subject, &'a LinkSummary)>,
    /// The two directions of each UE's radio, with the UE's position.
    pub(crate) radio: Vec<(usize, Direction, &'a RadioSummary)>,
}

impl<'a> Observed<'a> {
    /// What one run of a scenario showed.
    pub(crate) fn new(parsed: &'a Parsed, run: &'a RunSummary) -> Self {
        let scenario = &parsed.scenario;
        let names = scenario.radio.iter().flat_map(|radio| radio.ues.iter().enumerate());
        let sides = names.flat_map(|ue| Direction::BOTH.map(|direction| (ue, direction)));
        let (mut queues, mut radio) = (BTreeMap::new(), BTreeMap::new());
        for stage in scenario.down.iter().chain(&scenario.up) {
            queues.insert(stage.name.clone(), Subject::Stage(stage.id));
        }
        for ((index, ue), direction) in sides {
            let buffer = Subject::RadioBuffer { ue: ue.clone(), direction };
            queues.insert(buffer.to_string(), buffer);
            radio.insert(format!("{ue}.{direction}"), (index, direction));
        }
        let queue = |link: &'a LinkSummary| Some((queues.get(&link.id)?.clone(), link));
        let side = |side: &'a RadioSummary| {
            radio.get(&side.id).map(|&(index, direction)| (index, direction, side))
        };
        let queues = run.links.iter().filter_map(queue).collect();
        let radio = run.radio.iter().filter_map(side).collect();
        let flows = ByName::new(&run.flows, |flow| &flow.id);
        Self { parsed, scenario, run, flows, queues, radio }
    }

    /// Every stage.
    pub(crate) fn stages(&self) -> impl Iterator<Item = &'a NamedStage> + use<'a> {
        self.scenario.down.iter().chain(&self.scenario.up)
    }

    /// The configuration of a stage.
    pub(crate) fn stage(&self, id: StageId) -> Option<&'a StageConfig> {
        self.stages().find(|stage| stage.id == id).map(|stage| &stage.stage)
    }

    /// Packets of all flows that a place lost for a reason.
    pub(crate) fn dropped(&self, place: &str, reason: &str) -> u64 {
        let here = self.run.drops.iter().filter(|drop| drop.place == place);
        here.filter(|drop| drop.reason == reason).map(|drop| drop.packets).sum()
    }

    /// Packets that places lost for some reasons, by flow.
    pub(crate) fn lost_by(&self, places: &[StageId], reasons: &[&str]) -> Losses {
        let places: Vec<String> = places.iter().map(StageId::to_string).collect();
        let here =
            |drop: &&DropSummary| places.contains(&drop.place) && reasons.contains(&drop.reason);
        let mut by_flow: Vec<(String, u64)> = Vec::new();
        let mut places = BTreeMap::new();
        for drop in self.run.drops.iter().filter(here) {
            let place = *places.entry(&drop.flow).or_insert(by_flow.len());
            match by_flow.get_mut(place) {
                Some((_, packets)) => *packets += drop.packets,
                None => by_flow.push((drop.flow.clone(), drop.packets)),
            }
        }
        by_flow.sort_by_key(|&(_, packets)| std::cmp::Reverse(packets));
        Losses(by_flow)
    }

    /// Packets lost for a reason in any place.
    pub(crate) fn dropped_anywhere(&self, reason: &str) -> u64 {
        let drops = self.run.drops.iter().filter(|drop| drop.reason == reason);
        drops.map(|drop| drop.packets).sum()
    }

    /// TCP flows, bulk and file.
    pub(crate) fn tcp_flows(&self) -> impl Iterator<Item = (&'a FlowConfig, &'a TcpConfig)> {
        self.scenario.flows.iter().filter_map(|flow| Some((flow, flow.traffic.tcp()?)))
    }

    /// The summary of a flow.
    pub(crate) fn flow(&self, config: &FlowConfig) -> Option<&'a FlowSummary> {
        self.flows.get(&config.id)
    }

    /// The summary of a link or a radio buffer.
    pub(crate) fn link(&self, subject: &Subject) -> Option<&'a LinkSummary> {
        self.queues.iter().find(|(queue, _)| queue == subject).map(|&(_, link)| link)
    }

    /// Links and radio buffers of a direction.
    pub(crate) fn links(&self, direction: Direction) -> impl Iterator<Item = &'a LinkSummary> {
        self.queues_of(direction).map(|(_, link)| link)
    }

    /// Links and radio buffers of a direction, and which they are.
    pub(crate) fn queues_of(
        &self,
        direction: Direction,
    ) -> impl Iterator<Item = (&Subject, &'a LinkSummary)> {
        let of = move |(queue, _): &&(Subject, _)| queue.direction() == Some(direction);
        self.queues.iter().filter(of).map(|(queue, link)| (queue, *link))
    }

    /// The slowest link of a direction.
    pub(crate) fn bottleneck(&self, direction: Direction) -> Option<&'a LinkSummary> {
        self.links(direction).min_by(|one, other| one.capacity_mbps.total_cmp(&other.capacity_mbps))
    }

    /// Segments and datagrams per second that flows of a direction sent; `None` if they sent none.
    pub(crate) fn packets_per_s(&self, direction: Direction) -> Option<f64> {
        let flows = self.run.flows.iter().filter(|flow| flow.direction == direction.name());
        let sent: u64 = flows.map(|flow| flow.segments_sent).sum();
        (sent > 0).then(|| sent as f64 / self.run.duration_s.max(1e-3))
    }

    /// The place nearest to the UE at which a server can be.
    pub(crate) fn edge(&self) -> &'static str {
        if self.scenario.radio.is_some() { "UPF" } else { "access network" }
    }

    /// The shortest RTT of any flow or ping, ms.
    pub(crate) fn base_rtt_ms(&self) -> Option<f64> {
        let flows = self.run.flows.iter().filter_map(|flow| flow.rtt_ms.as_ref());
        let pings = self.run.pings.iter().filter_map(|ping| ping.rtt_ms.as_ref());
        flows.chain(pings).map(|rtt| rtt.min).min_by(f64::total_cmp)
    }

    /// Rate of the slowest link of a direction times the shortest RTT, in bytes.
    pub(crate) fn bdp_bytes(&self, direction: Direction) -> Option<f64> {
        let capacity = self.bottleneck(direction)?.capacity_mbps;
        Some(capacity * 1e6 / 8.0 * self.base_rtt_ms()? / 1e3)
    }

    /// The 95th percentile of the RTT, from whatever measured it, ms.
    pub(crate) fn late_rtt_ms(&self) -> Option<f64> {
        let flows = self.run.flows.iter().filter_map(|flow| flow.rtt_ms.as_ref());
        let pings = self.run.pings.iter().filter_map(|ping| ping.rtt_ms.as_ref());
        flows.chain(pings).map(|rtt| rtt.p95).max_by(f64::total_cmp)
    }
}

/// Whether it is a token bucket with a queue.
pub(crate) const fn is_shaper(link: &LinkConfig) -> bool {
    matches!(link.service, ServiceConfig::Bucket { .. })
}
