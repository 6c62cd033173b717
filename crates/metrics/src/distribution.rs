//! A flow's distribution of round trips, as rows.

use airpath_base::{Duration, Histogram};
use airpath_record::{HistogramRow, Name, Tables};

/// Writes a flow's round trips to the table `rtt_histogram`.
pub fn write_histogram(histogram: &Histogram, flow: Name, tables: &mut Tables) {
    let millis = Duration::as_millis_f64;
    for (low, high, count) in histogram.buckets() {
        tables.histogram(HistogramRow { flow, low_ms: millis(low), high_ms: millis(high), count });
    }
}
