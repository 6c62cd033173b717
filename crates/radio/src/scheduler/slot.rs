//! One slot in the making: who wants what, and who gets it.

use airpath_base::Instant;
use airpath_queue::TokenBucket;

/// Number of a UE in its cell, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UeId(pub u32);

/// What a UE wants in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Who.
    pub ue: UeId,
    /// Bytes to send by the base station's estimate, headers included.
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

/// What is remembered of a UE between slots.
#[derive(Debug, Default)]
pub(super) struct Ue {
    /// Few have one, and each slot looks at all UEs.
    pub(super) bucket: Option<Box<TokenBucket>>,
    /// Bytes served, forgotten exponentially; valid at `served_at`.
    pub(super) served: f64,
    pub(super) served_at: Instant,
    /// Number of the allocation that it last had; orders equals.
    pub(super) turn: u64,
    /// Round robin: PRBs that it is owed, as a fraction of 2^32.
    pub(super) owed: i64,
}

/// One slot in the making.
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
    /// Bytes of `backlog` that its rate cap lets pass.
    #[inline]
    pub(super) fn eligible(&mut self, backlog: u64, now: Instant) -> u64 {
        self.bucket.as_mut().map_or(backlog, |bucket| bucket.available(now).min(backlog))
    }
}

impl Slot {
    /// Notes a block to send again, or returns the new bytes that a UE may send now.
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

    /// Gives `prbs` to a UE for new data; how many bytes that serves.
    pub(super) fn give(
        &mut self,
        (id, backlog): (UeId, u64),
        prbs: u32,
        ue: &mut Ue,
        sizes: &impl BlockSizes,
    ) -> u64 {
        self.allocations.push(Allocation { ue: id, prbs, kind: AllocationKind::New });
        // The block may hold more than the cap lets pass: it is filled, and the debt waited out.
        let bytes = u64::from(sizes.bytes(id, prbs)).min(backlog);
        if let Some(bucket) = &mut ue.bucket {
            bucket.spend(bytes);
        }
        self.turns += 1;
        ue.turn = self.turns;
        bytes
    }
}
