//! Keys of TCP endpoints: of a flow, a profile and a proxy.

use super::quic::MTU_SUBTABLE;
use super::{Chosen, Default, Key, Kind, MS_ABOVE_0, MS_FROM_0, Need, Subtable, Unit, count, real};

/// Subtables of a flow, a profile or a proxy that hold TCP keys.
pub(crate) static SUBTABLES: &[Subtable] = &[
    Subtable { name: "cwnd", doc: "When and by how much the congestion window grows and decays." },
    Subtable { name: "hystart", doc: "Parts of HyStart that differ from the chosen version." },
    Subtable { name: "cubic", doc: "Parameters of CUBIC." },
    Subtable { name: "reno", doc: "Parameters of Reno." },
    Subtable { name: "rto", doc: "The retransmission time-out." },
    Subtable { name: "recovery", doc: "How the sender finds losses and recovers from them." },
    Subtable { name: "pacing", doc: "Pacing of the sender's segments." },
    Subtable { name: "offload", doc: "Segmentation offload of the sender (TSO, GSO)." },
    Subtable { name: "ack", doc: "When the receiver acknowledges." },
    MTU_SUBTABLE,
    Subtable { name: "aggregation", doc: "Aggregation of arriving segments (GRO, LRO)." },
    Subtable { name: "options", doc: "Headers, and what both ends agree on in the handshake." },
    Subtable { name: "buffer", doc: "How the send buffer and the receive buffer grow." },
    Subtable { name: "application", doc: "The application of the receiver." },
    Subtable { name: "route", doc: "What the sender keeps about its peer between connections." },
];

const HYSTART: Need = Need::Begins("slow_start", "hystart-");
const CUBIC: Need = Need::Is("congestion", "cubic");
const AS_VERSION: Default = Default::Absent("as in the version");

/// Keys that a profile sets and a flow or a proxy may override.
pub(super) const ENDPOINT: &[Key] = &[
    Key::new(
        Congestion::KEY,
        Kind::Choice(Congestion::CHOICES),
        Default::Inherited,
        "Congestion control of the sender.",
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
        "Payload of a full segment. TCP options are already subtracted.",
    ),
    Key::new(
        "initial_window_segments",
        count(Unit::Segments, 1, 65535),
        Default::Inherited,
        "Initial congestion window (RFC 6928).",
    ),
    Key::new(SlowStart::KEY,
        Kind::Choice(SlowStart::CHOICES),
        Default::Inherited,
        "What ends the slow start of CUBIC and Reno.",
    )
    .simulated_only(),
    Key::new(
        "send_buffer_bytes",
        count(Unit::Bytes, 1, 1 << 40),
        Default::Inherited,
        "Size of the send buffer: bytes that the application may have written and that are not yet \
         acknowledged. With `buffer.send_segment_bytes` above 0 it is memory, of which overhead \
         takes a part.",
    ),
    Key::new(
        "receive_buffer_bytes",
        count(Unit::Bytes, 1, 1 << 40),
        Default::Inherited,
        "The largest window that the receiver advertises.",
    ),
    Key::new(
        "window_bytes",
        count(Unit::Bytes, 1, 1 << 40),
        Default::Absent("`send_buffer_bytes` and `receive_buffer_bytes`"),
        "Sets both buffers to one fixed size, as `iperf -w` does (SO_SNDBUF and SO_RCVBUF). With a \
         profile of Linux `send_buffer_bytes` becomes twice this size, because Linux doubles SO_SNDBUF \
         (socket(7)). net.core.wmem_max and rmem_max are assumed to allow it.",
    )
    .excludes(&["send_buffer_bytes", "receive_buffer_bytes", "buffer.initial_receive_bytes"]),
    Key::new(
        "cwnd.slow_start_limit_segments",
        count(Unit::Segments, 0, 65535),
        Default::Inherited,
        "The most segments by which one acknowledgement lets the window grow in slow start (RFC 5681 \
         3.1: 1; RFC 3465: L). 0 means no limit: the window grows by all that is acknowledged. \
         `hystart++` has a limit of its own.",
    )
    .simulated_only(),
    Key::new(
        "cwnd.grows_half_used",
        Kind::Flag,
        Default::Inherited,
        "True: in slow start the window grows while at least half of it is used. False: it grows only \
         while it is the limit (RFC 9438 5.8).",
    )
    .simulated_only(),
    Key::new(
        "cwnd.grows_by_delivered",
        Kind::Flag,
        Default::Inherited,
        "True: the window grows by what an acknowledgement delivers, by SACK too, and also with the \
         acknowledgement that ends recovery. False: it grows by what is acknowledged.",
    )
    .simulated_only(),
    Key::new(
        "cwnd.decays",
        Kind::Flag,
        Default::Inherited,
        "The window decays while the application does not use it (RFC 2861).",
    )
    .simulated_only(),
    Key::new(
        AfterIdle::KEY,
        Kind::Choice(AfterIdle::CHOICES),
        Default::Inherited,
        "What becomes of the window after an idle time that is longer than the RTO.",
    ),
    Key::new(
        "hystart.ack_train",
        Kind::Flag,
        AS_VERSION,
        "Whether the length of a train of acknowledgements can end slow start (Linux: \
         hystart_detect, bit 1).",
    )
    .simulated_only()
    .needs(HYSTART),
    Key::new(
        "hystart.delay",
        Kind::Flag,
        AS_VERSION,
        "Whether a growing delay can end slow start (Linux: hystart_detect, bit 2).",
    )
    .simulated_only()
    .needs(HYSTART),
    Key::new(
        "hystart.falling_minimum_exits",
        Kind::Flag,
        AS_VERSION,
        "True: the RTT of a round is that of its first eight samples, so that a minimum RTT that \
         falls later ends slow start. False: every sample may lower it, as from 4.19.131 and 5.4.50.",
    )
    .simulated_only()
    .needs(HYSTART),
    Key::new(
        "hystart.late_reset",
        Kind::Flag,
        AS_VERSION,
        "True: the first acknowledgement of a round counts as part of the round before. False: it \
         counts as part of its own round.",
    )
    .simulated_only()
    .needs(HYSTART),
    Key::new(
        "cubic.fast_convergence",
        Kind::Flag,
        Default::Value("true"),
        "CUBIC releases bandwidth faster when W_max shrinks (RFC 9438 4.7).",
    )
    .needs(CUBIC),
    Key::new(
        Arithmetic::KEY,
        Kind::Choice(Arithmetic::CHOICES),
        Default::Value("\"rfc\""),
        "How CUBIC counts.",
    )
    .needs(CUBIC),
    Key::new(
        "cubic.c",
        real("", 0.001, 1000.0),
        Default::Value("0.4"),
        "CUBIC's C: how fast the window grows again, in segments per second cubed (RFC 9438 4.1, 5.1).",
    )
    .simulated_only()
    .needs(CUBIC),
    Key::new(
        "cubic.beta",
        real("", 0.1, 0.99),
        Default::Value("0.7"),
        "CUBIC's beta: the part of the window that is left after congestion (RFC 9438 4.6). Linux \
         rounds it to 1024ths.",
    )
    .simulated_only()
    .needs(CUBIC),
    Key::new(
        RenoHalves::KEY,
        Kind::Choice(RenoHalves::CHOICES),
        Default::Inherited,
        "What Reno halves after congestion.",
    )
    .simulated_only(),
    Key::new(
        RenoGrowsBy::KEY,
        Kind::Choice(RenoGrowsBy::CHOICES),
        Default::Inherited,
        "What Reno counts in congestion avoidance.",
    )
    .simulated_only(),
    Key::new(
        "rto.initial_ms",
        MS_ABOVE_0,
        Default::Inherited,
        "Retransmission time-out before the first RTT sample (RFC 6298 2.1).",
    )
    .simulated_only(),
    Key::new(
        "rto.min_ms",
        MS_ABOVE_0,
        Default::Inherited,
        "Smallest retransmission time-out (RFC 6298 2.4).",
    ),
    Key::new(
        "rto.max_ms",
        MS_ABOVE_0,
        Default::Inherited,
        "Largest retransmission time-out (RFC 6298 2.5).",
    )
    .simulated_only(),
    Key::new(
        "rto.syn_linear_timeouts",
        count(Unit::Plain, 0, 255),
        Default::Inherited,
        "Number of SYN retransmissions after the same time-out as the first, before it doubles \
         with each: `net.ipv4.tcp_syn_linear_timeouts` of Linux since 6.5.",
    )
    .simulated_only(),
    Key::new(
        Estimator::KEY,
        Kind::Choice(Estimator::CHOICES),
        Default::Inherited,
        "How RTT samples become a retransmission time-out.",
    )
    .simulated_only(),
    Key::new(
        Detection::KEY,
        Kind::Choice(Detection::CHOICES),
        Default::Inherited,
        "What makes the sender consider a segment lost. Without SACK it is three duplicate \
         acknowledgements.",
    ),
    Key::new(
        "recovery.tail_loss_probe",
        Kind::Flag,
        Default::Inherited,
        "The sender probes for losses at the end of a flight (RFC 8985 7).",
    ),
    Key::new(
        "recovery.rack_timer_tick_ms",
        MS_FROM_0,
        Default::Inherited,
        "Tick of the clock for a sender's timers, except pacing. As in Linux, a timer expires on \
         a tick, never too early; one of 63 ticks or more on every eighth tick, one of 504 or \
         more on every 64th. A tail loss probe waits two ticks longer. CUBIC that counts as Linux \
         uses the same clock. 0 means exact timers.",
    )
    .simulated_only(),
    Key::new(
        CwndReduction::KEY,
        Kind::Choice(CwndReduction::CHOICES),
        Default::Inherited,
        "How the window is reduced to ssthresh.",
    )
    .simulated_only(),
    Key::new(
        "recovery.frto",
        Kind::Flag,
        Default::Inherited,
        "The sender finds out whether a time-out was needed (F-RTO, RFC 5682).",
    ),
    Key::new(
        "recovery.undo_by_timestamps",
        Kind::Flag,
        Default::Inherited,
        "The sender undoes a reduction when timestamps show that nothing was lost (Eifel, RFC \
         4015).",
    )
    .simulated_only(),
    Key::new(
        "recovery.undo_by_dsack",
        Kind::Flag,
        Default::Inherited,
        "The sender undoes a reduction when every retransmission was reported as a duplicate (RFC \
         3708).",
    )
    .simulated_only(),
    Key::new(
        "pacing.enabled",
        Kind::Flag,
        Default::Inherited,
        "The sender spreads segments over the round trip. BBR always does.",
    ),
    Key::new(
        "pacing.slow_start_percent",
        count(Unit::Plain, 100, 1000),
        Default::Inherited,
        "Pacing rate in slow start, in percent of cwnd per smoothed RTT.",
    ),
    Key::new(
        "pacing.congestion_avoidance_percent",
        count(Unit::Plain, 100, 1000),
        Default::Inherited,
        "Pacing rate after slow start, in percent of cwnd per smoothed RTT.",
    ),
    Key::new(
        "offload.max_bytes",
        count(Unit::Bytes, 0, 1 << 20),
        Default::Inherited,
        "The largest burst that is passed down as one; 0 means no offload. A burst is what the \
         pacing rate sends in 2^-10 s, at least two segments.",
    )
    .simulated_only(),
    Key::new(
        "offload.window_divisor",
        count(Unit::Plain, 0, 100),
        Default::Inherited,
        "A smaller burst waits for the next acknowledgement, unless it is at least the window divided \
         by this. 0 means that it never waits.",
    ),
    Key::new(
        "offload.ack_within_ms",
        MS_FROM_0,
        Default::Inherited,
        "A smaller burst waits only if the next acknowledgement is expected (when the first \
         outstanding segment is an SRTT old) within this time and within half an RTT. 0 means \
         half an RTT, and that the segments released by one acknowledgement wait, or do not wait, \
         as a whole.",
    )
    .simulated_only(),
    Key::new(
        "offload.push",
        Kind::Flag,
        Default::Inherited,
        "The last segment of a burst of several segments has the PSH flag. At the receiver the flag \
         ends an aggregate (`aggregation.max_bytes`).",
    ),
    Key::new(
        "ack.delayed_segments",
        count(Unit::Segments, 1, 65535),
        Default::Inherited,
        "The receiver acknowledges at once when more bytes than this many full segments less one are \
         unacknowledged. 1 means no delay.",
    )
    .simulated_only(),
    Key::new(
        "ack.delay_ms",
        MS_ABOVE_0,
        Default::Inherited,
        "The receiver acknowledges everything else after this time.",
    )
    .simulated_only(),
    Key::new(
        "ack.max_delay_ms",
        MS_ABOVE_0,
        Default::Inherited,
        "If this is larger than `ack.delay_ms`, the delay follows the time between segments, up to \
         this value.",
    )
    .simulated_only(),
    Key::new(
        "ack.ticking",
        Kind::Flag,
        Default::Inherited,
        "True: `ack.delay_ms` is the period of a free-running tick, as in BSD's fast timer. False: \
         each delayed segment starts a timer.",
    )
    .simulated_only(),
    Key::new(
        "ack.quick_segments",
        count(Unit::Segments, 0, 65535),
        Default::Inherited,
        "Number of acknowledgements that are not delayed at the start, after a duplicate and \
         after a silence longer than the RTO, but at most half a window's worth. 0 means none.",
    )
    .simulated_only(),
    Key::new(
        "ack.pushed_at_once",
        Kind::Flag,
        Default::Inherited,
        "True: a segment with the PSH flag that arrives alone is acknowledged as soon as it is \
         read. False: its acknowledgement is delayed.",
    )
    .simulated_only(),
    Key::new(
        "ack.handshake_at_once",
        Kind::Flag,
        Default::Inherited,
        "True: the end that connects acknowledges the handshake before it sends data, and an \
         application writes after everything that arrived at the instant at which it was \
         connected. False: the first data segment acknowledges the handshake, at once.",
    )
    .simulated_only(),
    Key::new(
        "ack.wake_ms",
        MS_FROM_0,
        Default::Inherited,
        "With `ack.handshake_at_once`: how long after it was connected an application writes.",
    )
    .simulated_only(),
    Key::new(
        "ack.repeat_limit_ms",
        MS_FROM_0,
        Default::Inherited,
        "A SYN or SYN+ACK that is repeated is answered again once in this time; 0 means always.",
    ),
    Key::new(
        "ack.sack_compression_ms",
        MS_FROM_0,
        Default::Inherited,
        "After three acknowledgements of data above a gap, the receiver delays the next ones by \
         this time, but at most by a twentieth of a round trip. 0 means no delay. Needs \
         `options.sack`.",
    ),
    Key::new(
        "ack.sack_compression_acks",
        count(Unit::Plain, 1, 255),
        Default::Inherited,
        "Number of acknowledgements that are held back before one is sent.",
    ),
    Key::new(
        "ack.sack_compression_slack_ms",
        MS_FROM_0,
        Default::Inherited,
        "How late the timer of SACK compression is.",
    ),
    Key::new(
        "ack.dsack",
        Kind::Flag,
        Default::Inherited,
        "The receiver reports duplicates in SACK blocks (RFC 2883).",
    ),
    Key::new(
        "aggregation.max_bytes",
        count(Unit::Bytes, 0, 1 << 20),
        Default::Inherited,
        "Consecutive segments are delivered, read and acknowledged together, up to this size. 0 \
         means one by one.",
    ),
    Key::new(
        "aggregation.time_ms",
        MS_FROM_0,
        Default::Inherited,
        "Longest time from the first segment of an aggregate to the last. 0 means that only segments \
         that arrive at one instant are aggregated.",
    ),
    Key::new(
        "options.header_bytes",
        // From IPv4 and TCP without options to IPv4 and TCP with 40 bytes of options each.
        count(Unit::Bytes, 40, 120),
        Default::Inherited,
        "IP and TCP headers of a data segment, options included.",
    ),
    Key::new(
        "options.timestamps",
        Kind::Flag,
        Default::Inherited,
        "Timestamps option (RFC 7323 3).",
    ),
    Key::new(
        "options.timestamp_tick_ms",
        MS_FROM_0,
        Default::Inherited,
        "Tick of round trips that only timestamps can measure, because the acknowledged data had \
         been sent twice. They count for the smallest RTT and the congestion control, too. 0 \
         means microseconds, and that they count for the time-out only. Needs \
         `options.timestamps`.",
    )
    .simulated_only(),
    Key::new(
        "options.sack",
        Kind::Flag,
        Default::Inherited,
        "Selective acknowledgements (RFC 2018).",
    ),
    Key::new(
        "options.window_scaling",
        Kind::Flag,
        Default::Inherited,
        "Window scaling (RFC 7323 2). Without it at most 65,535 bytes are advertised.",
    ),
    Key::new(
        Ecn::KEY,
        Kind::Choice(Ecn::CHOICES),
        Default::Inherited,
        "Explicit congestion notification.",
    ),
    Key::new(
        "buffer.send_factor",
        count(Unit::Plain, 0, 100),
        Default::Inherited,
        "The send buffer grows until it holds this many congestion windows (with BBR three), up to \
         `send_buffer_bytes`. 0 means that it has its size from the start.",
    ),
    Key::new(
        "buffer.send_segment_bytes",
        count(Unit::Bytes, 0, 1 << 20),
        Default::Inherited,
        "The send buffer counts memory, as a kernel does, and where it grows it has this much for \
         each segment of the congestion window. 0 means that it counts payload alone, and that the \
         application writes as soon as there is room.",
    )
    .simulated_only(),
    Key::new(
        "buffer.send_burst_bytes",
        count(Unit::Bytes, 0, 1 << 20),
        Default::Inherited,
        "Memory that each burst takes in the send buffer in addition to its payload.",
    )
    .simulated_only(),
    Key::new(
        "buffer.send_wake_divisor",
        count(Unit::Plain, 1, 100),
        Default::Inherited,
        "An application that found the send buffer full writes again when this part of it is free; \
         1 means all of it.",
    )
    .simulated_only(),
    Key::new(
        "buffer.initial_receive_bytes",
        count(Unit::Bytes, 0, 1 << 40),
        Default::Inherited,
        "The window that the receiver advertises at first. It grows up to `receive_buffer_bytes`. 0 \
         means that it has its size from the start.",
    ),
    Key::new(
        "buffer.receive_tuning",
        Kind::Flag,
        Default::Inherited,
        "True: the window grows with what the application reads in a round trip (dynamic \
         right-sizing). False: it grows with every full segment, as after SO_RCVBUF.",
    ),
    Key::new(
        TuningRule::KEY,
        Kind::Choice(TuningRule::CHOICES),
        Default::Inherited,
        "How dynamic right-sizing counts.",
    ),
];

/// Keys that only a profile has.
pub(super) const PROFILE_ONLY: &[Key] = &[Key::new(
    "reno.slow_start",
    Kind::Choice(SlowStart::CHOICES),
    Default::Inherited,
    "The value of `slow_start` for a flow whose congestion control is Reno, unless the flow sets \
     it: in Linux, only CUBIC has HyStart. A profile that sets `slow_start` sets this too.",
)];

/// How data that arrives is delivered, and how the receiving application reads it.
pub(super) const READER: &[Key] = &[
    Key::new(
        "read_rate_mbps",
        Kind::Rate,
        Default::Absent("all that has arrived, at once"),
        "Rate at which the application of the receiver reads, in bits of payload.",
    ),
    Key::new(
        "application.read_delay_ms",
        MS_ABOVE_0,
        Default::Absent("none"),
        "Time from the first arrival until the application of the receiver is awake; then it \
         reads everything. Until then unread data takes up the window, and an acknowledgement \
         that could only advertise a smaller window waits for the read, as in Linux.",
    )
    .excludes(&["read_rate_mbps"]),
    Key::new(
        "aggregation.hand_up_ms",
        MS_ABOVE_0,
        Default::Absent("none"),
        "Time that a host takes to deliver an aggregate, or an acknowledgement, to its TCP. What \
         arrives meanwhile waits its turn.",
    ),
    Key::new(
        "aggregation.hand_up_segment_ms",
        MS_ABOVE_0,
        Default::Absent("none"),
        "More time for each segment of an aggregate.",
    ),
];

const FROM_FIRST_HOP: Need = Need::Not("buffer.from_first_hop", "none");

/// Buffers that an operating system sizes by the round trip to its first hop.
pub(super) const FIRST_HOP: &[Key] = &[
    Key::new(
        FromFirstHop::KEY,
        Kind::Choice(FromFirstHop::CHOICES),
        Default::Value("\"none\""),
        "Whose buffers hold at least what the first hop carries in a round trip: \
         `buffer.first_hop_mbps` times `buffer.first_hop_rtt_ms`. A buffer that is larger stays as \
         it is.",
    ),
    Key::new(
        "buffer.first_hop_rtt_ms",
        MS_FROM_0,
        Default::Required,
        "RTT to the first hop, as the operating system measured it before the flow.",
    )
    .needs(FROM_FIRST_HOP),
    Key::new(
        "buffer.first_hop_mbps",
        Kind::Rate,
        Default::Required,
        "Rate that the operating system takes for the first hop's: an RTT alone does not say how \
         much to buffer.",
    )
    .needs(FROM_FIRST_HOP),
];

/// What the sender keeps about its peer between connections.
pub(super) const ROUTE: &[Key] = &[
    Key::new(
        KeptMetrics::KEY,
        Kind::Choice(KeptMetrics::CHOICES),
        Default::Value("\"none\""),
        "What the sender keeps when all of its data is acknowledged, and what its next flow to the \
         same UE, or from it, begins with. An emulation sets `net.ipv4.tcp_no_metrics_save` and \
         `tcp_no_ssthresh_metrics_save` as the first flow of each sending host says.",
    ),
    Key::new(
        "route.ssthresh_segments",
        real("segments", 1.0, 10_000_000.0),
        Default::Absent("no ssthresh is known"),
        "The ssthresh that the sender has kept from connections before the run, as `ip tcp_metrics \
         show` prints it. `linux-ssthresh` and `bsd` use it.",
    )
    .simulated_only(),
];

choices! {
    /// Values of `route.metrics`.
    KeptMetrics("route.metrics") {
        None = "none": "Nothing.",
        Linux = "linux": "The RTT, as Linux does by default since 5.6.",
        LinuxSsthresh = "linux-ssthresh":
            "Also ssthresh, as Linux before 5.6, or with `tcp_no_ssthresh_metrics_save` = 0.",
        Bsd = "bsd":
            "ssthresh and the RTT, averaged, as in the routes of 4.4BSD and Mac OS X 10.5.",
    }

    /// Values of `buffer.from_first_hop`.
    FromFirstHop("buffer.from_first_hop") {
        None = "none": "Nobody's.",
        Ue = "ue":
            "Those of the end at the UE: the receive buffer of a download, the send buffer of an \
             upload. The server's first hop is another one.",
        Both = "both": "Those of both ends, as where the two have that hop in common.",
    }

    /// Values of `slow_start`.
    SlowStart("slow_start") {
        None = "none": "A loss.",
        Hystart4_19 = "hystart-4.19": "HyStart as in Linux until 4.19.130 and 5.4.49.",
        Hystart5_6 = "hystart-5.6": "In microseconds; the ACK train knows pacing.",
        Hystart5_8 = "hystart-5.8": "A minimum RTT that falls does not end slow start.",
        Hystart5_16 = "hystart-5.16": "Rounds continue where cwnd is not the limit.",
        Hystart6_14 = "hystart-6.14": "Rounds of a small cwnd count too.",
        HystartPlusPlus = "hystart++": "HyStart++ (RFC 9406).",
    }

    /// Values of `congestion`.
    Congestion("congestion") {
        Cubic = "cubic": "CUBIC (RFC 9438).",
        Reno = "reno": "Reno (RFC 5681).",
        Bbr = "bbr": "BBR v1, as in Linux.",
        Bbr3 = "bbr3": "BBR v3 (draft-ietf-ccwg-bbr-06).",
        Fixed = "fixed": "A constant window, without any congestion control.",
    }

    /// Values of `cwnd.after_idle`.
    AfterIdle("cwnd.after_idle") {
        Keep = "keep": "The window stays as it is.",
        Restart = "restart": "The window is at most the initial window (RFC 5681 4.1).",
        Decay = "decay": "The window halves for each RTO; ssthresh remembers it (RFC 2861).",
    }

    /// Values of `cubic.arithmetic`.
    Arithmetic("cubic.arithmetic") {
        Rfc = "rfc": "It counts fractions of segments, as in the formulas of RFC 9438.",
        Linux = "linux": "It counts whole segments, as Linux does.",
    }

    /// Values of `reno.halves`.
    RenoHalves("reno.halves") {
        Flight = "flight": "The data in flight, at most the window (RFC 5681 (4)).",
        Cwnd = "cwnd": "The congestion window, whether it was used or not, as Linux does.",
    }

    /// Values of `reno.grows_by`.
    RenoGrowsBy("reno.grows_by") {
        Segments = "segments": "The segments that are acknowledged (RFC 3465 2.1).",
        Acknowledgements = "acknowledgements":
            "Each acknowledgement as one segment, however many it covers (RFC 5681 (3)).",
    }

    /// Values of `rto.estimator`.
    Estimator("rto.estimator") {
        Rfc6298 = "rfc6298": "SRTT + 4 RTTVAR, at least `rto.min_ms`.",
        Linux = "linux":
            "The largest deviation of a round trip counts, and `rto.min_ms` bounds the variance \
             term alone.",
    }

    /// Values of `recovery.loss_detection`.
    Detection("recovery.loss_detection") {
        Sack = "sack":
            "Three separate ranges, or more bytes than two segments have, were SACKed above it \
             (RFC 6675 4).",
        Rack = "rack":
            "It is overdue, and something that was sent later has arrived (RACK, RFC 8985).",
    }

    /// Values of `recovery.cwnd_reduction`.
    CwndReduction("recovery.cwnd_reduction") {
        Immediate = "immediate": "At once (RFC 6675 5).",
        Prr = "prr": "By proportional rate reduction (RFC 9937).",
    }

    /// Values of `options.ecn`.
    Ecn("options.ecn") {
        Off = "off": "Neither end requests it or agrees to it.",
        Classic = "classic": "ECN of RFC 3168.",
    }

    /// Values of `buffer.receive_tuning_rule`.
    TuningRule("buffer.receive_tuning_rule") {
        Linux4_19 = "linux-4.19": "As in Linux until 6.15: room for 16 more segments.",
        Linux6_16 = "linux-6.16":
            "As in Linux since 6.16: unread data is subtracted from what was read.",
    }
}
