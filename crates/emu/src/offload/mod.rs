//! Segmentation offload in both directions: large packets from the kernel are cut into segments,
//! and segments that leave together are passed to the kernel as one.

pub(crate) mod coalescer;
pub(crate) mod segments;
