//! What a log says: one log of the whole cell, slot by slot.

use airpath_base::{Direction, FlowId, Instant};

use super::departure::UeIndex;
use crate::mac::drx::DrxState;
use crate::rrc::RrcState;

/// Something that happened on the radio.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RadioEvent {
    /// When.
    pub at: Instant,
    /// To whom.
    pub ue: UeIndex,
    /// What.
    pub kind: RadioEventKind,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RadioEventKind {
    /// A packet came to the cell.
    Enters {
        /// Which way it goes.
        direction: Direction,
        /// To which flow the packet belongs.
        flow: FlowId,
        /// Its size in bytes.
        bytes: u32,
    },
    /// A packet left the cell at the other end.
    Leaves {
        /// Which way it goes.
        direction: Direction,
        /// To which flow the packet belongs.
        flow: FlowId,
        /// Its size in bytes.
        bytes: u32,
    },
    /// A scheduling request was sent on PUCCH.
    Request {
        /// SR_COUNTER.
        count: u32,
        /// The base station saw it.
        received: bool,
    },
    /// A buffer status report was sent, in a block.
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
        /// Why.
        cause: GrantCause,
    },
    /// A block was sent.
    Block(BlockEvent),
    /// A HARQ process gave a block up.
    Lost {
        /// Which way it went.
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
    /// DRX changed its state.
    Drx(DrxState),
    /// RRC changed its state.
    Rrc(RrcState),
}

/// Why uplink is granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GrantCause {
    /// The UE asked, or has data by the base station's estimate.
    Buffer,
    /// Nobody asked.
    Proactive,
    /// A failed block.
    Retransmission,
}

/// One transmission of a block, in the slot that begins at the event's time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BlockEvent {
    /// Which way.
    pub direction: Direction,
    /// End of the slot.
    pub end: Instant,
    /// HARQ process.
    pub process: u8,
    /// 1 for the first transmission.
    pub transmission: u8,
    /// The receiver acknowledges it; false: it asks for another transmission.
    pub decoded: bool,
    /// MCS index.
    pub mcs: u8,
    /// Resource blocks.
    pub prbs: u32,
    /// Size of the block in bytes.
    pub bytes: u32,
    /// Bytes of it that are used.
    pub used: u32,
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
