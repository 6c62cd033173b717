//! When segments are sent: pacing, bursts of segmentation offload, windows that were not used.

use airpath_base::{Duration, Flags, Instant, Segment};
use airpath_tcp::{
    CongestionConfig, EndpointConfig, IdleRestart, OffloadConfig, PacingConfig, SendMemoryConfig,
    ValidationConfig,
};

use crate::script::*;

const OFFLOAD: OffloadConfig = OffloadConfig {
    max_bytes: 64_000,
    time: Duration::from_millis(1),
    min_segments: 2,
    window_divisor: 3,
    ack_within: Duration::ZERO,
    push: false,
};

/// Times at which segments are sent in the next `time`, with the number of segments at each
/// instant.
fn departures(end: &mut Script, time: Duration) -> Vec<(Instant, usize)> {
    let until = end.now + time;
    let mut departures = Vec::new();
    loop {
        let sent = end.recv_count();
        if sent > 0 {
            departures.push((end.now, sent));
        }
        match end.next_timer().filter(|&at| at <= until) {
            Some(at) => end.tick(at - end.now),
            None => break,
        }
    }
    end.tick(until - end.now);
    departures
}

#[test]
fn a_paced_window_is_spread_over_the_round_trip() {
    // Linux: twice cwnd per SRTT while cwnd is below ssthresh / 2; the first ten are not paced.
    let config = EndpointConfig { pacing: Some(PacingConfig::LINUX), ..config() };
    let mut end = Script::flight(&config);
    end.send(ack(10));
    assert_eq!(end.cwnd(), 20);
    let departures = departures(&mut end, ms(60));
    assert_eq!(departures.iter().map(|(_, sent)| sent).sum::<usize>(), 20);
    // 2 × 20 segments in 100 ms: one every 2.5 ms.
    let gaps: Vec<_> = departures.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(gaps[1..].iter().all(|&gap| gap == Duration::from_micros(2500)), "{gaps:?}");
    assert!(end.limit_times(end.now).pacing >= ms(45));
}

#[test]
fn after_a_late_segment_the_next_waits_half_as_long() {
    let config = EndpointConfig { pacing: Some(PacingConfig::LINUX), ..config() };
    let mut end = Script::open(&config);
    end.offer(30 * u64::from(MSS));
    end.recv_segments(0..10);
    end.tick(RTT);
    end.send(ack(10));
    let departures = departures(&mut end, ms(100));
    let gaps: Vec<_> = departures.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert_eq!(gaps[..2], [Duration::from_micros(1250), Duration::from_micros(2500)]);
}

#[test]
fn bursts_are_a_millisecond_of_the_rate() {
    // Twice 400 segments in 100 ms: 8 per millisecond.
    let config = EndpointConfig {
        offload: Some(OFFLOAD),
        pacing: Some(PacingConfig::LINUX),
        initial_window: 200,
        ..config()
    };
    let mut end = Script::bulk(&config);
    end.recv_count();
    end.tick(RTT * 2);
    end.send(ack(200));
    let departures = departures(&mut end, ms(20));
    let sizes: Vec<usize> = departures.iter().map(|(_, sent)| *sent).collect();
    assert!(sizes[1..5].iter().all(|&size| size == sizes[1]) && sizes[1] >= 4, "{sizes:?}");
    let gap = departures[4].0 - departures[3].0;
    assert!(gap > Duration::from_micros(900) && gap < Duration::from_micros(1100), "{gap:?}");
}

#[test]
fn a_small_burst_waits_for_a_third_of_the_window_if_the_last_is_recent() {
    // Ten segments are a third of 29; nine are not. Linux 6.18 at 38 Mb/s and 4 ms: with a cwnd of
    // 13, room for four waited; with one of 25, room for eight.
    for segments in [30, 29] {
        let mut config = config();
        config.offload = Some(OffloadConfig { time: ms(100), ..OFFLOAD });
        config.congestion = CongestionConfig::Fixed { segments };
        let mut end = Script::bulk(&config);
        end.recv_segments(0..segments.into());
        end.tick(RTT);
        // Nothing was sent for a long time: two may be sent.
        end.send(ack(2));
        end.recv_segments([segments.into(), u64::from(segments) + 1]);
        for acked in 3..12 {
            end.send(ack(acked));
            end.recv_nothing();
        }
        // A third is free.
        end.send(ack(12));
        assert_eq!(end.recv_count(), 10);
        end.send(ack(14));
        end.recv_nothing();
        // After a millisecond without acknowledgements the next burst does not wait.
        end.tick(ms(2));
        end.send(ack(15));
        assert_eq!(end.recv_count(), 3);
    }
}

#[test]
fn a_small_burst_waits_for_an_event_of_its_own_sender() {
    // Linux 6.18 over 128 Mb/s and 8 ms: a burst that waited at 32.0 ms was sent with the next
    // acknowledgement, 7 ms later, whatever the other end received in the meantime.
    let mut config = config();
    config.offload = Some(OffloadConfig { time: ms(100), ..OFFLOAD });
    config.congestion = CongestionConfig::Fixed { segments: 30 };
    let mut end = Script::bulk(&config);
    end.recv_segments(0..30);
    end.tick(RTT);
    end.send(ack(2));
    end.recv_segments([30, 31]);
    end.send(ack(4));
    end.recv_nothing();
    for _ in 0..10 {
        end.tick(ms(1));
        end.recv_nothing();
    }
    end.send(ack(5));
    end.recv_segments(32..35);
}

#[test]
fn what_one_acknowledgement_lets_out_waits_or_does_not() {
    let mut config = config();
    config.offload = Some(OffloadConfig { time: ms(1), ..OFFLOAD });
    config.congestion = CongestionConfig::Fixed { segments: 30 };
    let mut end = Script::bulk(&config);
    end.recv_segments(0..30);
    end.tick(RTT);
    // Bursts of two. The last one was sent a round trip ago: the third segment does not wait
    // either.
    end.send(ack(3));
    end.recv_segments(30..33);
    // The last burst was sent just before: the third segment waits.
    end.tick(Duration::from_micros(500));
    end.send(ack(6));
    end.recv_segments(33..35);
}

#[test]
fn a_small_burst_waits_only_for_an_acknowledgement_that_is_near() {
    // Linux 6.18, 13 Mb/s and 6 ms: of four segments that an acknowledgement released after 1.9 ms
    // of silence, three were sent, because the next acknowledgement was due.
    for (within, at_once, later) in [(ms(0), 33, 63), (ms(1), 32, 64)] {
        let mut config = config();
        config.offload = Some(OffloadConfig { time: ms(1), ack_within: within, ..OFFLOAD });
        config.congestion = CongestionConfig::Fixed { segments: 30 };
        let mut end = Script::bulk(&config);
        end.recv_segments(0..30);
        end.tick(RTT);
        // Bursts of two; what is outstanding should be acknowledged now.
        end.send(ack(3));
        end.recv_segments(30..at_once);
        end.tick(ms(2));
        end.send(ack(28));
        end.recv_segments(at_once..58);
        end.tick(ms(60));
        // The acknowledgement of what was sent 60 ms ago is 40 ms away.
        end.send(ack(31));
        end.recv_segments(58..61);
        end.tick(Duration::from_micros(500));
        end.send(ack(34));
        end.recv_segments(61..later);
        end.recv_nothing();
    }
}

#[test]
fn the_rest_of_what_was_written_in_one_piece_does_not_wait() {
    // Linux 6.18, Reno at 100 Mb/s and 80 ms: every third burst of slow start was short, with the
    // rest of 45 segments, as many as an IP packet holds. Here a packet holds 65, and the 30 of the
    // first piece that are sent at once are filled up again: it ends with segment 94.
    for (pieces, rest) in [(true, 93..95), (false, 93..93)] {
        let mut config = config();
        config.offload = Some(OffloadConfig { time: ms(100), ..OFFLOAD });
        config.congestion = CongestionConfig::Fixed { segments: 30 };
        let memory = SendMemoryConfig { burst_overhead: 0, segment: MSS, wake_divisor: 3 };
        config.send_memory = pieces.then_some(memory);
        let mut end = Script::bulk(&config);
        for first in [0, 30, 60] {
            end.send(ack(first));
            end.recv_segments(first..first + 30);
            end.tick(RTT);
        }
        end.send(ack(62));
        end.recv_segments([90, 91]);
        end.tick(ms(2));
        end.send(ack(63));
        end.recv_segments([92]);
        end.send(ack(64));
        end.recv_nothing();
        end.send(ack(65));
        end.recv_segments(rest);
        end.send(ack(66));
        end.recv_nothing();
    }
}

#[test]
fn a_burst_that_waits_is_limited_by_the_smaller_window() {
    // The peer advertises 40 segments for ever. A burst that waits for a larger one does not mean
    // that cwnd is the limit: cwnd must not grow without bound (RFC 9438 5.8, RFC 7661).
    let mut config = config();
    config.offload = Some(OffloadConfig { time: ms(100), ..OFFLOAD });
    config.validation.half_used_grows = true;
    let offers = |acked| Segment { window: (40 * MSS / 16) as u16, ..ack(acked) };
    let mut end = Script::bulk(&config);
    end.recv_segments(0..10);
    let mut acked = 0;
    for _ in 0..200 {
        end.tick(RTT);
        // What was sent in a round is acknowledged in pairs, close together.
        let flight = end.counters().segments;
        while acked < flight {
            end.tick(Duration::from_micros(50));
            acked = (acked + 2).min(flight);
            end.send(offers(acked));
            end.recv_count();
        }
    }
    // Slow start continues while half of cwnd is used.
    assert!((40..=82).contains(&end.cwnd()), "{}", end.cwnd());
    let times = end.limit_times(end.now);
    assert!(times.receive_window > times.cwnd * 10, "{times:?}");
}

#[test]
fn the_last_piece_of_a_stream_does_not_wait() {
    let mut config = config();
    config.offload = Some(OffloadConfig { time: ms(100), ..OFFLOAD });
    config.congestion = CongestionConfig::Fixed { segments: 30 };
    let mut end = Script::open(&config);
    end.offer(33 * u64::from(MSS));
    end.recv_segments(0..30);
    end.tick(RTT);
    end.send(ack(2));
    end.recv_segments([30, 31]);
    end.send(ack(3));
    end.recv_segments([32]);
}

#[test]
fn slow_start_goes_on_while_half_of_cwnd_is_used() {
    // Linux: cwnd < 2 × the most in flight.
    let mut config = config();
    config.validation.half_used_grows = true;
    for (offered, grows) in [(6, true), (4, false)] {
        let mut end = Script::file(&config, offered);
        end.tick(RTT);
        end.send(ack(2));
        assert_eq!(end.cwnd() > 10, grows, "{offered}");
    }
}

fn after_idle(idle: IdleRestart, rtos: u64) -> (u32, f64) {
    let mut config = config();
    config.validation =
        ValidationConfig { idle, half_used_grows: true, ..ValidationConfig::default() };
    let mut end = Script::open(&config);
    // Up to 40 segments in slow start.
    let mut acked = 0;
    for round in [10, 20] {
        end.offer(round * u64::from(MSS));
        end.recv_count();
        end.tick(RTT);
        acked += round;
        end.send(ack(acked));
    }
    assert_eq!(end.cwnd(), 40);
    let rto = ms(200);
    end.tick(rto * rtos + ms(50));
    end.offer(u64::from(MSS));
    end.recv_count();
    (end.cwnd(), end.window().ssthresh)
}

#[test]
fn cwnd_after_an_idle_time() {
    assert_eq!(after_idle(IdleRestart::Keep, 3).0, 40);
    // RFC 5681 4.1
    assert_eq!(after_idle(IdleRestart::Restart, 3), (10, f64::INFINITY));
    assert_eq!(after_idle(IdleRestart::Restart, 0).0, 40);
    // RFC 2861 3.2: halved for each RTO, but not below the initial window.
    assert_eq!(after_idle(IdleRestart::Decay, 1).0, 20);
    assert_eq!(after_idle(IdleRestart::Decay, 2).0, 10);
    assert_eq!(after_idle(IdleRestart::Decay, 9).0, 10);
}

#[test]
fn an_application_that_is_the_limit_lets_cwnd_decay() {
    // RFC 2861 3.2: per RTO, halfway to what is used, which is at least the initial window.
    let mut config = config();
    config.validation.half_used_grows = true;
    config.validation.decays = true;
    let mut end = Script::open(&config);
    end.offer(30 * u64::from(MSS));
    end.recv_count();
    end.tick(RTT);
    end.send(ack(10));
    end.recv_count();
    end.tick(RTT);
    end.send(ack(30));
    let full = end.cwnd();
    assert!(full >= 30);
    let mut acked = 30;
    for _ in 0..8 {
        end.offer(u64::from(MSS));
        end.recv_count();
        end.tick(RTT);
        acked += 1;
        end.send(ack(acked));
    }
    assert!(end.cwnd() < full && end.cwnd() >= 10, "{}", end.cwnd());
}

#[test]
fn the_last_segment_of_a_burst_pushes() {
    // 4.5 ms at 20 segments per 100 ms and twice that: bursts of the smallest size, two.
    for push in [true, false] {
        let config =
            EndpointConfig { offload: Some(OffloadConfig { push, ..OFFLOAD }), ..config() };
        let mut end = Script::bulk(&config);
        let flags: Vec<bool> = (0..10).map(|_| end.recv().flags.has(Flags::PSH)).collect();
        let expected: Vec<bool> = (0..10).map(|segment| push && segment % 2 == 1).collect();
        assert_eq!(flags, expected);
    }
}
