//! How new data is sent: in bursts, triggered by acknowledgements or not.

use airpath_base::{Duration, Instant};

use crate::report::SendingReport;

/// A packet less than this after the previous one belongs to its burst.
const BURST: Duration = Duration::from_micros(100);

/// A burst less than this after an acknowledgement was triggered by it.
const PROMPT: Duration = Duration::from_micros(500);

/// A sender paces if the share of bursts under way that no acknowledgement triggered is at least
/// this times the share of the time that lies later than `PROMPT` after an acknowledgement, which
/// is the share expected by chance.
const PACED: f64 = 0.5;

/// If that share of the time is less than this, pacing cannot be detected.
const LEAST_TIME: f64 = 0.1;

#[derive(Clone, Default, Debug)]
pub(super) struct Bursts {
    last: Option<Instant>,
    bursts: u64,
    segments: u64,
    current: u64,
    largest: u64,
    /// Bursts that began while data was outstanding, and those of them that no acknowledgement
    /// triggered.
    under_way: u64,
    unprompted: u64,
    /// Time during which data was outstanding, and the part of it shortly after an acknowledgement.
    time: Duration,
    prompt_time: Duration,
}

impl Bursts {
    /// Adds new data of this many segments; `acked_at` is when the last acknowledgement arrived,
    /// `is_under_way` whether data was outstanding.
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

    /// Notes the time since the previous acknowledgement, with data outstanding.
    #[inline]
    pub(super) fn on_acked(&mut self, since: Duration) {
        self.time += since;
        self.prompt_time += since.min(PROMPT);
    }

    /// Whether a clock of the sender's own decides when it sends.
    pub(super) fn is_paced(&self) -> bool {
        let time = self.time.as_secs_f64();
        let by_chance = (time - self.prompt_time.as_secs_f64()) / time;
        by_chance >= LEAST_TIME
            && self.unprompted as f64 >= PACED * by_chance * self.under_way.max(1) as f64
    }

    /// Reports bursts. Next to the receiver it cannot be seen what triggered them.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a burst `every` this many microseconds while an acknowledgement arrives every 800 µs;
    /// a sender that is `prompted` sends when one arrives.
    fn is_paced(every: u64, prompted: bool) -> bool {
        let mut bursts = Bursts::default();
        for at in (0..400_000).step_by(100) {
            let acked = at / 800 * 800;
            if at == acked && at > 0 {
                bursts.on_acked(Duration::from_micros(800));
            }
            let sends = if prompted { at == acked } else { at % every == 0 };
            if sends {
                let [now, acked] = [at, acked].map(|at| Instant::ZERO + Duration::from_micros(at));
                bursts.add(now, 1, acked, true);
            }
        }
        bursts.is_paced()
    }

    #[test]
    fn among_frequent_acknowledgements_a_clock_is_told_by_chance() {
        assert!(is_paced(700, false));
        assert!(is_paced(1100, false));
        assert!(!is_paced(0, true));
    }
}
