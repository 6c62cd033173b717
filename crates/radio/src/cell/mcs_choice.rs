//! How the MCS of a link's new blocks is chosen.

use airpath_base::Instant;

use super::carrier::CarrierLink;
use super::config::UeRadioConfig;
use crate::adaptation::{CqiReport, CqiReporter, LinkAdaptation};
use crate::channel::{Channel, Quality};

/// The MCS of a link's new blocks, and what determines it.
#[derive(Debug)]
pub(super) struct McsChoice {
    reporter: CqiReporter,
    /// The report assumed before the first one: the UE was present before the run began.
    initial: CqiReport,
    pub(super) adaptation: LinkAdaptation,
    /// The first MCS whose blocks can hold a PDU.
    lowest: u8,
    /// The MCS chosen last.
    pub(super) mcs: u8,
}

impl McsChoice {
    /// The choice for blocks of at least `least` bytes.
    pub(super) fn new(
        config: &UeRadioConfig,
        least: u32,
        channel: &Channel,
        carrier: &CarrierLink,
    ) -> Self {
        let tables = &carrier.tables;
        let quality = channel.clone().quality(Instant::ZERO);
        let (cqi, mcs) = match quality {
            Quality::Cqi(cqi) => (cqi, None),
            Quality::Mcs(mcs) => (tables.cqi(tables.sinr_db(quality)), Some(mcs)),
            _ => (tables.cqi(tables.sinr_db(quality)), None),
        };
        let holds = |mcs: &u8| carrier.most_bytes(*mcs) >= least;
        Self {
            reporter: CqiReporter::new(config.report, channel.clone()),
            initial: CqiReport { cqi, mcs, measured: Instant::ZERO },
            adaptation: LinkAdaptation::new(config.mcs),
            lowest: (0..carrier.highest_mcs()).find(holds).unwrap_or(carrier.highest_mcs()),
            mcs: 0,
        }
    }

    /// Chooses the MCS by the newest report at `now`; returns when the next report applies.
    pub(super) fn apply_report(&mut self, now: Instant, carrier: &CarrierLink) -> Instant {
        let report = self.reporter.report(now, &carrier.tables).unwrap_or(self.initial);
        let mcs = self.adaptation.mcs(now, &carrier.tables, report).min(carrier.highest_mcs());
        self.mcs = mcs.max(self.lowest);
        let next = self.reporter.next_report(now);
        self.adaptation.next_change().map_or(next, |change| next.min(change))
    }

    /// Chooses the lowest MCS whose blocks can hold `bytes`, or else the highest MCS.
    pub(super) fn choose_for(&mut self, bytes: u32, carrier: &CarrierLink) -> u8 {
        let holds = |mcs: &u8| carrier.most_bytes(*mcs) >= bytes;
        let mcs = (self.lowest..carrier.highest_mcs()).find(holds);
        self.mcs = mcs.unwrap_or(carrier.highest_mcs());
        self.mcs
    }
}
