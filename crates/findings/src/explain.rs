//! The experiment: candidates from one run, each removed on one seed; what helped is confirmed on
//! more, and advice is tried as well.

use airpath_record::RunSummary;
use airpath_scenario::Parsed;
use airpath_sim::Stopped;

use crate::batch::{self, Job};
use crate::candidate::{Candidate, NoChange, change};
use crate::cause::{Cause, Class};
use crate::causes;
use crate::compare::{Effect, LEAST, MORE, best};
use crate::evidence::told;
use crate::finding::{Explanation, Finding, Gain, Tried};
use crate::measure::{Measure, with_costs};
use crate::observed::Observed;
use crate::subject::named;
use crate::trial::{Advised, Trial};
use crate::{bound, cures, words};

/// How much may be tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Most different changes of the scenario.
    pub changes: usize,
    /// Paired seeds for what is printed.
    pub seeds: usize,
    /// Paired seeds for what those leave in doubt.
    pub seeds_in_doubt: usize,
    /// Most causes for which advice is sought.
    pub advised: usize,
    /// Simulated events that are always allowed, however few a run has.
    pub events: u64,
    /// Simulated events allowed per seed, in multiples of the run that is explained.
    pub runs: u64,
}

impl Budget {
    /// The default of the command line.
    pub const QUICK: Self =
        Self { changes: 12, seeds: 3, seeds_in_doubt: 5, advised: 4, events: 6_000_000, runs: 16 };
    /// Tries everything that is known.
    pub const FULL: Self = Self {
        changes: 60,
        seeds: 5,
        seeds_in_doubt: 5,
        advised: 8,
        events: u64::MAX,
        runs: u64::MAX,
    };

    /// At most this many seeds are simulated again, however many the run has.
    const MOST_SEEDS: usize = 10;

    /// The seeds to compare in pairs, for a run of `repeat` seeds.
    pub fn seeds_of(self, first: u64, repeat: usize) -> Vec<u64> {
        let count = repeat.clamp(self.seeds, self.seeds.max(Self::MOST_SEEDS));
        (0..count as u64).map(|index| first.wrapping_add(index)).collect()
    }

    /// Changes for the removal of causes; the rest is reserved for advice.
    pub(crate) const fn for_causes(self) -> usize {
        self.changes - self.changes / 4
    }
}

/// What to explain.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The scenario.
    pub parsed: &'a Parsed,
    /// Seeds to compare in pairs: [`Budget::seeds_of`].
    pub seeds: &'a [u64],
    /// Results of the first of these seeds, if they have run already.
    pub known: &'a [RunSummary],
    /// How much may be tried.
    pub budget: Budget,
    /// Number of threads; the answer does not depend on it.
    pub threads: usize,
}

/// At most this many causes are confirmed.
const MOST_CAUSES: usize = 4;

/// Explains a run. `progress` receives the number of simulations that have ended, and stops the
/// search by returning false.
///
/// # Errors
///
/// [`Stopped`] if `progress` returned false.
pub fn explain(
    question: &Question<'_>,
    progress: &mut (dyn FnMut(usize) -> bool + Send),
) -> Result<Explanation, Stopped> {
    let (runs, changes, events, in_doubt) = (0, 0, 0, 0);
    let answer = Explanation::default();
    let advised = Vec::new();
    let (typical, causes, share) = (0, 0, 0);
    let accounted = false;
    let mut seeds = question.seeds.to_vec();
    if let Some(&last) = seeds.last() {
        let more = question.budget.seeds_in_doubt.saturating_sub(seeds.len());
        seeds.extend((1..=more as u64).map(|index| last.wrapping_add(index)));
    }
    let mut lab = Lab {
        question,
        seeds,
        progress,
        accounted,
        runs,
        changes,
        events,
        in_doubt,
        typical,
        answer,
        advised,
        causes,
        share,
    };
    lab.explain()?;
    lab.answer.seeds = question.seeds.len();
    lab.answer.runs = lab.runs;
    lab.answer.events += lab.events + lab.in_doubt;
    Ok(lab.answer)
}

/// A run that its causes nearly stop has few events, so that the budget would not allow anything
/// that helps against them: then the budget is counted in runs without the cause. Returns the
/// events of the longest of these, if it is more than twice as long.
fn most_events(trials: &[Trial], typical: u64) -> u64 {
    let helpful = trials.iter().filter(|trial| trial.score > LEAST);
    let events = helpful.filter_map(|trial| Some(trial.run.as_ref()?.events));
    events.filter(|&events| events > 2 * typical).max().unwrap_or(0)
}

/// One explanation in progress.
pub(crate) struct Lab<'a, 'p> {
    pub(crate) question: &'a Question<'a>,
    /// The question's seeds, and those for what they leave in doubt.
    pub(crate) seeds: Vec<u64>,
    progress: &'p mut (dyn FnMut(usize) -> bool + Send),
    /// Whether it is known where the first seed's time went.
    accounted: bool,
    runs: usize,
    pub(crate) changes: usize,
    /// Simulated events spent, those spent in addition for doubtful causes, and those of a usual
    /// run.
    events: u64,
    pub(crate) in_doubt: u64,
    typical: u64,
    pub(crate) answer: Explanation,
    /// Advice found so far, for the largest cause first.
    pub(crate) advised: Vec<Advised>,
    /// Causes found so far; and how many changes may have been tried when the search for the
    /// current advice ends.
    pub(crate) causes: usize,
    pub(crate) share: usize,
}

impl Lab<'_, '_> {
    fn explain(&mut self) -> Result<(), Stopped> {
        let Question { parsed, seeds, known, .. } = *self.question;
        let mut base = known[..known.len().min(seeds.len())].to_vec();
        if base.is_empty() {
            base = self.run_all(&[(parsed, 0..1)])?.remove(0);
        }
        self.typical = base.iter().map(|run| run.events).sum::<u64>() / base.len() as u64;
        let mut before = self.measured(parsed, &base);
        let observed: Vec<_> = base.iter().map(|run| Observed::new(parsed, run)).collect();
        // What only some seeds show is tried on the first that shows it.
        let mut candidates: Vec<(Candidate, usize)> = Vec::new();
        for (seed, observed) in observed.iter().enumerate() {
            for candidate in causes::candidates(observed) {
                if !candidates.iter().any(|(one, _)| one.is_like(&candidate)) {
                    candidates.push((candidate, seed));
                }
            }
        }
        candidates.sort_by_key(|(candidate, _)| candidate.cause.class());
        let mut trials = self.accepted(candidates);
        self.screen(&mut trials, &before)?;
        self.typical = self.typical.max(most_events(&trials, self.typical));
        self.try_both_queues(&mut trials, &before)?;
        // First what matters on the first seed, then what may matter on others.
        trials.sort_by(|one, other| {
            let by_promise = other.promise().total_cmp(&one.promise());
            other.score.max(LEAST).total_cmp(&one.score.max(LEAST)).then(by_promise)
        });
        let promises = |trial: &Trial| trial.score > LEAST || trial.promise() > LEAST / 2.0;
        let most = trials.iter().take(MOST_CAUSES).take_while(|trial| promises(trial)).count();
        let mut rest = trials.split_off(most);
        self.confirm(&mut trials, &mut before)?;
        let (mut causes, refuted) = self.settled(trials, &mut before)?;
        rest.extend(refuted);
        let hidden = self.hidden(&causes, &rest, &before)?;
        let hidden = self.confirm_hidden(hidden, &causes)?;
        let (hidden, refuted) = self.settled(hidden, &mut before)?;
        causes.extend(hidden);
        rest.extend(refuted);
        for trial in rest {
            if !causes.iter().any(|cause| cause.candidate == trial.candidate) {
                self.dismiss(&trial);
            }
        }
        // If nothing counts alone, the scenario as it is may have run with one seed only.
        if !causes.is_empty() && before.len() < seeds.len() {
            let missing = self.run_all(&[(parsed, before.len()..seeds.len())])?.remove(0);
            before.extend(self.measured(parsed, &missing));
        }
        self.causes = causes.len();
        for (place, trial) in causes.iter().enumerate() {
            self.answer.tried.push(trial.told());
            let before = &before[..trial.runs.len()];
            let finding = self.conclude(&observed[trial.first], trial, before, place)?;
            self.answer.findings.push(finding);
        }
        self.answer.findings.extend(bound::bounds(&observed[0]));
        Ok(())
    }

    /// Whether this many more runs are within the budget.
    pub(crate) fn affords(&self, runs: usize) -> bool {
        self.affordable() >= runs as u64
    }

    /// Number of usual runs within the budget.
    pub(crate) fn affordable(&self) -> u64 {
        self.most_events().saturating_sub(self.events) / self.typical.max(1)
    }

    fn most_events(&self) -> u64 {
        let budget = self.question.budget;
        let seeds = self.question.known.len().max(1) as u64;
        budget.events.max(budget.runs.saturating_mul(self.typical * seeds))
    }

    /// Doubtful causes have half of the budget in addition.
    pub(crate) fn affords_in_doubt(&self, runs: usize) -> bool {
        let left = (self.most_events() / 2).saturating_sub(self.in_doubt);
        left / self.typical.max(1) >= runs as u64
    }

    /// Performs runs for doubtful causes.
    pub(crate) fn run_in_doubt(
        &mut self,
        wanted: &[(&Parsed, std::ops::Range<usize>)],
    ) -> Result<Vec<Vec<RunSummary>>, Stopped> {
        let before = self.events;
        let results = self.run_all(wanted)?;
        self.in_doubt += std::mem::replace(&mut self.events, before) - before;
        Ok(results)
    }

    /// Changes for the removal of causes, such that enough is left to confirm and to advise.
    pub(crate) fn for_causes(&self) -> usize {
        let Question { budget, seeds, .. } = *self.question;
        let kept = 4 * (seeds.len() as u64 - 1) + 2;
        let events = self.affordable().saturating_sub(kept).max(3);
        budget.for_causes().min(usize::try_from(events).unwrap_or(usize::MAX))
    }

    /// The candidates that the scenario accepts, as many as the budget allows.
    fn accepted(&mut self, candidates: Vec<(Candidate, usize)>) -> Vec<Trial> {
        let parsed = self.question.parsed;
        let most = self.for_causes();
        let mut trials: Vec<Trial> = Vec::new();
        for (candidate, first) in candidates {
            let outcome = if trials.len() >= most {
                "Not tried: the limit of extra runs was reached.".to_owned()
            } else {
                match change(parsed, parsed, &candidate.removals) {
                    // A different subject, but the same change.
                    Ok(change) if trials.iter().any(|trial| trial.change.edits == change.edits) => {
                        continue;
                    }
                    Ok(change) => {
                        let seeds = self.question.seeds.len();
                        trials.push(Trial::new(candidate, change, first, seeds));
                        continue;
                    }
                    Err(NoChange::AlreadySo) => continue,
                    Err(NoChange::Refused(reason)) => {
                        format!("The scenario rejects the change: {reason}")
                    }
                }
            };
            self.answer.tried.push(Tried {
                cause: candidate.cause.name(),
                subject: named(&candidate.subjects),
                set: candidate.removals.into_iter().next().unwrap_or_default(),
                outcome,
                score: None,
                gain: None,
            });
        }
        self.changes += trials.len();
        trials
    }

    /// Runs every trial on one seed.
    pub(crate) fn screen(
        &mut self,
        trials: &mut [Trial],
        before: &[Vec<Measure>],
    ) -> Result<(), Stopped> {
        let of = |trial: &Trial| trial.first..trial.first + 1;
        let changed: Vec<_> =
            trials.iter().map(|trial| (&trial.change.parsed, of(trial))).collect();
        let results = self.run_all(&changed)?;
        for (trial, result) in trials.iter_mut().zip(results) {
            trial.runs[trial.first] = self.measured(&trial.change.parsed, &result).pop();
            trial.run = result.into_iter().next();
            trial.judge(before);
        }
        Ok(())
    }

    /// Runs the other seeds of what helped on the first, and of the scenario as it is.
    fn confirm(
        &mut self,
        trials: &mut [Trial],
        before: &mut Vec<Vec<Measure>>,
    ) -> Result<(), Stopped> {
        if trials.is_empty() {
            return Ok(());
        }
        let Question { parsed, seeds, .. } = *self.question;
        let (most, each) = (self.affordable(), seeds.len() as u64 - 1);
        let missing = before.len()..seeds.len();
        let most = most.saturating_sub(missing.len() as u64);
        let mut wanted = vec![(parsed, missing)];
        // Fewer causes with advice are better than more without: one is tried with every seed.
        let most = most.saturating_sub(seeds.len() as u64);
        for (index, trial) in trials.iter().enumerate() {
            // The first is confirmed whatever it costs.
            let worth = trial.score > LEAST || most >= 2 * each * (index as u64 + 1);
            if index > 0 && (most < each * (index as u64 + 1) || !worth) {
                break;
            }
            wanted.push((&trial.change.parsed, 0..trial.first));
            wanted.push((&trial.change.parsed, trial.first + 1..seeds.len()));
        }
        let mut results = self.run_all(&wanted)?.into_iter();
        before.extend(self.measured(parsed, &results.next().unwrap_or_default()));
        for trial in trials.iter_mut() {
            let parsed = &trial.change.parsed;
            let (Some(earlier), Some(later)) = (results.next(), results.next()) else { break };
            let measured = [self.measured(parsed, &earlier), self.measured(parsed, &later)];
            let missing = trial.runs.iter_mut().filter(|run| run.is_none());
            for (run, measures) in missing.zip(measured.into_iter().flatten()) {
                *run = Some(measures);
            }
            trial.judge(before);
        }
        Ok(())
    }

    /// Ranks causes by what they are worth; behaviour only if no fault explains as much. Also
    /// returns the others.
    pub(crate) fn rank(&self, mut trials: Vec<Trial>) -> (Vec<Trial>, Vec<Trial>) {
        // Small transfers start slowly whatever the path is like: all faults precede that.
        let inherent = |trial: &Trial| trial.candidate.cause == Cause::SlowStart;
        trials.sort_by(|one, other| {
            let by_score = || other.score.total_cmp(&one.score);
            let by_cause = || one.candidate.cause.cmp(&other.candidate.cause);
            inherent(one).cmp(&inherent(other)).then_with(by_score).then_with(by_cause)
        });
        // Of two causes worth the same, one is a consequence of the other. A link that is given up
        // takes all blocks of its time with it, fragments multiply losses, and a gap delays the
        // packets behind it: what is left of the other without them is its own effect, and it comes
        // first if that is larger.
        for at in 1..trials.len() {
            let this = &trials[at];
            let general = |one: &Trial| {
                let causes = (this.candidate.cause, one.candidate.cause);
                let adds = matches!(
                    causes,
                    (Cause::RadioLinkFailure | Cause::PdcpGap, Cause::RadioLoss)
                        | (Cause::PdcpGap, Cause::Handover)
                        | (Cause::Fragmentation | Cause::Vpn, Cause::RandomLoss)
                );
                let special = match causes {
                    // A ring overflows because its host stalls.
                    (Cause::StallingHost, other) => other == Cause::ReceiveRing,
                    (this, one) => this.special() && !one.special(),
                };
                special
                    && one.class() == Class::Fault
                    && (one.score - this.score < 2.0 * MORE || adds && this.score > one.score / 2.0)
            };
            let first = trials[..at].iter().position(general);
            if let Some(first) = first {
                trials[first..=at].rotate_right(1);
            }
        }
        // Faults explain behaviour, and the behaviour of slow start explains why another control
        // does better.
        let plainer: Vec<(Cause, Vec<Effect>)> = (trials.iter())
            .filter(|trial| trial.score > LEAST)
            .map(|trial| (trial.candidate.cause, trial.effects.clone()))
            .collect();
        // What explains a behaviour that counts is named in its place, even if it is worth less
        // alone.
        let faults: Vec<_> =
            plainer.iter().filter(|(cause, _)| cause.class() == Class::Fault).cloned().collect();
        let stands: Vec<bool> = (trials.iter())
            .map(|trial| {
                let for_it = |other: &&Trial| trial.stands_for(other) && !other.explained(&faults);
                trials.iter().any(|other| for_it(&other))
            })
            .collect();
        let relieved: Vec<bool> =
            (trials.iter()).map(|trial| trials.iter().any(|other| other.relieves(trial))).collect();
        let mut behaviours = 0;
        let (mut kept, mut refuted) = (Vec::new(), Vec::new());
        for ((trial, stands), relieved) in trials.into_iter().zip(stands).zip(relieved) {
            let behaviour = trial.candidate.cause.class() == Class::Behaviour;
            let explained = behaviour && (behaviours > 0 || trial.explained(&plainer));
            let counts = trial.score > trial.least() || stands;
            if !counts || explained || relieved || trial.runs.iter().any(Option::is_none) {
                refuted.push(trial);
                continue;
            }
            behaviours += usize::from(behaviour);
            kept.push(trial);
        }
        (kept, refuted)
    }

    pub(crate) fn dismiss(&mut self, trial: &Trial) {
        let seeds = trial.runs.iter().flatten().count();
        let largest = trial.effects.iter().max_by(|one, other| {
            let size = |effect: &Effect| effect.metric.worth(effect.mean().abs());
            size(one).total_cmp(&size(other))
        });
        let outcome = match largest {
            Some(effect) if trial.score > LEAST && seeds < trial.runs.len() => format!(
                "It changed {} on one seed; the limit of extra runs was reached before that could be confirmed.",
                effect.told()
            ),
            Some(effect) if trial.undecided => format!(
                "It changed {} on {seeds} seeds, which leaves doubt; the limit of extra runs was reached before more could run.",
                effect.told()
            ),
            Some(effect) if effect.mean().abs() >= 0.005 => format!(
                "It changed {}, but this is no overall improvement, is within the noise, or is better explained by other causes.",
                effect.told()
            ),
            _ => "It changed nothing.".to_owned(),
        };
        self.answer.tried.push(Tried {
            cause: trial.candidate.cause.name(),
            subject: named(&trial.candidate.subjects),
            set: trial.change.edits.clone(),
            outcome,
            score: Some(trial.score),
            gain: largest.map(Gain::of),
        });
    }

    /// A finding: a cause, with the advice that gained most.
    fn conclude(
        &mut self,
        observed: &Observed<'_>,
        trial: &Trial,
        before: &[Vec<Measure>],
        place: usize,
    ) -> Result<Finding, Stopped> {
        let removed = best(&trial.effects).map(|(effect, _)| effect);
        let seen = told(&trial.candidate.evidence);
        let evidence = match removed {
            Some(effect) => format!("{}{seen} {}", trial.hidden(), trial.without(effect)),
            None => seen,
        };
        let mut finding = Finding {
            cause: trial.candidate.cause.name(),
            subject: named(&trial.candidate.subjects),
            confidence: removed.map_or(0.0, Effect::confidence),
            evidence,
            advice: None,
            set: None,
            gain: None,
            costs: Vec::new(),
            score: trial.score,
        };
        let because = self.advise(observed, trial, before, place, &mut finding)?;
        match &mut finding.advice {
            Some(advice) => {
                let edits = finding.set.as_deref().unwrap_or_default();
                advice.push_str(&cures::of_streams(observed, edits));
                advice.push_str(&cures::of_ues(observed, edits));
            }
            None => {
                let elsewhere = words::elsewhere(trial.candidate.cause);
                finding.advice = Some(format!("{elsewhere} No setting is advised: {because}."));
            }
        }
        Ok(finding)
    }

    /// Runs scenarios with ranges of seeds, counted from the first. Along with the first scenario
    /// the first seed runs once more, to see where its time went: what may be tried does not depend
    /// on it.
    pub(crate) fn run_all(
        &mut self,
        wanted: &[(&Parsed, std::ops::Range<usize>)],
    ) -> Result<Vec<Vec<RunSummary>>, Stopped> {
        let mut quiet: Vec<_> = wanted.iter().map(|(parsed, _)| parsed.scenario.clone()).collect();
        for scenario in &mut quiet {
            scenario.run.ack_table = false;
            scenario.run.radio_log = false;
        }
        let jobs: Vec<Job<'_>> = (quiet.iter().zip(wanted))
            .flat_map(|(scenario, (_, seeds))| {
                let seed = |index: usize| self.seeds[index];
                seeds.clone().map(move |index| Job {
                    scenario,
                    seed: seed(index),
                    accounted: false,
                })
            })
            .collect();
        let mut itself = self.question.parsed.scenario.clone();
        (itself.run.ack_table, itself.run.radio_log) = (false, false);
        let account = (!self.accounted).then_some(Job {
            scenario: &itself,
            seed: self.seeds[0],
            accounted: true,
        });
        // The longest run first.
        let jobs: Vec<Job<'_>> = account.into_iter().chain(jobs).collect();
        let before = self.runs;
        let progress = &mut *self.progress;
        let mut results =
            batch::run(&jobs, self.question.threads, &mut |done| progress(before + done))?;
        self.runs += jobs.len();
        if !std::mem::replace(&mut self.accounted, true) {
            let run = results.remove(0);
            self.answer.events += run.events;
            self.answer.breakdowns = run.breakdowns;
        }
        self.events += results.iter().map(|run| run.events).sum::<u64>();
        let mut results = results.into_iter();
        Ok(wanted.iter().map(|(_, seeds)| results.by_ref().take(seeds.len()).collect()).collect())
    }

    pub(crate) fn measured(&self, parsed: &Parsed, runs: &[RunSummary]) -> Vec<Vec<Measure>> {
        runs.iter().map(|run| with_costs(&parsed.scenario, run)).collect()
    }
}
