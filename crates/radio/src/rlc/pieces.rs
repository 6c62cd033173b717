//! Byte ranges of numbered units: what arrived, or what is to be retransmitted.

use std::collections::VecDeque;

/// Disjoint ranges by unit and offset; adjacent ranges are merged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pieces {
    ranges: VecDeque<Piece>,
    bytes: u64,
}

/// Bytes `[start, end)` of unit `sn`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) sn: u64,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Pieces {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Total bytes of all ranges.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn first(&self) -> Option<Piece> {
        self.ranges.front().copied()
    }

    /// Removes bytes from the first range.
    pub(crate) fn take_front(&mut self, bytes: u32) {
        self.bytes -= u64::from(bytes);
        let first = self.ranges.front_mut().expect("the caller saw the first range");
        first.start += bytes;
        if first.start >= first.end {
            self.ranges.pop_front();
        }
    }

    /// Adds a range; returns how many of its bytes are new.
    pub(crate) fn add(&mut self, mut piece: Piece) -> u32 {
        // The new range absorbs ranges of the unit that overlap or touch it.
        let from = self.ranges.partition_point(|it| (it.sn, it.end) < (piece.sn, piece.start));
        let mut known = 0;
        while let Some(other) = self.ranges.get(from).copied() {
            if other.sn != piece.sn || other.start > piece.end {
                break;
            }
            known += other.end - other.start;
            piece.start = piece.start.min(other.start);
            piece.end = piece.end.max(other.end);
            self.ranges.remove(from);
        }
        if piece.start == piece.end {
            return 0;
        }
        let new = piece.end - piece.start - known;
        self.bytes += u64::from(new);
        self.ranges.insert(from, piece);
        new
    }

    /// The ranges of one unit.
    pub(crate) fn of(&self, sn: u64) -> impl Iterator<Item = Piece> + '_ {
        let from = self.ranges.partition_point(|it| it.sn < sn);
        self.ranges.range(from..).copied().take_while(move |it| it.sn == sn)
    }

    /// Removes the ranges of a unit.
    #[inline]
    pub(crate) fn remove(&mut self, sn: u64) {
        if !self.ranges.is_empty() {
            self.remove_some(sn);
        }
    }

    #[inline(never)]
    fn remove_some(&mut self, sn: u64) {
        let from = self.ranges.partition_point(|it| it.sn < sn);
        while self.ranges.get(from).is_some_and(|it| it.sn == sn) {
            let gone = self.ranges.remove(from).expect("just seen");
            self.bytes -= u64::from(gone.end - gone.start);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_are_the_set_of_their_bytes(
            adds in proptest::collection::vec((0u64..3, 0u32..40, 0u32..12), 1..40)
        ) {
            let mut pieces = Pieces::default();
            let mut bytes = std::collections::BTreeSet::new();
            for (sn, start, len) in adds {
                let before = bytes.len();
                bytes.extend((start..start + len).map(|byte| (sn, byte)));
                let new = pieces.add(Piece { sn, start, end: start + len });
                prop_assert_eq!(new as usize, bytes.len() - before);
                prop_assert_eq!(pieces.bytes() as usize, bytes.len());
            }
            let listed: Vec<_> = (0..3)
                .flat_map(|sn| pieces.of(sn).collect::<Vec<_>>())
                .flat_map(|it| (it.start..it.end).map(move |byte| (it.sn, byte)))
                .collect();
            prop_assert_eq!(&listed, &bytes.iter().copied().collect::<Vec<_>>());
            pieces.remove(1);
            prop_assert_eq!(pieces.of(1).count(), 0);
            let first = pieces.first();
            prop_assert_eq!(
                first.map(|it| (it.sn, it.start)),
                bytes.into_iter().find(|&(sn, _)| sn != 1)
            );
        }
    }
}
