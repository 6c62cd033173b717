//! `[radio.drx]`, `[radio.rrc]` and `[radio.processing]`.

use super::super::{
    Default, Key, Kind, MS, MS_ABOVE_0, MS_FROM_0, Need, Table, TimeUnit, Unit, choice, count, or,
};
use super::{BOTH, LTE, NR, each};

const ON: Need = Need::On("enabled");

const fn enabled(doc: &'static str) -> Key {
    Key::new("enabled", Kind::Flag, Default::Value("false"), doc)
}

/// DRX.
pub(super) static DRX: Table = Table {
    header: "[radio.drx]",
    path: "radio.drx or radio.ue.N.drx",
    doc: "Discontinuous reception in RRC_CONNECTED (TS 38.321 5.7, TS 36.321 5.7). A table that \
          is there is enabled unless it says otherwise. LTE's timers are counted in ms, not in PDCCH subframes, also with TDD.",
    selector: Some("access"),
    groups: &[
        each(BOTH, &[enabled("False: the UE is always awake.")]),
        each(NR, NR_TIMERS),
        each(LTE, LTE_TIMERS),
        each(
            BOTH,
            &[
                Key::new(
                    "start_offset_ms",
                    MS_FROM_0,
                    Default::Value("0"),
                    "drx-StartOffset: where in the long cycle the on-duration begins, in whole \
                     ms.",
                )
                .needs(ON),
                Key::new(
                    "uplink_waits_for_on_duration",
                    Kind::Flag,
                    Default::Value("false"),
                    "Not 3GPP: uplink data waits for the on-duration, as an account of a \
                     measurement has it. False, as specified: a scheduling request may be sent at \
                     any time, and a pending one is Active Time.",
                )
                .needs(ON),
            ],
        ),
    ],
};

const SHORT: Kind = or("none", &MS_ABOVE_0);
const SHORT_TIMER: Kind = count(Unit::Plain, 1, 16);
const SHORT_DOC: &str = "The short cycle; it divides the long one.";
const SHORT_TIMER_DOC: &str = "Short cycles until the long cycle is used.";
const TIMER_DOC: &str = "How long the UE stays awake after a PDCCH with new data.";
const ON_DOC: &str = "How long the UE is awake in each cycle.";
const LONG_DOC: &str = "The long cycle.";
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
    doc: "RRC states (TS 38.331 4.2.1, TS 36.331 4.2.1). A table that is there is enabled \
          unless it says otherwise.",
    selector: Some("access"),
    groups: &[
        each(
            BOTH,
            &[
                enabled("False: the UE is always connected."),
                Key::new(
                    "initial",
                    Kind::Choice(&[
                        choice("idle", "RRC_IDLE."),
                        choice("connected", "RRC_CONNECTED."),
                    ]),
                    Default::Value("\"idle\""),
                    "The state at the start.",
                )
                .needs(ON),
                Key::new(
                    "setup_ms",
                    MS_FROM_0,
                    Default::Value("80"),
                    "From idle to connected, random access included.",
                )
                .needs(ON),
                Key::new(
                    "inactivity_ms",
                    or("never", &MS_ABOVE_0),
                    Default::Value("10000"),
                    "The network releases the connection this long after the last data.",
                )
                .needs(ON),
                Key::new(
                    "paging_cycle_ms",
                    MS_ABOVE_0,
                    Default::Value("1280"),
                    "Paging cycle T of an idle UE: 320, 640, 1280 or 2560 (TS 38.304 7.1, \
                     TS 36.304 7.1).",
                )
                .needs(ON),
                Key::new(
                    "paging_offset_ms",
                    MS_FROM_0,
                    Default::Value("9"),
                    "The UE's occasion; counts modulo the cycle.",
                )
                .needs(ON),
                Key::new(
                    "paging_delay_ms",
                    MS_FROM_0,
                    Default::Value("0"),
                    "From a downlink packet's arrival at the user plane to the base station's \
                     being ready to page.",
                )
                .needs(ON),
            ],
        ),
        each(
            NR,
            &[
                Key::new(
                    "inactive",
                    Kind::Flag,
                    Default::Value("false"),
                    "A release leads to RRC_INACTIVE.",
                )
                .needs(ON),
                Key::new(
                    "resume_ms",
                    MS_FROM_0,
                    Default::Value("20"),
                    "From inactive to connected, random access included (TS 38.331 5.3.13).",
                )
                .needs(Need::On("inactive")),
                Key::new(
                    "inactive_idle_after_ms",
                    or("never", &MS_ABOVE_0),
                    Default::Value("\"never\""),
                    "From inactive to idle, this long after the release.",
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
    ],
};

/// Processing of the UE.
pub(super) static PROCESSING: Table = Table {
    header: "[radio.processing]",
    path: "radio.processing or radio.ue.N.processing",
    doc: "How long the UE thinks; the base station's times are in `[radio.cell]`.",
    selector: None,
    groups: &[each(
        BOTH,
        &[
            Key::new(
                "down_ms",
                MS_FROM_0,
                Default::Derived("a slot in NR, 1.5 in LTE"),
                "From the end of a slot with a downlink block until its packets are above the \
                 radio.",
            ),
            Key::new(
                "up_ms",
                MS_FROM_0,
                Default::Derived("a slot in NR, 1 in LTE"),
                "From an uplink packet's arrival until a block can hold it.",
            ),
        ],
    )],
};
