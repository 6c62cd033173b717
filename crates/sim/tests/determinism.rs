//! Law 5: same scenario, seed and version, the same bytes out.

mod common;

use airpath_scenario::shipped;

const BLACK_HOLE: &str = "vpn-mtu";

#[test]
fn every_shipped_scenario_runs_and_repeats_itself() {
    for (name, text) in shipped() {
        let scenario = common::scenario(text, &[]);
        let once = || {
            let outcome = common::outcome(&scenario, 5);
            let summary = serde_json::to_string(&outcome.summary).expect("plain data");
            let tables = outcome.tables.finish(scenario.run.ack_table);
            (summary, tables)
        };
        let (first, second) = (once(), once());
        assert_eq!(first.0, second.0, "{name}");
        assert_eq!(first.1, second.1, "{name}");
        // Nothing but the handshake passes a black hole.
        let nothing = first.0.contains("\"bytes_delivered\":0");
        assert_eq!(nothing, *name == BLACK_HOLE, "{name}: a flow that carried nothing");
    }
}

#[test]
fn another_seed_is_another_run_where_something_is_random() {
    let text = "[[path.down]]\nstage = \"loss\"\nprobability = 0.01\n\
                [[path.down]]\nstage = \"delay\"\ndelay_ms = 20\n[[flow]]\nkind = \"file\"\nsize_bytes = 3000000\n";
    let scenario = common::scenario(text, &[]);
    let completed = |seed| {
        common::outcome(&scenario, seed).summary.flows[0].completed_s.expect("3 MB arrive in 30 s")
    };
    assert_ne!(completed(1), completed(2));
}

#[test]
fn progress_can_stop_a_run() {
    let scenario = common::scenario("[[flow]]\nkind = \"ping\"\n", &[]);
    let mut told = 0;
    let stopped = airpath_sim::simulate(&scenario, 1, &mut |_| {
        told += 1;
        told < 3
    });
    assert_eq!((stopped.err(), told), (Some(airpath_sim::Stopped::ByCaller), 3));
}
