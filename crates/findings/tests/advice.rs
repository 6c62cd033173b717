//! Advice holds: applied with its own settings on other seeds, it achieves what it promised, makes
//! nothing worse, and is not given again.
//!
//! `make findings` follows all advice of every shipped scenario, of every variant of the studies,
//! and of the planted scenarios that were kept. `ADVICE_ONLY=nsa,5g-drx` restricts this to
//! scenarios with one of these in their names; with `ADVICE_LOG=FILE` the results are written
//! there, and a later call continues where this one ended.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]

mod cases;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::sync::Mutex;

use airpath_findings::batch::{self, Job};
use airpath_findings::compare::{Effect, effects, losses};
use airpath_findings::{Budget, Finding, Gain, Measure, Metric, Question, explain, with_costs};
use airpath_scenario::{Edit, KeyPath, Parsed, parse};
use airpath_testing::in_parallel;
use cases::Case;
use serde::{Deserialize, Serialize};

/// Seeds that no explanation has seen.
const OTHERS: [u64; 3] = [1001, 1002, 1003];
/// A result within this share of the promised value is still as promised.
const CLOSE: f64 = 0.15;
/// A change for the worse up to this share is noise.
const NOISE: f64 = 0.02;

/// What became of one finding.
#[derive(Serialize, Deserialize)]
struct Followed {
    case: String,
    cause: String,
    subject: String,
    advice: String,
    /// Null where the advice has no settings; nothing below is known then.
    set: Option<Vec<String>>,
    outcome: Option<Outcome>,
}

#[derive(Serialize, Deserialize)]
struct Outcome {
    figure: String,
    before: f64,
    obtained: f64,
    promised: f64,
    ci95: [f64; 2],
    as_promised: bool,
    /// The figure itself became worse than it was.
    worse: bool,
    again: bool,
    /// Costs that are higher than stated, beyond their interval and `CLOSE`.
    dearer: Vec<String>,
    /// Throughputs that fell in every seed and by more than noise, and retransmissions that rose
    /// much in every seed, if the costs do not mention them.
    harmed: Vec<String>,
}

impl Outcome {
    /// Half the width of the interval, as a share of the promised value.
    fn half_width(&self) -> f64 {
        (self.ci95[1] - self.ci95[0]) / 2.0 / self.promised.max(1e-9)
    }

    fn holds(&self) -> bool {
        self.as_promised && !self.worse && !self.again
    }
}

impl Followed {
    fn line(&self) -> String {
        let head = format!("{:34} {:20} {:18}", self.case, self.cause, self.subject);
        let Some(outcome) = &self.outcome else {
            return format!("{head} no settings: {}", self.advice);
        };
        let Outcome { figure, before, obtained, promised, ci95: [low, high], .. } = outcome;
        let mark = |is: bool, words: &'static str| if is { words } else { "" };
        format!(
            "{head} {figure:26} {before:9.3} -> {obtained:9.3}, promised {promised:9.3} [{low:.3}, {high:.3}] \
             ± {:.1} %{}{}{}{}",
            100.0 * outcome.half_width(),
            mark(!outcome.as_promised, " NOT AS PROMISED"),
            mark(outcome.worse, " WORSE"),
            mark(outcome.again, " AGAIN"),
            if outcome.dearer.is_empty() {
                String::new()
            } else {
                format!(" COSTS MORE: {}", outcome.dearer.join(", "))
            } + &if outcome.harmed.is_empty() {
                String::new()
            } else {
                format!(" HARMS {}", outcome.harmed.join(", "))
            },
        )
    }
}

/// A scenario with edits.
fn edited(case: &Case, edits: &[Edit]) -> Parsed {
    let parsed = parse(&case.source(), &case.sets).expect("it is valid");
    parsed.document.with(edits).expect("what was advised is valid")
}

fn explained(case: &Case, edits: &[Edit]) -> Vec<Finding> {
    let parsed = edited(case, edits);
    let question = Question {
        parsed: &parsed,
        seeds: &Budget::QUICK.seeds_of(parsed.scenario.run.seed, 1),
        known: &[],
        budget: Budget::QUICK,
        threads: 1,
    };
    explain(&question, &mut |_| true).expect("not stopped").findings
}

fn on_other_seeds(case: &Case, edits: &[Edit]) -> Vec<Vec<Measure>> {
    let Parsed { mut scenario, .. } = edited(case, edits);
    scenario.run.ack_table = false;
    scenario.run.radio_log = false;
    let jobs = OTHERS.map(|seed| Job { scenario: &scenario, seed, accounted: false });
    let runs = batch::run(&jobs, 1, &mut |_| true).expect("not stopped");
    runs.iter().map(|run| with_costs(&scenario, run)).collect()
}

/// Whether a finding gives the advice for the same cause once more, even with another value.
fn is_again(finding: &Finding, found: &Finding) -> bool {
    let keys = |one: &Finding| -> Option<Vec<KeyPath>> {
        Some(one.set.as_ref()?.iter().map(|edit| edit.key.clone()).collect())
    };
    let same = found.cause == finding.cause && found.subject == finding.subject;
    found.set.is_some() && (found.set == finding.set || same && keys(found) == keys(finding))
}

fn outcome(case: &Case, finding: &Finding, edits: &[Edit], gain: &Gain) -> Outcome {
    let (before, after) = (on_other_seeds(case, &[]), on_other_seeds(case, edits));
    let changed = effects(&before, &after);
    let same = |one: &&Effect| one.subject == gain.flow && one.metric.name() == gain.metric;
    // Two figures of one flow may have the same name: p95 of the RTT of TCP and of a ping.
    let effect = changed.iter().find(same).expect("what improved is measured on every seed");
    // Nothing is promised of a transfer that does not complete.
    let promised = gain.after.unwrap_or(effect.after);
    let within = |ci95: Option<[f64; 2]>, value| {
        ci95.is_none_or(|[low, high]| low <= value && value <= high)
    };
    let inside = within(gain.ci95, effect.after);
    let lost = losses(&before, &after, NOISE);
    let half_as_many = 1.5f64.ln();
    let again = lost
        .iter()
        .filter(|effect| effect.metric == Metric::SentAgain && effect.mean() <= -half_as_many);
    let fell = |effect: &&Effect| {
        (effect.metric.is_throughput() || effect.metric == Metric::SentAgain)
            && effect.mean() < -NOISE
            && effect.improvements.iter().all(|&one| one < 0.0)
            && !finding
                .costs
                .iter()
                .any(|cost| cost.flow == effect.subject && cost.metric == effect.metric.name())
    };
    let harmed = changed.iter().chain(again).filter(fell).map(|effect| {
        format!(
            "{} of {} by {:.1} %",
            effect.metric.words(),
            effect.subject,
            -100.0 * effect.mean()
        )
    });
    let dearer = finding.costs.iter().filter_map(|cost| {
        let same = |one: &&Effect| one.subject == cost.flow && one.metric.name() == cost.metric;
        let effect = lost.iter().find(same)?;
        let inside = within(cost.ci95, effect.after);
        let told = cost.after.unwrap_or(effect.after);
        let far = effect.metric.improvement(told, effect.after) < -CLOSE;
        (far && !inside).then(|| {
            format!(
                "{} of {} {:.3} instead of {:.3}",
                effect.metric.words(),
                cost.flow,
                effect.after,
                told
            )
        })
    });
    let dearer = dearer.collect();
    let found = explained(case, edits);
    Outcome {
        dearer,
        figure: format!("{} {}", gain.metric, gain.flow),
        before: effect.before,
        obtained: effect.after,
        promised,
        ci95: gain.ci95.unwrap_or([promised; 2]),
        as_promised: inside || (effect.after / promised - 1.0).abs() <= CLOSE,
        worse: effect.mean() < -NOISE,
        again: found.iter().any(|found| is_again(finding, found)),
        harmed: harmed.collect(),
    }
}

/// Follows the advice of one scenario.
fn follow(case: &Case) -> Vec<Followed> {
    let findings = explained(case, &[]);
    let causes = findings.iter().filter(|finding| !finding.cause.ends_with("-capacity"));
    let followed = |finding: &Finding| Followed {
        case: case.name.clone(),
        cause: finding.cause.to_owned(),
        subject: finding.subject.clone(),
        advice: finding.advice.clone().unwrap_or_default(),
        set: finding.set.as_ref().map(|edits| edits.iter().map(Edit::to_string).collect()),
        outcome: (finding.set.as_ref())
            .zip(finding.gain.as_ref())
            .map(|(edits, gain)| outcome(case, finding, edits, gain)),
    };
    causes.map(followed).collect()
}

/// The results of an earlier call: the case of each line and its findings.
fn kept(log: Option<&str>) -> Vec<(String, Vec<Followed>)> {
    let text = log.and_then(|log| fs::read_to_string(log).ok()).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a line of this test")).collect()
}

/// Follows all advice of these scenarios, on all cores.
fn follow_all(cases: &[Case], log: Option<&str>) -> Vec<Followed> {
    let known = kept(log);
    let writing = Mutex::new(0);
    let of = |index: usize| {
        let case = &cases[index];
        if known.iter().any(|(name, _)| *name == case.name) {
            *writing.lock().expect("no thread panics while it writes") += 1;
            return None;
        }
        let followed = follow(case);
        let mut ended = writing.lock().expect("as above");
        *ended += 1;
        eprintln!("{} of {}: {}", *ended, cases.len(), case.name);
        if let Some(log) = log {
            let line = serde_json::to_string(&(&case.name, &followed)).expect("only text");
            let file = fs::OpenOptions::new().create(true).append(true).open(log);
            writeln!(file.expect("the log can be written"), "{line}").expect("written");
        }
        Some(followed)
    };
    let fresh = in_parallel(cases.len(), of);
    let mut known: BTreeMap<String, Vec<Followed>> = known.into_iter().collect();
    let mut all = Vec::new();
    for (case, fresh) in cases.iter().zip(fresh) {
        let followed = fresh.unwrap_or_else(|| known.remove(&case.name).unwrap_or_default());
        for one in &followed {
            println!("  {}", one.line());
        }
        if followed.is_empty() {
            println!("  {:34} no cause", case.name);
        }
        all.extend(followed);
    }
    tell(&all);
    all
}

fn tell(all: &[Followed]) {
    let outcomes: Vec<&Outcome> = all.iter().filter_map(|one| one.outcome.as_ref()).collect();
    let count = |of: fn(&Outcome) -> bool| outcomes.iter().filter(|one| of(one)).count();
    println!(
        "{} of {} pieces of advice obtain what they promised; {} make it worse, {} harm another flow, {} cost \
         more than was told, {} come again; the median half-width of the intervals is {:.1} % of the promised figure; {} of {} causes \
         have advice without settings.",
        count(|one| one.as_promised),
        outcomes.len(),
        count(|one| one.worse),
        count(|one| !one.harmed.is_empty()),
        count(|one| !one.dearer.is_empty()),
        count(|one| one.again),
        100.0 * median_half_width(&outcomes),
        all.len() - outcomes.len(),
        all.len(),
    );
}

fn median_half_width(outcomes: &[&Outcome]) -> f64 {
    let mut widths: Vec<f64> = outcomes.iter().map(|one| one.half_width()).collect();
    widths.sort_by(f64::total_cmp);
    widths.get(widths.len() / 2).copied().unwrap_or(0.0)
}

#[test]
fn advice_holds_on_other_seeds() {
    let names = [
        "bufferbloat",
        "small-window",
        "jitter-reorder",
        "double-nat",
        "one-way-firewall",
        "lte-2012",
    ];
    let mut cases = cases::shipped();
    cases.retain(|case| names.contains(&case.name.as_str()));
    for followed in follow_all(&cases, None) {
        assert!(!followed.advice.is_empty(), "{}", followed.line());
        if let Some(outcome) = &followed.outcome {
            assert!(outcome.holds() && outcome.harmed.is_empty(), "{}", followed.line());
        }
    }
}

/// Run by `make findings`.
#[test]
#[ignore = "takes an hour"]
fn all_advice_holds() {
    let mut cases = cases::all();
    if let Ok(only) = std::env::var("ADVICE_ONLY") {
        let parts: Vec<&str> = only.split(',').collect();
        cases.retain(|case| parts.iter().any(|part| case.name.contains(part)));
    }
    let log = std::env::var("ADVICE_LOG").ok().filter(|log| !log.is_empty());
    let all = follow_all(&cases, log.as_deref());
    let outcomes: Vec<&Outcome> = all.iter().filter_map(|one| one.outcome.as_ref()).collect();
    let right = outcomes.iter().filter(|one| one.as_promised).count();
    assert!(right * 100 >= outcomes.len() * 95);
    assert!(!outcomes.iter().any(|one| one.worse));
    assert!(!outcomes.iter().any(|one| one.again));
    assert!(median_half_width(&outcomes) < 0.1);
    assert!((all.len() - outcomes.len()) * 100 <= all.len() * 15);
    assert!(all.iter().all(|one| !one.advice.is_empty()));
}
