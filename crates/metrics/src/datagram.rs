//! A flow of datagrams at a constant rate.

use airpath_base::{Duration, Histogram, Instant};
use airpath_record::{FlowSummary, Quantiles};

use crate::{InterarrivalJitter, mbps};

/// Meter of one UDP flow: datagrams that were sent, arrived or were dropped.
///
/// Datagrams that arrive up to and including the time at which the sender stops count for the
/// goodput; all count for `bytes_delivered`, the delay and the jitter.
#[derive(Clone, Debug)]
pub struct DatagramMeter {
    start: Instant,
    stop: Option<Instant>,
    /// Payload of each datagram.
    payload_bytes: u64,
    sent: u64,
    received: u64,
    received_in_time: u64,
    lost: u64,
    delay: Histogram,
    jitter: InterarrivalJitter,
    /// End of the last sample interval, and the bytes delivered by then.
    sampled: (Instant, u64),
}

impl DatagramMeter {
    /// A flow that sends for `duration`, or until the run ends; each datagram has `payload_bytes`
    /// bytes of payload.
    pub fn new(start: Instant, duration: Option<Duration>, payload_bytes: u32) -> Self {
        Self {
            start,
            stop: duration.map(|duration| start + duration),
            payload_bytes: payload_bytes.into(),
            sent: 0,
            received: 0,
            received_in_time: 0,
            lost: 0,
            delay: Histogram::new(),
            jitter: InterarrivalJitter::default(),
            sampled: (start, 0),
        }
    }

    /// A datagram is sent.
    pub fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// A datagram arrives at `at`; `sent_at` is when it was sent, if known.
    pub fn on_received(&mut self, at: Instant, sent_at: Option<Instant>) {
        self.received += 1;
        self.received_in_time += u64::from(self.stop.is_none_or(|stop| at <= stop));
        if let Some(sent_at) = sent_at {
            let delay = at.saturating_since(sent_at);
            self.delay.record(delay);
            self.jitter.record(delay);
        }
    }

    /// A datagram was dropped on the path.
    pub fn on_lost(&mut self) {
        self.lost += 1;
    }

    /// Datagrams sent so far.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Payload that arrived, in bytes.
    pub const fn delivered(&self) -> u64 {
        self.received * self.payload_bytes
    }

    /// Whether nothing is in transit any more.
    pub const fn is_settled(&self) -> bool {
        self.received + self.lost >= self.sent
    }

    /// Ends a sample interval and returns the goodput in it, in Mb/s. The first interval begins
    /// when the flow starts. `None` if no time has passed.
    pub fn sample(&mut self, now: Instant) -> Option<f64> {
        let (since, before) = self.sampled;
        let seconds = now.saturating_since(since).as_secs_f64();
        let goodput_mbps = mbps(self.delivered() - before, seconds)?;
        self.sampled = (now, self.delivered());
        Some(goodput_mbps)
    }

    /// Adds the flow's figures at the end of the run to what is already known of it.
    pub fn summarise(&self, now: Instant, flow: FlowSummary) -> FlowSummary {
        let end = self.stop.map_or(now, |stop| stop.min(now));
        let seconds = end.saturating_since(self.start).as_secs_f64();
        FlowSummary {
            start_ns: self.start.as_nanos() as i64,
            end_ns: (seconds > 0.0).then_some(end.as_nanos() as i64),
            bytes_delivered: self.delivered(),
            goodput_mbps: mbps(self.received_in_time * self.payload_bytes, seconds),
            segments_sent: self.sent,
            packets_sent: Some(self.sent),
            packets_lost: Some(self.lost),
            delay_ms: Quantiles::of(&self.delay),
            jitter_ms: self.jitter.millis(),
            ..flow
        }
    }
}

/// When the last datagrams were sent, by number: for drivers that see only the number on arrival.
#[derive(Clone, Debug, Default)]
pub struct SendTimes {
    sent: u64,
    /// The time of number `n` is at `n` modulo [`SendTimes::REMEMBERED`].
    at: Vec<Instant>,
}

impl SendTimes {
    /// Number of datagrams whose times are kept: more than can be in transit.
    pub const REMEMBERED: u64 = 1 << 17;

    /// The next datagram is sent at `at`.
    pub fn push(&mut self, at: Instant) {
        let place = (self.sent % Self::REMEMBERED) as usize;
        self.sent += 1;
        match self.at.get_mut(place) {
            Some(sent_at) => *sent_at = at,
            None => self.at.push(at),
        }
    }

    /// When the newest datagram whose number has these lowest 32 bits was sent; `None` if that was
    /// too long ago, or there is none.
    pub fn of(&self, number: u32) -> Option<Instant> {
        let back = u64::from((self.sent as u32).wrapping_sub(number));
        let is_remembered = (1..=Self::REMEMBERED.min(self.sent)).contains(&back);
        let place = (self.sent.wrapping_sub(back) % Self::REMEMBERED) as usize;
        self.at.get(place).copied().filter(|_| is_remembered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn of_a_long_flow_the_last_datagrams_are_remembered() {
        const REMEMBERED: u64 = SendTimes::REMEMBERED;
        let mut times = SendTimes::default();
        let count = 3 * REMEMBERED + 7;
        (0..count).for_each(|at| times.push(ms(at)));
        let at = |number: u64| times.of(number as u32);
        assert_eq!(at(count - 1), Some(ms(count - 1)));
        assert_eq!(at(count - REMEMBERED), Some(ms(count - REMEMBERED)));
        assert_eq!((at(count - REMEMBERED - 1), at(count)), (None, None));
        assert_eq!(times.at.len() as u64, REMEMBERED);
    }

    #[test]
    fn a_datagram_counts_into_the_goodput_until_the_sender_stops() {
        let mut meter = DatagramMeter::new(ms(0), Some(Duration::from_millis(40)), 500);
        (0..4).for_each(|_| meter.on_sent());
        meter.on_received(ms(20), Some(ms(0)));
        meter.on_received(ms(40), Some(ms(10)));
        meter.on_received(ms(41), None);
        assert!(!meter.is_settled());
        meter.on_lost();
        assert!(meter.is_settled());
        let flow = meter.summarise(ms(100), FlowSummary::default());
        assert_eq!((flow.bytes_delivered, flow.goodput_mbps), (1500, mbps(1000, 0.04)));
        assert_eq!((flow.packets_sent, flow.packets_lost), (Some(4), Some(1)));
        assert_eq!((flow.jitter_ms, flow.end_ns), (Some(10.0 / 16.0), Some(40_000_000)));
        assert_eq!(flow.delay_ms.map(|delay| (delay.min, delay.max)), Some((20.0, 30.0)));
    }
}
