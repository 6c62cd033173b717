//! Round-trip time and the retransmission time-out (RFC 6298).

use airpath_base::Duration;

use crate::{RouteConfig, RouteRule, RtoConfig, RtoEstimator};

/// The estimator of one sender.
///
/// ```
/// use airpath_base::Duration;
/// use airpath_tcp::{RtoConfig, RtoEstimator, RttEstimator};
/// let config = RtoConfig {
///     initial: Duration::from_secs(1),
///     min: Duration::from_millis(200),
///     max: Duration::from_secs(120),
///     estimator: RtoEstimator::Rfc6298,
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
    /// Linux: mean deviation, its largest value in this round trip, and where the round trip ends.
    mdev: Duration,
    mdev_max: Duration,
    round_end: u64,
    min: Option<Duration>,
    latest: Duration,
    backoff: u32,
    samples: u64,
    /// Linux: the RTT that was kept of the destination, until the handshake is over.
    kept: Option<Duration>,
    /// Linux: the RTO from a kept RTT, until data gives a sample.
    first_rto: Option<Duration>,
}

impl RttEstimator {
    /// An estimator without samples.
    pub const fn new(config: RtoConfig) -> Self {
        Self {
            config,
            srtt: None,
            rttvar: Duration::ZERO,
            mdev: Duration::ZERO,
            mdev_max: Duration::ZERO,
            round_end: 0,
            min: None,
            latest: Duration::ZERO,
            backoff: 0,
            samples: 0,
            kept: None,
            first_rto: None,
        }
    }

    /// Begins with what a host knows of the destination.
    pub(crate) fn with_route(mut self, route: &RouteConfig) -> Self {
        match (route.rule, route.known.rtt) {
            (None, _) | (_, None) => {}
            (Some(RouteRule::Linux | RouteRule::LinuxSsthresh), rtt) => self.kept = rtt,
            (Some(RouteRule::Bsd), Some(rtt)) => self.begin_at(rtt, route.known.rttvar),
        }
        self
    }

    /// BSD: a new connection continues the averages of the earlier ones (`tcp_mss`).
    fn begin_at(&mut self, rtt: Duration, rttvar: Option<Duration>) {
        self.srtt = Some(rtt);
        self.rttvar = rttvar.unwrap_or(rtt);
        if self.config.estimator == RtoEstimator::Linux {
            self.mdev = self.rttvar * 4;
            self.rttvar = self.mdev.max(self.config.min);
            self.mdev_max = self.rttvar;
        }
    }

    /// The handshake is over. Linux: an RTT that was kept and is longer than the handshake's sets the
    /// first RTO, because a SYN is smaller than the segments that follow. Seen with 6.18: it is three
    /// times the kept RTT, or the RTT and the minimum.
    pub(crate) fn end_handshake(&mut self) {
        let longer = self.kept.take().filter(|&kept| self.srtt.is_none_or(|srtt| kept > srtt));
        self.first_rto = longer.map(|kept| kept + (kept * 2).max(self.config.min));
    }

    /// Takes one measurement, from a segment that was sent once or from timestamps.
    pub fn sample(&mut self, rtt: Duration) {
        self.sample_in_round(rtt, u64::MAX, u64::MAX);
    }

    /// Takes one measurement, like [`sample`](Self::sample); `una` and `nxt` tell when a round trip
    /// is over.
    pub(crate) fn sample_in_round(&mut self, rtt: Duration, una: u64, nxt: u64) {
        self.latest = rtt;
        self.samples += 1;
        self.first_rto = None;
        self.note_min(rtt);
        match self.config.estimator {
            RtoEstimator::Rfc6298 => self.sample_rfc6298(rtt),
            RtoEstimator::Linux => self.sample_linux(rtt, una, nxt),
        }
    }

    /// Takes the RTT of the newest segment of an acknowledgement, which excludes the ACK delay, for
    /// the minimum.
    #[inline]
    pub(crate) fn note_min(&mut self, rtt: Duration) {
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
    }

    fn sample_rfc6298(&mut self, rtt: Duration) {
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

    /// Linux's rule. Here `rttvar` is the whole variance term, four deviations.
    fn sample_linux(&mut self, rtt: Duration, una: u64, nxt: u64) {
        let min = self.config.min;
        let Some(srtt) = self.srtt else {
            self.srtt = Some(rtt);
            self.mdev = rtt * 2;
            self.rttvar = self.mdev.max(min);
            self.mdev_max = self.rttvar;
            self.round_end = nxt;
            return;
        };
        let (s, r) = (srtt.as_nanos(), rtt.as_nanos());
        self.srtt = Some(Duration::from_nanos((7 * s + r) / 8));
        // Four deviations decay by 1/4 for each sample: mdev += |err| - mdev / 4.
        let (error, quarter) = (s.abs_diff(r), self.mdev.as_nanos() / 4);
        let growth = error.saturating_sub(quarter);
        self.mdev = if error < quarter {
            self.mdev.saturating_sub(Duration::from_nanos(quarter - error))
        } else if r < s {
            // A falling RTT is no reason to wait longer.
            self.mdev + Duration::from_nanos(growth / 8)
        } else {
            self.mdev + Duration::from_nanos(growth)
        };
        self.mdev_max = self.mdev_max.max(self.mdev);
        self.rttvar = self.rttvar.max(self.mdev_max);
        if una > self.round_end {
            if self.mdev_max < self.rttvar {
                self.rttvar = self.rttvar - self.rttvar.saturating_sub(self.mdev_max) / 4;
            }
            self.round_end = nxt;
            self.mdev_max = min;
        }
    }

    /// A SYN was lost: uses a longer RTO until the first measurement (RFC 6298 (5.7)).
    pub(crate) fn start_after_syn_loss(&mut self) {
        self.config.initial = self.config.initial.max(Duration::from_secs(3));
    }

    /// The current RTO, back-off included.
    pub fn rto(&self) -> Duration {
        self.rto_doubled_after(0)
    }

    /// Lower bound of the RTO.
    #[inline]
    pub(crate) fn least_rto(&self) -> Duration {
        self.config.min.min(self.config.max)
    }

    /// The current RTO, if the first `timeouts` time-outs do not double it.
    pub(crate) fn rto_doubled_after(&self, timeouts: u32) -> Duration {
        let base = match (self.first_rto, self.srtt) {
            (Some(rto), _) => rto,
            (None, None) => self.config.initial,
            (None, Some(srtt)) => match self.config.estimator {
                // RFC 6298 (2.3): the clock granularity here is a nanosecond.
                RtoEstimator::Rfc6298 => srtt + self.rttvar * 4,
                RtoEstimator::Linux => srtt + self.rttvar,
            },
        };
        let floored = base.max(self.config.min);
        // RFC 6298 (5.5), (2.5)
        let doublings = self.backoff.saturating_sub(timeouts).min(32);
        floored.saturating_mul(1 << doublings).min(self.config.max)
    }

    /// RFC 6298 (5.5): the timer expired.
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// A new measurement arrived (RFC 6298 5, last note).
    pub fn end_back_off(&mut self) {
        self.backoff = 0;
    }

    /// Number of time-outs in a row.
    pub fn backoff(&self) -> u32 {
        self.backoff
    }

    pub(crate) fn estimator(&self) -> RtoEstimator {
        self.config.estimator
    }

    /// Smoothed RTT.
    pub fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// Mean deviation of the RTT.
    pub(crate) fn deviation(&self) -> Duration {
        match self.config.estimator {
            RtoEstimator::Rfc6298 => self.rttvar,
            RtoEstimator::Linux => self.rttvar / 4,
        }
    }

    /// Number of samples so far.
    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    /// Smallest RTT so far.
    pub fn min(&self) -> Option<Duration> {
        self.min
    }

    /// The last measurement; zero before the first.
    pub fn latest(&self) -> Duration {
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RouteMetrics;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn estimator() -> RttEstimator {
        RttEstimator::new(RtoConfig {
            initial: MS(1000),
            min: MS(200),
            max: MS(60_000),
            estimator: RtoEstimator::Rfc6298,
        })
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

    fn known(rule: RouteRule, rtt: u64, rttvar: u64) -> RttEstimator {
        let known = RouteMetrics {
            rtt: Some(MS(rtt)),
            rttvar: Some(MS(rttvar)),
            ..RouteMetrics::default()
        };
        estimator().with_route(&RouteConfig { rule: Some(rule), known })
    }

    /// Kept RTTs and first time-outs of 6.18, whose handshake took 50 ms; the kernel counts in ticks
    /// of 4 ms.
    #[test]
    fn linux_waits_longer_for_its_first_data_where_the_rtt_was_longer_before() {
        for (kept, rto) in [(168, 504), (156, 468), (68, 268), (40, 200)] {
            let mut rtt = known(RouteRule::Linux, kept, 5);
            assert_eq!(rtt.rto(), MS(1000), "the SYN's does not change");
            rtt.sample(MS(50));
            rtt.end_handshake();
            assert_eq!(rtt.rto(), MS(rto), "{kept}");
            rtt.sample(MS(50));
            assert_eq!(rtt.rto(), MS(200));
        }
    }

    #[test]
    fn bsd_continues_the_averages() {
        let mut rtt = known(RouteRule::Bsd, 400, 20);
        assert_eq!((rtt.srtt(), rtt.rto()), (Some(MS(400)), MS(480)));
        rtt.sample(MS(400));
        rtt.end_handshake();
        assert_eq!((rtt.srtt(), rtt.rto()), (Some(MS(400)), MS(460)));
        assert_eq!((rtt.samples(), rtt.deviation()), (1, MS(15)));
    }
}
