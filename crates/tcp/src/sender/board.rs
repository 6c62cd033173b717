//! The scoreboard: what is outstanding, what was SACKed, what is lost (RFC 6675).

use std::collections::VecDeque;

use airpath_base::{Duration, Instant};

use super::rate::RateSampler;
use crate::congestion::RateSample;
use crate::ranges::Ranges;

/// RFC 5681 2, RFC 6675 2: duplicate acknowledgements that mean loss. For retransmissions, later
/// transmissions that arrived (RFC 9002 6.1.1, kPacketThreshold): RFC 6675 alone leaves a lost
/// retransmission to the timer.
const DUP_THRESH: u32 = 3;

/// One transmitted segment, `[seq, end)` of sequence space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) seq: u64,
    pub(crate) end: u64,
    /// Last transmission.
    pub(crate) sent_at: Instant,
    /// Counts transmissions; of the last one.
    pub(crate) order: u64,
    /// The last byte of sequence space is a FIN.
    pub(crate) fin: bool,
    pub(crate) sacked: bool,
    pub(crate) lost: bool,
    /// Retransmitted since it was marked lost.
    pub(crate) resent: bool,
    /// Ever retransmitted: its RTT is ambiguous (Karn).
    pub(crate) ambiguous: bool,
}

/// Outstanding segments in order of sequence. Every operation is amortised O(1) a segment, but
/// for the search that a new SACK block needs, O(log n).
#[derive(Debug, Default)]
pub(crate) struct Board {
    segments: VecDeque<Sent>,
    sacked_ranges: Ranges,
    sacked: u32,
    lost: u32,
    resent: u32,
    /// Segments below this offset have been judged by [`Board::detect_loss`].
    judged: u64,
    /// No segment below this offset waits to be retransmitted.
    resend_from: u64,
    /// Transmissions so far, and the latest of them known to have arrived.
    transmissions: u64,
    latest_arrived: u64,
    /// Retransmissions under way, oldest first: offset and order.
    under_way: VecDeque<(u64, u64)>,
    /// Without SACK: duplicate acknowledgements stand for SACKed segments (RFC 6582).
    pub(crate) duplicates: u32,
    /// For model-based congestion control.
    sampler: Option<RateSampler>,
}

/// What a cumulative acknowledgement removed.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Acked {
    /// Segments removed.
    pub(crate) segments: u32,
    /// Of these, not known to be delivered before.
    pub(crate) delivered: u32,
    /// Transmission time of the first that was not SACKed before; `None` if any of them was
    /// retransmitted (Karn's rule).
    pub(crate) first_sent: Option<Instant>,
    /// The same of the last one.
    pub(crate) last_sent: Option<Instant>,
}

impl Board {
    pub(crate) fn new(samples_rate: bool) -> Self {
        Self { sampler: samples_rate.then(RateSampler::default), ..Self::default() }
    }

    pub(crate) fn push(&mut self, mut sent: Sent) {
        let pipe = self.pipe();
        if let Some(sampler) = &mut self.sampler {
            sampler.push(sent.sent_at, pipe);
        }
        self.transmissions += 1;
        sent.order = self.transmissions;
        self.segments.push_back(sent);
    }

    /// Segments sent and not cumulatively acknowledged.
    #[inline]
    pub(crate) fn flight(&self) -> u32 {
        self.segments.len() as u32
    }

    /// RFC 6675 "pipe", in segments.
    #[inline]
    pub(crate) fn pipe(&self) -> u32 {
        let gone = self.sacked + self.lost + self.duplicates;
        (self.flight() + self.resent).saturating_sub(gone)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    /// Something lost has not been sent again.
    #[inline]
    pub(crate) fn waits_to_resend(&self) -> bool {
        self.lost != self.resent
    }

    /// Everything below `ack` has arrived.
    #[inline]
    pub(crate) fn acknowledge(&mut self, ack: u64, now: Instant) -> Acked {
        let mut acked = Acked::default();
        let mut ambiguous = false;
        while let Some(segment) = self.segments.front_mut() {
            if segment.end > ack {
                // Part of a segment: keep the rest.
                segment.seq = segment.seq.max(ack);
                break;
            }
            acked.segments += 1;
            // Of a segment sent twice nobody knows which transmission arrived.
            if !segment.ambiguous {
                self.latest_arrived = self.latest_arrived.max(segment.order);
            }
            acked.delivered += u32::from(!segment.sacked);
            ambiguous |= segment.ambiguous;
            if !segment.sacked {
                acked.first_sent.get_or_insert(segment.sent_at);
                acked.last_sent = Some(segment.sent_at);
            }
            self.sacked -= u32::from(segment.sacked);
            self.lost -= u32::from(segment.lost);
            self.resent -= u32::from(segment.resent);
            if let Some(sampler) = &mut self.sampler {
                if !segment.sacked {
                    sampler.deliver(0, segment.sent_at, now);
                }
                sampler.pop();
            }
            self.segments.pop_front();
        }
        if ambiguous {
            (acked.first_sent, acked.last_sent) = (None, None);
        }
        if !self.sacked_ranges.is_empty() {
            self.sacked_ranges.remove_below(ack);
        }
        acked
    }

    /// A SACK block reports `[start, end)`; returns segments newly known to be delivered, and the
    /// transmission time of the newest that was never retransmitted.
    pub(crate) fn sack(&mut self, start: u64, end: u64, now: Instant) -> (u32, Option<Instant>) {
        let Self { segments, sacked_ranges, sacked, lost, resent, latest_arrived, sampler, .. } =
            self;
        let (mut delivered, mut newest) = (0, None);
        let start = start.max(segments.front().map_or(u64::MAX, |segment| segment.seq));
        let end = end.min(segments.back().map_or(0, |segment| segment.end));
        sacked_ranges.insert(start, end, |from, to| {
            let first = segments.partition_point(|segment| segment.seq < from);
            for (index, segment) in (first..).zip(segments.range_mut(first..)) {
                if segment.end > to {
                    break;
                }
                if segment.sacked {
                    continue;
                }
                segment.sacked = true;
                *sacked += 1;
                delivered += 1;
                if let Some(sampler) = sampler {
                    sampler.deliver(index, segment.sent_at, now);
                }
                if !segment.ambiguous {
                    *latest_arrived = segment.order.max(*latest_arrived);
                    newest = newest.max(Some(segment.sent_at));
                }
                *lost -= u32::from(std::mem::take(&mut segment.lost));
                *resent -= u32::from(std::mem::take(&mut segment.resent));
            }
        });
        (delivered, newest)
    }

    /// Marks what is lost by RFC 6675 4, IsLost(): `DUP_THRESH` discontiguous ranges, or more
    /// than (`DUP_THRESH` - 1) segments' bytes, were SACKed above. Returns how many.
    pub(crate) fn detect_loss(&mut self, mss: u32) -> u32 {
        if self.sacked_ranges.is_empty() {
            return 0;
        }
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
        let first = self.segments.partition_point(|segment| segment.seq < self.judged);
        self.judged = bound;
        let mut marked = 0;
        for segment in self.segments.range_mut(first..) {
            if segment.seq >= bound {
                break;
            }
            if !segment.sacked && !segment.lost {
                segment.lost = true;
                marked += 1;
            }
        }
        self.lose(marked)
    }

    /// Takes back retransmissions that were overtaken by [`DUP_THRESH`] later transmissions.
    pub(crate) fn detect_lost_retransmissions(&mut self) {
        while let Some(&(seq, order)) = self.under_way.front() {
            if order + u64::from(DUP_THRESH) > self.latest_arrived {
                break;
            }
            self.under_way.pop_front();
            let index = self.segments.partition_point(|segment| segment.seq < seq);
            let Some(segment) = self.segments.get_mut(index) else {
                continue;
            };
            if segment.order == order && segment.resent {
                segment.resent = false;
                self.resent -= 1;
                self.resend_from = self.resend_from.min(seq);
            }
        }
    }

    /// Marks the first outstanding segment lost (RFC 6582 3.2). Returns whether it was not yet.
    pub(crate) fn mark_first_lost(&mut self) -> bool {
        let Some(segment) = self.segments.front_mut() else {
            return false;
        };
        let fresh = !segment.lost && !segment.sacked;
        if fresh {
            segment.lost = true;
            self.lose(1);
        }
        fresh
    }

    fn lose(&mut self, segments: u32) -> u32 {
        self.lost += segments;
        if let Some(sampler) = &mut self.sampler {
            sampler.lose(segments);
        }
        segments
    }

    /// The retransmission timer ran out: all that was not SACKed is lost, retransmissions too.
    pub(crate) fn mark_all_lost(&mut self) {
        let mut marked = 0;
        for segment in &mut self.segments {
            marked += u32::from(!segment.sacked && !segment.lost);
            segment.lost = !segment.sacked;
            segment.resent = false;
        }
        self.lose(marked);
        self.resent = 0;
        self.duplicates = 0;
        self.resend_from = 0;
        self.under_way.clear();
        self.judged = self.segments.back().map_or(self.judged, |segment| segment.end);
    }

    /// The next segment to retransmit, marked as retransmitted at `now`.
    pub(crate) fn resend(&mut self, now: Instant) -> Option<Sent> {
        if !self.waits_to_resend() {
            return None;
        }
        let pipe = self.pipe();
        let first = self.segments.partition_point(|segment| segment.seq < self.resend_from);
        for (index, segment) in (first..).zip(self.segments.range_mut(first..)) {
            self.resend_from = segment.end;
            if segment.lost && !segment.resent {
                segment.resent = true;
                segment.ambiguous = true;
                segment.sent_at = now;
                self.resent += 1;
                self.transmissions += 1;
                segment.order = self.transmissions;
                self.under_way.push_back((segment.seq, segment.order));
                if let Some(sampler) = &mut self.sampler {
                    sampler.repeat(index, now, pipe);
                }
                return Some(*segment);
            }
        }
        None
    }

    /// Sends the first outstanding segment again, which is no sign of its loss: a window probe.
    pub(crate) fn repeat_first(&mut self, now: Instant) -> Option<Sent> {
        let segment = self.segments.front_mut()?;
        segment.ambiguous = true;
        segment.sent_at = now;
        self.transmissions += 1;
        segment.order = self.transmissions;
        Some(*segment)
    }

    /// Delivery rate by the acknowledgement just taken.
    pub(crate) fn rate_sample(
        &mut self,
        prior_in_flight: u32,
        min_rtt: Duration,
    ) -> Option<RateSample> {
        self.sampler.as_mut()?.take(prior_in_flight, min_rtt)
    }

    /// The application, not the network, is the limit.
    pub(crate) fn limited_by_application(&mut self) {
        let pipe = self.pipe();
        if let Some(sampler) = &mut self.sampler {
            sampler.limited_by_application(pipe);
        }
    }

    /// Looks again from the start for segments to retransmit.
    pub(crate) fn rewind_resend(&mut self) {
        self.resend_from = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 100;

    fn board(segments: u64) -> Board {
        let mut board = Board::default();
        for index in 0..segments {
            board.push(Sent {
                seq: index * MSS,
                end: (index + 1) * MSS,
                sent_at: Instant::from_nanos(index),
                order: 0,
                fin: false,
                sacked: false,
                lost: false,
                resent: false,
                ambiguous: false,
            });
        }
        board
    }

    fn resent(board: &mut Board) -> Vec<u64> {
        std::iter::from_fn(|| board.resend(Instant::ZERO)).map(|sent| sent.seq / MSS).collect()
    }

    #[test]
    fn three_segments_above_make_a_hole_lost() {
        let mut board = board(10);
        board.sack(300, 500, Instant::ZERO);
        assert_eq!(board.detect_loss(100), 0); // two segments: not more than (3 - 1) × SMSS
        board.sack(500, 600, Instant::ZERO);
        assert_eq!(board.detect_loss(100), 3);
        assert_eq!(board.pipe(), 10 - 3 - 3);
        assert_eq!(resent(&mut board), [0, 1, 2]);
        assert_eq!(board.pipe(), 10 - 3);
    }

    #[test]
    fn three_discontiguous_ranges_do_too_but_only_below_the_third() {
        let mut board = board(10);
        for start in [100, 300, 500] {
            board.sack(start, start + 100, Instant::ZERO);
        }
        assert_eq!(board.detect_loss(1000), 1);
        assert_eq!(resent(&mut board), [0]);
    }

    #[test]
    fn a_late_sack_takes_the_verdict_back() {
        let mut board = board(6);
        board.sack(200, 600, Instant::ZERO);
        assert_eq!(board.detect_loss(100), 2);
        board.sack(0, 100, Instant::ZERO);
        assert_eq!((board.lost(), board.pipe()), (1, 0));
        assert_eq!(resent(&mut board), [1]);
    }

    #[test]
    fn after_a_time_out_everything_not_sacked_is_sent_again() {
        let mut board = board(5);
        board.sack(200, 500, Instant::ZERO);
        board.detect_loss(100);
        assert_eq!(resent(&mut board), [0, 1]);
        board.mark_all_lost();
        assert_eq!(board.pipe(), 0);
        assert_eq!(resent(&mut board), [0, 1]);
        let acked = board.acknowledge(500, Instant::ZERO);
        assert_eq!((acked.segments, acked.delivered, acked.first_sent), (5, 2, None));
        assert_eq!((board.pipe(), board.lost()), (0, 0));
    }

    #[test]
    fn a_retransmission_overtaken_by_three_transmissions_is_lost_again() {
        let mut board = board(8);
        board.sack(100, 400, Instant::ZERO);
        board.detect_loss(100);
        assert_eq!(resent(&mut board), [0]); // the ninth transmission
        for (index, again) in [(8, 0), (9, 0), (10, 1)] {
            let seq = index * MSS;
            let sent = Sent { seq, end: seq + MSS, sacked: false, ..board.segments[7] };
            board.push(sent);
            board.sack(seq, seq + MSS, Instant::ZERO);
            board.detect_lost_retransmissions();
            assert_eq!(resent(&mut board).len(), again, "after segment {index}");
        }
    }

    #[test]
    fn rtt_comes_from_what_was_sent_once() {
        let mut board = board(4);
        let acked = board.acknowledge(250, Instant::ZERO);
        assert_eq!(acked.segments, 2);
        assert_eq!(acked.first_sent, Some(Instant::from_nanos(0)));
        assert_eq!(acked.last_sent, Some(Instant::from_nanos(1)));
        assert_eq!(board.flight(), 2);
    }
}
