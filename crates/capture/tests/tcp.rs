//! What an observer sees of TCP: one script for each event.

mod common;

use airpath_capture::{Retransmissions, SlowStart, StreamReport};
use common::{ACK, FIN, Pcap, RST, SYN, Segment};

const MSS: usize = 1000;

/// Data of the server: segment `n` from 0.
fn data(n: u32) -> Segment {
    Segment::new(false, ACK, 1 + n * MSS as u32, 1, MSS)
}

/// An acknowledgement by the client of the first `n` segments.
fn ack(n: u32) -> Segment {
    Segment::new(true, ACK, 1, number(n), 0)
}

/// Sequence number of the first byte of segment `n`.
fn number(n: u32) -> u32 {
    1 + n * MSS as u32
}

/// Plays segments at times in milliseconds after a handshake, with round-trip times of 20 ms to the
/// server and 10 ms to the client; returns the report on the server's data.
fn downlink(script: &[(u64, Segment)]) -> StreamReport {
    let mut pcap = Pcap::raw();
    pcap.handshake();
    for (millis, segment) in script {
        pcap.segment(millis * 1000, segment);
    }
    pcap.tcp().from_server
}

fn sent_again(script: &[(u64, Segment)]) -> Retransmissions {
    downlink(script).retransmissions
}

/// Checks that there is one retransmission of a kind, and the proofs that it was spurious (ACK,
/// DSACK, timestamp).
#[track_caller]
fn one(script: &[(u64, Segment)], kind: &str, proofs: [u64; 3]) {
    let sent = sent_again(script);
    let kinds = [
        ("fast", sent.fast),
        ("tail-loss-probe", sent.tail_loss_probe),
        ("timeout", sent.timeout),
        ("unclear", sent.unclear),
    ];
    let found: Vec<_> = kinds.iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!((sent.packets, found), (1, vec![&(kind, 1)]));
    let said = [sent.spurious_by_ack, sent.spurious_by_dsack, sent.spurious_by_timestamp];
    assert_eq!((said, sent.spurious), (proofs, u64::from(proofs != [0; 3])));
}

#[test]
fn the_handshake_has_options_and_both_round_trips() {
    let mut pcap = Pcap::raw();
    let tcp = pcap.handshake().tcp();
    assert_eq!((tcp.opening_seen, tcp.handshake_ms, tcp.state), (true, Some(30.0), "open"));
    for stream in [&tcp.from_client, &tcp.from_server] {
        let options = stream.options.unwrap();
        assert_eq!((options.mss, options.window_scale), (Some(1460), Some(7)));
        assert!(options.sack_permitted && options.timestamps);
    }
    // The client's SYN measures the server's side, the server's SYN the client's side.
    assert_eq!(tcp.from_client.rtt_ms.unwrap().p50, 20.0);
    assert_eq!(tcp.from_server.rtt_ms.unwrap().p50, 10.0);
}

#[test]
fn a_connection_that_was_open_before_has_no_scale() {
    // The lower port is the server's.
    let mut pcap = Pcap::raw();
    pcap.segment(0, &data(0)).segment(10_000, &ack(1)).segment(11_000, &data(1));
    let flow = pcap.flow();
    let tcp = flow.tcp.unwrap();
    assert_eq!(
        (tcp.opening_seen, tcp.handshake_ms, flow.client.as_str()),
        (false, None, "10.0.0.1")
    );
    assert_eq!((tcp.from_server.data_bytes, tcp.from_server.acked_bytes), (2000, 1000));
    assert_eq!(tcp.from_server.window.and_then(|window| window.max_bytes), None);
}

#[test]
fn ends_and_new_connections_of_the_same_ports() {
    let mut pcap = Pcap::raw();
    pcap.handshake();
    pcap.segment(40_000, &Segment::new(true, ACK | FIN, 1, 1, 0));
    pcap.segment(60_000, &Segment::new(false, ACK | FIN, 1, 2, 0));
    pcap.segment(70_000, &Segment::new(true, ACK, 2, 2, 0));
    pcap.segment(80_000, &Segment::new(true, SYN, 9999, 0, 0));
    pcap.segment(90_000, &Segment::new(false, ACK | RST, 0, 10_000, 0));
    let flows = pcap.report().flows;
    let states: Vec<_> = flows.iter().map(|flow| flow.tcp.as_ref().unwrap().state).collect();
    assert_eq!(states, ["closed", "reset"]);
    assert_eq!((flows[0].from_client.packets, flows[1].start_s), (4, 0.08));
    assert_eq!(flows[0].tcp.as_ref().unwrap().handshake_ms, Some(30.0));
    let counts = flows.iter().map(|flow| flow.tcp.as_ref().unwrap().from_client.acked_bytes);
    assert_eq!(counts.collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn a_syn_that_is_sent_again_is_no_new_connection() {
    let mut pcap = Pcap::raw();
    let syn = Segment::new(true, SYN, 0, 0, 0).options(&common::SYN_OPTIONS);
    pcap.segment(0, &syn)
        .segment(1_000_000, &syn)
        .segment(1_020_000, &Segment::new(false, SYN | ACK, 0, 1, 0));
    let tcp = pcap.tcp();
    assert_eq!(tcp.from_client.retransmissions.handshake, 1);
    // Karn's rule (RFC 6298 3): which of the two SYNs does this answer?
    assert!(tcp.from_client.rtt_ms.is_none());
}

#[test]
fn fast_retransmission_after_selective_acknowledgements() {
    let sack = |to: u32| ack(0).sack(&[(number(1), number(to))]);
    one(
        &[
            (40, data(0)),
            (40, data(1)),
            (40, data(2)),
            (40, data(3)),
            (50, sack(2)),
            (51, sack(3)),
            (52, sack(4)),
            (72, data(0)),
            (82, ack(4)),
        ],
        "fast",
        [0; 3],
    );
}

#[test]
fn fast_retransmission_after_duplicate_acknowledgements_and_what_follows_it() {
    let sent = sent_again(&[
        (40, data(0)),
        (40, data(1)),
        (40, data(2)),
        (40, data(3)),
        (40, data(4)),
        (50, ack(0)),
        (51, ack(0)),
        (52, ack(0)),
        (72, data(0)),
        (82, ack(2)),
        (102, data(2)),
        (112, ack(5)),
    ]);
    // RFC 6582: a partial acknowledgement.
    assert_eq!((sent.packets, sent.fast), (2, 2));
}

#[test]
fn a_time_out_and_what_follows_it() {
    let sent = sent_again(&[
        (40, data(0)),
        (40, data(1)),
        (40, data(2)),
        (400, data(0)),
        (410, ack(1)),
        (430, data(1)),
        (430, data(2)),
        (440, ack(3)),
    ]);
    assert_eq!((sent.packets, sent.timeout, sent.spurious), (3, 3, 0));
}

#[test]
fn a_tail_loss_probe() {
    one(
        &[(40, data(0)), (40, data(1)), (50, ack(1)), (115, data(1)), (125, ack(2))],
        "tail-loss-probe",
        [0; 3],
    );
    // Only once: what follows is a time-out.
    let sent = sent_again(&[
        (40, data(0)),
        (40, data(1)),
        (50, ack(1)),
        (115, data(1)),
        (400, data(1)),
        (410, ack(2)),
    ]);
    assert_eq!((sent.packets, sent.tail_loss_probe, sent.timeout), (2, 1, 1));
}

#[test]
fn spurious_because_the_acknowledgement_had_passed() {
    one(
        &[(40, data(0)), (40, data(1)), (50, ack(2)), (300, data(0)), (310, ack(2))],
        "timeout",
        [1, 0, 0],
    );
}

#[test]
fn spurious_because_the_receiver_reports_a_duplicate() {
    let duplicate = ack(2).sack(&[(number(0), number(1))]);
    one(
        &[(40, data(0)), (40, data(1)), (300, data(0)), (305, ack(2)), (310, duplicate)],
        "timeout",
        [0, 1, 0],
    );
}

#[test]
fn spurious_because_the_echo_is_the_originals() {
    let with = |millis: u64, segment: Segment, value: u32, echo: u32| {
        (millis, segment.timestamps(value, echo))
    };
    let original =
        [with(40, data(0), 140, 5), with(40, data(1), 140, 5), with(400, data(0), 500, 5)];
    let late = [&original[..], &[with(405, ack(1), 600, 140)]].concat();
    one(&late, "timeout", [0, 0, 1]);
    let needed = [&original[..], &[with(410, ack(1), 600, 500)]].concat();
    one(&needed, "timeout", [0; 3]);
    // A round trip from timestamps counts even then, from the time that is echoed.
    assert_eq!(downlink(&needed).rtt_timestamps_ms.unwrap().max, 10.0);
    assert_eq!(downlink(&late).rtt_timestamps_ms.unwrap().max, 365.0);
}

#[test]
fn packets_out_of_order_are_no_retransmissions() {
    let stream = downlink(&[(40, data(0)), (40, data(2)), (42, data(1)), (50, ack(3))]);
    assert_eq!((stream.out_of_order_packets, stream.retransmissions.packets), (1, 0));
    assert_eq!((stream.out_of_order_ms, stream.unseen_bytes), (Some(2.0), 0));
}

#[test]
fn what_was_lost_before_the_capture_is_a_retransmission() {
    let sack = |to: u32| ack(1).sack(&[(number(2), number(to))]);
    let sent = sent_again(&[
        (40, data(0)),
        (40, data(2)),
        (40, data(3)),
        (40, data(4)),
        (50, ack(1)),
        (50, sack(3)),
        (50, sack(4)),
        (50, sack(5)),
        (71, data(1)),
        (81, ack(5)),
    ]);
    assert_eq!((sent.packets, sent.fast, sent.original_unseen), (1, 1, 1));
}

#[test]
fn what_the_capture_missed_is_told() {
    let stream = downlink(&[(40, data(0)), (40, data(2)), (50, ack(3)), (51, ack(6))]);
    assert_eq!((stream.acks_of_unseen, stream.unseen_bytes), (2, 4000));
    assert_eq!((stream.acked_bytes, stream.retransmissions.packets), (6000, 0));
    // Data that comes after its acknowledgement was captured out of order.
    let stream = downlink(&[(40, data(0)), (50, ack(2)), (51, data(1))]);
    assert_eq!((stream.acks_of_unseen, stream.out_of_order_packets), (1, 1));
}

#[test]
fn keep_alives_are_no_retransmissions() {
    let probe = Segment::new(false, ACK, 1000, 1, 1);
    let stream = downlink(&[(40, data(0)), (50, ack(1)), (10_000, probe), (10_010, ack(1))]);
    assert_eq!((stream.keep_alives, stream.retransmissions.packets), (1, 0));
    assert_eq!(stream.in_flight_bytes.unwrap().max, 1000);
}

#[test]
fn time_that_the_receivers_window_limits() {
    // A window of 3 << 7 bytes less than two segments, from 50 ms to 90 ms; then zero until 100 ms.
    let small = ack(1).window(12);
    let stream = downlink(&[
        (40, data(0)),
        (50, small),
        (50, data(1)),
        (90, ack(2).window(500)),
        (91, ack(2).window(0)),
        (101, ack(2).window(500)),
    ]);
    let window = stream.window.unwrap();
    assert_eq!((window.max_bytes, window.min_bytes), (Some(64_000), Some(0)));
    assert_eq!((window.limited_s, window.zero_windows), (Some(0.05), 1));
}

#[test]
fn segments_larger_than_the_mss_are_recognised() {
    let large = Segment::new(false, ACK, 1, 1, 14_600);
    let stream =
        downlink(&[(40, large.clone()), (50, ack(0)), (50, ack(0)), (50, ack(0)), (70, large)]);
    assert_eq!((stream.larger_than_mss, stream.largest_payload_bytes), (2, 14_600));
    assert_eq!((stream.retransmissions.packets, stream.retransmissions.segments), (1, 10));
}

#[test]
fn stalls_have_a_place_and_a_length() {
    let mut pcap = Pcap::raw();
    pcap.handshake();
    for (millis, segment) in
        [(40, data(0)), (50, ack(1)), (5000, data(1)), (6500, data(1)), (6510, ack(2))]
    {
        pcap.segment(millis * 1000, &segment);
    }
    // Nothing is outstanding from 50 ms to 5 s.
    let stalls = pcap.tcp().stalls;
    assert_eq!((stalls.count, stalls.longest_s, stalls.longest_at_s), (1, 1.5, Some(5.0)));
}

#[test]
fn acknowledgements_in_batches() {
    let mut script = vec![
        (40, data(0)),
        (40, data(1)),
        (40, data(2)),
        (40, data(3)),
        (40, data(4)),
        (40, data(5)),
    ];
    for n in 0..6 {
        script.push((60 + 20 * u64::from(n / 2), ack(n + 1)));
    }
    let acks = downlink(&script).acks.unwrap();
    assert_eq!((acks.count, acks.batches, acks.per_batch), (6, 3, 2.0));
    assert!((acks.batch_interval_ms.unwrap() - 20.0).abs() < 0.2);
    assert_eq!(acks.bytes_per_ack, 1000.0);
}

/// Rounds with these numbers of segments, 30 ms each.
fn rounds(sizes: &[u32]) -> StreamReport {
    let (mut script, mut next, mut at) = (Vec::new(), 0, 40);
    for &size in sizes {
        script.extend((next..next + size).map(|n| (at, data(n))));
        next += size;
        script.push((at + 10, ack(next)));
        at += 30;
    }
    downlink(&script)
}

#[test]
fn slow_start_round_by_round() {
    let growing = rounds(&[10, 20, 40, 80]).slow_start.unwrap();
    assert_eq!(growing.rounds_bytes, [10_000, 20_000, 40_000, 80_000]);
    assert_eq!((growing.exit_round, growing.ended_by), (None, None));
    // Each acknowledgement releases two segments: rounds are determined by sequence numbers, not by
    // pauses.
    let mut script: Vec<_> = (0..4).map(|n| (40, data(n))).collect();
    for n in 0..28 {
        let at = 50 + 10 * u64::from((n + 4_u32).ilog2() - 2);
        script.push((at, ack(n + 1)));
        script.extend([(at, data(4 + 2 * n)), (at, data(5 + 2 * n))]);
    }
    let clocked = downlink(&script).slow_start.unwrap();
    assert_eq!(clocked.rounds_bytes, [7000, 13_000, 25_000]);
    let flat = rounds(&[10, 20, 40, 44, 45, 45]).slow_start.unwrap();
    assert_eq!((flat.exit_round, flat.ended_by), (Some(3), Some("sender-idle")));
    let sack = ack(10).sack(&[(number(11), number(14))]);
    let mut script: Vec<_> = (0..10).map(|n| (40, data(n))).collect();
    script.push((50, ack(10)));
    script.extend((10..30).map(|n| (70, data(n))));
    script.extend([(80, sack), (100, data(10)), (110, ack(30))]);
    let lost = downlink(&script).slow_start.unwrap();
    assert_eq!((lost.exit_round, lost.ended_by), (Some(1), Some("retransmission")));
    assert_eq!(lost.exit_s, Some(0.07));
}

/// Rounds with these numbers of segments; something is always outstanding, and so the first two are
/// one.
fn busy_rounds(sizes: &[u32]) -> SlowStart {
    busy_rounds_again(sizes, None)
}

/// Like `busy_rounds`, with a segment retransmitted in one of the rounds.
fn busy_rounds_again(sizes: &[u32], again: Option<u64>) -> SlowStart {
    let (mut script, mut next) = (vec![(40, data(0))], 0);
    for (number, &size) in (0..).zip(sizes) {
        let at = 40 + 30 * number;
        // The first segment of the next round leaves before this round is acknowledged.
        script.extend((next + 1..next + size).map(|n| (at, data(n))));
        script.extend((again == Some(number)).then(|| (at + 5, data(next + 1))));
        next += size;
        script.extend([(at + 9, data(next)), (at + 10, ack(next))]);
    }
    downlink(&script).slow_start.unwrap()
}

#[test]
fn two_rounds_without_growth_end_it_unless_a_third_grows() {
    let ended = busy_rounds(&[10, 20, 40, 44, 45, 45, 45, 90]);
    assert_eq!((ended.exit_round, ended.ended_by), (Some(2), Some("no-growth")));
    // As with BBR, which waits for three rounds and then drains its queue.
    let goes_on = busy_rounds(&[10, 20, 40, 44, 45, 90, 90, 50, 40, 40]);
    assert_eq!((goes_on.exit_round, goes_on.ended_by), (Some(5), Some("no-growth")));
}

#[test]
fn a_sender_that_does_not_reduce_for_a_loss_is_still_in_its_startup() {
    // As with BBR: the bytes in flight stay. With others they fall, and only the gap made them
    // grow.
    let stays = busy_rounds_again(&[10, 20, 40, 44, 90, 92, 92, 92, 40, 40], Some(4));
    assert_eq!((stays.exit_round, stays.ended_by), (Some(6), Some("retransmission")));
    let falls = busy_rounds_again(&[10, 20, 40, 44, 90, 60, 50, 50, 50, 50], Some(4));
    assert_eq!((falls.exit_round, falls.ended_by), (Some(2), Some("retransmission")));
    // A sender that paces and soon drains was in its startup until then.
    let drains = busy_rounds_again(&[10, 20, 40, 44, 90, 70, 60, 30, 30, 30], Some(4));
    assert_eq!((drains.exit_round, drains.ended_by), (Some(5), Some("retransmission")));
}

#[test]
fn next_to_the_receiver_no_slow_start_is_seen() {
    let mut pcap = Pcap::raw();
    pcap.handshake();
    pcap.segment(40_000, &data(0)).segment(40_010, &ack(1));
    for n in 1..10 {
        pcap.segment(40_000 + u64::from(n) * 1000, &data(n));
        pcap.segment(40_010 + u64::from(n) * 1000, &ack(n + 1));
    }
    assert!(pcap.tcp().from_server.slow_start.is_none());
}

#[test]
fn bursts_and_what_set_them_off() {
    let found = downlink(&[
        (100, data(0)),
        (100, data(1)),
        (100, data(2)),
        (100, data(3)),
        (110, ack(2)),
        // The acknowledgement triggers these, and nothing triggers the next one.
        (110, data(4)),
        (110, data(5)),
        (115, data(6)),
        (125, ack(7)),
        // Nothing is outstanding: the application starts again.
        (150, data(7)),
        (160, ack(8)),
    ]);
    let sending = found.sending.unwrap();
    assert_eq!((sending.bursts, sending.largest_burst), (4, 4));
    assert_eq!((sending.per_burst, sending.unprompted), (2.0, Some(0.5)));
}

#[test]
fn what_holds_the_sender_back_has_its_time() {
    let found = downlink(&[
        (100, data(0)),
        (100, data(1)),
        (110, ack(2)),
        (150, data(2)),
        (150, data(3)),
        (150, data(4)),
        (160, ack(2).sack(&[(number(3), number(5))])),
        (160, data(2)),
        (170, ack(5).window(8)),
        (180, data(5)),
        (190, ack(6).window(8)),
        // Only a FIN follows.
        (290, Segment::new(false, ACK | FIN, number(6), 1, 0)),
        (300, Segment::new(true, ACK, 1, number(6) + 1, 0)),
    ]);
    let limits = found.limits.unwrap();
    let ms = |seconds: f64| (seconds * 1000.0).round();
    assert_eq!(
        [limits.path_s, limits.nothing_to_send_s, limits.recovery_s, limits.receive_window_s]
            .map(ms),
        [20.0, 50.0, 10.0, 10.0]
    );
}

/// A window that data fills, except for 128 bytes; after 300 ms the last segments. Returns the
/// time, in milliseconds, in which the window limited the sender, by both counts, and in which it
/// had nothing to send.
fn behind_a_small_window(last: &[(u64, Segment)]) -> [f64; 3] {
    let mut script = vec![
        (100, Segment::new(false, ACK, 1, 1, 1000)),
        (110, ack(1).window(226)),
        (120, Segment::new(false, ACK, number(1), 1, 226 * 128 - 128)),
        (130, Segment::new(true, ACK, 1, number(1) + 225 * 128, 0).window(1)),
    ];
    script.extend(last.iter().cloned());
    let stream = downlink(&script);
    let (limits, window) = (stream.limits.unwrap(), stream.window.unwrap());
    [limits.receive_window_s, window.limited_s.unwrap(), limits.nothing_to_send_s]
        .map(|seconds| (seconds * 1e3).round())
}

#[test]
fn a_window_of_less_than_a_segment_limits_a_sender_with_nothing_outstanding() {
    let from = number(1) + 225 * 128;
    let data = |length| (430, Segment::new(false, ACK, from, 1, length));
    let opens = (430, Segment::new(true, ACK, 1, from, 0).window(500));
    let later = (440, Segment::new(false, ACK, from, 1, 1000));
    assert_eq!(behind_a_small_window(&[opens, later]), [310.0, 310.0, 20.0]);
    // A sender that waits for room fills the window in the end.
    assert_eq!(behind_a_small_window(&[data(128)]), [310.0, 310.0, 10.0]);
    // One that has less than the window holds had nothing to wait with.
    assert_eq!(behind_a_small_window(&[data(100)]), [10.0, 10.0, 310.0]);
    let end = (430, Segment::new(false, ACK | FIN, from, 1, 0));
    assert_eq!(behind_a_small_window(&[end]), [10.0, 10.0, 10.0]);
}
