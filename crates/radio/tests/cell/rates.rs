//! Full buffers: the theoretical rate within 2 %, shared within 2 %.

use airpath_base::{Direction, Duration, Instant, Rate};
use airpath_radio::adaptation::McsMode;
use airpath_radio::cell::*;
use airpath_radio::lte::{self, DownlinkTable, tdd};
use airpath_radio::nr::{self, Allocation};
use airpath_radio::scheduler::{Policy, RateCap};

use crate::common::*;

/// Keeps the buffers of `count` UEs full for half a second; returns delivered bits per second of
/// each, measured over the second half.
fn saturate(cell: &CellConfig, ue: &UeConfig, count: u32, direction: Direction) -> Vec<f64> {
    let mut ue = ue.clone();
    bler(&mut ue, 0.0, 0.0);
    for link in [&mut ue.downlink, &mut ue.uplink] {
        link.mcs = McsMode::Fixed(27);
        link.bearer.buffer.bytes = None;
    }
    let mut cell = Cell::new(cell, &vec![ue; count as usize], 1);
    let (begin, end) = (at(250_000), at(500_000));
    let mut inside = vec![0u32; count as usize];
    let mut bytes = vec![0u64; count as usize];
    let fill = |cell: &mut Cell, now, inside: &mut u32, ue| {
        // At most 1.2 MB: several slots.
        while *inside < 800 {
            cell.enqueue(now, direction, UeIndex(ue), &packet(0, 1500));
            *inside += 1;
        }
    };
    for ue in 0..count {
        fill(&mut cell, Instant::ZERO, &mut inside[ue as usize], ue);
    }
    while let Some(next) = cell.next_event().filter(|&next| next <= end) {
        while let Some(departure) = cell.poll(next) {
            let ue = departure.ue.0;
            inside[ue as usize] -= 1;
            if departure.at > begin {
                bytes[ue as usize] += u64::from(departure.packet.size);
            }
        }
        for ue in 0..count {
            fill(&mut cell, next, &mut inside[ue as usize], ue);
        }
    }
    let seconds = (end - begin).as_secs_f64();
    bytes.into_iter().map(|bytes| 8.0 * bytes as f64 / seconds).collect()
}

/// Checks that the sum is the theoretical rate less headers, and that each UE gets its share, both
/// within 2 %.
fn check(cell: &CellConfig, ue: &UeConfig, count: u32, direction: Direction, theory_bps: f64) {
    let rates = saturate(cell, ue, count, direction);
    let sum: f64 = rates.iter().sum();
    let name = format!("{count} UEs {direction:?}: {sum:.0} of {theory_bps:.0} b/s");
    assert!((sum / theory_bps - 1.0).abs() < 0.02, "{name}");
    for rate in rates {
        assert!((rate / (sum / f64::from(count)) - 1.0).abs() < 0.02, "{name}: one has {rate:.0}");
    }
}

fn both_ways(cell: &CellConfig, (down, up): (f64, f64)) {
    let ue = UeConfig::plain(&cell.access);
    check(cell, &ue, 1, DOWN, down);
    check(cell, &ue, 1, UP, up);
    check(cell, &ue, 4, DOWN, down);
    check(cell, &ue, 4, UP, up);
}

/// Bits in a slot, by TS 38.214 5.1.3.2.
fn nr_bits(link: &NrLink, symbols: u32) -> f64 {
    let slot = Allocation { prbs: link.prbs, symbols, dmrs_per_prb: 12, overhead_per_prb: 0 };
    let scheme = nr::mcs(link.mcs_table, 27).unwrap();
    f64::from(nr::transport_block_size(slot.resource_elements(), scheme, link.layers))
}

#[test]
fn nr_n78_100_mhz() {
    // DDDSU 10:2:2, two control symbols: 12, 12, 12 and 8 symbols down, 14 up, in 2.5 ms
    let carrier = NrCarrier::n78_100_mhz();
    let down = 3.0 * nr_bits(&carrier.downlink, 12) + nr_bits(&carrier.downlink, 8);
    let up = nr_bits(&carrier.uplink, 14);
    both_ways(&CellConfig::nr(carrier), (down * 400.0, up * 400.0));
}

#[test]
fn nr_fdd_20_mhz() {
    let carrier = NrCarrier::fdd_20_mhz();
    let (down, up) = (nr_bits(&carrier.downlink, 12), nr_bits(&carrier.uplink, 14));
    both_ways(&CellConfig::nr(carrier), (down * 1000.0, up * 1000.0));
}

/// Bits in a subframe at MCS 27: one codeword.
fn lte_bits(is_uplink: bool, prbs: u32) -> f64 {
    let mcs =
        if is_uplink { lte::uplink_mcs(27) } else { lte::downlink_mcs(DownlinkTable::Qam64, 27) };
    f64::from(lte::transport_block_size(mcs.unwrap().tbs_index, prbs).unwrap())
}

#[test]
fn lte_fdd_20_mhz() {
    let rates = (2.0 * lte_bits(false, 100) * 1000.0, lte_bits(true, 96) * 1000.0);
    both_ways(&CellConfig::lte(LteCarrier::fdd_20_mhz()), rates);
}

#[test]
fn lte_tdd_configuration_1() {
    // DSUUDDSUUD, special subframe 7: 4 D, 2 S at 3/4 of the PRBs, 4 U in 10 ms
    let configuration = tdd::Configuration::new(1).unwrap();
    let duplex = LteDuplex::Tdd { configuration, special: 7 };
    let carrier = LteCarrier { uplink_prbs: 96, ..LteCarrier::new(duplex, 100) };
    let down = 2.0 * (4.0 * lte_bits(false, 100) + 2.0 * lte_bits(false, 75));
    both_ways(&CellConfig::lte(carrier), (down * 100.0, 4.0 * lte_bits(true, 96) * 100.0));
}

#[test]
fn every_policy_shares_equally_among_equals() {
    let mut cell = CellConfig::nr(NrCarrier::fdd_20_mhz());
    let theory = nr_bits(&NrCarrier::fdd_20_mhz().downlink, 12) * 1000.0;
    for policy in [
        Policy::RoundRobin,
        Policy::MaxRate,
        Policy::ProportionalFair { time_constant: Duration::from_millis(100) },
    ] {
        cell.downlink_scheduler.policy = policy;
        check(&cell, &UeConfig::plain(&cell.access), 5, DOWN, theory);
    }
}

#[test]
fn a_rate_cap_holds_each_way() {
    let cell = CellConfig::nr(NrCarrier::fdd_20_mhz());
    let mut ue = UeConfig::plain(&cell.access);
    for link in [&mut ue.downlink, &mut ue.uplink] {
        let rate = Rate::from_bps(10_000_000).unwrap();
        link.cap = Some(RateCap { rate, bucket_bytes: 3_000 });
    }
    // Includes the headers of RLC, MAC and PDCP: 10 of 1,510 bytes
    check(&cell, &ue, 1, DOWN, 9_930_000.0);
    check(&cell, &ue, 3, DOWN, 29_800_000.0);
    check(&cell, &ue, 1, UP, 9_930_000.0);
}
