//! quinn's congestion control, observed: it takes an RTT sample of each acknowledgement.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{
    Controller, ControllerFactory, ControllerMetrics, CubicConfig, NewRenoConfig,
};

use crate::{Config, Congestion};

/// What the acknowledgements told; shared with the endpoint.
#[derive(Clone, Default)]
pub(super) struct Record(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    rtt: VecDeque<Duration>,
    sampled: bool,
    in_flight: u64,
    acknowledged: Option<Idle>,
}

/// Whether a sender had nothing to send although congestion control would have let it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Idle(pub(super) bool);

impl Record {
    /// Takes the oldest RTT sample.
    pub(super) fn take_rtt(&self) -> Option<Duration> {
        self.with(|seen| seen.rtt.pop_front())
    }

    /// Whether there was a sample.
    pub(super) fn has_rtt(&self) -> bool {
        self.with(|seen| seen.sampled)
    }

    /// Bytes in flight after the last acknowledgement or transmission.
    pub(super) fn in_flight(&self) -> u64 {
        self.with(|seen| seen.in_flight)
    }

    /// Takes what the sender was until an acknowledgement arrived; `None` if none has arrived.
    pub(super) fn take_acknowledged(&self) -> Option<Idle> {
        self.with(|seen| seen.acknowledged.take())
    }

    fn with<T>(&self, work: impl FnOnce(&mut Seen) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Makes controllers of the chosen algorithm that write into `record`.
pub(super) struct Recorded {
    inner: Factory,
    record: Record,
}

#[derive(Clone)]
enum Factory {
    Cubic(Arc<CubicConfig>),
    NewReno(Arc<NewRenoConfig>),
}

impl Recorded {
    pub(super) fn new(config: &Config, record: Record) -> Self {
        let inner = match config.congestion {
            Congestion::Cubic => {
                let mut cubic = CubicConfig::default();
                cubic.initial_window(config.initial_window);
                Factory::Cubic(Arc::new(cubic))
            }
            Congestion::NewReno => {
                let mut reno = NewRenoConfig::default();
                reno.initial_window(config.initial_window);
                Factory::NewReno(Arc::new(reno))
            }
        };
        Self { inner, record }
    }
}

impl ControllerFactory for Recorded {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = match self.inner.clone() {
            Factory::Cubic(config) => config.build(now, current_mtu),
            Factory::NewReno(config) => config.build(now, current_mtu),
        };
        let record = self.record.clone();
        Box::new(RecordedController { inner, record, newest: None, sampled: (None, None) })
    }
}

struct RecordedController {
    inner: Box<dyn Controller>,
    record: Record,
    /// When the newest packet was sent that the current acknowledgement frame acknowledges.
    newest: Option<Instant>,
    /// When the packet was sent that gave the last sample, and its number: packets leave together.
    sampled: (Option<Instant>, Option<u64>),
}

impl Controller for RecordedController {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.record.with(|seen| seen.in_flight += bytes);
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.newest = self.newest.max(Some(sent));
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        // An acknowledgement only of older packets was late itself (RFC 9002 5.1).
        let newest = (self.newest.take(), largest_packet_num_acked);
        let sample = newest.0.filter(|_| newest > self.sampled);
        self.sampled = self.sampled.max(newest);
        self.record.with(|seen| {
            seen.in_flight = in_flight;
            seen.acknowledged = Some(Idle(app_limited));
            seen.sampled |= sample.is_some();
            seen.rtt.extend(sample.map(|sent| now.saturating_duration_since(sent)));
        });
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let (inner, record) = (self.inner.clone_box(), self.record.clone());
        Box::new(Self { inner, record, newest: self.newest, sampled: self.sampled })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}
