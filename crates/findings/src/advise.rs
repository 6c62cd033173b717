//! Advice: what the user can do against a cause, tried before it is given.

use airpath_scenario::{Edit, Scenario};
use airpath_sim::Stopped;

use crate::candidate::{Change, change};
use crate::cause::Cause;
use crate::compare::{Effect, LEAST, MORE, best, effects, losses, worst_throughput};
use crate::cures::{self, Cure};
use crate::explain::Lab;
use crate::finding::{Finding, Gain, Tried};
use crate::measure::{Measure, Metric};
use crate::observed::Observed;
use crate::price::{HARM, Price, taken};
use crate::trial::{Advised, Trial};

/// The basis of a recommendation: the scenario as it is, or with what is advised against the causes that
/// hide this one.
struct Ground {
    edits: Vec<Edit>,
    /// Description of that basis; empty for the scenario as it is.
    told: String,
    runs: Vec<Vec<Measure>>,
}

/// What ranks a recommendation among others.
#[derive(Clone, Copy)]
struct Merit {
    /// Whether it improves what suffers most, and whether its cause disappears with it.
    rank: [bool; 2],
    /// What it gains, and what it costs.
    mean: f64,
    costs: f64,
}

impl Merit {
    /// Whether it is better than `was`. A recommendation without cost is kept unless a trade gains twice
    /// as much.
    fn is_better(self, was: Self) -> bool {
        let is_better = match (self.costs > 0.0, was.costs > 0.0) {
            (false, true) => 2.0 * self.mean > was.mean,
            (true, false) => self.mean > 2.0 * was.mean,
            _ => self.mean - self.costs > was.mean - was.costs + MORE,
        };
        self.rank > was.rank || self.rank == was.rank && is_better
    }
}

/// The figures that suffer from a cause. Advice may improve any of them; the one that suffers most is
/// preferred.
struct Suffering<'t> {
    most: &'t Effect,
    all: Vec<&'t Effect>,
}

impl<'t> Suffering<'t> {
    fn of(effects: &'t [Effect], most: &'t Effect) -> Self {
        let suffers = |effect: &&Effect| counts(effect) && effect.mean() > LEAST;
        Self { most, all: effects.iter().filter(suffers).collect() }
    }

    fn has(&self, effect: &Effect) -> bool {
        self.all.iter().any(|one| is_alike(one, effect))
    }

    /// What an effect is worth: helping the figure that suffers most comes first, then the gain.
    fn worth(&self, effect: &Effect) -> (bool, f64) {
        (is_alike(effect, self.most) && helps(effect), effect.mean())
    }

    /// The effect on a figure that suffers which is worth most.
    fn most<'e>(&self, effects: &'e [Effect]) -> Option<&'e Effect> {
        effects.iter().filter(|effect| self.has(effect)).max_by(|one, other| {
            let (one, other) = (self.worth(one), self.worth(other));
            one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
        })
    }
}

/// What a cure did.
struct Outcome {
    change: Change,
    runs: Vec<Vec<Measure>>,
    /// Effects compared with the ground, and with the scenario as it is.
    effects: Vec<Effect>,
    all: Vec<Effect>,
    /// Number of seeds on which a cure that may be advised runs.
    seeds: usize,
}

impl Outcome {
    fn new(
        change: Change,
        runs: Vec<Vec<Measure>>,
        trial: &Trial,
        ground: &Ground,
        before: &[Vec<Measure>],
    ) -> Self {
        // The effect of the removal was measured before.
        let is_removal = trial.beside.is_none() && change.edits == trial.change.edits;
        let effects = match is_removal {
            true => trial.effects.clone(),
            false => effects(&ground.runs, &runs),
        };
        let all = self::effects(before, &runs);
        Self { change, runs, effects, all, seeds: before.len() }
    }
}

/// How good a cure is.
struct Verdict<'o> {
    /// The effect for which it would be advised, and the one that is promised.
    obtained: &'o Effect,
    promised: Option<&'o Effect>,
    price: Price<'o>,
    merit: Merit,
    /// Whether it helps beyond noise on all seeds and harms nothing.
    is_sure: bool,
}

impl Verdict<'_> {
    /// Whether nothing else needs to be tried.
    fn is_enough(&self, cause: Cause, wanted: &Effect) -> bool {
        // One congestion control may achieve as much as another, and still give a reason to go on
        // to that.
        cause != Cause::CongestionMix
            && self.price.is_nothing()
            && self.merit.rank == [true; 2]
            && self.merit.mean > 0.8 * wanted.mean()
    }
}

const NO_KEY: &str = "the scenario has no key for this remedy";
const NO_BUDGET: &str = "the limit of extra runs was reached before any could be tried; --explain full allows more runs";

impl Lab<'_, '_> {
    /// Tries the cures and keeps the best that does no harm. If there is none, returns why.
    pub(crate) fn advise(
        &mut self,
        observed: &Observed<'_>,
        trial: &Trial,
        before: &[Vec<Measure>],
        place: usize,
        finding: &mut Finding,
    ) -> Result<String, Stopped> {
        let parsed = self.question.parsed;
        let Some((wanted, _)) = best(&trial.effects) else { return Ok(NO_KEY.to_owned()) };
        self.open_share(place);
        let ground = match self.ground(observed, trial, before)? {
            Ok(ground) => ground,
            Err(because) => return Ok(because.to_owned()),
        };
        if trial.beside.is_some() && !self.still_counts(trial, &ground)? {
            return Ok(self.nothing_more(&ground, before, finding).to_owned());
        }
        // The run with which it was compared showed the symptom.
        let seen = trial.beside.as_ref().and_then(|beside| beside.observed());
        let observed = seen.as_ref().unwrap_or(observed);
        let suffering = Suffering::of(&trial.effects, wanted);
        let mut because = NO_KEY;
        // The harmful advice that did the least harm.
        let mut least: Option<(f64, String)> = None;
        let mut kept: Option<Merit> = None;
        for cure in cures::cures(observed, &trial.candidate, trial.removal()) {
            // A higher rate is for somebody else to grant: it is only suggested if nothing else
            // helps.
            let asked = trial.candidate.cause == Cause::Policer
                && cure.alternatives.iter().any(|own| own == trial.removal());
            if asked && kept.is_some() {
                continue;
            }
            let with = |own: &Vec<Edit>| [&ground.edits[..], own].concat();
            let alternatives: Vec<_> = cure.alternatives.iter().map(with).collect();
            let Ok(change) = change(parsed, parsed, &alternatives) else { continue };
            let Some(runs) = self.tried(&change, trial, &ground, &suffering)? else {
                because = NO_BUDGET;
                continue;
            };
            let outcome = Outcome::new(change, runs, trial, &ground, before);
            let Some(verdict) = self.verdict(&outcome, trial, &suffering) else { continue };
            let is_better = kept.is_none_or(|was| verdict.merit.is_better(was));
            if let Some(promised) = verdict.promised.filter(|_| verdict.is_sure && is_better) {
                kept = Some(verdict.merit);
                let (told, trade) = (ground.told(verdict.obtained), verdict.price.told());
                finding.advice = Some(format!("{}{trade}{told}", cure.advice));
                finding.gain = Some(Gain::of(promised));
                finding.costs = losses(before, &outcome.runs, HARM).iter().map(Gain::of).collect();
                let is_enough = verdict.is_enough(trial.candidate.cause, wanted);
                finding.set = Some(self.remember(trial, &ground, outcome));
                if is_enough {
                    break;
                }
                continue;
            }
            let outcome_told = if let Some(harmed) = verdict.price.harm() {
                let (lost, taken) = (harmed.mean(), taken(harmed));
                if least.as_ref().is_none_or(|(least, _)| lost > *least) {
                    let what = cure.advice.trim_end_matches('.');
                    least = Some((lost, format!("with the best one, \"{what}\", {taken}")));
                }
                format!("Not advised: {taken}.")
            } else {
                because = "those that were tried help too little, or not reliably";
                "Not advised: it helps too little, or no more than other advice.".to_owned()
            };
            self.answer.tried.push(Tried {
                cause: trial.candidate.cause.name(),
                subject: finding.subject.clone(),
                score: Some(verdict.obtained.mean()),
                gain: Some(Gain::of(verdict.obtained)),
                set: outcome.change.edits,
                outcome: outcome_told,
            });
        }
        Ok(least.map_or_else(|| because.to_owned(), |(_, harmed)| harmed))
    }

    /// Judges what a cure did. `None` if it changed no figure that suffers.
    fn verdict<'o>(
        &self,
        outcome: &'o Outcome,
        trial: &Trial,
        suffering: &Suffering<'_>,
    ) -> Option<Verdict<'o>> {
        let Outcome { runs, effects, all, .. } = outcome;
        let obtained = suffering.most(effects)?;
        // If the removal would help as much again, the same advice would be given again.
        let removed: Option<Vec<Vec<Measure>>> = trial.runs.iter().cloned().collect();
        let is_gone = removed.filter(|removed| removed.len() == runs.len()).is_none_or(|removed| {
            let left = self::effects(runs, &removed);
            let mut left = left.iter().filter(|effect| suffering.has(effect));
            left.all(|effect| effect.metric.worth(effect.mean()) <= LEAST)
        });
        let (is_preferred, mean) = suffering.worth(obtained);
        // What is promised is relative to the scenario as it is. Behind another cause this one may
        // not have done harm yet: then the promise is what both achieve together.
        let itself = all.iter().find(|effect| is_alike(effect, obtained) && effect.mean() > 0.0);
        let mut price = self.price(effects, obtained);
        let mut promised = itself;
        if trial.beside.is_some() {
            promised = itself.filter(|effect| helps(effect)).or(best(all).map(|(one, _)| one));
            price = price.or(self.price(all, promised.unwrap_or(obtained)));
        }
        let is_sure = runs.len() == outcome.seeds && helps(obtained) && price.harm().is_none();
        let merit = Merit { rank: [is_preferred, is_gone], mean, costs: price.costs() };
        Some(Verdict { obtained, promised, price, merit, is_sure })
    }

    /// The runs of a change, known or new. If a change is useless on the first seed, no other seed
    /// is run. `None` if the budget is exhausted.
    fn tried(
        &mut self,
        change: &Change,
        trial: &Trial,
        ground: &Ground,
        suffering: &Suffering<'_>,
    ) -> Result<Option<Vec<Vec<Measure>>>, Stopped> {
        if let Some(known) = self.known(&change.parsed.scenario, Some(trial), ground.runs.len()) {
            return Ok(Some(known));
        }
        if !self.reaches(ground.runs.len()) {
            return Ok(None);
        }
        self.changes += 1;
        let mut result = self.run_all(&[(&change.parsed, 0..1)])?.remove(0);
        let first = effects(&ground.runs[..1], &self.measured(&change.parsed, &result));
        let suffers = first.iter().filter(|effect| suffering.has(effect));
        let gain = suffers.map(Effect::mean).fold(0.0, f64::max);
        let scenario = &self.question.parsed.scenario;
        let harms = || Price::of(&first, scenario, gain).harm().is_some();
        if gain > LEAST && (worst_throughput(&first) >= -3.0 * HARM || !harms()) {
            result.extend(self.run_all(&[(&change.parsed, 1..ground.runs.len())])?.remove(0));
        }
        Ok(Some(self.measured(&change.parsed, &result)))
    }

    /// Divides the remaining changes equally among the causes that need advice.
    fn open_share(&mut self, place: usize) {
        let budget = self.question.budget;
        let left = budget.changes.saturating_sub(self.changes);
        let causes = self.causes.min(budget.advised).saturating_sub(place);
        self.share = if causes == 0 { 0 } else { self.changes + left.div_ceil(causes) };
    }

    fn reaches(&self, seeds: usize) -> bool {
        self.changes < self.share && self.affords(seeds)
    }

    /// Whether a hidden cause still counts when the advice against the others is followed, which
    /// may do less than their removal. It is checked on one seed; if the budget is exhausted, it is
    /// assumed to count.
    fn still_counts(&mut self, trial: &Trial, ground: &Ground) -> Result<bool, Stopped> {
        let parsed = self.question.parsed;
        let both = [&ground.edits[..], trial.removal()].concat();
        let Ok(change) = change(parsed, parsed, &[both]) else { return Ok(true) };
        if change.parsed.scenario == trial.change.parsed.scenario || !self.reaches(1) {
            return Ok(true);
        }
        self.changes += 1;
        let result = self.run_all(&[(&change.parsed, 0..1)])?.remove(0);
        let effects = effects(&ground.runs[..1], &self.measured(&change.parsed, &result));
        Ok(best(&effects).is_some_and(|(_, score)| score > LEAST))
    }

    /// The advice against the others is sufficient. Returns why there would be none.
    fn nothing_more(
        &self,
        ground: &Ground,
        before: &[Vec<Measure>],
        finding: &mut Finding,
    ) -> &'static str {
        let all = effects(before, &ground.runs);
        let promised = best(&all).map(|(promised, _)| (promised, self.price(&all, promised)));
        if let Some((promised, price)) = promised.filter(|(_, price)| price.harm().is_none()) {
            let (with, trade) = (&ground.told, price.told());
            finding.advice =
                Some(format!("No further setting is needed: {with} is enough.{trade}"));
            finding.set = Some(ground.edits.clone());
            finding.gain = Some(Gain::of(promised));
            finding.costs = losses(before, &ground.runs, HARM).iter().map(Gain::of).collect();
        }
        "the settings against the other causes do not help overall"
    }

    /// The price of a change that gains this.
    fn price<'e>(&self, effects: &'e [Effect], obtained: &Effect) -> Price<'e> {
        let gain = obtained.metric.worth(obtained.mean());
        Price::of(effects, &self.question.parsed.scenario, gain)
    }

    /// The results of a scenario on this many seeds, if it has run already.
    fn known(
        &self,
        scenario: &Scenario,
        trial: Option<&Trial>,
        seeds: usize,
    ) -> Option<Vec<Vec<Measure>>> {
        let of_trial = trial.filter(|trial| trial.change.parsed.scenario == *scenario);
        let beside = trial.and_then(|trial| trial.beside.as_ref());
        let of_beside = beside.filter(|beside| beside.change.parsed.scenario == *scenario);
        let all = |runs: &Vec<Option<Vec<Measure>>>| runs.get(..seeds)?.iter().cloned().collect();
        (of_trial.and_then(|trial| all(&trial.runs)))
            .or_else(|| of_beside.and_then(|beside| all(&beside.runs)))
            .or_else(|| {
                let same = |one: &&Advised| one.scenario == *scenario;
                let advised = self.advised.iter().find(same)?;
                advised.runs.get(..seeds).map(<[_]>::to_vec)
            })
    }

    /// Keeps what is advised for causes that hide behind this one, and returns its edits.
    fn remember(&mut self, trial: &Trial, ground: &Ground, outcome: Outcome) -> Vec<Edit> {
        let Outcome { change, runs, .. } = outcome;
        let candidate = trial.candidate.clone();
        let own = change.edits[ground.edits.len()..].to_vec();
        self.advised.retain(|one| !one.candidate.is_like(&candidate));
        self.advised.push(Advised { candidate, own, scenario: change.parsed.scenario, runs });
        change.edits
    }

    /// The scenario as it is; or what is advised against the causes that hide this one and, if
    /// nothing has been advised yet, what can be done against them. Otherwise why there is nothing.
    fn ground(
        &mut self,
        observed: &Observed<'_>,
        trial: &Trial,
        before: &[Vec<Measure>],
    ) -> Result<Result<Ground, &'static str>, Stopped> {
        let Some(beside) = &trial.beside else {
            return Ok(Ok(Ground {
                edits: Vec::new(),
                told: String::new(),
                runs: before.to_vec(),
            }));
        };
        let parsed = self.question.parsed;
        let (mut own, mut told) = (Vec::new(), Vec::new());
        for (other, removal) in &beside.others {
            if let Some(advised) = self.advised.iter().find(|one| one.candidate.is_like(other)) {
                told.push(format!("the advice for {} above", other.told()));
                own.extend(advised.own.clone());
                continue;
            }
            // Only its removal, if the user can do that.
            let all = cures::cures(observed, other, removal);
            let itself = |cure: &&Cure| cure.alternatives.contains(removal);
            let Some(cure) = all.iter().find(itself).or(all.first()) else {
                return Ok(Err("it hides behind a cause for which there is no advice"));
            };
            let Ok(change) = change(parsed, parsed, &cure.alternatives) else {
                return Ok(Err("it hides behind a cause for which there is no advice"));
            };
            told.push(format!(
                "the remedy for {} ({})",
                other.told(),
                cure.advice.trim_end_matches('.')
            ));
            own.extend(change.edits);
        }
        let told = told.join("; and ");
        let Ok(change) = change(parsed, parsed, &[own]) else {
            return Ok(Err("the scenario rejects the settings against the other causes"));
        };
        let scenario = &change.parsed.scenario;
        let known = (*scenario == beside.change.parsed.scenario)
            .then(|| beside.runs.iter().cloned().collect::<Option<Vec<_>>>())
            .flatten()
            .or_else(|| self.known(scenario, None, before.len()));
        let runs = match known {
            Some(runs) => runs,
            None if !self.reaches(2 * before.len()) => return Ok(Err(NO_BUDGET)),
            None => {
                self.changes += 1;
                let result = self.run_all(&[(&change.parsed, 0..before.len())])?.remove(0);
                self.measured(&change.parsed, &result)
            }
        };
        Ok(Ok(Ground { edits: change.edits, told, runs }))
    }
}

impl Ground {
    /// What the advice needs besides itself, and what it adds to that.
    fn told(&self, obtained: &Effect) -> String {
        let [alone, both] = obtained.figures();
        if self.told.is_empty() {
            return String::new();
        }
        format!(
            " This advice helps only together with {}; the settings below contain both. With that advice alone {} is \
             {alone}; with both it is {both}.",
            self.told,
            obtained.name()
        )
    }
}

/// Whether two effects are on one figure.
fn is_alike(one: &Effect, other: &Effect) -> bool {
    one.subject == other.subject && one.metric == other.metric
}

fn helps(effect: &Effect) -> bool {
    effect.metric.worth(effect.mean()) > LEAST && effect.beyond_noise()
}

/// How identical flows share is chance, so it does not count.
fn counts(effect: &Effect) -> bool {
    effect.metric != Metric::Shared
}
