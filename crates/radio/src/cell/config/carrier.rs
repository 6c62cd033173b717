//! Radio technology and resources of a cell.

use airpath_base::Duration;

use super::cdma::UmtsCarrier;
use crate::lte::{self, CellPorts, DownlinkTable};
use crate::nr::{
    DmrsPosition, McsTable, Numerology, SYMBOLS_PER_SLOT, SlotOffsets, TddPattern,
    downlink_processing_time, uplink_processing_time,
};
use crate::{evdo, umts};

/// Radio technology and resources.
#[derive(Clone, PartialEq, Debug)]
pub enum Access {
    /// 5G: flexible numerology and slots (TS 38.211).
    Nr(NrCarrier),
    /// 4G: subframes of 1 ms (TS 36.211).
    Lte(LteCarrier),
    /// UMTS FDD.
    Umts(UmtsCarrier),
    /// EV-DO Rev. A. SINR is that of a chip. In each slot the base station sends to one UE; in the
    /// uplink each UE has its own channel.
    Evdo,
}

impl Access {
    /// Length of a slot; 1 ms in LTE, 2 ms in UMTS, 5/3 ms in EV-DO.
    pub fn slot(&self) -> Duration {
        match self {
            Self::Nr(carrier) => carrier.numerology.slot(),
            Self::Lte(_) => lte::SUBFRAME,
            Self::Umts(_) => umts::SUBFRAME,
            Self::Evdo => evdo::SLOT,
        }
    }

    /// Where the HARQ processes of the uplink take turns: time between blocks of one process,
    /// divided by the number of processes.
    pub fn uplink_turn(&self) -> Duration {
        match self {
            Self::Umts(carrier) => carrier.uplink.tti(),
            Self::Evdo => evdo::SLOT * u64::from(evdo::SUBFRAME_SLOTS),
            Self::Nr(_) | Self::Lte(_) => self.slot(),
        }
    }

    /// Whether every UE has its own uplink channel and sends when it has data: there are no
    /// scheduling requests, buffer status reports or grants.
    pub const fn has_standing_grants(&self) -> bool {
        matches!(self, Self::Umts(_) | Self::Evdo)
    }
}

/// Bandwidth, numerology and slot pattern of a 5G cell (TS 38.211, TS 38.104).
#[derive(Clone, PartialEq, Debug)]
pub struct NrCarrier {
    /// Subcarrier spacing of both directions.
    pub numerology: Numerology,
    /// FDD or TDD.
    pub duplex: NrDuplex,
    /// PDSCH.
    pub downlink: NrLink,
    /// PUSCH.
    pub uplink: NrLink,
    /// Symbols of PDCCH at the beginning of each slot with downlink, 1 to 3; PDSCH cannot use them.
    /// A slot without PDSCH can still carry grants.
    pub control_symbols: u32,
    /// Symbols of PUCCH at the end of each slot with uplink; PUSCH cannot use them. 0 if PUCCH uses
    /// separate PRBs, which must then be left out of [`NrLink::prbs`].
    pub feedback_symbols: u32,
    /// Smallest K_0, K_1 and K_2 in slots. In TDD, feedback and PUSCH are sent in the first slot
    /// with uplink at or after these. K_0 delays new data like the base station's processing;
    /// retransmissions are decided early enough.
    pub offsets: SlotOffsets,
    /// Which slots grant a PUSCH.
    pub granting: Granting,
}

/// Which slots grant a PUSCH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granting {
    /// pusch-TimeDomainAllocationList has one K_2 only (TS 38.331): a PUSCH is granted exactly K_2
    /// slots earlier or not at all. Otherwise K_2 is the smallest of the list.
    pub exact_k2: bool,
    /// Whether special slots have a PDCCH.
    pub in_special: bool,
}

impl Default for Granting {
    fn default() -> Self {
        Self { exact_k2: false, in_special: true }
    }
}

/// How NR separates the directions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NrDuplex {
    /// By frequency.
    Fdd,
    /// By time.
    Tdd(TddPattern),
}

/// One direction of an NR carrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NrLink {
    /// Resource blocks for data, 1 to 275.
    pub prbs: u32,
    /// Layers, 1 or more, each with the channel's SINR.
    pub layers: u32,
    /// What an MCS index means.
    pub mcs_table: McsTable,
    /// N_DMRS: resource elements per PRB lost to DM-RS (TS 38.214 5.1.3.2): 12 for one symbol of
    /// two CDM groups.
    pub dmrs_per_prb: u32,
    /// xOverhead: 0, 6, 12 or 18 resource elements per PRB.
    pub overhead_per_prb: u32,
    /// A slot with fewer symbols of this direction, not counting control, carries no data: special
    /// slots with a few uplink symbols are for PUCCH and sounding. 0 counts as 1.
    pub least_symbols: u32,
}

/// Bandwidth and duplex mode of a 4G cell (TS 36.211, TS 36.104).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LteCarrier {
    /// FDD or TDD.
    pub duplex: LteDuplex,
    /// Resource blocks of PDSCH, 1 to 110.
    pub downlink_prbs: u32,
    /// Resource blocks of PUSCH, 1 to 110, without those that PUCCH uses.
    pub uplink_prbs: u32,
    /// CFI: symbols of PDCCH, 1 to 4. It does not affect the transport block size, but the code
    /// rate, and with it the SINR that a block needs.
    pub control_symbols: u32,
    /// Antenna ports with reference signals, which also affect the code rate.
    pub ports: CellPorts,
    /// The table of downlink MCS indices.
    pub downlink_table: DownlinkTable,
    /// Downlink layers. The uplink has one.
    pub layers: LteLayers,
}

/// How LTE separates the directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LteDuplex {
    /// By frequency.
    Fdd,
    /// By time.
    Tdd {
        /// Uplink-downlink configuration (TS 36.211 table 4.2-2).
        configuration: lte::tdd::Configuration,
        /// Special subframe configuration, 0 to 10 (TS 36.211 table 4.2-1).
        special: u8,
    },
}

/// LTE's downlink layers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LteLayers {
    /// One codeword on one layer.
    One,
    /// Two codewords on two layers, twice the transport block. They share a HARQ process and, here,
    /// are decoded or lost together.
    Two,
}

impl NrCarrier {
    /// A carrier with the usual signals (2 control symbols, one front-loaded DM-RS symbol, no
    /// further overhead) and the smallest offsets that a UE of capability 1 supports.
    pub fn new(numerology: Numerology, duplex: NrDuplex, prbs: u32) -> Self {
        let link = |layers, mcs_table| NrLink {
            prbs,
            layers,
            mcs_table,
            dmrs_per_prb: 12,
            overhead_per_prb: 0,
            least_symbols: 4,
        };
        let control_symbols = 2;
        Self {
            numerology,
            duplex,
            downlink: link(2, McsTable::Qam256),
            uplink: link(1, McsTable::Qam64),
            control_symbols,
            feedback_symbols: 0,
            offsets: Self::least_offsets(numerology, control_symbols),
            granting: Granting::default(),
        }
    }

    /// n78: 100 MHz with 30 kHz, DDDSU 10:2:2, 4 layers in the downlink and 2 in the uplink.
    pub fn n78_100_mhz() -> Self {
        let pattern = "DDDSU 10:2:2".parse().expect("a valid pattern");
        let mut carrier = Self::new(Numerology::Khz30, NrDuplex::Tdd(pattern), 273);
        carrier.downlink.layers = 4;
        carrier.uplink.layers = 2;
        carrier.uplink.mcs_table = McsTable::Qam256;
        carrier
    }

    /// 20 MHz FDD with 15 kHz, 2 layers in the downlink and 1 in the uplink.
    pub fn fdd_20_mhz() -> Self {
        Self::new(Numerology::Khz15, NrDuplex::Fdd, 106)
    }

    /// K_0 = 0 and the smallest K_1 and K_2 for UE processing capability 1: a PDSCH to the end of
    /// its slot, feedback in the last two symbols of its slot, a grant in the first
    /// `control_symbols`, a PUSCH from symbol 0 on (TS 38.214 5.3, 6.4).
    pub fn least_offsets(numerology: Numerology, control_symbols: u32) -> SlotOffsets {
        let last_symbol = SYMBOLS_PER_SLOT - 2;
        let decode = downlink_processing_time(numerology, DmrsPosition::FrontLoaded, 0);
        let prepare = uplink_processing_time(numerology, 0);
        SlotOffsets {
            k0: 0,
            k1: SlotOffsets::least_slots(numerology, SYMBOLS_PER_SLOT, decode, last_symbol),
            k2: SlotOffsets::least_slots(numerology, control_symbols, prepare, 0),
        }
    }
}

impl LteCarrier {
    /// A carrier of `prbs` resource blocks: CFI 2, two ports and layers, 64QAM, all PRBs for data.
    pub fn new(duplex: LteDuplex, prbs: u32) -> Self {
        Self {
            duplex,
            downlink_prbs: prbs,
            uplink_prbs: prbs,
            control_symbols: 2,
            ports: CellPorts::Two,
            downlink_table: DownlinkTable::Qam64,
            layers: LteLayers::Two,
        }
    }

    /// 20 MHz FDD; PUCCH uses 4 of 100 resource blocks.
    pub fn fdd_20_mhz() -> Self {
        Self { uplink_prbs: 96, ..Self::new(LteDuplex::Fdd, 100) }
    }
}
