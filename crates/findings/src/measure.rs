//! What a run came to, figure by figure, so that two runs can be compared.

use airpath_record::RunSummary;
use airpath_scenario::{Scenario, Traffic};

/// Something that is measured, with its unit. The names are those of `airpath run --json`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Metric {
    /// In-order payload of a bulk or UDP flow, Mb/s.
    Goodput,
    /// Time until a file is complete, s; of one that is not, the time at the rate that it had.
    Completion,
    /// 95th percentile of a TCP flow's RTT, ms.
    RttUnderLoad,
    /// 95th percentile of a ping's RTT, ms.
    PingRtt,
    /// Mean of a ping's RTT, ms.
    MeanPingRtt,
    /// Share of the pings that were answered.
    Answered,
    /// 95th percentile of the one-way delay of UDP, ms.
    Delay,
    /// Jain's index of the goodputs of one direction's TCP flows.
    Fairness,
}

impl Metric {
    /// Its name in `--json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput_mbps",
            Self::Completion => "completed_s",
            Self::RttUnderLoad | Self::PingRtt => "rtt_ms.p95",
            Self::MeanPingRtt => "rtt_ms.mean",
            Self::Answered => "answered_share",
            Self::Delay => "delay_ms.p95",
            Self::Fairness => "jain_index",
        }
    }

    /// More of it is better.
    pub const fn more_is_better(self) -> bool {
        matches!(self, Self::Goodput | Self::Answered | Self::Fairness)
    }

    /// It says how much gets through, not how late.
    pub const fn is_throughput(self) -> bool {
        matches!(self, Self::Goodput | Self::Completion | Self::Answered)
    }

    /// How much better `after` is than `before`: the logarithm of a ratio, at most that of 1,000.
    pub fn improvement(self, before: f64, after: f64) -> f64 {
        let (before, after) = (before.max(self.floor()), after.max(self.floor()));
        let ratio = if self.more_is_better() { after / before } else { before / after };
        ratio.clamp(1e-3, 1e3).ln()
    }

    /// What an improvement counts beside others. A bulk flow that waits in its own queue harms
    /// nobody but itself; what others wait is in their pings, files and datagrams.
    pub const fn weight(self) -> f64 {
        match self {
            Self::RttUnderLoad => 0.5,
            _ => 1.0,
        }
    }

    /// Smaller values are taken for this one: nothing at all has no logarithm.
    const fn floor(self) -> f64 {
        match self {
            Self::Goodput | Self::Completion | Self::Answered | Self::Fairness => 1e-3,
            Self::RttUnderLoad | Self::PingRtt | Self::MeanPingRtt | Self::Delay => 1e-2,
        }
    }
}

/// One figure of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Measure {
    /// Id of the flow, or a direction (fairness).
    pub subject: String,
    /// What.
    pub metric: Metric,
    /// In the metric's unit.
    pub value: f64,
}

/// All figures of a run, flow by flow in the scenario's order. A flow that never started has none.
pub fn measures(scenario: &Scenario, summary: &RunSummary) -> Vec<Measure> {
    let mut all = Vec::new();
    for config in &scenario.flows {
        let mut add = |metric, value| {
            all.push(Measure { subject: config.id.clone(), metric, value });
        };
        if let Some(ping) = summary.pings.iter().find(|ping| ping.id == config.id) {
            let answered = 1.0 - ping.lost as f64 / ping.sent.max(1) as f64;
            add(Metric::Answered, answered);
            if let Some(rtt) = &ping.rtt_ms {
                add(Metric::PingRtt, rtt.p95);
                add(Metric::MeanPingRtt, rtt.mean);
            }
        }
        let Some(flow) = summary.flows.iter().find(|flow| flow.id == config.id) else { continue };
        match config.traffic {
            Traffic::File { size, .. } => {
                let active_s = summary.simulated_s - config.start.as_secs_f64();
                let share = flow.bytes_delivered as f64 / size as f64;
                let estimate = active_s.max(0.0) / share.max(1e-3);
                add(Metric::Completion, flow.completed_s.unwrap_or(estimate));
            }
            _ => add(Metric::Goodput, flow.goodput_mbps.unwrap_or(0.0)),
        }
        if let Some(rtt) = &flow.rtt_ms {
            add(Metric::RttUnderLoad, rtt.p95);
        }
        if let Some(delay) = &flow.delay_ms {
            add(Metric::Delay, delay.p95);
        }
    }
    for fairness in &summary.fairness {
        let subject = fairness.id.to_owned();
        all.push(Measure { subject, metric: Metric::Fairness, value: fairness.jain_index });
    }
    all
}
