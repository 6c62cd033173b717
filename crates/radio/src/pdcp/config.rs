//! The configuration of PDCP, as plain data.

use airpath_base::Duration;

/// PDCP of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PdcpConfig {
    /// Bytes that PDCP and SDAP add to each packet: 2 for a 12-bit SN, 3 for 18 bits (TS 38.323
    /// 6.2.2), 1 for an SDAP header (TS 37.324 6.2.2), 4 for integrity protection.
    pub header_bytes: u32,
    /// discardTimer; `None`: infinity.
    pub discard: Option<Duration>,
    /// statusReportRequired (TS 38.323 5.4.1).
    pub status_report: StatusReport,
}

/// Whether the receiver reports after re-establishment what it has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusReport {
    /// It does: only what is missing is retransmitted.
    Required,
    /// It does not: everything from the first unconfirmed packet on is retransmitted.
    NotRequired,
}

/// How NR's PDCP delivers packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// In order (TS 38.323 5.2.2).
    InOrder {
        /// t-Reordering; `None`: infinity, which suits AM only: in UM, everything after a lost
        /// packet would be held for ever.
        t_reordering: Option<Duration>,
    },
    /// As they arrive (outOfOrderDelivery).
    OutOfOrder,
}
