//! Latencies, compared with sums worked out by hand.

use airpath_base::{Instant, Stream};
use airpath_radio::cell::*;
use airpath_radio::mac::Occasions;
use airpath_radio::scheduler::grants::PeriodicGrant;

use crate::common::*;

/// One-way times of packets that are sent every `step_us`, far apart from each other.
fn sweep(cell: &CellConfig, ue: &UeConfig, direction: airpath_base::Direction) -> f64 {
    let mut cell = Cell::new(cell, core::slice::from_ref(ue), 1);
    // 200.07 ms apart: the phase moves through a millisecond, and through any SR period.
    mean_ms((0..400).map(|n| one_way(&mut cell, at(100_000 + n * 200_070), direction, 60)))
}

#[test]
fn lte_user_plane_of_tr_36_912() {
    // TR 36.912 B.2: eNB 1 ms, alignment 0.5 ms, TTI 1 ms, UE 1.5 ms; 8 ms more for each 10 % that
    // fail
    let (cell, mut ue) = lte();
    let clean = sweep(&cell, &ue, DOWN);
    assert!((clean - 4.0).abs() < 0.2, "{clean} ms");
    bler(&mut ue, 0.1, 0.0);
    let lossy = sweep(&cell, &ue, DOWN);
    assert!((lossy - clean - 0.8).abs() < 0.2, "{lossy} ms after {clean} ms");
}

#[test]
fn lte_uplink_on_a_grant_in_advance_takes_as_long() {
    let (cell, mut ue) = lte();
    let occasions = Occasions::new(ms(1), ms(0));
    ue.proactive = Some(PeriodicGrant { occasions, bytes: 200, keep: None });
    let granted = sweep(&cell, &ue, UP);
    assert!((granted - 4.0).abs() < 0.2, "{granted} ms");
}

/// Round trips of a ping to a host 0.5 ms away.
fn ping(ue: &UeConfig, cell: &CellConfig) -> f64 {
    let mut cell = Cell::new(cell, core::slice::from_ref(ue), 1);
    mean_ms((0..300).map(|n| {
        let sent = at(100_000 + n * 200_170);
        let up = one_way(&mut cell, sent, UP, 84);
        let down = one_way(&mut cell, sent + up + ms(1), DOWN, 84);
        up + ms(1) + down
    }))
}

#[test]
fn lte_ping_with_and_without_grants_in_advance() {
    // Holma and Toskala, LTE for UMTS 11.11: about 20 ms with an SR every 10 ms, about 11 ms with
    // pre-allocated uplink
    let (cell, mut ue) = lte();
    // UE 2 ms to prepare and 1.5 ms to decode, eNB 1.5 ms to decode and 1 ms to schedule
    ue.processing.uplink = ms(2);
    let asked = ping(&ue, &cell);
    assert!((asked - 20.0).abs() < 1.5, "{asked} ms");
    let occasions = Occasions::new(ms(1), ms(0));
    ue.proactive = Some(PeriodicGrant { occasions, bytes: 200, keep: None });
    let granted = ping(&ue, &cell);
    assert!((granted - 11.0).abs() < 1.5, "{granted} ms");
}

#[test]
fn the_wait_for_a_request_is_half_its_period() {
    // The wait, SR 1 ms, grant 3 ms, n + 4, PUSCH 1 ms, eNB 1.5 ms
    let (cell, mut ue) = lte();
    for period in [1, 2, 5, 10, 20, 40, 80] {
        ue.sr.occasions = Some(Occasions::new(ms(period), ms(0)));
        let mut cell = Cell::new(&cell, core::slice::from_ref(&ue), 1);
        let step = ms(240) + us(period * 1000) / 400;
        let times = (0..400).map(|n| one_way(&mut cell, at(100_001) + step * n, UP, 60));
        let mean = mean_ms(times);
        let expected = period as f64 / 2.0 + 1.0 + 3.0 + 4.0 + 1.0 + 1.5;
        assert!(
            (mean - expected).abs() < 0.005 * period as f64 + 0.005,
            "{period}: {mean} {expected}"
        );
    }
}

/// n78, DDDSU 10:2:2: slots of 0.5 ms, K_1 = K_2 = 1.
fn nr() -> (CellConfig, UeConfig) {
    let cell = CellConfig::nr(NrCarrier::n78_100_mhz());
    let mut ue = UeConfig::plain(&cell.access);
    bler(&mut ue, 0.0, 0.0);
    um(&mut ue);
    (cell, ue)
}

#[test]
fn nr_downlink_packet_at_a_known_slot() {
    let (cell, ue) = nr();
    let delay = |micros| {
        one_way(&mut Cell::new(&cell, core::slice::from_ref(&ue), 1), at(micros), DOWN, 1000)
    };
    // gNB 0.5 ms: ready at 5.6 ms, slot 12 (D) begins at 6 ms and ends at 6.5 ms, UE 0.5 ms
    assert_eq!(delay(5_100), us(7_000 - 5_100));
    // Ready at 6.6 ms; slot 14 at 7 ms is U, slot 15 at 7.5 ms
    assert_eq!(delay(6_600), us(8_500 - 6_600));
}

#[test]
fn nr_uplink_packet_at_a_known_slot() {
    let (cell, mut ue) = nr();
    ue.sr.occasions = Some(Occasions::new(ms(5), ms(2)));
    let mut one = Cell::new(&cell, core::slice::from_ref(&ue), 1);
    // SR at 7 ms in slot 14 (U) to 7.5 ms; gNB 0.5 ms: 8 ms; the PDCCH of
    // slot 18 (S) at 9 ms grants slot 19 (U), 9.5 to 10 ms; gNB 0.5 ms
    assert_eq!(one_way(&mut one, at(5_100), UP, 60), us(10_500 - 5_100));
}

#[test]
fn no_packet_waits_for_the_timer_of_reports_because_a_block_had_room_for_none() {
    // A block with a byte of padding holds no report, and neither does a full one (TS 38.321
    // 5.4.5): the data behind it must be requested. When this was left to retxBSR-Timer, packets
    // were 80 ms late, over LTE 320 ms.
    for (cell, ue) in [nr(), lte()] {
        let mut cell = Cell::new(&cell, core::slice::from_ref(&ue), 1);
        let mut random = Stream::new(1, "packets");
        let mut sent = Vec::new();
        let (mut now, mut longest) = (at(0), ms(0));
        for number in 0..20_000 {
            now += us(100 + random.bits() % 2_000);
            for departure in run(&mut cell, now) {
                let waited: Instant = sent[opaque(&departure.packet) as usize];
                longest = longest.max(departure.at - waited);
            }
            cell.enqueue(now, UP, UeIndex(0), &packet(number, 40 + (random.bits() % 100) as u32));
            sent.push(now);
        }
        assert!(longest < ms(45), "{longest:?} in {:?}", ue.bsr.format.generation);
    }
}

#[test]
fn a_configured_grant_needs_no_request() {
    let (cell, mut ue) = nr();
    let occasions = Occasions::new(us(2_500), us(2_000));
    ue.configured = Some(PeriodicGrant { occasions, bytes: 100, keep: None });
    ue.bsr.channels[0].masks_request = true;
    let mut cell = Cell::new(&cell, core::slice::from_ref(&ue), 1);
    // Prepared at 5.6 ms, slot 14 at 7 to 7.5 ms, gNB 0.5 ms
    assert_eq!(one_way(&mut cell, at(5_100), UP, 60), us(8_000 - 5_100));
    let mut requests = 0;
    cell.observe(at(20_000), &mut |meter| requests += meter.access.requests);
    assert_eq!(requests, 0);
}

/// Names of the log's events, with times in µs.
fn story(cell: &mut Cell) -> Vec<(&'static str, u64)> {
    core::iter::from_fn(|| cell.poll_event())
        .map(|event| (event.kind.name(), event.at.as_nanos() / 1_000))
        .collect()
}

#[test]
fn the_log_tells_how_a_segment_and_its_acknowledgement_cross() {
    let (config, mut ue) = lte();
    bler(&mut ue, 1.0, 0.0);
    let mut cell = Cell::new(&config, core::slice::from_ref(&ue), 1);
    assert_eq!(cell.poll_event(), None);
    cell.keep_log();
    let down = one_way(&mut cell, at(100_000), DOWN, 1_500);
    assert_eq!(down, us(11_500));
    // TS 36.213 7, 10.1.2.1: subframe 101, NACK in 105, retransmission in 109
    let expected = [
        ("packet_enters", 100_000),
        ("block", 101_000),
        ("block", 109_000),
        ("packet_leaves", 111_500),
    ];
    assert_eq!(story(&mut cell), expected);
    one_way(&mut cell, at(112_000), UP, 52);
    run(&mut cell, at(200_000));
    // SR in 114, grant in 118 for 122, PHICH in 126, retransmission in 130
    let expected = [
        ("packet_enters", 112_000),
        ("sr", 114_000),
        ("grant", 118_000),
        ("bsr", 122_000),
        ("block", 122_000),
        ("grant", 126_000),
        ("block", 130_000),
        ("packet_leaves", 132_500),
    ];
    assert_eq!(story(&mut cell), expected);
}

#[test]
fn a_log_block_says_what_was_sent() {
    let (config, ue) = lte();
    let mut cell = Cell::new(&config, core::slice::from_ref(&ue), 1);
    cell.keep_log();
    one_way(&mut cell, at(100_000), DOWN, 1_500);
    let blocks: Vec<_> = core::iter::from_fn(|| cell.poll_event())
        .filter_map(|event| match event.kind {
            RadioEventKind::Block(block) => Some(block),
            _ => None,
        })
        .collect();
    let [block] = blocks[..] else { panic!("{blocks:?}") };
    // CQI 15 promises 5.55 bits, and MCS 28 with two control symbols takes 5.71. 1,502 bytes with
    // the PDCP header, 2 of RLC, 3 of MAC
    assert_eq!((block.mcs, block.transmission, block.decoded, block.used), (27, 1, true, 1_507));
    assert!(block.bytes >= block.used && block.prbs < 20, "{block:?}");
    assert_eq!(block.end, at(102_000));
}
