//! What the acknowledgements of an interval say, for those who decide once per interval: Python
//! classes and the agents of an environment.

use airpath_base::Duration;
use airpath_tcp::AckSample;
use pyo3::prelude::*;

/// What the acknowledgements of an interval say.
#[pyclass(name = "Interval", module = "airpath._core", frozen, get_all)]
#[derive(Clone, Debug, Default)]
pub(crate) struct PyInterval {
    start_ns: u64,
    end_ns: u64,
    mss_bytes: u32,
    acks: u32,
    delivered_segments: u32,
    lost_segments: u32,
    timeouts: u32,
    rtt_ns: Option<u64>,
    srtt_ns: u64,
    min_rtt_ns: u64,
    in_flight_segments: u32,
    app_limited: bool,
}

#[pymethods]
impl PyInterval {
    /// Payload bits that were delivered, per second.
    #[getter]
    fn delivered_bps(&self) -> f64 {
        let seconds = Duration::from_nanos(self.end_ns - self.start_ns).as_secs_f64();
        let bits = 8.0 * f64::from(self.delivered_segments) * f64::from(self.mss_bytes);
        if seconds > 0.0 { bits / seconds } else { 0.0 }
    }
}

/// Adds acknowledgements up, interval by interval.
#[derive(Debug, Default)]
pub(crate) struct IntervalMeter {
    current: PyInterval,
    /// The interval that ended last, until it is taken.
    ended: Option<PyInterval>,
    /// Whether the next acknowledgement ends the interval.
    ends_early: bool,
}

impl IntervalMeter {
    /// Adds an acknowledgement. It ends the interval if `length` has passed; zero: a smoothed RTT.
    pub(crate) fn on_ack(&mut self, ack: &AckSample, length: Duration) {
        let now_ns = ack.now.as_nanos();
        let current = &mut self.current;
        if current.start_ns == 0 {
            current.start_ns = now_ns;
        }
        current.end_ns = now_ns;
        current.mss_bytes = ack.mss;
        current.acks += 1;
        current.delivered_segments += ack.delivered;
        current.lost_segments += ack.lost;
        current.app_limited |= ack.rate.is_some_and(|rate| rate.app_limited);
        if let Some(rtt) = ack.rtt.map(Duration::as_nanos) {
            current.rtt_ns = Some(current.rtt_ns.map_or(rtt, |least| least.min(rtt)));
        }
        current.srtt_ns = ack.srtt.as_nanos();
        current.min_rtt_ns = ack.min_rtt.as_nanos();
        current.in_flight_segments = ack.in_flight;
        let length = if length == Duration::ZERO { ack.srtt } else { length };
        let is_over = self.ends_early || now_ns - current.start_ns >= length.as_nanos();
        if is_over && self.ended.is_none() {
            self.ended = Some(self.restart(now_ns));
        }
    }

    /// The retransmission timer has expired: the next acknowledgement ends the interval.
    pub(crate) fn on_timeout(&mut self) {
        self.current.timeouts += 1;
        self.ends_early = true;
    }

    /// Whether an interval has ended that was not taken.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// The interval that has ended.
    pub(crate) fn take_ended(&mut self) -> Option<PyInterval> {
        self.ended.take()
    }

    /// The interval that has ended; if none has, the current one ends here, or with its last
    /// acknowledgement.
    pub(crate) fn take(&mut self, end_ns: Option<u64>) -> PyInterval {
        self.ended.take().unwrap_or_else(|| {
            let end_ns = end_ns.unwrap_or(self.current.end_ns);
            let interval = self.restart(end_ns);
            PyInterval { end_ns, ..interval }
        })
    }

    /// Begins the next interval. What an acknowledgement says of the connection stays known.
    fn restart(&mut self, now_ns: u64) -> PyInterval {
        let PyInterval { mss_bytes, srtt_ns, min_rtt_ns, in_flight_segments, .. } = self.current;
        self.ends_early = false;
        std::mem::replace(
            &mut self.current,
            PyInterval {
                start_ns: now_ns,
                end_ns: now_ns,
                mss_bytes,
                srtt_ns,
                min_rtt_ns,
                in_flight_segments,
                ..PyInterval::default()
            },
        )
    }
}
