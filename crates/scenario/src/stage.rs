//! One stage of the path, as the file has it.

use std::sync::Arc;

use airpath_base::Direction;
use airpath_path::Trace;

use crate::read::Fields;

/// One stage.
pub(crate) struct Stage {
    /// Its place in the file's list, counted from 0.
    pub(crate) index: usize,
    /// Its keys.
    pub(crate) fields: Fields,
    /// What its `file` holds.
    pub(crate) trace: Option<Arc<Trace>>,
}

/// True for the direction in which packets leave the inside of NATs and firewalls.
pub(crate) fn is_outward(direction: Direction) -> bool {
    direction == Direction::Uplink
}
