//! Reassembly: the next byte expected, ranges above it, duplicates.

use airpath_base::{MAX_SACK_BLOCKS, SackBlocks};

use crate::ranges::Ranges;

/// The received part of the stream.
#[derive(Debug)]
pub(super) struct Reassembly {
    /// Next byte expected (RCV.NXT).
    pub(super) nxt: u64,
    out_of_order: Ranges,
    /// Bytes in these ranges.
    above: u64,
    /// The ranges that grew last, newest first (RFC 2018 4).
    recent: [Recent; MAX_SACK_BLOCKS],
    /// Since blocks were last taken, a third range has pushed one out of the first two.
    crowded: bool,
    /// Whether duplicates are reported (RFC 2883).
    pub(super) dsack: bool,
    /// A duplicate that has not been reported yet.
    duplicate: Option<(u64, u64)>,
}

/// A range that grew, in its current extent: only an insertion changes it, and then it is noted
/// again; once the gap below it is closed it is gone.
#[derive(Clone, Copy, Debug)]
struct Recent {
    /// An offset at which it grew.
    at: u64,
    low: u64,
    high: u64,
}

impl Recent {
    const NONE: Self = Self { at: u64::MAX, low: 0, high: 0 };

    fn is_outside(&self, low: u64, high: u64) -> bool {
        self.at < low || self.at >= high
    }
}

/// How an arriving segment relates to the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// Next in a stream without gaps.
    InOrder,
    /// Next expected, with data waiting above it.
    FillsGap,
    /// Above a gap.
    OutOfOrder,
    /// Contains nothing new.
    Duplicate,
}

impl Reassembly {
    pub(super) fn new() -> Self {
        Self {
            nxt: 0,
            out_of_order: Ranges::default(),
            above: 0,
            recent: [Recent::NONE; MAX_SACK_BLOCKS],
            crowded: false,
            dsack: false,
            duplicate: None,
        }
    }

    /// The bytes `[start, end)` arrived.
    #[inline]
    pub(super) fn accept(&mut self, start: u64, end: u64) -> Arrival {
        if start < self.nxt {
            // RFC 2883 4.1, 4.2: a full or a partial duplicate.
            self.note_duplicate(start, end.min(self.nxt));
        }
        if end <= self.nxt {
            Arrival::Duplicate
        } else if start > self.nxt {
            self.keep(start, end)
        } else if self.out_of_order.is_empty() {
            self.nxt = end;
            Arrival::InOrder
        } else {
            if start == self.nxt {
                self.note_overlap(end);
            }
            self.close_gap(end);
            Arrival::FillsGap
        }
    }

    /// Stores a range above a gap.
    #[cold]
    fn keep(&mut self, start: u64, end: u64) -> Arrival {
        // Begin and end of the first part that was already there.
        let (mut cursor, mut twice) = (start, None);
        let Self { out_of_order, above, .. } = self;
        let (low, high) = out_of_order.insert(start, end, |new, new_end| {
            *above += new_end - new;
            if new > cursor {
                twice.get_or_insert((cursor, new));
            }
            cursor = new_end;
        });
        if cursor < end {
            twice.get_or_insert((cursor, end));
        }
        self.note_recent(Recent { at: start, low, high });
        // RFC 2883 4.2.3: of several duplicate parts, the first is reported.
        if let Some((first, first_end)) = twice {
            self.note_duplicate(first, first_end);
        }
        if twice == Some((start, end)) { Arrival::Duplicate } else { Arrival::OutOfOrder }
    }

    #[cold]
    fn close_gap(&mut self, end: u64) {
        self.nxt = end;
        while let Some((start, end)) = self.out_of_order.first() {
            if start > self.nxt {
                break;
            }
            self.nxt = self.nxt.max(end);
            self.above -= end - start;
            self.out_of_order.remove_below(end);
        }
    }

    /// Data that fills a gap up to `end` may overlap the range above it.
    #[cold]
    fn note_overlap(&mut self, end: u64) {
        if let Some((above, above_end)) = self.out_of_order.first() {
            self.note_duplicate(above, above_end.min(end));
        }
    }

    #[cold]
    fn note_duplicate(&mut self, start: u64, end: u64) {
        if self.dsack && start < end {
            self.duplicate = Some((start, end));
        }
    }

    fn note_recent(&mut self, grown: Recent) {
        let Recent { low, high, .. } = grown;
        let listed = |recent: &&Recent| recent.high > self.nxt;
        let mut first_two = self.recent.iter().filter(listed).take(2);
        let are_two = first_two.clone().count() == 2;
        self.crowded |= are_two && first_two.all(|recent| recent.is_outside(low, high));
        // It may have joined other ranges in the list.
        let others = self.recent.iter().filter(|recent| recent.is_outside(low, high));
        let mut recent = [Recent::NONE; MAX_SACK_BLOCKS];
        recent[0] = grown;
        recent[1..].iter_mut().zip(others).for_each(|(slot, &other)| *slot = other);
        self.recent = recent;
    }

    /// Whether nothing waits above a gap.
    #[inline]
    pub(super) fn is_whole(&self) -> bool {
        self.out_of_order.is_empty()
    }

    /// Bytes that wait above a gap.
    #[inline]
    pub(super) const fn above(&self) -> u64 {
        self.above
    }

    /// Distance from the next byte expected to the end of the data above a gap; 0: there is none.
    #[inline]
    pub(super) fn reach(&self) -> u64 {
        self.out_of_order.descending().next().map_or(0, |(_, end)| end - self.nxt)
    }

    /// Whether there is something to report in blocks.
    #[inline]
    pub(super) fn has_blocks(&self) -> bool {
        !self.out_of_order.is_empty() || self.duplicate.is_some()
    }

    /// Whether a range may have been reported in too few acknowledgements: options that are nearly
    /// full hold only the first two.
    #[inline]
    pub(super) const fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// The blocks of the next acknowledgement: a duplicate first, and only once (RFC 2883 4), then
    /// the ranges that changed last (RFC 2018 4).
    #[cold]
    pub(super) fn take_blocks(&mut self) -> SackBlocks {
        let mut blocks = SackBlocks::NONE;
        self.crowded = false;
        if let Some((start, end)) = self.duplicate.take() {
            blocks.push(self.nxt, start, end);
        }
        for recent in self.recent.iter().filter(|recent| recent.high > self.nxt) {
            blocks.push(self.nxt, recent.low, recent.high);
        }
        blocks
    }
}
