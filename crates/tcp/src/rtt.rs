//! Round-trip time and the retransmission time-out (RFC 6298).

use airpath_base::Duration;

use crate::RtoConfig;

/// The estimator of one sender.
///
/// ```
/// use airpath_base::Duration;
/// use airpath_tcp::{RtoConfig, RttEstimator};
/// let config = RtoConfig {
///     initial: Duration::from_secs(1),
///     min: Duration::from_millis(200),
///     max: Duration::from_secs(120),
/// };
/// let mut rtt = RttEstimator::new(config);
/// assert_eq!(rtt.rto(), Duration::from_secs(1));
/// rtt.sample(Duration::from_millis(100));
/// assert_eq!(rtt.rto(), Duration::from_millis(300)); // 100 + 4 × 50
/// ```
#[derive(Clone, Debug)]
pub struct RttEstimator {
    config: RtoConfig,
    srtt: Option<Duration>,
    rttvar: Duration,
    min: Option<Duration>,
    latest: Duration,
    backoff: u32,
}

impl RttEstimator {
    /// No sample yet.
    pub const fn new(config: RtoConfig) -> Self {
        Self {
            config,
            srtt: None,
            rttvar: Duration::ZERO,
            min: None,
            latest: Duration::ZERO,
            backoff: 0,
        }
    }

    /// Takes one measurement, of a segment that was not retransmitted or by timestamps.
    pub fn sample(&mut self, rtt: Duration) {
        self.latest = rtt;
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        let r = rtt.as_nanos();
        match self.srtt {
            // RFC 6298 (2.2)
            None => {
                self.srtt = Some(rtt);
                self.rttvar = rtt / 2;
            }
            // RFC 6298 (2.3), alpha = 1/8, beta = 1/4
            Some(srtt) => {
                let s = srtt.as_nanos();
                self.rttvar =
                    Duration::from_nanos((3 * self.rttvar.as_nanos() + s.abs_diff(r)) / 4);
                self.srtt = Some(Duration::from_nanos((7 * s + r) / 8));
            }
        }
    }

    /// A SYN was lost: more careful until the first measurement (RFC 6298 (5.7)).
    pub(crate) fn start_after_syn_loss(&mut self) {
        self.config.initial = self.config.initial.max(Duration::from_secs(3));
    }

    /// The time-out now, back-off included.
    pub fn rto(&self) -> Duration {
        let base = match self.srtt {
            None => self.config.initial,
            // RFC 6298 (2.3): the clock granularity here is a nanosecond.
            Some(srtt) => srtt + self.rttvar * 4,
        };
        let floored = base.max(self.config.min);
        // RFC 6298 (5.5), (2.5)
        floored.saturating_mul(1 << self.backoff.min(32)).min(self.config.max)
    }

    /// RFC 6298 (5.5): the timer ran out.
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// A new measurement came (RFC 6298 5, last note).
    pub fn end_back_off(&mut self) {
        self.backoff = 0;
    }

    /// Times the timer ran out in a row.
    pub fn backoff(&self) -> u32 {
        self.backoff
    }

    /// Smoothed RTT.
    pub fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// Smallest RTT so far.
    pub fn min(&self) -> Option<Duration> {
        self.min
    }

    /// The last measurement, zero before the first.
    pub fn latest(&self) -> Duration {
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn estimator() -> RttEstimator {
        RttEstimator::new(RtoConfig { initial: MS(1000), min: MS(200), max: MS(60_000) })
    }

    #[test]
    fn smooths_as_the_rfc_says() {
        let mut rtt = estimator();
        rtt.sample(MS(100));
        rtt.sample(MS(180));
        // SRTT = 7/8 × 100 + 180/8; RTTVAR = 3/4 × 50 + 80/4
        assert_eq!(rtt.srtt(), Some(MS(110)));
        assert_eq!(rtt.rto(), MS(110) + Duration::from_micros(57_500) * 4);
        assert_eq!(rtt.min(), Some(MS(100)));
    }

    #[test]
    fn backs_off_between_its_bounds() {
        let mut rtt = estimator();
        (0..50).for_each(|_| rtt.sample(MS(10)));
        assert_eq!(rtt.rto(), MS(200));
        (0..3).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), MS(1600));
        (0..60).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), MS(60_000));
        rtt.end_back_off();
        assert_eq!(rtt.rto(), MS(200));
    }
}
