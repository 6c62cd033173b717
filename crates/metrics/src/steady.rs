//! The rate at which a flow settles.

use airpath_base::{Duration, Instant};

use crate::mbps;

/// The rate at which a flow settles, and when it reached it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SteadyRate {
    /// Median over the second half of the flow's time of the goodput in the preceding second, in
    /// Mb/s.
    pub mbps: f64,
    /// First time since the start, in seconds, at which the goodput of the preceding second is at
    /// least 90 % of the steady rate.
    pub converged_after_s: Option<f64>,
}

/// The steady rate of a flow that was measured from `start` to `end`; `None` if that is less than 5
/// s. `delivery` has the cumulative payload in bytes at each sample.
pub fn steady_rate(
    start: Instant,
    end: Instant,
    delivery: &[(Instant, u64)],
) -> Option<SteadyRate> {
    let length = end.saturating_since(start);
    if length < Duration::from_secs(5) {
        return None;
    }
    let second = Duration::from_secs(1);
    let mut windows = Vec::new();
    let mut first = 0;
    let origin = [(start, 0)];
    let points: Vec<_> =
        origin.iter().chain(delivery).copied().filter(|&(at, _)| at <= end).collect();
    for &(at, bytes) in &points {
        while points.get(first + 1).is_some_and(|&(next, _)| next + second <= at) {
            first += 1;
        }
        let span = at.saturating_since(points[first].0);
        if span >= second {
            windows.push((at, mbps(bytes - points[first].1, span.as_secs_f64())?));
        }
    }
    let middle = start + length / 2;
    let mut late: Vec<f64> =
        windows.iter().filter(|(at, _)| *at > middle).map(|&(_, rate)| rate).collect();
    if late.is_empty() {
        return None;
    }
    let half = late.len() / 2;
    let (_, &mut steady, _) = late.select_nth_unstable_by(half, f64::total_cmp);
    let reached = windows.iter().find(|(_, rate)| *rate >= 0.9 * steady);
    let converged_after_s = reached.map(|(at, _)| at.saturating_since(start).as_secs_f64());
    Some(SteadyRate { mbps: steady, converged_after_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_without_a_sample_in_its_time_has_no_steady_rate() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        assert_eq!(steady_rate(at(0), at(6), &[(at(8), 1_000_000)]), None);
        assert_eq!(steady_rate(at(0), at(6), &[]), None);
        // One window of 4 s: 1 MB in it.
        let steady = steady_rate(at(0), at(6), &[(at(4), 1_000_000), (at(8), 2_000_000)]);
        assert_eq!(steady, Some(SteadyRate { mbps: 2.0, converged_after_s: Some(4.0) }));
    }
}
