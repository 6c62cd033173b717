//! The configuration of a bearer, as plain data.

use crate::buffer::BufferConfig;
use crate::pdcp::PdcpConfig;
use crate::rlc::RlcConfig;

/// One direction of a bearer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneWayConfig {
    /// The RLC entity, and with it the radio technology.
    pub rlc: RlcConfig,
    /// Discard timer, sequence numbers and reordering (TS 38.323, TS 36.323).
    pub pdcp: PdcpConfig,
    /// The buffer in which packets wait for their first transmission.
    pub buffer: BufferConfig,
}
