//! An algorithm in a library as a congestion control of TCP endpoints.
#![allow(unsafe_code, reason = "calling foreign code")]

use std::ffi::c_void;
use std::ptr::NonNull;

use airpath_base::{Duration, Instant};
use airpath_tcp::{
    AckSample, Congestion, CongestionControl, CongestionFactory, EndpointConfig, SlowStartExit,
    SlowStartExitReason, State, Window,
};

use crate::abi::{self, Library, NO_TIME, Reason};

/// Builds the algorithm of a library.
#[derive(Debug)]
pub(crate) struct Factory {
    library: &'static Library,
    name: &'static str,
    /// The file in messages.
    file: String,
}

impl Factory {
    pub(crate) fn new(library: &'static Library, name: &'static str, file: String) -> Self {
        Self { library, name, file }
    }
}

impl CongestionFactory for Factory {
    fn name(&self) -> &'static str {
        self.name
    }

    fn build(&self, config: &EndpointConfig, seed: u64) -> Box<dyn CongestionControl> {
        let start = abi::Start {
            seed,
            mss_bytes: config.mss,
            initial_window_segments: config.initial_window.max(1),
        };
        // SAFETY: the pointer is to a structure that outlives the call.
        let state = NonNull::new(unsafe { (self.library.start)(&raw const start) });
        let mut control = Control {
            library: self.library,
            file: self.file.clone(),
            state,
            limits: Limits::of(config, self.library.model_based),
            pacing_bps: None,
            now: Instant::ZERO,
            failed: None,
        };
        if state.is_none() {
            control.fail("start failed");
        }
        Box::new(control)
    }
}

/// What a congestion control from outside may decide.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    is_model_based: bool,
    /// Lowest pacing rate, in payload bits per second.
    least_bps: f64,
}

/// Largest window in segments, as for the key `fixed_window_segments`.
const MOST_SEGMENTS: f64 = 1e7;

impl Limits {
    /// The limits of a connection.
    pub fn of(config: &EndpointConfig, is_model_based: bool) -> Self {
        let segment_bits = 8.0 * f64::from(config.mss);
        Self { is_model_based, least_bps: segment_bits / config.rto.max.as_secs_f64() }
    }

    /// What is wrong with a window and a pacing rate: the value, and what is allowed. With these
    /// limits a sender always lets something out: a slower pace than a segment per largest RTO would
    /// make its timers expire before a segment may leave.
    pub fn refuse(&self, window: &Window, pacing_bps: Option<f64>) -> Option<String> {
        let Window { cwnd, ssthresh } = *window;
        if !(1.0..=MOST_SEGMENTS).contains(&cwnd) {
            return Some(format!(
                "cwnd_segments to {cwnd}, which must be from 1 to {MOST_SEGMENTS}"
            ));
        }
        if ssthresh.is_nan() || ssthresh < 1.0 {
            return Some(format!("ssthresh_segments to {ssthresh}, which must be 1 or more"));
        }
        let bps = pacing_bps?;
        if !self.is_model_based {
            return Some(format!("pacing_bps to {bps}, but it is not model-based"));
        }
        let least = self.least_bps;
        (!(bps >= least && bps.is_finite())).then(|| {
            format!(
                "pacing_bps to {bps}, which must be finite and at least {least:.0}: a segment per \
                 rto.max_ms"
            )
        })
    }
}

/// The algorithm of one connection.
#[derive(Debug)]
struct Control {
    library: &'static Library,
    file: String,
    /// What the library keeps; `None` if it could not start.
    state: Option<NonNull<c_void>>,
    limits: Limits,
    pacing_bps: Option<f64>,
    now: Instant,
    failed: Option<String>,
}

// SAFETY: a library may run in any thread, in one at a time; its interface says so.
unsafe impl Send for Control {}

impl Control {
    #[cold]
    fn fail(&mut self, what: &str) {
        let (file, at) = (&self.file, self.now.as_secs_f64());
        let message = format!("congestion control of {file}: {what} (at {at:.6} s)");
        self.failed.get_or_insert(message);
    }

    /// Calls a function that may change the window.
    fn call(
        &mut self,
        name: &str,
        window: &mut Window,
        function: impl FnOnce(&Library, *mut c_void, *mut abi::Window) -> i32,
    ) {
        let Some(state) = self.state.filter(|_| self.failed.is_none()) else { return };
        let mut shown = abi::Window {
            cwnd_segments: window.cwnd,
            ssthresh_segments: window.ssthresh,
            pacing_bps: self.pacing_bps.unwrap_or(f64::NAN),
        };
        let code = function(self.library, state.as_ptr(), &raw mut shown);
        if code != 0 {
            return self.fail(&format!("{name} failed with code {code}"));
        }
        let set = Window { cwnd: shown.cwnd_segments, ssthresh: shown.ssthresh_segments };
        let pacing_bps = Some(shown.pacing_bps).filter(|bps| !bps.is_nan());
        match self.limits.refuse(&set, pacing_bps) {
            Some(wrong) => self.fail(&format!("{name} set {wrong}")),
            None => (*window, self.pacing_bps) = (set, pacing_bps),
        }
    }

    fn lose(&mut self, congestion: &Congestion, by_timeout: bool, window: &mut Window) {
        self.now = congestion.now;
        let loss = abi::Loss {
            now_ns: congestion.now.as_nanos(),
            flight_segments: congestion.flight,
            by_timeout,
        };
        // SAFETY: the pointers are to structures that outlive the call.
        self.call("on_loss", window, |library, state, window| unsafe {
            (library.on_loss)(state, &raw const loss, window)
        });
    }
}

impl CongestionControl for Control {
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window) -> Option<SlowStartExit> {
        self.now = ack.now;
        let ack = shown(ack);
        let mut exit = abi::SlowStartExit {
            reason: Reason::NONE,
            round_rtt_ns: NO_TIME,
            base_rtt_ns: NO_TIME,
        };
        // SAFETY: as above.
        self.call("on_ack", window, |library, state, window| unsafe {
            (library.on_ack)(state, &raw const ack, window, &raw mut exit)
        });
        if exit.reason == Reason::NONE || self.failed.is_some() {
            return None;
        }
        let Some(reason) = reason(exit.reason) else {
            self.fail(&format!("on_ack ended slow start for the unknown reason {}", exit.reason.0));
            return None;
        };
        let time = |nanos| (nanos != NO_TIME).then(|| Duration::from_nanos(nanos));
        let (round_rtt, base_rtt) = (time(exit.round_rtt_ns), time(exit.base_rtt_ns));
        Some(SlowStartExit { reason, round_rtt, base_rtt })
    }

    fn on_established(&mut self, rtt: Option<Duration>, window: &Window) {
        let (rtt_ns, mut unchanged) = (rtt.map_or(NO_TIME, Duration::as_nanos), *window);
        // SAFETY: as above.
        self.call("on_established", &mut unchanged, |library, state, _| unsafe {
            (library.on_established)(state, rtt_ns)
        });
    }

    fn on_congestion(&mut self, congestion: &Congestion, window: &mut Window) {
        self.lose(congestion, false, window);
    }

    fn on_timeout(&mut self, congestion: &Congestion, window: &mut Window) {
        self.lose(congestion, true, window);
    }

    fn on_undo(&mut self, window: &mut Window) {
        // SAFETY: as above.
        self.call("on_undo", window, |library, state, window| unsafe {
            (library.on_undo)(state, window)
        });
    }

    fn on_recovered(&mut self, now: Instant, window: &mut Window) {
        self.now = now;
        // SAFETY: as above.
        self.call("on_recovered", window, |library, state, window| unsafe {
            (library.on_recovered)(state, now.as_nanos(), window)
        });
    }

    fn on_restart(&mut self, now: Instant, since: Instant, window: &mut Window) {
        self.now = now;
        let (now_ns, last_sent_ns) = (now.as_nanos(), since.as_nanos());
        // SAFETY: as above.
        self.call("on_restart", window, |library, state, window| unsafe {
            (library.on_restart)(state, now_ns, last_sent_ns, window)
        });
    }

    fn is_model_based(&self) -> bool {
        self.library.model_based
    }

    fn pacing_rate(&self) -> Option<f64> {
        self.pacing_bps.map(|bps| bps / 8.0)
    }

    fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            // SAFETY: `start` returned it, and nothing uses it any more.
            unsafe { (self.library.end)(state.as_ptr()) };
        }
    }
}

/// An acknowledgement as a library sees it.
fn shown(ack: &AckSample) -> abi::Ack {
    let per_second = ack.rate.and_then(|rate| rate.per_second());
    abi::Ack {
        now_ns: ack.now.as_nanos(),
        snd_una_bytes: ack.una,
        snd_nxt_bytes: ack.nxt,
        rtt_ns: ack.rtt.map_or(NO_TIME, Duration::as_nanos),
        srtt_ns: ack.srtt.as_nanos(),
        min_rtt_ns: ack.min_rtt.as_nanos(),
        pacing_wait_ns: ack.pacing_wait.as_nanos(),
        delivery_rate_bps: per_second.map_or(f64::NAN, |rate| 8.0 * f64::from(ack.mss) * rate),
        mss_bytes: ack.mss,
        acked_segments: ack.acked,
        delivered_segments: ack.delivered,
        lost_segments: ack.lost,
        in_flight_segments: ack.in_flight,
        state: match ack.state {
            State::Open => 0,
            State::Recovery => 1,
            State::Loss => 2,
        },
        cwnd_limited: ack.cwnd_limited,
        paced: ack.paced,
        ecn_echo: ack.ecn_echo,
        app_limited: ack.rate.is_some_and(|rate| rate.app_limited),
    }
}

fn reason(reason: Reason) -> Option<SlowStartExitReason> {
    Some(match reason {
        Reason::DELAY => SlowStartExitReason::Delay,
        Reason::FALLING_MINIMUM => SlowStartExitReason::FallingMinimum,
        Reason::ACK_TRAIN => SlowStartExitReason::AckTrain,
        Reason::CSS => SlowStartExitReason::ConservativeSlowStart,
        Reason::FULL_PIPE => SlowStartExitReason::FullPipe,
        _ => return None,
    })
}
