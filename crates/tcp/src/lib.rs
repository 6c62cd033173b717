//! TCP endpoints as pure state machines.

mod config;

pub use config::{CongestionConfig, DelayedAckConfig, EndpointConfig, RtoConfig};
