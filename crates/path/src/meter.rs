//! Counters of a link.

use airpath_base::{Duration, Histogram};
use airpath_queue::Load;

/// Counters of a link since its start. Rates and means are differences between two readings.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkMeter {
    /// Name of the stage.
    pub name: String,
    /// Position of the link in its direction of the path.
    pub stage: u32,
    /// Packets that left; bytes as sent, including outer headers of a tunnel.
    pub departed: Load,
    /// Packets that wait, without the packet in service; bytes as sent.
    pub queued: Load,
    /// Sum of the times from arrival to departure of all packets that left.
    pub sojourn_sum: Duration,
    /// Distribution of the time from arrival to departure.
    pub sojourn: Histogram,
    /// Bytes that the link could have carried since the start.
    pub capacity_bytes: f64,
    /// The part of that capacity that could still be used at once: a shaper's tokens.
    pub stored_bytes: f64,
}

impl LinkMeter {
    /// The meter of a link at its start.
    pub(crate) fn new(name: &str, stage: u32) -> Self {
        Self {
            name: name.to_owned(),
            stage,
            departed: Load::default(),
            queued: Load::default(),
            sojourn_sum: Duration::ZERO,
            sojourn: Histogram::new(),
            capacity_bytes: 0.0,
            stored_bytes: 0.0,
        }
    }
}
