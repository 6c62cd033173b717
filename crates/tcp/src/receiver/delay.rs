//! Decides when to acknowledge: at once, together with what follows, or later.

use airpath_base::{Duration, Instant};

use super::reassembly::Arrival;
use crate::{AggregationConfig, DelayedAckConfig, EndpointConfig, RttEstimator};

/// Decides when acknowledgements go out.
#[derive(Debug)]
pub(super) struct Delay {
    config: DelayedAckConfig,
    aggregation: Option<AggregationConfig>,
    state: State,
    aggregate: Option<Aggregate>,
    /// The last segment arrived alone with PSH: the application's read acknowledges it.
    pushed: bool,
    /// Linux's quick mode and adaptive delay.
    adaptive: Option<Adaptive>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    None,
    Delayed(Instant),
    Now,
}

/// Segments that are being aggregated for delivery.
#[derive(Clone, Copy, Debug)]
struct Aggregate {
    until: Instant,
    bytes: u32,
    /// Sequence number at which the next segment would begin.
    end: u64,
    arrival: Arrival,
}

/// A segment with new data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) seq: u64,
    pub(super) len: u32,
    /// Payload of a full-sized segment of the peer.
    pub(super) full: u32,
    /// Whether it ends the peer's burst.
    pub(super) push: bool,
    pub(super) arrival: Arrival,
}

/// What Linux learns about the time between segments. The rules are from the paper that
/// [`DelayedAckConfig`] names; the numbers are those of later releases.
#[derive(Clone, Copy, Debug)]
struct Adaptive {
    /// Acknowledgements still to be sent without delay.
    quick: u32,
    /// Time that an acknowledgement waits for the next segment.
    timeout: Duration,
    last_arrival: Option<Instant>,
}

/// The state that a pending acknowledgement would report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// Bytes received in order and not acknowledged.
    pub(super) bytes: u64,
    /// Payload of a full-sized segment of the peer.
    pub(super) full: u32,
    /// Whether the peer cannot send a full-sized segment before this acknowledgement.
    pub(super) starved: bool,
    /// Whether an application is about to read and the window would have to shrink until then.
    pub(super) unread: bool,
}

/// The window on offer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Window in bytes.
    pub(super) bytes: u64,
    /// Payload of a full-sized segment of the peer.
    pub(super) full: u32,
}

impl Delay {
    pub(super) fn new(config: &EndpointConfig) -> Self {
        let delay = config.delayed_ack;
        let adaptive = (delay.quick_segments > 0 || delay.is_adaptive()).then_some(Adaptive {
            quick: 0,
            timeout: delay.timeout,
            last_arrival: None,
        });
        Self {
            config: delay,
            aggregation: config.aggregation,
            state: State::None,
            aggregate: None,
            pushed: false,
            adaptive,
        }
    }

    /// Whether segments are delivered one at a time, and full ones are all treated alike.
    pub(super) const fn hands_up_alone(&self) -> bool {
        self.aggregation.is_none() && !self.config.pushed_at_once
    }

    /// Whether segments are [delivered alone](Self::hands_up_alone) and nothing is learned from the
    /// times of their arrival.
    pub(super) const fn is_plain(&self) -> bool {
        self.hands_up_alone() && self.adaptive.is_none()
    }

    /// New data arrived in order. Seen with Linux 6.18: data above a gap does not count as an
    /// arrival here, so after a recovery longer than an RTO the acknowledgements are quick again.
    #[inline]
    pub(super) fn note_arrival(&mut self, now: Instant, window: Room, rtt: &RttEstimator) {
        if let Some(adaptive) = &mut self.adaptive {
            let gap = adaptive.last_arrival.replace(now).map(|last| now - last);
            let short = |gap: Duration| gap <= self.config.timeout / 2 && gap <= rtt.least_rto();
            if gap.is_some_and(short) {
                // The usual case: no time-out matters.
                adaptive.shorten(self.config.timeout);
                return;
            }
            let rto = rtt.rto();
            if let Some(gap) = gap {
                adaptive.follow(gap, self.config.timeout, rto);
            }
            if gap.is_none_or(|gap| gap > rto) {
                self.quicken(u32::MAX, window);
            }
        }
    }

    /// Sends at least the next `acks` acknowledgements without delay, within the configured number
    /// and half of the window.
    pub(super) fn quicken(&mut self, acks: u32, window: Room) {
        if let Some(adaptive) = &mut self.adaptive {
            let half = window.bytes / (2 * u64::from(window.full)).max(1);
            let half = u32::try_from(half).unwrap_or(u32::MAX).max(2);
            adaptive.quick = adaptive.quick.max(acks.min(half).min(self.config.quick_segments));
        }
    }

    /// Sends the next acknowledgement without delay. Seen with Linux 6.18: if the number granted is
    /// even, it is not used up; if odd, one is.
    pub(super) fn quicken_once(&mut self) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.quick |= 1;
        }
    }

    /// Delivers the aggregate if it does not end where the next segment begins.
    #[inline]
    pub(super) fn interrupt(&mut self, seq: u64, full: u32) -> Option<Arrival> {
        let ended = self.aggregate.take_if(|aggregate| aggregate.end != seq)?;
        Some(self.handed_up(&ended, full))
    }

    /// Takes a segment with new data. Returns what is delivered now, together with everything held
    /// before it.
    #[inline]
    pub(super) fn hold(&mut self, now: Instant, part: Part) -> Option<Arrival> {
        let Part { seq, len, full, push, arrival } = part;
        let pushed =
            arrival == Arrival::InOrder && (push && self.config.pushed_at_once || len < full);
        let Some(aggregation) = self.aggregation else {
            self.pushed |= pushed;
            return Some(arrival);
        };
        let until = now + aggregation.time;
        let new = Aggregate { until, bytes: 0, end: seq, arrival };
        let aggregate = self.aggregate.get_or_insert(new);
        aggregate.bytes = aggregate.bytes.saturating_add(len);
        aggregate.end = seq + u64::from(len);
        if arrival == Arrival::FillsGap {
            aggregate.arrival = arrival;
        }
        let arrival = aggregate.arrival;
        // Or because another full segment would not fit.
        let ends = push || aggregate.bytes.saturating_add(full) > aggregation.max_bytes;
        if ends {
            self.pushed |= pushed && aggregate.bytes == len;
            self.aggregate = None;
        }
        ends.then_some(arrival)
    }

    fn handed_up(&mut self, aggregate: &Aggregate, full: u32) -> Arrival {
        self.pushed |= aggregate.arrival == Arrival::InOrder && aggregate.bytes < full;
        aggregate.arrival
    }

    /// Data was delivered. RFC 5681 4.2: an acknowledgement for at least every second full-sized
    /// segment, now or when the application has read.
    #[inline(always)]
    pub(super) fn decide(&mut self, now: Instant, waiting: Waiting, rtt: &RttEstimator) {
        let quick = self.is_quick();
        let most = u64::from(self.config.segments.saturating_sub(1)) * u64::from(waiting.full);
        if waiting.bytes > most && !waiting.unread || quick || waiting.starved {
            self.state = State::Now;
        } else if self.state == State::None {
            self.state = State::Delayed(self.delayed_until(now, rtt));
        } else if let (State::Delayed(at), true) = (self.state, self.config.is_adaptive()) {
            // An acknowledgement may be brought forward, but is never postponed.
            self.state = State::Delayed(at.min(self.delayed_until(now, rtt)));
        }
    }

    fn delayed_until(&self, now: Instant, rtt: &RttEstimator) -> Instant {
        let DelayedAckConfig { timeout, max_timeout, ticking, .. } = self.config;
        if ticking && timeout.as_nanos() > 0 {
            let tick = now.as_nanos() / timeout.as_nanos() + 1;
            return Instant::from_nanos(tick * timeout.as_nanos());
        }
        match self.adaptive.filter(|_| self.config.is_adaptive()) {
            None => now + timeout,
            // At most a round trip: the sender may wait for it.
            Some(adaptive) => {
                let round_trip = rtt.srtt().unwrap_or(max_timeout).max(timeout);
                now + adaptive.timeout.min(round_trip).min(max_timeout)
            }
        }
    }

    #[inline]
    pub(super) fn timer(&self) -> Option<Instant> {
        let delayed = match self.state {
            State::Now => return None,
            State::Delayed(at) => Some(at),
            State::None => None,
        };
        match self.aggregate {
            None => delayed,
            Some(Aggregate { until, .. }) => Some(delayed.map_or(until, |at| at.min(until))),
        }
    }

    /// Delivers what has been held long enough, if anything; the peer's segments are `full` bytes.
    pub(super) fn release(&mut self, now: Instant, full: u32) -> Option<Arrival> {
        let ended = self.aggregate.take_if(|aggregate| aggregate.until <= now)?;
        Some(self.handed_up(&ended, full))
    }

    pub(super) fn on_timer(&mut self, now: Instant, rtt: &RttEstimator) {
        if let State::Delayed(at) = self.state
            && at <= now
        {
            self.state = State::Now;
            if let Some(adaptive) = &mut self.adaptive {
                // The wait was in vain: the next segment takes longer.
                adaptive.timeout = (adaptive.timeout * 2).min(rtt.rto());
            }
        }
    }

    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.state == State::Now
    }

    /// Whether segments in order are being aggregated.
    #[inline]
    pub(super) fn is_aggregating(&self) -> bool {
        self.aggregate.is_some_and(|aggregate| aggregate.arrival != Arrival::OutOfOrder)
    }

    /// Whether nothing is held and sending an acknowledgement changes nothing.
    #[inline]
    pub(super) fn rests(&self) -> bool {
        self.state == State::None && self.aggregate.is_none() && !self.is_quick()
    }

    /// Whether acknowledgements are not delayed for now.
    #[inline]
    pub(super) fn is_quick(&self) -> bool {
        self.adaptive.is_some_and(|adaptive| adaptive.quick > 0)
    }

    /// Whether a segment that arrived alone with PSH waits for the application.
    pub(super) fn is_pushed(&self) -> bool {
        self.pushed
    }

    /// Whether such a segment is acknowledged without delay once it is read.
    pub(super) fn is_pushed_at_once(&self) -> bool {
        self.pushed && self.config.pushed_at_once
    }

    /// Makes an acknowledgement due without any delay.
    pub(super) fn at_once(&mut self) {
        self.state = State::Now;
    }

    /// An acknowledgement is sent, and none is pending any more.
    #[inline]
    pub(super) fn end(&mut self) {
        self.state = State::None;
        self.pushed = false;
    }

    /// Like [`end`](Self::end), but also learns from it, for a receiver that [is not
    /// plain](Self::is_plain).
    #[inline]
    pub(super) fn on_sent(&mut self) {
        self.end();
        if self.is_aggregating() {
            self.aggregate = None;
        }
        if let Some(adaptive) = &mut self.adaptive
            && adaptive.quick > 0
        {
            adaptive.quick -= 1;
            if adaptive.quick == 0 {
                adaptive.timeout = self.config.timeout;
            }
        }
    }
}

impl Adaptive {
    /// The next segment arrived soon: shortens the delay.
    fn shorten(&mut self, min: Duration) {
        self.timeout = self.timeout / 2 + min / 2;
    }

    /// The next segment arrived after `gap`: the delay follows it, down to `min`.
    fn follow(&mut self, gap: Duration, min: Duration, rto: Duration) {
        if gap <= min / 2 {
            self.shorten(min);
        } else if gap < self.timeout {
            self.timeout = (self.timeout / 2 + gap).min(rto);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{RtoConfig, RtoEstimator};

    proptest! {
        /// Gaps that need no time-out have the same effect as the general rule.
        #[test]
        fn the_time_to_wait_follows_every_gap(
            gaps in proptest::collection::vec(prop_oneof![0u64..50_000, 0u64..900_000], 1..40),
            (rtt, min, max) in (1u64..400_000, 1u64..300_000, 1u64..600_000),
        ) {
            let us = Duration::from_micros;
            let estimator = RtoEstimator::Linux;
            let mut rtt_estimator = RttEstimator::new(RtoConfig {
                initial: us(1_000_000),
                min: us(min),
                max: us(max),
                estimator,
            });
            rtt_estimator.sample(us(rtt));
            let config = EndpointConfig {
                delayed_ack: DelayedAckConfig {
                    quick_segments: 16,
                    timeout: us(40_000),
                    max_timeout: us(200_000),
                    ..EndpointConfig::default().delayed_ack
                },
                ..EndpointConfig::default()
            };
            let mut delay = Delay::new(&config);
            let mut expected = Adaptive { quick: 0, timeout: us(40_000), last_arrival: None };
            let (mut now, room) = (Instant::ZERO, Room { bytes: 100_000, full: 1_000 });
            let rto = rtt_estimator.rto();
            for gap in gaps {
                now += us(gap);
                delay.note_arrival(now, room, &rtt_estimator);
                if let Some(last) = expected.last_arrival.replace(now) {
                    expected.follow(now - last, us(40_000), rto);
                    expected.quick = expected.quick.max(if now - last > rto { 16 } else { 0 });
                } else {
                    expected.quick = 16;
                }
                let adaptive = delay.adaptive.unwrap();
                prop_assert_eq!(adaptive.timeout, expected.timeout);
                prop_assert_eq!(adaptive.quick, expected.quick);
                delay.adaptive.as_mut().unwrap().quick = 0;
                expected.quick = 0;
            }
        }
    }
}
