//! What is seen of a run while it goes on: the flows by their packets, the kernel's senders, a
//! journal of packets, and a snapshot for whoever shows it live.

pub(crate) mod flow_meters;
mod host_share;
pub(crate) mod journal;
pub(crate) mod lateness;
pub(crate) mod live;
pub(crate) mod observer;
