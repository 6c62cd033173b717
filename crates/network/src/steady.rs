//! A flow's steady rate, the same for both clocks.

use airpath_base::{Duration, Instant};

use crate::mbps;

/// Median of the goodput over 1 s in the second half of a flow, and the first time since its start
/// at which it reaches 90 % of that. `delivery` is the cumulative payload in bytes at each sample.
/// `None` below 5 s.
pub fn steady(
    start: Instant,
    end: Instant,
    delivery: &[(Instant, u64)],
) -> Option<(f64, Option<f64>)> {
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
        while points[first + 1].0 + second <= at {
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
    let after = reached.map(|(at, _)| at.saturating_since(start).as_secs_f64());
    Some((steady, after))
}
