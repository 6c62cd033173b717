//! What limits a stream at each moment: the receive window, a loss, an application without data.

use airpath_base::{Duration, Instant};

use crate::report::LimitsReport;

/// What limits the sender until the next packet.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) enum Limit {
    /// The path or the congestion window: none of the others applies.
    #[default]
    Path,
    /// The receive window has no room for what the sender would send, also if nothing is
    /// outstanding. The kernel counts the same as `rwnd_limited` (`tcpi_rwnd_limited`).
    Window,
    /// Everything that was sent is acknowledged.
    Idle,
    /// Lost data is retransmitted and not yet acknowledged.
    Recovery,
}

impl Limit {
    /// What limits a sender that has sent up to `highest`; `is_closed`: the window is too small for
    /// it to send more (silly window avoidance, RFC 9293 3.8.6.2.1).
    #[inline]
    pub(crate) fn of(
        highest: u64,
        acked: u64,
        recovers_until: u64,
        has_room: bool,
        is_closed: bool,
    ) -> Self {
        if is_closed && acked >= highest {
            Self::Window
        } else if acked >= highest {
            Self::Idle
        } else if acked < recovers_until {
            Self::Recovery
        } else if has_room {
            Self::Path
        } else {
            Self::Window
        }
    }
}

#[derive(Clone, Default, Debug)]
pub(super) struct Limits {
    since: Option<Instant>,
    limit: Limit,
    /// Indexed by `Limit`.
    lasted: [Duration; 4],
}

impl Limits {
    /// Notes what limits the sender from now on, after a segment with data or an acknowledgement.
    #[inline]
    pub(super) fn note(&mut self, now: Instant, limit: Limit) {
        if limit == Limit::Idle && self.limit == Limit::Idle && self.since.is_some() {
            // Whether the application is idle shows only with its next data.
            return;
        }
        if let Some(since) = self.since {
            self.lasted[self.limit as usize] += now.saturating_since(since);
        }
        (self.since, self.limit) = (Some(now), limit);
    }

    /// Corrects what limited the sender until now: it had nothing to send.
    #[inline]
    pub(super) fn had_nothing(&mut self) {
        if self.limit == Limit::Window {
            self.limit = Limit::Idle;
        }
    }

    pub(super) fn report(&self) -> LimitsReport {
        let seconds = |limit: Limit| self.lasted[limit as usize].as_nanos() as f64 / 1e9;
        LimitsReport {
            path_s: seconds(Limit::Path),
            receive_window_s: seconds(Limit::Window),
            nothing_to_send_s: seconds(Limit::Idle),
            recovery_s: seconds(Limit::Recovery),
        }
    }
}
