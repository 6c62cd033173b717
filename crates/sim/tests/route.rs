//! What a host keeps about a destination from one flow to the next.

mod common;

use airpath_record::FlowSummary;

/// The queue of 20 packets ends the first slow start by a loss.
const PATH: &str = "[run]\nduration_s = 25\n\
    [[path.down]]\nstage = \"link\"\nrate_mbps = 10\nqueue_packets = 20\n\
    [[path.down]]\nstage = \"delay\"\ndelay_ms = 25\n\
    [[path.up]]\nstage = \"delay\"\ndelay_ms = 25\n";

fn file(id: &str, start: u32, keys: &str) -> String {
    format!(
        "[[flow]]\nid = \"{id}\"\nkind = \"file\"\nsize_bytes = 3000000\nstart_s = {start}\n\
         profile = \"linux-6.18\"\ncongestion = \"reno\"\n{keys}\n"
    )
}

fn flows(flows: &[String]) -> Vec<FlowSummary> {
    common::run(&(PATH.to_owned() + &flows.concat()), &[]).flows
}

/// Why and at which cwnd slow start ended.
fn exit(flow: &FlowSummary) -> (&'static str, u32) {
    let exit = flow.slow_start_exit.as_ref().expect("slow start ended");
    (exit.reason, exit.cwnd_segments)
}

fn two(first: &str, second: &str) -> [(&'static str, u32); 2] {
    let done = flows(&[file("first", 0, first), file("second", 10, second)]);
    [exit(&done[0]), exit(&done[1])]
}

const KEEPS: &str = "route.metrics = \"linux-ssthresh\"";

#[test]
fn the_second_of_two_flows_leaves_slow_start_where_the_first_one_ended() {
    let [first, second] = two(KEEPS, KEEPS);
    assert_eq!(first.0, "loss");
    assert_eq!(second.0, "ssthresh");
    assert!(second.1 < first.1, "{first:?} {second:?}");
}

#[test]
fn both_flows_must_keep_metrics_and_by_default_none_does() {
    let alike = two("", "");
    assert_eq!(alike[0], alike[1]);
    for (first, second) in [("", KEEPS), (KEEPS, ""), ("route.metrics = \"linux\"", KEEPS)] {
        assert_eq!(two(first, second), alike, "{first} {second}");
    }
}

#[test]
fn bsd_keeps_an_ssthresh_below_half_of_the_send_buffer() {
    let keys = |window: u32| format!("route.metrics = \"bsd\"\nwindow_bytes = {window}");
    let [_, second] = two(&keys(1_000_000), &keys(1_000_000));
    assert_eq!(second.0, "ssthresh");
    // Here no ssthresh is below 20 segments.
    let small = flows(&[file("first", 0, &keys(60_000)), file("second", 10, &keys(60_000))]);
    assert_eq!(small[0].completed_s, small[1].completed_s);
}

#[test]
fn a_flow_that_has_not_ended_has_left_nothing() {
    let done = flows(&[file("first", 0, KEEPS), file("second", 1, KEEPS)]);
    assert!(done[0].completed_s.is_some_and(|end| end > 1.0));
    assert_eq!(exit(&done[1]).0, "loss");
}

#[test]
fn each_destination_has_its_own_metrics() {
    let up = file("up", 10, &format!("{KEEPS}\ndirection = \"up\""));
    let done = flows(&[file("down", 0, KEEPS), up.clone()]);
    let alone = flows(&[up]);
    assert_eq!(done[1].completed_s, alone[0].completed_s);
}

#[test]
fn a_flow_may_begin_with_what_was_kept_before_the_run() {
    let first = |keys: &str| {
        flows(&[file("first", 0, &format!("{keys}\nroute.ssthresh_segments = 14"))]).remove(0)
    };
    assert_eq!(exit(&first(KEEPS)), ("ssthresh", 14));
    assert_eq!(exit(&first("route.metrics = \"bsd\"")), ("ssthresh", 14));
    assert_eq!(exit(&first("")).0, "loss");
    // Below the initial window there is no slow start.
    let below = flows(&[file("first", 0, &format!("{KEEPS}\nroute.ssthresh_segments = 5"))]);
    assert_eq!(exit(&below[0]), ("ssthresh", 10));
}
