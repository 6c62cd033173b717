//! Tail loss probes (RFC 8985 7): what is lost at the end of a flight is found in two RTTs.

use airpath_base::{Duration, Event, EventKind, Instant, SlowStartExitReason};

use super::recovery::Phase;
use super::{Piece, Sender};

/// Longest delay of an acknowledgement that a single segment may meet (RFC 8985 7.2, WCDelAckT).
const WORST_DELAYED_ACK: Duration = Duration::from_millis(200);

#[derive(Debug, Default)]
pub(super) struct TailProbe {
    /// The probe timer (PTO).
    pub(super) due: Option<Instant>,
    pub(super) pending: bool,
    /// TLP.end_seq: a probe is outstanding.
    end: Option<u64>,
    /// TLP.is_retrans
    is_retransmission: bool,
}

impl Sender {
    /// RFC 8985 7.2, TLP_calc_PTO(): after sending, and after progress.
    pub(super) fn schedule_probe(&mut self, now: Instant) {
        if !self.recovery.tail_loss_probe {
            return;
        }
        self.tail_probe.due = None;
        let open = matches!(self.phase, Phase::Open | Phase::Reduced(_));
        let quiet = self.board.sacked() == 0 && !self.board.waits_to_resend();
        if !self.sack || !open || !quiet || self.persisting || self.board.is_empty() {
            return;
        }
        if self.tail_probe.end.is_some() || self.tail_probe.pending {
            return;
        }
        let mut wait = self.rtt.srtt().map_or(Duration::from_secs(1), |srtt| srtt * 2);
        if self.board.flight() == 1 {
            wait += WORST_DELAYED_ACK;
        }
        // Counts from the last transmission or progress; never later than the RTO.
        let at = (self.last_sent_at.max(self.progress_at) + wait).max(now);
        self.tail_probe.due = Some(self.timer.map_or(at, |timer| timer.min(at)));
    }

    pub(super) fn on_probe_timer(&mut self, _now: Instant) {
        self.tail_probe.due = None;
        self.tail_probe.pending = !self.board.is_empty();
    }

    /// RFC 8985 7.3, TLP_send_probe(): new data if there is any, else the last segment again.
    #[cold]
    pub(super) fn tail_probe(&mut self, now: Instant) -> Option<Piece> {
        self.tail_probe.pending = false;
        let piece = match self.new_piece(now, u32::MAX, 0) {
            Ok(piece) => self.send_new(now, piece),
            Err(_) => {
                let Some(sent) = self.board.repeat_last(now) else {
                    // A retransmission is under way already: the timer's turn.
                    self.tail_probe.end = Some(self.nxt);
                    self.tail_probe.is_retransmission = false;
                    return None;
                };
                self.sent_again(now, &sent)
            }
        };
        self.tail_probe.end = Some(self.nxt);
        self.tail_probe.is_retransmission = piece.again;
        self.counters.probes += 1;
        self.arm_timer(now);
        self.events.push_back(Event { at: now, kind: EventKind::TailLossProbe });
        Some(piece)
    }

    /// RFC 8985 7.4.2, TLP_process_ack(): a loss that the probe repaired is congestion too.
    #[inline]
    pub(super) fn on_probe_acknowledged(
        &mut self,
        now: Instant,
        pure_duplicate: bool,
        dsack: bool,
    ) {
        if let Some(end) = self.tail_probe.end
            && self.una >= end
        {
            self.end_probe(now, end, pure_duplicate, dsack);
        }
    }

    #[cold]
    fn end_probe(&mut self, now: Instant, end: u64, pure_duplicate: bool, dsack: bool) {
        if !self.tail_probe.is_retransmission || dsack {
            self.tail_probe.end = None;
        } else if self.una > end {
            self.tail_probe.end = None;
            if self.phase == Phase::Open {
                self.leave_slow_start_by(now, SlowStartExitReason::Loss);
                self.reduce(now, false);
                self.phase = Phase::Open;
                if !self.model_based {
                    self.window.cwnd = self.window.ssthresh;
                }
            }
        } else if pure_duplicate {
            // Both arrived: nothing was lost.
            self.tail_probe.end = None;
        }
    }

    pub(super) fn cancel_probe(&mut self) {
        self.tail_probe = TailProbe::default();
    }
}
