//! `[[flow]]` and `[profile.NAME]`.

use super::{
    Choice, Default, ENABLED, Group, Key, Kind, MS, MS_ABOVE_0, MS_FROM_0, Need, Rule, S_ABOVE_0,
    S_FROM_0, Table, Unit, choice, count, real,
};
use super::{LONGEST_NS, TimeUnit};

/// One flow.
pub(crate) static FLOW: Table = Table {
    header: "[[flow]]",
    path: "flow.N",
    doc: "One flow. Both ends of a TCP flow have the same profile and settings.",
    selector: Some("kind"),
    groups: &[
        Group { variants: &[], rule: Rule::Each, keys: COMMON },
        Group {
            variants: &["bulk", "file", "udp"],
            rule: Rule::Each,
            keys: &[direction("\"down\"", "Which way the data goes.")],
        },
        Group {
            variants: &["ping"],
            rule: Rule::Each,
            keys: &[direction("\"up\"", "Which way the request goes.")],
        },
        Group {
            variants: &[],
            rule: Rule::Each,
            keys: &[Key::new(
                "start_s",
                S_FROM_0,
                Default::Value("0"),
                "When it starts; before the end of the run.",
            )],
        },
        Group {
            variants: &["bulk", "udp"],
            rule: Rule::Each,
            keys: &[Key::new(
                "duration_s",
                S_ABOVE_0,
                Default::Absent("until the run ends"),
                "How long it sends.",
            )],
        },
        Group {
            variants: &["file"],
            rule: Rule::Each,
            keys: &[Key::new(
                "size_bytes",
                count(Unit::Bytes, 1, 1 << 50),
                Default::Required,
                "Bytes to transfer.",
            )],
        },
        Group { variants: &["ping"], rule: Rule::Each, keys: PING },
        Group { variants: &["udp"], rule: Rule::Each, keys: UDP },
        Group {
            variants: &["udp"],
            rule: Rule::Each,
            keys: &[opened_by(
                "\"sender\"",
                "Which end sends the first datagram. The receiver sends one only, as a client that \
                 asks for a stream does, and the sender begins when that has come.",
            )],
        },
        Group {
            variants: &["bulk"],
            rule: Rule::Each,
            keys: &[opened_by("\"sender\"", "Which end sends the SYN; the sender, as iperf does.")],
        },
        Group {
            variants: &["file"],
            rule: Rule::Each,
            keys: &[opened_by(
                "\"receiver\"",
                "Which end sends the SYN; the receiver, as in a download.",
            )],
        },
        Group {
            variants: &["bulk", "file"],
            rule: Rule::Each,
            keys: &[Key::new(
                "profile",
                Kind::Profile,
                Default::Value("\"rfc\""),
                "The profile of both ends: a built-in one or a `[profile.NAME]` of this file.",
            )],
        },
        Group { variants: &["bulk", "file"], rule: Rule::Each, keys: ENDPOINT },
        Group { variants: &["bulk", "file"], rule: Rule::Each, keys: SENDER },
        Group { variants: &["bulk", "file"], rule: Rule::Each, keys: RECEIVER },
        Group { variants: &["bulk", "file"], rule: Rule::Each, keys: READER },
    ],
};

/// One profile.
pub(crate) static PROFILE: Table = Table {
    header: "[profile.NAME]",
    path: "profile.NAME",
    doc: "A TCP profile of your own, made from another one.",
    selector: None,
    groups: &[
        Group {
            variants: &[],
            rule: Rule::Each,
            keys: &[Key::new(
                "base",
                Kind::Profile,
                Default::Value("\"rfc\""),
                "The profile that it starts from.",
            )],
        },
        Group {
            variants: &[],
            rule: Rule::Each,
            keys: &[Key::new(
                "reno_slow_start",
                Kind::Choice(SLOW_STARTS),
                Default::Inherited,
                "What `slow_start` is for a flow whose congestion control is Reno, unless it says \
                 so itself: Linux has HyStart in CUBIC alone. A profile that sets `slow_start` sets \
                 this too.",
            )],
        },
        Group { variants: &[], rule: Rule::Each, keys: ENDPOINT },
        Group { variants: &[], rule: Rule::Each, keys: SENDER },
        Group { variants: &[], rule: Rule::Each, keys: RECEIVER },
        Group { variants: &[], rule: Rule::Each, keys: READER },
    ],
};

const COMMON: &[Key] = &[
    Key::new(
        "id",
        Kind::Name,
        Default::Derived("kind and position in the file, e.g. `bulk-0`"),
        "Unique name, used in tables.",
    ),
    Key::new(
        "kind",
        Kind::Choice(&[
            choice("bulk", "TCP that sends as much as it can for a time, as iperf does."),
            choice("file", "TCP that sends a number of bytes, then closes."),
            choice("ping", "Echo requests at an interval, and their replies."),
            choice("udp", "Datagrams at a constant rate."),
        ]),
        Default::Required,
        "What it does.",
    ),
    Key::new(
        "ue",
        Kind::Name,
        Default::Derived("the first one, if there is a radio"),
        "The UE at its end: the name of one of `[[radio.ue]]`.",
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
        "IP packet size; 84 is what `ping` sends.",
    ),
    Key::new(
        "count",
        count(Unit::Plain, 1, i64::MAX as u64),
        Default::Absent("until the run ends"),
        "Stop after this many requests.",
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

const HYSTART: Need = Need::Begins("slow_start", "hystart-");
const AS_VERSION: Default = Default::Absent("as in the version");

/// What a profile sets and a flow may override.
pub(super) const ENDPOINT: &[Key] = &[
    Key::new(
        "congestion",
        Kind::Choice(&[
            choice("cubic", "CUBIC (RFC 9438)."),
            choice("reno", "Reno (RFC 5681)."),
            choice("bbr", "BBR v1, as in Linux."),
            choice("bbr3", "BBR v3 (draft-ietf-ccwg-bbr-06)."),
            choice("fixed", "A constant window: no control at all."),
        ]),
        Default::Inherited,
        "Congestion control of the sender.",
    ),
    Key::new(
        "cubic_fast_convergence",
        Kind::Flag,
        Default::Value("true"),
        "Release bandwidth faster when W_max shrinks (RFC 9438 4.7).",
    )
    .needs(Need::Is("congestion", "cubic")),
    Key::new(
        "cubic_arithmetic",
        Kind::Choice(&[
            choice("rfc", "Fractions of segments, as the formulas of RFC 9438."),
            choice("linux", "Whole segments, as Linux counts."),
        ]),
        Default::Value("\"rfc\""),
        "How CUBIC counts.",
    )
    .needs(Need::Is("congestion", "cubic")),
    Key::new(
        "cubic_c",
        real("", 0.001, 1000.0),
        Default::Value("0.4"),
        "CUBIC's C: how fast the window grows again, in segments per second cubed (RFC 9438 4.1, 5.1).",
    )
    .needs(Need::Is("congestion", "cubic")),
    Key::new(
        "cubic_beta",
        real("", 0.1, 0.99),
        Default::Value("0.7"),
        "CUBIC's beta: what is left of the window after congestion (RFC 9438 4.6). Linux rounds it to \
         1024ths.",
    )
    .needs(Need::Is("congestion", "cubic")),
    Key::new(
        "reno_halves",
        Kind::Choice(&[
            choice("flight", "What is in flight, at most the window (RFC 5681 (4))."),
            choice("cwnd", "The congestion window, whether it was used or not, as Linux does."),
        ]),
        Default::Inherited,
        "What Reno halves after congestion.",
    ),
    Key::new(
        "reno_grows_by",
        Kind::Choice(&[
            choice("segments", "The segments that are acknowledged (RFC 3465 2.1)."),
            choice(
                "acknowledgements",
                "Each acknowledgement as one segment, however many it covers (RFC 5681 (3)).",
            ),
        ]),
        Default::Inherited,
        "What Reno counts in congestion avoidance.",
    ),
    Key::new(
        "fixed_window_segments",
        count(Unit::Segments, 1, 10_000_000),
        Default::Required,
        "The constant window.",
    )
    .needs(Need::Is("congestion", "fixed")),
    Key::new(
        "mss_bytes",
        count(Unit::Bytes, 1, 65495),
        Default::Inherited,
        "Payload of a full segment, TCP options already subtracted.",
    ),
    Key::new(
        "header_bytes",
        // IPv4 and TCP without options; IPv4 and TCP with 40 bytes of options each.
        count(Unit::Bytes, 40, 120),
        Default::Inherited,
        "IP and TCP headers of a data segment, options included.",
    ),
    Key::new(
        "initial_window_segments",
        count(Unit::Segments, 1, 65535),
        Default::Inherited,
        "Initial congestion window (RFC 6928).",
    ),
    Key::new(
        "slow_start_limit_segments",
        count(Unit::Segments, 0, 65535),
        Default::Inherited,
        "Most segments by which one acknowledgement grows the window in slow start (RFC 5681 3.1: \
         1; RFC 3465: L); 0 is no limit, growth by all that is acknowledged. `hystart++` has a \
         limit of its own.",
    ),
    Key::new(
        "slow_start",
        Kind::Choice(SLOW_STARTS),
        Default::Inherited,
        "What ends slow start, of CUBIC and Reno.",
    ),
    Key::new(
        "hystart_ack_train",
        Kind::Flag,
        AS_VERSION,
        "The test of the train of acknowledgements (Linux: hystart_detect, 1).",
    )
    .needs(HYSTART),
    Key::new(
        "hystart_delay",
        Kind::Flag,
        AS_VERSION,
        "The test of the delay (Linux: hystart_detect, 2).",
    )
    .needs(HYSTART),
    Key::new(
        "hystart_falling_minimum_exits",
        Kind::Flag,
        AS_VERSION,
        "True: a round's RTT is that of its first eight samples, so that a minimum RTT that falls \
         later ends slow start; false: every sample may lower it, as from 4.19.131 and 5.4.50.",
    )
    .needs(HYSTART),
    Key::new(
        "hystart_late_reset",
        Kind::Flag,
        AS_VERSION,
        "True: the first acknowledgement of a round counts to the round before; false: to its own.",
    )
    .needs(HYSTART),
    Key::new(
        "initial_rto_ms",
        MS_ABOVE_0,
        Default::Inherited,
        "Retransmission time-out before the first RTT sample (RFC 6298 2.1).",
    ),
    Key::new(
        "min_rto_ms",
        MS_ABOVE_0,
        Default::Inherited,
        "Smallest retransmission time-out (RFC 6298 2.4).",
    ),
    Key::new(
        "max_rto_ms",
        MS_ABOVE_0,
        Default::Inherited,
        "Largest retransmission time-out (RFC 6298 2.5).",
    ),
    Key::new(
        "delayed_ack_segments",
        count(Unit::Segments, 1, 65535),
        Default::Inherited,
        "Acknowledge at once when more bytes than this many full segments less one are \
         unacknowledged; 1 is no delay.",
    ),
    Key::new(
        "delayed_ack_ms",
        MS_ABOVE_0,
        Default::Inherited,
        "Acknowledge what is left after this time.",
    ),
    Key::new(
        "delayed_ack_ticking",
        Kind::Flag,
        Default::Inherited,
        "True: `delayed_ack_ms` is the period of a free-running tick, as BSD's fast timer; false: \
         a timer that the segment starts.",
    ),
    Key::new("timestamps", Kind::Flag, Default::Inherited, "Timestamps option (RFC 7323 3)."),
    Key::new("sack", Kind::Flag, Default::Inherited, "Selective acknowledgements (RFC 2018)."),
    Key::new(
        "window_scaling",
        Kind::Flag,
        Default::Inherited,
        "Window scaling (RFC 7323 2); without it at most 65,535 bytes are advertised.",
    ),
    Key::new(
        "send_buffer_bytes",
        count(Unit::Bytes, 1, 1 << 40),
        Default::Inherited,
        "Bytes that the application may have written and that are not yet acknowledged.",
    ),
    Key::new(
        "receive_buffer_bytes",
        count(Unit::Bytes, 1, 1 << 40),
        Default::Inherited,
        "What the receiver advertises at most, in bytes.",
    ),
    Key::new(
        "window_bytes",
        count(Unit::Bytes, 1, 1 << 40),
        Default::Absent("the two buffers as they are"),
        "Sets `send_buffer_bytes` and `receive_buffer_bytes` alike, as `iperf -w` does; the receive \
         buffer has its size from the start.",
    )
    .excludes(&["send_buffer_bytes", "receive_buffer_bytes", "initial_receive_buffer_bytes"]),
];

/// How a sender finds losses, and when it sends. What a profile sets, as above.
pub(super) const SENDER: &[Key] = &[
    Key::new(
        "rto_estimator",
        Kind::Choice(&[
            choice("rfc6298", "SRTT + 4 RTTVAR, at least `min_rto_ms`."),
            choice(
                "linux",
                "The largest deviation of a round trip counts, and `min_rto_ms` bounds the variance \
                 term alone.",
            ),
        ]),
        Default::Inherited,
        "How RTT samples become a retransmission time-out.",
    ),
    Key::new(
        "loss_detection",
        Kind::Choice(&[
            choice("sack", "Three segments SACKed above it (RFC 6675 4)."),
            choice("rack", "Overdue, and something sent later has arrived (RACK, RFC 8985)."),
        ]),
        Default::Inherited,
        "What tells a loss; without SACK, three duplicate acknowledgements.",
    ),
    Key::new(
        "tail_loss_probe",
        Kind::Flag,
        Default::Inherited,
        "Probe for losses at the end of a flight (RFC 8985 7).",
    ),
    Key::new(
        "rack_timer_tick_ms",
        MS_FROM_0,
        Default::Inherited,
        "RACK's reordering timer runs out with a tick of a clock that has such ticks, and not too \
         early, as Linux's timers do; 0: exactly.",
    ),
    Key::new(
        "cwnd_reduction",
        Kind::Choice(&[
            choice("immediate", "At once (RFC 6675 5)."),
            choice("prr", "Proportional rate reduction (RFC 9937)."),
        ]),
        Default::Inherited,
        "How the window comes down to ssthresh.",
    ),
    Key::new(
        "frto",
        Kind::Flag,
        Default::Inherited,
        "Find out whether a time-out was needed (F-RTO, RFC 5682).",
    ),
    Key::new(
        "undo_by_timestamps",
        Kind::Flag,
        Default::Inherited,
        "Take a reduction back when timestamps tell that nothing was lost (Eifel, RFC 4015).",
    ),
    Key::new(
        "undo_by_dsack",
        Kind::Flag,
        Default::Inherited,
        "The same when every retransmission was reported as a duplicate (RFC 3708).",
    ),
    Key::new(
        "pacing",
        Kind::Flag,
        Default::Inherited,
        "Spread segments over the round trip; BBR always does.",
    ),
    Key::new(
        "pacing_slow_start_percent",
        count(Unit::Plain, 100, 1000),
        Default::Inherited,
        "Pacing rate in slow start, in percent of cwnd per smoothed RTT.",
    ),
    Key::new(
        "pacing_congestion_avoidance_percent",
        count(Unit::Plain, 100, 1000),
        Default::Inherited,
        "Pacing rate after slow start, in percent of cwnd per smoothed RTT.",
    ),
    Key::new(
        "offload_bytes",
        count(Unit::Bytes, 0, 1 << 20),
        Default::Inherited,
        "Segmentation offload: the largest burst; 0 is none. Bursts are what 2^-10 s of the pacing \
         rate send, at least two segments.",
    ),
    Key::new(
        "offload_window_divisor",
        count(Unit::Plain, 0, 100),
        Default::Inherited,
        "A burst that is smaller waits for the next acknowledgement, unless it is this part of the \
         window; 0: it never waits.",
    ),
    Key::new(
        "offload_push",
        Kind::Flag,
        Default::Inherited,
        "The last segment of a burst of several has the PSH flag, which ends the aggregation of \
         arriving segments (`aggregation_bytes`).",
    ),
    Key::new(
        "cwnd_grows_half_used",
        Kind::Flag,
        Default::Inherited,
        "In slow start the window grows while at least half of it is used; false: only while it is \
         the limit (RFC 9438 5.8).",
    ),
    Key::new(
        "cwnd_grows_by_delivered",
        Kind::Flag,
        Default::Inherited,
        "The window grows by what an acknowledgement delivers, by SACK too, and with the one that \
         ends recovery; false: by what it acknowledges.",
    ),
    Key::new(
        "cwnd_decays",
        Kind::Flag,
        Default::Inherited,
        "The window decays while the application does not use it (RFC 2861).",
    ),
    Key::new(
        "after_idle",
        Kind::Choice(&[
            choice("keep", "The window stays."),
            choice("restart", "At most the initial window (RFC 5681 4.1)."),
            choice("decay", "Half for each RTO; ssthresh remembers (RFC 2861)."),
        ]),
        Default::Inherited,
        "The window after an idle time longer than the RTO.",
    ),
    Key::new(
        "send_buffer_factor",
        count(Unit::Plain, 0, 100),
        Default::Inherited,
        "The send buffer grows to hold this many windows, BBR's three, up to `send_buffer_bytes`; \
         0: it has its size from the start.",
    ),
];

/// How a receiver acknowledges and buffers. What a profile sets, as above.
pub(super) const RECEIVER: &[Key] = &[
    Key::new(
        "delayed_ack_max_ms",
        MS_ABOVE_0,
        Default::Inherited,
        "If larger than `delayed_ack_ms`: the delay follows the time between segments, up to this.",
    ),
    Key::new(
        "quick_ack_segments",
        count(Unit::Segments, 0, 65535),
        Default::Inherited,
        "So many acknowledgements are not delayed at the start, after a duplicate and after a \
         silence longer than the RTO, but no more than half a window's worth; 0: none.",
    ),
    Key::new(
        "ack_pushed_at_once",
        Kind::Flag,
        Default::Inherited,
        "A segment with the PSH flag that came alone is acknowledged as soon as it is read; false: \
         it is delayed.",
    ),
    Key::new(
        "sack_compression_ms",
        MS_FROM_0,
        Default::Inherited,
        "After three acknowledgements of data above a gap the next ones are kept back this long, and a \
         twentieth of a round trip at most; 0: not at all. Needs `sack`.",
    ),
    Key::new(
        "sack_compression_acks",
        count(Unit::Plain, 1, 255),
        Default::Inherited,
        "Acknowledgements kept back before one goes out.",
    ),
    Key::new(
        "sack_compression_slack_ms",
        MS_FROM_0,
        Default::Inherited,
        "What the timer of that is late.",
    ),
    Key::new(
        "aggregation_bytes",
        count(Unit::Bytes, 0, 1 << 20),
        Default::Inherited,
        "Segments that follow on each other are handed up, read and acknowledged together (GRO, LRO), \
         up to this; 0: one by one.",
    ),
    Key::new(
        "aggregation_ms",
        MS_FROM_0,
        Default::Inherited,
        "Time from the first segment of an aggregate to the last; 0: what arrives at one instant.",
    ),
    Key::new(
        "dsack",
        Kind::Flag,
        Default::Inherited,
        "Report duplicates in SACK blocks (RFC 2883).",
    ),
    Key::new(
        "ecn",
        Kind::Choice(&[
            choice("off", "Neither asked for nor agreed to."),
            choice("classic", "RFC 3168."),
        ]),
        Default::Inherited,
        "Explicit congestion notification.",
    ),
    Key::new(
        "initial_receive_buffer_bytes",
        count(Unit::Bytes, 0, 1 << 40),
        Default::Inherited,
        "What the receiver advertises at first; the window grows up to `receive_buffer_bytes`. 0: it \
         does not grow, but has its size from the start.",
    ),
    Key::new(
        "receive_buffer_tuning",
        Kind::Flag,
        Default::Inherited,
        "The window grows with what the application reads in a round trip (dynamic right-sizing); \
         false: with every full segment, as after SO_RCVBUF.",
    ),
    Key::new(
        "receive_buffer_tuning_rule",
        Kind::Choice(&[
            choice("linux-4.19", "As in Linux until 6.15: room for 16 segments more."),
            choice(
                "linux-6.16",
                "As in Linux since: what is unread is deducted from what was read.",
            ),
        ]),
        Default::Inherited,
        "How dynamic right-sizing counts.",
    ),
];

/// The receiver's application.
const READER: &[Key] = &[
    Key::new(
        "read_rate_mbps",
        Kind::Rate,
        Default::Absent("all that has arrived, at once"),
        "Rate at which the receiver's application reads, in payload bits.",
    ),
    Key::new(
        "read_delay_ms",
        MS_ABOVE_0,
        Default::Absent("none"),
        "Time from the first arrival until the receiver's application is awake; then it reads all \
         that is there. Until it does, what is unread takes of the window, and an acknowledgement \
         that could only offer less waits for it, as in Linux.",
    )
    .excludes(&["read_rate_mbps"]),
];

const SLOW_STARTS: &[Choice] = &[
    choice("none", "A loss."),
    choice("hystart-4.19", "HyStart as in Linux until 4.19.130 and 5.4.49."),
    choice("hystart-5.6", "In microseconds; the ACK train knows pacing."),
    choice("hystart-5.8", "A minimum RTT that falls does not end slow start."),
    choice("hystart-5.16", "Rounds go on where cwnd is not the limit."),
    choice("hystart-6.14", "Rounds of a small cwnd count too."),
    choice("hystart++", "HyStart++ (RFC 9406)."),
];

const DIRECTIONS: &[Choice] =
    &[choice("down", "From the server to the UE."), choice("up", "From the UE to the server.")];

const fn direction(default: &'static str, doc: &'static str) -> Key {
    Key::new("direction", Kind::Choice(DIRECTIONS), Default::Value(default), doc)
}

const ENDS: &[Choice] = &[
    choice("sender", "The end that sends the data."),
    choice("receiver", "The end that receives the data."),
];

const fn opened_by(default: &'static str, doc: &'static str) -> Key {
    Key::new("opened_by", Kind::Choice(ENDS), Default::Value(default), doc)
}
