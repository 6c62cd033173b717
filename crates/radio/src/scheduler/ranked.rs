//! Best first: proportional fair and max C/I.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use airpath_base::{Duration, Instant};

use super::slot::{BlockSizes, Slot, Ue};

/// Serves UEs one after another, each with all it needs, the best first: a UE's PRBs are equally
/// good, so that who is best for one of a slot is best for all.
#[derive(Debug)]
pub(super) struct Ranked {
    average: Option<Average>,
    heap: BinaryHeap<Rank>,
}

/// How an average forgets.
#[derive(Debug)]
struct Average {
    time_constant_s: f64,
    /// The last factor worked out; most UEs are asked about once per slot.
    elapsed: Duration,
    factor: f64,
}

#[derive(Debug)]
struct Rank {
    metric: f64,
    /// Smaller: waited longer.
    turn: u64,
    /// In the slot's list; in order of UE, so that no two ranks are equal.
    index: usize,
}

impl Ranked {
    pub(super) fn max_rate() -> Self {
        Self { average: None, heap: BinaryHeap::new() }
    }

    pub(super) fn proportional_fair(time_constant: Duration) -> Self {
        let time_constant_s = time_constant.as_secs_f64();
        let average = Average { time_constant_s, elapsed: Duration::ZERO, factor: 1.0 };
        Self { average: Some(average), heap: BinaryHeap::new() }
    }

    pub(super) fn allocate(&mut self, slot: &mut Slot, ues: &mut [Ue], sizes: &impl BlockSizes) {
        let ready = core::mem::take(&mut slot.ready);
        self.heap.clear();
        let average = &mut self.average;
        // Linear: the heap is built at once.
        self.heap.extend(ready.iter().enumerate().map(|(index, ready)| {
            let ue = &mut ues[ready.ue.0 as usize];
            let rate = f64::from(ready.bits_per_prb);
            let metric = average.as_mut().map_or(rate, |average| rate / average.of(ue, slot.now));
            Rank { metric, turn: ue.turn, index }
        }));
        while slot.prbs_left > 0 && slot.ues_left > 0 {
            let Some(Rank { index, .. }) = self.heap.pop() else { break };
            let ready = &ready[index];
            let need = sizes.prbs_for(ready.ue, ready.eligible).max(1);
            let prbs = need.min(slot.prbs_left);
            slot.prbs_left -= prbs;
            slot.ues_left -= 1;
            let ue = &mut ues[ready.ue.0 as usize];
            ue.served += slot.give(ready, prbs, ue, sizes) as f64;
        }
        slot.ready = ready;
    }
}

impl Average {
    /// Bytes served to a UE, those `time_constant` ago weighed by 1/e; 1 or more, so that all who
    /// had nothing for long are compared by rate.
    fn of(&mut self, ue: &mut Ue, now: Instant) -> f64 {
        let elapsed = now.saturating_since(ue.served_at);
        if elapsed != self.elapsed {
            self.elapsed = elapsed;
            self.factor = libm::exp(-elapsed.as_secs_f64() / self.time_constant_s);
        }
        ue.served *= self.factor;
        ue.served_at = now;
        ue.served.max(1.0)
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
