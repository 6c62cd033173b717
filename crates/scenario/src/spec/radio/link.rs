//! `[radio.link_adaptation]`, `[radio.harq]` and `[radio.ambr]`.

use super::super::{
    Chosen, Default, Key, Kind, MS_ABOVE_0, MS_FROM_0, Need, Table, Unit, count, or, real,
};
use super::{ALL, EVDO, LTE, NR, NR_LTE, UMTS, each};

/// How an MCS is chosen.
pub(super) static LINK_ADAPTATION: Table = Table {
    header: "[radio.link_adaptation] and [radio.link_adaptation_up]",
    path: "radio.link_adaptation or radio.link_adaptation_up or radio.ue.N.link_adaptation",
    doc: "How the MCS is chosen, and when the base station learns about the channel. In the \
          uplink the base station measures it.",
    selector: Some("access"),
    groups: &[
        each(
            ALL,
            &[
                Key::new(
                    "fixed_mcs",
                    or("adaptive", &MCS),
                    Default::Value("\"adaptive\""),
                    "The MCS of every block.",
                ),
                Key::new(
                    "bler_target",
                    real("", 0.000_001, 0.9),
                    Default::Value("0.1"),
                    "Target of the outer loop: the share of first transmissions that fail.",
                )
                .needs(ADAPTIVE),
                Key::new(
                    "outer_loop_step_db",
                    real("dB", 0.0, 10.0),
                    Default::Value("0.5"),
                    "Amount by which a NACK lowers the offset of the outer loop. 0 means no outer \
                     loop.",
                )
                .needs(ADAPTIVE),
                Key::new(
                    "outer_loop_start_db",
                    OFFSET,
                    Default::Value("0"),
                    "Offset of the outer loop at the start.",
                )
                .needs(ADAPTIVE),
                Key::new(
                    "outer_loop_lowest_db",
                    OFFSET,
                    Default::Value("-15"),
                    "Smallest offset of the outer loop.",
                )
                .needs(ADAPTIVE),
                Key::new(
                    "outer_loop_highest_db",
                    OFFSET,
                    Default::Value("15"),
                    "Largest offset of the outer loop.",
                )
                .needs(ADAPTIVE),
                Key::new(
                    "step_window_ms",
                    or("none", &MS_ABOVE_0),
                    Default::Value("\"none\""),
                    "Moves the MCS by at most one in each such window, so that the share of \
                     failed first transmissions stays between two bounds, whatever is measured \
                     of the channel. \"none\": the MCS follows the CQI and the outer loop.",
                )
                .needs(ADAPTIVE),
                Key::new(
                    "step_lower_bler",
                    real("", 0.0, 0.9),
                    Default::Value("0.05"),
                    "Block error rate below which the MCS rises.",
                )
                .needs(STEPS),
                Key::new(
                    "step_upper_bler",
                    real("", 0.0, 1.0),
                    Default::Value("0.15"),
                    "Block error rate above which the MCS falls.",
                )
                .needs(STEPS),
                Key::new(
                    "step_memory",
                    Kind::Fraction,
                    Default::Value("0.9"),
                    "How much the average of earlier windows counts in the block error rate, \
                     beside the last window.",
                )
                .needs(STEPS),
                Key::new("step_start_mcs", MCS, Default::Value("9"), "MCS at the start.")
                    .needs(STEPS),
                Key::new(
                    "fixed_bler",
                    or("from_sinr", &Kind::Fraction),
                    Default::Value("\"from_sinr\""),
                    "Probability that a first transmission fails, whatever the channel. Without a channel, \
                     as in an outage, every transmission fails.",
                ),
                Key::new(
                    "fixed_bler_retransmission",
                    Kind::Fraction,
                    Default::Value("0"),
                    "Probability that a retransmission fails after all earlier transmissions \
                     failed.",
                )
                .needs(Need::Not("fixed_bler", "from_sinr")),
            ],
        ),
        each(NR, &[period("20"), OFFSET_MS, delay("4")]),
        each(LTE, &[period("10"), OFFSET_MS, delay("6")]),
        each(UMTS, &[period("4"), OFFSET_MS, delay("8")]),
        each(EVDO, &[period("1.666667"), OFFSET_MS, delay("3.333334")]),
    ],
};

const MCS: Kind = count(Unit::Plain, 0, 29);
const ADAPTIVE: Need = Need::Is("fixed_mcs", "adaptive");
const STEPS: Need = Need::Not("step_window_ms", "none");
const OFFSET: Kind = real("dB", -60.0, 60.0);

const fn period(default: &'static str) -> Key {
    Key::new(
        "cqi_period_ms",
        MS_ABOVE_0,
        Default::Value(default),
        "Time between measurements (TS 38.214 5.2.1.4, TS 36.213 7.2.2).",
    )
}

const OFFSET_MS: Key =
    Key::new("cqi_offset_ms", MS_FROM_0, Default::Value("0"), "Time of the first measurement.");

const fn delay(default: &'static str) -> Key {
    Key::new(
        "cqi_delay_ms",
        MS_FROM_0,
        Default::Value(default),
        "Time from a measurement until the scheduler uses it.",
    )
}

/// HARQ of one direction.
pub(super) static HARQ: Table = Table {
    header: "[radio.harq] and [radio.harq_up]",
    path: "radio.harq or radio.harq_up or radio.ue.N.harq",
    doc: "HARQ. LTE's processes and timing follow from its duplex mode (TS 36.213 7 and 8): \
          asynchronous down, synchronous up. UMTS is asynchronous and synchronous in the same \
          way: 6 processes for HS-DSCH, 8 or 4 for E-DCH, none for a DCH. EV-DO has 4 and 3; the \
          rate of a packet determines its number of transmissions.",
    selector: Some("access"),
    groups: &[
        each(
            NR,
            &[
                Key::new(
                    "processes",
                    count(Unit::Plain, 1, 32),
                    Default::Value("16"),
                    "Number of HARQ processes (TS 38.214 5.1, 6.1).",
                ),
                Key::new("max_transmissions", TRANSMISSIONS, Default::Value("4"), MOST),
            ],
        ),
        each(
            LTE,
            &[Key::new("max_transmissions", TRANSMISSIONS, Default::Value("4"), MOST)
                .values_of("maxHARQ-Tx")],
        ),
        each(UMTS, &[Key::new("max_transmissions", TRANSMISSIONS, Default::Value("4"), UMTS_MOST)]),
        each(
            NR_LTE,
            &[
                Key::new(
                    "processing_ms",
                    MS_FROM_0,
                    Default::Derived("a slot in NR, 3 in LTE"),
                    "Time from the arrival of the feedback to the earliest slot that can answer \
                     it, where HARQ is asynchronous.",
                ),
                combining("\"incremental_redundancy\""),
                mother_rate("0.3333333333333333"),
            ],
        ),
        // TS 25.212 4.2.3.2: the turbo code of HS-DSCH and E-DCH
        each(UMTS, &[combining("\"chase\""), mother_rate("0.3333333333333333")]),
        each(EVDO, &[combining("\"incremental_redundancy\""), mother_rate("0.2")]),
        each(
            ALL,
            &[Key::new(
                "nack_to_ack",
                Kind::Fraction,
                Default::Value("0"),
                "Probability that a NACK is received as an ACK. HARQ then loses the block.",
            )],
        ),
    ],
};

const TRANSMISSIONS: Kind = count(Unit::Plain, 1, 28);
const UMTS_MOST: &str = "Largest number of transmissions of a block, the first included. A DCH \
                         has one.";

const fn combining(default: &'static str) -> Key {
    Key::new(
        HarqCombining::KEY,
        Kind::Choice(HarqCombining::CHOICES),
        Default::Value(default),
        "What the receiver does with the transmissions of one block.",
    )
}

const fn mother_rate(default: &'static str) -> Key {
    Key::new(
        "mother_rate",
        real("", 0.05, 1.0),
        // TS 36.212 5.1.3.2, TS 38.212 5.3.2
        Default::Value(default),
        "Lowest code rate. Below it bits are repeated. It is 1/3 for the turbo code of LTE and UMTS \
         and NR's base graph 1, and 1/5 for base graph 2 and EV-DO's turbo code.",
    )
    .needs(Need::Is("combining", "incremental_redundancy"))
}

const MOST: &str = "Largest number of transmissions of a block, the first included.";

/// Rate caps.
pub(super) static AMBR: Table = Table {
    header: "[radio.ambr]",
    path: "radio.ambr or radio.ue.N.ambr",
    doc: "UE-AMBR (TS 23.501 5.7.2.6). The scheduler enforces it, so packets wait.",
    selector: Some("access"),
    groups: &[
        each(
            ALL,
            &[Key::new(
                "down_mbps",
                or("unlimited", &Kind::Rate),
                Default::Value("\"unlimited\""),
                "Largest rate of the downlink.",
            )],
        ),
        each(
            NR_LTE,
            &[Key::new(
                "up_mbps",
                or("unlimited", &Kind::Rate),
                Default::Value("\"unlimited\""),
                "Largest rate of the uplink. In UMTS and EV-DO the serving grant limits it \
                 instead.",
            )],
        ),
        each(
            ALL,
            &[Key::new(
                "bucket_bytes",
                count(Unit::Bytes, 1, 1 << 40),
                Default::Value("100000"),
                "Bytes that may pass at once after a pause. Divided by the rate it is the \
                 averaging window.",
            )],
        ),
    ],
};

choices! {
    /// Values of `combining`.
    HarqCombining("combining") {
        IncrementalRedundancy = "incremental_redundancy": "Each transmission brings new bits.",
        Chase = "chase": "Equal transmissions are added.",
        Discard = "discard": "A failed transmission is discarded.",
    }
}
