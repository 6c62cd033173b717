//! Variants of a scenario on common seeds: what each changes, and which is best, if one is better
//! by more than noise.

use std::collections::BTreeSet;

use airpath_scenario::Parsed;
use airpath_sim::Stopped;
use serde::Serialize;

use crate::batch::{self, Job};
use crate::compare::{Figures, half_width, mean, vary};
use crate::measure::{Measure, Metric, with_costs};

/// A smaller relative difference does not count, even if it appears with every seed.
const EVEN: f64 = 0.01;

/// What to compare.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// The scenario.
    pub parsed: &'a Parsed,
    /// The scenario with the settings of each variant.
    pub variants: &'a [Parsed],
    /// Seeds with which all run.
    pub seeds: &'a [u64],
    /// Number of threads; the answer does not depend on it.
    pub threads: usize,
}

/// One figure of every variant.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "VariantRow"))]
pub struct Row {
    /// Id of the flow, or a direction.
    pub flow: String,
    /// The figure's name in `--json`, with its unit.
    #[cfg_attr(feature = "schema", schemars(with = "crate::measure::Metric"))]
    pub metric: &'static str,
    /// Whether an increase is a gain: true for rates, false for times.
    pub more_is_better: bool,
    /// The scenario as it is, then the variants; null for one without this figure.
    pub cells: Vec<Option<Cell>>,
    /// The best one; 0 is the scenario as it is. Null if the best does not differ from every other
    /// by more than noise.
    pub winner: Option<usize>,
}

/// A figure of one variant.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "VariantFigure"))]
pub struct Cell {
    /// Mean over the seeds; null where a transfer did not complete within the run.
    pub mean: Option<f64>,
    /// 95 % confidence interval of the mean; null where no variant's figures differ between seeds.
    pub ci95: Option<[f64; 2]>,
    /// Values by seed; null where it did not complete.
    pub values: Vec<Option<f64>>,
    /// Mean relative change against the scenario as it is; null for that one, if that is 0 with any
    /// seed, and if either did not complete.
    pub change: Option<f64>,
    /// 95 % confidence interval of the change, from paired seeds; null likewise.
    pub change_ci95: Option<[f64; 2]>,
}

impl Cell {
    fn without_intervals(self) -> Self {
        Self { ci95: None, change_ci95: None, ..self }
    }
}

/// Runs every variant with every seed and compares their figures.
///
/// # Errors
///
/// [`Stopped`] if `progress` returned false.
pub fn compare(
    comparison: &Comparison<'_>,
    progress: &mut (dyn FnMut(usize) -> bool + Send),
) -> Result<Vec<Row>, Stopped> {
    let Comparison { parsed, variants, seeds, threads } = *comparison;
    let all = std::iter::once(parsed).chain(variants);
    let mut scenarios: Vec<_> = all.map(|parsed| parsed.scenario.clone()).collect();
    for scenario in &mut scenarios {
        scenario.run.ack_table = false;
        scenario.run.radio_log = false;
    }
    let jobs: Vec<Job<'_>> = scenarios
        .iter()
        .flat_map(|scenario| {
            seeds.iter().map(move |&seed| Job { scenario, seed, accounted: false })
        })
        .collect();
    let runs = batch::run(&jobs, threads, progress)?;
    let measured: Vec<Vec<Vec<Measure>>> = (scenarios.iter())
        .zip(runs.chunks(seeds.len()))
        .map(|(scenario, runs)| runs.iter().map(|run| with_costs(scenario, run)).collect())
        .collect();
    Ok(rows(&measured))
}

/// Compares figures that were measured elsewhere, as [`compare`] does: all figures of any variant,
/// in order. `measured` is by variant and then by pair (a seed, or a block of runs); every variant has
/// the same number of pairs.
pub fn rows(measured: &[Vec<Vec<Measure>>]) -> Vec<Row> {
    let is_random = measured.iter().any(|runs| vary(runs));
    let mut known = BTreeSet::new();
    let mut all: Vec<(&str, Metric)> = Vec::new();
    for one in measured.iter().flatten().flatten() {
        if known.insert((one.subject.as_str(), one.metric)) {
            all.push((&one.subject, one.metric));
        }
    }
    let measured: Vec<Vec<Figures<'_>>> = (measured.iter())
        .map(|runs| runs.iter().map(|run| Figures::new(run, |one| one)).collect())
        .collect();
    let row = |&(subject, metric): &(&str, Metric)| {
        let figure = |run: &Figures<'_>| run.get(subject, metric).cloned();
        let figures: Vec<Option<Vec<Measure>>> =
            measured.iter().map(|runs| runs.iter().map(figure).collect()).collect();
        let cells = figures.iter().enumerate().map(|(index, own)| {
            let found = own.as_ref().map(|own| cell(metric, index, own, figures[0].as_deref()));
            found.map(|cell| if is_random { cell } else { cell.without_intervals() })
        });
        // Incomplete transfers are compared by an estimate.
        let value = |own: &Vec<Measure>| own.iter().map(|one| one.value).collect();
        let columns: Vec<Option<Vec<f64>>> =
            figures.iter().map(|own| own.as_ref().map(value)).collect();
        Row {
            flow: subject.to_owned(),
            metric: metric.name(),
            more_is_better: metric.more_is_better(),
            cells: cells.collect(),
            winner: if is_random { winner(metric, &columns) } else { None },
        }
    };
    all.iter().map(row).collect()
}

fn cell(metric: Metric, index: usize, own: &[Measure], base: Option<&[Measure]>) -> Cell {
    let known = |one: &Measure| one.incomplete.is_none().then_some(one.value);
    let all = |measures: &[Measure]| measures.iter().map(known).collect::<Option<Vec<f64>>>();
    let interval = |values: &Vec<f64>| {
        let (centre, half) = (mean(values), half_width(values));
        [centre - half, centre + half]
    };
    let values = all(own);
    let base = base.filter(|_| index > 0).and_then(all);
    let changes: Option<Vec<f64>> = values.as_ref().zip(base).and_then(|(values, base)| {
        let pairs = values.iter().zip(base);
        // Nothing is a multiple of zero.
        pairs.map(|(value, base)| (base != 0.0).then(|| value / base.abs() - 1.0)).collect()
    });
    Cell {
        mean: values.as_ref().map(|values| mean(values)),
        ci95: values.as_ref().map(|values| metric.within(interval(values))),
        values: own.iter().map(known).collect(),
        change: changes.as_ref().map(|changes| mean(changes)),
        change_ci95: changes.as_ref().map(interval),
    }
}

/// The variant that is better than every other in paired seeds, by more than the half width of the
/// 95 % confidence interval and by more than [`EVEN`]. Retransmissions have none: what they are worth
/// shows in what gets through.
fn winner(metric: Metric, columns: &[Option<Vec<f64>>]) -> Option<usize> {
    if metric == Metric::SentAgain {
        return None;
    }
    let all: Vec<&Vec<f64>> = columns.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let ahead = |one: &[f64], other: &[f64]| {
        let gains: Vec<f64> =
            other.iter().zip(one).map(|(&from, &to)| metric.improvement(from, to)).collect();
        gains.len() > 1 && mean(&gains) > half_width(&gains) && mean(&gains) > EVEN
    };
    (0..all.len()).find(|&one| {
        (0..all.len()).filter(|&other| other != one).all(|other| ahead(all[one], all[other]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(goodputs: &[f64]) -> Vec<Vec<Measure>> {
        let of = |&value: &f64| vec![Measure::of("download", Metric::Goodput, value)];
        goodputs.iter().map(of).collect()
    }

    #[test]
    fn who_is_ahead_in_every_seed_wins() {
        let rows = rows(&[runs(&[10.0, 12.0, 14.0]), runs(&[11.0, 13.2, 15.4])]);
        assert_eq!(rows[0].winner, Some(1));
        let cell = rows[0].cells[1].as_ref().unwrap();
        assert!((cell.change.unwrap() - 0.1).abs() < 1e-9);
        assert_eq!(rows[0].cells[0].as_ref().unwrap().change, None);
    }

    #[test]
    fn nobody_wins_inside_the_noise() {
        let noisy = rows(&[runs(&[10.0, 12.0, 14.0]), runs(&[14.0, 9.0, 15.0])]);
        assert_eq!(noisy[0].winner, None);
        let same = rows(&[runs(&[10.0, 10.0, 10.0]), runs(&[10.01, 10.01, 10.01])]);
        assert_eq!(same[0].winner, None);
        let one_seed = rows(&[runs(&[10.0]), runs(&[20.0])]);
        assert_eq!(one_seed[0].winner, None);
    }

    #[test]
    fn seeds_that_give_one_run_have_no_interval_and_no_winner() {
        let rows = rows(&[runs(&[10.0, 10.0]), runs(&[20.0, 20.0])]);
        let cell = rows[0].cells[1].as_ref().unwrap();
        assert_eq!((cell.change, cell.change_ci95, cell.ci95), (Some(1.0), None, None));
        assert_eq!(rows[0].winner, None);
    }

    #[test]
    fn a_share_has_no_change_from_zero_and_retransmissions_have_no_winner() {
        let again = |value| vec![vec![Measure::of("download", Metric::SentAgain, value)]; 2];
        let rows = rows(&[again(0.0), again(0.2), again(0.1)]);
        let changes: Vec<_> =
            rows[0].cells.iter().map(|cell| cell.as_ref().unwrap().change).collect();
        assert_eq!(changes, [None; 3]);
        assert_eq!(rows[0].winner, None);
    }

    #[test]
    fn a_figure_that_one_lacks_has_no_winner() {
        let rows = rows(&[runs(&[10.0, 12.0]), vec![Vec::new(), Vec::new()]]);
        assert_eq!((rows[0].cells[1].clone(), rows[0].winner), (None, None));
    }
}
