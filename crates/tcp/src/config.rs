//! What an endpoint is, as plain data. A profile is a named set of these values.

use airpath_base::Duration;

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
    /// Acknowledgements of the receiving half.
    pub delayed_ack: DelayedAckConfig,
    /// Timestamps option (RFC 7323).
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Window scaling (RFC 7323 2).
    pub window_scaling: bool,
    /// Bytes that the application may have written and that are not yet acknowledged.
    pub send_buffer: u64,
    /// Bytes that the receiver holds; what it advertises at most.
    pub receive_buffer: u64,
}

impl Default for EndpointConfig {
    /// Plain TCP as the RFCs have it, on Ethernet, with buffers that are never the limit.
    fn default() -> Self {
        Self {
            mss: 1448,
            header: 52,
            initial_window: 10,
            slow_start: SlowStartConfig::default(),
            congestion: CongestionConfig::Cubic { fast_convergence: true },
            rto: RtoConfig {
                initial: Duration::from_secs(1),
                min: Duration::from_secs(1),
                max: Duration::from_secs(60),
            },
            delayed_ack: DelayedAckConfig {
                segments: 2,
                timeout: Duration::from_millis(200),
                ticking: false,
            },
            timestamps: true,
            sack: true,
            window_scaling: true,
            send_buffer: 1 << 30,
            receive_buffer: 1 << 30,
        }
    }
}

/// Slow start (RFC 5681 3.1) and its variants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SlowStartConfig {
    /// Most segments by which one acknowledgement grows cwnd (RFC 5681 3.1: 1; RFC 3465's L);
    /// `None`: by all that it acknowledges, as Linux does.
    pub limit: Option<u32>,
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
}

/// When a receiver acknowledges (RFC 1122 4.2.3.2, RFC 5681 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAckConfig {
    /// Acknowledge at once when this many full-sized segments are unacknowledged; 1 is "no delay".
    pub segments: u32,
    /// Acknowledge what is left after this time.
    pub timeout: Duration,
    /// True: the time-out is a free-running tick with period `timeout` (BSD's fast timer), so that
    /// the wait is uniform in (0, timeout]. False: it starts with the segment.
    pub ticking: bool,
}

/// Congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CongestionConfig {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic {
        /// Grows again to an earlier W_max a little less than before (RFC 9438 4.7).
        fast_convergence: bool,
    },
    /// A constant window in segments: no control at all.
    Fixed {
        /// The window.
        segments: u32,
    },
}

impl CongestionConfig {
    /// Name in scenarios and tables.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic { .. } => "cubic",
            Self::Fixed { .. } => "fixed",
        }
    }
}
