//! Checks of hosts whose CPU is taken away, or shared.

use crate::problem::Problems;
use crate::proxy;
use crate::stage::Stage;

/// Refuses a CPU that is taken away nearly all the time: the run would never end.
pub(crate) fn check(stages: &[Stage], problems: &mut Problems) {
    for stage in stages {
        let (length, period) =
            (stage.fields.time("stall_ms"), stage.fields.time("stall_period_ms"));
        if let (Some(length), Some(period)) = (length, period)
            && length + period / 100 > period
        {
            problems.add_with_help(
                stage.fields.origin_of("stall_ms"),
                "the stall leaves the CPU less than 1 % of each period",
                format!("`stall_period_ms` is {}", period.as_millis_f64()),
            );
        }
    }
}

/// Refuses a CPU that is shared by two stages of one direction, by stages on both sides of a proxy,
/// or by stages whose stall keys differ.
pub(crate) fn check_cpus(down: &[Stage], up: &[Stage], problems: &mut Problems) {
    refuse_twice("[[path.down]]", down, problems);
    refuse_twice("[[path.up]]", up, problems);
    let sections = proxy::sections(down, up);
    let section_of = |stage: &Stage| {
        let holds = |stages: &[Stage]| stages.iter().any(|one| std::ptr::eq(one, stage));
        sections.iter().position(|section| holds(section.down) || holds(section.up))
    };
    for (name, below) in named(down) {
        let Some((_, above)) = named(up).find(|&(other, _)| other == name) else { continue };
        let first = above.fields.origin_of("cpu");
        if section_of(below) != section_of(above) {
            problems.add_with_help(
                below.fields.origin_of("cpu"),
                format!("stages on both sides of a proxy cannot share CPU {name:?}"),
                format!("the other stage is at {first}; give each side a name of its own"),
            );
        } else if let Some(key) = STALL_KEYS.into_iter().find(|key| {
            let [one, other] = [below, above].map(|stage| stage.fields.setting(key));
            one != other
        }) {
            problems.add_with_help(
                below.fields.origin_of("cpu"),
                format!("the stages that share CPU {name:?} must have the same `{key}`"),
                format!("the other stage is at {first}; a stall of the CPU stops both"),
            );
        }
    }
}

/// Keys that say when a CPU is taken away.
const STALL_KEYS: [&str; 6] = [
    "stalls",
    "stall_ms",
    "stall_period_ms",
    "stall_offset_ms",
    "stall_mean_between_ms",
    "stall_distribution",
];

/// Stages that name their CPU.
fn named(stages: &[Stage]) -> impl Iterator<Item = (&str, &Stage)> {
    stages.iter().filter_map(|stage| Some((stage.fields.text("cpu")?, stage)))
}

fn refuse_twice(header: &str, stages: &[Stage], problems: &mut Problems) {
    for (at, (name, stage)) in named(stages).enumerate() {
        let Some((_, first)) = named(stages).take(at).find(|&(other, _)| other == name) else {
            continue;
        };
        problems.add_with_help(
            stage.fields.origin_of("cpu"),
            format!("{header} has a second stage with CPU {name:?}; at most one is allowed"),
            format!("the first one is at {}", first.fields.origin_of("cpu")),
        );
    }
}
