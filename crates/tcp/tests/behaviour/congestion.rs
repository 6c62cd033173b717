//! Growth of cwnd (slow start, congestion avoidance, validation) and its reduction.

use airpath_tcp::{
    CongestionConfig, CubicArithmetic, CubicConfig, EndpointConfig, GrowthUnit, Halved, RenoConfig,
};

use crate::script::*;

const CUBIC: CongestionConfig = CongestionConfig::Cubic(CubicConfig {
    fast_convergence: true,
    arithmetic: CubicArithmetic::Rfc9438,
    c: 0.4,
    beta: 0.7,
});

/// Acknowledges `per_ack` segments at a time until everything sent is acknowledged, one round trip
/// later. Returns the number of segments in that flight.
fn round_trip(end: &mut Script, acked: &mut u64, per_ack: u64) -> u64 {
    let flight = end.recv_count() as u64;
    end.tick(RTT);
    let target = *acked + flight;
    while *acked < target {
        *acked = (*acked + per_ack).min(target);
        end.send(ack(*acked));
    }
    flight
}

#[test]
fn the_initial_window_is_what_the_configuration_says() {
    // RFC 6928 2
    let mut end = Script::bulk(&config());
    end.recv_segments(0..10);
}

#[test]
fn slow_start_grows_by_all_that_is_acknowledged_without_a_limit() {
    // RFC 3465 2.2 without L: cwnd doubles every round trip, whether acknowledgements are delayed
    // or not.
    let mut end = Script::bulk(&config());
    let mut acked = 0;
    let flights: Vec<_> = (0..4).map(|_| round_trip(&mut end, &mut acked, 2)).collect();
    assert_eq!(flights, [10, 20, 40, 80]);
}

#[test]
fn slow_start_grows_by_one_segment_for_each_acknowledgement_with_limit_one() {
    // RFC 5681 (2)
    let mut config = config();
    config.slow_start.limit = Some(1);
    let mut end = Script::bulk(&config);
    let mut acked = 0;
    let flights: Vec<_> = (0..4).map(|_| round_trip(&mut end, &mut acked, 2)).collect();
    assert_eq!(flights, [10, 15, 23, 35]); // times 1.5
}

/// Loses segment 0 of the initial window of ten, and recovers.
fn after_one_loss(congestion: CongestionConfig) -> (Script, u64) {
    let mut end = Script::flight(&EndpointConfig { congestion, ..config() });
    for received in 2..=10 {
        end.send(sack(0, &[(1, received)]));
    }
    end.recv_count();
    end.tick(RTT);
    end.send(ack(12));
    assert_eq!(end.event_names().last(), Some(&"recovery_end"));
    (end, 12)
}

#[test]
fn cubic_keeps_seven_tenths_at_a_loss() {
    // RFC 9438 4.6
    let (end, _) = after_one_loss(CUBIC);
    assert_eq!(end.window().ssthresh, 7.0);
}

#[test]
fn reno_grows_by_one_segment_each_round_trip_in_congestion_avoidance() {
    // RFC 5681 (3)
    let (mut end, mut acked) = after_one_loss(CongestionConfig::RENO);
    end.recv_count();
    let mut outstanding = u64::from(end.in_flight());
    let mut windows = Vec::new();
    for _ in 0..12 {
        end.tick(RTT);
        for _ in 0..outstanding {
            acked += 1;
            end.send(ack(acked));
        }
        outstanding = end.recv_count() as u64;
        windows.push(end.window().cwnd);
    }
    for pair in windows.windows(2) {
        assert!((0.75..=1.0).contains(&(pair[1] - pair[0])), "{windows:?}");
    }
}

#[test]
fn cwnd_does_not_grow_while_the_application_is_the_limit() {
    // RFC 7661 3, RFC 9438 5.8
    for congestion in [CongestionConfig::RENO, CUBIC] {
        let mut end = Script::open(&EndpointConfig { congestion, ..config() });
        for round in 0..20 {
            end.offer(4 * u64::from(MSS));
            assert_eq!(end.recv_count(), 4);
            end.tick(RTT);
            end.send(ack(4 * (round + 1)));
        }
        assert_eq!(end.window().cwnd, 10.0);
    }
}

#[test]
fn cwnd_does_not_grow_far_beyond_the_peers_window() {
    // RFC 7661 3: at most twice what can be used.
    let mut end = Script::bulk(&config());
    let mut acked = 0;
    for _ in 0..12 {
        round_trip(&mut end, &mut acked, 1);
    }
    assert!((1000..=2000).contains(&end.cwnd()), "{}", end.cwnd());
}

#[test]
fn cwnd_does_not_grow_while_the_send_buffer_is_the_limit() {
    // RFC 7661 3
    let mut end = Script::bulk(&EndpointConfig { send_buffer: 8 * u64::from(MSS), ..config() });
    let mut acked = 0;
    for _ in 0..10 {
        assert_eq!(round_trip(&mut end, &mut acked, 1), 8);
    }
    assert_eq!(end.window().cwnd, 10.0);
}

#[test]
fn a_fixed_window_stays() {
    let mut config = config();
    config.congestion = CongestionConfig::Fixed { segments: 30 };
    let mut end = Script::bulk(&config);
    let mut acked = 0;
    for _ in 0..5 {
        assert_eq!(round_trip(&mut end, &mut acked, 1), 30);
    }
}

#[test]
fn reno_halves_the_flight_at_a_loss() {
    // RFC 5681 (4); 3.2 (2): the two segments of limited transmit do not count.
    let (end, _) = after_one_loss(CongestionConfig::RENO);
    assert_eq!(end.window().ssthresh, 5.0);
}

#[test]
fn reno_halves_cwnd_where_linux_does() {
    // Of 20 segments the application has used seven; one of them is lost.
    for (halves, ssthresh) in [(Halved::Flight, 3.5), (Halved::Cwnd, 10.0)] {
        let mut config = config();
        config.congestion = CongestionConfig::Reno(RenoConfig { halves, ..RenoConfig::default() });
        config.initial_window = 20;
        let mut end = Script::file(&config, 7);
        end.tick(RTT);
        end.send(sack(0, &[(1, 7)]));
        assert_eq!(end.window().ssthresh, ssthresh, "{halves:?}");
    }
}

#[test]
fn reno_may_count_acknowledgements_instead_of_segments() {
    // RFC 5681 (3): each acknowledgement of two segments grows cwnd by one segment's share.
    for (grows_by, grown) in [(GrowthUnit::Segments, 1.0), (GrowthUnit::Acknowledgements, 0.5)] {
        let reno = RenoConfig { grows_by, ..RenoConfig::default() };
        let (mut end, mut acked) = after_one_loss(CongestionConfig::Reno(reno));
        let before = end.window().cwnd;
        let outstanding = u64::from(end.in_flight());
        assert_eq!(outstanding, before as u64);
        end.tick(RTT);
        while acked < 12 + outstanding {
            acked = (acked + 2).min(12 + outstanding);
            end.send(ack(acked));
        }
        let grew = end.window().cwnd - before;
        assert!((grew / grown - 1.0).abs() < 0.25, "{grows_by:?}: {grew}");
    }
}

#[test]
fn reno_counts_a_window_of_segments_for_each_one_more() {
    // Linux 6.18, an upload at 9 Mb/s: a recovery left 15 segments, and cwnd was 16 with the
    // fifteenth after it, not with the sixteenth. Here it leaves 5.
    let (mut end, mut acked) = after_one_loss(CongestionConfig::RENO);
    let mut before = end.cwnd();
    end.tick(RTT);
    for _ in 0..3 {
        for _ in 0..before {
            assert_eq!(end.cwnd(), before);
            acked += 1;
            end.send(ack(acked));
        }
        before += 1;
        assert_eq!(end.cwnd(), before);
        end.recv_count();
    }
}

#[test]
fn cubic_keeps_what_beta_says() {
    // RFC 9438 4.6; Linux computes beta in 1024ths and cwnd in whole segments.
    for arithmetic in [CubicArithmetic::Rfc9438, CubicArithmetic::Linux] {
        let cubic = CubicConfig { arithmetic, beta: 0.5, ..CubicConfig::default() };
        let (end, _) = after_one_loss(CongestionConfig::Cubic(cubic));
        assert_eq!(end.window().ssthresh, 5.0, "{arithmetic:?}");
    }
}

#[test]
fn the_acknowledgement_that_ends_recovery_does_not_grow_cwnd() {
    // RFC 6675 5 (A), RFC 6582 3.2 (3): what is acknowledged arrived during recovery.
    let (end, _) = after_one_loss(CUBIC);
    assert_eq!(end.window().cwnd, 7.0);
}

#[test]
fn after_a_timeout_cubic_starts_from_where_slow_start_ends() {
    // RFC 9438 4.8: K is 0 and W_max is cwnd when congestion avoidance begins.
    let config = EndpointConfig { congestion: CUBIC, initial_window: 100, ..config() };
    let mut end = Script::bulk(&config);
    end.tick(RTO);
    end.recv_count();
    let (mut acked, mut windows) = (0, Vec::new());
    while windows.len() < 10 {
        end.tick(RTT);
        let in_flight = u64::from(end.in_flight());
        for _ in 0..in_flight {
            acked += 1;
            end.send(ack(acked));
        }
        if !end.window().in_slow_start() {
            windows.push(end.window().cwnd);
        }
    }
    // The convex region at once: after a second at 70 segments C t^3 is 0.4, Reno's growth 5.
    let grown = windows[9] - windows[0];
    assert!((3.0..7.0).contains(&grown), "{windows:?}");
}

#[test]
fn the_last_of_the_unpaced_segments_makes_the_next_one_wait() {
    // Linux 6.18, `bbr` after a handshake of 3.33 s on a path of 70 ms: the eleventh segment is
    // sent 0.118 s after the first ten, although the first was acknowledged after 0.07 s. At 0.99
    // times 10 x 2.885 segments per 3.33 s a segment takes 0.117 s.
    let config = EndpointConfig { congestion: CongestionConfig::Bbr1 { seed: 1 }, ..config() };
    let mut end = Script::bulk(&config);
    end.recv_segments(0..10);
    end.tick(ms(1));
    end.send(ack(1));
    end.recv_nothing();
    // 3.5 ms at a handshake of 100 ms.
    end.tick(ms(2));
    end.recv_nothing();
    end.tick(ms(1));
    assert!(end.recv_count() > 0);
}
