//! One stage of the path, as the file gives it.

use std::sync::Arc;

use airpath_base::Direction;
use airpath_path::Trace;

use crate::read::Fields;

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
