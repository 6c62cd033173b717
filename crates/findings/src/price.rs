//! What a recommendation takes from some flows for what it gives to others: nothing, a price, or too much.

use airpath_base::Direction;
use airpath_scenario::{FlowConfig, Scenario, Traffic};

use crate::by_name::ByName;
use crate::compare::{Effect, LEAST};
use crate::measure::Metric;
use crate::text::listed;

/// A throughput that falls by no more than this does not count as lost.
pub(crate) const HARM: f64 = 0.02;

/// The most that a price may take from a throughput; the gain, by ratio, must be this many times as
/// large.
const MOST: f64 = LEAST;
const WORTH: f64 = 10.0;

/// The price of a recommendation.
#[derive(Debug)]
pub(crate) enum Price<'e> {
    /// No throughput falls.
    Nothing,
    /// Throughputs that fall, where the gain is worth it or they had more than an even share; and
    /// the largest fall of one that had not.
    Trade(Vec<&'e Effect>, f64),
    /// The throughput that falls most without such a justification.
    Harm(&'e Effect),
}

impl<'e> Price<'e> {
    /// The price of effects that gain this much, by ratio.
    pub(crate) fn of(effects: &'e [Effect], scenario: &Scenario, gain: f64) -> Self {
        let lost = |effect: &Effect| -effect.mean();
        let fallen: Vec<&Effect> =
            effects.iter().filter(|effect| falls(effect, scenario)).collect();
        let shares = Shares::new(effects, &scenario.flows);
        let unfair = |effect: &&Effect| !shares.is_fair(effect);
        let paid: Vec<&Effect> = fallen.iter().copied().filter(unfair).collect();
        let dear = |effect: &&Effect| {
            !effect.metric.is_throughput() || lost(effect) > MOST || lost(effect) * WORTH > gain
        };
        let harms = paid.iter().copied().filter(dear);
        match harms.max_by(|one, other| lost(one).total_cmp(&lost(other))) {
            Some(harm) => Self::Harm(harm),
            None if fallen.is_empty() => Self::Nothing,
            None => Self::Trade(fallen, paid.into_iter().map(lost).fold(0.0, f64::max)),
        }
    }

    /// The worse of two prices.
    pub(crate) fn or(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Harm(_), _) | (_, Self::Nothing) => self,
            (Self::Trade(_, one), Self::Trade(_, other)) if one >= other => self,
            _ => other,
        }
    }

    pub(crate) const fn harm(&self) -> Option<&'e Effect> {
        match self {
            Self::Harm(harm) => Some(harm),
            _ => None,
        }
    }

    pub(crate) const fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// How much less a trade is worth than its gain.
    pub(crate) const fn costs(&self) -> f64 {
        match self {
            Self::Trade(_, dearest) => WORTH * dearest.max(HARM),
            _ => 0.0,
        }
    }

    /// What a trade takes, as the continuation of a sentence; empty for anything else.
    pub(crate) fn told(&self) -> String {
        let Self::Trade(fallen, _) = self else { return String::new() };
        let taken: Vec<String> = fallen.iter().map(|effect| taken(effect)).collect();
        format!(" It is a trade-off: {}.", listed(&taken))
    }
}

/// What a harm takes. If seeds differ much, the mean need not show what most of them lose.
pub(crate) fn taken(harmed: &Effect) -> String {
    match harmed.metric.improvement(harmed.before, harmed.after) < 0.0 {
        true => {
            let [before, after] = harmed.figures();
            format!("{} goes from {before} to {after}", harmed.name())
        }
        false => format!("{} loses some throughput in most runs", harmed.subject),
    }
}

/// Whether a throughput falls, or flows share less evenly.
pub(crate) fn harms(effects: &[Effect], scenario: &Scenario) -> bool {
    effects.iter().any(|effect| falls(effect, scenario))
}

/// Whether a throughput falls. One or two answered requests more or less are chance: the difference
/// must be larger, and present with every seed.
fn falls(effect: &Effect, scenario: &Scenario) -> bool {
    match effect.metric {
        Metric::Fairness => effect.mean() < -LEAST,
        Metric::Answered => {
            let missing = || (effect.before - effect.after) * requests(&effect.subject, scenario);
            effect.mean() < -HARM
                && effect.improvements.iter().all(|&one| one < 0.0)
                && missing() > 2.5
        }
        metric => metric.is_throughput() && effect.mean() < -HARM,
    }
}

/// Number of requests that a ping sends.
fn requests(id: &str, scenario: &Scenario) -> f64 {
    let Some(flow) = scenario.flows.iter().find(|flow| flow.id == id) else { return 0.0 };
    let Traffic::Ping { interval, count, .. } = flow.traffic else { return 0.0 };
    let lasts = scenario.run.duration.as_secs_f64() - flow.start.as_secs_f64();
    let most = count.map_or(f64::INFINITY, |count| count as f64);
    (lasts.max(0.0) / interval.as_secs_f64().max(1e-3)).min(most)
}

/// Who gives and who takes among the flows that share a direction.
pub(crate) struct Shares<'e> {
    effects: &'e [Effect],
    flows: ByName<'e, FlowConfig>,
    directions: [Transfer; 2],
}

/// What the flows of one direction give and take.
#[derive(Clone, Copy)]
struct Transfer {
    /// The highest rate afterwards of a flow that gains, in Mb/s.
    most: f64,
    /// The sum of all changes, by ratio.
    gained: f64,
    /// Only bulk flows gain, and the sum of the direction falls.
    wastes: bool,
}

impl<'e> Shares<'e> {
    pub(crate) fn new(effects: &'e [Effect], flows: &'e [FlowConfig]) -> Self {
        let flows = ByName::flows(flows);
        let transfer = |direction| {
            let beside: Vec<(&Effect, Option<f64>)> = effects
                .iter()
                .filter_map(|one| Some((one, flows.get(&one.subject)?)))
                .filter(|(_, flow)| flow.direction == direction)
                .filter_map(|(one, flow)| Some((one, rate(one, flow)?)))
                .map(|(one, rate)| (one, (one.mean() > HARM).then_some(rate)))
                .collect();
            let all_bulk = beside.iter().all(|(one, gains)| {
                gains.is_none() || matches!(one.metric, Metric::Goodput | Metric::Shared)
            });
            let total =
                |one: &&Effect| one.metric == Metric::Total && one.subject == direction.name();
            let less = effects.iter().find(total).is_some_and(|total| total.mean() < -HARM);
            Transfer {
                most: beside.iter().filter_map(|(_, gains)| *gains).fold(0.0, f64::max),
                gained: beside.iter().map(|(one, _)| one.mean()).sum(),
                wastes: all_bulk && less,
            }
        };
        Self { effects, directions: Direction::BOTH.map(transfer), flows }
    }

    /// The loss of a flow is fair if it keeps its share; the loss of all bulk flows of a direction
    /// together is fair if that holds for each that loses.
    pub(crate) fn is_fair(&self, effect: &Effect) -> bool {
        if effect.metric != Metric::Total {
            return self.keeps_its_share(effect);
        }
        let falls = |one: &&Effect| {
            let own = self.flows.get(&one.subject).map(|flow| flow.direction.name());
            one.metric == Metric::Goodput && one.mean() < -HARM && own == Some(&effect.subject)
        };
        let mut fallen = self.effects.iter().filter(falls).peekable();
        fallen.peek().is_some() && fallen.all(|one| self.keeps_its_share(one))
    }

    /// Whether it only gives away what it had more than others (the principle of transfers of Pigou
    /// and Dalton): no flow of its direction that gains has more than this one afterwards; their
    /// gain exceeds the loss, by ratio; and for bulk flows the sum does not fall.
    fn keeps_its_share(&self, effect: &Effect) -> bool {
        let Some(own) = self.flows.get(&effect.subject) else { return false };
        let Some(rate) = rate(effect, own) else { return false };
        let Transfer { most, gained, wastes } = self.directions[own.direction];
        most > 0.0 && rate >= (1.0 - LEAST) * most && gained > 0.0 && !wastes
    }
}

/// The rate of a TCP or QUIC flow afterwards, in Mb/s.
fn rate(effect: &Effect, flow: &FlowConfig) -> Option<f64> {
    match (effect.metric, &flow.traffic) {
        (
            Metric::Goodput | Metric::Shared,
            Traffic::Bulk { .. } | Traffic::Quic { size: None, .. },
        ) => Some(effect.after),
        (
            Metric::Completion,
            Traffic::File { size, .. } | Traffic::Quic { size: Some(size), .. },
        ) => Some(*size as f64 * 8e-6 / effect.after.max(1e-3)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use airpath_scenario::{Source, parse};

    use super::*;
    use crate::compare::effects;
    use crate::measure::Measure;

    /// Two bulk flows and a file of 10 Mbit, all in the downlink.
    fn scenario() -> Scenario {
        let text = "[run]\nduration_s = 2\n[[path.down]]\nstage = \"link\"\nrate_mbps = 10\n\
                    queue_packets = 50\n[[flow]]\nid = \"one\"\nkind = \"bulk\"\n[[flow]]\nid = \"other\"\n\
                    kind = \"bulk\"\nstart_s = 1\n[[flow]]\nid = \"file\"\nkind = \"file\"\nsize_bytes = 1250000\n";
        let source = Source { name: "here", text, directory: None };
        parse(&source, &[]).expect("a scenario").scenario
    }

    /// Goodputs of two bulk flows in Mb/s, and the time at which the file is complete, s.
    fn run([one, other, file]: [f64; 3]) -> Vec<Vec<Measure>> {
        let of = Measure::of;
        vec![vec![
            of("one", Metric::Goodput, one),
            of("other", Metric::Goodput, other),
            of("file", Metric::Completion, file),
            of("down", Metric::Total, one + other),
        ]]
    }

    /// What it takes, and from whom first.
    fn taken_by(before: [f64; 3], after: [f64; 3], gain: f64) -> (&'static str, Option<String>) {
        let effects = effects(&run(before), &run(after));
        match Price::of(&effects, &scenario(), gain) {
            Price::Nothing => ("nothing", None),
            Price::Trade(fallen, _) => ("trade", Some(fallen[0].subject.clone())),
            Price::Harm(harm) => ("harm", Some(harm.subject.clone())),
        }
    }

    #[test]
    fn a_small_price_is_paid_for_ten_times_as_much() {
        let before = [5.0, 5.0, 2.0];
        assert_eq!(taken_by(before, [4.95, 5.0, 2.0], 0.2), ("nothing", None));
        let one = Some("one".to_owned());
        assert_eq!(taken_by(before, [4.75, 5.0, 2.0], 0.6), ("trade", one.clone()));
        assert_eq!(taken_by(before, [4.75, 5.0, 2.0], 0.4), ("harm", one.clone()));
        // More than a tenth for no gain.
        assert_eq!(taken_by(before, [4.4, 5.0, 2.0], 5.0), ("harm", one));
    }

    #[test]
    fn what_was_more_than_others_have_may_go_to_them() {
        let one = Some("one".to_owned());
        assert_eq!(taken_by([9.0, 1.0, 2.0], [5.0, 5.0, 2.0], 0.0), ("trade", one.clone()));
        // The other flow has more than this one afterwards.
        assert_eq!(taken_by([9.0, 1.0, 2.0], [4.0, 6.0, 2.0], 0.0), ("harm", one.clone()));
        // Their sum is smaller.
        assert_eq!(
            taken_by([9.0, 1.0, 2.0], [4.5, 4.5, 2.0], 0.0),
            ("harm", Some("one".to_owned()))
        );
        // A file of 10 Mbit arrives at 0.1 Mb/s, then at 6.7, or at 4.
        assert_eq!(taken_by([9.0, 4.0, 100.0], [4.5, 4.0, 1.5], 0.0).0, "harm");
        let price = taken_by([9.0, 4.0, 100.0], [4.5, 4.0, 2.5], 0.0);
        assert_eq!(price, ("trade", Some("one".to_owned())));
    }
}
