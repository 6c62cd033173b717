//! The first round trips of a stream: how the bytes in flight grow, and when that ends.

use airpath_base::{Duration, Instant};

use crate::report::SlowStart;

/// Most rounds that are kept.
const MOST_ROUNDS: usize = 32;

/// A round with less than this times the bytes in flight of the one before has not grown.
const GROWTH: f64 = 1.25;

/// When a sender reduces, its bytes in flight fall below this share of their maximum.
const FALL: f64 = 0.8;

/// When its startup is over, BBR drains the queue, to less than this share of the maximum in
/// flight.
const DRAIN: f64 = 0.55;

/// Rounds without growth that end slow start: HyStart++ also waits before it concludes that growth
/// has ended (RFC 9406 4.2).
const FLAT_ROUNDS: usize = 2;

/// Rounds without growth after which BBR leaves its startup (draft-ietf-ccwg-bbr 5.3.1.2).
const FLAT_ROUNDS_OF_BBR: usize = 3;

#[derive(Clone, Default, Debug)]
pub(super) struct Rounds {
    began: Option<Instant>,
    rounds: Vec<Round>,
    current: Round,
    /// Whether data was acknowledged.
    has_acks: bool,
    /// The acknowledgement of this byte ends the round.
    end: u64,
    /// Cumulative acknowledgement when the round began, if there was one.
    acked: Option<u64>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Round {
    most_in_flight: u64,
    retransmitted: bool,
    limited: bool,
    idle: bool,
    /// Bytes that were acknowledged during the round.
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
    /// Notes that new data was sent; `in_flight` includes it.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant, highest: u64, in_flight: u64) {
        if self.rounds.len() == MOST_ROUNDS {
            return;
        }
        if self.began.is_none() {
            (self.began, self.end) = (Some(now), highest);
        }
        if !self.has_acks {
            // The initial window: data that was sent before the first acknowledgement.
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

    /// Notes that all bytes before `acked` are acknowledged, of those sent up to `highest`.
    #[inline]
    pub(super) fn on_acked(&mut self, now: Instant, acked: u64, highest: u64) {
        let Some(began) = self.began.filter(|_| self.rounds.len() < MOST_ROUNDS) else { return };
        self.has_acks = true;
        self.current.idle |= acked == highest;
        if acked >= self.end {
            self.current.ended = now.saturating_since(began);
            self.current.delivered = acked - self.acked.unwrap_or(acked).min(acked);
            self.acked = Some(acked);
            // Compared with a round in which nothing was sent any other round would have grown: an
            // empty round becomes part of the next one, if there is one.
            if let Some(empty) = self.rounds.pop_if(|last| last.is_empty()) {
                self.current.delivered += empty.delivered;
                self.current.idle |= empty.idle;
            }
            self.rounds.push(std::mem::take(&mut self.current));
            self.end = highest.max(acked + 1);
        }
    }

    /// Reports the rounds; `None` with fewer than two: growth is then unknown.
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

    /// Whether growth continues after a round, before a sender such as BBR takes it to have ended.
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

    /// The round in which a model concludes that the rate no longer grows, if growth had ended
    /// before a round with losses: after that round, the amount acknowledged at once says nothing
    /// about the rate.
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

    /// The round in which growth ended. It may have ended before the round of a retransmission: the
    /// bytes in flight then grow only because of the gap. A sender that does not reduce after a
    /// loss, such as BBR in its startup, may continue. Where neither is apparent, the result is
    /// between the two.
    fn growth_ended(&self, at: usize, is_paced: bool) -> usize {
        if is_paced && self.goes_on(at) {
            return self.last_before_fall(at);
        }
        let peak = self.rounds[at].most_in_flight as f64;
        let stays = |at: usize| {
            self.rounds.get(at).is_some_and(|round| round.most_in_flight as f64 >= peak * FALL)
        };
        // Bytes in flight that are lower for two rounds mean that the sender reduced.
        if is_paced && (stays(at + 1) || stays(at + 2)) {
            return self.believes_at(at);
        }
        let flat = (1..at).rev().take_while(|&at| !self.grew(at)).count();
        if flat > 0 { at - flat } else { at + usize::from(stays(at + 1) && stays(at + 2)) }
    }

    /// Where growth that continues after a round ends: before the bytes in flight fall, or with the
    /// third round that has not grown.
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

    /// The last round before a model-based sender drains its queue, if that is soon after growth
    /// ended. In its startup such a sender takes three rounds to conclude that growth has ended,
    /// and losses do not end it (draft-ietf-ccwg-bbr 5.3.1).
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

    /// Whether a round, which is not the first, has grown compared with the one before.
    fn grew(&self, at: usize) -> bool {
        let [before, now] = [at - 1, at].map(|at| self.rounds[at].most_in_flight as f64);
        now >= before * GROWTH
    }

    /// The round in which growth had ended and why, if this round shows it.
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
        // Only a sender that models the path and paces waits for three rounds.
        let goes_on = why == "no-growth" && is_paced && self.goes_on(at);
        Some((if goes_on { self.last_before_fall(at) } else { first }, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 100 ms, each of which delivers what the one before had in flight; takes the
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
            // First a part is acknowledged while nothing else is sent, then the rest.
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
        // The bytes in flight stop growing after round 3, and round 4 delivers them; the sender
        // never drains.
        let rounds = rounds(&[10, 20, 40, 80, 90, 70, 85, 70, 80, 75], 4);
        assert_eq!(rounds.report(true).unwrap().exit_round, Some(7));
        // Other senders reduce after a loss.
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
