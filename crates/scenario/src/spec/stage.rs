//! `[[path.down]]` and `[[path.up]]`.

use super::core_network;
use super::tcp::ENDPOINT;
use super::{
    Chosen, Default, ENABLED, Group, Key, Kind, MS_ABOVE_0, MS_FROM_0, Need, Rule, Table, Unit,
    count, or,
};

pub(super) const ACTIVE: Need = Need::Not("aqm", "drop-tail");
const FQ: Need = Need::Is("aqm", "fq_codel");

/// Keys of CoDel and FQ-CoDel.
pub(super) const CODEL_TARGET: Key = Key::new(
    "codel_target_ms",
    MS_ABOVE_0,
    Default::Value("5"),
    "Acceptable standing queue delay (RFC 8289 4.2).",
)
.needs(ACTIVE);
pub(super) const CODEL_INTERVAL: Key = Key::new(
    "codel_interval_ms",
    MS_ABOVE_0,
    Default::Value("100"),
    "Time above the target before the first drop (RFC 8289 4.3).",
)
.needs(ACTIVE);

/// Keys that only FQ-CoDel has.
pub(super) const FQ_CODEL_QUANTUM: Key = Key::new(
    "fq_codel_quantum_bytes",
    count(Unit::Bytes, 1, 1 << 30),
    Default::Value("1514"),
    "Bytes that a queue may send in its turn (RFC 8290 5.2.3).",
)
.needs(FQ);
pub(super) const FQ_CODEL_QUEUES: Key = Key::new(
    "fq_codel_queues",
    or("one_per_flow", &QUEUES),
    Default::Value("1024"),
    "Number of queues. Flows with the same hash share one (RFC 8290 4.1.1).",
)
.needs(FQ);
const QUEUES: Kind = count(Unit::Plain, 1, 1 << 20);

/// One stage.
pub(crate) static STAGE: Table = Table {
    header: "[[path.down]] and [[path.up]]",
    path: "path.down.N or path.up.N",
    doc: "One stage of one direction. Packets pass the stages in file order.",
    selector: Some("stage"),
    groups: &[
        Group::always(&[
            Key::new(
                StageKind::KEY,
                Kind::Choice(StageKind::CHOICES),
                Default::Required,
                "Kind of stage.",
            ),
            ENABLED,
        ]),
        Group::of(
            &["link"],
            &[Key::new(
                "rate_mbps",
                Kind::Rate,
                Default::Required,
                "Rate at which IP packets are sent, rounded to whole bits per second.",
            )],
        ),
        Group::of(
            &["trace"],
            &[Key::new(
                "file",
                Kind::File,
                Default::Required,
                "Trace in Mahimahi's format, plain or gzip: one line for each opportunity to \
                 deliver 1,500 bytes, in whole ms; it loops. Relative to the scenario file's \
                 directory; `builtin:NAME` is a shipped one.",
            )],
        ),
        Group::of(
            &["link", "trace", "shaper"],
            &[
                Key::new(
                    "queue_packets",
                    count(Unit::Packets, 1, u32::MAX as u64),
                    Default::Absent("no limit in packets"),
                    "Number of packets that may wait. The packet that is being sent does not \
                     count.",
                ),
                Key::new(
                    "queue_bytes",
                    count(Unit::Bytes, 1, 1 << 50),
                    Default::Absent("no limit in bytes"),
                    "Number of bytes that may wait.",
                ),
                Key::new(
                    LinkAqm::KEY,
                    Kind::Choice(LinkAqm::CHOICES),
                    Default::Value("\"drop-tail\""),
                    "Active queue management.",
                ),
                CODEL_TARGET,
                CODEL_INTERVAL,
                FQ_CODEL_QUANTUM,
                FQ_CODEL_QUEUES,
            ],
        ),
        Group::of(
            &["delay"],
            &[
                Key::new("delay_ms", MS_FROM_0, Default::Required, "Delay of every packet."),
                Key::new(
                    "jitter_ms",
                    MS_FROM_0,
                    Default::Value("0"),
                    "Additional random delay, drawn for each packet. The value is its maximum \
                     (uniform), its mean (exponential) or its standard deviation (half-normal). 0 \
                     means none.",
                ),
                Key::new(
                    JitterDistribution::KEY,
                    Kind::Choice(JitterDistribution::CHOICES),
                    Default::Value("\"uniform\""),
                    "How the random delay is distributed.",
                )
                .needs(Need::Given("jitter_ms")),
                Key::new(
                    "keep_order",
                    Kind::Flag,
                    Default::Value("true"),
                    "True: a packet waits for the one before it. False: it may overtake.",
                )
                .needs(Need::Given("jitter_ms")),
            ],
        ),
        Group::of(
            &["batch"],
            &[Key::new(
                "interval_ms",
                MS_ABOVE_0,
                Default::Required,
                "All packets that arrived since the last multiple of this time, counted from the \
                 start of the run, leave together at the next multiple. A packet that arrives at \
                 a multiple waits for the one after it.",
            )],
        ),
        Group {
            variants: &["loss"],
            rule: Rule::ExactlyOne,
            keys: &[
                Key::new(
                    "probability",
                    Kind::Fraction,
                    Default::Absent("not random"),
                    "Probability with which each packet is lost, independently.",
                ),
                Key::new(
                    "period",
                    count(Unit::Packets, 1, i64::MAX as u64),
                    Default::Absent("not periodic"),
                    "One packet in this many is lost: the last of them.",
                ),
                Key::new(
                    "packets",
                    Kind::Text,
                    Default::Absent("not of given packets"),
                    "The packets that are lost, by number; the first is 1: e.g. \"1, 40-45\".",
                ),
            ],
        },
        Group::of(
            &["loss", "gilbert-elliott"],
            &[Key::new(
                "min_packet_bytes",
                count(Unit::Bytes, 0, 1 << 20),
                Default::Value("0"),
                "Packets smaller than this pass and do not count: with 100, acknowledgements \
                 without data.",
            )],
        ),
        Group::of(
            &["gilbert-elliott"],
            &[
                Key::new(
                    "good_to_bad",
                    Kind::Fraction,
                    Default::Required,
                    "Probability that the state changes from good to bad, for each packet.",
                ),
                Key::new(
                    "bad_to_good",
                    Kind::Fraction,
                    Default::Required,
                    "Probability that the state changes from bad to good, for each packet.",
                ),
                Key::new(
                    "loss_good",
                    Kind::Fraction,
                    Default::Value("0"),
                    "Loss probability in the good state.",
                ),
                Key::new(
                    "loss_bad",
                    Kind::Fraction,
                    Default::Value("1"),
                    "Loss probability in the bad state.",
                ),
            ],
        ),
        Group::of(&["shaper"], core_network::BUCKET),
        Group::of(&["policer"], core_network::BUCKET),
        Group::of(&["policer"], core_network::POLICER),
        Group::of(&["gtpu", "vpn"], core_network::TUNNEL),
        Group::of(&["gtpu"], core_network::GTPU),
        Group::of(&["vpn"], core_network::VPN),
        Group::of(&["mtu"], core_network::MTU),
        Group::of(&["offload"], core_network::OFFLOAD),
        Group::of(&["nat", "firewall"], core_network::MIDDLEBOX),
        Group::of(&["host"], core_network::HOST),
        Group::of(&["modem"], core_network::MODEM),
        Group::of(&["server"], core_network::SERVER),
        Group::of(
            &["proxy"],
            &[Key::new(
                "profile",
                Kind::Profile,
                Default::Value("\"linux-6.1\""),
                "Profile of both ends of the proxy: the end that receives the data of this \
                 direction, and the end that forwards it.",
            )],
        ),
        Group::of(&["proxy"], ENDPOINT),
    ],
};

choices! {
    /// Values of `stage`.
    StageKind("stage") {
        Link = "link": "A server with a constant rate and a queue.",
        Trace = "trace": "A server that follows a recorded trace, with a queue.",
        Delay = "delay": "A delay that does not depend on load.",
        Batch = "batch":
            "Packets leave only at multiples of an interval, as with a grant period or an \
             interrupt timer.",
        Loss = "loss": "Loss: independent, periodic, or of given packets.",
        GilbertElliott = "gilbert-elliott":
            "Bursty loss: a two-state Markov chain that makes one step per packet.",
        Shaper = "shaper":
            "A token bucket with a queue. A burst passes at once, and the rest passes at the \
             rate.",
        Policer = "policer": "A token bucket without a queue. It drops or marks the excess.",
        Gtpu = "gtpu":
            "One end of a GTP-U tunnel (TS 29.281): between `end = \"enter\"` and `end = \
             \"leave\"` packets have outer headers.",
        Vpn = "vpn":
            "One end of a WireGuard VPN: between `end = \"enter\"` and `end = \"leave\"` packets have \
             outer headers, an authentication tag and padding.",
        Offload = "offload":
            "A network card or TUN device whose offload breaks packets with data. The handshake of \
             a connection passes.",
        Mtu = "mtu":
            "A hop that drops packets larger than its MTU, outer headers included. ICMP (RFC \
             1191) is not modelled, so the sender does not learn of it.",
        Nat = "nat":
            "A NAT. It must be in both directions. An uplink packet creates the binding of its \
             flow; a downlink packet without a binding is dropped. Only the timer is modelled, \
             not addresses or a full table.",
        Firewall = "firewall":
            "A stateful firewall. As with `nat`, downlink packets pass only after an uplink \
             packet of their flow.",
        Host = "host":
            "A host that forwards in software. It has a receive ring, interrupts, and a CPU that \
             a hypervisor takes away at times.",
        Modem = "modem":
            "The driver of a USB modem. Packets cross the bus in blocks: NTBs (CDC NCM, MBIM) or \
             QMAP aggregates. A block is ready when it is full or its timer has expired, and \
             leaves as soon as the bus is free.",
        Server = "server":
            "The delay between the UPF and the server, chosen by the location of the server.",
        Proxy = "proxy":
            "A TCP proxy (RFC 3135 2.4): terminates the TCP connections that cross it and opens \
             others in their place. It must be in both directions, once in each: the stages \
             before it are between the sending side and the proxy. Its keys in [[path.down]] \
             apply to downlink TCP flows, those in [[path.up]] to uplink TCP flows. Datagrams \
             pass unchanged.",
    }

    /// Values of `aqm`.
    LinkAqm("aqm") {
        DropTail = "drop-tail": "A packet that arrives at a full queue is dropped.",
        Codel = "codel": "CoDel (RFC 8289), in addition to the limits.",
        FqCodel = "fq_codel":
            "A queue for each flow, each with CoDel (RFC 8290). Over a limit the longest one loses packets.",
    }

    /// Values of `jitter_distribution`.
    JitterDistribution("jitter_distribution") {
        Uniform = "uniform": "Uniform from 0 to `jitter_ms`.",
        Exponential = "exponential": "Exponential with mean `jitter_ms`.",
        HalfNormal = "half-normal":
            "The absolute value of a normal with standard deviation `jitter_ms`.",
    }
}
