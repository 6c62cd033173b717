//! RRC of any technology.

use airpath_base::{Direction, Instant};

use super::connection::{Connection, ConnectionConfig};
use super::umts::{Fach, Umts, UmtsConfig};
use super::{RrcState, Transition};

/// The RRC configuration of a UE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RrcConfig {
    /// LTE and NR; also EV-DO, where dormancy is idle.
    Connection(ConnectionConfig),
    /// UMTS (TS 25.331): CELL_DCH, CELL_FACH, a PCH state and idle.
    Umts(UmtsConfig),
}

/// The state machine.
#[derive(Clone, Debug)]
pub(crate) enum Rrc {
    Connection(Connection),
    Umts(Umts),
}

impl Rrc {
    pub(crate) fn new(config: &RrcConfig) -> Self {
        match config {
            RrcConfig::Connection(config) => Self::Connection(Connection::new(config)),
            RrcConfig::Umts(config) => Self::Umts(Umts::new(config)),
        }
    }

    /// The UE arrives from another cell, in this state of its technology.
    pub(crate) fn restart(&mut self, now: Instant, state: RrcState) {
        match self {
            Self::Connection(rrc) if state.carries_data() => rrc.restart(now, RrcState::Connected),
            Self::Connection(rrc) => rrc.restart(now, state),
            Self::Umts(rrc) if state == RrcState::Connected => rrc.restart(now, RrcState::CellDch),
            Self::Umts(rrc) => rrc.restart(now, state),
        }
    }

    /// `bytes` wait. Returns when they may be sent.
    pub(crate) fn request(
        &mut self,
        now: Instant,
        direction: Direction,
        bytes: impl FnOnce() -> u64,
    ) -> Instant {
        match self {
            Self::Connection(rrc) => rrc.request(now, direction),
            Self::Umts(rrc) => rrc.request(now, direction, bytes()),
        }
    }

    /// Whether the state depends on how much data waits: then [`request`](Self::request) has to be
    /// called whenever a buffer grows.
    pub(crate) fn measures_volume(&self) -> bool {
        match self {
            Self::Connection(_) => false,
            Self::Umts(rrc) => rrc.measures_volume(),
        }
    }

    pub(crate) fn on_activity(&mut self, now: Instant) {
        match self {
            Self::Connection(rrc) => rrc.on_activity(now),
            Self::Umts(rrc) => rrc.on_activity(now),
        }
    }

    pub(crate) fn state_at(&mut self, now: Instant) -> RrcState {
        match self {
            Self::Connection(rrc) => rrc.state_at(now),
            Self::Umts(rrc) => rrc.state_at(now),
        }
    }

    /// The common channels while they are the only ones the UE has.
    pub(crate) fn fach(&mut self, now: Instant) -> Option<Fach> {
        match self {
            Self::Connection(_) => None,
            Self::Umts(rrc) => rrc.fach(now),
        }
    }

    pub(crate) fn next_event(&self) -> Option<Instant> {
        match self {
            Self::Connection(rrc) => rrc.next_event(),
            Self::Umts(rrc) => rrc.next_event(),
        }
    }

    pub(crate) fn poll(&mut self, now: Instant) -> Option<Transition> {
        match self {
            Self::Connection(rrc) => rrc.poll(now),
            Self::Umts(rrc) => rrc.poll(now),
        }
    }
}
