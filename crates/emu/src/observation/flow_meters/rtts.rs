//! Histograms of round trips: 59 kB each, for the flows that need one just now.

use std::borrow::Cow;

use airpath_base::{Duration, Folded, Histogram};

/// There from the start, and again at the end of each sample interval.
const READY: usize = 16;

/// At most: 30 MB.
pub(crate) const MOST: usize = 512;

/// Histograms that nobody uses.
#[derive(Debug)]
pub(super) struct RttPool {
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

impl Default for RttPool {
    fn default() -> Self {
        let mut spare = Vec::with_capacity(MOST);
        spare.resize_with(READY, Histogram::new);
        Self { spare, made: READY, missed: 0 }
    }
}

impl RttPool {
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

    /// Gives the histogram back; what it held stays, as small as it is.
    pub(super) fn fold(&mut self, pool: &mut RttPool) {
        if let Some(mut open) = self.open.take() {
            self.folded = Some(open.fold());
            pool.spare.push(open);
        }
    }

    /// Forgets them.
    pub(super) fn clear(&mut self, pool: &mut RttPool) {
        self.fold(pool);
        self.folded = None;
    }

    /// All of them; `None` without one.
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
