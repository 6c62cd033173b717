//! The scoreboard: what is outstanding, and what has been SACKed (RFC 6675).

mod loss;
mod waiting;

use std::collections::VecDeque;

use airpath_base::{Duration, Instant, MAX_SACK_BLOCKS, push_tightly};

use super::rate::RateSampler;
use crate::congestion::{LostSegment, RateSample};
use crate::ranges::Ranges;

pub(crate) use loss::DUP_THRESH;
use waiting::Waiting;

/// One transmitted segment, `[seq, end)` of sequence space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) seq: u64,
    pub(crate) end: u64,
    /// Time of the last transmission.
    pub(crate) sent_at: Instant,
    /// Number of the last transmission; transmissions are counted.
    pub(crate) order: u64,
    /// The last byte of sequence space is a FIN.
    pub(crate) fin: bool,
    /// Whether it is the first of a burst, or was retransmitted by itself.
    pub(crate) begins_burst: bool,
    pub(crate) sacked: bool,
    pub(crate) lost: bool,
    /// Whether a retransmission is in flight.
    pub(crate) resent: bool,
    /// Whether it was ever retransmitted: its RTT is ambiguous (Karn).
    pub(crate) ambiguous: bool,
}

impl Sent {
    /// A segment that is sent for the first time; the scoreboard numbers it.
    #[inline(always)]
    pub(crate) const fn new(seq: u64, end: u64, sent_at: Instant) -> Self {
        Self {
            seq,
            end,
            sent_at,
            order: 0,
            fin: false,
            begins_burst: true,
            sacked: false,
            lost: false,
            resent: false,
            ambiguous: false,
        }
    }

    /// Whether it is anything but sent once and in flight.
    #[inline]
    fn is_marked(&self) -> bool {
        // Avoids a branch for each.
        self.sacked | self.lost | self.resent | self.ambiguous
    }
}

/// Outstanding segments in order of sequence. Every operation is amortised O(1) per segment, except
/// for the search that a new SACK block needs, which is O(log n).
#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    segments: VecDeque<Sent>,
    sacked_ranges: Ranges,
    /// The blocks reported last: repeated, they contain nothing new.
    told: [(u64, u64); MAX_SACK_BLOCKS],
    sacked: u32,
    lost: u32,
    resent: u32,
    /// Outstanding segments that were ever retransmitted.
    ambiguous: u32,
    /// Segments that are lost and have no retransmission in flight.
    waiting: Waiting,
    /// Bursts of which some data is outstanding.
    bursts: u32,
    /// Segments below this offset have been judged: SACKed, lost, or retransmitted.
    judged: u64,
    /// No segment below this offset waits to be retransmitted.
    resend_from: u64,
    /// Transmissions so far.
    transmissions: u64,
    latest: Latest,
    /// Highest byte known to have arrived (RACK.fack), and its value before the acknowledgement
    /// being processed.
    fack: u64,
    prior_fack: u64,
    /// A segment that was sent once arrived after one with higher numbers (RACK.reordering_seen).
    reordering_seen: bool,
    /// Largest distance by which data that arrived earlier reached above such a segment, in bytes.
    reordering: u64,
    /// Retransmissions in flight, oldest first: offset and transmission number.
    under_way: VecDeque<(u64, u64)>,
    /// Without SACK: duplicate acknowledgements stand for SACKed segments (RFC 6582).
    duplicates: u32,
    /// Delivery rate, for model-based congestion control.
    sampler: Option<RateSampler>,
}

/// The latest transmission known to have arrived (RACK.segment), and RACK.rtt.
#[derive(Clone, Copy, Default, Debug)]
struct Latest {
    order: u64,
    /// RTT of the segment that the last acknowledgement updated last, which need not be the latest
    /// (RFC 8985 6.2 step 2). Seen with Linux 6.18: SACKed segments come first, in the order of
    /// their numbers, then those that are acknowledged cumulatively.
    rtt: Duration,
    /// End of the SACKed segment that gave `rtt`.
    sacked: u64,
    /// Whether it was a retransmission: segments with higher numbers may have been sent before it.
    again: bool,
}

/// What the processing of an acknowledgement needs besides sequence numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) now: Instant,
    /// Smallest RTT: if a retransmission is acknowledged faster, it was the original that arrived.
    pub(crate) min_rtt: Duration,
    /// After a time-out: end of what had been sent when the retransmission timer expired.
    pub(crate) loss_point: Option<u64>,
}

impl Arrival {
    /// Whether the segment was first sent before the retransmission timer expired.
    fn is_older(&self, segment: &Sent) -> bool {
        self.loss_point.is_some_and(|point| segment.end <= point)
    }
}

/// What an acknowledgement delivered, in segments.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Acked {
    /// Segments acknowledged cumulatively.
    pub(crate) segments: u32,
    /// Those of `segments` that were not known to be delivered before.
    pub(crate) fresh: u32,
    /// Segments newly known to be delivered, by SACK too.
    pub(crate) delivered: u32,
    /// Transmission time of the first segment that was acknowledged cumulatively and not SACKed
    /// before; `None` if any of them was retransmitted (Karn's rule).
    pub(crate) first_sent: Option<Instant>,
    /// Transmission time of the last such segment; `None` if any of them was retransmitted.
    pub(crate) last_sent: Option<Instant>,
    /// Transmission times of the first and the last newly SACKed segment that were sent once.
    pub(crate) sacked_sent: Option<(Instant, Instant)>,
    /// A segment sent once, before the time-out, arrived (RFC 5682 2.1 (3b)).
    pub(crate) original: bool,
}

impl Scoreboard {
    pub(crate) fn new(samples_rate: bool) -> Self {
        Self { sampler: samples_rate.then(RateSampler::default), ..Self::default() }
    }

    #[inline]
    pub(crate) fn push(&mut self, mut sent: Sent) {
        if self.sampler.is_some() {
            let pipe = self.pipe();
            self.sampler.iter_mut().for_each(|sampler| sampler.push(sent.sent_at, pipe));
        }
        self.transmissions += 1;
        sent.order = self.transmissions;
        self.bursts += u32::from(sent.begins_burst);
        push_tightly(&mut self.segments, sent);
    }

    /// Segments sent and not cumulatively acknowledged.
    #[inline]
    pub(crate) fn flight(&self) -> u32 {
        self.segments.len() as u32
    }

    /// Bursts of which some data is outstanding; a retransmitted segment counts as one.
    #[inline]
    pub(crate) fn bursts(&self) -> u32 {
        self.bursts
    }

    /// RFC 6675 "pipe", in segments.
    #[inline]
    pub(crate) fn pipe(&self) -> u32 {
        let gone = self.sacked + self.lost + self.duplicates;
        (self.flight() + self.resent).saturating_sub(gone)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    #[inline]
    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    #[inline]
    pub(crate) fn sacked(&self) -> u32 {
        self.sacked + self.duplicates
    }

    /// Retransmissions in flight.
    #[inline]
    pub(crate) fn resent(&self) -> u32 {
        self.resent
    }

    /// Whether something lost has not been retransmitted.
    #[inline]
    pub(crate) fn waits_to_resend(&self) -> bool {
        self.waiting.count() > 0
    }

    /// Time of the last transmission of the first outstanding segment.
    #[inline]
    pub(crate) fn first_sent_at(&self) -> Option<Instant> {
        self.segments.front().map(|segment| segment.sent_at)
    }

    pub(crate) fn reordering_seen(&self) -> bool {
        self.reordering_seen
    }

    /// Whether segments were overtaken by more than [`DUP_THRESH`] others.
    pub(crate) fn reorders_far(&self, mss: u32) -> bool {
        self.reordering > u64::from(DUP_THRESH * mss)
    }

    /// Forgets reordering after a time-out: it may have been loss.
    pub(crate) fn forget_reordering(&mut self) {
        self.reordering = 0;
    }

    /// Processes a cumulative acknowledgement: everything below `ack` has arrived.
    #[inline]
    pub(crate) fn acknowledge(&mut self, ack: u64, arrival: &Arrival) -> Acked {
        self.prior_fack = self.fack;
        self.latest.sacked = 0;
        let mut acked = Acked::default();
        let mut ambiguous = false;
        while let Some(segment) = self.segments.front_mut() {
            if segment.end > ack {
                // Only a part of a segment: keep the rest.
                segment.seq = segment.seq.max(ack);
                break;
            }
            acked.segments += 1;
            self.bursts -= u32::from(segment.begins_burst);
            let mut waits = false;
            if segment.is_marked() {
                ambiguous |= segment.ambiguous;
                self.ambiguous -= u32::from(segment.ambiguous);
                self.sacked -= u32::from(segment.sacked);
                self.lost -= u32::from(segment.lost);
                self.resent -= u32::from(segment.resent);
                waits = segment.lost && !segment.resent;
            }
            if !segment.sacked {
                acked.first_sent.get_or_insert(segment.sent_at);
                acked.last_sent = Some(segment.sent_at);
                acked.fresh += 1;
                self.latest.update(segment, arrival, true);
                if !segment.ambiguous {
                    acked.original |= arrival.is_older(segment);
                    if segment.end < self.prior_fack {
                        self.reordering_seen = true;
                        self.reordering = self.reordering.max(self.prior_fack - segment.seq);
                    }
                }
            }
            if let Some(sampler) = &mut self.sampler {
                if !segment.sacked {
                    sampler.deliver(0, segment.sent_at, arrival.now);
                }
                sampler.pop();
            }
            self.waiting.pop(waits);
            self.segments.pop_front();
        }
        acked.delivered = acked.fresh;
        if ambiguous {
            (acked.first_sent, acked.last_sent) = (None, None);
        }
        self.fack = self.fack.max(ack);
        if !self.sacked_ranges.is_empty() {
            self.sacked_ranges.remove_below(ack);
        }
        acked
    }

    /// Whether none of what is outstanding above `una` was ever retransmitted, SACKed or marked
    /// lost, and nothing above it has arrived.
    #[inline]
    pub(crate) fn is_undisturbed(&self, una: u64) -> bool {
        (self.sacked | self.lost | self.ambiguous | self.duplicates) == 0
            && self.fack <= una
            && !self.latest.again
            && self.under_way.is_empty()
            && self.sacked_ranges.is_empty()
    }

    /// Does what [`acknowledge`](Self::acknowledge) does, for a scoreboard that is
    /// [undisturbed](Self::is_undisturbed).
    #[inline]
    pub(crate) fn acknowledge_undisturbed(&mut self, ack: u64, now: Instant) -> Acked {
        self.prior_fack = self.fack;
        self.latest.sacked = 0;
        let mut acked = Acked::default();
        while let Some(segment) = self.segments.front_mut() {
            if segment.end > ack {
                segment.seq = segment.seq.max(ack);
                break;
            }
            acked.segments += 1;
            acked.first_sent.get_or_insert(segment.sent_at);
            acked.last_sent = Some(segment.sent_at);
            // They were sent in the order of their numbers.
            self.latest.order = self.latest.order.max(segment.order);
            self.bursts -= u32::from(segment.begins_burst);
            self.segments.pop_front();
        }
        if let Some(sent) = acked.last_sent {
            self.latest.rtt = now.saturating_since(sent);
        }
        (acked.fresh, acked.delivered) = (acked.segments, acked.segments);
        self.waiting.pop_idle(acked.segments);
        self.fack = ack;
        acked
    }

    /// Processes a SACK block, the one at `place` in its acknowledgement, which reports `[start,
    /// end)`: adds to `acked` what is newly known to be delivered. Call after
    /// [`Self::acknowledge`]. The blocks of one acknowledgement may be in any order (RFC 2018 4 has
    /// the newest first), so only what is below an earlier acknowledgement's blocks was reordered.
    pub(crate) fn sack(
        &mut self,
        (place, start, end): (usize, u64, u64),
        arrival: &Arrival,
        acked: &mut Acked,
    ) {
        if self.told.contains(&(start, end)) {
            return;
        }
        if self.segments.back().is_some_and(|segment| end <= segment.end) {
            self.told[place] = (start, end);
        }
        let start = start.max(self.segments.front().map_or(u64::MAX, |segment| segment.seq));
        let end = end.min(self.segments.back().map_or(0, |segment| segment.end));
        if start >= end {
            return;
        }
        let Self { segments, sacked_ranges, sampler, prior_fack, latest, waiting, .. } = self;
        let (mut sacked, mut lost, mut resent) = (0, 0, 0);
        let mut lowest = None;
        let only_sacked = acked.fresh == 0;
        sacked_ranges.insert(start, end, |from, to| {
            let first = position(segments, from);
            for (index, segment) in (first..).zip(segments.range_mut(first..)) {
                if segment.end > to {
                    break;
                }
                if segment.sacked {
                    continue;
                }
                segment.sacked = true;
                sacked += 1;
                if let Some(sampler) = sampler {
                    sampler.deliver(index, segment.sent_at, arrival.now);
                }
                let last = only_sacked && segment.end > latest.sacked;
                if last {
                    latest.sacked = segment.end;
                }
                latest.update(segment, arrival, last);
                if !segment.ambiguous {
                    let at = segment.sent_at;
                    let (low, high) = acked.sacked_sent.unwrap_or((at, at));
                    acked.sacked_sent = Some((low.min(at), high.max(at)));
                    acked.original |= arrival.is_older(segment);
                    if segment.end < *prior_fack {
                        lowest.get_or_insert(segment.seq);
                    }
                }
                if segment.lost && !segment.resent {
                    waiting.clear(index);
                }
                lost += u32::from(std::mem::take(&mut segment.lost));
                resent += u32::from(std::mem::take(&mut segment.resent));
            }
        });
        self.sacked += sacked;
        self.lost -= lost;
        self.resent -= resent;
        self.fack = self.fack.max(end);
        if let Some(lowest) = lowest {
            self.reordering_seen = true;
            self.reordering = self.reordering.max(self.fack - lowest);
        }
        acked.delivered += sacked;
    }

    /// The next segment to retransmit, marked as retransmitted at `now`.
    pub(crate) fn resend(&mut self, now: Instant) -> Option<Sent> {
        if !self.waits_to_resend() {
            return None;
        }
        let first = position(&self.segments, self.resend_from);
        let Some(index) = self.waiting.next(first) else {
            if let Some(last) = self.segments.range(first..).next_back() {
                self.resend_from = last.end;
            }
            return None;
        };
        self.resend_from = self.segments[index].end;
        self.waiting.clear(index);
        Some(self.repeat(index, now))
    }

    /// Retransmits the last outstanding segment that was not SACKed (RFC 8985 7.3).
    pub(crate) fn repeat_last(&mut self, now: Instant) -> Option<Sent> {
        let index = self.segments.iter().rposition(|segment| !segment.sacked)?;
        let segment = &self.segments[index];
        if segment.resent || segment.lost {
            return None;
        }
        Some(self.repeat(index, now))
    }

    fn repeat(&mut self, index: usize, now: Instant) -> Sent {
        let pipe = self.pipe();
        if let Some(sampler) = &mut self.sampler {
            sampler.repeat(index, pipe);
        }
        self.transmissions += 1;
        self.resent += 1;
        let segment = &mut self.segments[index];
        segment.resent = true;
        self.ambiguous += u32::from(!std::mem::replace(&mut segment.ambiguous, true));
        self.bursts += u32::from(!std::mem::replace(&mut segment.begins_burst, true));
        segment.sent_at = now;
        segment.order = self.transmissions;
        self.under_way.push_back((segment.seq, segment.order));
        *segment
    }

    /// Retransmits the first outstanding segment as a window probe, which does not mean that it was
    /// lost.
    pub(crate) fn repeat_first(&mut self, now: Instant) -> Option<Sent> {
        let segment = self.segments.front_mut()?;
        self.ambiguous += u32::from(!std::mem::replace(&mut segment.ambiguous, true));
        segment.sent_at = now;
        self.transmissions += 1;
        segment.order = self.transmissions;
        if segment.resent {
            self.under_way.push_back((segment.seq, segment.order));
        }
        Some(*segment)
    }

    /// Delivery rate sample of the acknowledgement just processed.
    pub(crate) fn rate_sample(
        &mut self,
        prior_in_flight: u32,
        min_rtt: Duration,
    ) -> Option<RateSample> {
        self.sampler.as_mut()?.take(prior_in_flight, min_rtt)
    }

    /// The next loss that has not been reported to the congestion control.
    pub(crate) fn next_lost(&mut self, now: Instant) -> Option<LostSegment> {
        self.sampler.as_mut()?.next_lost(now)
    }

    /// Whether the delivery rate is currently application-limited.
    pub(crate) fn is_limited_by_application(&self) -> bool {
        self.sampler.as_ref().is_some_and(RateSampler::is_limited_by_application)
    }

    /// Notes that the application, not the network, is the limit.
    pub(crate) fn limited_by_application(&mut self) {
        if self.sampler.is_some() {
            let pipe = self.pipe();
            self.sampler.iter_mut().for_each(|sampler| sampler.limited_by_application(pipe));
        }
    }
}

/// How many segments begin before `offset`. Segments of equal size are counted by a division,
/// because a binary search touches memory that nothing else needs.
fn position(segments: &VecDeque<Sent>, offset: u64) -> usize {
    let [Some(first), Some(second)] = [segments.front(), segments.get(1)] else {
        return segments.partition_point(|segment| segment.seq < offset);
    };
    if offset <= first.end {
        return usize::from(offset > first.seq);
    }
    let guess = 1 + (offset - first.end).div_ceil((second.end - second.seq).max(1)) as usize;
    let fits = segments.get(guess).is_some_and(|segment| segment.seq >= offset)
        && segments.get(guess - 1).is_some_and(|segment| segment.seq < offset);
    if fits { guess } else { segments.partition_point(|segment| segment.seq < offset) }
}

impl Latest {
    /// RFC 8985 6.2 step 2: if a segment was sent twice, the first transmission may be the one that
    /// arrived.
    #[inline]
    fn update(&mut self, segment: &Sent, arrival: &Arrival, last: bool) {
        let rtt = arrival.now.saturating_since(segment.sent_at);
        if segment.ambiguous && rtt < arrival.min_rtt {
            return;
        }
        if last {
            self.rtt = rtt;
        }
        if segment.order > self.order {
            (self.order, self.again) = (segment.order, segment.ambiguous);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 100;

    fn scoreboard(segments: u64) -> Scoreboard {
        let mut scoreboard = Scoreboard::default();
        for index in 0..segments {
            let at = Instant::from_nanos(index);
            scoreboard.push(Sent::new(index * MSS, (index + 1) * MSS, at));
        }
        scoreboard
    }

    const ARRIVAL: Arrival =
        Arrival { now: Instant::ZERO, min_rtt: Duration::ZERO, loss_point: None };

    fn sack(scoreboard: &mut Scoreboard, start: u64, end: u64) {
        scoreboard.sack((0, start, end), &ARRIVAL, &mut Acked::default());
    }

    fn resent(scoreboard: &mut Scoreboard) -> Vec<u64> {
        std::iter::from_fn(|| scoreboard.resend(Instant::ZERO)).map(|sent| sent.seq / MSS).collect()
    }

    #[test]
    fn three_segments_above_make_a_hole_lost() {
        let mut scoreboard = scoreboard(10);
        sack(&mut scoreboard, 300, 500);
        assert_eq!(scoreboard.detect_loss(100), 0); // two segments: not more than (3 - 1) × SMSS
        sack(&mut scoreboard, 500, 600);
        assert_eq!(scoreboard.detect_loss(100), 3);
        assert_eq!(scoreboard.pipe(), 10 - 3 - 3);
        assert_eq!(resent(&mut scoreboard), [0, 1, 2]);
        assert_eq!(scoreboard.pipe(), 10 - 3);
    }

    #[test]
    fn three_discontiguous_ranges_do_too_but_only_below_the_third() {
        let mut scoreboard = scoreboard(10);
        for start in [100, 300, 500] {
            sack(&mut scoreboard, start, start + 100);
        }
        assert_eq!(scoreboard.detect_loss(1000), 1);
        assert_eq!(resent(&mut scoreboard), [0]);
    }

    #[test]
    fn a_late_sack_takes_the_verdict_back() {
        let mut scoreboard = scoreboard(6);
        sack(&mut scoreboard, 200, 600);
        assert_eq!(scoreboard.detect_loss(100), 2);
        sack(&mut scoreboard, 0, 100);
        assert_eq!((scoreboard.lost(), scoreboard.pipe()), (1, 0));
        assert_eq!(resent(&mut scoreboard), [1]);
    }

    #[test]
    fn after_a_time_out_everything_not_sacked_is_sent_again() {
        let mut scoreboard = scoreboard(5);
        sack(&mut scoreboard, 200, 500);
        scoreboard.detect_loss(100);
        assert_eq!(resent(&mut scoreboard), [0, 1]);
        scoreboard.mark_lost_by_timeout(Instant::ZERO, None);
        assert_eq!(scoreboard.pipe(), 0);
        assert_eq!(resent(&mut scoreboard), [0, 1]);
        let acked = scoreboard.acknowledge(500, &ARRIVAL);
        assert_eq!((acked.segments, acked.fresh, acked.first_sent), (5, 2, None));
        assert_eq!((scoreboard.pipe(), scoreboard.lost()), (0, 0));
    }

    #[test]
    fn a_retransmission_overtaken_by_three_transmissions_is_lost_again() {
        let mut scoreboard = scoreboard(8);
        sack(&mut scoreboard, 100, 400);
        scoreboard.detect_loss(100);
        assert_eq!(resent(&mut scoreboard), [0]); // the ninth transmission
        for (index, again) in [(8, 0), (9, 0), (10, 1)] {
            let seq = index * MSS;
            scoreboard.push(Sent::new(seq, seq + MSS, Instant::ZERO));
            sack(&mut scoreboard, seq, seq + MSS);
            scoreboard.detect_lost_retransmissions();
            assert_eq!(resent(&mut scoreboard).len(), again, "after segment {index}");
        }
    }

    #[test]
    fn rtt_comes_from_what_was_sent_once() {
        let mut scoreboard = scoreboard(4);
        let acked = scoreboard.acknowledge(250, &ARRIVAL);
        assert_eq!(acked.segments, 2);
        assert_eq!(acked.first_sent, Some(Instant::from_nanos(0)));
        assert_eq!(acked.last_sent, Some(Instant::from_nanos(1)));
        assert_eq!(scoreboard.flight(), 2);
    }

    #[test]
    fn rack_goes_by_the_rtt_of_what_is_acknowledged_last_not_of_what_was_sent_last() {
        // RFC 8985 6.2 step 2. Linux 6.18, a BBR download at 4.6 Mb/s and 4.6 ms: an
        // acknowledgement of segment 39 that SACKs 41, sent 2.6 ms later. 40 was not lost before
        // the next SACK arrived.
        let now = Instant::from_nanos(100);
        let arrival = Arrival { now, ..ARRIVAL };
        let lost_of = |ack, blocks: &[(usize, u64, u64)]| {
            let mut scoreboard = scoreboard(9);
            let mut acked = scoreboard.acknowledge(ack, &arrival);
            for &block in blocks {
                scoreboard.sack(block, &arrival, &mut acked);
            }
            scoreboard.detect_loss_by_time(now, Duration::ZERO)
        };
        assert_eq!(lost_of(0, &[(0, 200, 300)]), (2, None));
        assert_eq!(lost_of(100, &[(0, 200, 300)]), (0, Some(Duration::from_nanos(1))));
        // SACKed segments are processed in order, whichever block comes first.
        assert_eq!(lost_of(0, &[(0, 400, 500), (1, 200, 300)]), (3, None));
    }

    #[test]
    fn who_waits_for_reordering_waits_until_the_last_segment_is_overdue() {
        // RFC 8985 6.2 step 5: timeout = max(remaining, timeout). Linux 6.18, a BBR upload at 0.8
        // Mb/s and 125 ms: with four segments missing below the latest one that had arrived, the
        // timer did not expire when the first of them was overdue, 0.1 ms later.
        let at = |nanos| Arrival { now: Instant::from_nanos(nanos), ..ARRIVAL };
        let wait_of = |blocks: &[(u64, u64)], nanos, window| {
            let mut scoreboard = scoreboard(9);
            for &(start, end) in blocks {
                scoreboard.sack((0, start, end), &at(nanos), &mut Acked::default());
            }
            let window = Duration::from_nanos(window);
            scoreboard.detect_loss_by_time(Instant::from_nanos(nanos), window)
        };
        // The latest segment that arrived was sent at 7, the first missing ones at 0 to 2.
        assert_eq!(wait_of(&[(300, 800)], 100, 10), (0, Some(Duration::from_nanos(5))));
        // Holes at 0 to 2, 4 and 6.
        let blocks = [(300, 400), (500, 600), (700, 800)];
        assert_eq!(wait_of(&blocks, 100, 10), (0, Some(Duration::from_nanos(9))));
        assert_eq!(wait_of(&blocks, 100, 6), (2, Some(Duration::from_nanos(5))));
        assert_eq!(wait_of(&blocks, 100, 0), (5, None));
    }

    #[test]
    fn who_waits_for_retransmissions_waits_for_the_last_of_them() {
        let mut scoreboard = scoreboard(9);
        sack(&mut scoreboard, 300, 900);
        assert_eq!(scoreboard.detect_loss(100), 3);
        for nanos in [50, 53, 57] {
            assert!(scoreboard.resend(Instant::from_nanos(nanos)).is_some());
        }
        // The last of the three arrives: the two before it are 7 ns and 4 ns older.
        let now = Instant::from_nanos(100);
        let arrival = Arrival { now, ..ARRIVAL };
        let mut acked = scoreboard.acknowledge(0, &arrival);
        scoreboard.sack((0, 200, 300), &arrival, &mut acked);
        let judged = |scoreboard: &mut Scoreboard, window| {
            scoreboard.detect_loss_by_time(now, Duration::from_nanos(window))
        };
        assert_eq!(judged(&mut scoreboard, 10), (0, Some(Duration::from_nanos(6))));
        assert_eq!(judged(&mut scoreboard, 5), (1, Some(Duration::from_nanos(1))));
        assert_eq!(judged(&mut scoreboard, 4), (1, None));
    }

    #[test]
    fn after_an_undo_the_wait_ends_later_than_now_although_the_last_segment_is_overdue() {
        let mut scoreboard = scoreboard(6);
        sack(&mut scoreboard, 500, 600);
        let at = |nanos| Instant::from_nanos(nanos);
        let judged = |scoreboard: &mut Scoreboard, now, window| {
            scoreboard.detect_loss_by_time(at(now), Duration::from_nanos(window))
        };
        assert_eq!(judged(&mut scoreboard, 100, 0), (5, None));
        // All except the fifth are retransmitted; the fourth of them arrives, and the others are
        // lost again.
        for nanos in [200, 201, 202, 203] {
            assert!(scoreboard.resend(at(nanos)).is_some());
        }
        let arrival = Arrival { now: at(210), ..ARRIVAL };
        scoreboard.sack((0, 300, 400), &arrival, &mut Acked::default());
        assert_eq!(judged(&mut scoreboard, 300, 0), (3, None));
        // Nothing is lost after all: the first was sent last, and the fifth is long overdue.
        scoreboard.unmark_lost();
        assert_eq!(judged(&mut scoreboard, 300, 200), (0, Some(Duration::from_nanos(100))));
    }
}
