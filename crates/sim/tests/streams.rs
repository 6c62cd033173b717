//! Several equal flows from one `[[flow]]`: their rows, and their sum.

mod common;

#[test]
fn the_flows_of_a_group_are_summed() {
    let text = "[run]\nduration_s = 5\n[[path.down]]\nstage = \"link\"\nrate_mbps = 8\n\
                queue_packets = 50\n[[path.up]]\nstage = \"delay\"\ndelay_ms = 20\n\
                [[flow]]\nid = \"many\"\nkind = \"bulk\"\nstreams = 4\n[[flow]]\nkind = \"ping\"\n";
    let outcome = common::outcome(&common::scenario(text, &[]), 1);
    let flows = &outcome.summary.flows;
    assert_eq!(flows.len(), 4);
    let [group] = &outcome.summary.groups[..] else { panic!("{:?}", outcome.summary.groups) };
    assert_eq!((group.id.as_str(), group.streams, group.kind), ("many", 4, "bulk"));
    let goodputs: Vec<f64> = flows.iter().filter_map(|flow| flow.goodput_mbps).collect();
    let (sum, squares) = (
        goodputs.iter().sum::<f64>(),
        goodputs.iter().map(|goodput| goodput * goodput).sum::<f64>(),
    );
    assert!((group.goodput_mbps.unwrap() - sum).abs() < 1e-9);
    assert!((group.jain_index.unwrap() - sum * sum / (4.0 * squares)).abs() < 1e-9);
    // Full, except for headers and the start.
    assert!(sum > 7.0, "{sum}");
    assert_eq!(group.bytes_delivered, flows.iter().map(|flow| flow.bytes_delivered).sum::<u64>());
    let tables = outcome.tables.finish(false);
    let groups = tables.iter().find(|(name, _)| *name == "groups").expect("there is a group");
    assert_eq!(groups.1[0].num_rows(), 1);
}
