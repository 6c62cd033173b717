//! Slow start that ends before a loss: the generations of Linux's HyStart, and HyStart++ (RFC
//! 9406).

use airpath_base::Duration;
use airpath_tcp::{
    CongestionConfig, CubicArithmetic, CubicConfig, EarlyExit, EndpointConfig, EventKind,
    HystartConfig, LossDetection, RoundStart, RtoEstimator, SlowStartExitReason,
};

use crate::script::*;

use SlowStartExitReason::{AckTrain, ConservativeSlowStart, Delay, FallingMinimum};

const VERSIONS: [(&str, HystartConfig); 5] = [
    ("4.19", HystartConfig::LINUX_4_19),
    ("5.6", HystartConfig::LINUX_5_6),
    ("5.8", HystartConfig::LINUX_5_8),
    ("5.16", HystartConfig::LINUX_5_16),
    ("6.14", HystartConfig::LINUX_6_14),
];

fn linux(hystart: HystartConfig) -> EndpointConfig {
    let arithmetic = CubicArithmetic::Linux;
    let mut config = config();
    config.congestion =
        CongestionConfig::Cubic(CubicConfig { arithmetic, ..CubicConfig::default() });
    config.slow_start.exit = EarlyExit::Hystart(hystart);
    config
}

/// Why and at which cwnd slow start ended, if it ended.
type Exit = Option<(SlowStartExitReason, u32)>;

fn exit(end: &mut Script) -> Exit {
    end.events().iter().find_map(|kind| match kind {
        EventKind::SlowStartExit { reason, cwnd, .. } => Some((*reason, *cwnd)),
        _ => None,
    })
}

/// The exits of all versions in one script.
fn exits(script: impl Fn(&EndpointConfig) -> Exit) -> Vec<(&'static str, Exit)> {
    VERSIONS.iter().map(|&(name, version)| (name, script(&linux(version)))).collect()
}

/// Two segments are acknowledged every 100 ms, so the RTT rises by 100 ms per five
/// acknowledgements.
fn slow_bulk(config: &EndpointConfig, acks: u64) -> (Script, Vec<u32>) {
    let mut end = Script::bulk(config);
    let windows = (1..=acks)
        .map(|count| {
            end.tick(RTT);
            end.send(ack(2 * count));
            end.cwnd()
        })
        .collect();
    (end, windows)
}

#[test]
fn a_slow_bulk_flow_grows_as_in_linux() {
    // The values of packetdrill's CUBIC test at 166 kb/s.
    let (_, windows) = slow_bulk(&linux(HystartConfig::LINUX_5_16), 200);
    let after = |acks: usize| windows[acks - 1];
    assert_eq!([5, 10, 15].map(after), [20, 30, 40]);
    // Slow start ends; then growth is 5 % per round trip, until the curve is faster.
    assert_eq!([19, 20, 30, 40, 50, 60].map(after), [48, 48, 49, 50, 52, 58]);
    // RFC 9438 4.4: at most half of what is acknowledged.
    assert!((60..200).all(|acks| after(acks + 1) == after(acks) + 1), "{windows:?}");
}

#[test]
fn each_version_sees_the_rounds_of_a_slow_bulk_flow_its_way() {
    // Eight samples determine a round's RTT; the ninth is compared. Rounds begin at the sixth ACK,
    // without its sample in the late versions; in 5.16 at the fourth, when cwnd is 16.
    let found = exits(|config| exit(&mut slow_bulk(config, 40).0));
    let expected = [("4.19", 38), ("5.6", 38), ("5.8", 38), ("5.16", 48), ("6.14", 36)];
    assert_eq!(found, expected.map(|(name, cwnd)| (name, Some((Delay, cwnd)))));
}

/// The RTT of the second round is higher by `rise`.
fn rtt_rises(config: &EndpointConfig, rise: Duration) -> Exit {
    let mut end = Script::bulk(config);
    end.tick(RTT);
    end.send(ack(10));
    end.tick(RTT + rise);
    for acked in (12..=30).step_by(2) {
        end.send(ack(acked));
        end.tick(ms(1));
    }
    exit(&mut end)
}

#[test]
fn the_delay_test_needs_nine_samples_an_eighth_above_the_minimum() {
    let found = exits(|config| rtt_rises(config, ms(13)));
    let expected = [("4.19", 38), ("5.6", 38), ("5.8", 38), ("5.16", 36), ("6.14", 36)];
    assert_eq!(found, expected.map(|(name, cwnd)| (name, Some((Delay, cwnd)))));
    // 12.5 ms; each sample after the first is up to a millisecond later.
    for (name, exit) in exits(|config| rtt_rises(config, ms(11))) {
        assert_eq!(exit, None, "{name}");
    }
    let prompt = HystartConfig { round_start: RoundStart::Prompt, ..HystartConfig::LINUX_4_19 };
    assert_eq!(rtt_rises(&linux(prompt), ms(13)), Some((Delay, 36)));
}

#[test]
fn the_delay_tests_margin_is_at_most_16_ms() {
    // A minimum of 300 ms: an eighth would be 37.5.
    let script = |config: &EndpointConfig, rise: Duration| {
        let mut end = Script::bulk(config);
        end.tick(ms(290));
        end.send(ack(10));
        end.tick(ms(290) + rise);
        for acked in (12..=30).step_by(2) {
            end.send(ack(acked));
        }
        exit(&mut end).is_some()
    };
    for (name, version) in VERSIONS {
        let config = linux(version);
        assert_eq!((script(&config, ms(16)), script(&config, ms(17))), (false, true), "{name}");
    }
}

/// Round 1 with RTTs from 250 ms, round 2 with 255 ms, until ten samples later the last segments
/// sent return within 196 ms.
fn rtt_falls(config: &EndpointConfig) -> Exit {
    let mut end = Script::bulk(&EndpointConfig { initial_window: 40, ..config.clone() });
    end.tick(ms(250));
    for acked in (2..=40).step_by(2) {
        end.send(ack(acked));
        end.tick(ms(10));
    }
    end.tick(ms(55));
    for group in 1..=9 {
        end.send(ack(40 + 4 * group));
        end.tick(ms(if group < 9 { 10 } else { 1 }));
    }
    assert_eq!(exit(&mut end), None);
    end.send(ack(40 + 4 * 15));
    exit(&mut end)
}

#[test]
fn a_minimum_that_falls_after_eight_samples_ends_slow_start_until_linux_5_8() {
    let exits = exits(rtt_falls).into_iter().map(|(name, exit)| (name, exit.map(|exit| exit.0)));
    let expected = [
        ("4.19", Some(FallingMinimum)),
        ("5.6", Some(FallingMinimum)),
        ("5.8", None),
        ("5.16", None),
        ("6.14", None),
    ];
    assert_eq!(exits.collect::<Vec<_>>(), expected);
}

#[test]
fn the_two_changes_of_4_19_work_one_by_one() {
    let old = HystartConfig::LINUX_4_19;
    let keeps_minimum = HystartConfig { falling_minimum_exits: false, ..old };
    assert_eq!(rtt_falls(&linux(keeps_minimum)), None);
    let prompt = HystartConfig { round_start: RoundStart::Prompt, ..old };
    assert!(matches!(rtt_falls(&linux(prompt)), Some((FallingMinimum, _))));
}

/// A flight of 100 segments, RTT 100 ms, acknowledged one by one, `spacing` apart.
fn train(config: &EndpointConfig, spacing: Duration) -> Exit {
    let mut end = Script::bulk(&EndpointConfig { initial_window: 100, ..config.clone() });
    end.tick(RTT);
    for acked in 1..=100 {
        end.send(ack(acked));
        end.tick(spacing);
    }
    exit(&mut end)
}

#[test]
fn a_train_of_acknowledgements_as_long_as_half_the_rtt_ends_slow_start() {
    // 50 ms, or 50.5 with the cushion: the 52nd arrives 51 ms after the first.
    for (name, exit) in exits(|config| train(config, ms(1))) {
        assert_eq!(exit, Some((AckTrain, 151)), "{name}");
    }
    for (name, exit) in exits(|config| train(config, Duration::from_micros(500))) {
        assert_eq!(exit, None, "{name}: 49.5 ms");
    }
}

#[test]
fn acknowledgements_further_apart_are_no_train() {
    // 2 ms are; 2.9 ms are only for a clock of whole milliseconds, if they fall that way.
    let long = |config: &EndpointConfig| {
        let config = EndpointConfig { initial_window: 100, ..config.clone() };
        let mut end = Script::bulk(&config);
        end.tick(RTT);
        for acked in 1..=8 {
            end.send(ack(acked));
            end.tick(ms(3));
        }
        end.send(ack(100));
        exit(&mut end)
    };
    for (name, exit) in exits(long) {
        assert_eq!(exit, None, "{name}");
    }
}

/// Acknowledges these segments, `spacing` apart; the reported state agrees with what HyStart does.
fn followed(end: &mut Script, acked: impl Iterator<Item = u64>, spacing: Duration) -> Exit {
    let mut sampled = false;
    for acked in acked {
        end.send(ack(acked));
        let state = end.hystart().expect("it has seen an RTT");
        let exit = exit(end);
        // A further sample is compared once there are eight.
        let rose = sampled && state.samples == Some(8) && state.round_min_rtt > state.threshold;
        let long = state.ack_train > state.ack_train_limit;
        let reason = exit.map(|exit| exit.0);
        assert_eq!(rose, matches!(reason, Some(Delay | FallingMinimum)), "{acked}: {state:?}");
        assert_eq!(long, reason == Some(AckTrain), "{acked}: {state:?}");
        assert_eq!(state.active, exit.is_none());
        if exit.is_some() {
            return exit;
        }
        sampled = state.samples == Some(8);
        end.tick(spacing);
    }
    None
}

#[test]
fn what_is_shown_of_hystart_agrees_with_how_it_ends_slow_start() {
    for (name, version) in VERSIONS {
        let config = EndpointConfig { initial_window: 100, ..linux(version) };
        let mut end = Script::bulk(&config);
        assert_eq!(end.hystart(), None, "{name}: no RTT yet");
        end.tick(RTT);
        // 50 ms and the cushion.
        let train = followed(&mut end, 1..=100, ms(1));
        assert_eq!(train, Some((AckTrain, 151)), "{name}");
        let mut end = Script::bulk(&config);
        end.tick(RTT);
        assert_eq!(followed(&mut end, 1..=100, Duration::ZERO), None, "{name}");
        end.tick(RTT + ms(13));
        let delay = followed(&mut end, 101..=200, Duration::ZERO).expect(name);
        assert_eq!(delay.0, Delay, "{name}");
        let state = end.hystart().expect(name);
        assert_eq!(state.threshold, Some(RTT + RTT / 8), "{name}");
        assert_eq!(state.round_min_rtt, Some(RTT + ms(13)), "{name}");
    }
}

#[test]
fn a_test_that_is_not_made_shows_nothing() {
    let shown = |version: HystartConfig, window: u32| {
        let config = EndpointConfig { initial_window: window, ..linux(version) };
        let mut end = Script::bulk(&config);
        end.tick(RTT);
        end.send(ack(1));
        end.hystart().expect("it has seen an RTT")
    };
    let version = HystartConfig::LINUX_6_14;
    let (samples, train) = (|window| shown(version, window).samples, Some(Duration::ZERO));
    assert_eq!([4, 15, 20].map(samples), [None, Some(0), Some(1)]);
    assert_eq!(shown(version, 20).ack_train, train);
    assert_eq!(shown(version, 4).ack_train, None);
    assert_eq!(shown(version, 4).threshold, Some(RTT + RTT / 8));
    let trains = shown(HystartConfig { delay: false, ..version }, 20);
    assert_eq!((trains.threshold, trains.samples, trains.ack_train), (None, None, train));
    let delays = shown(HystartConfig { ack_train: airpath_tcp::AckTrain::Off, ..version }, 20);
    assert_eq!((delays.ack_train, delays.ack_train_limit), (None, None));
    assert_eq!(delays.samples, Some(1));
    let mut plain = Script::bulk(&config());
    plain.tick(RTT);
    plain.send(ack(1));
    assert_eq!(plain.hystart(), None);
}

/// One full window, then five segments at a time every millisecond.
fn requests(config: &EndpointConfig) -> Exit {
    let mut end = Script::open(&EndpointConfig { initial_window: 20, ..config.clone() });
    end.offer(21 * u64::from(MSS));
    end.tick(ms(1));
    end.send(ack(20));
    for request in 1..=20 {
        end.offer(5 * u64::from(MSS));
        end.tick(ms(1));
        end.send(ack(21 + 5 * request));
    }
    exit(&mut end)
}

#[test]
fn requests_that_do_not_fill_cwnd_are_one_long_train_until_linux_5_16() {
    let exits = exits(requests).into_iter().map(|(name, exit)| (name, exit.map(|exit| exit.0)));
    let expected = [
        ("4.19", Some(AckTrain)),
        ("5.6", Some(AckTrain)),
        ("5.8", Some(AckTrain)),
        ("5.16", None),
        ("6.14", None),
    ];
    assert_eq!(exits.collect::<Vec<_>>(), expected);
}

#[test]
fn below_16_segments_nothing_ends_slow_start() {
    for (name, version) in VERSIONS {
        let mut config = linux(version);
        config.initial_window = 4;
        let mut end = Script::bulk(&config);
        for acked in 1..=12 {
            end.tick(RTT); // each RTT is higher than the previous one
            end.send(ack(acked));
        }
        assert_eq!((exit(&mut end), end.cwnd()), (None, 16), "{name}");
    }
}

#[test]
fn slow_start_after_a_timeout_has_hystart_again() {
    for (name, version) in VERSIONS {
        let mut end = Script::open(&EndpointConfig { initial_window: 100, ..linux(version) });
        end.offer(3 * u64::from(MSS));
        end.tick(RTO);
        assert_eq!(end.window().ssthresh, 70.0);
        end.offer(u64::MAX);
        let (mut acked, mut rtt) = (0, ms(50));
        while end.window().in_slow_start() {
            round_trip(&mut end, &mut acked, rtt);
            rtt = rtt + rtt / 4;
        }
        // The third flight is larger than 16.
        assert!((16.0..48.0).contains(&end.window().ssthresh), "{name}: {:?}", end.window());
    }
}

fn plus_plus() -> EndpointConfig {
    let mut config = config();
    config.slow_start.exit = EarlyExit::HystartPlusPlus;
    config
}

/// The segments sent are acknowledged after `rtt`, one by one.
fn round_trip(end: &mut Script, acked: &mut u64, rtt: Duration) -> f64 {
    let flight = u64::from(end.in_flight());
    end.tick(rtt);
    for _ in 0..flight {
        *acked += 1;
        end.send(ack(*acked));
    }
    end.window().cwnd
}

#[test]
fn hystart_pp_grows_a_fourth_as_fast_for_five_rounds_then_ends_slow_start() {
    // RFC 9406 4.2. A round ends two segments before its flight does, because what the last one
    // releases is sent after it. So the round after a rise has two samples from before it.
    let mut end = Script::bulk(&plus_plus());
    let mut acked = 0;
    // 111 ms is less than an eighth above 100.
    let before = [100, 111, 127].map(|rtt| round_trip(&mut end, &mut acked, ms(rtt)));
    assert_eq!(before, [20.0, 40.0, 80.0]);
    let mut windows = [0.0; 4];
    windows.fill_with(|| round_trip(&mut end, &mut acked, ms(127)));
    assert_eq!(windows, [101.5, 126.75, 158.25, 197.75]);
    assert!(end.window().in_slow_start());
    round_trip(&mut end, &mut acked, ms(127));
    let ended = end.events();
    let Some(EventKind::SlowStartExit { reason, min_rtt, round_rtt, cwnd, .. }) = ended.first()
    else {
        panic!("{ended:?}")
    };
    // The rise that began CSS, relative to the previous round.
    assert_eq!((*reason, *min_rtt, *round_rtt), (ConservativeSlowStart, ms(111), Some(ms(127))));
    assert_eq!(f64::from(*cwnd), end.window().ssthresh.floor());
}

#[test]
fn what_is_shown_of_hystart_pp_is_what_it_compares() {
    let mut end = Script::bulk(&plus_plus());
    let mut acked = 0;
    let mut state = |end: &mut Script, rtt| {
        round_trip(end, &mut acked, ms(rtt));
        let state = end.hystart().expect("HyStart++ has a state from the start");
        (state.css, state.threshold, state.active)
    };
    assert_eq!(state(&mut end, 100), (Some(false), Some(ms(100) + ms(100) / 8), true));
    // Two samples of the second flight belong to the round of the third.
    for rtt in [111, 127] {
        assert_eq!(state(&mut end, rtt), (Some(false), Some(ms(111) + ms(111) / 8), true));
    }
    // The rise has begun CSS, which ends below the RTT at which it began.
    assert_eq!(state(&mut end, 127), (Some(true), Some(ms(127)), true));
    while end.window().in_slow_start() {
        state(&mut end, 127);
    }
    assert_eq!(state(&mut end, 127), (Some(false), None, false));
}

#[test]
fn hystart_pp_resumes_slow_start_if_the_rtt_falls_again() {
    // RFC 9406 4.2
    let mut end = Script::bulk(&plus_plus());
    let mut acked = 0;
    let rtts = [100, 100, 127, 127, 127, 120, 120, 120].map(ms);
    let windows = rtts.map(|rtt| round_trip(&mut end, &mut acked, rtt));
    let growth: Vec<_> = windows.windows(2).map(|pair| pair[1] / pair[0]).collect();
    let slow: Vec<_> = growth.iter().map(|&growth| growth < 1.9).collect();
    assert_eq!(slow, [false, false, true, true, false, false, false], "{growth:?}");
    assert_eq!(exit(&mut end), None);
}

#[test]
fn hystart_pp_grows_by_at_most_eight_segments_an_acknowledgement_unpaced() {
    // RFC 9406 4.3: L
    let mut end = Script::bulk(&plus_plus());
    end.tick(RTT);
    end.send(ack(10));
    assert_eq!(end.cwnd(), 18);
}

#[test]
fn what_is_sacked_has_an_rtt_for_hystart_and_grows_cwnd_where_the_order_means_little() {
    // As in Linux: pkts_acked() is called for every acknowledgement that delivers something, and
    // tcp_may_raise_cwnd() counts SACKed data once segments were overtaken by more than three.
    let rises = |delivered_grows: bool| {
        let mut config = linux(HystartConfig::LINUX_6_14);
        config.recovery.detection = LossDetection::Rack;
        config.validation.delivered_grows = delivered_grows;
        config.rto.estimator = RtoEstimator::Linux;
        let mut end = Script::flight(&config);
        end.send(ack(10));
        let nxt = 10 + end.recv_count() as u64;
        // Half an RTT later than one RTT: a round begins, and then nothing is acknowledged except
        // by SACK.
        end.tick(RTT + RTT / 2);
        end.send(ack(11));
        let before = end.cwnd();
        for first in (12..nxt).rev() {
            end.send(sack(11, &[(first, nxt)]));
        }
        (end.cwnd() - before, exit(&mut end))
    };
    let (grown, exit) = rises(true);
    assert!(grown > 0);
    assert!(matches!(exit, Some((Delay, _))), "{exit:?}");
    assert_eq!(rises(false), (0, None));
}
