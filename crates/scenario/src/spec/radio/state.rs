//! `[radio.drx]`, `[radio.rrc]` and `[radio.processing]`.

use super::super::{
    Chosen, Default, Group, Key, Kind, MS, MS_ABOVE_0, MS_FROM_0, Need, Table, TimeUnit, Unit,
    count, or, real,
};
use super::{LTE, NR, NR_LTE, NR_LTE_EVDO, UMTS};

const ON: Need = Need::On("enabled");

const fn enabled(doc: &'static str) -> Key {
    Key::new("enabled", Kind::Flag, Default::Value("false"), doc)
}

/// DRX.
pub(super) static DRX: Table = Table {
    header: "[radio.drx]",
    path: "radio.drx or radio.ue.N.drx",
    doc: "Discontinuous reception in RRC_CONNECTED (TS 38.321 5.7, TS 36.321 5.7). If the table \
          is present, it is enabled unless it says otherwise. LTE's timers are counted in ms, not \
          in PDCCH subframes, also with TDD.",
    selector: Some("access"),
    groups: &[
        Group::of(
            NR_LTE,
            &[enabled("Whether the UE uses DRX. Without it the UE is always awake.")],
        ),
        Group::of(NR, NR_TIMERS),
        Group::of(LTE, LTE_TIMERS),
        Group::of(
            NR_LTE,
            &[
                Key::new(
                    "start_offset_ms",
                    MS_FROM_0,
                    Default::Value("0"),
                    "drx-StartOffset: where the on-duration begins in the long cycle, in whole \
                     ms.",
                )
                .needs(ON),
                Key::new(
                    "uplink_waits_for_on_duration",
                    Kind::Flag,
                    Default::Value("false"),
                    "True: uplink data waits for the on-duration. This is not 3GPP; a published \
                     measurement was explained that way. False: a scheduling request may be sent \
                     at any time, and a pending request is Active Time, as specified.",
                )
                .needs(ON),
            ],
        ),
    ],
};

const SHORT: Kind = or("none", &MS_ABOVE_0);
const SHORT_TIMER: Kind = count(Unit::Plain, 1, 16);
const SHORT_DOC: &str = "Short cycle. The long cycle is a multiple of it.";
const SHORT_TIMER_DOC: &str = "Number of short cycles before the long cycle is used.";
const TIMER_DOC: &str = "How long the UE stays awake after a PDCCH with new data.";
const ON_DOC: &str = "How long the UE is awake in each cycle.";
const LONG_DOC: &str = "Long cycle.";
const DOWN_DOC: &str = "How long the UE waits for a downlink retransmission.";
const UP_DOC: &str = "How long the UE waits for the grant of an uplink retransmission.";

const NR_TIMERS: &[Key] = &[
    Key::new("on_duration_ms", MS_ABOVE_0, Default::Value("10"), ON_DOC)
        .needs(ON)
        .values_of("drx-onDurationTimer"),
    Key::new(
        "slot_offset_ms",
        Kind::Time { unit: TimeUnit::Ms, min_ns: 0, max_ns: MS - 1 },
        Default::Value("0"),
        "drx-SlotOffset, below 1 ms.",
    )
    .needs(ON)
    .values_of("drx-SlotOffset"),
    Key::new("inactivity_ms", MS_FROM_0, Default::Value("100"), TIMER_DOC)
        .needs(ON)
        .values_of("drx-InactivityTimer"),
    Key::new("long_cycle_ms", MS_ABOVE_0, Default::Value("320"), LONG_DOC)
        .needs(ON)
        .values_of("drx-LongCycle"),
    Key::new("short_cycle_ms", SHORT, Default::Value("\"none\""), SHORT_DOC)
        .needs(ON)
        .values_of("drx-ShortCycle"),
    Key::new("short_cycle_timer", SHORT_TIMER, Default::Value("2"), SHORT_TIMER_DOC)
        .needs(ON)
        .values_of("drx-ShortCycleTimer"),
    Key::new("harq_rtt_down_symbols", SYMBOLS, Default::Value("56"), "drx-HARQ-RTT-TimerDL.")
        .needs(ON)
        .values_of("drx-HARQ-RTT-TimerDL"),
    Key::new("harq_rtt_up_symbols", SYMBOLS, Default::Value("56"), "drx-HARQ-RTT-TimerUL.")
        .needs(ON)
        .values_of("drx-HARQ-RTT-TimerUL"),
    Key::new("retransmission_down_slots", SLOTS, Default::Value("16"), DOWN_DOC)
        .needs(ON)
        .values_of("drx-RetransmissionTimerDL"),
    Key::new("retransmission_up_slots", SLOTS, Default::Value("16"), UP_DOC)
        .needs(ON)
        .values_of("drx-RetransmissionTimerUL"),
];

const SYMBOLS: Kind = count(Unit::Symbols, 0, 10_000);
const SLOTS: Kind = count(Unit::Slots, 0, 10_000);
const SUBFRAMES: Kind = count(Unit::Subframes, 0, 10_000);

/// The HARQ RTT timers follow from the duplex mode (TS 36.321 7.7).
const LTE_TIMERS: &[Key] = &[
    Key::new("on_duration_ms", MS_ABOVE_0, Default::Value("10"), ON_DOC)
        .needs(ON)
        .values_of("onDurationTimer"),
    Key::new("inactivity_ms", MS_FROM_0, Default::Value("100"), TIMER_DOC)
        .needs(ON)
        .values_of("drx-InactivityTimer"),
    Key::new("long_cycle_ms", MS_ABOVE_0, Default::Value("320"), LONG_DOC)
        .needs(ON)
        .values_of("longDRX-Cycle"),
    Key::new("short_cycle_ms", SHORT, Default::Value("\"none\""), SHORT_DOC)
        .needs(ON)
        .values_of("shortDRX-Cycle"),
    Key::new("short_cycle_timer", SHORT_TIMER, Default::Value("2"), SHORT_TIMER_DOC)
        .needs(ON)
        .values_of("drxShortCycleTimer"),
    Key::new("retransmission_down_subframes", SUBFRAMES, Default::Value("8"), DOWN_DOC)
        .needs(ON)
        .values_of("drx-RetransmissionTimer"),
    Key::new("retransmission_up_subframes", SUBFRAMES, Default::Value("1"), UP_DOC)
        .needs(ON)
        .values_of("drx-ULRetransmissionTimer"),
];

/// RRC states.
pub(super) static RRC: Table = Table {
    header: "[radio.rrc]",
    path: "radio.rrc or radio.ue.N.rrc",
    doc: "RRC states (TS 38.331 4.2.1, TS 36.331 4.2.1, TS 25.331 7). In EV-DO idle is a dormant \
          session. If the table is present, it is enabled unless it says otherwise.",
    selector: Some("access"),
    groups: &[
        Group::of(
            NR_LTE_EVDO,
            &[
                enabled("Whether the UE has RRC states. Without them it is always connected."),
                Key::new(
                    InitialRrc::KEY,
                    Kind::Choice(InitialRrc::CHOICES),
                    Default::Value("\"idle\""),
                    "The state at the start.",
                )
                .needs(ON),
                Key::new(
                    "setup_ms",
                    MS_FROM_0,
                    Default::Value("80"),
                    "Time from idle to connected, random access included.",
                )
                .needs(ON),
                Key::new(
                    "inactivity_ms",
                    or("never", &MS_ABOVE_0),
                    Default::Value("10000"),
                    "Time after the last data until the network releases the connection.",
                )
                .needs(ON),
                Key::new(
                    "paging_cycle_ms",
                    MS_ABOVE_0,
                    Default::Value("1280"),
                    "Paging cycle T of an idle UE: 320, 640, 1280 or 2560 (TS 38.304 7.1, \
                     TS 36.304 7.1); in EV-DO any.",
                )
                .needs(ON),
                Key::new(
                    "paging_offset_ms",
                    MS_FROM_0,
                    Default::Value("9"),
                    "Time of the UE's paging occasion, modulo the cycle.",
                )
                .needs(ON),
                Key::new(
                    "paging_delay_ms",
                    MS_FROM_0,
                    Default::Value("0"),
                    "Time from the arrival of a downlink packet at the user plane until the base \
                     station can page.",
                )
                .needs(ON),
            ],
        ),
        Group::of(
            NR,
            &[
                Key::new(
                    "inactive",
                    Kind::Flag,
                    Default::Value("false"),
                    "Whether a release leads to RRC_INACTIVE.",
                )
                .needs(ON),
                Key::new(
                    "resume_ms",
                    MS_FROM_0,
                    Default::Value("20"),
                    "Time from inactive to connected, random access included (TS 38.331 5.3.13).",
                )
                .needs(Need::On("inactive")),
                Key::new(
                    "inactive_idle_after_ms",
                    or("never", &MS_ABOVE_0),
                    Default::Value("\"never\""),
                    "Time after the release until the UE goes from inactive to idle.",
                )
                .needs(Need::On("inactive")),
                Key::new(
                    "inactive_paging_cycle_ms",
                    MS_ABOVE_0,
                    Default::Value("320"),
                    "RAN paging cycle: 320, 640, 1280 or 2560.",
                )
                .needs(Need::On("inactive")),
            ],
        ),
        Group::of(UMTS, UMTS_STATES),
    ],
};

const TIMER: Kind = or("never", &MS_ABOVE_0);
const THRESHOLD: Kind = count(Unit::Bytes, 0, 1 << 20);

const UMTS_STATES: &[Key] = &[
    enabled("Whether the UE has RRC states. Without them it is always in CELL_DCH."),
    Key::new(
        InitialUmts::KEY,
        Kind::Choice(InitialUmts::CHOICES),
        Default::Value("\"idle\""),
        "The state at the start.",
    )
    .needs(ON),
    Key::new(
        "setup_ms",
        MS_FROM_0,
        Default::Value("2000"),
        "Time from idle to `setup_state`, random access included.",
    )
    .needs(ON),
    Key::new(
        UmtsSetup::KEY,
        Kind::Choice(UmtsSetup::CHOICES),
        Default::Value("\"cell_dch\""),
        "The state in which a connection begins.",
    )
    .needs(ON),
    Key::new(
        "pch_to_fach_ms",
        MS_FROM_0,
        Default::Value("200"),
        "Time from CELL_PCH to CELL_FACH, by a cell update.",
    )
    .needs(ON),
    Key::new(
        "fach_to_dch_ms",
        MS_FROM_0,
        Default::Value("1500"),
        "Time from CELL_FACH to CELL_DCH, the time to trigger included.",
    )
    .needs(ON),
    Key::new(
        "uplink_threshold_bytes",
        THRESHOLD,
        Default::Value("256"),
        "Threshold of event 4a: more bytes than this in the UE's buffer move the UE from \
         CELL_FACH to CELL_DCH (TS 25.331 14.4.2.1).",
    )
    .needs(ON),
    Key::new(
        "downlink_threshold_bytes",
        THRESHOLD,
        Default::Value("256"),
        "More bytes than this in the RNC's buffer move the UE from CELL_FACH to CELL_DCH.",
    )
    .needs(ON),
    Key::new(
        "dch_inactivity_ms",
        MS_ABOVE_0,
        Default::Value("5000"),
        "T1: time after the last data until the UE goes from CELL_DCH to CELL_FACH.",
    )
    .needs(ON),
    Key::new(
        "fach_inactivity_ms",
        MS_ABOVE_0,
        Default::Value("12000"),
        "T2: time after the last data until the UE goes from CELL_FACH to CELL_PCH, or to idle.",
    )
    .needs(ON),
    Key::new(
        "pch",
        Kind::Flag,
        Default::Value("false"),
        "Whether the UE goes from CELL_FACH to CELL_PCH (or URA_PCH) instead of to idle.",
    )
    .needs(ON),
    Key::new(
        "pch_idle_after_ms",
        TIMER,
        Default::Value("\"never\""),
        "Time in CELL_PCH until the \
                                                                       UE goes to idle.",
    )
    .needs(Need::On("pch")),
    Key::new(
        "paging_cycle_ms",
        MS_ABOVE_0,
        Default::Value("1280"),
        "DRX cycle of an idle UE: 80 to 5120, in powers of 2 (TS 25.304 8.3).",
    )
    .needs(ON),
    Key::new(
        "paging_offset_ms",
        MS_FROM_0,
        Default::Value("9"),
        "Time of the UE's paging occasion, modulo the cycle.",
    )
    .needs(ON),
    Key::new(
        "paging_delay_ms",
        MS_FROM_0,
        Default::Value("0"),
        "Time from the arrival of a downlink packet at the user plane until the RNC can page.",
    )
    .needs(ON),
    Key::new(
        "fach_kbps",
        real("kb/s", 1.0, 1_000.0),
        Default::Value("32"),
        "Rate of a UE on the S-CCPCH, in blocks of an RLC PDU in whole frames of 10 ms.",
    )
    .needs(ON),
    Key::new(
        "rach_ms",
        MS_ABOVE_0,
        Default::Value("40"),
        "Time of one transmission on the PRACH, preambles included. It carries one RLC PDU, and \
         the next transmission starts when it has ended.",
    )
    .needs(ON),
];

/// Processing times of the UE.
pub(super) static PROCESSING: Table = Table {
    header: "[radio.processing]",
    path: "radio.processing or radio.ue.N.processing",
    doc: "Processing times of the UE. Those of the base station are in `[radio.cell]`.",
    selector: None,
    groups: &[Group::always(&[
        Key::new(
            "down_ms",
            MS_FROM_0,
            Default::Derived("a slot in NR, 1.5 in LTE, 4 in UMTS, 5 in EV-DO"),
            "Time from the end of a slot with a downlink block until its packets leave the \
                 radio.",
        ),
        Key::new(
            "up_ms",
            MS_FROM_0,
            Default::Derived("a slot in NR, 1 in LTE, 2 in UMTS and EV-DO"),
            "Time from the arrival of an uplink packet until a block can hold it.",
        ),
    ])],
};

choices! {
    /// Values of `initial`.
    InitialRrc("initial") {
        Idle = "idle": "RRC_IDLE.",
        Connected = "connected": "RRC_CONNECTED.",
    }

    /// Values of `initial_state`.
    InitialUmts("initial_state") {
        Idle = "idle": "Idle.",
        CellPch = "cell_pch": "CELL_PCH or URA_PCH.",
        CellFach = "cell_fach": "CELL_FACH.",
        CellDch = "cell_dch": "CELL_DCH.",
    }

    /// Values of `setup_state`.
    UmtsSetup("setup_state") {
        CellDch = "cell_dch": "CELL_DCH.",
        CellFach = "cell_fach": "CELL_FACH.",
    }
}
