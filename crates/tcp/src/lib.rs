//! TCP endpoints as pure state machines: no sockets, no clock, no scenario files.
//!
//! [`Endpoint`] is one end of a connection. Inside, a sending half (window, scoreboard,
//! retransmission timer) and a receiving half (reassembly, acknowledgements) do the work;
//! [`CongestionControl`] is the short trait behind which algorithms live, one file each.

mod config;
mod congestion;
mod endpoint;
mod ranges;
mod receiver;
mod rtt;
mod sender;

pub use config::{
    AggregationConfig, BufferConfig, CongestionConfig, CubicArithmetic, CubicConfig,
    DelayedAckConfig, EarlyExit, EcnConfig, EndpointConfig, GrowthUnit, Halved, IdleRestart,
    LossDetection, OffloadConfig, PacingConfig, ReaderConfig, RecoveryConfig, Reduction,
    RenoConfig, RightSizing, RtoConfig, RtoEstimator, SackCompressionConfig, SlowStartConfig,
    ValidationConfig,
};
pub use congestion::{
    AckSample, AckTrain, Bbr1, Bbr3, Congestion, CongestionControl, Cubic, HystartClock,
    HystartConfig, LinuxCubic, LostSegment, RateSample, Reno, RoundStart, SlowStartExit, State,
    Window,
};
pub use endpoint::{Endpoint, RETRANSMISSION, SACK_PERMITTED};
pub use receiver::CeCounters;
pub use rtt::RttEstimator;
pub use sender::{LimitTimes, SenderCounters};
