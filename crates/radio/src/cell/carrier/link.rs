//! Block sizes.

use std::cell::OnceCell;

use crate::adaptation::{BlerModel, LinkTables};
use crate::cell::config::NrLink;
use crate::harq::Block;
use crate::lte::{self, tdd};
use crate::nr::{self, Allocation};

/// Block sizes of one direction.
#[derive(Debug)]
pub(crate) struct CarrierLink {
    pub(crate) prbs: u32,
    pub(crate) tables: LinkTables,
    blocks: Vec<Block>,
    classes: Vec<Class>,
    sizes: Sizes,
    /// Number of slots of a period.
    period: u64,
    /// Planned number of slots of a block, by MCS; empty: one.
    slots: Vec<u32>,
}

/// A class of slots whose PRBs hold the same.
#[derive(Debug)]
struct Class {
    shape: Shape,
    /// Number of such slots in a period.
    slots: u64,
    /// Rows by MCS; each is computed when it is first needed.
    rows: Vec<OnceCell<Row>>,
}

/// Block sizes of an MCS.
#[derive(Debug)]
struct Row {
    /// Bytes by number of PRBs, from 1 on.
    bytes: Box<[u32]>,
    /// Bits per PRB of a block of all PRBs, averaged over the slots that a block is planned for.
    bits_per_prb: u32,
}

/// How much a PRB of a slot holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// Number of symbols for data.
    Nr(u32),
    /// A full subframe.
    Lte,
    /// DwPTS of a special subframe configuration.
    LteSpecial(u8),
    /// One TTI of UMTS.
    Cdma,
}

#[derive(Clone, Debug)]
pub(super) enum Sizes {
    Nr(NrLink),
    LteDownlink {
        table: lte::DownlinkTable,
        codewords: u32,
    },
    LteUplink,
    /// A TTI is one resource block: bytes by MCS.
    Whole {
        bytes: Vec<u32>,
        channel: Channel,
    },
}

/// How UEs share a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Channel {
    /// All UEs share it; one UE has it per TTI.
    Shared,
    /// Each UE has its own.
    Dedicated,
}

impl CarrierLink {
    /// Bytes of a block of `prbs` at `mcs`.
    #[inline]
    pub(crate) fn bytes(&self, class: usize, mcs: u8, prbs: u32) -> u32 {
        let row = &self.row(class, mcs).bytes;
        prbs.checked_sub(1).and_then(|index| row.get(index as usize)).copied().unwrap_or(0)
    }

    /// Fewest PRBs that hold `bytes`; one more than the carrier has if none suffice.
    #[inline]
    pub(crate) fn prbs_for(&self, class: usize, mcs: u8, bytes: u64) -> u32 {
        if self.is_dedicated() {
            return 1;
        }
        let row = &self.row(class, mcs).bytes;
        row.partition_point(|&size| u64::from(size) < bytes) as u32 + 1
    }

    /// Whether every UE has its own channel.
    pub(crate) const fn is_dedicated(&self) -> bool {
        matches!(self.sizes, Sizes::Whole { channel: Channel::Dedicated, .. })
    }

    /// Resource blocks of a slot for all UEs together.
    pub(crate) const fn room(&self) -> u32 {
        if self.is_dedicated() { u32::MAX } else { self.prbs }
    }

    /// Bits that a PRB carries per slot, averaged over the slots that a block is planned for.
    #[inline]
    pub(crate) fn bits_per_prb(&self, class: usize, mcs: u8) -> u32 {
        self.row(class, mcs).bits_per_prb
    }

    /// Planned number of slots of a block of `mcs`.
    pub(crate) fn slots_of(&self, mcs: u8) -> u32 {
        self.slots.get(usize::from(mcs)).copied().unwrap_or(1)
    }

    /// What decides whether a block of `mcs` is decoded.
    pub(crate) fn block(&self, mcs: u8) -> Block {
        self.blocks[usize::from(mcs).min(self.blocks.len() - 1)]
    }

    /// The highest MCS.
    pub(crate) fn highest_mcs(&self) -> u8 {
        // At most 30 of them.
        (self.blocks.len() - 1) as u8
    }

    /// Bytes of all PRBs in the slots that hold the most.
    pub(crate) fn most_bytes(&self, mcs: u8) -> u32 {
        let bytes = (0..self.classes.len()).map(|class| self.bytes(class, mcs, self.prbs));
        bytes.max().unwrap_or(0)
    }

    /// Bytes of all PRBs, averaged over all slots, including those without data.
    pub(crate) fn mean_slot_bytes(&self, mcs: u8) -> f64 {
        let bytes = |(index, class): (usize, &Class)| {
            class.slots * u64::from(self.bytes(index, mcs, self.prbs))
        };
        let period = self.period * u64::from(self.slots_of(mcs));
        self.classes.iter().enumerate().map(bytes).sum::<u64>() as f64 / period as f64
    }

    #[inline]
    fn row(&self, class: usize, mcs: u8) -> &Row {
        let mcs = mcs.min(self.highest_mcs());
        let class = &self.classes[class];
        class.rows[usize::from(mcs)].get_or_init(|| self.work_out(class.shape, mcs))
    }

    #[cold]
    fn work_out(&self, shape: Shape, mcs: u8) -> Row {
        let bytes: Box<[u32]> =
            (1..=self.prbs).map(|prbs| self.sizes.bits(shape, mcs, prbs) / 8).collect();
        let all = bytes.last().copied().unwrap_or(0);
        let bits_per_prb = 8 * all / (self.prbs.max(1) * self.slots_of(mcs));
        Row { bytes, bits_per_prb }
    }
}

impl Sizes {
    fn bits(&self, shape: Shape, mcs: u8, prbs: u32) -> u32 {
        match (self, shape) {
            (Self::Nr(link), Shape::Nr(symbols)) => {
                let Some(scheme) = nr::mcs(link.mcs_table, mcs) else { return 0 };
                let allocation = Allocation {
                    prbs,
                    symbols,
                    dmrs_per_prb: link.dmrs_per_prb,
                    overhead_per_prb: link.overhead_per_prb,
                };
                nr::transport_block_size(allocation.resource_elements(), scheme, link.layers)
            }
            (Self::LteDownlink { table, codewords }, shape) => {
                // TS 36.213 7.1.7: N_PRB of DwPTS is a fraction of what is allocated
                let columns = match shape {
                    Shape::LteSpecial(special) => tdd::special_resource_blocks(special, prbs),
                    _ => Some(prbs),
                };
                let index = lte::downlink_mcs(*table, mcs).map(|mcs| mcs.tbs_index);
                let size = index.zip(columns).and_then(|(i, n)| lte::transport_block_size(i, n));
                codewords * size.unwrap_or(0)
            }
            (Self::LteUplink, _) => {
                let index = lte::uplink_mcs(mcs).map(|mcs| mcs.tbs_index);
                let blocks = lte::uplink_blocks(prbs);
                index.and_then(|index| lte::transport_block_size(index, blocks)).unwrap_or(0)
            }
            (Self::Whole { bytes, .. }, _) => 8 * bytes.get(usize::from(mcs)).copied().unwrap_or(0),
            (Self::Nr(_), _) => 0,
        }
    }
}

/// The classes of slots of one direction, as they are found.
#[derive(Debug, Default)]
pub(super) struct Shapes(Vec<(Shape, u64)>);

impl Shapes {
    /// Adds a slot; returns its class.
    pub(super) fn add(&mut self, shape: Shape) -> usize {
        let index = self.0.iter().position(|&(known, _)| known == shape).unwrap_or(self.0.len());
        if index == self.0.len() {
            self.0.push((shape, 0));
        }
        self.0[index].1 += 1;
        index
    }
}

impl CarrierLink {
    /// Block sizes for the `efficiency` of CQI 1 and up, and a block of each MCS.
    pub(super) fn new(
        (prbs, sizes): (u32, Sizes),
        cqi: impl IntoIterator<Item = f64>,
        blocks: Vec<Block>,
        bler: BlerModel,
        (shapes, period): (Shapes, u64),
    ) -> Self {
        let efficiencies = blocks.iter().map(|block| block.efficiency);
        let tables = LinkTables::new(bler, cqi, efficiencies);
        let class = |(shape, slots)| {
            let rows = (0..blocks.len()).map(|_| OnceCell::new()).collect();
            Class { shape, slots, rows }
        };
        let classes = shapes.0.into_iter().map(class).collect();
        Self { prbs, tables, blocks, classes, sizes, period, slots: Vec::new() }
    }

    /// Makes blocks that are planned for several slots and can end early: `slots` by MCS, and the
    /// SINR in dB at which they suffice in 90 % of all cases.
    pub(super) fn ending_early(self, slots: Vec<u32>, thresholds_db: Vec<f64>) -> Self {
        let model = *self.tables.model();
        let tables = LinkTables::of_thresholds(model, thresholds_db.clone(), thresholds_db);
        Self { tables, slots, ..self }
    }
}
