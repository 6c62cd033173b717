//! RRC of LTE (idle, connected) and NR (idle, inactive, connected).

#[cfg(test)]
mod tests;

use airpath_base::{Direction, Duration, Instant};

use super::transitions::Transitions;
use super::{RrcState, Transition};
use crate::mac::Occasions;

/// The delays and timers of a UE's connection. EV-DO uses it with other numbers: dormant is idle,
/// its dormancy timer the inactivity timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionConfig {
    /// The UE's initial state: idle, inactive or connected.
    pub initial: RrcState,
    /// Time from idle to connected, including random access, after which the UE may send (TS 36.331
    /// 5.3.3, TS 38.331 5.3.3).
    pub setup: Duration,
    /// The network releases the connection this long after the last data; `None`: never.
    pub inactivity: Option<Duration>,
    /// RRC_INACTIVE, to which a release then leads. NR only.
    pub inactive: Option<InactiveConfig>,
    /// Paging of an idle UE.
    pub paging: Occasions,
    /// Time from a downlink packet's arrival at the user plane until the base station is ready to
    /// page an idle UE.
    pub paging_delay: Duration,
}

/// The delays and timers of RRC_INACTIVE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InactiveConfig {
    /// Time from inactive to connected, including random access (TS 38.331 5.3.13).
    pub resume: Duration,
    /// Time from the release to idle; `None`: never.
    pub idle_after: Option<Duration>,
    /// RAN paging.
    pub paging: Occasions,
}

/// RRC of one UE.
///
/// Times passed to it never decrease. Call [`request`](Self::request) when data waits and
/// [`on_activity`](Self::on_activity) when data was sent, and call [`poll`](Self::poll) at
/// [`next_event`](Self::next_event) until it returns `None`.
///
/// ```
/// use airpath_base::{Duration, Instant};
/// use airpath_base::Direction;
/// use airpath_radio::mac::Occasions;
/// use airpath_radio::rrc::RrcState;
/// use airpath_radio::rrc::connection::{Connection, ConnectionConfig};
///
/// let ms = Duration::from_millis;
/// let mut rrc = Connection::new(&ConnectionConfig {
///     initial: RrcState::Idle,
///     setup: ms(80),
///     inactivity: Some(ms(10_000)),
///     inactive: None,
///     paging: Occasions::new(ms(1_280), ms(9)),
///     paging_delay: Duration::ZERO,
/// });
/// let now = Instant::ZERO + ms(100);
/// assert_eq!(rrc.request(now, Direction::Uplink), now + ms(80));
/// assert_eq!(rrc.state_at(now + ms(80)), RrcState::Connected);
/// ```
#[derive(Clone, Debug)]
pub struct Connection {
    config: ConnectionConfig,
    transitions: Transitions,
    /// Set while the UE is idle or inactive and has been asked to connect.
    promotion: Option<Promotion>,
    /// When a timer ends the current state.
    expires: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Promotion {
    begins: Instant,
    ready: Instant,
}

impl Connection {
    /// A UE that has been in the initial state since the run began. An initial state of UMTS counts
    /// as idle.
    pub fn new(config: &ConnectionConfig) -> Self {
        let initial = match config.initial {
            state @ (RrcState::Inactive | RrcState::Connected) => state,
            _ => RrcState::Idle,
        };
        let mut connection = Self {
            config: *config,
            transitions: Transitions::new(initial),
            promotion: None,
            expires: None,
        };
        connection.start_timer(Instant::ZERO);
        connection
    }

    /// The UE arrives from another cell, in this state; a state that does not exist here counts as
    /// idle.
    pub fn restart(&mut self, now: Instant, state: RrcState) {
        let state = match (state, self.config.inactive) {
            (RrcState::Connected, _) | (RrcState::Inactive, Some(_)) => state,
            _ => RrcState::Idle,
        };
        self.transitions = Transitions::new(state);
        self.promotion = None;
        self.start_timer(now);
    }

    /// Data waits: connects if necessary. Returns when the data may be sent.
    pub fn request(&mut self, now: Instant, direction: Direction) -> Instant {
        self.settle(now);
        let (delay, paging, paging_delay) = match (self.transitions.state(), self.config.inactive) {
            (RrcState::Connected, _) => return now,
            (RrcState::Inactive, Some(inactive)) => {
                (inactive.resume, inactive.paging, Duration::ZERO)
            }
            _ => (self.config.setup, self.config.paging, self.config.paging_delay),
        };
        let begins = match direction {
            Direction::Uplink => now,
            // TS 36.304 7.1, TS 38.304 7.1: at the UE's next paging occasion
            Direction::Downlink => paging.at_or_after(now + paging_delay),
        };
        // Uplink data does not wait for a page that is still to come.
        let earlier = self.promotion.filter(|promotion| promotion.begins <= begins);
        let promotion = earlier.unwrap_or(Promotion { begins, ready: begins + delay });
        self.promotion = Some(promotion);
        promotion.ready
    }

    /// Data was sent or received: restarts the inactivity timer.
    pub fn on_activity(&mut self, now: Instant) {
        self.settle(now);
        if self.transitions.state() == RrcState::Connected {
            self.start_timer(now);
        }
    }

    /// The state at `now`.
    pub fn state_at(&mut self, now: Instant) -> RrcState {
        self.settle(now);
        self.transitions.state()
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

    fn next_change(&self) -> Option<Instant> {
        self.promotion.map(|promotion| promotion.ready).or(self.expires)
    }

    fn settle(&mut self, now: Instant) {
        while let Some(at) = self.next_change().filter(|&at| at <= now) {
            let to = match (self.promotion.take(), self.transitions.state(), self.config.inactive) {
                (Some(_), ..) => RrcState::Connected,
                (None, RrcState::Connected, Some(_)) => RrcState::Inactive,
                (None, ..) => RrcState::Idle,
            };
            self.transitions.change(at, to);
            self.start_timer(at);
        }
    }

    /// Starts the timer that ends the current state.
    fn start_timer(&mut self, now: Instant) {
        let timer = match self.transitions.state() {
            RrcState::Connected => self.config.inactivity,
            RrcState::Inactive => self.config.inactive.and_then(|inactive| inactive.idle_after),
            _ => None,
        };
        self.expires = timer.map(|timer| now + timer);
    }
}
