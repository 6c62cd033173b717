//! What is counted of one direction.

use std::collections::BTreeMap;

use airpath_base::{DropReason, Duration, Histogram, Instant};

use crate::observation::lateness::Lateness;
use crate::observation::live::DirectionSnapshot;
use crate::offload::coalescer::Written;
use crate::run::report::DirectionReport;

/// One direction.
pub(super) struct DirectionCounts {
    pub(super) entered: u64,
    pub(super) entered_bytes: u64,
    pub(super) left_bytes: u64,
    /// Packets that lead nowhere, or that the model is not to see.
    pub(super) ignored: u64,
    /// Packets larger than a slot, or cut too small; never entered.
    oversized: u64,
    /// The largest of them.
    largest: usize,
    pub(super) written: Written,
    pub(super) marked: u64,
    pub(super) dropped: BTreeMap<DropReason, u64>,
    /// Slots after whose end their packets were written.
    missed_slots: u64,
    missed_slot: Option<u64>,
    /// Packets that nobody read in time.
    pub(super) overrun: u64,
}

impl DirectionCounts {
    pub(super) fn new() -> Self {
        Self {
            entered: 0,
            entered_bytes: 0,
            left_bytes: 0,
            ignored: 0,
            oversized: 0,
            largest: 0,
            written: Written::new(),
            marked: 0,
            dropped: BTreeMap::new(),
            missed_slots: 0,
            missed_slot: None,
            overrun: 0,
        }
    }

    /// Packets do not enter; the largest of what they stand for has so many bytes.
    #[cold]
    pub(super) fn refuse(&mut self, packets: u64, largest: usize) {
        self.oversized += packets;
        self.largest = self.largest.max(largest);
    }

    /// A packet that left at `at` is written at `now`.
    #[inline]
    pub(super) fn note_slot(&mut self, slot: Option<Duration>, at: Instant, now: Instant) {
        let Some(slot) = slot.filter(|&slot| now.saturating_since(at) > slot) else { return };
        let number = Some(at.as_nanos() / slot.as_nanos().max(1));
        if self.missed_slot != number {
            self.missed_slot = number;
            self.missed_slots += 1;
        }
    }

    /// Fills in what is shown of it.
    pub(super) fn update(&self, shown: &mut DirectionSnapshot) {
        let us = |late: Option<Duration>| late.map(|late| late.as_nanos() as f64 / 1e3);
        let Written { lateness, packets, refused, .. } = &self.written;
        shown.entered = self.entered;
        (shown.left, shown.left_bytes, shown.refused) = (*packets, self.left_bytes, *refused);
        shown.dropped.clear();
        shown
            .dropped
            .extend(self.dropped.iter().map(|(reason, &packets)| (reason.name(), packets)));
        (shown.late_p99_us, shown.late_max_us) = (us(lateness.quantile(0.99)), us(lateness.max()));
    }

    /// What it comes to.
    pub(super) fn report(&self, host: &Histogram) -> DirectionReport {
        DirectionReport {
            entered: self.entered,
            entered_bytes: self.entered_bytes,
            left: self.written.packets,
            writes: self.written.writes,
            refused: self.written.refused,
            ignored: self.ignored,
            oversized: self.oversized,
            largest_bytes: self.largest,
            dropped: self.dropped.iter().map(|(reason, &n)| (reason.name(), n)).collect(),
            marked: self.marked,
            missed_slots: self.missed_slots,
            overrun: self.overrun,
            lateness_us: Lateness::of(&self.written.lateness),
            host_us: Lateness::of(host),
        }
    }
}
