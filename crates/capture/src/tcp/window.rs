//! The receive window, and how long it limited the sender.

use airpath_base::{Duration, Instant};

use crate::report::WindowReport;

#[derive(Clone, Default, Debug)]
pub(super) struct Window {
    /// Known once both SYNs were seen with their options: 0 if one of them has no scale.
    scale: Option<u8>,
    /// The first byte that the receiver does not accept any more.
    edge: Option<u64>,
    max: Option<u64>,
    min: Option<u64>,
    zero: bool,
    zero_windows: u64,
    limited_since: Option<Instant>,
    limited: Duration,
}

impl Window {
    pub(super) fn set_scale(&mut self, scale: u8) {
        self.scale = Some(scale);
    }

    /// Whether the receiver takes no data: its last window was zero.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.zero
    }

    /// Handles an acknowledgement with a window; the window of a SYN is not scaled (RFC 7323 2.2).
    #[inline]
    pub(super) fn on_ack(&mut self, acked: u64, window: u16, syn: bool) {
        if window == 0 && !self.zero && !syn {
            self.zero_windows += 1;
        }
        self.zero = window == 0;
        let Some(scale) = (if syn { Some(0) } else { self.scale }) else {
            self.edge = None;
            return;
        };
        let bytes = u64::from(window) << scale;
        self.edge = Some(acked + bytes);
        self.max = self.max.max(Some(bytes));
        if !syn {
            self.min = Some(self.min.map_or(bytes, |min| min.min(bytes)));
        }
    }

    /// Room that a sender waits for if nothing is outstanding and it has more to send than fits: a
    /// segment, or half of the largest window if that is less (RFC 9293 3.8.6.2.1).
    #[inline]
    pub(super) fn least(&self, segment: u64) -> u64 {
        segment.min(self.max.unwrap_or(0) / 2).max(1)
    }

    /// Whether a segment up to `to` leaves room in the window.
    #[inline]
    pub(super) fn exceeds(&self, to: u64) -> bool {
        self.edge.is_some_and(|edge| edge > to)
    }

    /// Corrects what limited the sender since the last segment: not the window.
    #[inline]
    pub(super) fn did_not_limit(&mut self) {
        self.limited_since = None;
    }

    /// Notes whether there is less room than `needed`, from now on.
    #[inline]
    pub(super) fn note(&mut self, now: Instant, highest: u64, needed: u64) -> bool {
        let is_limited = self.edge.is_some_and(|edge| edge.saturating_sub(highest) < needed);
        if let Some(since) = self.limited_since {
            self.limited += now.saturating_since(since);
        }
        self.limited_since = is_limited.then_some(now);
        is_limited
    }

    pub(super) fn report(&self, end: Instant) -> Option<WindowReport> {
        let open = self.limited_since.map_or(Duration::ZERO, |since| end.saturating_since(since));
        let limited = self.limited + open;
        (self.max.is_some() || self.zero_windows > 0).then(|| WindowReport {
            scale: self.scale,
            max_bytes: self.scale.and(self.max),
            min_bytes: self.min,
            limited_s: self.scale.map(|_| limited.as_nanos() as f64 / 1e9),
            zero_windows: self.zero_windows,
        })
    }
}
