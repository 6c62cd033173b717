//! BBR v3: draft-ietf-ccwg-bbr-06 (July 2026), whose sections and names are cited here.
//!
//! Differences from the draft: one acknowledgement that reports losses, or one run of adjacent lost
//! segments, counts as a range of 5.3.1.3; after a time-out the short-term bound starts from cwnd
//! before it, as in Linux; `BBR.max_bw` is kept through a cycle without samples; the state for undo
//! is saved once per recovery, not at each round's first loss, when much of it has already changed.
//! Marked packets are not a signal, as in the draft (3.7): [`AckSample::ecn_echo`] is not used yet.

mod control;
mod loss;
mod probe_bw;
#[cfg(test)]
mod tests;

use airpath_base::{Duration, Instant, Stream};

use super::aggregation::AckAggregation;
use super::filter::{TwoPeriods, WindowedMax};
use super::{
    FULL_PIPE_GROWTH, FULL_PIPE_ROUNDS, LowRate, MinRtt, ProbeRtt, Round, SEND_BUFFER_FACTOR,
    UNKNOWN_RTT,
};
use crate::EndpointConfig;
use crate::congestion::{
    AckSample, Congestion, CongestionControl, LostSegment, RateSample, SlowStartExit, State, Window,
};
use crate::event::SlowStartExitReason;
use loss::{Latest, Undo};
use probe_bw::Probe;

/// 2.16.1 `MinRTTFilterLen`
const MIN_RTT_AGE: Duration = Duration::from_secs(10);
/// 2.16.2 `ProbeRTTInterval`
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// 2.12 `ExtraAckedFilterLen`, in rounds.
const EXTRA_ACKED_ROUNDS: u64 = 10;
/// Rounds of [`EXTRA_ACKED_ROUNDS`] in Startup (5.5.9).
const EXTRA_ACKED_ROUNDS_STARTUP: u64 = 1;
/// 5.3.2: rounds after which Drain ends in any case.
const DRAIN_ROUNDS: u64 = 3;

/// BBR as the IETF draft describes it.
#[derive(Debug)]
pub struct Bbr3 {
    initial_window: f64,
    mss: u32,
    sack: bool,
    random: Stream,
    state: Phase,
    round: Round,
    /// `C.delivered`
    delivered: u64,

    max_bw: TwoPeriods,
    bw_shortterm: f64,
    bw: f64,
    rtts: MinRtts,
    inflight_longterm: f64,
    inflight_shortterm: f64,
    aggregation: AckAggregation,
    extra_acked: WindowedMax,

    full: FullBandwidth,
    latest: Latest,
    probe: Probe,
    undo: Undo,

    /// Bytes per second.
    pacing_rate: f64,
    has_seen_rtt: bool,
    prior_cwnd: f64,
    /// Whether loss recovery, of either kind, is in progress.
    recovers: bool,
    idle_restart: bool,
    low_rate: LowRate,
}

/// 5.1.1
#[derive(Clone, Copy, PartialEq, Debug)]
enum Phase {
    Startup,
    Drain { since_round: u64 },
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt(ProbeRtt),
}

/// 2.13
#[derive(Clone, Copy, Debug, Default)]
struct FullBandwidth {
    /// `full_bw`
    baseline: f64,
    /// `full_bw_count`
    rounds: u32,
    now: bool,
    reached: bool,
}

/// The minimum RTTs of 5.3.4.3: over the long filter, and since the last `ProbeRTT`.
#[derive(Clone, Copy, Debug, Default)]
struct MinRtts {
    /// `min_rtt`, `min_rtt_stamp`
    min: Option<MinRtt>,
    /// `probe_rtt_min_delay`, `probe_rtt_min_stamp`
    recent: Option<MinRtt>,
    /// `probe_rtt_expired`
    recent_expired: bool,
}

impl MinRtts {
    /// 5.3.4.3 `UpdateMinRTT()`
    fn update(&mut self, ack: &AckSample) {
        let now = ack.now;
        let expired = |min: Option<MinRtt>, age| min.is_some_and(|min| min.is_older(now, age));
        self.recent_expired = expired(self.recent, PROBE_RTT_INTERVAL);
        if let Some(rtt) = ack.rtt
            && (self.recent_expired || self.recent.is_none_or(|min| rtt < min.rtt))
        {
            self.recent = Some(MinRtt { rtt, at: now });
        }
        let Some(recent) = self.recent else { return };
        if expired(self.min, MIN_RTT_AGE) || self.min.is_none_or(|min| recent.rtt < min.rtt) {
            self.min = Some(recent);
        }
    }
}

/// Values that the steps of processing one acknowledgement share (`RS`).
struct Sample<'a> {
    ack: &'a AckSample,
    rate: &'a RateSample,
    /// Segments per second.
    bandwidth: Option<f64>,
    app_limited: bool,
    delivered: f64,
}

impl Bbr3 {
    /// 5.2.1 `OnInit()`
    pub(crate) fn new(config: &EndpointConfig, seed: u64) -> Self {
        let initial_window = f64::from(config.initial_window.max(1));
        let mut bbr = Self {
            initial_window,
            mss: config.mss,
            sack: config.sack,
            random: Stream::new(seed, "bbr3"),
            state: Phase::Startup,
            round: Round::default(),
            delivered: 0,
            max_bw: TwoPeriods::default(),
            bw_shortterm: f64::INFINITY,
            bw: 0.0,
            rtts: MinRtts::default(),
            inflight_longterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            aggregation: AckAggregation::default(),
            extra_acked: WindowedMax::default(),
            full: FullBandwidth::default(),
            latest: Latest::default(),
            probe: Probe::default(),
            undo: Undo::default(),
            pacing_rate: 0.0,
            has_seen_rtt: false,
            prior_cwnd: 0.0,
            recovers: false,
            idle_restart: false,
            low_rate: LowRate::default(),
        };
        // 5.6.2 `InitPacingRate()`
        bbr.bw = initial_window / UNKNOWN_RTT.as_secs_f64();
        bbr.set_pacing_rate(bbr.pacing_gain());
        bbr.bw = 0.0;
        bbr
    }

    /// 5.2.3 `UpdateModelAndState()`
    fn update_model(&mut self, sample: &Sample<'_>, window: &mut Window) -> Option<SlowStartExit> {
        let in_startup = self.state == Phase::Startup;
        self.update_latest_delivery_signals(sample);
        self.update_congestion_signals(sample, window);
        self.update_ack_aggregation(sample, window);
        self.check_full_bw_reached(sample);
        let high_loss = self.check_startup_high_loss(sample);
        if self.state == Phase::Startup && self.full.reached {
            self.state = Phase::Drain { since_round: self.round.count };
        }
        self.check_drain_done(sample);
        self.update_probe_bw_cycle_phase(sample, window);
        self.rtts.update(sample.ack);
        self.check_probe_rtt(sample, window);
        self.advance_latest_delivery_signals(sample);
        self.bw = self.max_bw.max().min(self.bw_shortterm);

        let reason =
            if high_loss { SlowStartExitReason::Loss } else { SlowStartExitReason::FullPipe };
        (in_startup && self.full.reached).then_some(SlowStartExit::by(reason))
    }

    /// 5.5.5 `UpdateMaxBw()`
    fn update_max_bw(&mut self, sample: &Sample<'_>) {
        self.round.update(sample.rate);
        self.probe.rounds_since_up += u64::from(self.round.start);
        if let Some(bandwidth) = sample.bandwidth
            && (bandwidth >= self.max_bw.max() || !sample.app_limited)
        {
            self.max_bw.update(bandwidth);
        }
    }

    /// 5.5.9 `UpdateACKAggregation()`
    fn update_ack_aggregation(&mut self, sample: &Sample<'_>, window: &Window) {
        let ack = sample.ack;
        let extra = self.aggregation.extra(ack.now, ack.delivered, self.bw, window.cwnd);
        let rounds = match self.full.reached {
            true => EXTRA_ACKED_ROUNDS,
            false => EXTRA_ACKED_ROUNDS_STARTUP,
        };
        self.extra_acked.update(self.round.count, extra, rounds);
    }

    /// 5.3.1.2 `CheckFullBWReached()`
    fn check_full_bw_reached(&mut self, sample: &Sample<'_>) {
        let Some(bandwidth) = sample.bandwidth else { return };
        if self.full.now || !self.round.start || sample.app_limited {
            return;
        }
        if bandwidth >= self.full.baseline * FULL_PIPE_GROWTH {
            self.reset_full_bw(bandwidth);
            return;
        }
        self.full.rounds += 1;
        self.full.now = self.full.rounds >= FULL_PIPE_ROUNDS;
        self.full.reached |= self.full.now;
    }

    /// 5.3.1.2 `ResetFullBW()`, with a new baseline.
    fn reset_full_bw(&mut self, baseline: f64) {
        self.full = FullBandwidth { baseline, reached: self.full.reached, ..Default::default() };
    }

    /// 5.3.2 `CheckDrainDone()`
    fn check_drain_done(&mut self, sample: &Sample<'_>) {
        let Phase::Drain { since_round } = self.state else { return };
        let drained = f64::from(sample.ack.in_flight) <= self.inflight(self.bw, 1.0);
        if drained || self.round.count > since_round + DRAIN_ROUNDS {
            self.start_down(sample.ack.now);
        }
    }

    /// 5.3.4.3 `CheckProbeRTT()`
    fn check_probe_rtt(&mut self, sample: &Sample<'_>, window: &mut Window) {
        let probing = matches!(self.state, Phase::ProbeRtt(_));
        if !probing && self.rtts.recent_expired && !self.idle_restart {
            self.save_cwnd(window);
            self.state = Phase::ProbeRtt(ProbeRtt::default());
            self.probe.stop();
            self.round.restart(self.delivered);
        }
        if let Phase::ProbeRtt(mut probe) = self.state {
            // `HandleProbeRTT()`
            let ack = sample.ack;
            self.low_rate.mark(self.delivered, ack.in_flight);
            let reached = f64::from(ack.in_flight) <= self.probe_rtt_cwnd();
            probe.advance(ack.now, reached, &mut self.round, self.delivered);
            self.state = Phase::ProbeRtt(probe);
            if probe.round_done {
                self.check_probe_rtt_done(ack.now, window);
            }
        }
        self.idle_restart &= sample.ack.delivered == 0;
    }

    /// 5.3.4.3 `CheckProbeRTTDone()`, 5.3.4.4 `ExitProbeRTT()`
    fn check_probe_rtt_done(&mut self, now: Instant, window: &mut Window) {
        if !matches!(self.state, Phase::ProbeRtt(probe) if probe.is_over(now)) {
            return;
        }
        if let Some(min) = &mut self.rtts.recent {
            min.at = now;
        }
        self.restore_cwnd(window);
        self.reset_short_term_model();
        if self.full.reached {
            self.start_down(now);
            self.state = Phase::Cruise;
        } else {
            self.state = Phase::Startup;
        }
    }

    /// 5.6.4.4 `SaveCwnd()`
    fn save_cwnd(&mut self, window: &Window) {
        let known_good = !self.recovers && !matches!(self.state, Phase::ProbeRtt(_));
        let prior = if known_good { 0.0 } else { self.prior_cwnd };
        self.prior_cwnd = prior.max(window.cwnd);
    }

    /// 5.6.4.4 `RestoreCwnd()`
    fn restore_cwnd(&self, window: &mut Window) {
        window.cwnd = window.cwnd.max(self.prior_cwnd);
    }
}

impl CongestionControl for Bbr3 {
    /// 5.2.3 `UpdateOnACK()`
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window) -> Option<SlowStartExit> {
        let Some(rate) = &ack.rate else {
            self.round.start = false;
            return None;
        };
        self.mss = ack.mss;
        self.delivered = rate.total_delivered;
        if ack.state == State::Open {
            self.recovers = false;
            self.forget_undo();
        }
        let sample = Sample {
            ack,
            rate,
            bandwidth: rate.per_second(),
            app_limited: rate.app_limited || self.low_rate.covers(rate),
            delivered: rate.delivered() as f64,
        };
        let exit = self.update_model(&sample, window);
        if exit.is_some() {
            window.ssthresh = self.inflight(self.bw, 1.0);
        }
        self.update_control(ack, window);
        exit
    }

    fn on_lost(&mut self, lost: &LostSegment, window: &mut Window) {
        self.handle_lost_segment(lost, window);
    }

    /// 5.6.4.4 `OnEnterFastRecovery()`
    fn on_congestion(&mut self, _congestion: &Congestion, window: &mut Window) {
        self.save_state_upon_loss(window);
        self.recovers = true;
    }

    /// 5.6.4.4 `OnEnterRTO()`
    fn on_timeout(&mut self, _congestion: &Congestion, window: &mut Window) {
        self.save_state_upon_loss(window);
        self.recovers = true;
        self.bound_after_timeout();
        window.cwnd = self.loss_window();
    }

    /// 5.6.4.4
    fn on_recovered(&mut self, _now: Instant, window: &mut Window) {
        self.recovers = false;
        self.forget_undo();
        self.restore_cwnd(window);
    }

    fn on_undo(&mut self, window: &mut Window) {
        self.handle_spurious_loss(window);
    }

    /// 5.4.1 `HandleRestartFromIdle()`
    fn on_restart(&mut self, now: Instant, _since: Instant, window: &mut Window) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        if self.in_probe_bw() {
            self.set_pacing_rate(1.0);
        } else {
            self.check_probe_rtt_done(now, window);
        }
    }

    fn is_model_based(&self) -> bool {
        true
    }

    fn pacing_rate(&self) -> Option<f64> {
        Some(self.pacing_rate)
    }

    fn burst(&self) -> Option<u32> {
        Some(self.send_quantum())
    }

    fn send_buffer_factor(&self) -> Option<u32> {
        Some(SEND_BUFFER_FACTOR)
    }
}
