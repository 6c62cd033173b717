//! Histograms of round trips: 59 kB each, for the flows that currently need one.

use std::borrow::Cow;

use airpath_base::{Duration, Folded, Histogram};

/// Number of spare histograms at the start, and again at the end of each sample interval.
const READY: usize = 16;

/// Most histograms: 30 MB.
pub(crate) const MOST: usize = 512;

/// Spare histograms.
#[derive(Debug)]
pub(super) struct RttPool {
    spare: Vec<Histogram>,
    made: usize,
    /// Round trips for which there was none.
    pub(super) missed: u64,
}

/// The round trips of one direction of a flow.
#[derive(Debug, Default)]
pub(super) struct Rtts {
    /// The histogram while round trips are added.
    open: Option<Histogram>,
    /// The content while the flow is idle.
    folded: Option<Folded>,
}

impl Default for RttPool {
    fn default() -> Self {
        let mut spare = Vec::with_capacity(MOST);
        spare.resize_with(READY, Histogram::new);
        Self { spare, made: READY, missed: 0 }
    }
}

impl RttPool {
    /// Whether there are no spare histograms, or soon will not be.
    pub(super) fn is_short(&self) -> bool {
        self.spare.len() < READY
    }

    /// Allocates what the next flows need.
    pub(super) fn refill(&mut self) {
        while self.spare.len() < READY && self.made < MOST {
            self.spare.push(Histogram::new());
            self.made += 1;
        }
    }

    fn take(&mut self) -> Option<Histogram> {
        if self.spare.is_empty() && self.made < MOST {
            self.made += 1;
            return Some(Histogram::new());
        }
        self.spare.pop()
    }
}

impl Rtts {
    pub(super) fn record(&mut self, rtt: Duration, pool: &mut RttPool) {
        if self.open.is_none() {
            self.open = pool.take();
            if let (Some(open), Some(folded)) = (&mut self.open, self.folded.take()) {
                open.unfold(&folded);
            }
        }
        match &mut self.open {
            Some(open) => open.record(rtt),
            None => pool.missed += 1,
        }
    }

    /// Returns the histogram; its content is kept in compact form.
    pub(super) fn fold(&mut self, pool: &mut RttPool) {
        if let Some(mut open) = self.open.take() {
            self.folded = Some(open.fold());
            pool.spare.push(open);
        }
    }

    /// Discards the round trips.
    pub(super) fn clear(&mut self, pool: &mut RttPool) {
        self.fold(pool);
        self.folded = None;
    }

    /// All round trips; `None` if there are none.
    pub(super) fn histogram(&self) -> Option<Cow<'_, Histogram>> {
        match (&self.open, &self.folded) {
            (Some(open), _) => Some(Cow::Borrowed(open)),
            (None, Some(folded)) => {
                let mut histogram = Histogram::new();
                histogram.unfold(folded);
                Some(Cow::Owned(histogram))
            }
            (None, None) => None,
        }
    }
}
