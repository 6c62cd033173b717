//! Finds buffers that nothing will ever empty; there should be none.

use super::Cell;
use super::departure::UeIndex;
use airpath_base::Direction;

/// A buffer that holds something although nothing is due for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stalled {
    /// The UE that has the buffer.
    pub ue: UeIndex,
    /// The direction of the buffer: to the UE, or from it.
    pub direction: Direction,
    /// What the buffer waits for.
    pub waits_for: WaitsFor,
}

/// What a buffer waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitsFor {
    /// The scheduler does not know of the data.
    Scheduler,
    /// All HARQ processes are in use.
    HarqProcess,
    /// RLC waits for a STATUS, or its window is full.
    Status,
    /// The UE has not requested anything.
    Request,
}

impl Cell {
    /// The first buffer that holds something although nothing is due for its UE. This is a bug, for
    /// which the tests look.
    pub fn stalled(&self) -> Option<Stalled> {
        let engine = &*self.engine;
        for ue in engine.ues.iter() {
            let due = engine.events.next_wake(ue.index).is_some()
                || ue.links().any(|link| {
                    link.active || !link.arriving.is_empty() || link.harq.next_feedback().is_some()
                })
                || !ue.access.received.is_empty()
                || engine
                    .carriers
                    .iter()
                    .any(|component| component.grants.iter().any(|grant| grant.ue == ue.index));
            for direction in [Direction::Downlink, Direction::Uplink] {
                let (link, one_way) = match direction {
                    Direction::Downlink => (&ue.down, &ue.bearer.down),
                    Direction::Uplink => (&ue.up, &ue.bearer.up),
                };
                let load = one_way.load() + one_way.prepared();
                if due || load.packets == 0 {
                    continue;
                }
                let waits_for = if !one_way.is_ready() {
                    WaitsFor::Status
                } else if link.harq.free(airpath_base::Instant::MAX).is_none() {
                    WaitsFor::HarqProcess
                } else if direction == Direction::Uplink {
                    WaitsFor::Request
                } else {
                    WaitsFor::Scheduler
                };
                return Some(Stalled { ue: UeIndex(ue.index), direction, waits_for });
            }
        }
        None
    }
}
