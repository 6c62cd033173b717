//! Configuration of cells, and of when and how UEs change between them.

use airpath_base::Duration;
use thiserror::Error;

use crate::bearer::Forwarding;
use crate::cell::{Access, CellConfig, CellConfigError, UeConfig, UeIndex};

/// Number of a cell in its RAN, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CellIndex(pub u32);

/// Several cells and the UEs that move between them.
#[derive(Clone, Debug, PartialEq)]
pub struct RanConfig {
    /// At least one, of any technology: between LTE and NR the bearer keeps its PDCP, like one with
    /// NR PDCP when a leg is added or dropped (TS 37.340 10.2, 10.3).
    pub cells: Vec<CellConfig>,
    /// The UEs, in the order of their numbers.
    pub ues: Vec<MobileConfig>,
    /// How a handover is carried out.
    pub handover: HandoverConfig,
    /// Handovers at fixed times.
    pub planned: Vec<PlannedHandover>,
    /// Measurements, and the handovers that they cause.
    pub measurements: Option<MeasurementConfig>,
    /// UEs whose bearer is split. `None`: there are none.
    pub split: Option<SplitConfig>,
}

/// A split bearer (TS 37.340 4.2.2): one PDCP entity over an RLC entity in each of two cells. A UE
/// that has one stays in both cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitConfig {
    /// The UE; `None`: all UEs.
    pub ue: Option<UeIndex>,
    /// The cell of the second leg. The first leg is in the first cell, which also has PDCP.
    pub secondary: CellIndex,
    /// primaryPath (TS 38.331 PDCP-Config): the leg of the uplink below the threshold, and of a
    /// packet for which both legs are equally good.
    pub primary: Leg,
    /// How a packet gets its leg.
    pub policy: SplitPolicy,
    /// ul-DataSplitThreshold in bytes (TS 38.323 5.2.1): while less than this waits, the uplink uses
    /// the primary path only. `None`: infinity.
    pub threshold: Option<u64>,
    /// t-Reordering of PDCP. That of the legs does not apply.
    pub t_reordering: Duration,
    /// Delay between the base stations, over X2, Xn or F1; zero if both legs are in one.
    pub delay: Duration,
    /// Whether PDCP drops a packet for which a leg's buffer has no room before it has a COUNT, as
    /// flow control allows (TS 38.425 5.4.2). Otherwise the leg drops it, and leaves a gap.
    pub flow_control: bool,
}

/// A leg of a split bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leg {
    /// In the master cell group.
    Master,
    /// In the secondary cell group.
    Secondary,
}

/// How a transmitter chooses between legs, which TS 38.323 leaves open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SplitPolicy {
    /// The leg in which the packet will wait less, judged by what waits there and by how fast it
    /// left lately.
    ShortestWait,
    /// A fixed part of the bytes.
    Fixed {
        /// The part that goes to the secondary leg, 0 to 1.
        secondary: f64,
    },
}

impl Leg {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Master => Self::Secondary,
            Self::Secondary => Self::Master,
        }
    }
}

/// One UE in all cells.
#[derive(Clone, Debug, PartialEq)]
pub struct MobileConfig {
    /// Configuration of the UE in each cell, in the order of the cells.
    pub in_cell: Vec<UeConfig>,
}

/// How a handover is carried out (TS 36.300 10.1.2.1, TS 38.300 9.2.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandoverConfig {
    /// From the measurement report to the command, while the target prepares. Data continues.
    pub preparation: Duration,
    /// From the end of the command, when the source stops, until the UE can send and receive in the
    /// target, including random access. Not shorter than the forwarding delay.
    pub interruption: Duration,
    /// What the source does with downlink packets.
    pub forwarding: Forwarding,
    /// Delay from the source to the target over X2 or Xn.
    pub forwarding_delay: Duration,
    /// From the UE's arrival until the core sends to the target. Until then packets go to the old
    /// base station. The end marker keeps the order (TS 36.300 10.1.2.2).
    pub path_switch: Duration,
}

/// A handover at a fixed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedHandover {
    /// When the UE receives the command, from the start of the run.
    pub at: Duration,
    /// Period after which it is repeated.
    pub every: Option<Duration>,
    /// The UE; `None`: all UEs.
    pub ue: Option<UeIndex>,
    /// The target cell.
    pub to: CellIndex,
}

/// What a UE measures of all cells, and the consequences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasurementConfig {
    /// Time between two measurements.
    pub period: Duration,
    /// Event A3 and the handover that it causes.
    pub a3: Option<A3Config>,
    /// Radio link failure and its consequences. `None`: a UE stays, however bad the link is.
    pub failure: Option<FailureConfig>,
}

/// Event A3: a neighbour is better than the serving cell (TS 36.331 5.5.4.4, TS 38.331 5.5.4.4),
/// by SINR.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct A3Config {
    /// a3-Offset in dB.
    pub offset_db: f64,
    /// Hys of TS 38.331 5.5.4.4: by how much more the neighbour must be better, in dB.
    pub hysteresis_db: f64,
    /// timeToTrigger.
    pub time_to_trigger: Duration,
    /// filterCoefficient k: a = 2^(-k/4) for samples 200 ms apart (TS 36.331 5.5.3.2, TS 38.331
    /// 5.5.3.2); for other periods the time constant is kept.
    pub filter_coefficient: u8,
}

/// Radio link failure (TS 36.331 5.3.11, TS 38.331 5.3.10).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailureConfig {
    /// A measurement below this SINR in dB is out of sync.
    pub q_out_db: f64,
    /// A measurement above this SINR in dB is in sync.
    pub q_in_db: f64,
    /// Number of consecutive out-of-sync measurements that start T310.
    pub n310: u32,
    /// Number of consecutive in-sync measurements that stop T310.
    pub n311: u32,
    /// T310: its expiry is a failure.
    pub t310: Duration,
    /// T304: a handover to a cell that is out of sync fails this long after the command.
    pub t304: Duration,
    /// From a failure until the UE is reconnected, in the best cell, if that is in sync; otherwise
    /// it tries again for the same time. T311 and the transition to idle are not modelled.
    pub reestablishment: Duration,
}

/// What is wrong with a [`RanConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RanConfigError {
    /// There is no cell.
    #[error("a RAN needs a cell")]
    NoCell,
    /// A cell is invalid.
    #[error("cell {cell}: {error}")]
    Cell {
        /// Position of the cell in the configuration, from 0.
        cell: u32,
        /// The cell's error.
        error: CellConfigError,
    },
    /// A UE is invalid in a cell.
    #[error("UE {ue} in cell {cell}: {error}")]
    Ue {
        /// The UE's position in the configuration, from 0.
        ue: u32,
        /// The cell's position in the configuration, from 0.
        cell: u32,
        /// The UE's error.
        error: CellConfigError,
    },
    /// A UE is not configured for every cell.
    #[error("UE {ue} has {known} cells of {cells}")]
    Cells {
        /// The UE's position in the configuration, from 0.
        ue: u32,
        /// Number of cells for which it is configured.
        known: usize,
        /// Number of cells.
        cells: usize,
    },
    /// A bearer is acknowledged in one cell and not in another: its PDCP could not continue (TS
    /// 38.331 5.3.5.6.5 releases such a bearer and adds another).
    #[error("UE {ue}: RLC is AM in one cell and UM in cell {cell}")]
    Mode {
        /// The UE's position in the configuration, from 0.
        ue: u32,
        /// The cell that differs from the first one.
        cell: u32,
    },
    /// A planned handover names a cell or UE that does not exist.
    #[error("handover {0} names a cell or UE that is not there")]
    Planned(usize),
    /// A split bearer whose second leg is in the first cell or in none, or in a cell that is neither
    /// NR nor LTE, or whose UE does not exist.
    #[error("the second leg of a split bearer needs another cell, LTE or NR like the first")]
    Legs,
    /// A split bearer together with something that moves UEs.
    #[error("a UE with a split bearer stays in its cells: no handovers, no measurements")]
    SplitMoves,
    /// A time that must not be zero.
    #[error("{0} must be more than 0")]
    Zero(&'static str),
}

impl Default for HandoverConfig {
    /// 50 ms without data, close to the 49.5 ms of TR 36.881 5.2.2; everything is forwarded.
    fn default() -> Self {
        Self {
            preparation: Duration::from_millis(50),
            interruption: Duration::from_millis(50),
            forwarding: Forwarding::Buffer,
            forwarding_delay: Duration::from_millis(5),
            path_switch: Duration::from_millis(20),
        }
    }
}

impl RanConfig {
    /// One cell, which no UE leaves.
    pub fn alone(cell: &CellConfig, ues: &[UeConfig]) -> Self {
        let mobile = |ue: &UeConfig| MobileConfig { in_cell: vec![ue.clone()] };
        Self {
            cells: vec![cell.clone()],
            ues: ues.iter().map(mobile).collect(),
            handover: HandoverConfig::default(),
            planned: Vec::new(),
            measurements: None,
            split: None,
        }
    }

    /// The configuration of a UE's split bearer, if it has one.
    pub fn split_of(&self, ue: UeIndex) -> Option<&SplitConfig> {
        self.split.as_ref().filter(|split| split.ue.is_none_or(|only| only == ue))
    }

    /// Checks for configurations that cannot work.
    pub fn check(&self) -> Result<(), RanConfigError> {
        if self.cells.is_empty() {
            return Err(RanConfigError::NoCell);
        }
        for (cell, config) in (0..).zip(&self.cells) {
            config.check().map_err(|error| RanConfigError::Cell { cell, error })?;
        }
        for (ue, mobile) in (0..).zip(&self.ues) {
            let (known, cells) = (mobile.in_cell.len(), self.cells.len());
            if known != cells {
                return Err(RanConfigError::Cells { ue, known, cells });
            }
            for ((cell, own), config) in (0..).zip(&mobile.in_cell).zip(&self.cells) {
                let wrong = |error| RanConfigError::Ue { ue, cell, error };
                own.check(config).map_err(wrong)?;
                if modes(own) != modes(&mobile.in_cell[0]) {
                    return Err(RanConfigError::Mode { ue, cell });
                }
            }
        }
        for (index, planned) in self.planned.iter().enumerate() {
            let known = |ue: UeIndex| (ue.0 as usize) < self.ues.len();
            if planned.to.0 as usize >= self.cells.len() || !planned.ue.is_none_or(known) {
                return Err(RanConfigError::Planned(index));
            }
            if planned.every == Some(Duration::ZERO) {
                return Err(RanConfigError::Zero("the time between two handovers"));
            }
        }
        self.check_split()?;
        if let Some(measurements) = &self.measurements {
            if measurements.period == Duration::ZERO {
                return Err(RanConfigError::Zero("the time between two measurements"));
            }
            if measurements.failure.is_some_and(|failure| failure.reestablishment == Duration::ZERO)
            {
                return Err(RanConfigError::Zero("the time of a re-establishment"));
            }
        }
        Ok(())
    }

    fn check_split(&self) -> Result<(), RanConfigError> {
        let Some(split) = &self.split else { return Ok(()) };
        let has_legs = |cell: &CellConfig| matches!(cell.access, Access::Nr(_) | Access::Lte(_));
        let secondary = self.cells.get(split.secondary.0 as usize);
        let cells = has_legs(&self.cells[0]) && secondary.is_some_and(has_legs);
        let known = split.ue.is_none_or(|ue| (ue.0 as usize) < self.ues.len());
        if !cells || !known || split.secondary.0 == 0 {
            return Err(RanConfigError::Legs);
        }
        if !self.planned.is_empty() || self.measurements.is_some() {
            return Err(RanConfigError::SplitMoves);
        }
        Ok(())
    }
}

/// Whether the bearer is acknowledged, downlink and uplink.
fn modes(ue: &UeConfig) -> [bool; 2] {
    [&ue.downlink, &ue.uplink].map(|link| link.bearer.rlc.is_acknowledged())
}
