//! Rows and summaries of everything that has a queue: links, and the buffers of a radio.

use airpath_base::{DropReason, Duration, Instant};
use airpath_path::LinkMeter;
use airpath_queue::Load;
use airpath_record::{EventRow, LinkRow, LinkSummary, Name, Quantiles, Tables};

use airpath_metrics::mbps;

/// Counters of a queue and its server.
#[derive(Clone, Copy, Default)]
pub(crate) struct QueueCounters {
    pub(crate) departed: Load,
    pub(crate) queued: Load,
    pub(crate) sojourn_sum: Duration,
    pub(crate) capacity_bytes: f64,
}

impl From<&LinkMeter> for QueueCounters {
    fn from(meter: &LinkMeter) -> Self {
        let &LinkMeter { departed, queued, sojourn_sum, capacity_bytes, .. } = meter;
        Self { departed, queued, sojourn_sum, capacity_bytes }
    }
}

/// A link, and its counters at the last sample.
pub(crate) struct LinkHistory {
    name: Name,
    before: QueueCounters,
    sampled_at: Instant,
}

impl LinkHistory {
    pub(crate) fn new(name: Name) -> Self {
        Self::since(name, Instant::ZERO)
    }

    /// The history of a link that has carried nothing yet.
    pub(crate) fn since(name: Name, sampled_at: Instant) -> Self {
        Self { name, before: QueueCounters::default(), sampled_at }
    }

    /// Name in tables.
    pub(crate) fn name(&self) -> Name {
        self.name
    }

    /// Writes the rows at the end of a sample interval.
    pub(crate) fn sample(
        &mut self,
        now: Instant,
        counters: QueueCounters,
        dropped: u64,
        tables: &mut Tables,
    ) {
        let seconds = now.saturating_since(self.sampled_at).as_secs_f64();
        let Some(throughput_mbps) =
            mbps(counters.departed.bytes - self.before.departed.bytes, seconds)
        else {
            return;
        };
        let packets = counters.departed.packets - self.before.departed.packets;
        let sojourn = counters.sojourn_sum.saturating_sub(self.before.sojourn_sum);
        let capacity = counters.capacity_bytes - self.before.capacity_bytes;
        tables.link(LinkRow {
            time_ns: now.as_nanos() as i64,
            link: self.name,
            throughput_mbps,
            capacity_mbps: capacity * 8.0 / seconds / 1e6,
            queue_packets: counters.queued.packets,
            queue_bytes: counters.queued.bytes,
            queue_delay_ms: (packets > 0).then(|| (sojourn / packets).as_millis_f64()),
            dropped_packets: dropped,
        });
        self.before = counters;
        self.sampled_at = now;
    }
}

/// Summary of a link over the whole run, whose length is in seconds.
pub(crate) fn summary(
    id: &str,
    seconds: f64,
    counters: QueueCounters,
    queue_delay_ms: Option<Quantiles>,
    dropped: impl Iterator<Item = (DropReason, u64)>,
) -> LinkSummary {
    let rate = |bytes: f64| if seconds > 0.0 { bytes * 8.0 / seconds / 1e6 } else { 0.0 };
    let sent = counters.departed.bytes as f64;
    let capacity = counters.capacity_bytes;
    LinkSummary {
        id: id.to_owned(),
        throughput_mbps: rate(sent),
        capacity_mbps: rate(capacity),
        utilisation: if capacity > 0.0 { sent / capacity } else { 0.0 },
        queue_delay_ms,
        dropped_packets: dropped.map(|(reason, packets)| (reason.name(), packets)).collect(),
    }
}

/// The event for packets dropped in a sample interval that ends at `now`.
pub(crate) fn drop_event(now: Instant, link: Name, reason: DropReason, packets: u64) -> EventRow {
    EventRow {
        link: Some(link),
        reason: Some(reason.name()),
        packets: Some(packets),
        ..EventRow::new(now.as_nanos() as i64, "drop")
    }
}
