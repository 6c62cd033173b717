//! An ssthresh that a sender has kept from an earlier connection.
#![allow(clippy::disallowed_methods)]

mod explained;

use airpath_findings::{Budget, Explanation, Finding};
use explained::explained;

const PATH: &str = "[run]\nduration_s = 16\n\
    [[path.down]]\nstage = \"link\"\nrate_mbps = 20\nqueue_packets = 400\n\
    [[path.down]]\nstage = \"delay\"\ndelay_ms = 100\n\
    [[path.up]]\nstage = \"delay\"\ndelay_ms = 100\n";

fn file(id: &str, start: u32, keys: &str) -> String {
    format!(
        "[[flow]]\nid = \"{id}\"\nkind = \"file\"\nsize_bytes = 5000000\nstart_s = {start}\n\
         profile = \"linux-6.18\"\ncongestion = \"reno\"\n{keys}\n"
    )
}

fn kept(explanation: &Explanation) -> Option<&Finding> {
    explanation.findings.iter().find(|finding| finding.cause == "kept-ssthresh")
}

const KEEPS: &str = "route.metrics = \"linux-ssthresh\"\n";

#[test]
fn a_kept_ssthresh_that_ends_slow_start_is_named() {
    let keys = format!("{KEEPS}route.ssthresh_segments = 12");
    let found = explained(&(PATH.to_owned() + &file("slow", 0, &keys)), Budget::QUICK);
    let first = kept(&found).unwrap_or_else(|| panic!("{:?}", found.findings));
    assert_eq!(found.findings[0].cause, "kept-ssthresh", "{:?}", found.findings);
    let told = "ended at 12 segments, at an ssthresh that was kept from earlier connections.";
    assert!(first.evidence.contains(told), "{}", first.evidence);
    let Some([only]) = first.set.as_deref() else { panic!("{:?}", first.set) };
    assert_eq!(only.to_string(), "flow.0.route.metrics=\"none\"");
    assert!(first.gain.is_some());
}

#[test]
fn one_that_was_never_reached_is_not_named() {
    let keys = format!("{KEEPS}route.ssthresh_segments = 5000");
    let found = explained(&(PATH.to_owned() + &file("slow", 0, &keys)), Budget::QUICK);
    assert!(kept(&found).is_none(), "{:?}", found.findings);
    // Two equal transfers, of which neither keeps anything.
    let two = PATH.to_owned() + &file("first", 0, "") + &file("second", 8, "");
    assert!(kept(&explained(&two, Budget::QUICK)).is_none());
}
