//! Which of two causes with the same effect is named, and what a ping counts for.
#![allow(clippy::disallowed_methods)]

mod explained;

use airpath_findings::Budget;
use airpath_scenario::Edit;
use explained::explained;

/// A tunnel cuts packets in three and loses a few of the fragments. It would lose so few whole
/// packets that it hardly matters.
const FRAGMENTS: &str = r#"
[run]
duration_s = 8.098
[[path.down]]
stage = "gtpu"
end = "enter"
mtu_bytes = 582
[[path.down]]
stage = "loss"
probability = 0.00102
[[path.down]]
stage = "gtpu"
end = "leave"
[[path.down]]
stage = "link"
rate_mbps = 3.247
queue_bytes = 39957
[[path.down]]
stage = "delay"
delay_ms = 52.33
[[path.up]]
stage = "delay"
delay_ms = 52.33
[[flow]]
kind = "bulk"
profile = "linux-5.4"
congestion = "reno"
"#;

/// Slow start mistakes the jitter of an uplink for a queue. That costs 12 % of the 14 % that a
/// longer test would gain.
const EARLY: &str = r#"
[run]
duration_s = 3.932
[[path.down]]
stage = "delay"
delay_ms = 7.352
[[path.up]]
stage = "delay"
delay_ms = 0
jitter_ms = 14.85
[[path.up]]
stage = "delay"
delay_ms = 7.352
[radio]
preset = "lte-10"
any_timer_value = true
channel = { sinr_db = 13.46 }
rlc = { aqm = "codel", codel_target_ms = 25, codel_interval_ms = 125 }
rlc_up = { aqm = "codel", codel_target_ms = 25, codel_interval_ms = 125 }
rrc = { enabled = false }
[[flow]]
kind = "bulk"
profile = "rfc"
congestion = "cubic"
slow_start = "hystart-6.14"
direction = "up"
"#;

/// A ping waits for the acknowledgements of a download, which fill a slow uplink.
const BESIDE_ACKNOWLEDGEMENTS: &str = r#"
[run]
duration_s = 10
[[path.down]]
stage = "link"
rate_mbps = 4.919
queue_bytes = 15000
[[path.down]]
stage = "delay"
delay_ms = 9.974
[[path.up]]
stage = "link"
rate_mbps = 0.114
queue_packets = 30
[[path.up]]
stage = "delay"
delay_ms = 9.974
[[flow]]
kind = "bulk"
profile = "rfc"
[[flow]]
kind = "ping"
interval_ms = 100
direction = "up"
"#;

/// A window that is fixed at too little for the path, which costs a sixth of the rate.
const FIXED: &str = r#"
[run]
duration_s = 10.31
[[path.down]]
stage = "delay"
delay_ms = 8.65
[[path.down]]
stage = "link"
rate_mbps = 3.608
queue_packets = 50
[[path.up]]
stage = "delay"
delay_ms = 8.65
[[flow]]
kind = "bulk"
congestion = "fixed"
fixed_window_segments = 6
"#;

/// A download whose acknowledgements wait for retxBSR-Timer if more of them arrive than were
/// reported.
const REPORTS_ALONE: &str = r#"
[run]
duration_s = 10
[[path.down]]
stage = "delay"
delay_ms = 12
[[path.up]]
stage = "delay"
delay_ms = 12
[radio]
preset = "nr-fdd-20"
channel = { sinr_db = 14 }
rlc = { aqm = "codel" }
grants = { assume_more = false }
bsr = { retx_timer_ms = 320 }
[[flow]]
kind = "bulk"
"#;

fn named(text: &str) -> Vec<&'static str> {
    let findings = explained(text, Budget::QUICK).findings;
    findings
        .iter()
        .map(|finding| finding.cause)
        .filter(|cause| !cause.ends_with("-capacity"))
        .collect()
}

#[test]
fn fragments_come_before_the_losses_that_they_multiply() {
    assert_eq!(named(FRAGMENTS), ["fragmentation", "random-loss"]);
}

#[test]
fn slow_start_that_ends_early_is_named_in_place_of_the_test_that_it_makes_too_short() {
    assert_eq!(named(EARLY), ["slow-start-exit"]);
}

#[test]
fn a_fixed_window_counts_from_where_other_behaviour_does() {
    assert_eq!(named(FIXED), ["congestion-control"]);
}

#[test]
fn it_is_the_fixed_window_of_the_flow_that_has_it() {
    let small = "[[flow]]\nid = \"first\"\nkind = \"file\"\nsize_bytes = 20000\n";
    let tried = explained(&format!("{small}{FIXED}"), Budget::QUICK).tried;
    let found = tried.iter().find(|one| one.cause == "congestion-control");
    assert_eq!(found.expect("it was tried").subject, "bulk-1");
}

#[test]
fn a_ping_that_waits_for_acknowledgements_alone_shows_that_they_starve() {
    let is_of_the_ping = |text: &str| {
        let findings = explained(text, Budget::QUICK).findings;
        let starved = findings.iter().find(|finding| finding.cause == "ack-starvation");
        starved.expect("it is named").evidence.contains("of ping-1 would fall")
    };
    assert!(is_of_the_ping(BESIDE_ACKNOWLEDGEMENTS));
    // For data in the uplink, the rate of that link is capacity, and so it is for a ping beside it.
    let stream = "[[flow]]\nkind = \"udp\"\nrate_mbps = 0.02\ndirection = \"up\"\n";
    assert!(!is_of_the_ping(&format!("{BESIDE_ACKNOWLEDGEMENTS}{stream}")));
}

#[test]
fn a_base_station_that_goes_by_reports_alone_is_named_with_what_it_may_do() {
    let findings = explained(REPORTS_ALONE, Budget::QUICK).findings;
    let first = &findings[0];
    assert_eq!((first.cause, first.subject.as_str()), ("uplink-access", "radio.bsr"));
    assert!(first.evidence.contains("retxBSR-Timer, 320 ms"), "{}", first.evidence);
    let sets = first.set.as_ref().expect("there is something to set");
    assert_eq!(sets, &[Edit::new("radio.grants.assume_more", true)]);
    // And where the base station grants again, there is nothing to report.
    let grants_again = REPORTS_ALONE.replace("assume_more = false", "assume_more = true");
    assert_eq!(named(&grants_again), [""; 0]);
}
