//! Records one TCP sender while it runs: RTT samples, events, the end of slow start.

use airpath_base::{Duration, Histogram, Instant};
use airpath_metrics::MeanRtt;
use airpath_network::Hop;
use airpath_record::{EventRow, Exit, LimitSeconds, Name};
use airpath_tcp::{Endpoint, EndpointConfig, Event, EventKind, HystartSnapshot, Window};

use super::context::{Context, Identity};

/// The recorder of one sender.
pub(super) struct SenderRecorder {
    /// All RTT samples.
    pub(super) rtt: Histogram,
    /// The first end of slow start.
    pub(super) exit: Option<Exit>,
    /// Time-outs, from the start of the timer until it expired.
    pub(super) time_outs: Vec<(Instant, Instant)>,
    /// RTT samples of the current sample interval.
    mean_rtt: MeanRtt,
    /// Whether HyStart could still have ended slow start at the last acknowledgement; only with
    /// `acks`.
    hystart_was_active: bool,
}

/// Which sender is recorded, and where it is.
#[derive(Clone, Copy)]
pub(super) struct RecordedSender {
    /// Name of the connection in tables.
    pub(super) name: Name,
    /// Start of the flow.
    pub(super) start: Instant,
    /// The path into which it sends its data.
    pub(super) path: Hop,
    /// Size of a full segment, headers included.
    pub(super) segment_bytes: u32,
}

impl SenderRecorder {
    pub(super) fn new() -> Self {
        let (rtt, mean_rtt) = (Histogram::new(), MeanRtt::default());
        Self { rtt, exit: None, time_outs: Vec::new(), mean_rtt, hystart_was_active: false }
    }

    /// An acknowledgement gave an RTT.
    #[inline]
    pub(super) fn rtt(&mut self, rtt: Duration) {
        self.rtt.record(rtt);
        self.mean_rtt.record(rtt);
    }

    /// Mean RTT since the last call, in ms.
    pub(super) fn take_mean_rtt_ms(&mut self) -> Option<f64> {
        self.mean_rtt.take_millis()
    }

    /// HyStart's state for a row of `acks`: until slow start ends, including the acknowledgement
    /// that ends it.
    pub(super) fn hystart(&mut self, sender: &Endpoint) -> Option<HystartSnapshot> {
        if !self.hystart_was_active && !sender.window().in_slow_start() {
            // It is not active either, so it is not asked.
            return None;
        }
        let hystart = sender.hystart()?;
        let was_active = std::mem::replace(&mut self.hystart_was_active, hystart.active);
        (hystart.active || was_active).then_some(hystart)
    }

    /// Records the events that the sender reports.
    #[cold]
    pub(super) fn events(
        &mut self,
        sender: &mut Endpoint,
        recorded: RecordedSender,
        context: &mut Context<'_>,
    ) {
        while let Some(event) = sender.poll_event() {
            if let EventKind::SlowStartExit { reason, cwnd, min_rtt, round_rtt, .. } = event.kind {
                self.exit = Some(Exit {
                    time_s: event.at.saturating_since(recorded.start).as_secs_f64(),
                    cwnd_segments: cwnd,
                    reason: reason.name(),
                    bdp_fraction: bdp_fraction(cwnd, min_rtt, recorded, context),
                    min_rtt_ms: min_rtt.as_millis_f64(),
                    round_rtt_ms: round_rtt.map(Duration::as_millis_f64),
                });
            }
            if let EventKind::RetransmissionTimeout { rto, .. } = event.kind {
                self.time_outs.push((event.at.checked_sub(rto).unwrap_or(Instant::ZERO), event.at));
            }
            context.tables.event(event_row(recorded.name, &event));
        }
    }
}

impl RecordedSender {
    /// The sender of a flow, or of the proxy in its path.
    pub(super) fn new(identity: &Identity, name: Name, path: Hop, config: &EndpointConfig) -> Self {
        let segment_bytes = config.mss + config.header;
        Self { name, start: identity.start, path, segment_bytes }
    }
}

/// cwnd divided by the bandwidth-delay product, from the slowest link's capacity so far and the
/// smallest RTT.
fn bdp_fraction(
    cwnd: u32,
    min_rtt: Duration,
    recorded: RecordedSender,
    context: &mut Context<'_>,
) -> Option<f64> {
    let seconds = context.now.saturating_since(Instant::ZERO).as_secs_f64();
    let mut slowest = f64::INFINITY;
    context.network.observe(recorded.path, context.now, &mut |meter| {
        slowest = slowest.min(meter.capacity_bytes / seconds);
    });
    let bytes = slowest * min_rtt.as_secs_f64();
    let window = f64::from(cwnd) * f64::from(recorded.segment_bytes);
    (bytes.is_finite() && bytes > 0.0).then(|| window / bytes)
}

/// Sends into `path` everything that an endpoint may send now; returns when its next timer is due.
#[inline(always)]
pub(super) fn transmit(
    endpoint: &mut Endpoint,
    identity: &Identity,
    path: Hop,
    context: &mut Context<'_>,
) -> Instant {
    endpoint.transmit(context.now, identity.flow, |packet| context.send(path, packet));
    endpoint.next_timer().unwrap_or(Instant::MAX)
}

/// ssthresh in segments; `None` before the first congestion.
pub(super) fn ssthresh(window: &Window) -> Option<u32> {
    window.ssthresh.is_finite().then_some(window.ssthresh as u32)
}

/// How long each limit has limited a sender.
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
    let mut row = EventRow::new(event.at.as_nanos() as i64, event.kind.name());
    row.flow = Some(flow);
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
