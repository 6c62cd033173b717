//! Samples of a duration, summarised in a few numbers.

use airpath_base::{Duration, SparseHistogram};
use serde::Serialize;

/// Samples of a duration, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// How many samples there are.
    pub count: u64,
    /// Smallest.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile: 95 % of the samples are not above it.
    pub p95: f64,
    /// Largest.
    pub max: f64,
}

impl Distribution {
    /// Summarises samples; `None` if there are none.
    pub(crate) fn of(samples: &SparseHistogram) -> Option<Self> {
        let millis = |duration: Option<Duration>| duration.map(Duration::as_millis_f64);
        Some(Self {
            count: samples.count(),
            min: millis(samples.min())?,
            mean: millis(samples.mean())?,
            p50: millis(samples.quantile(0.5))?,
            p95: millis(samples.quantile(0.95))?,
            max: millis(samples.max())?,
        })
    }
}
