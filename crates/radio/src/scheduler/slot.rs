//! The allocation of one slot: what UEs need, and what they get.

use airpath_base::Instant;
use airpath_queue::TokenBucket;

/// Number of a UE in its cell, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UeId(pub u32);

/// What a UE needs in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The UE concerned.
    pub ue: UeId,
    /// Bytes to send according to the base station's estimate, headers included.
    pub backlog: u64,
    /// Bits that a PRB carries now, only used to compare UEs.
    pub bits_per_prb: u32,
    /// A block to retransmit; the UE then gets nothing new in this slot.
    pub retransmission: Option<Retransmission>,
}

/// A failed block, whose retransmission takes the same PRBs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retransmission {
    /// PRBs of the block; if the slot has fewer, all of them.
    pub prbs: u32,
    /// Since when it has waited: the oldest goes first.
    pub since: Instant,
}

/// Sizes of blocks. The results for one slot are consistent with each other.
pub trait BlockSizes {
    /// Bytes that `prbs` carry for `ue` now; it does not decrease as `prbs` grows.
    fn bytes(&self, ue: UeId, prbs: u32) -> u32;

    /// Fewest PRBs that carry `bytes` for `ue` now; any number above the carrier's if none suffice.
    fn prbs_for(&self, ue: UeId, bytes: u64) -> u32;
}

/// PRBs for one UE in one slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// The UE concerned.
    pub ue: UeId,
    /// Number of PRBs, 1 or more.
    pub prbs: u32,
    /// What the PRBs are for.
    pub kind: AllocationKind,
}

/// What an allocation is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AllocationKind {
    /// A new block.
    New,
    /// The failed block, retransmitted.
    Retransmission,
}

/// What is stored about a UE between slots.
#[derive(Debug, Default)]
pub(super) struct Ue {
    /// The bucket of its rate cap; boxed, because few UEs have one and each slot visits all of
    /// them.
    pub(super) bucket: Option<Box<TokenBucket>>,
    /// Bytes served, with exponential decay; valid at `served_at`.
    pub(super) served: f64,
    pub(super) served_at: Instant,
    /// Number of its last allocation; orders equals.
    pub(super) turn: u64,
    /// Round robin: PRBs that it is owed, in units of 2^-32.
    pub(super) owed: i64,
}

/// A slot being allocated.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) now: Instant,
    pub(super) prbs_left: u32,
    pub(super) ues_left: u32,
    pub(super) turns: u64,
    pub(super) allocations: Vec<Allocation>,
    pub(super) again: Vec<(Instant, UeId, u32)>,
}

impl Ue {
    /// Bytes of `backlog` that its rate cap allows.
    #[inline]
    pub(super) fn eligible(&mut self, backlog: u64, now: Instant) -> u64 {
        self.bucket.as_mut().map_or(backlog, |bucket| bucket.available(now).min(backlog))
    }
}

impl Slot {
    /// Notes a block to retransmit, or returns how many new bytes a UE may send now.
    #[inline]
    pub(super) fn admit(&mut self, candidate: &Candidate, ue: &mut Ue) -> u64 {
        if let Some(Retransmission { prbs, since }) = candidate.retransmission {
            self.again.push((since, candidate.ue, prbs));
            return 0;
        }
        ue.eligible(candidate.backlog, self.now)
    }

    pub(super) fn retransmissions(&mut self, all: u32) {
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

    /// Gives `prbs` to a UE for new data; returns how many bytes that serves.
    pub(super) fn give(
        &mut self,
        (id, backlog): (UeId, u64),
        prbs: u32,
        ue: &mut Ue,
        sizes: &impl BlockSizes,
    ) -> u64 {
        self.allocations.push(Allocation { ue: id, prbs, kind: AllocationKind::New });
        // The block may hold more than the cap allows: it is filled, and the debt is waited for.
        let bytes = u64::from(sizes.bytes(id, prbs)).min(backlog);
        if let Some(bucket) = &mut ue.bucket {
            bucket.spend(bytes);
        }
        self.turns += 1;
        ue.turn = self.turns;
        bytes
    }
}
