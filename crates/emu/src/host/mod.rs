//! Setup of the host's kernel: network namespaces with the TCP settings of a profile, NATs, the
//! nodes of the core network and the tunnel between them; and privileges of the forwarder's thread.

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
