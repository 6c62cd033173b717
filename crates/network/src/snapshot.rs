//! A snapshot of a running network: counters since the start, and current states. Rates are
//! differences between two snapshots.

use std::sync::Arc;

use airpath_base::{DropReason, Instant};
use airpath_path::LinkMeter;
use airpath_radio::cell::UeMeter;
use serde::Serialize;

/// Everything between the endpoints. A snapshot can be updated without new allocations.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NetworkSnapshot {
    /// Links, in order of direction and stage.
    pub links: Vec<LinkSnapshot>,
    /// Cells in file order; empty without a radio.
    pub cells: Vec<CellSnapshot>,
    /// UEs in file order.
    pub ues: Vec<UeSnapshot>,
    /// Events of UEs between cells, by name in the `events` table.
    pub mobility: Vec<(&'static str, u64)>,
}

/// A link of the path.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkSnapshot {
    /// Name of the stage.
    pub id: Arc<str>,
    /// Bytes that left.
    pub bytes: u64,
    /// Packets that wait.
    pub queue_packets: u64,
    /// Bytes that wait.
    pub queue_bytes: u64,
}

/// A cell; pairs are downlink and uplink.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellSnapshot {
    /// Name of the cell.
    pub id: Arc<str>,
    /// Resource blocks used, retransmissions included.
    pub prbs: [u64; 2],
    /// Resource blocks per second; 0: the cell has none to share.
    pub prbs_per_s: [f64; 2],
}

/// The state of one UE, with its counters in both directions.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UeSnapshot {
    /// Name of the UE.
    pub id: Arc<str>,
    /// The cell that the UE is in, or changes to.
    pub cell: Arc<str>,
    /// RRC state; `handover`: the UE is between cells.
    pub rrc: &'static str,
    /// DRX state; `None` without DRX.
    pub drx: Option<&'static str>,
    /// Downlink and uplink.
    pub radio: [RadioSnapshot; 2],
}

/// One direction of a UE.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RadioSnapshot {
    /// Bytes delivered.
    pub bytes: u64,
    /// Packets that wait.
    pub queue_packets: u64,
    /// Bytes that wait.
    pub queue_bytes: u64,
    /// Resource blocks used.
    pub prbs: u64,
    /// New transport blocks.
    pub blocks: u64,
    /// Sum of their MCS indices.
    pub mcs_sum: u64,
    /// Blocks whose first transmission failed.
    pub first_errors: u64,
    /// Retransmitted transport blocks (TS 38.321 5.3.2, 5.4.2).
    pub harq_retransmissions: u64,
    /// Blocks that HARQ gave up.
    pub lost_blocks: u64,
    /// Retransmitted RLC PDUs.
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
