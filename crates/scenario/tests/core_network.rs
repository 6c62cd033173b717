//! Tests what the keys of the core network's stages mean.

use airpath_base::{Duration, Instant, Rate};
use airpath_path::{
    Aqm, DelayConfig, Distribution, Excess, HostConfig, LinkConfig, MiddleboxConfig, MiddleboxKind,
    MiddleboxSide, MiddleboxTimer, ModemConfig, OffloadConfig, OffloadFault, OuterIp,
    PolicerConfig, QueueConfig, ServiceConfig, StageConfig, Stalls, TooBig, TunnelConfig,
    TunnelEnd, TunnelProtocol,
};
use airpath_scenario::{NamedStage, Scenario, Source, Traffic, parse};

fn scenario(text: &str) -> Scenario {
    let text = format!("{text}\n[[flow]]\nkind = \"ping\"\n");
    match parse(&Source { name: "s.toml", text: &text, directory: None }, &[]) {
        Ok(parsed) => parsed.scenario,
        Err(error) => panic!("{error}"),
    }
}

/// Stages of the downlink, each given by its keys.
fn down(stages: &[&str]) -> Vec<StageConfig> {
    let text: String = stages.iter().map(|keys| format!("[[path.down]]\n{keys}\n")).collect();
    scenario(&text).down.into_iter().map(|named| named.stage).collect()
}

#[test]
fn a_tunnel_is_that_of_nr_over_ipv4_unless_said_otherwise() {
    let leave = "stage = \"gtpu\"\nend = \"leave\"";
    let enter = |config| StageConfig::Tunnel(TunnelEnd::Enter(config));
    let nr = TunnelConfig {
        outer_ip: OuterIp::V4,
        protocol: TunnelProtocol::Gtpu { pdu_session_container: true },
        mtu: None,
        too_big: TooBig::Fragment,
    };
    let lte = "stage = \"gtpu\"\nend = \"enter\"\nouter_ip = \"ipv6\"\nmtu_bytes = 1500\n\
               pdu_session_container = false\ntoo_big = \"drop\"";
    let stages = down(&["stage = \"gtpu\"\nend = \"enter\"", leave, lte, leave]);
    assert_eq!(stages[0], enter(nr));
    assert_eq!(stages[1], StageConfig::Tunnel(TunnelEnd::Leave));
    let lte = TunnelConfig {
        outer_ip: OuterIp::V6,
        protocol: TunnelProtocol::Gtpu { pdu_session_container: false },
        mtu: Some(1500),
        too_big: TooBig::Drop,
    };
    assert_eq!(stages[2], enter(lte));
}

#[test]
fn a_vpn_has_the_mtu_of_its_device_and_that_of_the_path_outside() {
    let enter = "stage = \"vpn\"\nend = \"enter\"\nouter_ip = \"ipv6\"\nmtu_bytes = 1420\n\
                 outer_mtu_bytes = 1492\ntoo_big = \"drop\"";
    let stages = down(&[enter, "stage = \"vpn\"\nend = \"leave\""]);
    let config = TunnelConfig {
        outer_ip: OuterIp::V6,
        protocol: TunnelProtocol::WireGuard { device_mtu: Some(1420) },
        mtu: Some(1492),
        too_big: TooBig::Drop,
    };
    let ends = [TunnelEnd::Enter(config), TunnelEnd::Leave];
    assert_eq!(stages, ends.map(StageConfig::Tunnel));
}

#[test]
fn offload_joins_what_arrives_within_50_us_unless_said_otherwise() {
    let stages = down(&[
        "stage = \"offload\"\nfault = \"checksum\"\nmin_packet_bytes = 0",
        "stage = \"offload\"\nfault = \"joined\"",
    ]);
    let joined = OffloadFault::Joined { window: Duration::from_micros(50), mtu: 1500 };
    let faults = [(OffloadFault::Checksum, 0), (joined, 100)];
    let offload = |(fault, min_bytes)| StageConfig::Offload(OffloadConfig { fault, min_bytes });
    assert_eq!(stages, faults.map(offload));
}

#[test]
fn a_shaper_is_a_link_and_a_policer_is_not() {
    let keys = "rate_mbps = 20\nburst_bytes = 25000";
    let stages = down(&[
        &format!("stage = \"shaper\"\n{keys}\nqueue_packets = 7"),
        &format!("stage = \"policer\"\n{keys}"),
        &format!("stage = \"policer\"\n{keys}\nexcess = \"mark\""),
        "stage = \"mtu\"\nmtu_bytes = 1400",
    ]);
    let (rate, burst) = (Rate::from_bps(20_000_000).unwrap(), 25_000);
    let queue = QueueConfig { packets: Some(7), bytes: None, aqm: Aqm::DropTail };
    let service = ServiceConfig::Bucket { rate, burst };
    let policer = |excess| StageConfig::Policer(PolicerConfig { rate, burst, excess });
    let mtu = StageConfig::Mtu { bytes: 1400 };
    let shaper = StageConfig::Link(LinkConfig { service, queue });
    assert_eq!(stages, [shaper, policer(Excess::Drop), policer(Excess::Mark), mtu]);
}

#[test]
fn middleboxes_have_their_timer_in_the_direction_that_opens_them() {
    let scenario = scenario(
        "[[path.up]]\nstage = \"nat\"\n\
         [[path.up]]\nstage = \"firewall\"\ntimeout_s = 60\ninward_refreshes = false\n\
         [[path.down]]\nstage = \"firewall\"\n[[path.down]]\nstage = \"nat\"\n",
    );
    let middlebox = |kind, side| StageConfig::Middlebox(MiddleboxConfig { kind, side });
    let timer = |s, inward_refreshes| {
        MiddleboxSide::Outward(MiddleboxTimer { timeout: Duration::from_secs(s), inward_refreshes })
    };
    let stages = |named: Vec<NamedStage>| named.into_iter().map(|named| named.stage);
    let up: Vec<_> = stages(scenario.up).collect();
    // RFC 4787 REQ-5 c): five minutes.
    let nat = middlebox(MiddleboxKind::Nat, timer(300, true));
    assert_eq!(up, [nat, middlebox(MiddleboxKind::Firewall, timer(60, false))]);
    let down: Vec<_> = stages(scenario.down).collect();
    let inward = |kind| middlebox(kind, MiddleboxSide::Inward);
    assert_eq!(down, [inward(MiddleboxKind::Firewall), inward(MiddleboxKind::Nat)]);
}

#[test]
fn a_modem_is_that_of_cdc_ncm_unless_said_otherwise() {
    let cdc_ncm = ModemConfig {
        block_bytes: 16_384,
        block_packets: 40,
        timer: Duration::from_micros(3 * 400),
        transfer: Duration::ZERO,
        ring_packets: None,
    };
    let rmnet = ModemConfig {
        block_bytes: 8192,
        block_packets: 32,
        timer: Duration::from_micros(800),
        transfer: Duration::from_micros(125),
        ring_packets: Some(60),
    };
    let stages = down(&[
        "stage = \"modem\"",
        "stage = \"modem\"\nblock_bytes = 8192\nblock_packets = 32\ntimer_ms = 0.8\n\
         transfer_ms = 0.125\nring_packets = 60",
    ]);
    assert_eq!(stages, [cdc_ncm, rmnet].map(StageConfig::Modem));
}

#[test]
fn a_host_never_stalls_unless_it_is_told_when() {
    let stages = down(&[
        "stage = \"host\"",
        "stage = \"host\"\nstalls = \"at-intervals\"\nstall_ms = 3\nstall_period_ms = 10\n\
         stall_offset_ms = 4\nring_packets = 9",
        "stage = \"host\"\nstalls = \"at-random\"\nstall_ms = 3\nstall_mean_between_ms = 10\n\
         processing_ms = 0.02\ncoalescing_ms = 0.05\ncpu = \"vm\"",
        "stage = \"host\"\nstalls = \"at-random\"\nstall_ms = 3\nstall_mean_between_ms = 10\n\
         stall_distribution = \"uniform\"",
    ]);
    let ms = Duration::from_millis;
    let plain = HostConfig {
        stalls: Stalls::None,
        processing: Duration::ZERO,
        coalescing: Duration::ZERO,
        ring_packets: None,
        cpu: None,
    };
    let periodic =
        Stalls::Periodic { offset: Instant::ZERO + ms(4), period: ms(10), duration: ms(3) };
    let random = |duration| Stalls::Random { mean_between: ms(10), duration };
    let expected = [
        plain.clone(),
        HostConfig { stalls: periodic, ring_packets: Some(9), ..plain.clone() },
        HostConfig {
            stalls: random(Distribution::Exponential { mean: ms(3) }),
            processing: Duration::from_micros(20),
            coalescing: Duration::from_micros(50),
            cpu: Some("vm".to_owned()),
            ..plain.clone()
        },
        HostConfig { stalls: random(Distribution::Uniform { max: ms(3) }), ..plain },
    ];
    assert_eq!(stages, expected.map(StageConfig::Host));
}

#[test]
fn each_place_of_a_server_is_further_away_than_the_one_before() {
    let places = ["upf", "campus", "edge", "region", "ocean"]
        .map(|place| format!("stage = \"server\"\nplace = \"{place}\""));
    let stages = down(&places.each_ref().map(String::as_str));
    let delays = stages.iter().map(|stage| match stage {
        StageConfig::Delay(DelayConfig { base, jitter: None }) => base.as_nanos() / 1000,
        other => panic!("{other:?}"),
    });
    assert_eq!(delays.collect::<Vec<_>>(), [50, 200, 1_000, 6_000, 40_000]);
}

#[test]
fn a_receiver_may_ask_for_datagrams() {
    let scenario = scenario("[[flow]]\nkind = \"udp\"\nrate_mbps = 1\nopened_by = \"receiver\"\n");
    assert!(matches!(scenario.flows[0].traffic, Traffic::Udp { receiver_opens: true, .. }));
}
