//! Output of a cell until it is polled.

use std::collections::VecDeque;

use airpath_base::{Direction, Drop, Instant, Packet};

use super::departure::{CellDeparture, UeIndex};
use super::event::{RadioEvent, RadioEventKind};
use crate::bearer::Bearer;

/// Departures and drops not polled yet, and the log.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) departures: VecDeque<CellDeparture>,
    /// Each with its UE.
    pub(super) drops: VecDeque<(u32, Drop)>,
    /// The log; `None` if there is none.
    pub(super) log: Option<VecDeque<RadioEvent>>,
}

impl Output {
    #[inline]
    pub(super) fn depart(&mut self, direction: Direction, ue: u32, at: Instant, packet: &Packet) {
        let ue = UeIndex(ue);
        self.departures.push_back(CellDeparture { direction, ue, at, packet: *packet });
        self.log(at, ue.0, || RadioEventKind::Leaves {
            direction,
            flow: packet.flow,
            bytes: packet.size,
        });
    }

    #[inline]
    pub(super) fn log(&mut self, at: Instant, ue: u32, kind: impl FnOnce() -> RadioEventKind) {
        if let Some(log) = &mut self.log {
            log.push_back(RadioEvent { at, ue: UeIndex(ue), kind: kind() });
        }
    }
}

/// Drops of both directions: stage 0 is the downlink, 1 the uplink.
pub(super) fn collect_drops(bearer: &mut Bearer, mut take: impl FnMut(Drop)) {
    for (stage, one_way) in (0..).zip([&mut bearer.down, &mut bearer.up]) {
        while let Some(drop) = one_way.poll_drop() {
            take(Drop { stage, ..drop });
        }
    }
}
