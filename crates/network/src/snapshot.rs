//! A snapshot of a network while it runs: counters since the start, and states of this instant. Rates
//! are differences between two snapshots.

use std::sync::Arc;

use airpath_base::{DropReason, Instant};
use airpath_path::LinkMeter;
use airpath_radio::cell::UeMeter;
use serde::Serialize;

/// Everything between the endpoints. What is filled in again keeps its room.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NetworkSnapshot {
    /// Links, first direction and first stage first.
    pub links: Vec<LinkSnapshot>,
    /// In file order; none without a radio.
    pub cells: Vec<CellSnapshot>,
    /// In file order.
    pub ues: Vec<UeSnapshot>,
    /// What happened to UEs between cells, by name in the `events` table.
    pub mobility: Vec<(&'static str, u64)>,
}

/// A link of the path.
#[derive(Clone, Debug, Serialize)]
pub struct LinkSnapshot {
    /// Its stage's name.
    pub id: Arc<str>,
    /// Bytes that left.
    pub bytes: u64,
    /// Waiting.
    pub queue_packets: u64,
    /// Waiting.
    pub queue_bytes: u64,
}

/// A cell, down and up.
#[derive(Clone, Debug, Serialize)]
pub struct CellSnapshot {
    /// Its name.
    pub id: Arc<str>,
    /// Resource blocks used, retransmissions included.
    pub prbs: [u64; 2],
    /// Resource blocks in a second; 0: it has none to share.
    pub prbs_per_s: [f64; 2],
}

/// The state of one UE, with its counters in both directions.
#[derive(Clone, Debug, Serialize)]
pub struct UeSnapshot {
    /// Its name.
    pub id: Arc<str>,
    /// The cell that it is in, or on its way to.
    pub cell: Arc<str>,
    /// State of RRC; `handover`: it is between cells.
    pub rrc: &'static str,
    /// State of DRX; null: without.
    pub drx: Option<&'static str>,
    /// Down and up.
    pub radio: [RadioSnapshot; 2],
}

/// One direction of a UE.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RadioSnapshot {
    /// Delivered.
    pub bytes: u64,
    /// Waiting.
    pub queue_packets: u64,
    /// Waiting.
    pub queue_bytes: u64,
    /// Resource blocks.
    pub prbs: u64,
    /// New transport blocks.
    pub blocks: u64,
    /// Sum of their MCS indices.
    pub mcs_sum: u64,
    /// Of these, failed the first time.
    pub first_errors: u64,
    /// Transport blocks that were sent again (TS 38.321 5.3.2, 5.4.2).
    pub harq_retransmissions: u64,
    /// Blocks that HARQ gave up.
    pub lost_blocks: u64,
    /// RLC PDUs sent again.
    pub rlc_retransmissions: u64,
    /// Scheduling requests (up).
    pub scheduling_requests: u64,
    /// Buffer status reports (up).
    pub buffer_status_reports: u64,
    /// Grants for new data (up).
    pub grants: u64,
    /// Random access procedures (up).
    pub random_accesses: u64,
    /// Time in DRX Active Time, in seconds.
    pub awake_s: f64,
    /// Dropped packets by reason.
    pub dropped: Vec<(&'static str, u64)>,
}

impl LinkSnapshot {
    pub(crate) fn of(meter: &LinkMeter) -> Self {
        Self { id: meter.name.as_str().into(), bytes: 0, queue_packets: 0, queue_bytes: 0 }
    }

    pub(crate) fn update(&mut self, meter: &LinkMeter) {
        self.bytes = meter.departed.bytes;
        (self.queue_packets, self.queue_bytes) = (meter.queued.packets, meter.queued.bytes);
    }
}

impl RadioSnapshot {
    pub(crate) fn update(&mut self, now: Instant, meter: &UeMeter<'_>) {
        debug_assert!(meter.awake <= now.saturating_since(Instant::ZERO));
        let (radio, access) = (&meter.radio, &meter.access);
        self.bytes = meter.sojourn.delivered.bytes;
        (self.queue_packets, self.queue_bytes) = (meter.queued.packets, meter.queued.bytes);
        self.prbs = radio.prbs;
        self.blocks = radio.blocks;
        self.mcs_sum = radio.mcs_sum;
        self.first_errors = radio.first_errors;
        self.harq_retransmissions = radio.retransmissions;
        self.lost_blocks = radio.lost_blocks;
        self.rlc_retransmissions = meter.rlc_retransmissions;
        self.scheduling_requests = access.requests;
        self.buffer_status_reports = access.reports;
        self.grants = access.grants;
        self.random_accesses = access.random_accesses;
        self.awake_s = meter.awake.as_secs_f64();
    }

    pub(crate) fn set_dropped(&mut self, dropped: &[(DropReason, u64)]) {
        self.dropped.clear();
        self.dropped.extend(dropped.iter().map(|(reason, packets)| (reason.name(), *packets)));
    }
}
