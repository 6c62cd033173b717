//! Events of the cell apart from slots.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use airpath_base::Instant;

use super::carrier_id::LinkId;

/// Events of all UEs in order of time; equal times in the order in which they were added.
///
/// A UE has one wake-up: the earliest one requested. Events added before a UE joined no longer
/// concern it.
///
/// Most events happen within a few slots. These events wait in turns, each a fraction of a slot, so that few
/// events have to be skipped. Only later events need a heap.
#[derive(Debug)]
pub(super) struct EventQueue {
    /// Turns from the current one on, by number modulo [`TURNS`]; each is in order.
    turns: [VecDeque<Entry>; TURNS as usize],
    /// One bit for each turn that is not empty.
    filled: u64,
    /// Number of the turn of the last event: all others are in this turn, or in a later one.
    current: u64,
    /// Events that were beyond the turns when they were added.
    later: BinaryHeap<Reverse<Entry>>,
    added: u64,
    ues: Vec<UeEvents>,
}

/// The wake-up of a UE, and which events concern it.
#[derive(Clone, Copy, Debug, Default)]
struct UeEvents {
    /// The time of the wake-up in the queue.
    wake: Option<Instant>,
    /// Number of the first event since the UE joined.
    first: u64,
}

/// As many turns as a word has bits.
const TURNS: u64 = u64::BITS as u64;

/// Length of a turn as a power of two of nanoseconds, 0.26 ms: all turns together are 16 ms.
const TURN_BITS: u32 = 18;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    at: Instant,
    number: u64,
    ue: u32,
    kind: EventKind,
}

impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An event of a UE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EventKind {
    /// A decoded block reaches RLC.
    Block(LinkId),
    /// HARQ feedback arrives.
    Feedback(LinkId),
    /// The base station has processed a block's buffer status, or its absence.
    Received,
    /// The base station has processed a scheduling request.
    Request,
    /// A timer, an arrival or an occasion: the UE knows which.
    Wake,
    /// The DRX state changes, only while there is a log; it has no other effect.
    LogDrx,
}

/// An event that is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) at: Instant,
    pub(super) number: u64,
    pub(super) ue: u32,
    pub(super) kind: EventKind,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            turns: [const { VecDeque::new() }; TURNS as usize],
            filled: 0,
            current: 0,
            later: BinaryHeap::new(),
            added: 0,
            ues: Vec::new(),
        }
    }
}

impl EventQueue {
    /// An empty queue for this many UEs.
    pub(super) fn new(ues: usize) -> Self {
        Self { ues: vec![UeEvents::default(); ues], ..Self::default() }
    }

    /// A UE joins: events added before do not concern it.
    pub(super) fn join(&mut self, ue: u32) {
        self.ues[ue as usize] = UeEvents { wake: None, first: self.added };
    }

    /// Whether an event still concerns its UE: the UE has not left and joined since.
    #[inline]
    pub(super) fn concerns(&self, due: &Due) -> bool {
        due.number >= self.ues[due.ue as usize].first
    }

    /// Wakes a UE at `at`, unless it wakes by then anyway.
    #[inline]
    pub(super) fn wake(&mut self, at: Instant, ue: u32) {
        let wake = &mut self.ues[ue as usize].wake;
        if wake.is_none_or(|wake| at < wake) {
            *wake = Some(at);
            self.add(at, ue, EventKind::Wake);
        }
    }

    /// When a UE wakes.
    #[inline]
    pub(super) fn next_wake(&self, ue: u32) -> Option<Instant> {
        self.ues[ue as usize].wake
    }

    /// Takes the wake-up of a UE that is due; returns false if the UE has been woken earlier.
    #[inline]
    pub(super) fn take_wake(&mut self, due: &Due) -> bool {
        let wake = &mut self.ues[due.ue as usize].wake;
        let is_next = *wake == Some(due.at);
        if is_next {
            *wake = None;
        }
        is_next
    }

    #[inline]
    pub(super) fn add(&mut self, at: Instant, ue: u32, kind: EventKind) {
        let entry = Entry { at, number: self.added, ue, kind };
        self.added += 1;
        let turn = turn_of(at).max(self.current);
        if turn - self.current >= TURNS {
            self.later.push(Reverse(entry));
            return;
        }
        let place = turn % TURNS;
        self.filled |= 1 << place;
        let entries = &mut self.turns[place as usize];
        // The new event has the highest number.
        let later = entries.iter().rev().take_while(|other| other.at > at).count();
        match later {
            0 => entries.push_back(entry),
            _ => entries.insert(entries.len() - later, entry),
        }
    }

    #[inline]
    pub(super) fn next(&self) -> Option<Instant> {
        let later = self.later.peek().map(|Reverse(entry)| entry.at);
        let first = self.first_turn().and_then(|place| self.turns[place].front());
        match (first.map(|entry| entry.at), later) {
            (Some(first), Some(later)) => Some(first.min(later)),
            (first, later) => first.or(later),
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Due> {
        let entry = self.take_first()?;
        self.current = self.current.max(turn_of(entry.at));
        let Entry { at, number, ue, kind } = entry;
        Some(Due { at, number, ue, kind })
    }

    #[inline]
    fn take_first(&mut self) -> Option<Entry> {
        let Some(place) = self.first_turn() else {
            return self.later.pop().map(|Reverse(entry)| entry);
        };
        let entries = &mut self.turns[place];
        if let (Some(first), Some(Reverse(later))) = (entries.front(), self.later.peek())
            && later < first
        {
            return self.later.pop().map(|Reverse(entry)| entry);
        }
        let first = entries.pop_front();
        if entries.is_empty() {
            self.filled &= !(1 << place);
        }
        first
    }

    /// Position of the first turn that is not empty.
    #[inline]
    fn first_turn(&self) -> Option<usize> {
        let current = self.current % TURNS;
        // Both are less than 64, and so is the sum.
        let ahead = u64::from(self.filled.rotate_right(current as u32).trailing_zeros());
        (self.filled != 0).then_some(((current + ahead) % TURNS) as usize)
    }
}

const fn turn_of(at: Instant) -> u64 {
    at.as_nanos() >> TURN_BITS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn events_come_in_order_of_time_and_then_as_they_were_added(
            steps in proptest::collection::vec((0u64..3, 0u64..40, any::<bool>()), 0..400),
        ) {
            let (mut queue, mut all) = (EventQueue::default(), Vec::new());
            let (mut now, mut number) = (0, 0);
            let take = |queue: &mut EventQueue, all: &mut Vec<(u64, u64)>| {
                let first = all.iter().copied().min();
                all.retain(|&event| Some(event) != first);
                prop_assert_eq!(queue.next().map(Instant::as_nanos), first.map(|(at, _)| at));
                let due = queue.pop().map(|due| (due.at.as_nanos(), due.number));
                prop_assert_eq!(due, first);
                Ok(first)
            };
            for (scale, steps, takes) in steps {
                // At once, within the turns, and beyond them.
                let at = now + steps * [1, 1 << 17, 1 << 21][scale as usize];
                queue.add(Instant::from_nanos(at), 0, EventKind::Wake);
                all.push((at, number));
                number += 1;
                if takes && let Some((at, _)) = take(&mut queue, &mut all)? {
                    // Events that were due a moment ago can be added, too.
                    now = at.saturating_sub(1 << 18);
                }
            }
            while take(&mut queue, &mut all)?.is_some() {}
        }
    }
}
