//! Counters of one direction.

use std::collections::BTreeMap;

use airpath_base::{DropReason, Duration, Histogram, Instant};

use crate::observation::lateness::Lateness;
use crate::observation::live::DirectionSnapshot;
use crate::offload::coalescer::Written;
use crate::run::report::DirectionReport;

/// Counters of one direction.
pub(super) struct DirectionCounts {
    pub(super) entered: u64,
    pub(super) entered_bytes: u64,
    pub(super) left_bytes: u64,
    /// Packets without a destination, or which the model must not see.
    pub(super) ignored: u64,
    /// Packets larger than a slot, or fragments of an unusable size; they never entered.
    oversized: u64,
    /// Size of the largest of them in bytes.
    largest: usize,
    pub(super) written: Written,
    pub(super) marked: u64,
    pub(super) dropped: BTreeMap<DropReason, u64>,
    /// Slots whose packets were written after the slot's end.
    missed_slots: u64,
    missed_slot: Option<u64>,
    /// Packets lost because they were not read in time.
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

    /// Counts packets that do not enter; the largest of those that they represent has `largest`
    /// bytes.
    #[cold]
    pub(super) fn refuse(&mut self, packets: u64, largest: usize) {
        self.oversized += packets;
        self.largest = self.largest.max(largest);
    }

    /// Notes that a packet which left at `at` is written at `now`.
    #[inline]
    pub(super) fn note_slot(&mut self, slot: Option<Duration>, at: Instant, now: Instant) {
        let Some(slot) = slot.filter(|&slot| now.saturating_since(at) > slot) else { return };
        let number = Some(at.as_nanos() / slot.as_nanos().max(1));
        if self.missed_slot != number {
            self.missed_slot = number;
            self.missed_slots += 1;
        }
    }

    /// Updates the snapshot of the direction.
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

    /// The report of the direction.
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
