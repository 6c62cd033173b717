//! One stage of the path, as the file gives it.

use std::sync::Arc;

use airpath_base::{Direction, Duration};
use airpath_path::Trace;

use crate::read::Fields;
use crate::spec::ServerSite;

/// One stage.
pub(crate) struct Stage {
    /// Position in the file's list, counted from 0.
    pub(crate) index: usize,
    /// The stage's keys.
    pub(crate) fields: Fields,
    /// The trace that its `file` key names.
    pub(crate) trace: Option<Arc<Trace>>,
}

/// True for the direction in which packets leave the network behind NATs and firewalls.
pub(crate) fn is_outward(direction: Direction) -> bool {
    direction == Direction::Uplink
}

/// One-way delay to the server's site. Light in fibre takes 5 us per km (group index 1.47); the
/// distances, and what switches and detours add, are assumptions.
pub(crate) const fn server_delay(site: ServerSite) -> Duration {
    let micros = match site {
        ServerSite::Upf => 50,
        ServerSite::Campus => 200,
        ServerSite::Edge => 1_000,
        ServerSite::Region => 6_000,
        ServerSite::Ocean => 40_000,
    };
    Duration::from_micros(micros)
}
