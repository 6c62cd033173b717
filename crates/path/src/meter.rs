//! What a link has done so far.

use airpath_base::{Duration, Histogram};
use airpath_queue::Load;

/// Counters of a link since its start. Rates and means are differences between two readings.
#[derive(Clone, Debug)]
pub struct LinkMeter {
    /// Name of the stage.
    pub name: String,
    /// Its position in its direction of the path.
    pub stage: u32,
    /// What left; bytes as they were sent, outer headers of a tunnel included.
    pub departed: Load,
    /// What waits, the packet in service not included; bytes likewise.
    pub queued: Load,
    /// Sum over what left of the time from arrival to departure.
    pub sojourn_sum: Duration,
    /// Distribution of the time from arrival to departure.
    pub sojourn: Histogram,
    /// Bytes that the link could have carried since the start.
    pub capacity_bytes: f64,
    /// Bytes of the capacity that could still be carried at once: a shaper's tokens.
    pub stored_bytes: f64,
}

impl LinkMeter {
    /// Of a link that begins.
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
