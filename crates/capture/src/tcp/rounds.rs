//! The first round trips of a stream: how what is in flight grows, and when that ends.

use airpath_base::{Duration, Instant};

use crate::report::SlowStart;

/// Rounds that are kept.
const MOST_ROUNDS: usize = 32;

/// A round that has less than this, times the one before, has not grown.
const GROWTH: f64 = 1.25;

/// What is in flight in the two rounds after one with a retransmission, times that, if its sender
/// does not reduce for a loss; and below which share of the most it falls when such growth ends.
const WENT_ON: f64 = 1.01;
const FALL: f64 = 0.8;

/// Rounds without growth that end slow start: HyStart++ also waits before it believes one
/// (RFC 9406 4.2).
const FLAT_ROUNDS: usize = 2;

/// After so many BBR leaves its startup (draft-ietf-ccwg-bbr 5.3.1.2).
const FLAT_ROUNDS_OF_BBR: usize = 3;

#[derive(Clone, Default, Debug)]
pub(super) struct Rounds {
    began: Option<Instant>,
    rounds: Vec<Round>,
    current: Round,
    /// Data was acknowledged.
    has_acks: bool,
    /// What ends the round: the acknowledgement of this byte.
    end: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Round {
    most_in_flight: u64,
    retransmitted: bool,
    limited: bool,
    idle: bool,
    ended: Duration,
}

impl Round {
    fn ended_s(&self) -> f64 {
        self.ended.as_nanos() as f64 / 1e9
    }
}

impl Rounds {
    /// New data was sent; so much is in flight with it.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant, highest: u64, in_flight: u64) {
        if self.rounds.len() == MOST_ROUNDS {
            return;
        }
        if self.began.is_none() {
            (self.began, self.end) = (Some(now), highest);
        }
        if !self.has_acks {
            // The initial window: what was sent before the first acknowledgement.
            self.end = highest;
        }
        self.current.most_in_flight = self.current.most_in_flight.max(in_flight);
    }

    pub(super) fn on_retransmitted(&mut self) {
        self.current.retransmitted = true;
    }

    pub(super) fn on_window_limited(&mut self) {
        self.current.limited = true;
    }

    /// All before `acked` is acknowledged, of what was sent up to `highest`.
    #[inline]
    pub(super) fn on_acked(&mut self, now: Instant, acked: u64, highest: u64) {
        let Some(began) = self.began.filter(|_| self.rounds.len() < MOST_ROUNDS) else { return };
        self.has_acks = true;
        self.current.idle |= acked == highest;
        if acked >= self.end {
            self.current.ended = now.saturating_since(began);
            self.rounds.push(std::mem::take(&mut self.current));
            self.end = highest.max(acked + 1);
        }
    }

    /// `None` without two rounds: nothing can be said of growth.
    pub(super) fn report(&self) -> Option<SlowStart> {
        if self.rounds.len() < 2 {
            return None;
        }
        let exit = (0..self.rounds.len()).find_map(|at| self.ends_at(at));
        Some(SlowStart {
            rounds_bytes: self.rounds.iter().map(|round| round.most_in_flight).collect(),
            rounds_end_s: self.rounds.iter().map(Round::ended_s).collect(),
            exit_round: exit.map(|(at, _)| at),
            exit_s: exit.map(|(at, _)| self.rounds[at].ended_s()),
            ended_by: exit.map(|(_, why)| why),
        })
    }

    /// A sender that reduces for a loss has its most in flight in the round of the retransmission. One
    /// that does not, as BBR in its startup, goes on: growth then ends before what is in flight falls,
    /// or with the third round that has not grown.
    fn fall_after(&self, at: usize) -> usize {
        let most = |at: usize| self.rounds.get(at).map(|round| round.most_in_flight as f64);
        let mut peak = most(at).unwrap_or_default();
        if ![at + 1, at + 2].into_iter().flat_map(most).any(|most| most > peak * WENT_ON) {
            return at;
        }
        let (mut flat, mut here) = (0, at);
        while let Some(now) = most(here + 1) {
            let falls = |now: f64| now < peak * FALL;
            if falls(now) && most(here + 2).is_none_or(falls) {
                return here;
            }
            here += 1;
            if now >= peak * GROWTH {
                (peak, flat) = (now, 0);
            } else {
                flat += 1;
            }
            if flat == FLAT_ROUNDS_OF_BBR {
                return here;
            }
        }
        here
    }

    /// The round in which growth had ended and why, if that shows with this one.
    fn ends_at(&self, at: usize) -> Option<(usize, &'static str)> {
        let grew = |at: usize| {
            let (before, now) =
                (self.rounds[at - 1].most_in_flight, self.rounds[at].most_in_flight);
            now as f64 >= before as f64 * GROWTH
        };
        let round = self.rounds[at];
        if round.retransmitted {
            return Some((self.fall_after(at), "retransmission"));
        }
        let flat = at >= FLAT_ROUNDS && (at + 1 - FLAT_ROUNDS..=at).all(|at| !grew(at));
        if !flat {
            return None;
        }
        let first = at + 1 - FLAT_ROUNDS;
        let rounds = &self.rounds[first..=at];
        let why = if rounds.iter().any(|round| round.limited) {
            "receive-window"
        } else if rounds.iter().any(|round| round.idle) {
            "sender-idle"
        } else {
            "no-growth"
        };
        Some((first, why))
    }
}
