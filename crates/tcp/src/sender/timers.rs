//! The timers of a sender, except for the pacing timer.

use airpath_base::{Duration, Instant};

use crate::timestamp::AFTER_TICK;

/// What a timer is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Timer {
    /// Retransmission (RFC 6298 5), or the persist timer (RFC 9293 3.8.6.1).
    Retransmission,
    /// The next tail loss probe (PTO, RFC 8985 7.2).
    Probe,
    /// The end of the reordering window (RFC 8985 6.2 step 5).
    Reordering,
}

/// When each timer expires, if it runs.
#[derive(Debug)]
pub(crate) struct Timers {
    /// Tick of the timer clock; zero: timers are exact.
    tick: Duration,
    due: [Option<Instant>; 3],
    /// When data was last sent, and when SND.UNA last advanced.
    last_sent_at: Instant,
    progress_at: Instant,
}

impl Timers {
    pub(super) const fn new(tick: Duration) -> Self {
        let (last_sent_at, progress_at) = (Instant::ZERO, Instant::ZERO);
        Self { tick, due: [None; 3], last_sent_at, progress_at }
    }

    /// When a timer of `wait` expires. Seen with Linux 6.18 at 250 Hz: where half a millisecond was
    /// left, 4.2 to 5.5 ms after the acknowledgement, never sooner; and time-outs of 260 ms were up
    /// to 32 ms late, all of them some multiple of 32 ms apart.
    pub(crate) fn after(&self, now: Instant, wait: Duration) -> Instant {
        let tick = self.tick.as_nanos();
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

    /// The tick of the timer clock; zero: timers are exact.
    pub(super) const fn tick(&self) -> Duration {
        self.tick
    }

    #[inline(always)]
    pub(super) const fn due(&self, timer: Timer) -> Option<Instant> {
        self.due[timer as usize]
    }

    /// When the earliest timer expires, or `other` if that is earlier.
    #[inline(always)]
    pub(super) fn earliest(&self, other: Option<Instant>) -> Option<Instant> {
        let [first, probe, reordering] = self.due;
        let Some(first) = first else {
            return [probe, reordering, other].into_iter().flatten().min();
        };
        let or_first = |other: Option<Instant>| other.map_or(first, |at| at.min(first));
        Some(or_first(probe).min(or_first(reordering)).min(or_first(other)))
    }

    #[inline(always)]
    pub(super) const fn set(&mut self, timer: Timer, at: Instant) {
        self.due[timer as usize] = Some(at);
    }

    #[inline(always)]
    pub(super) const fn stop(&mut self, timer: Timer) {
        self.due[timer as usize] = None;
    }

    /// Starts the probe timer. It counts from the last transmission or progress, and expires no
    /// later than the retransmission timer.
    pub(super) fn start_probe(&mut self, now: Instant, wait: Duration) {
        let at = self.after(self.last_sent_at.max(self.progress_at), wait).max(now);
        let limit = self.due(Timer::Retransmission);
        self.set(Timer::Probe, limit.map_or(at, |limit| limit.min(at)));
    }

    #[inline(always)]
    pub(super) const fn note_sent(&mut self, now: Instant) {
        self.last_sent_at = now;
    }

    #[inline(always)]
    pub(super) const fn note_progress(&mut self, now: Instant) {
        self.progress_at = now;
    }

    /// When data was last sent.
    #[inline]
    pub(super) const fn last_sent_at(&self) -> Instant {
        self.last_sent_at
    }

    /// Stops the timer if it has expired. Returns whether it has.
    pub(super) fn expire(&mut self, timer: Timer, now: Instant) -> bool {
        self.due[timer as usize].take_if(|at| *at <= now).is_some()
    }
}
