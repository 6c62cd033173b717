//! The configuration of a cell and its UEs, as plain data.

mod carrier;
mod cdma;
mod check;
mod ue;

use airpath_base::Duration;

use crate::adaptation::BlerModel;
use crate::evdo;
use crate::scheduler::{Policy, SchedulerConfig};
pub use carrier::{
    Access, Granting, LteCarrier, LteDuplex, LteLayers, NrCarrier, NrDuplex, NrLink,
};
pub use cdma::{UmtsCarrier, UmtsDownlink, UmtsUplink};
pub use check::CellConfigError;
pub use ue::{
    AlignmentConfig, UeCarrierConfig, UeConfig, UeLinkConfig, UeProcessing, UeRadioConfig,
};

/// A cell.
///
/// ```
/// use airpath_radio::cell::{CellConfig, LteCarrier, NrCarrier, UeConfig};
///
/// let cell = CellConfig::nr(NrCarrier::n78_100_mhz());
/// let ue = UeConfig::plain(&cell.access);
/// assert_eq!(ue.downlink.harq.processes, 16);
/// let cell = CellConfig::lte(LteCarrier::fdd_20_mhz());
/// assert_eq!(cell.access.slot().as_nanos(), 1_000_000);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct CellConfig {
    /// Radio technology and resources.
    pub access: Access,
    /// How the downlink is shared.
    pub downlink_scheduler: SchedulerConfig,
    /// How the uplink is shared.
    pub uplink_scheduler: SchedulerConfig,
    /// Processing times of the base station.
    pub base_station: BaseStationConfig,
    /// When a block fails.
    pub bler: BlerModel,
    /// Secondary carriers of the same technology, at most 7 (`SCellIndex` of TS 36.331). Their
    /// processing times are those of this cell, and they have no secondary carriers.
    pub secondary: Vec<CellConfig>,
}

/// Processing times of a base station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BaseStationConfig {
    /// From a downlink packet's arrival until the scheduler can put it into a block.
    pub downlink: Duration,
    /// From the end of a slot with an uplink block until its packets leave the base station, and
    /// until what its STATUS says is known.
    pub uplink: Duration,
    /// From the end of a slot with a scheduling request, or with a block that contains a buffer
    /// status report, until a grant can take it into account.
    pub grant: Duration,
}

impl CellConfig {
    /// An NR cell: proportional fair over 100 ms in both directions, 0.5 ms of processing.
    pub fn nr(carrier: NrCarrier) -> Self {
        let time = Duration::from_micros(500);
        Self::new(
            Access::Nr(carrier),
            BaseStationConfig { downlink: time, uplink: time, grant: time },
        )
    }

    /// An LTE cell: proportional fair over 100 ms in both directions, 1 ms from the core to the
    /// scheduler, 1.5 ms to decode (TR 36.912 table B.2.1-1), 3 ms from a request to its grant.
    pub fn lte(carrier: LteCarrier) -> Self {
        let base_station = BaseStationConfig {
            downlink: Duration::from_millis(1),
            uplink: Duration::from_micros(1_500),
            grant: Duration::from_millis(3),
        };
        Self::new(Access::Lte(carrier), base_station)
    }

    /// A UMTS cell: proportional fair over 100 ms, 10 ms in each direction through RNC, Iub and
    /// Node B.
    pub fn umts(carrier: UmtsCarrier) -> Self {
        let time = Duration::from_millis(10);
        let base_station = BaseStationConfig { downlink: time, uplink: time, grant: time };
        Self::new(Access::Umts(carrier), base_station)
    }

    /// An EV-DO cell: proportional fair over 1.67 s, the 1,000 slots of Jalali, Padovani and Pankaj
    /// (2000), 10 ms in each direction through the base station, its controller and the links
    /// between them.
    pub fn evdo() -> Self {
        let time = Duration::from_millis(10);
        let base_station = BaseStationConfig { downlink: time, uplink: time, grant: time };
        let mut cell = Self::new(Access::Evdo, base_station);
        let time_constant = evdo::SLOT * 1_000;
        cell.downlink_scheduler.policy = Policy::ProportionalFair { time_constant };
        cell
    }

    fn new(access: Access, base_station: BaseStationConfig) -> Self {
        let policy = Policy::ProportionalFair { time_constant: Duration::from_millis(100) };
        let scheduler = SchedulerConfig { policy, ues_per_slot: None };
        Self {
            access,
            downlink_scheduler: scheduler,
            uplink_scheduler: scheduler,
            base_station,
            bler: BlerModel::default(),
            secondary: Vec::new(),
        }
    }
}
