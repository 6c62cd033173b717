//! Acknowledgements as Linux delays them, and acknowledgements of aggregates.

use airpath_base::{Duration, Flags, Segment};
use airpath_tcp::{
    AggregationConfig, BufferConfig, DelayedAckConfig, EndpointConfig, SackCompressionConfig,
};

use crate::script::*;

/// Sixteen quick acknowledgements, then 40 to 200 ms.
fn linux() -> EndpointConfig {
    EndpointConfig {
        delayed_ack: DelayedAckConfig {
            max_timeout: ms(200),
            quick_segments: 16,
            ..config().delayed_ack
        },
        ..config()
    }
}

/// The quick acknowledgements are used up.
fn settled(config: &EndpointConfig, first: u64) -> Script {
    let mut end = Script::accepted(config);
    (0..first).for_each(|segment| end.send(data(segment)));
    assert_eq!(end.recv_count() as u64, first);
    end
}

#[test]
fn the_first_sixteen_acknowledgements_are_not_delayed() {
    // P. Sarolahti and A. Kuznetsov, "Congestion Control in Linux TCP", USENIX 2002
    let mut end = Script::accepted(&linux());
    for segment in 0..16 {
        end.send(data(segment));
        end.recv_ack(at(segment + 1));
    }
    end.send(data(16));
    end.recv_nothing();
    end.send(data(17));
    end.recv_ack(at(18));
}

#[test]
fn quick_acknowledgements_are_no_more_than_half_a_windows_worth() {
    for (buffer, quick) in [(20_000, 10), (3_500, 2)] {
        let mut config = linux();
        config.receive_buffer = BufferConfig::fixed(buffer);
        let mut end = settled(&config, quick);
        end.send(data(quick));
        end.recv_nothing();
    }
}

#[test]
fn a_duplicate_starts_quick_acknowledgements() {
    // The acknowledgement was lost, or the sender was late: it should learn soon.
    let mut end = settled(&linux(), 16);
    end.send(data(15));
    end.recv_ack(at(16));
    for segment in 16..31 {
        end.send(data(segment));
        end.recv_ack(at(segment + 1));
    }
    end.send(data(31));
    end.recv_nothing();
}

#[test]
fn a_silence_longer_than_the_rto_starts_quick_acknowledgements() {
    let mut end = settled(&linux(), 16);
    end.tick(RTO);
    end.send(data(16));
    end.recv_nothing();
    end.tick(RTO + NANO);
    end.recv_ack(at(17));
    end.send(data(17));
    end.recv_ack(at(18));
}

/// How long the acknowledgement of a single segment waits.
fn delay_of(end: &mut Script, segment: u64) -> Duration {
    end.send(data(segment));
    end.recv_nothing();
    end.next_timer().expect("delayed") - end.now
}

#[test]
fn the_delay_follows_the_time_between_segments() {
    // In the long run twice the time between them, but no less than 40 ms.
    for (gap, expected) in [(1, 40), (20, 40), (30, 60), (35, 70)] {
        let mut end = settled(&linux(), 16);
        for segment in 16..80 {
            end.tick(ms(gap));
            end.send(data(segment));
        }
        // An even number: nothing waits.
        end.recv_count();
        end.tick(ms(gap));
        let delay = delay_of(&mut end, 80);
        assert!(delay + ms(1) >= ms(expected) && delay <= ms(expected), "{gap}: {delay:?}");
    }
}

#[test]
fn a_delay_in_vain_doubles_the_next_up_to_a_round_trip() {
    let mut end = settled(&linux(), 16);
    let mut delays = Vec::new();
    for segment in 16..20 {
        delays.push(delay_of(&mut end, segment));
        end.tick(ms(250));
        end.recv_ack(at(segment + 1));
    }
    // The round trip of the handshake takes 100 ms.
    assert_eq!(delays, [40, 80, 100, 100].map(ms));
}

#[test]
fn the_delay_is_no_longer_than_its_maximum() {
    let mut config = linux();
    config.delayed_ack.max_timeout = ms(70);
    let mut end = settled(&config, 16);
    for (segment, delay) in [(16, 40), (17, 70), (18, 70)] {
        assert_eq!(delay_of(&mut end, segment), ms(delay));
        end.tick(ms(250));
        end.recv_ack(at(segment + 1));
    }
}

#[test]
fn full_sized_is_what_the_peer_sends() {
    // RFC 5681 2: the peer's MSS may be the smaller one.
    let mut end = Script::accepted(&config());
    end.send(Segment { len: 600, ..data(0) });
    end.recv_nothing();
    end.send(Segment { seq: 601, len: 600, ..data(0) });
    end.recv_ack(1201);
    // More than one full segment; the second is short.
    end.send(Segment { seq: 1201, len: 600, ..data(0) });
    end.send(Segment { seq: 1801, len: 1, ..data(0) });
    end.recv_ack(1802);
}

fn aggregating(time: Duration) -> EndpointConfig {
    let aggregation = Some(AggregationConfig { time, max_bytes: 65_535 });
    EndpointConfig { aggregation, ..config() }
}

#[test]
fn what_arrives_at_one_instant_is_acknowledged_together() {
    // GRO: a stretch acknowledgement (RFC 5681 4.2 wants one for every second segment).
    let mut end = Script::accepted(&aggregating(Duration::ZERO));
    for burst in [2, 7, 30] {
        end.tick(ms(10));
        let first = end.delivered() / u64::from(MSS);
        (first..first + burst).for_each(|segment| end.send(data(segment)));
        end.recv_nothing();
        end.tick(Duration::ZERO);
        end.recv_ack(at(first + burst));
        end.recv_nothing();
    }
}

#[test]
fn a_push_ends_an_aggregate() {
    // Linux's GRO delivers what it has; senders since 5.4 end each burst this way.
    let mut end = Script::accepted(&aggregating(Duration::ZERO));
    for segment in 0..9 {
        let mut data = data(segment);
        if segment == 2 || segment == 5 {
            data.flags = data.flags.with(Flags::PSH);
        }
        end.send(data);
    }
    end.recv_ack(at(3));
    end.recv_ack(at(6));
    end.recv_nothing();
    end.tick(Duration::ZERO);
    end.recv_ack(at(9));
}

#[test]
fn a_single_segment_is_no_aggregate() {
    let mut end = Script::accepted(&aggregating(Duration::ZERO));
    end.send(data(0));
    end.tick_in_silence(ms(40));
    end.recv_ack(at(1));
    // One that waits plus one more make two.
    end.send(data(1));
    end.tick(ms(10));
    end.send(data(2));
    end.recv_nothing();
    end.tick(Duration::ZERO);
    end.recv_ack(at(3));
}

#[test]
fn an_aggregate_ends_when_its_time_is_over_or_it_is_full() {
    let mut end = Script::accepted(&aggregating(ms(2)));
    for segment in 0..5 {
        end.send(data(segment));
        end.tick(Duration::from_micros(399));
    }
    end.recv_nothing();
    end.tick(Duration::from_micros(5));
    end.recv_ack(at(5));
    // 65 segments fit into 65,535 bytes.
    end.send_data(5..69);
    end.recv_nothing();
    end.send(data(69));
    end.recv_ack(at(70));
}

#[test]
fn an_aggregate_is_one_quick_acknowledgement() {
    let mut config = aggregating(Duration::ZERO);
    config.delayed_ack.quick_segments = 2;
    let mut end = Script::accepted(&config);
    for burst in 0..2 {
        end.send(data(burst));
        end.tick(Duration::ZERO);
        end.recv_ack(at(burst + 1));
    }
    end.send(data(2));
    end.tick(ms(1));
    end.recv_nothing();
}

#[test]
fn what_is_out_of_order_ends_an_aggregate() {
    // RFC 5681 4.2
    let mut end = Script::accepted(&aggregating(ms(5)));
    end.send_data([0, 2]);
    end.recv_nothing();
    end.tick(ms(5));
    assert_eq!(blocks(&end.recv_ack(at(1))), [(2, 3)]);
    end.send(data(1));
    end.recv_nothing();
    end.tick(ms(5));
    end.recv_ack(at(3));
    assert_eq!(end.next_timer(), None);
}

#[test]
fn what_follows_on_each_other_above_a_gap_is_acknowledged_together() {
    // As GRO delivers it; each further gap causes a further acknowledgement.
    let mut end = Script::accepted(&aggregating(Duration::ZERO));
    end.send_data(2..9);
    end.send_data(10..14);
    assert_eq!(blocks(&end.recv_ack(at(0))), [(10, 11), (2, 9)]);
    end.recv_nothing();
    end.tick(Duration::ZERO);
    assert_eq!(blocks(&end.recv_ack(at(0))), [(10, 14), (2, 9)]);
    // Retransmissions arrive together, too.
    end.send_data([0, 1]);
    end.recv_nothing();
    end.tick(Duration::ZERO);
    end.recv_ack(at(9));
    end.send(data(9));
    end.tick(Duration::ZERO);
    end.recv_ack(at(14));
    end.recv_nothing();
}

#[test]
fn acknowledgements_above_a_gap_are_kept_back_after_three() {
    // Linux since 4.18: ip-sysctl, tcp_comp_sack_delay_ns.
    let compression = SackCompressionConfig { delay: ms(1), acks: 44, slack: ms(1) / 10 };
    let with = EndpointConfig { sack_compression: compression, ..config() };
    let mut end = Script::accepted(&with);
    for segment in 1..=3 {
        end.send(data(segment));
        assert_eq!(blocks(&end.recv_ack(at(0))), [(1, segment + 1)]);
    }
    end.send_data(4..30);
    end.recv_nothing();
    end.tick_in_silence(ms(1) + ms(1) / 10);
    assert_eq!(blocks(&end.recv_ack(at(0))), [(1, 30)]);
    // The gap is closed: acknowledged at once, and the count restarts.
    end.send(data(0));
    end.recv_ack(at(30));
    end.send_data(32..36);
    (0..3).for_each(|_| assert_eq!(end.recv_ack(at(30)).ack, at(30)));
    end.recv_nothing();
    // Without SACK, duplicates are the only information.
    let mut end = Script::accepted(&EndpointConfig { sack: false, ..with });
    end.send_data(1..30);
    (1..30).for_each(|_| assert_eq!(end.recv_ack(at(0)).ack, at(0)));
}

/// Holds acknowledgements back for a millisecond, behind a window that has grown to all of its
/// room.
fn compressing() -> EndpointConfig {
    let compression = SackCompressionConfig { delay: ms(1), acks: 44, slack: Duration::ZERO };
    let full = u64::from(MSS);
    let receive_buffer = BufferConfig { initial: 80 * full, max: 4000 * full, tuned: true };
    let mut config = EndpointConfig { sack_compression: compression, receive_buffer, ..config() };
    config.delayed_ack.quick_segments = 16;
    config
}

/// `segments` segments arrived and were acknowledged, the last ones in pairs: the window no longer
/// grows.
fn rested(segments: u64) -> Script {
    let mut end = Script::accepted(&compressing());
    (0..segments).for_each(|segment| end.send(data(segment)));
    end.tick(ms(40));
    end.recv_count();
    end.send(data(segments));
    end.recv_nothing();
    end.send(data(segments + 1));
    end.recv_ack(at(segments + 2));
    end
}

/// How many of the segments after `first`, which is missing, are acknowledged at once.
fn at_once(end: &mut Script, first: u64) -> usize {
    (first + 1..first + 9).for_each(|segment| end.send(data(segment)));
    end.recv_count()
}

#[test]
fn the_first_above_a_gap_may_widen_the_window_by_a_segment() {
    // Seen with Linux 6.18: the window is one segment short of the room, because each segment in
    // order takes that itself. The first segment above a gap finds that room, and is acknowledged
    // for it; then three follow that count. After the next gap there are three.
    let mut end = rested(40);
    assert_eq!(at_once(&mut end, 42), 4);
    end.send(data(42));
    end.recv_ack(at(51));
    end.recv_nothing();
    end.send_data(51..67);
    end.recv_count();
    end.send_data([67, 68]);
    end.recv_count();
    assert_eq!(at_once(&mut end, 69), 3);
}

#[test]
fn what_fills_a_part_of_the_gaps_is_one_of_the_three() {
    // Seen with Linux 6.18, 3 Mb/s, a queue of ten packets: behind the second gap, two segments are
    // acknowledged once the first gap is filled, and the third is held back.
    let mut end = rested(40);
    end.send_data([43, 44, 46, 47, 48, 49]);
    end.recv_count();
    end.tick(ms(1));
    end.recv_count();
    end.send(data(42));
    assert_eq!(end.recv_ack(at(45)).ack, at(45));
    for segment in [50, 51] {
        end.send(data(segment));
        assert_eq!(end.recv_ack(at(45)).ack, at(45));
    }
    end.send(data(52));
    end.recv_nothing();
    end.tick(ms(1));
    assert_eq!(end.recv_ack(at(45)).ack, at(45));
}

#[test]
fn what_lies_above_a_gap_does_not_interrupt_a_silence() {
    // Seen with Linux 6.18, 0.8 Mb/s and 107 ms: the first segment in order for 375 ms, though one
    // above the gap had arrived every 14 ms, and then sixteen acknowledgements that nothing held
    // back: the second gap was filled with the fifteenth, and the next segment was acknowledged at
    // once, then every second one.
    let above = 43..51;
    for (between, quick) in [(ms(50), 15), (ms(20), 0)] {
        let mut end = rested(40);
        for segment in above.clone() {
            end.tick(between);
            end.send(data(segment));
        }
        end.tick(ms(2));
        end.recv_count();
        end.send(data(42));
        end.recv_ack(at(above.end));
        for segment in above.end..above.end + quick {
            end.send(data(segment));
            end.recv_ack(at(segment + 1));
        }
        end.send(data(above.end + quick));
        end.recv_nothing();
    }
}
