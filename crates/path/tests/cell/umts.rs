//! UMTS: rates and delays, against the sizes and times of the specification.

use airpath_path::radio::Direction;
use airpath_path::radio::cell::*;
use airpath_path::radio::mac::grants::PeriodicGrant;
use airpath_path::radio::umts::{DchRate, EdchCategory, EdchTti, HsdpaCategory};

use crate::common::*;

/// Delivered bits per second of each of `count` UEs with full buffers, over the last three of four
/// seconds.
fn saturate(cell: &CellConfig, ue: &UeConfig, count: u32, direction: Direction) -> Vec<f64> {
    let mut cell = Cell::new(cell, &vec![ue.clone(); count as usize], 1);
    let (begin, end) = (at(1_000_000), at(4_000_000));
    let mut bytes = vec![0u64; count as usize];
    for ue in 0..count {
        for number in 0..60 {
            cell.enqueue(at(0), direction, UeIndex(ue), packet(number, 1_500));
        }
    }
    while let Some(next) = cell.next_event().filter(|&next| next <= end) {
        while let Some(departure) = cell.poll(next) {
            if departure.at > begin {
                bytes[departure.ue.0 as usize] += u64::from(departure.packet.size);
            }
            cell.enqueue(next, direction, departure.ue, packet(0, 1_500));
        }
    }
    bytes.into_iter().map(|bytes| 8.0 * bytes as f64 / (end - begin).as_secs_f64()).collect()
}

fn near(rates: &[f64], theory_bps: f64) {
    for rate in rates {
        assert!((rate / theory_bps - 1.0).abs() < 0.02, "{rates:?} of {theory_bps} b/s");
    }
}

/// Bits of data in a block of `bits`: PDUs of `pdu` bytes with 2 of header, after 3 of MAC; each
/// packet costs a length indicator of a byte.
fn data(bits: u32, pdu: u32) -> f64 {
    f64::from((bits / 8 - 3) / pdu * (pdu - 2) * 8) * 1_500.0 / 1_501.0
}

fn hsdpa(category: u8, codes: u32) -> UmtsCarrier {
    let category = HsdpaCategory::new(category).unwrap();
    UmtsCarrier { downlink: UmtsDownlink::HsDsch { category, codes }, ..UmtsCarrier::hspa() }
}

#[test]
fn hs_dsch_carries_a_block_of_the_best_cqi_in_each_subframe() {
    // TS 25.214 tables 7A, 7B, 7D, 7G: bits in 2 ms
    for (category, codes, bits) in
        [(6, 15, 7_168), (8, 15, 14_411), (10, 15, 25_558), (10, 10, 14_411), (14, 15, 38_576)]
    {
        let (cell, ue) = umts(hsdpa(category, codes));
        near(&saturate(&cell, &ue, 1, DOWN), data(bits, 82) * 500.0);
    }
    let (cell, ue) = umts(hsdpa(10, 15));
    near(&saturate(&cell, &ue, 4, DOWN), data(25_558, 82) * 500.0 / 4.0);
}

#[test]
fn six_processes_fill_the_downlink_and_fewer_do_not() {
    // 12 ms from a block to its retransmission, or to the next block of the process
    let (cell, mut ue) = umts(hsdpa(10, 15));
    for processes in [1, 3, 6, 8] {
        ue.downlink.harq.processes = processes;
        let part = f64::from(processes.min(6)) / 6.0;
        near(&saturate(&cell, &ue, 1, DOWN), data(25_558, 82) * 500.0 * part);
    }
}

#[test]
fn e_dch_carries_a_block_of_the_serving_grant_in_each_tti() {
    for (category, tti, bits, per_second) in [
        (6, EdchTti::Ms2, 11_484, 500.0),
        (4, EdchTti::Ms2, 5_772, 500.0),
        (6, EdchTti::Ms10, 20_000, 100.0),
        (1, EdchTti::Ms10, 7_110, 100.0),
    ] {
        let category = EdchCategory::new(category).unwrap();
        let uplink = UmtsUplink::EDch { category, tti };
        let (cell, mut ue) = umts(UmtsCarrier { uplink, ..UmtsCarrier::hspa() });
        near(&saturate(&cell, &ue, 1, UP), data(bits, 42) * per_second);
        // UEs do not share it.
        near(&saturate(&cell, &ue, 3, UP), data(bits, 42) * per_second);
        ue.configured = ue.configured.map(|grant| PeriodicGrant { bytes: 400, ..grant });
        near(&saturate(&cell, &ue, 1, UP), data(3_200, 42) * per_second);
    }
}

#[test]
fn a_dch_has_its_rate_for_each_ue() {
    for rate in [DchRate::Kbps64, DchRate::Kbps128, DchRate::Kbps384] {
        let (downlink, uplink) = (UmtsDownlink::Dch(rate), UmtsUplink::Dch(rate));
        let (cell, ue) = umts(UmtsCarrier { downlink, uplink });
        let bps = f64::from(rate.kbps()) * 1_000.0;
        near(&saturate(&cell, &ue, 2, DOWN), bps);
        near(&saturate(&cell, &ue, 2, UP), bps);
    }
}
