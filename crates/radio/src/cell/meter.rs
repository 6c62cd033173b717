//! Counters of a UE.

use airpath_base::{Direction, Duration, Instant};

use super::departure::UeIndex;
use crate::buffer::Sojourn;
use airpath_queue::Load;

/// Counters of one direction of one UE since the start. Rates and means are differences between two
/// snapshots.
#[derive(Clone, Debug)]
pub struct UeMeter<'a> {
    /// The UE counted.
    pub ue: UeIndex,
    /// The direction counted.
    pub direction: Direction,
    /// Counters of the radio.
    pub radio: RadioCounters,
    /// Counters of uplink access; zero for the downlink.
    pub access: AccessCounters,
    /// Packets that wait for their first transmission, or for processing in base station or UE.
    pub queued: Load,
    /// Packets that left, and the time since each entered the RLC buffer.
    pub sojourn: &'a Sojourn,
    /// Packets marked CE in the buffer.
    pub marked: u64,
    /// Retransmitted RLC PDUs.
    pub rlc_retransmissions: u64,
    /// Time in DRX Active Time; without DRX the whole time.
    pub awake: Duration,
    /// Bytes that the carrier could have carried for this UE alone, at the MCS of its last block.
    /// A block that ended early counts with the slots that it took.
    pub capacity_bytes: f64,
}

impl UeMeter<'_> {
    /// Adds what the other leg of a split bearer holds, and has counted in its buffer.
    pub(crate) fn add_leg(&mut self, other: &UeMeter<'_>) {
        self.queued = self.queued + other.queued;
        self.marked += other.marked;
        self.rlc_retransmissions += other.rlc_retransmissions;
    }

    /// Adds the counters of another cell.
    pub(crate) fn add(&mut self, other: &UeMeter<'_>) {
        self.radio.add(&other.radio);
        self.access.add(&other.access);
        self.awake += other.awake;
        self.capacity_bytes += other.capacity_bytes;
    }
}

/// Counters of blocks and their resources.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RadioCounters {
    /// Resource blocks (times slots), retransmissions included.
    pub prbs: u64,
    /// New blocks.
    pub blocks: u64,
    /// Sum of the sizes of new blocks in bytes.
    pub block_bytes: u64,
    /// Bytes of new blocks used for data, control elements and headers; the rest is padding.
    pub used_bytes: u64,
    /// Sum of the MCS indices of new blocks.
    pub mcs_sum: u64,
    /// New blocks that failed the first time.
    pub first_errors: u64,
    /// Retransmissions by HARQ.
    pub retransmissions: u64,
    /// Blocks that HARQ gave up.
    pub lost_blocks: u64,
}

impl RadioCounters {
    pub(super) fn add(&mut self, other: &Self) {
        self.prbs += other.prbs;
        self.blocks += other.blocks;
        self.block_bytes += other.block_bytes;
        self.used_bytes += other.used_bytes;
        self.mcs_sum += other.mcs_sum;
        self.first_errors += other.first_errors;
        self.retransmissions += other.retransmissions;
        self.lost_blocks += other.lost_blocks;
    }
}

/// Uplink access.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AccessCounters {
    /// Grants for new data, including proactive ones, but not configured ones.
    pub grants: u64,
    /// Bytes of these grants.
    pub granted_bytes: u64,
    /// Bytes of these grants that were padding.
    pub wasted_bytes: u64,
    /// Scheduling requests sent.
    pub requests: u64,
    /// Buffer status reports sent.
    pub reports: u64,
    /// Random access procedures begun.
    pub random_accesses: u64,
}

impl AccessCounters {
    fn add(&mut self, other: &Self) {
        self.grants += other.grants;
        self.granted_bytes += other.granted_bytes;
        self.wasted_bytes += other.wasted_bytes;
        self.requests += other.requests;
        self.reports += other.reports;
        self.random_accesses += other.random_accesses;
    }
}

/// Bytes that a carrier could have carried, for a changing MCS.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Capacity {
    bytes: f64,
    per_nano: f64,
    since: Instant,
}

impl Capacity {
    /// Sets the bytes per slot from now on.
    pub(super) fn set(&mut self, now: Instant, slot_bytes: f64, slot: Duration) {
        self.bytes = self.until(now);
        self.since = now;
        self.per_nano = slot_bytes / slot.as_nanos() as f64;
    }

    /// Adds bytes that were carried in less time than planned.
    pub(super) fn add(&mut self, bytes: f64) {
        self.bytes += bytes;
    }

    pub(super) fn until(&self, now: Instant) -> f64 {
        self.bytes + self.per_nano * now.saturating_since(self.since).as_nanos() as f64
    }
}
