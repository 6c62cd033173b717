//! Tail loss probes (RFC 8985 7): a loss at the end of a flight is found within two RTTs.

use airpath_base::{Duration, Instant};

use super::timers::Timer;
use super::{Piece, Sender};
use crate::event::{EventKind, SlowStartExitReason};

/// Longest ACK delay that a single segment may meet (RFC 8985 7.2, WCDelAckT).
const WORST_DELAYED_ACK: Duration = Duration::from_millis(200);

/// The probe that is due or outstanding; never both.
#[derive(Debug, Default)]
pub(super) enum TailProbe {
    #[default]
    None,
    /// The probe timer expired: a probe is sent next.
    Pending,
    /// A probe was sent and is not acknowledged: `TLP.end_seq`, `TLP.is_retrans`.
    Outstanding { end: u64, is_retransmission: bool },
}

impl TailProbe {
    /// Whether no probe is outstanding.
    pub(super) const fn is_quiet(&self) -> bool {
        !matches!(self, Self::Outstanding { .. })
    }

    /// Whether a probe is sent next.
    pub(super) const fn is_pending(&self) -> bool {
        matches!(self, Self::Pending)
    }
}

impl Sender {
    /// RFC 8985 7.2, TLP_calc_PTO(): called after sending, and after progress.
    pub(super) fn schedule_probe(&mut self, now: Instant) {
        if !self.recovery.config().tail_loss_probe {
            return;
        }
        self.timers.stop(Timer::Probe);
        let quiet = self.scoreboard.sacked() == 0 && !self.scoreboard.waits_to_resend();
        if !self.sack
            || self.recovery.phase().repairs()
            || !quiet
            || self.peer.is_persisting()
            || self.scoreboard.is_empty()
            || !matches!(self.tail_probe, TailProbe::None)
        {
            return;
        }
        let mut wait = self.rtt.srtt().map_or(Duration::from_secs(1), |srtt| srtt * 2);
        if self.scoreboard.flight() == 1 {
            wait += WORST_DELAYED_ACK;
        } else {
            // Seen with Linux 6.18 at 250 Hz: after 88 ms where two round trips took 78.8.
            wait += self.timers.tick() * 2;
        }
        self.timers.start_probe(now, wait);
    }

    pub(super) fn on_probe_timer(&mut self) {
        if !self.scoreboard.is_empty() {
            self.tail_probe = TailProbe::Pending;
        }
    }

    /// RFC 8985 7.3, TLP_send_probe(): new data if there is any, otherwise the last segment again.
    /// If that segment has already been retransmitted, it is left to the retransmission timer.
    #[cold]
    pub(super) fn send_probe(&mut self, now: Instant) -> Option<Piece> {
        let piece = match self.new_piece(now, u32::MAX, 0) {
            Ok(piece) => Some(self.send_new(now, piece)),
            Err(_) => self.scoreboard.repeat_last(now).map(|sent| self.sent_again(now, &sent)),
        };
        let is_retransmission = piece.is_some_and(|piece| piece.again);
        self.tail_probe = TailProbe::Outstanding { end: self.stream.nxt(), is_retransmission };
        if piece.is_some() {
            self.arm_timer(now);
            self.telemetry.record(now, EventKind::TailLossProbe);
        }
        piece
    }

    /// RFC 8985 7.4.2, TLP_process_ack(): a loss that the probe repaired is congestion too.
    #[inline]
    pub(super) fn on_probe_acknowledged(
        &mut self,
        now: Instant,
        pure_duplicate: bool,
        dsack: bool,
    ) {
        if let TailProbe::Outstanding { end, is_retransmission } = self.tail_probe
            && self.stream.una() >= end
        {
            let repaired = is_retransmission && !dsack;
            self.end_probe(now, self.stream.una() > end, pure_duplicate, repaired);
        }
    }

    /// The end of the probe was acknowledged; `beyond`: so was later data. `repaired`: the probe
    /// was a retransmission, and only one copy is known to have arrived.
    #[cold]
    fn end_probe(&mut self, now: Instant, beyond: bool, pure_duplicate: bool, repaired: bool) {
        // A duplicate acknowledgement of the probe's end means that both copies arrived.
        if !repaired || beyond || pure_duplicate {
            self.tail_probe = TailProbe::None;
        }
        if repaired && beyond && self.recovery.is_open() {
            self.leave_slow_start_by(now, SlowStartExitReason::Loss);
            self.reduce(now, false);
            self.recovery.complete_reduction();
            self.congestion.reduce_to_ssthresh();
        }
    }

    pub(super) fn cancel_probe(&mut self) {
        self.tail_probe = TailProbe::None;
        self.timers.stop(Timer::Probe);
    }
}
