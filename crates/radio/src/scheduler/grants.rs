//! The base station's view of the uplink: its estimate of waiting data, and unrequested grants.

use airpath_base::{Duration, Instant};

use crate::mac::Occasions;
use crate::mac::bsr::{BsrFormat, BsrReport, GROUPS};

/// How a base station interprets requests and reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EstimateConfig {
    /// Bytes granted to a UE about which only a scheduling request is known.
    pub request_grant: u32,
    /// Time without any message from the UE after which its last report no longer counts. `None`:
    /// it always counts.
    pub forget_after: Option<Duration>,
    /// Whether a block without a report, and without room for one, is assumed to hide more data.
    pub assume_more: bool,
    /// Fewest PRBs of a grant for new data.
    pub least_prbs: u32,
    /// Highest MCS of a grant for a UE about which only a scheduling request is known.
    pub request_mcs: Option<u8>,
    /// Whether a grant has room for headers, which a report does not include.
    pub header_room: bool,
    /// Which scheduling requests are answered.
    pub requests: Requests,
    /// Whether a report that HARQ delivers late replaces a newer one.
    pub late_reports: bool,
}

/// Which scheduling requests a base station answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Requests {
    /// Those that arrive while nothing is granted: a block that is under way will have a report.
    #[default]
    Unexpected,
    /// All of them, unless a report asks for a grant first.
    All,
}

impl Default for EstimateConfig {
    fn default() -> Self {
        Self {
            request_grant: 100,
            forget_after: None,
            assume_more: true,
            least_prbs: 1,
            request_mcs: None,
            header_room: true,
            requests: Requests::default(),
            late_reports: false,
        }
    }
}

/// The base station's estimate of one UE's uplink buffer.
///
/// It is set by reports and reduced by grants. It is inexact because of the tables' steps, data
/// that arrived at the UE since, and headers that grants must hold too.
#[derive(Clone, Debug)]
pub struct BufferEstimate {
    config: EstimateConfig,
    format: BsrFormat,
    groups: [u64; GROUPS],
    /// Bytes granted and not received yet.
    outstanding: u64,
    requested: bool,
    /// When the UE was last received, and when the report that counts was made.
    last_received: Instant,
    reported: Instant,
}

impl BufferEstimate {
    /// An empty buffer.
    pub fn new(config: EstimateConfig, format: BsrFormat) -> Self {
        Self {
            config,
            format,
            groups: [0; GROUPS],
            outstanding: 0,
            requested: false,
            last_received: Instant::ZERO,
            reported: Instant::ZERO,
        }
    }

    /// A scheduling request was received, whether it is [answered](Requests) or not.
    pub fn on_scheduling_request(&mut self, now: Instant) {
        // A request sent before a grant could reach the UE asks for nothing more.
        if self.outstanding == 0 || self.config.requests == Requests::All {
            self.on_request(now);
        }
    }

    /// The UE asks for a grant, and how much it needs is not known.
    pub fn on_request(&mut self, now: Instant) {
        self.forget(now);
        self.last_received = now;
        self.requested = true;
    }

    /// `bytes` were granted: by DCI, in advance, or by a configured grant.
    pub fn on_grant(&mut self, now: Instant, bytes: u32) {
        self.forget(now);
        self.requested = false;
        self.outstanding += u64::from(bytes);
        self.reduce(u64::from(bytes));
    }

    /// The transport block of a grant of `bytes` bytes was received, or given up.
    pub fn on_transport_block(&mut self, now: Instant, bytes: u32) {
        self.last_received = self.last_received.max(now);
        self.outstanding = self.outstanding.saturating_sub(u64::from(bytes));
    }

    /// The block of a grant of `bytes` bytes was received, and contains a report that the UE made
    /// at `assembled`. A report older than the last one is ignored: HARQ may deliver them out of
    /// order.
    pub fn on_report(&mut self, now: Instant, bytes: u32, assembled: Instant, report: &BsrReport) {
        self.on_transport_block(now, bytes);
        if assembled < self.reported && !self.config.late_reports {
            return;
        }
        self.reported = assembled;
        self.requested &= self.config.requests == Requests::All;
        for (group, level) in self.groups.iter_mut().zip(&report.levels) {
            match level {
                Some(level) => *group = self.format.estimate(report.kind, *level),
                // TS 38.321 5.4.5: Short and Long report all groups that have data
                None if !report.kind.is_truncated() => *group = 0,
                None => {}
            }
        }
        // Grants given since then will reduce what was reported.
        self.reduce(self.outstanding);
    }

    /// A block of `bytes` bytes arrived without a report and without room for one, which would have
    /// replaced padding. So there may be more data; unless something better is known, as much again
    /// is assumed.
    pub fn on_full_block(&mut self, now: Instant, bytes: u32) {
        if !self.config.assume_more {
            return;
        }
        self.on_request(now);
        if self.bytes() == 0 {
            self.groups[0] = u64::from(bytes).saturating_sub(self.outstanding);
        }
    }

    /// Bytes to grant now, without headers.
    pub fn wanted(&mut self, now: Instant) -> u64 {
        self.forget(now);
        let request = if self.requested { u64::from(self.config.request_grant) } else { 0 };
        match self.bytes() {
            reported @ 1.. if self.config.requests == Requests::All => reported,
            reported => reported.max(request),
        }
    }

    /// Bytes to grant now, with headers.
    pub fn grant(&mut self, now: Instant) -> u64 {
        let wanted = self.wanted(now);
        match self.bytes() {
            bytes @ 1.. if self.config.header_room => {
                wanted.max(bytes + bytes / 16 + GRANT_HEADERS)
            }
            _ => wanted,
        }
    }

    /// The MCS of a grant for new data, if link adaptation allows `mcs`.
    pub fn grant_mcs(&self, mcs: u8) -> u8 {
        let limit = self.config.request_mcs.filter(|_| self.requested && self.bytes() == 0);
        limit.map_or(mcs, |limit| limit.min(mcs))
    }

    /// Fewest PRBs of a grant for new data.
    pub fn least_prbs(&self) -> u32 {
        self.config.least_prbs
    }

    /// A retransmission was granted. Whoever answers [all](Requests::All) requests with the next
    /// grant has answered.
    pub fn on_retransmission(&mut self) {
        self.requested &= self.config.requests != Requests::All;
    }

    /// Whether there may be something to [grant](Self::wanted).
    pub fn may_want(&self) -> bool {
        self.requested || self.bytes() > 0
    }

    /// Bytes that wait and are not granted, according to this estimate.
    pub fn bytes(&self) -> u64 {
        self.groups.iter().sum()
    }

    /// Bytes granted and not received yet.
    pub fn outstanding(&self) -> u64 {
        self.outstanding
    }

    fn reduce(&mut self, mut bytes: u64) {
        for group in &mut self.groups {
            let taken = bytes.min(*group);
            *group -= taken;
            bytes -= taken;
        }
    }

    fn forget(&mut self, now: Instant) {
        let age = now.saturating_since(self.last_received);
        if self.config.forget_after.is_some_and(|limit| age > limit) {
            self.groups = [0; GROUPS];
        }
    }
}

/// Bytes added to a grant for headers, in addition to a sixteenth of the waiting data.
const GRANT_HEADERS: u64 = 16;

/// Recurring grants: configured grant type 1 (TS 38.321 5.8.2), or dynamic ones given in advance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeriodicGrant {
    /// Occasions of their transmissions on PUSCH.
    pub occasions: Occasions,
    /// Size of each grant in bytes.
    pub bytes: u32,
    /// Only given until this long after the UE last sent something; `None`: always. A configured
    /// grant is always there.
    pub keep: Option<Duration>,
}

impl PeriodicGrant {
    /// The first occasion at `now` or later for a UE that last sent data at `active`. It costs
    /// nothing until the UE has data: call it then.
    pub fn next(&self, now: Instant, active: Option<Instant>) -> Option<Instant> {
        let next = self.occasions.at_or_after(now);
        match self.keep {
            None => Some(next),
            Some(keep) => active.filter(|&active| next <= active + keep).map(|_| next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Generation;
    use crate::mac::bsr::{BsrKind, BsrTables};

    const FORMAT: BsrFormat = BsrFormat {
        generation: Generation::Nr,
        tables: BsrTables { short: &[0, 100, 1000], long: &[0, 50, 100, 500, 1000] },
    };

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn estimate() -> BufferEstimate {
        let forget_after = Some(Duration::from_millis(200));
        let config =
            EstimateConfig { request_grant: 60, forget_after, ..EstimateConfig::default() };
        BufferEstimate::new(config, FORMAT)
    }

    fn report(kind: BsrKind, levels: &[(usize, u8)]) -> BsrReport {
        let mut report = BsrReport { kind, levels: [None; GROUPS] };
        levels.iter().for_each(|&(group, level)| report.levels[group] = Some(level));
        report
    }

    #[test]
    fn a_request_gets_a_small_grant_and_a_report_the_rest() {
        let mut estimate = estimate();
        assert_eq!(estimate.wanted(at(0)), 0);
        estimate.on_request(at(1));
        assert_eq!(estimate.wanted(at(1)), 60);
        estimate.on_grant(at(1), 60);
        assert_eq!(estimate.wanted(at(2)), 0);
        estimate.on_report(at(5), 60, at(4), &report(BsrKind::Short, &[(3, 2)]));
        assert_eq!((estimate.wanted(at(5)), estimate.outstanding()), (1000, 0));
        estimate.on_grant(at(5), 700);
        assert_eq!((estimate.wanted(at(5)), estimate.outstanding()), (300, 700));
    }

    #[test]
    fn grants_under_way_count_against_a_report() {
        let mut estimate = estimate();
        estimate.on_grant(at(1), 60);
        estimate.on_grant(at(2), 400);
        estimate.on_report(at(5), 60, at(4), &report(BsrKind::Short, &[(0, 2)]));
        assert_eq!(estimate.wanted(at(5)), 600);
        // Lost or received, it is no longer in transit.
        estimate.on_transport_block(at(6), 400);
        assert_eq!(estimate.outstanding(), 0);
    }

    #[test]
    fn groups_not_reported_are_empty_unless_the_report_is_truncated() {
        let mut estimate = estimate();
        estimate.on_report(at(1), 0, at(1), &report(BsrKind::Long, &[(0, 1), (6, 3), (7, 4)]));
        assert_eq!(estimate.bytes(), 50 + 500 + 1000);
        estimate.on_report(at(2), 0, at(2), &report(BsrKind::ShortTruncated, &[(0, 0)]));
        assert_eq!(estimate.bytes(), 500 + 1000);
        // An older report is late.
        estimate.on_report(at(3), 0, at(1), &report(BsrKind::Short, &[(7, 0)]));
        assert_eq!(estimate.bytes(), 500 + 1000);
        estimate.on_report(at(4), 0, at(4), &report(BsrKind::Short, &[(6, 1)]));
        assert_eq!(estimate.bytes(), 100);
    }

    #[test]
    fn what_is_old_is_forgotten() {
        let mut estimate = estimate();
        estimate.on_report(at(10), 0, at(9), &report(BsrKind::Short, &[(0, 2)]));
        assert_eq!(estimate.wanted(at(210)), 1000);
        assert_eq!(estimate.wanted(at(211)), 0);
    }

    #[test]
    fn a_full_block_without_a_report_hides_as_much_again() {
        let mut estimate = estimate();
        estimate.on_grant(at(0), 800);
        estimate.on_transport_block(at(4), 800);
        estimate.on_full_block(at(4), 800);
        assert_eq!(estimate.wanted(at(4)), 800);
        estimate.on_grant(at(5), 800);
        estimate.on_report(at(9), 800, at(8), &report(BsrKind::Short, &[(0, 0)]));
        assert_eq!(estimate.wanted(at(9)), 0);
        // A report replaces what was assumed.
        estimate.on_report(at(10), 0, at(10), &report(BsrKind::Short, &[(0, 1)]));
        estimate.on_full_block(at(11), 800);
        assert_eq!(estimate.wanted(at(11)), 100);
    }

    #[test]
    fn who_goes_by_reports_alone_grants_nothing_after_a_full_block() {
        let config =
            EstimateConfig { request_grant: 60, assume_more: false, ..EstimateConfig::default() };
        let mut estimate = BufferEstimate::new(config, FORMAT);
        estimate.on_grant(at(0), 800);
        estimate.on_transport_block(at(4), 800);
        estimate.on_full_block(at(4), 800);
        assert_eq!(estimate.wanted(at(4)), 0);
    }

    #[test]
    fn grants_in_advance_stop_with_the_traffic() {
        let ms = Duration::from_millis;
        let occasions = Occasions::new(ms(8), ms(3));
        let configured = PeriodicGrant { occasions, bytes: 100, keep: None };
        assert_eq!(configured.next(at(4), None), Some(at(11)));
        let proactive = PeriodicGrant { keep: Some(ms(20)), ..configured };
        assert_eq!(proactive.next(at(4), None), None);
        assert_eq!(proactive.next(at(4), Some(at(0))), Some(at(11)));
        assert_eq!(proactive.next(at(20), Some(at(0))), None);
    }
}
