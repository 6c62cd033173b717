//! The events of a log: one log for the whole cell, slot by slot.

use airpath_base::{Direction, FlowId, Instant};

use super::departure::UeIndex;
use crate::mac::drx::DrxState;
use crate::rrc::RrcState;

/// Something that happened on the radio.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RadioEvent {
    /// When it happened.
    pub at: Instant,
    /// The UE to which it happened.
    pub ue: UeIndex,
    /// What happened.
    pub kind: RadioEventKind,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RadioEventKind {
    /// A packet reached the cell.
    Enters {
        /// The direction of the packet.
        direction: Direction,
        /// The flow of the packet.
        flow: FlowId,
        /// The packet's size in bytes.
        bytes: u32,
    },
    /// A packet left the cell at the other end.
    Leaves {
        /// The direction of the packet.
        direction: Direction,
        /// The flow of the packet.
        flow: FlowId,
        /// The packet's size in bytes.
        bytes: u32,
    },
    /// A scheduling request was sent on PUCCH.
    Request {
        /// SR_COUNTER.
        count: u32,
        /// Whether the base station received it.
        received: bool,
    },
    /// A buffer status report was sent in a block.
    BufferStatus {
        /// The base station's estimate of the buffer after it, in bytes.
        bytes: u64,
    },
    /// Uplink was granted by a PDCCH.
    Grant {
        /// Beginning of the PUSCH.
        pusch: Instant,
        /// Size of the block in bytes.
        bytes: u32,
        /// Why it was granted.
        cause: GrantCause,
    },
    /// A block was sent.
    Block(BlockEvent),
    /// A HARQ process gave up a block.
    Lost {
        /// The direction of the block.
        direction: Direction,
        /// Size of the block in bytes.
        bytes: u32,
    },
    /// A random access preamble was sent.
    Preamble {
        /// PREAMBLE_TRANSMISSION_COUNTER.
        count: u32,
    },
    /// Random access is complete.
    RandomAccess,
    /// The DRX state changed.
    Drx(DrxState),
    /// The RRC state changed.
    Rrc(RrcState),
}

/// Why uplink was granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GrantCause {
    /// The UE asked, or has data according to the base station's estimate.
    Buffer,
    /// A proactive grant, without a request.
    Proactive,
    /// A retransmission of a failed block.
    Retransmission,
}

/// One transmission of a block, in the slot that begins at the event's time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BlockEvent {
    /// The direction of the block.
    pub direction: Direction,
    /// The component carrier, 0 for the primary one.
    pub carrier: u8,
    /// End of the slot.
    pub end: Instant,
    /// HARQ process.
    pub process: u8,
    /// 1 for the first transmission.
    pub transmission: u8,
    /// Whether the receiver acknowledges it; false: it requests another transmission.
    pub decoded: bool,
    /// MCS index.
    pub mcs: u8,
    /// Resource blocks.
    pub prbs: u32,
    /// Size of the block in bytes.
    pub bytes: u32,
    /// Bytes of it that are used.
    pub used: u32,
    /// SINR of the channel in dB; minus infinity without a channel.
    pub sinr_db: f64,
}

impl RadioEventKind {
    /// Name in tables.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Enters { .. } => "packet_enters",
            Self::Leaves { .. } => "packet_leaves",
            Self::Request { .. } => "sr",
            Self::BufferStatus { .. } => "bsr",
            Self::Grant { .. } => "grant",
            Self::Block(_) => "block",
            Self::Lost { .. } => "block_lost",
            Self::Preamble { .. } => "preamble",
            Self::RandomAccess => "random_access",
            Self::Drx(_) => "drx",
            Self::Rrc(_) => "rrc",
        }
    }
}
