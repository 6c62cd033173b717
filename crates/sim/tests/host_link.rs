//! The link between a UE's radio and its TCP.

mod common;

use airpath_record::RunSummary;
use airpath_scenario::Scenario;

const TWO: &str = "
path.down = [{ stage = \"delay\", delay_ms = 5 }]
path.up = [{ stage = \"delay\", delay_ms = 5 }]
[run]
duration_s = 5
[radio]
preset = \"nr-n78\"
[[radio.ue]]
name = \"phone\"
[[radio.ue]]
name = \"module\"
[radio.ue.host_link]
rate_mbps = 50
queue_packets = 100
[[flow]]
id = \"to-phone\"
kind = \"bulk\"
ue = \"phone\"
profile = \"linux-6.1\"
[[flow]]
id = \"to-module\"
kind = \"bulk\"
ue = \"module\"
profile = \"linux-6.1\"
";

const PINGS: &str = "
path.down = [{ stage = \"delay\", delay_ms = 5 }]
[run]
duration_s = 20
[radio]
preset = \"lte-20\"
[[radio.ue]]
name = \"a\"
[[radio.ue]]
name = \"b\"
[[flow]]
kind = \"ping\"
ue = \"a\"
interval_ms = 107
[[flow]]
kind = \"ping\"
ue = \"b\"
interval_ms = 107
";

fn run(scenario: &Scenario) -> RunSummary {
    common::outcome(scenario, 1).summary
}

fn pings(sets: &[&str]) -> [f64; 2] {
    let summary = run(&common::scenario(PINGS, sets));
    [0, 1].map(|index: usize| summary.pings[index].rtt_ms.as_ref().expect("answers").min)
}

#[test]
fn a_ues_own_link_limits_it_and_nobody_else() {
    let summary = run(&common::scenario(TWO, &[]));
    let goodput = |id: &str| {
        let flow = summary.flows.iter().find(|flow| flow.id == id).expect("it is there");
        flow.steady_mbps.expect("5 s are enough")
    };
    let (phone, module) = (goodput("to-phone"), goodput("to-module"));
    // 1,448 of 1,500 bytes.
    assert!((47.0..48.6).contains(&module), "{module} Mb/s");
    assert!(phone > 500.0, "{phone} Mb/s");
    let link = summary.links.iter().find(|link| link.id == "ue.module.down.link");
    let link = link.expect("it has a row");
    assert!((link.capacity_mbps - 50.0).abs() < 0.1 && link.utilisation > 0.9, "{link:?}");
    // 100 packets of 1,500 bytes at 50 Mb/s, and the one that is being sent.
    let delay = link.queue_delay_ms.as_ref().expect("packets passed").max;
    assert!((23.5..24.5).contains(&delay), "{delay} ms");
    let dropped = link.dropped_packets.values().sum::<u64>();
    assert!(dropped > 0, "TCP fills the queue");
    let lost = summary.drops.iter().filter(|drop| drop.place == link.id);
    assert_eq!(lost.map(|drop| drop.packets).sum::<u64>(), dropped);
}

#[test]
fn a_links_delay_is_that_of_its_ue_in_each_direction() {
    let [a, b] = pings(&[]);
    let [same, later] = pings(&["radio.ue.1.host_link.delay_ms=7"]);
    assert!((same - a).abs() < 1e-6, "{same} after {a}");
    // Uplink packets reach the radio later, and wait for another occasion.
    assert!((later - b - 14.0).abs() <= 10.0 && later > b + 7.0, "{later} after {b}");
    let [_, down] =
        pings(&["radio.ue.1.host_link.delay_ms=7", "radio.ue.1.host_link_up.delay_ms=0"]);
    assert!((down - b - 7.0).abs() < 0.01, "{down} after {b}");
}

#[test]
fn a_ues_host_may_take_another_time_than_the_others() {
    let [a, b] = pings(&["radio.host_delay_ms=2"]);
    let [own, other] = pings(&["radio.host_delay_ms=2", "radio.ue.0.host_delay_ms=5"]);
    assert!((own - a - 3.0).abs() < 0.01 && (other - b).abs() < 1e-6, "{own} {a}, {other} {b}");
}

#[test]
fn an_upload_waits_before_the_radio() {
    let up = TWO.replace("profile = \"linux-6.1\"", "profile = \"linux-6.1\"\ndirection = \"up\"");
    let summary = run(&common::scenario(&up, &[]));
    let link = summary.links.iter().find(|link| link.id == "ue.module.up.link");
    let link = link.expect("it has a row");
    assert!(link.utilisation > 0.9, "{link:?}");
    let module = summary.flows.iter().find(|flow| flow.id == "to-module").expect("it is there");
    let steady = module.steady_mbps.expect("5 s are enough");
    assert!((47.0..48.6).contains(&steady), "{steady} Mb/s");
}
