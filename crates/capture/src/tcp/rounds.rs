//! The first round trips of a stream: how what is in flight grows, and when that ends.

use airpath_base::{Duration, Instant};

use crate::report::SlowStart;

/// Rounds that are kept.
const MOST_ROUNDS: usize = 32;

/// A round that has less than this, times the one before, has not grown.
const GROWTH: f64 = 1.25;

/// What is in flight falls below this share of the most when a sender reduces.
const FALL: f64 = 0.8;

/// BBR drains what waits when its startup is over, to less than this share of the most.
const DRAIN: f64 = 0.55;

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
    /// All before this was acknowledged when the round began, if any was.
    acked: Option<u64>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Round {
    most_in_flight: u64,
    retransmitted: bool,
    limited: bool,
    idle: bool,
    /// Bytes that were acknowledged.
    delivered: u64,
    ended: Duration,
}

impl Round {
    const fn is_empty(&self) -> bool {
        self.most_in_flight == 0 && !self.retransmitted
    }

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
            self.current.delivered = acked - self.acked.unwrap_or(acked).min(acked);
            self.acked = Some(acked);
            // Beside a round in which nothing was sent any other one would have grown: it is part of the
            // next one, if there is one.
            if let Some(empty) = self.rounds.pop_if(|last| last.is_empty()) {
                self.current.delivered += empty.delivered;
                self.current.idle |= empty.idle;
            }
            self.rounds.push(std::mem::take(&mut self.current));
            self.end = highest.max(acked + 1);
        }
    }

    /// `None` without two rounds: nothing can be said of growth.
    pub(super) fn report(&self, is_paced: bool) -> Option<SlowStart> {
        if self.rounds.len() < 2 {
            return None;
        }
        let exit = (0..self.rounds.len()).find_map(|at| self.ends_at(at, is_paced));
        Some(SlowStart {
            rounds_bytes: self.rounds.iter().map(|round| round.most_in_flight).collect(),
            rounds_end_s: self.rounds.iter().map(Round::ended_s).collect(),
            exit_round: exit.map(|(at, _)| at),
            exit_s: exit.map(|(at, _)| self.rounds[at].ended_s()),
            ended_by: exit.map(|(_, why)| why),
        })
    }

    /// Whether growth goes on after a round, before a sender such as BBR takes it to have ended.
    fn goes_on(&self, at: usize) -> bool {
        let peak = self.rounds[at].most_in_flight as f64;
        let flat = (1..=at).rev().take_while(|&at| !self.grew(at)).count();
        let last = (at + FLAT_ROUNDS_OF_BBR).saturating_sub(flat);
        let grown = |round: &Round| round.most_in_flight as f64 >= peak * GROWTH;
        self.rounds.iter().take(last + 1).skip(at + 1).any(grown)
    }

    /// Bytes per second of a round, which is not the first.
    fn rate(&self, at: usize) -> f64 {
        let took = self.rounds[at].ended_s() - self.rounds[at - 1].ended_s();
        self.rounds[at].delivered as f64 / took.max(1e-9)
    }

    /// When a model believes that the rate has ended to grow, if it had so before a round with losses:
    /// after that one, what is acknowledged at once says nothing of the rate.
    fn believes_at(&self, at: usize) -> usize {
        let (mut best, mut grew) = (0.0, 0);
        for round in 1..=at {
            let rate = self.rate(round);
            if rate >= best * GROWTH {
                (best, grew) = (rate, round);
            }
        }
        (grew + FLAT_ROUNDS_OF_BBR).clamp(at, self.rounds.len() - 1)
    }

    /// Growth may have ended before the round of a retransmission: what is outstanding then grows by
    /// the gap alone. And a sender that does not reduce for a loss, as BBR in its startup, may go on.
    /// Where that shows neither way, it is between the two.
    fn growth_ended(&self, at: usize, is_paced: bool) -> usize {
        if is_paced && self.goes_on(at) {
            return self.last_before_fall(at);
        }
        let peak = self.rounds[at].most_in_flight as f64;
        let stays = |at: usize| {
            self.rounds.get(at).is_some_and(|round| round.most_in_flight as f64 >= peak * FALL)
        };
        // What falls for two rounds was reduced.
        if is_paced && (stays(at + 1) || stays(at + 2)) {
            return self.believes_at(at);
        }
        let flat = (1..at).rev().take_while(|&at| !self.grew(at)).count();
        if flat > 0 { at - flat } else { at + usize::from(stays(at + 1) && stays(at + 2)) }
    }

    /// Of growth that goes on after a round: it ends before what is in flight falls, or with the third
    /// round that has not grown.
    fn last_before_fall(&self, at: usize) -> usize {
        let most = |at: usize| self.rounds.get(at).map(|round| round.most_in_flight as f64);
        let mut peak = most(at).unwrap_or_default();
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

    /// Of growth that ended with a round: the last one before a model-based sender drains, if it does
    /// soon. In its startup it takes three rounds to believe that growth has ended, and losses do not
    /// end it (draft-ietf-ccwg-bbr 5.3.1).
    fn last_before_drain(&self, at: usize) -> Option<usize> {
        let mut peak = self.rounds[at].most_in_flight;
        for next in at + 1..=at + FLAT_ROUNDS_OF_BBR + 1 {
            let now = self.rounds.get(next)?.most_in_flight;
            if (now as f64) < peak as f64 * DRAIN {
                return Some(next - 1);
            }
            peak = peak.max(now);
        }
        None
    }

    /// Whether a round, which is not the first, has more than the one before.
    fn grew(&self, at: usize) -> bool {
        let [before, now] = [at - 1, at].map(|at| self.rounds[at].most_in_flight as f64);
        now >= before * GROWTH
    }

    /// The round in which growth had ended and why, if that shows with this one.
    fn ends_at(&self, at: usize, is_paced: bool) -> Option<(usize, &'static str)> {
        let round = self.rounds[at];
        if round.retransmitted {
            let drains = is_paced.then(|| self.last_before_drain(at)).flatten();
            let ended = drains.unwrap_or_else(|| self.growth_ended(at, is_paced));
            return Some((ended, "retransmission"));
        }
        let flat = at >= FLAT_ROUNDS && (at + 1 - FLAT_ROUNDS..=at).all(|at| !self.grew(at));
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
        // Only a model that paces waits for three.
        let goes_on = why == "no-growth" && is_paced && self.goes_on(at);
        Some((if goes_on { self.last_before_fall(at) } else { first }, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of a tenth of a second, of which each delivers what the one before had in flight; the
    /// packets in flight, and the round with the first retransmission.
    fn rounds(packets: &[u64], retransmitted: usize) -> Rounds {
        let mut delivered = 0;
        let rounds = packets.iter().enumerate().map(|(at, &most)| Round {
            most_in_flight: most * 1448,
            retransmitted: at == retransmitted,
            delivered: std::mem::replace(&mut delivered, most * 1448),
            ended: Duration::from_millis(100 * (at as u64 + 1)),
            ..Round::default()
        });
        Rounds { rounds: rounds.collect(), ..Rounds::default() }
    }

    #[test]
    fn a_round_trip_in_which_nothing_is_sent_is_part_of_the_next_round() {
        let mut rounds = Rounds::default();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut now = 0;
        let (mut sent, mut send) = (0, |rounds: &mut Rounds, bytes: u64, acked: u64| {
            now += 100;
            if bytes > 0 {
                rounds.on_sent(at(now), acked + bytes, bytes);
            }
            // First some of it is acknowledged, while nothing else is sent, then the rest.
            rounds.on_acked(at(now + 50), acked + bytes / 2, acked + bytes);
            rounds.on_acked(at(now + 90), acked + bytes, acked + bytes);
        });
        for bytes in [10, 20, 40, 40, 40] {
            send(&mut rounds, bytes, sent);
            sent += bytes;
        }
        let report = rounds.report(false).unwrap();
        assert_eq!(report.rounds_bytes, [10, 20, 40, 40, 40, 0]);
        assert_eq!(report.exit_round, Some(3));
    }

    #[test]
    fn a_model_believes_three_rounds_after_the_rate_grew_last() {
        // What is in flight no more grows after round 3, of which round 4 delivers; it never drains.
        let rounds = rounds(&[10, 20, 40, 80, 90, 70, 85, 70, 80, 75], 4);
        assert_eq!(rounds.report(true).unwrap().exit_round, Some(7));
        // Others reduce for a loss.
        assert_eq!(rounds.report(false).unwrap().exit_round, Some(4));
    }

    #[test]
    fn what_it_has_in_flight_grows_on_before() {
        let rounds = rounds(&[10, 20, 40, 80, 160, 320, 310, 300, 320, 315], 2);
        assert_eq!(rounds.report(true).unwrap().exit_round, Some(8));
    }

    #[test]
    fn a_drain_tells_best() {
        let rounds = rounds(&[10, 20, 40, 80, 160, 150, 160, 60, 80, 75], 4);
        assert_eq!(rounds.report(true).unwrap().exit_round, Some(6));
    }
}
