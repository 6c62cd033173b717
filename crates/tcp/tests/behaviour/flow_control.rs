//! The application's side (send buffer, Nagle, closing), and the peer's window with its probes.

use std::sync::Arc;

use airpath_base::{Duration, Flags, Instant, Segment};
use airpath_tcp::{
    CongestionConfig, Endpoint, EndpointConfig, LimitTimes, OffloadConfig, SendMemoryConfig,
};

use crate::script::*;

const FULL: u64 = MSS as u64;

#[test]
fn the_send_buffer_limits_what_is_outstanding() {
    let mut end = Script::bulk(&EndpointConfig { send_buffer: 3 * FULL, ..config() });
    end.recv_segments(0..3);
    assert_eq!(end.written(), 3 * FULL);
    end.tick(RTT);
    end.send(ack(1));
    end.recv_segments([3]);
    assert_eq!(end.written(), 4 * FULL);
}

#[test]
fn a_writer_that_waits_is_woken_when_a_third_is_free() {
    // Linux 6.18, SIOCOUTQ and SK_MEMINFO: between two thirds of the buffer and all of it.
    let mut config = config();
    (config.initial_window, config.send_buffer) = (400, 300 * FULL);
    config.send_memory =
        Some(SendMemoryConfig { burst_overhead: 0, segment: MSS, wake_divisor: 3 });
    let mut end = Script::bulk(&config);
    // Pieces of 65 segments: the last one that begins within the buffer is written whole, and what
    // is sent of the first one at once is filled up again.
    end.recv_segments(0..325);
    end.tick(RTT);
    end.send(ack(124));
    end.recv_nothing();
    assert_eq!(end.written(), 325 * FULL);
    end.send(ack(125));
    end.recv_segments(325..455);
    assert_eq!(end.written(), 455 * FULL);
}

#[test]
fn a_writer_goes_on_as_long_as_bursts_leave() {
    // Linux 6.18, a Reno upload over LTE: 4.49 MB in flight out of a buffer of 4 MiB, as many
    // segments as cwnd holds. What a burst leaves free of the last piece is filled up again,
    // without a check for room.
    let mut config = config();
    config.send_buffer = 300 * FULL;
    config.send_memory =
        Some(SendMemoryConfig { burst_overhead: 0, segment: MSS, wake_divisor: 3 });
    config.congestion = CongestionConfig::Fixed { segments: 400 };
    config.offload = Some(OffloadConfig {
        max_bytes: 65_000,
        time: ms(1),
        min_segments: 2,
        window_divisor: 0,
        ack_within: Duration::ZERO,
        push: false,
    });
    let mut end = Script::bulk(&config);
    end.recv_segments(0..400);
    assert_eq!(end.written(), (400 + 65) * FULL, "a piece of 65 waits");
    end.tick(RTT);
    end.send(ack(65));
    end.recv_segments(400..465);
    end.send(ack(264));
    end.recv_nothing();
    // A third is free.
    end.send(ack(265));
    end.recv_segments(465..665);
    assert_eq!(end.written(), (665 + 65) * FULL);
}

#[test]
fn the_overhead_of_each_burst_takes_of_the_send_buffer() {
    let mut config = config();
    (config.initial_window, config.send_buffer) = (400, 300 * FULL);
    config.send_memory =
        Some(SendMemoryConfig { burst_overhead: 500, segment: MSS, wake_divisor: 3 });
    let mut end = Script::bulk(&config);
    // Written at once, with one overhead per piece; each segment that is sent is a burst with its
    // own overhead.
    end.recv_segments(0..325);
    end.tick(RTT);
    let written = end.written();
    // 1,500 bytes for each of 325 - n segments are two thirds of 300,000 with n = 192.
    end.send(ack(191));
    assert_eq!(end.written(), written);
    end.send(ack(192));
    assert!(end.written() > written);
}

#[test]
fn the_send_buffer_grows_by_the_memory_of_a_segment() {
    // Linux 6.18: SO_SNDBUF becomes 2 x 2,304 bytes per segment of cwnd, once cwnd is not filled.
    let mut config = config();
    config.send_buffer_factor = Some(2);
    config.send_memory =
        Some(SendMemoryConfig { burst_overhead: 0, segment: 2304, wake_divisor: 3 });
    let mut end = Script::bulk(&config);
    // A piece of 65 segments begins within 46,080 bytes; ten segments of it are sent at once.
    assert_eq!(end.written(), 75 * FULL);
    end.tick(RTT);
    for acked in 1..33 {
        end.send(ack(acked));
        assert_eq!(end.written(), 75 * FULL, "{acked}");
    }
    // cwnd is 43, and 42 are outstanding: 198,144 bytes, of which 42,000 are used.
    end.send(ack(33));
    assert_eq!(end.written(), (75 + 1 + 3 * 65) * FULL);
}

/// Whether the rate samples of these segments are application-limited, for an application that
/// writes without end into a buffer for 300 segments.
fn app_limited(window: u32, acknowledged: impl IntoIterator<Item = u64>) -> Vec<bool> {
    let mut config = config();
    (config.initial_window, config.send_buffer) = (window, 300 * FULL);
    config.send_memory =
        Some(SendMemoryConfig { burst_overhead: 0, segment: MSS, wake_divisor: 3 });
    let noted = Arc::default();
    let noting = Box::new(Noting(Arc::clone(&noted)));
    let end = Endpoint::connect(Instant::ZERO, &config).with_congestion_control(noting);
    let mut end = Script::opened(end, &config);
    end.offer(u64::MAX);
    for segment in acknowledged {
        end.tick(ms(1));
        end.send(ack(segment));
    }
    noted.lock().unwrap().clone()
}

#[test]
fn a_writer_that_finds_nothing_waiting_is_the_limit() {
    // draft-ietf-ccwg-bbr 4.1.2.4. Linux 6.18: a writer that waited for room in the send buffer
    // counts as a limit, too.
    assert_eq!(app_limited(400, [100, 200, 300, 310, 400, 410]), [true; 6]);
    // The first segments are sent as the application writes; later, something always waits behind
    // cwnd.
    let limited = app_limited(10, [1, 10, 11, 20, 30, 40]);
    assert_eq!(limited, [true, true, false, false, false, false]);
}

#[test]
fn a_small_segment_waits_for_what_is_outstanding() {
    // RFC 9293 3.7.4, Nagle
    let mut end = Script::open(&config());
    end.offer(100);
    assert_eq!(end.recv().len, 100);
    end.offer(100);
    end.offer(100);
    end.recv_nothing();
    end.tick(RTT);
    end.send(Segment { ack: 101, ..ack(0) });
    assert_eq!(end.recv().len, 200);
}

#[test]
fn a_full_segment_does_not_wait() {
    // RFC 9293 3.7.4
    let mut end = Script::open(&config());
    end.offer(100);
    end.recv();
    end.offer(FULL + 100);
    assert_eq!(end.recv().len, MSS);
    end.recv_nothing();
}

#[test]
fn closing_withdraws_what_the_buffer_had_not_taken() {
    let mut end = Script::bulk(&EndpointConfig { send_buffer: 4 * FULL, ..config() });
    end.recv_segments(0..4);
    end.close();
    let fin = end.recv();
    assert_eq!((fin.seq, fin.len, fin.flags), (at(4), 0, Flags::FIN.with(Flags::ACK)));
    end.recv_nothing();
    assert!(!end.is_finished());
    end.tick(RTT);
    end.send(Segment { ack: at(4) + 1, ..ack(0) });
    assert!(end.is_finished());
    assert_eq!((end.written(), end.next_timer()), (4 * FULL, None));
    assert_eq!(end.event_names().last(), Some(&"finished"));
}

#[test]
fn a_stream_closed_when_written_has_exactly_the_bytes_offered() {
    let mut end = Script::open(&EndpointConfig { send_buffer: 4 * FULL, ..config() });
    end.offer(9 * FULL + 123);
    end.close_when_written();
    let (mut bytes, mut fin) = (0, false);
    while !end.is_finished() {
        end.tick(RTT);
        for _ in 0..end.in_flight() {
            let sent = end.recv();
            assert!(!fin, "data after the FIN");
            assert_eq!(sent.seq, 1 + bytes);
            bytes += u64::from(sent.len);
            fin = sent.flags.has(Flags::FIN);
            end.send(Segment { ack: sent.end(), ..ack(0) });
        }
    }
    // The FIN goes with the last data.
    assert_eq!((bytes, fin, end.written()), (9 * FULL + 123, true, 9 * FULL + 123));
}

#[test]
fn a_stream_without_data_is_a_fin() {
    let mut end = Script::open(&config());
    end.close_when_written();
    let fin = end.recv();
    assert_eq!((fin.seq, fin.end()), (1, 2));
    end.send(Segment { ack: 2, ..ack(0) });
    assert!(end.is_finished());
}

#[test]
fn a_lost_fin_is_sent_again() {
    // RFC 9293 3.6
    let mut end = Script::open(&config());
    end.close();
    let fin = end.recv();
    end.tick(RTO);
    assert_eq!(end.recv(), Segment { retransmission: true, ..fin });
    // With data: both are retransmitted together.
    let mut end = Script::open(&config());
    end.offer(50);
    end.recv();
    end.offer(30);
    end.close_when_written();
    let last = end.recv();
    assert_eq!((last.seq, last.len, last.flags.has(Flags::FIN)), (51, 30, true));
    end.send(Segment { ack: 51, ..ack(0) });
    end.tick(ms(1000));
    assert_eq!(end.recv(), Segment { retransmission: true, ..last });
}

#[test]
fn the_peers_window_limits_what_is_outstanding() {
    // RFC 9293 3.8.6
    let mut end = Script::open(&config());
    end.send(Segment { window: (5 * MSS / 16) as u16, ..ack(0) });
    end.offer(FULL);
    end.recv_segments([0]);
    end.send(Segment { window: (5 * MSS / 16) as u16, ..ack(1) });
    end.offer(u64::MAX);
    // 4,992 bytes: four segments; the rest is less than half of the largest window seen.
    end.recv_segments(1..5);
}

#[test]
fn limit_times_sum_to_the_elapsed_time() {
    let mut end = Script::open(&EndpointConfig { send_buffer: 30 * FULL, ..config() });
    let opened = end.now;
    end.tick(ms(50));
    let mut acked = 0;
    end.offer(200 * FULL);
    while acked < 200 {
        end.tick(RTT);
        let sent = end.recv_count() as u64;
        acked += sent;
        let window = if acked > 100 { (6 * MSS / 16) as u16 } else { PEER_WINDOW };
        end.send(Segment { window, ..ack(acked) });
    }
    end.tick(ms(70));
    let LimitTimes { cwnd, receive_window, send_buffer, application, .. } =
        end.limit_times(end.now);
    assert_eq!(cwnd + receive_window + send_buffer + application, end.now - opened);
    // The last flight, with nothing more to send, also counts as the application's time.
    assert_eq!(application, ms(50 + 100 + 70));
    for part in [cwnd, receive_window, send_buffer] {
        assert!(part > Duration::ZERO);
    }
}

/// Ten segments sent and acknowledged; the last acknowledgement closed the window.
fn closed_window() -> Script {
    let mut end = Script::flight(&config());
    end.send(Segment { window: 0, ..ack(10) });
    end.recv_nothing();
    end.events();
    end
}

/// RTO after the samples of `closed_window`: 100 + 4 × 3/4 × 50 ms.
const CLOSED_RTO: Duration = ms(250);

#[test]
fn a_closed_window_is_probed_with_one_byte_at_growing_intervals() {
    // RFC 9293 3.8.6.1
    let mut end = closed_window();
    for time in [1, 2, 4, 8].map(|factor| CLOSED_RTO * factor) {
        end.tick_in_silence(time);
        let probe = end.recv();
        assert_eq!((probe.seq, probe.len), (at(10), 1));
        end.recv_nothing();
        // The peer refuses the byte.
        end.send(Segment { window: 0, ..ack(10) });
    }
    assert_eq!(end.event_names(), ["window_probe"; 4]);
}

#[test]
fn an_unanswered_probe_is_not_congestion() {
    // RFC 9293 3.8.6.1: only a retransmission time-out for data within the window is a sign of
    // congestion.
    let mut end = closed_window();
    let window = end.window();
    end.tick(ms(30_000));
    assert!(end.recv_count() > 4);
    assert_eq!((end.window(), end.counters().timeouts), (window, 0));
    assert!(end.event_names().iter().all(|&name| name == "window_probe"));
}

#[test]
fn a_window_that_opens_is_used_at_once_and_the_refused_probe_is_sent_again() {
    // RFC 9293 3.8.6.1
    let mut end = closed_window();
    end.tick(CLOSED_RTO);
    end.send(Segment { window: 0, ..ack(10) });
    end.tick(CLOSED_RTO);
    end.recv_count();
    let window = end.window();
    end.send(ack(10));
    let probe = end.recv();
    assert_eq!((probe.seq, probe.len), (at(10), 1));
    let next = end.recv();
    assert_eq!((next.seq, next.len), (at(10) + 1, MSS));
    assert_eq!(end.recv_count() as u32 + 2, window.segments());
    assert_eq!(end.window(), window);
    // The data sent starts a fresh timer, without the back-off of the probes.
    assert_eq!(end.next_timer(), Some(end.now + CLOSED_RTO));
}

#[test]
fn the_persist_timer_is_no_retransmission_timer_for_what_the_open_window_lets_out() {
    // RFC 9293 3.8.6.1, RFC 6298 (5.1)
    let mut end = closed_window();
    end.tick(CLOSED_RTO - ms(1));
    end.send(ack(10));
    assert_eq!(end.recv_count(), 20);
    assert_eq!(end.next_timer(), Some(end.now + CLOSED_RTO));
    end.tick(ms(10));
    end.recv_nothing();
    assert_eq!(end.event_names(), [""; 0]);
}

#[test]
fn a_probe_that_is_taken_is_followed_by_the_next_byte() {
    // RFC 9293 3.8.6.1
    let mut end = closed_window();
    end.tick(CLOSED_RTO);
    end.recv();
    end.tick(RTT);
    end.send(Segment { window: 0, ack: at(10) + 1, ..ack(0) });
    end.recv_nothing();
    end.tick(ms(1000));
    assert_eq!(end.recv().seq, at(10) + 1);
}

#[test]
fn acknowledgements_of_a_closed_window_do_not_put_off_the_probe() {
    // RFC 9293 3.8.6.1: the window update may have been lost.
    let mut end = closed_window();
    for segment in 0..10 {
        end.tick(CLOSED_RTO / 10);
        end.send(Segment { window: 0, seq: at(segment), ..ack(10) });
    }
    assert_eq!(end.recv().len, 1);
}

#[test]
fn a_window_that_shrinks_to_nothing_is_probed_with_what_is_outstanding() {
    // RFC 9293 3.8.6: a sender must be robust against it.
    let mut end = Script::flight(&config());
    end.send(Segment { window: 0, ..ack(2) });
    let window = end.window();
    end.tick(CLOSED_RTO);
    end.recv_segments([2]);
    end.tick(CLOSED_RTO * 2);
    end.recv_segments([2]);
    assert_eq!((end.window(), end.counters().timeouts), (window, 0));
    end.send(ack(10));
    end.recv_segments(10..10 + u64::from(end.cwnd()));
}

#[test]
fn the_end_of_the_stream_waits_for_the_window_too() {
    // RFC 9293 3.4: a FIN takes sequence space, hence also window.
    let mut end = Script::open(&config());
    end.send(Segment { seq: 2, window: 125, ..ack(0) });
    end.offer(2 * FULL);
    end.recv_segments(0..2);
    end.tick(RTT);
    end.send(Segment { window: 0, ..ack(2) });
    end.close();
    end.recv_nothing();
    end.tick(CLOSED_RTO);
    let probe = end.recv();
    assert_eq!((probe.seq, probe.len, probe.flags.has(Flags::FIN)), (at(2), 0, true));
    end.send(Segment { ack: at(2) + 1, ..ack(0) });
    assert!(end.is_finished());
    assert_eq!(end.next_timer(), None);
}

#[test]
fn a_window_of_half_a_segment_is_used_in_the_end() {
    // RFC 9293 3.8.6.2.1: half of the largest window is sent at once, less when the timer expires.
    let mut end = Script::open(&config());
    end.send(Segment { seq: 2, window: (MSS / 32) as u16, ..ack(0) });
    end.offer(u64::MAX);
    end.recv_nothing();
    end.tick(RTO);
    assert_eq!(end.recv().len, 1);
}

#[test]
fn the_fin_is_no_payload() {
    let mut end = Script::open(&config());
    end.offer(FULL);
    end.close_when_written();
    end.recv();
    end.send(Segment { ack: at(1) + 1, ..ack(0) });
    assert_eq!((end.acknowledged(), end.written()), (FULL, FULL));
}

#[test]
fn a_late_acknowledgement_does_not_take_the_window_back() {
    // RFC 9293 3.10.7.4: SND.WL1, SND.WL2
    for late in [
        Segment { window: 0, ..ack(0) },         // an older acknowledgement
        Segment { window: 0, seq: 1, ..ack(1) }, // an older segment
        Segment { window: 0, seq: 9, ..ack(1) }, // the same: one of the two is an update
    ] {
        let mut end = Script::open(&config());
        end.offer(FULL);
        end.recv_segments([0]);
        end.send(Segment { seq: 9, ..ack(1) });
        end.send(late);
        end.offer(FULL);
        end.recv_segments([1]);
    }
    let mut end = Script::open(&config());
    end.send(Segment { window: 0, seq: 9, ..ack(0) });
    end.offer(FULL);
    end.recv_nothing();
}
