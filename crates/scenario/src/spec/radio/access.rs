//! Uplink access: `[radio.sr]`, `[radio.bsr]`, `[radio.grants]`, `[radio.rach]` and
//! `[radio.time_alignment]`.

use super::super::{
    Chosen, Default, Group, Key, Kind, MS_ABOVE_0, MS_FROM_0, Need, Table, Unit, count, or,
};
use super::{LTE, NR, NR_LTE, UMTS_EVDO};

/// Scheduling request.
pub(super) static SR: Table = Table {
    header: "[radio.sr]",
    path: "radio.sr or radio.ue.N.sr",
    doc: "Scheduling request (TS 38.321 5.4.4, TS 36.321 5.4.4).",
    selector: Some("access"),
    groups: &[
        Group::of(
            NR_LTE,
            &[
                Key::new(
                    "period_ms",
                    or("none", &MS_ABOVE_0),
                    Default::Value("10"),
                    "Period of the PUCCH resource. With \"none\" there is no resource, and every \
                     request is a random access. NR has the period in slots (TS 38.331 \
                     SchedulingRequestResourceConfig), LTE in TS 36.213 table 10.1.5-1.",
                ),
                Key::new(
                    "offset_ms",
                    MS_FROM_0,
                    Default::Derived("4 (modulo the period), or the next slot with uplink"),
                    "Time of the first occasion, modulo the period. A slot without uplink has no \
                     occasion (TS 38.213 9.2.4, TS 36.213 10.1.5).",
                )
                .needs(Need::Not("period_ms", "none")),
            ],
        ),
        Group::of(
            NR,
            &[
                Key::new(
                    "prohibit_timer_ms",
                    or("none", &MS_ABOVE_0),
                    Default::Value("\"none\""),
                    "sr-ProhibitTimer.",
                )
                .values_of("sr-ProhibitTimer"),
                Key::new("trans_max", TRANSMISSIONS, Default::Value("64"), MOST)
                    .values_of("sr-TransMax"),
            ],
        ),
        Group::of(
            LTE,
            &[
                Key::new(
                    "prohibit_timer_periods",
                    count(Unit::Plain, 0, 7),
                    Default::Value("0"),
                    "sr-ProhibitTimer, in SR periods.",
                )
                .values_of("sr-ProhibitTimer"),
                Key::new("trans_max", TRANSMISSIONS, Default::Value("64"), MOST)
                    .values_of("dsr-TransMax"),
            ],
        ),
        Group::of(
            NR_LTE,
            &[
                Key::new(
                    "preparation_ms",
                    MS_FROM_0,
                    Default::Value("0"),
                    "Time from the trigger to the first occasion that the UE can use.",
                ),
                Key::new(
                    "miss_probability",
                    Kind::Fraction,
                    Default::Value("0"),
                    "Probability that the base station does not see a request.",
                ),
            ],
        ),
    ],
};

const TRANSMISSIONS: Kind = count(Unit::Plain, 1, 1 << 20);
const MOST: &str = "Largest number of transmissions of a request. After that the UE uses random \
                    access.";

/// Buffer status report.
pub(super) static BSR: Table = Table {
    header: "[radio.bsr]",
    path: "radio.bsr or radio.ue.N.bsr",
    doc: "Buffer status report (TS 38.321 5.4.5, TS 36.321 5.4.5), with the buffer size tables of \
          the technology.",
    selector: Some("access"),
    groups: &[
        Group::of(
            NR_LTE,
            &[Key::new(
                "periodic_timer_ms",
                or("infinity", &MS_ABOVE_0),
                Default::Value("10"),
                "periodicBSR-Timer.",
            )
            .values_of("periodicBSR-Timer")],
        ),
        Group::of(NR, &[retransmission("80")]),
        Group::of(LTE, &[retransmission("320")]),
        Group::of(
            NR,
            &[Key::new("sr_delay_timer_ms", DELAY, Default::Value("\"none\""), DELAYED)
                .values_of("logicalChannelSR-DelayTimer")],
        ),
        Group::of(
            LTE,
            &[Key::new("sr_delay_timer_ms", DELAY, Default::Value("\"none\""), DELAYED)
                .values_of("logicalChannelSR-ProhibitTimer")],
        ),
        Group::of(
            NR_LTE,
            &[Key::new(
                BsrPiggyback::KEY,
                Kind::Choice(BsrPiggyback::CHOICES),
                Default::Value("\"padding\""),
                "When a report goes out although nothing has triggered one.",
            )],
        ),
        Group::of(
            NR_LTE,
            &[Key::new(
                BsrRegular::KEY,
                Kind::Choice(BsrRegular::CHOICES),
                Default::Value("\"new_data\""),
                "What triggers a Regular BSR, and with it a scheduling request, besides \
                 retxBSR-Timer.",
            )],
        ),
    ],
};

const DELAY: Kind = or("none", &MS_ABOVE_0);
const DELAYED: &str = "New data triggers a scheduling request only after this time \
                       (logicalChannelSR-DelayTimer, in LTE -ProhibitTimer).";

const fn retransmission(default: &'static str) -> Key {
    Key::new("retx_timer_ms", MS_ABOVE_0, Default::Value(default), "retxBSR-Timer.")
        .values_of("retxBSR-Timer")
}

/// Grants that no UE requested.
pub(super) static GRANTS: Table = Table {
    header: "[radio.grants]",
    path: "radio.grants or radio.ue.N.grants",
    doc: "What the base station grants for a scheduling request, and without one. In UMTS and \
          EV-DO every UE has a standing grant and sends no request.",
    selector: Some("access"),
    groups: &[
        Group::of(
            NR_LTE,
            &[
                Key::new(
                    "request_grant_bytes",
                    // A buffer status report and some data must fit.
                    count(Unit::Bytes, 16, 1 << 20),
                    Default::Value("100"),
                    "Size of a grant for a UE that has only sent a scheduling request.",
                ),
                Key::new(
                    "forget_after_ms",
                    or("never", &MS_ABOVE_0),
                    Default::Value("\"never\""),
                    "Time after the UE's last transmission until its last report no longer \
                     counts.",
                ),
                Key::new(
                    "assume_more",
                    Kind::Flag,
                    Default::Value("true"),
                    "Whether the base station takes a block that has no report, and no room for \
                     one, as a sign of more data, and grants as much again. If not, a UE that has \
                     more than it reported is silent until retxBSR-Timer expires.",
                ),
                Key::new(
                    "least_prbs",
                    count(Unit::Plain, 1, 100),
                    Default::Value("1"),
                    "Fewest resource blocks of a grant for new data.",
                ),
                Key::new(
                    "request_mcs",
                    or("any", &count(Unit::Plain, 0, 28)),
                    Default::Value("\"any\""),
                    "Highest MCS of a grant for a UE that has only sent a scheduling request.",
                ),
                Key::new(
                    "header_room",
                    Kind::Flag,
                    Default::Value("true"),
                    "Whether a grant is larger than the reported data by a sixteenth and 16 \
                     bytes, for headers.",
                ),
                Key::new(
                    GrantRequests::KEY,
                    Kind::Choice(GrantRequests::CHOICES),
                    Default::Value("\"unexpected\""),
                    "Which scheduling requests the base station answers.",
                ),
                Key::new(
                    "late_reports",
                    Kind::Flag,
                    Default::Value("false"),
                    "Whether a report that HARQ delivers late replaces a newer one.",
                ),
                Key::new(
                    "proactive_period_ms",
                    or("none", &MS_ABOVE_0),
                    Default::Value("\"none\""),
                    "Period of grants that the base station gives without a request. A grant that \
                     is not used is wasted.",
                ),
                Key::new(
                    "proactive_offset_ms",
                    MS_FROM_0,
                    Default::Value("0"),
                    "Time of the first grant, modulo the period.",
                )
                .needs(PROACTIVE),
                Key::new("proactive_bytes", GRANT, Default::Value("100"), "Size of each grant.")
                    .needs(PROACTIVE),
                Key::new(
                    "proactive_keep_ms",
                    or("always", &MS_ABOVE_0),
                    Default::Value("\"always\""),
                    "Time after the UE's last transmission for which these grants are given.",
                )
                .needs(PROACTIVE),
                Key::new(
                    "configured_period_ms",
                    or("none", &MS_ABOVE_0),
                    Default::Value("\"none\""),
                    "Period of the configured grant, type 1 (TS 38.321 5.8.2). It needs no PDCCH, \
                     and a UE without data sends nothing.",
                ),
                Key::new(
                    "configured_offset_ms",
                    MS_FROM_0,
                    Default::Value("0"),
                    "Time of the first grant, modulo the period.",
                )
                .needs(CONFIGURED),
                Key::new("configured_bytes", GRANT, Default::Value("100"), "Size of each grant.")
                    .needs(CONFIGURED),
            ],
        ),
        Group::of(
            UMTS_EVDO,
            &[Key::new(
                "serving_grant_bytes",
                or("largest", &GRANT),
                Default::Value("\"largest\""),
                "The most that the UE may send in a TTI or a packet, MAC header included (TS \
             25.321 11.8.1.3; in EV-DO what T2P allows); \"largest\": the largest block of its \
             category or of its DCH.",
            )],
        ),
    ],
};

const GRANT: Kind = count(Unit::Bytes, 16, 1 << 20);
const PROACTIVE: Need = Need::Not("proactive_period_ms", "none");
const CONFIGURED: Need = Need::Not("configured_period_ms", "none");

const ON: Need = Need::On("enabled");

const fn enabled(doc: &'static str) -> Key {
    Key::new("enabled", Kind::Flag, Default::Value("false"), doc)
}

/// A delay of the random access procedure.
const fn rach(name: &'static str, default: &'static str, doc: &'static str) -> Key {
    Key::new(name, MS_FROM_0, Default::Value(default), doc).needs(ON)
}

const WINDOW: &str = "ra-ResponseWindow.";
const TO_WINDOW: &str = "Time from the end of the preamble to the beginning of ra-ResponseWindow.";
const TO_RESPONSE: &str = "Time from the beginning of the window to the end of the response.";
const TO_MSG3: &str = "Time from the end of the response to the end of Msg3.";
const PREAMBLE: &str = "Length of the preamble.";
const CONTENTION: &str = "ra-ContentionResolutionTimer.";
const TO_RESOLUTION: &str = "Time from the end of Msg3 to the end of the contention resolution.";

/// Random access.
pub(super) static RACH: Table = Table {
    header: "[radio.rach]",
    path: "radio.rach or radio.ue.N.rach",
    doc: "Four-step random access (TS 38.321 5.1, TS 36.321 5.1). If the table is present, it is \
          enabled unless it says otherwise.",
    selector: Some("access"),
    groups: &[
        Group::of(
            NR_LTE,
            &[
                enabled(
                    "Whether there is random access. Without it, a UE whose scheduling \
                         request fails repeats the request.",
                ),
                Key::new("period_ms", MS_ABOVE_0, Default::Value("10"), "Period of PRACH.")
                    .needs(ON),
                rach("offset_ms", "1", "Time of the first occasion, modulo the period."),
                rach("preparation_ms", "1", "Time from the trigger to the first usable occasion."),
            ],
        ),
        // TS 36.321 5.1.4: the window begins 3 subframes after the preamble; TS 36.213 6.1.1:
        // Msg3 6 subframes after the response
        Group::of(
            LTE,
            &[
                rach("preamble_ms", "1", PREAMBLE),
                rach("response_window_after_ms", "3", TO_WINDOW),
                rach("response_window_ms", "10", WINDOW),
                rach("response_delay_ms", "1", TO_RESPONSE),
                rach("msg3_delay_ms", "7", TO_MSG3),
                rach("contention_resolution_ms", "48", CONTENTION),
                rach("resolution_delay_ms", "5", TO_RESOLUTION),
            ],
        ),
        Group::of(
            NR,
            &[
                rach("preamble_ms", "1", PREAMBLE),
                rach("response_window_after_ms", "0.5", TO_WINDOW),
                rach("response_window_ms", "10", WINDOW),
                rach("response_delay_ms", "2", TO_RESPONSE),
                rach("msg3_delay_ms", "3", TO_MSG3),
                rach("contention_resolution_ms", "64", CONTENTION),
                rach("resolution_delay_ms", "3", TO_RESOLUTION),
            ],
        ),
        Group::of(
            NR_LTE,
            &[
                rach("backoff_ms", "0", "PREAMBLE_BACKOFF."),
                Key::new(
                    "preambles_max",
                    count(Unit::Plain, 1, 1000),
                    Default::Value("10"),
                    "preambleTransMax.",
                )
                .needs(ON),
                Key::new(
                    "miss_probability",
                    Kind::Fraction,
                    Default::Value("0"),
                    "Probability that the base station does not see a preamble.",
                )
                .needs(ON),
                Key::new(
                    "contention_probability",
                    Kind::Fraction,
                    Default::Value("0"),
                    "Probability that another UE has sent the same preamble and wins.",
                )
                .needs(ON),
            ],
        ),
    ],
};

/// Time alignment.
pub(super) static TIME_ALIGNMENT: Table = Table {
    header: "[radio.time_alignment]",
    path: "radio.time_alignment or radio.ue.N.time_alignment",
    doc: "Time alignment (TS 38.321 5.2, TS 36.321 5.2): a UE whose timer has expired needs \
          random access. If the table is present, it is enabled unless it says otherwise.",
    selector: Some("access"),
    groups: &[Group::of(
        NR_LTE,
        &[
            enabled(
                "Whether time alignment can be lost. Without this the UE is always aligned. \
                     It needs `[radio.rach]`.",
            ),
            Key::new(
                "timer_ms",
                or("infinity", &MS_ABOVE_0),
                Default::Value("10240"),
                "timeAlignmentTimer.",
            )
            .needs(ON)
            .values_of("timeAlignmentTimer"),
            Key::new(
                "command_every_ms",
                MS_ABOVE_0,
                Default::Value("1000"),
                "Least time between two Timing Advance Commands. They are sent with downlink \
                 blocks.",
            )
            .needs(ON),
        ],
    )],
};

choices! {
    /// Values of `requests`.
    GrantRequests("requests") {
        Unexpected = "unexpected": "Those that arrive while nothing is granted.",
        All = "all": "Each, by the next grant; a report that asks for more comes first.",
    }

    /// Values of `regular_trigger`.
    BsrRegular("regular_trigger") {
        NewData = "new_data": "Data for a UE that had none waiting, as specified.",
        WaitingData = "waiting_data": "Data that waits, in every slot. Each block has a report, \
            and the UE sends a request at each occasion at which data waits and it has no PUSCH. \
            OpenAirInterface's UE does this.",
    }

    /// Values of `piggyback`.
    BsrPiggyback("piggyback") {
        Padding = "padding": "A report goes out only in padding, as specified.",
        Always = "always": "A report goes out in every transport block that can hold one.",
    }
}
