//! Gaps in a stream: bytes that were not seen although later ones were.

use airpath_base::Instant;

/// Most gaps that are known at a time; a further one displaces the oldest.
const MOST_HOLES: usize = 512;

/// A range of bytes that were not seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hole {
    pub(super) from: u64,
    pub(super) to: u64,
    /// When bytes behind the gap were seen.
    pub(super) since: Instant,
    /// The gap was acknowledged: the receiver has the bytes, the capture does not.
    pub(super) acknowledged: bool,
}

/// The gaps, in order.
#[derive(Clone, Default, Debug)]
pub(super) struct Holes {
    holes: Vec<Hole>,
}

impl Holes {
    /// Adds a gap behind all others.
    #[cold]
    pub(super) fn push(&mut self, hole: Hole) {
        if self.holes.len() == MOST_HOLES {
            self.holes.remove(0);
        }
        self.holes.push(hole);
    }

    /// Notes that bytes `[from, to)` were seen. Returns the gap that contains them, if none of them
    /// had been seen before.
    pub(super) fn fill(&mut self, from: u64, to: u64) -> Option<Hole> {
        let at = self.holes.partition_point(|hole| hole.to <= from);
        let first = *self.holes.get(at).filter(|hole| hole.from < to)?;
        let mut index = at;
        while let Some(&hole) = self.holes.get(index).filter(|hole| hole.from < to) {
            self.holes.remove(index);
            for (start, end) in [(hole.from, from.min(hole.to)), (to.max(hole.from), hole.to)] {
                if start < end {
                    self.holes.insert(index, Hole { from: start, to: end, ..hole });
                    index += 1;
                }
            }
        }
        if self.holes.len() > MOST_HOLES {
            self.holes.remove(0);
        }
        (first.from <= from && to <= first.to).then_some(first)
    }

    /// Notes that all bytes before `to` are acknowledged. Returns how many of them are missing
    /// here, counting each once.
    #[inline]
    pub(super) fn acknowledge(&mut self, to: u64) -> u64 {
        if self.holes.is_empty() { 0 } else { self.acknowledge_some(to) }
    }

    #[cold]
    fn acknowledge_some(&mut self, to: u64) -> u64 {
        let mut missing = 0;
        for hole in self.holes.iter_mut().take_while(|hole| hole.to <= to) {
            if !std::mem::replace(&mut hole.acknowledged, true) {
                missing += hole.to - hole.from;
            }
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn gaps_are_what_was_not_seen(
            gaps in prop::collection::vec((1u64..20, 1u64..20), 0..20),
            seen in prop::collection::vec((0u64..400, 1u64..30), 0..20),
        ) {
            let (mut holes, mut missing, mut at) = (Holes::default(), vec![false; 1000], 0);
            for (before, length) in gaps {
                let (from, to) = (at + before, at + before + length);
                let hole = Hole { from, to, since: Instant::ZERO, acknowledged: false };
                holes.push(hole);
                missing[from as usize..to as usize].fill(true);
                at = to;
            }
            for (from, length) in seen {
                let range = from as usize..(from + length) as usize;
                let all = missing[range.clone()].iter().all(|&missing| missing);
                prop_assert_eq!(holes.fill(from, from + length).is_some(), all);
                missing[range].fill(false);
            }
            let left: u64 = missing.iter().map(|&missing| u64::from(missing)).sum();
            prop_assert_eq!(holes.acknowledge(1000), left);
            prop_assert_eq!(holes.acknowledge(1000), 0);
        }
    }
}
