//! What an endpoint is, as plain data. A profile is a named set of these values.

mod congestion;
mod slow_start;

use airpath_base::{Duration, Rate};

pub use congestion::{
    CongestionConfig, CubicArithmetic, CubicConfig, GrowthUnit, Halved, RenoConfig,
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
    /// How losses are found and repaired.
    pub recovery: RecoveryConfig,
    /// Spreads segments over the round trip; `None` is no pacing, but where the congestion control
    /// has a rate of its own.
    pub pacing: Option<PacingConfig>,
    /// Segmentation offload: segments leave in bursts.
    pub offload: Option<OffloadConfig>,
    /// What a window that was not used may become.
    pub validation: ValidationConfig,
    /// Acknowledgements of the receiving half.
    pub delayed_ack: DelayedAckConfig,
    /// Which acknowledgements of data out of order are kept back.
    pub sack_compression: SackCompressionConfig,
    /// Segments that the receiver's network card or driver hands up together.
    pub aggregation: Option<AggregationConfig>,
    /// Timestamps option (RFC 7323).
    pub timestamps: bool,
    /// So many SYNs are sent again without a longer time-out each, before it doubles: Linux since 6.5
    /// (`tcp_syn_linear_timeouts`). Not SYN+ACKs.
    pub syn_linear_timeouts: u32,
    /// A round trip that only timestamps tell is measured in whole ticks of this, one at least, and is
    /// also one for the smallest RTT and for the congestion control: Linux, whose clock of timestamps
    /// ticks each millisecond. Zero: in microseconds, and for the time-out only.
    pub timestamp_tick: Duration,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// The receiver reports duplicates in SACK blocks (RFC 2883); without SACK it cannot.
    pub dsack: bool,
    /// Explicit congestion notification, if the peer wants it too.
    pub ecn: EcnConfig,
    /// Window scaling (RFC 7323 2).
    pub window_scaling: bool,
    /// Bytes that the application may have written and that are not yet acknowledged.
    pub send_buffer: u64,
    /// The send buffer grows with cwnd, to this many times cwnd, up to `send_buffer`; `None`: it
    /// has its size from the start.
    pub send_buffer_factor: Option<u32>,
    /// How a kernel counts the send buffer; `None`: payload alone, and the application writes as soon
    /// as there is room.
    pub send_memory: Option<SendMemoryConfig>,
    /// What the receiver advertises.
    pub receive_buffer: BufferConfig,
    /// How a tuned receive buffer grows.
    pub right_sizing: RightSizing,
    /// How the application takes what has arrived.
    pub reader: ReaderConfig,
}

impl Default for EndpointConfig {
    /// Plain TCP as the RFCs have it, on Ethernet, with buffers that are never the limit.
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
            delayed_ack: DelayedAckConfig {
                segments: 2,
                timeout: Duration::from_millis(200),
                max_timeout: Duration::from_millis(200),
                ticking: false,
                quick_segments: 0,
                pushed_at_once: false,
                handshake_at_once: false,
                wake: Duration::ZERO,
                repeat_limit: Duration::ZERO,
            },
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
        }
    }
}

/// The retransmission timer (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// Before the first RTT sample (2.1).
    pub initial: Duration,
    /// Lower bound (2.4).
    pub min: Duration,
    /// Upper bound (2.5).
    pub max: Duration,
    /// How RTT samples become a time-out.
    pub estimator: RtoEstimator,
}

/// How RTT samples become a retransmission time-out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RtoEstimator {
    /// SRTT + 4 RTTVAR, not below the minimum (RFC 6298 2).
    #[default]
    Rfc6298,
    /// As Linux: the largest deviation of a round trip counts, a falling RTT does not raise it, and
    /// the minimum bounds the variance term, not the sum (Sarolahti and Kuznetsov, Congestion
    /// Control in Linux TCP, USENIX 2002, 4). SACKed segments give samples too.
    Linux,
}

/// Finding and repairing losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryConfig {
    /// What tells a loss.
    pub detection: LossDetection,
    /// Tail loss probes (RFC 8985 7). Needs SACK.
    pub tail_loss_probe: bool,
    /// Timers run out with a tick of a clock that has such ticks, and not too early, as Linux's timers do
    /// (CONFIG_HZ), long ones with some ticks only; zero: exactly. Pacing is exact.
    pub timer_tick: Duration,
    /// How cwnd comes down to ssthresh.
    pub reduction: Reduction,
    /// F-RTO (RFC 5682): after a time-out, finds out whether it was needed.
    pub frto: bool,
    /// Undoes a reduction when timestamps tell that nothing was lost (Eifel, RFC 3522, RFC 4015).
    pub undo_by_timestamps: bool,
    /// The same when each retransmission was reported as a duplicate (RFC 2883, RFC 3708).
    pub undo_by_dsack: bool,
}

/// What tells a loss, with SACK. Without it three duplicate acknowledgements do (RFC 6582).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossDetection {
    /// Three segments' worth of data SACKed above it (RFC 6675 4).
    #[default]
    Sack,
    /// RACK (RFC 8985): it was sent before what has arrived, longer ago than reordering explains.
    Rack,
}

/// How cwnd comes down to ssthresh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// At once (RFC 6675 5 (4.2)).
    #[default]
    Immediate,
    /// Proportional rate reduction (RFC 9937).
    Prr,
}

/// Pacing of algorithms without a rate of their own: a share of cwnd per smoothed RTT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacingConfig {
    /// In slow start, while cwnd is below half of ssthresh (Linux: 2).
    pub slow_start_ratio: f64,
    /// Else (Linux: 1.2).
    pub congestion_avoidance_ratio: f64,
}

/// Segmentation offload: what is handed to the link at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffloadConfig {
    /// Payload of the largest burst (Linux: 64 kB).
    pub max_bytes: u32,
    /// Bursts are as large as what the pacing rate sends in this time (Linux: 2^-10 s).
    pub time: Duration,
    /// But not below this (Linux: 2).
    pub min_segments: u32,
    /// A smaller burst waits for the next acknowledgement, unless it is this part of the window
    /// (Linux: 1/3); 0: never waits.
    pub window_divisor: u32,
    /// It waits if the next acknowledgement is expected within this, and within half an RTT; each burst
    /// is judged by itself, also the rest of what one acknowledgement lets out (seen with Linux 6.18:
    /// 1 ms). 0: half an RTT, and it is decided once for each acknowledgement.
    pub ack_within: Duration,
    /// The last segment of a burst of several has the PSH flag, as in Linux since 5.4: aggregation
    /// at the receiver ends with it.
    pub push: bool,
}

#[cfg(test)]
impl OffloadConfig {
    /// Bursts of up to 16 kB, which small ones wait for.
    pub(crate) const SMALL: Self = Self {
        max_bytes: 16_000,
        time: Duration::from_millis(1),
        min_segments: 2,
        window_divisor: 3,
        ack_within: Duration::ZERO,
        push: true,
    };
}

/// What a window that was not used may become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValidationConfig {
    /// In slow start cwnd grows while it is less than twice what was in flight, full or not, as in
    /// Linux; false: only while it is the limit (RFC 9438 5.8).
    pub half_used_grows: bool,
    /// cwnd grows by what an acknowledgement delivers, by SACK too, if it advances at all or segments
    /// were overtaken by more than three others; also with the one that ends recovery, as in Linux.
    /// HyStart gets the RTT of what is SACKed. False: by what it acknowledges, outside of recovery.
    pub delivered_grows: bool,
    /// cwnd decays towards what is used when the application is the limit for longer than the RTO
    /// (RFC 2861).
    pub decays: bool,
    /// After an idle time longer than the RTO.
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
    /// Half for each RTO, not below the initial window; ssthresh remembers (RFC 2861).
    Decay,
}

/// When a receiver acknowledges (RFC 1122 4.2.3.2, RFC 5681 4.2).
///
/// Quick acknowledgements and the adaptive time are Linux's: P. Sarolahti and A. Kuznetsov,
/// "Congestion Control in Linux TCP", USENIX 2002, and what its releases since do on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAckConfig {
    /// Acknowledge at once when more bytes than this number of full-sized segments less one are
    /// unacknowledged; 1 is "no delay".
    pub segments: u32,
    /// Acknowledge what is left after this time, the shortest if it adapts.
    pub timeout: Duration,
    /// The longest time, if it follows the time between segments; it does if this is larger than
    /// `timeout`.
    pub max_timeout: Duration,
    /// True: the time-out is a free-running tick with period `timeout` (BSD's fast timer), so that
    /// the wait is uniform in (0, timeout]. False: it starts with the segment.
    pub ticking: bool,
    /// So many acknowledgements, but no more than half a window's worth, are not delayed at the
    /// start, after a duplicate and after a silence longer than the RTO; 0: none.
    pub quick_segments: u32,
    /// A segment that its sender pushed, and that came alone, is not delayed: it is acknowledged as
    /// soon as it is read. Linux since 6.6; shorter ones long before.
    pub pushed_at_once: bool,
    /// The SYN+ACK is acknowledged by a segment of its own, before any data (RFC 9293 3.10.7.3 allows
    /// both). Seen with Linux 6.18: an application that writes at either end is woken once the handshake
    /// is over, after all that arrived together.
    pub handshake_at_once: bool,
    /// How long that takes, if `handshake_at_once`.
    pub wake: Duration,
    /// A SYN or SYN+ACK that is repeated is answered again once in this time (RFC 5961 5; Linux:
    /// `tcp_invalid_ratelimit`); zero: always.
    pub repeat_limit: Duration,
}

/// Compression of SACKs, as in Linux since 4.18: after three acknowledgements of data out of order the
/// next ones are kept back. Needs SACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackCompressionConfig {
    /// At most this long, and a twentieth of a round trip (`tcp_comp_sack_delay_ns`); zero: not at
    /// all.
    pub delay: Duration,
    /// Acknowledgements kept back before one goes out (`tcp_comp_sack_nr`).
    pub acks: u32,
    /// What the timer may be late, and is on an idle machine (`tcp_comp_sack_slack_ns`, since 5.8).
    pub slack: Duration,
}

impl DelayedAckConfig {
    /// The time-out follows the time between segments.
    pub fn is_adaptive(&self) -> bool {
        self.max_timeout > self.timeout
    }
}

/// A send buffer counted in memory, as Linux does. `send_buffer` then bounds the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendMemoryConfig {
    /// Bytes that each burst takes beside its payload, and each 64 kB that are not sent yet
    /// (Linux 6.18: 832).
    pub burst_overhead: u32,
    /// Bytes that a segment counts where the buffer grows with cwnd (Linux 6.18, MSS 1448: 2304).
    pub segment: u32,
    /// An application that found the buffer full goes on writing when this part of it is free
    /// (Linux: a third); 1 is "all of it".
    pub wake_divisor: u32,
}

/// Aggregation of arriving segments, by the card (LRO) or the driver (GRO): segments that follow on each
/// other within `time` of the first, up to a PSH flag, are acknowledged as if they were one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregationConfig {
    /// Zero: only what arrives at one instant.
    pub time: Duration,
    /// Most payload bytes of an aggregate; an IP packet's 65,535 in Linux.
    pub max_bytes: u32,
}

/// The receive buffer, in bytes of window: without the memory that a kernel adds for its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferConfig {
    /// At the start, as far as `max` allows.
    pub initial: u64,
    /// At most. If it is larger than `initial` and tuned, the buffer grows with what the
    /// application reads in a round-trip time. The window scale suits it.
    pub max: u64,
    /// True: the buffer itself grows (dynamic right-sizing). False: it has its size at once, as
    /// after SO_RCVBUF, and only what is offered of it grows, with every full segment.
    pub tuned: bool,
}

impl BufferConfig {
    /// A buffer that does not grow, as after SO_RCVBUF.
    pub const fn fixed(bytes: u64) -> Self {
        Self { initial: bytes, max: bytes, tuned: false }
    }
}

/// Whose rules a tuned receive buffer follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RightSizing {
    /// Linux until 6.15: room for 16 segments above what is computed.
    #[default]
    Linux4_19,
    /// Linux since 6.16: without that room, and what is unread does not count as read.
    Linux6_16,
}

/// Who takes the data out of the receive buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReaderConfig {
    /// An application that waits for data and reads at once what is handed up.
    #[default]
    AtOnce,
    /// One that waits for data, is woken so long after it arrived, and then reads all of it.
    After(Duration),
    /// One that reads at this rate, in payload bits.
    Rate(Rate),
    /// The driver, by [`Endpoint::read`](crate::Endpoint::read).
    Driver,
}

/// Explicit congestion notification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnConfig {
    /// Neither asked for nor agreed to.
    #[default]
    Off,
    /// RFC 3168.
    Classic,
}
