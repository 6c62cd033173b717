//! The experiment: candidates from one run, each taken away on one seed, what helped confirmed on
//! more, the advice tried as well.

use airpath_record::RunSummary;
use airpath_scenario::{Parsed, Source};
use airpath_sim::Stopped;

use crate::batch::{self, Job};
use crate::candidate::{Candidate, Change, NoChange, change};
use crate::cause::{Cause, Class};
use crate::causes::{self, percent};
use crate::compare::{Effect, LEAST, best, best_throughput, effects, score, worst_throughput};
use crate::facts::Facts;
use crate::finding::{Explanation, Finding, Gain, Tried};
use crate::measure::{Measure, measures};
use crate::{bound, cures};

/// How much may be tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Different changes of the scenario.
    pub changes: usize,
    /// Paired seeds of what is printed.
    pub seeds: usize,
    /// Causes for which advice is looked for.
    pub advised: usize,
}

impl Budget {
    /// The default of the command line.
    pub const QUICK: Self = Self { changes: 12, seeds: 3, advised: 2 };
    /// All that is known.
    pub const FULL: Self = Self { changes: 60, seeds: 5, advised: 8 };

    /// Changes that take causes away; the rest is kept for advice.
    const fn for_causes(self) -> usize {
        self.changes - self.changes / 4
    }
}

/// What is to be explained.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The scenario.
    pub source: Source<'a>,
    /// What was set.
    pub sets: &'a [String],
    /// The same, parsed.
    pub parsed: &'a Parsed,
    /// The first seed; the others follow.
    pub seed: u64,
    /// How much may be tried.
    pub budget: Budget,
    /// Threads; the answer does not depend on it.
    pub threads: usize,
}

/// A candidate that changes the scenario, with what became of it.
struct Trial {
    candidate: Candidate,
    change: Change,
    /// By seed, as many as it ran with.
    runs: Vec<Vec<Measure>>,
    effects: Vec<Effect>,
    score: f64,
}

/// By this much more has to be obtained before something counts beside, or instead of, the best so
/// far.
const MORE: f64 = 0.05;

/// A goodput may fall by this much by an advice.
const HARM: f64 = 0.02;

/// Explains a run. `progress` is told how many simulations have ended; it stops by returning false.
///
/// # Errors
///
/// [`Stopped`] if `progress` returned false.
pub fn explain(
    question: &Question<'_>,
    progress: &mut (dyn FnMut(usize) -> bool + Send),
) -> Result<Explanation, Stopped> {
    let mut lab = Lab { question, progress, runs: 0, changes: 0, answer: Explanation::default() };
    lab.explain()?;
    lab.answer.runs = lab.runs;
    Ok(lab.answer)
}

struct Lab<'a, 'p> {
    question: &'a Question<'a>,
    progress: &'p mut (dyn FnMut(usize) -> bool + Send),
    runs: usize,
    changes: usize,
    answer: Explanation,
}

impl Lab<'_, '_> {
    fn explain(&mut self) -> Result<(), Stopped> {
        let budget = self.question.budget;
        let seeds = 0..budget.seeds;
        let base = self.run_all(&[(self.question.parsed, seeds)])?.remove(0);
        let before = self.measured(self.question.parsed, &base);
        let facts = Facts {
            scenario: &self.question.parsed.scenario,
            run: &base[0],
            ue_tables: self.question.parsed.resolved_toml.matches("[[radio.ue]]").count(),
        };
        let mut trials = self.accepted(causes::candidates(&facts), budget.for_causes());
        self.screen(&mut trials, &before)?;
        let hidden = self.together(&mut trials, &before)?;
        trials.sort_by(|one, other| other.score.total_cmp(&one.score));
        let mut causes: Vec<Trial> = Vec::new();
        for trial in trials {
            if trial.score > LEAST && causes.len() < 4
                || hidden.contains(&(trial.candidate.cause, trial.candidate.subject.clone()))
            {
                causes.push(trial);
            } else {
                self.dismiss(&trial);
            }
        }
        self.confirm(&mut causes, &before)?;
        let causes = self.rank(causes);
        for (place, trial) in causes.iter().enumerate() {
            let finding = self.conclude(&facts, trial, &before, place)?;
            self.answer.findings.push(finding);
        }
        self.answer.findings.extend(bound::bounds(&facts));
        Ok(())
    }

    /// The candidates that the scenario accepts, as many as the budget has.
    fn accepted(&mut self, candidates: Vec<Candidate>, most: usize) -> Vec<Trial> {
        let Question { source, sets, parsed, .. } = self.question;
        let mut trials: Vec<Trial> = Vec::new();
        for candidate in candidates {
            let outcome = if trials.len() >= most {
                "The budget does not reach so far.".to_owned()
            } else {
                match change(source, sets, parsed, &candidate.removals) {
                    Ok(change) => {
                        let (runs, effects) = (Vec::new(), Vec::new());
                        trials.push(Trial { candidate, change, runs, effects, score: 0.0 });
                        continue;
                    }
                    Err(NoChange::AlreadySo) => continue,
                    Err(NoChange::Refused(reason)) => format!("The scenario refuses it: {reason}"),
                }
            };
            self.answer.tried.push(Tried {
                cause: candidate.cause.name(),
                subject: candidate.subject,
                set: candidate.removals.into_iter().next().unwrap_or_default(),
                outcome,
                score: None,
            });
        }
        self.changes += trials.len();
        trials
    }

    /// Every trial on the first seed.
    fn screen(&mut self, trials: &mut [Trial], before: &[Vec<Measure>]) -> Result<(), Stopped> {
        let changed: Vec<_> = trials.iter().map(|trial| (&trial.change.parsed, 0..1)).collect();
        let results = self.run_all(&changed)?;
        for (trial, result) in trials.iter_mut().zip(results) {
            trial.runs = self.measured(&trial.change.parsed, &result);
            trial.judge(before);
        }
        Ok(())
    }

    /// Faults may hide each other: takes all away, then all but one. Returns those that
    /// count only so, and raises their scores.
    fn together(
        &mut self,
        trials: &mut [Trial],
        before: &[Vec<Measure>],
    ) -> Result<Vec<(Cause, String)>, Stopped> {
        let fault = |trial: &&Trial| trial.candidate.cause.class() == Class::Fault;
        let faults: Vec<usize> = (0..trials.len()).filter(|&at| fault(&&trials[at])).collect();
        if faults.len() < 2 {
            return Ok(Vec::new());
        }
        let Some((all, best_alone)) = self.without(trials, &faults, before)? else {
            return Ok(Vec::new());
        };
        if all < best_alone + MORE.max(LEAST) {
            return Ok(Vec::new());
        }
        let mut hidden = Vec::new();
        let room = self.question.budget.for_causes().saturating_sub(self.changes);
        for &left in faults.iter().take(room.min(6)) {
            let others: Vec<usize> = faults.iter().copied().filter(|&at| at != left).collect();
            let Some((rest, _)) = self.without(trials, &others, before)? else { continue };
            let needed = all - rest;
            if needed > LEAST && needed > trials[left].score {
                trials[left].score = needed;
                let candidate = &trials[left].candidate;
                hidden.push((candidate.cause, candidate.subject.clone()));
            }
        }
        Ok(hidden)
    }

    /// What throughput gains where several are taken away at once, on the first seed, and by the best
    /// of them alone. A delay that comes with more throughput was not hidden: it was not there.
    fn without(
        &mut self,
        trials: &[Trial],
        which: &[usize],
        before: &[Vec<Measure>],
    ) -> Result<Option<(f64, f64)>, Stopped> {
        let Question { source, sets, parsed, .. } = self.question;
        let both: Vec<String> =
            which.iter().flat_map(|&at| trials[at].change.sets.clone()).collect();
        let Ok(change) = change(source, sets, parsed, &[both]) else { return Ok(None) };
        self.changes += 1;
        let result = self.run_all(&[(&change.parsed, 0..1)])?.remove(0);
        let after = self.measured(&change.parsed, &result);
        let throughput = |at: &usize| best_throughput(&trials[*at].effects);
        let alone = which.iter().map(throughput).fold(0.0, f64::max);
        Ok(Some((best_throughput(&effects(&before[..1], &after)), alone)))
    }

    /// The other seeds of what helped on the first.
    fn confirm(&mut self, trials: &mut [Trial], before: &[Vec<Measure>]) -> Result<(), Stopped> {
        let more = 1..self.question.budget.seeds;
        let changed: Vec<_> =
            trials.iter().map(|trial| (&trial.change.parsed, more.clone())).collect();
        let results = self.run_all(&changed)?;
        for (trial, result) in trials.iter_mut().zip(results) {
            trial.runs.extend(self.measured(&trial.change.parsed, &result));
            let together = trial.score;
            trial.judge(before);
            // What counts only beside others has no effect of its own to confirm.
            if trial.score < LEAST && together > LEAST {
                trial.score = together;
            }
        }
        Ok(())
    }

    /// Causes by what they are worth; behaviour only where no fault explains as much.
    fn rank(&mut self, mut trials: Vec<Trial>) -> Vec<Trial> {
        trials.sort_by(|one, other| {
            other.score.total_cmp(&one.score).then(one.candidate.cause.cmp(&other.candidate.cause))
        });
        // Faults explain behaviour, and what slow start does explains that another control does better.
        let plainer: Vec<(Cause, Vec<Effect>)> = (trials.iter())
            .filter(|trial| trial.score > LEAST)
            .map(|trial| (trial.candidate.cause, trial.effects.clone()))
            .collect();
        let mut behaviours = 0;
        let mut kept = Vec::new();
        // Who is granted uplink unasked is kept awake: what DRX explains is not the grant's.
        let drx = score_of(&trials, Cause::Drx);
        for trial in trials {
            let access = trial.candidate.cause == Cause::UplinkAccess;
            if access && trial.score < 1.5 * drx + 2.5 * LEAST {
                self.dismiss(&trial);
                continue;
            }
            let behaviour = trial.candidate.cause.class() == Class::Behaviour;
            let explained = behaviour && (behaviours > 0 || explained(&trial, &plainer));
            let least = if behaviour { 1.5 * LEAST } else { LEAST };
            if trial.score <= least || explained {
                self.dismiss(&trial);
                continue;
            }
            behaviours += usize::from(behaviour);
            kept.push(trial);
        }
        kept
    }

    fn dismiss(&mut self, trial: &Trial) {
        let largest = trial.effects.iter().max_by(|one, other| {
            let size = |effect: &Effect| effect.metric.weight() * effect.mean().abs();
            size(one).total_cmp(&size(other))
        });
        let outcome = match largest {
            Some(effect) if effect.mean().abs() >= 0.005 => format!(
                "{} of {} went from {:.3} to {:.3}: no better on the whole, or noise, or others \
                 explain more.",
                effect.metric.name(),
                effect.subject,
                effect.before,
                effect.after
            ),
            _ => "It changed nothing.".to_owned(),
        };
        self.answer.tried.push(Tried {
            cause: trial.candidate.cause.name(),
            subject: trial.candidate.subject.clone(),
            set: trial.change.sets.clone(),
            outcome,
            score: Some(trial.score),
        });
    }

    /// A cause, with the advice that obtained most.
    fn conclude(
        &mut self,
        facts: &Facts<'_>,
        trial: &Trial,
        before: &[Vec<Measure>],
        place: usize,
    ) -> Result<Finding, Stopped> {
        let removed = best(&trial.effects).map(|(effect, _)| effect);
        let mut evidence = trial.candidate.evidence.clone();
        if let Some(effect) = removed {
            evidence.push_str(&format!(
                " Without it, {} of {} goes from {:.3} to {:.3} ({} in {} of {} seeds).",
                effect.metric.name(),
                effect.subject,
                effect.before,
                effect.after,
                if effect.mean() > 0.0 { "better" } else { "worse" },
                (effect.confidence() * effect.improvements.len() as f64).round(),
                effect.improvements.len(),
            ));
        }
        let mut finding = Finding {
            cause: trial.candidate.cause.name(),
            subject: trial.candidate.subject.clone(),
            confidence: removed.map_or(0.0, Effect::confidence),
            evidence,
            advice: None,
            set: None,
            gain: None,
            costs: Vec::new(),
            removal: trial.change.sets.clone(),
            removed: removed.map(Gain::of),
            score: trial.score,
        };
        if place < self.question.budget.advised {
            self.advise(facts, trial, before, &mut finding)?;
        }
        Ok(finding)
    }

    /// Tries the cures and keeps the best that does no harm.
    fn advise(
        &mut self,
        facts: &Facts<'_>,
        trial: &Trial,
        before: &[Vec<Measure>],
        finding: &mut Finding,
    ) -> Result<(), Stopped> {
        let Question { source, sets, parsed, budget, .. } = self.question;
        let Some((wanted, _)) = best(&trial.effects) else { return Ok(()) };
        let mut kept: Option<f64> = None;
        for cure in cures::cures(facts, &trial.candidate, &trial.change.sets) {
            let Ok(change) = change(source, sets, parsed, &cure.alternatives) else { continue };
            let known = change.sets == trial.change.sets;
            if !known && self.changes >= budget.changes {
                continue;
            }
            let effects = if known {
                trial.effects.clone()
            } else {
                self.changes += 1;
                let result = self.run_all(&[(&change.parsed, 0..budget.seeds)])?.remove(0);
                effects(before, &self.measured(&change.parsed, &result))
            };
            let same = |effect: &&Effect| {
                effect.subject == wanted.subject && effect.metric == wanted.metric
            };
            let Some(obtained) = effects.iter().find(same) else { continue };
            let harm =
                worst_throughput(&effects) < -HARM && trial.candidate.cause != Cause::CongestionMix;
            let helped = obtained.mean() > LEAST && obtained.confidence() >= 2.0 / 3.0;
            if helped && !harm && kept.is_none_or(|kept| obtained.mean() > kept + MORE) {
                kept = Some(obtained.mean());
                finding.advice = Some(cure.advice);
                finding.set = Some(change.sets);
                finding.gain = Some(Gain::of(obtained));
                let worse = effects.iter().filter(|effect| effect.mean() < -HARM);
                finding.costs = worse.map(Gain::of).collect();
                if obtained.mean() > 0.8 * wanted.mean() {
                    break;
                }
            } else {
                let outcome = if harm {
                    format!("It costs {} of a throughput.", percent(-worst_throughput(&effects)))
                } else {
                    "It does not help enough.".to_owned()
                };
                self.answer.tried.push(Tried {
                    cause: trial.candidate.cause.name(),
                    subject: finding.subject.clone(),
                    set: change.sets,
                    outcome,
                    score: Some(obtained.mean()),
                });
            }
        }
        Ok(())
    }

    /// Runs scenarios with ranges of seeds, counted from the first.
    fn run_all(
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
                let seed = |index| self.question.seed.wrapping_add(index as u64);
                seeds.clone().map(move |index| Job { scenario, seed: seed(index) })
            })
            .collect();
        let before = self.runs;
        let progress = &mut *self.progress;
        let mut results =
            batch::run(&jobs, self.question.threads, &mut |done| progress(before + done))?
                .into_iter();
        self.runs += jobs.len();
        Ok(wanted.iter().map(|(_, seeds)| results.by_ref().take(seeds.len()).collect()).collect())
    }

    fn measured(&self, parsed: &Parsed, runs: &[RunSummary]) -> Vec<Vec<Measure>> {
        runs.iter().map(|run| measures(&parsed.scenario, run)).collect()
    }
}

impl Trial {
    fn judge(&mut self, before: &[Vec<Measure>]) {
        self.effects = effects(&before[..self.runs.len()], &self.runs);
        // How TCP behaves is a cause where it carries too little. Where it waits in its own queue
        // the queue is the cause, and another behaviour a cure.
        if self.candidate.cause.class() == Class::Behaviour {
            self.effects.retain(|effect| effect.metric.is_throughput());
        }
        self.score = score(&self.effects);
    }
}

/// What a cause's removal is worth; 0 if it is none of these.
fn score_of(trials: &[Trial], cause: Cause) -> f64 {
    let scores = trials.iter().filter(|trial| trial.candidate.cause == cause);
    scores.map(|trial| trial.score).fold(0.0, f64::max)
}

/// Something plainer obtains at least half of what the change of behaviour obtains, in the same
/// figure.
fn explained(behaviour: &Trial, plainer: &[(Cause, Vec<Effect>)]) -> bool {
    let Some((wanted, _)) = best(&behaviour.effects) else { return true };
    let control = behaviour.candidate.cause == Cause::CongestionControl;
    let plainer = plainer.iter().filter(|(cause, _)| match cause.class() {
        Class::Fault => true,
        Class::Behaviour => control && *cause != Cause::CongestionControl,
        Class::Bound => false,
    });
    plainer.flat_map(|(_, effects)| effects).any(|effect| {
        let same = effect.subject == wanted.subject && effect.metric == wanted.metric;
        same && effect.mean() > 0.5 * wanted.mean()
    })
}
