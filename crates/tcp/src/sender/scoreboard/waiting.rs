//! Which segments wait to be retransmitted: one bit each, so that the next is found among tens of
//! thousands without looking at the segments.

use std::collections::VecDeque;

const BITS: u64 = u64::BITS as u64;

/// One bit per outstanding segment, in the order of the scoreboard.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    words: VecDeque<u64>,
    /// Number of segments that have left the scoreboard, which is the number of its first one.
    gone: u64,
    /// Bits that are set.
    count: u32,
}

impl Waiting {
    /// The first segment leaves the scoreboard.
    #[inline]
    pub(super) fn pop(&mut self, was_waiting: bool) {
        if was_waiting {
            self.clear(0);
        }
        self.gone += 1;
        if self.gone.is_multiple_of(BITS) {
            self.words.pop_front();
        }
    }

    /// This many segments leave the scoreboard; none of them waits, nor does any other.
    #[inline]
    pub(super) fn pop_idle(&mut self, segments: u32) {
        debug_assert!(self.count == 0, "{} wait", self.count);
        let word = self.gone / BITS;
        self.gone += u64::from(segments);
        for _ in word..self.gone / BITS {
            self.words.pop_front();
        }
    }

    /// Marks the segment at `index` as waiting.
    pub(super) fn set(&mut self, index: usize) {
        let (word, bit) = self.place(index);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.count += u32::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    /// Marks the segment at `index` as no longer waiting.
    pub(super) fn clear(&mut self, index: usize) {
        let (word, bit) = self.place(index);
        if let Some(word) = self.words.get_mut(word) {
            self.count -= u32::from(*word & bit != 0);
            *word &= !bit;
        }
    }

    /// Marks all segments as no longer waiting.
    pub(super) fn clear_all(&mut self) {
        self.words.iter_mut().for_each(|word| *word = 0);
        self.count = 0;
    }

    /// How many segments wait.
    #[inline]
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// The first waiting segment at `index` or after it.
    pub(super) fn next(&self, index: usize) -> Option<usize> {
        let (first, bit) = self.place(index);
        let mut mask = !(bit - 1);
        for (number, word) in (first..).zip(self.words.range(first.min(self.words.len())..)) {
            let found = word & mask;
            if found != 0 {
                let number = number as u64 * BITS + u64::from(found.trailing_zeros());
                return Some((number - self.gone % BITS) as usize);
            }
            mask = u64::MAX;
        }
        None
    }

    fn place(&self, index: usize) -> (usize, u64) {
        let number = self.gone % BITS + index as u64;
        ((number / BITS) as usize, 1 << (number % BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_list(
            operations in proptest::collection::vec((0u8..4, 0usize..200), 1..300),
        ) {
            let (mut waiting, mut list) = (Waiting::default(), VecDeque::from(vec![false; 500]));
            for (operation, index) in operations {
                match operation {
                    0 | 1 => {
                        waiting.set(index);
                        list[index] = true;
                    }
                    2 => {
                        waiting.clear(index);
                        list[index] = false;
                    }
                    _ => {
                        waiting.pop(list[0]);
                        list.pop_front();
                        list.push_back(false);
                    }
                }
                let next = (index..500).find(|&at| list[at]);
                prop_assert_eq!(waiting.next(index), next);
                prop_assert_eq!(waiting.count() as usize, list.iter().filter(|&&bit| bit).count());
            }
            waiting.clear_all();
            prop_assert_eq!((waiting.count(), waiting.next(0)), (0, None));
        }
    }
}
