//! What a path is made of, as plain data. Scenario files are somebody else's business.

use std::sync::Arc;

use airpath_base::{Duration, Instant, Rate};
use airpath_queue::Isolation;

use crate::Trace;

/// One stage of one direction, in the order that packets meet it.
#[derive(Clone, Debug, PartialEq)]
pub enum StageConfig {
    /// Propagation and processing delay.
    Delay(DelayConfig),
    /// Departures at multiples of an interval only.
    Batch {
        /// The interval, counted from the run's start.
        interval: Duration,
    },
    /// Something that serves one packet after another from a queue.
    Link(LinkConfig),
    /// Random or periodic loss.
    Loss(LossConfig),
    /// Drops or marks what exceeds a rate and a burst.
    Policer(PolicerConfig),
    /// One end of a GTP-U tunnel.
    Gtpu(TunnelEnd),
    /// A hop that drops what is larger than its MTU.
    Mtu {
        /// Largest packet in bytes, outer headers of a tunnel included.
        bytes: u32,
    },
    /// A host whose CPU is taken away now and then.
    Host(HostConfig),
    /// One side of a NAT or a firewall.
    Middlebox(MiddleboxConfig),
}

/// A delay that does not depend on load.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayConfig {
    /// Every packet's delay.
    pub base: Duration,
    /// Random delay on top of it.
    pub jitter: Option<Jitter>,
}

/// Random delay, drawn anew for each packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Jitter {
    /// How it is distributed; never negative.
    pub distribution: Distribution,
    /// True: a packet never overtakes (it waits for the one before it). False: it may.
    pub keep_order: bool,
    /// True: packets that arrive at the same instant are delayed alike.
    pub together: bool,
}

/// A distribution of non-negative delays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Uniform in [0, max].
    Uniform {
        /// Upper end.
        max: Duration,
    },
    /// Most are small, a few are many times the mean.
    Exponential {
        /// Its standard deviation is as large.
        mean: Duration,
    },
    /// |N(0, sd)|, half-normal.
    HalfNormal {
        /// Standard deviation of the underlying normal.
        sd: Duration,
    },
}

/// A server with a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// How fast it serves.
    pub service: ServiceConfig,
    /// Where packets wait. The packet being sent has left the queue.
    pub queue: QueueConfig,
}

/// How fast a link serves.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceConfig {
    /// A constant bit rate.
    Rate(Rate),
    /// Recorded delivery opportunities.
    Trace(Arc<Trace>),
    /// A token bucket: at once while it holds tokens, then as they come.
    Bucket {
        /// Rate at which tokens come.
        rate: Rate,
        /// Bytes of tokens that it holds; it starts full.
        burst: u64,
    },
}

/// A queue's limits and discipline. `None` is "no limit".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueConfig {
    /// Packets that may wait.
    pub packets: Option<u32>,
    /// Bytes that may wait.
    pub bytes: Option<u64>,
    /// Active queue management on top of the limits.
    pub aqm: Aqm,
}

/// Active queue management.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aqm {
    /// None: the queue drops at its tail when it is full.
    DropTail,
    /// CoDel (RFC 8289), dropping at the head.
    CoDel {
        /// Acceptable standing queue delay.
        target: Duration,
        /// Time above target before the first drop.
        interval: Duration,
    },
    /// A queue for each flow, each with CoDel.
    FqCoDel(FqCoDelConfig),
}

/// FQ-CoDel (RFC 8290).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FqCoDelConfig {
    /// CoDel's target.
    pub target: Duration,
    /// CoDel's interval.
    pub interval: Duration,
    /// Bytes that a queue may send in its turn (RFC 8290 5.2.3); at least 1.
    pub quantum: u32,
    /// Which flows share a queue.
    pub isolation: Isolation,
}

/// Loss that does not depend on load.
#[derive(Clone, Debug, PartialEq)]
pub struct LossConfig {
    /// Which packets are lost.
    pub process: LossProcess,
    /// Smaller packets pass, and do not count: with 100, say, acknowledgements without data.
    pub min_bytes: u32,
}

/// Which packets are lost.
#[derive(Clone, Debug, PartialEq)]
pub enum LossProcess {
    /// Each packet independently.
    Random {
        /// In [0, 1].
        probability: f64,
    },
    /// Exactly one packet in `period`, the last of each `period`.
    Periodic {
        /// At least 1.
        period: u64,
    },
    /// Exactly these.
    Numbered {
        /// Ascending; the first packet is 1.
        numbers: Arc<[u64]>,
    },
    /// Two-state Markov chain (Gilbert 1960, Elliott 1963), one step a packet, starting good.
    GilbertElliott {
        /// Probability to go from good to bad.
        good_to_bad: f64,
        /// Probability to go from bad to good.
        bad_to_good: f64,
        /// Loss probability while good.
        loss_good: f64,
        /// Loss probability while bad.
        loss_bad: f64,
    },
}

/// A policer: it holds nothing back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicerConfig {
    /// Rate at which tokens come.
    pub rate: Rate,
    /// Bytes of tokens that the bucket holds; it starts full.
    pub burst: u64,
    /// What becomes of a packet for which there are not enough.
    pub excess: Excess,
}

/// What a policer does with what exceeds its rate and burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// The packet is lost.
    Drop,
    /// Marks it as having met congestion (RFC 3168 5); drops it if it cannot be marked.
    Mark,
}

/// One end of a GTP-U tunnel (TS 29.281).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TunnelEnd {
    /// Packets go in.
    Enter(GtpuConfig),
    /// They come out.
    Leave,
}

/// How a GTP-U tunnel wraps packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GtpuConfig {
    /// The outer IP header.
    pub outer_ip: OuterIp,
    /// The extension header of NR's N3 (TS 38.415); LTE's S1-U has none.
    pub pdu_session_container: bool,
    /// Largest outer packet in bytes; `None` is no limit.
    pub mtu: Option<u32>,
    /// What becomes of a packet that does not fit.
    pub too_big: TooBig,
}

/// IP version of a tunnel's outer header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OuterIp {
    /// 20 bytes.
    V4,
    /// 40 bytes, and 8 more in fragments.
    V6,
}

/// What becomes of a packet that with its headers is larger than the MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooBig {
    /// The outer packet is fragmented.
    Fragment,
    /// It is dropped, and nobody is told.
    Drop,
}

/// A host that forwards packets when its CPU is not taken away.
#[derive(Clone, Debug, PartialEq)]
pub struct HostConfig {
    /// When the CPU is taken away.
    pub stalls: Stalls,
    /// CPU time that each packet takes.
    pub processing: Duration,
    /// Time from the first packet that finds the CPU idle to the interrupt.
    pub coalescing: Duration,
    /// Packets that may wait; `None` is no limit. The one being processed no longer waits.
    pub ring_packets: Option<u32>,
    /// Name of the random stream of the stalls. Stages with the same one and the same stalls
    /// share a CPU; `None`: the stage's own.
    pub cpu: Option<String>,
}

/// When a CPU is taken away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stalls {
    /// Never.
    None,
    /// At regular times.
    Periodic {
        /// Start of the first.
        offset: Instant,
        /// From start to start.
        period: Duration,
        /// Of each; less than the period.
        duration: Duration,
    },
    /// At random times, after pauses that are distributed exponentially.
    Random {
        /// Mean of the exponentially distributed time from the end of one to the next.
        mean_between: Duration,
        /// Of each.
        duration: Distribution,
    },
}

/// One side of a NAT or a firewall, which lets flows in that have come out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MiddleboxConfig {
    /// What it is.
    pub kind: MiddleboxKind,
    /// Which way this side leads.
    pub side: MiddleboxSide,
}

/// What forgets flows, and what that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MiddleboxKind {
    /// Ran address translator.
    Nat,
    /// Stateful firewall.
    Firewall,
}

/// Which way packets pass a middlebox.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MiddleboxSide {
    /// From the inside: everything passes, and opens a pinhole for its flow.
    Outward(MiddleboxTimer),
    /// From the outside: what belongs to no open flow is dropped.
    Inward,
}

/// How long a pinhole stays open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MiddleboxTimer {
    /// After the last packet that refreshed it.
    pub timeout: Duration,
    /// What comes in refreshes it too (RFC 4787 REQ-6).
    pub inward_refreshes: bool,
}
