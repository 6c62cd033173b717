//! Scenario files: TOML in, a checked [`Scenario`] out.

mod model;

pub use model::{
    Direction, FlowConfig, NamedStage, RunConfig, Scenario, TcpConfig, Traffic,
};
