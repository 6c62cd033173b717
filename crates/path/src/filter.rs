//! Stages without delay: each packet passes, changed or not, or is dropped.

use std::collections::VecDeque;

use airpath_base::{Drop, DropReason, Instant, Packet};
use airpath_queue::Load;

use crate::{Departure, LinkMeter, Path};

/// What a stage without delay does with each packet.
pub(crate) trait Filter {
    /// Changes a packet that arrives at `at` and passes it, or drops it unchanged. Calls are in
    /// order of arrival.
    fn apply(&mut self, at: Instant, packet: &mut Packet) -> Result<(), DropReason>;
}

/// A stage that filters what leaves `upstream`.
#[derive(Debug)]
pub(crate) struct Filtered<P, F> {
    pub(crate) upstream: P,
    filter: F,
    stage: u32,
    drops: VecDeque<Drop>,
}

impl<P: Path, F: Filter> Filtered<P, F> {
    /// Creates the `stage`-th stage of a direction.
    pub(crate) fn new(upstream: P, filter: F, stage: u32) -> Self {
        Self { upstream, filter, stage, drops: VecDeque::new() }
    }
}

impl<P: Path, F: Filter> Path for Filtered<P, F> {
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        self.upstream.enqueue(now, packet);
    }

    fn next_event(&self) -> Option<Instant> {
        self.upstream.next_event()
    }

    fn poll(&mut self, now: Instant) -> Option<Departure> {
        loop {
            let mut departure = self.upstream.poll(now)?;
            let Departure { at, packet } = &mut departure;
            match self.filter.apply(*at, packet) {
                Ok(()) => return Some(departure),
                Err(reason) => {
                    let (Departure { at, packet }, stage) = (departure, self.stage);
                    self.drops.push_back(Drop { at, packet, stage, reason });
                }
            }
        }
    }

    fn poll_drop(&mut self) -> Option<Drop> {
        self.upstream.poll_drop().or_else(|| self.drops.pop_front())
    }

    fn load(&self) -> Load {
        self.upstream.load()
    }

    fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&LinkMeter)) {
        self.upstream.observe(now, visit);
    }
}
