//! Who gets the PRBs of a slot.
//!
//! The scheduler knows neither transport block tables nor channels: it is told what each UE's
//! queue holds, as the base station believes, and asks how many bytes so many PRBs carry. It runs
//! in slots in which somebody wants something, at a cost that grows with the number of those.

mod ranked;
mod rate_cap;
mod round_robin;

use airpath_base::{Duration, Instant};

use ranked::Ranked;
use rate_cap::Bucket;
pub use rate_cap::RateCap;
use round_robin::RoundRobin;

/// How a scheduler works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchedulerConfig {
    /// Whose turn it is.
    pub policy: Policy,
    /// At most so many UEs in one slot, as the control channel's room has it; `None`: no limit.
    pub ues_per_slot: Option<u32>,
}

/// Whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Equal PRBs for all in every slot; whoever needs less leaves the rest to the others.
    RoundRobin,
    /// Highest rate over average rate first (Jalali, Padovani and Pankaj 2000).
    ProportionalFair {
        /// Time over which the average forgets; above zero, 0.1 to 1 s is usual.
        time_constant: Duration,
    },
    /// Highest rate first (max C/I).
    MaxRate,
}

/// Number of a UE in its cell, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UeId(pub u32);

/// What a UE wants in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Who.
    pub ue: UeId,
    /// Bytes to send as the base station believes, headers included.
    pub backlog: u64,
    /// What a PRB carries now, in bits: compared between UEs only.
    pub bits_per_prb: u32,
    /// A block to send again; the UE then gets nothing new in this slot.
    pub retransmission: Option<Retransmission>,
}

/// A failed block that takes the same PRBs again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retransmission {
    /// Its PRBs; all of the slot if there are fewer.
    pub prbs: u32,
    /// Since when it has waited: the oldest goes first.
    pub since: Instant,
}

/// How large blocks are. The answers for one slot are consistent with each other.
pub trait BlockSizes {
    /// Bytes that `prbs` carry for `ue` now; does not fall as `prbs` grows.
    fn bytes(&self, ue: UeId, prbs: u32) -> u32;

    /// Fewest PRBs that carry `bytes` for `ue` now; any number above the carrier's if none do.
    fn prbs_for(&self, ue: UeId, bytes: u64) -> u32;
}

/// PRBs for one UE in one slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// Who.
    pub ue: UeId,
    /// How many PRBs, 1 or more.
    pub prbs: u32,
    /// What for.
    pub kind: AllocationKind,
}

/// What an allocation is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AllocationKind {
    /// A new block.
    New,
    /// The failed block again.
    Retransmission,
}

/// The scheduler of one cell in one direction.
///
/// ```
/// use airpath_base::Instant;
/// use airpath_path::radio::scheduler::*;
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
    /// Scratch, kept for its memory.
    slot: Slot,
}

/// What is remembered of a UE between slots.
#[derive(Debug, Default)]
struct Ue {
    bucket: Option<Bucket>,
    /// Bytes served, forgotten exponentially; valid at `served_at`.
    served: f64,
    served_at: Instant,
    /// Number of the allocation that it last had; orders equals.
    turn: u64,
    /// Round robin: PRBs that it is owed, as a fraction of 2^32.
    owed: i64,
}

#[derive(Debug)]
enum Order {
    RoundRobin(RoundRobin),
    Ranked(Ranked),
}

/// One slot in the making.
#[derive(Debug, Default)]
struct Slot {
    now: Instant,
    prbs_left: u32,
    ues_left: u32,
    turns: u64,
    allocations: Vec<Allocation>,
    /// Who wants and may send new data.
    ready: Vec<Ready>,
    again: Vec<(Instant, UeId, u32)>,
}

/// A UE that wants new data.
#[derive(Clone, Copy, Debug)]
struct Ready {
    ue: UeId,
    bits_per_prb: u32,
    /// Bytes to send.
    backlog: u64,
    /// Bytes that its rate cap lets pass.
    eligible: u64,
    /// PRBs that it needs for them, and has; round robin only.
    need: u32,
    given: u32,
}

impl Scheduler {
    /// A cell without UEs.
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

    /// One more UE; `cap` bounds its rate of new data (AMBR, TS 23.501 5.7.2.6).
    pub fn add_ue(&mut self, cap: Option<RateCap>) -> UeId {
        let id = UeId(self.ues.len() as u32);
        self.ues.push(Ue { bucket: cap.map(Bucket::new), ..Ue::default() });
        id
    }

    /// Another cap for a UE, its bucket full; `None`: none.
    pub fn set_cap(&mut self, ue: UeId, cap: Option<RateCap>, now: Instant) {
        self.ues[ue.0 as usize].bucket = cap.map(|cap| Bucket::full_at(cap, now));
    }

    /// The UE has a cap.
    pub fn is_capped(&self, ue: UeId) -> bool {
        self.ues[ue.0 as usize].bucket.is_some()
    }

    /// When the UE's cap lets it send next: `now` or later. A cell without other work can sleep
    /// until then.
    pub fn eligible_at(&self, ue: UeId, now: Instant) -> Instant {
        self.ues[ue.0 as usize].bucket.as_ref().map_or(now, |bucket| bucket.eligible_at(now))
    }

    /// Shares out the `prbs` of the slot at `now` (times never decrease) among `candidates`, in
    /// order of UE and each at most once: failed blocks first, the oldest first, each whole or not
    /// at all; then new data by policy until PRBs or backlog are exhausted.
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
        slot.ready.clear();
        slot.again.clear();
        for candidate in candidates {
            slot.admit(candidate, &mut self.ues[candidate.ue.0 as usize]);
        }
        slot.retransmissions(prbs);
        match &mut self.order {
            Order::RoundRobin(order) => order.share(slot, &mut self.ues, sizes),
            Order::Ranked(order) => order.share(slot, &mut self.ues, sizes),
        }
        &self.slot.allocations
    }
}

impl Slot {
    fn admit(&mut self, candidate: &Candidate, ue: &mut Ue) {
        let Candidate { ue: id, backlog, bits_per_prb, retransmission } = *candidate;
        if let Some(Retransmission { prbs, since }) = retransmission {
            self.again.push((since, id, prbs));
            return;
        }
        let now = self.now;
        let eligible =
            ue.bucket.as_mut().map_or(backlog, |bucket| bucket.eligible(now).min(backlog));
        if eligible > 0 {
            let (need, given) = (0, 0);
            self.ready.push(Ready { ue: id, bits_per_prb, backlog, eligible, need, given });
        }
    }

    fn retransmissions(&mut self, all: u32) {
        self.again.sort_unstable();
        for &(_, ue, prbs) in &self.again {
            let prbs = prbs.min(all);
            if prbs > 0 && prbs <= self.prbs_left && self.ues_left > 0 {
                self.prbs_left -= prbs;
                self.ues_left -= 1;
                let kind = AllocationKind::Retransmission;
                self.allocations.push(Allocation { ue, prbs, kind });
            }
        }
    }

    /// Gives `prbs` to a UE for new data; how many bytes that serves.
    fn give(&mut self, ready: &Ready, prbs: u32, ue: &mut Ue, sizes: &impl BlockSizes) -> u64 {
        self.allocations.push(Allocation { ue: ready.ue, prbs, kind: AllocationKind::New });
        // The block may hold more than the cap lets pass: it is filled, and the debt waited out.
        let bytes = u64::from(sizes.bytes(ready.ue, prbs)).min(ready.backlog);
        if let Some(bucket) = &mut ue.bucket {
            bucket.take(bytes);
        }
        self.turns += 1;
        ue.turn = self.turns;
        bytes
    }
}

#[cfg(test)]
mod tests;
