//! The configuration of an endpoint, as plain data. A profile is a named set of these values.

mod congestion;
mod slow_start;

use airpath_base::{Duration, Rate};

use crate::RouteConfig;

pub use congestion::{
    CongestionConfig, CongestionFactory, CubicArithmetic, CubicConfig, ExternalCongestion,
    GrowthUnit, Halved, RenoConfig,
};
pub use slow_start::{
    AckTrain, EarlyExit, HystartClock, HystartConfig, RoundStart, SlowStartConfig,
};

/// One TCP endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointConfig {
    /// Payload bytes of a full segment (SMSS, RFC 5681 2), options already subtracted.
    pub mss: u32,
    /// IP and TCP headers of a data segment in bytes, options included.
    pub header: u32,
    /// Initial window in segments (RFC 6928; RFC 5681 3.1).
    pub initial_window: u32,
    /// Slow start of the loss-based algorithms.
    pub slow_start: SlowStartConfig,
    /// Congestion control of the sending half.
    pub congestion: CongestionConfig,
    /// Retransmission timer.
    pub rto: RtoConfig,
    /// How losses are detected and repaired.
    pub recovery: RecoveryConfig,
    /// Spreads segments over the round trip; `None`: no pacing, unless the congestion control sets
    /// a rate of its own.
    pub pacing: Option<PacingConfig>,
    /// Segmentation offload, which makes segments leave in bursts; `None`: they leave one at a
    /// time.
    pub offload: Option<OffloadConfig>,
    /// How cwnd may change while it is not fully used.
    pub validation: ValidationConfig,
    /// When the receiving half acknowledges.
    pub delayed_ack: DelayedAckConfig,
    /// Which acknowledgements of out-of-order data are held back.
    pub sack_compression: SackCompressionConfig,
    /// Segments that the receiver's network card or driver delivers together; `None`: each is
    /// delivered alone.
    pub aggregation: Option<AggregationConfig>,
    /// Timestamps option (RFC 7323).
    pub timestamps: bool,
    /// How many SYNs are retransmitted without doubling the time-out: Linux since 6.5
    /// (`tcp_syn_linear_timeouts`). SYN+ACKs always double it.
    pub syn_linear_timeouts: u32,
    /// The tick of the timestamp clock. A round trip known from timestamps only is measured in
    /// whole ticks, at least one, and then also counts for the smallest RTT and for the congestion
    /// control: so does Linux, whose timestamp clock ticks each millisecond. Zero: it is measured
    /// in microseconds, and counts for the time-out only.
    pub timestamp_tick: Duration,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Duplicates are reported in SACK blocks (RFC 2883); this requires SACK.
    pub dsack: bool,
    /// Explicit congestion notification, if the peer supports it too.
    pub ecn: EcnConfig,
    /// Window scaling (RFC 7323 2).
    pub window_scaling: bool,
    /// Most bytes that the application may have written and that are not yet acknowledged.
    pub send_buffer: u64,
    /// How many times cwnd the send buffer grows to, up to `send_buffer`; `None`: it has its full
    /// size from the start.
    pub send_buffer_factor: Option<u32>,
    /// How a kernel accounts for the memory of the send buffer; `None`: only payload counts, and
    /// the application writes as soon as there is room.
    pub send_memory: Option<SendMemoryConfig>,
    /// The receive buffer, from which the window is advertised.
    pub receive_buffer: BufferConfig,
    /// The rules by which a tuned receive buffer grows.
    pub right_sizing: RightSizing,
    /// When the application reads what has arrived.
    pub reader: ReaderConfig,
    /// What is kept about the destination between connections.
    pub route: RouteConfig,
}

impl Default for EndpointConfig {
    /// TCP as the RFCs describe it, over Ethernet, with buffers that never limit it.
    fn default() -> Self {
        Self {
            mss: 1448,
            header: 52,
            initial_window: 10,
            slow_start: SlowStartConfig::default(),
            congestion: CongestionConfig::Cubic(CubicConfig::default()),
            rto: RtoConfig {
                initial: Duration::from_secs(1),
                min: Duration::from_secs(1),
                max: Duration::from_secs(60),
                estimator: RtoEstimator::Rfc6298,
            },
            recovery: RecoveryConfig::default(),
            pacing: None,
            offload: None,
            validation: ValidationConfig::default(),
            delayed_ack: DelayedAckConfig::default(),
            sack_compression: SackCompressionConfig::default(),
            aggregation: None,
            timestamps: true,
            timestamp_tick: Duration::ZERO,
            syn_linear_timeouts: 0,
            sack: true,
            dsack: false,
            ecn: EcnConfig::Off,
            window_scaling: true,
            send_buffer: 1 << 30,
            send_buffer_factor: None,
            send_memory: None,
            receive_buffer: BufferConfig::fixed(1 << 30),
            right_sizing: RightSizing::default(),
            reader: ReaderConfig::AtOnce,
            route: RouteConfig::default(),
        }
    }
}

/// The retransmission timer (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// RTO before the first RTT sample (2.1).
    pub initial: Duration,
    /// Lower bound of the RTO (2.4).
    pub min: Duration,
    /// Upper bound of the RTO (2.5).
    pub max: Duration,
    /// How the RTO is computed from RTT samples.
    pub estimator: RtoEstimator,
}

/// How the retransmission time-out is computed from RTT samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RtoEstimator {
    /// SRTT + 4 RTTVAR, but not less than the minimum (RFC 6298 2).
    #[default]
    Rfc6298,
    /// As in Linux: the largest deviation within a round trip counts, a falling RTT does not raise
    /// the time-out, and the minimum bounds the variance term, not the sum (Sarolahti and
    /// Kuznetsov, Congestion Control in Linux TCP, USENIX 2002, 4). SACKed segments give samples
    /// too.
    Linux,
}

/// How losses are detected and repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryConfig {
    /// How a loss is detected.
    pub detection: LossDetection,
    /// Tail loss probes (RFC 8985 7). They require SACK.
    pub tail_loss_probe: bool,
    /// Tick of the timer clock (CONFIG_HZ). Timers expire at a tick and never early, as Linux's do,
    /// and long timers at every few ticks only; zero: exactly. Pacing is always exact.
    pub timer_tick: Duration,
    /// How cwnd is reduced to ssthresh.
    pub reduction: Reduction,
    /// F-RTO (RFC 5682): after a time-out, detects whether it was spurious.
    pub frto: bool,
    /// Undoes a reduction if timestamps show that nothing was lost (Eifel, RFC 3522, RFC 4015).
    pub undo_by_timestamps: bool,
    /// Undoes a reduction if every retransmission was reported as a duplicate (RFC 2883, RFC 3708).
    pub undo_by_dsack: bool,
}

/// How a loss is detected with SACK. Without SACK, three duplicate acknowledgements indicate it
/// (RFC 6582).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossDetection {
    /// Three separate ranges, or more than two segments' bytes, were SACKed above the segment
    /// (RFC 6675 4, IsLost()).
    #[default]
    Sack,
    /// RACK (RFC 8985): the segment was sent before one that has arrived, longer ago than
    /// reordering explains.
    Rack,
}

/// How cwnd is reduced to ssthresh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// At once (RFC 6675 5 (4.2)).
    #[default]
    Immediate,
    /// Proportional rate reduction (RFC 9937).
    Prr,
}

/// Pacing of algorithms that set no rate: a multiple of cwnd per smoothed RTT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacingConfig {
    /// The multiple in slow start, while cwnd is below half of ssthresh (Linux: 2).
    pub slow_start_ratio: f64,
    /// The multiple otherwise (Linux: 1.2).
    pub congestion_avoidance_ratio: f64,
}

/// Segmentation offload: how many segments are given to the link at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffloadConfig {
    /// Payload bytes of the largest burst (Linux: 64 kB).
    pub max_bytes: u32,
    /// A burst is what the pacing rate sends in this time (Linux: 2^-10 s).
    pub time: Duration,
    /// Smallest burst in segments, whatever the pacing rate (Linux: 2).
    pub min_segments: u32,
    /// A smaller burst waits for the next acknowledgement, unless it is at least this fraction of
    /// the window: one divided by this number (Linux: 3); 0: it never waits.
    pub window_divisor: u32,
    /// A small burst waits if the next acknowledgement is expected within this time and within half
    /// an RTT. Each burst is judged separately, also the remainder of what one acknowledgement lets
    /// out (seen with Linux 6.18: 1 ms). 0: the limit is half an RTT, and it is decided once per
    /// acknowledgement.
    pub ack_within: Duration,
    /// The last segment of a burst of several has the PSH flag, as in Linux since 5.4: it ends
    /// aggregation at the receiver.
    pub push: bool,
}

/// How cwnd may change while it is not fully used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValidationConfig {
    /// In slow start, cwnd grows while it is less than twice what was in flight, whether it was
    /// full or not, as in Linux; false: it grows only while it is the limit (RFC 9438 5.8).
    pub half_used_grows: bool,
    /// As in Linux: cwnd grows by what an acknowledgement delivers, by SACK too, if the
    /// acknowledgement advances or segments were overtaken by more than three others; this includes
    /// the acknowledgement that ends recovery. HyStart gets the RTT of SACKed segments. False: cwnd
    /// grows by what is acknowledged cumulatively, outside of recovery.
    pub delivered_grows: bool,
    /// cwnd decays towards the part in use when the application is the limit for longer than the
    /// RTO (RFC 2861).
    pub decays: bool,
    /// What happens to cwnd after an idle time longer than the RTO.
    pub idle: IdleRestart,
}

/// cwnd after an idle time longer than the RTO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdleRestart {
    /// cwnd stays as large as before the pause.
    #[default]
    Keep,
    /// At most the initial window (RFC 5681 4.1).
    Restart,
    /// Halved for each RTO, but not below the initial window; ssthresh keeps the earlier window
    /// (RFC 2861).
    Decay,
}

/// When a receiver acknowledges (RFC 1122 4.2.3.2, RFC 5681 4.2).
///
/// Quick acknowledgements and the adaptive time are Linux's: P. Sarolahti and A. Kuznetsov,
/// "Congestion Control in Linux TCP", USENIX 2002, and what later releases do on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAckConfig {
    /// Acknowledge at once when the unacknowledged bytes exceed this number of full-sized segments
    /// less one; 1 means no delay.
    pub segments: u32,
    /// How long an acknowledgement of less is delayed; if the delay adapts, its lower bound.
    pub timeout: Duration,
    /// Upper bound of a delay that adapts to the time between segments; it adapts if this is larger
    /// than `timeout`.
    pub max_timeout: Duration,
    /// True: the delay ends at a free-running tick with period `timeout` (BSD's fast timer), so it
    /// is uniform in (0, timeout]. False: it begins with the segment.
    pub ticking: bool,
    /// How many acknowledgements are sent without delay at the start, after a duplicate and after a
    /// silence longer than the RTO, at most half a window's worth; 0: none.
    pub quick_segments: u32,
    /// A segment with PSH that arrived alone is acknowledged as soon as it is read, without delay:
    /// Linux since 6.6; for segments of less than the full size long before.
    pub pushed_at_once: bool,
    /// The SYN+ACK is acknowledged in a separate segment, before any data (RFC 9293 3.10.7.3 allows
    /// both). Seen with Linux 6.18: an application that writes at either end wakes once the
    /// handshake is over, after everything that arrived together is processed.
    pub handshake_at_once: bool,
    /// How long it takes to wake the application, if `handshake_at_once`.
    pub wake: Duration,
    /// Shortest time between answers to a repeated SYN or SYN+ACK (RFC 5961 5; Linux:
    /// `tcp_invalid_ratelimit`); zero: each is answered.
    pub repeat_limit: Duration,
}

impl Default for DelayedAckConfig {
    /// An acknowledgement for every second full-sized segment, within 200 ms.
    fn default() -> Self {
        Self {
            segments: 2,
            timeout: Duration::from_millis(200),
            max_timeout: Duration::from_millis(200),
            ticking: false,
            quick_segments: 0,
            pushed_at_once: false,
            handshake_at_once: false,
            wake: Duration::ZERO,
            repeat_limit: Duration::ZERO,
        }
    }
}

/// Compression of SACKs, as in Linux since 4.18: after three acknowledgements of out-of-order data,
/// the following ones are held back. It requires SACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackCompressionConfig {
    /// Longest time that an acknowledgement is held back, which is also limited to a twentieth of a
    /// round trip (`tcp_comp_sack_delay_ns`); zero: no compression.
    pub delay: Duration,
    /// Most acknowledgements that are held back before one is sent (`tcp_comp_sack_nr`).
    pub acks: u32,
    /// How late the timer may be, and is on an idle machine (`tcp_comp_sack_slack_ns`, since 5.8).
    pub slack: Duration,
}

impl DelayedAckConfig {
    /// Whether the delay adapts to the time between segments.
    pub fn is_adaptive(&self) -> bool {
        self.max_timeout > self.timeout
    }
}

/// Memory accounting of the send buffer, as in Linux. `send_buffer` then limits the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendMemoryConfig {
    /// Overhead in bytes of each burst, and of each 64 kB of unsent data (Linux 6.18: 832).
    pub burst_overhead: u32,
    /// Bytes that a segment counts for when the buffer grows with cwnd (Linux 6.18, MSS 1448:
    /// 2304).
    pub segment: u32,
    /// An application that found the buffer full resumes writing when the buffer's size divided by
    /// this is free (Linux: 3); 1: when it is empty.
    pub wake_divisor: u32,
}

/// Aggregation of arriving segments by the network card (LRO) or the driver (GRO): consecutive
/// segments within `time` of the first, up to a PSH flag, are acknowledged as if they were one
/// segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregationConfig {
    /// How long an aggregate stays open; zero: only for segments that arrive at the same instant.
    pub time: Duration,
    /// Most payload bytes of an aggregate; in Linux 65,535, the size of an IP packet.
    pub max_bytes: u32,
}

/// The receive buffer, in bytes of window: without the kernel's overhead for headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferConfig {
    /// Window at the start, within `max`.
    pub initial: u64,
    /// Largest window. If it is larger than `initial` and the buffer is tuned, the buffer grows
    /// with what the application reads per round trip. The window scale is chosen for it.
    pub max: u64,
    /// True: the buffer itself grows (dynamic right-sizing). False: it has its full size at once,
    /// as after SO_RCVBUF, and only the window offered from it grows, with each full segment.
    pub tuned: bool,
}

impl BufferConfig {
    /// A buffer of constant size, as after SO_RCVBUF.
    pub const fn fixed(bytes: u64) -> Self {
        Self { initial: bytes, max: bytes, tuned: false }
    }
}

/// Which rules a tuned receive buffer follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RightSizing {
    /// Linux up to 6.15: 16 segments more than the computed size.
    #[default]
    Linux4_19,
    /// Linux since 6.16: without these segments, and unread data does not count as read.
    Linux6_16,
}

/// How the application reads from the receive buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReaderConfig {
    /// The application waits for data and reads it as soon as it is delivered.
    #[default]
    AtOnce,
    /// The application waits for data, is woken this long after it arrived, and then reads all of
    /// it.
    After(Duration),
    /// The application reads at this rate, in payload bits.
    Rate(Rate),
    /// The driver reads, by [`Endpoint::read`](crate::Endpoint::read).
    Driver,
}

/// Explicit congestion notification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnConfig {
    /// ECN is neither requested nor accepted.
    #[default]
    Off,
    /// RFC 3168.
    Classic,
}
