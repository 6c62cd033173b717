//! What happens when, apart from slots.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use airpath_base::{Direction, Instant};

/// Events of all UEs in order of time, equals in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    heap: BinaryHeap<Reverse<Entry>>,
    added: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// When, in nanoseconds, above the number of the entry.
    key: u128,
    ue: u32,
    kind: EventKind,
}

impl Entry {
    fn at(&self) -> Instant {
        // The upper half has 64 bits.
        Instant::from_nanos((self.key >> 64) as u64)
    }
}

impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Entry {}

/// What happens to a UE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EventKind {
    /// A decoded block reaches RLC.
    Block(Direction),
    /// HARQ feedback is there.
    Feedback(Direction),
    /// The base station has read a block's buffer status, or its absence.
    Received,
    /// The base station has read a scheduling request.
    Request,
    /// A timer, an arrival, an occasion: the UE knows.
    Wake,
    /// DRX changes its state, while there is a log. Changes nothing.
    LogDrx,
}

impl EventKind {
    /// What the scheduler finds in the downlink may be something else then, timers aside: a block
    /// that came up may have a STATUS, or ask for one.
    #[inline]
    pub(super) const fn changes_downlink(self) -> bool {
        matches!(self, Self::Block(Direction::Uplink) | Self::Feedback(Direction::Downlink))
    }
}

/// What is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) at: Instant,
    pub(super) number: u64,
    pub(super) ue: u32,
    pub(super) kind: EventKind,
}

impl EventQueue {
    /// The number of the next event that is added.
    pub(super) const fn next_number(&self) -> u64 {
        self.added
    }

    #[inline]
    pub(super) fn add(&mut self, at: Instant, ue: u32, kind: EventKind) {
        let key = u128::from(at.as_nanos()) << 64 | u128::from(self.added);
        self.heap.push(Reverse(Entry { key, ue, kind }));
        self.added += 1;
    }

    #[inline]
    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.0.at())
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Due> {
        self.heap.pop().map(|Reverse(entry)| {
            let number = entry.key as u64;
            Due { at: entry.at(), number, ue: entry.ue, kind: entry.kind }
        })
    }
}
