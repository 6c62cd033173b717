//! The control elements: their sizes, and levels for numbers of bytes (TS 38.321 6.1.3.1, TS 36.321
//! 6.1.3.1).

use super::sizes::BufferSizeTable;
use crate::Generation;

/// Logical channel groups: 8 in NR; LTE uses the first 4.
pub const GROUPS: usize = 8;

/// Sizes and tables of the reports.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BsrFormat {
    /// The generation that defines the control elements.
    pub generation: Generation,
    /// The buffer size tables.
    pub tables: BsrTables,
}

/// The buffer size tables: the upper bound of each level in bytes, without the last level, which
/// has none. Level 0 is an empty buffer, so each table begins with 0.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BsrTables {
    /// For Short and Short Truncated: NR 5 bits (TS 38.321 table 6.1.3.1-1), LTE 6 bits
    /// (TS 36.321 table 6.1.3.1-1).
    pub short: &'static [u32],
    /// For Long and Long Truncated: NR 8 bits (table 6.1.3.1-2), LTE as for Short.
    pub long: &'static [u32],
}

impl BsrTables {
    /// The tables of the specification; LTE's without extendedBSR-Sizes.
    pub const fn of(generation: Generation) -> Self {
        let (short, long) = match generation {
            Generation::Lte => (BufferSizeTable::Lte, BufferSizeTable::Lte),
            Generation::Nr => (BufferSizeTable::NrShort, BufferSizeTable::NrLong),
        };
        Self { short: short.bounds(), long: long.bounds() }
    }
}

/// The control elements.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum BsrKind {
    /// Reports one group.
    Short,
    /// Reports all groups that have data.
    Long,
    /// Reports one of several groups.
    ShortTruncated,
    /// Reports some of several groups; NR only.
    LongTruncated,
}

impl BsrKind {
    /// Name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Long => "long",
            Self::ShortTruncated => "short_truncated",
            Self::LongTruncated => "long_truncated",
        }
    }

    /// Whether it leaves out groups with data.
    pub const fn is_truncated(self) -> bool {
        matches!(self, Self::ShortTruncated | Self::LongTruncated)
    }
}

/// A report as received by the base station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BsrReport {
    /// The control element.
    pub kind: BsrKind,
    /// The level of each reported group. A group that is not reported is empty, unless the report
    /// is truncated.
    pub levels: [Option<u8>; GROUPS],
}

impl BsrFormat {
    /// Bytes of a report on `groups` groups, including its subheader.
    pub const fn bytes(&self, kind: BsrKind, groups: u32) -> u32 {
        match (kind, self.generation) {
            (BsrKind::Short | BsrKind::ShortTruncated, _) => 1 + 1,
            // TS 36.321 6.1.3.1: four levels of 6 bits
            (BsrKind::Long | BsrKind::LongTruncated, Generation::Lte) => 1 + 3,
            // TS 38.321 6.1.3.1: a bitmap, one level each; the subheader has a length
            (BsrKind::Long | BsrKind::LongTruncated, Generation::Nr) => 2 + 1 + groups,
        }
    }

    /// Number of groups that a truncated report of at most `room` bytes can hold.
    pub(super) const fn groups_in(&self, kind: BsrKind, room: u32) -> u32 {
        match kind {
            BsrKind::Short | BsrKind::ShortTruncated => 1,
            BsrKind::Long | BsrKind::LongTruncated => room.saturating_sub(3),
        }
    }

    /// The level that reports `bytes`.
    pub fn level(&self, kind: BsrKind, bytes: u64) -> u8 {
        let bounds = self.bounds(kind);
        // At most 255: the tables have at most 255 bounds.
        bounds.partition_point(|&bound| u64::from(bound) < bytes) as u8
    }

    /// The most bytes that `level` represents; for the last level, the bytes that it exceeds.
    pub fn estimate(&self, kind: BsrKind, level: u8) -> u64 {
        let bounds = self.bounds(kind);
        let bound = bounds.get(usize::from(level)).or(bounds.last());
        bound.copied().map_or(0, u64::from)
    }

    const fn bounds(&self, kind: BsrKind) -> &'static [u32] {
        match kind {
            BsrKind::Short | BsrKind::ShortTruncated => self.tables.short,
            BsrKind::Long | BsrKind::LongTruncated => self.tables.long,
        }
    }
}
