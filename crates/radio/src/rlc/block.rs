//! What the MAC carries for one bearer: data PDUs and a STATUS PDU.

use crate::wait_meter::BlockTimes;

/// The part of a MAC PDU that belongs to one bearer. The caller's HARQ process owns and reuses it.
#[derive(Clone, Debug, Default)]
pub struct TransportBlock {
    pub(crate) pdus: Vec<Pdu>,
    pub(crate) status: Status,
    pub(crate) bytes: u32,
    pub(crate) times: BlockTimes,
}

impl TransportBlock {
    /// An empty block.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes the contents and keeps the memory.
    pub fn clear(&mut self) {
        self.pdus.clear();
        self.status.clear();
        self.bytes = 0;
    }

    /// Bytes used, including MAC subheaders, but not padding.
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Whether there is neither data nor status.
    pub fn is_empty(&self) -> bool {
        self.pdus.is_empty() && self.status.ack_sn.is_none()
    }

    /// Data PDUs.
    pub fn pdus(&self) -> &[Pdu] {
        &self.pdus
    }

    /// The STATUS PDU; empty if there is none.
    pub const fn status(&self) -> &Status {
        &self.status
    }
}

/// A data PDU. It refers to packets that both ends know; sequence numbers do not wrap.
///
/// The numbered unit is an SDU in NR and the data field of a PDU in LTE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pdu {
    /// SN of the unit; undefined for a whole SDU in NR's UM.
    pub(crate) sn: u64,
    /// COUNT of the SDU that contains the unit's first byte.
    pub(crate) sdu: u64,
    /// Offset in that SDU at which the unit begins; 0 in NR.
    pub(crate) sdu_offset: u32,
    /// Size of that SDU.
    pub(crate) sdu_size: u32,
    /// Offset of the first byte carried (SO).
    pub(crate) start: u32,
    /// The byte after the last one carried.
    pub(crate) end: u32,
    /// Whether `end` is the end of the unit (SI, LSF).
    pub(crate) last: bool,
    /// P field.
    pub(crate) poll: bool,
}

impl Pdu {
    /// Bytes of the data field.
    pub const fn len(&self) -> u32 {
        self.end - self.start
    }

    /// Always false: a PDU carries data.
    pub const fn is_empty(&self) -> bool {
        self.end == self.start
    }

    /// Whether the PDU requests a STATUS.
    pub const fn polls(&self) -> bool {
        self.poll
    }

    pub(crate) const fn is_whole(&self) -> bool {
        self.start == 0 && self.last
    }

    /// NR: whether it carries this whole SDU in this unit, without a poll.
    #[inline]
    pub(crate) const fn continues_run(&self, sn: u64, sdu: u64) -> bool {
        self.sn == sn && self.sdu == sdu && self.is_whole() && !self.poll
    }
}

/// A STATUS PDU (TS 38.322 6.2.2.5, TS 36.322 6.2.1.6).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// ACK_SN; `None`: there is no status.
    pub(crate) ack_sn: Option<u64>,
    /// NACKs by increasing SN and offset.
    pub(crate) nacks: Vec<Nack>,
}

impl Status {
    /// Number of NACK entries.
    pub const fn nacks(&self) -> usize {
        self.nacks.len()
    }

    pub(crate) fn clear(&mut self) {
        self.ack_sn = None;
        self.nacks.clear();
    }
}

/// One negative acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Nack {
    /// `count` units from `sn` on of which nothing arrived (NACK_SN and NACK range).
    Units { sn: u64, count: u32 },
    /// Bytes of one unit (SOstart, SOend); if `end` is `None`, up to its end, wherever that is.
    Bytes { sn: u64, start: u32, end: Option<u32> },
}
