//! Latencies, against chains worked out by hand.

use airpath_path::radio::cell::*;
use airpath_path::radio::mac::Occasions;
use airpath_path::radio::mac::grants::PeriodicGrant;

use crate::common::*;

/// One-way times of a packet every `step_us`, long after each other.
fn sweep(cell: &CellConfig, ue: &UeConfig, direction: airpath_path::radio::Direction) -> f64 {
    let mut cell = Cell::new(cell, core::slice::from_ref(ue), 1);
    // 200.07 ms apart: the phase moves through a millisecond, and through any period of SR.
    mean_ms((0..400).map(|n| one_way(&mut cell, at(100_000 + n * 200_070), direction, 60)))
}

#[test]
fn lte_user_plane_of_tr_36_912() {
    // TR 36.912 B.2: eNB 1 ms, alignment 0.5 ms, TTI 1 ms, UE 1.5 ms; +8 ms for each 10 % that fail
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
