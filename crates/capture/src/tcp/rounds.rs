//! The first round trips of a stream: how what is in flight grows, and when that ends.

use airpath_base::{Duration, Instant};

use crate::report::SlowStart;

/// Rounds that are kept.
const MOST_ROUNDS: usize = 32;

/// A round that has less than this, times the one before, has not grown.
const GROWTH: f64 = 1.25;

/// Rounds without growth that end slow start: HyStart++ also waits before it believes one
/// (RFC 9406 4.2).
const FLAT_ROUNDS: usize = 2;

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
            exit_round: exit.map(|(at, _)| at),
            exit_s: exit.map(|(at, _)| self.rounds[at].ended.as_nanos() as f64 / 1e9),
            ended_by: exit.map(|(_, why)| why),
        })
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
            return Some((at, "retransmission"));
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
