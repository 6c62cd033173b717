//! The results of a run, figure by figure, so that two runs can be compared.

use airpath_base::Direction;

use crate::by_name::ByName;
use crate::text::{mbps, ms, percent, seconds};
use airpath_record::{FairnessSummary, FlowSummary, RunSummary};
use airpath_scenario::{FlowConfig, Scenario, Traffic};

/// A smaller relative change does not count.
pub const LEAST: f64 = 0.1;

/// Relative change from which a bulk flow's own delay counts: 15 %.
const NOTICED: f64 = 0.14;

/// A measured quantity with its unit. The names are those of `airpath run --json`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Metric {
    /// In-order payload of a bulk or UDP flow, Mb/s.
    Goodput,
    /// In-order payload of one of several flows that differ in nothing, Mb/s: which of them gets
    /// how much is chance, and their sum counts.
    Shared,
    /// In-order payload of all bulk flows of one direction, Mb/s.
    Total,
    /// Time until a file is complete, s; for an incomplete one an estimate, the time at the rate
    /// that it had.
    Completion,
    /// 95th percentile of a TCP flow's RTT, ms.
    RttUnderLoad,
    /// 95th percentile of a ping's RTT, ms.
    PingRtt,
    /// Median of a ping's RTT, ms.
    MedianPingRtt,
    /// Mean of a ping's RTT, ms.
    MeanPingRtt,
    /// Fraction of the pings that were answered.
    Answered,
    /// 95th percentile of the one-way delay of UDP, ms.
    Delay,
    /// Jain's index of the goodputs of one direction's bulk flows.
    Fairness,
    /// Fraction of a TCP flow's segments that were retransmitted. It can be a cost, but not a gain:
    /// what it is worth shows in what gets through.
    SentAgain,
}

/// The schema of [`Metric::name`].
#[cfg(feature = "schema")]
impl schemars::JsonSchema for Metric {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Metric".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A measured quantity with its unit.",
            "type": "string",
            "enum": [
                "goodput_mbps", "completed_s", "rtt_ms.p95", "rtt_ms.p50", "rtt_ms.mean",
                "answered_share", "delay_ms.p95", "jain_index", "retransmitted_share",
            ],
        })
    }
}

impl Metric {
    /// The metric's name in `--json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Goodput | Self::Shared | Self::Total => "goodput_mbps",
            Self::Completion => "completed_s",
            Self::RttUnderLoad | Self::PingRtt => "rtt_ms.p95",
            Self::MedianPingRtt => "rtt_ms.p50",
            Self::MeanPingRtt => "rtt_ms.mean",
            Self::Answered => "answered_share",
            Self::Delay => "delay_ms.p95",
            Self::Fairness => "jain_index",
            Self::SentAgain => "retransmitted_share",
        }
    }

    /// The metric with this [`name`](Self::name); the most general one if several share it.
    pub fn named(name: &str) -> Option<Self> {
        let all = [
            Self::Goodput,
            Self::Completion,
            Self::PingRtt,
            Self::MedianPingRtt,
            Self::MeanPingRtt,
            Self::Answered,
            Self::Delay,
            Self::Fairness,
            Self::SentAgain,
        ];
        all.into_iter().find(|metric| metric.name() == name)
    }

    /// The metric's name, as it stands in a sentence.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Goodput | Self::Shared => "goodput",
            Self::Total => "goodput of all bulk flows",
            Self::Completion => "completion time",
            Self::RttUnderLoad | Self::PingRtt => "RTT (p95)",
            Self::MedianPingRtt => "median RTT",
            Self::MeanPingRtt => "mean RTT",
            Self::Answered => "reply rate",
            Self::Delay => "one-way delay (p95)",
            Self::Fairness => "Jain's index",
            Self::SentAgain => "share of retransmitted segments",
        }
    }

    /// The metric with what it is of, a flow or a direction, as it stands in a sentence.
    pub(crate) fn of(self, subject: &str) -> String {
        match self {
            Self::Fairness => format!("Jain's index of the {subject}link flows"),
            Self::Total => format!("the goodput of all {subject}link bulk flows"),
            _ => format!("the {} of {subject}", self.words()),
        }
    }

    /// A value with its unit.
    pub fn figure(self, value: f64) -> String {
        match self {
            Self::Goodput | Self::Shared | Self::Total => mbps(value),
            Self::Completion => seconds(value),
            Self::RttUnderLoad
            | Self::PingRtt
            | Self::MedianPingRtt
            | Self::MeanPingRtt
            | Self::Delay => ms(value),
            Self::Answered | Self::SentAgain => percent(value),
            Self::Fairness => format!("{value:.2}"),
        }
    }

    /// Whether an increase is a gain: true for rates, false for times.
    pub const fn more_is_better(self) -> bool {
        matches!(self, Self::Goodput | Self::Shared | Self::Total | Self::Answered | Self::Fairness)
    }

    /// An interval of the figure, cut to possible values: fractions and Jain's index are at most 1.
    pub const fn within(self, [low, high]: [f64; 2]) -> [f64; 2] {
        match self {
            Self::Answered | Self::Fairness | Self::SentAgain => {
                [low.clamp(0.0, 1.0), high.clamp(0.0, 1.0)]
            }
            _ => [low, high],
        }
    }

    /// Whether it measures how much gets through, not how late.
    pub const fn is_throughput(self) -> bool {
        matches!(self, Self::Goodput | Self::Total | Self::Completion | Self::Answered)
    }

    /// How much better `after` is than `before`: the logarithm of a ratio, at most that of 1,000.
    pub fn improvement(self, before: f64, after: f64) -> f64 {
        let (before, after) = (before.max(self.floor()), after.max(self.floor()));
        let ratio = if self.more_is_better() { after / before } else { before / after };
        libm::log(ratio.clamp(1e-3, 1e3))
    }

    /// The weight of an improvement among others. A bulk flow that waits in its own queue harms
    /// only itself, which counts half; what others wait shows in their pings, files and datagrams.
    /// From `NOTICED` on it is no less than what counts at all.
    pub fn worth(self, improvement: f64) -> f64 {
        match self {
            Self::RttUnderLoad if improvement < NOTICED => improvement / 2.0,
            Self::RttUnderLoad => (improvement / 2.0).max(1.1 * LEAST),
            Self::Shared | Self::SentAgain => 0.0,
            _ => improvement,
        }
    }

    /// Smaller values are replaced by this one: zero has no logarithm.
    const fn floor(self) -> f64 {
        match self {
            Self::Goodput
            | Self::Shared
            | Self::Total
            | Self::Completion
            | Self::Answered
            | Self::Fairness => 1e-3,
            Self::RttUnderLoad
            | Self::PingRtt
            | Self::MedianPingRtt
            | Self::MeanPingRtt
            | Self::Delay => 1e-2,
            // Nobody would mind one in a hundred.
            Self::SentAgain => 1e-2,
        }
    }
}

/// One figure of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Measure {
    /// Id of the flow, or a direction (fairness).
    pub subject: String,
    /// The quantity measured.
    pub metric: Metric,
    /// The value in the metric's unit.
    pub value: f64,
    /// For a completion time: the transfer did not complete, and `value` is an estimate. Runs are
    /// compared by it, but it is not a result.
    pub incomplete: Option<Incomplete>,
}

/// A transfer that did not complete within its run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Incomplete {
    /// Number of runs in which it did not complete.
    pub runs: usize,
    /// Fraction of it that arrived; the mean over all runs.
    pub delivered: f64,
    /// Time available to it, s.
    pub active_s: f64,
    /// Length of the run, s.
    pub run_s: f64,
}

impl Measure {
    pub(crate) fn of(subject: &str, metric: Metric, value: f64) -> Self {
        Self { subject: subject.to_owned(), metric, value, incomplete: None }
    }
}

impl Incomplete {
    /// Combines all runs, given each one's; `None` if all completed.
    pub(crate) fn of_all(each: &[Option<Self>]) -> Option<Self> {
        let first = each.iter().flatten().next()?;
        let delivered = each.iter().map(|one| one.map_or(1.0, |one| one.delivered)).sum::<f64>();
        let runs = each.iter().flatten().count();
        Some(Self { runs, delivered: delivered / each.len() as f64, ..*first })
    }
}

/// All figures of a run, flow by flow in the scenario's order.
pub fn measures(scenario: &Scenario, summary: &RunSummary) -> Vec<Measure> {
    let mut all = Vec::new();
    let pings = ByName::new(&summary.pings, |ping| &ping.id);
    let flows = ByName::new(&summary.flows, |flow| &flow.id);
    let sharing = Direction::BOTH.map(|direction| shares(scenario, direction));
    for config in &scenario.flows {
        let of = |metric, value| Measure::of(&config.id, metric, value);
        if let Some(ping) = pings.get(&config.id) {
            // The last request may be neither answered nor lost when the run ends.
            let answered = match ping.rtt_ms {
                Some(_) => 1.0 - ping.lost as f64 / ping.sent.max(1) as f64,
                None => 0.0,
            };
            all.push(of(Metric::Answered, answered));
            if let Some(rtt) = &ping.rtt_ms {
                all.push(of(Metric::PingRtt, rtt.p95));
                all.push(of(Metric::MedianPingRtt, rtt.p50));
                all.push(of(Metric::MeanPingRtt, rtt.mean));
            }
        }
        let flow = flows.get(&config.id);
        match config.traffic {
            Traffic::File { size, .. } | Traffic::Quic { size: Some(size), .. } => {
                let run_s = summary.duration_s;
                let active_s = (run_s - config.start.as_secs_f64()).max(0.0);
                let delivered = flow.map_or(0.0, |flow| flow.bytes_delivered as f64 / size as f64);
                match flow.and_then(|flow| flow.completed_s) {
                    Some(completed) => all.push(of(Metric::Completion, completed)),
                    None => {
                        let incomplete = Incomplete { runs: 1, delivered, active_s, run_s };
                        let estimate = active_s / delivered.max(1e-3);
                        let measure = of(Metric::Completion, estimate);
                        all.push(Measure { incomplete: Some(incomplete), ..measure });
                    }
                }
            }
            Traffic::Ping { .. } => {}
            // A flow that never connected has carried nothing.
            Traffic::Bulk { .. } | Traffic::Udp { .. } | Traffic::Quic { size: None, .. } => {
                let shares = is_bulk(&config.traffic) && sharing[config.direction];
                let metric = if shares { Metric::Shared } else { Metric::Goodput };
                all.push(of(metric, flow.and_then(|flow| flow.goodput_mbps).unwrap_or(0.0)));
            }
        }
        let Some(flow) = flow else { continue };
        if let Some(rtt) = &flow.rtt_ms {
            all.push(of(Metric::RttUnderLoad, rtt.p95));
        }
        if let Some(delay) = &flow.delay_ms {
            all.push(of(Metric::Delay, delay.p95));
        }
    }
    totals(scenario, &flows, &mut all);
    evenness(scenario, &flows, &mut all);
    all
}

/// All figures of a run, including those that can only be costs, which only
/// [`crate::compare::losses`] uses.
pub fn with_costs(scenario: &Scenario, summary: &RunSummary) -> Vec<Measure> {
    let mut all = measures(scenario, summary);
    for flow in &summary.flows {
        if let Some(again) = flow.retransmitted_segments {
            let value = again as f64 / flow.segments_sent.max(1) as f64;
            all.push(Measure::of(&flow.id, Metric::SentAgain, value));
        }
    }
    all
}

/// Whether it sends as much as it can for a time.
const fn is_bulk(traffic: &Traffic) -> bool {
    matches!(traffic, Traffic::Bulk { .. } | Traffic::Quic { size: None, .. })
}

/// Whether a direction has several bulk flows, which differ only in their names.
fn shares(scenario: &Scenario, direction: Direction) -> bool {
    let is_own = |flow: &&FlowConfig| is_bulk(&flow.traffic) && flow.direction == direction;
    let mut flows = scenario.flows.iter().filter(is_own);
    let Some(first) = flows.next() else { return false };
    let alike = |other: &FlowConfig| {
        other.traffic == first.traffic && other.start == first.start && other.ue == first.ue
    };
    let mut beside = flows.peekable();
    beside.peek().is_some() && beside.all(alike)
}

/// Goodputs of a direction's bulk flows in Mb/s; `None` if a flow never connected.
fn bulk_goodputs<'a>(
    scenario: &'a Scenario,
    summaries: &'a ByName<'a, FlowSummary>,
    direction: Direction,
) -> impl Iterator<Item = Option<f64>> + 'a {
    let flows = scenario
        .flows
        .iter()
        .filter(move |config| is_bulk(&config.traffic) && config.direction == direction);
    flows.map(|config| summaries.get(&config.id).and_then(|flow| flow.goodput_mbps))
}

/// How evenly bulk flows share their direction. Files are left out: the sooner a file is complete,
/// the less even it would seem.
fn evenness(scenario: &Scenario, flows: &ByName<'_, FlowSummary>, all: &mut Vec<Measure>) {
    for direction in Direction::BOTH {
        let goodputs: Vec<f64> = bulk_goodputs(scenario, flows, direction).flatten().collect();
        if let Some(fairness) = FairnessSummary::of(direction.name(), &goodputs) {
            all.push(Measure::of(fairness.id, Metric::Fairness, fairness.jain_index));
        }
    }
}

/// The sums of flows that share: how they share is much of the noise. If any direction has more
/// than one flow, all directions have a sum.
fn totals(scenario: &Scenario, flows: &ByName<'_, FlowSummary>, all: &mut Vec<Measure>) {
    let of = |direction| bulk_goodputs(scenario, flows, direction);
    if Direction::BOTH.iter().all(|&direction| of(direction).count() < 2) {
        return;
    }
    for direction in Direction::BOTH {
        if of(direction).next().is_some() {
            let value = of(direction).map(|goodput| goodput.unwrap_or(0.0)).sum();
            all.push(Measure::of(direction.name(), Metric::Total, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use airpath_scenario::{Source, parse};

    use super::*;

    #[test]
    fn a_file_is_no_part_of_how_evenly_flows_share() {
        let text = |kinds: [&str; 3]| {
            let flow = |kind: &str| format!("[[flow]]\nkind = {kind}\n");
            let link = "[[path.down]]\nstage = \"link\"\nrate_mbps = 10\nqueue_packets = 50\n";
            format!("[run]\nduration_s = 2\n{link}{}", kinds.map(flow).concat())
        };
        let index = |kinds: [&str; 3]| {
            let text = text(kinds);
            let source = Source { name: "here", text: &text, directory: None };
            let scenario = parse(&source, &[]).expect("a scenario").scenario;
            let outcome = airpath_sim::simulate(&scenario, 1, &mut |_| true).expect("not stopped");
            let all = measures(&scenario, &outcome.summary);
            all.iter().find(|one| one.metric == Metric::Fairness).map(|one| one.value)
        };
        let (bulk, file) = ("\"bulk\"", "\"file\"\nsize_bytes = 20000");
        assert_eq!(index([bulk, file, file]), None);
        let two = index([bulk, bulk, file]).expect("two bulk flows");
        assert!(two > 0.7, "{two}");
    }
}
