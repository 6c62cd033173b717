//! A set of disjoint ranges of sequence space: what arrived out of order, what was SACKed.

use std::collections::VecDeque;

/// Sorted, disjoint, non-touching half-open ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    ranges: VecDeque<(u64, u64)>,
}

impl Ranges {
    /// Adds `[start, end)`, which must not be empty; calls `new` with each part that was not yet in
    /// the set, in order. Returns the range that now contains it.
    pub(crate) fn insert(
        &mut self,
        start: u64,
        end: u64,
        mut new: impl FnMut(u64, u64),
    ) -> (u64, u64) {
        debug_assert!(start < end, "an empty range");
        // First range that touches or follows the new one. New data is nearly always at the top.
        let first = match self.ranges.back() {
            None => 0,
            Some(&(last_start, last_end)) if start >= last_start => {
                self.ranges.len() - usize::from(start <= last_end)
            }
            Some(_) => self.ranges.partition_point(|&(_, range_end)| range_end < start),
        };
        let (mut low, mut high, mut cursor, mut last) = (start, end, start, first);
        while let Some(&(range_start, range_end)) = self.ranges.get(last) {
            if range_start > end {
                break;
            }
            if cursor < range_start {
                new(cursor, range_start);
            }
            low = low.min(range_start);
            high = high.max(range_end);
            cursor = cursor.max(range_end);
            last += 1;
        }
        if cursor < end {
            new(cursor, end);
        }
        if last == first {
            self.ranges.insert(first, (low, high));
        } else {
            self.ranges[first] = (low, high);
            if last > first + 1 {
                self.ranges.drain(first + 1..last);
            }
        }
        (low, high)
    }

    /// Removes everything below `bound`.
    pub(crate) fn remove_below(&mut self, bound: u64) {
        while let Some(range) = self.ranges.front_mut() {
            if range.1 > bound {
                range.0 = range.0.max(bound);
                break;
            }
            self.ranges.pop_front();
        }
    }

    /// The range that contains `at`.
    #[cfg(test)]
    pub(crate) fn containing(&self, at: u64) -> Option<(u64, u64)> {
        let index = self.ranges.partition_point(|&(_, end)| end <= at);
        self.ranges.get(index).copied().filter(|&(start, _)| start <= at)
    }

    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.ranges.front().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Ranges from the highest to the lowest.
    pub(crate) fn descending(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().rev().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_bitmap(
            operations in proptest::collection::vec((0u64..60, 0u64..20, any::<bool>()), 1..60),
        ) {
            let (mut ranges, mut bits) = (Ranges::default(), [false; 100]);
            for (at, length, insert) in operations {
                if insert && length > 0 {
                    let mut fresh = Vec::new();
                    let whole =
                        ranges.insert(at, at + length, |start, end| fresh.extend(start..end));
                    prop_assert_eq!(Some(whole), ranges.containing(at));
                    let expected: Vec<u64> =
                        (at..at + length).filter(|&bit| !bits[bit as usize]).collect();
                    prop_assert_eq!(fresh, expected);
                    (at..at + length).for_each(|bit| bits[bit as usize] = true);
                } else if !insert {
                    ranges.remove_below(at);
                    (0..at).for_each(|bit| bits[bit as usize] = false);
                }
                for bit in 0..100u64 {
                    let range = ranges.containing(bit);
                    prop_assert_eq!(range.is_some(), bits[bit as usize]);
                }
                let list: Vec<_> = ranges.descending().collect();
                prop_assert!(list.windows(2).all(|pair| pair[1].1 < pair[0].0));
            }
        }
    }
}
