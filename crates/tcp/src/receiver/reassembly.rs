//! What has arrived: the next byte expected, ranges above it, what came twice.

use airpath_base::{MAX_SACK_BLOCKS, SackBlocks};

use crate::ranges::Ranges;

/// The stream as far as it has arrived.
#[derive(Debug)]
pub(super) struct Reassembly {
    /// Next byte expected (RCV.NXT).
    pub(super) nxt: u64,
    out_of_order: Ranges,
    /// Bytes in them.
    above: u64,
    /// One offset in each of the ranges that grew last, newest first (RFC 2018 4).
    recent: [u64; MAX_SACK_BLOCKS],
    /// Since the last blocks were taken a third range pushed one out of the first two.
    crowded: bool,
    /// Duplicates are reported (RFC 2883).
    pub(super) dsack: bool,
    /// What came twice and was not reported yet.
    duplicate: Option<(u64, u64)>,
}

/// What a segment was to the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// The next of an unbroken stream.
    InOrder,
    /// The next, with others waiting above it.
    FillsGap,
    /// Above a gap.
    OutOfOrder,
    /// Nothing new.
    Duplicate,
}

impl Reassembly {
    pub(super) fn new() -> Self {
        Self {
            nxt: 0,
            out_of_order: Ranges::default(),
            above: 0,
            recent: [u64::MAX; MAX_SACK_BLOCKS],
            crowded: false,
            dsack: false,
            duplicate: None,
        }
    }

    /// The bytes `[start, end)` arrived.
    #[inline]
    pub(super) fn accept(&mut self, start: u64, end: u64) -> Arrival {
        if start < self.nxt {
            // RFC 2883 4.1, 4.2: wholly or in part.
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

    /// Takes a range above a gap.
    #[cold]
    fn keep(&mut self, start: u64, end: u64) -> Arrival {
        // Where the first part that was there already begins and ends.
        let (mut cursor, mut twice) = (start, None);
        let Self { out_of_order, above, .. } = self;
        out_of_order.insert(start, end, |new, new_end| {
            *above += new_end - new;
            if new > cursor {
                twice.get_or_insert((cursor, new));
            }
            cursor = new_end;
        });
        if cursor < end {
            twice.get_or_insert((cursor, end));
        }
        self.note_recent(start);
        // RFC 2883 4.2.3: of several parts the first.
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

    /// What fills a gap up to `end` may reach into the range above it.
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

    fn note_recent(&mut self, start: u64) {
        let Some((low, high)) = self.out_of_order.containing(start) else {
            return;
        };
        let listed = |&&other: &&u64| self.out_of_order.containing(other).is_some();
        let mut first_two = self.recent.iter().filter(listed).take(2);
        let are_two = first_two.clone().count() == 2;
        self.crowded |= are_two && first_two.all(|&other| other < low || other >= high);
        // It may have joined others that are listed.
        let others = self.recent.iter().filter(|&&other| other < low || other >= high);
        let mut recent = [u64::MAX; MAX_SACK_BLOCKS];
        recent[0] = start;
        recent[1..].iter_mut().zip(others).for_each(|(slot, &other)| *slot = other);
        self.recent = recent;
    }

    /// Bytes that wait above a gap.
    #[inline]
    pub(super) const fn above(&self) -> u64 {
        self.above
    }

    /// There is something to say in blocks.
    #[inline]
    pub(super) fn has_blocks(&self) -> bool {
        !self.out_of_order.is_empty() || self.duplicate.is_some()
    }

    /// A range may have been told in too few acknowledgements: options that are nearly full show the
    /// first two only.
    #[inline]
    pub(super) const fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// The blocks of the next acknowledgement: a duplicate first, and once (RFC 2883 4), then what
    /// changed last (RFC 2018 4).
    #[cold]
    pub(super) fn take_blocks(&mut self) -> SackBlocks {
        let mut blocks = SackBlocks::NONE;
        self.crowded = false;
        if let Some((start, end)) = self.duplicate.take() {
            blocks.push(self.nxt, start, end);
        }
        for &recent in &self.recent {
            if let Some((start, end)) = self.out_of_order.containing(recent) {
                blocks.push(self.nxt, start, end);
            }
        }
        blocks
    }
}
