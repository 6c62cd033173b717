//! Buffer status reports: how a UE tells the base station how much data waits (TS 38.321 5.4.5, TS
//! 36.321 5.4.5).

mod format;
mod sizes;
#[cfg(test)]
mod tests;

use airpath_base::{Duration, Instant};

use super::earliest;
use crate::Generation;
pub use format::{BsrFormat, BsrKind, BsrReport, BsrTables, GROUPS};
pub use sizes::BufferSizeTable;

/// The RRC configuration (BSR-Config, LogicalChannelConfig), and what is left to the UE.
#[derive(Clone, PartialEq, Debug)]
pub struct BsrConfig {
    /// Control elements and tables: LTE's or NR's.
    pub format: BsrFormat,
    /// The logical channels that belong to a group, at least one.
    pub channels: Vec<LogicalChannel>,
    /// periodicBSR-Timer; `None` is infinity.
    pub periodic: Option<Duration>,
    /// retxBSR-Timer.
    pub retransmission: Duration,
    /// logicalChannelSR-DelayTimer (LTE: logicalChannelSR-ProhibitTimer).
    pub request_delay: Duration,
    /// When a report is sent although none was triggered.
    pub piggyback: Piggyback,
    /// What triggers a Regular BSR, besides retxBSR-Timer.
    pub regular: RegularTrigger,
}

/// What triggers a Regular BSR.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RegularTrigger {
    /// As specified: data for a channel with more priority than all that have data.
    #[default]
    NewData,
    /// Data that waits, in every slot: each block that the UE sends has a report, and as long as
    /// data waits the UE requests uplink at every occasion at which it has no PUSCH.
    WaitingData,
}

/// One logical channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogicalChannel {
    /// logicalChannelGroup, below [`GROUPS`] (4 in LTE).
    pub group: u8,
    /// Priority; 1 is the highest.
    pub priority: u8,
    /// logicalChannelSR-DelayTimerApplied.
    pub delays_request: bool,
    /// logicalChannelSR-Mask: a configured grant makes a scheduling request unnecessary.
    pub masks_request: bool,
}

/// Reports that were not triggered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Piggyback {
    /// As specified: only in place of padding.
    #[default]
    Padding,
    /// In every transport block that can hold one, before the data.
    Always,
}

/// The uplink resource that the UE has for new data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UplinkResource {
    /// No resource.
    None,
    /// A dynamic grant that is not used up.
    Granted,
    /// A configured grant.
    Configured,
}

/// Why a report is sent: the first reason that applies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BsrTrigger {
    /// New data, or retxBSR-Timer.
    Regular,
    /// periodicBSR-Timer.
    Periodic,
    /// [`Piggyback::Always`].
    Piggyback,
    /// There is room that nothing else uses.
    Padding,
}

impl BsrTrigger {
    /// Name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Regular => "regular",
            Self::Periodic => "periodic",
            Self::Piggyback => "piggyback",
            Self::Padding => "padding",
        }
    }
}

/// The report for a transport block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BsrPlan {
    /// Why it is sent.
    pub trigger: BsrTrigger,
    /// Control element of the report.
    pub kind: BsrKind,
    /// Size of the report in bytes, including the subheader.
    pub bytes: u32,
    /// The groups that it covers, one bit each.
    groups: u8,
}

/// The procedure of one UE.
///
/// 1. Call [`on_available`](Self::on_available) whenever a channel's data changes;
/// 2. if [`wants_request`](Self::wants_request) returns true, trigger a scheduling request; ask
///    again at [`next_event`](Self::next_event);
/// 3. for a transport block call [`plan`](Self::plan), fill the rest with data, report what remains
///    by `on_available`, and call [`assemble`](Self::assemble).
#[derive(Clone, Debug)]
pub struct BufferStatus {
    config: BsrConfig,
    /// Waiting bytes of each channel.
    available: Vec<u64>,
    /// Waiting bytes of all channels.
    total: u64,
    /// The channel for which a Regular BSR was triggered and not cancelled.
    regular: Option<usize>,
    delayed_until: Option<Instant>,
    retransmits_at: Option<Instant>,
    periodic_at: Option<Instant>,
}

impl BufferStatus {
    /// A UE without data and triggers.
    pub fn new(config: &BsrConfig) -> Self {
        Self {
            available: vec![0; config.channels.len()],
            total: 0,
            config: config.clone(),
            regular: None,
            delayed_until: None,
            retransmits_at: None,
            periodic_at: None,
        }
    }

    /// The data available for transmission in `channel` (an index) is now `bytes`, counted as in TS
    /// 38.322 5.5 and TS 38.323 5.6.
    pub fn on_available(&mut self, now: Instant, channel: usize, bytes: u64) {
        self.settle(now);
        let before = self.available[channel];
        if bytes > before && self.triggers(channel) {
            self.trigger_regular(now, channel);
        }
        self.available[channel] = bytes;
        self.total = self.total - before + bytes;
    }

    /// A grant for new data was received.
    pub fn on_grant(&mut self, now: Instant) {
        self.settle(now);
        // TS 38.321 5.4.5: restart retxBSR-Timer upon reception of a grant for new data
        if self.retransmits_at.is_some() {
            self.retransmits_at = Some(now + self.config.retransmission);
        }
    }

    /// Whether a scheduling request must be triggered, given the available `resource`.
    pub fn wants_request(&mut self, now: Instant, resource: UplinkResource) -> bool {
        self.settle(now);
        // TS 38.321 5.4.5: a Regular BSR is triggered, logicalChannelSR-DelayTimer does not run,
        let Some(channel) = self.regular.filter(|_| self.delayed_until.is_none()) else {
            return false;
        };
        // and there is no UL-SCH resource, or only a configured grant that does not replace it
        match resource {
            UplinkResource::None => true,
            UplinkResource::Granted => self.repeats_requests(),
            UplinkResource::Configured => !self.config.channels[channel].masks_request,
        }
    }

    /// When [`wants_request`](Self::wants_request) may change without anything else happening.
    pub fn next_event(&self) -> Option<Instant> {
        let retransmits = self.retransmits_at.filter(|_| self.has_data());
        earliest(self.delayed_until.filter(|_| self.regular.is_some()), retransmits)
    }

    /// The report that a transport block of `size` bytes must carry, if all waiting data would take
    /// `needed` bytes with subheaders.
    ///
    /// Without data, and with a report in place of padding, the whole block is padding: a UE
    /// configured with skipUplinkTxDynamic then sends nothing.
    pub fn plan(&mut self, now: Instant, size: u32, needed: u64) -> Option<BsrPlan> {
        self.settle(now);
        let periodic = self.periodic_at.is_some_and(|at| at <= now);
        let trigger = if self.regular.is_some() {
            BsrTrigger::Regular
        } else if periodic {
            BsrTrigger::Periodic
        } else if self.config.piggyback == Piggyback::Always {
            BsrTrigger::Piggyback
        } else {
            return self.plan_padding(size, needed);
        };
        let groups = self.groups_with_data();
        let kind = if groups.count_ones() > 1 { BsrKind::Long } else { BsrKind::Short };
        let bytes = self.config.format.bytes(kind, groups.count_ones());
        let all_fits = u64::from(size) >= needed;
        if all_fits && u64::from(size) < needed + u64::from(bytes) && self.has_data() {
            // TS 38.321 5.4.5: the grant holds all pending data but not the BSR: cancelled
            self.cancel(periodic);
            return None;
        }
        (size >= bytes).then_some(BsrPlan { trigger, kind, bytes, groups })
    }

    /// The transport block is assembled; the last call of [`on_available`](Self::on_available) gave
    /// what remains after it, and the report contains that amount.
    pub fn assemble(&mut self, now: Instant, plan: BsrPlan) -> BsrReport {
        self.settle(now);
        let BsrPlan { kind, groups, .. } = plan;
        let mut report = BsrReport { kind, levels: [None; GROUPS] };
        for (group, level) in (0..).zip(&mut report.levels) {
            if groups & (1 << group) != 0 {
                *level = Some(self.config.format.level(kind, self.bytes_of(group)));
            }
        }
        // TS 38.321 5.4.5: restart periodicBSR-Timer except for truncated BSRs, retxBSR-Timer
        self.retransmits_at = Some(now + self.config.retransmission);
        if !kind.is_truncated() {
            self.periodic_at = self.config.periodic.map(|timer| now + timer);
            self.regular = None;
            if self.repeats_requests()
                && let Some(channel) = self.first_with_data()
            {
                self.trigger_regular(now, channel);
            }
        }
        report
    }

    /// Whether the UE requests uplink while data waits, also if it has a grant for a later slot.
    pub fn repeats_requests(&self) -> bool {
        self.config.regular == RegularTrigger::WaitingData
    }

    /// MAC reset (TS 38.321 5.12): timers stop, triggers are cancelled. The data stays.
    pub fn reset(&mut self) {
        self.regular = None;
        self.delayed_until = None;
        self.retransmits_at = None;
        self.periodic_at = None;
    }

    /// Bytes that wait in all channels.
    #[inline]
    pub fn available(&self) -> u64 {
        debug_assert_eq!(self.total, self.available.iter().sum::<u64>());
        self.total
    }

    /// Handles timers that expired by `now`.
    fn settle(&mut self, now: Instant) {
        if self.delayed_until.is_some_and(|at| at <= now) {
            self.delayed_until = None;
        }
        if let Some(at) = self.retransmits_at.filter(|&at| at <= now) {
            self.retransmits_at = None;
            // TS 38.321 5.4.5: retxBSR-Timer expires and there is data: Regular BSR, for the
            // highest priority channel that has data
            if let Some(channel) = self.first_with_data() {
                self.trigger_regular(at, channel);
                self.delayed_until = self.delayed_until.filter(|&until| until > now);
            }
        }
    }

    fn trigger_regular(&mut self, now: Instant, channel: usize) {
        self.regular = Some(channel);
        // TS 38.321 5.4.5: (re)start or stop logicalChannelSR-DelayTimer
        let delays = self.config.channels[channel].delays_request;
        self.delayed_until = delays.then(|| now + self.config.request_delay);
    }

    /// Whether new data in `channel` triggers a Regular BSR.
    fn triggers(&self, channel: usize) -> bool {
        // TS 38.321 5.4.5: higher priority than any channel with data, or there is none
        let priority = self.config.channels[channel].priority;
        self.first_with_data().is_none_or(|first| priority < self.config.channels[first].priority)
    }

    /// TS 38.321 5.4.5: plans a Padding BSR.
    fn plan_padding(&self, size: u32, needed: u64) -> Option<BsrPlan> {
        let room = u32::try_from(u64::from(size).checked_sub(needed)?).ok()?;
        let mut groups = self.groups_with_data();
        let format = &self.config.format;
        let count = groups.count_ones();
        let short = format.bytes(BsrKind::Short, count);
        let kind = if room < short {
            return None;
        } else if room >= format.bytes(BsrKind::Long, count) {
            BsrKind::Long
        } else if count <= 1 {
            BsrKind::Short
        } else if room == short || format.generation == Generation::Lte {
            BsrKind::ShortTruncated
        } else {
            BsrKind::LongTruncated
        };
        if kind.is_truncated() {
            groups = self.first_groups(format.groups_in(kind, room));
        }
        let bytes = format.bytes(kind, groups.count_ones());
        Some(BsrPlan { trigger: BsrTrigger::Padding, kind, bytes, groups })
    }

    fn cancel(&mut self, periodic: bool) {
        self.regular = None;
        if periodic {
            self.periodic_at = None;
        }
    }

    fn has_data(&self) -> bool {
        self.available() > 0
    }

    /// The channel with data that has the highest priority; among equals the first.
    fn first_with_data(&self) -> Option<usize> {
        let with_data = (0..self.available.len()).filter(|&channel| self.available[channel] > 0);
        with_data.min_by_key(|&channel| self.config.channels[channel].priority)
    }

    fn bytes_of(&self, group: u8) -> u64 {
        let channels = self.config.channels.iter().zip(&self.available);
        channels.filter(|(channel, _)| channel.group == group).map(|(_, bytes)| bytes).sum()
    }

    fn groups_with_data(&self) -> u8 {
        let channels = self.config.channels.iter().zip(&self.available);
        channels
            .filter(|(_, bytes)| **bytes > 0)
            .fold(0, |set, (channel, _)| set | 1 << channel.group)
    }

    /// The `count` groups with data whose highest priority channel, with or without data, is
    /// highest; then by number.
    fn first_groups(&self, count: u32) -> u8 {
        let mut candidates = self.groups_with_data();
        let mut chosen = 0;
        for _ in 0..count.min(candidates.count_ones()) {
            let priority = |group: &u8| {
                let channels = self.config.channels.iter().filter(|c| c.group == *group);
                channels.map(|channel| channel.priority).min()
            };
            let groups = (0..GROUPS as u8).filter(|group| candidates & (1 << group) != 0);
            if let Some(first) = groups.min_by_key(priority) {
                chosen |= 1 << first;
                candidates &= !(1 << first);
            }
        }
        chosen
    }
}
