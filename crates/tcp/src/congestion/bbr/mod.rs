//! BBR: a model of the path, its bandwidth and its smallest RTT, instead of a reaction to loss.
//!
//! Two versions: [`Bbr1`], what Linux calls `bbr`, and [`Bbr3`]. What they share is in this module
//! and its siblings. Volumes are in segments, rates in segments per second; only the pacing rate
//! that the sender asks for is in bytes.

mod aggregation;
mod filter;
mod policer;
#[cfg(test)]
mod tests;
mod v1;
mod v3;

use airpath_base::{Duration, Instant};

pub use v1::Bbr1;
pub use v3::Bbr3;

use super::RateSample;

/// Fraction of the estimated bandwidth that pacing leaves unused, so that queues drain
/// (draft-ietf-ccwg-bbr-06 2.5 `PacingMarginPercent`; Linux since 4.20).
const PACING_MARGIN: f64 = 0.01;

/// Smallest window, in segments: large enough that a receiver which acknowledges every second
/// segment keeps sending acknowledgements (draft-ietf-ccwg-bbr-06 2.8 `MinPipeCwnd`,
/// draft-cardwell-iccrg-bbr-congestion-control-00 4.2.3.2 `BBRMinPipeCwnd`).
const MIN_PIPE_CWND: f64 = 4.0;

/// Time at the small window of `ProbeRTT`, in addition to at least one round trip (draft-06 2.16.2,
/// draft-00 4.3.5).
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);

/// The pipe is full when the bandwidth has not grown by this factor in [`FULL_PIPE_ROUNDS`] rounds
/// (draft-06 5.3.1.2, draft-00 4.3.2.2).
const FULL_PIPE_GROWTH: f64 = 1.25;
/// See [`FULL_PIPE_GROWTH`].
const FULL_PIPE_ROUNDS: u32 = 3;

/// RTT assumed before the first sample, for the initial pacing rate (draft-06 5.6.2, draft-00
/// 4.2.1).
const UNKNOWN_RTT: Duration = Duration::from_millis(1);

/// Linux: the send buffer has room for three times cwnd, so that sending continues while recovery
/// repairs.
const SEND_BUFFER_FACTOR: u32 = 3;

/// Packet-timed round trips: one ends when a segment sent after its start is acknowledged
/// (draft-06 5.5.1, draft-00 4.1.1.3).
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    count: u64,
    /// `next_round_delivered`
    end: u64,
    /// Whether this acknowledgement starts a round.
    start: bool,
}

impl Round {
    fn update(&mut self, rate: &RateSample) {
        self.start = rate.prior_delivered >= self.end;
        if self.start {
            self.restart(rate.total_delivered);
            self.count += 1;
        }
    }

    /// Starts a round; `delivered` segments have been delivered so far.
    fn restart(&mut self, delivered: u64) {
        self.end = delivered;
    }
}

/// `MarkConnectionAppLimited()` of `ProbeRTT`: what is sent in this state says little about the
/// bandwidth (draft-06 5.3.4.3, draft-00 4.3.5). The mark is kept here because only the algorithm
/// knows of it.
#[derive(Clone, Copy, Debug, Default)]
struct LowRate {
    /// Segments delivered when the mark was set, and the count at which its effect has passed.
    delivered: Option<(u64, u64)>,
}

impl LowRate {
    fn mark(&mut self, delivered: u64, in_flight: u32) {
        let since = match self.delivered {
            Some((since, until)) if delivered <= until => since,
            _ => delivered,
        };
        self.delivered = Some((since, delivered + u64::from(in_flight).max(1)));
    }

    /// Whether the segment was sent while the mark was set.
    fn covers(&self, rate: &RateSample) -> bool {
        self.delivered.is_some_and(|(since, until)| (since..=until).contains(&rate.prior_delivered))
    }
}

/// An RTT and when it was measured.
#[derive(Clone, Copy, Debug)]
struct MinRtt {
    rtt: Duration,
    at: Instant,
}

impl MinRtt {
    fn is_older(&self, now: Instant, age: Duration) -> bool {
        now > self.at + age
    }
}

/// Progress of `ProbeRTT`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct ProbeRtt {
    /// `probe_rtt_done_stamp`: when the state ends, set once little enough is in flight.
    until: Option<Instant>,
    round_done: bool,
}

impl ProbeRtt {
    /// Takes one acknowledgement; `reached`: what is in flight is down to what the state allows.
    fn advance(&mut self, now: Instant, reached: bool, round: &mut Round, delivered: u64) {
        if self.until.is_some() {
            self.round_done |= round.start;
        } else if reached {
            self.until = Some(now + PROBE_RTT_DURATION);
            round.restart(delivered);
        }
    }

    /// The time is over, regardless of the round.
    fn is_over(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now > until)
    }
}

/// [`f64::floor`] without a call into the platform's library; each acknowledgement would make
/// several.
#[inline]
fn floor(x: f64) -> f64 {
    let whole = x as i64 as f64;
    match x.abs() < ALL_WHOLE {
        true if whole > x => whole - 1.0,
        true => whole,
        false => x,
    }
}

/// [`f64::ceil`] without a call into the platform's library.
#[inline]
fn ceil(x: f64) -> f64 {
    -floor(-x)
}

/// From here on all numbers are whole; NaN does not compare below it.
const ALL_WHOLE: f64 = 4_503_599_627_370_496.0;
