//! Keys of the stages of the core network and beyond.

use super::{
    Chosen, Default, Key, Kind, LONGEST_NS, MS, MS_ABOVE_0, MS_FROM_0, Need, TimeUnit, Unit, count,
};

/// Time between stalls, at least a tenth of a millisecond: time must advance between stalls.
const BETWEEN_STALLS: Kind = Kind::Time { unit: TimeUnit::Ms, min_ns: MS / 10, max_ns: LONGEST_NS };

/// Keys of `shaper` and `policer`.
pub(super) const BUCKET: &[Key] = &[
    Key::new(
        "rate_mbps",
        Kind::Rate,
        Default::Required,
        "Token rate, for IP packets, e.g. the AMBR (TS 23.501 5.7.2.6), rounded to whole bits per \
         second.",
    ),
    Key::new(
        "burst_bytes",
        count(Unit::Bytes, 1, 1 << 40),
        Default::Required,
        "Bytes of tokens that the bucket holds. It is full at the start.",
    ),
];

pub(super) const POLICER: &[Key] = &[Key::new(
    PolicerExcess::KEY,
    Kind::Choice(PolicerExcess::CHOICES),
    Default::Value("\"drop\""),
    "What happens to a packet for which there are not enough tokens.",
)];

const ENTER: Need = Need::Is("end", "enter");

/// Keys of `gtpu` and `vpn`.
pub(super) const TUNNEL: &[Key] = &[Key::new(
    TunnelSide::KEY,
    Kind::Choice(TunnelSide::CHOICES),
    Default::Required,
    "Which end of the tunnel this is.",
)];

/// An MTU of a tunnel: that of its device, or of the path outside it.
const fn tunnel_mtu(name: &'static str, doc: &'static str) -> Key {
    Key::new(name, count(Unit::Bytes, 576, 65535), Default::Absent("no limit"), doc).needs(ENTER)
}

const fn too_big(mtu: &'static str, doc: &'static str) -> Key {
    Key::new(
        TooBigPacket::KEY,
        Kind::Choice(TooBigPacket::CHOICES),
        Default::Value("\"fragment\""),
        doc,
    )
    .needs(Need::Given(mtu))
}

pub(super) const GTPU: &[Key] = &[
    Key::new(
        OuterHeader::KEY,
        Kind::Choice(OuterHeader::CHOICES),
        Default::Value("\"ipv4\""),
        "Version of the outer IP header; 8 bytes of UDP and 8 of GTP-U follow it (TS 29.281 5.1).",
    )
    .needs(ENTER),
    Key::new(
        "pdu_session_container",
        Kind::Flag,
        Default::Value("true"),
        "Whether there are 8 more bytes for the extension header of NR's N3 (TS 38.415 5.5.2). \
         LTE's S1-U has none.",
    )
    .needs(ENTER),
    tunnel_mtu("mtu_bytes", "Largest outer packet."),
    too_big(
        "mtu_bytes",
        "What happens to a packet that is larger than `mtu_bytes` with its outer headers.",
    ),
];

pub(super) const VPN: &[Key] = &[
    Key::new(
        OuterHeader::KEY,
        Kind::Choice(OuterHeader::CHOICES),
        Default::Value("\"ipv4\""),
        "Version of the outer IP header. UDP adds 8 bytes to it, the message's header 16 and its \
         authentication tag 16: with the IP header, 60 bytes over IPv4 and 80 over IPv6.",
    )
    .needs(ENTER),
    tunnel_mtu(
        "mtu_bytes",
        "MTU of the VPN's device (`ip link set mtu 1420 dev wg0`): larger packets are dropped, \
         because ICMP is not modelled. Packets are padded to a multiple of 16 bytes, but not beyond \
         this MTU. WireGuard's default is 1420.",
    ),
    tunnel_mtu("outer_mtu_bytes", "Largest outer packet."),
    too_big(
        "outer_mtu_bytes",
        "What happens to a packet that is larger than `outer_mtu_bytes` with its outer headers.",
    ),
];

const JOINED: Need = Need::Is("fault", "joined");

pub(super) const OFFLOAD: &[Key] = &[
    Key::new(
        OffloadFaultKind::KEY,
        Kind::Choice(OffloadFaultKind::CHOICES),
        Default::Required,
        "What the device does wrong.",
    ),
    Key::new(
        "min_packet_bytes",
        count(Unit::Bytes, 0, 1 << 20),
        Default::Value("100"),
        "Packets smaller than this pass unharmed: handshakes and acknowledgements.",
    ),
    Key::new(
        "join_ms",
        Kind::Time { unit: TimeUnit::Ms, min_ns: 0, max_ns: 1000 * MS },
        Default::Value("0.05"),
        "Time from the first packet that finds the device idle until the device forwards all \
         packets that arrived (the interrupt of a network card, `gro_flush_timeout`). 0: only \
         packets that arrive at the same instant are joined.",
    )
    .needs(JOINED),
    Key::new(
        "mtu_bytes",
        count(Unit::Bytes, 68, 65535),
        Default::Value("1500"),
        "MTU of the next hop, which drops joined segments that are larger.",
    )
    .needs(JOINED),
];

pub(super) const MTU: &[Key] = &[Key::new(
    "mtu_bytes",
    count(Unit::Bytes, 68, 65535),
    Default::Required,
    "Largest packet that passes.",
)];

pub(super) const MIDDLEBOX: &[Key] = &[
    Key::new(
        "timeout_s",
        Kind::Time { unit: TimeUnit::S, min_ns: 1, max_ns: LONGEST_NS },
        Default::Derived("300 (RFC 4787 REQ-5 c)"),
        "Idle timeout: how long a flow is remembered after the last packet that refreshed it. In \
         [[path.up]] only.",
    ),
    Key::new(
        "inward_refreshes",
        Kind::Flag,
        Default::Derived("true"),
        "Whether downlink packets refresh a flow too (RFC 4787 REQ-6 a allows it), and not only \
         uplink packets. In [[path.up]] only.",
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
        "CPU time that each packet takes, whatever its size. Packets are processed one after \
         another, so the CPU forwards at most 1000 / `processing_ms` packets per second.",
    ),
    Key::new(
        "coalescing_ms",
        MS_FROM_0,
        Default::Value("0"),
        "Interrupt moderation (rx-usecs of ethtool -C): time from the first packet that arrives \
         at an idle CPU until the CPU starts.",
    ),
    Key::new(
        "ring_packets",
        count(Unit::Packets, 1, u32::MAX as u64),
        Default::Absent("no limit"),
        "Number of packets that the receive ring holds. The packet that is being processed is not \
         in it.",
    ),
    Key::new(
        StallTimes::KEY,
        Kind::Choice(StallTimes::CHOICES),
        Default::Value("\"never\""),
        "When the CPU is taken away. Packets that arrive meanwhile wait in the ring.",
    ),
    Key::new(
        "stall_ms",
        MS_ABOVE_0,
        Default::Required,
        "Length of a stall: of each stall (at intervals), or the mean (exponential) or the \
         maximum (uniform).",
    )
    .needs(STALLS),
    Key::new(
        "stall_period_ms",
        BETWEEN_STALLS,
        Default::Required,
        "Time from the start of a stall to the start of the next.",
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
        StallDistribution::KEY,
        Kind::Choice(StallDistribution::CHOICES),
        Default::Value("\"exponential\""),
        "How the length of a stall is distributed.",
    )
    .needs(AT_RANDOM),
    Key::new(
        "cpu",
        Kind::Name,
        Default::Absent("a CPU of its own"),
        "Name of the CPU. A stage of [[path.down]] and a stage of [[path.up]] with the same name \
         share the CPU: it processes the packets of both in order of arrival, and its stalls \
         delay both.",
    ),
];

pub(super) const MODEM: &[Key] = &[
    Key::new(
        "block_bytes",
        count(Unit::Bytes, 1, 1 << 24),
        Default::Value("16384"),
        "Most bytes of IP packets in a block (tx_max of cdc_ncm, tx-aggr-max-bytes of ethtool \
         -C); headers of the block do not count. A larger packet has a block to itself.",
    ),
    Key::new(
        "block_packets",
        count(Unit::Packets, 1, u32::MAX as u64),
        Default::Value("40"),
        "Most packets in a block (tx_max_datagrams of cdc_ncm, tx-aggr-max-frames of ethtool -C).",
    ),
    Key::new(
        "timer_ms",
        MS_FROM_0,
        Default::Value("1.2"),
        "How long a packet waits for others to fill its block. cdc_ncm waits up to three times \
         tx_timer_usecs, which is 400. 0: a block leaves as soon as the bus is free.",
    ),
    Key::new(
        "transfer_ms",
        Kind::Time { unit: TimeUnit::Ms, min_ns: 0, max_ns: 1000 * MS },
        Default::Value("0"),
        "How long the bus and the modem's CPU take to transfer a block, whatever its size. They \
         transfer one at a time, so at most 1000 / `transfer_ms` blocks per second.",
    ),
    Key::new(
        "ring_packets",
        count(Unit::Packets, 1, u32::MAX as u64),
        Default::Absent("no limit"),
        "Number of packets that may wait. Those that are being transferred do not count.",
    ),
];

pub(super) const SERVER: &[Key] = &[Key::new(
    ServerSite::KEY,
    Kind::Choice(ServerSite::CHOICES),
    Default::Required,
    "Where the server is located. This determines the delay of one direction.",
)];

choices! {
    /// Values of `excess`.
    PolicerExcess("excess") {
        Drop = "drop": "The packet is dropped.",
        Mark = "mark": "The packet is marked (RFC 3168), or dropped if its endpoints do not use \
                        ECN.",
    }

    /// Values of `fault`.
    OffloadFaultKind("fault") {
        Checksum = "checksum":
            "The checksum that the device writes into a packet is wrong, and the receiver discards \
             the packet: a card that cannot compute the checksum of an inner packet, or a TUN \
             device whose reader does not compute it.",
        Joined = "joined":
            "Segments that arrive together are joined (GRO, LRO) and not segmented again: all of \
             them are lost if the result is larger than the MTU of the next hop. Consecutive \
             packets of a flow are joined if they have the same size; the last one may be shorter.",
    }

    /// Values of `end`.
    TunnelSide("end") {
        Enter = "enter": "After this stage packets are in the tunnel.",
        Leave = "leave": "After this stage packets are no longer in the tunnel.",
    }

    /// Values of `outer_ip`.
    OuterHeader("outer_ip") {
        Ipv4 = "ipv4": "20 bytes.",
        Ipv6 = "ipv6": "40 bytes; 48 in a fragment (RFC 8200 4.5).",
    }

    /// Values of `too_big`.
    TooBigPacket("too_big") {
        Fragment = "fragment":
            "The outer packet is fragmented (RFC 791 3.2): its fragments travel one after \
             another, each with a header of its own, and are lost independently.",
        Drop = "drop":
            "The packet is dropped. ICMP (RFC 1191) is not modelled, so the sender does not learn \
             of it, and TCP retransmits at the same size.",
    }

    /// Values of `stalls`.
    StallTimes("stalls") {
        Never = "never": "The CPU is never taken away.",
        AtIntervals = "at-intervals": "At regular times.",
        AtRandom = "at-random": "After exponentially distributed times.",
    }

    /// Values of `stall_distribution`.
    StallDistribution("stall_distribution") {
        Exponential = "exponential": "Exponential with mean `stall_ms`.",
        Uniform = "uniform": "Uniform from 0 to `stall_ms`.",
    }

    /// Values of `place`.
    ServerSite("place") {
        Upf = "upf": "Beside the UPF, behind a switch: 0.05 ms (assumed).",
        Campus = "campus": "On the same site, behind its routers: 0.2 ms (assumed).",
        Edge = "edge":
            "In the same city: 1 ms (100 km of fibre at 5 us a km, and 0.5 ms assumed).",
        Region = "region": "In the same country: 6 ms (1,000 km, and 1 ms assumed).",
        Ocean = "ocean": "Across the Atlantic: 40 ms (7,500 km, and 2.5 ms assumed).",
    }
}
