//! TCP over UEs that move.

mod common;

use airpath_record::RunSummary;
use arrow::array::Array;
use arrow::record_batch::RecordBatch;

/// Two LTE cells of the same kind, and a download of 40 MB with a handover every second.
const BACK_AND_FORTH: &str = "
path.down = [{ stage = \"delay\", delay_ms = 10 }]
path.up = [{ stage = \"delay\", delay_ms = 10 }]
[run]
duration_s = 30
[radio]
preset = \"lte-20\"
[[radio.neighbour]]
[[radio.handover]]
at_s = 1
every_s = 2
to = \"cell-1\"
[[radio.handover]]
at_s = 2
every_s = 2
to = \"cell-0\"
[radio.mobility]
link_failure = false
[[flow]]
kind = \"file\"
size_bytes = 40_000_000
profile = \"linux-6.18\"
congestion = \"cubic\"
";

/// The summary and the events of a run.
fn run(text: &str) -> (RunSummary, RecordBatch) {
    let outcome = common::outcome(&common::scenario(text, &[]), 1);
    let tables = outcome.tables.finish(false);
    let events = tables.into_iter().find(|(name, _)| *name == "events");
    let (_, mut events) = events.expect("a run has events");
    (outcome.summary, events.remove(0))
}

#[test]
fn forwarding_costs_tcp_time_and_no_forwarding_costs_it_packets() {
    let still =
        common::run(BACK_AND_FORTH, &["radio.handover.0.at_s=99", "radio.handover.1.at_s=99"]);
    let moving = common::run(BACK_AND_FORTH, &[]);
    let lossy = common::run(BACK_AND_FORTH, &["radio.mobility.forwarding=\"none\""]);
    let completed = |run: &RunSummary| run.flows[0].completed_s.expect("it arrives whole");
    for run in [&still, &moving, &lossy] {
        assert_eq!(run.flows[0].bytes_delivered, 40_000_000);
    }
    let handover_losses = |run: &RunSummary| {
        run.links[0]
            .dropped_packets
            .iter()
            .find(|(why, _)| **why == "handover")
            .map_or(0, |each| *each.1)
    };
    assert_eq!((handover_losses(&moving), handover_losses(&lossy) > 0), (0, true));
    // 50 ms of every second, and TCP's reaction to that.
    assert!(completed(&moving) > completed(&still));
    assert!(completed(&lossy) > completed(&moving));
    assert_eq!(moving.flows[0].rto_count, Some(0));
}

#[test]
fn what_happens_between_cells_is_an_event_and_the_same_each_time() {
    let (first, events) = run(BACK_AND_FORTH);
    let (again, same) = run(BACK_AND_FORTH);
    assert_eq!((first.events, &events), (again.events, &same));
    let cells = events.column_by_name("cell").expect("a column");
    let named = (0..events.num_rows()).filter(|&row| cells.is_valid(row)).count();
    // Command, completion and path switch, once a second.
    let seconds = first.flows[0].completed_s.expect("it arrives");
    assert_eq!(named, 3 * seconds as usize, "{seconds} s");
}
