//! How acknowledgements arrive: alone, or in batches.

use airpath_base::{Duration, Instant, SparseHistogram};

use crate::report::AckReport;

/// An acknowledgement less than this after the previous one belongs to its batch.
const BATCH: Duration = Duration::from_millis(1);

#[derive(Clone, Default, Debug)]
pub(super) struct AckSpacing {
    count: u64,
    bytes: u64,
    batches: u64,
    last: Option<Instant>,
    batch: Option<Instant>,
    intervals: SparseHistogram,
}

impl AckSpacing {
    /// Adds an acknowledgement without payload, of this many new bytes.
    #[inline]
    pub(super) fn add(&mut self, now: Instant, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
        if self.last.is_none_or(|last| now.saturating_since(last) >= BATCH) {
            self.batches += 1;
            if let Some(batch) = self.batch.replace(now) {
                self.intervals.record(now.saturating_since(batch));
            }
        }
        self.last = Some(now);
    }

    pub(super) fn report(&self) -> Option<AckReport> {
        (self.count > 0).then(|| AckReport {
            count: self.count,
            batches: self.batches,
            per_batch: self.count as f64 / self.batches as f64,
            batch_interval_ms: self.intervals.quantile(0.5).map(Duration::as_millis_f64),
            bytes_per_ack: self.bytes as f64 / self.count as f64,
        })
    }
}
