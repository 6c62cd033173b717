//! The receive window: slow readers, silly window syndrome, growth.

use airpath_base::{Duration, Flags, Rate, Segment};
use airpath_tcp::{AggregationConfig, BufferConfig, EndpointConfig, ReaderConfig, RightSizing};

use crate::script::*;

const FULL: u64 = MSS as u64;

/// Read by the driver, from a buffer of ten segments; the window is not scaled.
fn by_hand() -> EndpointConfig {
    EndpointConfig {
        receive_buffer: BufferConfig::fixed(10 * FULL),
        reader: ReaderConfig::Driver,
        ..config()
    }
}

fn window(segment: &Segment) -> u64 {
    u64::from(segment.window)
}

#[test]
fn what_is_not_read_closes_the_window() {
    // RFC 9293 3.8.6
    let mut end = Script::accepted(&by_hand());
    for pair in 0..5 {
        end.send(data(2 * pair));
        end.send(data(2 * pair + 1));
        assert_eq!(window(&end.recv_ack(at(2 * pair + 2))), (8 - 2 * pair) * FULL);
    }
    assert_eq!((end.unread(), end.delivered()), (10 * FULL, 10 * FULL));
    // A probe of the closed window is refused and answered (3.8.6.1).
    end.send(Segment { len: 1, ..data(10) });
    assert_eq!(window(&end.recv_ack(at(10))), 0);
    assert_eq!(end.unread(), 10 * FULL);
}

/// The whole buffer is unread.
fn full() -> Script {
    let mut end = Script::accepted(&by_hand());
    end.send_data(0..10);
    end.recv_count();
    end
}

#[test]
fn a_closed_window_opens_by_no_less_than_a_segment() {
    // RFC 9293 3.8.6.2.2
    let mut end = full();
    end.read(400);
    end.read(599);
    end.recv_nothing();
    end.read(1);
    assert_eq!(window(&end.recv_ack(at(10))), FULL);
    // Nor does an acknowledgement that is sent anyway advertise more.
    end.read(999);
    end.send(data(0));
    assert_eq!(window(&end.recv_ack(at(10))), FULL);
}

#[test]
fn of_a_small_buffer_the_window_opens_by_half() {
    // RFC 9293 3.8.6.2.2
    let config = EndpointConfig { receive_buffer: BufferConfig::fixed(1200), ..by_hand() };
    let mut end = Script::accepted(&config);
    end.send(Segment { len: 1200, ..data(0) });
    end.recv_count();
    end.tick(ms(40));
    end.recv_count();
    end.read(599);
    end.recv_nothing();
    end.read(1);
    assert_eq!(window(&end.recv()), 600);
}

#[test]
fn an_update_goes_out_when_the_window_has_doubled() {
    // A peer that has room needs no earlier update; Linux does the same.
    let mut end = full();
    end.read(3 * FULL);
    assert_eq!(window(&end.recv()), 3 * FULL);
    end.read(3 * FULL - 1);
    end.recv_nothing();
    end.read(1);
    assert_eq!(window(&end.recv()), 6 * FULL);
    end.read(u64::MAX);
    end.recv_nothing();
    assert_eq!(end.unread(), 0);
    end.send_data([10, 11]);
    assert_eq!(window(&end.recv()), 8 * FULL);
}

#[test]
fn there_is_no_update_after_the_end_of_the_stream() {
    let mut end = full();
    end.read(FULL);
    end.recv_count();
    let fin = Segment { flags: Flags::FIN.with(ack(0).flags), len: 10, ..data(10) };
    end.send(fin);
    end.recv_ack(at(10) + 11);
    end.read(u64::MAX);
    end.recv_nothing();
    assert_eq!((end.unread(), end.delivered()), (0, 10 * FULL + 10));
}

#[test]
fn a_bare_fin_needs_no_room() {
    let mut end = full();
    end.send(Segment { flags: Flags::FIN.with(ack(0).flags), len: 0, ..data(10) });
    end.recv_ack(at(10) + 1);
    assert!(end.is_closed_by_peer());
    assert_eq!(end.unread(), 10 * FULL);
}

#[test]
fn a_window_that_only_the_delayed_acknowledgement_would_open_is_opened_at_once() {
    // The sender could not send before the update.
    let config = EndpointConfig { receive_buffer: BufferConfig::fixed(FULL), ..config() };
    let mut end = Script::accepted(&config);
    for segment in 0..3 {
        end.send(data(segment));
        assert_eq!(window(&end.recv_ack(at(segment + 1))), FULL);
    }
}

#[test]
fn an_application_reads_at_its_rate() {
    // 8 Mb/s: one segment per millisecond.
    let rate = Rate::from_bps(8_000_000).unwrap();
    let config = EndpointConfig { reader: ReaderConfig::Rate(rate), ..by_hand() };
    let mut end = Script::accepted(&config);
    end.tick(ms(500));
    end.send_data(0..10);
    assert_eq!(end.recv_count(), 5);
    end.tick_in_silence(ms(1));
    assert_eq!((window(&end.recv()), end.unread()), (FULL, 9 * FULL));
    end.tick(ms(1));
    assert_eq!(window(&end.recv()), 2 * FULL);
    end.tick(ms(2));
    assert_eq!(window(&end.recv()), 4 * FULL);
    end.tick(ms(4));
    assert_eq!(window(&end.recv()), 8 * FULL);
    assert_eq!(end.next_timer(), None);
    // Each arrival advances the clock.
    end.tick(ms(1));
    end.send(data(10));
    assert_eq!(end.unread(), 2 * FULL);
    end.tick(ms(40));
    assert_eq!(window(&end.recv_ack(at(11))), 10 * FULL);
}

/// 64 segments at the start, 4,000 at most.
fn tuned(timestamps: bool) -> EndpointConfig {
    let receive_buffer = BufferConfig { initial: 64 * FULL, max: 4000 * FULL, tuned: true };
    EndpointConfig { receive_buffer, timestamps, header: 52, ..config() }
}

/// A sender whose window doubles every round trip, from ten segments. Returns the advertised
/// windows, in segments, after each round.
fn slow_start(config: &EndpointConfig, rounds: u32) -> Vec<u64> {
    let mut end = Script::accepted(config);
    let scale = 6; // 4,000,000 / 65,535
    let stamped = |echo| if config.timestamps { stamps(1, echo) } else { None };
    // The SYN+ACK was sent at 0.
    let (mut segment, mut echo, mut windows) = (0, 1, Vec::new());
    for round in 0..rounds {
        let flight = 10 << round;
        let next = end.ts_val();
        for _ in 0..flight {
            end.send(Segment { timestamps: stamped(echo), ..data(segment) });
            segment += 1;
            end.tick(RTT / flight);
        }
        echo = next;
        let mut last = 0;
        while end.recv_len() > 0 {
            last = window(&end.recv()) << scale;
        }
        windows.push(last / FULL);
    }
    windows
}

/// One of the 4,000 segments is taken by the segment that would widen the window, and the right
/// edge does not move for less than one.
const WIDEST: u64 = 3998;

#[test]
fn the_window_grows_ahead_of_slow_start() {
    // M. Fisk and W. Feng, "Dynamic Right-Sizing in TCP": twice what is read in a round trip.
    let windows = slow_start(&tuned(true), 9);
    for (round, window) in (0..).zip(&windows) {
        let next = 20_u64 << round;
        assert!(*window >= next.min(WIDEST), "{windows:?}");
    }
    assert_eq!(windows.last(), Some(&WIDEST), "{windows:?}");
    // Without timestamps, a round-trip time is known only after the first window.
    assert_eq!(slow_start(&tuned(false), 9).last(), Some(&WIDEST));
}

#[test]
fn what_waits_above_a_gap_takes_of_the_room() {
    // Seen with Linux 6.18: with a hole at 24 Mb/s, 50 ms and a loss of 10 %, the window grows by
    // two segments per arriving one, from 100 segments to 141, and stays there while 41 and then
    // 137 of these are SACKed.
    let mut config = tuned(false);
    config.receive_buffer.initial = 100 * FULL;
    let mut end = Script::accepted(&config);
    end.send(data(0));
    let mut windows = Vec::new();
    for segment in 2..50 {
        end.send(data(segment));
        while end.recv_len() > 1 {
            end.recv();
        }
        windows.push((window(&end.recv_ack(at(1))) << 6) / FULL);
    }
    // 65 and what a SYN cannot advertise; 67 with the first segment, two more with each until no
    // room is left.
    assert_eq!(windows[..3], [69, 71, 73]);
    let last = windows[47];
    assert!(
        (86..=89).contains(&last) && windows[12..].iter().all(|&one| one == last),
        "{windows:?}"
    );
    end.send(data(1));
    assert!((window(&end.recv_ack(at(50))) << 6) / FULL > last);
}

#[test]
fn the_window_keeps_its_size_when_no_more_is_read() {
    let mut end = Script::accepted(&tuned(true));
    let mut echo = end.ts_val();
    for round in 0..20 {
        let next = end.ts_val();
        for segment in 0..10 {
            end.send(Segment { timestamps: stamps(1, echo), ..data(10 * round + segment) });
            end.tick(RTT / 10);
        }
        echo = next;
        while end.recv_len() > 1 {
            end.recv();
        }
        assert_eq!((window(&end.recv()) << 6) / FULL, 64);
    }
}

#[test]
fn what_waited_above_a_gap_counts_as_read_after_what_filled_it() {
    // Seen with Linux 6.18 (tracepoint tcp:tcp_rcvbuf_grow): in a round that ends with the segment
    // that fills a gap, the data behind it, 6 segments of 23, is unread, so that it counts in the
    // next round.
    let mut config = tuned(true);
    config.right_sizing = RightSizing::Linux6_16;
    let mut end = Script::accepted(&config);
    let mut echo = end.ts_val();
    let window_of = |end: &mut Script| {
        while end.recv_len() > 1 {
            end.recv();
        }
        (window(&end.recv()) << 6) / FULL
    };
    for round in 0..2 {
        let next = end.ts_val();
        for segment in 0..10 {
            end.send(Segment { timestamps: stamps(1, echo), ..data(10 * round + segment) });
            end.tick(RTT / 10);
        }
        echo = next;
    }
    for segment in 21..61 {
        end.send(Segment { timestamps: stamps(1, echo), ..data(segment) });
    }
    end.tick(RTT * 2);
    end.send(Segment { timestamps: stamps(1, echo), ..data(20) });
    for segment in 61..63 {
        end.send(Segment { timestamps: stamps(1, echo), ..data(segment) });
    }
    assert_eq!(window_of(&mut end), 64);
    echo = end.ts_val();
    end.tick(RTT + ms(50));
    for segment in 63..67 {
        end.send(Segment { timestamps: stamps(1, echo), ..data(segment) });
    }
    assert!(window_of(&mut end) > 64);
}

#[test]
fn a_fixed_buffer_does_not_grow() {
    // SO_RCVBUF
    let config = EndpointConfig { receive_buffer: BufferConfig::fixed(4000 * FULL), ..tuned(true) };
    assert_eq!(slow_start(&config, 5), [4000; 5]);
}

#[test]
fn the_scale_suits_the_largest_window_and_the_syn_says_the_first() {
    // RFC 7323 2.3: the scale is fixed when the connection opens.
    let mut end = Script::connect(&tuned(true));
    let syn = end.recv();
    assert_eq!((syn.window_scale, syn.window), (Some(6), 64_000));
    let mut end = Script::connect(&EndpointConfig { reader: ReaderConfig::AtOnce, ..by_hand() });
    assert_eq!(end.recv().window_scale, Some(0));
}

#[test]
fn a_peer_without_scaling_limits_growth() {
    // RFC 7323 2.2
    let mut end = Script::listen(&tuned(false));
    end.send(Segment { window_scale: None, ..syn() });
    end.recv();
    end.tick(RTT);
    end.send(ack(0));
    for segment in 0..2000 {
        end.send(data(segment));
        end.tick(Duration::from_micros(10));
        while end.recv_len() > 0 {
            assert!(end.recv().window >= 63_000);
        }
    }
}

#[test]
fn an_untuned_window_grows_with_every_full_segment_and_each_is_acknowledged_meanwhile() {
    // Seen with Linux 6.18 behind a large fixed buffer: two segments per arriving one, as long as
    // there is room beside the segment itself.
    let mut config = by_hand();
    config.reader = ReaderConfig::AtOnce;
    config.receive_buffer = BufferConfig { initial: 10 * FULL, max: 16 * FULL, tuned: false };
    config.delayed_ack.quick_segments = 1;
    let mut end = Script::accepted(&config);
    for (segment, offered) in [(0, 12), (1, 14), (2, 15)] {
        end.send(data(segment));
        let acknowledgement = end.recv_ack(at(segment + 1));
        assert_eq!(window(&acknowledgement) / FULL, offered);
    }
    // The last of them leaves at most one quick acknowledgement; after that, one per two segments
    // is enough.
    end.send(data(3));
    end.recv_count();
    end.send_data([4, 5]);
    assert_eq!(end.recv_len(), 1);
}

#[test]
fn a_window_that_grows_at_the_start_uses_no_quick_acknowledgements() {
    // Seen with Linux 6.18: 22 segments are acknowledged one by one: the six that widen the window
    // from the 65,535 bytes of the SYN, and sixteen more.
    let mut config = tuned(false);
    config.receive_buffer.initial = 65_535 + 3 * 2 * FULL;
    config.delayed_ack.quick_segments = 16;
    let mut end = Script::accepted(&config);
    for segment in 0..19 {
        end.send(data(segment));
        end.recv_ack(at(segment + 1));
    }
    end.send(data(19));
    end.recv_nothing();
    end.send(data(20));
    end.recv_ack(at(21));
}

/// A reader that takes a millisecond to wake, behind a window that does not grow; segments that
/// arrive together are delivered in pairs, which Linux's senders push.
fn waking() -> EndpointConfig {
    let mut config = by_hand();
    config.reader = ReaderConfig::After(ms(1));
    config.receive_buffer = BufferConfig::fixed(64 * FULL);
    config.aggregation = Some(AggregationConfig { time: Duration::ZERO, max_bytes: 65_535 });
    config.delayed_ack.pushed_at_once = true;
    config
}

fn pushed(segment: u64) -> Segment {
    let data = data(segment);
    Segment { flags: data.flags.with(Flags::PSH), ..data }
}

#[test]
fn what_leaves_no_room_for_the_old_window_is_acknowledged_by_the_reader() {
    // Seen with Linux 6.18 over the emulated LTE, in a capture at the UE: while its window grows,
    // each pair is acknowledged; while the window is constant, one acknowledgement covers
    // everything that arrived within the slot.
    let mut end = Script::accepted(&waking());
    for pair in 0..6 {
        end.send(data(2 * pair));
        end.send(pushed(2 * pair + 1));
    }
    end.recv_nothing();
    end.tick_in_silence(ms(1));
    assert_eq!((window(&end.recv_ack(at(12))), end.unread()), (64 * FULL, 0));
}

#[test]
fn a_window_that_grows_is_acknowledged_without_the_reader() {
    let mut config = waking();
    config.receive_buffer = BufferConfig { initial: 10 * FULL, max: 64 * FULL, tuned: false };
    let mut end = Script::accepted(&config);
    for (pair, offered) in [(0, 14), (1, 18), (2, 22)] {
        end.send(data(2 * pair));
        end.send(pushed(2 * pair + 1));
        assert_eq!(window(&end.recv_ack(at(2 * pair + 2))) / FULL, offered);
    }
}

#[test]
fn a_reader_that_is_awake_acknowledges_what_is_handed_up_together() {
    // Seen with Linux 6.18 on processors that stay awake (tracepoints tcp:tcp_probe and
    // tcp:tcp_rcv_space_adjust): pairs of one slot arrive 8 us apart and are read 5 us later.
    let mut end = Script::accepted(&EndpointConfig { reader: ReaderConfig::AtOnce, ..waking() });
    for pair in 0..6 {
        end.send(data(2 * pair));
        assert_eq!(end.unread(), FULL);
        end.send(pushed(2 * pair + 1));
        assert_eq!((window(&end.recv_ack(at(2 * pair + 2))), end.unread()), (64 * FULL, 0));
    }
}

#[test]
fn a_reader_acknowledges_a_segment_that_was_pushed_alone() {
    // Linux since 6.6, where the delayed acknowledgement would have waited.
    for reader in [ReaderConfig::After(ms(1)), ReaderConfig::AtOnce] {
        let mut end = Script::accepted(&EndpointConfig { reader, ..waking() });
        end.send(pushed(0));
        if reader != ReaderConfig::AtOnce {
            end.recv_nothing();
            end.tick(ms(1));
        }
        end.recv_ack(at(1));
        end.send(data(1));
        end.tick(ms(1));
        end.recv_nothing();
    }
    let mut older = waking();
    older.delayed_ack.pushed_at_once = false;
    let mut end = Script::accepted(&older);
    end.send(pushed(0));
    end.tick(ms(1));
    end.recv_nothing();
}

/// The window, in segments, after ten segments, then `early` more just before the first round trip
/// after the handshake is over and `late` at its end, and then as many as it takes to offer all the
/// room.
fn after_a_round(early: u64, late: u64) -> u64 {
    let mut config = tuned(true);
    config.right_sizing = RightSizing::Linux6_16;
    config.reader = ReaderConfig::After(ms(1) / 10);
    let mut end = Script::listen(&config);
    end.send(Segment { timestamps: stamps(1, 0), window_scale: Some(14), ..syn() });
    let echo = value_of(&end.recv());
    end.tick(RTT);
    end.send(Segment { timestamps: stamps(1, echo), ..ack(0) });
    let mut sent = 0;
    let mut send = |end: &mut Script, count| {
        for _ in 0..count {
            end.send(Segment { timestamps: stamps(1, echo), ..data(sent) });
            sent += 1;
        }
    };
    send(&mut end, 10);
    end.tick(RTT - ms(1));
    send(&mut end, early);
    end.tick(ms(1));
    send(&mut end, late);
    end.tick(ms(1));
    let mut last = 0;
    for _ in 0..100 {
        send(&mut end, 1);
        end.tick(ms(1) / 5);
        while end.recv_len() > 0 {
            last = window(&end.recv()) << 6;
        }
    }
    last / FULL
}

#[test]
fn right_sizing_counts_from_the_end_of_the_handshake_and_only_what_is_read() {
    // The tracepoint tcp:tcp_rcvbuf_grow of Linux 6.18.44 over the emulated LTE: 22 segments are
    // read in the first round, with 10 before it, and the buffer has room for 2 × 22 × (1 + 2 × 12
    // / 10), less the one that is unread when the window is advertised.
    assert_eq!(after_a_round(11, 1), 149 - 1);
    // Also from that tracepoint: it counts when the first segment that woke the reader is read,
    // less everything behind it.
    assert_eq!(after_a_round(0, 12), 64);
}
