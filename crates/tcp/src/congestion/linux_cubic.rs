//! CUBIC as Linux computes it: in whole segments, with a pace, which is the number of acknowledged
//! segments per segment of growth. The curves are RFC 9438's.
//!
//! Differences from the RFC: values are rounded down; the pace is at least two (RFC 9438 4.4 bounds
//! the target instead), and at most twenty until the first congestion; it is recomputed when cwnd
//! has changed or 1/32 s has passed; the curve is read one smallest RTT ahead; only time with
//! nothing in flight is left out (RFC 9438 5.8); an undo restores the window alone (RFC 9438 4.9).
//! If the host's clock has ticks, time passes in ticks: an age is the number of ticks since then,
//! and the RTT by which the curve is read ahead is rounded up to whole ticks.

use airpath_base::{Duration, Instant};

use super::cubic::cube_root;
use super::slow_start::{SlowStart, Step};
use super::{
    AckSample, Congestion, CongestionControl, HystartSnapshot, SenderSnapshot, SlowStartExit,
    Window,
};
use crate::CubicConfig;
use crate::timestamp::AFTER_TICK;

/// Age after which the pace is recomputed.
const RECOMPUTE: Duration = Duration::from_nanos(1_000_000_000 / 32);
/// 1 segment per 2: growth by half each round trip.
const FASTEST: u64 = 2;
/// 5 % per round trip, while no congestion has shown how much the path holds.
const SLOWEST_WITHOUT_W_MAX: u64 = 20;
/// Windows acknowledged per segment of growth when the target is not larger than cwnd.
const AT_TARGET: u64 = 100;

/// CUBIC in whole segments.
#[derive(Clone, Debug)]
pub struct LinuxCubic {
    slow_start: SlowStart,
    fast_convergence: bool,
    curve: Curve,
    /// In whole segments; `None` before the first congestion and after a time-out.
    w_max: Option<u64>,
    /// Acknowledged segments for which cwnd has not grown yet.
    credit: u64,
    epoch: Option<Epoch>,
}

/// The parameters of the curve.
#[derive(Clone, Copy, Debug)]
struct Curve {
    /// RFC 9438 4.1
    c: f64,
    /// RFC 9438 4.6, in whole 1024ths.
    beta: f64,
    /// Windows acknowledged per segment of the Reno-friendly estimate, in whole eighths (RFC 9438
    /// 4.3: 1/α).
    reno_windows: f64,
    /// Tick of the host's clock; 0: the clock is exact.
    tick: Duration,
}

/// One congestion avoidance stage.
#[derive(Clone, Debug)]
struct Epoch {
    curve: Curve,
    start: Instant,
    /// Seconds until the curve reaches `origin`.
    k: f64,
    origin: u64,
    /// The Reno-friendly window, and what has been acknowledged since it last grew.
    w_est: u64,
    w_est_credit: u64,
    pace: Option<Pace>,
}

/// Acknowledged segments per segment of growth.
#[derive(Clone, Copy, Debug)]
struct Pace {
    segments: u64,
    computed_at: Instant,
    cwnd: u64,
}

impl LinuxCubic {
    pub(crate) fn new(slow_start: SlowStart, config: &CubicConfig, tick: Duration) -> Self {
        let CubicConfig { fast_convergence, c, beta, .. } = *config;
        let curve = Curve::new(c, beta, tick);
        Self { slow_start, fast_convergence, curve, w_max: None, credit: 0, epoch: None }
    }

    fn avoid_congestion(&mut self, acked: u32, ack: &AckSample, window: &mut Window) {
        let (cwnd, acked) = (window.cwnd as u64, u64::from(acked));
        let (w_max, curve) = (self.w_max, self.curve);
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(curve, ack.now, cwnd, w_max));
        epoch.w_est_credit += acked;
        let pace = epoch.pace(ack, cwnd, w_max);
        let mut grown = 0;
        if self.credit >= pace {
            // The credit was earned at a slower pace: it is worth one segment.
            (grown, self.credit) = (1, 0);
        }
        self.credit += acked;
        grown += self.credit / pace;
        self.credit %= pace;
        window.cwnd = (cwnd + grown) as f64;
    }
}

impl CongestionControl for LinuxCubic {
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window) -> Option<SlowStartExit> {
        let Step { left, exit } = self.slow_start.on_ack(ack, window);
        if left > 0 {
            self.avoid_congestion(left, ack, window);
        }
        exit
    }

    fn on_congestion(&mut self, _congestion: &Congestion, window: &mut Window) {
        let cwnd = window.cwnd.floor();
        self.epoch = None;
        self.credit = 0;
        // RFC 9438 4.7
        let shrinks = self.w_max.is_some_and(|w_max| (cwnd as u64) < w_max);
        let beta = self.curve.beta;
        let share = if self.fast_convergence && shrinks { (1.0 + beta) / 2.0 } else { 1.0 };
        self.w_max = Some((cwnd * share) as u64);
        // RFC 9438 4.6
        window.ssthresh = (cwnd * beta).floor().max(2.0);
    }

    fn on_timeout(&mut self, congestion: &Congestion, window: &mut Window) {
        self.on_congestion(congestion, window);
        // RFC 9438 4.8: K is 0, W_max is cwnd when congestion avoidance begins.
        self.w_max = None;
        self.slow_start.on_timeout();
    }

    fn on_restart(&mut self, now: Instant, since: Instant, _window: &mut Window) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = now.min(epoch.start + now.saturating_since(since));
        }
    }

    fn hystart(&self, sender: &SenderSnapshot) -> Option<HystartSnapshot> {
        self.slow_start.hystart(sender)
    }
}

impl Curve {
    fn new(c: f64, beta: f64, tick: Duration) -> Self {
        let beta = (beta * 1024.0).round() / 1024.0;
        let reno_windows = (8.0 * (1.0 + beta) / (3.0 * (1.0 - beta))).floor().max(1.0) / 8.0;
        Self { c, beta, reno_windows, tick }
    }

    /// Time from `start` to `now` on the host's clock.
    fn age(&self, start: Instant, now: Instant) -> Duration {
        let tick = self.tick.as_nanos();
        if tick == 0 {
            return now.saturating_since(start);
        }
        let ticks = |at: Instant| (at + AFTER_TICK).as_nanos() / tick;
        self.tick * ticks(now).saturating_sub(ticks(start))
    }

    /// A time rounded up to whole ticks.
    fn whole(&self, time: Duration) -> Duration {
        let tick = self.tick.as_nanos();
        if tick == 0 { time } else { self.tick * time.as_nanos().div_ceil(tick) }
    }
}

impl Epoch {
    fn new(curve: Curve, now: Instant, cwnd: u64, w_max: Option<u64>) -> Self {
        // RFC 9438 (2)
        let origin = w_max.unwrap_or(0).max(cwnd);
        let k = cube_root((origin - cwnd) as f64 / curve.c);
        Self { curve, start: now, k, origin, w_est: cwnd, w_est_credit: 0, pace: None }
    }

    fn pace(&mut self, ack: &AckSample, cwnd: u64, w_max: Option<u64>) -> u64 {
        if let Some(pace) = self.pace
            && pace.cwnd == cwnd
            && self.curve.age(pace.computed_at, ack.now) <= RECOMPUTE
        {
            return pace.segments;
        }
        // RFC 9438 4.2
        let ahead = self.curve.age(self.start, ack.now) + self.curve.whole(ack.min_rtt);
        let mut segments = pace_to(self.w_cubic(ahead), cwnd).unwrap_or(AT_TARGET * cwnd);
        if w_max.is_none() {
            segments = segments.min(SLOWEST_WITHOUT_W_MAX);
        }
        // RFC 9438 4.3
        if let Some(reno) = pace_to(self.reno(cwnd), cwnd) {
            segments = segments.min(reno);
        }
        let segments = segments.max(FASTEST);
        self.pace = Some(Pace { segments, computed_at: ack.now, cwnd });
        segments
    }

    // RFC 9438 (1)
    fn w_cubic(&self, t: Duration) -> u64 {
        let x = t.as_secs_f64() - self.k;
        let distance = (self.curve.c * (x * x * x).abs()) as u64;
        if x < 0.0 { self.origin.saturating_sub(distance) } else { self.origin + distance }
    }

    // RFC 9438 (4)
    fn reno(&mut self, cwnd: u64) -> u64 {
        let step = (cwnd as f64 * self.curve.reno_windows) as u64;
        // An amount that exactly reaches a step waits for more.
        let steps = self.w_est_credit.saturating_sub(1) / step.max(1);
        self.w_est += steps;
        self.w_est_credit -= steps * step.max(1);
        self.w_est
    }
}

/// The pace that brings cwnd to `target` in a round trip; `None` if it is there already.
fn pace_to(target: u64, cwnd: u64) -> Option<u64> {
    target.checked_sub(cwnd).filter(|&distance| distance > 0).map(|distance| cwnd / distance)
}

#[cfg(test)]
mod tests {
    use super::super::cubic::tests::sample;
    use super::*;
    use crate::SlowStartConfig;

    const RTT: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn cubic() -> LinuxCubic {
        let slow_start = SlowStart::new(SlowStartConfig::default());
        LinuxCubic::new(slow_start, &CubicConfig::default(), Duration::ZERO)
    }

    /// packetdrill's test of CUBIC after a time-out at cwnd 10: from 7 on cwnd grows as in Reno,
    /// which CUBIC only notices when it recomputes the pace, at the sixteenth segment.
    #[test]
    fn after_a_timeout_it_slow_starts_to_seven_tenths_and_goes_on_as_reno() {
        let (mut cubic, mut window) = (cubic(), Window { cwnd: 10.0, ssthresh: f64::INFINITY });
        cubic.on_timeout(&Congestion { now: at(0), flight: 1 }, &mut window);
        assert_eq!(window.ssthresh, 7.0);
        window.cwnd = 1.0;
        let gaps = [
            100, 100, 2, 98, 2, 2, // slow start
            2, 98, 2, 2, 2, 2, 2, 2, 98, 2, 2, 2, 2, 2, 2, 98,
        ];
        let mut now = at(0);
        let windows = gaps.map(|gap| {
            now += Duration::from_millis(gap);
            cubic.on_ack(&sample(now, 1, RTT), &mut window);
            window.segments()
        });
        let mut expected = [7; 22];
        expected[..6].copy_from_slice(&[2, 3, 4, 5, 6, 7]);
        expected[21] = 8;
        assert_eq!(windows, expected);
    }

    /// packetdrill's variant with 4 s of idle time: the curve continues where it was before. The
    /// first two acknowledgements after the pause find cwnd not yet full.
    #[test]
    fn idle_time_earns_no_growth() {
        let (mut cubic, mut window) = (cubic(), Window { cwnd: 48.0, ssthresh: 48.0 });
        cubic.on_ack(&sample(at(0), 2, RTT), &mut window);
        cubic.on_restart(at(4000), at(0), &mut window);
        let windows: Vec<_> = (1..=40)
            .map(|count| {
                let ack = sample(at(4000 + 100 * count), 2, RTT);
                cubic.on_ack(&AckSample { cwnd_limited: count > 2, ..ack }, &mut window);
                window.segments()
            })
            .collect();
        assert_eq!([10, 20, 30, 40].map(|acks| windows[acks - 1]), [48, 49, 52, 58]);
    }

    /// Linux 6.18 at 250 Hz, 7 ms, an upload at 2.3 Mb/s: the window grew one or two
    /// acknowledgements earlier than with an exact clock.
    #[test]
    fn time_passes_in_ticks_of_the_hosts_clock() {
        let micros = |micros| Instant::ZERO + Duration::from_micros(micros);
        let curve = |tick| Curve::new(0.4, 0.7, Duration::from_millis(tick));
        for (tick, age, whole) in [(0, 4200, 7300), (4, 8000, 8000)] {
            let curve = curve(tick);
            assert_eq!(curve.age(micros(3700), micros(7900)), Duration::from_micros(age));
            assert_eq!(curve.whole(Duration::from_micros(7300)), Duration::from_micros(whole));
        }
        // A pace that is 31.9 ms old is recomputed after eight ticks, not after seven.
        let ack = |now| sample(micros(now), 1, Duration::from_millis(7));
        for (begun, again) in [(3700, true), (3800, false)] {
            let mut epoch = Epoch::new(curve(4), micros(begun), 10, Some(13));
            epoch.pace(&ack(begun), 10, Some(13));
            let first = epoch.pace.map(|pace| pace.computed_at);
            epoch.pace(&ack(begun + 31_850), 10, Some(13));
            assert_eq!(epoch.pace.map(|pace| pace.computed_at) != first, again);
        }
    }

    /// RFC 9438 4.6, 4.7: 717/1024, and 1741/2048 for a shrinking window; rounded down.
    #[test]
    fn a_congestion_leaves_seven_tenths_in_whole_segments() {
        let (mut cubic, mut window) = (cubic(), Window { cwnd: 101.0, ssthresh: 50.0 });
        let congestion = Congestion { now: at(0), flight: 101 };
        cubic.on_congestion(&congestion, &mut window);
        assert_eq!((window.ssthresh, cubic.w_max), (70.0, Some(101)));
        window.cwnd = window.ssthresh;
        cubic.on_congestion(&congestion, &mut window);
        assert_eq!((window.ssthresh, cubic.w_max), (49.0, Some(59)));
    }

    /// RFC 9438 (2): the window reaches W_max again after K.
    #[test]
    fn returns_to_w_max_after_k() {
        let (mut cubic, mut window) = (cubic(), Window { cwnd: 1000.0, ssthresh: 900.0 });
        cubic.on_congestion(&Congestion { now: at(0), flight: 1000 }, &mut window);
        window.cwnd = window.ssthresh;
        let k = Duration::from_secs_f64(cube_root(300.0 / cubic.curve.c));
        let mut now = at(0);
        while now < at(0) + k {
            for _ in 0..window.segments() {
                cubic.on_ack(&sample(now, 1, RTT), &mut window);
            }
            now += RTT;
        }
        assert!((990..=1000).contains(&window.segments()), "{}", window.cwnd);
    }
}
