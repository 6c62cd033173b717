//! A base station that goes by requests and reports alone, and whose one K_2 leaves few slots:
//! OpenAirInterface's with its UE, compared with slots counted by hand.
//!
//! DDDSU with 30 kHz, 4 uplink symbols in S, the last for SRS. K_2 is 6 and special slots have no
//! PDCCH, so PUSCH is only in slots 3, 8, 13 and 18, granted in slots 17, 2, 7 and 12. Slots are
//! scheduled 6 slots ahead. SR occasions are in slots 3 and 13.

use airpath_base::Instant;
use airpath_radio::cell::*;
use airpath_radio::harq::HarqTiming;
use airpath_radio::mac::Occasions;
use airpath_radio::mac::bsr::RegularTrigger;
use airpath_radio::nr::McsTable;
use airpath_radio::rlc::Subheaders;
use airpath_radio::scheduler::grants::{EstimateConfig, Requests};

use crate::common::*;

fn openair() -> (CellConfig, UeConfig) {
    let mut carrier = NrCarrier::n78_100_mhz();
    carrier.duplex = NrDuplex::Tdd("DDDSU 6:4:4".parse().unwrap());
    carrier.uplink = NrLink {
        prbs: 106,
        layers: 1,
        mcs_table: McsTable::Qam64,
        dmrs_per_prb: 6,
        least_symbols: 3,
        ..carrier.uplink
    };
    carrier.feedback_symbols = 1;
    carrier.offsets.k2 = 6;
    carrier.granting = Granting { exact_k2: true, in_special: false };
    let mut cell = CellConfig::nr(carrier);
    cell.base_station = BaseStationConfig { grant: ms(3), ..cell.base_station };
    let mut ue = UeConfig::plain(&cell.access);
    bler(&mut ue, 0.0, 0.0);
    ue.uplink.mcs = airpath_radio::adaptation::McsMode::Fixed(19);
    ue.uplink.harq.timing = HarqTiming::Asynchronous { processing: ms(3) };
    ue.uplink.bearer.pdcp.header_bytes = 3;
    ue.uplink.subheaders = Subheaders::Long;
    ue.processing.uplink = ms(0);
    ue.sr.occasions = Some(Occasions::new(ms(5), us(1_500)));
    ue.bsr.regular = RegularTrigger::WaitingData;
    ue.estimate = EstimateConfig {
        request_grant: 16,
        least_prbs: 5,
        request_mcs: Some(16),
        header_room: false,
        requests: Requests::All,
        assume_more: false,
        ..EstimateConfig::default()
    };
    (cell, ue)
}

/// The uplink blocks that a packet of 128 bytes at `micros` takes, the first one of the run: slots
/// and bytes of first transmissions, and slots of all others.
fn blocks(cell: &CellConfig, ue: &UeConfig, micros: u64) -> (Vec<(u64, u32)>, Vec<u64>) {
    let mut cell = Cell::new(cell, core::slice::from_ref(ue), 1);
    cell.keep_log();
    cell.enqueue(at(micros), UP, UeIndex(0), &packet(0, 128));
    run(&mut cell, Instant::ZERO + ms(100));
    let (mut first, mut again) = (Vec::new(), Vec::new());
    while let Some(event) = cell.poll_event() {
        let RadioEventKind::Block(block) = event.kind else { continue };
        let slot = event.at.as_nanos() / 500_000;
        match (block.direction, block.transmission) {
            (DOWN, _) => {}
            (UP, 1) => first.push((slot, block.bytes)),
            (UP, _) => again.push(slot),
        }
    }
    (first, again)
}

#[test]
fn a_packet_goes_up_as_requests_and_reports_allow() {
    let (cell, ue) = openair();
    // SR in slot 3, known in slot 10, granted in 12 for 18: 5 PRBs at MCS 16 are 48 bytes, of which
    // BSR and subheader take 5 and RLC 3, so 40 of 131 fit. The request in slot 13 is answered in
    // slot 28: 38 bytes. The report in slot 18, 91 bytes or level 102, asks for 54 besides the 48
    // that are granted: 57 at MCS 19 in slot 33, so 47 bytes. The request in slot 23 is answered in
    // slot 38, with the last 6.
    let (first, _) = blocks(&cell, &ue, 1_000);
    assert_eq!(first, [(18, 48), (28, 48), (33, 57), (38, 48)]);
}

#[test]
fn where_and_when_a_packet_arrives_decides_its_wait() {
    let (cell, ue) = openair();
    for (micros, slot) in [(1_500, 18), (1_600, 28), (6_500, 28), (6_600, 38)] {
        assert_eq!(blocks(&cell, &ue, micros).0[0].0, slot, "{micros} us");
    }
}

#[test]
fn a_harq_round_takes_15_slots() {
    let (cell, mut ue) = openair();
    bler(&mut ue, 1.0, 0.0);
    let (first, again) = blocks(&cell, &ue, 1_000);
    assert_eq!((first[0].0, again[0]), (18, 33));
}

#[test]
fn with_smallest_k2_other_slots_carry_data_too() {
    let (mut cell, ue) = openair();
    let Access::Nr(carrier) = &mut cell.access else { unreachable!() };
    carrier.granting = Granting::default();
    // Slot 13, special, now has a PDCCH, and grants slot 19.
    assert_eq!(blocks(&cell, &ue, 1_000).0[0].0, 18);
    let slots: Vec<u64> = (0..40).map(|n| blocks(&cell, &ue, 500 * n).0[0].0 % 5).collect();
    assert!(slots.iter().all(|slot| [3, 4].contains(slot)), "{slots:?}");
}

#[test]
fn a_k2_that_no_pdcch_can_give_is_refused() {
    let (mut cell, _) = openair();
    let Access::Nr(carrier) = &mut cell.access else { unreachable!() };
    carrier.duplex = NrDuplex::Tdd("DSUUU 6:4:4".parse().unwrap());
    carrier.uplink.least_symbols = 14;
    carrier.feedback_symbols = 0;
    carrier.offsets.k2 = 1;
    assert_eq!(cell.check(), Err(CellConfigError::NoGrant(1)));
}
