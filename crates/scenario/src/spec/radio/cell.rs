//! `[radio.cell]`.

use super::super::{
    Chosen, Default, Group, Key, Kind, MS_ABOVE_0, MS_FROM_0, Need, Table, Unit, count, or, real,
};
use super::{EVDO, LTE, NR, NR_LTE, UMTS};

/// The cell.
pub(crate) static CELL: Table = Table {
    header: "[radio.cell]",
    path: "radio.cell",
    doc: "Radio technology, resources, scheduler and processing times of the base station.",
    selector: Some("access"),
    groups: &[
        Group::always(ACCESS),
        Group::of(NR_LTE, CARRIER),
        Group::of(NR, NR_CARRIER),
        Group::of(LTE, LTE_CARRIER),
        Group::of(UMTS, UMTS_CARRIER),
        Group::always(SCHEDULER),
        Group::of(NR_LTE, SCHEDULER_UP),
        Group::always(FAIRNESS),
        Group::of(NR_LTE, REST),
        Group::of(UMTS, UMTS_TIMES),
        Group::of(EVDO, EVDO_TIMES),
        Group::always(BLER),
    ],
};

const ACCESS: &[Key] = &[Key::new(
    AccessKind::KEY,
    Kind::Choice(AccessKind::CHOICES),
    Default::Preset,
    "Radio technology. The preset determines it, and it determines which keys exist.",
)];

const CARRIER: &[Key] = &[
    Key::new(
        Duplex::KEY,
        Kind::Choice(Duplex::CHOICES),
        Default::Preset,
        "How the two directions are separated.",
    ),
    Key::new(
        "bandwidth_mhz",
        real("MHz", 1.0, 400.0),
        Default::Preset,
        "Channel bandwidth: one of TS 38.101-1 and 38.101-2 tables 5.3.2-1, TS 36.101 table 5.6-1.",
    ),
    Key::new(
        "prbs_down",
        BLOCKS,
        Default::Derived("all of the bandwidth"),
        "Resource blocks for downlink data.",
    ),
    Key::new(
        "prbs_up",
        BLOCKS,
        Default::Derived("all of the bandwidth"),
        "Resource blocks for uplink data, without those of PUCCH.",
    ),
    Key::new("layers_down", LAYERS, Default::Preset, "Downlink layers; LTE has 1 or 2 here."),
];

const BLOCKS: Kind = count(Unit::Plain, 1, 275);
const LAYERS: Kind = count(Unit::Plain, 1, 8);
const UES: Kind = count(Unit::Plain, 1, 10_000);

const TDD: Need = Need::Is("duplex", "tdd");

const NR_CARRIER: &[Key] = &[
    Key::new("layers_up", count(Unit::Plain, 1, 4), Default::Preset, "Uplink layers."),
    Key::new(
        Frequencies::KEY,
        Kind::Choice(Frequencies::CHOICES),
        Default::Value("\"fr1\""),
        "Frequency range (TS 38.104 5.1). It determines how many PRBs the bandwidth has.",
    ),
    Key::new(
        "scs_khz",
        count(Unit::Plain, 15, 120),
        Default::Preset,
        "Subcarrier spacing: 15, 30, 60 or 120 kHz (TS 38.211 table 4.2-1).",
    ),
    Key::new(
        "mu",
        count(Unit::Plain, 0, 3),
        Default::Absent("see `scs_khz`"),
        "Sets `scs_khz` as a numerology: 15 × 2^mu (TS 38.211 table 4.2-1).",
    )
    .excludes(&["scs_khz"]),
    Key::new(
        "tdd_pattern",
        Kind::Text,
        Default::Required,
        "Slots as D, S and U, then the special slot's symbols as downlink:guard:uplink, e.g. \
         \"DDDSU 10:2:2\"; `+` joins two patterns (TS 38.213 11.1).",
    )
    .needs(TDD),
    Key::new(
        "mcs_table_down",
        NR_MCS_TABLES,
        Default::Value("\"qam256\""),
        "MCS table of the downlink (TS 38.214 5.1.3.1).",
    ),
    Key::new(
        "mcs_table_up",
        NR_MCS_TABLES,
        Default::Value("\"qam64\""),
        "MCS table of the uplink (TS 38.214 6.1.4.1), without transform precoding.",
    ),
    Key::new(
        "dmrs_down",
        ELEMENTS,
        Default::Value("12"),
        "N_DMRS: resource elements of a PRB for PDSCH DM-RS (TS 38.214 5.1.3.2).",
    ),
    Key::new(
        "dmrs_up",
        ELEMENTS,
        Default::Value("12"),
        "N_DMRS: resource elements of a PRB for \
                                                         PUSCH DM-RS (TS 38.214 6.1.4.2).",
    ),
    Key::new(
        "overhead_down",
        OVERHEAD,
        Default::Value("0"),
        "xOverhead of PDSCH: 0, 6, 12 or 18 resource elements of a PRB.",
    ),
    Key::new(
        "overhead_up",
        OVERHEAD,
        Default::Value("0"),
        "xOverhead of PUSCH: 0, 6, 12 or 18 resource elements of a PRB.",
    ),
    Key::new(
        "control_symbols",
        count(Unit::Symbols, 1, 3),
        Default::Value("2"),
        "Symbols of PDCCH at the beginning of a slot with downlink.",
    ),
    Key::new(
        "feedback_symbols",
        count(Unit::Symbols, 0, 13),
        Default::Value("0"),
        "Symbols of PUCCH at the end of a slot with uplink. 0 means that PUCCH has PRBs of its \
         own.",
    ),
    Key::new(
        "least_symbols_down",
        count(Unit::Symbols, 1, 14),
        Default::Value("4"),
        "Smallest number of downlink symbols for data. A slot with fewer, control not counted, \
         carries none.",
    ),
    Key::new(
        "least_symbols_up",
        count(Unit::Symbols, 1, 14),
        Default::Value("4"),
        "Smallest number of uplink symbols for data. A slot with fewer, feedback not counted, \
         carries none.",
    ),
    Key::new(
        "k0_slots",
        count(Unit::Slots, 0, 32),
        Default::Value("0"),
        "K_0: slots from a DCI to its PDSCH (TS 38.214 5.1.2.1).",
    ),
    Key::new(
        "k1_slots",
        count(Unit::Slots, 0, 15),
        Default::Derived("the least that UE processing capability 1 allows"),
        "K_1: the least number of slots from a PDSCH to its feedback. With TDD the feedback is in \
         the next slot with uplink (TS 38.213 9.2.3).",
    ),
    Key::new(
        "k2_slots",
        count(Unit::Slots, 0, 32),
        Default::Derived("the least that UE processing capability 1 allows"),
        "K_2: the least number of slots from a grant to its PUSCH. With TDD the PUSCH is in the \
         next slot with uplink (TS 38.214 6.1.2.1).",
    ),
    Key::new(
        "exact_k2",
        Kind::Flag,
        Default::Value("false"),
        "Whether every PUSCH is exactly `k2_slots` after its grant, because \
         pusch-TimeDomainAllocationList has no other K_2 (TS 38.331). A slot with uplink whose \
         grant would fall into a slot without PDCCH then has no granted PUSCH.",
    ),
    Key::new(
        "pdcch_in_special",
        Kind::Flag,
        Default::Value("true"),
        "Whether special slots can grant a PUSCH.",
    ),
];

const NR_MCS_TABLES: Kind = Kind::Choice(NrMcsTable::CHOICES);
const ELEMENTS: Kind = count(Unit::Plain, 0, 72);
const OVERHEAD: Kind = count(Unit::Plain, 0, 18);

const LTE_CARRIER: &[Key] = &[
    Key::new(
        "tdd_configuration",
        count(Unit::Plain, 0, 6),
        Default::Required,
        "Uplink-downlink configuration (TS 36.211 table 4.2-2).",
    )
    .needs(TDD),
    Key::new(
        "special_subframe_configuration",
        count(Unit::Plain, 0, 10),
        Default::Value("7"),
        "Special subframe configuration (TS 36.211 table 4.2-1).",
    )
    .needs(TDD),
    Key::new(
        LteMcsTable::KEY,
        Kind::Choice(LteMcsTable::CHOICES),
        Default::Value("\"qam64\""),
        "MCS table of the downlink (TS 36.213 7.1.7.1).",
    ),
    Key::new(
        "cfi",
        count(Unit::Symbols, 1, 4),
        Default::Value("2"),
        "Symbols of PDCCH. Transport block sizes do not depend on it; the code rate does.",
    ),
    Key::new(
        "antenna_ports",
        count(Unit::Plain, 1, 4),
        Default::Value("2"),
        "Ports with cell-specific reference signals: 1, 2 or 4 (TS 36.211 6.10.1).",
    ),
];

const HSDPA: Need = Need::Is("downlink", "hs_dsch");
const HSUPA: Need = Need::Is("uplink", "e_dch");
const DCH_KBPS: Kind = count(Unit::Plain, 64, 384);

const UMTS_CARRIER: &[Key] = &[
    Key::new(
        UmtsDown::KEY,
        Kind::Choice(UmtsDown::CHOICES),
        Default::Preset,
        "What carries the downlink in CELL_DCH.",
    ),
    Key::new(
        "hsdpa_category",
        count(Unit::Plain, 5, 14),
        Default::Value("10"),
        "HS-DSCH category of the UEs: 5 to 10, 12 to 14 (TS 25.306 table 5.1a).",
    )
    .needs(HSDPA),
    Key::new(
        "hs_codes",
        count(Unit::Plain, 1, 15),
        Default::Value("15"),
        "Number of HS-PDSCHs of \
                                                                           the cell.",
    )
    .needs(HSDPA),
    Key::new(
        "dch_down_kbps",
        DCH_KBPS,
        Default::Value("384"),
        "Rate of the DCH: 64, 128 or 384 (TS 34.108 6.10.2.4.1).",
    )
    .needs(Need::Is("downlink", "dch")),
    Key::new(
        UmtsUp::KEY,
        Kind::Choice(UmtsUp::CHOICES),
        Default::Preset,
        "What carries the uplink in CELL_DCH.",
    ),
    Key::new(
        "edch_category",
        count(Unit::Plain, 1, 7),
        Default::Value("6"),
        "E-DCH category of the UEs (TS 25.306 table 5.1g).",
    )
    .needs(HSUPA),
    Key::new(
        "edch_tti_ms",
        MS_ABOVE_0,
        Default::Value("2"),
        "TTI of the E-DCH: 2 or 10. Not every category has 2.",
    )
    .needs(HSUPA),
    Key::new(
        "dch_up_kbps",
        DCH_KBPS,
        Default::Value("64"),
        "Rate of the DCH: 64, 128 or 384 (TS 34.108 6.10.2.4.1).",
    )
    .needs(Need::Is("uplink", "dch")),
];

/// Delays between the core network and the air interface.
const UMTS_TIMES: &[Key] = &[
    Key::new(
        "iub_ms",
        MS_FROM_0,
        Default::Value("5"),
        "Delay of the Iub, between RNC and Node B, \
                                                        in each direction.",
    ),
    Key::new(
        "rnc_ms",
        MS_FROM_0,
        Default::Value("3"),
        "Time of a packet in the RNC, in each direction, without its queue.",
    ),
    Key::new(
        "node_b_ms",
        MS_FROM_0,
        Default::Value("2"),
        "Time of a packet in the Node B, in \
                                                           each direction.",
    ),
];

const EVDO_TIMES: &[Key] = &[Key::new(
    "access_network_ms",
    MS_FROM_0,
    Default::Value("10"),
    "Time of a packet through base station, controller and the link between them, in each \
     direction, without its queue.",
)];

const SCHEDULER: &[Key] = &[Key::new(
    Scheduler::KEY,
    Kind::Choice(Scheduler::CHOICES),
    Default::Value("\"proportional_fair\""),
    "Which UE gets the PRBs of a slot.",
)];

const SCHEDULER_UP: &[Key] = &[Key::new(
    "scheduler_up",
    Kind::Choice(Scheduler::CHOICES),
    Default::Derived("as `scheduler`"),
    "Which UE gets the PRBs of an uplink slot.",
)];

const FAIRNESS: &[Key] = &[Key::new(
    "proportional_fair_ms",
    MS_ABOVE_0,
    Default::Value("100"),
    "Time constant of the average rate in proportional fair.",
)];

const REST: &[Key] = &[
    Key::new(
        "ues_per_slot",
        or("unlimited", &UES),
        Default::Value("\"unlimited\""),
        "Largest number of UEs with a PDCCH of one direction in one slot.",
    ),
    Key::new(
        "processing_down_ms",
        MS_FROM_0,
        Default::Derived("0.5 in NR, 1 in LTE"),
        "Time from the arrival of a downlink packet until the scheduler can put it into a block.",
    ),
    Key::new(
        "processing_up_ms",
        MS_FROM_0,
        Default::Derived("0.5 in NR, 1.5 in LTE"),
        "Time from the end of a slot with an uplink block until its packets leave the base \
         station.",
    ),
    Key::new(
        "processing_grant_ms",
        MS_FROM_0,
        Default::Derived("0.5 in NR, 3 in LTE"),
        "Time from the end of a slot with a scheduling request, or with a buffer status report, \
         until a grant can take it into account.",
    ),
];

const BLER: &[Key] = &[
    Key::new(
        BlerCurve::KEY,
        Kind::Choice(BlerCurve::CHOICES),
        Default::Value("\"published\""),
        "The SINR at which 10 % of the blocks fail.",
    ),
    Key::new(
        "shannon_gap_db",
        real("dB", 0.0, 20.0),
        Default::Value("3"),
        "Distance from \
                                                                            Shannon's bound.",
    )
    .needs(Need::Is("bler_curve", "shannon_gap")),
    Key::new(
        "bler_steepness_per_db",
        real("1/dB", 0.1, 100.0),
        Default::Value("12"),
        "Steepness of the curves. With 12 they fall from 90 % to 10 % within 0.37 dB.",
    ),
];

choices! {
    /// Values of `scheduler`.
    Scheduler("scheduler") {
        RoundRobin = "round_robin": "Equal PRBs for all.",
        ProportionalFair = "proportional_fair": "Highest rate over average rate first.",
        MaxRate = "max_rate": "Highest rate first (max C/I).",
    }

    /// Values of `mcs_table_down`.
    NrMcsTable("mcs_table_down") {
        Qam64 = "qam64": "Up to 64QAM (table 5.1.3.1-1).",
        Qam256 = "qam256": "Up to 256QAM (table 5.1.3.1-2).",
        Qam64LowSe = "qam64_low_se": "Up to 64QAM, low spectral efficiency (table 5.1.3.1-3).",
    }

    /// Values of `access`.
    AccessKind("access") {
        Nr = "nr": "NR.",
        Lte = "lte": "LTE.",
        Umts = "umts": "UMTS FDD.",
        Evdo = "evdo": "EV-DO Rev. A.",
    }

    /// Values of `duplex`.
    Duplex("duplex") {
        Fdd = "fdd": "By frequency.",
        Tdd = "tdd": "By time.",
    }

    /// Values of `frequency_range`.
    Frequencies("frequency_range") {
        Fr1 = "fr1": "Below 7.125 GHz.",
        Fr2 = "fr2": "Above 24.25 GHz.",
    }

    /// Values of `mcs_table_down`.
    LteMcsTable("mcs_table_down") {
        Qam64 = "qam64": "Up to 64QAM (table 7.1.7.1-1).",
        Qam256 = "qam256": "Up to 256QAM (table 7.1.7.1-1A).",
    }

    /// Values of `downlink`.
    UmtsDown("downlink") {
        HsDsch = "hs_dsch": "HSDPA: one UE has a TTI of 2 ms.",
        Dch = "dch": "Each UE has a dedicated channel.",
    }

    /// Values of `uplink`.
    UmtsUp("uplink") {
        EDch = "e_dch": "HSUPA: each UE sends what its serving grant allows.",
        Dch = "dch": "Each UE has a dedicated channel.",
    }

    /// Values of `bler_curve`.
    BlerCurve("bler_curve") {
        Published = "published": "Curves through published 10 % points of CQI 1 to 15.",
        ShannonGap = "shannon_gap": "Curves at a distance from Shannon's bound.",
    }
}
