//! What a cell has to say, until somebody asks.

use std::collections::VecDeque;

use airpath_base::{Drop, Instant, Packet};

use super::event::{RadioEvent, RadioEventKind};
use super::{CellDeparture, UeIndex};
use crate::Load;
use crate::radio::Direction;

/// Departures and drops not polled yet, and the log.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) departures: VecDeque<CellDeparture>,
    pub(super) drops: VecDeque<Drop>,
    /// Of the departures.
    pub(super) load: Load,
    /// `None`: nobody watches.
    pub(super) log: Option<VecDeque<RadioEvent>>,
}

impl Output {
    #[inline]
    pub(super) fn depart(&mut self, direction: Direction, ue: u32, at: Instant, packet: Packet) {
        let ue = UeIndex(ue);
        self.load.add(&packet);
        self.departures.push_back(CellDeparture { direction, ue, at, packet });
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
