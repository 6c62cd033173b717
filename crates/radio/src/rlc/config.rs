//! The configuration of an RLC entity, as plain data.

use airpath_base::Duration;

use crate::pdcp::Release;

/// An RLC entity of NR (TS 38.322), LTE (TS 36.322) or UMTS (TS 25.322).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RlcConfig {
    /// NR: one SDU or segment per PDU; SDUs leave RLC as they complete.
    Nr {
        /// UM or AM.
        mode: NrMode,
        /// How PDCP restores the order.
        release: Release,
    },
    /// LTE: SDUs are concatenated into PDUs; RLC delivers in order.
    Lte(LteMode),
    /// UMTS in acknowledged mode: packet data has no other mode here.
    Umts(UmtsAm),
}

impl RlcConfig {
    /// If PDUs have a fixed size: bytes of the smallest block with which data makes progress;
    /// otherwise 0, because a few bytes suffice.
    pub const fn least_block(&self) -> u32 {
        match self {
            Self::Umts(UmtsAm { pdu: UmtsPdu::Fixed { bytes }, mac_header_bytes, .. }) => {
                *bytes + *mac_header_bytes
            }
            Self::Umts(UmtsAm { pdu: UmtsPdu::Flexible { .. }, .. }) => 16,
            Self::Nr { .. } | Self::Lte(_) => 0,
        }
    }
}

impl RlcConfig {
    /// Whether the mode is AM, not UM.
    pub const fn is_acknowledged(&self) -> bool {
        !matches!(self, Self::Nr { mode: NrMode::Um { .. }, .. } | Self::Lte(LteMode::Um { .. }))
    }
}

/// Whether RLC repairs losses in NR (TS 38.322 4.2.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NrMode {
    /// Unacknowledged (TS 38.322 5.2.2).
    Um {
        /// sn-FieldLength.
        sn: NrUmSn,
        /// How long the receiver waits for missing segments (TS 38.322 7.3).
        t_reassembly: Duration,
    },
    /// Acknowledged (TS 38.322 5.2.3).
    Am {
        /// sn-FieldLength.
        sn: NrAmSn,
        /// How long the receiver waits for missing segments (TS 38.322 7.3).
        t_reassembly: Duration,
        /// Polling, STATUS and retransmission.
        arq: ArqConfig,
    },
}

/// Whether RLC repairs losses in LTE (TS 36.322 4.2.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LteMode {
    /// Unacknowledged (TS 36.322 5.1.2).
    Um {
        /// sn-FieldLength.
        sn: LteUmSn,
        /// How long the receiver waits for missing PDUs (TS 36.322 7.3).
        t_reordering: Duration,
    },
    /// Acknowledged (TS 36.322 5.1.3), SN of 10 bits.
    Am {
        /// How long the receiver waits for missing PDUs (TS 36.322 7.3).
        t_reordering: Duration,
        /// Polling, STATUS and retransmission.
        arq: ArqConfig,
    },
}

/// UMTS's acknowledged mode (TS 25.322 11.3).
///
/// [`ArqConfig`] corresponds to UMTS's parameters: t-PollRetransmit is Timer_Poll, t-StatusProhibit
/// Timer_Status_Prohibit, pollPDU Poll_PDU, maxRetxThreshold MaxDAT; the last PDU of a buffer polls
/// ("last transmission" and "last retransmission PDU poll").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UmtsAm {
    /// Sizes of PDUs.
    pub pdu: UmtsPdu,
    /// MAC header in bytes, per block or, if PDUs are flexible, per PDU: 21 bits in MAC-hs, 24 in
    /// MAC-ehs, 18 in MAC-e and MAC-es (TS 25.321 9.2); none on a DCH.
    pub mac_header_bytes: u32,
    /// Transmission window size in PDUs, 1 to 2047 (TS 25.322 9.6).
    pub window: u32,
    /// How long HARQ is given to fill a gap between PDUs: T1 of MAC-hs and MAC-es (TS 25.321
    /// 11.6.2.1, 11.8.3.2).
    pub t_reordering: Duration,
    /// Polling, STATUS and retransmission.
    pub arq: ArqConfig,
}

/// Sizes of UMTS's AMD PDUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UmtsPdu {
    /// All of the same size, header included: 42 bytes (336 bits) or 82 bytes (656 bits) are usual.
    /// What an SDU does not fill is padding.
    Fixed {
        /// Size in bytes, 16 to 126: length indicators have 7 bits (TS 25.322 9.2.2.8).
        bytes: u32,
    },
    /// Since release 7 (downlink) and 8 (uplink): up to this size. A PDU is fitted to its block, as
    /// the segments of MAC-ehs and MAC-is are.
    Flexible {
        /// Largest size in bytes, 16 to 1503 (TS 25.331 10.3.4.23).
        most: u32,
    },
}

/// Length of NR's UM sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NrUmSn {
    /// 6 bits, window 32.
    Bits6,
    /// 12 bits, window 2048.
    Bits12,
}

/// Length of NR's AM sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NrAmSn {
    /// 12 bits, window 2048.
    Bits12,
    /// 18 bits, window 131072.
    Bits18,
}

/// Length of LTE's UM sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LteUmSn {
    /// 5 bits, window 16.
    Bits5,
    /// 10 bits, window 512.
    Bits10,
}

/// ARQ of an AM entity (TS 38.331 and TS 36.331, RLC-Config).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArqConfig {
    /// t-PollRetransmit; at least 1 ns.
    pub t_poll_retransmit: Duration,
    /// pollPDU; `None`: infinity.
    pub poll_pdu: Option<u32>,
    /// pollByte in bytes; `None`: infinity.
    pub poll_bytes: Option<u64>,
    /// t-StatusProhibit.
    pub t_status_prohibit: Duration,
    /// maxRetxThreshold.
    pub max_retx_threshold: u32,
}
