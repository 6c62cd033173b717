//! Tail loss probes (RFC 8985 7): a loss at the end of a flight is found within two RTTs.

use airpath_base::{Duration, Instant};

use super::recovery::Phase;
use super::{Piece, Sender};
use crate::event::{EventKind, SlowStartExitReason};

/// Longest ACK delay that a single segment may meet (RFC 8985 7.2, WCDelAckT).
const WORST_DELAYED_ACK: Duration = Duration::from_millis(200);

#[derive(Debug, Default)]
pub(super) struct TailProbe {
    /// When the probe timer (PTO) expires.
    pub(super) due: Option<Instant>,
    pub(super) pending: bool,
    outstanding: Option<Outstanding>,
}

/// A probe that was sent and is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    /// `TLP.end_seq`
    end: u64,
    /// `TLP.is_retrans`
    is_retransmission: bool,
}

impl TailProbe {
    /// Whether no probe is outstanding.
    #[inline]
    pub(super) const fn is_quiet(&self) -> bool {
        self.outstanding.is_none()
    }
}

impl Sender {
    /// RFC 8985 7.2, TLP_calc_PTO(): called after sending, and after progress.
    pub(super) fn schedule_probe(&mut self, now: Instant) {
        if !self.recovery.tail_loss_probe {
            return;
        }
        self.tail_probe.due = None;
        let open = matches!(self.phase, Phase::Open | Phase::Reduced(_));
        let quiet = self.scoreboard.sacked() == 0 && !self.scoreboard.waits_to_resend();
        if !self.sack || !open || !quiet || self.peer.is_persisting() || self.scoreboard.is_empty()
        {
            return;
        }
        if self.tail_probe.outstanding.is_some() || self.tail_probe.pending {
            return;
        }
        let mut wait = self.rtt.srtt().map_or(Duration::from_secs(1), |srtt| srtt * 2);
        if self.scoreboard.flight() == 1 {
            wait += WORST_DELAYED_ACK;
        } else {
            // Seen with Linux 6.18 at 250 Hz: after 88 ms where two round trips took 78.8.
            wait += self.recovery.timer_tick * 2;
        }
        // It counts from the last transmission or progress, and is never later than the RTO.
        let at = self.after_ticks(self.last_sent_at.max(self.progress_at), wait).max(now);
        self.tail_probe.due = Some(self.timer.map_or(at, |timer| timer.min(at)));
    }

    pub(super) fn on_probe_timer(&mut self, _now: Instant) {
        self.tail_probe.due = None;
        self.tail_probe.pending = !self.scoreboard.is_empty();
    }

    /// RFC 8985 7.3, TLP_send_probe(): new data if there is any, otherwise the last segment again.
    #[cold]
    pub(super) fn tail_probe(&mut self, now: Instant) -> Option<Piece> {
        self.tail_probe.pending = false;
        let piece = match self.new_piece(now, u32::MAX, 0) {
            Ok(piece) => self.send_new(now, piece),
            Err(_) => {
                let Some(sent) = self.scoreboard.repeat_last(now) else {
                    // A retransmission is outstanding already: leave it to the retransmission
                    // timer.
                    let probe = Outstanding { end: self.stream.nxt(), is_retransmission: false };
                    self.tail_probe.outstanding = Some(probe);
                    return None;
                };
                self.sent_again(now, &sent)
            }
        };
        let probe = Outstanding { end: self.stream.nxt(), is_retransmission: piece.again };
        self.tail_probe.outstanding = Some(probe);
        self.arm_timer(now);
        self.telemetry.record(now, EventKind::TailLossProbe);
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
        if let Some(probe) = self.tail_probe.outstanding
            && self.stream.una() >= probe.end
        {
            self.end_probe(now, probe, pure_duplicate, dsack);
        }
    }

    #[cold]
    fn end_probe(&mut self, now: Instant, probe: Outstanding, pure_duplicate: bool, dsack: bool) {
        if !probe.is_retransmission || dsack {
            self.tail_probe.outstanding = None;
        } else if self.stream.una() > probe.end {
            self.tail_probe.outstanding = None;
            if self.phase == Phase::Open {
                self.leave_slow_start_by(now, SlowStartExitReason::Loss);
                self.reduce(now, false);
                self.phase = Phase::Open;
                self.congestion.reduce_to_ssthresh();
            }
        } else if pure_duplicate {
            // Both arrived: nothing was lost.
            self.tail_probe.outstanding = None;
        }
    }

    pub(super) fn cancel_probe(&mut self) {
        self.tail_probe = TailProbe::default();
    }
}
