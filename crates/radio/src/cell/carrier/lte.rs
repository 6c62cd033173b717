//! Subframes of LTE.

use super::link::{CarrierLink, Shape, Shapes, Sizes};
use super::{Parts, SlotPlan};
use crate::cell::config::{CellConfig, LteCarrier, LteDuplex, LteLayers};
use crate::harq::Block;
use crate::lte::tdd::{self, Configuration, Subframe};
use crate::lte::{self, DownlinkTable, Mcs};

pub(super) fn parts(carrier: &LteCarrier, config: &CellConfig) -> Parts {
    let (mut down, mut up) = (Shapes::default(), Shapes::default());
    let plans = match carrier.duplex {
        LteDuplex::Fdd => vec![SlotPlan {
            downlink: Some(down.add(Shape::Lte)),
            uplink: Some(up.add(Shape::Lte)),
            uplink_control: true,
            feedback: u64::from(lte::FDD_FEEDBACK_DELAY),
            grants: vec![u64::from(lte::FDD_GRANT_DELAY)],
            answer: Some(u64::from(lte::FDD_PHICH_DELAY)),
            ..SlotPlan::default()
        }],
        LteDuplex::Tdd { configuration, special } => {
            tdd_plans(configuration, special, &mut down, &mut up)
        }
    };
    let period = plans.len() as u64;
    let codewords = match carrier.layers {
        LteLayers::One => 1,
        LteLayers::Two => 2,
    };
    let table = carrier.downlink_table;
    let elements = lte::downlink_elements(carrier.control_symbols, carrier.ports);
    let mcs = (0..29).map_while(|index| lte::downlink_mcs(table, index));
    let blocks = mcs.map(|mcs| block(mcs, carrier.downlink_prbs, elements)).collect();
    let sizes = (carrier.downlink_prbs, Sizes::LteDownlink { table, codewords });
    let downlink = CarrierLink::new(sizes, cqi(table), blocks, config.bler, (down, period));
    let mcs = (0..29).map_while(lte::uplink_mcs);
    let prbs = lte::uplink_blocks(carrier.uplink_prbs);
    let blocks = mcs.map(|mcs| block(mcs, prbs, lte::UPLINK_ELEMENTS)).collect();
    let sizes = (carrier.uplink_prbs, Sizes::LteUplink);
    let uplink =
        CarrierLink::new(sizes, cqi(DownlinkTable::Qam64), blocks, config.bler, (up, period));
    (plans, downlink, uplink)
}

fn tdd_plans(
    configuration: Configuration,
    special: u8,
    down: &mut Shapes,
    up: &mut Shapes,
) -> Vec<SlotPlan> {
    // TS 36.211 4.2: a frame of ten subframes
    let mut plans: Vec<SlotPlan> = (0..10)
        .map(|subframe| {
            let kind = configuration.subframe(subframe);
            let downlink = match kind {
                Subframe::Downlink => Some(Shape::Lte),
                Subframe::Special => {
                    tdd::special_resource_blocks(special, 1).map(|_| Shape::LteSpecial(special))
                }
                Subframe::Uplink => None,
            };
            let uplink = (kind == Subframe::Uplink).then_some(Shape::Lte);
            SlotPlan {
                downlink: downlink.map(|shape| down.add(shape)),
                uplink: uplink.map(|shape| up.add(shape)),
                uplink_control: kind == Subframe::Uplink,
                feedback: configuration.feedback_delay(subframe).map_or(0, u64::from),
                grants: Vec::new(),
                answer: configuration.phich_delay(subframe).map(u64::from),
                ..SlotPlan::default()
            }
        })
        .collect();
    // TS 36.213 8.0. If several subframes can grant one (configuration 0), the last does.
    for subframe in (0..10).filter(|&n| configuration.subframe(n) == Subframe::Uplink) {
        let grants = |delay: &u64| {
            let delays = configuration.grant_delays(subframe + 10 - delay);
            delays.iter().any(|&known| u64::from(known) == *delay)
        };
        // k is 4 to 7.
        if let Some(delay) = (4..=7).find(grants) {
            plans[((subframe + 10 - delay) % 10) as usize].grants.push(delay);
        }
    }
    plans.iter_mut().for_each(|plan| plan.grants.sort_unstable());
    plans
}

/// The efficiency of an MCS on the whole carrier: for other sizes the transport block table rounds
/// it differently.
fn block(mcs: Mcs, prbs: u32, elements: u32) -> Block {
    let size = lte::transport_block_size(mcs.tbs_index, prbs).unwrap_or(0);
    Block {
        efficiency: f64::from(size) / f64::from((prbs * elements).max(1)),
        modulation_bits: mcs.modulation.order() as u8,
        transmissions: 0,
    }
}

fn cqi(table: DownlinkTable) -> impl Iterator<Item = f64> {
    (1..=15)
        .filter_map(move |index| lte::cqi_scheme(table, index))
        .map(|scheme| scheme.efficiency())
}
