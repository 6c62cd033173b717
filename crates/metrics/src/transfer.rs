//! A flow that transfers a byte stream: bulk and file flows.

use airpath_base::Duration;
use airpath_base::Instant;
use airpath_record::FlowSummary;

use crate::{SteadyRate, mbps, steady_rate};

/// Meter of one bulk or file flow: what its receiver has in order, and what its application wrote.
///
/// A bulk flow is measured until its application stops, a file until its last byte has arrived;
/// both at the latest until the run ends. The driver may report the stop late: what arrives after
/// it does not count for the goodput, what arrives at that very time does.
#[derive(Clone, Debug)]
pub struct TransferMeter {
    start: Instant,
    /// When the application stops, for a bulk flow.
    stop: Option<Instant>,
    /// Size in bytes, for a file.
    size: Option<u64>,
    delivered: u64,
    written: u64,
    /// End of the measurement, and the bytes delivered by then.
    measured: Option<(Instant, u64)>,
    /// Cumulative delivery in bytes at each sample.
    delivery: Vec<(Instant, u64)>,
}

impl TransferMeter {
    /// A flow whose application writes for `duration`, or until the run ends.
    pub fn bulk(start: Instant, duration: Option<Duration>) -> Self {
        Self::new(start, duration.map(|duration| start + duration), None)
    }

    /// A flow whose application writes `size` bytes.
    pub fn file(start: Instant, size: u64) -> Self {
        Self::new(start, None, Some(size))
    }

    fn new(start: Instant, stop: Option<Instant>, size: Option<u64>) -> Self {
        let (measured, delivery) = (None, Vec::new());
        Self { start, stop, size, delivered: 0, written: 0, measured, delivery }
    }

    /// The receiver has `bytes` of payload in order at `at`, from the start of the stream.
    #[inline]
    pub fn on_delivered(&mut self, at: Instant, bytes: u64) {
        self.end_if_due(at);
        self.delivered = bytes;
        if self.measured.is_none() && self.size.is_some_and(|size| bytes >= size) {
            self.measured = Some((at, bytes));
        }
    }

    /// The application has written `bytes` of payload to TCP in total. It writes nothing after it
    /// has stopped, so this may be reported late, but must be reported.
    pub fn on_written(&mut self, bytes: u64) {
        self.written = bytes;
    }

    /// The application stops writing now.
    pub fn on_stop(&mut self, now: Instant) {
        self.measured.get_or_insert((now, self.delivered));
    }

    /// Whether the end of the measurement is known.
    #[inline]
    pub const fn is_measured(&self) -> bool {
        self.measured.is_some()
    }

    /// Bytes that the receiver has in order.
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Ends a sample interval and returns the goodput in it, in Mb/s. The first interval begins
    /// when the flow starts. `None` if no time has passed.
    pub fn sample(&mut self, now: Instant) -> Option<f64> {
        self.end_if_due(now);
        let (since, before) = self.delivery.last().copied().unwrap_or((self.start, 0));
        let seconds = now.saturating_since(since).as_secs_f64();
        let goodput_mbps = mbps(self.delivered - before, seconds)?;
        self.delivery.push((now, self.delivered));
        Some(goodput_mbps)
    }

    /// Adds the flow's figures at the end of the run to what is already known of it; if that
    /// includes its round trips (`rtt_ms`), also the figures that need them.
    pub fn summarise(&self, now: Instant, flow: FlowSummary) -> FlowSummary {
        let start = self.start;
        let (end, delivered) = self.measured.unwrap_or((now, self.delivered));
        let seconds = end.saturating_since(start).as_secs_f64();
        let steady = steady_rate(start, end, &self.delivery);
        let goodput_mbps = mbps(delivered, seconds);
        let is_complete = self.size.is_some() && self.measured.is_some();
        let rtt = flow.rtt_ms.as_ref();
        FlowSummary {
            start_ns: start.as_nanos() as i64,
            end_ns: (seconds > 0.0).then_some(end.as_nanos() as i64),
            bytes_delivered: self.delivered,
            goodput_mbps,
            written_mbps: mbps(self.written, seconds),
            self_inflicted_delay_ms: rtt.map(|rtt| rtt.p95 - rtt.min),
            // An RTT of less than a nanosecond counts as 0.
            power: (goodput_mbps.zip(rtt).filter(|(_, rtt)| rtt.mean > 0.0))
                .map(|(rate, rtt)| rate / (rtt.mean / 1e3)),
            steady_mbps: steady.map(|SteadyRate { mbps, .. }| mbps),
            converged_after_s: steady.and_then(|steady| steady.converged_after_s),
            completed_s: is_complete.then_some(seconds),
            ..flow
        }
    }

    /// An event after the application stopped is reported.
    #[inline]
    fn end_if_due(&mut self, now: Instant) {
        if let Some(stop) = self.stop.filter(|&stop| now > stop) {
            self.on_stop(stop);
        }
    }
}

#[cfg(test)]
mod tests {
    use airpath_record::Quantiles;

    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn summary(meter: &TransferMeter, now: u64) -> FlowSummary {
        meter.summarise(ms(now), FlowSummary::default())
    }

    /// Compares a driver that learns of everything at once (the virtual clock) with one that learns
    /// from the next packet or sample that the application has stopped (the real clock).
    #[test]
    fn a_late_driver_measures_what_a_punctual_one_does() {
        let meter = || TransferMeter::bulk(ms(200), Some(Duration::from_secs(6)));
        let (mut punctual, mut late) = (meter(), meter());
        for meter in [&mut punctual, &mut late] {
            for at in (300..=6200).step_by(100) {
                meter.on_delivered(ms(at), at * 100);
                meter.sample(ms(at));
            }
        }
        punctual.on_written(625_000);
        punctual.on_stop(ms(6200));
        for meter in [&mut punctual, &mut late] {
            // What was in transit still arrives.
            meter.on_delivered(ms(6201), 700_000);
            meter.sample(ms(6300));
        }
        late.on_written(625_000);
        let [punctual, late] = [&punctual, &late].map(|meter| summary(meter, 7000));
        assert_eq!(format!("{punctual:?}"), format!("{late:?}"));
        assert_eq!((late.end_ns, late.bytes_delivered), (Some(6_200_000_000), 700_000));
        let expected = mbps(620_000, 6.0);
        assert_eq!((late.goodput_mbps, late.written_mbps), (expected, mbps(625_000, 6.0)));
        assert_eq!((late.steady_mbps, late.completed_s), (Some(0.8), None));
    }

    #[test]
    fn a_file_is_measured_until_its_last_byte_is_there() {
        let mut meter = TransferMeter::file(ms(0), 1000);
        meter.on_delivered(ms(10), 999);
        assert_eq!(summary(&meter, 20).completed_s, None);
        meter.on_delivered(ms(30), 1000);
        meter.on_delivered(ms(40), 1000);
        meter.on_written(1000);
        let flow = summary(&meter, 50);
        assert_eq!((flow.completed_s, flow.end_ns), (Some(0.03), Some(30_000_000)));
        assert_eq!(flow.goodput_mbps, flow.written_mbps);
    }

    #[test]
    fn over_no_time_there_is_no_power() {
        let mut meter = TransferMeter::file(ms(0), 1000);
        meter.on_delivered(ms(10), 1000);
        let quantiles = |ms: f64| Quantiles {
            min: ms,
            mean: ms,
            mdev: 0.0,
            p50: ms,
            p95: ms,
            p99: ms,
            max: ms,
        };
        let power = |rtt: f64| {
            let flow = FlowSummary { rtt_ms: Some(quantiles(rtt)), ..FlowSummary::default() };
            meter.summarise(ms(20), flow).power
        };
        assert_eq!((power(0.0), power(2.0)), (None, Some(400.0)));
    }

    #[test]
    fn the_first_interval_begins_with_the_flow() {
        let mut meter = TransferMeter::bulk(ms(60), None);
        assert_eq!(meter.sample(ms(50)), None);
        assert_eq!(meter.sample(ms(60)), None);
        meter.on_delivered(ms(90), 5000);
        assert_eq!(meter.sample(ms(100)), Some(1.0));
        assert_eq!(meter.sample(ms(200)), Some(0.0));
    }

    #[test]
    fn a_flow_that_never_started_has_no_rate() {
        let flow = summary(&TransferMeter::bulk(ms(100), None), 100);
        assert_eq!((flow.goodput_mbps, flow.written_mbps, flow.end_ns), (None, None, None));
    }
}
