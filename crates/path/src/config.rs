//! The configuration of a path, as plain data; it knows nothing of scenario files.

use std::sync::Arc;

use airpath_base::{Duration, Instant, Rate};
use airpath_queue::Isolation;

use crate::Trace;

/// One stage of one direction, in the order that packets meet it.
#[derive(Clone, Debug, PartialEq)]
pub enum StageConfig {
    /// Propagation and processing delay.
    Delay(DelayConfig),
    /// Releases packets only at multiples of an interval.
    Batch {
        /// The interval, counted from the start of the run.
        interval: Duration,
    },
    /// A server that sends one packet at a time from a queue.
    Link(LinkConfig),
    /// Random or periodic loss.
    Loss(LossConfig),
    /// Drops or marks what exceeds a rate and a burst.
    Policer(PolicerConfig),
    /// One end of a tunnel.
    Tunnel(TunnelEnd),
    /// A hop that drops what is larger than its MTU.
    Mtu {
        /// Largest packet in bytes, outer headers of a tunnel included.
        bytes: u32,
    },
    /// A device whose offload breaks packets.
    Offload(OffloadConfig),
    /// A host whose CPU is taken away at times.
    Host(HostConfig),
    /// A USB modem's driver, which moves packets in blocks.
    Modem(ModemConfig),
    /// One direction of a NAT or a firewall.
    Middlebox(MiddleboxConfig),
}

/// A delay that does not depend on load.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayConfig {
    /// Every packet's delay.
    pub base: Duration,
    /// Random delay in addition to `base`.
    pub jitter: Option<Jitter>,
}

/// Random delay, drawn for each packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Jitter {
    /// The distribution; never negative.
    pub distribution: Distribution,
    /// True: packets never overtake (each waits for the one before it). False: they may overtake.
    pub keep_order: bool,
    /// True: packets that arrive at the same instant get the same delay.
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
    /// Exponential: most delays are small, a few are many times the mean.
    Exponential {
        /// Mean, which is also the standard deviation.
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
    /// How fast the link serves.
    pub service: ServiceConfig,
    /// The queue in front of the server. The packet being sent has left the queue.
    pub queue: QueueConfig,
}

/// How fast a link serves.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceConfig {
    /// A constant bit rate.
    Rate(Rate),
    /// Recorded delivery opportunities.
    Trace(Arc<Trace>),
    /// A token bucket: serves at once while it holds tokens, then as they arrive.
    Bucket {
        /// Rate at which tokens arrive.
        rate: Rate,
        /// Size of the bucket in bytes; it starts full.
        burst: u64,
    },
}

/// Limits and discipline of a queue. `None` means no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueConfig {
    /// Most packets that may wait.
    pub packets: Option<u32>,
    /// Most bytes that may wait.
    pub bytes: Option<u64>,
    /// Active queue management in addition to the limits.
    pub aqm: Aqm,
}

/// Active queue management.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aqm {
    /// No management: the queue drops at its tail when it is full.
    DropTail,
    /// CoDel (RFC 8289), dropping at the head.
    CoDel {
        /// Acceptable standing queue delay.
        target: Duration,
        /// Time above target before the first drop.
        interval: Duration,
    },
    /// One queue per flow, each with CoDel.
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
    /// Smaller packets pass and are not counted: with 100, for example, acknowledgements without
    /// data.
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
    /// Exactly one packet per `period`, the last of each.
    Periodic {
        /// The period in packets, at least 1.
        period: u64,
    },
    /// Exactly the packets with these numbers.
    Numbered {
        /// Ascending numbers; the first packet is 1.
        numbers: Arc<[u64]>,
    },
    /// Two-state Markov chain (Gilbert 1960, Elliott 1963), one step per packet, starting in the
    /// good state.
    GilbertElliott {
        /// Probability of changing from good to bad.
        good_to_bad: f64,
        /// Probability of changing from bad to good.
        bad_to_good: f64,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
}

/// A policer, which never delays a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicerConfig {
    /// Rate at which tokens arrive.
    pub rate: Rate,
    /// Size of the bucket in bytes; it starts full.
    pub burst: u64,
    /// What happens to a packet for which there are too few tokens.
    pub excess: Excess,
}

/// What a policer does with what exceeds its rate and burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// Drops the packet.
    Drop,
    /// Marks the packet as having met congestion (RFC 3168 5); drops it if it cannot be marked.
    Mark,
}

/// Whether packets enter a tunnel here, or leave it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TunnelEnd {
    /// Packets enter the tunnel.
    Enter(TunnelConfig),
    /// Packets leave the tunnel.
    Leave,
}

/// How a tunnel encapsulates packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TunnelConfig {
    /// The outer IP header.
    pub outer_ip: OuterIp,
    /// What follows the outer IP header.
    pub protocol: TunnelProtocol,
    /// Largest outer packet in bytes; `None` is no limit.
    pub mtu: Option<u32>,
    /// What happens to a packet whose outer packet does not fit.
    pub too_big: TooBig,
}

/// What follows the outer IP header of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelProtocol {
    /// UDP and GTP-U (TS 29.281).
    Gtpu {
        /// The extension header of NR's N3 (TS 38.415); LTE's S1-U has none.
        pdu_session_container: bool,
    },
    /// UDP and WireGuard, which pads packets and appends an authentication tag.
    WireGuard {
        /// MTU of the VPN's device: larger packets are dropped. `None` is no limit.
        device_mtu: Option<u32>,
    },
}

/// IP version of a tunnel's outer header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OuterIp {
    /// 20 bytes.
    V4,
    /// 40 bytes, and 8 more in fragments.
    V6,
}

/// What happens to a packet that is larger than the MTU with its outer headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooBig {
    /// The outer packet is fragmented.
    Fragment,
    /// The packet is dropped silently.
    Drop,
}

/// A device whose offload breaks packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffloadConfig {
    /// What the offload does wrong.
    pub fault: OffloadFault,
    /// Size in bytes below which packets pass unharmed and are not joined: those without data.
    pub min_bytes: u32,
}

/// What offload does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffloadFault {
    /// The checksum that the device writes into a packet is wrong.
    Checksum,
    /// Segments that arrive together are joined, and dropped if the result is larger than the MTU of
    /// the next hop.
    Joined {
        /// Time from the first packet that finds the device idle until the device forwards all packets
        /// that arrived.
        window: Duration,
        /// MTU of the next hop in bytes.
        mtu: u32,
    },
}

/// A host that forwards packets while its CPU is not taken away.
#[derive(Clone, Debug, PartialEq)]
pub struct HostConfig {
    /// When the CPU is taken away.
    pub stalls: Stalls,
    /// CPU time that each packet takes.
    pub processing: Duration,
    /// Time from the first packet that finds the CPU idle until the interrupt.
    pub coalescing: Duration,
    /// Most packets that may wait; `None` means no limit. The packet being processed no longer
    /// waits.
    pub ring_packets: Option<u32>,
    /// Name of the CPU, and of the random stream of its stalls. The two directions of a host with the
    /// same name share the CPU, which has the stalls of the uplink; `None`: a CPU of its own.
    pub cpu: Option<String>,
}

/// A USB modem's driver: packets cross the bus in blocks (USB NCM 1.0 3.2, MBIM 1.0, QMAP).
#[derive(Clone, Debug, PartialEq)]
pub struct ModemConfig {
    /// Most bytes of IP packets in a block; a larger packet has a block to itself.
    pub block_bytes: u32,
    /// Most packets in a block; at least 1.
    pub block_packets: u32,
    /// How long a packet waits for others to fill its block.
    pub timer: Duration,
    /// How long the transfer of a block takes, whatever its size. The bus carries one at a time.
    pub transfer: Duration,
    /// Most packets that may wait; `None` means no limit. Packets being transferred no longer wait.
    pub ring_packets: Option<u32>,
}

/// When a CPU is taken away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stalls {
    /// Never.
    None,
    /// At regular times.
    Periodic {
        /// Start of the first stall.
        offset: Instant,
        /// Time from the start of one stall to the start of the next.
        period: Duration,
        /// Length of each stall; less than the period.
        duration: Duration,
    },
    /// At random times, with exponentially distributed pauses.
    Random {
        /// Mean of the exponentially distributed time from the end of one stall to the start of the
        /// next.
        mean_between: Duration,
        /// Length of each stall.
        duration: Distribution,
    },
}

/// One direction of a NAT or a firewall, which admits flows that began on the inside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MiddleboxConfig {
    /// Whether it is a NAT or a firewall.
    pub kind: MiddleboxKind,
    /// The direction of this half.
    pub side: MiddleboxSide,
}

/// The two kinds of middleboxes, which drop for different reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MiddleboxKind {
    /// Address translator.
    Nat,
    /// Stateful firewall.
    Firewall,
}

/// The direction in which packets pass a middlebox.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MiddleboxSide {
    /// From the inside: everything passes, and opens a pinhole for its flow.
    Outward(MiddleboxTimer),
    /// From the outside: packets of flows without an open pinhole are dropped.
    Inward,
}

/// How long a pinhole stays open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MiddleboxTimer {
    /// Time after the last packet that refreshed the pinhole.
    pub timeout: Duration,
    /// Whether inbound packets refresh it too (RFC 4787 REQ-6).
    pub inward_refreshes: bool,
}
