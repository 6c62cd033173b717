//! Tests of the receiving side of NR's AM: reassembly and STATUS reports.

use super::*;

fn script() -> Script {
    Script::new(nr_am(NrAmSn::Bits12, ARQ))
}

/// Sends packets of 98 bytes, each in its own block.
fn blocks(it: &mut Script, count: usize) -> Vec<TransportBlock> {
    it.packets(&vec![98; count]);
    (0..count).map(|_| it.block(104)).collect()
}

#[test]
fn a_gap_is_reported_after_t_reassembly() {
    // TS 38.322 5.2.3.2.3, 5.2.3.2.4, 5.3.4
    let mut it = script();
    let sent = blocks(&mut it, 3);
    it.at(1).arrives(&sent[0]);
    it.at(5).arrives(&sent[2]);
    assert_eq!(it.at(24).status(), None);
    let status = it.at(25).exchange_status();
    assert_eq!(status, Status { ack_sn: Some(3), nacks: vec![units(1, 1)] });
    assert_eq!(show(&it.block(1_000)), ["1 0..100/P"]);
}

#[test]
fn harq_reordering_is_no_gap() {
    let mut it = script();
    let sent = blocks(&mut it, 3);
    it.at(1).arrives(&sent[1]);
    it.at(9).arrives(&sent[0]);
    it.at(30).arrives(&sent[2]);
    // The last PDU polled; t-Reassembly never expired.
    assert_eq!(it.exchange_status(), Status { ack_sn: Some(3), nacks: vec![] });
    assert_eq!(it.delivered, [(9, 0), (9, 1), (30, 2)]);
}

#[test]
fn a_poll_waits_until_reordering_below_it_is_done() {
    // TS 38.322 5.3.4: until RX_Highest_Status has passed it
    let mut it = script();
    let sent = blocks(&mut it, 2);
    it.at(1).arrives(&sent[1]);
    assert_eq!(it.status(), None);
    it.at(7).arrives(&sent[0]);
    assert_eq!(it.status(), Some(Status { ack_sn: Some(2), nacks: vec![] }));
}

#[test]
fn a_poll_in_a_duplicate_is_answered_at_once() {
    // TS 38.322 5.3.4: the PDU is to be discarded
    let mut it = script();
    let sent = blocks(&mut it, 1);
    it.at(1).arrives(&sent[0]);
    assert!(it.status().is_some());
    it.at(2).arrives(&sent[0]);
    assert_eq!(it.status(), Some(Status { ack_sn: Some(1), nacks: vec![] }));
    assert_eq!(it.delivered, [(1, 0)]);
}

#[test]
fn t_status_prohibit_spaces_reports() {
    // TS 38.322 5.3.4
    let arq = ArqConfig { t_status_prohibit: Duration::from_millis(10), ..ARQ };
    let mut it = Script::new(nr_am(NrAmSn::Bits12, arq));
    let sent = blocks(&mut it, 1);
    it.at(1).arrives(&sent[0]);
    assert!(it.status().is_some());
    it.at(2).arrives(&sent[0]);
    it.at(3).arrives(&sent[0]);
    assert_eq!(it.one_way.next_timer(), Some(ms(11)));
    assert_eq!(it.at(10).status(), None);
    // Only once, although it was triggered twice.
    assert!(it.at(11).status().is_some());
    assert_eq!(it.at(30).status(), None);
}

#[test]
fn a_missing_middle_is_reported_with_its_bytes() {
    // TS 38.322 5.3.4, 6.2.2.5
    let mut it = script();
    it.packets(&[998]);
    let sent = [it.block(305), it.block(307), it.block(1_000)];
    assert_eq!(show(&sent[1]), ["0 300..600"]);
    it.at(1).arrives(&sent[0]);
    it.at(2).arrives(&sent[2]);
    let status = it.at(22).exchange_status();
    assert_eq!(status, Status { ack_sn: Some(1), nacks: vec![bytes(0, 300, 600)] });
    let again = it.block(1_000);
    assert_eq!(show(&again), ["0 300..600P"]);
    it.at(30).arrives(&again);
    assert_eq!(it.delivered, [(30, 0)]);
}

#[test]
fn a_first_segment_alone_starts_no_timer_but_a_second_one_does() {
    // TS 38.322 5.2.3.2.3: no byte is missing before the last one received
    let mut it = script();
    it.packets(&[998]);
    let sent = [it.block(305), it.block(307), it.block(307)];
    it.at(1).arrives(&sent[0]);
    assert_eq!(it.one_way.next_timer(), None);
    it.at(2).arrives(&sent[2]);
    assert_eq!(it.one_way.next_timer(), Some(it.now + T_REASSEMBLY));
    it.at(3).arrives(&sent[1]);
    assert_eq!(it.one_way.next_timer(), None);
}

#[test]
fn an_end_not_seen_is_reported_as_open() {
    // TS 38.322 6.2.2.5: SOend of all ones
    let mut it = script();
    it.packets(&[998, 98]);
    let sent = [it.block(305), it.block(1_000)];
    assert_eq!(show(&sent[1]), ["0 300..1000/", "1 0..100/P"]);
    let mut only_last = sent[1].clone();
    only_last.pdus.remove(0);
    it.at(1).arrives(&sent[0]);
    it.at(2).arrives(&only_last);
    let status = it.at(22).exchange_status();
    assert_eq!(status, Status { ack_sn: Some(2), nacks: vec![bytes(0, 300, None)] });
    assert_eq!(show(&it.block(2_000)), ["0 300..1000/P"]);
}

#[test]
fn neighbours_share_one_entry() {
    // TS 38.322 6.2.2.5: 3 bytes, 2 for the NACK and 1 for the range
    let mut it = script();
    let sent = blocks(&mut it, 9);
    it.at(1).arrives(&sent[0]);
    it.at(1).arrives(&sent[8]);
    it.at(1).arrives(&sent[6]);
    assert_eq!(it.at(21).one_way.status_bytes(ms(21)), Some(3 + 3 + 2));
    let status = it.exchange_status();
    assert_eq!(status, Status { ack_sn: Some(9), nacks: vec![units(1, 5), units(7, 1)] });
    assert_eq!(it.one_way.buffered_bytes(), 600);
}

#[test]
fn a_report_too_long_for_its_block_ends_early() {
    // TS 38.322 5.3.4: ACK_SN is the next one missing that is not mentioned
    let mut it = script();
    let sent = blocks(&mut it, 6);
    for index in [0, 5, 4, 2] {
        it.at(1).arrives(&sent[index]);
    }
    let mut status = Status::default();
    // subheader 2, fixed 3, one NACK 2
    assert_eq!(it.at(21).one_way.build_status(ms(21), 8, &mut status), 7);
    assert_eq!(status, Status { ack_sn: Some(3), nacks: vec![units(1, 1)] });
    it.one_way.on_status(it.now, &status);
    // 1 is to be retransmitted, 3 to 5 are still open.
    assert_eq!(show(&it.block(1_000)), ["1 0..100/P"]);
}

#[test]
fn a_status_that_does_not_fit_stays_due() {
    let mut it = script();
    let sent = blocks(&mut it, 1);
    it.at(1).arrives(&sent[0]);
    assert_eq!(it.one_way.build_status(it.now, 4, &mut Status::default()), 0);
    assert_eq!(it.one_way.status_bytes(it.now), Some(3));
    assert_eq!(it.one_way.build_status(it.now, 5, &mut Status::default()), 5);
    assert_eq!(it.one_way.status_bytes(it.now), None);
}
