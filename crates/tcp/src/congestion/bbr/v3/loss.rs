//! How losses change the model (5.5.10): short-term bounds while cruising, long-term bounds while
//! probing; and how this is undone (5.5.11).

use super::{Bbr3, Phase, Sample};
use crate::congestion::{LostSegment, State, Window};

/// 2.8 `LossThresh`
pub(super) const LOSS_THRESHOLD: f64 = 0.02;
/// 2.8 `Beta`
pub(super) const BETA: f64 = 0.7;
/// 5.3.1.3 `StartupFullLossCnt`
pub(super) const STARTUP_FULL_LOSSES: u32 = 6;

/// The delivery process of the last round, and losses in it (2.10).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latest {
    bw: f64,
    inflight: f64,
    /// `loss_round_delivered`
    round_end: u64,
    /// `loss_round_start`
    round_start: bool,
    /// `is_loss_in_round`
    loss: bool,
    /// Ranges lost in this round, and the end of the last one.
    ranges: u32,
    range_end: u64,
}

/// 2.15
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// Whether it holds the state from before the current recovery.
    held: bool,
    state: Undone,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
}

/// `undo_state`: the state that a loss ended.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
enum Undone {
    #[default]
    None,
    Startup,
    Up,
}

impl Latest {
    /// `ResetCongestionSignals()`
    pub(super) fn reset(&mut self) {
        (self.bw, self.inflight, self.loss) = (0.0, 0.0, false);
    }
}

impl Bbr3 {
    /// `UpdateLatestDeliverySignals()`
    pub(super) fn update_latest_delivery_signals(&mut self, sample: &Sample<'_>) {
        let latest = &mut self.latest;
        latest.bw = latest.bw.max(sample.bandwidth.unwrap_or(0.0));
        latest.inflight = latest.inflight.max(sample.delivered);
        latest.round_start = sample.rate.prior_delivered >= latest.round_end;
        if latest.round_start {
            latest.round_end = self.delivered;
        }
    }

    /// `AdvanceLatestDeliverySignals()`
    pub(super) fn advance_latest_delivery_signals(&mut self, sample: &Sample<'_>) {
        if self.latest.round_start {
            self.latest.bw = sample.bandwidth.unwrap_or(0.0);
            self.latest.inflight = sample.delivered;
            self.latest.ranges = 0;
        }
    }

    /// `UpdateCongestionSignals()`
    pub(super) fn update_congestion_signals(&mut self, sample: &Sample<'_>, window: &Window) {
        self.update_max_bw(sample);
        if self.latest.round_start {
            if self.latest.loss && !self.is_probing_bw() {
                self.adapt_lower_bounds(window);
            }
            self.latest.loss = false;
        }
    }

    /// `InitLowerBounds()`, `LossLowerBounds()`
    fn adapt_lower_bounds(&mut self, window: &Window) {
        if self.bw_shortterm.is_infinite() {
            self.bw_shortterm = self.max_bw.max();
        }
        if self.inflight_shortterm.is_infinite() {
            self.inflight_shortterm = window.cwnd;
        }
        self.bw_shortterm = self.latest.bw.max(BETA * self.bw_shortterm);
        self.inflight_shortterm = self.latest.inflight.max(BETA * self.inflight_shortterm);
    }

    /// Bounds the short-term model after a time-out, when cwnd says nothing about the path.
    pub(super) fn bound_after_timeout(&mut self) {
        if !self.is_probing_bw() && self.inflight_shortterm.is_infinite() {
            self.inflight_shortterm = self.prior_cwnd;
        }
    }

    /// `ResetShortTermModel()`
    pub(super) fn reset_short_term_model(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    /// 5.3.1.3 `CheckStartupHighLoss()`: true if Startup ends here.
    pub(super) fn check_startup_high_loss(&mut self, sample: &Sample<'_>) -> bool {
        let rate = sample.rate;
        let in_recovery = sample.ack.state == State::Recovery;
        if self.state != Phase::Startup || self.full.reached || !in_recovery {
            return false;
        }
        let lost = (rate.total_lost - rate.prior_lost) as f64;
        let too_high = self.is_inflight_too_high(lost, f64::from(rate.tx_in_flight));
        let full_round = self.latest.round_start && self.latest.ranges >= STARTUP_FULL_LOSSES;
        if !too_high || (self.sack && !full_round) {
            return false;
        }
        self.undo.state = Undone::Startup;
        self.full.reached = true;
        self.inflight_longterm = self.bdp(self.max_bw.max()).max(self.latest.inflight);
        true
    }

    /// 5.5.10.2 `HandleLostPacket()`
    pub(super) fn handle_lost_segment(&mut self, lost: &LostSegment, window: &Window) {
        self.delivered = lost.total_delivered;
        self.note_loss(lost, window);
        if !self.probe.samples {
            return;
        }
        let tx_in_flight = f64::from(lost.tx_in_flight);
        let lost_since = (lost.total_lost - lost.prior_lost) as f64;
        if self.is_inflight_too_high(lost_since, tx_in_flight) {
            let in_flight = inflight_at_loss(tx_in_flight, lost_since);
            self.handle_inflight_too_high(lost, in_flight, window);
        }
    }

    /// `NoteLoss()`
    fn note_loss(&mut self, lost: &LostSegment, window: &Window) {
        if !self.latest.loss {
            self.latest.round_end = self.delivered;
            self.save_state_upon_loss(window);
        }
        self.latest.loss = true;
        if lost.seq != self.latest.range_end {
            self.latest.ranges += 1;
        }
        self.latest.range_end = lost.end;
    }

    /// `IsInflightTooHigh()`
    pub(super) fn is_inflight_too_high(&self, lost: f64, tx_in_flight: f64) -> bool {
        lost > tx_in_flight * LOSS_THRESHOLD || (lost > 0.0 && !self.sack)
    }

    /// `HandleInflightTooHigh()`
    fn handle_inflight_too_high(&mut self, lost: &LostSegment, in_flight: f64, window: &Window) {
        self.probe.too_high = true;
        self.probe.samples = false;
        if !lost.app_limited {
            self.inflight_longterm = in_flight.max(self.target_inflight(window) * BETA);
        }
        if self.state == Phase::Up {
            self.undo.state = Undone::Up;
            self.start_down(lost.now);
        }
    }

    /// 5.5.11.1 `SaveStateUponLoss()`
    pub(super) fn save_state_upon_loss(&mut self, window: &Window) {
        self.save_cwnd(window);
        if self.undo.held {
            return;
        }
        self.undo = Undo {
            held: true,
            state: Undone::None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }

    /// Discards the saved state: the losses were real, and are repaired.
    pub(super) fn forget_undo(&mut self) {
        self.undo.held = false;
    }

    /// 5.5.11.2 `HandleSpuriousLossDetection()`
    pub(super) fn handle_spurious_loss(&mut self, window: &mut Window) {
        self.recovers = false;
        self.forget_undo();
        self.restore_cwnd(window);
        self.latest.loss = false;
        self.reset_full_bw(0.0);
        self.bw_shortterm = self.bw_shortterm.max(self.undo.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo.inflight_longterm);
        let in_probe_rtt = matches!(self.state, Phase::ProbeRtt(_));
        match std::mem::take(&mut self.undo.state) {
            Undone::Startup if self.state != Phase::Startup => {
                self.full.reached = false;
                if !in_probe_rtt {
                    self.state = Phase::Startup;
                }
            }
            Undone::Up if self.state != Phase::Up && !in_probe_rtt => self.start_refill(),
            _ => {}
        }
    }
}

/// 5.5.10.2 `InflightAtLoss()`: what was in flight when losses crossed the threshold.
pub(super) fn inflight_at_loss(tx_in_flight: f64, lost: f64) -> f64 {
    let (inflight_before, lost_before) = (tx_in_flight - 1.0, lost - 1.0);
    let prefix = (LOSS_THRESHOLD * inflight_before - lost_before) / (1.0 - LOSS_THRESHOLD);
    inflight_before + prefix.max(0.0)
}
