//! What happens when, apart from slots.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use airpath_base::Instant;

use crate::radio::Direction;

/// Events of all UEs in order of time, equals in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<Entry>>,
    added: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry {
    at: Instant,
    number: u64,
    ue: u32,
    kind: EventKind,
}

/// What happens to a UE.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum EventKind {
    /// A decoded block reaches RLC.
    Block(Direction),
    /// HARQ feedback is there.
    Feedback(Direction),
    /// The base station has read a block's buffer status, or its absence.
    Heard,
    /// The base station has read a scheduling request.
    Request,
    /// A timer, an arrival, an occasion: the UE knows.
    Wake,
    /// DRX changes its state, and somebody watches. Changes nothing.
    Watch,
}

/// What is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) at: Instant,
    pub(super) number: u64,
    pub(super) ue: u32,
    pub(super) kind: EventKind,
}

impl Agenda {
    /// The number of the next event that is added.
    pub(super) const fn next_number(&self) -> u64 {
        self.added
    }

    #[inline]
    pub(super) fn add(&mut self, at: Instant, ue: u32, kind: EventKind) {
        self.heap.push(Reverse(Entry { at, number: self.added, ue, kind }));
        self.added += 1;
    }

    #[inline]
    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.0.at)
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Due> {
        self.heap.pop().map(|Reverse(Entry { at, number, ue, kind })| Due { at, number, ue, kind })
    }
}
