//! Decides what to send next: probes and retransmissions before new data.

use airpath_base::Instant;

use super::scoreboard::Sent;
use super::{Ahead, Ecn, PROBE_BYTES, Piece, Sender};
use crate::RtoEstimator;
use crate::event::{EventKind, SendLimit};

/// A piece to send, and what is known of what follows it.
pub(super) type Next = (Option<Piece>, Option<Ahead>);

impl Sender {
    /// The next piece to send at `now`, if the windows allow one, and what is known of what follows.
    #[inline(always)]
    pub(crate) fn poll(&mut self, now: Instant) -> Next {
        let special = self.peer.is_probe_due()
            | self.tail_probe.is_pending()
            | self.recovery.sends_new_first()
            | self.recovery.retransmits_at_once()
            | self.scoreboard.waits_to_resend();
        if special {
            return self.poll_special(now);
        }
        let (cwnd, pipe) = (self.congestion.segments(), self.scoreboard.pipe());
        // Usually more than a segment waits: neither a FIN nor Nagle's algorithm matters.
        let mss = u64::from(self.mss);
        let unsent = self.stream.unsent();
        if unsent <= mss {
            return self.poll_new(now, cwnd, pipe);
        }
        if pipe >= cwnd {
            return self.stop(now, SendLimit::Cwnd);
        }
        let window = self.usable_window();
        let in_burst = !self.bursts.is_offloaded() || self.bursts.in_burst();
        if window < mss || !in_burst || self.bursts.waits(now) {
            return self.poll_burst(now, (cwnd, pipe), window, unsent);
        }
        // Without bursts the rest of cwnd may follow, if the peer's window and the buffer allow it,
        // too.
        let plain = !self.bursts.is_offloaded() && !self.bursts.is_paced();
        let run = self.run_after_next((cwnd, pipe), window, unsent);
        let ahead = run.filter(|_| plain);
        (Some(self.send_full(now)), ahead)
    }

    /// The first full segment of a burst, or anything else if no burst may begin.
    #[inline(never)]
    fn poll_burst(
        &mut self,
        now: Instant,
        (cwnd, pipe): (u32, u32),
        window: u64,
        unsent: u64,
    ) -> Next {
        let mss = u64::from(self.mss);
        let begins = self.bursts.is_offloaded() && !self.bursts.in_burst();
        if !begins || window < mss || self.bursts.waits(now) {
            return self.poll_new(now, cwnd, pipe);
        }
        if let Err(limit) = self.open_burst(now, cwnd - pipe, window, unsent) {
            return self.stop(now, limit);
        }
        // A burst that fills cwnd is sent as a run, if the peer's window and the buffer allow it,
        // too.
        let run = self.run_after_next((cwnd, pipe), window, unsent);
        let ahead = run.filter(|_| self.bursts.left() == cwnd - pipe);
        (Some(self.send_full(now)), ahead)
    }

    /// New data that is not a full segment in the middle of a burst, or the reason why none can be
    /// sent.
    #[inline(never)]
    fn poll_new(&mut self, now: Instant, cwnd: u32, pipe: u32) -> Next {
        match self.new_piece(now, cwnd, pipe) {
            Ok(piece) => (Some(self.send_new(now, piece)), None),
            Err(limit) => self.stop(now, limit),
        }
    }

    /// The next piece to send when something may precede new data.
    #[inline(never)]
    fn poll_special(&mut self, now: Instant) -> Next {
        if self.peer.is_probe_due() {
            return (Some(self.probe(now)), None);
        }
        if self.tail_probe.is_pending()
            && let Some(piece) = self.send_probe(now)
        {
            return (Some(piece), None);
        }
        let (cwnd, pipe) = (self.congestion.segments(), self.scoreboard.pipe());
        if self.recovery.sends_new_first() {
            if let Ok(piece) = self.new_piece(now, cwnd, pipe) {
                return (Some(self.send_new(now, piece)), None);
            }
            self.recovery.cannot_send_new(self.stream.nxt());
        }
        let room = self.recovery.take_fast_retransmit() || pipe < cwnd;
        if self.scoreboard.waits_to_resend() {
            if !room {
                return self.stop(now, SendLimit::Cwnd);
            }
            if self.bursts.waits(now) {
                return self.stop(now, SendLimit::Pacing);
            }
            if let Some(sent) = self.scoreboard.resend(now) {
                return (Some(self.sent_again(now, &sent)), None);
            }
        }
        self.poll_new(now, cwnd, pipe)
    }

    /// A full segment of new data.
    #[inline(always)]
    pub(crate) fn send_full(&mut self, now: Instant) -> Piece {
        self.send_new(now, Piece::new(self.stream.nxt(), self.mss, false))
    }

    /// Records a retransmission.
    #[cold]
    pub(super) fn sent_again(&mut self, now: Instant, sent: &Sent) -> Piece {
        self.telemetry.count_segment(true);
        self.timers.note_sent(now);
        self.recovery.on_retransmission(now, sent.seq);
        if sent.seq == self.stream.una() && self.rtt.estimator() == RtoEstimator::Linux {
            // Seen with Linux 6.18: the first outstanding segment gets its whole time-out again.
            self.arm_timer(now);
        } else {
            self.start_timer(now);
        }
        self.bursts.sent(now, u32::try_from(sent.end - sent.seq).unwrap_or(u32::MAX));
        Piece { again: true, ..sent.piece() }
    }

    /// The next piece of new data, or what prevents it.
    pub(super) fn new_piece(
        &mut self,
        now: Instant,
        cwnd: u32,
        pipe: u32,
    ) -> Result<Piece, SendLimit> {
        let in_buffer = self.stream.unsent();
        let fin_due = self.stream.fin_due();
        if in_buffer == 0 && !fin_due {
            return Err(self.stream.limit());
        }
        if pipe >= cwnd {
            return Err(SendLimit::Cwnd);
        }
        let window = self.usable_window();
        let len = in_buffer.min(u64::from(self.mss));
        // A FIN takes sequence space, hence also window (RFC 9293 3.4).
        let last = fin_due && len == in_buffer;
        let fin = last && window > len;
        if window < len.max(1) {
            // RFC 9293 3.8.6.2.1: a partial segment only if it is half of the largest window.
            return if window > 0 && window >= self.peer.max() / 2 {
                Ok(Piece::new(self.stream.nxt(), window as u32, false))
            } else {
                Err(SendLimit::ReceiveWindow)
            };
        }
        // Nagle (RFC 9293 3.7.4): a small segment waits while anything is outstanding, unless it
        // ends the stream.
        if len < u64::from(self.mss) && !last && !self.scoreboard.is_empty() {
            return Err(self.stream.limit());
        }
        if self.bursts.waits(now) {
            return Err(SendLimit::Pacing);
        }
        if self.bursts.is_offloaded() && !self.bursts.in_burst() {
            self.open_burst(now, cwnd - pipe, window, in_buffer)?;
        }
        Ok(Piece::new(self.stream.nxt(), len as u32, fin))
    }

    /// The peer's usable window.
    #[inline(always)]
    pub(super) fn usable_window(&self) -> u64 {
        self.peer.usable(self.stream.una(), self.stream.nxt())
    }

    /// Begins a burst of as many segments as cwnd, the peer's window and the data in the buffer
    /// allow; or returns the reason for which it waits to become larger.
    #[inline]
    fn open_burst(
        &mut self,
        now: Instant,
        by_cwnd: u32,
        window: u64,
        in_buffer: u64,
    ) -> Result<(), SendLimit> {
        let mss = u64::from(self.mss);
        let peer_limits = window < u64::from(by_cwnd) * mss;
        let room = if peer_limits { (window / mss) as u32 } else { by_cwnd };
        let whole = self.stream.first_piece(in_buffer) <= u64::from(room) * mss;
        if self.begin_burst(now, room, whole) {
            return Ok(());
        }
        // The smaller of the two windows is the reason why it is small.
        let cwnd_limits = (u64::from(by_cwnd) + 1) * mss <= window;
        Err(if cwnd_limits { SendLimit::Cwnd } else { SendLimit::ReceiveWindow })
    }

    #[inline(always)]
    pub(super) fn send_new(&mut self, now: Instant, mut piece: Piece) -> Piece {
        if self.scoreboard.is_empty() {
            self.restart(now);
        }
        let end = piece.seq + u64::from(piece.len) + u64::from(piece.fin);
        self.stream.send_to(end);
        self.telemetry.count_segment(false);
        let (fin, begins_burst) = (piece.fin, self.bursts.begins());
        self.scoreboard.push(Sent { fin, begins_burst, ..Sent::new(piece.seq, end, now) });
        self.timers.note_sent(now);
        self.recovery.on_sent();
        self.start_timer(now);
        piece.push = self.bursts.pushes();
        self.bursts.sent(now, piece.len);
        if self.ecn == Ecn::ReductionToTell {
            self.ecn = Ecn::Negotiated;
            piece.cwr = true;
        }
        piece
    }

    /// RFC 9293 3.8.6.1: a byte beyond a closed window; if a segment is outstanding, as the last
    /// probe is until it is acknowledged, the first one again.
    #[cold]
    fn probe(&mut self, now: Instant) -> Piece {
        if self.peer.take_probe() {
            self.telemetry.record(now, EventKind::WindowProbe);
        }
        if let Some(sent) = self.scoreboard.repeat_first(now) {
            self.telemetry.count_segment(true);
            self.arm_timer(now);
            return Piece { again: true, ..sent.piece() };
        }
        let len = PROBE_BYTES.min(self.stream.unsent()) as u32;
        let piece = Piece::new(self.stream.nxt(), len, len == 0 && self.stream.fin_due());
        debug_assert!(len > 0 || piece.fin, "a probe without anything to send");
        self.send_new(now, piece)
    }
}
