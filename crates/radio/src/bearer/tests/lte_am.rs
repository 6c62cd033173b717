//! Tests of LTE's AM.

use super::*;

fn script() -> Script {
    Script::new(lte_am(ARQ))
}

#[test]
fn sdus_are_concatenated_and_the_pdu_fills_the_block() {
    // TS 36.322 6.2.1.4: 2 bytes and an LI of 12 bits for each SDU but the last;
    // TS 36.321 6.1.2: the last subheader has 1 byte
    let mut it = script();
    it.packets(&[98, 98, 98]);
    let block = it.block(253);
    // 1 + 2 + 3 + 247
    assert_eq!(show(&block), ["0 0..247/"]);
    assert_eq!(block.bytes(), 253);
    // 53 bytes of the third: 2 + 2 + 53
    let block = it.block(200);
    assert_eq!(show(&block), ["1 0..53/P"]);
    assert_eq!(block.bytes(), 57);
}

#[test]
fn rlc_delivers_in_order() {
    // TS 36.322 5.1.3.2.3
    let mut it = script();
    it.packets(&[98, 98, 98]);
    let sent = [it.block(153), it.block(153), it.block(153)];
    it.at(1).arrives(&sent[2]);
    it.at(2).arrives(&sent[1]);
    assert_eq!(it.delivered, []);
    it.at(3).arrives(&sent[0]);
    assert_eq!(it.delivered, [(3, 0), (3, 1), (3, 2)]);
    // The last PDU polled.
    assert_eq!(it.exchange_status(), Status { ack_sn: Some(3), nacks: vec![] });
    assert_eq!(it.one_way.next_timer(), None);
}

#[test]
fn a_lost_pdu_is_reported_after_t_reordering_and_sent_again() {
    // TS 36.322 5.1.3.2.4, 5.2.1, 5.2.3
    let mut it = script();
    it.packets(&[98, 98, 98]);
    let sent = [it.block(153), it.block(153), it.block(153)];
    it.at(1).arrives(&sent[0]);
    it.at(2).arrives(&sent[2]);
    assert_eq!(it.at(21).status(), None);
    let status = it.at(22).exchange_status();
    assert_eq!(status, Status { ack_sn: Some(3), nacks: vec![units(1, 1)] });
    let again = it.block(1_000);
    assert_eq!(show(&again), ["1 0..148/P"]);
    // Unchanged: 2 of header, 2 for an LI
    assert_eq!(again.bytes(), 3 + 2 + 2 + 148);
    it.at(30).arrives(&again);
    assert_eq!(it.delivered, [(1, 0), (30, 1), (30, 2)]);
}

#[test]
fn a_pdu_that_does_not_fit_is_sent_in_segments() {
    // TS 36.322 5.2.1, 6.2.1.5: 4 bytes, and the LIs of the segment
    let mut it = script();
    it.packets(&[98, 98]);
    let sent = it.block(1_000);
    assert_eq!(show(&sent), ["0 0..200/P"]);
    it.one_way.on_status(it.now, &Status { ack_sn: Some(1), nacks: vec![units(0, 1)] });
    // 1 + 4 + 2 + 100 and 48
    let first = it.block(155);
    assert_eq!(show(&first), ["0 0..148"]);
    assert_eq!(first.bytes(), 155);
    let second = it.block(155);
    assert_eq!(show(&second), ["0 148..200/P"]);
    assert_eq!(second.bytes(), 2 + 4 + 52);
    it.at(5).arrives(&second);
    it.at(6).arrives(&first);
    assert_eq!(it.delivered, [(6, 0), (6, 1)]);
    assert_eq!(it.exchange_status(), Status { ack_sn: Some(1), nacks: vec![] });
    assert_eq!(it.one_way.load().packets, 0);
}

#[test]
fn a_status_is_packed_in_bits() {
    // TS 36.322 6.2.1.6: 15 bits, 12 for each NACK, 30 more with offsets
    let mut it = script();
    it.packets(&[94; 5]);
    let sent: Vec<_> = (0..5).map(|_| it.block(99)).collect();
    for index in [0, 4, 2] {
        it.at(1).arrives(&sent[index]);
    }
    assert_eq!(it.at(21).one_way.status_bytes(ms(21)), Some((15u32 + 2 * 12).div_ceil(8)));
    let nacks = vec![units(1, 1), units(3, 1)];
    assert_eq!(it.exchange_status(), Status { ack_sn: Some(5), nacks });
    let half = it.block(60);
    assert_eq!(show(&half), ["1 0..55"]);
    it.at(22).arrives(&half);
    // TS 36.322 5.1.3.2.3: t-Reordering restarts while VR(H) > VR(R).
    assert_eq!(it.at(42).one_way.status_bytes(ms(42)), Some((15u32 + 42 + 12).div_ceil(8)));
    let nacks = vec![bytes(1, 55, None), units(3, 1)];
    assert_eq!(it.status(), Some(Status { ack_sn: Some(5), nacks }));
}

#[test]
fn the_window_is_512_pdus() {
    // TS 36.322 7.2
    let mut it = script();
    it.packets(&[8; 600]);
    let sent = (0..600).map(|_| it.block(13)).filter(|block| !block.is_empty()).count();
    assert_eq!(sent, 512);
    assert!(!it.one_way.is_ready());
}

#[test]
fn reestablishment_hands_over_what_is_complete_and_sends_the_rest_again() {
    // TS 36.322 5.4, TS 36.323 5.1.2.1.2, 5.2.1.1
    let mut it = script();
    it.packets(&[96, 96, 96, 96]);
    let sent: Vec<_> = (0..3).map(|_| it.block(101)).collect();
    it.at(1).arrives(&sent[0]);
    it.at(2).arrives(&sent[2]);
    it.at(5).reestablish(Forwarding::Buffer);
    // PDCP stores 2 until 1 has arrived.
    assert_eq!(it.delivered, [(1, 0)]);
    let again = it.block(1_000);
    // 1 alone, because 2 does not follow; then 3.
    assert_eq!(show(&again), ["3 0..98/", "4 0..98/P"]);
    it.at(9).arrives(&again);
    assert_eq!(it.delivered, [(1, 0), (9, 1), (9, 2), (9, 3)]);
    it.exchange_status();
    assert_eq!((it.one_way.load().packets, it.one_way.next_timer()), (0, None));
}
