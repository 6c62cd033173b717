//! Subframes of UMTS and slots of EV-DO.

use airpath_base::Duration;

use super::link::{CarrierLink, Channel, Shape, Shapes, Sizes};
use super::{Parts, SlotPlan};
use crate::adaptation::{BlerModel, combined};
use crate::cell::config::{CellConfig, UmtsCarrier, UmtsDownlink, UmtsUplink};
use crate::evdo;
use crate::harq::Block;
use crate::umts;

/// Timing of one direction, in slots.
struct Timing {
    /// From the beginning of a TTI to the beginning of the next.
    tti: u64,
    /// From the beginning of a block until its sender knows whether it was decoded.
    feedback: u64,
}

pub(super) fn umts(carrier: &UmtsCarrier, config: &CellConfig) -> Parts {
    let slots = |time: Duration| time.as_nanos() / umts::SUBFRAME.as_nanos();
    let down = Timing {
        tti: slots(carrier.downlink.tti()),
        feedback: match carrier.downlink {
            UmtsDownlink::HsDsch { .. } => u64::from(umts::HS_ROUND_TRIP),
            UmtsDownlink::Dch(rate) => slots(rate.tti()),
        },
    };
    let up = Timing {
        tti: slots(carrier.uplink.tti()),
        feedback: match carrier.uplink {
            // The E-HICH arrives before the process's next turn (TS 25.211 7.10).
            UmtsUplink::EDch { tti, .. } => slots(tti.duration()) * u64::from(tti.processes()) - 1,
            UmtsUplink::Dch(rate) => slots(rate.tti()),
        },
    };
    let (plans, [down, up]) = plans(&down, &up);
    let downlink = match carrier.downlink {
        UmtsDownlink::HsDsch { category, codes } => {
            let formats = category.formats().iter().take_while(|row| row.codes <= codes);
            let chips = f64::from(umts::SUBFRAME_CHIPS);
            let block = |row: &umts::HsFormat| Block {
                efficiency: f64::from(row.bits) / chips,
                modulation_bits: row.modulation.order() as u8,
                transmissions: 0,
            };
            let blocks = formats.clone().map(block).collect();
            let bytes = formats.map(|row| row.bits / 8).collect();
            link(Sizes::Whole { bytes, channel: Channel::Shared }, blocks, config, down)
        }
        UmtsDownlink::Dch(rate) => dedicated(rate.bits() / 8, rate.tti(), config, down),
    };
    let uplink = carrier.uplink;
    let uplink = dedicated(uplink.most_bytes(), uplink.tti(), config, up);
    (plans, downlink, uplink)
}

pub(super) fn evdo(config: &CellConfig) -> Parts {
    let subframe = u64::from(evdo::SUBFRAME_SLOTS);
    let down = Timing { tti: 1, feedback: u64::from(evdo::FORWARD_INTERLACES) };
    let turns = u64::from(evdo::REVERSE_INTERLACES);
    let up = Timing { tti: subframe, feedback: subframe * turns - 1 };
    let (plans, [down, up]) = plans(&down, &up);
    let chips = f64::from(evdo::SLOT_CHIPS);
    let block = |bits: u32, chips: f64, modulation_bits: u8, transmissions: u32| Block {
        efficiency: f64::from(bits) / chips,
        modulation_bits,
        transmissions: transmissions as u8,
    };

    let blocks: Vec<_> = evdo::FORWARD
        .iter()
        .map(|row| block(row.bits, chips, row.modulation_bits, row.slots))
        .collect();
    let slots: Vec<u32> = evdo::FORWARD.iter().map(|row| row.slots).collect();
    let thresholds = blocks.iter().map(|block| threshold_db(config.bler, block)).collect();
    let bytes = evdo::FORWARD.iter().map(|row| row.bits / 8).collect();
    let downlink = link(Sizes::Whole { bytes, channel: Channel::Shared }, blocks, config, down)
        .ending_early(slots, thresholds);

    let chips = chips * f64::from(evdo::SUBFRAME_SLOTS);
    let blocks: Vec<_> = evdo::REVERSE_BITS
        .iter()
        .map(|&bits| block(bits, chips, 2, evdo::REVERSE_SUBPACKETS))
        .collect();
    let thresholds = blocks.iter().map(|block| threshold_db(config.bler, block)).collect();
    let bytes = evdo::REVERSE_BITS.iter().map(|bits| bits / 8).collect();
    let uplink = link(Sizes::Whole { bytes, channel: Channel::Dedicated }, blocks, config, up)
        .ending_early(Vec::new(), thresholds);
    (plans, downlink, uplink)
}

/// SINR in dB at which a block fails with a probability of 10 % after all its transmissions, each
/// of which has new bits until the mother code of rate 1/5 repeats.
fn threshold_db(model: BlerModel, block: &Block) -> f64 {
    let transmissions = f64::from(block.transmissions);
    let rate = block.efficiency / f64::from(block.modulation_bits);
    let spread = transmissions.min(rate / MOTHER_RATE).max(1.0);
    // The result for one unit of energy in each transmission.
    let (gain_db, efficiency) = combined(transmissions, block.efficiency, spread);
    model.threshold_db(efficiency) - gain_db
}

/// Mother code rate of EV-DO's turbo code (C.S0024-A 9.3.1.3.2.3).
const MOTHER_RATE: f64 = 0.2;

/// The slots of one period, in which TTIs begin together.
fn plans(down: &Timing, up: &Timing) -> (Vec<SlotPlan>, [(Shapes, u64); 2]) {
    let (mut down_shapes, mut up_shapes) = (Shapes::default(), Shapes::default());
    // The longer TTI is a multiple of the other.
    let period = down.tti.max(up.tti);
    let plans = (0..period)
        .map(|slot| {
            let begins = |timing: &Timing| slot % timing.tti == 0;
            SlotPlan {
                downlink: begins(down).then(|| down_shapes.add(Shape::Cdma)),
                uplink: begins(up).then(|| up_shapes.add(Shape::Cdma)),
                uplink_control: true,
                feedback: down.feedback - 1,
                // A retransmission is decided in the slot before its turn.
                grants: if slot % up.tti == up.tti - 1 { vec![1] } else { Vec::new() },
                answer: Some(up.feedback),
                ..SlotPlan::default()
            }
        })
        .collect();
    (plans, [(down_shapes, period), (up_shapes, period)])
}

/// A dedicated channel per UE, with blocks of up to `most` bytes in each `tti`.
fn dedicated(most: u32, tti: Duration, config: &CellConfig, shapes: (Shapes, u64)) -> CarrierLink {
    let chips = tti.as_nanos() as f64 * 1e-9 * f64::from(umts::CHIP_RATE);
    let sizes = steps(most);
    let block = |&bytes: &u32| Block {
        efficiency: 8.0 * f64::from(bytes) / chips,
        modulation_bits: 2,
        transmissions: 0,
    };
    let blocks = sizes.iter().map(block).collect();
    let sizes = Sizes::Whole { bytes: sizes, channel: Channel::Dedicated };
    link(sizes, blocks, config, shapes)
}

/// Block sizes to which a UE can fall back when its power does not suffice for the largest: a
/// geometric series from an RLC PDU on, in place of the tables of TS 25.321 annex B.
fn steps(most: u32) -> Vec<u32> {
    const STEPS: u32 = 24;
    const LEAST: f64 = 48.0;
    let ratio = (f64::from(most) / LEAST).max(1.0);
    let size = |step: u32| LEAST * libm::pow(ratio, f64::from(step) / f64::from(STEPS - 1));
    let mut sizes: Vec<u32> = (0..STEPS).map(|step| (size(step) + 0.5) as u32).collect();
    sizes.iter_mut().for_each(|size| *size = (*size).min(most));
    sizes.dedup();
    sizes
}

fn link(
    sizes: Sizes,
    blocks: Vec<Block>,
    config: &CellConfig,
    shapes: (Shapes, u64),
) -> CarrierLink {
    let efficiencies: Vec<f64> = blocks.iter().map(|block| block.efficiency).collect();
    CarrierLink::new((1, sizes), efficiencies, blocks, config.bler, shapes)
}
