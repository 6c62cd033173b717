//! Detects token-bucket policers, which pass a burst and then drop what exceeds their rate. BBR v1
//! as in Linux looks for high loss at the same rate in two intervals, and then keeps to that rate
//! for a while ("long-term bandwidth").

use airpath_base::{Duration, Instant};

use crate::congestion::RateSample;

/// Fewest rounds of an interval (`lt_intvl_min_rtts`).
const MIN_ROUNDS: u32 = 4;
/// Most rounds of an interval.
const MAX_ROUNDS: u32 = 4 * MIN_ROUNDS;
/// Ratio of lost to delivered that indicates a policer (`lt_loss_thresh`).
const LOSS_RATIO: f64 = 50.0 / 256.0;
/// Two rates are the same if they differ by less than this fraction (`lt_bw_ratio`) …
const SAME_RATIO: f64 = 1.0 / 8.0;
/// … or by less than this, in bytes per second (`lt_bw_diff`, 4 kb/s).
const SAME_BYTES: f64 = 500.0;
/// Rounds for which the rate is kept (`lt_bw_max_rtts`).
const KEPT_ROUNDS: u32 = 48;

/// Long-term bandwidth sampling.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    interval: Option<Interval>,
    /// Rate of the previous interval, or of the policer; segments per second.
    rate: Option<f64>,
    /// Whether [`Self::rate`] is the policer's.
    found: bool,
    /// Rounds of this interval, or since the policer was found.
    rounds: u32,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    since: Instant,
    delivered: u64,
    lost: u64,
}

/// What one acknowledgement contributes to the detection.
pub(super) struct Sample<'a> {
    pub(super) now: Instant,
    pub(super) rate: &'a RateSample,
    pub(super) app_limited: bool,
    pub(super) mss: u32,
    /// Whether a loss was detected.
    pub(super) loss: bool,
    pub(super) round_start: bool,
    /// Whether the state is `ProbeBW`.
    pub(super) in_probe_bw: bool,
}

impl Policer {
    /// The rate of the policer, if one was found.
    pub(super) fn rate(&self) -> Option<f64> {
        self.rate.filter(|_| self.found)
    }

    /// Starts over.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Takes a sample. Returns true if the rate has been kept long enough and bandwidth is to be
    /// probed again.
    pub(super) fn update(&mut self, sample: &Sample<'_>) -> bool {
        let round = u32::from(sample.round_start);
        if self.found {
            self.rounds += if sample.in_probe_bw { round } else { 0 };
            let over = self.rounds >= KEPT_ROUNDS;
            if over {
                self.reset();
            }
            return over;
        }
        // An interval begins and ends with a loss, that is when the bucket has just run empty.
        if self.interval.is_none() && sample.loss {
            self.reset();
            self.begin(sample);
        }
        let Some(interval) = self.interval else { return false };
        self.rounds += round;
        if sample.app_limited || self.rounds > MAX_ROUNDS {
            self.reset();
        } else if self.rounds >= MIN_ROUNDS && sample.loss {
            self.end(&interval, sample);
        }
        false
    }

    fn begin(&mut self, sample: &Sample<'_>) {
        self.interval = Some(Interval {
            since: sample.now,
            delivered: sample.rate.total_delivered,
            lost: sample.rate.total_lost,
        });
        self.rounds = 0;
    }

    fn end(&mut self, interval: &Interval, sample: &Sample<'_>) {
        let delivered = (sample.rate.total_delivered - interval.delivered) as f64;
        let lost = (sample.rate.total_lost - interval.lost) as f64;
        let time = sample.now.saturating_since(interval.since);
        if delivered <= 0.0 || lost < LOSS_RATIO * delivered || time < Duration::from_millis(1) {
            return;
        }
        let rate = delivered / time.as_secs_f64();
        if let Some(last) = self.rate {
            let difference = (rate - last).abs();
            let bytes = difference * f64::from(sample.mss);
            if difference <= SAME_RATIO * last || bytes <= SAME_BYTES {
                self.rate = Some((rate + last) / 2.0);
                (self.found, self.rounds) = (true, 0);
                return;
            }
        }
        self.rate = Some(rate);
        self.begin(sample);
    }
}
