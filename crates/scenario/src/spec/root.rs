//! The top level, `[run]` and `[path]`.

use super::{
    Choice, Default, Group, Key, Kind, MS, Rule, S_ABOVE_0, Table, TimeUnit, Unit, choice, count,
};

/// The file itself.
pub(crate) static ROOT: Table = Table {
    header: "the top level",
    path: "",
    doc: "What the file holds.",
    selector: None,
    groups: &[Group {
        variants: &[],
        rule: Rule::Each,
        keys: &[
            Key::new(
                "name",
                Kind::Name,
                Default::Derived("the file's name without `.toml`"),
                "Short name, used in tables and directory names.",
            ),
            Key::new("title", Kind::Text, Default::Derived("the name"), "One line for people."),
            Key::new(
                "run",
                Kind::Table,
                Default::Absent("its defaults"),
                "Clock, seed and tables: `[run]`.",
            ),
            Key::new(
                "path",
                Kind::Table,
                Default::Absent("an ideal wire both ways"),
                "What packets meet on their way: `[[path.down]]` and `[[path.up]]`.",
            ),
            Key::new(
                "radio",
                Kind::Table,
                Default::Absent("none: the path ends at the UE"),
                "A cell and its UEs at the UE's end of the path: `[radio]`. Packets down pass it \
                 after all stages of `[[path.down]]`, packets up before all of `[[path.up]]`.",
            ),
            Key::new(
                "core",
                Kind::Table,
                Default::Absent("none: UEs are attached from the start"),
                "A core network to which UEs attach, for `airpath emulate`: `[core]`.",
            ),
            Key::new(
                "emulation",
                Kind::Table,
                Default::Absent("its defaults"),
                "The real clock, for `airpath emulate`: `[emulation]`.",
            ),
            Key::new("flow", Kind::List, Default::Required, "Traffic: `[[flow]]`, at least one."),
            Key::new(
                "program",
                Kind::List,
                Default::Absent("none"),
                "What `airpath emulate` runs: `[[program]]`.",
            ),
            Key::new(
                "profile",
                Kind::Table,
                Default::Absent("the built-in ones only"),
                "TCP profiles of your own: `[profile.NAME]`.",
            ),
        ],
    }],
};

/// `[run]`.
pub(crate) static RUN: Table = Table {
    header: "[run]",
    path: "run",
    doc: "Clock, seed and tables.",
    selector: None,
    groups: &[Group {
        variants: &[],
        rule: Rule::Each,
        keys: &[
            Key::new(
                "duration_s",
                S_ABOVE_0,
                Default::Value("30"),
                "The run ends then, at the latest.",
            ),
            Key::new(
                "seed",
                // TOML promises 64-bit signed integers, no more.
                count(Unit::Plain, 0, i64::MAX as u64),
                Default::Value("1"),
                "Seed of every random stream.",
            ),
            Key::new(
                "sample_interval_ms",
                Kind::Time { unit: TimeUnit::Ms, min_ns: MS / 10, max_ns: super::LONGEST_NS },
                Default::Value("100"),
                "Interval of the `samples` and `links` tables; at most 10 million intervals a run.",
            ),
            Key::new(
                "ack_table",
                Kind::Flag,
                Default::Value("false"),
                "Write the `acks` table: one row for each acknowledgement.",
            ),
            Key::new(
                "radio_log",
                Kind::Flag,
                Default::Value("false"),
                "Write the `radio_log` table: one row for each block, grant, request, report and \
                 change of state of the radio, and for each packet that enters or leaves it. For \
                 short runs.",
            ),
        ],
    }],
};

/// `[path]`.
pub(crate) static PATH: Table = Table {
    header: "[path]",
    path: "path",
    doc: "Two lists of stages; an empty or missing list is an ideal wire.",
    selector: None,
    groups: &[Group {
        variants: &[],
        rule: Rule::Each,
        keys: &[
            Key::new(
                "down",
                Kind::List,
                Default::Absent("an ideal wire"),
                "From the server to the UE, in the order in which packets meet the stages.",
            ),
            Key::new(
                "up",
                Kind::List,
                Default::Absent("an ideal wire"),
                "From the UE to the server, in the order in which packets meet the stages.",
            ),
        ],
    }],
};

const WATCHES: &[Choice] = &[
    choice("auto", "`bpf` if it is there and allowed, else `poll`"),
    choice("bpf", "every acknowledgement and every change of state; root"),
    choice("poll", "TCP_INFO every `watch_poll_ms`"),
    choice("none", "not at all"),
];

const SLOW_STARTS_OF: &[Choice] = &[
    choice("kernel", "the kernel's own, whatever the flow says"),
    choice(
        "profile",
        "the flow's `slow_start`, by a congestion control loaded into the kernel for the run, where \
         the kernel's own is another; its arithmetic is Linux's; needs BPF",
    ),
];

/// `[emulation]`.
pub(crate) static EMULATION: Table = Table {
    header: "[emulation]",
    path: "emulation",
    doc: "The real clock: how `airpath emulate` moves packets. A simulation does not read it.",
    selector: None,
    groups: &[Group {
        variants: &[],
        rule: Rule::Each,
        keys: &[
            Key::new(
                "lateness_bound_ms",
                super::MS_ABOVE_0,
                Default::Value("0.5"),
                "A run is invalid if in one direction more than 1 % of the packets left later than \
                 this after their logical time.",
            ),
            Key::new(
                "coalesce_bytes",
                count(Unit::Bytes, 0, 65_535),
                Default::Value("65535"),
                "Segments of one connection that leave together are handed to the kernel as one, up \
                 to this size with its IP header, as receive offload does: the receiver then sends \
                 fewer acknowledgements. 0: each packet alone.",
            ),
            Key::new(
                "spin_ms",
                Kind::Time { unit: TimeUnit::Ms, min_ns: 0, max_ns: MS },
                Default::Value("0.06"),
                "The forwarder sleeps until this long before a departure, then asks the clock again \
                 and again: longer is more punctual, and takes more of a processor.",
            ),
            Key::new(
                "keep_awake",
                Kind::Flag,
                Default::Value("true"),
                "During the run no idle processor of the machine sleeps (/dev/cpu_dma_latency at 0; \
                 needs root): packets do not wait for one to wake up. It takes the power of all of \
                 them.",
            ),
            Key::new(
                "gtpu",
                Kind::Flag,
                Default::Value("false"),
                "Between gateway and base station packets travel as GTP-U over UDP (TS 29.281), \
                 through the namespaces `core` and `ran`: S1-U of LTE, or N3 of NR with the PDU \
                 session container (TS 38.415). Needs [radio].",
            ),
            Key::new(
                "gtpu_mtu_bytes",
                count(Unit::Bytes, 576, 65535),
                Default::Derived(
                    "`mtu_bytes` of the gtpu stage of [[path.down]]; else room for the largest \
                     packet",
                ),
                "MTU of the link between both: the kernel fragments larger outer packets.",
            )
            .needs(super::Need::On("gtpu")),
            Key::new(
                "io",
                Kind::Choice(&[
                    choice("auto", "TUN where it can be had, else packet sockets."),
                    choice("tun", "TUN devices: /dev/net/tun must be there and allowed."),
                    choice("packet", "Packet sockets (AF_PACKET) on veth pairs; slower."),
                ]),
                Default::Value("\"auto\""),
                "How packets get from the kernel and back.",
            ),
            Key::new(
                "watch",
                Kind::Choice(WATCHES),
                Default::Value("\"auto\""),
                "How the kernel's TCP senders are watched; the result says it too.",
            ),
            Key::new(
                "watch_poll_ms",
                Kind::Time { unit: TimeUnit::Ms, min_ns: MS / 10, max_ns: 1_000 * MS },
                Default::Value("5"),
                "Time between two looks of `watch = \"poll\"`.",
            ),
            Key::new(
                "slow_start",
                Kind::Choice(SLOW_STARTS_OF),
                Default::Value("\"kernel\""),
                "Whose slow start CUBIC has.",
            ),
        ],
    }],
};
