//! Tests of unacknowledged mode, NR and LTE.

use super::*;

#[test]
fn nr_whole_sdus_have_no_number() {
    // TS 38.322 6.2.2.3: 1 byte whole; 1 for a first segment, 3 for others with 6 bits
    let mut it = Script::new(nr_um(NrUmSn::Bits6));
    it.packets(&[298, 998]);
    let block = it.block(3 + 1 + 300 + 3 + 1 + 500);
    assert_eq!(show(&block), ["0 0..300/", "0 0..500"]);
    let block = it.block(1_000);
    assert_eq!(show(&block), ["0 500..1000/"]);
    assert_eq!(block.bytes(), 3 + 3 + 500);
    assert!(it.block(1_000).is_empty());
}

#[test]
fn nr_segments_come_together_in_any_order() {
    let mut it = Script::new(nr_um(NrUmSn::Bits12));
    it.packets(&[998]);
    let sent = [it.block(305), it.block(307), it.block(1_000)];
    for (ms, index) in [(1, 2), (2, 0), (3, 1)] {
        it.at(ms).arrives(&sent[index]);
    }
    assert_eq!(it.delivered, [(3, 0)]);
    assert_eq!(it.one_way.next_timer(), None);
}

#[test]
fn nr_gives_up_after_t_reassembly() {
    // TS 38.322 5.2.2.2.4; the drop is reported when HARQ lost the block
    let mut it = Script::new(nr_um(NrUmSn::Bits12));
    it.packets(&[998]);
    let sent = [it.block(305), it.block(307), it.block(1_000)];
    it.at(1).arrives(&sent[0]);
    it.at(2).is_lost(&sent[1]);
    it.at(3).arrives(&sent[2]);
    assert_eq!(it.drops(), [(2, 0, DropReason::RadioLink)]);
    assert_eq!(it.one_way.load().packets, 0);
    assert_eq!(it.one_way.next_timer(), Some(ms(23)));
    assert_eq!(it.at(23).one_way.next_timer(), None);
}

#[test]
fn nr_segments_later_than_t_reassembly_are_discarded() {
    // TS 38.322 5.2.2.2.2, 5.2.2.2.4
    let mut it = Script::new(nr_um(NrUmSn::Bits12));
    it.packets(&[998]);
    let sent = [it.block(305), it.block(307), it.block(1_000)];
    it.at(1).arrives(&sent[0]);
    it.at(3).arrives(&sent[2]);
    assert_eq!(it.at(23).drops(), [(23, 0, DropReason::RadioLink)]);
    it.at(24).arrives(&sent[1]);
    assert_eq!((it.delivered.len(), it.drops().len()), (0, 0));
}

#[test]
fn nr_the_window_pushes_old_segments_out() {
    // TS 38.322 5.2.2.2.3, 7.2: UM_Window_Size is 32 for 6 bits
    let mut it = Script::new(nr_um(NrUmSn::Bits6));
    it.packets(&[98; 34]);
    let sent: Vec<_> = (0..34).map(|_| [it.block(50), it.block(58)]).collect();
    assert_eq!(show(&sent[33][1]), ["33 47..100/"]);
    it.at(1).arrives(&sent[0][0]);
    it.at(1).arrives(&sent[31][0]);
    assert_eq!(it.drops(), []);
    // With SN 32, SN 0 leaves the window.
    it.at(1).arrives(&sent[32][0]);
    assert_eq!(it.drops(), [(1, 0, DropReason::RadioLink)]);
}

#[test]
fn lte_headers() {
    // TS 36.322 6.2.1.3: 1 byte with a 5-bit SN, 2 with 10 bits, and the LIs
    for (sn, fixed) in [(LteUmSn::Bits5, 1), (LteUmSn::Bits10, 2)] {
        let mut it = Script::new(lte_um(sn));
        it.packets(&[98, 98, 98]);
        assert_eq!(it.block(1_000).bytes(), 3 + fixed + 3 + 300);
    }
}

#[test]
fn lte_a_lost_pdu_takes_every_sdu_it_touches() {
    // TS 36.322 5.1.2.2.4
    let mut it = Script::new(lte_um(LteUmSn::Bits10));
    it.packets(&[98; 5]);
    // 148 of data after an LI: SDUs 0-1, 1-2, 2-4
    let sent = [it.block(153), it.block(153), it.block(1_000)];
    it.at(1).arrives(&sent[0]);
    it.at(2).arrives(&sent[2]);
    assert_eq!(it.delivered, [(1, 0)]);
    it.at(5).is_lost(&sent[1]);
    it.at(22);
    assert_eq!(it.delivered, [(1, 0), (22, 3), (22, 4)]);
    let lost = [(5, 1, DropReason::RadioLink), (5, 2, DropReason::RadioLink)];
    assert_eq!(it.drops(), lost);
}

#[test]
fn a_block_tells_whose_bytes_it_carries() {
    for rlc in [lte_um(LteUmSn::Bits10), nr_um(NrUmSn::Bits12), lte_am(ARQ)] {
        let mut it = Script::new(rlc);
        it.packets(&[98; 5]);
        let sent = [it.block(153), it.block(153)];
        let mut seen = Vec::new();
        it.one_way.packets(&sent[1], |packet| seen.push(arrival(it.now, *packet).1));
        assert_eq!(seen, [1, 2]);
    }
}

#[test]
fn lte_a_pdu_later_than_t_reordering_is_discarded() {
    // TS 36.322 5.1.2.2.2
    let mut it = Script::new(lte_um(LteUmSn::Bits10));
    it.packets(&[98; 5]);
    let sent = [it.block(153), it.block(153), it.block(1_000)];
    it.at(1).arrives(&sent[0]);
    it.at(2).arrives(&sent[2]);
    it.at(22);
    assert_eq!(it.delivered, [(1, 0), (22, 3), (22, 4)]);
    it.at(23).arrives(&sent[1]);
    assert_eq!(it.delivered.len(), 3);
    assert_eq!(it.one_way.load().packets, 0);
}

#[test]
fn lte_reordering_within_the_time_loses_nothing() {
    let mut it = Script::new(lte_um(LteUmSn::Bits5));
    it.packets(&[98; 5]);
    let sent = [it.block(153), it.block(153), it.block(1_000)];
    for (ms, index) in [(1, 1), (2, 2), (20, 0)] {
        it.at(ms).arrives(&sent[index]);
    }
    assert_eq!(it.delivered, [(20, 0), (20, 1), (20, 2), (20, 3), (20, 4)]);
    assert_eq!(it.one_way.next_timer(), None);
}

#[test]
fn a_new_cell_loses_what_was_on_its_way_and_keeps_the_buffer() {
    // TS 38.323 5.1.2: UM
    for rlc in [nr_um(NrUmSn::Bits12), lte_um(LteUmSn::Bits10)] {
        let mut it = Script::new(rlc);
        it.packets(&[498, 498, 498]);
        it.block(750);
        it.at(3).reestablish(Forwarding::Buffer);
        let lost = [(3, 0, DropReason::Handover), (3, 1, DropReason::Handover)];
        assert_eq!(it.drops(), lost);
        let block = it.block(1_000);
        it.at(9).arrives(&block);
        assert_eq!(it.delivered, [(9, 2)]);
        it.packets(&[498]);
        it.at(10).reestablish(Forwarding::Nothing);
        assert_eq!(it.drops(), [(10, 3, DropReason::Handover)]);
    }
}
