//! The order in which queues of flows are served: new ones first, then round-robin by deficit (RFC
//! 8290 4.2).

use std::collections::{BTreeMap, VecDeque};

use airpath_base::FlowId;

/// RFC 8290 4.1: on overload, at most this many packets are dropped from the longest queue.
const MAX_BATCH: usize = 64;

/// How flows are assigned to queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// One queue per flow.
    Perfect,
    /// A fixed number of queues; flows with the same hash share one (RFC 8290 4.1.1).
    Hashed {
        /// Number of queues, at least 1 (RFC 8290 5.2.4: 1024).
        queues: u32,
    },
}

/// Queues of flows in the order of FQ-CoDel, each of type `Q`: the user decides what they hold.
#[derive(Debug)]
pub struct RoundRobin<Q> {
    quantum: i64,
    isolation: Isolation,
    /// The queue of each flow; empty if flows are hashed.
    known: BTreeMap<FlowId, u32>,
    flows: Vec<Flow<Q>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
}

#[derive(Debug)]
struct Flow<Q> {
    queue: Q,
    credits: i64,
    /// Whether it is on one of the lists.
    active: bool,
}

impl<Q> RoundRobin<Q> {
    /// A round robin without queues. A queue may send `quantum` bytes per turn (RFC 8290 5.2.3).
    pub fn new(quantum: u32, isolation: Isolation) -> Self {
        Self {
            quantum: i64::from(quantum.max(1)),
            isolation,
            known: BTreeMap::new(),
            flows: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
        }
    }

    /// The queue of a flow of which a packet arrives, created by `fresh` if it does not exist yet
    /// (RFC 8290 4.1).
    pub fn arrival(&mut self, flow: FlowId, mut fresh: impl FnMut() -> Q) -> &mut Q {
        let index = match self.isolation {
            Isolation::Perfect => {
                let next = self.known.len() as u32;
                *self.known.entry(flow).or_insert(next)
            }
            Isolation::Hashed { queues } => scatter(flow.0) % queues.max(1),
        };
        while self.flows.len() <= index as usize {
            self.flows.push(Flow { queue: fresh(), credits: 0, active: false });
        }
        let flow = &mut self.flows[index as usize];
        if !flow.active {
            flow.active = true;
            flow.credits = self.quantum;
            self.new.push_back(index);
        }
        &mut flow.queue
    }

    /// What the queue sends whose turn it is: `pop` takes its next packet, with its size in bytes;
    /// `None` if it is empty (RFC 8290 4.2).
    pub fn pop<T>(&mut self, mut pop: impl FnMut(&mut Q) -> Option<(T, u32)>) -> Option<T> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let index = list.pop_front()?;
            let flow = &mut self.flows[index as usize];
            if flow.credits <= 0 {
                flow.credits += self.quantum;
                self.old.push_back(index);
                continue;
            }
            if let Some((sent, bytes)) = pop(&mut flow.queue) {
                flow.credits -= i64::from(bytes);
                list.push_front(index);
                return Some(sent);
            }
            // A new queue that became empty takes its place among the old ones, so that it cannot
            // return as new at once.
            if from_new {
                self.old.push_back(index);
            } else {
                flow.active = false;
            }
        }
    }

    /// The longest queue, from which packets have to be dropped, and how many at its head: half, at
    /// most 64 (RFC 8290 4.1). `size` returns bytes and packets of a queue; among equals the first
    /// is chosen. `None`: no packet waits.
    pub fn longest(&mut self, size: impl Fn(&Q) -> (u64, usize)) -> Option<(&mut Q, usize)> {
        let active = self.new.iter().chain(&self.old);
        // The first among equals, by index: the order of the lists must not matter.
        let longest = active.copied().max_by_key(|&index| {
            (size(&self.flows[index as usize].queue), core::cmp::Reverse(index))
        });
        let queue = &mut self.flows[longest? as usize].queue;
        let (_, packets) = size(queue);
        (packets > 0).then_some((queue, packets.div_ceil(2).min(MAX_BATCH)))
    }

    /// All queues, including empty ones.
    pub fn queues(&self) -> impl Iterator<Item = &Q> {
        self.flows.iter().map(|flow| &flow.queue)
    }

    /// All queues, including empty ones, for modification.
    pub fn queues_mut(&mut self) -> impl Iterator<Item = &mut Q> {
        self.flows.iter_mut().map(|flow| &mut flow.queue)
    }
}

/// Spreads neighbouring flow numbers (multiplication by 2^32 / golden ratio).
const fn scatter(flow: u32) -> u32 {
    let mixed = flow.wrapping_mul(0x9E37_79B9);
    mixed ^ (mixed >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Sizes = VecDeque<u32>;

    fn push(queues: &mut RoundRobin<Sizes>, flow: u32, bytes: u32) {
        queues.arrival(FlowId(flow), Sizes::new).push_back(bytes);
    }

    /// Sizes in the order in which they are sent; those of each flow differ.
    fn sent(queues: &mut RoundRobin<Sizes>, count: usize) -> Vec<u32> {
        let mut pop = || queues.pop(|queue| queue.pop_front().map(|bytes| (bytes, bytes)));
        (0..count).filter_map(|_| pop()).collect()
    }

    #[test]
    fn turns_are_of_bytes_and_not_of_packets() {
        let mut queues = RoundRobin::new(1500, Isolation::Perfect);
        for _ in 0..10 {
            push(&mut queues, 1, 1500);
            push(&mut queues, 2, 500);
        }
        let order = sent(&mut queues, 8);
        assert_eq!(order, [1500, 500, 500, 500, 1500, 500, 500, 500]);
    }

    #[test]
    fn who_is_new_goes_first_and_only_once() {
        let mut queues = RoundRobin::new(1500, Isolation::Perfect);
        (0..6).for_each(|_| push(&mut queues, 1, 1500));
        assert_eq!(sent(&mut queues, 2), [1500, 1500]);
        push(&mut queues, 2, 100);
        assert_eq!(sent(&mut queues, 2), [100, 1500]);
        // It became empty and waits among the old ones: it is not new again.
        push(&mut queues, 2, 100);
        assert_eq!(sent(&mut queues, 1), [100]);
    }

    #[test]
    fn at_overload_the_longest_loses_half() {
        let mut queues = RoundRobin::new(1500, Isolation::Perfect);
        (0..3).for_each(|_| push(&mut queues, 1, 1500));
        (0..8).for_each(|_| push(&mut queues, 2, 500));
        let size = |queue: &Sizes| (queue.iter().map(|&bytes| u64::from(bytes)).sum(), queue.len());
        let (queue, count) = queues.longest(size).expect("not empty");
        assert_eq!((queue[0], count), (1500, 2));
        (0..200).for_each(|_| push(&mut queues, 2, 500));
        assert_eq!(queues.longest(size).map(|(queue, count)| (queue[0], count)), Some((500, 64)));
        assert!(RoundRobin::new(1500, Isolation::Perfect).longest(size).is_none());
    }

    #[test]
    fn hashed_flows_share_queues() {
        let mut queues = RoundRobin::new(1500, Isolation::Hashed { queues: 4 });
        (0..100).for_each(|flow| push(&mut queues, flow, 100));
        let lengths: Vec<usize> = queues.queues().map(VecDeque::len).collect();
        assert_eq!((lengths.len(), lengths.iter().sum::<usize>()), (4, 100));
        assert!(lengths.iter().all(|&length| length > 10), "{lengths:?}");
    }
}
