//! CUBIC (RFC 9438). Windows are in segments and times in seconds, as in the RFC's formulas.

use airpath_base::Instant;

use super::slow_start::{SlowStart, Step};
use super::{
    AckSample, Congestion, CongestionControl, HystartSnapshot, SenderSnapshot, SlowStartExit,
    Window,
};
use crate::CubicConfig;

/// Window growth as a cubic function of the time since the last congestion.
#[derive(Clone, Debug)]
pub struct Cubic {
    slow_start: SlowStart,
    fast_convergence: bool,
    c: f64,
    beta: f64,
    /// RFC 9438 4.3: additive increase that gives Reno's average window.
    reno: f64,
    w_max: f64,
    /// cwnd when the last congestion was detected, before the reduction.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    /// State before the last congestion event, in case it was spurious.
    before: Option<Before>,
}

/// What an undo restores (RFC 9438 4.9).
#[derive(Clone, Debug)]
struct Before {
    w_max: f64,
    cwnd_prior: f64,
    epoch: Option<Epoch>,
}

/// One congestion avoidance stage.
#[derive(Clone, Debug)]
struct Epoch {
    start: Instant,
    last_ack: Instant,
    /// Time at which W_cubic reaches W_max again.
    k: f64,
    /// Plateau of this stage.
    origin: f64,
    /// Window of the Reno-friendly region.
    w_est: f64,
    c: f64,
}

impl Cubic {
    pub(crate) fn new(slow_start: SlowStart, config: &CubicConfig) -> Self {
        Self {
            slow_start,
            fast_convergence: config.fast_convergence,
            c: config.c,
            beta: config.beta,
            reno: 3.0 * (1.0 - config.beta) / (1.0 + config.beta),
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
            before: None,
        }
    }

    fn avoid_congestion(&mut self, acked: u32, ack: &AckSample, window: &mut Window) {
        let (cwnd, w_max, c) = (window.cwnd, self.w_max, self.c);
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(ack.now, cwnd, w_max, c));
        epoch.last_ack = ack.now;
        let t = (ack.now - epoch.start).as_secs_f64();
        let acked = f64::from(acked);
        // RFC 9438 (4), (5): once past cwnd_prior the Reno region grows by 1 a round trip.
        let alpha = if epoch.w_est >= self.cwnd_prior { 1.0 } else { self.reno };
        epoch.w_est += alpha * acked / cwnd;
        if epoch.w_cubic(t) < epoch.w_est {
            // RFC 9438 4.3
            window.cwnd = cwnd.max(epoch.w_est);
        } else {
            // RFC 9438 4.4, 4.5: where W_cubic will be one round trip from now.
            let target = epoch.w_cubic(t + ack.srtt.as_secs_f64()).clamp(cwnd, 1.5 * cwnd);
            window.cwnd = cwnd + (target - cwnd) / cwnd * acked;
        }
    }

    /// RFC 9438 5.8: time during which cwnd was not the limit does not count.
    fn skip_time(&mut self, now: Instant) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start += now.saturating_since(epoch.last_ack);
            epoch.last_ack = now;
        }
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window) -> Option<SlowStartExit> {
        let Step { left, exit } = self.slow_start.on_ack(ack, window);
        if !ack.cwnd_limited {
            self.skip_time(ack.now);
        } else if left > 0 {
            self.avoid_congestion(left, ack, window);
        }
        exit
    }

    fn on_congestion(&mut self, _congestion: &Congestion, window: &mut Window) {
        let epoch = self.epoch.take();
        self.before = Some(Before { w_max: self.w_max, cwnd_prior: self.cwnd_prior, epoch });
        self.cwnd_prior = window.cwnd;
        // RFC 9438 4.7
        self.w_max = if self.fast_convergence && window.cwnd < self.w_max {
            window.cwnd * (1.0 + self.beta) / 2.0
        } else {
            window.cwnd
        };
        // RFC 9438 4.6
        window.ssthresh = (window.cwnd * self.beta).max(2.0);
    }

    fn on_timeout(&mut self, congestion: &Congestion, window: &mut Window) {
        self.on_congestion(congestion, window);
        // RFC 9438 4.8: K is 0, W_max is cwnd when congestion avoidance begins.
        self.w_max = 0.0;
        self.slow_start.on_timeout();
    }

    fn on_undo(&mut self, _window: &mut Window) {
        if let Some(Before { w_max, cwnd_prior, epoch }) = self.before.take() {
            (self.w_max, self.cwnd_prior, self.epoch) = (w_max, cwnd_prior, epoch);
        }
    }

    fn on_restart(&mut self, now: Instant, _since: Instant, _window: &mut Window) {
        self.skip_time(now);
    }

    fn hystart(&self, sender: &SenderSnapshot) -> Option<HystartSnapshot> {
        self.slow_start.hystart(sender)
    }
}

impl Epoch {
    fn new(now: Instant, cwnd: f64, w_max: f64, c: f64) -> Self {
        // RFC 9438 (2); after slow start without congestion W_max is cwnd and K is 0.
        let origin = w_max.max(cwnd);
        let k = cube_root((origin - cwnd) / c);
        Self { start: now, last_ack: now, k, origin, w_est: cwnd, c }
    }

    // RFC 9438 (1)
    fn w_cubic(&self, t: f64) -> f64 {
        let x = t - self.k;
        self.c * x * x * x + self.origin
    }
}

/// Cube root by Newton's method: the result has the same bits on every machine, unlike the
/// platform's `cbrt`.
pub(super) fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    // Start within a factor of two: divide the exponent by three.
    let mut root = f64::from_bits(x.to_bits() / 3 + 0x2a9f_7893_0000_0000);
    for _ in 0..5 {
        root -= (root * root * root - x) / (3.0 * root * root);
    }
    root
}

#[cfg(test)]
pub(super) mod tests {
    use airpath_base::Duration;

    use super::super::State;
    use super::*;
    use crate::SlowStartConfig;

    /// An acknowledgement of data sent `rtt` ago, on a connection that has seen no other RTT.
    pub(crate) fn sample(now: Instant, acked: u32, rtt: Duration) -> AckSample {
        AckSample {
            now,
            una: 0,
            nxt: 0,
            mss: 1000,
            acked,
            delivered: acked,
            lost: 0,
            ecn_echo: false,
            rtt: Some(rtt),
            srtt: rtt,
            min_rtt: rtt,
            in_flight: 0,
            cwnd_limited: true,
            paced: false,
            pacing_wait: Duration::ZERO,
            state: State::Open,
            rate: None,
        }
    }

    fn cubic() -> Cubic {
        Cubic::new(SlowStart::new(SlowStartConfig::default()), &CubicConfig::default())
    }

    #[test]
    fn cube_roots() {
        for x in [1e-9, 0.3, 1.0, 8.0, 750.0, 1e6, 1e12] {
            assert!((cube_root(x).powi(3) / x - 1.0).abs() < 1e-14, "{x}");
        }
        assert_eq!(cube_root(0.0), 0.0);
    }

    /// RFC 9438 5.1 table 1: average window (C (3+beta) / (4 (1-beta)))^(1/4) × (RTT/p)^(3/4),
    /// Reno's 1.2 / sqrt(p) (RFC 3649) where that is larger.
    #[test]
    fn average_window_formula() {
        let table = [
            (1e-2, 12.0),
            (1e-3, 38.0),
            (1e-4, 187.0),
            (1e-5, 1054.0),
            (1e-6, 5926.0),
            (1e-7, 33325.0),
            (1e-8, 187_400.0),
        ];
        for (p, published) in table {
            let CubicConfig { c, beta, .. } = CubicConfig::default();
            let constant = (c * (3.0 + beta) / (4.0 * (1.0 - beta))).powf(0.25);
            let cubic: f64 = constant * 0.1f64.powf(0.75) / f64::powf(p, 0.75);
            let window = cubic.max(1.2 / f64::sqrt(p));
            assert!((window / published - 1.0).abs() < 0.005, "{p}: {window}");
        }
    }

    #[test]
    fn returns_to_w_max_after_k() {
        let mut cubic = cubic();
        let mut window = Window { cwnd: 1000.0, ssthresh: 900.0 };
        let congestion = Congestion { now: Instant::ZERO, flight: 1000 };
        cubic.on_congestion(&congestion, &mut window);
        assert_eq!(window.ssthresh, 700.0);
        window.cwnd = window.ssthresh;
        let rtt = Duration::from_millis(20);
        let mut now = Instant::ZERO;
        let k = Duration::from_secs_f64(cube_root(1000.0 * (1.0 - cubic.beta) / cubic.c));
        while now < Instant::ZERO + k {
            let acked = window.segments();
            for _ in 0..acked {
                let ack = sample(now, 1, rtt);
                cubic.on_ack(&ack, &mut window);
            }
            now += rtt;
        }
        assert!((window.cwnd - 1000.0).abs() < 1.0, "{}", window.cwnd);
    }

    fn at(seconds: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(seconds)
    }

    /// RFC 9438 4.9: after a spurious congestion event the curve continues as if nothing had
    /// happened.
    #[test]
    fn an_undo_restores_the_curve() {
        let rtt = Duration::from_millis(100);
        let run = |spurious: bool| {
            let mut cubic = cubic();
            let mut window = Window { cwnd: 100.0, ssthresh: 10.0 };
            cubic.on_congestion(&Congestion { now: at(0.0), flight: 100 }, &mut window);
            window.cwnd = window.ssthresh;
            for tenth in 1..=20 {
                cubic.on_ack(&sample(at(f64::from(tenth) / 10.0), 50, rtt), &mut window);
                if spurious && tenth == 10 {
                    let before = window;
                    cubic.on_congestion(&Congestion { now: at(1.0), flight: 70 }, &mut window);
                    window = before;
                    cubic.on_undo(&mut window);
                }
            }
            window
        };
        assert_eq!(run(true), run(false));
    }

    /// RFC 9438 5.8: idle time does not count.
    #[test]
    fn idle_time_earns_no_growth() {
        let rtt = Duration::from_millis(100);
        let run = |idle: f64| {
            let mut cubic = cubic();
            let mut window = Window { cwnd: 100.0, ssthresh: 100.0 };
            cubic.on_ack(&sample(at(1.0), 10, rtt), &mut window);
            cubic.on_restart(at(1.0 + idle), at(0.9), &mut window);
            for tenth in 1..=20 {
                let now = at(1.0 + idle + f64::from(tenth) / 10.0);
                cubic.on_ack(&sample(now, 50, rtt), &mut window);
            }
            window.cwnd
        };
        assert!((run(4.0) - run(0.0)).abs() < 1e-6, "{} {}", run(4.0), run(0.0));
    }
}
