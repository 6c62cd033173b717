//! BBR v1: draft-cardwell-iccrg-bbr-congestion-control-00 ("draft" here), the paper in ACM Queue
//! 14(5), 2016, and what Linux does since 5.2: compensation of aggregated acknowledgements, pacing
//! margin, policer detection.
//!
//! Gains are multiples of 1/256, as in Linux; rates are not rounded.

#[cfg(test)]
mod tests;

use airpath_base::{Duration, Instant, Stream};

use super::aggregation::AckAggregation;
use super::filter::{ThreeBest, TwoPeriods};
use super::policer::{Policer, Sample};
use super::{
    FULL_PIPE_GROWTH, FULL_PIPE_ROUNDS, LowRate, MIN_PIPE_CWND, MinRtt, PACING_MARGIN, ProbeRtt,
    Round, SEND_BUFFER_FACTOR, UNKNOWN_RTT, ceil, floor,
};
use crate::EndpointConfig;
use crate::congestion::{
    AckSample, Congestion, CongestionControl, RateSample, SlowStartExit, State, Window,
};
use crate::event::SlowStartExitReason;

/// 2/ln 2, rounded up: the smallest gain that doubles the rate each round (draft 4.3.2.1 `BBRHighGain`).
const HIGH_GAIN: f64 = 739.0 / 256.0;
/// The inverse of [`HIGH_GAIN`], rounded down (draft 4.3.3).
const DRAIN_GAIN: f64 = 88.0 / 256.0;
/// Draft 4.3.4.2 `BBRGainCycle`.
const PACING_GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// cwnd in `ProbeBW`, in BDPs (draft 4.3.4.2).
const CWND_GAIN: f64 = 2.0;
/// Rounds over which the largest bandwidth sample counts (draft 4.1.1.4 `BBRBtlBwFilterLen`).
const BW_ROUNDS: u64 = 10;
/// Age at which the smallest RTT is measured again (draft 4.1.2.2 `RTpropFilterLen`).
const MIN_RTT_AGE: Duration = Duration::from_secs(10);
/// Linux counts the SYN as delivered.
const SYN: f64 = 1.0;
/// Linux: rounds per period; the largest aggregate of two periods is remembered.
const EXTRA_ACKED_ROUNDS: u32 = 5;
/// Linux: most that is added to cwnd for aggregation, in seconds at the bandwidth.
const EXTRA_ACKED_SECONDS: f64 = 0.1;
/// Linux: below this pacing rate, 1.2 Mb/s in bytes, a burst is one segment; above it, two.
const ONE_SEGMENT_RATE: f64 = 150_000.0;
/// Linux: longest burst, in seconds at the pacing rate (2^-10) …
const BURST_SECONDS: f64 = 1.0 / 1024.0;
/// … in bytes, …
const BURST_BYTES: f64 = 65_215.0;
/// … and in segments.
const BURST_SEGMENTS: u32 = 127;

/// What Linux calls `bbr`.
#[derive(Debug)]
pub struct Bbr1 {
    initial_window: f64,
    mss: u32,
    random: Stream,
    mode: Mode,
    round: Round,
    /// `BtlBw`
    bandwidth: ThreeBest,
    /// `RTprop`
    min_rtt: Option<MinRtt>,
    full_pipe: FullPipe,
    aggregation: AckAggregation,
    extra_acked: TwoPeriods,
    extra_acked_rounds: u32,
    policer: Policer,
    low_rate: LowRate,
    /// Bytes per second.
    pacing_rate: f64,
    has_seen_rtt: bool,
    /// cwnd before recovery or `ProbeRTT`.
    prior_cwnd: f64,
    /// State at the last acknowledgement that delivered something.
    state: State,
    /// First round of recovery: no more is sent than was delivered (draft 4.2.3.4).
    conserves: bool,
    idle_restart: bool,
    timed_out: bool,
}

/// Draft 4.3
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw { phase: usize, since: Instant },
    ProbeRtt(ProbeRtt),
}

/// Draft 4.3.2.2
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    bandwidth: f64,
    rounds: u32,
    reached: bool,
}

impl Bbr1 {
    pub(crate) fn new(config: &EndpointConfig, seed: u64) -> Self {
        let initial_window = f64::from(config.initial_window.max(1));
        let mut bbr = Self {
            initial_window,
            mss: config.mss,
            random: Stream::new(seed, "bbr"),
            mode: Mode::Startup,
            round: Round::default(),
            bandwidth: ThreeBest::default(),
            min_rtt: None,
            full_pipe: FullPipe::default(),
            aggregation: AckAggregation::default(),
            extra_acked: TwoPeriods::default(),
            extra_acked_rounds: 0,
            policer: Policer::default(),
            low_rate: LowRate::default(),
            pacing_rate: 0.0,
            has_seen_rtt: false,
            prior_cwnd: 0.0,
            state: State::Open,
            conserves: false,
            idle_restart: false,
            timed_out: false,
        };
        bbr.pacing_rate = bbr.rate_for(initial_window / UNKNOWN_RTT.as_secs_f64(), HIGH_GAIN);
        bbr
    }

    /// Draft 3.1 `BBRUpdateModelAndState()`
    fn update_model(&mut self, ack: &AckSample, window: &mut Window) -> Option<SlowStartExit> {
        self.round.start = false;
        // A change of the gain by this acknowledgement takes effect with the next one.
        let gain = self.pacing_gain();
        let sample = ack.rate.as_ref().and_then(|rate| Some((rate, rate.per_second()?)));
        let app_limited =
            ack.rate.as_ref().is_some_and(|rate| rate.app_limited || self.low_rate.covers(rate));
        if let Some((rate, bandwidth)) = sample {
            self.update_bandwidth(ack, rate, bandwidth, app_limited);
            self.update_aggregation(ack, window);
        }
        self.update_cycle(ack, gain);
        let exit = self.check_full_pipe(app_limited, window);
        self.check_drain(ack, gain);
        self.update_min_rtt(ack, window);
        exit
    }

    /// Draft 4.1.1.5 `BBRUpdateBtlBw()`
    fn update_bandwidth(
        &mut self,
        ack: &AckSample,
        rate: &RateSample,
        bandwidth: f64,
        app_limited: bool,
    ) {
        self.round.update(rate);
        self.conserves &= !self.round.start;
        let probe_again = self.policer.update(&Sample {
            now: ack.now,
            rate,
            app_limited,
            mss: ack.mss,
            loss: ack.lost > 0 || std::mem::take(&mut self.timed_out),
            round_start: self.round.start,
            in_probe_bw: matches!(self.mode, Mode::ProbeBw { .. }),
        });
        if probe_again {
            self.enter_probe_bw(ack.now);
        }
        if !app_limited || bandwidth >= self.bandwidth.max() {
            self.bandwidth.update(self.round.count, bandwidth, BW_ROUNDS);
        }
    }

    fn update_aggregation(&mut self, ack: &AckSample, window: &Window) {
        if self.round.start {
            self.extra_acked_rounds += 1;
            if self.extra_acked_rounds >= EXTRA_ACKED_ROUNDS {
                self.extra_acked_rounds = 0;
                self.extra_acked.advance();
            }
        }
        let bandwidth = self.bandwidth();
        let extra = self.aggregation.extra(ack.now, ack.delivered, bandwidth, window.cwnd);
        self.extra_acked.update(extra);
    }

    /// Draft 4.3.4.3 `BBRCheckCyclePhase()`
    fn update_cycle(&mut self, ack: &AckSample, gain: f64) {
        let Mode::ProbeBw { phase, since } = self.mode else { return };
        let min_rtt = self.min_rtt.map_or(Duration::ZERO, |min| min.rtt);
        let is_full_length = ack.now.saturating_since(since) > min_rtt;
        let prior = ack.rate.map_or(ack.in_flight, |rate| rate.prior_in_flight);
        let in_flight = || self.in_flight_when_sending(ack, prior, gain);
        let target = |gain| self.inflight(self.bandwidth.max(), gain);
        let next = if gain > 1.0 {
            // A buffer that cannot hold what the gain asks for drops packets.
            is_full_length && (ack.lost > 0 || in_flight() >= target(gain))
        } else {
            is_full_length || (gain < 1.0 && in_flight() <= target(1.0))
        };
        if next {
            let phase = (phase + 1) % PACING_GAINS.len();
            self.mode = Mode::ProbeBw { phase, since: ack.now };
        }
    }

    /// Draft 4.3.2.2 `BBRCheckFullPipe()`
    fn check_full_pipe(&mut self, app_limited: bool, window: &mut Window) -> Option<SlowStartExit> {
        let full = &mut self.full_pipe;
        if !full.reached && self.round.start && !app_limited {
            let bandwidth = self.bandwidth.max();
            if bandwidth >= full.bandwidth * FULL_PIPE_GROWTH {
                (full.bandwidth, full.rounds) = (bandwidth, 0);
            } else {
                full.rounds += 1;
                full.reached = full.rounds >= FULL_PIPE_ROUNDS;
            }
        }
        if self.mode != Mode::Startup || !self.full_pipe.reached {
            return None;
        }
        self.mode = Mode::Drain;
        window.ssthresh = self.inflight(self.bandwidth.max(), 1.0);
        Some(SlowStartExit::by(SlowStartExitReason::FullPipe))
    }

    /// Draft 4.3.3 `BBRCheckDrain()`
    fn check_drain(&mut self, ack: &AckSample, gain: f64) {
        if self.mode != Mode::Drain {
            return;
        }
        let target = self.inflight(self.bandwidth.max(), 1.0);
        if self.in_flight_when_sending(ack, ack.in_flight, gain) <= target {
            self.enter_probe_bw(ack.now);
        }
    }

    /// The part of `in_flight` that will still be in the network when the pacer sends next. Seen
    /// with Linux 6.18: the bottleneck keeps delivering until then, and while the gain is above 1
    /// the burst that is sent then counts.
    fn in_flight_when_sending(&self, ack: &AckSample, in_flight: u32, gain: f64) -> f64 {
        let burst = if gain > 1.0 { self.burst_segments() } else { 0 };
        let delivered = floor(self.bandwidth() * ack.pacing_wait.as_secs_f64());
        (f64::from(in_flight + burst) - delivered).max(0.0)
    }

    /// Draft 4.3.4.2 `BBREnterProbeBW()`: begins in any phase except the one that drains.
    fn enter_probe_bw(&mut self, now: Instant) {
        let phases = PACING_GAINS.len();
        let back = self.random.bits() % (phases as u64 - 1);
        let phase = (phases - back as usize) % phases;
        self.mode = Mode::ProbeBw { phase, since: now };
    }

    /// Draft 4.1.2.3 `BBRUpdateRTprop()`, 4.3.5 `BBRCheckProbeRTT()`
    fn update_min_rtt(&mut self, ack: &AckSample, window: &mut Window) {
        let now = ack.now;
        if self.min_rtt.is_none()
            && let Some(rtt) = ack.rtt
        {
            // Seen with Linux 6.18: the handshake's RTT, measured on segments without data, is the
            // first. This data was sent when the handshake was over.
            self.min_rtt = now.checked_sub(rtt).map(|at| MinRtt { rtt: ack.min_rtt, at });
        }
        let expired = self.min_rtt.is_some_and(|min| min.is_older(now, MIN_RTT_AGE));
        if let Some(rtt) = ack.rtt
            && (expired || self.min_rtt.is_none_or(|min| rtt < min.rtt))
        {
            self.min_rtt = Some(MinRtt { rtt, at: now });
        }
        if expired && !self.idle_restart && !matches!(self.mode, Mode::ProbeRtt(_)) {
            self.save_cwnd(window);
            self.mode = Mode::ProbeRtt(ProbeRtt::default());
        }
        if let Mode::ProbeRtt(mut probe) = self.mode {
            let delivered = ack.rate.map_or(self.round.end, |rate| rate.total_delivered);
            self.low_rate.mark(delivered, ack.in_flight);
            let reached = f64::from(ack.in_flight) <= MIN_PIPE_CWND;
            probe.advance(now, reached, &mut self.round, delivered);
            self.mode = Mode::ProbeRtt(probe);
            if probe.round_done {
                self.check_probe_rtt_done(now, window);
            }
        }
        self.idle_restart &= ack.delivered == 0;
    }

    fn check_probe_rtt_done(&mut self, now: Instant, window: &mut Window) {
        let Mode::ProbeRtt(probe) = self.mode else { return };
        if !probe.is_over(now) {
            return;
        }
        if let Some(min) = &mut self.min_rtt {
            min.at = now;
        }
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        if self.full_pipe.reached {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// Draft 4.2.1 `BBRInitPacingRate()`: from the first RTT.
    fn start_pacing(&mut self, srtt: Duration, window: &Window) {
        if !self.has_seen_rtt && srtt > Duration::ZERO {
            self.has_seen_rtt = true;
            self.pacing_rate = self.rate_for(window.cwnd / srtt.as_secs_f64(), HIGH_GAIN);
        }
    }

    /// Draft 4.2.1 `BBRSetPacingRate()`
    fn set_pacing_rate(&mut self, ack: &AckSample, window: &Window) {
        self.mss = ack.mss;
        self.start_pacing(ack.srtt, window);
        let rate = self.rate_for(self.bandwidth(), self.pacing_gain());
        if self.full_pipe.reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Draft 4.2.3.6 `BBRSetCwnd()`
    fn set_cwnd(&mut self, ack: &AckSample, window: &mut Window) {
        if ack.delivered > 0 {
            let delivered = f64::from(ack.delivered);
            self.follow_recovery(ack, window);
            if self.conserves {
                // Draft 4.2.3.4 `BBRModulateCwndForRecovery()`
                window.cwnd = window.cwnd.max(f64::from(ack.in_flight) + delivered);
            } else {
                let target = self.target_cwnd();
                let total = ack.rate.map_or(0, |rate| rate.total_delivered) as f64;
                if self.full_pipe.reached {
                    window.cwnd = (window.cwnd + delivered).min(target);
                } else if window.cwnd < target || total + SYN < self.initial_window {
                    window.cwnd += delivered;
                }
                window.cwnd = window.cwnd.max(MIN_PIPE_CWND);
            }
        }
        if matches!(self.mode, Mode::ProbeRtt(_)) {
            window.cwnd = window.cwnd.min(MIN_PIPE_CWND);
        }
    }

    fn follow_recovery(&mut self, ack: &AckSample, window: &mut Window) {
        window.cwnd = (window.cwnd - f64::from(ack.lost)).max(1.0);
        let before = std::mem::replace(&mut self.state, ack.state);
        if ack.state == State::Recovery && before != State::Recovery {
            self.conserves = true;
            self.round.restart(ack.rate.map_or(self.round.end, |rate| rate.total_delivered));
            window.cwnd = f64::from(ack.in_flight + ack.delivered);
        } else if ack.state == State::Open && before != State::Open {
            self.conserves = false;
            window.cwnd = window.cwnd.max(self.prior_cwnd);
        }
    }

    /// Draft 4.2.3.4 `BBRSaveCwnd()`
    fn save_cwnd(&mut self, window: &Window) {
        let known_good = self.state == State::Open && !matches!(self.mode, Mode::ProbeRtt(_));
        let prior = if known_good { 0.0 } else { self.prior_cwnd };
        self.prior_cwnd = prior.max(window.cwnd);
    }

    /// Draft 4.2.3.2 `BBRUpdateTargetCwnd()`
    fn target_cwnd(&self) -> f64 {
        let gain = match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw { .. } => CWND_GAIN,
            Mode::ProbeRtt(_) => 1.0,
        };
        let bandwidth = self.bandwidth();
        let extra = match self.full_pipe.reached {
            true => floor(self.extra_acked.max().min(bandwidth * EXTRA_ACKED_SECONDS)),
            false => 0.0,
        };
        self.quantized(self.bdp(bandwidth, gain) + extra)
    }

    /// Draft 4.2.3.2 `BBRInflight()`
    fn inflight(&self, bandwidth: f64, gain: f64) -> f64 {
        self.quantized(self.bdp(bandwidth, gain))
    }

    fn bdp(&self, bandwidth: f64, gain: f64) -> f64 {
        match self.min_rtt {
            None => self.initial_window,
            Some(min) => ceil(bandwidth * min.rtt.as_secs_f64() * gain),
        }
    }

    /// Adds room for bursts at both ends, for an acknowledgement of every second segment, and for
    /// the probe.
    fn quantized(&self, segments: f64) -> f64 {
        let even = ceil((segments + 3.0 * f64::from(self.burst_segments())) / 2.0) * 2.0;
        even + if matches!(self.mode, Mode::ProbeBw { phase: 0, .. }) { 2.0 } else { 0.0 }
    }

    fn burst_segments(&self) -> u32 {
        let least = if self.pacing_rate < ONE_SEGMENT_RATE { 1 } else { 2 };
        let bytes = (self.pacing_rate * BURST_SECONDS).min(BURST_BYTES);
        ((bytes / f64::from(self.mss)) as u32).clamp(least, BURST_SEGMENTS)
    }

    /// Bandwidth in segments per second: the policer's rate if there is one.
    fn bandwidth(&self) -> f64 {
        self.policer.rate().unwrap_or_else(|| self.bandwidth.max())
    }

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw { .. } if self.policer.rate().is_some() => 1.0,
            Mode::ProbeBw { phase, .. } => PACING_GAINS[phase],
            Mode::ProbeRtt(_) => 1.0,
        }
    }

    /// Pacing rate in bytes per second.
    fn rate_for(&self, bandwidth: f64, gain: f64) -> f64 {
        bandwidth * gain * (1.0 - PACING_MARGIN) * f64::from(self.mss)
    }
}

impl CongestionControl for Bbr1 {
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window) -> Option<SlowStartExit> {
        let exit = self.update_model(ack, window);
        self.set_pacing_rate(ack, window);
        self.set_cwnd(ack, window);
        exit
    }

    fn on_established(&mut self, rtt: Option<Duration>, window: &Window) {
        self.start_pacing(rtt.unwrap_or_default(), window);
    }

    fn on_congestion(&mut self, _congestion: &Congestion, window: &mut Window) {
        self.save_cwnd(window);
    }

    fn on_timeout(&mut self, _congestion: &Congestion, window: &mut Window) {
        self.save_cwnd(window);
        // Linux: a time-out ends a round; the model stays.
        self.state = State::Loss;
        self.timed_out = true;
        (self.full_pipe.bandwidth, self.full_pipe.rounds) = (0.0, 0);
        window.cwnd = self.loss_window();
    }

    fn on_undo(&mut self, _window: &mut Window) {
        (self.full_pipe.bandwidth, self.full_pipe.rounds) = (0.0, 0);
        self.policer.reset();
    }

    /// Draft 4.3.4.4 `BBRHandleRestartFromIdle()`
    fn on_restart(&mut self, now: Instant, _since: Instant, window: &mut Window) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            Mode::ProbeBw { .. } => self.pacing_rate = self.rate_for(self.bandwidth(), 1.0),
            Mode::ProbeRtt(_) => self.check_probe_rtt_done(now, window),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn is_model_based(&self) -> bool {
        true
    }

    fn pacing_rate(&self) -> Option<f64> {
        Some(self.pacing_rate)
    }

    fn burst(&self) -> Option<u32> {
        Some(self.burst_segments())
    }

    fn send_buffer_factor(&self) -> Option<u32> {
        Some(SEND_BUFFER_FACTOR)
    }
}
