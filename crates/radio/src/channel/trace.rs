//! Replays recorded quality.

use std::sync::Arc;

use airpath_base::{Duration, Instant};

use super::Quality;

/// Samples of quality in order of time; at least one, and the first is at zero.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelTrace {
    samples: Vec<Sample>,
    period: Duration,
}

/// A quality that holds from `from` until the next sample.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    from: Duration,
    quality: Quality,
}

/// What happens after the end of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtEnd {
    /// The last sample holds.
    Hold,
    /// The trace restarts. The last sample lasts as long as the one before it; a lone one lasts for
    /// ever.
    Loop,
}

impl ChannelTrace {
    /// A trace of (time, quality). Times count from the first; of several samples at the same time
    /// the last counts. `None` if there is no sample or a time is before the previous one.
    pub fn new(samples: impl IntoIterator<Item = (Duration, Quality)>) -> Option<Self> {
        let mut kept: Vec<Sample> = Vec::new();
        let mut start = None;
        for (at, quality) in samples {
            let origin = *start.get_or_insert(at);
            if at < origin {
                return None;
            }
            let sample = Sample { from: at - origin, quality };
            match kept.last_mut() {
                Some(last) if sample.from < last.from => return None,
                Some(last) if sample.from == last.from => *last = sample,
                _ => kept.push(sample),
            }
        }
        let last = kept.last()?.from;
        let before = kept.len().checked_sub(2).map_or(last, |index| kept[index].from);
        Some(Self { samples: kept, period: last + (last - before) })
    }

    /// Number of samples.
    pub fn samples(&self) -> usize {
        self.samples.len()
    }

    /// Time after which the trace restarts; zero for a lone sample.
    pub fn period(&self) -> Duration {
        self.period
    }
}

/// A position in a trace: amortised constant time per query.
#[derive(Clone, Debug)]
pub struct TraceCursor {
    trace: Arc<ChannelTrace>,
    at_end: AtEnd,
    /// Start of the round to which `index` refers.
    round: Duration,
    index: usize,
}

impl TraceCursor {
    /// A cursor at the start of `trace`.
    pub fn new(trace: Arc<ChannelTrace>, at_end: AtEnd) -> Self {
        Self { trace, at_end, round: Duration::ZERO, index: 0 }
    }

    /// The quality at `now`, which must not decrease.
    pub fn quality(&mut self, now: Instant) -> Quality {
        let now = Duration::from_nanos(now.as_nanos());
        let period = self.trace.period;
        if self.at_end == AtEnd::Loop && period > Duration::ZERO {
            let rounds = now.saturating_sub(self.round).as_nanos() / period.as_nanos();
            if rounds > 0 {
                self.round += period * rounds;
                self.index = 0;
            }
        }
        let at = now.saturating_sub(self.round);
        let rest = &self.trace.samples[self.index + 1..];
        self.index += rest.iter().take_while(|sample| sample.from <= at).count();
        self.trace.samples[self.index].quality
    }
}
