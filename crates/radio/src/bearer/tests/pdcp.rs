//! Tests of PDCP's receiving side, and of re-establishment in AM.

use super::*;

fn blocks(it: &mut Script, count: usize) -> Vec<TransportBlock> {
    it.packets(&vec![98; count]);
    (0..count).map(|_| it.block(104)).collect()
}

#[test]
fn packets_behind_a_gap_come_in_one_burst() {
    // TS 38.323 5.2.2.1
    let mut it = Script::new(nr_am(NrAmSn::Bits12, ARQ));
    let sent = blocks(&mut it, 5);
    for (ms, index) in [(1, 0), (2, 2), (3, 3), (4, 4), (9, 1)] {
        it.at(ms).arrives(&sent[index]);
    }
    assert_eq!(it.delivered, [(1, 0), (9, 1), (9, 2), (9, 3), (9, 4)]);
}

#[test]
fn t_reordering_gives_a_gap_up() {
    // TS 38.323 5.2.2.2: up to RX_REORD, then what follows without a gap, then again
    let mut it = Script::new(nr_um(NrUmSn::Bits12));
    let sent = blocks(&mut it, 7);
    it.at(1).arrives(&sent[1]);
    it.at(2).arrives(&sent[2]);
    it.at(3).arrives(&sent[4]);
    it.at(4).arrives(&sent[6]);
    it.at(100);
    assert_eq!(it.delivered, []);
    it.at(101);
    assert_eq!(it.delivered, [(101, 1), (101, 2)]);
    it.at(102).arrives(&sent[3]);
    assert_eq!(it.delivered[2..], [(102, 3), (102, 4)]);
    it.at(201);
    assert_eq!(it.delivered[4..], [(201, 6)]);
    // Too late: COUNT < RX_DELIV.
    it.at(202).arrives(&sent[0]);
    assert_eq!(it.drops(), [(202, 0, DropReason::RadioLink)]);
}

#[test]
fn out_of_order_delivery_waits_for_nothing() {
    // TS 38.323 5.2.2.1, outOfOrderDelivery
    let mode = NrMode::Am { sn: NrAmSn::Bits12, t_reassembly: T_REASSEMBLY, arq: ARQ };
    let mut it = Script::new(RlcConfig::Nr { mode, release: Release::OutOfOrder });
    let sent = blocks(&mut it, 3);
    for (ms, index) in [(1, 2), (2, 0), (3, 1)] {
        it.at(ms).arrives(&sent[index]);
    }
    assert_eq!(it.delivered, [(1, 2), (2, 0), (3, 1)]);
}

/// Packets 0 to 3 are sent, 0 and 2 arrive, 3 waits; then the UE changes its cell.
fn moved(status_report: StatusReport) -> Script {
    let pdcp = PdcpConfig { status_report, ..PDCP };
    let rlc = nr_am(NrAmSn::Bits12, ARQ);
    let mut it = Script::with(OneWayConfig { rlc, pdcp, buffer: UNLIMITED });
    let sent = blocks(&mut it, 3);
    it.packets(&[98]);
    it.at(1).arrives(&sent[0]);
    it.at(2).arrives(&sent[2]);
    it.at(3).reestablish(Forwarding::Buffer);
    it
}

#[test]
fn a_new_cell_sends_what_was_not_received() {
    // TS 38.323 5.1.2, 5.4.1: with a status report
    let mut it = moved(StatusReport::Required);
    assert_eq!(it.one_way.buffered_bytes(), 200);
    let block = it.block(1_000);
    assert_eq!(show(&block), ["3 0..100/", "4 0..100/P"]);
    it.at(9).arrives(&block);
    assert_eq!(it.delivered, [(1, 0), (9, 1), (9, 2), (9, 3)]);
}

#[test]
fn without_a_status_report_it_sends_what_was_not_confirmed() {
    // TS 38.323 5.1.2: PDCP discards what it has (5.2.2.1)
    let mut it = moved(StatusReport::NotRequired);
    assert_eq!(it.one_way.buffered_bytes(), 400);
    let block = it.block(1_000);
    it.at(9).arrives(&block);
    assert_eq!(it.delivered, [(1, 0), (9, 1), (9, 2), (9, 3)]);
    it.exchange_status();
    assert_eq!((it.one_way.load().packets, it.one_way.next_timer()), (0, None));
}

#[test]
fn blocks_of_the_old_cell_are_void() {
    let mut it = Script::new(nr_am(NrAmSn::Bits12, ARQ));
    let sent = blocks(&mut it, 2);
    it.at(3).reestablish(Forwarding::Buffer);
    it.at(4).arrives(&sent[0]);
    assert_eq!(it.delivered, []);
    assert_eq!(it.one_way.load().packets, 2);
}

#[test]
fn without_forwarding_everything_is_lost() {
    let mut it = Script::new(nr_am(NrAmSn::Bits12, ARQ));
    let sent = blocks(&mut it, 3);
    it.packets(&[98]);
    it.at(1).arrives(&sent[1]);
    it.at(3).reestablish(Forwarding::Nothing);
    // 1 had arrived; t-Reordering has run since 1 ms (TS 38.323 5.2.2.2).
    assert_eq!(it.delivered, []);
    let mut dropped: Vec<_> = it.drops().into_iter().map(|(_, id, _)| id).collect();
    dropped.sort_unstable();
    assert_eq!(dropped, [0, 2, 3]);
    assert_eq!(it.one_way.load().packets, 1);
    let next = blocks(&mut it, 1);
    it.at(5).arrives(&next[0]);
    // First what is below RX_REORD, which was 2; then the timer starts again for 4.
    it.at(101);
    assert_eq!(it.delivered, [(101, 1)]);
    it.at(201);
    assert_eq!(it.delivered[1..], [(201, 4)]);
    assert_eq!((it.one_way.load().packets, it.one_way.next_timer()), (0, None));
}

#[test]
fn what_follows_a_handover_that_lost_packets_waits_for_t_reordering() {
    // TS 38.323 5.1.2: an AM DRB keeps its state variables; its lost COUNTs never arrive.
    let mut it = Script::new(nr_am(NrAmSn::Bits12, ARQ));
    blocks(&mut it, 3);
    it.at(3).reestablish(Forwarding::Nothing);
    let next = blocks(&mut it, 3);
    for (ms, block) in (10..).zip(&next) {
        it.at(ms).arrives(block);
    }
    it.at(109);
    assert_eq!(it.delivered, []);
    it.at(110);
    assert_eq!(it.delivered, [(110, 3), (110, 4), (110, 5)]);
}

#[test]
fn in_um_nothing_waits_after_a_handover() {
    // TS 38.323 5.1.2: a UM DRB delivers what it has stored, and starts again.
    let mut it = Script::new(nr_um(NrUmSn::Bits12));
    let sent = blocks(&mut it, 3);
    it.at(1).arrives(&sent[1]);
    it.at(3).reestablish(Forwarding::Nothing);
    let next = blocks(&mut it, 1);
    it.at(5).arrives(&next[0]);
    assert_eq!(it.delivered, [(3, 1), (5, 3)]);
}
