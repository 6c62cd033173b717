//! `[[flow]]` and `[profile.NAME]`.

use super::quic::QUIC;
use super::tcp::{ENDPOINT, FIRST_HOP, PROFILE_ONLY, READER, ROUTE};
use super::{
    Chosen, Default, ENABLED, Group, Key, Kind, LONGEST_NS, MS, S_ABOVE_0, S_FROM_0, Table,
    TimeUnit, Unit, count,
};

/// One flow.
pub(crate) static FLOW: Table = Table {
    header: "[[flow]]",
    path: "flow.N",
    doc: "One flow. Both ends of a TCP or QUIC flow have the same settings.",
    selector: Some("kind"),
    groups: &[
        Group::always(COMMON),
        Group::of(
            &["bulk", "file", "udp", "quic"],
            &[direction("\"down\"", "Direction of the data.")],
        ),
        Group::of(&["ping"], &[direction("\"up\"", "Direction of the request.")]),
        Group::always(&[Key::new(
            "start_s",
            S_FROM_0,
            Default::Value("0"),
            "When the flow starts. It must be before the end of the run.",
        )]),
        Group::of(
            &["bulk", "udp", "quic"],
            &[Key::new(
                "duration_s",
                S_ABOVE_0,
                Default::Absent("until the run ends"),
                "How long the flow sends.",
            )],
        ),
        Group::of(
            &["bulk"],
            &[Key::new(
                "write_bytes",
                count(Unit::Bytes, 1, 1 << 40),
                Default::Absent("it ends within one"),
                "Size of the application's writes, as with `iperf -l`. During `duration_s` it \
                 writes whenever there is room, whatever the size; at the end of that time it \
                 completes the current write.",
            )],
        ),
        Group::of(
            &["file"],
            &[Key::new(
                "size_bytes",
                count(Unit::Bytes, 1, 1 << 50),
                Default::Required,
                "Number of bytes to transfer.",
            )],
        ),
        Group::of(
            &["bulk", "file", "udp", "quic"],
            &[Key::new(
                "streams",
                count(Unit::Plain, 1, 10_000),
                Default::Absent("one flow, named `id`"),
                "Number of equal flows that this table stands for, as with `iperf3 -P`. Each has \
                 a row in the table `flows`, named `ID.1`, `ID.2` and so on; the sum and Jain's \
                 index of all of them are in the table `groups`.",
            )],
        ),
        Group::of(
            &["file"],
            &[Key::new(
                "write_times_s",
                Kind::Text,
                Default::Absent("all at the start"),
                "Times after the start at which the application writes an equal part of the \
                 bytes, at the last one the remainder: e.g. \"0, 0.5, 2\".",
            )],
        ),
        Group::of(&["ping"], PING),
        Group::of(&["udp"], UDP),
        Group::of(
            &["udp"],
            &[opened_by(
                "\"sender\"",
                "Which end sends the first datagram. The receiver sends only one, like a client \
                 that requests a stream, and the sender starts when that one has arrived.",
            )],
        ),
        Group::of(
            &["bulk"],
            &[opened_by("\"sender\"", "Which end sends the SYN. In iperf it is the sender.")],
        ),
        Group::of(
            &["file"],
            &[opened_by(
                "\"receiver\"",
                "Which end sends the SYN. In a download it is the receiver.",
            )],
        ),
        Group::of(
            &["bulk", "file"],
            &[Key::new(
                "profile",
                Kind::Profile,
                Default::Value("\"rfc\""),
                "The profile of both ends: a built-in one or a `[profile.NAME]` of this file.",
            )],
        ),
        Group::of(&["quic"], QUIC),
        Group::of(&["bulk", "file"], ENDPOINT),
        Group::of(&["bulk", "file"], READER),
        Group::of(&["bulk", "file"], FIRST_HOP),
        Group::of(&["bulk", "file"], ROUTE),
    ],
};

/// One profile.
pub(crate) static PROFILE: Table = Table {
    header: "[profile.NAME]",
    path: "profile.NAME",
    doc: "A TCP profile of your own, derived from another one.",
    selector: None,
    groups: &[
        Group::always(&[Key::new(
            "base",
            Kind::Profile,
            Default::Value("\"rfc\""),
            "The profile that this one starts from.",
        )]),
        Group::always(PROFILE_ONLY),
        Group::always(ENDPOINT),
        Group::always(READER),
    ],
};

const COMMON: &[Key] = &[
    Key::new(
        "id",
        Kind::Name,
        Default::Derived("kind and position in the file, e.g. `bulk-0`"),
        "Unique name of the flow, used in tables.",
    ),
    Key::new(FlowKind::KEY, Kind::Choice(FlowKind::CHOICES), Default::Required, "Kind of traffic."),
    Key::new(
        "ue",
        Kind::Name,
        Default::Derived("the first one, if there is a radio"),
        "The UE at the flow's end: the name of a `[[radio.ue]]`.",
    ),
    ENABLED,
];

const PING: &[Key] = &[
    Key::new(
        "interval_ms",
        Kind::Time { unit: TimeUnit::Ms, min_ns: MS, max_ns: LONGEST_NS },
        Default::Value("1000"),
        "Time between requests.",
    ),
    Key::new(
        "packet_bytes",
        // 20 bytes of IPv4 and 8 of ICMP.
        count(Unit::Bytes, 28, 65535),
        Default::Value("84"),
        "Size of the IP packet. `ping` sends 84 bytes.",
    ),
    Key::new(
        "count",
        count(Unit::Plain, 1, i64::MAX as u64),
        Default::Absent("until the run ends"),
        "Number of requests.",
    ),
];

const UDP: &[Key] = &[
    Key::new("rate_mbps", Kind::Rate, Default::Required, "Rate, IP headers included."),
    Key::new(
        "packet_bytes",
        // 20 bytes of IPv4 and 8 of UDP.
        count(Unit::Bytes, 28, 65535),
        Default::Value("1500"),
        "IP packet size.",
    ),
];

const fn direction(default: &'static str, doc: &'static str) -> Key {
    Key::new(FlowDirection::KEY, Kind::Choice(FlowDirection::CHOICES), Default::Value(default), doc)
}

const fn opened_by(default: &'static str, doc: &'static str) -> Key {
    Key::new(Opener::KEY, Kind::Choice(Opener::CHOICES), Default::Value(default), doc)
}

choices! {
    /// Values of `opened_by`.
    Opener("opened_by") {
        Sender = "sender": "The end that sends the data.",
        Receiver = "receiver": "The end that receives the data.",
    }

    /// Values of `direction`.
    FlowDirection("direction") {
        Down = "down": "From the server to the UE.",
        Up = "up": "From the UE to the server.",
    }

    /// Values of `kind`.
    FlowKind("kind") {
        Bulk = "bulk": "TCP that sends as much as it can for a time, as iperf does.",
        File = "file": "TCP that sends a number of bytes, then closes.",
        Ping = "ping": "Echo requests at an interval, and their replies.",
        Udp = "udp": "Datagrams at a constant rate.",
        Quic = "quic": "QUIC that sends a number of bytes, or as much as it can for a time.",
    }
}
