//! The path model: everything between two TCP endpoints, one direction at a time.
//!
//! Pure: it knows neither clock nor operating system nor scenario file.

mod config;
mod trace;

pub use config::{
    Aqm, DelayConfig, Distribution, Jitter, LinkConfig, LossConfig, QueueConfig, ServiceConfig,
    StageConfig,
};
pub use trace::{OPPORTUNITY_BYTES, Trace, TraceError};
