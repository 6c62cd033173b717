//! Best UE first: proportional fair and max C/I.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use airpath_base::{Duration, Instant, fast_paths};

use super::slot::{BlockSizes, Candidate, Slot, Ue};

/// Serves UEs one after another, the best first, each with everything it needs: the PRBs of a UE
/// are equally good, so the UE that is best for one PRB of a slot is best for all.
#[derive(Debug)]
pub(super) struct Ranked {
    average: Option<Average>,
    /// For each candidate of the slot its rate, divided by the average if there is one; [`TAKEN`]:
    /// it needs or may send nothing new, or has been served.
    metrics: Vec<f64>,
    heap: BinaryHeap<Rank>,
}

/// The best ones are searched for one by one as long as they are few, as in most slots; building a
/// heap costs more than a search, and pays off for many.
const SEARCHES: u32 = 4;

/// Less than any metric.
const TAKEN: f64 = -1.0;

/// Decay of an average.
#[derive(Debug)]
struct Average {
    time_constant_s: f64,
    /// UEs whose averages date from this time use the factor below; [`Instant::MAX`]: none yet.
    since: Instant,
    /// Time and factor computed last; most UEs are queried once per slot.
    elapsed: Duration,
    factor: f64,
}

#[derive(Debug)]
struct Rank {
    metric: f64,
    /// Number of the last allocation; smaller means that it has waited longer.
    turn: u64,
    /// Index of the candidate, in order of UE, so that no two ranks are equal.
    index: usize,
}

impl Ranked {
    pub(super) fn max_rate() -> Self {
        Self { average: None, metrics: Vec::new(), heap: BinaryHeap::new() }
    }

    pub(super) fn proportional_fair(time_constant: Duration) -> Self {
        let time_constant_s = time_constant.as_secs_f64();
        let average =
            Average { time_constant_s, since: Instant::MAX, elapsed: Duration::ZERO, factor: 1.0 };
        Self { average: Some(average), metrics: Vec::new(), heap: BinaryHeap::new() }
    }

    /// Determines what each candidate needs, and how good it is.
    pub(super) fn rank(&mut self, slot: &mut Slot, ues: &mut [Ue], candidates: &[Candidate]) {
        let average = &mut self.average;
        if let Some(average) = average {
            average.since = Instant::MAX;
        }
        self.metrics.clear();
        self.metrics.extend(candidates.iter().map(|candidate| {
            let ue = &mut ues[candidate.ue.0 as usize];
            if slot.admit(candidate, ue) == 0 {
                return TAKEN;
            }
            let rate = f64::from(candidate.bits_per_prb);
            average.as_mut().map_or(rate, |average| rate / average.of(ue, slot.now))
        }));
    }

    /// Allocates what is left of the slot to the candidates that were [ranked](Self::rank).
    pub(super) fn allocate(
        &mut self,
        slot: &mut Slot,
        ues: &mut [Ue],
        candidates: &[Candidate],
        sizes: &impl BlockSizes,
    ) {
        let mut searches = 0;
        while slot.prbs_left > 0 && slot.ues_left > 0 {
            let best = if searches < SEARCHES || !fast_paths() {
                self.search(candidates, ues)
            } else {
                if searches == SEARCHES {
                    self.build_heap(candidates, ues);
                }
                self.heap.pop().map(|rank| rank.index)
            };
            searches += 1;
            let Some(index) = best else { break };
            self.metrics[index] = TAKEN;
            let Candidate { ue: id, backlog, .. } = candidates[index];
            let ue = &mut ues[id.0 as usize];
            let need = sizes.prbs_for(id, ue.eligible(backlog, slot.now)).max(1);
            let prbs = need.min(slot.prbs_left);
            slot.prbs_left -= prbs;
            slot.ues_left -= 1;
            ue.served += slot.give((id, backlog), prbs, ue, sizes) as f64;
        }
    }

    /// The best of the remaining candidates, in the order that the heap would give.
    fn search(&self, candidates: &[Candidate], ues: &[Ue]) -> Option<usize> {
        let turn = |index: usize| ues[candidates[index].ue.0 as usize].turn;
        let (mut best, mut most) = (None, 0.0);
        for (index, &metric) in self.metrics.iter().enumerate() {
            if metric < most {
                continue;
            }
            // Among equals, the one that has waited longer, then the first.
            let loses = |other: usize| metric == most && turn(index) >= turn(other);
            if !best.is_some_and(loses) {
                (best, most) = (Some(index), metric);
            }
        }
        best
    }

    fn build_heap(&mut self, candidates: &[Candidate], ues: &[Ue]) {
        self.heap.clear();
        // Linear: the heap is built in one step.
        let left = self.metrics.iter().enumerate().filter(|&(_, &metric)| metric != TAKEN);
        self.heap.extend(left.map(|(index, &metric)| {
            let turn = ues[candidates[index].ue.0 as usize].turn;
            Rank { metric, turn, index }
        }));
    }
}

impl Average {
    /// Bytes served to a UE, where those `time_constant` ago count 1/e; at least 1, so that UEs
    /// which had nothing for long are compared by rate.
    #[inline]
    fn of(&mut self, ue: &mut Ue, now: Instant) -> f64 {
        if ue.served_at != self.since || !fast_paths() {
            self.since = ue.served_at;
            self.find_factor(now.saturating_since(ue.served_at));
        }
        ue.served *= self.factor;
        ue.served_at = now;
        // Not `max`, which also checks for NaN.
        if ue.served > 1.0 { ue.served } else { 1.0 }
    }

    #[inline(never)]
    fn find_factor(&mut self, elapsed: Duration) {
        if elapsed != self.elapsed || !fast_paths() {
            self.elapsed = elapsed;
            self.factor = libm::exp(-elapsed.as_secs_f64() / self.time_constant_s);
        }
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        self.metric
            .total_cmp(&other.metric)
            .then(other.turn.cmp(&self.turn))
            .then(other.index.cmp(&self.index))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rank {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Rank {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::slot::UeId;
    use super::*;

    proptest! {
        #[test]
        fn a_search_finds_what_the_heap_would(ues in proptest::collection::vec((0u8..4, 0u64..3), 0..40)) {
            let candidates: Vec<Candidate> = (0..ues.len() as u32)
                .map(|ue| Candidate {
                    ue: UeId(ue),
                    backlog: 1,
                    bits_per_prb: 1,
                    retransmission: None,
                })
                .collect();
            let turns: Vec<Ue> =
                ues.iter().map(|&(_, turn)| Ue { turn, ..Ue::default() }).collect();
            let mut ranked = Ranked::max_rate();
            ranked.metrics = ues.iter().map(|&(metric, _)| f64::from(metric)).collect();
            ranked.build_heap(&candidates, &turns);
            while let Some(expected) = ranked.heap.pop() {
                let found = ranked.search(&candidates, &turns);
                prop_assert_eq!(found, Some(expected.index));
                ranked.metrics[expected.index] = TAKEN;
            }
            prop_assert_eq!(ranked.search(&candidates, &turns), None);
        }
    }
}
