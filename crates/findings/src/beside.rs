//! Causes hidden behind others: each matters only if another one is removed as well.

use airpath_record::RunSummary;
use airpath_scenario::Edit;
use airpath_sim::Stopped;

use crate::candidate::{Change, change};
use crate::cause::{Cause, Class};
use crate::causes;
use crate::compare::{LEAST, MORE};
use crate::explain::{Lab, Question};
use crate::measure::Measure;
use crate::observed::Observed;
use crate::price::harms;
use crate::trial::{Beside, Trial};

/// A scenario with several causes removed, and the result of its first seed.
struct Without {
    change: Change,
    measured: Vec<Vec<Measure>>,
    run: Option<RunSummary>,
}

impl Lab<'_, '_> {
    /// Queues of both directions: managing one does no good while the other, which holds the
    /// acknowledgements, stays long. So if neither counts alone, or only at the cost of throughput,
    /// both are tried together.
    pub(crate) fn try_both_queues(
        &mut self,
        trials: &mut Vec<Trial>,
        before: &[Vec<Measure>],
    ) -> Result<(), Stopped> {
        let Question { parsed, seeds, .. } = *self.question;
        let long = |trial: &&Trial| trial.candidate.cause == Cause::Bufferbloat;
        let queues: Vec<&Trial> = trials.iter().filter(long).collect();
        let Some(first) = queues.first() else { return Ok(()) };
        let way = |trial: &Trial| trial.candidate.subject().direction();
        let Some(other) = queues.iter().find(|other| way(other) != way(first)) else {
            return Ok(());
        };
        if queues
            .iter()
            .any(|trial| trial.score > LEAST && !harms(&trial.effects, &parsed.scenario))
        {
            return Ok(());
        }
        let both = first.candidate.with(&first.change.edits, &other.candidate, &other.change.edits);
        let Ok(change) = change(parsed, parsed, &both.removals) else { return Ok(()) };
        let mut together = [Trial::new(both, change, first.first, seeds.len())];
        self.changes += 1;
        self.screen(&mut together, before)?;
        // If one alone achieves as much at the same cost, only that one is reported.
        let alone = queues.iter().map(|trial| trial.score).fold(LEAST, f64::max);
        if together[0].score > alone + MORE || !harms(&together[0].effects, &parsed.scenario) {
            trials.extend(together);
        } else {
            self.dismiss(&together[0]);
        }
        Ok(())
    }

    /// Removes the largest cause, and tries what the run without it shows. If nothing matters
    /// alone, removes all at once and puts each back.
    pub(crate) fn hidden(
        &mut self,
        causes: &[Trial],
        rest: &[Trial],
        before: &[Vec<Measure>],
    ) -> Result<Vec<Trial>, Stopped> {
        let fault = |trial: &&Trial| trial.class() == Class::Fault;
        match causes.iter().find(fault) {
            Some(largest) => self.behind(largest, causes),
            None => self.together(&rest.iter().filter(fault).collect::<Vec<_>>(), before),
        }
    }

    /// Changes left for hidden causes.
    fn room(&self) -> usize {
        let left = self.question.budget.for_causes().saturating_sub(self.changes);
        // One of them is confirmed, and one advice with it.
        let kept = 2 * self.question.seeds.len();
        left.min(self.affordable().saturating_sub(kept as u64) as usize)
    }

    fn behind(&mut self, best: &Trial, causes: &[Trial]) -> Result<Vec<Trial>, Stopped> {
        let parsed = self.question.parsed;
        let (Some(run), Some(measured)) = (&best.run, &best.runs[best.first]) else {
            return Ok(Vec::new());
        };
        let observed = Observed::new(&best.change.parsed, run);
        let mut behind: Vec<Trial> = Vec::new();
        for candidate in causes::candidates(&observed) {
            let alone = causes.iter().any(|trial| trial.candidate.is_like(&candidate));
            let cured = best.candidate.cause == candidate.cause;
            // A cure for one kind of queue turns it into the other.
            let queues = [Cause::ShortQueue, Cause::Bufferbloat];
            let opposite = queues.contains(&candidate.cause)
                && queues.contains(&best.candidate.cause)
                && best.candidate.subjects == candidate.subjects;
            // A longer ring achieved as much as a faster processor or bus would.
            let relieved = matches!(candidate.cause, Cause::HostProcessor | Cause::ModemCeiling)
                && causes.iter().any(|cause| {
                    let known = &cause.candidate;
                    known.cause == Cause::ReceiveRing && known.subjects == candidate.subjects
                });
            let known = alone || cured || opposite || relieved;
            if candidate.cause.class() != Class::Fault || known {
                continue;
            }
            if behind.len() >= self.room() {
                break;
            }
            let with_best = |edits: &Vec<Edit>| [&best.change.edits[..], edits].concat();
            let alternatives: Vec<_> = candidate.removals.iter().map(with_best).collect();
            let Ok(change) = change(parsed, &best.change.parsed, &alternatives) else {
                continue;
            };
            if behind.iter().any(|trial| trial.change.parsed.scenario == change.parsed.scenario) {
                continue;
            }
            let seeds = self.question.seeds.len();
            let mut runs = vec![None; seeds];
            runs[best.first] = Some(measured.clone());
            let mut trial = Trial::new(candidate, change, best.first, seeds);
            let change = best.change.clone();
            let others = vec![(best.candidate.clone(), change.edits.clone())];
            let own = trial.change.edits[change.edits.len()..].to_vec();
            trial.beside = Some(Beside { change, others, own, run: Some(run.clone()), runs });
            behind.push(trial);
        }
        self.changes += behind.len();
        self.screen(&mut behind, &[])?;
        let (hidden, shown): (Vec<_>, Vec<_>) =
            behind.into_iter().partition(|trial| trial.score > LEAST);
        shown.iter().for_each(|trial| self.dismiss(trial));
        Ok(hidden)
    }

    fn together(
        &mut self,
        faults: &[&Trial],
        before: &[Vec<Measure>],
    ) -> Result<Vec<Trial>, Stopped> {
        if faults.len() < 2 || self.room() < 2 {
            return Ok(Vec::new());
        }
        let Some(all) = self.without(faults, before)? else { return Ok(Vec::new()) };
        let worth = crate::compare::score(&crate::compare::effects(&before[..1], &all.measured));
        if worth < LEAST {
            return Ok(Vec::new());
        }
        let mut hidden = Vec::new();
        for (at, left) in faults.iter().enumerate().take(self.room()) {
            let others: Vec<&Trial> = faults
                .iter()
                .enumerate()
                .filter(|&(other, _)| other != at)
                .map(|(_, one)| *one)
                .collect();
            let Some(beside) = self.without(&others, before)? else { continue };
            let (candidate, change) = (left.candidate.clone(), all.change.clone());
            let mut trial = Trial::new(candidate, change, 0, self.question.seeds.len());
            let mut runs = vec![None; self.question.seeds.len()];
            runs[0] = beside.measured.into_iter().next();
            trial.runs[0] = all.measured.first().cloned();
            let others = others
                .iter()
                .map(|other| (other.candidate.clone(), other.change.edits.clone()))
                .collect();
            let own = left.change.edits.clone();
            let (change, run) = (beside.change, beside.run);
            trial.beside = Some(Beside { change, others, own, run, runs });
            trial.judge(&[]);
            if trial.score > LEAST {
                hidden.push(trial);
            }
        }
        Ok(hidden)
    }

    /// The first seed with several causes removed at once; `None` if the scenario refuses that.
    fn without(
        &mut self,
        which: &[&Trial],
        before: &[Vec<Measure>],
    ) -> Result<Option<Without>, Stopped> {
        debug_assert!(!before.is_empty(), "there is something to compare with");
        let parsed = self.question.parsed;
        let both = which.iter().flat_map(|trial| trial.change.edits.clone()).collect();
        let Ok(change) = change(parsed, parsed, &[both]) else { return Ok(None) };
        self.changes += 1;
        let result = self.run_all(&[(&change.parsed, 0..1)])?.remove(0);
        let measured = self.measured(&change.parsed, &result);
        Ok(Some(Without { change, measured, run: result.into_iter().next() }))
    }

    /// Runs the other seeds of a hidden cause, with and without it.
    pub(crate) fn confirm_hidden(
        &mut self,
        hidden: Vec<Trial>,
        found: &[Trial],
    ) -> Result<Vec<Trial>, Stopped> {
        let mut confirmed = Vec::new();
        for mut trial in hidden {
            let beside = trial.beside.as_mut().expect("it hides beside something");
            // Often this has already run with all seeds.
            let ran = found.iter().find(|one| one.change.edits == beside.change.edits);
            if let Some(ran) = ran {
                beside.runs = ran.runs[..trial.runs.len()].to_vec();
            }
            let missing = |runs: &[Option<Vec<Measure>>]| {
                (0..runs.len()).filter(|&at| runs[at].is_none()).collect::<Vec<_>>()
            };
            let (with, without) = (missing(&beside.runs), missing(&trial.runs));
            if !self.affords(with.len() + without.len()) {
                confirmed.push(trial);
                continue;
            }
            let of = |parsed, seeds: &[usize]| {
                seeds.iter().map(|&seed| (parsed, seed..seed + 1)).collect::<Vec<_>>()
            };
            let (before, after) = (beside.change.parsed.clone(), trial.change.parsed.clone());
            let wanted = [of(&before, &with), of(&after, &without)].concat();
            let mut results = self.run_all(&wanted)?.into_iter();
            for seed in with {
                let run = results.next().unwrap_or_default();
                beside.runs[seed] = self.measured(&before, &run).pop();
            }
            for seed in without {
                let run = results.next().unwrap_or_default();
                trial.runs[seed] = self.measured(&after, &run).pop();
            }
            trial.judge(&[]);
            confirmed.push(trial);
        }
        Ok(confirmed)
    }
}
