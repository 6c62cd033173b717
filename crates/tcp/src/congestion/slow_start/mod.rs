//! Slow start of the loss-based algorithms, and what ends it before a loss.

mod hystart;
mod hystart_pp;
mod pace;

use super::{AckSample, HystartSnapshot, SenderSnapshot, SlowStartExit, Window};
use crate::{EarlyExit, SlowStartConfig};

use hystart::Hystart;
use hystart_pp::HystartPlusPlus;
use pace::Pace;

/// Grows cwnd below ssthresh.
#[derive(Clone, Debug)]
pub(crate) struct SlowStart {
    limit: Option<u32>,
    detector: Detector,
}

#[derive(Clone, Debug)]
enum Detector {
    None,
    Hystart(Hystart),
    PlusPlus(HystartPlusPlus),
}

/// The result of slow start for one acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Acknowledged segments left over for congestion avoidance.
    pub(crate) left: u32,
    /// Slow start ends here: ssthresh is set to cwnd.
    pub(crate) exit: Option<SlowStartExit>,
}

impl SlowStart {
    pub(crate) fn new(config: SlowStartConfig) -> Self {
        let detector = match config.exit {
            EarlyExit::None => Detector::None,
            EarlyExit::Hystart(config) => Detector::Hystart(Hystart::new(config)),
            EarlyExit::HystartPlusPlus => Detector::PlusPlus(HystartPlusPlus::default()),
        };
        Self { limit: config.limit, detector }
    }

    /// Processes every acknowledgement, including those in congestion avoidance.
    #[inline]
    pub(crate) fn on_ack(&mut self, ack: &AckSample, window: &mut Window) -> Step {
        // Only Linux's HyStart also follows round trips in congestion avoidance.
        if !window.in_slow_start() && !matches!(self.detector, Detector::Hystart(_)) {
            return Step { left: if ack.cwnd_limited { ack.acked } else { 0 }, exit: None };
        }
        self.judge(ack, window)
    }

    fn judge(&mut self, ack: &AckSample, window: &mut Window) -> Step {
        let slow = window.in_slow_start();
        let (mut exit, mut pace) = (None, Pace { limit: self.limit, divisor: 1.0 });
        match &mut self.detector {
            Detector::None => {}
            // Linux runs the tests before cwnd grows.
            Detector::Hystart(hystart) => exit = hystart.on_ack(ack, window),
            Detector::PlusPlus(hystart) => {
                if slow && window.ssthresh.is_infinite() {
                    pace = hystart.pace(ack.paced);
                }
            }
        }
        if exit.is_some() {
            window.ssthresh = window.cwnd;
        }
        let left = match (ack.cwnd_limited, window.in_slow_start()) {
            (false, _) => 0,
            (true, false) => ack.acked,
            (true, true) => pace.grow(ack.acked, window),
        };
        if let Detector::PlusPlus(hystart) = &mut self.detector
            && slow
            // RFC 9406 4.3: later slow starts are standard.
            && window.ssthresh.is_infinite()
        {
            exit = hystart.on_ack(ack);
            if exit.is_some() {
                window.ssthresh = window.cwnd;
            }
        }
        Step { left, exit }
    }

    /// Restarts slow start after a time-out.
    pub(crate) fn on_timeout(&mut self) {
        if let Detector::Hystart(hystart) = &mut self.detector {
            hystart.restart();
        }
    }

    /// See [`CongestionControl::hystart`](crate::CongestionControl::hystart).
    pub(crate) fn hystart(&self, sender: &SenderSnapshot) -> Option<HystartSnapshot> {
        match &self.detector {
            Detector::None => None,
            Detector::Hystart(hystart) => hystart.snapshot(sender),
            Detector::PlusPlus(hystart) => Some(hystart.snapshot(sender)),
        }
    }
}
