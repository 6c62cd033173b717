//! An observation of one sender, by either method.

use std::net::IpAddr;
use std::sync::{PoisonError, RwLock};

/// The sender's state, and why it was observed.
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
    /// An acknowledgement arrived, and is not processed yet.
    Ack,
    /// The congestion state (`tcpi_ca_state`) is about to change.
    Congestion { before: u8, after: u8 },
    /// No event: its TCP_INFO was read.
    Poll,
    /// The connection is established.
    Begin,
    /// The connection is closed.
    End,
}

/// State of a sender: windows in segments, times in microseconds.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct State {
    pub(super) acked_bytes: u64,
    pub(super) cwnd: u32,
    /// Slow start threshold; `None` before the first congestion.
    pub(super) ssthresh: Option<u32>,
    /// Smoothed RTT; `None` before the first sample.
    pub(super) srtt_us: Option<u32>,
    /// RTT of the newest segment delivered.
    pub(super) rtt_us: Option<u32>,
    pub(super) min_rtt_us: Option<u32>,
    /// Segments in flight (RFC 6675 pipe).
    pub(super) in_flight: u32,
    /// The window that the peer last advertised, in whole segments.
    pub(super) receive_window: Option<u32>,
    pub(super) lost: u32,
    pub(super) delivered: u32,
    /// cwnd before the last reduction; 0 if it is not known.
    pub(super) prior_cwnd: u32,
    pub(super) rto_ms: f64,
    pub(super) retransmitted: u32,
    pub(super) timeouts: u32,
    /// `tcpi_ca_state`
    pub(super) congestion_state: u8,
}

/// What HyStart found, and the RTTs that it compared, in microseconds.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Found {
    pub(super) what: What,
    pub(super) base_rtt_us: Option<u32>,
    /// RTT of the round so far.
    pub(super) round_rtt_us: Option<u32>,
    /// The round; `None` without HyStart, or if it is not visible.
    pub(super) round: Option<Round>,
}

/// HyStart's round.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Round {
    /// Whether HyStart++ (RFC 9406) is in conservative slow start; `None` for HyStart.
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
    /// The end of slow start, without the reason.
    Something,
    /// The end of slow start, with the reason.
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

/// CUBIC with the slow start of a generation; a number may follow.
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

/// Names of congestion controls that users chose. Tables have names that live as long as the process,
/// and a process has few of these.
static CHOSEN: RwLock<Vec<&'static str>> = RwLock::new(Vec::new());

/// Makes the name of a chosen congestion control known to [`congestion_name`].
pub(crate) fn know_congestion(name: &str) {
    if congestion_name(name) == OTHER {
        let mut chosen = CHOSEN.write().unwrap_or_else(PoisonError::into_inner);
        chosen.push(String::leak(name.to_owned()));
    }
}

/// The name in tables of congestion controls that nobody chose and that are not known.
const OTHER: &str = "other";

/// The name in the form for tables.
pub(crate) fn congestion_name(name: &str) -> &'static str {
    let numbered = |known: &str| {
        let number = name.strip_prefix(known).and_then(|rest| rest.strip_prefix('_'));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let known = KNOWN.into_iter().chain(OURS).find(|known| *known == name);
    let chosen = || {
        let chosen = CHOSEN.read().unwrap_or_else(PoisonError::into_inner);
        chosen.iter().copied().find(|known| *known == name)
    };
    let known = known.or_else(|| OURS.into_iter().find(|known| numbered(known)));
    known.or_else(chosen).unwrap_or(OTHER)
}
