//! Link adaptation: what the UE reports, which MCS the base station chooses, and how its outer loop
//! corrects it.
//!
//! SINR, CQI and MCS are three scales of one quantity. [`LinkTables`] holds the SINR in dB at which
//! a block of each CQI and MCS fails with a probability of 10 %, which is how TS 36.213 7.2.3 and
//! TS 38.214 5.2.2.1 define a CQI. The efficiencies come from the tables of LTE or NR, which the
//! caller passes.

mod bler;
mod outer_loop;
mod report;
mod steps;

pub use bler::{BlerModel, CQI_64QAM_EFFICIENCY, Threshold};
pub(crate) use bler::{combined, energy};
pub use outer_loop::{OuterLoop, OuterLoopConfig};
pub use report::{CqiReport, CqiReporter, ReportConfig};
pub use steps::{Steps, StepsConfig};

use airpath_base::Instant;

use super::channel::Quality;

/// The SINR of every CQI and MCS.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkTables {
    model: BlerModel,
    /// SINR in dB of CQI 1 and up.
    cqi_db: Vec<f64>,
    /// SINR in dB of MCS 0 and up.
    mcs_db: Vec<f64>,
}

impl LinkTables {
    /// Tables for these efficiencies, in bits per resource element and layer, of CQI 1 and up and
    /// of MCS 0 and up; both must not be empty. They need not be monotonic: NR's MCS tables are
    /// not.
    pub fn new(
        model: BlerModel,
        cqi_efficiency: impl IntoIterator<Item = f64>,
        mcs_efficiency: impl IntoIterator<Item = f64>,
    ) -> Self {
        let thresholds = |efficiency| model.threshold_db(efficiency);
        Self {
            model,
            cqi_db: cqi_efficiency.into_iter().map(thresholds).collect(),
            mcs_db: mcs_efficiency.into_iter().map(thresholds).collect(),
        }
    }

    /// Tables from known 10 % points, in dB.
    pub fn of_thresholds(model: BlerModel, cqi_db: Vec<f64>, mcs_db: Vec<f64>) -> Self {
        Self { model, cqi_db, mcs_db }
    }

    /// The BLER model.
    pub fn model(&self) -> &BlerModel {
        &self.model
    }

    /// The last row of the MCS table.
    pub fn highest_mcs(&self) -> u8 {
        // At most 30 of them.
        self.mcs_db.len().saturating_sub(1) as u8
    }

    /// The highest CQI whose block would fail with a probability of at most 10 %; 0 means out of
    /// range.
    pub fn cqi(&self, sinr_db: f64) -> u8 {
        // A CQI has 4 bits.
        self.cqi_db.iter().rposition(|&db| db <= sinr_db).map_or(0, |index| index as u8 + 1)
    }

    /// The highest MCS whose block would fail with a probability of at most 10 %; the lowest MCS if
    /// even that fails more often.
    pub fn mcs(&self, sinr_db: f64) -> u8 {
        self.mcs_db.iter().rposition(|&db| db <= sinr_db).map_or(0, |index| index as u8)
    }

    /// SINR in dB. A CQI or MCS gives its 10 % point, which is the least that it can be; CQI 0 and
    /// an outage give minus infinity; values beyond a table count as its end.
    pub fn sinr_db(&self, quality: Quality) -> f64 {
        let at = |table: &[f64], index: usize| {
            table.get(index).or(table.last()).copied().unwrap_or(f64::NEG_INFINITY)
        };
        match quality {
            Quality::Sinr(sinr_db) => sinr_db,
            Quality::Cqi(0) | Quality::Outage => f64::NEG_INFINITY,
            Quality::Cqi(cqi) => at(&self.cqi_db, usize::from(cqi) - 1),
            Quality::Mcs(mcs) => at(&self.mcs_db, usize::from(mcs)),
        }
    }
}

/// How the MCS of a new block is chosen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum McsMode {
    /// Always this MCS.
    Fixed(u8),
    /// From the last CQI and the outer loop; a recorded MCS is used as it is.
    Adaptive(OuterLoopConfig),
    /// By single steps, from the block error rate alone.
    Steps(StepsConfig),
}

/// Link adaptation of one UE in one direction.
///
/// ```
/// use airpath_base::Instant;
/// use airpath_radio::adaptation::*;
///
/// let efficiency = CQI_64QAM_EFFICIENCY;
/// let tables = LinkTables::new(BlerModel::default(), efficiency, efficiency);
/// let mut adaptation = LinkAdaptation::new(McsMode::Adaptive(OuterLoopConfig::default()));
/// let report = CqiReport { cqi: 7, mcs: None, measured: Instant::ZERO };
/// assert_eq!(adaptation.mcs(Instant::ZERO, &tables, report), 6);
/// adaptation.on_feedback(false);
/// assert_eq!(adaptation.mcs(Instant::ZERO, &tables, report), 5);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct LinkAdaptation(Mode);

#[derive(Clone, PartialEq, Debug)]
enum Mode {
    Fixed(u8),
    Adaptive(OuterLoop),
    Steps(Steps),
}

impl LinkAdaptation {
    /// Link adaptation that has learnt nothing yet.
    pub fn new(mode: McsMode) -> Self {
        Self(match mode {
            McsMode::Fixed(mcs) => Mode::Fixed(mcs),
            McsMode::Adaptive(config) => Mode::Adaptive(OuterLoop::new(config)),
            McsMode::Steps(config) => Mode::Steps(Steps::new(config)),
        })
    }

    /// MCS of a new block at `now` if `report` is the last report; the lowest MCS for CQI 0.
    pub fn mcs(&mut self, now: Instant, tables: &LinkTables, report: CqiReport) -> u8 {
        match &mut self.0 {
            Mode::Fixed(mcs) => *mcs,
            Mode::Steps(steps) => steps.mcs(now, tables.highest_mcs()),
            Mode::Adaptive(outer) => report.mcs.unwrap_or_else(|| {
                tables.mcs(tables.sinr_db(Quality::Cqi(report.cqi)) + outer.offset_db())
            }),
        }
    }

    /// Takes the HARQ feedback of an initial transmission. Retransmissions do not count: the target
    /// is that of the first.
    pub fn on_feedback(&mut self, acknowledged: bool) {
        match &mut self.0 {
            Mode::Fixed(_) => {}
            Mode::Adaptive(outer) => outer.on_feedback(acknowledged),
            Mode::Steps(steps) => steps.on_feedback(acknowledged),
        }
    }

    /// When the MCS may change without a report or feedback.
    pub fn next_change(&self) -> Option<Instant> {
        match &self.0 {
            Mode::Steps(steps) => Some(steps.next_step()),
            Mode::Fixed(_) | Mode::Adaptive(_) => None,
        }
    }

    /// What the outer loop adds to the reported SINR, in dB.
    pub fn offset_db(&self) -> f64 {
        match &self.0 {
            Mode::Fixed(_) | Mode::Steps(_) => 0.0,
            Mode::Adaptive(outer) => outer.offset_db(),
        }
    }
}

#[cfg(test)]
mod tests;
