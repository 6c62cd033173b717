//! Cells, and when and how UEs change between them.

use airpath_base::Duration;
use thiserror::Error;

use crate::bearer::Forwarding;
use crate::cell::{CellConfig, CellConfigError, UeConfig, UeIndex};

/// Number of a cell in its RAN, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CellIndex(pub u32);

/// Several cells and the UEs that move between them.
#[derive(Clone, Debug, PartialEq)]
pub struct RanConfig {
    /// At least one. Of any technology: between LTE and NR the bearer keeps its PDCP, as one with
    /// NR PDCP does when a leg is added or dropped (TS 37.340 10.2, 10.3).
    pub cells: Vec<CellConfig>,
    /// What each does, in the order of their numbers.
    pub ues: Vec<MobileConfig>,
    /// How a change of cell goes.
    pub handover: HandoverConfig,
    /// Changes at fixed times.
    pub planned: Vec<PlannedHandover>,
    /// Measurements and the changes that they cause.
    pub measurements: Option<MeasurementConfig>,
}

/// One UE in all cells.
#[derive(Clone, Debug, PartialEq)]
pub struct MobileConfig {
    /// What it is in each cell, in their order.
    pub in_cell: Vec<UeConfig>,
}

/// How a change of cell goes (TS 36.300 10.1.2.1, TS 38.300 9.2.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandoverConfig {
    /// From the measurement report to the command: the target prepares. Data goes on.
    pub preparation: Duration,
    /// From the command's end, when the source stops, until the UE can send and receive in the
    /// target, random access included. Not shorter than the forwarding delay.
    pub interruption: Duration,
    /// What the source does with downlink packets.
    pub forwarding: Forwarding,
    /// From the source to the target over X2 or Xn.
    pub forwarding_delay: Duration,
    /// From the UE's arrival until the core sends to the target. Until then packets come to the
    /// old base station. The end marker keeps the order (TS 36.300 10.1.2.2).
    pub path_switch: Duration,
}

/// A change at a fixed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedHandover {
    /// When the UE has the command, from the start.
    pub at: Duration,
    /// Again after each of these.
    pub every: Option<Duration>,
    /// Who; `None`: all.
    pub ue: Option<UeIndex>,
    /// Where to.
    pub to: CellIndex,
}

/// What a UE measures of all cells, and what follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasurementConfig {
    /// Time between two measurements.
    pub period: Duration,
    /// Event A3 and the handover it causes.
    pub a3: Option<A3Config>,
    /// Radio link failure and what comes of it. `None`: a UE stays, however bad it is.
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
    /// 5.5.3.2); for others it keeps its time constant.
    pub filter_coefficient: u8,
}

/// Radio link failure (TS 36.331 5.3.11, TS 38.331 5.3.10).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailureConfig {
    /// Below this SINR in dB a measurement is out of sync.
    pub q_out_db: f64,
    /// Above this SINR in dB it is in sync.
    pub q_in_db: f64,
    /// Out of sync in a row that start T310.
    pub n310: u32,
    /// In sync in a row that stop it.
    pub n311: u32,
    /// T310: its end is a failure.
    pub t310: Duration,
    /// T304: a handover to a cell that is out of sync has failed this long after the command.
    pub t304: Duration,
    /// From a failure until the UE is connected again, in the best cell, if that is in sync; else
    /// it tries again for as long. T311 and the fall to idle are not modelled.
    pub reestablishment: Duration,
}

/// What is wrong with a [`RanConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RanConfigError {
    /// Nothing to move between.
    #[error("a RAN needs a cell")]
    NoCell,
    /// A cell is wrong.
    #[error("cell {cell}: {error}")]
    Cell {
        /// Its place in the configuration, from 0.
        cell: u32,
        /// What.
        error: CellConfigError,
    },
    /// A UE is wrong in a cell.
    #[error("UE {ue} in cell {cell}: {error}")]
    Ue {
        /// Its place in the configuration, from 0.
        ue: u32,
        /// Its place in the configuration, from 0.
        cell: u32,
        /// What.
        error: CellConfigError,
    },
    /// A UE does not know every cell.
    #[error("UE {ue} has {known} cells of {cells}")]
    Cells {
        /// Its place in the configuration, from 0.
        ue: u32,
        /// What it has.
        known: usize,
        /// What there are.
        cells: usize,
    },
    /// A bearer is acknowledged in one cell and not in another: its PDCP could not go on (TS
    /// 38.331 5.3.5.6.5 releases such a bearer and adds another).
    #[error("UE {ue}: RLC is AM in one cell and UM in cell {cell}")]
    Mode {
        /// Its place in the configuration, from 0.
        ue: u32,
        /// Where it differs from the first cell.
        cell: u32,
    },
    /// A handover that is planned has no such cell or UE.
    #[error("handover {0} names a cell or UE that is not there")]
    Planned(usize),
    /// Times that would stand still.
    #[error("{0} must be more than 0")]
    Zero(&'static str),
}

impl Default for HandoverConfig {
    /// 50 ms without data, about the 49.5 ms of TR 36.881 5.2.2; everything is forwarded.
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
    /// One cell, from which nobody moves.
    pub fn alone(cell: &CellConfig, ues: &[UeConfig]) -> Self {
        let mobile = |ue: &UeConfig| MobileConfig { in_cell: vec![ue.clone()] };
        Self {
            cells: vec![cell.clone()],
            ues: ues.iter().map(mobile).collect(),
            handover: HandoverConfig::default(),
            planned: Vec::new(),
            measurements: None,
        }
    }

    /// Finds what cannot work.
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
}

/// Whether the bearer is acknowledged, down and up.
fn modes(ue: &UeConfig) -> [bool; 2] {
    [&ue.downlink, &ue.uplink].map(|link| link.bearer.rlc.is_acknowledged())
}
