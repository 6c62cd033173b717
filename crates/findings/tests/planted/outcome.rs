//! The results of a run, and how an edit changed them: computed here, independently of the code
//! under test.

use std::collections::BTreeMap;

use airpath_record::RunSummary;

use crate::draft::Draft;

/// Seeds of the run that is explained: the problem must show with these.
pub(crate) const SEEDS: [u64; 3] = [1, 2, 3];

pub(crate) fn simulated(draft: &Draft, seed: u64) -> RunSummary {
    let parsed = draft.parsed();
    airpath_sim::simulate(&parsed.scenario, seed, &mut |_| true).expect("not stopped").summary
}

/// A figure of a run: its name, its value, and whether more is better.
struct Figure {
    name: String,
    value: f64,
    more_is_better: bool,
    /// Delay in a flow that fills its own queue counts half.
    weight: f64,
}

fn figures(draft: &Draft, run: &RunSummary) -> Vec<Figure> {
    let mut all = Vec::new();
    let mut add = |name: String, value: f64, more_is_better, weight| {
        all.push(Figure { name, value, more_is_better, weight });
    };
    for flow in &run.flows {
        match flow.kind {
            "file" => {
                // A transfer that does not complete counts as at least as late as the run is long.
                let late = flow.completed_s.unwrap_or(2.0 * draft.seconds);
                add(format!("{} completed", flow.id), late.max(1e-3), false, 1.0);
            }
            _ => {
                let rate = flow.goodput_mbps.unwrap_or(0.0).max(1e-3);
                add(format!("{} goodput", flow.id), rate, true, 1.0);
            }
        }
        if let Some(rtt) = &flow.rtt_ms {
            add(format!("{} rtt", flow.id), rtt.p95, false, 0.5);
        }
    }
    for ping in &run.pings {
        let answered = 1.0 - ping.lost as f64 / ping.sent.max(1) as f64;
        add(format!("{} answered", ping.id), answered.max(1e-3), true, 1.0);
        if let Some(rtt) = &ping.rtt_ms {
            add(format!("{} rtt", ping.id), rtt.p95, false, 1.0);
            add(format!("{} mean", ping.id), rtt.mean, false, 1.0);
        }
    }
    // For flows with different congestion control, the one that gets least. How equal flows share
    // is a matter of chance, which three seeds do not show where little else is drawn.
    let bulk = || run.flows.iter().filter(|flow| flow.kind == "bulk");
    if bulk().count() > 1 {
        let controls = || draft.flows.iter().filter_map(|flow| flow.get("congestion"));
        if controls().any(|one| Some(one) != controls().next()) {
            let rates = bulk().map(|flow| flow.goodput_mbps.unwrap_or(0.0));
            add("least".to_owned(), rates.fold(f64::MAX, f64::min).max(1e-3), true, 1.0);
        }
        let sum: f64 = bulk().map(|flow| flow.goodput_mbps.unwrap_or(0.0)).sum();
        add("sum".to_owned(), sum.max(1e-3), true, 1.0);
    }
    all
}

/// How an edit changed one figure: by seed, the logarithm of the ratio, positive where it is
/// better.
struct Change {
    by_seed: Vec<f64>,
    weight: f64,
    is_rate: bool,
}

impl Change {
    fn mean(&self) -> f64 {
        self.by_seed.iter().sum::<f64>() / self.by_seed.len() as f64
    }

    /// Whether the change shows on every seed.
    fn is_steady(&self) -> bool {
        self.by_seed.iter().all(|&one| one >= 0.4 * self.mean())
    }
}

/// How an edit changed each figure.
fn changes(ill: &Draft, well: &Draft, seeds: &[u64]) -> BTreeMap<String, Change> {
    let mut changes: BTreeMap<String, Change> = BTreeMap::new();
    for &seed in seeds {
        let before = figures(ill, &simulated(ill, seed));
        let after = figures(well, &simulated(well, seed));
        for one in &before {
            let Some(other) = after.iter().find(|other| other.name == one.name) else { continue };
            let ratio = (other.value / one.value).ln();
            let (weight, is_rate) = (one.weight, one.more_is_better);
            let entry = changes.entry(one.name.clone());
            let change = entry.or_insert(Change { by_seed: Vec::new(), weight, is_rate });
            change.by_seed.push(if is_rate { ratio } else { -ratio });
        }
    }
    changes
}

/// The largest gain of a figure, even if on one seed only, and whatever the others lose by it.
pub(crate) fn largest_gain(ill: &Draft, well: &Draft, seeds: &[u64]) -> f64 {
    let changes = changes(ill, well, seeds);
    changes.values().map(|change| change.weight * change.mean()).fold(0.0, f64::max)
}

/// How much better `well` is than `ill`: the largest mean logarithm of a figure's ratio over these
/// seeds, among the figures that are better on each, less what any rate loses. `rates` ignores
/// delays.
pub(crate) fn worth(ill: &Draft, well: &Draft, seeds: &[u64], rates: bool) -> f64 {
    let mut changes = changes(ill, well, seeds);
    // Where flows share, one flow gains what another one loses.
    let shared = changes.contains_key("sum");
    changes.retain(|name, _| !(shared && name.ends_with("goodput")));
    let rate = changes.values().filter(|change| change.is_rate);
    let lost = rate.map(Change::mean).fold(0.0, f64::min);
    let counts = changes.values().filter(|change| change.is_steady() && (change.is_rate || !rates));
    counts.map(|change| change.weight * change.mean() + lost).fold(0.0, f64::max)
}
