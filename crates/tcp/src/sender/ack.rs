//! Processes acknowledgements: RTT, scoreboard, recovery, window.

use airpath_base::{Duration, Flags, Instant, Segment, is_planted};

use super::Sender;
use super::recovery::Phase;
use super::scoreboard::{Acked, Arrival};
use super::timers::Timer;
use crate::RtoEstimator;
use crate::congestion::{AckSample, HystartSnapshot, RateSample, SenderSnapshot, State};
use crate::event::EventKind;
use crate::timestamp::timestamp;

impl Sender {
    /// Processes the acknowledgement in `segment`; `peer_window` is its window field, scaled.
    #[inline(always)]
    pub(crate) fn on_ack(&mut self, now: Instant, segment: &Segment, peer_window: u64) {
        self.bursts.resume();
        if segment.ack < self.stream.una() {
            self.on_old_ack(segment);
        } else {
            self.on_recent_ack(now, segment, peer_window);
        }
    }

    /// Processes an acknowledgement of new data, or a repetition of the last one.
    #[inline(never)]
    fn on_recent_ack(&mut self, now: Instant, segment: &Segment, peer_window: u64) {
        let bare = segment.sack.is_empty() && !self.has_ecn_echo(segment);
        if bare && segment.ack > self.stream.una() && self.is_undisturbed() {
            self.on_progress(now, segment, peer_window);
        } else {
            self.on_any_ack(now, segment, peer_window);
        }
    }

    /// Processes any acknowledgement that is not old, by all the rules.
    #[inline(never)]
    fn on_any_ack(&mut self, now: Instant, segment: &Segment, peer_window: u64) {
        let ack = segment.ack;
        let duplicate = ack == self.stream.una()
            && segment.sequence_len() == 0
            && peer_window == self.peer.wnd()
            && !segment.flags.has(Flags::SYN);
        let (advanced, before) = (ack > self.stream.una(), self.peer.wnd());
        self.take_window(segment, peer_window);

        let prior_in_flight = self.scoreboard.pipe();
        let min_rtt = self.rtt.min().unwrap_or_default();
        let arrival = Arrival { now, min_rtt, loss_point: self.recovery.loss_point() };
        let mut acked = self.scoreboard.acknowledge(ack, &arrival);
        let mut dsack = None;
        if self.sack && !segment.sack.is_empty() {
            dsack = dsack_of(segment);
            let blocks = (0..).zip(segment.sack.iter(ack)).skip(usize::from(dsack.is_some()));
            for (place, (start, end)) in blocks {
                self.scoreboard.sack((place, start, end), &arrival, &mut acked);
            }
        }
        let sacked_last = acked.sacked_sent.map(|(_, last)| last);
        let newest = match self.rtt.estimator() {
            RtoEstimator::Linux => sacked_last.or(acked.last_sent),
            RtoEstimator::Rfc6298 => acked.last_sent.or(sacked_last),
        };
        let newest = self.measure(now, segment, &acked, newest.map(|sent| now - sent));

        if advanced {
            self.advance(now, ack);
        } else if self.timers.due(Timer::Retransmission).is_some() && self.overtakes_first(&acked) {
            self.arm_timer(now);
        }
        if self.peer.is_persisting() && (advanced || self.peer.wnd() > before) {
            self.stop_persisting(now, before == 0 && self.peer.wnd() > 0);
        }
        if let Some((start, _)) = dsack {
            self.recovery.on_dsack(start, self.stream.una(), self.stream.nxt());
        }
        let progress = acked.segments > 0;
        self.on_probe_acknowledged(now, duplicate && acked.delivered == 0, dsack.is_some());
        let phase = self.recovery.phase();
        let newly_lost = self.detect_loss(now, duplicate, acked.segments);
        if newly_lost > 0 {
            self.tell_losses(now);
        }
        self.follow_recovery(now, segment, &acked);
        let ecn_echo = self.has_ecn_echo(segment);
        if ecn_echo {
            self.on_ecn_echo(now);
        }
        self.reduce_proportionally(acked.delivered, newly_lost, advanced);
        let min_rtt = self.rtt.min().unwrap_or_default();
        let rate = self.scoreboard.rate_sample(prior_in_flight, min_rtt);
        if !is_planted("keep cwnd") {
            self.grow(now, &Growth { phase, acked, newest, newly_lost, ecn_echo, rate });
        }
        self.end_ack(now, progress);
    }

    /// Advances SND.UNA.
    #[inline(always)]
    pub(super) fn advance(&mut self, now: Instant, ack: u64) {
        self.stream.acknowledge(ack);
        self.timers.note_progress(now);
        // RFC 6298 (5.2), (5.3)
        self.timers.stop(Timer::Retransmission);
        if !self.scoreboard.is_empty() {
            self.arm_timer(now);
        }
    }

    /// Updates what depends on cwnd and on what is acknowledged; `progress`: a segment was
    /// acknowledged.
    #[inline(always)]
    pub(super) fn end_ack(&mut self, now: Instant, progress: bool) {
        self.note_window();
        self.stream.buffer_mut().note_acknowledgement();
        self.update_pacing();
        if self.stream.is_finished() && progress {
            self.limits.count(now, None);
            self.cancel_probe();
            self.telemetry.record(now, EventKind::Finished);
        }
    }

    /// A cwnd that is larger than ever before may enlarge the send buffer.
    #[inline(always)]
    fn note_window(&mut self) {
        if self.congestion.sets_record() {
            self.stream.buffer_mut().note_window(self.congestion.window().cwnd);
        }
    }

    /// Lets the congestion control decide apart from acknowledgements.
    pub(crate) fn decide(&mut self) {
        self.bursts.resume();
        self.congestion.notify(|control, window| control.on_decision(window));
        self.note_window();
        self.update_pacing();
    }

    /// Whether what is SACKed was sent before the first outstanding segment was retransmitted. Seen
    /// with Linux 6.18: that segment then gets its whole time-out again, because data ahead of it
    /// is still arriving.
    #[inline]
    fn overtakes_first(&self, acked: &Acked) -> bool {
        acked.sacked_sent.is_some_and(|(sent, _)| {
            self.rtt.estimator() == RtoEstimator::Linux
                && !self.peer.is_persisting()
                && self.scoreboard.first_sent_at().is_some_and(|first| sent < first)
        })
    }

    /// Updates the peer's window from a segment.
    #[inline]
    pub(crate) fn take_window(&mut self, segment: &Segment, peer_window: u64) {
        self.peer.take(segment, self.stream.una(), peer_window);
    }

    /// Processes an acknowledgement below SND.UNA: only a D-SACK carries information.
    #[cold]
    fn on_old_ack(&mut self, segment: &Segment) {
        if self.sack
            && let Some((start, _)) = dsack_of(segment)
        {
            self.recovery.on_dsack(start, self.stream.una(), self.stream.nxt());
        }
    }

    /// Takes RTT samples. Returns that of the newest segment, or what stands for it.
    #[inline]
    pub(super) fn measure(
        &mut self,
        now: Instant,
        segment: &Segment,
        acked: &Acked,
        mut newest: Option<Duration>,
    ) -> Option<Duration> {
        // RFC 6298 (3): the first segment acknowledged, ACK delay included; timestamps resolve what
        // Karn's rule must leave out (RFC 7323 4.1).
        let sample = match (acked.first_sent, acked.sacked_sent) {
            (Some(sent), _) => Some(now - sent),
            (None, Some((first, _)))
                if acked.segments == 0 && self.rtt.estimator() == RtoEstimator::Linux =>
            {
                Some(now - first)
            }
            (None, _) if acked.segments > 0 => {
                let told = self.rtt_by_timestamp(now, segment);
                if self.timestamp_tick.as_nanos() > 0 {
                    newest = newest.or(told);
                }
                told
            }
            (None, _) => None,
        };
        if let Some(rtt) = newest {
            self.rtt.note_min(rtt);
        }
        if let Some(rtt) = sample {
            self.rtt.sample_in_round(rtt, segment.ack, self.stream.nxt());
            // RFC 6298 5, last note: an acknowledgement of a retransmission alone does not end it.
            self.rtt.end_back_off();
            // What is only SACKed counts for the time-out alone: a capture shows no RTT for it
            // either.
            if acked.segments > 0 {
                self.telemetry.note_rtt(rtt);
            }
        }
        newest
    }

    /// Passes the acknowledgement to the congestion control.
    #[inline(always)]
    pub(super) fn grow(&mut self, now: Instant, growth: &Growth) {
        let Growth { phase, acked, newest, newly_lost, ecn_echo, rate } = *growth;
        // cwnd does not grow during fast recovery, nor with the acknowledgement that ends it.
        let grown_by = match phase {
            _ if self.validation.delivered_grows => {
                // If order means little, SACKed data is progress too.
                let progress = acked.segments > 0 || self.scoreboard.reorders_far(self.mss);
                if progress { acked.delivered } else { 0 }
            }
            Phase::Recovery(_) | Phase::Reduced(_) => 0,
            // After a time-out one acknowledgement may cover much that was SACKed long ago.
            Phase::Loss(_) => acked.fresh,
            Phase::Open => acked.segments,
        };
        let state = self.recovery.phase().state();
        let spoilt = newly_lost > 0 && !self.validation.delivered_grows;
        // Linux passes on the RTT of SACKed segments, whether cwnd grows by them or not.
        let delivered = match self.validation.delivered_grows {
            true => acked.delivered,
            false => grown_by,
        };
        let told = self.congestion.is_model_based()
            || (delivered > 0 && !spoilt && state != State::Recovery);
        if !told {
            return;
        }
        let min_rtt = self.rtt.min().unwrap_or_default();
        let sample = AckSample {
            now,
            una: self.stream.una(),
            nxt: self.stream.nxt(),
            mss: self.mss,
            acked: grown_by,
            delivered: acked.delivered,
            lost: newly_lost,
            ecn_echo,
            rtt: newest,
            srtt: self.rtt.srtt().unwrap_or_default(),
            min_rtt,
            in_flight: self.scoreboard.pipe(),
            cwnd_limited: self.was_cwnd_limited(self.stream.una()),
            paced: self.bursts.is_paced(),
            pacing_wait: self.bursts.wait(now),
            state,
            rate,
        };
        if let Some(exit) = self.congestion.on_ack(&sample) {
            self.leave_slow_start(now, exit);
        }
    }

    /// The state of HyStart, for tables.
    pub(crate) fn hystart(&self) -> Option<HystartSnapshot> {
        self.congestion.control().hystart(&SenderSnapshot {
            window: self.congestion.window(),
            mss: self.mss,
            srtt: self.rtt.srtt().unwrap_or_default(),
            paced: self.bursts.is_paced(),
        })
    }

    /// Time since the timestamp that the peer echoes was sent, if it echoes one (RFC 7323 4.1).
    pub(crate) fn rtt_by_timestamp(&self, now: Instant, segment: &Segment) -> Option<Duration> {
        let echo = segment.echo().filter(|_| self.timestamps)?;
        let elapsed = timestamp(now).wrapping_sub(echo);
        let tick = (self.timestamp_tick.as_nanos() / 1000) as u32;
        if tick == 0 {
            return Some(Duration::from_micros(elapsed.into()));
        }
        // Count from tick to tick.
        let ticks = (elapsed + echo % tick) / tick;
        Some(self.timestamp_tick * u64::from(ticks.max(1)))
    }
}

/// The input of [`Sender::grow`].
pub(super) struct Growth {
    /// Phase before this acknowledgement.
    pub(super) phase: Phase,
    pub(super) acked: Acked,
    pub(super) newest: Option<Duration>,
    pub(super) newly_lost: u32,
    pub(super) ecn_echo: bool,
    /// Delivery rate, for model-based congestion control.
    pub(super) rate: Option<RateSample>,
}

/// The first block, if it reports a duplicate (RFC 2883 4): it lies below the acknowledgement, or
/// within the second block.
fn dsack_of(segment: &Segment) -> Option<(u64, u64)> {
    let mut blocks = segment.sack.iter(segment.ack);
    let (start, end) = blocks.next()?;
    let within = |(other_start, other_end)| start >= other_start && end <= other_end;
    (start < segment.ack || blocks.next().is_some_and(within)).then_some((start, end))
}
