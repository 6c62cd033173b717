//! TCP and pings over a cell.

mod common;

use airpath_base::Duration;
use airpath_radio::cell::{CellConfig, LteCarrier, LteDuplex, NrCarrier, UeConfig};
use airpath_radio::harq::Decoding;
use airpath_record::RunSummary;
use airpath_scenario::{RadioConfig, Scenario};

const WIRE: &str = "
[run]
duration_s = 10
[[path.down]]
stage = \"delay\"
delay_ms = 5
[[path.up]]
stage = \"delay\"
delay_ms = 5
";

fn over(cell: CellConfig, flows: &str) -> Scenario {
    behind(WIRE, cell, flows)
}

fn behind(path: &str, cell: CellConfig, flows: &str) -> Scenario {
    let mut scenario = common::scenario(&format!("{path}{flows}"), &[]);
    let config = UeConfig::plain(&cell.access);
    scenario.radio = Some(RadioConfig::alone("plain", &cell, &[("phone", config)]));
    scenario
}

fn run(scenario: &Scenario) -> RunSummary {
    common::outcome(scenario, 1).summary
}

const BULK: &str = "
[[flow]]
kind = \"bulk\"
profile = \"linux-6.18\"
congestion = \"cubic\"
receive_buffer_bytes = 100_000_000
send_buffer_bytes = 100_000_000
";

/// What the transport blocks can carry, less headers of IP, TCP, PDCP, RLC and MAC.
fn fills(cell: CellConfig, carrier_mbps: f64) {
    let scenario = over(cell, BULK);
    let summary = run(&scenario);
    let (flow, down) = (&summary.flows[0], &summary.links[0]);
    let steady = flow.steady_mbps.expect("10 s are long enough");
    assert!(steady > 0.93 * carrier_mbps && steady < 0.97 * carrier_mbps, "{steady} Mb/s");
    assert!((down.capacity_mbps / carrier_mbps - 1.0).abs() < 0.02, "{}", down.capacity_mbps);
    assert_eq!(summary.links[1].id, "radio.phone.up");
    let up = &summary.radio[1];
    assert!(up.buffer_status_reports > 0 && up.scheduling_requests > 0);
    assert!(up.padding.is_some_and(|padding| padding < 0.5), "{:?}", up.padding);
    let again = run(&scenario);
    assert_eq!(again.flows[0].bytes_delivered, flow.bytes_delivered);
    assert_eq!(again.events, summary.events);
}

/// UEs without traffic change neither the results nor the amount of work.
#[test]
fn idle_ues_cost_no_events() {
    let among = |ues: usize| {
        let mut scenario = over(CellConfig::nr(NrCarrier::n78_100_mhz()), BULK);
        scenario.run.duration = airpath_base::Duration::from_secs(1);
        let radio = scenario.radio.as_mut().expect("there is one");
        radio.ues.extend((1..ues).map(|index| format!("idle-{index}")));
        let phone = radio.ran.ues[0].clone();
        radio.ran.ues.resize(ues, phone);
        let summary = run(&scenario);
        assert!(summary.events > 1_000);
        serde_json::to_string(&summary).expect("plain data")
    };
    assert_eq!(among(300), among(1));
}

/// I_TBS 26, 100 PRBs, two code words (TS 36.213 7.1.7.2.1).
#[test]
fn bulk_fills_lte() {
    fills(CellConfig::lte(LteCarrier::fdd_20_mhz()), 150.752);
}

/// An idle UE in LTE FDD with an SR every 10 ms: the sum in Holma and Toskala, LTE for UMTS, 11.11,
/// with 10 ms of core in place of their 1 ms.
/// Mean rate of a flow after its first seconds over these LTE carriers, in Mb/s.
fn over_carriers(prbs: &[u32], flow: &str) -> f64 {
    let mut carriers =
        prbs.iter().map(|&prbs| CellConfig::lte(LteCarrier::new(LteDuplex::Fdd, prbs)));
    let mut cell = carriers.next().expect("a primary carrier");
    cell.secondary = carriers.collect();
    let mut ue = UeConfig::plain(&cell.access);
    let secondary = cell.secondary.iter().map(|it| UeConfig::plain_carrier(&it.access));
    ue.secondary = secondary.collect();
    let mut scenario = common::scenario(&format!("{WIRE}{flow}"), &[]);
    scenario.radio = Some(RadioConfig::alone("plain", &cell, &[("phone", ue)]));
    let flow = run(&scenario).flows.remove(0);
    flow.steady_mbps.or(flow.goodput_mbps).expect("10 s are long enough")
}

#[test]
fn two_carriers_carry_what_both_carry_alone() {
    let udp = "[[flow]]\nkind = \"udp\"\nrate_mbps = 400\npacket_bytes = 1400\n";
    for flow in [udp, BULK] {
        let (wide, narrow) = (over_carriers(&[100], flow), over_carriers(&[50], flow));
        let both = over_carriers(&[100, 50], flow);
        assert!((both / (wide + narrow) - 1.0).abs() < 0.03, "{both} of {wide} and {narrow} Mb/s");
    }
}

#[test]
fn two_carriers_of_category_6_reach_what_was_measured() {
    // Reinikainen, Performance Evaluation of LTE-Advanced Carrier Aggregation (Aalto University,
    // 2015), abstract: 2 x 20 MHz, 2 x 2 MIMO, category 6: "close to the 300 Mbit/s", in good radio
    // conditions. Those are assumed to be 30 dB.
    let udp = "[[flow]]\nkind = \"udp\"\nrate_mbps = 400\npacket_bytes = 1400\n";
    let both = over_carriers(&[100, 100], udp);
    assert!((285.0..=300.0).contains(&both), "{both} Mb/s");
}

#[test]
fn four_carriers_reach_what_an_operator_measured() {
    // T-Mobile US, 2023 (sdxcentral.com and fiercewireless.com, July 2023): two channels at 2.5 GHz,
    // one at 1900 MHz, one at 600 MHz, together 225 MHz, 3.3 Gbit/s. Assumed: 100 + 90 + 20 + 15 MHz,
    // 30 dB, "DDDSU 10:2:2", 4 layers at 2.5 GHz and 2 at 600 MHz; at 1900 MHz, 2 or 4.
    let rate = |layers: u32| {
        let carrier = |preset: &str, mhz: u32, layers: u32| {
            format!(
                "[[radio.carrier]]\npreset = \"{preset}\"\n[radio.carrier.cell]\n\
                 bandwidth_mhz = {mhz}\nlayers_down = {layers}\n"
            )
        };
        let carriers = [("nr-n78", 90, 4), ("nr-fdd-20", 20, layers), ("nr-fdd-20", 15, 2)];
        let carriers = carriers.map(|(preset, mhz, layers)| carrier(preset, mhz, layers)).concat();
        let text = format!(
            "[run]\nduration_s = 2\n[radio]\npreset = \"nr-n78\"\n[radio.rlc]\n\
             buffer_bytes = 40_000_000\n{carriers}\
             [[flow]]\nkind = \"udp\"\nrate_mbps = 6000\npacket_bytes = 1400\n"
        );
        let flow = common::flow(&text, &[]);
        flow.steady_mbps.or(flow.goodput_mbps).expect("packets arrive") / 1e3
    };
    let (least, most) = (rate(2), rate(4));
    assert!(least < 3.3 && most > 3.3, "{least} and {most} Gb/s");
    assert!(least > 0.95 * 3.3 && most < 1.05 * 3.3, "{least} and {most} Gb/s");
}

#[test]
fn a_ping_waits_for_its_grant() {
    let ping = "[[flow]]\nkind = \"ping\"\ninterval_ms = 107\n";
    let summary = run(&over(CellConfig::lte(LteCarrier::fdd_20_mhz()), ping));
    let rtt = summary.pings[0].rtt_ms.as_ref().expect("answers");
    assert!((rtt.mean - 29.0).abs() < 1.5, "{rtt:?}");
    assert_eq!(summary.pings[0].lost, 0);
}

/// The answer is already on its way when the host's time begins.
#[test]
fn a_host_adds_its_time_to_every_ping() {
    let ping = "[[flow]]\nkind = \"ping\"\ninterval_ms = 107\n";
    let mut scenario = over(CellConfig::lte(LteCarrier::fdd_20_mhz()), ping);
    let rtt = |scenario: &Scenario| run(scenario).pings[0].rtt_ms.clone().expect("answers");
    let without = rtt(&scenario);
    scenario.radio.as_mut().expect("there is one").hosts[0].delay = Duration::from_millis(3);
    let with = rtt(&scenario);
    for (with, without) in [(with.min, without.min), (with.mean, without.mean)] {
        assert!((with - without - 3.0).abs() < 0.01, "{with} after {without}");
    }
}

#[test]
fn a_hosts_jitter_has_its_mean() {
    let ping = "[[flow]]\nkind = \"ping\"\ninterval_ms = 107\n";
    let mut scenario = over(CellConfig::lte(LteCarrier::fdd_20_mhz()), ping);
    scenario.run.duration = Duration::from_secs(300);
    let rtt = |scenario: &Scenario| run(scenario).pings[0].rtt_ms.clone().expect("answers");
    let without = rtt(&scenario);
    scenario.radio.as_mut().expect("there is one").hosts[0].jitter = Duration::from_millis(3);
    let with = rtt(&scenario);
    // 2,800 draws: three standard errors of the mean.
    assert!((with.mean - without.mean - 3.0).abs() < 0.17, "{with:?} after {without:?}");
    assert!(with.min >= without.min && with.max > without.max + 9.0);
}

/// Acknowledgements are sent when there is a grant: none arrives beyond what fits a block, and the
/// radio's own timing spaces them.
#[test]
fn a_file_arrives_whole_over_a_bad_channel() {
    // Some thousand blocks: the share of failed blocks varies by 0.015.
    let file = BULK.replace("kind = \"bulk\"", "kind = \"file\"\nsize_bytes = 100_000_000");
    let mut scenario = over(CellConfig::nr(NrCarrier::n78_100_mhz()), &file);
    let radio = scenario.radio.as_mut().expect("there is one");
    let ue = &mut radio.ran.ues[0].in_cell[0];
    for link in [&mut ue.downlink, &mut ue.uplink] {
        link.harq.decoding = Decoding::Fixed { initial: 0.3, retransmission: 0.3 };
    }
    let summary = run(&scenario);
    assert_eq!(summary.flows[0].bytes_delivered, 100_000_000);
    assert!(summary.flows[0].completed_s.is_some());
    let down = &summary.radio[0];
    assert!(down.bler.is_some_and(|bler| (bler - 0.3).abs() < 0.05), "{:?}", down.bler);
    assert!(down.lost_blocks > 0 && down.rlc_retransmissions > 0);
}

/// TS 29.281: the tunnel ends at the base station, above PDCP.
#[test]
fn the_cell_sees_no_outer_headers() {
    let gtpu = |direction: &str, end: &str| {
        format!("[[path.{direction}]]\nstage = \"gtpu\"\nend = \"{end}\"\n")
    };
    let tunnelled = format!(
        "{}{}{WIRE}{}{}",
        gtpu("down", "enter"),
        gtpu("up", "enter"),
        gtpu("down", "leave"),
        gtpu("up", "leave")
    );
    let run = |path: &str| {
        let flows = format!("{BULK}[[flow]]\nkind = \"ping\"\n");
        let summary = run(&behind(path, CellConfig::nr(NrCarrier::n78_100_mhz()), &flows));
        let flows = serde_json::to_string(&summary.flows).expect("plain data");
        (flows, serde_json::to_string(&summary.links).expect("plain data"))
    };
    assert_eq!(run(&tunnelled), run(WIRE));
}

/// RFC 4787 REQ-5: a packet that comes up through the cell creates a binding.
#[test]
fn a_nat_in_front_of_the_cell_lets_in_what_the_ue_asked_for() {
    let path = format!("[[path.up]]\nstage = \"nat\"\n[[path.down]]\nstage = \"nat\"\n{WIRE}");
    let ping = |direction: &str| {
        format!(
            "[[flow]]\nkind = \"ping\"\ninterval_ms = 300\nid = \"{direction}\"\n\
             direction = \"{direction}\"\n"
        )
    };
    let flows = format!("{}{}", ping("up"), ping("down"));
    let summary = run(&behind(&path, CellConfig::nr(NrCarrier::n78_100_mhz()), &flows));
    let (asked, unasked) = (&summary.pings[0], &summary.pings[1]);
    assert!(asked.sent > 0 && asked.lost == 0, "{asked:?}");
    assert!(unasked.sent > 0 && unasked.lost == unasked.sent, "{unasked:?}");
}

/// Four paths and a cell: the proxy's UE side ends at the cell.
#[test]
fn files_arrive_whole_through_a_proxy_and_a_cell() {
    let proxied = format!(
        "{WIRE}[[path.down]]\nstage = \"proxy\"\n[[path.down]]\nstage = \"delay\"\ndelay_ms = 1\n\
         [[path.up]]\nstage = \"proxy\"\n[[path.up]]\nstage = \"delay\"\ndelay_ms = 5\n"
    );
    let file = |direction: &str| {
        format!(
            "[[flow]]\nkind = \"file\"\nsize_bytes = 1_000_000\ndirection = \"{direction}\"\n\
             profile = \"linux-6.18\"\n"
        )
    };
    let flows = format!("{}{}[[flow]]\nkind = \"ping\"\n", file("down"), file("up"));
    let summary = run(&behind(&proxied, CellConfig::lte(LteCarrier::fdd_20_mhz()), &flows));
    for flow in &summary.flows[..2] {
        assert_eq!(flow.bytes_delivered, 1_000_000, "{}", flow.id);
        assert!(flow.completed_s.is_some(), "{}", flow.id);
    }
    assert_eq!(summary.proxies.len(), 2);
    assert_eq!(summary.pings[0].lost, 0);
    // Beyond the proxy the RTT is that of the radio, before it that of the wire.
    let (flow, proxy) = (&summary.flows[0], &summary.proxies[0]);
    let median = |rtt: &Option<airpath_record::Quantiles>| rtt.as_ref().expect("samples").p50;
    assert!(median(&flow.rtt_ms) < 12.0 && median(&proxy.rtt_ms) > 15.0);
}
