//! How new data leaves: in bursts, set off by acknowledgements or not.

use airpath_base::{Duration, Instant};

use crate::report::SendingReport;

/// What is closer than this to the one before belongs to its burst.
const BURST: Duration = Duration::from_micros(100);

/// A burst that comes so soon after an acknowledgement was set off by it.
const PROMPT: Duration = Duration::from_micros(500);

/// Of bursts under way, at least, that no acknowledgement set off, where a sender paces.
const PACED: f64 = 0.5;

#[derive(Clone, Default, Debug)]
pub(super) struct Bursts {
    last: Option<Instant>,
    bursts: u64,
    segments: u64,
    current: u64,
    largest: u64,
    /// Bursts that began while data was outstanding, and those of them that no acknowledgement set off.
    under_way: u64,
    unprompted: u64,
}

impl Bursts {
    /// New data of so many segments; `acked_at` is when the last acknowledgement came, `is_under_way`
    /// whether some data was outstanding.
    #[inline]
    pub(super) fn add(
        &mut self,
        now: Instant,
        segments: u64,
        acked_at: Instant,
        is_under_way: bool,
    ) {
        if self.last.is_none_or(|last| now.saturating_since(last) >= BURST) {
            self.bursts += 1;
            self.current = 0;
            if is_under_way {
                self.under_way += 1;
                self.unprompted += u64::from(now.saturating_since(acked_at) >= PROMPT);
            }
        }
        self.segments += segments;
        self.current += segments;
        self.largest = self.largest.max(self.current);
        self.last = Some(now);
    }

    /// A clock of the sender's own says when it sends.
    pub(super) fn is_paced(&self) -> bool {
        self.unprompted as f64 >= PACED * self.under_way.max(1) as f64
    }

    /// Next to the receiver it does not show what set a burst off.
    pub(super) fn report(&self, is_at_sender: bool) -> Option<SendingReport> {
        (self.bursts > 0).then(|| SendingReport {
            bursts: self.bursts,
            per_burst: self.segments as f64 / self.bursts as f64,
            largest_burst: self.largest,
            unprompted: (is_at_sender && self.under_way > 0)
                .then(|| self.unprompted as f64 / self.under_way as f64),
        })
    }
}
