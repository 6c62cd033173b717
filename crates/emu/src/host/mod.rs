//! What the host's kernel is set up to be: network namespaces with TCP settings of a profile, NATs,
//! the core network's nodes and the tunnel between them; and what it grants the forwarder's thread.

pub(crate) mod congestion;
pub(crate) mod core_network;
pub(crate) mod counters;
pub(crate) mod cpu_latency;
pub(crate) mod cpu_yield;
pub(crate) mod namespace;
pub(crate) mod nat;
pub(crate) mod profile;
pub(crate) mod session;
pub(crate) mod tunnel;
