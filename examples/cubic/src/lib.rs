//! CUBIC of Linux 6.18, HyStart included, as a shared library that airpath loads.
//!
//! It is a port of airpath's own CUBIC for the profile `linux-6.18` and gives the same tables, byte
//! for byte: `tests/python/test_congestion_library.py`. Run it with
//!
//! ```text
//! cargo build --release -p airpath-example-cubic
//! airpath run lte-20 --set flow.0.congestion=./target/release/libairpath_example_cubic.so
//! ```
//!
//! Windows are in whole segments and times in whole nanoseconds. Sources: RFC 9438; Ha and Rhee,
//! "Taming the elephants: new TCP slow start", 2011; what Linux changed in them since.
#![allow(unsafe_code, reason = "an exported name has to be free")]

// `airpath new congestion` copies this file.
#[path = "../../../crates/cc/src/abi.rs"]
mod abi;

use abi::{Ack, CongestionControl, Loss, NO_TIME, Reason, SlowStartExit, Start, Window};

crate::congestion_control!(Cubic);

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
/// A run begins this long after a tick of the host's clock.
const PHASE_NS: u64 = 250_000;
/// Tick of the host's clock: 250 Hz.
const TICK_NS: u64 = 4 * MS;

const C: f64 = 0.4;
/// In whole 1024ths.
const BETA: f64 = 717.0 / 1024.0;

/// Smallest cwnd at which HyStart's tests are made.
const LOW_WINDOW: f64 = 16.0;
const TRAIN_SPACING_NS: u64 = 2 * MS;
const SAMPLES: u32 = 8;
/// Four bursts of segmentation offload.
const CUSHION_BYTES: f64 = 4.0 * 65_536.0;

/// CUBIC in whole segments.
struct Cubic {
    hystart: Hystart,
    /// Windows acknowledged per segment of the Reno-friendly estimate.
    reno_windows: f64,
    w_max: Option<u64>,
    /// Acknowledged segments for which cwnd has not grown yet.
    credit: u64,
    epoch: Option<Epoch>,
}

/// A stage of congestion avoidance.
struct Epoch {
    start_ns: u64,
    /// Seconds until the curve reaches `origin`.
    k: f64,
    origin: u64,
    w_est: u64,
    w_est_credit: u64,
    pace: Option<Pace>,
}

/// Acknowledged segments per segment of growth.
#[derive(Clone, Copy)]
struct Pace {
    segments: u64,
    computed_at_ns: u64,
    cwnd: u64,
}

impl CongestionControl for Cubic {
    const NAME: &'static std::ffi::CStr = c"cubic";

    fn start(_start: &Start) -> Self {
        let reno_windows = (8.0 * (1.0 + BETA) / (3.0 * (1.0 - BETA))).floor().max(1.0) / 8.0;
        Self { hystart: Hystart::default(), reno_windows, w_max: None, credit: 0, epoch: None }
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> Option<SlowStartExit> {
        let exit = self.hystart.on_ack(ack, window);
        if exit.is_some() {
            window.ssthresh_segments = window.cwnd_segments;
        }
        if !ack.cwnd_limited {
            return exit;
        }
        let mut left = ack.acked_segments;
        let room = window.ssthresh_segments - window.cwnd_segments;
        if room > 0.0 {
            let step = f64::from(left);
            window.cwnd_segments += step.min(room);
            left = if step > room { (step - room) as u32 } else { 0 };
        }
        if left > 0 {
            self.avoid_congestion(left.into(), ack, window);
        }
        exit
    }

    fn on_loss(&mut self, loss: &Loss, window: &mut Window) {
        let cwnd = window.cwnd_segments.floor();
        (self.epoch, self.credit) = (None, 0);
        // RFC 9438 4.7
        let shrinks = self.w_max.is_some_and(|w_max| (cwnd as u64) < w_max);
        let part = if shrinks { (1.0 + BETA) / 2.0 } else { 1.0 };
        self.w_max = Some((cwnd * part) as u64);
        // RFC 9438 4.6
        window.ssthresh_segments = (cwnd * BETA).floor().max(2.0);
        if loss.by_timeout {
            // RFC 9438 4.8: K is 0, W_max is cwnd when congestion avoidance begins.
            self.w_max = None;
            self.hystart.restart();
        }
    }

    fn on_restart(&mut self, now_ns: u64, last_sent_ns: u64, _window: &mut Window) {
        // RFC 9438 5.8: time in which nothing was in flight is left out.
        if let Some(epoch) = &mut self.epoch {
            epoch.start_ns = now_ns.min(epoch.start_ns + now_ns.saturating_sub(last_sent_ns));
        }
    }
}

impl Cubic {
    fn avoid_congestion(&mut self, acked: u64, ack: &Ack, window: &mut Window) {
        let (cwnd, w_max) = (window.cwnd_segments as u64, self.w_max);
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(ack.now_ns, cwnd, w_max));
        epoch.w_est_credit += acked;
        let pace = epoch.pace(ack, cwnd, w_max, self.reno_windows);
        let mut grown = 0;
        if self.credit >= pace {
            // The credit was earned at a slower pace: it is worth one segment.
            (grown, self.credit) = (1, 0);
        }
        self.credit += acked;
        grown += self.credit / pace;
        self.credit %= pace;
        window.cwnd_segments = (cwnd + grown) as f64;
    }
}

impl Epoch {
    fn new(now_ns: u64, cwnd: u64, w_max: Option<u64>) -> Self {
        let origin = w_max.unwrap_or(0).max(cwnd);
        // RFC 9438 (2)
        let k = cube_root((origin - cwnd) as f64 / C);
        Self { start_ns: now_ns, k, origin, w_est: cwnd, w_est_credit: 0, pace: None }
    }

    fn pace(&mut self, ack: &Ack, cwnd: u64, w_max: Option<u64>, reno_windows: f64) -> u64 {
        if let Some(pace) = self.pace
            && pace.cwnd == cwnd
            && age(pace.computed_at_ns, ack.now_ns) <= SECOND / 32
        {
            return pace.segments;
        }
        // RFC 9438 4.2: the curve is read a smallest RTT ahead, in whole ticks.
        let ahead = age(self.start_ns, ack.now_ns) + ack.min_rtt_ns.div_ceil(TICK_NS) * TICK_NS;
        let mut segments = pace_to(self.w_cubic(ahead), cwnd).unwrap_or(100 * cwnd);
        if w_max.is_none() {
            segments = segments.min(20);
        }
        // RFC 9438 (4)
        let step = ((cwnd as f64 * reno_windows) as u64).max(1);
        let steps = self.w_est_credit.saturating_sub(1) / step;
        self.w_est += steps;
        self.w_est_credit -= steps * step;
        if let Some(reno) = pace_to(self.w_est, cwnd) {
            segments = segments.min(reno);
        }
        let segments = segments.max(2);
        self.pace = Some(Pace { segments, computed_at_ns: ack.now_ns, cwnd });
        segments
    }

    /// RFC 9438 (1)
    fn w_cubic(&self, time_ns: u64) -> u64 {
        let x = time_ns as f64 / 1e9 - self.k;
        let distance = (C * (x * x * x).abs()) as u64;
        if x < 0.0 { self.origin.saturating_sub(distance) } else { self.origin + distance }
    }
}

/// Time on the host's clock.
fn age(start_ns: u64, now_ns: u64) -> u64 {
    let ticks = |at: u64| (at + PHASE_NS) / TICK_NS;
    TICK_NS * ticks(now_ns).saturating_sub(ticks(start_ns))
}

/// The pace that brings cwnd to `target` in a round trip; `None` if it is there already.
fn pace_to(target: u64, cwnd: u64) -> Option<u64> {
    target.checked_sub(cwnd).filter(|&distance| distance > 0).map(|distance| cwnd / distance)
}

/// Cube root by Newton's method, from a start whose exponent is divided by three.
fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let mut root = f64::from_bits(x.to_bits() / 3 + 0x2a9f_7893_0000_0000);
    for _ in 0..5 {
        root -= (root * root * root - x) / (3.0 * root * root);
    }
    root
}

/// HyStart as Linux has it since 6.14.
#[derive(Default)]
struct Hystart {
    min_rtt_ns: Option<u64>,
    round: Round,
    /// Whether it has ended a slow start; after a time-out it may do so again.
    done: bool,
}

/// A round trip of HyStart.
#[derive(Default)]
struct Round {
    start_ns: u64,
    last_ack_ns: u64,
    end_bytes: u64,
    samples: u32,
    rtt_ns: Option<u64>,
    /// Smallest RTT of the connection when the samples were complete.
    min_rtt_ns: u64,
}

impl Hystart {
    fn restart(&mut self) {
        let round = Round { end_bytes: self.round.end_bytes, ..Round::default() };
        *self = Self { round, ..Self::default() };
    }

    /// Judges an acknowledgement before the window grows by it.
    fn on_ack(&mut self, ack: &Ack, window: &Window) -> Option<SlowStartExit> {
        let rtt_ns = (ack.rtt()? / 1000).max(1) * 1000;
        let min_rtt_ns = self.min_rtt_ns.map_or(rtt_ns, |least| least.min(rtt_ns));
        self.min_rtt_ns = Some(min_rtt_ns);
        if self.done || window.cwnd_segments >= window.ssthresh_segments {
            return None;
        }
        if ack.snd_una_bytes > self.round.end_bytes {
            let now_ns = ack.now_ns / 1000 * 1000;
            let end_bytes = ack.snd_nxt_bytes;
            self.round =
                Round { start_ns: now_ns, last_ack_ns: now_ns, end_bytes, ..Round::default() };
        }
        if window.cwnd_segments < LOW_WINDOW {
            return None;
        }
        let exit = self.train(min_rtt_ns, ack, window).or_else(|| self.delay(rtt_ns, min_rtt_ns));
        self.done = exit.is_some();
        exit
    }

    /// A train of acknowledgements as long as the path means that the queue begins to fill.
    fn train(&mut self, min_rtt_ns: u64, ack: &Ack, window: &Window) -> Option<SlowStartExit> {
        let per_rtt = 2.0 * window.cwnd_segments * f64::from(ack.mss_bytes);
        let cushion = CUSHION_BYTES * (ack.srtt_ns as f64 / 1e9) / per_rtt;
        let cushion_ns = ((cushion * 1e9 + 0.5) as u64).min(MS);
        let longest_ns = (min_rtt_ns + cushion_ns) / if ack.paced { 1 } else { 2 };
        let now_ns = ack.now_ns / 1000 * 1000;
        if now_ns.saturating_sub(self.round.last_ack_ns) > TRAIN_SPACING_NS {
            return None;
        }
        self.round.last_ack_ns = now_ns;
        let too_long = now_ns.saturating_sub(self.round.start_ns) > longest_ns / 1000 * 1000;
        too_long.then_some(SlowStartExit {
            reason: Reason::ACK_TRAIN,
            round_rtt_ns: NO_TIME,
            base_rtt_ns: min_rtt_ns,
        })
    }

    /// Even the smallest RTT of the round is well above that of the path.
    fn delay(&mut self, rtt_ns: u64, min_rtt_ns: u64) -> Option<SlowStartExit> {
        let round = &mut self.round;
        let round_rtt_ns = round.rtt_ns.map_or(rtt_ns, |least| least.min(rtt_ns));
        round.rtt_ns = Some(round_rtt_ns);
        if round.samples < SAMPLES {
            round.samples += 1;
            round.min_rtt_ns = min_rtt_ns;
            return None;
        }
        if round_rtt_ns <= highest(min_rtt_ns) {
            return None;
        }
        let fell = round_rtt_ns <= highest(round.min_rtt_ns);
        let reason = if fell { Reason::FALLING_MINIMUM } else { Reason::DELAY };
        Some(SlowStartExit { reason, round_rtt_ns, base_rtt_ns: min_rtt_ns })
    }
}

/// Highest RTT of a round that does not indicate a queue.
fn highest(min_rtt_ns: u64) -> u64 {
    min_rtt_ns + (min_rtt_ns / 8).clamp(4 * MS, 16 * MS)
}
