//! The cycle of ProbeBW (5.3.3): decelerate, cruise, refill the pipe, accelerate.

use airpath_base::{Duration, Instant};

use super::super::MIN_PIPE_CWND;
use super::{Bbr3, Phase, Sample};
use crate::congestion::Window;

/// 2.8 `Headroom`
pub(super) const HEADROOM: f64 = 0.15;
/// 5.3.3.8.2 `T_bbr`: 2 s plus up to 1 s.
pub(super) const PROBE_WAIT_SECONDS: f64 = 2.0;
/// 5.3.3.8.2 `T_reno_bound`; its lower end is one less, because a count begins at 1.
pub(super) const RENO_ROUNDS: f64 = 63.0;
/// 5.3.3.9: how many times the slope grows.
const STEEPEST: u32 = 30;

/// 2.14
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    acks: AckPhase,
    /// `is_bw_probe_sample`
    pub(super) samples: bool,
    /// `bw_probe_up_acked`
    acked: f64,
    /// `probe_up_acked_per_inc`
    acked_per_step: f64,
    /// `bw_probe_up_rounds`
    up_rounds: u32,
    pub(super) rounds_since_up: u64,
    wait: Duration,
    /// `cycle_stamp`
    since: Instant,
    /// `prev_probe_too_high`
    pub(super) too_high: bool,
    /// `prev_probe_precautionary`
    precautionary: bool,
}

/// 2.14 `ack_phase`: what the acknowledgements that arrive are about.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            acks: AckPhase::Init,
            samples: false,
            acked: 0.0,
            acked_per_step: f64::INFINITY,
            up_rounds: 0,
            rounds_since_up: 0,
            wait: Duration::ZERO,
            since: Instant::ZERO,
            too_high: false,
            precautionary: false,
        }
    }
}

impl Probe {
    /// Stops probing: what was sent to probe is not acknowledged yet.
    pub(super) fn stop(&mut self) {
        self.acks = AckPhase::ProbeStopping;
    }
}

impl Bbr3 {
    /// `IsInAProbeBWState()`
    pub(super) fn in_probe_bw(&self) -> bool {
        matches!(self.state, Phase::Down | Phase::Cruise | Phase::Refill | Phase::Up)
    }

    /// `IsProbingBW()`
    pub(super) fn is_probing_bw(&self) -> bool {
        matches!(self.state, Phase::Startup | Phase::Refill | Phase::Up)
    }

    /// `UpdateProbeBWCyclePhase()`
    pub(super) fn update_probe_bw_cycle_phase(&mut self, sample: &Sample<'_>, window: &Window) {
        if !self.full.reached || self.adapt_long_term_model(sample, window) {
            return;
        }
        let now = sample.ack.now;
        match self.state {
            Phase::Down | Phase::Cruise if self.is_time_to_probe_bw(now, window) => {
                self.start_refill();
            }
            Phase::Down if self.is_time_to_cruise(sample) => self.state = Phase::Cruise,
            Phase::Refill if self.round.start => {
                self.probe.samples = true;
                self.start_up(sample, window);
            }
            Phase::Up => self.update_up(sample, window),
            _ => {}
        }
    }

    fn update_up(&mut self, sample: &Sample<'_>, window: &Window) {
        if self.is_time_to_go_down(sample, window) {
            self.probe.too_high = false;
            self.start_down(sample.ack.now);
        }
    }

    /// `StartProbeBW_DOWN()`, which is also `EnterProbeBW()`.
    pub(super) fn start_down(&mut self, now: Instant) {
        self.latest.reset();
        self.probe.acked_per_step = f64::INFINITY;
        // `PickProbeWait()`
        self.probe.rounds_since_up = self.random.bits() & 1;
        self.probe.wait = Duration::from_secs_f64(PROBE_WAIT_SECONDS + self.random.unit());
        self.probe.since = now;
        self.probe.stop();
        self.round.restart(self.delivered);
        self.state = Phase::Down;
    }

    /// `StartProbeBW_REFILL()`
    pub(super) fn start_refill(&mut self) {
        self.reset_short_term_model();
        self.probe.up_rounds = 0;
        self.probe.acked = 0.0;
        self.probe.precautionary = false;
        self.probe.acks = AckPhase::Refilling;
        self.round.restart(self.delivered);
        self.state = Phase::Refill;
    }

    /// `StartProbeBW_UP()`
    fn start_up(&mut self, sample: &Sample<'_>, window: &Window) {
        self.probe.acks = AckPhase::ProbeStarting;
        self.round.restart(self.delivered);
        self.reset_full_bw(sample.bandwidth.unwrap_or(0.0));
        self.state = Phase::Up;
        self.raise_inflight_longterm_slope(window);
    }

    /// `IsTimeToProbeBW()`, with `IsRenoCoexistenceProbeTime()`
    fn is_time_to_probe_bw(&self, now: Instant, window: &Window) -> bool {
        let rounds = self.target_inflight(window).min(RENO_ROUNDS);
        now > self.probe.since + self.probe.wait || self.probe.rounds_since_up as f64 >= rounds
    }

    /// `IsTimeToCruise()`
    fn is_time_to_cruise(&self, sample: &Sample<'_>) -> bool {
        let in_flight = f64::from(sample.ack.in_flight);
        in_flight <= self.inflight_with_headroom()
            && in_flight <= self.inflight(self.max_bw.max(), 1.0)
    }

    /// `IsTimeToGoDown()`
    fn is_time_to_go_down(&mut self, sample: &Sample<'_>, window: &Window) -> bool {
        // Use the amount before this acknowledgement made room: after it the window is never full.
        let in_flight = f64::from(sample.rate.prior_in_flight);
        if self.probe.too_high && in_flight >= self.inflight_longterm.floor() {
            self.probe.precautionary = true;
            return true;
        }
        if sample.ack.cwnd_limited && window.cwnd >= self.inflight_longterm {
            self.reset_full_bw(sample.bandwidth.unwrap_or(0.0));
            return false;
        }
        self.full.now
    }

    /// `InflightWithHeadroom()`
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let headroom = (HEADROOM * self.inflight_longterm).max(1.0);
        if self.inflight_longterm.is_infinite() {
            return f64::INFINITY;
        }
        (self.inflight_longterm - headroom).max(MIN_PIPE_CWND)
    }

    /// `AdaptLongTermModel()`: true if it decided a transition.
    fn adapt_long_term_model(&mut self, sample: &Sample<'_>, window: &Window) -> bool {
        if self.probe.acks == AckPhase::ProbeStarting && self.round.start {
            self.probe.acks = AckPhase::ProbeFeedback;
        }
        if self.probe.acks == AckPhase::ProbeStopping && self.round.start {
            self.probe.samples = false;
            self.probe.acks = AckPhase::Init;
            if self.in_probe_bw() && !sample.app_limited && self.max_bw.has_current() {
                // `AdvanceMaxBwFilter()`
                self.max_bw.advance();
            }
            if self.in_probe_bw() && self.probe.precautionary && !self.probe.too_high {
                self.start_refill();
                return true;
            }
        }
        let tx_in_flight = f64::from(sample.rate.tx_in_flight);
        let lost = (sample.rate.total_lost - sample.rate.prior_lost) as f64;
        if !self.is_inflight_too_high(lost, tx_in_flight) && self.inflight_longterm.is_finite() {
            self.inflight_longterm = self.inflight_longterm.max(tx_in_flight);
            if self.state == Phase::Up {
                self.probe_inflight_longterm_upward(sample, window);
            }
        }
        false
    }

    /// `ProbeInflightLongtermUpward()`
    fn probe_inflight_longterm_upward(&mut self, sample: &Sample<'_>, window: &Window) {
        if !sample.ack.cwnd_limited || window.cwnd < self.inflight_longterm {
            return;
        }
        self.probe.acked += f64::from(sample.ack.delivered);
        if self.probe.acked >= self.probe.acked_per_step {
            let steps = (self.probe.acked / self.probe.acked_per_step).floor();
            self.probe.acked -= steps * self.probe.acked_per_step;
            self.inflight_longterm += steps;
        }
        if self.round.start {
            self.raise_inflight_longterm_slope(window);
        }
    }

    /// `RaiseInflightLongtermSlope()`
    fn raise_inflight_longterm_slope(&mut self, window: &Window) {
        let growth = f64::from(1u32 << self.probe.up_rounds);
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(STEEPEST);
        self.probe.acked_per_step = (window.cwnd / growth).max(1.0);
    }
}
