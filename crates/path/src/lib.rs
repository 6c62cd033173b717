//! The path model: everything between two TCP endpoints, one direction at a time.
//!
//! Pure: it knows neither clock nor operating system nor scenario file. [`Path`] has the verbs;
//! [`build_pair`] wraps stages around each other as two lists of [`StageConfig`] say.

mod batch;
mod bucket;
mod build;
mod codel;
mod config;
mod delay;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod gate;
mod host;
mod link;
mod loss;
mod policer;
pub mod radio;
pub mod recording;
mod service;
mod stage;
mod trace;
mod tunnel;

pub use batch::Batch;
pub use build::{build, build_pair};
pub use config::{
    Aqm, DelayConfig, Distribution, Excess, GateConfig, GateKind, GateSide, GateTimer, GtpuConfig,
    HostConfig, Jitter, LinkConfig, LossConfig, OuterIp, PolicerConfig, QueueConfig, ServiceConfig,
    StageConfig, Stalls, TooBig, TunnelEnd,
};
pub use delay::{Delay, RandomDelay};
pub use gate::{Inward, Outward};
pub use host::Host;
pub use link::{Link, LinkMeter};
pub use loss::Loss;
pub use policer::Policer;
pub use stage::{Departure, Load, Path, Wire};
pub use trace::{OPPORTUNITY_BYTES, Trace, TraceError};
pub use tunnel::Wrapper;
