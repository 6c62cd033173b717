//! The top level, `[run]` and `[path]`.

use super::{Chosen, Default, Group, Key, Kind, MS, S_ABOVE_0, Table, TimeUnit, Unit, count};

/// The file itself.
pub(crate) static ROOT: Table = Table {
    header: "the top level",
    path: "",
    doc: "The tables and keys that a scenario file holds.",
    selector: None,
    groups: &[Group::always(&[
        Key::new(
            "name",
            Kind::Name,
            Default::Derived("the file's name without `.toml`"),
            "Short name, used in tables and directory names.",
        ),
        Key::new(
            "title",
            Kind::Text,
            Default::Derived("the name"),
            "A title of one line, for \
                                                                         people.",
        ),
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
            "The stages that packets pass: `[[path.down]]` and `[[path.up]]`.",
        ),
        Key::new(
            "radio",
            Kind::Table,
            Default::Absent("none: the path ends at the UE"),
            "A cell and its UEs at the UE's end of the path: `[radio]`. Downlink packets pass \
                 it after all stages of `[[path.down]]`, uplink packets before all of \
                 `[[path.up]]`.",
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
    ])],
};

/// `[run]`.
pub(crate) static RUN: Table = Table {
    header: "[run]",
    path: "run",
    doc: "Clock, seed and tables.",
    selector: None,
    groups: &[Group::always(&[
        Key::new(
            "duration_s",
            S_ABOVE_0,
            Default::Value("30"),
            "Length of the run. It can end earlier, when every flow is done.",
        ),
        Key::new(
            "seed",
            // TOML guarantees only 64-bit signed integers.
            count(Unit::Plain, 0, i64::MAX as u64),
            Default::Value("1"),
            "Seed of every random stream.",
        ),
        Key::new(
            "sample_interval_ms",
            Kind::Time { unit: TimeUnit::Ms, min_ns: MS / 10, max_ns: super::LONGEST_NS },
            Default::Value("100"),
            "Interval of the tables `samples` and `links`. A run has at most 10 million \
                 intervals.",
        ),
        Key::new(
            "ack_table",
            Kind::Flag,
            Default::Value("false"),
            "Whether the table `acks` is written. It has a row for each acknowledgement.",
        ),
        Key::new(
            "radio_log",
            Kind::Flag,
            Default::Value("false"),
            "Whether the table `radio_log` is written. It has a row for each block, grant, \
                 request, report and change of state of the radio, and for each packet that \
                 enters or leaves it. It is meant for short runs.",
        ),
    ])],
};

/// `[path]`.
pub(crate) static PATH: Table = Table {
    header: "[path]",
    path: "path",
    doc: "Two lists of stages. An empty or missing list is an ideal wire.",
    selector: None,
    groups: &[Group::always(&[
        Key::new(
            "down",
            Kind::List,
            Default::Absent("an ideal wire"),
            "From the server to the UE, in the order in which packets pass the stages.",
        ),
        Key::new(
            "up",
            Kind::List,
            Default::Absent("an ideal wire"),
            "From the UE to the server, in the order in which packets pass the stages.",
        ),
    ])],
};

/// `[emulation]`.
pub(crate) static EMULATION: Table = Table {
    header: "[emulation]",
    path: "emulation",
    doc: "The real clock: how `airpath emulate` moves packets. A simulation ignores it.",
    selector: None,
    groups: &[Group::always(&[
        Key::new(
            "lateness_bound_ms",
            super::MS_ABOVE_0,
            Default::Value("0.5"),
            "A run is invalid if in one direction more than 1 % of the packets left later than \
                 this after their logical time.",
        ),
        Key::new(
            "host_bound_ms",
            super::MS_ABOVE_0,
            Default::Value("0.5"),
            "A run is invalid if in one direction more than 1 % of the acknowledgements came \
                 back later than this after TCP data was handed to the kernel, or if a thread of \
                 a flow waited for a processor for more than 2 % of the time: then the machine, \
                 not TCP, determined the round trips.",
        ),
        Key::new(
            "coalesce_bytes",
            count(Unit::Bytes, 0, 65_535),
            Default::Value("65535"),
            "Segments of one connection that leave together are handed to the kernel as one, \
                 up to this size with its IP header, as receive offload does. The receiver then \
                 sends fewer acknowledgements. 0 means that each packet is handed over alone.",
        ),
        Key::new(
            "spin_ms",
            Kind::Time { unit: TimeUnit::Ms, min_ns: 0, max_ns: MS },
            Default::Value("0.06"),
            "The forwarder sleeps until this long before a departure, and then polls the \
                 clock. A longer time makes departures more punctual and uses more of a processor.",
        ),
        Key::new(
            "keep_awake",
            Kind::Flag,
            Default::Value("true"),
            "Idle processors of the machine do not sleep during the run (/dev/cpu_dma_latency \
                 at 0), so that no packet waits for one to wake up. This needs root, and costs \
                 the power of all processors.",
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
            "MTU of the link between gateway and base station. The kernel fragments larger \
                 outer packets.",
        )
        .needs(super::Need::On("gtpu")),
        Key::new(
            Io::KEY,
            Kind::Choice(Io::CHOICES),
            Default::Value("\"auto\""),
            "How packets are exchanged with the kernel.",
        ),
        Key::new(
            Observer::KEY,
            Kind::Choice(Observer::CHOICES),
            Default::Value("\"auto\""),
            "How the kernel's TCP senders are observed. The result says which method was used.",
        ),
        Key::new(
            "observer_poll_ms",
            Kind::Time { unit: TimeUnit::Ms, min_ns: MS / 10, max_ns: 1_000 * MS },
            Default::Value("5"),
            "Time between two readings with `observer = \"poll\"`.",
        ),
        Key::new(
            SlowStartSource::KEY,
            Kind::Choice(SlowStartSource::CHOICES),
            Default::Value("\"kernel\""),
            "Which slow start CUBIC has.",
        ),
    ])],
};

choices! {
    /// Values of `slow_start`.
    SlowStartSource("slow_start") {
        Kernel = "kernel": "The kernel's own, whatever the flow says.",
        Profile = "profile":
            "The flow's `slow_start`. Where the kernel's own differs, a congestion control with \
             it is loaded into the kernel for the run; its arithmetic is Linux's. This needs BPF.",
    }

    /// Values of `observer`.
    Observer("observer") {
        Auto = "auto": "`bpf` if the host has it and allows it, otherwise `poll`.",
        Bpf = "bpf": "BPF programs see every acknowledgement and every change of state. This \
                      needs root.",
        Poll = "poll": "TCP_INFO is read every `observer_poll_ms`.",
        None = "none": "The senders are not observed.",
    }

    /// Values of `io`.
    Io("io") {
        Auto = "auto": "TUN devices where they are available, otherwise packet sockets.",
        Tun = "tun": "TUN devices. /dev/net/tun must exist and be accessible.",
        Packet = "packet": "Packet sockets (AF_PACKET) on veth pairs. They are slower.",
    }
}
