//! RRC of UMTS: idle, CELL_PCH, CELL_FACH, CELL_DCH (TS 25.331 7).

#[cfg(test)]
mod tests;

use airpath_base::{Direction, Duration, Instant};

use super::transitions::Transitions;
use super::{RrcState, Transition};
use crate::mac::Occasions;

/// Delays, timers and thresholds, as configured in the RNC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UmtsConfig {
    /// The UE's initial state.
    pub initial: RrcState,
    /// Time from idle to the state in which a connection begins.
    pub setup: Duration,
    /// The state in which a connection begins.
    pub setup_state: SetupState,
    /// Time from CELL_PCH to CELL_FACH: a cell update.
    pub pch_to_fach: Duration,
    /// Time from CELL_FACH to CELL_DCH: a reconfiguration, including the measurement's time to
    /// trigger.
    pub fach_to_dch: Duration,
    /// The UE goes from CELL_FACH to CELL_DCH when more bytes than this wait in its RLC buffer:
    /// traffic volume measurement, event 4a (TS 25.331 14.4.2.1).
    pub uplink_threshold: u32,
    /// The threshold for bytes in the RNC's buffer.
    pub downlink_threshold: u32,
    /// T1: time from the last data until CELL_DCH changes to CELL_FACH.
    pub dch_inactivity: Duration,
    /// T2: time from the last data until CELL_FACH changes to CELL_PCH, or to idle.
    pub fach_inactivity: Duration,
    /// Whether there is a CELL_PCH, and its change to idle.
    pub pch: PchConfig,
    /// Paging in idle and in CELL_PCH.
    pub paging: Occasions,
    /// Time from a downlink packet's arrival at the user plane until the RNC is ready to page an
    /// idle UE.
    pub paging_delay: Duration,
    /// The channels that carry data in CELL_FACH.
    pub fach: Fach,
}

/// The common channels as seen by one UE: here it does not share them, and only RLC retransmits
/// what they lose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fach {
    /// When a block begins on the S-CCPCH.
    pub downlink: Occasions,
    /// Duration of a block: 10 ms is usual (TS 34.108 6.10.2.4.3).
    pub downlink_time: Duration,
    /// When the UE can begin a transmission on the PRACH.
    pub uplink: Occasions,
    /// Duration of a transmission: preambles until one is received, and the message of 10 or 20 ms
    /// (TS 25.214 6.1).
    pub uplink_time: Duration,
    /// Bytes of a block on each; those of an RLC PDU if that is larger.
    pub bytes: u32,
}

/// The state in which a connection begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetupState {
    /// CELL_FACH.
    Fach,
    /// CELL_DCH.
    Dch,
}

/// Whether there is a CELL_PCH (or URA_PCH).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PchConfig {
    /// There is none: CELL_FACH changes to idle.
    Unused,
    /// There is one, and it changes to idle this long after the last data, or never.
    IdleAfter(Option<Duration>),
}

/// RRC of one UE.
///
/// It is used like [`Connection`](super::connection::Connection). In CELL_FACH and CELL_DCH data
/// may be sent; the link determines how fast. A UE that is promoted to CELL_DCH continues in
/// CELL_FACH until then.
#[derive(Clone, Debug)]
pub struct Umts {
    config: UmtsConfig,
    transitions: Transitions,
    promotion: Option<Promotion>,
    /// When a timer ends the current state.
    expires: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Promotion {
    begins: Instant,
    ready: Instant,
    to: RrcState,
    /// Whether CELL_DCH follows.
    exceeds_threshold: bool,
}

impl Umts {
    /// A UE that has been in the initial state since the run began. An initial state of LTE or NR
    /// counts as idle.
    pub fn new(config: &UmtsConfig) -> Self {
        let initial = match config.initial {
            state @ (RrcState::CellPch | RrcState::CellFach | RrcState::CellDch) => state,
            _ => RrcState::Idle,
        };
        let transitions = Transitions::new(initial);
        let mut umts = Self { config: *config, transitions, promotion: None, expires: None };
        umts.start_timer(Instant::ZERO);
        umts
    }

    /// The UE arrives from another cell, in this state; a state that does not exist here counts as
    /// idle.
    pub fn restart(&mut self, now: Instant, state: RrcState) {
        let state = match (state, self.config.pch) {
            (RrcState::CellFach | RrcState::CellDch, _)
            | (RrcState::CellPch, PchConfig::IdleAfter(_)) => state,
            _ => RrcState::Idle,
        };
        self.transitions = Transitions::new(state);
        self.promotion = None;
        self.start_timer(now);
    }

    /// `bytes` wait in the RLC buffer of `direction`: changes state if necessary. Returns when data
    /// may be sent. Call again when the buffer grows.
    pub fn request(&mut self, now: Instant, direction: Direction, bytes: u64) -> Instant {
        self.settle(now);
        let threshold = match direction {
            Direction::Uplink => self.config.uplink_threshold,
            Direction::Downlink => self.config.downlink_threshold,
        };
        let exceeds_threshold = bytes > u64::from(threshold);
        match self.transitions.state() {
            RrcState::CellDch => now,
            RrcState::CellFach => {
                if exceeds_threshold && self.promotion.is_none() {
                    self.promote_to_dch(now);
                }
                now
            }
            RrcState::CellPch => {
                let (delay, to) = (self.config.pch_to_fach, RrcState::CellFach);
                let begins = self.begins(now, direction, Duration::ZERO);
                self.promote(Promotion { begins, ready: begins + delay, to, exceeds_threshold })
            }
            _ => {
                let to = match self.config.setup_state {
                    SetupState::Fach => RrcState::CellFach,
                    SetupState::Dch => RrcState::CellDch,
                };
                let begins = self.begins(now, direction, self.config.paging_delay);
                let ready = begins + self.config.setup;
                self.promote(Promotion { begins, ready, to, exceeds_threshold })
            }
        }
    }

    /// Whether the amount of waiting data matters: above a threshold, the UE moves to CELL_DCH
    /// (TS 25.331 14.4.2.1, event 4A).
    pub fn measures_volume(&self) -> bool {
        !matches!(self.transitions.state(), RrcState::CellDch)
    }

    /// Data was sent or received: restarts the timer of the state.
    pub fn on_activity(&mut self, now: Instant) {
        self.settle(now);
        if matches!(self.transitions.state(), RrcState::CellFach | RrcState::CellDch) {
            self.start_timer(now);
        }
    }

    /// The state at `now`.
    pub fn state_at(&mut self, now: Instant) -> RrcState {
        self.settle(now);
        self.transitions.state()
    }

    /// The common channels, if the UE is in CELL_FACH.
    pub fn fach(&mut self, now: Instant) -> Option<Fach> {
        (self.state_at(now) == RrcState::CellFach).then_some(self.config.fach)
    }

    /// When [`poll`](Self::poll) next returns something.
    pub fn next_event(&self) -> Option<Instant> {
        self.transitions.next().or_else(|| self.next_change())
    }

    /// The next change of state that has happened by `now`.
    pub fn poll(&mut self, now: Instant) -> Option<Transition> {
        self.settle(now);
        self.transitions.poll(now)
    }

    /// When a promotion out of idle or CELL_PCH begins.
    fn begins(&self, now: Instant, direction: Direction, paging_delay: Duration) -> Instant {
        match direction {
            Direction::Uplink => now,
            // TS 25.304 8.3: at the UE's next paging occasion
            Direction::Downlink => self.config.paging.at_or_after(now + paging_delay),
        }
    }

    fn promote(&mut self, promotion: Promotion) -> Instant {
        // Uplink data does not wait for a page that is still to come.
        let (mut chosen, other) = match self.promotion {
            Some(earlier) if earlier.begins <= promotion.begins => (earlier, Some(promotion)),
            earlier => (promotion, earlier),
        };
        chosen.exceeds_threshold |= other.is_some_and(|other| other.exceeds_threshold);
        self.promotion = Some(chosen);
        chosen.ready
    }

    fn promote_to_dch(&mut self, now: Instant) {
        let ready = now + self.config.fach_to_dch;
        let to = RrcState::CellDch;
        self.promotion = Some(Promotion { begins: now, ready, to, exceeds_threshold: false });
    }

    fn next_change(&self) -> Option<Instant> {
        self.promotion.map(|promotion| promotion.ready).or(self.expires)
    }

    fn settle(&mut self, now: Instant) {
        while let Some(at) = self.next_change().filter(|&at| at <= now) {
            let promotion = self.promotion.take();
            let to = match (promotion, self.transitions.state(), self.config.pch) {
                (Some(promotion), ..) => promotion.to,
                (None, RrcState::CellDch, _) => RrcState::CellFach,
                (None, RrcState::CellFach, PchConfig::IdleAfter(_)) => RrcState::CellPch,
                (None, ..) => RrcState::Idle,
            };
            self.transitions.change(at, to);
            self.start_timer(at);
            if to == RrcState::CellFach && promotion.is_some_and(|done| done.exceeds_threshold) {
                self.promote_to_dch(at);
            }
        }
    }

    /// Starts the timer that ends the current state.
    fn start_timer(&mut self, now: Instant) {
        let timer = match (self.transitions.state(), self.config.pch) {
            (RrcState::CellDch, _) => Some(self.config.dch_inactivity),
            (RrcState::CellFach, _) => Some(self.config.fach_inactivity),
            (RrcState::CellPch, PchConfig::IdleAfter(timer)) => timer,
            _ => None,
        };
        self.expires = timer.map(|timer| now + timer);
    }
}
