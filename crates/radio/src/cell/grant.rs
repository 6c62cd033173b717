//! Grants of the base station.

use crate::harq::ProcessId;

/// A PUSCH that was granted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    /// Slot of the PUSCH.
    pub(super) slot: u64,
    pub(super) ue: u32,
    pub(super) process: ProcessId,
    pub(super) prbs: u32,
    pub(super) mcs: u8,
    pub(super) size: u32,
    pub(super) is_new: bool,
}
