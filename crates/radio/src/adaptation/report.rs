//! Periodic CQI reports.

use airpath_base::{Duration, Instant};

use super::LinkTables;
use crate::channel::{Channel, Quality};

/// When a UE measures its channel, and when the base station learns of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReportConfig {
    /// Time between measurements; 1 ns if zero (TS 38.331 CSI-ReportPeriodicityAndOffset).
    pub period: Duration,
    /// Time of the first measurement.
    pub offset: Duration,
    /// From a measurement until the scheduler uses it: the reference resource (4 slots or more in
    /// TS 38.214 5.2.2.5, 4 ms in TS 36.213 7.2.3), transmission, processing.
    pub delay: Duration,
}

/// A report as the base station knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CqiReport {
    /// The reported CQI; 0 means out of range.
    pub cqi: u8,
    /// The MCS itself, if the channel is a recording of what a network used.
    pub mcs: Option<u8>,
    /// When the channel was measured.
    pub measured: Instant,
}

/// The reports of one UE.
///
/// It evaluates its own copy of the channel, which may therefore lag behind the one that decides on
/// errors; only reports that are read are evaluated.
#[derive(Clone, Debug)]
pub struct CqiReporter {
    config: ReportConfig,
    channel: Channel,
    last: Option<CqiReport>,
}

impl CqiReporter {
    /// Reports of `channel`, a clone that must not have been evaluated yet.
    pub fn new(config: ReportConfig, channel: Channel) -> Self {
        Self { config, channel, last: None }
    }

    /// The newest report that has arrived by `now`, which never decreases; `None` before the
    /// first. A recorded CQI is reported as it is.
    pub fn report(&mut self, now: Instant, tables: &LinkTables) -> Option<CqiReport> {
        let measured = self.measured(now)?;
        if self.last.is_none_or(|last| last.measured != measured) {
            let quality = self.channel.quality(measured);
            let cqi = match quality {
                Quality::Cqi(cqi) => cqi,
                _ => tables.cqi(tables.sinr_db(quality)),
            };
            let mcs = match quality {
                Quality::Mcs(mcs) => Some(mcs),
                _ => None,
            };
            self.last = Some(CqiReport { cqi, mcs, measured });
        }
        self.last
    }

    /// When [`report`](Self::report) may next return something else.
    pub fn next_report(&self, now: Instant) -> Instant {
        if self.channel.is_constant() && self.last.is_some() {
            return Instant::MAX;
        }
        let ReportConfig { period, offset, delay } = self.config;
        match self.measured(now) {
            Some(measured) => measured + period.max(Duration::from_nanos(1)) + delay,
            None => Instant::ZERO + offset + delay,
        }
    }

    /// When the channel was measured for the newest report at `now`.
    fn measured(&self, now: Instant) -> Option<Instant> {
        let ReportConfig { period, offset, delay } = self.config;
        let latest = now.checked_sub(delay)?;
        let since = latest.checked_sub(offset)?.as_nanos();
        latest.checked_sub(Duration::from_nanos(since % period.as_nanos().max(1)))
    }
}
