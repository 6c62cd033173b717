//! What three seeds leave in doubt is checked on five before it is reported.
#![allow(clippy::disallowed_methods)]

mod explained;

use airpath_findings::{Budget, Explanation};
use airpath_scenario::Edit;
use explained::{explained, explained_with};

/// Packets are reordered a little. Delivered in order, the round trips of one flow are shorter with
/// each of the first three seeds, and longer with both of the next two.
const MILD: &str = r#"
[run]
duration_s = 12
[[path.down]]
stage = "delay"
delay_ms = 23.82
[[path.down]]
stage = "delay"
delay_ms = 0
jitter_ms = 8.763
jitter_distribution = "half-normal"
keep_order = false
[[path.up]]
stage = "delay"
delay_ms = 23.82
[radio]
preset = "umts-hspa-plus"
any_timer_value = true
rlc = { aqm = "codel", codel_target_ms = 60, codel_interval_ms = 300 }
rlc_up = { aqm = "codel", codel_target_ms = 60, codel_interval_ms = 300 }
[radio.rrc]
enabled = false
[[flow]]
kind = "bulk"
profile = "linux-6.18"
congestion = "cubic"
[[flow]]
kind = "bulk"
profile = "linux-6.18"
congestion = "cubic"
[[flow]]
kind = "bulk"
profile = "linux-6.18"
congestion = "cubic"
"#;

/// Two buffers that are too small.
const TWO: &str = r#"
[run]
duration_s = 8
[[path.down]]
stage = "delay"
delay_ms = 16.2
[[path.up]]
stage = "delay"
delay_ms = 16.2
[radio]
preset = "nr-fdd-20"
any_timer_value = true
cell = { bandwidth_mhz = 10 }
channel = { sinr_db = 10.75 }
rlc = { buffer_bytes = 7693, aqm = "drop-tail" }
rlc_up = { aqm = "codel", codel_target_ms = 25, codel_interval_ms = 125 }
rrc = { enabled = false }
[[flow]]
kind = "bulk"
profile = "linux-6.18"
congestion = "reno"
send_buffer_bytes = 37289
[[flow]]
kind = "ping"
interval_ms = 100
direction = "up"
"#;

/// Stalls that cost something with every seed, and with some seeds much more than with others.
const UNEVEN: &str = r#"
[run]
duration_s = 9.446
[[path.down]]
stage = "link"
rate_mbps = 3.522
aqm = "codel"
codel_target_ms = 8.458
codel_interval_ms = 100
[[path.down]]
stage = "delay"
delay_ms = 21.14
[[path.down]]
stage = "host"
stalls = "at-random"
stall_ms = 18.47
stall_mean_between_ms = 147.8
ring_packets = 8
[[path.up]]
stage = "delay"
delay_ms = 21.14
[[flow]]
kind = "bulk"
profile = "rfc"
congestion = "cubic"
[[flow]]
kind = "bulk"
profile = "rfc"
congestion = "cubic"
"#;

/// A window that is too small, on a path without chance.
const WITHOUT_CHANCE: &str = r#"
[run]
duration_s = 5
[[path.down]]
stage = "link"
rate_mbps = 20
queue_packets = 100
[[path.down]]
stage = "delay"
delay_ms = 20
[[path.up]]
stage = "delay"
delay_ms = 20
[[flow]]
kind = "bulk"
window_bytes = 20000
"#;

fn names(explanation: &Explanation, cause: &str) -> bool {
    explanation.findings.iter().any(|finding| finding.cause == cause)
}

#[test]
fn what_three_seeds_have_alike_by_chance_is_not_named() {
    let three = explained(MILD, Budget { seeds_in_doubt: 3, ..Budget::QUICK });
    assert!(names(&three, "reordering"), "else this scenario shows nothing");
    let five = explained(MILD, Budget::QUICK);
    assert!(!names(&five, "reordering"));
    let tried = five.tried.iter().find(|tried| tried.cause == "reordering").expect("it was tried");
    assert_eq!(tried.gain.as_ref().map(|gain| gain.seeds), Some(5));
}

#[test]
fn what_five_seeds_confirm_is_named_and_advised_by_five() {
    let explanation = explained(UNEVEN, Budget::QUICK);
    let first = &explanation.findings[0];
    assert_eq!(first.cause, "stalling-host");
    assert!(
        first
            .evidence
            .ends_with("(means over 5 seeds; single runs vary; the first 3 were inconclusive)."),
        "{}",
        first.evidence
    );
    assert_eq!(first.gain.as_ref().map(|gain| gain.seeds), Some(5));
    assert_eq!(explanation.seeds, 3);
}

#[test]
fn what_the_budget_leaves_in_doubt_is_told_but_not_named() {
    let budget = Budget { events: 0, runs: 7, ..Budget::QUICK };
    let explanation = explained(UNEVEN, budget);
    assert!(!names(&explanation, "stalling-host"));
    let told = |outcome: &str| outcome.contains("leaves doubt; the limit of extra runs");
    assert!(explanation.tried.iter().any(|tried| told(&tried.outcome)), "{:?}", explanation.tried);
}

#[test]
fn an_explanation_with_five_seeds_asks_for_no_more() {
    let explanation = explained(UNEVEN, Budget::FULL);
    assert!(explanation.findings.iter().all(|finding| !finding.evidence.contains("doubt")));
}

#[test]
fn what_hides_where_nothing_counts_alone_is_compared_seed_by_seed() {
    // What is left once the advice of either finding is followed.
    for finding in explained(TWO, Budget::QUICK).findings {
        let sets: Vec<String> = finding.set.iter().flatten().map(Edit::to_string).collect();
        let left = explained_with(TWO, &sets, Budget::QUICK).findings;
        let gains = left.iter().filter_map(|finding| finding.gain.as_ref());
        assert!(gains.into_iter().all(|gain| gain.seeds >= 3));
    }
}

#[test]
fn seeds_that_are_one_run_do_not_count_as_several() {
    let first = explained(WITHOUT_CHANCE, Budget::QUICK).findings.remove(0);
    assert_eq!(first.cause, "receive-window");
    let told = "(the scenario is deterministic, so one run is enough).";
    assert!(first.evidence.ends_with(told), "{}", first.evidence);
    assert!(!first.evidence.contains("means over"), "{}", first.evidence);
}
