//! Link adaptation: what the UE reports, which MCS the base station takes, and how its outer loop
//! corrects it.
//!
//! SINR, CQI and MCS are three scales of one thing. [`LinkTables`] holds the SINR in dB at which
//! a block of each CQI and MCS fails with 10 %, which is how TS 36.213 7.2.3 and TS 38.214 5.2.2.1
//! define a CQI. The efficiencies come from whoever knows the tables of LTE or NR.

mod bler;
mod outer_loop;
mod report;

pub use bler::{BlerModel, CQI_64QAM_EFFICIENCY, Threshold};
pub(crate) use bler::{combined, energy};
pub use outer_loop::{OuterLoop, OuterLoopConfig};
pub use report::{CqiReport, CqiReporter, ReportConfig};

use super::channel::Quality;

/// SINR of every CQI and MCS.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkTables {
    model: BlerModel,
    /// Of CQI 1 and up, in dB.
    cqi_db: Vec<f64>,
    /// Of MCS 0 and up, in dB.
    mcs_db: Vec<f64>,
}

impl LinkTables {
    /// Tables for the efficiencies, in bits per resource element and layer, of CQI 1 and up and
    /// of MCS 0 and up, both not empty. They need not grow everywhere: NR's MCS tables do not.
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

    /// Tables of 10 % points that are known, in dB.
    pub fn of_thresholds(model: BlerModel, cqi_db: Vec<f64>, mcs_db: Vec<f64>) -> Self {
        Self { model, cqi_db, mcs_db }
    }

    /// The BLER model.
    pub fn model(&self) -> &BlerModel {
        &self.model
    }

    /// The highest CQI whose block would fail with 10 % or less; 0: out of range.
    pub fn cqi(&self, sinr_db: f64) -> u8 {
        // A CQI has 4 bits.
        self.cqi_db.iter().rposition(|&db| db <= sinr_db).map_or(0, |index| index as u8 + 1)
    }

    /// The highest MCS whose block would fail with 10 % or less; the lowest one where even that
    /// fails more often.
    pub fn mcs(&self, sinr_db: f64) -> u8 {
        self.mcs_db.iter().rposition(|&db| db <= sinr_db).map_or(0, |index| index as u8)
    }

    /// SINR in dB. A CQI or MCS gives its 10 % point, the least it can be; CQI 0 and an outage
    /// give minus infinity; what is beyond a table counts as its end.
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
    /// Always this one.
    Fixed(u8),
    /// From the last CQI and the outer loop; a recorded MCS is taken as it is.
    Adaptive(OuterLoopConfig),
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
/// assert_eq!(adaptation.mcs(&tables, report), 6);
/// adaptation.on_feedback(false);
/// assert_eq!(adaptation.mcs(&tables, report), 5);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct LinkAdaptation(Mode);

#[derive(Clone, PartialEq, Debug)]
enum Mode {
    Fixed(u8),
    Adaptive(OuterLoop),
}

impl LinkAdaptation {
    /// Nothing learnt yet.
    pub fn new(mode: McsMode) -> Self {
        Self(match mode {
            McsMode::Fixed(mcs) => Mode::Fixed(mcs),
            McsMode::Adaptive(config) => Mode::Adaptive(OuterLoop::new(config)),
        })
    }

    /// MCS of a new block when `report` is the last one; the lowest MCS for CQI 0.
    pub fn mcs(&self, tables: &LinkTables, report: CqiReport) -> u8 {
        match &self.0 {
            Mode::Fixed(mcs) => *mcs,
            Mode::Adaptive(outer) => report.mcs.unwrap_or_else(|| {
                tables.mcs(tables.sinr_db(Quality::Cqi(report.cqi)) + outer.offset_db())
            }),
        }
    }

    /// HARQ feedback of an initial transmission. Retransmissions do not count: the target is
    /// that of the first.
    pub fn on_feedback(&mut self, acknowledged: bool) {
        if let Mode::Adaptive(outer) = &mut self.0 {
            outer.on_feedback(acknowledged);
        }
    }

    /// What the outer loop adds to the reported SINR, in dB.
    pub fn offset_db(&self) -> f64 {
        match &self.0 {
            Mode::Fixed(_) => 0.0,
            Mode::Adaptive(outer) => outer.offset_db(),
        }
    }
}

#[cfg(test)]
mod tests;
