//! Which of two that explain the same is named, and what a ping counts for.
#![allow(clippy::disallowed_methods)]

mod explained;

use airpath_findings::Budget;
use explained::explained;

/// A tunnel cuts packets in three and loses a few of them. Of whole packets it loses so few that it hardly matters.
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
