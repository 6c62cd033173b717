//! A run from its start to its report: namespaces or interfaces of the host, the forwarder's thread,
//! programs and flows inside.

pub(crate) mod emulation;
pub(crate) mod environment;
mod forwarder_thread;
pub(crate) mod gateway;
pub(crate) mod options;
pub(crate) mod output;
pub(crate) mod programs;
pub(crate) mod report;
pub(crate) mod terminal;
mod topology;
