//! The input of the causes before anything is tried: the scenario and one run of it.

use crate::text::count;
use airpath_base::Direction;
use airpath_path::{LinkConfig, ServiceConfig};
use airpath_record::{FlowSummary, LinkSummary, RunSummary};
use airpath_scenario::{FlowConfig, NamedStage, Scenario, TcpConfig, Traffic};

/// A scenario and one run of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed<'a> {
    /// The scenario.
    pub(crate) scenario: &'a Scenario,
    /// The run.
    pub(crate) run: &'a RunSummary,
    /// Number of `[[radio.ue]]` tables once the scenario is written out.
    pub(crate) ue_tables: usize,
}

impl<'a> Observed<'a> {
    /// Every stage, with its path for `--set`.
    pub(crate) fn stages(&self) -> Vec<(String, &'a NamedStage)> {
        let all = self.scenario.down.iter().chain(&self.scenario.up);
        all.map(|stage| (path_of(&stage.name), stage)).collect()
    }

    /// Packets of all flows that a place lost for a reason.
    pub(crate) fn dropped(&self, place: &str, reason: &str) -> u64 {
        let here = self.run.drops.iter().filter(|drop| drop.place == place);
        here.filter(|drop| drop.reason == reason).map(|drop| drop.packets).sum()
    }

    /// Packets that a place lost for a reason, with their flow: `99 packets of download`.
    pub(crate) fn lost_by(&self, places: &[&str], reasons: &[&str]) -> String {
        let here =
            self.run.drops.iter().filter(|drop| {
                places.contains(&drop.place.as_str()) && reasons.contains(&drop.reason)
            });
        let mut by_flow: Vec<(&str, u64)> = Vec::new();
        for drop in here {
            match by_flow.iter_mut().find(|(flow, _)| *flow == drop.flow) {
                Some((_, packets)) => *packets += drop.packets,
                None => by_flow.push((&drop.flow, drop.packets)),
            }
        }
        by_flow.sort_by_key(|&(_, packets)| std::cmp::Reverse(packets));
        let words = |&(flow, packets): &(&str, u64)| match packets {
            1 => format!("1 packet of {flow}"),
            _ => format!("{} packets of {flow}", count(packets as f64)),
        };
        let (most, rest) = by_flow.split_at(by_flow.len().min(3));
        let mut said: Vec<String> = most.iter().map(words).collect();
        if !rest.is_empty() {
            let others: u64 = rest.iter().map(|(_, packets)| packets).sum();
            said.push(format!("{} of other flows", count(others as f64)));
        }
        match said.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
            None => "no packet".to_owned(),
        }
    }

    /// Packets lost for a reason in any place.
    pub(crate) fn dropped_anywhere(&self, reason: &str) -> u64 {
        let drops = self.run.drops.iter().filter(|drop| drop.reason == reason);
        drops.map(|drop| drop.packets).sum()
    }

    /// TCP flows, bulk and file.
    pub(crate) fn tcp_flows(&self) -> impl Iterator<Item = (&'a FlowConfig, &'a TcpConfig)> {
        self.scenario.flows.iter().filter_map(|flow| match &flow.traffic {
            Traffic::Bulk { tcp, .. } | Traffic::File { tcp, .. } => Some((flow, tcp)),
            Traffic::Ping { .. } | Traffic::Udp { .. } => None,
        })
    }

    /// The summary of a flow.
    pub(crate) fn flow(&self, config: &FlowConfig) -> Option<&'a FlowSummary> {
        self.run.flows.iter().find(|flow| flow.id == config.id)
    }

    /// The summary of a link or a radio buffer.
    pub(crate) fn link(&self, name: &str) -> Option<&'a LinkSummary> {
        self.run.links.iter().find(|link| link.id == name)
    }

    /// Links and radio buffers of a direction.
    pub(crate) fn links(&self, direction: &'static str) -> impl Iterator<Item = &'a LinkSummary> {
        self.run.links.iter().filter(move |link| direction_of(&link.id) == direction)
    }

    /// The slowest link of a direction.
    pub(crate) fn bottleneck(&self, direction: &'static str) -> Option<&'a LinkSummary> {
        self.links(direction).min_by(|one, other| one.capacity_mbps.total_cmp(&other.capacity_mbps))
    }

    /// Segments and datagrams per second that flows of a direction sent; `None` if they sent none.
    pub(crate) fn packets_per_s(&self, direction: &str) -> Option<f64> {
        let flows = self.run.flows.iter().filter(|flow| flow.direction == direction);
        let sent: u64 = flows.map(|flow| flow.segments_sent).sum();
        (sent > 0).then(|| sent as f64 / self.run.duration_s.max(1e-3))
    }

    /// The shortest RTT of any flow or ping, ms.
    pub(crate) fn base_rtt_ms(&self) -> Option<f64> {
        let flows = self.run.flows.iter().filter_map(|flow| flow.rtt_ms.as_ref());
        let pings = self.run.pings.iter().filter_map(|ping| ping.rtt_ms.as_ref());
        flows.chain(pings).map(|rtt| rtt.min).min_by(f64::total_cmp)
    }

    /// Rate of the slowest link of a direction times the shortest RTT, in bytes.
    pub(crate) fn bdp_bytes(&self, direction: &'static str) -> Option<f64> {
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

/// The path of a name for `--set`: `path.down.1` for `down.1.loss`.
pub(crate) fn path_of(name: &str) -> String {
    let mut parts = name.split('.');
    let (direction, index) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    format!("path.{direction}.{index}")
}

/// The direction, `down` or `up`, of a stage or a radio buffer: `down.0.link`, `radio.ue-0.down`.
pub(crate) fn direction_of(name: &str) -> &str {
    match name.strip_prefix("radio.") {
        Some(rest) => rest.rsplit('.').next().unwrap_or_default(),
        None => name.split('.').next().unwrap_or_default(),
    }
}

/// The direction's name.
pub(crate) const fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Downlink => "down",
        Direction::Uplink => "up",
    }
}

/// Whether it is a token bucket with a queue.
pub(crate) const fn is_shaper(link: &LinkConfig) -> bool {
    matches!(link.service, ServiceConfig::Bucket { .. })
}
