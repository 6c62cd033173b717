//! Segmentation offload, both ways: what the kernel hands over as one is cut into segments, and
//! segments that leave together are handed to the kernel as one.

pub(crate) mod coalescer;
pub(crate) mod segments;
