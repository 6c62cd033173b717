//! The receiving half: when it acknowledges, what it reports, and what it accepts.

use airpath_base::{Flags, Instant, Segment};
use airpath_tcp::{BufferConfig, EndpointConfig};

use crate::script::*;

#[test]
fn the_second_full_segment_is_acknowledged_at_once() {
    // RFC 5681 4.2
    let mut end = Script::accepted(&config());
    for pair in 0..5 {
        end.send(data(2 * pair));
        end.recv_nothing();
        end.send(data(2 * pair + 1));
        end.recv_ack(at(2 * pair + 2));
        assert_eq!(end.next_timer(), None);
    }
}

#[test]
fn a_single_segment_is_acknowledged_when_the_timer_runs_out() {
    // RFC 1122 4.2.3.2
    let mut end = Script::accepted(&config());
    end.send(data(0));
    end.tick_in_silence(ms(40));
    end.recv_ack(at(1));
    assert_eq!(end.next_timer(), None);
}

#[test]
fn the_timer_runs_from_the_first_segment_that_waits() {
    // RFC 1122 4.2.3.2: less than 0.5 s for each; short segments do not count.
    let mut end = Script::accepted(&config());
    end.send(Segment { len: 100, ..data(0) });
    end.tick(ms(30));
    end.send(Segment { seq: 101, len: 100, ..data(0) });
    end.recv_nothing();
    end.tick(ms(10));
    end.recv_ack(201);
}

#[test]
fn a_ticking_timer_runs_out_on_multiples_of_its_period() {
    let mut config = config();
    config.delayed_ack.ticking = true;
    let mut end = Script::accepted(&config);
    for (arrives, acknowledged) in [(101, 120), (120, 160), (199, 200)] {
        end.tick(ms(arrives) - (end.now - Instant::ZERO));
        end.send(Segment { seq: 1 + end.delivered(), len: 10, ..data(0) });
        assert_eq!(end.next_timer(), Some(Instant::ZERO + ms(acknowledged)));
        end.tick(ms(acknowledged - arrives));
        end.recv();
    }
}

#[test]
fn four_segments_are_acknowledged_together_if_so_configured() {
    let mut config = config();
    config.delayed_ack.segments = 4;
    let mut end = Script::accepted(&config);
    end.send_data(0..3);
    end.recv_nothing();
    end.send(data(3));
    end.recv_ack(at(4));
}

#[test]
fn data_takes_the_acknowledgement_along() {
    // RFC 9293 3.8.6.3
    let mut end = Script::accepted(&config());
    end.send(data(0));
    end.offer(100);
    let sent = end.recv();
    assert_eq!((sent.seq, sent.len, sent.ack), (1, 100, at(1)));
    end.recv_nothing();
    end.tick(ms(40));
    end.recv_nothing();
}

#[test]
fn a_segment_out_of_order_is_acknowledged_at_once() {
    // RFC 5681 4.2
    let mut end = Script::accepted(&config());
    end.send(data(1));
    assert_eq!(blocks(&end.recv_ack(at(0))), [(1, 2)]);
    end.send(data(2));
    assert_eq!(blocks(&end.recv_ack(at(0))), [(1, 3)]);
}

#[test]
fn a_segment_that_fills_a_gap_is_acknowledged_at_once() {
    // RFC 5681 4.2: all or part of the gap.
    let mut end = Script::accepted(&config());
    end.send_data([1, 3]);
    end.recv_count();
    end.send(data(0));
    assert_eq!(blocks(&end.recv_ack(at(2))), [(3, 4)]);
    end.send(data(2));
    let ack = end.recv_ack(at(4));
    assert!(ack.sack.is_empty());
    assert_eq!(end.delivered(), 4 * u64::from(MSS));
}

#[test]
fn a_duplicate_is_acknowledged_at_once_and_delivered_once() {
    // RFC 9293 3.10.7.4
    let mut end = Script::accepted(&config());
    end.send_data([0, 0]);
    end.recv_ack(at(1));
    assert_eq!(end.delivered(), u64::from(MSS));
}

#[test]
fn sack_blocks_are_three_at_most_and_the_most_recent_is_first() {
    // RFC 2018 4
    let mut end = Script::accepted(&config());
    end.send_data([1, 3, 5, 7]);
    let last = end.recv_count();
    assert_eq!(last, 4);
    end.send(data(9));
    assert_eq!(blocks(&end.recv()), [(9, 10), (7, 8), (5, 6)]);
}

#[test]
fn there_are_no_blocks_in_order_and_none_without_sack() {
    // RFC 2018 4
    let mut end = Script::accepted(&config());
    end.send_data([0, 1]);
    assert!(end.recv().sack.is_empty());

    let mut end = Script::accepted(&EndpointConfig { sack: false, ..config() });
    end.send(data(1));
    assert!(end.recv_ack(at(0)).sack.is_empty());
}

#[test]
fn nothing_beyond_the_window_is_accepted() {
    // RFC 9293 3.10.7.4
    let mut config = config();
    config.receive_buffer = BufferConfig::fixed(3 * u64::from(MSS));
    let mut end = Script::accepted(&config);
    end.send(data(3));
    assert!(end.recv_ack(at(0)).sack.is_empty());
    end.send(data(2));
    assert_eq!(blocks(&end.recv_ack(at(0))), [(2, 3)]);
}

#[test]
fn the_right_edge_of_the_window_never_moves_back() {
    // RFC 9293 3.8.6: "shrinking the window" is discouraged.
    for buffer in [10_000, 65_535, 65_537, 70_001, 1_000_003] {
        let config = EndpointConfig { receive_buffer: BufferConfig::fixed(buffer), ..config() };
        let mut end = Script::connect(&config);
        let syn = end.recv();
        end.send(syn_ack());
        let (shift, mut edge) = (syn.window_scale.unwrap(), 1 + u64::from(syn.window));
        let order = [0, 2, 1, 3, 5, 4, 4, 6, 7].into_iter();
        for segment in order {
            end.send(data(segment));
            end.tick(ms(40));
            while end.recv_count() > 0 {}
            // Repeat it: a duplicate is answered at once.
            end.send(data(0));
            let ack = end.recv();
            let right = ack.ack + (u64::from(ack.window) << shift);
            assert!(right >= edge, "{buffer}: {right} after {edge}");
            assert!(right <= ack.ack + buffer);
            edge = right;
        }
    }
}

#[test]
fn the_end_of_the_stream_is_acknowledged_at_once() {
    let mut end = Script::accepted(&config());
    end.send(Segment { flags: Flags::FIN.with(Flags::ACK), len: 10, ..data(0) });
    end.recv_ack(12);
    assert!(end.is_closed_by_peer());
    assert_eq!(end.delivered(), 10);
    // Repeated: its acknowledgement was lost.
    end.send(Segment { seq: 11, flags: Flags::FIN.with(Flags::ACK), len: 0, ..data(0) });
    end.recv_ack(12);
}

#[test]
fn a_timestamp_is_echoed_from_the_segment_that_an_acknowledgement_waits_for() {
    // RFC 7323 4.3: the timestamp of the first segment acknowledged together, not of one above a
    // gap.
    let mut end = Script::accepted(&EndpointConfig { timestamps: true, ..config() });
    end.send(Segment { timestamps: stamp(100), ..data(0) });
    end.send(Segment { timestamps: stamp(200), ..data(1) });
    assert_eq!(end.recv_ack(at(2)).echo(), Some(100));
    end.send(Segment { timestamps: stamp(300), ..data(3) });
    assert_eq!(end.recv_ack(at(2)).echo(), Some(100));
    end.send(Segment { timestamps: stamp(400), ..data(2) });
    assert_eq!(end.recv_ack(at(4)).echo(), Some(400));
}

#[test]
fn older_blocks_are_repeated_while_a_new_one_grows() {
    // RFC 2018 4: the most recently reported blocks that are not part of a listed one.
    let mut end = Script::accepted(&config());
    end.send_data([1, 3, 5, 7, 8, 9, 10]);
    assert_eq!(end.recv_count(), 7);
    end.send(data(11));
    assert_eq!(blocks(&end.recv()), [(7, 12), (5, 6), (3, 4)]);
    // A new segment in an old block brings that block to the front.
    end.send(data(2));
    assert_eq!(blocks(&end.recv()), [(1, 4), (7, 12), (5, 6)]);
}

#[test]
fn of_a_segment_across_the_edge_of_the_window_the_part_inside_is_accepted() {
    // RFC 9293 3.10.7.4
    let config = EndpointConfig { receive_buffer: BufferConfig::fixed(1500), ..config() };
    let mut end = Script::accepted(&config);
    end.send(Segment { len: 1600, flags: Flags::FIN.with(Flags::ACK), ..data(0) });
    end.tick(ms(40));
    end.recv_ack(1501);
    assert!(!end.is_closed_by_peer());
    // A FIN takes no room in the buffer.
    end.send(Segment { seq: 1501, len: 1500, flags: Flags::FIN.with(Flags::ACK), ..data(0) });
    end.recv_ack(3002);
    assert!(end.is_closed_by_peer());
}

#[test]
fn no_delay_means_short_segments_too() {
    let mut config = config();
    config.delayed_ack.segments = 1;
    let mut end = Script::accepted(&config);
    end.send(Segment { len: 10, ..data(0) });
    end.recv_ack(11);
}

#[test]
fn an_old_duplicate_does_not_turn_the_echoed_timestamp_back() {
    // RFC 7323 4.3 (2): SEG.TSval >= TS.Recent
    let mut end = Script::accepted(&EndpointConfig { timestamps: true, ..config() });
    end.send(Segment { timestamps: stamp(200), ..data(0) });
    end.send(Segment { timestamps: stamp(300), ..data(1) });
    end.recv();
    end.send(Segment { timestamps: stamp(100), ..data(0) });
    assert_eq!(end.recv_ack(at(2)).echo(), Some(200));
    // The clock wraps; after an hour of silence it cannot be compared (5.5).
    for ts_val in [0x7000_0000, 0xe000_0000, 7] {
        end.send(Segment { timestamps: stamp(ts_val), ..data(0) });
        assert_eq!(end.recv_ack(at(2)).echo(), Some(ts_val));
    }
    end.tick(ms(3_600_000));
    end.send(Segment { timestamps: stamp(3_600_000_000), ..data(0) });
    assert_eq!(end.recv_ack(at(2)).echo(), Some(3_600_000_000));
}

#[test]
fn pure_acknowledgements_carry_the_next_sequence_number() {
    // RFC 9293 3.10.7.4: <SEQ=SND.NXT>
    let mut end = Script::accepted(&config());
    end.offer(500);
    end.recv();
    end.send_data([0, 1]);
    assert_eq!(end.recv_ack(at(2)).seq, 501);
}

#[test]
fn an_acknowledgement_of_what_was_not_sent_is_answered_and_dropped() {
    // RFC 9293 3.10.7.4
    let mut end = Script::accepted(&config());
    end.offer(500);
    end.recv();
    end.send(Segment { ack: 502, window: 7, ..data(0) });
    end.recv_ack(1);
    assert_eq!((end.delivered(), end.acknowledged()), (0, 0));
}

fn dsack() -> EndpointConfig {
    EndpointConfig { dsack: true, ..config() }
}

#[test]
fn a_duplicate_is_reported_once_and_first() {
    // RFC 2883 4.1, its first example
    let mut end = Script::accepted(&dsack());
    end.send_data([0, 1]);
    end.recv();
    end.send(data(0));
    assert_eq!(blocks(&end.recv_ack(at(2))), [(0, 1)]);
    end.send(data(3));
    assert_eq!(blocks(&end.recv_ack(at(2))), [(3, 4)]);
}

#[test]
fn a_duplicate_above_a_gap_is_reported_before_the_range_that_holds_it() {
    // RFC 2883 4 (4), 4.1, its second example
    let mut end = Script::accepted(&dsack());
    end.send_data([1, 5, 2, 3, 2]);
    assert_eq!(end.recv_count(), 5);
    end.send(data(2));
    assert_eq!(blocks(&end.recv_ack(at(0))), [(2, 3), (1, 4), (5, 6)]);
}

#[test]
fn a_duplicate_below_a_gap_comes_before_the_ranges_above() {
    // RFC 2883 4.1, its third example
    let mut end = Script::accepted(&dsack());
    end.send_data([0, 2, 0]);
    end.recv();
    assert_eq!(blocks(&end.recv_ack(at(1))), [(0, 1), (2, 3)]);
}

/// Like [`data`], but for several segments at once.
fn long(first: u64, end: u64) -> Segment {
    Segment { len: ((end - first) * u64::from(MSS)) as u32, ..data(first) }
}

#[test]
fn of_a_partial_duplicate_the_part_that_was_there_is_reported() {
    // RFC 2883 4.2.1, 4.2.2
    let mut end = Script::accepted(&dsack());
    end.send(data(0));
    end.send(long(0, 3));
    assert_eq!(blocks(&end.recv_ack(at(3))), [(0, 1)]);
    end.send(data(5));
    end.send(long(4, 6));
    end.recv();
    assert_eq!(blocks(&end.recv_ack(at(3))), [(5, 6), (4, 6)]);
    // What fills a gap overlaps what is above it.
    end.send(long(3, 5));
    assert_eq!(blocks(&end.recv_ack(at(6))), [(4, 5)]);
}

#[test]
fn of_two_duplicate_parts_the_first_is_reported() {
    // RFC 2883 4.2.3
    let mut end = Script::accepted(&dsack());
    end.send_data([2, 4]);
    end.recv_count();
    end.send(long(1, 5));
    assert_eq!(blocks(&end.recv_ack(at(0))), [(2, 3), (1, 5)]);
}

#[test]
fn duplicates_are_not_reported_unless_configured_and_agreed() {
    // RFC 2883 5: D-SACK requires SACK-permitted.
    let plain = Segment { sack_permitted: false, ..syn() };
    for (config, syn) in [(config(), syn()), (dsack(), plain)] {
        let mut end = Script::listen(&config);
        end.send(syn);
        end.recv();
        end.send(ack(0));
        end.send_data([0, 0]);
        assert!(end.recv_ack(at(1)).sack.is_empty());
    }
}

#[test]
fn the_timestamp_of_a_bare_acknowledgement_is_echoed_too() {
    // RFC 7323 4.3 (2): the receiver measures round trips with it.
    let config = EndpointConfig { timestamps: true, header: 52, ..config() };
    let mut end = Script::open(&config);
    end.offer(20_000);
    assert_eq!(end.recv().echo(), Some(1));
    end.recv_count();
    let echo = end.ts_val();
    end.tick(RTT);
    end.send(Segment { timestamps: stamps(50, echo), ..ack(2) });
    assert_eq!(end.recv().echo(), Some(50));
    // A timestamp older than one already seen is late, and carries no information.
    end.recv_count();
    end.send(Segment { timestamps: stamps(40, echo), ..ack(4) });
    assert_eq!(end.recv().echo(), Some(50));
}
