//! UMTS: rates and delays, compared with the sizes and times of the specification.

use airpath_base::Direction;
use airpath_radio::adaptation::McsMode;
use airpath_radio::cell::*;
use airpath_radio::mac::Occasions;
use airpath_radio::rlc::{RlcConfig, UmtsPdu};
use airpath_radio::rrc::umts::{Fach, PchConfig, SetupState, UmtsConfig};
use airpath_radio::rrc::{RrcConfig, RrcState};
use airpath_radio::scheduler::grants::PeriodicGrant;
use airpath_radio::umts::{DchRate, EdchCategory, EdchTti, HsdpaCategory};

use crate::common::*;

/// Delivered bits per second of each of `count` UEs with full buffers, over the last three of four
/// seconds.
pub(crate) fn saturate(
    cell: &CellConfig,
    ue: &UeConfig,
    count: u32,
    direction: Direction,
) -> Vec<f64> {
    let mut cell = Cell::new(cell, &vec![ue.clone(); count as usize], 1);
    let (begin, end) = (at(1_000_000), at(4_000_000));
    let mut bytes = vec![0u64; count as usize];
    for ue in 0..count {
        for number in 0..60 {
            cell.enqueue(at(0), direction, UeIndex(ue), &packet(number, 1_500));
        }
    }
    while let Some(next) = cell.next_event().filter(|&next| next <= end) {
        while let Some(departure) = cell.poll(next) {
            if departure.at > begin {
                bytes[departure.ue.0 as usize] += u64::from(departure.packet.size);
            }
            cell.enqueue(next, direction, departure.ue, &packet(0, 1_500));
        }
    }
    bytes.into_iter().map(|bytes| 8.0 * bytes as f64 / (end - begin).as_secs_f64()).collect()
}

fn near(rates: &[f64], theory_bps: f64) {
    for rate in rates {
        assert!((rate / theory_bps - 1.0).abs() < 0.02, "{rates:?} of {theory_bps} b/s");
    }
}

/// Bits of data in a block of `bits`: PDUs of `pdu` bytes with a header of 2, after 3 bytes of MAC;
/// each packet costs a length indicator of one byte.
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
        // The UEs do not share this capacity.
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

/// One-way times of packets of `size` bytes, far apart from each other.
fn sweep(cell: &CellConfig, ue: &UeConfig, direction: Direction, size: u32) -> f64 {
    let mut cell = Cell::new(cell, core::slice::from_ref(ue), 1);
    // 500.05 ms apart: the phase moves through 20 ms.
    mean_ms((0..400).map(|n| one_way(&mut cell, at(100_000 + n * 500_050), direction, size)))
}

#[test]
fn a_ping_is_the_sum_of_its_parts() {
    for (tti, tti_ms) in [(EdchTti::Ms2, 2.0), (EdchTti::Ms10, 10.0)] {
        let uplink = UmtsUplink::EDch { category: EdchCategory::new(6).unwrap(), tti };
        let (mut cell, ue) = umts(UmtsCarrier { uplink, ..UmtsCarrier::hspa() });
        let through = ms(18);
        cell.base_station =
            BaseStationConfig { downlink: through, uplink: through, grant: through };
        // UE 2 ms, half a TTI of alignment, a TTI; then Node B, Iub and RNC
        let up = sweep(&cell, &ue, UP, 84);
        assert!((up - (2.0 + 1.5 * tti_ms + 18.0)).abs() < 0.1, "{up} ms");
        // RNC, Iub and Node B; 2 slots of HS-SCCH, 1 ms of alignment, 2 ms; UE 4 ms
        let down = sweep(&cell, &ue, DOWN, 84);
        assert!((down - (18.0 + 1.333 + 1.0 + 2.0 + 4.0)).abs() < 0.1, "{down} ms");
        // With 10 to 20 ms to the server and back, these are the 60 to 100 ms that users of HSPA
        // measured.
        assert!((48.0..62.0).contains(&(up + down)), "{} ms", up + down);
    }
}

#[test]
fn harq_costs_its_round_trip() {
    for (tti, round) in [(EdchTti::Ms2, 16.0), (EdchTti::Ms10, 40.0)] {
        let uplink = UmtsUplink::EDch { category: EdchCategory::new(6).unwrap(), tti };
        let (cell, mut ue) = umts(UmtsCarrier { uplink, ..UmtsCarrier::hspa() });
        // Adaptation would make the blocks too small for one packet.
        ue.uplink.mcs = McsMode::Fixed(29);
        ue.downlink.mcs = McsMode::Fixed(29);
        let (up, down) = (sweep(&cell, &ue, UP, 84), sweep(&cell, &ue, DOWN, 84));
        bler(&mut ue, 1.0, 0.0);
        // TS 25.321 11.8.1.1.1: the next turn of the process; HS-DSCH: 12 ms
        let (up_again, down_again) = (sweep(&cell, &ue, UP, 84), sweep(&cell, &ue, DOWN, 84));
        assert!((up_again - up - round).abs() < 0.1, "{up} {up_again} ms");
        assert!((down_again - down - 12.0).abs() < 0.1, "{down} {down_again} ms");
    }
}

#[test]
fn an_rlc_window_bounds_the_rate() {
    // 14 Mb/s of PDUs with 40 bytes of data: 300 of them until the STATUS arrives
    let (cell, mut ue) = umts(hsdpa(10, 15));
    let RlcConfig::Umts(rlc) = &mut ue.downlink.bearer.rlc else { panic!("not UMTS") };
    rlc.pdu = UmtsPdu::Fixed { bytes: 42 };
    rlc.window = 300;
    rlc.arq.poll_pdu = None;
    rlc.arq.t_status_prohibit = ms(0);
    // 25,558 bits hold 75 PDUs: the window is sent in 4 TTIs of 2 ms, and its last PDU polls. UE
    // 4 ms, E-DCH 2 ms, 10 ms to the RNC; the next PDUs are in the Node B by then.
    let round_ms = 8.0 + 4.0 + 2.0 + 10.0;
    near(&saturate(&cell, &ue, 1, DOWN), 300.0 * 320.0 / round_ms * 1_000.0);
}

/// The states of a US operator in 2010 (Qian et al., Characterizing Radio Resource Allocation for
/// 3G Networks, IMC 2010, carrier 1).
fn states(initial: RrcState) -> UmtsConfig {
    UmtsConfig {
        initial,
        setup: ms(2_000),
        setup_state: SetupState::Dch,
        pch_to_fach: ms(200),
        fach_to_dch: ms(1_500),
        uplink_threshold: 543,
        downlink_threshold: 475,
        dch_inactivity: ms(5_000),
        fach_inactivity: ms(12_000),
        pch: PchConfig::Unused,
        paging: Occasions::new(ms(1_280), ms(0)),
        paging_delay: ms(0),
        fach: Fach {
            downlink: Occasions::new(ms(20), ms(0)),
            downlink_time: ms(20),
            uplink: Occasions::new(ms(40), ms(0)),
            uplink_time: ms(40),
            bytes: 85,
        },
    }
}

fn in_state(initial: RrcState) -> Cell {
    let (cell, mut ue) = umts(UmtsCarrier::hspa());
    ue.rrc = Some(RrcConfig::Umts(states(initial)));
    Cell::new(&cell, &[ue], 1)
}

#[test]
fn promotions_cost_what_was_measured() {
    // Idle: 2 s; then UE 2 ms (already spent meanwhile), the TTI, 10 ms
    let mut cell = in_state(RrcState::Idle);
    assert_eq!(one_way(&mut cell, at(100_000), UP, 84), ms(2_000 + 2 + 10));
    // Paged at the occasion at 1,280 ms
    let mut cell = in_state(RrcState::Idle);
    let down = one_way(&mut cell, at(100_000), DOWN, 84);
    assert_eq!(down, ms(1_180 + 2_000 + 2 + 4));
    // CELL_FACH: 1,500 bytes are above the threshold. 1.5 s later a TTI carries the rest, after 37
    // blocks of one PDU with 40 bytes of data: too slow to be finished before.
    let mut cell = in_state(RrcState::CellFach);
    let up = one_way(&mut cell, at(100_000), UP, 1_500);
    assert!((ms(1_500)..ms(1_520)).contains(&up), "{up:?}");
    // Below the threshold: three blocks of the PRACH from 120 ms on
    let mut cell = in_state(RrcState::CellFach);
    assert_eq!(one_way(&mut cell, at(100_000), UP, 84), ms(20 + 3 * 40 + 10));
    // Downlink: two blocks of the S-CCPCH with 80 bytes each; 10 ms of RNC until 110, so 120 to 160
    let mut cell = in_state(RrcState::CellFach);
    assert_eq!(one_way(&mut cell, at(100_000), DOWN, 84), ms(20 + 2 * 20 + 4));
}

#[test]
fn a_packet_behind_others_counts_for_the_traffic_volume_when_it_enters() {
    // TS 25.331 14.4.2.1, event 4A. The first 300 bytes still wait for the S-CCPCH at 120 ms when the next
    // 300 bytes enter the buffer, 11.3 ms after their arrival (RNC 10 ms, HS-SCCH 1.3 ms).
    let mut cell = in_state(RrcState::CellFach);
    cell.keep_log();
    cell.enqueue(at(100_000), DOWN, UeIndex(0), &packet(0, 300));
    cell.enqueue(at(103_000), DOWN, UeIndex(0), &packet(1, 300));
    run(&mut cell, at(3_000_000));
    let dch = core::iter::from_fn(|| cell.poll_event())
        .find(|event| event.kind == RadioEventKind::Rrc(RrcState::CellDch))
        .map(|event| event.at);
    assert!(dch.is_some_and(|dch| (at(1_614_000)..at(1_615_000)).contains(&dch)), "{dch:?}");
}

#[test]
fn inactivity_leads_down_through_fach() {
    let mut cell = in_state(RrcState::CellDch);
    cell.keep_log();
    one_way(&mut cell, at(1_000_000), UP, 84);
    run(&mut cell, at(40_000_000));
    let states: Vec<_> = core::iter::from_fn(|| cell.poll_event())
        .filter_map(|event| match event.kind {
            RadioEventKind::Rrc(state) => Some((event.at, state)),
            _ => None,
        })
        .collect();
    // The last data is the RNC's STATUS to the UE, some ms after the packet.
    let [(fach, RrcState::CellFach), (idle, RrcState::Idle)] = states[..] else {
        panic!("{states:?}");
    };
    assert!((at(6_000_000)..at(6_060_000)).contains(&fach), "{fach:?}");
    assert_eq!(idle - fach, ms(12_000));
}
