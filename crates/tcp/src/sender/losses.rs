//! How a sender handles losses and ECN marks: it detects them, reduces cwnd, recovers, and undoes
//! spurious reductions.

use airpath_base::{Duration, Flags, Instant, Segment};

use super::recovery::Phase;
use super::scoreboard::{Acked, DUP_THRESH};
use super::timers::Timer;
use super::{Ecn, Sender};
use crate::Reduction;
use crate::congestion::Congestion;
use crate::event::{EventKind, SlowStartExitReason, UndoReason};

/// If timers have ticks, RACK's timer is set for this much longer. Seen with Linux 6.18 at 250 Hz:
/// where 3.2 ms were left, it had not expired 5.65 ms and two ticks later.
const LEAST_REORDERING_WAIT: Duration = Duration::from_millis(2);

impl Sender {
    /// Marks what this acknowledgement shows to be lost; returns the number of segments.
    #[inline]
    pub(super) fn detect_loss(&mut self, now: Instant, duplicate: bool, acked: u32) -> u32 {
        if !self.sack {
            return self.detect_loss_by_duplicates(duplicate, acked);
        }
        if self.recovery.uses_rack() {
            return self.detect_loss_by_time(now);
        }
        self.scoreboard.detect_lost_retransmissions();
        self.scoreboard.detect_loss(self.mss)
    }

    /// Without SACK: RFC 5681 3.2, RFC 6582 3.2.
    fn detect_loss_by_duplicates(&mut self, duplicate: bool, acked: u32) -> u32 {
        let phase = self.recovery.phase();
        if acked > 0 {
            if matches!(phase, Phase::Recovery(point) if self.stream.una() < point) {
                self.recovery.retransmit_at_once();
                return self.scoreboard.acknowledge_partially(acked);
            }
            self.scoreboard.forget_duplicates();
        } else if duplicate
            && !matches!(phase, Phase::Loss(_))
            && self.scoreboard.count_duplicate()
            && !phase.repairs()
        {
            return self.scoreboard.mark_first_lost();
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
            self.timers.stop(Timer::Reordering);
            return 0;
        }
        self.judge_by_time(now)
    }

    fn judge_by_time(&mut self, now: Instant) -> u32 {
        let window = self.reordering_window();
        let (lost, wait) = self.scoreboard.detect_loss_by_time(now, window);
        self.timers.stop(Timer::Reordering);
        if let Some(wait) = wait {
            let exact = self.timers.tick() == Duration::ZERO;
            let more = if exact { Duration::ZERO } else { LEAST_REORDERING_WAIT };
            let at = self.timers.after(now, wait + more);
            debug_assert!(at > now, "a timer for now would come for ever");
            self.timers.set(Timer::Reordering, at);
        }
        lost
    }

    /// RFC 8985 6.2 step 4, RACK_update_reo_wnd().
    fn reordering_window(&self) -> Duration {
        // Seen with Linux 6.18: a recovery is over with the acknowledgement that ends it.
        let phase = self.recovery.phase();
        let recovers = phase.repairs() && phase.end().is_some_and(|end| self.stream.una() < end);
        if !self.scoreboard.reordering_seen()
            && (recovers || self.scoreboard.sacked() >= DUP_THRESH)
        {
            return Duration::ZERO;
        }
        let window = self.recovery.reordering_window(self.rtt.min().unwrap_or_default());
        window.min(self.rtt.srtt().unwrap_or_default())
    }

    pub(super) fn on_reordering_timer(&mut self, now: Instant) {
        if self.detect_loss_by_time(now) > 0 {
            self.tell_losses(now);
            if !self.recovery.phase().repairs() {
                self.enter_recovery(now);
            }
            self.reduce_proportionally(1, 1, false);
        }
    }

    /// Changes the phase after an acknowledgement.
    #[inline]
    pub(super) fn follow_recovery(&mut self, now: Instant, segment: &Segment, acked: &Acked) {
        if !self.recovery.is_settled() {
            self.follow_phase(now, segment, acked);
        }
        // Data lost at the end of a recovery was sent during it: this loss belongs to the next
        // window.
        if self.scoreboard.lost() > 0 && !self.recovery.phase().repairs() {
            self.enter_recovery(now);
        }
    }

    #[cold]
    fn follow_phase(&mut self, now: Instant, segment: &Segment, acked: &Acked) {
        let (una, nxt, phase) = (self.stream.una(), self.stream.nxt(), self.recovery.phase());
        let progress = acked.segments > 0;
        // RFC 6675 5 (A): everything outstanding at its start has arrived.
        let ends = progress && phase.end().is_some_and(|end| una >= end);
        let echo = segment.echo().filter(|_| self.timestamps && progress);
        let spurious = match phase {
            // After the end of the stream there is nothing to undo.
            Phase::Open if self.stream.is_finished() => None,
            Phase::Open => self.recovery.undone_by(None),
            Phase::Reduced(_) => None,
            Phase::Recovery(_) if !ends && self.scoreboard.resent() > 0 => None,
            Phase::Recovery(_) => self.recovery.undone_by(echo),
            Phase::Loss(_) => self.recovery.undone_by(echo).or_else(|| {
                self.recovery.undone_by_frto(acked, una, nxt).then_some(UndoReason::Frto)
            }),
        };
        if let Some(by) = spurious {
            self.take_back(now, by);
        } else if ends {
            self.end_recovery(now);
        }
    }

    /// Loss was inferred: fast recovery begins (RFC 6675 5 (4)).
    #[cold]
    fn enter_recovery(&mut self, now: Instant) {
        self.leave_slow_start_by(now, SlowStartExitReason::Loss);
        let cwnd = self.congestion.segments();
        // cwnd is reduced only once per window of data (RFC 3168 6.1.2).
        if self.recovery.is_open() {
            self.begin_reduction(now);
        }
        let (ssthresh, lost) = (self.ssthresh(), self.scoreboard.lost());
        self.telemetry.record(now, EventKind::RecoveryStart { cwnd, ssthresh, lost });
        self.recovery.recover_until(self.stream.nxt());
        self.timers.stop(Timer::Probe);
        self.reduce_at_once();
    }

    /// Reduces cwnd without a retransmission: for marks, or for a loss that a probe repaired.
    pub(super) fn reduce(&mut self, now: Instant, ecn: bool) {
        let cwnd = self.congestion.segments();
        self.begin_reduction(now);
        self.recovery.confirm();
        let ssthresh = self.ssthresh();
        self.telemetry.record(now, EventKind::Reduction { cwnd, ssthresh, ecn });
        self.recovery.reduce_until(self.stream.nxt());
        self.reduce_at_once();
    }

    fn begin_reduction(&mut self, now: Instant) {
        self.recovery.begin_reduction(self.congestion.window(), self.stream.una());
        let congestion = self.congestion_now(now);
        self.congestion.notify(|control, window| control.on_congestion(&congestion, window));
    }

    fn reduce_at_once(&mut self) {
        if self.recovery.config().reduction == Reduction::Immediate {
            self.congestion.reduce_to_ssthresh();
        }
    }

    /// ssthresh in whole segments.
    fn ssthresh(&self) -> u32 {
        self.congestion.window().ssthresh as u32
    }

    #[cold]
    fn end_recovery(&mut self, now: Instant) {
        let ended = self.recovery.end();
        let proportional = self.recovery.config().reduction == Reduction::Prr;
        if proportional && !matches!(ended, Phase::Loss(_)) {
            self.congestion.reduce_to_ssthresh();
        }
        self.congestion.notify(|control, window| control.on_recovered(now, window));
        if ended.repairs() {
            let cwnd = self.congestion.segments();
            self.telemetry.record(now, EventKind::RecoveryEnd { cwnd });
        }
    }

    /// RFC 4015 3.3: restores the state before the reduction.
    #[cold]
    fn take_back(&mut self, now: Instant, by: UndoReason) {
        let Some((window, phase)) = self.recovery.undo() else { return };
        self.congestion.restore(window);
        let cwnd = self.congestion.segments();
        self.telemetry.record(now, EventKind::Undo { cwnd, by });
        if phase != Phase::Open {
            self.scoreboard.unmark_lost();
            self.rtt.end_back_off();
            self.telemetry.record(now, EventKind::RecoveryEnd { cwnd });
        }
    }

    /// How much an acknowledgement releases in recovery (RFC 9937 5).
    #[inline]
    pub(super) fn reduce_proportionally(&mut self, delivered: u32, lost: u32, advanced: bool) {
        let steers = matches!(self.recovery.phase(), Phase::Recovery(_) | Phase::Reduced(_));
        let proportional = self.recovery.config().reduction == Reduction::Prr;
        if steers && proportional && !self.congestion.is_model_based() && delivered > 0 {
            let (pipe, ssthresh) = (self.scoreboard.pipe(), self.ssthresh());
            let safe = advanced && lost == 0;
            let cwnd = self.recovery.proportional(delivered, (pipe, ssthresh), safe);
            self.congestion.set(f64::from(cwnd));
        }
    }

    /// The peer reported marked packets (RFC 3168 6.1.2); it takes effect once per window.
    #[cold]
    pub(super) fn on_ecn_echo(&mut self, now: Instant) {
        if self.recovery.is_open() {
            self.leave_slow_start_by(now, SlowStartExitReason::Ecn);
            self.reduce(now, true);
            self.ecn = Ecn::ReductionToTell;
        }
    }

    /// The retransmission timer expired (RFC 6298 5.4 to 5.7).
    pub(super) fn time_out(&mut self, now: Instant) {
        let (rto, una) = (self.rtt.rto(), self.stream.una());
        let again = self.recovery.note_timeout(una);
        self.rtt.back_off();
        let backoff = self.rtt.backoff();
        self.telemetry.record(now, EventKind::RetransmissionTimeout { backoff, rto });
        self.leave_slow_start_by(now, SlowStartExitReason::Loss);
        self.cancel_probe();
        self.timers.stop(Timer::Reordering);
        let by_time = self.sack && self.recovery.uses_rack();
        let phase = self.recovery.phase();
        // RFC 5681 3.1: ssthresh changes with the first time-out of a segment. If cwnd has already
        // been reduced for the same window of data, RACK leaves ssthresh as it is.
        let reduces = !again && (!by_time || matches!(phase, Phase::Open | Phase::Loss(_)));
        if reduces {
            self.recovery.begin_undo(self.congestion.window(), una);
        }
        if reduces || self.congestion.is_model_based() {
            let congestion = self.congestion_now(now);
            self.congestion.notify(|control, window| control.on_timeout(&congestion, window));
        }
        if phase == Phase::Open && self.scoreboard.sacked() >= DUP_THRESH {
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
        self.recovery.lose_until(self.stream.nxt(), again);
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
