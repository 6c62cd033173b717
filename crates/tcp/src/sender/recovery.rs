//! The state of recovery: the phase, how cwnd is reduced, the reordering window, and what undoes a spurious
//! reduction.

use airpath_base::{Duration, Instant};

use super::scoreboard::Acked;
use crate::congestion::{State, Window};
use crate::event::UndoReason;
use crate::timestamp::timestamp;
use crate::{LossDetection, RecoveryConfig};

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

/// Recovery of one sender. `undo` and `frto` belong to the last reduction.
#[derive(Debug)]
pub(super) struct Recovery {
    config: RecoveryConfig,
    phase: Phase,
    prr: Prr,
    rack: Rack,
    undo: Option<Undo>,
    frto: Frto,
    /// The next retransmission is sent whatever the pipe holds.
    fast_retransmit: bool,
    /// First byte not acknowledged when the retransmission timer last expired.
    timed_out: Option<u64>,
}

/// Proportional rate reduction (RFC 9937).
#[derive(Debug, Default)]
struct Prr {
    /// cwnd at the start (RecoverFS).
    prior: u32,
    /// prr_delivered, prr_out
    delivered: u32,
    sent: u32,
}

/// RACK's reordering window (RFC 8985 6.2 step 4): RACK.reo_wnd_mult, RACK.reo_wnd_persist,
/// RACK.dsack_round.
#[derive(Debug)]
struct Rack {
    multiplier: u64,
    persist: u32,
    round: u64,
}

/// What is needed to undo a reduction.
#[derive(Clone, Copy, Debug)]
struct Undo {
    /// cwnd and ssthresh before the reduction.
    window: Window,
    /// First byte not acknowledged when the reduction began.
    from: u64,
    /// Time of the first retransmission.
    first_at: Option<Instant>,
    /// Number of retransmissions, and how many of them were reported as duplicates.
    retransmissions: u32,
    duplicates: u32,
}

/// F-RTO (RFC 5682 2.1): whether the last time-out was spurious.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Frto {
    /// The answer is known, or F-RTO is not in use.
    Off,
    /// The next acknowledgement decides.
    Waiting,
    /// The next acknowledgement decides, and new data is sent before retransmissions (2b).
    NewFirst,
}

/// Recoveries for which an enlarged reordering window is kept (RFC 8985 6.2 step 4).
const PERSIST: u32 = 16;

impl Phase {
    /// The offset whose acknowledgement ends the phase.
    pub(super) const fn end(self) -> Option<u64> {
        match self {
            Self::Open => None,
            Self::Reduced(end) | Self::Recovery(end) | Self::Loss(end) => Some(end),
        }
    }

    /// Whether lost data is being repaired.
    #[inline]
    pub(super) const fn repairs(self) -> bool {
        matches!(self, Self::Recovery(_) | Self::Loss(_))
    }

    /// The phase as the congestion control sees it.
    #[inline(always)]
    pub(super) const fn state(self) -> State {
        match self {
            Self::Open => State::Open,
            Self::Recovery(_) | Self::Reduced(_) => State::Recovery,
            Self::Loss(_) => State::Loss,
        }
    }
}

impl Recovery {
    pub(super) fn new(config: RecoveryConfig) -> Self {
        Self {
            config,
            phase: Phase::Open,
            prr: Prr::default(),
            rack: Rack { multiplier: 1, persist: PERSIST, round: 0 },
            undo: None,
            frto: Frto::Off,
            fast_retransmit: false,
            timed_out: None,
        }
    }

    pub(super) const fn config(&self) -> &RecoveryConfig {
        &self.config
    }

    pub(super) const fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Whether no reduction is in progress, and none can be undone.
    pub(super) fn is_settled(&self) -> bool {
        self.is_open() && self.undo.is_none()
    }

    pub(super) fn uses_rack(&self) -> bool {
        self.config.detection == LossDetection::Rack
    }

    /// After a time-out: end of what had been sent when it occurred.
    #[inline]
    pub(super) const fn loss_point(&self) -> Option<u64> {
        match self.phase {
            Phase::Loss(point) => Some(point),
            Phase::Open | Phase::Reduced(_) | Phase::Recovery(_) => None,
        }
    }

    /// Begins a reduction of cwnd, from `window`.
    pub(super) fn begin_reduction(&mut self, window: Window, una: u64) {
        self.prr = Prr { prior: window.segments(), delivered: 0, sent: 0 };
        self.begin_undo(window, una);
    }

    /// Begins a reduction from `window` that may turn out to be spurious.
    pub(super) fn begin_undo(&mut self, window: Window, una: u64) {
        let RecoveryConfig { undo_by_timestamps, undo_by_dsack, frto, .. } = self.config;
        self.undo = (undo_by_timestamps || undo_by_dsack || frto).then_some(Undo {
            window,
            from: una,
            first_at: None,
            retransmissions: 0,
            duplicates: 0,
        });
    }

    /// Confirms the current reduction: it cannot be undone.
    pub(super) const fn confirm(&mut self) {
        self.undo = None;
    }

    /// Reduces cwnd without a retransmission, until `nxt` is acknowledged.
    pub(super) const fn reduce_until(&mut self, nxt: u64) {
        self.phase = Phase::Reduced(nxt);
    }

    /// Begins fast recovery, which lasts until `nxt` is acknowledged.
    pub(super) const fn recover_until(&mut self, nxt: u64) {
        self.phase = Phase::Recovery(nxt);
        self.fast_retransmit = true;
    }

    /// Records that the retransmission timer expired for the segment at `una`. Returns whether the
    /// previous time-out was for the same segment.
    pub(super) fn note_timeout(&mut self, una: u64) -> bool {
        self.timed_out.replace(una) == Some(una)
    }

    /// Begins recovery after a time-out, which lasts until `nxt` is acknowledged. F-RTO decides whether the
    /// time-out was spurious, unless it occurred in another phase and is not `repeated`.
    pub(super) fn lose_until(&mut self, nxt: u64, repeated: bool) {
        let asks = self.config.frto && (self.is_open() || repeated);
        self.frto = if asks { Frto::Waiting } else { Frto::Off };
        self.phase = Phase::Loss(nxt);
    }

    /// Ends the phase and returns it. RFC 8985 6.2 step 4: the reordering window is reset after 16
    /// recoveries.
    pub(super) const fn end(&mut self) -> Phase {
        self.frto = Frto::Off;
        self.rack.persist = self.rack.persist.saturating_sub(1);
        if self.rack.persist == 0 {
            self.rack.multiplier = 1;
        }
        std::mem::replace(&mut self.phase, Phase::Open)
    }

    /// Ends a spurious reduction. Returns the window before the reduction, and the phase.
    pub(super) fn undo(&mut self) -> Option<(Window, Phase)> {
        let undo = self.undo.take()?;
        if !self.is_open() {
            self.frto = Frto::Off;
            self.fast_retransmit = false;
        }
        Some((undo.window, std::mem::replace(&mut self.phase, Phase::Open)))
    }

    /// Completes the current reduction.
    pub(super) const fn complete_reduction(&mut self) {
        self.phase = Phase::Open;
    }

    /// The next retransmission is sent whatever the pipe holds.
    pub(super) const fn retransmit_at_once(&mut self) {
        self.fast_retransmit = true;
    }

    pub(super) const fn retransmits_at_once(&self) -> bool {
        self.fast_retransmit
    }

    /// RFC 6675 5 (4.3): the first retransmission does not wait for the pipe to drain.
    pub(super) const fn take_fast_retransmit(&mut self) -> bool {
        std::mem::replace(&mut self.fast_retransmit, false)
    }

    /// Counts a segment that is sent or retransmitted.
    pub(super) const fn on_sent(&mut self) {
        self.prr.sent += 1;
    }

    /// Counts the retransmission of the segment at `seq`.
    pub(super) fn on_retransmission(&mut self, now: Instant, seq: u64) {
        self.on_sent();
        if let Some(undo) = &mut self.undo
            && seq >= undo.from
        {
            undo.first_at.get_or_insert(now);
            undo.retransmissions += 1;
        }
    }

    /// Counts a duplicate that the peer reported, from `start` on (RFC 2883).
    pub(super) fn on_dsack(&mut self, start: u64, una: u64, nxt: u64) {
        // RFC 8985 6.2 step 4: once per round trip.
        if una >= self.rack.round {
            self.rack.round = nxt;
            self.rack.multiplier += 1;
            self.rack.persist = PERSIST;
        }
        if let Some(undo) = &mut self.undo
            && start >= undo.from
        {
            undo.duplicates += 1;
        }
    }

    /// RACK's reordering window: a multiple of a quarter of the smallest RTT.
    pub(super) fn reordering_window(&self, min_rtt: Duration) -> Duration {
        min_rtt * self.rack.multiplier / 4
    }

    /// What shows that the last reduction was spurious; `None`: nothing does. `echo`: the timestamp
    /// that an acknowledgement of new data echoes.
    pub(super) fn undone_by(&self, echo: Option<u32>) -> Option<UndoReason> {
        let undo = self.undo?;
        // RFC 3522 3.2 (5): what is acknowledged was sent before the first retransmission.
        if self.config.undo_by_timestamps
            && let (Some(echo), Some(first_at)) = (echo, undo.first_at)
            && (echo.wrapping_sub(timestamp(first_at)) as i32) < 0
        {
            return Some(UndoReason::Timestamp);
        }
        let all = undo.retransmissions > 0 && undo.duplicates >= undo.retransmissions;
        (self.config.undo_by_dsack && all).then_some(UndoReason::Dsack)
    }

    /// F-RTO (RFC 5682 3.1, with SACK): new data is sent after the first retransmission; if data
    /// that was sent only once then arrives, the time-out was spurious. Returns whether the
    /// time-out was spurious and can be undone.
    pub(super) fn undone_by_frto(&mut self, acked: &Acked, una: u64, nxt: u64) -> bool {
        let (Phase::Loss(point), true) = (self.phase, self.frto != Frto::Off) else { return false };
        self.frto = if acked.original {
            Frto::Waiting
        } else if nxt > point || acked.segments == 0 || una >= point {
            // New data was already sent, or this is a duplicate: the loss was real (3a).
            Frto::Off
        } else {
            Frto::NewFirst
        };
        acked.original && self.undo.is_some()
    }

    /// Whether F-RTO sends new data before retransmissions.
    pub(super) fn sends_new_first(&self) -> bool {
        self.frto == Frto::NewFirst
    }

    /// There is no new data to send: F-RTO cannot decide (RFC 5682 2.1 (2)), unless new data was
    /// already sent.
    pub(super) fn cannot_send_new(&mut self, nxt: u64) {
        let sent_new = self.loss_point().is_none_or(|point| nxt > point);
        self.frto = if sent_new { Frto::Waiting } else { Frto::Off };
    }

    /// cwnd after an acknowledgement of `delivered` segments in recovery (RFC 9937 5); `safe`: the
    /// acknowledgement advances SND.UNA and shows no loss (SafeACK).
    pub(super) fn proportional(
        &mut self,
        delivered: u32,
        (pipe, ssthresh): (u32, u32),
        safe: bool,
    ) -> u32 {
        self.prr.delivered += delivered;
        let (received, sent) = (u64::from(self.prr.delivered), u64::from(self.prr.sent));
        let allowed = if pipe > ssthresh {
            // In proportion, so that cwnd is ssthresh once everything has been delivered.
            (received * u64::from(ssthresh))
                .div_ceil(u64::from(self.prr.prior.max(1)))
                .saturating_sub(sent)
        } else {
            // Packet conservation, plus one segment if the acknowledgement is safe.
            let limit = received.saturating_sub(sent).max(u64::from(delivered)) + u64::from(safe);
            limit.min(u64::from(ssthresh - pipe))
        };
        let allowed = allowed.max(u64::from(self.prr.sent == 0)) as u32;
        (pipe + allowed).max(1)
    }
}
