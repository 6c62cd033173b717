//! The congestion window: the algorithm that controls it, and the changes that all algorithms have
//! in common.

use airpath_base::Duration;

use crate::congestion::{AckSample, CongestionControl, SlowStartExit, Window};
use crate::event::SlowStartExitReason;
use crate::{EndpointConfig, IdleRestart};

/// cwnd and ssthresh, of at least one segment each.
#[derive(Debug)]
pub(crate) struct CongestionWindow {
    control: Box<dyn CongestionControl>,
    is_model_based: bool,
    window: Window,
    /// Initial window (IW, RFC 5681 3.1), in segments.
    initial: f64,
    /// Largest cwnd so far.
    largest: f64,
    left_slow_start: bool,
}

impl CongestionWindow {
    pub(super) fn new(
        config: &EndpointConfig,
        control: Box<dyn CongestionControl>,
        mut window: Window,
    ) -> Self {
        let left_slow_start = !window.in_slow_start();
        if let Some(ssthresh) = config.route.ssthresh()
            && !left_slow_start
            && !control.is_model_based()
        {
            window.ssthresh = ssthresh;
        }
        Self {
            is_model_based: control.is_model_based(),
            control,
            window,
            initial: Window::initial(config.initial_window).cwnd,
            largest: window.cwnd,
            left_slow_start,
        }
    }

    pub(crate) const fn window(&self) -> Window {
        self.window
    }

    /// cwnd in whole segments.
    pub(super) fn segments(&self) -> u32 {
        self.window.segments()
    }

    /// The algorithm, for reading its state.
    pub(super) fn control(&self) -> &dyn CongestionControl {
        &*self.control
    }

    /// Whether the algorithm alone controls cwnd.
    pub(super) const fn is_model_based(&self) -> bool {
        self.is_model_based
    }

    /// Notifies the algorithm of an event; the algorithm may change the window.
    pub(super) fn notify(&mut self, of: impl FnOnce(&mut dyn CongestionControl, &mut Window)) {
        of(&mut *self.control, &mut self.window);
        self.check();
    }

    /// Notifies the algorithm of an acknowledgement. Returns how slow start ended, if it did.
    #[inline(always)]
    pub(super) fn on_ack(&mut self, sample: &AckSample) -> Option<SlowStartExit> {
        let exit = self.control.on_ack(sample, &mut self.window);
        self.check();
        let by_ssthresh =
            !self.left_slow_start && !self.is_model_based && !self.window.in_slow_start();
        exit.or_else(|| by_ssthresh.then(|| SlowStartExit::by(SlowStartExitReason::Ssthresh)))
    }

    fn check(&self) {
        debug_assert!(self.window.cwnd >= 1.0 && self.window.ssthresh >= 1.0, "{self:?}");
    }

    /// Whether the sender is in slow start: the first one has not ended, or cwnd is below ssthresh
    /// again.
    pub(super) fn is_in_slow_start(&self) -> bool {
        !self.left_slow_start || !self.is_model_based && self.window.in_slow_start()
    }

    /// Records that slow start ended. Returns whether it was the first slow start.
    pub(super) const fn leave_slow_start(&mut self) -> bool {
        !std::mem::replace(&mut self.left_slow_start, true)
    }

    /// Records cwnd if it is larger than ever before. Returns whether it is.
    #[inline(always)]
    pub(super) fn sets_record(&mut self) -> bool {
        let sets = self.window.cwnd > self.largest;
        if sets {
            self.largest = self.window.cwnd;
        }
        sets
    }

    /// More than one of our SYNs was lost (RFC 5681 3.1, RFC 6928 2).
    pub(crate) fn start_after_syn_loss(&mut self) {
        self.set(self.window.cwnd.min(self.control.loss_window()));
    }

    /// Sets cwnd, in segments.
    pub(super) fn set(&mut self, cwnd: f64) {
        self.window.cwnd = cwnd;
        self.check();
    }

    /// Reduces cwnd to ssthresh, unless the algorithm does it.
    pub(super) fn reduce_to_ssthresh(&mut self) {
        if !self.is_model_based {
            self.set(self.window.ssthresh);
        }
    }

    /// A congestion event was spurious: restores the window that preceded it (RFC 4015 3.3).
    pub(super) fn restore(&mut self, before: Window) {
        if !self.is_model_based {
            self.window.cwnd = self.window.cwnd.max(before.cwnd);
            self.window.ssthresh = self.window.ssthresh.max(before.ssthresh);
        }
        self.notify(|control, window| control.on_undo(window));
    }

    /// RFC 2861 3.2: reduces cwnd halfway to the segments that were `used`.
    pub(super) fn decay(&mut self, used: u32) {
        let used = f64::from(used).max(self.initial);
        if used < self.window.cwnd {
            self.remember();
            self.set(((self.window.cwnd + used) / 2.0).floor());
        }
    }

    /// Applies `rule` after nothing was sent for `idle`, which is longer than the RTO.
    pub(super) fn restart(&mut self, rule: IdleRestart, idle: Duration, rto: Duration) {
        let least = self.window.cwnd.min(self.initial);
        match rule {
            IdleRestart::Keep => {}
            IdleRestart::Restart => self.set(least),
            IdleRestart::Decay => {
                self.remember();
                let halvings = (idle.as_nanos() / rto.as_nanos().max(1)).min(64);
                let halved = (0..halvings).fold(self.window.cwnd, |cwnd, _| (cwnd / 2.0).floor());
                self.set(halved.max(least));
            }
        }
    }

    /// RFC 2861 3.2: ssthresh remembers three quarters of cwnd.
    fn remember(&mut self) {
        self.window.ssthresh = self.window.ssthresh.max((0.75 * self.window.cwnd).floor());
    }
}
