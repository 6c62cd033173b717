//! The event queue: one pending time per source, first in, first out among equals.

use airpath_base::Instant;

/// A binary heap over a fixed set of sources, indexed so that a source can be re-armed in place.
///
/// Sources that are due at the same time come in the order in which they were armed.
#[derive(Debug)]
pub(crate) struct EventQueue {
    heap: Vec<usize>,
    position: Vec<Option<usize>>,
    key: Vec<(Instant, u64)>,
    armed: u64,
}

impl EventQueue {
    pub(crate) fn new(sources: usize) -> Self {
        Self {
            heap: Vec::with_capacity(sources),
            position: vec![None; sources],
            key: vec![(Instant::MAX, 0); sources],
            armed: 0,
        }
    }

    /// The next source and its time.
    #[inline]
    pub(crate) fn first(&self) -> Option<(usize, Instant)> {
        self.heap.first().map(|&source| (source, self.key[source].0))
    }

    /// When `source` is due, [`Instant::MAX`] if never.
    #[inline]
    pub(crate) fn due(&self, source: usize) -> Instant {
        self.key[source].0
    }

    /// Arms `source` for `at`, or disarms it. Armed for the same time again, it keeps its turn.
    #[inline]
    pub(crate) fn arm(&mut self, source: usize, at: Option<Instant>) {
        let at = at.unwrap_or(Instant::MAX);
        if self.key[source].0 == at {
            return;
        }
        self.rearm(source, at);
    }

    /// Arms `source` after it ran: it takes the last turn among equals.
    #[inline]
    pub(crate) fn rearm(&mut self, source: usize, at: Instant) {
        self.key[source] = (at, self.armed);
        self.armed += 1;
        match (self.position[source], at) {
            (None, Instant::MAX) => {}
            (None, _) => {
                self.heap.push(source);
                self.sift_up(self.heap.len() - 1);
            }
            (Some(index), Instant::MAX) => self.remove(index),
            (Some(index), _) => {
                let index = self.sift_up(index);
                self.sift_down(index);
            }
        }
    }

    fn remove(&mut self, index: usize) {
        let source = self.heap.swap_remove(index);
        self.position[source] = None;
        if index < self.heap.len() {
            let index = self.sift_up(index);
            self.sift_down(index);
        }
    }

    #[inline]
    fn sift_up(&mut self, mut index: usize) -> usize {
        let source = self.heap[index];
        while index > 0 {
            let parent = (index - 1) / 2;
            if self.key[self.heap[parent]] <= self.key[source] {
                break;
            }
            self.heap[index] = self.heap[parent];
            self.position[self.heap[index]] = Some(index);
            index = parent;
        }
        self.heap[index] = source;
        self.position[source] = Some(index);
        index
    }

    #[inline]
    fn sift_down(&mut self, mut index: usize) {
        let source = self.heap[index];
        loop {
            let left = 2 * index + 1;
            if left >= self.heap.len() {
                break;
            }
            let right = left + 1;
            let smaller = if right < self.heap.len()
                && self.key[self.heap[right]] < self.key[self.heap[left]]
            {
                right
            } else {
                left
            };
            if self.key[source] <= self.key[self.heap[smaller]] {
                break;
            }
            self.heap[index] = self.heap[smaller];
            self.position[self.heap[index]] = Some(index);
            index = smaller;
        }
        self.heap[index] = source;
        self.position[source] = Some(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(nanos: u64) -> Option<Instant> {
        Some(Instant::from_nanos(nanos))
    }

    fn drain(queue: &mut EventQueue) -> Vec<usize> {
        std::iter::from_fn(|| {
            let (source, _) = queue.first()?;
            queue.arm(source, None);
            Some(source)
        })
        .collect()
    }

    #[test]
    fn equals_come_in_the_order_of_arming() {
        let mut queue = EventQueue::new(4);
        [2, 0, 3, 1].into_iter().for_each(|source| queue.arm(source, at(5)));
        queue.arm(0, at(7));
        queue.arm(0, at(5));
        queue.arm(2, at(5)); // unchanged: keeps its turn
        assert_eq!(drain(&mut queue), [2, 3, 1, 0]);
    }

    proptest! {
        #[test]
        fn agrees_with_sorting(
            operations in proptest::collection::vec((0usize..8, proptest::option::of(0u64..20)), 0..80),
        ) {
            let mut queue = EventQueue::new(8);
            let mut model: [Option<(u64, usize)>; 8] = [None; 8];
            for (turn, (source, time)) in operations.into_iter().enumerate() {
                queue.arm(source, time.map(Instant::from_nanos));
                let unchanged = model[source].map(|(time, _)| time) == time;
                if !unchanged {
                    model[source] = time.map(|time| (time, turn));
                }
            }
            let mut expected: Vec<_> = (0..8).filter(|&source| model[source].is_some()).collect();
            expected.sort_by_key(|&source| model[source]);
            prop_assert_eq!(drain(&mut queue), expected);
        }
    }
}
