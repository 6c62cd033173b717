//! Tests of the transmitting side of NR's AM.

use super::*;

fn script() -> Script {
    Script::new(nr_am(NrAmSn::Bits12, ARQ))
}

#[test]
fn an_sdu_is_segmented_and_segments_after_the_first_have_an_offset() {
    // TS 38.322 6.2.2.4: 2 bytes, 4 with SO; TS 38.321 6.1.2: 3 bytes of subheader
    let mut it = script();
    it.packets(&[1_000, 100]);
    let block = it.block(405);
    assert_eq!(show(&block), ["0 0..400"]);
    assert_eq!(block.bytes(), 405);
    let block = it.block(407);
    assert_eq!(show(&block), ["0 400..800"]);
    // 202 bytes and 4, 102 and 2, with short subheaders
    let block = it.block(1_000);
    assert_eq!(show(&block), ["0 800..1002/", "1 0..102/P"]);
    assert_eq!(block.bytes(), (2 + 4 + 202) + (2 + 2 + 102));
}

#[test]
fn a_long_sn_costs_a_byte() {
    let mut it = Script::new(nr_am(NrAmSn::Bits18, ARQ));
    it.packets(&[1_000]);
    assert_eq!(it.block(2_000).bytes(), 3 + 3 + 1_002);
}

#[test]
fn a_segment_carries_at_least_a_byte() {
    let mut it = script();
    it.packets(&[1_000]);
    assert_eq!(it.block(4).bytes(), 0);
    assert_eq!(show(&it.block(5)), ["0 0..1"]);
    assert_eq!(it.block(6).bytes(), 0);
    assert_eq!(show(&it.block(7)), ["0 1..2"]);
}

#[test]
fn the_last_pdu_of_the_buffer_polls() {
    // TS 38.322 5.3.3.2
    let mut it = script();
    it.packets(&[98, 98, 98]);
    assert_eq!(show(&it.block(208)), ["0 0..100/", "1 0..100/"]);
    assert_eq!(show(&it.block(208)), ["2 0..100/P"]);
}

#[test]
fn every_poll_pdu_th_pdu_polls() {
    // TS 38.322 5.3.3.2
    let mut it = Script::new(nr_am(NrAmSn::Bits12, ArqConfig { poll_pdu: Some(2), ..ARQ }));
    it.packets(&[98; 6]);
    let polls = ["0 0..100/", "1 0..100/P", "2 0..100/", "3 0..100/P", "4 0..100/"];
    assert_eq!(show(&it.block(5 * 104)), polls);
}

#[test]
fn every_poll_byte_bytes_a_pdu_polls() {
    // TS 38.322 5.3.3.2: new bytes of the data field count
    let mut it = Script::new(nr_am(NrAmSn::Bits12, ArqConfig { poll_bytes: Some(250), ..ARQ }));
    it.packets(&[98; 5]);
    let polls = ["0 0..100/", "1 0..100/", "2 0..100/P", "3 0..100/"];
    assert_eq!(show(&it.block(4 * 104)), polls);
}

#[test]
fn an_unanswered_poll_is_repeated_with_the_last_sdu() {
    // TS 38.322 5.3.3.4
    let mut it = script();
    it.packets(&[98, 98]);
    assert_eq!(show(&it.block(1_000)), ["0 0..100/", "1 0..100/P"]);
    assert!(it.at(39).block(1_000).is_empty());
    assert_eq!(show(&it.at(40).block(1_000)), ["1 0..100/P"]);
    assert!(it.at(79).block(1_000).is_empty());
    assert_eq!(show(&it.at(80).block(1_000)), ["1 0..100/P"]);
}

#[test]
fn an_expiry_with_data_waiting_polls_with_that_data() {
    // TS 38.322 5.3.3.4: nothing is considered for retransmission
    let mut it = script();
    it.packets(&[98]);
    assert_eq!(show(&it.block(1_000)), ["0 0..100/P"]);
    it.at(39).packets(&[98, 98, 98]);
    assert_eq!(show(&it.at(40).block(106)), ["1 0..100/P"]);
    assert_eq!(show(&it.block(106)), ["2 0..100/"]);
}

#[test]
fn an_answered_poll_is_not_repeated() {
    // TS 38.322 5.3.3.3
    let mut it = script();
    it.packets(&[98]);
    let block = it.block(1_000);
    it.at(4).arrives(&block);
    assert_eq!(it.exchange_status(), Status { ack_sn: Some(1), nacks: vec![] });
    assert_eq!(it.one_way.next_timer(), None);
    assert_eq!(it.delivered, [(4, 0)]);
}

#[test]
fn a_status_that_does_not_speak_of_the_poll_leaves_the_timer() {
    // TS 38.322 5.3.3.3: POLL_SN is 1
    let mut it = script();
    it.packets(&[98, 98]);
    it.block(1_000);
    it.at(5).one_way.on_status(ms(5), &Status { ack_sn: Some(1), nacks: vec![] });
    assert_eq!(it.one_way.next_timer(), Some(ms(40)));
    it.one_way.on_status(it.now, &Status { ack_sn: Some(2), nacks: vec![units(1, 1)] });
    assert_eq!(it.one_way.next_timer(), None);
}

#[test]
fn a_status_that_is_late_cannot_take_an_acknowledgement_back() {
    let mut it = script();
    it.packets(&[98, 98, 98]);
    it.block(1_000);
    it.one_way.on_status(it.now, &Status { ack_sn: Some(2), nacks: vec![units(0, 1)] });
    it.one_way.on_status(it.now, &Status { ack_sn: Some(2), nacks: vec![units(1, 1)] });
    assert_eq!(it.one_way.buffered_bytes(), 0);
    it.one_way.on_status(it.now, &Status { ack_sn: Some(1), nacks: vec![units(0, 1)] });
    assert_eq!(it.one_way.buffered_bytes(), 0);
}

#[test]
fn retransmissions_go_first_and_are_cut_to_fit() {
    // TS 38.322 5.2.3.1.1, 5.3.2
    let mut it = script();
    it.packets(&[998, 998, 998]);
    it.block(1_005);
    it.block(1_005);
    let nacks = vec![units(0, 1), bytes(1, 100, 300)];
    it.one_way.on_status(it.now, &Status { ack_sn: Some(2), nacks });
    assert_eq!(it.one_way.buffered_bytes(), 1_000 + 200 + 1_000);
    assert_eq!(show(&it.block(605)), ["0 0..600"]);
    // 3 + 4 + 400, 2 + 4 + 200, then a first segment of new data
    let block = it.block(407 + 206 + 105);
    assert_eq!(show(&block), ["0 600..1000/", "1 100..300", "2 0..101"]);
}

#[test]
fn what_was_not_sent_is_not_sent_again() {
    // TS 38.322 5.3.2: the receiver cannot know where the SDU ends
    let mut it = script();
    it.packets(&[998]);
    it.block(405);
    let nacks = vec![bytes(0, 100, None)];
    it.one_way.on_status(it.now, &Status { ack_sn: Some(1), nacks });
    assert_eq!(show(&it.block(1_000)), ["0 100..400", "0 400..1000/P"]);
}

#[test]
fn a_full_window_polls_and_waits() {
    // TS 38.322 5.2.3.1.1, 5.3.3.2, 7.2: AM_Window_Size is 2048 for 12 bits
    let mut it = script();
    it.packets(&[8; 2_050]);
    let block = it.block(1_000_000);
    assert_eq!(block.pdus().len(), 2_048);
    assert_eq!(show(&block)[2_046..], ["2046 0..10/", "2047 0..10/P"]);
    assert!(it.block(1_000).is_empty());
    assert!(!it.one_way.is_ready());
    assert_eq!(it.one_way.buffered_bytes(), 20);
    it.one_way.on_status(it.now, &Status { ack_sn: Some(1), nacks: vec![] });
    assert_eq!(show(&it.block(1_000)), ["2048 0..10/P"]);
}

#[test]
fn too_many_retransmissions_fail_the_link() {
    // TS 38.322 5.3.2: RETX_COUNT starts at 0 with the first retransmission
    let mut it = script();
    it.packets(&[98]);
    it.block(1_000);
    for attempt in 0..=4 {
        assert_eq!(it.one_way.failed_at(), None);
        it.at(attempt);
        it.one_way.on_status(it.now, &Status { ack_sn: Some(1), nacks: vec![units(0, 1)] });
        assert_eq!(show(&it.block(1_000)), ["0 0..100/P"]);
    }
    assert_eq!(it.one_way.failed_at(), Some(it.now));
}

#[test]
fn a_report_counts_once_however_many_gaps_it_names() {
    // TS 38.322 5.3.2: not due to another negative acknowledgement in the same STATUS PDU
    let mut it = script();
    it.packets(&[98]);
    it.block(1_000);
    for _ in 0..=4 {
        assert_eq!(it.one_way.failed_at(), None);
        let nacks = vec![bytes(0, 0, 10), bytes(0, 20, 30)];
        it.one_way.on_status(it.now, &Status { ack_sn: Some(1), nacks });
        assert_eq!(show(&it.block(1_000)), ["0 0..10", "0 20..30P"]);
    }
    assert!(it.one_way.failed_at().is_some());
}

#[test]
fn pending_bytes_are_not_counted_again() {
    // TS 38.322 5.3.2: not if it is pending for retransmission already
    let mut it = script();
    it.packets(&[98]);
    it.block(1_000);
    for _ in 0..9 {
        it.one_way.on_status(it.now, &Status { ack_sn: Some(1), nacks: vec![units(0, 1)] });
    }
    assert_eq!(it.one_way.failed_at(), None);
    assert_eq!(it.one_way.buffered_bytes(), 100);
}

#[test]
fn data_discarded_behind_the_last_pdu_leaves_no_one_unheard() {
    // Not from the specification: see `AmTransmitter::guard`.
    let pdcp = PdcpConfig { discard: Some(Duration::from_millis(10)), ..PDCP };
    let rlc = nr_am(NrAmSn::Bits12, ARQ);
    let mut it = Script::with(OneWayConfig { rlc, pdcp, buffer: UNLIMITED });
    it.packets(&[98, 98]);
    assert_eq!(show(&it.block(104)), ["0 0..100/"]);
    assert_eq!(it.at(10).drops(), [(10, 1, DropReason::Discarded)]);
    assert!(it.at(49).block(1_000).is_empty());
    assert_eq!(show(&it.at(50).block(1_000)), ["0 0..100/P"]);
}

#[test]
fn a_pdu_is_small() {
    // The size is quoted in decision record 11.
    assert_eq!(size_of::<Pdu>(), 40);
}
