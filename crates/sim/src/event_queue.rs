//! The event queue: one pending time per source. Among equals the network comes first.

use airpath_base::Instant;

/// When each of a fixed set of sources is due, and which is first.
///
/// Among sources that are due at the same time the first [`BUSY`] come first: what arrives at an
/// instant is processed before what an endpoint's timer releases then (docs/adr/0096). Otherwise
/// they come in the order in which they were armed. The busy ones are armed with nearly every
/// packet, and few of them are in use: they are in a sorted list. The others are in a binary heap,
/// indexed so that a source can be re-armed in place: it holds the timers of thousands of flows,
/// which rarely move, and an event of a busy source touches only its top.
#[derive(Debug)]
pub(crate) struct EventQueue {
    /// The busy sources that are armed, in order; the rest is empty.
    busy: [Busy; BUSY],
    busy_len: usize,
    /// When each source is due, [`Instant::MAX`] if never.
    busy_due: [Instant; BUSY],
    other_due: Vec<Instant>,
    heap: Vec<Entry>,
    /// Index of each source in the heap; `ABSENT`: not in it.
    position: Vec<u32>,
    armed: u64,
}

/// Number of sources that are not in the heap: the hops of a network and the sampler.
const BUSY: usize = 8;

const ABSENT: u32 = u32::MAX;

/// When a source is due, and its turn among equals: the smaller comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Turn {
    at: Instant,
    armed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    turn: Turn,
    source: u32,
}

/// In the list, the position tells which of the sources due at the same time was armed first.
#[derive(Clone, Copy, Debug)]
struct Busy {
    at: Instant,
    source: u32,
}

const EMPTY: Busy = Busy { at: Instant::MAX, source: 0 };

impl EventQueue {
    pub(crate) fn new(sources: usize) -> Self {
        let others = sources.saturating_sub(BUSY);
        Self {
            busy: [EMPTY; BUSY],
            busy_len: 0,
            busy_due: [Instant::MAX; BUSY],
            other_due: vec![Instant::MAX; others],
            heap: Vec::with_capacity(others),
            position: vec![ABSENT; others],
            armed: 0,
        }
    }

    /// The next source and its time.
    #[inline]
    pub(crate) fn first(&self) -> Option<(usize, Instant)> {
        let Busy { at, source } = self.busy[0];
        match self.heap.first() {
            Some(top) if top.turn.at < at => Some((BUSY + top.source as usize, top.turn.at)),
            _ => (at < Instant::MAX).then_some((source as usize, at)),
        }
    }

    /// When `source` is due, [`Instant::MAX`] if never.
    #[inline]
    pub(crate) fn due(&self, source: usize) -> Instant {
        match self.busy_due.get(source) {
            Some(&due) => due,
            None => self.other_due[source - BUSY],
        }
    }

    /// Arms `source` for `at`, or disarms it. Armed again for the same time, it keeps its turn.
    #[inline]
    pub(crate) fn arm(&mut self, source: usize, at: Option<Instant>) {
        let at = at.unwrap_or(Instant::MAX);
        if self.due(source) != at {
            self.rearm(source, at);
        }
    }

    /// Arms `source` after it ran: it gets the last turn among equals.
    #[inline(always)]
    pub(crate) fn rearm(&mut self, source: usize, at: Instant) {
        let first = self.busy[0];
        if first.source == source as u32 && first.at.max(at) < Instant::MAX {
            self.rearm_first(source, at);
        } else {
            self.rearm_any(source, at);
        }
    }

    /// Re-arms the first busy source, which usually stays near the beginning of the list.
    #[inline(always)]
    fn rearm_first(&mut self, source: usize, at: Instant) {
        self.busy_due[source] = at;
        let mut place = 0;
        // After the last entry nothing is ever due.
        while let Some(&next) = self.busy.get(place + 1)
            && next.at <= at
        {
            self.busy[place] = next;
            place += 1;
        }
        self.busy[place] = Busy { at, source: source as u32 };
    }

    #[inline(never)]
    fn rearm_any(&mut self, source: usize, at: Instant) {
        match source < BUSY {
            true => self.rearm_busy(source, at),
            false => self.rearm_other(source - BUSY, at),
        }
    }

    fn rearm_busy(&mut self, source: usize, at: Instant) {
        let before = std::mem::replace(&mut self.busy_due[source], at);
        let mut place = 0;
        if before < Instant::MAX {
            while place + 1 < self.busy_len && self.busy[place].source != source as u32 {
                place += 1;
            }
        } else if at < Instant::MAX {
            place = self.busy_len;
            self.busy_len += 1;
        } else {
            return;
        }
        // It gets the last turn among equals.
        while place > 0 && self.busy[place - 1].at > at {
            self.busy[place] = self.busy[place - 1];
            place -= 1;
        }
        while place + 1 < self.busy_len && self.busy[place + 1].at <= at {
            self.busy[place] = self.busy[place + 1];
            place += 1;
        }
        if at < Instant::MAX {
            self.busy[place] = Busy { at, source: source as u32 };
        } else {
            // Nothing is later: it belongs at the end.
            self.busy[place] = EMPTY;
            self.busy_len -= 1;
        }
    }

    fn rearm_other(&mut self, source: usize, at: Instant) {
        self.other_due[source] = at;
        let turn = Turn { at, armed: self.armed };
        self.armed += 1;
        let index = self.position[source];
        match (index, turn.at) {
            (ABSENT, Instant::MAX) => {}
            (ABSENT, _) => {
                let entry = Entry { turn, source: source as u32 };
                self.heap.push(entry);
                self.sift_up(self.heap.len() - 1, entry);
            }
            (_, Instant::MAX) => self.remove(index as usize),
            _ => self.replace(index as usize, Entry { turn, source: source as u32 }),
        }
    }

    fn remove(&mut self, index: usize) {
        let removed = self.heap.swap_remove(index);
        self.position[removed.source as usize] = ABSENT;
        if let Some(&moved) = self.heap.get(index) {
            self.replace(index, moved);
        }
    }

    fn replace(&mut self, index: usize, entry: Entry) {
        if self.sift_up(index, entry) == index {
            self.sift_down(index, entry);
        }
    }

    /// Puts `entry` at `index` or above; returns where it ended up.
    fn sift_up(&mut self, mut index: usize, entry: Entry) -> usize {
        while index > 0 {
            let parent = (index - 1) / 2;
            let above = self.heap[parent];
            if above.turn < entry.turn {
                break;
            }
            self.put(index, above);
            index = parent;
        }
        self.put(index, entry);
        index
    }

    fn sift_down(&mut self, mut index: usize, entry: Entry) {
        loop {
            let left = 2 * index + 1;
            let Some(&(mut below)) = self.heap.get(left) else { break };
            let mut child = left;
            if let Some(&right) = self.heap.get(left + 1)
                && right.turn < below.turn
            {
                (child, below) = (left + 1, right);
            }
            if entry.turn < below.turn {
                break;
            }
            self.put(index, below);
            index = child;
        }
        self.put(index, entry);
    }

    #[inline]
    fn put(&mut self, index: usize, entry: Entry) {
        self.heap[index] = entry;
        self.position[entry.source as usize] = index as u32;
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
    fn equals_come_in_the_order_of_arming_those_of_the_network_first() {
        let mut queue = EventQueue::new(BUSY + 2);
        [8, 2, 9, 3].into_iter().for_each(|source| queue.arm(source, at(5)));
        queue.arm(8, at(7));
        queue.arm(8, at(5));
        queue.arm(2, at(5)); // unchanged: keeps its turn
        assert_eq!(drain(&mut queue), [2, 3, 9, 8]);
    }

    proptest! {
        #[test]
        fn agrees_with_sorting(
            operations in proptest::collection::vec((4usize..20, proptest::option::of(0u64..20)), 0..120),
        ) {
            let mut queue = EventQueue::new(20);
            let mut model: [Option<(u64, usize)>; 20] = [None; 20];
            for (turn, (source, time)) in operations.into_iter().enumerate() {
                queue.arm(source, time.map(Instant::from_nanos));
                let unchanged = model[source].map(|(time, _)| time) == time;
                if !unchanged {
                    model[source] = time.map(|time| (time, turn));
                }
            }
            let mut expected: Vec<_> = (0..20).filter(|&source| model[source].is_some()).collect();
            expected.sort_by_key(|&source| {
                model[source].map(|(time, turn)| (time, source >= BUSY, turn))
            });
            prop_assert_eq!(drain(&mut queue), expected);
        }
    }
}
