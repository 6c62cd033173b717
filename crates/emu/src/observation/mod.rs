//! Observation of a run in progress: flows by their packets, the kernel's senders, a journal of
//! packets, and a snapshot for live views.

pub(crate) mod flow_meters;
mod host_share;
pub(crate) mod journal;
pub(crate) mod lateness;
pub(crate) mod live;
pub(crate) mod observer;
