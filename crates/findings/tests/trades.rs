//! What a recommendation may take from some flows to give to others, and what is not the effect of a
//! cause.
#![allow(clippy::disallowed_methods)]

mod explained;

use airpath_findings::{Budget, Explanation, Finding};
use airpath_scenario::Edit;
use explained::explained;

/// One download has filled the base station's queue when another one begins, which gets almost
/// nothing.
const FIRST_COME: &str = r#"
[run]
duration_s = 9
[[path.down]]
stage = "delay"
delay_ms = 4.26
[[path.up]]
stage = "delay"
delay_ms = 4.26
[radio]
preset = "lte-5"
channel = { sinr_db = 11.3 }
[[flow]]
id = "first"
congestion = "reno"
kind = "bulk"
[[flow]]
id = "second"
congestion = "cubic"
kind = "bulk"
start_s = 1.48
"#;

/// BBR leaves Reno little of a short queue.
const STARVED: &str = r#"
[run]
duration_s = 9
[[path.down]]
stage = "link"
rate_mbps = 28.27
queue_packets = 41
[[path.down]]
stage = "delay"
delay_ms = 6.36
[[path.up]]
stage = "link"
rate_mbps = 4.17
queue_packets = 10
[[path.up]]
stage = "delay"
delay_ms = 6.36
[[flow]]
id = "bbr"
kind = "bulk"
congestion = "bbr"
[[flow]]
id = "reno"
kind = "bulk"
congestion = "reno"
start_s = 0.13
[[flow]]
kind = "ping"
interval_ms = 100
"#;

/// CUBIC and BBR share evenly. With CUBIC alone, the flow that comes later has a fifth of the first
/// one's rate when the run ends.
const EVEN: &str = r#"
[run]
duration_s = 8.7
[[path.down]]
stage = "link"
rate_mbps = 8.25
queue_packets = 167
[[path.down]]
stage = "delay"
delay_ms = 36.83
[[path.up]]
stage = "delay"
delay_ms = 36.83
[[flow]]
id = "flow-0"
congestion = "cubic"
kind = "bulk"
[[flow]]
id = "flow-1"
congestion = "bbr"
kind = "bulk"
start_s = 1.74
"#;

/// A file takes half of the link for half of the run.
const BESIDE_A_FILE: &str = r#"
[run]
duration_s = 13
[[path.down]]
stage = "link"
rate_mbps = 7
queue_packets = 60
[[path.down]]
stage = "delay"
delay_ms = 20
[[path.up]]
stage = "delay"
delay_ms = 20
[[flow]]
id = "bulk"
kind = "bulk"
[[flow]]
id = "file"
kind = "file"
size_bytes = 3000000
"#;

/// The factor by which a figure grew.
fn times(gain: &airpath_findings::Gain) -> f64 {
    gain.after.expect("it is known") / gain.before.expect("it is known")
}

fn of<'a>(explanation: &'a Explanation, cause: &str) -> Option<&'a Finding> {
    explanation.findings.iter().find(|finding| finding.cause == cause)
}

#[test]
fn who_had_most_may_pay_and_the_advice_says_so() {
    let explanation = explained(FIRST_COME, Budget::QUICK);
    let finding = of(&explanation, "bufferbloat").expect("a long queue");
    let advice = finding.advice.as_deref().expect("advice");
    assert!(advice.contains("It is a trade-off: the goodput of first goes from"), "{advice}");
    assert!(finding.set.is_some());
    let is = |flow: &'static str| move |one: &&airpath_findings::Gain| one.flow == flow;
    let paid = finding.costs.iter().find(is("first")).expect("a cost");
    let gain = finding.gain.as_ref().filter(|gain| is("second")(gain)).expect("a gain");
    assert_eq!((paid.metric, gain.metric), ("goodput_mbps", "goodput_mbps"));
    assert!(times(gain) > 5.0, "{gain:?}");
    assert!(paid.after > gain.after.map(|gained| 0.9 * gained), "{paid:?}, {gain:?}");
}

/// As base stations have them.
#[test]
fn a_queue_for_each_flow_is_tried_on_links() {
    let explanation = explained(STARVED, Budget::QUICK);
    let finding = of(&explanation, "bufferbloat").expect("a long queue");
    let advice = finding.advice.as_deref().expect("advice");
    assert!(advice.starts_with("Give each flow a queue of its own at down.0.link"), "{advice}");
    let fair = |edit: &Edit| *edit == Edit::new("path.down.0.aqm", "fq_codel");
    assert!(finding.set.iter().flatten().any(fair), "{finding:?}");
    let gain = finding.gain.as_ref().expect("a gain");
    assert!(gain.flow == "reno" && times(gain) > 8.0, "{gain:?}");
}

#[test]
fn controls_that_share_evenly_are_no_cause() {
    let explanation = explained(EVEN, Budget::QUICK);
    assert!(of(&explanation, "congestion-control").is_none(), "{:?}", explanation.findings);
    let tried = explanation.tried.iter().find(|one| one.cause == "congestion-control");
    assert!(tried.is_some(), "{:?}", explanation.tried);
}

#[test]
fn what_a_flow_gains_when_a_file_has_ended_is_no_ramp() {
    let explanation = explained(BESIDE_A_FILE, Budget::QUICK);
    assert!(of(&explanation, "test-too-short").is_none(), "{:?}", explanation.findings);
    let tried = explanation.tried.iter().find(|one| one.cause == "test-too-short");
    assert!(tried.is_none(), "{tried:?}");
    // Beside a small file, in a test of two seconds, the test may be too short.
    let alone = BESIDE_A_FILE.replace("size_bytes = 3000000", "size_bytes = 3000");
    let ramp = explained(&alone.replace("duration_s = 13", "duration_s = 2"), Budget::QUICK);
    assert!(ramp.tried.iter().any(|one| one.cause == "test-too-short"), "{:?}", ramp.tried);
}
