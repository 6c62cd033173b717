//! Lateness of packets.

use airpath_base::Histogram;
use serde::Serialize;

/// Time of writing minus logical time of departure, in microseconds.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lateness {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// Largest.
    pub max: f64,
}

impl Lateness {
    pub(crate) fn of(histogram: &Histogram) -> Option<Self> {
        let at = |quantile| Some(histogram.quantile(quantile)?.as_nanos() as f64 / 1e3);
        Some(Self { p50: at(0.5)?, p99: at(0.99)?, p99_9: at(0.999)?, max: at(1.0)? })
    }
}
