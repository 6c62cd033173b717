//! A log-linear histogram of durations: it allocates only for octaves in which there are samples.

use crate::Duration;
use crate::time::to_f64;

/// Buckets per factor of two, as a power of two: their relative width is below 0.8 %.
const SUB_BITS: u32 = 7;
const SUB: u64 = 1 << SUB_BITS;

/// Counts of durations in buckets whose width is below 0.8 % of their value.
#[derive(Clone, PartialEq, Debug)]
pub struct Histogram {
    /// Counts of whole octaves, from bucket `first` on.
    counts: Vec<u64>,
    first: usize,
    count: u64,
    sum: u64,
    sum_of_squares: f64,
    min: u64,
    max: u64,
}

/// The content of a [`Histogram`] in a compact form, for one to which nothing is added for a while.
#[derive(Clone, Debug)]
pub struct Folded {
    /// Non-empty buckets and their counts.
    counts: Box<[(u16, u64)]>,
    count: u64,
    sum: u64,
    sum_of_squares: f64,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Self {
            counts: Vec::new(),
            first: 0,
            count: 0,
            sum: 0,
            sum_of_squares: 0.0,
            min: u64::MAX,
            max: 0,
        }
    }

    /// Adds one sample.
    #[inline]
    pub fn record(&mut self, sample: Duration) {
        self.record_all(std::iter::once(sample));
    }

    /// Adds the same sample several times.
    #[inline]
    pub fn record_times(&mut self, sample: Duration, times: u64) {
        if times == 0 {
            return;
        }
        let nanos = sample.as_nanos();
        let bucket = index(nanos);
        match self.counts.get_mut(bucket.wrapping_sub(self.first)) {
            Some(count) => *count += times,
            None => *self.bucket(bucket) += times,
        }
        self.count += times;
        self.sum = self.sum.saturating_add(nanos.saturating_mul(times));
        let float = to_f64(nanos);
        self.sum_of_squares += float * float * to_f64(times);
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
    }

    /// Adds samples, in order.
    #[inline]
    pub fn record_all(&mut self, samples: impl Iterator<Item = Duration>) {
        let Self { mut count, mut sum, mut sum_of_squares, mut min, mut max, .. } = *self;
        for sample in samples {
            let nanos = sample.as_nanos();
            let bucket = index(nanos);
            match self.counts.get_mut(bucket.wrapping_sub(self.first)) {
                Some(count) => *count += 1,
                None => *self.bucket(bucket) += 1,
            }
            count += 1;
            sum = sum.saturating_add(nanos);
            let float = to_f64(nanos);
            sum_of_squares += float * float;
            min = min.min(nanos);
            max = max.max(nanos);
        }
        (self.count, self.sum, self.sum_of_squares, self.min, self.max) =
            (count, sum, sum_of_squares, min, max);
    }

    /// Takes out the content; the histogram is empty afterwards.
    pub fn fold(&mut self) -> Folded {
        let counts = self.used().map(|(index, count)| (index as u16, count)).collect();
        let Self { count, sum, sum_of_squares, min, max, .. } = *self;
        self.counts.fill(0);
        (self.count, self.sum, self.sum_of_squares, self.min, self.max) = (0, 0, 0.0, u64::MAX, 0);
        Folded { counts, count, sum, sum_of_squares, min, max }
    }

    /// Adds content that was taken out of this histogram or another.
    pub fn unfold(&mut self, folded: &Folded) {
        for &(index, count) in &folded.counts {
            *self.bucket(usize::from(index)) += count;
        }
        self.count += folded.count;
        self.sum = self.sum.saturating_add(folded.sum);
        self.sum_of_squares += folded.sum_of_squares;
        self.min = self.min.min(folded.min);
        self.max = self.max.max(folded.max);
    }

    /// Number of samples so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all samples.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum)
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

    /// Standard deviation of the samples (ping's mdev); `None` without samples.
    pub fn deviation(&self) -> Option<Duration> {
        let mean = self.sum as f64 / self.count as f64;
        let variance = (self.sum_of_squares / self.count as f64 - mean * mean).max(0.0);
        (self.count > 0).then(|| Duration::from_nanos(variance.sqrt() as u64))
    }

    /// The quantile in [0, 1] by nearest rank, interpolated linearly within its bucket; the first
    /// and the last rank are exact; `None` without samples.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        if self.count == 0 {
            return None;
        }
        let rank = ((quantile * self.count as f64).ceil() as u64).clamp(1, self.count);
        if rank == 1 || rank == self.count {
            return if rank == 1 { self.min() } else { self.max() };
        }
        let mut below = 0;
        for (low, high, count) in self.buckets() {
            if below + count >= rank {
                let inside = ((rank - below) as f64 - 0.5) / count as f64;
                let width = (high.as_nanos() - low.as_nanos()) as f64;
                let nanos = low.as_nanos() + (inside * width) as u64;
                return Some(Duration::from_nanos(nanos.clamp(self.min, self.max)));
            }
            below += count;
        }
        self.max()
    }

    /// Non-empty buckets `[low, high)` and their counts, in order.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, Duration, u64)> + '_ {
        self.used().map(|(index, count)| {
            (Duration::from_nanos(low(index)), Duration::from_nanos(low(index + 1)), count)
        })
    }

    /// Non-empty buckets.
    fn used(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counts = (self.first..).zip(self.counts.iter().copied());
        counts.filter(|&(_, count)| count > 0)
    }

    /// The count of a bucket; allocates if necessary.
    #[cold]
    fn bucket(&mut self, index: usize) -> &mut u64 {
        let octave = 1 << SUB_BITS;
        let (low, end) = (index / octave * octave, (index / octave + 1) * octave);
        if self.counts.is_empty() {
            self.first = low;
        }
        if low < self.first {
            self.counts.splice(..0, std::iter::repeat_n(0, self.first - low));
            self.first = low;
        }
        let len = self.counts.len().max(end - self.first);
        self.counts.resize(len, 0);
        &mut self.counts[index - self.first]
    }
}

/// Values below `SUB` have one bucket each; above that, each octave has `SUB` buckets.
#[inline]
pub(crate) fn index(nanos: u64) -> usize {
    let octave = (63 - (nanos | (SUB - 1)).leading_zeros()) - (SUB_BITS - 1);
    let shift = octave.saturating_sub(1);
    ((u64::from(shift) << SUB_BITS) + (nanos >> shift)) as usize
}

/// Lower edge of a bucket.
pub(crate) fn low(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * SUB {
        return index;
    }
    let shift = (index >> SUB_BITS) - 1;
    let mantissa = index - (shift << SUB_BITS);
    mantissa.checked_shl(shift as u32).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_falls_between_the_edges_of_its_bucket() {
        for nanos in (0..2000).chain((0..50).map(|bit| (1u64 << bit) + bit)).chain([1 << 62]) {
            let at = index(nanos);
            assert!(low(at) <= nanos && nanos < low(at + 1), "{nanos} in bucket {at}");
            assert!(low(at + 1) - low(at) <= 1 + nanos / SUB, "{nanos}: bucket too wide");
        }
    }

    #[test]
    fn what_was_folded_unfolds_to_the_same() {
        let ramp = || {
            let mut histogram = Histogram::new();
            (1..=10_000).for_each(|micros| histogram.record(Duration::from_micros(micros)));
            histogram
        };
        let (whole, mut folded) = (ramp(), ramp());
        let small = folded.fold();
        assert_eq!((folded.count(), folded.min(), folded.quantile(0.5)), (0, None, None));
        folded.unfold(&small);
        for quantile in [0.0, 0.3, 0.5, 0.99, 1.0] {
            assert_eq!(folded.quantile(quantile), whole.quantile(quantile));
        }
        assert_eq!((folded.mean(), folded.deviation()), (whole.mean(), whole.deviation()));
    }

    #[test]
    fn a_sample_of_many_times_is_that_many_samples() {
        let (mut one_by_one, mut at_once) = (Histogram::new(), Histogram::new());
        for (micros, times) in [(17, 3), (4_000, 0), (90_000, 40), (5, 1)] {
            let sample = Duration::from_micros(micros);
            one_by_one.record_all(std::iter::repeat_n(sample, times as usize));
            at_once.record_times(sample, times);
        }
        assert_eq!(at_once.count(), 44);
        assert!(at_once.buckets().eq(one_by_one.buckets()));
        let told = |of: &Histogram| (of.min(), of.max(), of.mean(), of.deviation());
        assert_eq!(told(&at_once), told(&one_by_one));
    }

    #[test]
    fn quantiles_of_a_ramp() {
        let mut histogram = Histogram::new();
        for micros in 1..=10_000 {
            histogram.record(Duration::from_micros(micros));
        }
        let median = histogram.quantile(0.5).unwrap().as_millis_f64();
        assert!((median - 5.0).abs() < 0.04, "{median}");
        assert_eq!(histogram.quantile(1.0), Some(Duration::from_millis(10)));
        assert_eq!(histogram.quantile(0.0), histogram.min());
        assert_eq!(histogram.mean(), Some(Duration::from_nanos(5_000_500)));
        assert_eq!(Histogram::new().quantile(0.5), None);
    }
}
