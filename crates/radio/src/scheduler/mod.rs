//! Allocates the PRBs of a slot to UEs.
//!
//! The scheduler knows neither transport block tables nor channels: it is passed the queue of each
//! UE as estimated by the base station, and asks how many bytes a number of PRBs carries. It runs
//! in slots in which some UE needs something, at a cost that grows with the number of those UEs.

pub mod grants;
mod ranked;
mod rate_cap;
mod round_robin;
mod slot;

use airpath_base::{Duration, Instant};

use ranked::Ranked;
pub use rate_cap::RateCap;
use round_robin::RoundRobin;
pub use slot::{Allocation, AllocationKind, BlockSizes, Candidate, Retransmission, UeId};
use slot::{Slot, Ue};

/// Configuration of a scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchedulerConfig {
    /// How UEs are chosen.
    pub policy: Policy,
    /// Most UEs per slot, given the room in the control channel; `None`: no limit.
    pub ues_per_slot: Option<u32>,
}

/// How UEs are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Equal PRBs for all in every slot; what a UE does not need goes to the others.
    RoundRobin,
    /// Highest ratio of rate to average rate first (Jalali, Padovani and Pankaj 2000).
    ProportionalFair {
        /// Time constant of the average; above zero, 0.1 to 1 s is usual.
        time_constant: Duration,
    },
    /// Highest rate first (max C/I).
    MaxRate,
}

/// The scheduler of one cell in one direction.
///
/// ```
/// use airpath_base::Instant;
/// use airpath_radio::scheduler::*;
///
/// struct Flat;
/// impl BlockSizes for Flat {
///     fn bytes(&self, _: UeId, prbs: u32) -> u32 {
///         prbs * 50
///     }
///     fn prbs_for(&self, _: UeId, bytes: u64) -> u32 {
///         bytes.div_ceil(50) as u32
///     }
/// }
///
/// let config = SchedulerConfig { policy: Policy::RoundRobin, ues_per_slot: None };
/// let mut scheduler = Scheduler::new(config);
/// let (one, two) = (scheduler.add_ue(None), scheduler.add_ue(None));
/// let wants = |ue, backlog| Candidate { ue, backlog, bits_per_prb: 400, retransmission: None };
/// let slot = scheduler.allocate(Instant::ZERO, 100, &[wants(one, 120), wants(two, 9_000)], &Flat);
/// assert_eq!(slot.iter().map(|allocation| allocation.prbs).collect::<Vec<_>>(), [3, 97]);
/// ```
#[derive(Debug)]
pub struct Scheduler {
    config: SchedulerConfig,
    ues: Vec<Ue>,
    order: Order,
    /// Scratch memory, kept for reuse.
    slot: Slot,
}

#[derive(Debug)]
enum Order {
    RoundRobin(RoundRobin),
    Ranked(Ranked),
}

impl Scheduler {
    /// A scheduler without UEs.
    pub fn new(config: SchedulerConfig) -> Self {
        let order = match config.policy {
            Policy::RoundRobin => Order::RoundRobin(RoundRobin::default()),
            Policy::ProportionalFair { time_constant } => {
                Order::Ranked(Ranked::proportional_fair(time_constant))
            }
            Policy::MaxRate => Order::Ranked(Ranked::max_rate()),
        };
        Self { config, ues: Vec::new(), order, slot: Slot::default() }
    }

    /// Adds a UE; `cap` limits its rate of new data (AMBR, TS 23.501 5.7.2.6).
    pub fn add_ue(&mut self, cap: Option<RateCap>) -> UeId {
        let id = UeId(self.ues.len() as u32);
        self.ues.push(Ue {
            bucket: cap.map(|cap| Box::new(cap.bucket(Instant::ZERO))),
            ..Ue::default()
        });
        id
    }

    /// Whether the UE has a cap.
    pub fn is_capped(&self, ue: UeId) -> bool {
        self.ues[ue.0 as usize].bucket.is_some()
    }

    /// Bytes that the UE's cap allows it to send now.
    pub fn allowed(&mut self, ue: UeId, now: Instant) -> u64 {
        self.ues[ue.0 as usize].eligible(u64::MAX, now)
    }

    /// The UE sends `bytes` that this scheduler did not allocate; they count for its cap.
    pub fn spend(&mut self, ue: UeId, bytes: u64) {
        if let Some(bucket) = &mut self.ues[ue.0 as usize].bucket {
            bucket.spend(bytes);
        }
    }

    /// When the UE's cap next allows it to send: `now` or later. A cell without other work can
    /// sleep until then.
    pub fn eligible_at(&self, ue: UeId, now: Instant) -> Instant {
        self.ues[ue.0 as usize].bucket.as_ref().map_or(now, |bucket| bucket.next_byte(now))
    }

    /// Allocates the `prbs` of the slot at `now` (times never decrease) to `candidates`, which are
    /// in order of UE, each at most once: failed blocks first, oldest first, each whole or not at
    /// all; then new data by policy until PRBs or backlog are exhausted.
    pub fn allocate(
        &mut self,
        now: Instant,
        prbs: u32,
        candidates: &[Candidate],
        sizes: &impl BlockSizes,
    ) -> &[Allocation] {
        debug_assert!(candidates.is_sorted_by(|a, b| a.ue < b.ue), "candidates in order of UE");
        let slot = &mut self.slot;
        slot.now = now;
        slot.prbs_left = prbs;
        slot.ues_left = self.config.ues_per_slot.unwrap_or(u32::MAX);
        slot.allocations.clear();
        slot.again.clear();
        match &mut self.order {
            Order::RoundRobin(order) => {
                order.admit(slot, &mut self.ues, candidates);
                slot.retransmissions(prbs);
                order.allocate(slot, &mut self.ues, sizes);
            }
            Order::Ranked(order) => {
                order.rank(slot, &mut self.ues, candidates);
                slot.retransmissions(prbs);
                order.allocate(slot, &mut self.ues, candidates, sizes);
            }
        }
        &self.slot.allocations
    }
}

#[cfg(test)]
mod tests;
