//! A cell that goes out of service.
#![allow(clippy::disallowed_methods)]

mod explained;

use airpath_findings::{Budget, Explanation, Finding};
use explained::explained;

/// A download that a cell's outage of 2 s interrupts, or does not.
fn download(radio: &str) -> Explanation {
    let text = format!(
        "[run]\nduration_s = 15\n\
         [radio]\npreset = \"lte-20\"\nname = \"east\"\n{radio}\
         [[flow]]\nid = \"download\"\nkind = \"file\"\nsize_bytes = 20000000\n\
         profile = \"linux-6.18\"\n"
    );
    explained(&text, Budget::QUICK)
}

fn outage(at_s: u32) -> String {
    format!("[[radio.outage]]\nat_s = {at_s}\nduration_s = 2\n")
}

fn named(explanation: &Explanation) -> Option<&Finding> {
    explanation.findings.iter().find(|finding| finding.cause == "cell-outage")
}

#[test]
fn an_outage_is_named_for_the_time_outs_that_it_causes() {
    for fails in [false, true] {
        let mobility = format!("[radio.mobility]\nlink_failure = {fails}\n");
        let found = download(&(outage(1) + &mobility));
        let first = &found.findings[0];
        assert_eq!(first.cause, "cell-outage", "{:?}", found.findings);
        let told = "The cell east was out of service from 1 s to 3 s.";
        assert!(first.evidence.starts_with(told), "{}", first.evidence);
        let Some([only]) = first.set.as_deref() else { panic!("{:?}", first.set) };
        assert_eq!(only.to_string(), "radio.outage.0.enabled=false");
        assert!(first.gain.is_some());
        // Its time-outs are no fault of the radio or of TCP.
        let others: Vec<_> = found.findings.iter().map(|finding| finding.cause).collect();
        for wrong in ["radio-loss", "congestion-control", "slow-start-exit"] {
            assert!(!others.contains(&wrong), "{others:?}");
        }
    }
}

#[test]
fn one_that_harms_nothing_is_not_named() {
    // The transfer has ended before; or nothing is out of service.
    for radio in [outage(9), String::new(), outage(1) + "enabled = false\n"] {
        let found = download(&radio);
        assert!(named(&found).is_none(), "{:?}", found.findings);
    }
}

#[test]
fn a_ue_that_finds_another_cell_names_the_outage_too() {
    let neighbour = "[[radio.neighbour]]\nname = \"west\"\n";
    let found = download(&(outage(1) + "cell = \"east\"\n" + neighbour));
    let Some(finding) = named(&found) else { panic!("{:?}", found.findings) };
    assert!(finding.evidence.contains("The cell east was"), "{}", finding.evidence);
    assert!(!finding.evidence.contains("west"), "{}", finding.evidence);
}
