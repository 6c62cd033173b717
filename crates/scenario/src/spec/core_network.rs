//! Keys of the stages of the core network and beyond.

use super::{
    Default, Key, Kind, LONGEST_NS, MS, MS_ABOVE_0, MS_FROM_0, Need, TimeUnit, Unit, choice, count,
};

/// A tenth of a millisecond at the least: time must get on between stalls.
const BETWEEN_STALLS: Kind = Kind::Time { unit: TimeUnit::Ms, min_ns: MS / 10, max_ns: LONGEST_NS };

/// Of `shaper` and `policer`.
pub(super) const BUCKET: &[Key] = &[
    Key::new(
        "rate_mbps",
        Kind::Rate,
        Default::Required,
        "Rate at which tokens for IP packets come, e.g. the AMBR (TS 23.501 5.7.2.6), rounded to \
         whole bits per second.",
    ),
    Key::new(
        "burst_bytes",
        count(Unit::Bytes, 1, 1 << 40),
        Default::Required,
        "Bytes of tokens that the bucket holds; it starts full.",
    ),
];

pub(super) const POLICER: &[Key] = &[Key::new(
    "excess",
    Kind::Choice(&[
        choice("drop", "It is dropped."),
        choice("mark", "It is marked (RFC 3168), and dropped if its endpoints do not use ECN."),
    ]),
    Default::Value("\"drop\""),
    "What becomes of a packet for which there are not enough tokens.",
)];

const ENTER: Need = Need::Is("end", "enter");

pub(super) const GTPU: &[Key] = &[
    Key::new(
        "end",
        Kind::Choice(&[
            choice("enter", "From here on packets are in the tunnel."),
            choice("leave", "From here on they are not."),
        ]),
        Default::Required,
        "Which end of the tunnel this is.",
    ),
    Key::new(
        "outer_ip",
        Kind::Choice(&[
            choice("ipv4", "20 bytes."),
            choice("ipv6", "40 bytes; 48 in a fragment (RFC 8200 4.5)."),
        ]),
        Default::Value("\"ipv4\""),
        "Version of the outer IP header; 8 bytes of UDP and 8 of GTP-U follow it (TS 29.281 5.1).",
    )
    .needs(ENTER),
    Key::new(
        "pdu_session_container",
        Kind::Flag,
        Default::Value("true"),
        "8 bytes more for the extension header of NR's N3 (TS 38.415 5.5.2); LTE's S1-U has none.",
    )
    .needs(ENTER),
    Key::new(
        "mtu_bytes",
        count(Unit::Bytes, 576, 65535),
        Default::Absent("no limit"),
        "Largest outer packet.",
    )
    .needs(ENTER),
    Key::new(
        "too_big",
        Kind::Choice(&[
            choice(
                "fragment",
                "The outer packet is fragmented (RFC 791 3.2): its fragments travel one after \
                 another, cost a header each, and are lost one by one.",
            ),
            choice(
                "drop",
                "It is dropped. Nobody is told: ICMP (RFC 1191) is not modelled, so TCP sends it \
                 again at the same size.",
            ),
        ]),
        Default::Value("\"fragment\""),
        "What becomes of a packet that with its headers is larger than `mtu_bytes`.",
    )
    .needs(Need::Given("mtu_bytes")),
];

pub(super) const MTU: &[Key] = &[Key::new(
    "mtu_bytes",
    count(Unit::Bytes, 68, 65535),
    Default::Required,
    "Largest packet that passes.",
)];

pub(super) const GATE: &[Key] = &[
    Key::new(
        "timeout_s",
        Kind::Time { unit: TimeUnit::S, min_ns: 1, max_ns: LONGEST_NS },
        Default::Derived("300 (RFC 4787 REQ-5 c)"),
        "In [[path.up]] only: how long after the last packet that refreshed it a flow is forgotten.",
    ),
    Key::new(
        "inward_refreshes",
        Kind::Flag,
        Default::Derived("true"),
        "In [[path.up]] only: packets down refresh the flow too (RFC 4787 REQ-6 a allows it), not \
         only packets up.",
    ),
];

const STALLS: Need = Need::Begins("stalls", "at-");
const AT_INTERVALS: Need = Need::Is("stalls", "at-intervals");
const AT_RANDOM: Need = Need::Is("stalls", "at-random");

pub(super) const HOST: &[Key] = &[
    Key::new(
        "processing_ms",
        Kind::Time { unit: TimeUnit::Ms, min_ns: 0, max_ns: 1000 * MS },
        Default::Value("0"),
        "CPU time that each packet takes, one after another.",
    ),
    Key::new(
        "coalescing_ms",
        MS_FROM_0,
        Default::Value("0"),
        "Interrupt coalescing: time from the first packet that finds the CPU idle until it starts.",
    ),
    Key::new(
        "ring_packets",
        count(Unit::Packets, 1, u32::MAX as u64),
        Default::Absent("no limit"),
        "Packets that the receive ring holds; the one being processed is not in it.",
    ),
    Key::new(
        "stalls",
        Kind::Choice(&[
            choice("never", "It is always there."),
            choice("at-intervals", "At regular times."),
            choice("at-random", "After exponentially distributed times."),
        ]),
        Default::Value("\"never\""),
        "When the CPU is taken away; what comes meanwhile waits in the ring.",
    ),
    Key::new(
        "stall_ms",
        MS_ABOVE_0,
        Default::Required,
        "Length of a stall: of each (at intervals), the mean (exponential) or the maximum \
         (uniform).",
    )
    .needs(STALLS),
    Key::new(
        "stall_period_ms",
        BETWEEN_STALLS,
        Default::Required,
        "From the start of a stall to the start of the next.",
    )
    .needs(AT_INTERVALS),
    Key::new("stall_offset_ms", MS_FROM_0, Default::Value("0"), "Start of the first stall.")
        .needs(AT_INTERVALS),
    Key::new(
        "stall_mean_between_ms",
        BETWEEN_STALLS,
        Default::Required,
        "Mean time from the end of a stall to the start of the next.",
    )
    .needs(AT_RANDOM),
    Key::new(
        "stall_distribution",
        Kind::Choice(&[
            choice("exponential", "Exponential with mean `stall_ms`."),
            choice("uniform", "Uniform from 0 to `stall_ms`."),
        ]),
        Default::Value("\"exponential\""),
        "How the length of a stall is distributed.",
    )
    .needs(AT_RANDOM),
    Key::new(
        "cpu",
        Kind::Name,
        Default::Absent("a CPU of its own"),
        "Stages with the same name here, in either direction, are stalled at the same random times \
         if their stall keys agree.",
    )
    .needs(AT_RANDOM),
];

/// Name and one-way delay in us. Light in fibre takes 5 us a km (group index 1.47); distances, and
/// what switches and detours add, are assumptions.
pub(crate) const PLACES: &[(&str, u64)] =
    &[("upf", 50), ("campus", 200), ("edge", 1_000), ("region", 6_000), ("ocean", 40_000)];

pub(super) const SERVER: &[Key] = &[Key::new(
    "place",
    Kind::Choice(&[
        choice("upf", "Beside the UPF, behind a switch: 0.05 ms (assumed)."),
        choice("campus", "On the same site, behind its routers: 0.2 ms (assumed)."),
        choice(
            "edge",
            "In the same city: 1 ms (100 km of fibre at 5 us a km, and 0.5 ms assumed).",
        ),
        choice("region", "In the same country: 6 ms (1,000 km, and 1 ms assumed)."),
        choice("ocean", "Across the Atlantic: 40 ms (7,500 km, and 2.5 ms assumed)."),
    ]),
    Default::Required,
    "Where the server stands; the delay of one direction.",
)];
