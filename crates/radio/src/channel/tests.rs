use std::path::Path;

use airpath_base::Duration;
use proptest::prelude::*;

use super::*;

fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn parse(text: &str, column: LogColumn, missing: Missing) -> Result<ChannelTrace, String> {
    ChannelTrace::parse(text.as_bytes(), Path::new("t"), column, missing)
        .map_err(|error| error.to_string())
}

fn replay(trace: ChannelTrace, at_end: AtEnd) -> Channel {
    let config = ChannelConfig::Trace { trace: Arc::new(trace), at_end };
    Channel::new(&config, Stream::new(1, "channel"))
}

#[test]
fn a_trace_holds_its_last_value_or_starts_again() {
    let text = "time_s,sinr_db\n10,1.5\n10.5,2\n11.5,-3\n";
    let trace = parse(text, LogColumn::Snr, Missing::Hold).unwrap();
    assert_eq!((trace.samples(), trace.period()), (3, Duration::from_millis(2_500)));
    let mut held = replay(trace.clone(), AtEnd::Hold);
    for (ms, sinr_db) in [(0, 1.5), (499, 1.5), (500, 2.0), (1_500, -3.0), (90_000, -3.0)] {
        assert_eq!(held.quality(at_ms(ms)), Quality::Sinr(sinr_db), "at {ms} ms");
    }
    let mut looping = replay(trace, AtEnd::Loop);
    for (ms, sinr_db) in [(2_499, -3.0), (2_500, 1.5), (3_000, 2.0), (25_000, 1.5)] {
        assert_eq!(looping.quality(at_ms(ms)), Quality::Sinr(sinr_db), "at {ms} ms");
    }
}

#[test]
fn a_lone_sample_lasts_for_ever() {
    let trace = parse("time_s,mcs\n3,27\n", LogColumn::Snr, Missing::Hold).unwrap();
    assert_eq!(replay(trace, AtEnd::Loop).quality(at_ms(9_999)), Quality::Mcs(27));
}

#[test]
fn a_drive_log_has_gaps_and_several_rows_in_a_second() {
    let text = "Timestamp,NetworkMode,SNR,CQI\n\
        2020.02.14_12.58.17,HSPA+,-,-\n\
        2020.02.14_12.58.18,5G,4.0,10\n\
        2020.02.14_12.58.18,5G,5.0,11\n\
        2020.02.14_12.58.20,HSPA+,-,-\n";
    let mut sinr = replay(parse(text, LogColumn::Snr, Missing::Outage).unwrap(), AtEnd::Hold);
    assert_eq!(sinr.quality(at_ms(0)), Quality::Outage);
    assert_eq!(sinr.quality(at_ms(1_000)), Quality::Sinr(5.0));
    assert_eq!(sinr.quality(at_ms(3_000)), Quality::Outage);
    let mut cqi = replay(parse(text, LogColumn::Cqi, Missing::Hold).unwrap(), AtEnd::Hold);
    assert_eq!(cqi.quality(at_ms(0)), Quality::Cqi(10));
    assert_eq!(cqi.quality(at_ms(3_000)), Quality::Cqi(11));
}

#[test]
fn bad_recordings_are_refused_with_their_line() {
    let error = |text| parse(text, LogColumn::Cqi, Missing::Hold).unwrap_err();
    assert!(error("").contains("it lacks \"time_s\""));
    assert!(error("time_s,rsrp\n1,2\n").contains("it lacks \"sinr_db\""));
    assert!(error("Timestamp,SNR\n").contains("it lacks \"CQI\""));
    assert!(error("time_s,cqi\n1,3\n2,16\n").contains("line 3: \"16\" is not a cqi"));
    assert!(error("time_s,cqi\n1,3\n2\n").contains("line 3: \"\" is not a cqi"));
    assert!(error("time_s,sinr_db\n1,nan\n").contains("line 2: \"nan\" is not a sinr_db"));
    assert!(error("time_s,cqi\n2,3\n\n1,3\n").contains("line 4: its time is earlier"));
    assert!(error("time_s,cqi\n-1,3\n").contains("line 2: \"-1\" is not a time_s"));
    let stamp = error("Timestamp,CQI\n2020.00.01_00.00.00,3\n");
    assert!(stamp.contains("line 2: \"2020.00.01_00.00.00\" is not a Timestamp"), "{stamp}");
    let secret = error("time_s,cqi\n1,hunter2-is-my-password\n");
    assert!(secret.contains("line 2: this is not a cqi") && !secret.contains("hunter"), "{secret}");
    let empty = error("Timestamp,CQI\n2020.01.01_00.00.00,-\n");
    assert!(empty.contains("no value in column \"CQI\""), "{empty}");
}

/// Reads the logs of the UCC 5G data set (Raca et al., MMSys 2020).
#[test]
#[ignore = "needs the UCC 5G logs: AIRPATH_UCC_5G=FOLDER cargo test -p airpath-radio -- --ignored"]
fn ucc_5g_drive_logs_are_read() {
    let folder = std::env::var("AIRPATH_UCC_5G").expect("AIRPATH_UCC_5G names their folder");
    let read = |name: &str, column| {
        ChannelTrace::read(&Path::new(&folder).join(name), column, Missing::Outage)
    };
    // 2,617 rows from 07.22.43 to 08.05.59, 334 of them in the same second as the previous row.
    let trace = read("driving/B_2019.12.16_07.22.43.csv.gz", LogColumn::Snr).unwrap();
    assert_eq!((trace.samples(), trace.period()), (2_283, Duration::from_secs(2_597)));
    let trace = read("static/B_2020.01.16_10.43.34.csv.gz", LogColumn::Cqi).unwrap();
    assert_eq!(replay(trace, AtEnd::Hold).quality(Instant::ZERO), Quality::Cqi(14));
    // A drive only on 3G has no CQI.
    let error = read("driving/B_2019.12.16_11.49.59.csv.gz", LogColumn::Cqi).unwrap_err();
    assert!(matches!(error, ChannelTraceError::Empty { .. }));
}

fn drive() -> ProcessConfig {
    ProcessConfig {
        carrier_hz: 3.5e9,
        path_loss: PathLoss::UrbanMacroLos,
        heights: Heights { base_station_m: 25.0, ue_m: 1.5 },
        budget: LinkBudget {
            transmit_dbm: 43.0,
            gain_db: 0.0,
            noise_dbm: LinkBudget::thermal_noise_dbm(20e6, 9.0),
            interference_db: 3.0,
        },
        movement: Movement {
            beside_m: 30.0,
            start_m: -200.0,
            speed_mps: 20.0,
            turn_m: Some(200.0),
        },
        shadowing: Some(ShadowingConfig { deviation_db: 4.0, correlation_m: 37.0 }),
        fading: Some(FadingConfig { speed_mps: 20.0, branches: 2, rician_k_db: None }),
        step: Duration::from_millis(1),
        sinr_ceiling_db: None,
    }
}

#[test]
fn the_link_budget_adds_up() {
    let movement = Movement { beside_m: 100.0, start_m: 0.0, speed_mps: 0.0, turn_m: None };
    let config = ProcessConfig { movement, shadowing: None, fading: None, ..drive() };
    let mut channel = Process::new(&config, Stream::new(1, "channel"));
    // Noise -174 + 73.010 + 9 = -91.990 dBm; 43 - 83.138 + 91.990 - 3 dB.
    assert!((channel.sinr_db(at_ms(5)) - 48.852).abs() < 2e-3);
    let config = ProcessConfig { sinr_ceiling_db: Some(30.0), ..config };
    assert_eq!(Process::new(&config, Stream::new(1, "channel")).sinr_db(at_ms(5)), 30.0);
}

/// Law 5: the result is the same on every machine. In thousandths of a dB.
#[test]
fn a_seeded_drive_is_reproducible() {
    let at = |seed, name| {
        let mut channel = Process::new(&drive(), Stream::new(seed, name));
        [0, 1, 1_000, 60_000].map(|ms| (channel.sinr_db(at_ms(ms)) * 1e3).round() as i64)
    };
    assert_eq!(at(1, "ue.0.channel"), [44_684, 41_767, 50_476, 40_709]);
    assert_ne!(at(1, "ue.1.channel"), at(1, "ue.0.channel"));
    assert_ne!(at(2, "ue.0.channel"), at(1, "ue.0.channel"));
}

#[test]
fn a_ue_turns_at_the_end_of_its_road() {
    let movement = drive().movement;
    // 400 m at 20 m/s: past the base station after 10 s, at the turn after 20 s.
    let distance = |seconds: u64| movement.distance_m(at_ms(seconds * 1_000));
    assert!((distance(10) - 30.0).abs() < 1e-9);
    assert!((distance(20) - (200.0f64 * 200.0 + 900.0).sqrt()).abs() < 1e-9);
    assert!((distance(23) - (140.0f64 * 140.0 + 900.0).sqrt()).abs() < 1e-9);
    assert_eq!(distance(50), distance(10));
}

fn channel() -> impl Strategy<Value = ChannelConfig> {
    let quality = prop_oneof![
        (-20.0..40.0).prop_map(Quality::Sinr),
        (0u8..16).prop_map(Quality::Cqi),
        Just(Quality::Outage),
    ];
    let trace = (proptest::collection::vec((0u64..50, quality.clone()), 1..20), any::<bool>())
        .prop_map(|(gaps, holds)| {
            let mut at = Duration::ZERO;
            let samples = gaps.into_iter().map(|(gap, quality)| {
                at += Duration::from_millis(gap);
                (at, quality)
            });
            let trace = Arc::new(ChannelTrace::new(samples).unwrap());
            ChannelConfig::Trace { trace, at_end: if holds { AtEnd::Hold } else { AtEnd::Loop } }
        });
    let process = (0.0..60.0, 0u64..3_000, any::<bool>()).prop_map(|(speed_mps, step, turns)| {
        let drive = drive();
        let turn_m = drive.movement.turn_m.filter(|_| turns);
        ChannelConfig::Process(ProcessConfig {
            movement: Movement { speed_mps, turn_m, ..drive.movement },
            step: Duration::from_micros(step),
            ..drive
        })
    });
    let source = prop_oneof![quality.prop_map(ChannelConfig::Constant), trace, process];
    (source, proptest::collection::vec((0u64..3_000, 1u64..3_000), 0..3)).prop_map(
        |(source, outages)| match outages.is_empty() {
            true => source,
            false => interrupted(source, &outages),
        },
    )
}

/// A source with outages: when each begins and how long it lasts, in ms.
fn interrupted(source: ChannelConfig, outages: &[(u64, u64)]) -> ChannelConfig {
    let outage = |&(from, length)| Outage { from: at_ms(from), until: at_ms(from + length) };
    ChannelConfig::Interrupted {
        source: Box::new(source),
        outages: outages.iter().map(outage).collect(),
    }
}

#[test]
fn an_outage_ends_and_leaves_the_rest_as_it_was() {
    let source = ChannelConfig::Process(drive());
    let mut plain = Channel::new(&source, Stream::new(1, "channel"));
    let config = interrupted(source, &[(100, 50), (140, 30)]);
    let mut channel = Channel::new(&config, Stream::new(1, "channel"));
    assert!(!channel.is_constant());
    for ms in 0..300 {
        let out = (100..170).contains(&ms);
        let expected = if out { Quality::Outage } else { plain.quality(at_ms(ms)) };
        assert_eq!(channel.quality(at_ms(ms)), expected, "{ms} ms");
    }
}

proptest! {
    /// Law 2, on which a lagging clone relies.
    #[test]
    fn asking_in_between_changes_nothing(
        config in channel(),
        seed in 0u64..100,
        gaps in proptest::collection::vec(0u64..2_000_000_000, 1..20),
    ) {
        let mut often = Channel::new(&config, Stream::new(seed, "channel"));
        let untouched = often.clone();
        let mut now = Instant::ZERO;
        for gap in gaps {
            now += Duration::from_nanos(gap);
            let answer = often.quality(now);
            prop_assert_eq!(answer, untouched.clone().quality(now));
            prop_assert_eq!(answer, often.quality(now));
        }
    }
}
