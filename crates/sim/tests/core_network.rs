//! TCP and UDP through the stages of the core network and beyond.

mod common;

use common::{flow, run};

const TEN_MS_UP: &str = "[[path.up]]\nstage = \"delay\"\ndelay_ms = 10\n";

fn named(name: &str, sets: &[&str]) -> airpath_record::RunSummary {
    run(common::shipped(name), sets)
}

#[test]
fn outer_headers_take_their_share_of_the_backhaul() {
    // 1,448 of 1,500 bytes are payload; the tunnel adds 20 + 8 + 16 bytes, and fragments 20 more.
    let goodput = |sets: &[&str]| named("gtpu-fragmentation", sets).flows[0].goodput_mbps.unwrap();
    let bound = |headers: f64, payload: f64| 50.0 * payload / (payload + 52.0 + headers);
    let fragmented = goodput(&[]);
    assert!(fragmented <= bound(64.0, 1448.0) && fragmented > 0.97 * bound(64.0, 1448.0));
    let whole = goodput(&["flow.0.mss_bytes=1404"]);
    assert!(whole <= bound(44.0, 1404.0) && whole > 0.97 * bound(44.0, 1404.0), "{whole}");
}

#[test]
fn a_tunnel_that_drops_what_is_too_big_lets_the_handshake_through_and_nothing_else() {
    let summary = named("gtpu-fragmentation", &["path.down.1.too_big=drop"]);
    assert_eq!(summary.flows[0].bytes_delivered, 0);
    assert!(summary.flows[0].rto_count.unwrap() > 3);
}

#[test]
fn a_vpn_whose_mtu_leaves_no_room_lets_the_handshake_and_pings_through() {
    let summary = named("vpn-mtu", &[]);
    assert_eq!(summary.flows[0].bytes_delivered, 0);
    assert_eq!(summary.pings[0].lost, 0);
    // 1,368 of 1,420 bytes are payload, and the VPN adds 80.
    let cured = named("vpn-mtu", &["path.down.0.mtu_bytes=1420", "flow.0.mss_bytes=1368"]);
    let (goodput, bound) = (cured.flows[0].goodput_mbps.unwrap(), 50.0 * 1368.0 / 1500.0);
    assert!(goodput <= bound && goodput > 0.95 * bound, "{goodput}");
}

#[test]
fn where_joined_segments_are_lost_only_lone_ones_pass() {
    let summary = named("gro-forwarding", &[]);
    let crawls = summary.flows[0].goodput_mbps.unwrap();
    assert!(crawls > 0.0 && crawls < 1.0, "{crawls}");
    assert_eq!(summary.pings[0].lost, 0);
    let drops = summary.drops.iter().filter(|drop| drop.reason == "too_big");
    assert!(drops.map(|drop| drop.packets).sum::<u64>() >= 2);
    let cured = named("gro-forwarding", &["path.down.0.enabled=false"]).flows[0].goodput_mbps;
    assert!(cured.unwrap() > 80.0, "{cured:?}");
}

#[test]
fn a_gap_in_um_is_a_stall_of_t_reordering_and_then_a_burst() {
    let rtt = |sets: &[&str]| {
        let summary = named("pdcp-gap", sets);
        summary.pings[0].rtt_ms.as_ref().map(|rtt| rtt.max).expect("pings are answered")
    };
    let [stalls, short, acknowledged] =
        [rtt(&[]), rtt(&["radio.rlc.t_reordering_ms=20"]), rtt(&["radio.rlc.mode=am"])];
    // A ping behind a gap waits for up to 500 ms.
    assert!(stalls > 450.0, "{stalls}");
    assert!(short < 200.0 && acknowledged < 300.0, "{short} {acknowledged}");
}

#[test]
fn a_policed_flow_gets_no_more_than_its_rate_and_a_shaped_one_all_of_it() {
    let bound = 20.0 * 1448.0 / 1500.0;
    let policed = named("policer", &[]).flows[0].goodput_mbps.unwrap();
    // With no queue ahead of the policer, CUBIC gets half of the rate.
    assert!(policed < 0.6 * bound && policed > 0.2 * bound, "{policed}");
    let shaper = format!(
        "[run]\nduration_s = 60\n[[path.down]]\nstage = \"shaper\"\nrate_mbps = 20\n\
         burst_bytes = 25000\nqueue_packets = 200\n{TEN_MS_UP}[[flow]]\nkind = \"bulk\"\n"
    );
    let shaped = flow(&shaper, &[]).goodput_mbps.unwrap();
    assert!(shaped < bound * 1.01 && shaped > 0.97 * bound, "{shaped}");
}

#[test]
fn a_firewall_lets_the_ue_ask_and_nobody_else() {
    let summary = named("one-way-firewall", &["run.duration_s=9.9"]);
    let lost = |id: &str| {
        let ping = summary.pings.iter().find(|ping| ping.id == id).unwrap();
        (ping.sent, ping.lost)
    };
    assert_eq!(lost("from-ue").1, 0);
    let (sent, gone) = lost("from-server");
    assert!(sent > 40 && gone == sent, "{gone} of {sent}");
}

#[test]
fn a_silent_receiver_loses_its_binding_unless_the_stream_keeps_it() {
    let received = |sets: &[&str]| named("double-nat", sets).flows[0].bytes_delivered / 1472;
    // 2 Mb/s of 1,500 bytes: one packet in 6 ms, for 30 s after the opening packet was at the outer
    // NAT (at 10 ms); the first packet is at the outer NAT 2 ms later.
    let closing = received(&[]);
    assert_eq!(closing, 5_000);
    // Two minutes, less the delay of the path at the end.
    let kept = received(&["path.up.2.inward_refreshes=true"]);
    assert!(kept > 19_900, "{kept}");
    // Without a request nothing arrives.
    assert_eq!(received(&["flow.0.opened_by=sender"]), 0);
}

#[test]
fn tcp_down_through_a_nat_is_opened_by_the_ue_or_not_at_all() {
    let text = "[run]\nduration_s = 5\n[[path.up]]\nstage = \"delay\"\ndelay_ms = 10\n\
                [[path.up]]\nstage = \"nat\"\n[[path.down]]\nstage = \"nat\"\n\
                [[path.down]]\nstage = \"link\"\nrate_mbps = 10\nqueue_packets = 50\n\
                [[flow]]\nkind = \"bulk\"\n";
    assert_eq!(flow(text, &[]).bytes_delivered, 0);
    assert!(flow(text, &["flow.0.opened_by=receiver"]).goodput_mbps.unwrap() > 9.0);
}

#[test]
fn a_stalling_host_delays_pings_and_a_small_ring_loses_packets() {
    const RARELY: [&str; 2] =
        ["path.down.0.stall_mean_between_ms=1000000", "path.up.1.stall_mean_between_ms=1000000"];
    let summary = named("hypervisor", &[]);
    let without = named("hypervisor", &RARELY);
    let p99 = |summary: &airpath_record::RunSummary| summary.pings[0].rtt_ms.as_ref().unwrap().p99;
    assert!(p99(&summary) > p99(&without) + 20.0, "{} {}", p99(&summary), p99(&without));
    let lost = |summary: &airpath_record::RunSummary| {
        let flow = &summary.flows[0];
        flow.retransmitted_segments.unwrap() as f64 / flow.segments_sent as f64
    };
    let small = named("hypervisor", &["path.down.0.ring_packets=16"]);
    assert!(lost(&small) > 3.0 * lost(&summary), "{} {}", lost(&small), lost(&summary));
}

#[test]
fn losses_are_charged_to_place_reason_and_flow() {
    let text = "
path.down = [{ stage = \"loss\", period = 10 }]
path.up = [{ stage = \"delay\", delay_ms = 10 }, { stage = \"loss\", period = 5 }]
[run]
duration_s = 5
[[flow]]
kind = \"udp\"
rate_mbps = 1
packet_bytes = 1250
[[flow]]
kind = \"ping\"
interval_ms = 100
";
    let summary = run(text, &[]);
    let lost = |place: &str, flow: &str| {
        let of = |drop: &&airpath_record::DropSummary| drop.place == place && drop.flow == flow;
        summary.drops.iter().filter(of).map(|drop| (drop.reason, drop.packets)).collect::<Vec<_>>()
    };
    // 500 datagrams and some 40 replies pass the first loss stage, 50 requests the second.
    let down: u64 = lost("down.0.loss", "udp-0").iter().map(|(_, packets)| packets).sum();
    let replies: u64 = lost("down.0.loss", "ping-1").iter().map(|(_, packets)| packets).sum();
    assert_eq!(down + replies, 54);
    assert_eq!(lost("up.1.loss", "ping-1"), [("loss", 10)]);
    assert_eq!(lost("up.1.loss", "udp-0"), []);
}
