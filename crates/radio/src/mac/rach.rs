//! Random access (TS 38.321 5.1, TS 36.321 5.1).

#[cfg(test)]
mod tests;

use airpath_base::{Duration, Instant, Stream};

use super::Occasions;

/// Four-step random access, as configured by RRC and as answered by the base station.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RachConfig {
    /// PRACH occasions.
    pub occasions: Occasions,
    /// From the trigger to the first occasion that the UE can still use.
    pub preparation: Duration,
    /// Length of the preamble.
    pub preamble: Duration,
    /// From the end of the preamble to the beginning of ra-ResponseWindow: 3 subframes in LTE, to
    /// the next PDCCH occasion in NR.
    pub response_window_after: Duration,
    /// ra-ResponseWindow.
    pub response_window: Duration,
    /// Time from the beginning of the window to the end of the response. If it lies outside the
    /// window, there is no response.
    pub response_delay: Duration,
    /// From the end of the response to the end of Msg3: 6 subframes and 1 in LTE.
    pub msg3_delay: Duration,
    /// ra-ContentionResolutionTimer (LTE: mac-ContentionResolutionTimer).
    pub contention_resolution: Duration,
    /// From the end of Msg3 to the end of what resolves the contention: Msg4, or an uplink grant.
    pub resolution_delay: Duration,
    /// PREAMBLE_BACKOFF, the value of the backoff indicator; zero if there is none.
    pub backoff: Duration,
    /// preambleTransMax.
    pub preambles_max: u32,
    /// Probability that the base station misses a preamble.
    pub miss_probability: f64,
    /// Probability that another UE has sent the same preamble and wins the contention.
    pub contention_probability: f64,
}

/// How the preamble is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preamble {
    /// The UE chooses one.
    ContentionBased,
    /// The base station has assigned one, by PDCCH order or for a handover.
    ContentionFree,
}

/// The procedure of one UE. [`start`](Self::start) it, and [`poll`](Self::poll) it at
/// [`next_event`](Self::next_event).
///
/// While it waits for the response or the resolution the UE monitors the PDCCH; the events say
/// until when, for [`Drx::on_random_access`](super::drx::Drx::on_random_access).
#[derive(Clone, Debug)]
pub struct RandomAccess {
    config: RachConfig,
    stream: Stream,
    ongoing: Option<Ongoing>,
}

/// What the procedure did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RachEvent {
    /// A preamble was sent.
    Preamble {
        /// End of the preamble.
        at: Instant,
        /// PREAMBLE_TRANSMISSION_COUNTER, from 1.
        count: u32,
        /// Beginning and end of ra-ResponseWindow.
        window: (Instant, Instant),
    },
    /// ra-ResponseWindow passed without a response.
    NoResponse {
        /// End of the window.
        at: Instant,
    },
    /// The response was received, with its timing advance.
    Response {
        /// End of the response.
        at: Instant,
    },
    /// Msg3 was sent.
    Msg3 {
        /// End of Msg3.
        at: Instant,
        /// The end of ra-ContentionResolutionTimer.
        until: Instant,
    },
    /// Another UE has won: ra-ContentionResolutionTimer expired.
    ContentionLost {
        /// When it was lost.
        at: Instant,
    },
    /// Random access is complete: the UE can be granted uplink.
    Complete {
        /// When it was completed.
        at: Instant,
    },
    /// preambleTransMax was reached: a random access problem, which RRC treats as a radio link
    /// failure (TS 38.331 5.3.10.3).
    Problem {
        /// When it was reached.
        at: Instant,
    },
}

#[derive(Clone, Copy, Debug)]
struct Ongoing {
    kind: Preamble,
    count: u32,
    step: Step,
    /// When the step is done.
    at: Instant,
}

/// What the procedure waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    PreambleEnd,
    Response,
    NoResponse,
    Msg3End,
    Resolution,
    Expiry,
    Completion,
    Problem,
}

impl RandomAccess {
    /// A procedure that is not in progress.
    pub fn new(config: &RachConfig, stream: Stream) -> Self {
        Self { config: *config, stream, ongoing: None }
    }

    /// Starts the procedure, unless it is in progress: TS 38.321 5.1.1 leaves it to the UE which of
    /// two to continue.
    pub fn start(&mut self, now: Instant, kind: Preamble) {
        if self.ongoing.is_none() {
            let at = self.preamble_end(now + self.config.preparation);
            // PREAMBLE_TRANSMISSION_COUNTER is set to 1.
            self.ongoing = Some(Ongoing { kind, count: 1, step: Step::PreambleEnd, at });
        }
    }

    /// Stops the procedure: its cause is gone (TS 38.321 5.4.4), or the MAC is reset.
    pub fn stop(&mut self) {
        self.ongoing = None;
    }

    /// Whether the procedure is in progress.
    pub fn is_ongoing(&self) -> bool {
        self.ongoing.is_some()
    }

    /// When to [`poll`](Self::poll) next; `None` while it is not in progress.
    pub fn next_event(&self) -> Option<Instant> {
        self.ongoing.map(|ongoing| ongoing.at)
    }

    /// The next event that has happened by `now`, in order.
    pub fn poll(&mut self, now: Instant) -> Option<RachEvent> {
        let ongoing = self.ongoing.filter(|ongoing| ongoing.at <= now)?;
        let at = ongoing.at;
        Some(match ongoing.step {
            Step::PreambleEnd => self.await_response(ongoing),
            Step::Response => {
                self.received_response(ongoing);
                RachEvent::Response { at }
            }
            Step::NoResponse => {
                self.retry(ongoing);
                RachEvent::NoResponse { at }
            }
            Step::Msg3End => self.await_resolution(ongoing),
            Step::Expiry => {
                self.retry(ongoing);
                RachEvent::ContentionLost { at }
            }
            Step::Resolution | Step::Completion => {
                self.ongoing = None;
                RachEvent::Complete { at }
            }
            Step::Problem => {
                self.ongoing = None;
                RachEvent::Problem { at }
            }
        })
    }

    /// TS 38.321 5.1.3, 5.1.4: the preamble was sent, and the window follows.
    fn await_response(&mut self, ongoing: Ongoing) -> RachEvent {
        let config = &self.config;
        let opens = ongoing.at + config.response_window_after;
        let closes = opens + config.response_window;
        let answer = opens + config.response_delay;
        let seen = !self.stream.chance(config.miss_probability);
        let (step, at) = if seen && answer <= closes {
            (Step::Response, answer)
        } else {
            (Step::NoResponse, closes)
        };
        self.ongoing = Some(Ongoing { step, at, ..ongoing });
        RachEvent::Preamble { at: ongoing.at, count: ongoing.count, window: (opens, closes) }
    }

    fn received_response(&mut self, ongoing: Ongoing) {
        // TS 38.321 5.1.4: not chosen by the UE, so it is complete
        let (step, delay) = match ongoing.kind {
            Preamble::ContentionFree => (Step::Completion, Duration::ZERO),
            Preamble::ContentionBased => (Step::Msg3End, self.config.msg3_delay),
        };
        self.ongoing = Some(Ongoing { step, at: ongoing.at + delay, ..ongoing });
    }

    /// TS 38.321 5.1.5: Msg3 was sent, the timer runs.
    fn await_resolution(&mut self, ongoing: Ongoing) -> RachEvent {
        let until = ongoing.at + self.config.contention_resolution;
        let resolved = ongoing.at + self.config.resolution_delay;
        let won = !self.stream.chance(self.config.contention_probability);
        let (step, at) = if won && resolved <= until {
            (Step::Resolution, resolved)
        } else {
            (Step::Expiry, until)
        };
        self.ongoing = Some(Ongoing { step, at, ..ongoing });
        RachEvent::Msg3 { at: ongoing.at, until }
    }

    /// TS 38.321 5.1.4, 5.1.5: count, and try again after a backoff.
    fn retry(&mut self, ongoing: Ongoing) {
        let count = ongoing.count + 1;
        let (step, at) = if count > self.config.preambles_max {
            (Step::Problem, ongoing.at)
        } else {
            // uniform between 0 and PREAMBLE_BACKOFF
            let backoff = self.stream.unit() * self.config.backoff.as_nanos() as f64;
            let again = ongoing.at + Duration::from_nanos(backoff as u64);
            (Step::PreambleEnd, self.preamble_end(again))
        };
        self.ongoing = Some(Ongoing { count, step, at, ..ongoing });
    }

    fn preamble_end(&self, ready: Instant) -> Instant {
        self.config.occasions.at_or_after(ready) + self.config.preamble
    }
}
