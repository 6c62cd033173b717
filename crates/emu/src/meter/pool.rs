//! Histograms of round trips: 59 kB each, for the flows that need one just now.

use airpath_base::{Duration, Folded, Histogram};
use airpath_record::Quantiles;

/// There from the start, and again at the end of each sample interval.
const READY: usize = 16;

/// At most: 30 MB.
pub(crate) const MOST: usize = 512;

/// Histograms that nobody uses.
#[derive(Debug)]
pub(super) struct Pool {
    spare: Vec<Histogram>,
    made: usize,
    /// Round trips that found none.
    pub(super) missed: u64,
}

/// The round trips of one direction of a flow.
#[derive(Debug, Default)]
pub(super) struct Rtts {
    /// While they are added.
    open: Option<Histogram>,
    /// While the flow is idle.
    folded: Option<Folded>,
}

impl Default for Pool {
    fn default() -> Self {
        let mut spare = Vec::with_capacity(MOST);
        spare.resize_with(READY, Histogram::new);
        Self { spare, made: READY, missed: 0 }
    }
}

impl Pool {
    /// Nothing is spare, or soon nothing will be.
    pub(super) fn is_short(&self) -> bool {
        self.spare.len() < READY
    }

    /// Makes what the next flows need.
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
    pub(super) fn record(&mut self, rtt: Duration, pool: &mut Pool) {
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

    /// Gives the histogram back; what it held stays, as small as it is.
    pub(super) fn fold(&mut self, pool: &mut Pool) {
        if let Some(mut open) = self.open.take() {
            self.folded = Some(open.fold());
            pool.spare.push(open);
        }
    }

    /// Forgets them.
    pub(super) fn clear(&mut self, pool: &mut Pool) {
        self.fold(pool);
        self.folded = None;
    }

    pub(super) fn quantiles(&self) -> Option<Quantiles> {
        let unfolded = || {
            let mut histogram = Histogram::new();
            histogram.unfold(self.folded.as_ref()?);
            Quantiles::of(&histogram)
        };
        self.open.as_ref().map_or_else(unfolded, Quantiles::of)
    }
}
