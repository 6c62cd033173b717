//! What limits a sender, for how long, and how that affects cwnd.

use airpath_base::{Duration, Instant};

use super::Sender;
use super::timers::Timer;
use crate::event::SendLimit;

/// How long each limit has limited a sender.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LimitTimes {
    /// Limited by the congestion window.
    pub cwnd: Duration,
    /// Limited by pacing, with room in the window.
    pub pacing: Duration,
    /// Limited by the peer's window.
    pub receive_window: Duration,
    /// Limited by the sender's own buffer.
    pub send_buffer: Duration,
    /// The application had nothing to send.
    pub application: Duration,
}

#[derive(Debug)]
pub(crate) struct Limits {
    current: SendLimit,
    /// When the current limit began to count; only set between the handshake and the end of the
    /// stream.
    since: Option<Instant>,
    times: LimitTimes,
}

/// How much of cwnd is used (RFC 2861, RFC 7661).
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// Offset at which the window ends in which cwnd was last the limit.
    limited_until: u64,
    /// Whether cwnd was the limit in the round that ends at `round_end`, and otherwise the most
    /// that was in flight.
    limited: bool,
    most: u32,
    round_end: u64,
    /// Most in flight since cwnd was last fully used, and when that was.
    used: u32,
    used_at: Instant,
}

impl Sender {
    /// Notes that nothing more can be sent at `now`, and why.
    #[inline]
    pub(super) fn note_limit(&mut self, now: Instant, limit: SendLimit) {
        if limit != SendLimit::Pacing {
            self.bursts.end();
        }
        self.bursts.pause();
        if self.stream.has_work() {
            self.note_usage(now, limit);
        }
        // An application that waits for room in the send buffer has more to send
        // (draft-ietf-ccwg-bbr 4.1.2.4): what is delivered in the meantime shows what the path can
        // carry.
        if limit == SendLimit::Application && !self.stream.buffer().tells_idleness() {
            self.scoreboard.limited_by_application();
        }
        self.limits.change(now, limit);
        let blocked = limit == SendLimit::ReceiveWindow && self.scoreboard.is_empty();
        if blocked && self.timers.due(Timer::Retransmission).is_none() {
            self.peer.persist();
            self.arm_timer(now);
        }
        self.schedule_probe(now);
    }

    /// Whether cwnd, and nothing else, limited the sender in the window that `ack` acknowledges.
    #[inline]
    pub(super) fn was_cwnd_limited(&self, ack: u64) -> bool {
        if self.validation.half_used_grows {
            return self.uses_cwnd();
        }
        ack <= self.usage.limited_until
    }

    /// Whether cwnd is in use; in slow start, half of it is enough.
    fn uses_cwnd(&self) -> bool {
        let most = f64::from(self.usage.most);
        let window = self.congestion.window();
        self.usage.limited || (window.in_slow_start() && window.cwnd < 2.0 * most)
    }

    #[inline]
    fn note_usage(&mut self, now: Instant, limit: SendLimit) {
        let limited = limit == SendLimit::Cwnd
            || (limit == SendLimit::Pacing && self.scoreboard.pipe() >= self.congestion.segments());
        if limited {
            self.usage.limited_until = self.stream.nxt();
        }
        if !self.validation.half_used_grows {
            return;
        }
        let flight = self.scoreboard.flight();
        let usage = &mut self.usage;
        if limited
            || self.stream.una() >= usage.round_end
            || (!usage.limited && flight > usage.most)
        {
            (usage.limited, usage.most, usage.round_end) = (limited, flight, self.stream.nxt());
        }
        if self.uses_cwnd() {
            (self.usage.used, self.usage.used_at) = (0, now);
            return;
        }
        self.usage.used = self.usage.used.max(flight);
        let unused_for = now.saturating_since(self.usage.used_at);
        if self.validation.decays
            && !self.congestion.is_model_based()
            && unused_for >= self.rtt.rto()
        {
            self.decay(now, limit);
        }
    }

    /// RFC 2861 3.2: reduces cwnd halfway to what was used.
    fn decay(&mut self, now: Instant, limit: SendLimit) {
        if self.recovery.is_open() && limit != SendLimit::SendBuffer {
            self.congestion.decay(self.usage.used);
        }
        (self.usage.used, self.usage.used_at) = (0, now);
    }

    /// Data is sent while nothing is in flight.
    pub(super) fn restart(&mut self, now: Instant) {
        if self.stream.nxt() == 1 {
            return;
        }
        let idle = now.saturating_since(self.timers.last_sent_at());
        let rto = self.rtt.rto();
        if idle > rto && !self.congestion.is_model_based() {
            self.congestion.restart(self.validation.idle, idle, rto);
        }
        // Seen with Linux 6.18: a model-based algorithm treats a pause as idleness only if the
        // application caused it. What the pacer sends may be delivered before it sends again.
        if !self.congestion.is_model_based() || self.scoreboard.is_limited_by_application() {
            let since = self.timers.last_sent_at();
            self.congestion.notify(|control, window| control.on_restart(now, since, window));
        }
        self.update_pacing();
    }
}

impl Limits {
    /// Whether no time is counted: before the end of the handshake, or after the end of the stream.
    pub(super) const fn is_idle(&self) -> bool {
        self.since.is_none()
    }

    pub(super) const fn current(&self) -> SendLimit {
        self.current
    }

    /// How long each limit has applied, until `now`.
    pub(crate) fn times(&self, now: Instant) -> LimitTimes {
        let mut times = self.times;
        if let Some(since) = self.since {
            times.add(self.current, now.saturating_since(since));
        }
        times
    }

    /// Adds the time until `now` to the current limit, and continues from `since`; `None`: counting
    /// ends.
    pub(crate) fn count(&mut self, now: Instant, since: Option<Instant>) {
        self.times = self.times(now);
        self.since = since;
    }

    /// Sets the current limit. No time is counted after the end of the stream.
    fn change(&mut self, now: Instant, limit: SendLimit) {
        if limit != self.current {
            self.count(now, self.since.map(|_| now));
            self.current = limit;
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { current: SendLimit::Application, since: None, times: LimitTimes::default() }
    }
}

impl LimitTimes {
    fn add(&mut self, limit: SendLimit, time: Duration) {
        let slot = match limit {
            SendLimit::Cwnd => &mut self.cwnd,
            SendLimit::Pacing => &mut self.pacing,
            SendLimit::ReceiveWindow => &mut self.receive_window,
            SendLimit::SendBuffer => &mut self.send_buffer,
            SendLimit::Application => &mut self.application,
        };
        *slot += time;
    }
}
