//! Scheduling requests: requesting uplink on PUCCH (TS 38.321 5.4.4, TS 36.321 5.4.4).

use airpath_base::{Duration, Instant, Stream};

use super::Occasions;

/// The RRC configuration (TS 38.331 SchedulingRequestConfig and SchedulingRequestResourceConfig, TS
/// 36.331 SchedulingRequestConfig).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SrConfig {
    /// The PUCCH resource: periodicityAndOffset (TS 38.213 9.2.4, TS 36.213 10.1.5). `None`: there
    /// is no resource, and every request becomes random access.
    pub occasions: Option<Occasions>,
    /// sr-ProhibitTimer. LTE signals it as a number of SR periods.
    pub prohibit: Option<Duration>,
    /// sr-TransMax (dsr-TransMax): 4, 8, 16, 32 or 64.
    pub transmissions_max: u32,
    /// From the trigger to the first occasion that the UE can still use.
    pub preparation: Duration,
    /// Probability that the base station misses a request: a PUCCH error.
    pub miss_probability: f64,
}

/// The procedure for one SR configuration.
///
/// 1. [`trigger`](Self::trigger) when the buffer status procedure requires it;
/// 2. at [`next_event`](Self::next_event) call [`poll`](Self::poll), or [`defer`](Self::defer) if
///    the occasion cannot be used;
/// 3. it is pending until [`on_pdu`](Self::on_pdu) or [`cancel`](Self::cancel).
///
/// ```
/// use airpath_base::{Duration, Instant, Stream};
/// use airpath_radio::mac::Occasions;
/// use airpath_radio::mac::sr::{SchedulingRequest, SrConfig, SrEvent};
///
/// let ms = Duration::from_millis;
/// let config = SrConfig {
///     occasions: Some(Occasions::new(ms(20), ms(3))),
///     prohibit: None,
///     transmissions_max: 64,
///     preparation: Duration::ZERO,
///     miss_probability: 0.0,
/// };
/// let mut sr = SchedulingRequest::new(&config, Stream::new(1, "ue.0.sr"));
/// sr.trigger(Instant::ZERO + ms(10));
/// assert_eq!(sr.next_event(), Some(Instant::ZERO + ms(23)));
/// let event = sr.poll(Instant::ZERO + ms(23));
/// assert!(matches!(event, Some(SrEvent::Transmitted { received: true, .. })));
/// ```
#[derive(Clone, Debug)]
pub struct SchedulingRequest {
    config: SrConfig,
    /// The PUCCH resource, until it is released.
    occasions: Option<Occasions>,
    pending: Option<Pending>,
    stream: Stream,
}

/// What the procedure did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SrEvent {
    /// A request was sent on PUCCH. Active Time begins (TS 38.321 5.7).
    Transmitted {
        /// Beginning of the occasion.
        at: Instant,
        /// SR_COUNTER, including this request.
        count: u32,
        /// Whether the base station receives it.
        received: bool,
    },
    /// Random access replaces the request; no request is pending any more.
    RandomAccess {
        /// When random access begins.
        at: Instant,
        /// Why it begins.
        cause: SrFailure,
    },
}

/// Why a scheduling request became random access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SrFailure {
    /// There is no valid PUCCH resource.
    NoResource,
    /// sr-TransMax was reached. PUCCH and SRS are released, configured grants and assignments
    /// cleared.
    TransmissionsMax,
}

/// A pending request.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// Times of the first and the last trigger.
    since: Instant,
    last_trigger: Instant,
    /// SR_COUNTER
    count: u32,
    /// When it can next be sent, or becomes random access.
    next: Instant,
}

impl SchedulingRequest {
    /// A procedure without a pending request, with the PUCCH resource as configured.
    pub fn new(config: &SrConfig, stream: Stream) -> Self {
        Self { config: *config, occasions: config.occasions, pending: None, stream }
    }

    /// The buffer status procedure triggers a request.
    pub fn trigger(&mut self, now: Instant) {
        if let Some(pending) = &mut self.pending {
            pending.last_trigger = now;
            return;
        }
        // TS 38.321 5.4.4: no other SR is pending, so SR_COUNTER is set to 0
        let next = self.occasion(now + self.config.preparation).unwrap_or(now);
        self.pending = Some(Pending { since: now, last_trigger: now, count: 0, next });
    }

    /// When to [`poll`](Self::poll) next; `None` while nothing is pending.
    pub fn next_event(&self) -> Option<Instant> {
        self.pending.map(|pending| pending.next)
    }

    /// The next event by `now`. Occasions before `now` that were not polled are replayed in order.
    pub fn poll(&mut self, now: Instant) -> Option<SrEvent> {
        let pending = self.pending.filter(|pending| pending.next <= now)?;
        let at = pending.next;
        if self.occasions.is_none() {
            // TS 38.321 5.4.4: no valid PUCCH resource: random access, cancel the pending SR
            self.pending = None;
            return Some(SrEvent::RandomAccess { at, cause: SrFailure::NoResource });
        }
        if pending.count >= self.config.transmissions_max {
            // TS 38.321 5.4.4: SR_COUNTER has reached sr-TransMax: release PUCCH, random access
            self.release(at);
            self.pending = None;
            return Some(SrEvent::RandomAccess { at, cause: SrFailure::TransmissionsMax });
        }
        // TS 38.321 5.4.4: increment SR_COUNTER, start sr-ProhibitTimer
        let count = pending.count + 1;
        let prohibited_until = at + self.config.prohibit.unwrap_or(Duration::ZERO);
        let next = self.occasion_after(at).map_or(at, |next| {
            if next >= prohibited_until {
                next
            } else {
                self.occasion(prohibited_until).unwrap_or(next)
            }
        });
        self.pending = Some(Pending { count, next, ..pending });
        let received = !self.stream.chance(self.config.miss_probability);
        Some(SrEvent::Transmitted { at, count, received })
    }

    /// No occasion before `until` can be used, because of an uplink transmission or a measurement
    /// gap. They do not count.
    pub fn defer(&mut self, until: Instant) {
        let later = self.occasion(until);
        if let (Some(pending), Some(later)) = (&mut self.pending, later) {
            pending.next = pending.next.max(later);
        }
    }

    /// A MAC PDU assembled at `assembled` is sent and contains a buffer status report.
    pub fn on_pdu(&mut self, assembled: Instant) {
        // TS 38.321 5.4.4: cancelled if the BSR contains the status up to the last trigger
        if self.pending.is_some_and(|pending| pending.last_trigger <= assembled) {
            self.cancel();
        }
    }

    /// Cancels the request and stops sr-ProhibitTimer: the uplink grants hold all pending data, or
    /// the MAC is reset.
    pub fn cancel(&mut self) {
        self.pending = None;
    }

    /// The PUCCH resource is lost, because of sr-TransMax or timeAlignmentTimer (TS 38.321 5.2). A
    /// pending request becomes random access at once.
    pub fn release(&mut self, now: Instant) {
        self.occasions = None;
        if let Some(pending) = &mut self.pending {
            pending.next = now;
        }
    }

    /// RRC has reconfigured the PUCCH resource at `now`.
    pub fn restore(&mut self, now: Instant) {
        self.occasions = self.config.occasions;
        let next = self.occasion(now + self.config.preparation);
        if let (Some(pending), Some(next)) = (&mut self.pending, next) {
            pending.next = next;
        }
    }

    /// Whether there is a PUCCH resource.
    pub fn has_resource(&self) -> bool {
        self.occasions.is_some()
    }

    /// Since when a request is pending.
    pub fn pending_since(&self) -> Option<Instant> {
        self.pending.map(|pending| pending.since)
    }

    /// Whether a request was sent on PUCCH and is pending, which is Active Time (TS 38.321 5.7).
    pub fn is_sent_and_pending(&self) -> bool {
        self.pending.is_some_and(|pending| pending.count > 0)
    }

    fn occasion(&self, time: Instant) -> Option<Instant> {
        self.occasions.map(|occasions| occasions.at_or_after(time))
    }

    fn occasion_after(&self, time: Instant) -> Option<Instant> {
        self.occasion(time + Duration::from_nanos(1))
    }
}

#[cfg(test)]
mod tests;
