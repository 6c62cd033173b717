//! Tests what keys mean, from TOML and `--set` to the scenario.

use std::path::Path;

use airpath_base::{Direction, Duration, Rate};
use airpath_path::{
    Aqm, DelayConfig, Distribution, Jitter, LossConfig, LossProcess, ServiceConfig, StageConfig,
};
use airpath_scenario::{HandUpConfig, Parsed, ProgramPlace, Source, TcpConfig, Traffic, parse};
use airpath_tcp::{
    AckTrain, BufferConfig, CongestionConfig, CubicArithmetic, CubicConfig, EarlyExit,
    HystartConfig, ReaderConfig, RoundStart,
};

const BULK: &str = "[[flow]]\nkind = \"bulk\"\n";
/// TCP needs a path that takes time.
const TEN_MS: &str = "[[path.up]]\nstage = \"delay\"\ndelay_ms = 10\n";

fn parsed_with(text: &str, sets: &[&str]) -> Parsed {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let source =
        Source { name: "dir/my test.toml", text, directory: Some(Path::new("tests/data")) };
    match parse(&source, &sets) {
        Ok(parsed) => parsed,
        Err(error) => panic!("{error}"),
    }
}

fn parsed(text: &str) -> Parsed {
    parsed_with(text, &[])
}

fn tcp(traffic: &Traffic) -> &TcpConfig {
    match traffic {
        Traffic::Bulk { tcp, .. } | Traffic::File { tcp, .. } => tcp,
        other => panic!("{} has no TCP", other.kind()),
    }
}

#[test]
fn the_shortest_scenario_has_every_default() {
    let scenario = parsed(&format!("{TEN_MS}{BULK}")).scenario;
    assert_eq!((scenario.name.as_str(), scenario.title.as_str()), ("my-test", "my-test"));
    assert_eq!(scenario.run.seed, 1);
    assert_eq!(scenario.run.duration, Duration::from_secs(30));
    assert_eq!(scenario.run.sample_interval, Duration::from_millis(100));
    assert!(!scenario.run.ack_table);
    assert!(scenario.down.is_empty());
    let flow = &scenario.flows[0];
    assert_eq!((flow.id.as_str(), flow.direction), ("bulk-0", Direction::Downlink));
    assert_eq!(flow.start, Duration::ZERO);
    let tcp = tcp(&flow.traffic);
    assert!(tcp.sender_opens);
    assert_eq!(tcp.profile, "rfc");
    assert_eq!(tcp.sender, tcp.receiver);
    assert_eq!(tcp.sender.congestion, CongestionConfig::Cubic(CubicConfig::default()));
    assert_eq!((tcp.sender.mss, tcp.sender.header, tcp.sender.initial_window), (1448, 52, 10));
    assert_eq!(tcp.sender.slow_start.limit, Some(1));
}

#[test]
fn times_and_rates_are_exact() {
    let text = format!(
        "run.duration_s = 1.1\n[[path.up]]\nstage = \"link\"\nrate_mbps = 0.35\n\
         [[path.up]]\nstage = \"delay\"\ndelay_ms = 0.000001\n{BULK}"
    );
    let scenario = parsed(&text).scenario;
    assert_eq!(scenario.run.duration.as_nanos(), 1_100_000_000);
    assert_eq!(scenario.up[0].name, "up.0.link");
    let StageConfig::Link(link) = &scenario.up[0].stage else { panic!("not a link") };
    assert_eq!(link.service, ServiceConfig::Rate(Rate::from_bps(350_000).unwrap()));
    assert_eq!((link.queue.packets, link.queue.bytes, link.queue.aqm), (None, None, Aqm::DropTail));
    let delay = DelayConfig { base: Duration::from_nanos(1), jitter: None };
    assert_eq!(scenario.up[1].stage, StageConfig::Delay(delay));
}

#[test]
fn loss_may_be_of_given_packets_and_of_large_ones_alone() {
    let text = format!(
        "[[path.down]]\nstage = \"loss\"\npackets = \"7, 2-3\"\nmin_packet_bytes = 100\n{TEN_MS}{BULK}"
    );
    let process = LossProcess::Numbered { numbers: [2, 3, 7].into() };
    let loss = StageConfig::Loss(LossConfig { process, min_bytes: 100 });
    assert_eq!(parsed(&text).scenario.down[0].stage, loss);
}

#[test]
fn stages_are_what_they_say() {
    let text = format!(
        "[[path.down]]\nstage = \"link\"\nrate_mbps = 1\naqm = \"codel\"\ncodel_target_ms = 7\n\
         [[path.down]]\nstage = \"delay\"\ndelay_ms = 1\njitter_ms = 2\n\
         jitter_distribution = \"half-normal\"\nkeep_order = false\n\
         [[path.down]]\nstage = \"loss\"\nperiod = 100\n\
         [[path.down]]\nstage = \"gilbert-elliott\"\ngood_to_bad = 0.1\nbad_to_good = 1\n\
         [[path.down]]\nstage = \"batch\"\ninterval_ms = 2.5\n{BULK}"
    );
    let down = parsed(&text).scenario.down;
    let StageConfig::Link(link) = &down[0].stage else { panic!("not a link") };
    let (target, interval) = (Duration::from_millis(7), Duration::from_millis(100));
    assert_eq!(link.queue.aqm, Aqm::CoDel { target, interval });
    let sd = Duration::from_millis(2);
    let jitter = Jitter {
        distribution: Distribution::HalfNormal { sd },
        keep_order: false,
        together: false,
    };
    let delay = DelayConfig { base: Duration::from_millis(1), jitter: Some(jitter) };
    assert_eq!(down[1].stage, StageConfig::Delay(delay));
    let loss = |process| StageConfig::Loss(LossConfig { process, min_bytes: 0 });
    assert_eq!(down[2].stage, loss(LossProcess::Periodic { period: 100 }));
    let chain = LossProcess::GilbertElliott {
        good_to_bad: 0.1,
        bad_to_good: 1.0,
        loss_good: 0.0,
        loss_bad: 1.0,
    };
    assert_eq!(down[3].stage, loss(chain));
    assert_eq!(down[3].name, "down.3.gilbert-elliott");
    let interval = Duration::from_micros(2500);
    assert_eq!(down[4].stage, StageConfig::Batch { interval });
}

#[test]
fn flows_have_the_defaults_of_their_kind() {
    let text = "[[path.up]]\nstage = \"delay\"\ndelay_ms = 10\n\
                [[flow]]\nkind = \"ping\"\n[[flow]]\nkind = \"file\"\nsize_bytes = 5\n\
                [[flow]]\nkind = \"udp\"\nrate_mbps = 1\n";
    let flows = parsed(text).scenario.flows;
    let ids: Vec<_> = flows.iter().map(|flow| (flow.id.as_str(), flow.direction)).collect();
    assert_eq!(
        ids,
        [
            ("ping-0", Direction::Uplink),
            ("file-1", Direction::Downlink),
            ("udp-2", Direction::Downlink)
        ]
    );
    let interval = Duration::from_secs(1);
    assert_eq!(flows[0].traffic, Traffic::Ping { interval, packet_bytes: 84, count: None });
    assert!(!tcp(&flows[1].traffic).sender_opens);
    let rate = Rate::from_bps(1_000_000).unwrap();
    let udp =
        |receiver_opens| Traffic::Udp { rate, packet_bytes: 1500, duration: None, receiver_opens };
    assert_eq!(flows[2].traffic, udp(false));
}

#[test]
fn a_profile_is_derived_and_a_flow_overrides_it() {
    let text = "[[path.up]]\nstage = \"delay\"\ndelay_ms = 10\n\
                [profile.\"b-1.0\"]\nbase = \"a\"\noptions.sack = false\n\
                [profile.a]\nbase = \"macos-10.5\"\nwindow_bytes = 100000\n\
                [[flow]]\nkind = \"bulk\"\nprofile = \"b-1.0\"\nreceive_buffer_bytes = 50000\n\
                [[flow]]\nkind = \"bulk\"\nprofile = \"a\"\ncongestion = \"cubic\"\n\
                [[flow]]\nkind = \"bulk\"\ncongestion = \"fixed\"\nfixed_window_segments = 7\n";
    let parsed = parsed(text);
    let flows = &parsed.scenario.flows;
    let first = &tcp(&flows[0].traffic).sender;
    assert_eq!((first.sack, first.timestamps, first.initial_window), (false, true, 1));
    assert_eq!((first.send_buffer, first.receive_buffer), (100_000, BufferConfig::fixed(50_000)));
    assert_eq!((first.delayed_ack.segments, first.delayed_ack.ticking), (4, true));
    assert_eq!(first.congestion, CongestionConfig::RENO);
    let second = &tcp(&flows[1].traffic).sender;
    assert_eq!(second.congestion, CongestionConfig::Cubic(CubicConfig::default()));
    let third = &tcp(&flows[2].traffic).sender;
    assert_eq!(third.congestion, CongestionConfig::Fixed { segments: 7 });

    let source = Source { name: "my-test", text: &parsed.resolved_toml, directory: None };
    let again = parse(&source, &[]).unwrap();
    assert_eq!(again.scenario, parsed.scenario);
    assert_eq!(again.resolved_toml, parsed.resolved_toml);
}

#[test]
fn a_buffer_grows_unless_the_window_is_set() {
    let text = "[[path.up]]\nstage = \"delay\"\ndelay_ms = 10\n\
                [[flow]]\nkind = \"bulk\"\nprofile = \"linux-6.1\"\n\
                receive_buffer_bytes = 1000000\nread_rate_mbps = 8\n\
                [[flow]]\nkind = \"bulk\"\nprofile = \"linux-6.1\"\nwindow_bytes = 100000\n";
    let flows = parsed(text).scenario.flows;
    let [first, second] = [0, 1].map(|index| &tcp(&flows[index].traffic).receiver);
    assert_eq!(first.receive_buffer, BufferConfig { initial: 65_536, max: 1_000_000, tuned: true });
    assert_eq!(first.reader, ReaderConfig::Rate(Rate::from_bps(8_000_000).unwrap()));
    assert_eq!(second.receive_buffer, BufferConfig::fixed(100_000));
    assert_eq!(second.reader, ReaderConfig::AtOnce);
}

#[test]
fn a_window_fixes_both_buffers_and_linux_doubles_the_senders() {
    let ends = |profile: &str, more: &str| {
        let text = format!(
            "[profile.own]\nbase = \"linux-5.10\"\nwindow_bytes = 70000\n{TEN_MS}[[flow]]\nkind = \"bulk\"\n\
             profile = \"{profile}\"\n{more}"
        );
        let flows = parsed(&text).scenario.flows;
        let end = &tcp(&flows[0].traffic).sender;
        (end.send_buffer, end.send_buffer_factor, end.receive_buffer)
    };
    // socket(7): "The kernel doubles this value"; SOCK_SNDBUF_LOCK ends tuning.
    let window = "window_bytes = 100000\n";
    for linux in ["linux-4.19", "linux-6.1", "linux-6.18", "own"] {
        assert_eq!(ends(linux, window), (200_000, None, BufferConfig::fixed(100_000)), "{linux}");
    }
    for other in ["macos-10.5", "rfc"] {
        assert_eq!(ends(other, window), (100_000, None, BufferConfig::fixed(100_000)), "{other}");
    }
    assert_eq!(ends("own", ""), (140_000, None, BufferConfig::fixed(70_000)));
    let tuned = ends("linux-6.1", "send_buffer_bytes = 100000\n");
    assert_eq!((tuned.0, tuned.1), (100_000, Some(2)));
    // An explicit growth factor makes the buffer grow.
    let both = ends("linux-6.1", "window_bytes = 100000\nbuffer.send_factor = 2\n");
    assert_eq!((both.0, both.1), (200_000, Some(2)));
}

#[test]
fn buffers_hold_what_the_first_hop_carries_in_a_round_trip() {
    let ends = |more: &str| {
        let text = format!("{TEN_MS}[[flow]]\nkind = \"bulk\"\nprofile = \"macos-10.5\"\n{more}");
        let parsed = parsed(&text);
        let source = Source { name: "my-test", text: &parsed.resolved_toml, directory: None };
        assert_eq!(parse(&source, &[]).unwrap().scenario, parsed.scenario);
        let end = &tcp(&parsed.scenario.flows[0].traffic).sender;
        (end.send_buffer, end.receive_buffer.max)
    };
    let rule = |whose: &str, rtt: &str, rate: &str| {
        format!(
            "window_bytes = 10240\nbuffer.from_first_hop = \"{whose}\"\n\
             buffer.first_hop_rtt_ms = {rtt}\nbuffer.first_hop_mbps = {rate}\n"
        )
    };
    // 1.35 Mb/s for 0.4 s are 67,500 bytes.
    assert_eq!(ends(&rule("both", "400", "1.35")), (67_500, 67_500));
    assert_eq!(ends(&rule("ue", "400", "1.35")), (10_240, 67_500));
    let up = rule("ue", "400", "1.35") + "direction = \"up\"\n";
    assert_eq!(ends(&up), (67_500, 10_240));
    // Whole bytes, and never less than without.
    assert_eq!(ends(&rule("both", "100", "1.000001")), (12_501, 12_501));
    assert_eq!(ends(&rule("both", "0", "1000")), (10_240, 10_240));
    assert_eq!(ends("window_bytes = 10240\nbuffer.from_first_hop = \"none\"\n"), (10_240, 10_240));
}

#[test]
fn slow_start_has_versions_and_switches() {
    let exit = |sets: &[&str]| {
        let sets: Vec<_> = sets.iter().map(|set| format!("flow.0.{set}")).collect();
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let parsed = parsed_with(&format!("{TEN_MS}{BULK}"), &sets);
        let source = Source { name: "my-test", text: &parsed.resolved_toml, directory: None };
        assert_eq!(parse(&source, &[]).unwrap().scenario, parsed.scenario);
        tcp(&parsed.scenario.flows[0].traffic).sender.slow_start.exit
    };
    assert_eq!(exit(&["profile=linux-6.1"]), EarlyExit::Hystart(HystartConfig::LINUX_5_16));
    assert_eq!(exit(&["slow_start=hystart++"]), EarlyExit::HystartPlusPlus);
    // Both changes of 4.19.
    let fixed = exit(&[
        "slow_start=hystart-4.19",
        "hystart.falling_minimum_exits=false",
        "hystart.late_reset=false",
    ]);
    let expected = HystartConfig {
        falling_minimum_exits: false,
        round_start: RoundStart::Prompt,
        ..HystartConfig::LINUX_4_19
    };
    assert_eq!(fixed, EarlyExit::Hystart(expected));
    // hystart_detect = 2
    let delay_only = exit(&["profile=linux-6.1", "hystart.ack_train=false"]);
    let expected = HystartConfig { ack_train: AckTrain::Off, ..HystartConfig::LINUX_5_16 };
    assert_eq!(delay_only, EarlyExit::Hystart(expected));
}

#[test]
fn linux_counts_whole_segments() {
    let parsed = parsed_with(&format!("{TEN_MS}{BULK}"), &["flow.0.profile=linux-6.1"]);
    let arithmetic = CubicArithmetic::Linux;
    let cubic = CongestionConfig::Cubic(CubicConfig { arithmetic, ..CubicConfig::default() });
    assert_eq!(tcp(&parsed.scenario.flows[0].traffic).sender.congestion, cubic);
}

#[test]
fn a_setting_replaces_what_the_file_says_and_the_last_one_wins() {
    let text = format!("[[path.down]]\nstage = \"link\"\nrate_mbps = 1\n{BULK}id = \"a\"\n");
    let sets = [
        "title=two words",
        "run.seed=0x10",
        "run.duration_s=5",
        "run.duration_s = 7.5",
        "path.down.0.rate_mbps=1.35",
        "path.down.0.aqm=codel",
        "flow.0.window_bytes=65536",
        "flow.0.profile=\"mine-1.0\"",
        "profile.\"mine-1.0\".base=macos-10.5",
        "flow.0.id=007",
        "path.up=[{stage = \"delay\", delay_ms = 3}]",
    ];
    let scenario = parsed_with(&text, &sets).scenario;
    assert_eq!((scenario.title.as_str(), scenario.run.seed), ("two words", 16));
    assert_eq!(scenario.run.duration, Duration::from_millis(7500));
    let StageConfig::Link(link) = &scenario.down[0].stage else { panic!("not a link") };
    assert_eq!(link.service, ServiceConfig::Rate(Rate::from_bps(1_350_000).unwrap()));
    assert!(matches!(link.queue.aqm, Aqm::CoDel { .. }));
    let flow = &scenario.flows[0];
    // 007 is not a TOML number, so it is a string.
    assert_eq!(flow.id, "007");
    let tcp = tcp(&flow.traffic);
    assert_eq!((tcp.sender.send_buffer, tcp.sender.initial_window), (65536, 1));
    assert_eq!(scenario.up.len(), 1);
}

#[test]
fn a_setting_is_part_of_the_digest() {
    let digest = |sets: &[&str]| parsed_with(&format!("{TEN_MS}{BULK}"), sets).sha256;
    assert_eq!(digest(&[]), digest(&["run.seed=1"]));
    assert_ne!(digest(&[]), digest(&["run.seed=2"]));
}

#[test]
fn traces_are_found_beside_the_scenario_and_their_content_is_part_of_the_digest() {
    let text = |file: &str| format!("[[path.down]]\nstage = \"trace\"\nfile = \"{file}\"\n{BULK}");
    let plain = parsed(&text("small.trace"));
    let packed = parsed(&text("small.trace.gz"));
    assert_eq!(plain.scenario, packed.scenario);
    assert_ne!(plain.sha256, packed.sha256);
    // sha256sum tests/data/small.trace
    assert_eq!(
        plain.traces[0].sha256,
        "d9eea9a18a1f10e0219529634b969516ca06370bcd1633bf026977e138bd7ae3"
    );
    assert!(plain.resolved_toml.contains("file = \"small.trace\"\n"));
    assert_eq!(plain.scenario.down[0].name, "down.0.trace");
}

#[test]
fn reno_has_hystart_only_where_it_is_asked_for() {
    let exit = |text: &str| {
        let parsed = parsed(&format!("{TEN_MS}{BULK}congestion = \"reno\"\n{text}"));
        tcp(&parsed.scenario.flows[0].traffic).sender.slow_start.exit
    };
    assert_eq!(exit("profile = \"linux-6.18\"\n"), EarlyExit::None);
    let asked = exit("profile = \"linux-6.18\"\nslow_start = \"hystart++\"\n");
    assert_eq!(asked, EarlyExit::HystartPlusPlus);
    let derived =
        "profile = \"mine\"\n[profile.mine]\nbase = \"linux-6.18\"\nslow_start = \"hystart++\"\n";
    assert_eq!(exit(derived), EarlyExit::HystartPlusPlus);
    let kept = "profile = \"mine\"\n[profile.mine]\nbase = \"linux-6.18\"\nrto.min_ms = 300\n";
    assert_eq!(exit(kept), EarlyExit::None);
}

#[test]
fn a_flow_reads_as_it_says_whatever_its_profile_does() {
    let reader = |keys: &str| {
        let text = format!(
            "[[path.up]]\nstage = \"delay\"\ndelay_ms = 10\n[[flow]]\nkind = \"bulk\"\n\
             profile = \"mine\"\n{keys}[profile.mine]\nread_rate_mbps = 8\n"
        );
        tcp(&parsed(&text).scenario.flows[0].traffic).receiver.reader
    };
    assert_eq!(reader(""), ReaderConfig::Rate(Rate::from_bps(8_000_000).unwrap()));
    assert_eq!(
        reader("application.read_delay_ms = 2\n"),
        ReaderConfig::After(Duration::from_millis(2))
    );
}

#[test]
fn a_host_takes_time_to_hand_up_if_it_is_said() {
    let hand_up = |keys: &str| {
        let text = format!(
            "[[path.up]]\nstage = \"delay\"\ndelay_ms = 10\n[[flow]]\nkind = \"bulk\"\n{keys}"
        );
        tcp(&parsed(&text).scenario.flows[0].traffic).hand_up
    };
    let [burst, segment] = [7, 1].map(Duration::from_micros);
    assert_eq!(hand_up(""), None);
    assert_eq!(
        hand_up("aggregation.hand_up_ms = 0.007\naggregation.hand_up_segment_ms = 0.001\n"),
        Some(HandUpConfig { burst, segment })
    );
    let alone = HandUpConfig { burst: Duration::ZERO, segment };
    assert_eq!(hand_up("aggregation.hand_up_segment_ms = 0.001\n"), Some(alone));
}

#[test]
fn a_proxy_divides_the_stages_and_has_ends_of_its_own() {
    let text = format!(
        "[[path.down]]\nstage = \"delay\"\ndelay_ms = 50\n\
         [[path.down]]\nstage = \"proxy\"\ncongestion = \"bbr\"\nreceive_buffer_bytes = 100000\n\
         [[path.down]]\nstage = \"link\"\nrate_mbps = 1\n\
         [[path.up]]\nstage = \"proxy\"\nprofile = \"mine\"\n{BULK}\
         [profile.mine]\nbase = \"linux-6.1\"\nread_rate_mbps = 1\nwindow_bytes = 65536\n"
    );
    let scenario = parsed(&text).scenario;
    let names: Vec<_> = scenario.down.iter().map(|stage| stage.name.as_str()).collect();
    // The proxy's position counts, so that names match those of `--set`.
    assert_eq!(names, ["down.0.delay", "down.2.link"]);
    assert!(scenario.up.is_empty());
    let proxy = scenario.proxy.expect("there is one");
    assert_eq!((proxy.down.name.as_str(), proxy.down.stages_before), ("down.1.proxy", 1));
    assert_eq!((proxy.up.name.as_str(), proxy.up.stages_before), ("up.0.proxy", 0));
    assert_eq!(proxy.down.profile, "linux-6.1");
    assert_eq!(proxy.down.endpoint.congestion, CongestionConfig::Bbr1 { seed: 0 });
    assert_eq!(proxy.down.endpoint.receive_buffer.max, 100_000);
    assert_eq!(proxy.up.endpoint.congestion.name(), "cubic");
    assert_eq!(proxy.up.endpoint.receive_buffer, BufferConfig::fixed(65_536));
    // A proxy reads what the other direction takes, whatever the profile's application does.
    assert_eq!(proxy.up.endpoint.reader, ReaderConfig::Driver);
}

#[test]
fn programs_have_places_and_defaults() {
    let text = format!(
        "{TEN_MS}{BULK}[[program]]\ncommand = \"exec iperf3 -s\"\nat = \"server\"\n\
         wait_for = \"listen\"\n[[program]]\ncommand = \"ping server\"\nat = \"car\"\n\
         start_s = 1.5\nends_run = true\n[[program]]\ncommand = \"true\"\n[radio]\n\
         preset = \"lte-20\"\n[[radio.ue]]\nname = \"phone\"\n[[radio.ue]]\nname = \"car\"\n"
    );
    let parsed = parsed(&text);
    let [server, ping, first] = &parsed.scenario.programs[..] else { panic!("three programs") };
    assert_eq!((server.name.as_str(), server.place), ("program-0", ProgramPlace::Server));
    assert!(server.service && !server.ends_run);
    assert_eq!(server.start, Duration::ZERO);
    assert_eq!((ping.place, ping.start), (ProgramPlace::Ue(1), Duration::from_millis(1500)));
    assert!(ping.ends_run && !ping.service);
    assert_eq!(first.place, ProgramPlace::Ue(0));
    let again = parse(&Source { name: "a", text: &parsed.resolved_toml, directory: None }, &[]);
    assert_eq!(again.unwrap().scenario.programs, parsed.scenario.programs);
    // A scenario without programs keeps its earlier hash.
    assert!(!parsed_with(&format!("{TEN_MS}{BULK}"), &[]).resolved_toml.contains("program"));
}

#[test]
fn what_is_not_enabled_is_not_there_and_moves_nothing() {
    let text = "
[[path.down]]
stage = \"loss\"
probability = 0.5
[[path.down]]
stage = \"link\"
rate_mbps = 10
[[path.up]]
stage = \"delay\"
delay_ms = 10
[[flow]]
kind = \"ping\"
[[flow]]
kind = \"bulk\"
[[program]]
command = \"true\"
[[program]]
command = \"false\"
";
    let sets = ["path.down.0.enabled=false", "flow.0.enabled=false", "program.0.enabled=false"];
    let parsed = parsed_with(text, &sets);
    let names = |scenario: &airpath_scenario::Scenario| {
        let stages = scenario.down.iter().map(|stage| stage.name.clone());
        let flows = scenario.flows.iter().map(|flow| flow.id.clone());
        let programs = scenario.programs.iter().map(|program| program.name.clone());
        stages.chain(flows).chain(programs).collect::<Vec<_>>()
    };
    assert_eq!(names(&parsed.scenario), ["down.1.link", "bulk-1", "program-1"]);
    // The resolved file keeps disabled tables in their positions.
    let again = parsed_with(&parsed.resolved_toml, &["name=my-test"]);
    assert_eq!(again.scenario, parsed.scenario);
    assert_eq!(again.resolved_toml, parsed.resolved_toml);
    let back = parsed_with(
        &parsed.resolved_toml,
        &["path.down.0.enabled=true", "flow.0.enabled=true", "program.0.enabled=true"],
    );
    let all = ["down.0.loss", "down.1.link", "ping-0", "bulk-1", "program-0", "program-1"];
    assert_eq!(names(&back.scenario), all);
}

#[test]
fn a_path_without_a_link_may_be_what_a_host_could_send() {
    let text = |delay: &str, flow: &str| {
        format!("[[path.up]]\nstage = \"delay\"\ndelay_ms = {delay}\n[[flow]]\n{flow}")
    };
    // 16 MiB in segments of 1,448 bytes in 2 ms are 5.8 million packets per second.
    for (delay, flow) in [
        ("2", "kind = \"bulk\""),
        ("0.01", "kind = \"bulk\"\nwindow_bytes = 100000"),
        ("0.01", "kind = \"bulk\"\noptions.window_scaling = false"),
        ("0.01", "kind = \"bulk\"\ncongestion = \"fixed\"\nfixed_window_segments = 50"),
        ("0.01", "kind = \"file\"\nsize_bytes = 1000000000"),
        ("0.01", "kind = \"bulk\"\nduration_s = 0.001"),
        ("0", "kind = \"udp\"\nrate_mbps = 5"),
    ] {
        let text = text(delay, flow);
        let source = Source { name: "s.toml", text: &text, directory: None };
        assert!(parse(&source, &[]).is_ok(), "{text}");
    }
}

/// The last profile comes first in the file; in a circle none does.
#[test]
fn profiles_that_start_from_one_another_are_read_in_their_order() {
    let chain = |count: usize, first: &str| {
        let profile = |number: usize| {
            let base = if number == 0 { first.to_owned() } else { format!("p{}", number - 1) };
            format!("[profile.p{number}]\nbase = \"{base}\"\n")
        };
        // In reverse order.
        let profiles: String = (0..count).rev().map(profile).collect();
        format!(
            "{profiles}[[path.up]]\nstage = \"delay\"\ndelay_ms = 10\n[[flow]]\nkind = \"file\"\n\
                 size_bytes = 1\nprofile = \"p{}\"\n",
            count - 1
        )
    };
    let parsed = |text: &str| parse(&Source { name: "s.toml", text, directory: None }, &[]);
    let read = parsed(&chain(300, "linux-6.1")).expect("it is valid");
    assert!(read.resolved_toml.find("[profile.p7]") < read.resolved_toml.find("[profile.p8]"));
    let Err(error) = parsed(&chain(2000, "p1999")) else { panic!("it is a circle") };
    let circle = error.problems.first().and_then(|problem| problem.help.as_deref());
    let names = "p1999 → p1998 → p1997 → p1996 → p1995 → p1994 → p1993 → p1992 → …";
    assert_eq!(circle, Some(format!("follow its `base`: {names}").as_str()));
    assert_eq!(error.problems.len() + error.more, 2000);
}
