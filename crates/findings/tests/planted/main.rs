//! Scenarios with a planted cause, drawn at random and verified by removing it. Does the
//! explanation name the cause first? Does it name both of two? Does it name nothing where nothing
//! is wrong, or where a symptom is harmless? `make findings` draws the whole set, `make test` one
//! minute's worth of it.
//!
//! `emulation-host` is not among them: a simulation has no host that could be late. It is planted
//! in the record of an emulated run, in `tests/python/test_emulated_findings.py`.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]

mod bases;
mod decoys;
mod draft;
mod outcome;
mod plants;

use std::collections::{BTreeMap, BTreeSet};

use airpath_findings::{Budget, Explanation, Question, explain};
use airpath_scenario::Parsed;
use airpath_testing::in_parallel;

use bases::{ALL, Known, WIRE, base};
use decoys::DECOYS;
use draft::{Draft, Random};
use outcome::{SEEDS, largest_gain, worth};
use plants::{Plant, plants};

/// The harm from which a cause counts: 15 %.
const MILD: f64 = 0.14;
/// The harm from which a cause is severe: 50 %.
const SEVERE: f64 = 0.41;
/// The most that removing a decoy may change.
const NOTHING: f64 = 0.04;

/// A scenario, and what is wrong with it.
struct Case {
    ill: Draft,
    causes: Vec<&'static str>,
    worth: f64,
    /// The cause whose symptom is present without harm.
    decoy: Option<&'static str>,
}

impl Plant {
    /// Whether anything that the plant brings along is no cause in itself: less than the engine's
    /// own minimum of 10 %.
    fn is_alone(&self, well: &Draft) -> bool {
        self.brings.is_none_or(|remove| {
            let mut without = well.clone();
            remove(&mut without);
            largest_gain(well, &without, &SEEDS) < 0.095
        })
    }
}

/// A base for a plant, and the drafts made from it at any severity.
struct Ground {
    plant: &'static Plant,
    base: Draft,
    known: Known,
    seed: u64,
}

impl Ground {
    fn drawn(random: &mut Random, plant: &'static Plant) -> Self {
        let access = random.one_of(plant.into);
        let (base, known) = base(random, access, plant.flows, plant.up);
        Self { plant, base, known, seed: random.seed() }
    }

    /// The scenario without the cause, and with it.
    fn at(&self, severity: f64) -> (Draft, Draft) {
        let mut well = self.base.clone();
        let random = &mut Random::new(self.seed, "edit");
        let edit = (self.plant.edit)(random, severity, &mut well, &self.known);
        let mut ill = well.clone();
        edit(&mut ill);
        (well, ill)
    }
}

/// Causes that concern the behaviour of TCP or of a test are judged by throughput, not by delay.
const BEHAVIOUR: &[&str] = &["slow-start-exit", "test-too-short", "congestion-control"];

/// Draws until one of the plants of a cause does as much harm as it should: mild or severe.
/// Severity is found by bisection.
fn planted(random: &mut Random, plants: &[&'static Plant], severe: bool) -> Option<Case> {
    for _ in 0..40 {
        let plant = random.one_of(plants);
        let ground = Ground::drawn(random, plant);
        let rates = BEHAVIOUR.contains(&plant.cause);
        let on_first = |(well, ill): &(Draft, Draft)| worth(ill, well, &SEEDS[..1], rates);
        // Where the greatest severity does no harm, none does.
        if on_first(&ground.at(1.0)) < 0.5 * MILD {
            continue;
        }
        let (mut low, mut high) = (0.0, 1.0);
        for step in 0..6 {
            let severity = match (severe, step) {
                (true, 0) => random.between(0.5, 1.0),
                _ => (low + high) / 2.0,
            };
            let drafts = ground.at(severity);
            let first = on_first(&drafts);
            if first > 0.5 * MILD {
                let (well, ill) = drafts;
                let worth = worth(&ill, &well, &SEEDS, rates);
                let counts = worth >= if severe { SEVERE } else { MILD };
                if counts && (severe || worth < SEVERE) && plant.is_alone(&well) {
                    return Some(Case { ill, causes: vec![plant.cause], worth, decoy: None });
                }
            }
            if first < if severe { SEVERE } else { MILD } {
                low = severity;
            } else {
                high = severity;
            }
        }
    }
    None
}

/// Draws until the symptom is harmless.
fn decoy(random: &mut Random, plant: &'static Plant) -> Option<Case> {
    for _ in 0..8 {
        let (well, ill) = Ground::drawn(random, plant).at(0.5);
        let worth = worth(&ill, &well, &SEEDS, false);
        if worth < NOTHING {
            return Some(Case { ill, causes: Vec::new(), worth, decoy: Some(plant.cause) });
        }
    }
    None
}

/// Causes that can occur together.
const BESIDE: &[&str] = &[
    "random-loss",
    "policer",
    "shaper",
    "bufferbloat",
    "short-queue",
    "reordering",
    "stalling-host",
    "receive-window",
    "send-buffer",
    "application-limited",
    "cross-traffic",
    "ack-starvation",
    "ack-batching",
    "radio-loss",
    "handover",
];

/// Two causes, each of which matters either with the other or without it.
fn two(random: &mut Random) -> Option<Case> {
    for _ in 0..60 {
        let access = random.one_of(ALL);
        let (one, other) = (random.one_of(BESIDE), random.one_of(BESIDE));
        let fits = |plant: &&Plant, cause| plant.cause == cause && plant.into.contains(&access);
        let Some(first) = plants().find(|plant| fits(plant, one)) else { continue };
        let Some(second) = plants().find(|plant| fits(plant, other)) else { continue };
        // Both would take the same place.
        let places = [["short-queue", "bufferbloat"], ["receive-window", "send-buffer"]];
        if one == other || places.iter().any(|all| all.contains(&one) && all.contains(&other)) {
            continue;
        }
        let (mut well, known) = base(random, access, 1, None);
        let mut edit =
            |plant: &Plant, severity: f64| (plant.edit)(random, severity, &mut well, &known);
        let first_edit = edit(first, 0.55);
        let second_edit = edit(second, 0.55);
        let with = |edits: &[&plants::Edit]| {
            let mut draft = well.clone();
            edits.iter().for_each(|edit| edit(&mut draft));
            draft
        };
        let both = with(&[&first_edit, &second_edit]);
        let counts = |this: &plants::Edit, other: &plants::Edit| {
            worth(&both, &with(&[other]), &SEEDS, false) > MILD
                || worth(&with(&[this]), &well, &SEEDS, false) > MILD
        };
        let all = worth(&both, &well, &SEEDS, false);
        if all < 2.0 * MILD
            || !counts(&first_edit, &second_edit)
            || !counts(&second_edit, &first_edit)
        {
            continue;
        }
        return Some(Case { ill: both, causes: vec![one, other], worth: all, decoy: None });
    }
    None
}

fn healthy(random: &mut Random, index: usize) -> Case {
    let access = ALL[index % ALL.len()];
    let (mut well, known) = base(random, access, 3, None);
    if random.chance(0.5) {
        decoys::equip(random, &mut well, &known);
    }
    if random.chance(0.3) {
        limited_by_its_application(random, &mut well, &known);
    }
    Case { ill: well, causes: Vec::new(), worth: 0.0, decoy: None }
}

/// A stream or pings that need less than the path can carry.
fn limited_by_its_application(random: &mut Random, draft: &mut Draft, known: &Known) {
    draft.flows = match random.below(3) {
        0 => vec![plants::ping(random.one_of(&["up", "down"]), 200.0)],
        1 => vec![plants::datagrams(known.rate_mbps * random.between(0.1, 0.7))],
        _ => vec![
            plants::datagrams(known.rate_mbps * random.between(0.1, 0.7)),
            plants::ping("up", 200.0),
        ],
    };
}

fn explained(draft: &Draft) -> Explanation {
    let parsed = draft.parsed();
    explain(&question(&parsed, 1), &mut |_| true).expect("not stopped")
}

/// The causes that were named, without the bounds.
fn named(answer: &Explanation) -> Vec<&'static str> {
    let findings = answer.findings.iter().map(|finding| finding.cause);
    findings.filter(|cause| !cause.ends_with("-capacity")).collect()
}

/// Results of all cases.
#[derive(Default)]
struct Tally {
    /// Counts by planted cause and by the cause ranked first.
    confusion: BTreeMap<(&'static str, &'static str), u32>,
    /// Counts by cause, of mild and severe ones.
    planted: BTreeMap<&'static str, [u32; 2]>,
    /// Right answers and all answers: for mild and severe causes, decoys, pairs, and healthy
    /// scenarios.
    mild: [u32; 2],
    severe: [u32; 2],
    decoys: [u32; 2],
    pairs: [u32; 2],
    healthy: [u32; 2],
    runs: Vec<usize>,
}

impl Tally {
    fn judge(&mut self, case: &Case, answer: &Explanation, healthy: bool) {
        let number = self.runs.len();
        match case.causes[..] {
            [] => keep("FINDINGS_KEEP_HEALTHY", &format!("healthy-{number:03}"), &case.ill),
            _ => {
                let name = format!("planted-{number:03}-{}", case.causes.join("-"));
                keep("FINDINGS_KEEP", &name, &case.ill);
            }
        }
        self.runs.push(answer.runs);
        let said = named(answer);
        let first = said.first().copied().unwrap_or("nothing");
        let right = match case.causes[..] {
            [] => said.iter().all(|&cause| cause == "application-limited"),
            [cause] => first == cause,
            _ => case.causes.iter().all(|cause| said.contains(cause)),
        };
        let kind = match case.causes[..] {
            [] if healthy => &mut self.healthy,
            [] => &mut self.decoys,
            [_] if case.worth < SEVERE => &mut self.mild,
            [_] => &mut self.severe,
            _ => &mut self.pairs,
        };
        kind[0] += u32::from(right);
        kind[1] += 1;
        if let [cause] = case.causes[..] {
            let [mild, severe] = self.planted.entry(cause).or_default();
            *(if case.worth < SEVERE { mild } else { severe }) += 1;
        }
        if let [] | [_] = case.causes[..] {
            let planted = case.causes.first().copied().unwrap_or("nothing");
            *self.confusion.entry((planted, first)).or_default() += 1;
        }
        if !right {
            tell(case, answer);
        }
    }

    fn tell(&self) {
        println!("\n| planted | ranked first | times |\n|---|---|--:|");
        for ((planted, first), times) in &self.confusion {
            println!("| {planted} | {first} | {times} |");
        }
        let of = |what: &str, [right, all]: [u32; 2]| println!("{what}: {right} of {all}");
        for (cause, [mild, severe]) in &self.planted {
            println!("{cause}: {mild} mild, {severe} severe");
        }
        of("mild causes ranked first", self.mild);
        of("severe causes ranked first", self.severe);
        of("decoys of which nothing was said", self.decoys);
        of("pairs of which both were named", self.pairs);
        of("healthy scenarios of which nothing was said", self.healthy);
        let all = self.runs.len().max(1);
        println!("{:.1} simulations each", self.runs.iter().sum::<usize>() as f64 / all as f64);
    }

    /// Planted causes that were ranked first, and all planted causes.
    fn first(&self) -> [u32; 2] {
        [0, 1].map(|at| self.mild[at] + self.severe[at])
    }

    /// Like `first`, including decoys, for which nothing must be named.
    fn first_or_left_alone(&self) -> [u32; 2] {
        [0, 1].map(|at| self.first()[at] + self.decoys[at])
    }
}

/// Keeps a scenario in the directory that a variable of the environment names, if it does: for
/// `--test advice`, or to be emulated.
fn keep(variable: &str, name: &str, draft: &Draft) {
    let Ok(directory) = std::env::var(variable) else { return };
    let directory = std::path::Path::new(&directory);
    std::fs::create_dir_all(directory).expect("a directory can be made there");
    std::fs::write(directory.join(name).with_extension("toml"), draft.text())
        .expect("it can be written");
}

fn tell(case: &Case, answer: &Explanation) {
    println!(
        "\nMISS: {:?} (decoy {:?}, worth {:.2}); said was {:?} after {} runs",
        case.causes,
        case.decoy,
        case.worth,
        named(answer),
        answer.runs
    );
    for finding in &answer.findings {
        println!(
            "   {:.2} {} {}: {}",
            finding.score, finding.cause, finding.subject, finding.evidence
        );
    }
    for tried in &answer.tried {
        println!(
            "   tried {} {} {:?}: {} {:?}",
            tried.cause, tried.subject, tried.set, tried.outcome, tried.score
        );
    }
    println!("{}", case.ill.text());
}

/// Draws and explains this many scenarios, on all cores, and then judges them in order. Each has
/// its own random stream.
fn judged(
    what: &str,
    count: u64,
    seed: u64,
    tally: &mut Tally,
    draw: impl Fn(usize, &mut Random) -> Option<Case> + Sync,
) {
    let of = |index: usize| {
        let case = draw(index, &mut Random::new(seed, &format!("{what}-{index}")))?;
        let answer = explained(&case.ill);
        eprintln!("{what} {} of {count}: {:?}: {:?}", index + 1, case.causes, named(&answer));
        Some((case, answer))
    };
    for (case, answer) in in_parallel(count as usize, of).into_iter().flatten() {
        tally.judge(&case, &answer, what == "healthy");
    }
}

/// This many scenarios with one cause, of which a quarter are decoys if a wanted cause has any.
fn singles(count: u64, seed: u64, tally: &mut Tally) {
    let causes: BTreeSet<&str> = plants().map(|plant| plant.cause).filter(is_wanted).collect();
    let causes: Vec<&str> = causes.into_iter().collect();
    let decoys: Vec<&Plant> = DECOYS.iter().filter(|plant| is_wanted(&plant.cause)).collect();
    judged("planted", count, seed, tally, |index, random| {
        if index % 4 == 3 && !decoys.is_empty() {
            let plant = decoys[(seed as usize * 7 + index / 4) % decoys.len()];
            let case = decoy(random, plant);
            if case.is_none() {
                println!("no decoy of {} was found", plant.cause);
            }
            return case;
        }
        let turn = index - index / 4;
        let cause = causes[(turn + seed as usize * 5) % causes.len()];
        let all: Vec<&Plant> = plants().filter(|plant| plant.cause == cause).collect();
        let severe = (turn / causes.len() + turn % causes.len()).is_multiple_of(2);
        let case = planted(random, &all, severe).or_else(|| planted(random, &all, !severe));
        if case.is_none() {
            println!("no plant of {cause} had an effect");
        }
        case
    });
}

/// Whether a cause is among those that `FINDINGS_CAUSES` names, separated by commas; by default
/// all are.
fn is_wanted(cause: &&str) -> bool {
    let wanted = std::env::var("FINDINGS_CAUSES").ok();
    wanted.is_none_or(|wanted| wanted.split(',').any(|one| one == *cause))
}

fn question(parsed: &Parsed, threads: usize) -> Question<'_> {
    Question { parsed, seeds: &SEEDS, known: &[], budget: Budget::QUICK, threads }
}

#[test]
fn what_is_planted_is_named_first_and_a_decoy_is_not() {
    let mut tally = Tally::default();
    singles(24, 1, &mut tally);
    tally.tell();
    let [right, all] = tally.first_or_left_alone();
    assert!(all >= 20, "{all} were drawn");
    assert!(right * 100 >= all * 90, "{right} of {all}");
}

#[test]
fn both_of_two_causes_are_named() {
    let mut tally = Tally::default();
    judged("two", 4, 1, &mut tally, |_, random| two(random));
    tally.tell();
    assert!(tally.pairs[0] * 100 >= tally.pairs[1] * 75, "{:?}", tally.pairs);
}

#[test]
fn where_nothing_is_wrong_nothing_is_said() {
    let mut tally = Tally::default();
    judged("healthy", 6, 1, &mut tally, |index, random| Some(healthy(random, index)));
    tally.tell();
    assert_eq!(tally.healthy[0], tally.healthy[1]);
}

#[test]
fn an_explanation_does_not_depend_on_the_number_of_threads() {
    let (mut draft, _) = base(&mut Random::new(3, "threads"), WIRE[0], 2, None);
    draft.there.push(draft::stage("loss").with("probability", "0.005"));
    let parsed = draft.parsed();
    let with = |threads| {
        let answer = explain(&question(&parsed, threads), &mut |_| true);
        serde_json::to_string(&answer.expect("not stopped")).expect("strings and numbers")
    };
    assert_eq!(with(1), with(7));
}

#[test]
fn it_can_be_stopped() {
    let (draft, _) = base(&mut Random::new(4, "stop"), WIRE[0], 1, None);
    let parsed = draft.parsed();
    assert!(explain(&question(&parsed, 2), &mut |_| false).is_err());
}

/// A number from the environment (`FINDINGS_COUNT` or `FINDINGS_SEED`), or else the default.
fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a whole number"))
}

/// Run by `make findings`.
#[test]
#[ignore = "takes minutes"]
fn many() {
    let (count, seed) =
        (from_environment("FINDINGS_COUNT", 100), from_environment("FINDINGS_SEED", 1));
    let pairs = from_environment("FINDINGS_PAIRS", 15);
    let well = from_environment("FINDINGS_HEALTHY", 15);
    let mut tally = Tally::default();
    singles(count, seed, &mut tally);
    judged("two", pairs, seed, &mut tally, |_, random| two(random));
    judged("healthy", well, seed, &mut tally, |index, random| Some(healthy(random, index)));
    tally.tell();
    let [first, planted] = tally.first();
    let [right, all] = tally.first_or_left_alone();
    println!(
        "FINDINGS_SEED={seed} FINDINGS_COUNT={count}: {first} of {planted} planted causes are ranked first; with \
         decoys, {right} of {all} are ranked first or left alone; both of two in {} of {}; nothing false on {} of \
         {} healthy ones.",
        tally.pairs[0], tally.pairs[1], tally.healthy[0], tally.healthy[1]
    );
    let causes: BTreeSet<&str> = plants().map(|plant| plant.cause).filter(is_wanted).collect();
    let missing: Vec<_> =
        causes.iter().filter(|&cause| !tally.planted.contains_key(cause)).collect();
    assert!(count < 80 || planted >= 60, "{planted} were planted");
    assert!(count < 80 || missing.is_empty(), "never planted: {missing:?}");
    assert!(u64::from(tally.pairs[1]) == pairs && u64::from(tally.healthy[1]) == well);
    assert!(first * 100 >= planted * 95 && right * 100 >= all * 95, "ranked first");
    assert!(tally.pairs[0] * 100 >= tally.pairs[1] * 80, "both of two");
    assert!(tally.healthy[0] * 100 >= tally.healthy[1] * 95, "nothing false");
}
