//! One UE: where it is, and where its packets go.

use std::collections::VecDeque;

use airpath_base::{Instant, Packet};

use super::measure::Measurements;
use super::split::Split;
use crate::cell::UeContext;
use airpath_queue::Load;

/// A UE as the RAN sees it.
#[derive(Debug)]
pub(super) struct Mobile {
    pub(super) location: Location,
    /// The cell to which the core sends.
    pub(super) anchor: usize,
    /// When the core switches to the UE's cell.
    pub(super) switch_at: Option<Instant>,
    /// Downlink packets between base stations, and when they reach the UE's.
    pub(super) forwarded: VecDeque<(Instant, Packet)>,
    /// A handover that the UE will be ordered to make, and when.
    pub(super) command: Option<(Instant, usize)>,
    pub(super) measurements: Option<Measurements>,
    /// The PDCP entities of a split bearer.
    pub(super) split: Option<Box<Split>>,
}

/// Where a UE is.
#[derive(Debug)]
pub(super) enum Location {
    /// In this cell.
    In(usize),
    /// In no cell.
    Between(Box<Between>),
}

/// Between one cell and another.
#[derive(Debug)]
pub(super) struct Between {
    pub(super) context: UeContext,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) left: Instant,
    pub(super) until: Instant,
    pub(super) phase: Phase,
}

/// Why a UE is in no cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Handover command received.
    Handover,
    /// The target did not answer; T304 runs.
    Failing,
    /// Looking for a cell.
    Reestablishment,
}

impl Mobile {
    pub(super) fn new(cell: usize, measurements: Option<Measurements>) -> Self {
        Self {
            location: Location::In(cell),
            anchor: cell,
            switch_at: None,
            forwarded: VecDeque::new(),
            command: None,
            measurements,
            split: None,
        }
    }

    /// The cell it is in, or changes to.
    pub(super) fn target(&self) -> usize {
        match &self.location {
            Location::In(cell) => *cell,
            Location::Between(between) => between.to,
        }
    }

    /// The best cell according to its measurements.
    pub(super) fn best(&self) -> usize {
        self.measurements.as_ref().map_or(self.target(), Measurements::best)
    }

    /// When something is due for it.
    pub(super) fn due(&self) -> Option<Instant> {
        let forwarded = self.forwarded.front().map(|&(at, _)| at);
        let (arrives, timer, command) = match &self.location {
            Location::In(_) => (None, None, self.command.map(|(at, _)| at)),
            Location::Between(between) => {
                (Some(between.until), between.context.bearer.next_timer(), None)
            }
        };
        let split = self.split.as_ref().and_then(|split| split.due());
        [forwarded, arrives, timer, command, split, self.switch_at].into_iter().flatten().min()
    }

    /// Packets that are in no cell.
    pub(super) fn load(&self) -> Load {
        let mut load = match &self.location {
            Location::In(_) => Load::default(),
            Location::Between(between) => between.context.load(),
        };
        for (_, packet) in &self.forwarded {
            load.add(packet);
        }
        self.split.as_ref().map_or(load, |split| load + split.load())
    }
}
