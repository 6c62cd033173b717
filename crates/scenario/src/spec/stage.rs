//! `[[path.down]]` and `[[path.up]]`.

use super::core_network;
use super::flow::{ENDPOINT, RECEIVER, SENDER};
use super::{
    Default, ENABLED, Group, Key, Kind, MS_ABOVE_0, MS_FROM_0, Need, Rule, Table, Unit, choice,
    count,
};

/// One stage.
pub(crate) static STAGE: Table = Table {
    header: "[[path.down]] and [[path.up]]",
    path: "path.down.N or path.up.N",
    doc: "One stage of one direction. Packets meet the stages in file order.",
    selector: Some("stage"),
    groups: &[
        Group {
            variants: &[],
            rule: Rule::Each,
            keys: &[
                Key::new(
                    "stage",
                    Kind::Choice(&[
                        choice("link", "A server with a constant rate and a queue."),
                        choice("trace", "A server that follows a recorded trace, with a queue."),
                        choice("delay", "A delay that does not depend on load."),
                        choice(
                            "batch",
                            "Departures at multiples of an interval only: a grant period, an \
                         interrupt timer.",
                        ),
                        choice("loss", "Loss, independent or periodic."),
                        choice(
                            "gilbert-elliott",
                            "Bursty loss: a two-state Markov chain that makes one step a packet.",
                        ),
                        choice(
                            "shaper",
                            "A token bucket with a queue: a burst passes at once, the rest at the rate.",
                        ),
                        choice(
                            "policer",
                            "A token bucket without a queue: drops or marks the excess.",
                        ),
                        choice(
                            "gtpu",
                            "One end of a GTP-U tunnel (TS 29.281): between `end = \"enter\"` and `end = \
                         \"leave\"` packets have outer headers.",
                        ),
                        choice(
                            "mtu",
                            "A hop that drops what is larger than its MTU, outer headers included. \
                         Nobody is told: ICMP (RFC 1191) is not modelled.",
                        ),
                        choice(
                            "nat",
                            "A NAT: stands once in each direction; what goes up makes a flow's binding, \
                         what comes down without one is dropped. Only its timer is modelled, not \
                         addresses or a full table.",
                        ),
                        choice(
                            "firewall",
                            "A stateful firewall: like `nat`, what comes down passes only after \
                         something of its flow went up.",
                        ),
                        choice(
                            "host",
                            "A host that forwards in software: a receive ring, interrupts, and a CPU \
                         that a hypervisor takes away now and then.",
                        ),
                        choice(
                            "server",
                            "The way between the UPF and the server, as a place with a name: a delay.",
                        ),
                        choice(
                            "proxy",
                            "A TCP proxy (RFC 3135 2.4): ends the TCP connections that cross it and \
                         opens others in their place. It stands in both directions, once in each: \
                         what a list has before it lies between the sending side and the proxy. \
                         Its keys in [[path.down]] hold for TCP flows down, those in [[path.up]] \
                         for flows up. Datagrams pass unchanged.",
                        ),
                    ]),
                    Default::Required,
                    "What it is.",
                ),
                ENABLED,
            ],
        },
        Group {
            variants: &["link"],
            rule: Rule::Each,
            keys: &[Key::new(
                "rate_mbps",
                Kind::Rate,
                Default::Required,
                "Rate at which IP packets are sent, rounded to whole bits per second.",
            )],
        },
        Group {
            variants: &["trace"],
            rule: Rule::Each,
            keys: &[Key::new(
                "file",
                Kind::File,
                Default::Required,
                "Trace in Mahimahi's format, plain or gzip: one line for each opportunity to \
                 deliver 1,500 bytes, in whole ms; it loops. Relative to the scenario file's \
                 directory; `builtin:NAME` is a shipped one.",
            )],
        },
        Group {
            variants: &["link", "trace", "shaper"],
            rule: Rule::Each,
            keys: &[
                Key::new(
                    "queue_packets",
                    count(Unit::Packets, 1, u32::MAX as u64),
                    Default::Absent("no limit in packets"),
                    "Packets that may wait; the one being sent no longer waits.",
                ),
                Key::new(
                    "queue_bytes",
                    count(Unit::Bytes, 1, 1 << 50),
                    Default::Absent("no limit in bytes"),
                    "Bytes that may wait.",
                ),
                Key::new(
                    "aqm",
                    Kind::Choice(&[
                        choice("drop-tail", "Drops what arrives at a full queue."),
                        choice("codel", "CoDel (RFC 8289), besides the limits."),
                    ]),
                    Default::Value("\"drop-tail\""),
                    "Active queue management.",
                ),
                Key::new(
                    "codel_target_ms",
                    MS_ABOVE_0,
                    Default::Value("5"),
                    "Acceptable standing queue delay (RFC 8289 4.2).",
                )
                .needs(Need::Is("aqm", "codel")),
                Key::new(
                    "codel_interval_ms",
                    MS_ABOVE_0,
                    Default::Value("100"),
                    "Time above the target before the first drop (RFC 8289 4.3).",
                )
                .needs(Need::Is("aqm", "codel")),
            ],
        },
        Group {
            variants: &["delay"],
            rule: Rule::Each,
            keys: &[
                Key::new("delay_ms", MS_FROM_0, Default::Required, "Delay of every packet."),
                Key::new(
                    "jitter_ms",
                    MS_FROM_0,
                    Default::Value("0"),
                    "Random delay on top, drawn for each packet: the maximum (uniform), the mean \
                     (exponential) or the standard deviation (half-normal); 0 is none.",
                ),
                Key::new(
                    "jitter_distribution",
                    Kind::Choice(&[
                        choice("uniform", "Uniform from 0 to `jitter_ms`."),
                        choice("exponential", "Exponential with mean `jitter_ms`."),
                        choice(
                            "half-normal",
                            "The absolute value of a normal with standard deviation `jitter_ms`.",
                        ),
                    ]),
                    Default::Value("\"uniform\""),
                    "How the random delay is distributed.",
                )
                .needs(Need::Given("jitter_ms")),
                Key::new(
                    "keep_order",
                    Kind::Flag,
                    Default::Value("true"),
                    "True: a packet waits for the one before it; false: it may overtake.",
                )
                .needs(Need::Given("jitter_ms")),
            ],
        },
        Group {
            variants: &["batch"],
            rule: Rule::Each,
            keys: &[Key::new(
                "interval_ms",
                MS_ABOVE_0,
                Default::Required,
                "All packets that came since the last multiple of this time, counted from the \
                 run's start, leave together at the next; one that comes at a multiple waits for \
                 the one after.",
            )],
        },
        Group {
            variants: &["loss"],
            rule: Rule::ExactlyOne,
            keys: &[
                Key::new(
                    "probability",
                    Kind::Share,
                    Default::Absent("not random"),
                    "Probability with which each packet is lost, independently.",
                ),
                Key::new(
                    "period",
                    count(Unit::Packets, 1, i64::MAX as u64),
                    Default::Absent("not periodic"),
                    "One packet of this many is lost, the last.",
                ),
            ],
        },
        Group {
            variants: &["gilbert-elliott"],
            rule: Rule::Each,
            keys: &[
                Key::new(
                    "good_to_bad",
                    Kind::Share,
                    Default::Required,
                    "Probability, for each packet, to go from good to bad.",
                ),
                Key::new(
                    "bad_to_good",
                    Kind::Share,
                    Default::Required,
                    "Probability, for each packet, to go from bad to good.",
                ),
                Key::new(
                    "loss_good",
                    Kind::Share,
                    Default::Value("0"),
                    "Loss probability while good.",
                ),
                Key::new(
                    "loss_bad",
                    Kind::Share,
                    Default::Value("1"),
                    "Loss probability while bad.",
                ),
            ],
        },
        Group { variants: &["shaper"], rule: Rule::Each, keys: core_network::BUCKET },
        Group { variants: &["policer"], rule: Rule::Each, keys: core_network::BUCKET },
        Group { variants: &["policer"], rule: Rule::Each, keys: core_network::POLICER },
        Group { variants: &["gtpu"], rule: Rule::Each, keys: core_network::GTPU },
        Group { variants: &["mtu"], rule: Rule::Each, keys: core_network::MTU },
        Group { variants: &["nat", "firewall"], rule: Rule::Each, keys: core_network::GATE },
        Group { variants: &["host"], rule: Rule::Each, keys: core_network::HOST },
        Group { variants: &["server"], rule: Rule::Each, keys: core_network::SERVER },
        Group {
            variants: &["proxy"],
            rule: Rule::Each,
            keys: &[Key::new(
                "profile",
                Kind::Profile,
                Default::Value("\"linux-6.1\""),
                "The profile of both of its ends: the one that receives what comes in this \
                 direction, and the one that sends it on.",
            )],
        },
        Group { variants: &["proxy"], rule: Rule::Each, keys: ENDPOINT },
        Group { variants: &["proxy"], rule: Rule::Each, keys: SENDER },
        Group { variants: &["proxy"], rule: Rule::Each, keys: RECEIVER },
    ],
};
