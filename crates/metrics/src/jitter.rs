//! Interarrival jitter.

use airpath_base::Duration;

/// Interarrival jitter (RFC 3550 6.4.1): the mean deviation of the difference in one-way delay
/// between consecutive arrivals, whatever their sequence numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterarrivalJitter {
    /// Delay of the packet that arrived last.
    last_delay: Option<Duration>,
    jitter_ns: f64,
}

impl InterarrivalJitter {
    /// A packet arrived after this one-way delay.
    pub fn record(&mut self, delay: Duration) {
        if let Some(last) = self.last_delay.replace(delay) {
            let difference = delay.as_nanos().abs_diff(last.as_nanos()) as f64;
            // RFC 3550 6.4.1: J(i) = J(i-1) + (|D(i-1,i)| - J(i-1)) / 16.
            self.jitter_ns += (difference - self.jitter_ns) / 16.0;
        }
    }

    /// The current jitter; `None` before the first packet.
    pub fn millis(&self) -> Option<f64> {
        self.last_delay.map(|_| self.jitter_ns / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_counts_a_sixteenth() {
        let mut jitter = InterarrivalJitter::default();
        assert_eq!(jitter.millis(), None);
        jitter.record(Duration::from_millis(20));
        assert_eq!(jitter.millis(), Some(0.0));
        // The sign of a difference does not matter: 16 / 16, then 1 + (32 - 1) / 16.
        jitter.record(Duration::from_millis(36));
        assert_eq!(jitter.millis(), Some(1.0));
        jitter.record(Duration::from_millis(4));
        assert_eq!(jitter.millis(), Some(2.9375));
    }
}
