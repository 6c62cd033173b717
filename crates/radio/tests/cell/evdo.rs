//! EV-DO Rev. A: rates and delays, compared with the sizes and times of C.S0024-A.

use airpath_base::{Direction, Duration};
use airpath_radio::adaptation::McsMode;
use airpath_radio::cell::*;
use airpath_radio::channel::{ChannelConfig, Quality};
use airpath_radio::evdo::{FORWARD, REVERSE_BITS, SLOT};
use airpath_radio::harq::{Combining, Decoding};
use airpath_radio::mac::Occasions;
use airpath_radio::rrc::connection::ConnectionConfig;
use airpath_radio::rrc::{RrcConfig, RrcState};

use crate::common::*;
use crate::umts::saturate;

fn evdo() -> (CellConfig, UeConfig) {
    let cell = CellConfig::evdo();
    let ue = UeConfig::plain(&cell.access);
    (cell, ue)
}

/// Bits of data in a packet of `bits`: 5 bytes for RLP, MAC and FCS, 2 for the PDU, and 2 for each
/// end of 1,500 bytes.
fn data(bits: u32) -> f64 {
    f64::from(bits - 8 * 7) * 1_500.0 / 1_502.0
}

fn near(rates: &[f64], theory_bps: f64) {
    for rate in rates {
        assert!((rate / theory_bps - 1.0).abs() < 0.02, "{rates:?} of {theory_bps} b/s");
    }
}

#[test]
fn each_drc_has_its_rate_where_nothing_ends_early() {
    let (cell, mut ue) = evdo();
    for (mcs, row) in (0..).zip(FORWARD) {
        ue.downlink.mcs = McsMode::Fixed(mcs);
        // Decoded after the first slot, or after the second.
        let slots = row.slots.min(2);
        let initial = if slots == 1 { 0.0 } else { 1.0 };
        ue.downlink.harq.decoding = Decoding::Fixed { initial, retransmission: 0.0 };
        let bps = data(row.bits) / (SLOT.as_secs_f64() * f64::from(slots));
        near(&saturate(&cell, &ue, 1, DOWN), bps);
    }
    // 5,120 bits in each slot: 3.07 Mb/s, time-shared
    near(&saturate(&cell, &ue, 3, DOWN), data(5_120) / SLOT.as_secs_f64() / 3.0);
}

#[test]
fn packets_end_early_in_a_channel_that_is_better_than_they_need() {
    let (cell, mut ue) = evdo();
    let ir = Decoding::Curve(Combining::IncrementalRedundancy { mother_rate: 0.2 });
    ue.downlink.harq.decoding = ir;
    // DRC 1: 1,024 bits in 16 slots. 1,024 bits are 0.4 bits per chip in 2,560 coded chips, for
    // which -2.1 dB suffice: each slot brings 1 / 1.25 of what they need at that SINR.
    ue.downlink.mcs = McsMode::Fixed(0);
    let slots = |sinr_db: f64| {
        let mut ue = ue.clone();
        ue.downlink.channel = ChannelConfig::Constant(Quality::Sinr(sinr_db));
        let mut cell = Cell::new(&cell, &[ue], 1);
        for number in 0..100 {
            cell.enqueue(at(0), DOWN, UeIndex(0), &packet(number, 100));
        }
        run(&mut cell, at(20_000_000));
        let mut slots = 0.0;
        cell.observe(at(20_000_000), &mut |meter| {
            if meter.direction == DOWN {
                slots = meter.radio.prbs as f64 / meter.radio.blocks as f64;
            }
        });
        slots
    };
    for (sinr_db, expected) in [(-12.8, 15.0), (-10.0, 8.0), (-7.0, 4.0), (2.0, 1.0)] {
        let found = slots(sinr_db);
        assert!((found - expected).abs() < 0.5, "{sinr_db} dB: {found} slots");
    }
}

#[test]
fn adaptation_follows_the_channel() {
    let (cell, mut ue) = evdo();
    // Bender et al. 2000, table 1: 307.2 kb/s at -4 dB, 1,228.8 at 3 dB, 2,457.6 at 9.5 dB; packets
    // that terminate early give a little more. The model agrees within 1 dB, a step of the table.
    for (sinr_db, kbps) in [(-4.0, 307.2), (3.0, 1_228.8), (9.5, 2_457.6)] {
        ue.downlink.channel = ChannelConfig::Constant(Quality::Sinr(sinr_db));
        let rate = saturate(&cell, &ue, 1, DOWN)[0] / 1_000.0;
        assert!(rate > 0.7 * kbps && rate < 1.6 * kbps, "{sinr_db} dB: {rate} kb/s");
    }
}

#[test]
fn a_reverse_packet_has_up_to_four_subpackets() {
    let (cell, mut ue) = evdo();
    for (mcs, bits) in (0..).zip(REVERSE_BITS).skip(6) {
        ue.uplink.mcs = McsMode::Fixed(mcs);
        // Agilent 8960 user's guide, R-Data packet size: after 1 subpacket, and after 2
        for (initial, subpackets) in [(0.0, 1), (1.0, 2)] {
            ue.uplink.harq.decoding = Decoding::Fixed { initial, retransmission: 0.0 };
            let bps = data(bits) / (SLOT * 4 * subpackets).as_secs_f64();
            near(&saturate(&cell, &ue, 2, UP), bps);
        }
    }
}

#[test]
fn a_ping_is_the_sum_of_its_parts() {
    let (cell, mut ue) = evdo();
    bler(&mut ue, 0.0, 0.0);
    let mean = |direction: Direction| {
        let mut cell = Cell::new(&cell, core::slice::from_ref(&ue), 1);
        mean_ms((0..400).map(|n| one_way(&mut cell, at(100_000 + n * 500_050), direction, 84)))
    };
    // 10 ms, half a slot, a slot, 5 ms; 2 ms, half a subframe, a subframe, 10 ms
    let (down, up) = (mean(DOWN), mean(UP));
    assert!((down - (10.0 + 0.83 + 1.67 + 5.0)).abs() < 0.1, "{down} ms");
    assert!((up - (2.0 + 3.33 + 6.67 + 10.0)).abs() < 0.2, "{up} ms");
}

#[test]
fn a_dormant_terminal_connects_first() {
    let (cell, mut ue) = evdo();
    bler(&mut ue, 0.0, 0.0);
    ue.rrc = Some(RrcConfig::Connection(ConnectionConfig {
        initial: RrcState::Idle,
        setup: ms(400),
        inactivity: Some(ms(10_000)),
        inactive: None,
        paging: Occasions::new(ms(5_120), ms(0)),
        paging_delay: Duration::ZERO,
    }));
    let mut cell = Cell::new(&cell, &[ue], 1);
    let first = one_way(&mut cell, at(100_000), UP, 84);
    assert!((ms(410)..ms(425)).contains(&first), "{first:?}");
    let second = one_way(&mut cell, at(2_000_000), UP, 84);
    assert!(second < ms(26), "{second:?}");
    let third = one_way(&mut cell, at(20_000_000), UP, 84);
    assert!((ms(410)..ms(425)).contains(&third), "{third:?}");
}
