//! `[radio.rlc]` and `[radio.rlc_up]`.

use super::super::stage::{
    ACTIVE, CODEL_INTERVAL, CODEL_TARGET, FQ_CODEL_QUANTUM, FQ_CODEL_QUEUES,
};
use super::super::{
    Chosen, Default, Group, Key, Kind, MS_ABOVE_0, MS_FROM_0, Need, Table, Unit, count, or,
};
use super::{LTE, NR, NR_LTE, UMTS, UMTS_EVDO};

/// One direction of the bearer.
pub(super) static RLC: Table = Table {
    header: "[radio.rlc] and [radio.rlc_up]",
    path: "radio.rlc or radio.rlc_up or radio.ue.N.rlc",
    doc: "The bearer: RLC (TS 38.322, TS 36.322, TS 25.322), PDCP (TS 38.323, TS 36.323), and the \
          buffer in which packets wait for their first transmission. Each direction belongs to \
          its sender: `[radio.rlc_up]` has the UE's buffer.",
    selector: Some("access"),
    groups: &[
        Group::of(
            NR_LTE,
            &[Key::new(
                RlcMode::KEY,
                Kind::Choice(RlcMode::CHOICES),
                Default::Value("\"am\""),
                "RLC mode.",
            )],
        ),
        Group::of(NR, NR_KEYS),
        Group::of(LTE, LTE_KEYS),
        Group::of(NR_LTE, ARQ),
        Group::of(UMTS, UMTS_PDUS),
        Group::of(UMTS_EVDO, UMTS_KEYS),
        Group::of(NR, &[header("4", "18 bits of SN and an SDAP header")]),
        Group::of(LTE, &[header("2", "12 bits of SN")]),
        Group::of(UMTS_EVDO, &[header("0", "none (TS 25.323 8.2.1)"), UMTS_DISCARD]),
        Group::of(NR_LTE, PDCP),
        Group::always(BUFFER),
    ],
};

const AM: Need = Need::Is("mode", "am");

const NR_KEYS: &[Key] = &[
    Key::new(
        "sn_bits",
        count(Unit::Plain, 5, 18),
        Default::Derived("18 in AM, 12 in UM"),
        "sn-FieldLength: 12 or 18 in AM, 6 or 12 in UM.",
    ),
    Key::new("t_reassembly_ms", MS_FROM_0, Default::Value("40"), "t-Reassembly (TS 38.322 7.3).")
        .values_of("t-Reassembly"),
    Key::new(
        "t_reordering_ms",
        or("infinity", &MS_FROM_0),
        Default::Value("100"),
        "t-Reordering of PDCP (TS 38.323 7.3): how long a gap delays the packets after it. \
         \"infinity\" is possible only in AM.",
    )
    .values_of("t-Reordering"),
    Key::new(
        "out_of_order_delivery",
        Kind::Flag,
        Default::Value("false"),
        "outOfOrderDelivery: PDCP delivers packets as they arrive.",
    ),
    Key::new(
        "long_mac_subheaders",
        Kind::Flag,
        Default::Value("false"),
        "Whether the MAC subheaders of data always have a length field of 16 bits, also where 8 \
         would do (TS 38.321 6.1.2).",
    ),
];

const LTE_KEYS: &[Key] = &[
    Key::new(
        "sn_bits",
        count(Unit::Plain, 5, 18),
        Default::Derived("10"),
        "sn-FieldLength: 5 or 10 in UM; 10 in AM.",
    ),
    Key::new(
        "t_reordering_ms",
        MS_FROM_0,
        Default::Value("50"),
        "t-Reordering of RLC (TS 36.322 7.3): how long a gap delays the packets after it.",
    )
    .values_of("t-Reordering"),
];

const PDUS: Kind = count(Unit::Pdus, 1, 1 << 20);
const BYTES: Kind = count(Unit::Bytes, 1, 1 << 40);
const PACKETS: Kind = count(Unit::Packets, 1, u32::MAX as u64);

const ARQ: &[Key] = &[
    Key::new("t_poll_retransmit_ms", MS_ABOVE_0, Default::Value("45"), "t-PollRetransmit.")
        .needs(AM)
        .values_of("t-PollRetransmit"),
    Key::new(
        "poll_pdu",
        or("infinity", &PDUS),
        Default::Value("64"),
        "pollPDU: a poll after this many PDUs.",
    )
    .needs(AM)
    .values_of("pollPDU"),
    Key::new(
        "poll_bytes",
        or("infinity", &BYTES),
        Default::Value("125000"),
        "pollByte: a poll after this many bytes.",
    )
    .needs(AM)
    .values_of("pollByte"),
    Key::new("t_status_prohibit_ms", MS_FROM_0, Default::Value("10"), "t-StatusProhibit.")
        .needs(AM)
        .values_of("t-StatusProhibit"),
    Key::new(
        "max_retx_threshold",
        count(Unit::Plain, 1, 1 << 20),
        Default::Value("32"),
        "maxRetxThreshold.",
    )
    .needs(AM)
    .values_of("maxRetxThreshold"),
];

/// UMTS RLC is always acknowledged: its UM carries voice.
const UMTS_PDUS: &[Key] = &[
    Key::new(
        "pdu_bytes",
        or("flexible", &count(Unit::Bytes, 16, 126)),
        Default::Value("42"),
        "Size of all RLC PDUs, header included: 42 (336 bits) or 82 (656 bits) are usual. \
         \"flexible\": up to `pdu_most_bytes`, as the block has room (release 7 and 8).",
    ),
    Key::new(
        "pdu_most_bytes",
        count(Unit::Bytes, 16, 1503),
        Default::Value("1503"),
        "The largest RLC PDU (TS 25.331 10.3.4.23).",
    )
    .needs(Need::Is("pdu_bytes", "flexible")),
    Key::new(
        "window_pdus",
        count(Unit::Pdus, 1, 2047),
        Default::Value("2047"),
        "Transmission window size (TS 25.322 9.6).",
    ),
];

/// RLC also stands in for EV-DO's RLP.
const UMTS_KEYS: &[Key] = &[
    Key::new(
        "t_reordering_ms",
        MS_FROM_0,
        Default::Value("60"),
        "T1 of MAC-hs and MAC-es: how long HARQ may take to fill a gap (TS 25.321 11.6.2.1, \
         11.8.3.2).",
    ),
    Key::new(
        "t_poll_retransmit_ms",
        MS_ABOVE_0,
        Default::Value("200"),
        "Timer_Poll (TS 25.322 9.5).",
    ),
    Key::new(
        "poll_pdu",
        or("infinity", &PDUS),
        Default::Value("64"),
        "Poll_PDU: a poll after this many PDUs.",
    ),
    Key::new("t_status_prohibit_ms", MS_FROM_0, Default::Value("40"), "Timer_Status_Prohibit."),
    Key::new("max_retx_threshold", count(Unit::Plain, 1, 1 << 20), Default::Value("32"), "MaxDAT."),
];

const UMTS_DISCARD: Key = Key::new(
    "discard_timer_ms",
    or("infinity", &MS_ABOVE_0),
    Default::Value("\"infinity\""),
    "Timer_Discard of RLC: a packet that waits longer is dropped.",
);

const fn header(default: &'static str, doc: &'static str) -> Key {
    Key::new("pdcp_header_bytes", count(Unit::Bytes, 0, 64), Default::Value(default), doc)
}

const PDCP: &[Key] = &[
    Key::new(
        "discard_timer_ms",
        or("infinity", &MS_ABOVE_0),
        Default::Value("\"infinity\""),
        "discardTimer of PDCP: a packet that waits longer is dropped.",
    )
    .values_of("discardTimer"),
    Key::new(
        "status_report_required",
        Kind::Flag,
        Default::Value("true"),
        "statusReportRequired: after a handover only missing packets are retransmitted.",
    ),
];

const BUFFER: &[Key] = &[
    Key::new(
        "buffer_packets",
        or("unlimited", &PACKETS),
        Default::Value("\"unlimited\""),
        "Number of packets that may wait.",
    ),
    Key::new(
        "buffer_bytes",
        or("unlimited", &BYTES),
        Default::Value("3000000"),
        "Number of bytes that may wait.",
    ),
    Key::new(
        BufferAqm::KEY,
        Kind::Choice(BufferAqm::CHOICES),
        Default::Value("\"drop-tail\""),
        "Active queue management.",
    ),
    CODEL_TARGET,
    CODEL_INTERVAL,
    FQ_CODEL_QUANTUM,
    FQ_CODEL_QUEUES,
    Key::new(
        "ecn",
        Kind::Flag,
        Default::Value("false"),
        "CoDel marks packets of ECN-capable transports instead of dropping them (RFC 8290 4.2).",
    )
    .needs(ACTIVE),
    Key::new(
        "l4s_step_ms",
        or("off", &MS_FROM_0),
        Default::Value("\"off\""),
        "L4S: packets with ECT(1) that waited longer than this are marked, and CoDel does not act \
         on them (TS 23.501 5.37.3).",
    ),
];

choices! {
    /// Values of `mode`.
    RlcMode("mode") {
        Am = "am": "Acknowledged mode: data that HARQ loses is retransmitted.",
        Um = "um": "Unacknowledged mode: data that HARQ loses is lost.",
    }

    /// Values of `aqm`.
    BufferAqm("aqm") {
        DropTail = "drop-tail": "A packet that arrives at a full buffer is dropped.",
        Codel = "codel": "CoDel (RFC 8289).",
        FqCodel = "fq_codel": "A queue for each flow, each with CoDel (RFC 8290).",
    }
}
