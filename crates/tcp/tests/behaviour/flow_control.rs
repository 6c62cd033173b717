//! The application's side: send buffer, Nagle, closing; the peer's window and its probes.

use airpath_base::{Duration, Flags, Instant, Segment};
use airpath_tcp::LimitTimes;

use crate::script::*;

const FULL: u64 = MSS as u64;

#[test]
fn the_send_buffer_limits_what_is_outstanding() {
    let mut config = config();
    config.send_buffer = 3 * FULL;
    let mut end = Script::bulk(&config);
    end.recv_segments(0..3);
    assert_eq!(end.written(), 3 * FULL);
    end.tick(RTT);
    end.send(ack(1));
    end.recv_segments([3]);
    assert_eq!(end.written(), 4 * FULL);
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
    let mut config = config();
    config.send_buffer = 4 * FULL;
    let mut end = Script::bulk(&config);
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
    let mut config = config();
    config.send_buffer = 4 * FULL;
    let mut end = Script::open(&config);
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
    assert_eq!(end.recv(), fin);
    // With data: the two go again together.
    let mut end = Script::open(&config());
    end.offer(50);
    end.recv();
    end.offer(30);
    end.close_when_written();
    let last = end.recv();
    assert_eq!((last.seq, last.len, last.flags.has(Flags::FIN)), (51, 30, true));
    end.send(Segment { ack: 51, ..ack(0) });
    end.tick(ms(1000));
    assert_eq!(end.recv(), last);
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
    let mut config = config();
    config.send_buffer = 30 * FULL;
    let mut end = Script::open(&config);
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
    let LimitTimes { cwnd, receive_window, send_buffer, application } = end.limit_times(end.now);
    assert_eq!(
        cwnd + receive_window + send_buffer + application,
        Duration::from_nanos(end.now.as_nanos())
    );
    // The last flight, with nothing more to send, is the application's time too.
    assert_eq!(application, (opened - Instant::ZERO) + ms(50 + 100 + 70));
    for part in [cwnd, receive_window, send_buffer] {
        assert!(part > Duration::ZERO);
    }
}
