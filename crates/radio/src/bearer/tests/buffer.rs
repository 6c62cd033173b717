//! Tests of the buffer: limits, discard timer, CoDel, FQ-CoDel, marking.

use super::*;

const CODEL: CoDelConfig =
    CoDelConfig { target: Duration::from_millis(5), interval: Duration::from_millis(100) };

fn script(buffer: BufferConfig, discard: Option<Duration>) -> Script {
    let pdcp = PdcpConfig { discard, ..PDCP };
    Script::with(OneWayConfig { rlc: nr_um(NrUmSn::Bits12), pdcp, buffer })
}

fn fq(quantum: u32) -> BufferConfig {
    let discipline = Discipline::FqCoDel { codel: CODEL, quantum, isolation: Isolation::Perfect };
    BufferConfig { discipline, ..UNLIMITED }
}

/// Sends whole packets until `bytes` of them have left, and returns their numbers.
fn drain(it: &mut Script, packets: usize, size: u32) -> Vec<u64> {
    it.delivered.clear();
    for _ in 0..packets {
        let block = it.block(size + 2 + 1 + 3);
        it.arrives(&block);
    }
    it.delivered.iter().map(|&(_, id)| id).collect()
}

#[test]
fn drop_tail_refuses_what_does_not_fit() {
    let mut it = script(BufferConfig { bytes: Some(2_500), ..UNLIMITED }, None);
    it.packets(&[1_000, 1_000, 1_000, 500]);
    assert_eq!(it.drops(), [(0, 2, DropReason::QueueFull)]);
    let mut it = script(BufferConfig { packets: Some(2), ..UNLIMITED }, None);
    it.packets(&[10, 10, 10]);
    assert_eq!(it.drops(), [(0, 2, DropReason::QueueFull)]);
}

#[test]
fn a_packet_being_sent_has_left_the_buffer() {
    let mut it = script(BufferConfig { packets: Some(1), ..UNLIMITED }, None);
    it.packets(&[1_000]);
    it.block(100);
    it.packets(&[1_000]);
    assert_eq!(it.drops(), []);
    assert_eq!(it.one_way.queued().packets, 1);
}

#[test]
fn the_discard_timer_spares_what_has_been_begun() {
    // TS 38.322 5.4, TS 38.323 5.3
    let mut it = script(UNLIMITED, Some(Duration::from_millis(50)));
    it.packets(&[1_000, 1_000]);
    it.at(10).packets(&[1_000]);
    it.at(20).block(100);
    assert_eq!(it.at(49).drops(), []);
    assert_eq!(it.at(50).drops(), [(50, 1, DropReason::Discarded)]);
    assert_eq!(it.at(80).drops(), [(60, 2, DropReason::Discarded)]);
    assert_eq!(it.one_way.load().packets, 1);
}

#[test]
fn the_discard_timer_watches_every_flow() {
    let mut it = script(fq(1_514), Some(Duration::from_millis(50)));
    it.packet(FlowId(4), 1_000, Ecn::NotEct);
    it.at(7).packet(FlowId(1), 1_000, Ecn::NotEct);
    let reason = DropReason::Discarded;
    assert_eq!(it.at(56).drops(), [(50, 0, reason)]);
    assert_eq!(it.at(57).drops(), [(57, 1, reason)]);
    assert_eq!(it.one_way.next_timer(), None);
}

/// One packet leaves per millisecond, each after a wait of 20 ms; returns the times of drops.
fn standing_queue(ecn: Ecn, config: EcnConfig) -> (Vec<u64>, u64) {
    let discipline = Discipline::CoDel(CODEL);
    let mut it = script(BufferConfig { discipline, ecn: config, ..UNLIMITED }, None);
    let mut drops = Vec::new();
    for ms in 0..300 {
        it.at(ms).packet(FlowId(0), 1_000, ecn);
        if ms >= 20 {
            it.block(1_006);
        }
        let dropped = it.drops();
        drops.extend(dropped.iter().map(|&(at, ..)| at));
        // A drop shortens the queue; this keeps its length.
        dropped.iter().for_each(|_| it.packet(FlowId(0), 1_000, ecn));
    }
    (drops, it.one_way.counters().marked)
}

#[test]
fn codel_drops_from_a_standing_queue() {
    // RFC 8289 5: an interval after the queue stands, then 100 / sqrt(n) ms apart
    let (drops, marked) = standing_queue(Ecn::Ect0, EcnConfig::default());
    assert_eq!((drops.as_slice(), marked), ([120, 220, 291].as_slice(), 0));
}

#[test]
fn codel_marks_where_it_would_drop() {
    // RFC 8290 4.2
    let ecn = EcnConfig { codel: EcnCapable::Marked, l4s_step: None };
    assert_eq!(standing_queue(Ecn::Ect0, ecn), (vec![], 3));
    assert_eq!(standing_queue(Ecn::NotEct, ecn).0, [120, 220, 291]);
}

#[test]
fn l4s_packets_are_marked_above_the_step() {
    let l4s_step = Some(Duration::from_millis(1));
    let ecn = EcnConfig { codel: EcnCapable::Dropped, l4s_step };
    // Each of the 280 packets that left had waited longer.
    assert_eq!(standing_queue(Ecn::Ect1, ecn), (vec![], 280));
    let mut it = script(BufferConfig { ecn, ..UNLIMITED }, None);
    it.packet(FlowId(0), 1_000, Ecn::Ect1);
    it.packet(FlowId(0), 1_000, Ecn::Ect1);
    it.at(1).block(1_006);
    assert_eq!(it.one_way.counters().marked, 0);
    it.at(2).block(1_006);
    assert_eq!(it.one_way.counters().marked, 1);
}

#[test]
fn fq_codel_takes_turns() {
    // RFC 8290 4.2: one quantum each
    let mut it = script(fq(1_000), None);
    for flow in [0, 0, 0, 0, 1, 1, 1, 1] {
        it.packet(FlowId(flow), 1_000, Ecn::NotEct);
    }
    assert_eq!(drain(&mut it, 8, 1_000), [0, 4, 1, 5, 2, 6, 3, 7]);
}

#[test]
fn fq_codel_prefers_a_new_flow() {
    // RFC 8290 4.2: new queues before old ones
    let mut it = script(fq(1_000), None);
    for _ in 0..6 {
        it.packet(FlowId(0), 1_000, Ecn::NotEct);
        it.packet(FlowId(1), 1_000, Ecn::NotEct);
    }
    drain(&mut it, 4, 1_000);
    it.packet(FlowId(2), 1_000, Ecn::NotEct);
    assert_eq!(drain(&mut it, 1, 1_000), [12]);
}

#[test]
fn fq_codel_a_flow_is_new_once_until_its_turn_has_passed() {
    // RFC 8290 4.2: an empty new queue goes to the end of the old ones
    let mut it = script(fq(1_000), None);
    for flow in [0, 1, 0, 1, 0, 1] {
        it.packet(FlowId(flow), 1_000, Ecn::NotEct);
    }
    assert_eq!(drain(&mut it, 2, 1_000), [0, 1]);
    it.packet(FlowId(2), 500, Ecn::NotEct);
    assert_eq!(drain(&mut it, 1, 500), [6]);
    assert_eq!(drain(&mut it, 1, 1_000), [2]);
    it.packet(FlowId(2), 1_000, Ecn::NotEct);
    assert_eq!(drain(&mut it, 2, 1_000), [3, 7]);
}

#[test]
fn fq_codel_shares_bytes_not_packets() {
    // RFC 8290 5.2.3
    let mut it = script(fq(1_000), None);
    for _ in 0..100 {
        it.packet(FlowId(0), 1_000, Ecn::NotEct);
    }
    for _ in 0..1_000 {
        it.packet(FlowId(1), 100, Ecn::NotEct);
    }
    let block = it.block(40_000);
    let bytes = |small: bool| -> u32 {
        let sizes = block.pdus().iter().map(Pdu::len);
        sizes.filter(|&len| (len < 200) == small).map(|len| len - 2).sum()
    };
    assert!(bytes(true).abs_diff(bytes(false)) <= 2_000, "{} {}", bytes(true), bytes(false));
}

#[test]
fn fq_codel_overflows_at_the_longest_queue() {
    // RFC 8290 4.1: half of its packets, from its head
    let mut it = script(BufferConfig { packets: Some(10), ..fq(1_000) }, None);
    it.packet(FlowId(1), 1_000, Ecn::NotEct);
    for _ in 0..9 {
        it.packet(FlowId(0), 1_000, Ecn::NotEct);
    }
    assert_eq!(it.drops(), []);
    it.packet(FlowId(1), 1_000, Ecn::NotEct);
    let dropped: Vec<_> = it.drops().into_iter().map(|(_, id, _)| id).collect();
    assert_eq!(dropped, [1, 2, 3, 4, 5]);
}

#[test]
fn flows_that_hash_alike_share_a_queue() {
    let discipline = Discipline::FqCoDel {
        codel: CODEL,
        quantum: 1_000,
        isolation: Isolation::Hashed { queues: 1 },
    };
    let mut it = script(BufferConfig { discipline, ..UNLIMITED }, None);
    for flow in [0, 0, 1, 1] {
        it.packet(FlowId(flow), 1_000, Ecn::NotEct);
    }
    assert_eq!(drain(&mut it, 4, 1_000), [0, 1, 2, 3]);
}
