//! Tests of UMTS's AM.

use super::*;

const fn am(pdu: UmtsPdu, window: u32) -> RlcConfig {
    RlcConfig::Umts(UmtsAm {
        pdu,
        mac_header_bytes: 3,
        window,
        t_reordering: T_REASSEMBLY,
        arq: ARQ,
    })
}

const BITS_336: UmtsPdu = UmtsPdu::Fixed { bytes: 42 };

/// A script without PDCP headers.
fn script(pdu: UmtsPdu, window: u32) -> Script {
    let pdcp = PdcpConfig { header_bytes: 0, ..PDCP };
    Script::with(OneWayConfig { rlc: am(pdu, window), pdcp, buffer: UNLIMITED })
}

#[test]
fn a_block_has_as_many_pdus_of_336_bits_as_fit() {
    // TS 25.214 table 7A, CQI 22: 7,168 bits; 21 bits of MAC-hs header: 21 PDUs of 320 bits of data
    let mut it = script(BITS_336, 2_047);
    it.packets(&[1_500]);
    let block = it.block(7_168 / 8);
    assert_eq!(block.pdus().len(), 21);
    assert_eq!(block.bytes(), 3 + 21 * 42);
    // 840 of 1,500 bytes; the last PDU of the rest is padded.
    let block = it.block(7_168 / 8);
    assert_eq!((block.pdus().len(), block.pdus()[16].len()), (17, 20));
    assert_eq!(block.bytes(), 3 + 17 * 42);
}

#[test]
fn a_pdu_that_does_not_fit_is_not_sent_in_part() {
    let mut it = script(BITS_336, 2_047);
    it.packets(&[100]);
    assert!(it.block(44).is_empty());
    assert_eq!(it.block(45).bytes(), 45);
    assert_eq!(it.block(86).pdus().len(), 1);
}

#[test]
fn an_sdu_begins_where_the_last_one_ends() {
    // TS 25.322 9.2.2.8: a length indicator of 7 bits and E for the end of the first SDU
    let mut it = script(BITS_336, 2_047);
    it.packets(&[52, 52]);
    let block = it.block(300);
    // 40; 12, 1 of LI, 27; 25
    assert_eq!(show(&block), ["0 0..40/", "1 0..39/", "2 0..25/P"]);
    it.at(1).arrives(&block);
    assert_eq!(it.delivered, [(1, 0), (1, 1)]);
}

#[test]
fn a_lost_pdu_is_listed_and_sent_again_as_it_was() {
    let mut it = script(BITS_336, 2_047);
    it.packets(&[40, 40, 40, 40]);
    let sent = [it.block(45), it.block(45), it.block(45), it.block(45)];
    it.at(1).arrives(&sent[0]);
    it.at(2).arrives(&sent[3]);
    let status = it.at(22).exchange_status();
    assert_eq!(status, Status { ack_sn: Some(4), nacks: vec![units(1, 2)] });
    let again = it.block(87);
    assert_eq!(show(&again), ["1 0..40/", "2 0..40/P"]);
    it.at(30).arrives(&again);
    assert_eq!(it.delivered, [(1, 0), (30, 1), (30, 2), (30, 3)]);
}

#[test]
fn a_status_takes_a_whole_pdu() {
    let mut it = script(BITS_336, 2_047);
    it.packets(&[40]);
    let sent = it.block(45);
    it.arrives(&sent);
    // TS 25.322 9.2.1.5: D/C and type, ACK, LIST without entries: 28 bits
    assert_eq!(it.one_way.status_bytes(it.now), Some(4));
    let mut status = Status::default();
    assert_eq!(it.one_way.build_status(it.now, 44, &mut status), 0);
    assert_eq!(it.one_way.build_status(it.now, 45, &mut status), 45);
}

#[test]
fn the_window_counts_pdus() {
    let mut it = script(BITS_336, 3);
    it.packets(&[400]);
    let block = it.block(1_000);
    // TS 25.322 9.7.1: the last PDU that the window admits polls
    assert_eq!(show(&block), ["0 0..40/", "1 0..40/", "2 0..40/P"]);
    assert!(it.block(1_000).is_empty());
    it.at(1).arrives(&block);
    it.exchange_status();
    assert_eq!(it.block(1_000).pdus().len(), 3);
}

#[test]
fn flexible_pdus_fill_the_block_up_to_their_size() {
    let mut it = script(UmtsPdu::Flexible { most: 1_503 }, 2_047);
    it.packets(&[700, 1_500]);
    // 3 of MAC, 2 of RLC each; 15 bits and E for the end of the first SDU
    let block = it.block(3_194);
    assert_eq!(show(&block), ["0 0..1499/", "1 0..701/P"]);
    assert_eq!(block.bytes(), 3 + 1_503 + 3 + 2 + 701);
}
