//! A histogram whose size is that of its content: for very many at once.

use crate::Duration;
#[cfg(doc)]
use crate::Histogram;
use crate::histogram::{index, low};

/// Counts of durations in the buckets of a [`Histogram`]; only non-empty buckets are stored.
#[derive(Clone, Default, Debug)]
pub struct SparseHistogram {
    /// Buckets and their counts, in order.
    buckets: Vec<(u16, u32)>,
    /// The bucket of the last sample.
    last: usize,
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

impl SparseHistogram {
    /// Adds one sample.
    #[inline]
    pub fn record(&mut self, sample: Duration) {
        let nanos = sample.as_nanos();
        let bucket = index(nanos) as u16;
        self.min = if self.count == 0 { nanos } else { self.min.min(nanos) };
        self.max = self.max.max(nanos);
        self.count += 1;
        self.sum = self.sum.saturating_add(nanos);
        if self.buckets.get(self.last).is_none_or(|&(last, _)| last != bucket) {
            let found = self.buckets.binary_search_by_key(&bucket, |&(known, _)| known);
            self.last = found.unwrap_or_else(|at| {
                self.buckets.insert(at, (bucket, 0));
                at
            });
        }
        let count = &mut self.buckets[self.last].1;
        *count = count.saturating_add(1);
    }

    /// Number of samples so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Smallest sample, exact; `None` without samples.
    pub fn min(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_nanos(self.min))
    }

    /// Largest sample, exact; `None` without samples.
    pub fn max(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_nanos(self.max))
    }

    /// Mean, exact to the nanosecond; `None` without samples.
    pub fn mean(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_nanos(self.sum / self.count))
    }

    /// The quantile in [0, 1], computed as by [`Histogram::quantile`]; `None` without samples.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        let rank = ((quantile * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        if rank == 1 || rank == self.count {
            return if rank == 1 { self.min() } else { self.max() };
        }
        let mut below = 0;
        for &(bucket, count) in &self.buckets {
            let (from, to) = (low(bucket.into()), low(usize::from(bucket) + 1));
            if below + u64::from(count) >= rank {
                let inside = ((rank - below) as f64 - 0.5) / f64::from(count);
                let nanos = from + (inside * (to - from) as f64) as u64;
                return Some(Duration::from_nanos(nanos.clamp(self.min, self.max)));
            }
            below += u64::from(count);
        }
        self.max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Histogram;

    #[test]
    fn it_says_what_a_histogram_says() {
        let (mut sparse, mut dense) = (SparseHistogram::default(), Histogram::new());
        for quantile in [0.0, 0.5, 1.0] {
            assert_eq!(sparse.quantile(quantile), None);
        }
        for n in 0..5000_u64 {
            let sample = Duration::from_nanos(n * n * 977 % 1_000_003 * 50);
            sparse.record(sample);
            dense.record(sample);
            if n % 499 == 0 {
                for quantile in [0.0, 0.01, 0.25, 0.5, 0.95, 0.999, 1.0] {
                    assert_eq!(sparse.quantile(quantile), dense.quantile(quantile));
                }
            }
        }
        assert_eq!((sparse.count(), sparse.mean()), (dense.count(), dense.mean()));
        assert_eq!((sparse.min(), sparse.max()), (dense.min(), dense.max()));
    }
}
