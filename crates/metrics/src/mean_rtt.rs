//! The mean round trip of a sample interval.

use airpath_base::Duration;

/// Mean of the RTTs since the last sample.
#[derive(Clone, Copy, Debug, Default)]
pub struct MeanRtt {
    sum: Duration,
    count: u64,
}

impl MeanRtt {
    /// Adds one RTT.
    #[inline]
    pub fn record(&mut self, rtt: Duration) {
        self.sum += rtt;
        self.count += 1;
    }

    /// The mean so far; `None` without an RTT.
    pub fn millis(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.sum / self.count).as_millis_f64())
    }

    /// The mean so far; begins the next interval.
    pub fn take_millis(&mut self) -> Option<f64> {
        std::mem::take(self).millis()
    }
}
