//! Time alignment: how long a UE may send before it needs random access (TS 38.321 5.2, TS 36.321
//! 5.2).

use airpath_base::{Duration, Instant};

use super::rach::Preamble;

/// timeAlignmentTimer of one UE.
///
/// When it expires, [release](super::sr::SchedulingRequest::release) the resource of the scheduling
/// request, clear configured grants and flush the HARQ buffers: uplink then begins with random
/// access.
#[derive(Clone, Copy, Debug)]
pub struct TimeAlignment {
    timer: Option<Duration>,
    state: Alignment,
    /// The UE has received a timing advance (N_TA).
    adjusted: bool,
    /// A response started the timer, and contention is not resolved yet.
    provisional: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Alignment {
    Lost,
    Until(Instant),
    Forever,
}

impl TimeAlignment {
    /// A UE that is not aligned yet. A `timer` of `None` is infinity.
    pub fn new(timer: Option<Duration>) -> Self {
        Self { timer, state: Alignment::Lost, adjusted: false, provisional: false }
    }

    /// A Timing Advance Command MAC CE was received.
    pub fn on_command(&mut self, now: Instant) {
        // TS 38.321 5.2: if an N_TA has been maintained, start or restart
        if self.adjusted {
            self.start(now);
        }
    }

    /// A random access response was received.
    pub fn on_response(&mut self, now: Instant, kind: Preamble) {
        // TS 38.321 5.2: if the UE chose the preamble, it is ignored while the timer runs
        match kind {
            Preamble::ContentionFree => self.start(now),
            Preamble::ContentionBased if self.is_aligned(now) => {}
            Preamble::ContentionBased => {
                self.start(now);
                self.provisional = true;
            }
        }
    }

    /// The contention that followed the response was won.
    pub fn on_contention_resolved(&mut self) {
        self.provisional = false;
    }

    /// The contention that followed the response was lost.
    pub fn on_contention_lost(&mut self) {
        // TS 38.321 5.2: stop the timer that the response started
        if self.provisional {
            self.state = Alignment::Lost;
        }
    }

    /// Whether the timer runs, so that the UE may send more than preambles.
    pub fn is_aligned(&self, now: Instant) -> bool {
        match self.state {
            Alignment::Lost => false,
            Alignment::Until(end) => now < end,
            Alignment::Forever => true,
        }
    }

    /// When the timer expires.
    pub fn next_event(&self) -> Option<Instant> {
        match self.state {
            Alignment::Until(end) => Some(end),
            Alignment::Lost | Alignment::Forever => None,
        }
    }

    /// Whether the timer has expired by `now`; returns true once.
    pub fn poll(&mut self, now: Instant) -> bool {
        let expired = matches!(self.state, Alignment::Until(end) if end <= now);
        if expired {
            self.state = Alignment::Lost;
        }
        expired
    }

    fn start(&mut self, now: Instant) {
        self.state = self.timer.map_or(Alignment::Forever, |timer| Alignment::Until(now + timer));
        self.adjusted = true;
        self.provisional = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn aligned() -> TimeAlignment {
        let mut alignment = TimeAlignment::new(Some(Duration::from_millis(500)));
        alignment.on_response(at(0), Preamble::ContentionFree);
        alignment
    }

    #[test]
    fn commands_restart_it_and_it_expires_once() {
        let mut alignment = aligned();
        alignment.on_command(at(300));
        assert!(alignment.is_aligned(at(799)));
        assert!(!alignment.poll(at(799)));
        assert_eq!(alignment.next_event(), Some(at(800)));
        assert!(alignment.poll(at(800)));
        assert!(!alignment.poll(at(800)));
        assert!(!alignment.is_aligned(at(800)));
        // N_TA is maintained, so a command restarts it.
        alignment.on_command(at(900));
        assert!(alignment.is_aligned(at(900)));
    }

    #[test]
    fn a_command_before_any_response_is_nothing() {
        let mut alignment = TimeAlignment::new(None);
        alignment.on_command(at(0));
        assert!(!alignment.is_aligned(at(0)));
        alignment.on_response(at(1), Preamble::ContentionBased);
        assert!(alignment.is_aligned(at(1_000_000)));
        assert_eq!(alignment.next_event(), None);
    }

    #[test]
    fn lost_contention_stops_only_what_its_response_started() {
        let mut alignment = aligned();
        alignment.on_response(at(100), Preamble::ContentionBased);
        assert_eq!(alignment.next_event(), Some(at(500)));
        alignment.on_contention_lost();
        assert!(alignment.is_aligned(at(499)));
        assert!(alignment.poll(at(500)));
        alignment.on_response(at(600), Preamble::ContentionBased);
        assert!(alignment.is_aligned(at(610)));
        alignment.on_contention_lost();
        assert!(!alignment.is_aligned(at(610)));
        alignment.on_response(at(700), Preamble::ContentionBased);
        alignment.on_contention_resolved();
        alignment.on_contention_lost();
        assert!(alignment.is_aligned(at(710)));
    }
}
