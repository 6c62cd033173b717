//! Loss detection on the scoreboard: by data SACKed above (RFC 6675 4), by segments that were sent
//! later and have arrived (RFC 8985), and by the retransmission timer.

use std::ops::Range;

use airpath_base::{Duration, Instant};

use super::{Scoreboard, Sent, position};
use crate::sender::rate::RateSampler;

/// RFC 5681 2, RFC 6675 2: number of duplicate acknowledgements that indicate a loss. For
/// retransmissions: number of later transmissions that arrived (RFC 9002 6.1.1, kPacketThreshold),
/// because RFC 6675 alone leaves a lost retransmission to the timer.
pub(crate) const DUP_THRESH: u32 = 3;

/// Reports a loss to the sampler, which exists only with model-based congestion control.
fn note_lost(sampler: &mut Option<RateSampler>, index: usize, segment: &Sent) {
    if let Some(sampler) = sampler {
        sampler.lose(index, (segment.seq, segment.end));
    }
}

impl Scoreboard {
    /// Marks segments lost by RFC 6675 4, IsLost(): `DUP_THRESH` discontiguous ranges, or more than
    /// (`DUP_THRESH` - 1) segments' bytes, were SACKed above. Returns how many.
    #[inline(always)]
    pub(crate) fn detect_loss(&mut self, mss: u32) -> u32 {
        if self.sacked_ranges.is_empty() { 0 } else { self.judge_by_ranges(mss) }
    }

    #[inline(never)]
    fn judge_by_ranges(&mut self, mss: u32) -> u32 {
        let (mut bytes, mut ranges, mut bound) = (0, 0, None);
        for (start, end) in self.sacked_ranges.descending() {
            bytes += end - start;
            ranges += 1;
            if ranges >= DUP_THRESH || bytes > u64::from((DUP_THRESH - 1) * mss) {
                bound = Some(start);
                break;
            }
        }
        let Some(bound) = bound.filter(|&bound| bound > self.judged) else {
            return 0;
        };
        let first = position(&self.segments, self.judged);
        self.judged = bound;
        let mut marked = 0;
        for (index, segment) in (first..).zip(self.segments.range_mut(first..)) {
            if segment.seq >= bound {
                break;
            }
            if !segment.sacked && !segment.lost && !segment.resent {
                segment.lost = true;
                marked += 1;
                self.waiting.set(index);
                note_lost(&mut self.sampler, index, segment);
            }
        }
        self.lose(marked)
    }

    /// Marks retransmissions lost that were overtaken by [`DUP_THRESH`] later transmissions.
    pub(crate) fn detect_lost_retransmissions(&mut self) {
        while let Some(&(seq, order)) = self.under_way.front() {
            if order + u64::from(DUP_THRESH) > self.latest.order {
                break;
            }
            self.under_way.pop_front();
            self.lose_retransmission(seq, order);
        }
    }

    /// Whether nothing outstanding was overtaken:
    /// [`detect_loss_by_time`](Self::detect_loss_by_time) would find nothing lost, and nothing to
    /// wait for.
    #[inline]
    pub(crate) fn is_in_order(&self) -> bool {
        let judged = self.judged.max(self.segments.front().map_or(self.fack, |first| first.seq));
        judged >= self.fack && !self.latest.again && self.under_way.is_empty()
    }

    /// Marks lost, by RFC 8985 6.2 step 5, what was sent before a segment that has arrived and is
    /// overdue by `reordering_window`. Returns how many segments, and how long until all others are
    /// overdue: the timer checks once, at the end. The order of transmission counts, not that of
    /// sequence numbers: a retransmission that has arrived also decides on the tail that was sent
    /// before it.
    pub(crate) fn detect_loss_by_time(
        &mut self,
        now: Instant,
        reordering_window: Duration,
    ) -> (u32, Option<Duration>) {
        let patience = self.latest.rtt + reordering_window;
        let (mut marked, mut waiting_from) = (0, None);
        // Without SACKed segments nothing can be judged.
        self.judged = self.judged.max(self.segments.front().map_or(self.fack, |first| first.seq));
        // Segments sent once were sent in the order of their numbers.
        if self.judged < self.fack || self.latest.again {
            let first = position(&self.segments, self.judged);
            for (index, segment) in (first..).zip(self.segments.range_mut(first..)) {
                if !segment.sacked && !segment.lost && !segment.resent {
                    if segment.order > self.latest.order {
                        break;
                    }
                    if segment.sent_at + patience > now {
                        waiting_from = Some((index, segment.sent_at));
                        break;
                    }
                    segment.lost = true;
                    marked += 1;
                    self.waiting.set(index);
                    note_lost(&mut self.sampler, index, segment);
                    self.resend_from = self.resend_from.min(segment.seq);
                }
                self.judged = segment.end;
            }
        }
        self.lose(marked);
        let mut waits_again = None;
        while let Some(&(seq, order)) = self.under_way.front() {
            if order > self.latest.order {
                break;
            }
            let sent_at = self.retransmission(seq, order).map(|sent| sent.sent_at);
            if sent_at.is_some_and(|at| at + patience > now) {
                waits_again = sent_at;
                break;
            }
            self.under_way.pop_front();
            marked += self.lose_retransmission(seq, order);
        }
        // After an undo, a retransmitted segment counts as sent once: the first may be later than
        // the last.
        let once = waiting_from.map(|(first, at)| self.last_sent_once(first).unwrap_or(at).max(at));
        let again = waits_again.map(|at| self.last_sent_again().unwrap_or(at).max(at));
        let last = once.max(again);
        (marked, last.map(|sent_at| (sent_at + patience).saturating_since(now)))
    }

    /// Time of the latest transmission among segments that were sent once, before the latest one
    /// that has arrived, and are in flight; the segment at `first` is one.
    fn last_sent_once(&self, first: usize) -> Option<Instant> {
        let last_of = |range: Range<usize>| {
            let mut late = self.segments.range(range.start.max(first)..range.end.max(first)).rev();
            let found = late.find(|sent| {
                !sent.sacked && !sent.lost && !sent.resent && sent.order <= self.latest.order
            });
            found.map(|sent| sent.sent_at)
        };
        let mut end = position(&self.segments, self.fack);
        if self.latest.again
            && let Some(found) = last_of(end..self.segments.len())
        {
            return Some(found);
        }
        // Skip SACKed ranges as a whole.
        for (sacked_from, sacked_to) in self.sacked_ranges.descending() {
            if end <= first {
                return None;
            }
            if let Some(found) = last_of(position(&self.segments, sacked_to)..end) {
                return Some(found);
            }
            end = position(&self.segments, sacked_from);
        }
        last_of(first..end)
    }

    /// Time of the latest transmission among retransmissions that were sent before the latest
    /// segment that has arrived, and are in flight.
    fn last_sent_again(&self) -> Option<Instant> {
        let before = self.under_way.partition_point(|&(_, order)| order <= self.latest.order);
        let mut late = self.under_way.range(..before).rev();
        late.find_map(|&(seq, order)| self.retransmission(seq, order)).map(|sent| sent.sent_at)
    }

    /// The segment whose retransmission with this number is in flight.
    fn retransmission(&self, seq: u64, order: u64) -> Option<&Sent> {
        let found = self.segments.get(position(&self.segments, seq));
        found.filter(|sent| sent.order == order && sent.resent)
    }

    fn lose_retransmission(&mut self, seq: u64, order: u64) -> u32 {
        let index = position(&self.segments, seq);
        let Some(segment) = self.segments.get_mut(index) else {
            return 0;
        };
        if segment.order != order || !segment.resent {
            return 0;
        }
        segment.resent = false;
        self.resent -= 1;
        self.resend_from = self.resend_from.min(seq);
        self.waiting.set(index);
        note_lost(&mut self.sampler, index, segment);
        if !segment.lost {
            // A probe (RFC 8985 7): it was not marked lost before.
            segment.lost = true;
            self.lose(1);
        }
        1
    }

    /// Without SACK: counts a duplicate acknowledgement (RFC 5681 3.2). Returns whether this one shows a
    /// loss.
    pub(crate) fn count_duplicate(&mut self) -> bool {
        let limit = self.flight().saturating_sub(1);
        self.duplicates = (self.duplicates + 1).min(limit);
        self.duplicates == DUP_THRESH
    }

    /// Without SACK: resets the count of duplicate acknowledgements.
    pub(crate) fn forget_duplicates(&mut self) {
        self.duplicates = 0;
    }

    /// Without SACK: handles a partial acknowledgement of `acked` segments (RFC 6582 3.2 (3)). All of them
    /// except the retransmission were counted as duplicates before. Returns how many segments are newly shown
    /// to be lost.
    pub(crate) fn acknowledge_partially(&mut self, acked: u32) -> u32 {
        self.duplicates = self.duplicates.saturating_sub(acked - 1);
        self.resend_from = 0;
        self.mark_first_lost()
    }

    /// Marks the first outstanding segment lost (RFC 6582 3.2). Returns 0 if it was already marked.
    pub(crate) fn mark_first_lost(&mut self) -> u32 {
        let Some(segment) = self.segments.front_mut() else {
            return 0;
        };
        let fresh = !segment.lost && !segment.sacked;
        if fresh {
            segment.lost = true;
            let probing = std::mem::take(&mut segment.resent);
            note_lost(&mut self.sampler, 0, segment);
            self.resent -= u32::from(probing);
            self.resend_from = 0;
            self.waiting.set(0);
            self.lose(1);
        }
        u32::from(fresh)
    }

    /// Counts `segments` that were marked and had no retransmission in flight.
    fn lose(&mut self, segments: u32) -> u32 {
        self.lost += segments;
        segments
    }

    /// The retransmission timer expired: everything that was not SACKed is lost, retransmissions
    /// included. With detection by time, only the first segment and what is overdue by the
    /// reordering window are lost (RFC 8985 6.3).
    pub(crate) fn mark_lost_by_timeout(
        &mut self,
        now: Instant,
        reordering_window: Option<Duration>,
    ) {
        let (mut marked, mut lost, mut resent) = (0, 0, 0);
        for (index, segment) in self.segments.iter_mut().enumerate() {
            if segment.sacked {
                continue;
            }
            let recent = reordering_window
                .is_some_and(|window| segment.sent_at + self.latest.rtt + window > now);
            if !recent || index == 0 {
                if !std::mem::replace(&mut segment.lost, true) {
                    marked += 1;
                    note_lost(&mut self.sampler, index, segment);
                }
                segment.resent = false;
            }
            lost += u32::from(segment.lost);
            resent += u32::from(segment.resent);
        }
        self.lose(marked);
        self.lost = lost;
        self.resent = resent;
        self.waiting.clear_all();
        let waiting = self.segments.iter().enumerate().filter(|(_, one)| one.lost && !one.resent);
        waiting.for_each(|(index, _)| self.waiting.set(index));
        self.duplicates = 0;
        self.resend_from = 0;
        if reordering_window.is_none() {
            self.under_way.clear();
            self.judged = self.segments.back().map_or(self.judged, |segment| segment.end);
        }
    }

    /// The congestion event was spurious: unmarks lost segments that have no retransmission in
    /// flight.
    pub(crate) fn unmark_lost(&mut self) {
        for segment in &mut self.segments {
            segment.lost = false;
        }
        self.lost = 0;
        self.waiting.clear_all();
        self.judged = 0;
    }
}
