//! A look at one sender, by whatever means.

use std::net::IpAddr;

/// The sender's state, and why it was looked at.
#[derive(Clone, Debug)]
pub(super) struct Observation {
    /// CLOCK_MONOTONIC in nanoseconds.
    pub(super) time_ns: u64,
    pub(super) end: usize,
    pub(super) cookie: u64,
    pub(super) kind: Kind,
    pub(super) v6: bool,
    pub(super) local_port: u16,
    pub(super) remote_port: u16,
    pub(super) remote: IpAddr,
    pub(super) congestion: &'static str,
    pub(super) state: State,
    pub(super) found: Found,
}

#[cfg_attr(not(feature = "bpf"), allow(dead_code, reason = "only BPF sees all of it"))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// An acknowledgement came, and is not processed yet.
    Ack,
    /// The congestion state (`tcpi_ca_state`) is to change.
    Congestion { before: u8, after: u8 },
    /// Nothing: its TCP_INFO was asked for.
    Poll,
    /// The connection is established.
    Begin,
    /// The connection is closed.
    End,
}

/// Windows in segments, times in microseconds.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct State {
    pub(super) acked_bytes: u64,
    pub(super) cwnd: u32,
    /// `None` before the first congestion.
    pub(super) ssthresh: Option<u32>,
    /// `None` before the first sample.
    pub(super) srtt_us: Option<u32>,
    /// Of the newest segment delivered.
    pub(super) rtt_us: Option<u32>,
    pub(super) min_rtt_us: Option<u32>,
    /// RFC 6675 pipe.
    pub(super) in_flight: u32,
    /// What the peer has announced last, in whole segments.
    pub(super) receive_window: Option<u32>,
    pub(super) lost: u32,
    pub(super) delivered: u32,
    /// Before the last reduction; 0 if it is not known.
    pub(super) prior_cwnd: u32,
    pub(super) rto_ms: f64,
    pub(super) retransmitted: u32,
    pub(super) timeouts: u32,
    /// `tcpi_ca_state`
    pub(super) congestion_state: u8,
}

/// What HyStart found, and with which RTTs in microseconds.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Found {
    pub(super) what: What,
    pub(super) base_rtt_us: Option<u32>,
    /// Of the round so far.
    pub(super) round_rtt_us: Option<u32>,
    /// `None` without HyStart, and where nothing shows it.
    pub(super) round: Option<Round>,
}

/// HyStart's round.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Round {
    /// HyStart++ (RFC 9406) is in conservative slow start; `None` for HyStart.
    pub(super) css: Option<bool>,
    /// RTT samples, at most eight.
    pub(super) samples: u32,
    pub(super) ack_train_us: Option<u32>,
    pub(super) ack_train_limit_us: Option<u32>,
}

#[cfg_attr(not(feature = "bpf"), allow(dead_code, reason = "only BPF sees all of it"))]
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum What {
    #[default]
    Nothing,
    /// The end of slow start, but not why.
    Something,
    /// Why too.
    Exit(&'static str),
}

/// Names of congestion controls that a kernel may have.
const KNOWN: [&str; 17] = [
    "reno",
    "cubic",
    "bbr",
    "bbr2",
    "bbr3",
    "dctcp",
    "vegas",
    "westwood",
    "htcp",
    "hybla",
    "illinois",
    "bic",
    "cdg",
    "highspeed",
    "lp",
    "nv",
    "scalable",
];

/// CUBIC with a generation's slow start; a number may follow.
const OURS: [&str; 9] = [
    "air_none",
    "air_4.19",
    "air_4.19.131",
    "air_4.19_both",
    "air_5.6",
    "air_5.8",
    "air_5.16",
    "air_6.14",
    "air_hystartpp",
];

/// The name as tables take it.
pub(crate) fn congestion_name(name: &str) -> &'static str {
    let numbered = |known: &str| {
        let number = name.strip_prefix(known).and_then(|rest| rest.strip_prefix('_'));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let known = KNOWN.into_iter().chain(OURS).find(|known| *known == name);
    known.or_else(|| OURS.into_iter().find(|known| numbered(known))).unwrap_or("other")
}
