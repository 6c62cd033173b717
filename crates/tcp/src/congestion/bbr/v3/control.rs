//! Control parameters (5.6): pacing rate, send quantum, window.

use super::super::{MIN_PIPE_CWND, PACING_MARGIN};
use super::{Bbr3, Phase};
use crate::congestion::{AckSample, Window};

/// 2.5 `StartupPacingGain`: 4 ln 2.
pub(super) const STARTUP_PACING_GAIN: f64 = 2.77;
/// 2.5 `DrainPacingGain`
pub(super) const DRAIN_PACING_GAIN: f64 = 0.5;
/// 5.3.3.1
pub(super) const DOWN_PACING_GAIN: f64 = 0.90;
/// 5.3.3.5
pub(super) const UP_PACING_GAIN: f64 = 1.25;
/// 2.6 `DefaultCwndGain`
pub(super) const CWND_GAIN: f64 = 2.0;
/// 5.3.3.5
pub(super) const UP_CWND_GAIN: f64 = 2.25;
/// 2.16.2 `ProbeRTTCwndGain`
pub(super) const PROBE_RTT_CWND_GAIN: f64 = 0.5;
/// 5.6.3: longest burst, in seconds at the pacing rate, …
const QUANTUM_SECONDS: f64 = 0.001;
/// … largest burst in bytes, …
const QUANTUM_BYTES: f64 = 65_536.0;
/// … and smallest burst in segments.
const QUANTUM_SEGMENTS: u32 = 2;
/// 5.5.8.1
const QUANTA: f64 = 3.0;
/// 5.6.4.2: additional segments while probing.
const UP_SEGMENTS: f64 = 2.0;

impl Bbr3 {
    /// 5.2.3 `UpdateControlParameters()`
    pub(super) fn update_control(&mut self, ack: &AckSample, window: &mut Window) {
        if !self.has_seen_rtt && ack.srtt.as_nanos() > 0 {
            // 5.6.2 `InitPacingRate()`
            self.has_seen_rtt = true;
            self.pacing_rate = self.pacing_gain() * self.initial_window / ack.srtt.as_secs_f64()
                * f64::from(self.mss);
        }
        self.set_pacing_rate(self.pacing_gain());
        self.set_cwnd(ack, window);
    }

    /// 5.6.2 `SetPacingRateWithGain()`
    pub(super) fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bw * (1.0 - PACING_MARGIN) * f64::from(self.mss);
        if self.full.reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// 5.6.1
    pub(super) fn pacing_gain(&self) -> f64 {
        match self.state {
            Phase::Startup => STARTUP_PACING_GAIN,
            Phase::Drain { .. } => DRAIN_PACING_GAIN,
            Phase::Down => DOWN_PACING_GAIN,
            Phase::Cruise | Phase::Refill | Phase::ProbeRtt(_) => 1.0,
            Phase::Up => UP_PACING_GAIN,
        }
    }

    /// 5.6.3 `SetSendQuantum()`
    pub(super) fn send_quantum(&self) -> u32 {
        let bytes = (self.pacing_rate * QUANTUM_SECONDS).min(QUANTUM_BYTES);
        ((bytes / f64::from(self.mss)) as u32).max(QUANTUM_SEGMENTS)
    }

    /// 5.6.4.6 `SetCwnd()`
    fn set_cwnd(&mut self, ack: &AckSample, window: &mut Window) {
        let max_inflight = self.max_inflight();
        let delivered = f64::from(ack.delivered);
        if self.full.reached {
            window.cwnd = (window.cwnd + delivered).min(max_inflight);
        } else if window.cwnd < max_inflight || (self.delivered as f64) < self.initial_window {
            window.cwnd += delivered;
        }
        window.cwnd = window.cwnd.max(MIN_PIPE_CWND);
        // 5.6.4.5 `BoundCwndForProbeRTT()`
        if matches!(self.state, Phase::ProbeRtt(_)) {
            window.cwnd = window.cwnd.min(self.probe_rtt_cwnd());
        }
        window.cwnd = window.cwnd.min(self.cwnd_cap());
    }

    /// 5.6.4.7 `BoundCwndForModel()`
    fn cwnd_cap(&self) -> f64 {
        let cap = match self.state {
            Phase::Down | Phase::Refill | Phase::Up => self.inflight_longterm,
            Phase::Cruise | Phase::ProbeRtt(_) => self.inflight_with_headroom(),
            Phase::Startup | Phase::Drain { .. } => f64::INFINITY,
        };
        cap.min(self.inflight_shortterm).max(MIN_PIPE_CWND)
    }

    /// 5.6.4.5 `ProbeRTTCwnd()`
    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        (PROBE_RTT_CWND_GAIN * self.bdp(self.bw)).max(MIN_PIPE_CWND)
    }

    /// 5.6.4.2 `UpdateMaxInflight()`
    fn max_inflight(&self) -> f64 {
        let gain = if self.state == Phase::Up { UP_CWND_GAIN } else { CWND_GAIN };
        self.quantized(gain * self.bdp(self.bw) + self.extra_acked.max())
    }

    /// 5.6.4.2 `Inflight()`
    pub(super) fn inflight(&self, bandwidth: f64, gain: f64) -> f64 {
        self.quantized(gain * self.bdp(bandwidth))
    }

    /// 5.6.4.2 `BDPMultiple()`
    pub(super) fn bdp(&self, bandwidth: f64) -> f64 {
        self.rtts.min.map_or(self.initial_window, |min| bandwidth * min.rtt.as_secs_f64())
    }

    /// 5.6.4.2 `QuantizationBudget()`
    fn quantized(&self, segments: f64) -> f64 {
        let offload_budget = QUANTA * f64::from(self.send_quantum());
        let segments = segments.max(offload_budget).max(MIN_PIPE_CWND);
        segments + if self.state == Phase::Up { UP_SEGMENTS } else { 0.0 }
    }

    /// 5.3.3.8 `TargetInflight()`
    pub(super) fn target_inflight(&self, window: &Window) -> f64 {
        self.bdp(self.bw).min(window.cwnd)
    }
}
