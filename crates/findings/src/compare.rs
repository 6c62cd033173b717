//! Pairs of runs that differ in one thing: what changed, and is it more than noise?

use std::collections::{BTreeMap, BTreeSet};

pub use crate::measure::LEAST;
use crate::measure::{Incomplete, Measure, Metric};
use crate::text::{percent, seconds};

/// How much more must be gained for something to count in addition to, or instead of, the best so
/// far.
pub(crate) const MORE: f64 = 0.05;

/// From this ratio on, a rise in retransmitted segments is a cost.
const AGAIN: f64 = 1.5;

/// The change of one figure over paired seeds.
#[derive(Clone, PartialEq, Debug)]
pub struct Effect {
    /// Id of the flow, or a direction.
    pub subject: String,
    /// The figure.
    pub metric: Metric,
    /// Mean over the seeds without the change.
    pub before: f64,
    /// Mean over the seeds with the change.
    pub after: f64,
    /// 95 % confidence interval of `after`: what other seeds may give.
    pub ci95: [f64; 2],
    /// Improvement per seed: the logarithm of the ratio, positive if it is better.
    pub improvements: Vec<f64>,
    /// For a completion time: how the transfer failed to complete without the change, and with it.
    /// `before` and `after` are then estimates.
    pub incomplete: [Option<Incomplete>; 2],
}

impl Effect {
    /// Mean improvement.
    pub fn mean(&self) -> f64 {
        mean(&self.improvements)
    }

    /// The change in words.
    pub(crate) fn told(&self) -> String {
        let [before, after] = self.figures();
        format!("{} from {before} to {after}", self.name())
    }

    /// Whether the value with the change is the larger one.
    pub(crate) fn rises(&self) -> bool {
        let more_is_better = match self.incomplete {
            [Some(_), Some(_)] => true,
            _ => self.metric.more_is_better(),
        };
        (self.mean() > 0.0) == more_is_better
    }

    /// The figure with what it is of, as it stands in a sentence before its values.
    pub(crate) fn name(&self) -> String {
        match self.incomplete {
            [Some(_), Some(_)] => {
                format!("the part of {} that arrived within the run", self.subject)
            }
            _ => self.metric.of(&self.subject),
        }
    }

    /// The values without the change, and with it.
    pub(crate) fn figures(&self) -> [String; 2] {
        if let [Some(before), Some(after)] = self.incomplete {
            return [before, after].map(|one| percent(one.delivered));
        }
        let seeds = self.improvements.len();
        let figure = |value: f64, incomplete: Option<Incomplete>| match incomplete {
            None => self.metric.figure(value),
            Some(Incomplete { runs, active_s, run_s, .. }) => {
                let often = match runs {
                    runs if runs < seeds => format!(" in {runs} of {seeds} seeds"),
                    _ => String::new(),
                };
                format!(
                    "more than {}{often} (it did not complete within the run of {})",
                    seconds(active_s),
                    seconds(run_s)
                )
            }
        };
        [figure(self.before, self.incomplete[0]), figure(self.after, self.incomplete[1])]
    }

    /// Whether the mean improvement is above 0 with a confidence of 90 % (Student's t, one-sided);
    /// unknown for a single seed.
    pub fn beyond_noise(&self) -> bool {
        self.mean() > self.noise()
    }

    fn noise(&self) -> f64 {
        /// One-sided 90 % quantiles for 1, 2, … degrees of freedom.
        const T: [f64; 9] = [3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383];
        half(&self.improvements, &T, 1.2816)
    }

    /// Whether it is worse by more than `least`, or certainly by half of that and by `least` within
    /// its interval.
    fn is_loss(&self, least: f64) -> bool {
        let again = self.metric == Metric::SentAgain;
        let least = if again { libm::log(AGAIN) } else { least };
        let lost = -self.mean();
        let most = lost + half_width(&self.improvements);
        let is_sure = lost > self.noise() && lost > least / 2.0 && most > least;
        is_sure || lost > least && !again
    }

    /// Fraction of the seeds in which the improvement is more than noise.
    pub fn confidence(&self) -> f64 {
        let better = self.improvements.iter().filter(|&&one| one > LEAST / 2.0).count();
        better as f64 / self.improvements.len().max(1) as f64
    }
}

/// Effects of a change: one for every figure that both have, in the order of the first, except for
/// those that can only be costs. `before` and `after` have the figures of the same seeds in the
/// same order.
pub fn effects(before: &[Vec<Measure>], after: &[Vec<Measure>]) -> Vec<Effect> {
    let mut all = effects_where(before, after, |one| one);
    all.retain(|effect| effect.metric != Metric::SentAgain);
    all
}

/// What a change makes worse, by more than `least` or possibly by more; retransmitted segments, if
/// there are certainly half as many again. The shares of flows that are alike both before and after
/// are left to chance; if the change makes them alike, or no longer alike, each one's loss counts.
pub fn losses(before: &[Vec<Measure>], after: &[Vec<Measure>], least: f64) -> Vec<Effect> {
    let is_goodput = |metric| matches!(metric, Metric::Goodput | Metric::Shared);
    let sharing = |runs: &[Vec<Measure>]| -> BTreeSet<String> {
        let all = runs.iter().flatten().filter(|one| one.metric == Metric::Shared);
        all.map(|one| one.subject.clone()).collect()
    };
    let both = [sharing(before), sharing(after)];
    let shares = |one: &Effect| both.iter().all(|sharing| sharing.contains(&one.subject));
    let each = |metric| if is_goodput(metric) { Metric::Goodput } else { metric };
    effects_where(before, after, each)
        .into_iter()
        .filter(|one| one.is_loss(least))
        .filter(|one| !(is_goodput(one.metric) && shares(one)))
        .collect()
}

/// Figures match if they have the same subject and, as mapped by `kind`, the same metric.
fn effects_where(
    before: &[Vec<Measure>],
    after: &[Vec<Measure>],
    kind: impl Fn(Metric) -> Metric,
) -> Vec<Effect> {
    let Some(first) = before.first() else { return Vec::new() };
    let runs: Vec<[Figures<'_>; 2]> = (before.iter().zip(after))
        .map(|(before, after)| [before, after].map(|run| Figures::new(run, &kind)))
        .collect();
    let effect = |like: &Measure| {
        let figure = |run: &Figures<'_>| {
            run.get(&like.subject, kind(like.metric)).map(|one| (one.value, one.incomplete))
        };
        let pairs =
            runs.iter().filter_map(|[before, after]| Some((figure(before)?, figure(after)?)));
        let (before, after): (Vec<_>, Vec<_>) = pairs.unzip();
        if before.is_empty() {
            return None;
        }
        let (old, was): (Vec<f64>, Vec<_>) = before.into_iter().unzip();
        let (new, is): (Vec<f64>, Vec<_>) = after.into_iter().unzip();
        let incomplete = [was, is].map(|each| Incomplete::of_all(&each));
        let improved = |(&before, &after): (&f64, &f64)| like.metric.improvement(before, after);
        let improvements: Vec<f64> = old.iter().zip(&new).map(improved).collect();
        let (before, after) = (mean(&old), mean(&new));
        let logarithms: Vec<f64> = new.iter().map(|value| libm::log(value.max(1e-3))).collect();
        let half = half_width(&logarithms);
        let (subject, metric) = (like.subject.clone(), kind(like.metric));
        let ci95 = metric.within([after * libm::exp(-half), after * libm::exp(half)]);
        Some(Effect { subject, metric, before, after, ci95, improvements, incomplete })
    };
    first.iter().filter_map(effect).collect()
}

/// The worth of a change: the mean improvement of the best figure, weighted, less the loss of any
/// throughput.
pub fn score(effects: &[Effect]) -> f64 {
    best(effects).map_or(0.0, |(_, score)| score)
}

/// The figure that improved most, and the worth of the change by it.
pub fn best(effects: &[Effect]) -> Option<(&Effect, f64)> {
    best_by(effects, Effect::mean)
}

/// The worth of a change by the near ends of the 95 % confidence intervals of the improved figures.
pub(crate) fn surely(effects: &[Effect]) -> f64 {
    let nearer = |effect: &Effect| effect.mean() - half_width(&effect.improvements);
    best_by(effects, nearer).map_or(0.0, |(_, score)| score)
}

fn best_by(effects: &[Effect], gain: impl Fn(&Effect) -> f64) -> Option<(&Effect, f64)> {
    // If flows share, their sum says more than the share of each.
    let together = effects.iter().any(|effect| effect.metric == Metric::Total);
    let whole = effects.iter().filter(|effect| !together || effect.metric != Metric::Goodput);
    let cost = lowest(whole);
    let each = lowest(effects.iter());
    let mut means = BTreeMap::new();
    for effect in effects.iter().filter(|effect| effect.metric == Metric::MeanPingRtt) {
        means.entry(effect.subject.as_str()).or_insert(effect);
    }
    let worth = |effect: &Effect| {
        let lost = if effect.metric == Metric::Goodput { each } else { cost };
        effect.metric.worth(gain(effect)) + lost + moved(effect, &means)
    };
    let sure = effects.iter().filter(|effect| effect.beyond_noise());
    let scored = sure.map(|effect| (effect, worth(effect)));
    scored.max_by(|(_, one), (_, other)| one.total_cmp(other))
}

/// A percentile of a ping's RTT may fall while its requests wait longer on average, which is no
/// gain: returns what the mean lost, 0 or less. `means` are the effects on the means.
fn moved(effect: &Effect, means: &BTreeMap<&str, &Effect>) -> f64 {
    if !matches!(effect.metric, Metric::PingRtt | Metric::MedianPingRtt) {
        return 0.0;
    }
    means.get(effect.subject.as_str()).map_or(0.0, |mean| mean.mean().min(0.0))
}

/// The largest loss of a throughput: 0 or less.
fn lowest<'a>(effects: impl Iterator<Item = &'a Effect>) -> f64 {
    let through = effects.filter(|effect| effect.metric.is_throughput());
    through.map(Effect::mean).fold(0.0, f64::min)
}

/// The smallest improvement of any throughput: negative if one fell.
pub fn worst_throughput(effects: &[Effect]) -> f64 {
    let through = effects.iter().filter(|effect| effect.metric.is_throughput());
    through.map(Effect::mean).min_by(f64::total_cmp).unwrap_or(0.0)
}

/// Figures of a run by subject and metric; of several alike the first.
pub(crate) struct Figures<'a>(BTreeMap<(&'a str, Metric), &'a Measure>);

impl<'a> Figures<'a> {
    /// Metrics that `kind` maps to the same one are alike.
    pub(crate) fn new(run: &'a [Measure], kind: impl Fn(Metric) -> Metric) -> Self {
        let mut found = BTreeMap::new();
        for one in run {
            found.entry((one.subject.as_str(), kind(one.metric))).or_insert(one);
        }
        Self(found)
    }

    /// The figure of a subject; `metric` as `kind` maps it.
    pub(crate) fn get(&self, subject: &str, metric: Metric) -> Option<&'a Measure> {
        self.0.get(&(subject, metric)).copied()
    }
}

/// Whether runs with different seeds differ. If they do not, they are one run, and tell nothing of
/// chance.
pub(crate) fn vary(runs: &[Vec<Measure>]) -> bool {
    runs.iter().any(|run| *run != runs[0])
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Half the width of the 95 % confidence interval of a mean (Student's t); 0 for one value.
pub(crate) fn half_width(values: &[f64]) -> f64 {
    /// Two-sided 95 % quantiles for 1, 2, … degrees of freedom.
    const T: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    half(values, &T, 1.96)
}

/// The quantile for the degrees of freedom times the standard error of the mean; 0 for one value.
/// Beyond the table it follows from the normal quantile `z` (Cornish and Fisher's expansion,
/// Abramowitz and Stegun 26.7.5).
fn half(values: &[f64], quantiles: &[f64], z: f64) -> f64 {
    let Some(degrees) = values.len().checked_sub(1).filter(|&degrees| degrees > 0) else {
        return 0.0;
    };
    let mean = mean(values);
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / degrees as f64;
    let quantile = quantiles.get(degrees - 1).copied().unwrap_or_else(|| {
        let many = degrees as f64;
        let square = z * z;
        let first = z * (square + 1.0) / 4.0;
        let second = z * ((5.0 * square + 16.0) * square + 3.0) / 96.0;
        let third = z * (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0;
        z + (first + (second + third / many) / many) / many
    });
    quantile * (variance / values.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_many_flows_are_not_each_compared_with_all_others() {
        const FLOWS: usize = 1_000;
        let names: Vec<String> = (0..FLOWS).map(|flow| format!("f{flow}")).collect();
        let run = |value| -> Vec<Measure> {
            names.iter().map(|name| Measure::of(name, Metric::Goodput, value)).collect()
        };
        let looks = std::cell::Cell::new(0);
        let kind = |metric| {
            looks.set(looks.get() + 1);
            metric
        };
        let all = effects_where(&[run(1.0), run(2.0)], &[run(2.0), run(4.0)], kind);
        assert_eq!(all.len(), FLOWS);
        assert!(all.iter().zip(&names).all(|(one, name)| one.subject == *name && one.after == 3.0));
        assert!(looks.get() < 20 * FLOWS, "{}", looks.get());
    }

    fn run(goodput: f64, rtt: f64) -> Vec<Measure> {
        let of = |metric, value| Measure::of("flow", metric, value);
        vec![of(Metric::Goodput, goodput), of(Metric::RttUnderLoad, rtt)]
    }

    #[test]
    fn the_interval_is_students() {
        // Mean 0.2, sd 0.1, three values: 4.303 x 0.1 / sqrt(3).
        assert!((half_width(&[0.1, 0.2, 0.3]) - 0.248_44).abs() < 1e-4);
        assert_eq!(half_width(&[0.3]), 0.0);
        // Beyond the table: 2.201 for 11 degrees of freedom, 2.093 for 19, 1.984 for 99.
        for (count, quantile) in [(12, 2.201), (20, 2.093), (100, 1.984)] {
            let values: Vec<f64> = (0..count).map(|one| f64::from(one % 2)).collect();
            let variance = f64::from(count) / 4.0 / f64::from(count - 1);
            let expected = quantile * (variance / f64::from(count)).sqrt();
            assert!((half_width(&values) / expected - 1.0).abs() < 5e-4, "{count}");
        }
    }

    #[test]
    fn the_interval_is_that_of_the_figure_afterwards() {
        // What varied before is not what varies now.
        let before = [run(1.0, 10.0), run(2.0, 10.0), run(3.0, 10.0)];
        let effects = effects(&before, &[run(8.0, 9.0), run(8.0, 10.0), run(8.0, 11.0)]);
        assert_eq!(effects[0].ci95, [8.0, 8.0]);
        let [low, high] = effects[1].ci95;
        assert!((low * high - 100.0).abs() < 1e-9 && high > 12.0);
    }

    #[test]
    fn no_interval_goes_beyond_what_the_figure_can_be() {
        let of = |value| vec![Measure::of("down", Metric::Fairness, value)];
        let before = [of(0.5), of(0.5), of(0.5)];
        let [low, high] = effects(&before, &[of(0.99), of(0.97), of(0.9)])[0].ci95;
        assert!(low > 0.8 && high == 1.0, "{low} to {high}");
    }

    #[test]
    fn what_varies_more_than_it_gains_is_noise() {
        let of = |gains: [f64; 3]| {
            let before: Vec<_> = gains.map(|_| run(1.0, 10.0)).into();
            let after: Vec<_> = gains.map(|gain| run(gain, 10.0)).into();
            score(&effects(&before, &after))
        };
        assert!(of([1.2, 1.25, 1.22]) > LEAST);
        assert_eq!(of([1.9, 0.8, 0.9]), 0.0);
    }

    #[test]
    fn a_median_that_falls_while_the_mean_rises_is_no_gain() {
        let run = |median, mean, late| {
            let metrics = [Metric::MedianPingRtt, Metric::MeanPingRtt, Metric::PingRtt];
            let of = |(metric, value)| Measure::of("ping", metric, value);
            [metrics.into_iter().zip([median, mean, late]).map(of).collect::<Vec<_>>()]
        };
        let worth = |after: [Vec<Measure>; 1]| score(&effects(&run(136.0, 134.0, 166.0), &after));
        assert!(worth(run(118.0, 145.0, 400.0)) < LEAST);
        assert!(worth(run(118.0, 134.0, 400.0)) > LEAST);
        assert!(worth(run(136.0, 140.0, 120.0)) > LEAST);
    }

    #[test]
    fn what_one_flow_takes_from_another_is_no_gain() {
        let both = |one, other| {
            let of = Measure::of;
            vec![
                of("one", Metric::Goodput, one),
                of("other", Metric::Goodput, other),
                of("down", Metric::Total, one + other),
            ]
        };
        assert!(score(&effects(&[both(4.0, 6.0)], &[both(6.0, 4.0)])).abs() < 1e-9);
        // The flow that starved gains more, by ratio, than the other loses.
        let fair = score(&effects(&[both(1.0, 9.0)], &[both(5.0, 5.0)]));
        assert!((fair - (5.0f64.ln() - 1.8f64.ln())).abs() < 1e-9);
        // Noise in how they share does not hide a gain of the whole.
        let whole = score(&effects(&[both(4.0, 6.0)], &[both(9.0, 5.0)]));
        assert!(whole > 1.39f64.ln());
    }

    #[test]
    fn a_flow_that_a_change_makes_like_the_others_may_lose() {
        let run = |metric, value| vec![Measure::of("flow", metric, value)];
        let lost = |before, after| losses(&[run(before, 6.0)], &[run(after, 2.0)], 0.02);
        for (before, after) in
            [(Metric::Goodput, Metric::Shared), (Metric::Shared, Metric::Goodput)]
        {
            let [lost] = &lost(before, after)[..] else { panic!("{before:?}, {after:?}") };
            assert_eq!((lost.metric, lost.before, lost.after), (Metric::Goodput, 6.0, 2.0));
        }
        assert_eq!(lost(Metric::Goodput, Metric::Goodput).len(), 1);
        assert!(lost(Metric::Shared, Metric::Shared).is_empty());
        assert!(losses(&[run(Metric::Goodput, 6.0)], &[run(Metric::Shared, 5.9)], 0.02).is_empty());
    }

    #[test]
    fn what_may_well_be_a_loss_is_told() {
        let run = |value| vec![Measure::of("flow", Metric::Goodput, value)];
        let lost = |after: [f64; 3]| {
            let losses = losses(&[run(1.0), run(1.0), run(1.0)], &after.map(run), 0.02);
            !losses.is_empty()
        };
        assert!(lost([0.97, 0.98, 0.97]));
        // It is certain, and other seeds may well lose 2 %.
        assert!(lost([0.978, 0.984, 0.982]));
        assert!(!lost([0.986, 0.986, 0.985]));
        assert!(!lost([0.95, 1.0, 1.01]));
        assert!(!lost([0.992, 0.994, 0.993]));
    }

    #[test]
    fn what_is_sent_again_is_a_cost_and_no_gain() {
        let run = |value| vec![Measure::of("flow", Metric::SentAgain, value)];
        let lost = |before: f64, after: [f64; 3]| {
            let before = [before; 3].map(run);
            assert!(effects(&before, &after.map(run)).is_empty());
            losses(&before, &after.map(run), 0.02).len() == 1
        };
        assert!(lost(0.02, [0.03, 0.04, 0.03]));
        assert!(lost(0.0, [0.02, 0.03, 0.02]));
        assert!(!lost(0.02, [0.02, 0.01, 0.2]));
        assert!(!lost(0.02, [0.025, 0.026, 0.025]));
        // Less than one in a hundred does not count.
        assert!(!lost(0.0, [0.009, 0.009, 0.009]));
        assert!(!lost(0.05, [0.01, 0.01, 0.01]));
    }

    #[test]
    fn what_few_seeds_leave_in_doubt_is_less_than_it_seems() {
        let worth = |gains: [f64; 3]| {
            let before: Vec<_> = gains.map(|_| run(1.0, 10.0)).into();
            let after: Vec<_> = gains.map(|gain| run(gain, 10.0)).into();
            let effects = effects(&before, &after);
            (score(&effects), surely(&effects))
        };
        let (score, sure) = worth([1.3, 1.3, 1.3]);
        assert!((score - sure).abs() < 1e-9);
        let (score, sure) = worth([1.1, 1.3, 1.2]);
        assert!(score > LEAST && sure < LEAST);
    }

    #[test]
    fn a_bulk_flows_own_delay_is_worth_half_of_its_rate() {
        let rate = effects(&[run(1.0, 10.0)], &[run(2.0, 10.0)]);
        let delay = effects(&[run(1.0, 10.0)], &[run(1.0, 5.0)]);
        assert!((score(&rate) - 2f64.ln()).abs() < 1e-12);
        assert!((score(&delay) - 2f64.ln() / 2.0).abs() < 1e-12);
        // Not if it costs half of the rate.
        let starved = effects(&[run(1.0, 10.0)], &[run(0.5, 5.0)]);
        assert!(score(&starved) < 0.0);
    }
}
