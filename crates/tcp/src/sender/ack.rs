//! What an acknowledgement does to a sender: RTT, scoreboard, recovery, window.

use airpath_base::{Duration, Event, EventKind, Flags, Instant, Segment, SlowStartExitReason};

use super::{Phase, Sender};
use crate::congestion::{AckSample, State};

impl Sender {
    /// Takes the acknowledgement in `segment`; `peer_window` is its window field, scaled.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Instant, segment: &Segment, peer_window: u64) {
        let ack = segment.ack;
        if ack < self.una {
            return;
        }
        let duplicate = ack == self.una
            && segment.sequence_len() == 0
            && peer_window == self.peer_window
            && !segment.flags.has(Flags::SYN);
        let (advanced, before) = (ack > self.una, self.peer_window);
        // RFC 9293 3.10.7.4, SND.WL1 and SND.WL2: not from an older segment. With the same numbers
        // the larger window is the later one, because a receiver does not shrink it (3.8.6).
        let same = segment.seq == self.window_seq;
        if advanced || segment.seq > self.window_seq || (same && peer_window > before) {
            self.window_seq = segment.seq;
            self.set_peer_window(peer_window);
        }

        let prior_in_flight = self.board.pipe();
        let acked = self.board.acknowledge(ack, now);
        let mut delivered = acked.delivered;
        let mut newest = acked.last_sent;
        if self.sack {
            for (start, end) in segment.sack.iter(ack) {
                let (sacked, sent) = self.board.sack(start, end, now);
                delivered += sacked;
                newest = newest.max(sent);
            }
        }
        // RFC 6298 (3): the first segment acknowledged, delayed acknowledgement included;
        // timestamps resolve what Karn's rule must leave out (RFC 7323 4.1).
        let sample = match acked.first_sent {
            Some(sent) => Some(now - sent),
            None if acked.segments > 0 => self.rtt_by_timestamp(now, segment),
            None => None,
        };
        if let Some(rtt) = sample {
            self.rtt.sample(rtt);
            // RFC 6298 5, last note: a retransmission's acknowledgement alone does not end it.
            self.rtt.end_back_off();
            self.last_rtt = Some(rtt);
        }

        if advanced {
            self.una = ack;
            // RFC 6298 (5.2), (5.3)
            self.timer = None;
            if !self.board.is_empty() {
                self.arm_timer(now);
            }
        }
        if self.persisting && (advanced || self.peer_window > before) {
            self.stop_persisting(now, before == 0 && self.peer_window > 0);
        }
        let progress = acked.segments > 0;
        let phase = self.phase;
        let newly_lost = self.detect_loss(duplicate, acked.segments);
        self.follow_recovery(now, progress);

        // What came during fast recovery does not grow cwnd, nor does its last acknowledgement.
        let grown_by = match phase {
            Phase::Recovery(_) => 0,
            // After a time-out one acknowledgement may cover much that was SACKed long ago.
            Phase::Loss(_) => acked.delivered,
            Phase::Open => acked.segments,
        };
        let may_grow = grown_by > 0 && newly_lost == 0 && !matches!(self.phase, Phase::Recovery(_));
        if may_grow || self.model_based {
            let min_rtt = self.rtt.min().unwrap_or_default();
            let sample = AckSample {
                now,
                una: self.una,
                nxt: self.nxt,
                mss: self.mss,
                acked: grown_by,
                delivered,
                lost: newly_lost,
                ecn_echo: segment.flags.has(Flags::ECE),
                rtt: newest.map(|sent| now - sent),
                srtt: self.rtt.srtt().unwrap_or_default(),
                min_rtt,
                in_flight: self.board.pipe(),
                cwnd_limited: ack <= self.cwnd_limited_until,
                paced: false,
                state: match self.phase {
                    Phase::Open => State::Open,
                    Phase::Recovery(_) => State::Recovery,
                    Phase::Loss(_) => State::Loss,
                },
                rate: self.board.rate_sample(prior_in_flight, min_rtt),
            };
            if let Some(exit) = self.congestion.on_ack(&sample, &mut self.window) {
                self.leave_slow_start(now, exit.reason, exit.round_rtt);
            } else if !self.model_based && !self.window.in_slow_start() {
                self.leave_slow_start(now, SlowStartExitReason::Ssthresh, None);
            }
        }
        if self.is_finished() && progress {
            self.account_limit(now, None);
            self.events.push_back(Event { at: now, kind: EventKind::Finished });
        }
    }

    /// Time since the peer's echo of a timestamp was sent, if there is one (RFC 7323 4.1).
    pub(crate) fn rtt_by_timestamp(&self, now: Instant, segment: &Segment) -> Option<Duration> {
        let elapsed = timestamp(now).wrapping_sub(segment.ts_ecr);
        (self.timestamps && segment.ts_ecr != 0).then(|| Duration::from_micros(u64::from(elapsed)))
    }

    /// Marks what this acknowledgement shows to be lost; returns how many segments.
    #[inline]
    fn detect_loss(&mut self, duplicate: bool, acked: u32) -> u32 {
        if self.sack {
            self.board.detect_lost_retransmissions();
            return self.board.detect_loss(self.mss);
        }
        // Without SACK: RFC 5681 3.2, RFC 6582 3.2.
        if acked > 0 {
            let partial = matches!(self.phase, Phase::Recovery(point) if self.una < point);
            if partial {
                // RFC 6582 3.2 (5): all of these but the retransmission were duplicates before.
                self.board.duplicates = self.board.duplicates.saturating_sub(acked - 1);
                self.board.rewind_resend();
                self.fast_retransmit = true;
                return u32::from(self.board.mark_first_lost());
            }
            self.board.duplicates = 0;
        } else if duplicate && !self.board.is_empty() && !matches!(self.phase, Phase::Loss(_)) {
            let limit = self.board.flight().saturating_sub(1);
            self.board.duplicates = (self.board.duplicates + 1).min(limit);
            if self.board.duplicates == 3 && self.phase == Phase::Open {
                return u32::from(self.board.mark_first_lost());
            }
        }
        0
    }

    /// Moves between RFC 5681's states.
    #[inline]
    fn follow_recovery(&mut self, now: Instant, progress: bool) {
        match self.phase {
            Phase::Open => {}
            Phase::Recovery(point) | Phase::Loss(point) => {
                if !progress || self.una < point {
                    return;
                }
                // RFC 6675 5 (A): everything outstanding at its start has arrived.
                let cwnd = self.window.segments();
                self.events.push_back(Event { at: now, kind: EventKind::RecoveryEnd { cwnd } });
                self.phase = Phase::Open;
                self.congestion.on_recovered(now, &mut self.window);
            }
        }
        // What is lost at the end of a recovery was sent during it: the next window's loss.
        if self.board.lost() > 0 {
            self.leave_slow_start(now, SlowStartExitReason::Loss, None);
            let cwnd = self.window.segments();
            let congestion = self.congestion_now(now);
            // RFC 6675 5 (4.2)
            self.congestion.on_congestion(&congestion, &mut self.window);
            if !self.model_based {
                self.window.cwnd = self.window.ssthresh;
            }
            let kind = EventKind::RecoveryStart {
                cwnd,
                ssthresh: self.window.ssthresh as u32,
                lost: self.board.lost(),
            };
            self.events.push_back(Event { at: now, kind });
            self.phase = Phase::Recovery(self.nxt);
            self.fast_retransmit = true;
        }
    }
}

/// A timestamp clock of 1 µs (RFC 7323 5.4 allows 1 ms to 1 s; only differences matter here).
/// Never 0, which stands for "no timestamp".
pub(crate) fn timestamp(now: Instant) -> u32 {
    (now.as_nanos() / 1_000) as u32 | 1
}
