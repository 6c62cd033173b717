//! What is noted of one TCP sender while it runs: RTT samples, events, how slow start ended.

use airpath_base::{Duration, Event, EventKind, Histogram, Instant, Packet, Payload, Tunnel};
use airpath_record::{EventRow, Exit, HistogramRow, LimitSeconds, Name};
use airpath_tcp::{Endpoint, EndpointConfig, Window};

use super::{Context, Identity};

/// The notes on one sender.
pub(super) struct Notes {
    /// Every RTT sample.
    pub(super) rtt: Histogram,
    /// The first end of slow start.
    pub(super) exit: Option<Exit>,
    interval: Interval,
}

/// Which sender, and where.
#[derive(Clone, Copy)]
pub(super) struct Subject {
    /// Name of the connection in tables.
    pub(super) name: Name,
    /// Start of the flow.
    pub(super) start: Instant,
    /// The path that its data enters.
    pub(super) path: usize,
    /// Size of a full segment, headers included.
    pub(super) segment_bytes: u32,
}

/// Sums over the current sample interval.
#[derive(Default)]
struct Interval {
    rtt_sum: Duration,
    rtt_count: u64,
}

impl Notes {
    pub(super) fn new() -> Self {
        Self { rtt: Histogram::new(), exit: None, interval: Interval::default() }
    }

    /// An acknowledgement gave an RTT.
    #[inline]
    pub(super) fn rtt(&mut self, rtt: Duration) {
        self.rtt.record(rtt);
        self.interval.rtt_sum += rtt;
        self.interval.rtt_count += 1;
    }

    /// Mean RTT since the last call in ms.
    pub(super) fn take_mean_rtt_ms(&mut self) -> Option<f64> {
        let Interval { rtt_sum, rtt_count } = std::mem::take(&mut self.interval);
        (rtt_count > 0).then(|| (rtt_sum / rtt_count).as_millis_f64())
    }

    /// Takes over what the sender has to tell.
    #[inline]
    pub(super) fn events(
        &mut self,
        sender: &mut Endpoint,
        subject: Subject,
        context: &mut Context<'_>,
    ) {
        while let Some(event) = sender.poll_event() {
            if let EventKind::SlowStartExit { reason, cwnd, min_rtt, round_rtt, .. } = event.kind {
                self.exit = Some(Exit {
                    time_s: event.at.saturating_since(subject.start).as_secs_f64(),
                    cwnd_segments: cwnd,
                    reason: reason.name(),
                    bdp_fraction: bdp_fraction(cwnd, min_rtt, subject, context),
                    min_rtt_ms: min_rtt.as_millis_f64(),
                    round_rtt_ms: round_rtt.map(Duration::as_millis_f64),
                });
            }
            context.tables.event(event_row(subject.name, &event));
        }
    }
}

impl Subject {
    /// The sender of a flow or of the proxy on its way.
    pub(super) fn new(
        identity: &Identity,
        name: Name,
        path: usize,
        config: &EndpointConfig,
    ) -> Self {
        let segment_bytes = config.mss + config.header;
        Self { name, start: identity.start, path, segment_bytes }
    }
}

/// cwnd over what the slowest link's capacity so far and the smallest RTT make.
fn bdp_fraction(
    cwnd: u32,
    min_rtt: Duration,
    subject: Subject,
    context: &mut Context<'_>,
) -> Option<f64> {
    let seconds = context.now.saturating_since(Instant::ZERO).as_secs_f64();
    let mut slowest = f64::INFINITY;
    context.network.observe(subject.path, context.now, &mut |meter| {
        slowest = slowest.min(meter.capacity_bytes / seconds);
    });
    let bytes = slowest * min_rtt.as_secs_f64();
    let window = f64::from(cwnd) * f64::from(subject.segment_bytes);
    (bytes.is_finite() && bytes > 0.0).then(|| window / bytes)
}

/// Sends all that an endpoint has to send now into `path`; says when its next timer is due.
#[inline]
pub(super) fn transmit(
    endpoint: &mut Endpoint,
    identity: &Identity,
    path: usize,
    context: &mut Context<'_>,
) -> Instant {
    while let Some(segment) = endpoint.poll_transmit(context.now) {
        let packet = Packet {
            flow: identity.flow,
            size: endpoint.wire_size(&segment),
            ecn: endpoint.ecn_codepoint(&segment),
            tunnel: Tunnel::default(),
            payload: Payload::Tcp(segment),
        };
        context.send(path, packet);
    }
    endpoint.next_timer().unwrap_or(Instant::MAX)
}

/// Writes a flow's RTT distribution.
pub(super) fn record_histogram(histogram: &Histogram, flow: Name, context: &mut Context<'_>) {
    for (low, high, count) in histogram.buckets() {
        let (low_ms, high_ms) = (low.as_millis_f64(), high.as_millis_f64());
        context.tables.histogram(HistogramRow { flow, low_ms, high_ms, count });
    }
}

/// ssthresh in segments; `None` before the first congestion.
pub(super) fn ssthresh(window: &Window) -> Option<u32> {
    window.ssthresh.is_finite().then_some(window.ssthresh as u32)
}

/// How long each limit held a sender back.
pub(super) fn limit_seconds(sender: &Endpoint, now: Instant) -> LimitSeconds {
    let times = sender.limit_times(now);
    LimitSeconds {
        cwnd: times.cwnd.as_secs_f64(),
        pacing: times.pacing.as_secs_f64(),
        receive_window: times.receive_window.as_secs_f64(),
        send_buffer: times.send_buffer.as_secs_f64(),
        application: times.application.as_secs_f64(),
    }
}

fn event_row(flow: Name, event: &Event) -> EventRow {
    let mut row = EventRow {
        time_ns: event.at.as_nanos() as i64,
        flow: Some(flow),
        link: None,
        kind: event.kind.name(),
        reason: None,
        cwnd_segments: None,
        value: None,
        packets: None,
        cell: None,
    };
    match event.kind {
        EventKind::SlowStartExit { reason, cwnd, srtt, .. } => {
            row.reason = Some(reason.name());
            row.cwnd_segments = Some(cwnd);
            row.value = Some(srtt.as_millis_f64());
        }
        EventKind::RecoveryStart { cwnd, ssthresh, lost } => {
            row.cwnd_segments = Some(cwnd);
            row.value = Some(f64::from(ssthresh));
            row.packets = Some(u64::from(lost));
        }
        EventKind::RecoveryEnd { cwnd } => row.cwnd_segments = Some(cwnd),
        EventKind::RetransmissionTimeout { rto, .. } => row.value = Some(rto.as_millis_f64()),
        EventKind::Reduction { cwnd, ssthresh, ecn } => {
            row.reason = Some(if ecn { "ecn" } else { "tail_loss_probe" });
            row.cwnd_segments = Some(cwnd);
            row.value = Some(f64::from(ssthresh));
        }
        EventKind::Undo { cwnd, by } => {
            row.reason = Some(by.name());
            row.cwnd_segments = Some(cwnd);
        }
        EventKind::Established
        | EventKind::TailLossProbe
        | EventKind::WindowProbe
        | EventKind::Finished => {}
    }
    row
}
