//! FQ-CoDel (RFC 8290): a queue for each flow, new flows first, deficit round robin.

use std::collections::{BTreeMap, VecDeque};

use airpath_base::{DropReason, Duration, FlowId, Instant, Packet};
use airpath_queue::Load;

use super::config::{CoDelConfig, Isolation};
use super::flow_queue::{FlowQueue, Marker};
use super::sdus::{Sdus, Waiting};

/// RFC 8290 4.1: at overload, at most so many packets are dropped from the longest queue.
const MAX_BATCH: usize = 64;

#[derive(Debug)]
pub(super) struct FqCoDel {
    codel: CoDelConfig,
    quantum: i64,
    isolation: Isolation,
    /// The queue of each flow; empty if flows are hashed.
    queues: BTreeMap<FlowId, u32>,
    flows: Vec<Flow>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
}

#[derive(Debug)]
struct Flow {
    queue: FlowQueue,
    credits: i64,
    /// On one of the lists.
    active: bool,
}

impl FqCoDel {
    pub(super) fn new(codel: CoDelConfig, quantum: u32, isolation: Isolation) -> Self {
        Self {
            codel,
            quantum: i64::from(quantum.max(1)),
            isolation,
            queues: BTreeMap::new(),
            flows: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
        }
    }

    // RFC 8290 4.1
    pub(super) fn push(&mut self, now: Instant, packet: &Packet) {
        let index = match self.isolation {
            Isolation::Perfect => {
                let next = self.queues.len() as u32;
                *self.queues.entry(packet.flow).or_insert(next)
            }
            Isolation::Hashed { queues } => scatter(packet.flow.0) % queues.max(1),
        };
        while self.flows.len() <= index as usize {
            let queue = FlowQueue::new(Some(&self.codel));
            self.flows.push(Flow { queue, credits: 0, active: false });
        }
        let flow = &mut self.flows[index as usize];
        flow.queue.push(now, packet);
        if !flow.active {
            flow.active = true;
            flow.credits = self.quantum;
            self.new.push_back(index);
        }
    }

    // RFC 8290 4.2
    pub(super) fn pop(
        &mut self,
        now: Instant,
        marker: &mut Marker,
        load: &mut Load,
        sdus: &mut Sdus,
    ) -> Option<Waiting> {
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
            if let Some(waiting) = flow.queue.pop(now, marker, load, sdus) {
                flow.credits -= i64::from(waiting.packet.size);
                list.push_front(index);
                return Some(waiting);
            }
            // A new queue that ran empty waits its turn among the old ones, so that it cannot
            // come back as new at once.
            if from_new {
                self.old.push_back(index);
            } else {
                flow.active = false;
            }
        }
    }

    /// RFC 8290 4.1: drops half of the packets of the longest queue, at most [`MAX_BATCH`], at
    /// its head.
    pub(super) fn shorten(&mut self, now: Instant, load: &mut Load, sdus: &mut Sdus) {
        let active = self.new.iter().chain(&self.old);
        // The first of equals, by index: the order of the lists must not decide.
        let longest = active.copied().max_by_key(|&index| {
            let queue = &self.flows[index as usize].queue;
            (queue.bytes(), queue.packets(), core::cmp::Reverse(index))
        });
        let queue = &mut self.flows[longest.expect("over a limit, so not empty") as usize].queue;
        for _ in 0..queue.packets().div_ceil(2).clamp(1, MAX_BATCH) {
            let Some(packet) = queue.pop_head() else { break };
            load.remove(&packet);
            sdus.drop(now, packet, DropReason::QueueFull);
        }
    }

    pub(super) fn discard(
        &mut self,
        now: Instant,
        discard: Duration,
        load: &mut Load,
        sdus: &mut Sdus,
    ) -> Option<Instant> {
        let flows = self.flows.iter_mut();
        flows.filter_map(|flow| flow.queue.discard(now, discard, load, sdus)).min()
    }

    pub(super) fn each(&mut self, visit: impl FnMut(&mut FlowQueue)) {
        self.flows.iter_mut().map(|flow| &mut flow.queue).for_each(visit);
    }
}

/// Spreads neighbouring flow numbers (multiplication by 2^32 / golden ratio).
const fn scatter(flow: u32) -> u32 {
    let mixed = flow.wrapping_mul(0x9E37_79B9);
    mixed ^ (mixed >> 15)
}
