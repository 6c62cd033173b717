//! Slots of NR.

use super::link::{CarrierLink, Shape, Shapes, Sizes};
use super::{Parts, SlotPlan};
use crate::cell::config::{CellConfig, NrCarrier, NrDuplex, NrLink};
use crate::harq::Block;
use crate::nr::{self, CqiTable, McsTable, SYMBOLS_PER_SLOT};

pub(super) fn parts(carrier: &NrCarrier, config: &CellConfig) -> Parts {
    let formats = formats(&carrier.duplex);
    let period = formats.len() as u64;
    let (mut down, mut up) = (Shapes::default(), Shapes::default());
    let (k1, k2) = (u64::from(carrier.offsets.k1), u64::from(carrier.offsets.k2));
    let granting = carrier.granting;
    let at = |slot: u64| formats[(slot % period) as usize];
    let mut plans: Vec<SlotPlan> = (0..period)
        .map(|slot| {
            let (downlink, uplink) = at(slot);
            let downlink = usable(downlink, carrier.control_symbols, &carrier.downlink);
            let data = usable(uplink, carrier.feedback_symbols, &carrier.uplink);
            // TS 38.213 9.2.3; in a slot without uplink nothing is sent (TS 38.213 11.1)
            let feedback = (k1..k1 + period).find(|later| at(slot + later).1 > 0);
            SlotPlan {
                downlink: downlink.map(|symbols| down.add(Shape::Nr(symbols))),
                uplink: data.map(|symbols| up.add(Shape::Nr(symbols))),
                uplink_control: uplink > 0,
                feedback: feedback.unwrap_or(k1),
                grants: Vec::new(),
                answer: None,
                ..SlotPlan::default()
            }
        })
        .collect();
    for slot in
        (0..period).filter(|&slot| plans[slot as usize].uplink.is_some()).collect::<Vec<_>>()
    {
        // TS 38.214 6.1.2.1: the last slot with a PDCCH at least K_2 earlier
        let hears = |delay: &u64| {
            let (downlink, uplink) = at(slot + period * (delay / period + 1) - delay);
            let special = downlink < SYMBOLS_PER_SLOT && uplink < SYMBOLS_PER_SLOT;
            downlink >= carrier.control_symbols.max(1) && (granting.in_special || !special)
        };
        let longest = if granting.exact_k2 { k2 } else { k2 + period - 1 };
        if let Some(delay) = (k2..=longest).find(hears) {
            let granting = (slot + period * (delay / period + 1) - delay) % period;
            plans[granting as usize].grants.push(delay);
        }
    }
    plans.iter_mut().for_each(|plan| plan.grants.sort_unstable());
    let link = |link: &NrLink, shapes| {
        let schemes =
            (0..nr::mcs_count(link.mcs_table)).filter_map(|index| nr::mcs(link.mcs_table, index));
        let blocks = schemes.map(|scheme| Block {
            efficiency: scheme.efficiency(),
            modulation_bits: scheme.modulation.order() as u8,
            transmissions: 0,
        });
        let cqi = (1..=15).filter_map(|index| nr::cqi_scheme(cqi_table(link.mcs_table), index));
        let cqi = cqi.map(|scheme| scheme.efficiency());
        let sizes = (link.prbs, Sizes::Nr(*link));
        CarrierLink::new(sizes, cqi, blocks.collect(), config.bler, (shapes, period))
    };
    let (downlink, uplink) = (link(&carrier.downlink, down), link(&carrier.uplink, up));
    (plans, downlink, uplink)
}

/// Downlink and uplink symbols of each slot of a period.
fn formats(duplex: &NrDuplex) -> Vec<(u32, u32)> {
    match duplex {
        NrDuplex::Fdd => vec![(SYMBOLS_PER_SLOT, SYMBOLS_PER_SLOT)],
        NrDuplex::Tdd(pattern) => (0..pattern.slots() as u64)
            .map(|slot| pattern.slot(slot))
            .map(|format| (u32::from(format.downlink), u32::from(format.uplink)))
            .collect(),
    }
}

/// Symbols for data; `None`: too few.
fn usable(symbols: u32, control: u32, link: &NrLink) -> Option<u32> {
    symbols.checked_sub(control).filter(|&left| left >= link.least_symbols.max(1))
}

/// The CQI table that belongs to an MCS table (TS 38.214 5.1.3.1, 5.2.2.1).
const fn cqi_table(table: McsTable) -> CqiTable {
    match table {
        McsTable::Qam256 => CqiTable::Qam256,
        McsTable::Qam64LowSe | McsTable::PrecodedLowSe => CqiTable::Qam64LowSe,
        McsTable::Qam64 | McsTable::Precoded => CqiTable::Qam64,
    }
}
