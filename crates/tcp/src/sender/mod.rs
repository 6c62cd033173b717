//! The sending half of an endpoint.

mod ack;
mod board;
mod rate;

pub(crate) use ack::timestamp;

use std::collections::VecDeque;

use airpath_base::{Duration, Event, EventKind, Instant, SendLimit, SlowStartExitReason};

use crate::congestion::{self, Congestion, CongestionControl, Window};
use crate::{EndpointConfig, RttEstimator};
use board::{Board, Sent};

/// Largest payload of a window probe (RFC 9293 3.8.6.1: at least one byte).
const PROBE_BYTES: u64 = 1;

/// Sends a stream, retransmits what is lost, keeps within both windows.
///
/// Offsets: the SYN is byte 0, data begins at 1, a FIN takes the byte after the last.
#[derive(Debug)]
pub(crate) struct Sender {
    mss: u32,
    sack: bool,
    timestamps: bool,
    send_buffer: u64,
    pub(crate) rtt: RttEstimator,
    congestion: Box<dyn CongestionControl>,
    model_based: bool,
    pub(crate) window: Window,
    board: Board,
    phase: Phase,
    /// The next retransmission goes out whatever the pipe holds.
    fast_retransmit: bool,
    /// First byte not acknowledged when the retransmission timer last ran out.
    timed_out: u64,
    /// First byte not acknowledged (SND.UNA).
    una: u64,
    /// Next byte to send for the first time (SND.NXT).
    nxt: u64,
    /// Bytes that the application has offered, as an offset; it may still wait for the buffer.
    offered: u64,
    closed: bool,
    /// The peer's window, in bytes (SND.WND), and the largest seen.
    peer_window: u64,
    max_peer_window: u64,
    /// Sequence number of the segment that said so (SND.WL1).
    window_seq: u64,
    /// When the retransmission timer runs out (RFC 6298 5), or the persist timer.
    timer: Option<Instant>,
    /// It is the persist timer: the peer's window lets nothing out (RFC 9293 3.8.6.1).
    persisting: bool,
    probe_pending: bool,
    /// cwnd was the limit at some time in the window that ends at this offset.
    cwnd_limited_until: u64,
    limits: Limits,
    pub(crate) counters: SenderCounters,
    last_rtt: Option<Duration>,
    exited_slow_start: bool,
    pub(crate) events: VecDeque<Event>,
}

/// RFC 5681's states of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Open,
    /// Fast recovery until this offset is acknowledged (RFC 6675 5).
    Recovery(u64),
    /// After a retransmission time-out, until this offset is acknowledged.
    Loss(u64),
}

/// Totals of the sending half.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SenderCounters {
    /// Data segments sent, retransmissions included.
    pub segments: u64,
    /// Retransmissions.
    pub retransmitted: u64,
    /// Times the retransmission timer ran out.
    pub timeouts: u64,
}

/// Time spent at each limit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LimitTimes {
    /// Congestion window.
    pub cwnd: Duration,
    /// The peer's window.
    pub receive_window: Duration,
    /// Own send buffer.
    pub send_buffer: Duration,
    /// Nothing to send.
    pub application: Duration,
}

#[derive(Debug)]
struct Limits {
    current: SendLimit,
    /// Counting since then: from the handshake's end until the stream's.
    since: Option<Instant>,
    times: LimitTimes,
}

/// A piece of the stream to put into a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) seq: u64,
    pub(crate) len: u32,
    pub(crate) fin: bool,
}

impl Sender {
    pub(crate) fn new(config: &EndpointConfig) -> Self {
        let (congestion, window) = congestion::build(config);
        Self {
            mss: config.mss,
            sack: config.sack,
            timestamps: config.timestamps,
            send_buffer: config.send_buffer,
            rtt: RttEstimator::new(config.rto),
            model_based: congestion.is_model_based(),
            board: Board::new(congestion.is_model_based()),
            congestion,
            window,
            phase: Phase::Open,
            fast_retransmit: false,
            timed_out: 0,
            una: 1,
            nxt: 1,
            offered: 1,
            closed: false,
            peer_window: 0,
            max_peer_window: 0,
            window_seq: 0,
            timer: None,
            persisting: false,
            probe_pending: false,
            cwnd_limited_until: 0,
            limits: Limits {
                current: SendLimit::Application,
                since: None,
                times: LimitTimes::default(),
            },
            counters: SenderCounters::default(),
            last_rtt: None,
            exited_slow_start: !window.in_slow_start(),
            events: VecDeque::new(),
        }
    }

    /// What the two ends agreed on in the handshake.
    pub(crate) fn establish(&mut self, agreed: &EndpointConfig, peer_window: u64) {
        self.sack = agreed.sack;
        self.timestamps = agreed.timestamps;
        self.set_peer_window(peer_window);
    }

    /// More than one SYN of ours was lost (RFC 5681 3.1, RFC 6928 2).
    pub(crate) fn start_after_syn_loss(&mut self) {
        self.window.cwnd = self.window.cwnd.min(self.congestion.loss_window());
    }

    /// The application offers `bytes` more.
    pub(crate) fn offer(&mut self, bytes: u64) {
        debug_assert!(!self.closed, "offered after close");
        self.offered = self.offered.saturating_add(bytes);
    }

    /// The application stops: what the buffer has not taken is withdrawn, the rest ends in a FIN.
    pub(crate) fn close(&mut self) {
        if !self.closed {
            self.offered = self.written();
            self.closed = true;
        }
    }

    /// Closes after everything offered has been written.
    pub(crate) fn close_when_written(&mut self) {
        self.closed = true;
    }

    /// End of what the send buffer holds.
    pub(crate) fn written(&self) -> u64 {
        self.offered.min(self.una.saturating_add(self.send_buffer))
    }

    /// Bytes in flight by RFC 6675, in segments.
    pub(crate) fn in_flight(&self) -> u32 {
        self.board.pipe()
    }

    /// Payload bytes acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.una.min(self.offered) - 1
    }

    /// Next byte to send for the first time (SND.NXT).
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.nxt
    }

    /// All data and the FIN were acknowledged.
    pub(crate) fn is_finished(&self) -> bool {
        self.closed && self.una > self.offered
    }

    /// RTT of the last acknowledgement that gave one, once.
    #[inline]
    pub(crate) fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.last_rtt.take()
    }

    pub(crate) fn limit_times(&self, now: Instant) -> LimitTimes {
        let mut times = self.limits.times;
        if let Some(since) = self.limits.since {
            times.add(self.limits.current, now.saturating_since(since));
        }
        times
    }

    #[inline]
    pub(crate) fn timer(&self) -> Option<Instant> {
        self.timer
    }

    /// The next piece to send at `now`, if the windows allow one.
    #[inline]
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Piece> {
        if std::mem::take(&mut self.probe_pending)
            && let Some(piece) = self.probe(now)
        {
            return Some(piece);
        }
        let cwnd = self.window.segments();
        let pipe = self.board.pipe();
        // RFC 6675 5 (4.3): the first retransmission does not wait for the pipe to drain.
        let room = std::mem::take(&mut self.fast_retransmit) || pipe < cwnd;
        if self.board.waits_to_resend() {
            if !room {
                self.note_limit(now, SendLimit::Cwnd);
                return None;
            }
            if let Some(sent) = self.board.resend(now) {
                self.counters.segments += 1;
                self.counters.retransmitted += 1;
                self.start_timer(now);
                return Some(sent.piece());
            }
        }
        match self.new_piece(cwnd, pipe) {
            Ok(piece) => {
                self.send_new(now, piece);
                Some(piece)
            }
            Err(limit) => {
                self.note_limit(now, limit);
                None
            }
        }
    }

    /// The next new piece, or what forbids it.
    #[inline]
    fn new_piece(&self, cwnd: u32, pipe: u32) -> Result<Piece, SendLimit> {
        let written = self.written();
        let in_buffer = written.saturating_sub(self.nxt);
        let fin_due = self.fin_due();
        if in_buffer == 0 && !fin_due {
            let full = written < self.offered;
            return Err(if full { SendLimit::SendBuffer } else { SendLimit::Application });
        }
        if pipe >= cwnd {
            return Err(SendLimit::Cwnd);
        }
        let window = (self.una + self.peer_window).saturating_sub(self.nxt);
        let len = in_buffer.min(u64::from(self.mss));
        // A FIN takes sequence space, hence window (RFC 9293 3.4).
        let last = fin_due && len == in_buffer;
        let fin = last && window > len;
        if window < len.max(1) {
            // RFC 9293 3.8.6.2.1: a part only if it is half of the largest window.
            return if window > 0 && window >= self.max_peer_window / 2 {
                Ok(Piece { seq: self.nxt, len: window as u32, fin: false })
            } else {
                Err(SendLimit::ReceiveWindow)
            };
        }
        // Nagle (RFC 9293 3.7.4): a small segment waits while anything is outstanding, unless the
        // stream ends with it.
        if len < u64::from(self.mss) && !last && !self.board.is_empty() {
            let full = written < self.offered;
            return Err(if full { SendLimit::SendBuffer } else { SendLimit::Application });
        }
        Ok(Piece { seq: self.nxt, len: len as u32, fin })
    }

    #[inline]
    fn send_new(&mut self, now: Instant, piece: Piece) {
        let end = piece.seq + u64::from(piece.len) + u64::from(piece.fin);
        self.nxt = end;
        self.counters.segments += 1;
        self.board.push(Sent {
            seq: piece.seq,
            end,
            sent_at: now,
            order: 0,
            fin: piece.fin,
            sacked: false,
            lost: false,
            resent: false,
            ambiguous: false,
        });
        self.start_timer(now);
    }

    /// RFC 9293 3.8.6.1: a byte beyond a closed window; the first outstanding segment again if
    /// there is one, as the last probe is until it is acknowledged.
    fn probe(&mut self, now: Instant) -> Option<Piece> {
        if self.persisting {
            self.events.push_back(Event { at: now, kind: EventKind::WindowProbe });
        }
        if let Some(sent) = self.board.repeat_first(now) {
            self.counters.segments += 1;
            self.counters.retransmitted += 1;
            self.arm_timer(now);
            return Some(sent.piece());
        }
        let len = PROBE_BYTES.min(self.written().saturating_sub(self.nxt)) as u32;
        let piece = Piece { seq: self.nxt, len, fin: len == 0 && self.fin_due() };
        debug_assert!(len > 0 || piece.fin, "a probe without anything to send");
        self.send_new(now, piece);
        Some(piece)
    }

    /// The FIN may be sent after what the buffer holds, and was not yet.
    fn fin_due(&self) -> bool {
        self.closed && self.written() == self.offered && self.nxt <= self.offered
    }

    #[inline]
    fn note_limit(&mut self, now: Instant, limit: SendLimit) {
        if limit == SendLimit::Cwnd {
            self.cwnd_limited_until = self.nxt;
        }
        if matches!(limit, SendLimit::Application | SendLimit::SendBuffer) {
            self.board.limited_by_application();
        }
        if limit != self.limits.current {
            // Once the stream has ended nothing is counted any more.
            let since = self.limits.since.map(|_| now);
            self.account_limit(now, since);
            self.limits.current = limit;
        }
        let blocked = limit == SendLimit::ReceiveWindow && self.board.is_empty();
        if blocked && self.timer.is_none() {
            self.persisting = true;
            self.arm_timer(now);
        }
    }

    /// Books the time until `now` and counts on from `since`; `None`: no more.
    pub(crate) fn account_limit(&mut self, now: Instant, since: Option<Instant>) {
        if let Some(begun) = std::mem::replace(&mut self.limits.since, since) {
            self.limits.times.add(self.limits.current, now.saturating_since(begun));
        }
    }

    /// RFC 6298 (5.1): starts the timer if it does not run.
    fn start_timer(&mut self, now: Instant) {
        if self.timer.is_none() {
            self.arm_timer(now);
        }
    }

    fn arm_timer(&mut self, now: Instant) {
        self.timer = Some(now + self.rtt.rto());
    }

    /// The peer's window has grown, or took a probe.
    fn stop_persisting(&mut self, now: Instant, opened: bool) {
        self.persisting = false;
        self.rtt.end_back_off();
        self.timer = None;
        if !self.board.is_empty() {
            self.arm_timer(now);
            // The probe that a closed window refused would be a hole.
            self.probe_pending = opened;
        }
    }

    fn set_peer_window(&mut self, bytes: u64) {
        self.peer_window = bytes;
        self.max_peer_window = self.max_peer_window.max(bytes);
    }

    /// The timer ran out at `now`.
    pub(crate) fn on_timer(&mut self, now: Instant) {
        self.timer = None;
        if self.persisting || self.peer_window == 0 {
            // RFC 9293 3.8.6.1: no sign of congestion, even if the window shrank with data under way.
            self.persisting = true;
            self.rtt.back_off();
            self.probe_pending = true;
            return;
        }
        let rto = self.rtt.rto();
        self.counters.timeouts += 1;
        let first = self.timed_out != self.una;
        self.timed_out = self.una;
        self.rtt.back_off();
        let backoff = self.rtt.backoff();
        self.events
            .push_back(Event { at: now, kind: EventKind::RetransmissionTimeout { backoff, rto } });
        self.leave_slow_start(now, SlowStartExitReason::Loss, None);
        if first {
            let congestion = self.congestion_now(now);
            self.congestion.on_timeout(&congestion, &mut self.window);
        }
        if !self.model_based {
            self.window.cwnd = self.congestion.loss_window();
        }
        self.board.mark_all_lost();
        self.phase = Phase::Loss(self.nxt);
        self.arm_timer(now);
    }

    /// RFC 5681's FlightSize, of which what limited transmit sent above cwnd is no part (3.2 (2)).
    fn congestion_now(&self, now: Instant) -> Congestion {
        Congestion { now, flight: self.board.flight().min(self.window.segments()) }
    }

    /// Records the first time that slow start ends.
    fn leave_slow_start(
        &mut self,
        now: Instant,
        reason: SlowStartExitReason,
        round_rtt: Option<Duration>,
    ) {
        if !self.exited_slow_start {
            self.exited_slow_start = true;
            let cwnd = self.window.segments();
            let srtt = self.rtt.srtt().unwrap_or_default();
            let min_rtt = self.rtt.min().unwrap_or_default();
            let kind = EventKind::SlowStartExit { reason, cwnd, srtt, min_rtt, round_rtt };
            self.events.push_back(Event { at: now, kind });
        }
    }
}

impl LimitTimes {
    fn add(&mut self, limit: SendLimit, time: Duration) {
        let slot = match limit {
            SendLimit::Cwnd => &mut self.cwnd,
            SendLimit::ReceiveWindow => &mut self.receive_window,
            SendLimit::SendBuffer => &mut self.send_buffer,
            SendLimit::Application => &mut self.application,
        };
        *slot += time;
    }
}

impl Sent {
    fn piece(&self) -> Piece {
        let len = self.end - self.seq - u64::from(self.fin);
        Piece { seq: self.seq, len: len as u32, fin: self.fin }
    }
}
