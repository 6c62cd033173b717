//! TCP endpoints as pure state machines: no sockets, no clock, no scenario files.
//!
//! [`Endpoint`] is one end of a connection. Inside, a sending half (window, scoreboard,
//! retransmission timer) and a receiving half (reassembly, acknowledgements) do the work.
//! [`CongestionControl`] is the short trait that each algorithm implements, one file each. A driver
//! passes in segments and times, and polls for segments and timers.
//!
//! It may use: `base`. Start reading at [`Endpoint`].

mod config;
mod congestion;
mod endpoint;
mod event;
mod ranges;
mod receiver;
mod route;
mod rtt;
mod sender;
mod timestamp;

pub use config::{
    AckTrain, AggregationConfig, BufferConfig, CongestionConfig, CongestionFactory,
    CubicArithmetic, CubicConfig, DelayedAckConfig, EarlyExit, EcnConfig, EndpointConfig,
    ExternalCongestion, GrowthUnit, Halved, HystartClock, HystartConfig, IdleRestart,
    LossDetection, OffloadConfig, PacingConfig, ReaderConfig, RecoveryConfig, Reduction,
    RenoConfig, RightSizing, RoundStart, RtoConfig, RtoEstimator, SackCompressionConfig,
    SendMemoryConfig, SlowStartConfig, ValidationConfig,
};
pub use congestion::{
    AckSample, Bbr1, Bbr3, Congestion, CongestionControl, Cubic, HystartSnapshot, LinuxCubic,
    LostSegment, RateSample, Reno, SenderSnapshot, SlowStartExit, State, Window,
};
pub use endpoint::Endpoint;
pub use event::{Event, EventKind, SendLimit, SlowStartExitReason, UndoReason};
pub use receiver::CeCounters;
pub use route::{RouteConfig, RouteMetrics, RouteRule};
pub use rtt::RttEstimator;
pub use sender::{Activity, LimitTimes, SenderCounters};
pub use timestamp::timestamp;
