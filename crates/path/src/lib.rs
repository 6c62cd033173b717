//! The path model: everything between two TCP endpoints, one direction at a time.
//!
//! A stage is a link, a delay, a loss, a tunnel, a NAT or similar. Each implements [`Path`], which
//! has three verbs: a packet enters, when to poll again, what has left. A stage wraps the stages
//! before it, so a stack of stages is a [`Path`] too. [`build_pair`] makes both directions from
//! lists of [`StageConfig`]. A stage that holds no packets only decides when a packet leaves
//! (`shift.rs`), or what happens to it (`filter.rs`).
//!
//! The model is pure: it knows no clock, no operating system and no scenario file.
//!
//! It may use: `base`, `queue`. Start reading at [`Path`], then at `link.rs`.

mod accounted;
mod batch;
mod branches;
mod build;
mod config;
mod delay;
mod fair_queue;
mod fast_path;
mod fifo;
mod filter;
mod fixed_rate;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod host;
mod link;
mod loss;
mod meter;
mod middlebox;
mod modem;
mod offload;
mod policer;
mod service;
mod shared;
mod shift;
mod stack;
mod stage;
mod trace;
mod tunnel;

pub use accounted::Accounts;
pub use airpath_queue::Isolation;
pub use branches::{BranchOfFlow, Branches};
pub use build::{append, build, build_pair, build_pair_accounted};
pub use config::{
    Aqm, DelayConfig, Distribution, Excess, FqCoDelConfig, HostConfig, Jitter, LinkConfig,
    LossConfig, LossProcess, MiddleboxConfig, MiddleboxKind, MiddleboxSide, MiddleboxTimer,
    ModemConfig, OffloadConfig, OffloadFault, OuterIp, PolicerConfig, QueueConfig, ServiceConfig,
    StageConfig, Stalls, TooBig, TunnelConfig, TunnelEnd, TunnelProtocol,
};
pub use meter::LinkMeter;
pub use stack::Stack;
pub use stage::{Departure, Path, Wire};
pub use trace::{OPPORTUNITY_BYTES, Trace, TraceError};
