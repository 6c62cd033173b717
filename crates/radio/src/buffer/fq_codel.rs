//! FQ-CoDel (RFC 8290): one queue per flow, new flows first, deficit round robin.

use airpath_base::{DropReason, Duration, Instant, Packet};
use airpath_queue::{Isolation, Load, RoundRobin};

use super::config::CoDelConfig;
use super::flow_queue::{FlowQueue, Marker};
use super::sdus::{Sdus, Waiting};

#[derive(Debug)]
pub(super) struct FqCoDel {
    codel: CoDelConfig,
    queues: RoundRobin<FlowQueue>,
}

impl FqCoDel {
    pub(super) fn new(codel: CoDelConfig, quantum: u32, isolation: Isolation) -> Self {
        Self { codel, queues: RoundRobin::new(quantum, isolation) }
    }

    pub(super) fn push(&mut self, now: Instant, packet: &Packet) {
        let fresh = || FlowQueue::new(Some(&self.codel));
        self.queues.arrival(packet.flow, fresh).push(now, packet);
    }

    pub(super) fn pop(
        &mut self,
        now: Instant,
        marker: &mut Marker,
        load: &mut Load,
        sdus: &mut Sdus,
    ) -> Option<Waiting> {
        self.queues.pop(|queue| {
            let waiting = queue.pop(now, marker, load, sdus)?;
            let bytes = waiting.packet.size;
            Some((waiting, bytes))
        })
    }

    /// Drops packets at the head of the longest queue to make room.
    pub(super) fn shorten(&mut self, now: Instant, load: &mut Load, sdus: &mut Sdus) {
        let longest = self.queues.longest(|queue| (queue.bytes(), queue.packets()));
        let (queue, count) = longest.expect("over a limit, so not empty");
        for packet in (0..count).map_while(|_| queue.pop_head()) {
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
        let queues = self.queues.queues_mut();
        queues.filter_map(|queue| queue.discard(now, discard, load, sdus)).min()
    }

    pub(super) fn each(&mut self, visit: impl FnMut(&mut FlowQueue)) {
        self.queues.queues_mut().for_each(visit);
    }
}
