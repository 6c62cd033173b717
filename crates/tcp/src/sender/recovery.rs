//! Recovery: its phases, how cwnd is reduced, and how a spurious reduction is undone.

use airpath_base::{Duration, Flags, Instant, Segment};

use super::scoreboard::{Acked, DUP_THRESH};
use super::{Ecn, Frto, Sender};
use crate::congestion::{Congestion, Window};
use crate::event::{EventKind, SlowStartExitReason, UndoReason};
use crate::timestamp::{AFTER_TICK, timestamp};
use crate::{LossDetection, Reduction};

/// The states of a sender as in RFC 5681.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Open,
    /// cwnd is being reduced without a loss, until this offset is acknowledged (RFC 3168 6.1.2).
    Reduced(u64),
    /// Fast recovery until this offset is acknowledged (RFC 6675 5).
    Recovery(u64),
    /// Recovery after a retransmission time-out, until this offset is acknowledged.
    Loss(u64),
}

/// Proportional rate reduction (RFC 9937).
#[derive(Debug, Default)]
pub(super) struct Prr {
    /// cwnd at the start (RecoverFS).
    prior: u32,
    /// prr_delivered, prr_out
    delivered: u32,
    pub(super) sent: u32,
}

/// RACK's reordering window (RFC 8985 6.2 step 4).
#[derive(Debug)]
pub(super) struct Rack {
    /// When the reordering timer expires.
    pub(super) due: Option<Instant>,
    /// RACK.reo_wnd_mult, RACK.reo_wnd_persist, RACK.dsack_round
    multiplier: u64,
    persist: u32,
    round: u64,
}

/// What is needed to undo a reduction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// cwnd and ssthresh before it.
    window: Window,
    /// First byte not acknowledged when the reduction began.
    from: u64,
    /// Timestamp of the first retransmission.
    first_at: Option<Instant>,
    /// Number of retransmissions, and how many of them were reported as duplicates.
    retransmissions: u32,
    duplicates: u32,
}

/// Recoveries for which an enlarged reordering window is kept (RFC 8985 6.2 step 4).
const PERSIST: u32 = 16;

/// If timers have ticks, RACK's timer is set for this much longer. Seen with Linux 6.18 at 250 Hz:
/// where 3.2 ms were left, it had not expired 5.65 ms and two ticks later.
const LEAST_REORDERING_WAIT: Duration = Duration::from_millis(2);

impl Default for Rack {
    fn default() -> Self {
        Self { due: None, multiplier: 1, persist: PERSIST, round: 0 }
    }
}

impl Undo {
    pub(super) fn note_retransmission(&mut self, now: Instant, seq: u64) {
        if seq >= self.from {
            self.first_at.get_or_insert(now);
            self.retransmissions += 1;
        }
    }
}

impl Sender {
    /// Marks what this acknowledgement shows to be lost; returns the number of segments.
    #[inline]
    pub(super) fn detect_loss(&mut self, now: Instant, duplicate: bool, acked: u32) -> u32 {
        if self.sack {
            return match self.recovery.detection {
                LossDetection::Sack => {
                    self.scoreboard.detect_lost_retransmissions();
                    self.scoreboard.detect_loss(self.mss)
                }
                LossDetection::Rack => self.detect_loss_by_time(now),
            };
        }
        // Without SACK: RFC 5681 3.2, RFC 6582 3.2.
        if acked > 0 {
            let partial = matches!(self.phase, Phase::Recovery(point) if self.stream.una() < point);
            if partial {
                // RFC 6582 3.2 (5): all of these except the retransmission were duplicates before.
                self.scoreboard.duplicates = self.scoreboard.duplicates.saturating_sub(acked - 1);
                self.scoreboard.rewind_resend();
                self.fast_retransmit = true;
                return u32::from(self.scoreboard.mark_first_lost());
            }
            self.scoreboard.duplicates = 0;
        } else if duplicate && !self.scoreboard.is_empty() && !matches!(self.phase, Phase::Loss(_))
        {
            let limit = self.scoreboard.flight().saturating_sub(1);
            self.scoreboard.duplicates = (self.scoreboard.duplicates + 1).min(limit);
            if self.scoreboard.duplicates == DUP_THRESH
                && matches!(self.phase, Phase::Open | Phase::Reduced(_))
            {
                return u32::from(self.scoreboard.mark_first_lost());
            }
        }
        0
    }

    /// Reports each loss to a model-based congestion control.
    #[inline]
    pub(super) fn tell_losses(&mut self, now: Instant) {
        while let Some(lost) = self.scoreboard.next_lost(now) {
            self.congestion.notify(|control, window| control.on_lost(&lost, window));
        }
    }

    /// RFC 8985 6.2 step 5, and its timer.
    #[inline]
    fn detect_loss_by_time(&mut self, now: Instant) -> u32 {
        if self.scoreboard.is_in_order() {
            self.rack.due = None;
            return 0;
        }
        self.judge_by_time(now)
    }

    fn judge_by_time(&mut self, now: Instant) -> u32 {
        let window = self.reordering_window();
        let (lost, wait) = self.scoreboard.detect_loss_by_time(now, window);
        let more = match self.recovery.timer_tick {
            Duration::ZERO => Duration::ZERO,
            _ => LEAST_REORDERING_WAIT,
        };
        self.rack.due = wait.map(|wait| self.after_ticks(now, wait + more));
        debug_assert!(
            self.rack.due.is_none_or(|at| at > now),
            "a timer for now would come for ever"
        );
        lost
    }

    /// When a timer of `wait` expires. Seen with Linux 6.18 at 250 Hz: where half a millisecond was
    /// left, 4.2 to 5.5 ms after the acknowledgement, never sooner; and time-outs of 260 ms were up
    /// to 32 ms late, all of them some multiple of 32 ms apart.
    pub(crate) fn after_ticks(&self, now: Instant, wait: Duration) -> Instant {
        let tick = self.recovery.timer_tick.as_nanos();
        if tick == 0 {
            return now + wait;
        }
        let ticks = wait.as_nanos().div_ceil(tick);
        // The longer the wait, the coarser the step.
        let step = match ticks {
            ..63 => 1,
            63..504 => 8,
            _ => 64,
        };
        // One more, because the elapsed part of the current step is ignored.
        let begun = AFTER_TICK.as_nanos();
        let steps = ((now.as_nanos() + begun) / tick + ticks) / step + 1;
        Instant::from_nanos(steps * step * tick - begun)
    }

    /// RFC 8985 6.2 step 4, RACK_update_reo_wnd().
    fn reordering_window(&self) -> Duration {
        // Seen with Linux 6.18: a recovery is over with the acknowledgement that ends it.
        let recovers = match self.phase {
            Phase::Recovery(point) | Phase::Loss(point) => self.stream.una() < point,
            Phase::Open | Phase::Reduced(_) => false,
        };
        if !self.scoreboard.reordering_seen()
            && (recovers || self.scoreboard.sacked() >= DUP_THRESH)
        {
            return Duration::ZERO;
        }
        let window = self.rtt.min().unwrap_or_default() * self.rack.multiplier / 4;
        window.min(self.rtt.srtt().unwrap_or_default())
    }

    pub(super) fn on_reordering_timer(&mut self, now: Instant) {
        self.rack.due = None;
        if self.detect_loss_by_time(now) > 0 {
            self.tell_losses(now);
            if !matches!(self.phase, Phase::Recovery(_) | Phase::Loss(_)) {
                self.enter_recovery(now);
            }
            self.reduce_proportionally(1, 1, false);
        }
    }

    /// The peer reported `[start, end)` as a duplicate (RFC 2883).
    #[cold]
    pub(super) fn on_dsack(&mut self, start: u64) {
        // RFC 8985 6.2 step 4: once per round trip.
        if self.stream.una() >= self.rack.round {
            self.rack.round = self.stream.nxt();
            self.rack.multiplier += 1;
            self.rack.persist = PERSIST;
        }
        if let Some(undo) = &mut self.undo
            && start >= undo.from
        {
            undo.duplicates += 1;
        }
    }

    /// Changes the phase after an acknowledgement.
    #[inline]
    pub(super) fn follow_recovery(&mut self, now: Instant, segment: &Segment, acked: &Acked) {
        if self.phase != Phase::Open || self.undo.is_some() {
            self.follow_phase(now, segment, acked);
        }
        // Data lost at the end of a recovery was sent during it: this loss belongs to the next
        // window.
        if self.scoreboard.lost() > 0 && matches!(self.phase, Phase::Open | Phase::Reduced(_)) {
            self.enter_recovery(now);
        }
    }

    #[cold]
    fn follow_phase(&mut self, now: Instant, segment: &Segment, acked: &Acked) {
        let progress = acked.segments > 0;
        match self.phase {
            // After the end of the stream there is nothing to undo.
            Phase::Open => {
                if !self.stream.is_finished()
                    && let Some(by) = self.undone_by(segment, false)
                {
                    self.take_back(now, by);
                }
            }
            Phase::Reduced(point) => {
                if progress && self.stream.una() >= point {
                    self.end_recovery(now);
                }
            }
            Phase::Recovery(point) => {
                let whole = progress && self.stream.una() >= point;
                if (whole || self.scoreboard.resent() == 0)
                    && let Some(by) = self.undone_by(segment, progress)
                {
                    self.take_back(now, by);
                } else if whole {
                    // RFC 6675 5 (A): everything outstanding at its start has arrived.
                    self.end_recovery(now);
                }
            }
            Phase::Loss(point) => {
                if let Some(by) = self.undone_by(segment, progress) {
                    self.take_back(now, by);
                } else if self.spurious_by_frto(acked) && self.undo.is_some() {
                    self.take_back(now, UndoReason::Frto);
                } else if progress && self.stream.una() >= point {
                    self.end_recovery(now);
                }
            }
        }
    }

    /// F-RTO (RFC 5682 3.1, with SACK): new data is sent after the first retransmission; if
    /// something then arrives that was sent only once, the time-out was spurious.
    fn spurious_by_frto(&mut self, acked: &Acked) -> bool {
        if self.frto == Frto::Off {
            return false;
        }
        self.frto = Frto::Waiting;
        if acked.original {
            return true;
        }
        let Phase::Loss(point) = self.phase else { return false };
        let sent_new = self.stream.nxt() > point;
        self.frto = if sent_new || acked.segments == 0 || self.stream.una() >= point {
            // New data was already sent, or this is a duplicate: the loss was real (3a).
            Frto::Off
        } else {
            Frto::NewFirst
        };
        false
    }

    /// Loss was inferred: fast recovery begins (RFC 6675 5 (4)).
    #[cold]
    fn enter_recovery(&mut self, now: Instant) {
        self.leave_slow_start_by(now, SlowStartExitReason::Loss);
        let cwnd = self.congestion.segments();
        // cwnd is reduced only once per window of data (RFC 3168 6.1.2).
        if self.phase == Phase::Open {
            self.begin_reduction(now);
        }
        let kind = EventKind::RecoveryStart {
            cwnd,
            ssthresh: self.congestion.window().ssthresh as u32,
            lost: self.scoreboard.lost(),
        };
        self.telemetry.record(now, kind);
        self.phase = Phase::Recovery(self.stream.nxt());
        self.fast_retransmit = true;
        self.tail_probe.due = None;
        if self.recovery.reduction == Reduction::Immediate {
            self.congestion.reduce_to_ssthresh();
        }
    }

    /// Reduces cwnd without a retransmission: for marks, or for a loss that a probe repaired.
    pub(super) fn reduce(&mut self, now: Instant, ecn: bool) {
        let cwnd = self.congestion.segments();
        self.begin_reduction(now);
        self.undo = None;
        let ssthresh = self.congestion.window().ssthresh as u32;
        self.telemetry.record(now, EventKind::Reduction { cwnd, ssthresh, ecn });
        self.phase = Phase::Reduced(self.stream.nxt());
        if self.recovery.reduction == Reduction::Immediate {
            self.congestion.reduce_to_ssthresh();
        }
    }

    fn begin_reduction(&mut self, now: Instant) {
        self.prr = Prr { prior: self.congestion.segments(), delivered: 0, sent: 0 };
        self.begin_undo();
        let congestion = self.congestion_now(now);
        self.congestion.notify(|control, window| control.on_congestion(&congestion, window));
    }

    fn begin_undo(&mut self) {
        self.undo =
            (self.recovery.undo_by_timestamps || self.recovery.undo_by_dsack || self.recovery.frto)
                .then_some(Undo {
                    window: self.congestion.window(),
                    from: self.stream.una(),
                    first_at: None,
                    retransmissions: 0,
                    duplicates: 0,
                });
    }

    #[cold]
    fn end_recovery(&mut self, now: Instant) {
        let reduced = self.phase;
        self.phase = Phase::Open;
        self.frto = Frto::Off;
        if self.recovery.reduction == Reduction::Prr && !matches!(reduced, Phase::Loss(_)) {
            self.congestion.reduce_to_ssthresh();
        }
        self.end_reordering_round();
        self.congestion.notify(|control, window| control.on_recovered(now, window));
        if !matches!(reduced, Phase::Reduced(_)) {
            let cwnd = self.congestion.segments();
            self.telemetry.record(now, EventKind::RecoveryEnd { cwnd });
        }
    }

    /// RFC 8985 6.2 step 4: after 16 recoveries the window is reset.
    fn end_reordering_round(&mut self) {
        self.rack.persist = self.rack.persist.saturating_sub(1);
        if self.rack.persist == 0 {
            self.rack.multiplier = 1;
        }
    }

    /// Whether the last reduction was spurious, and what shows it.
    fn undone_by(&self, segment: &Segment, progress: bool) -> Option<UndoReason> {
        let undo = self.undo?;
        let config = &self.recovery;
        // RFC 3522 3.2 (5): what is acknowledged was sent before the first retransmission.
        if config.undo_by_timestamps
            && self.timestamps
            && progress
            && let Some(echo) = segment.echo()
        {
            let before = |at| (echo.wrapping_sub(timestamp(at)) as i32) < 0;
            if undo.first_at.is_some_and(before) {
                return Some(UndoReason::Timestamp);
            }
        }
        let all = undo.retransmissions > 0 && undo.duplicates >= undo.retransmissions;
        (config.undo_by_dsack && all).then_some(UndoReason::Dsack)
    }

    /// RFC 4015 3.3: restores the state before the reduction.
    #[cold]
    fn take_back(&mut self, now: Instant, by: UndoReason) {
        let Some(undo) = self.undo.take() else { return };
        self.congestion.restore(undo.window);
        let cwnd = self.congestion.segments();
        self.telemetry.record(now, EventKind::Undo { cwnd, by });
        if self.phase == Phase::Open {
            return;
        }
        self.scoreboard.unmark_lost();
        self.rtt.end_back_off();
        self.frto = Frto::Off;
        self.fast_retransmit = false;
        self.phase = Phase::Open;
        self.telemetry.record(now, EventKind::RecoveryEnd { cwnd });
    }

    /// How much an acknowledgement releases in recovery (RFC 9937 5).
    #[inline]
    pub(super) fn reduce_proportionally(&mut self, delivered: u32, lost: u32, advanced: bool) {
        let steers = matches!(self.phase, Phase::Recovery(_) | Phase::Reduced(_));
        let proportional =
            self.recovery.reduction == Reduction::Prr && !self.congestion.is_model_based();
        if steers && proportional && delivered > 0 {
            self.reduce_by(delivered, lost, advanced);
        }
    }

    #[cold]
    fn reduce_by(&mut self, delivered: u32, lost: u32, advanced: bool) {
        self.prr.delivered += delivered;
        let (pipe, ssthresh) = (self.scoreboard.pipe(), self.congestion.window().ssthresh as u32);
        let (received, sent) = (u64::from(self.prr.delivered), u64::from(self.prr.sent));
        let allowed = if pipe > ssthresh {
            // In proportion, so that cwnd is ssthresh once everything has been delivered.
            (received * u64::from(ssthresh))
                .div_ceil(u64::from(self.prr.prior.max(1)))
                .saturating_sub(sent)
        } else {
            // Packet conservation, and one more while nothing else is lost (SafeACK).
            let safe = u64::from(advanced && lost == 0);
            let limit = received.saturating_sub(sent).max(u64::from(delivered)) + safe;
            limit.min(u64::from(ssthresh - pipe))
        };
        let allowed = allowed.max(u64::from(self.prr.sent == 0)) as u32;
        self.congestion.set(f64::from((pipe + allowed).max(1)));
    }

    /// The peer reported marked packets (RFC 3168 6.1.2); it takes effect once per window.
    #[cold]
    pub(super) fn on_ecn_echo(&mut self, now: Instant) {
        if self.phase == Phase::Open {
            self.leave_slow_start_by(now, SlowStartExitReason::Ecn);
            self.reduce(now, true);
            self.ecn = Ecn::ReductionToTell;
        }
    }

    /// The retransmission timer expired (RFC 6298 5.4 to 5.7).
    pub(super) fn time_out(&mut self, now: Instant) {
        let rto = self.rtt.rto();
        let again = self.timed_out.replace(self.stream.una()) == Some(self.stream.una());
        self.rtt.back_off();
        let backoff = self.rtt.backoff();
        self.telemetry.record(now, EventKind::RetransmissionTimeout { backoff, rto });
        self.leave_slow_start_by(now, SlowStartExitReason::Loss);
        self.cancel_probe();
        self.rack.due = None;
        let by_time = self.sack && self.recovery.detection == LossDetection::Rack;
        let was_open = self.phase == Phase::Open;
        // RFC 5681 3.1: ssthresh changes with the first time-out of a segment. If cwnd has already
        // been reduced for the same window of data, RACK leaves ssthresh as it is.
        if !again && (was_open || !by_time || matches!(self.phase, Phase::Loss(_))) {
            self.begin_undo();
            self.tell_timeout(now);
        } else if self.congestion.is_model_based() {
            self.tell_timeout(now);
        }
        if was_open && self.scoreboard.sacked() >= DUP_THRESH {
            self.scoreboard.forget_reordering();
        }
        let window = self.reordering_window();
        self.scoreboard.mark_lost_by_timeout(now, by_time.then_some(window));
        self.tell_losses(now);
        // What was sent shortly before is still in flight, and one more segment may be
        // (draft-ietf-ccwg-bbr-06 5.6.4.4, BBROnEnterRTO(), for all loss detection by time).
        let least = self.congestion.control().loss_window();
        let conserving = f64::from(self.scoreboard.pipe() + 1);
        self.congestion.set(if by_time { least.max(conserving) } else { least });
        self.phase = Phase::Loss(self.stream.nxt());
        let asks = self.recovery.frto && (was_open || again);
        self.frto = if asks { Frto::Waiting } else { Frto::Off };
    }

    fn tell_timeout(&mut self, now: Instant) {
        let congestion = self.congestion_now(now);
        self.congestion.notify(|control, window| control.on_timeout(&congestion, window));
    }

    /// The input of a congestion event now. FlightSize is RFC 5681's, without what limited transmit
    /// sent above cwnd (3.2 (2)).
    fn congestion_now(&self, now: Instant) -> Congestion {
        Congestion { now, flight: self.scoreboard.flight().min(self.congestion.segments()) }
    }

    /// Whether the acknowledgement reports marked packets.
    pub(super) fn has_ecn_echo(&self, segment: &Segment) -> bool {
        self.ecn != Ecn::NotNegotiated && segment.flags.has(Flags::ECE)
    }
}
