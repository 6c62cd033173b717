//! What a UE has had so far.

use airpath_base::{Direction, Duration, Instant};

use super::departure::UeIndex;
use crate::buffer::Sojourn;
use airpath_queue::Load;

/// One direction of one UE since the start. Rates and means are differences between two looks.
#[derive(Clone, Debug)]
pub struct UeMeter<'a> {
    /// Whose.
    pub ue: UeIndex,
    /// Which way.
    pub direction: Direction,
    /// Counts of the radio.
    pub radio: RadioCounters,
    /// Counts of uplink access; zero downlink.
    pub access: AccessCounters,
    /// What waits for its first transmission, or for the base station's or the UE's processing.
    pub queued: Load,
    /// What left, and how long it took from entering the RLC buffer.
    pub sojourn: &'a Sojourn,
    /// Packets marked CE in the buffer.
    pub marked: u64,
    /// RLC PDUs sent again.
    pub rlc_retransmissions: u64,
    /// Time in DRX Active Time; all of it without DRX.
    pub awake: Duration,
    /// Bytes that the carrier could have carried for this UE alone, at the MCS of its last block.
    /// A block that ended early counts with the slots that it took.
    pub capacity_bytes: f64,
}

impl UeMeter<'_> {
    /// Counts of another cell.
    pub(crate) fn add(&mut self, other: &UeMeter<'_>) {
        self.radio.add(&other.radio);
        self.access.add(&other.access);
        self.awake += other.awake;
        self.capacity_bytes += other.capacity_bytes;
    }
}

/// Blocks and what they took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RadioCounters {
    /// Resource blocks (times slots), retransmissions included.
    pub prbs: u64,
    /// New blocks.
    pub blocks: u64,
    /// Their sizes in bytes.
    pub block_bytes: u64,
    /// Bytes of them with data, control elements and headers: the rest is padding.
    pub used_bytes: u64,
    /// Sum of the MCS indices of new blocks.
    pub mcs_sum: u64,
    /// New blocks that failed the first time.
    pub first_errors: u64,
    /// Blocks that were sent again by HARQ.
    pub retransmissions: u64,
    /// Blocks that HARQ gave up.
    pub lost_blocks: u64,
}

impl RadioCounters {
    fn add(&mut self, other: &Self) {
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
    /// Grants for new data, proactive ones included, configured ones not.
    pub grants: u64,
    /// Their bytes.
    pub granted_bytes: u64,
    /// Bytes of them that carried padding.
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

/// Bytes a carrier could have carried, while the MCS changes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Capacity {
    bytes: f64,
    per_nano: f64,
    since: Instant,
}

impl Capacity {
    /// From now on so many bytes per slot.
    pub(super) fn set(&mut self, now: Instant, slot_bytes: f64, slot: Duration) {
        self.bytes = self.until(now);
        self.since = now;
        self.per_nano = slot_bytes / slot.as_nanos() as f64;
    }

    /// Bytes that were carried in less time than they are meant to take.
    pub(super) fn add(&mut self, bytes: f64) {
        self.bytes += bytes;
    }

    pub(super) fn until(&self, now: Instant) -> f64 {
        self.bytes + self.per_nano * now.saturating_since(self.since).as_nanos() as f64
    }
}
