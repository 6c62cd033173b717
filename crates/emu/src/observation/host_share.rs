//! The host's own share of a round trip: from the time at which data was passed to the kernel until
//! the acknowledgement that it causes reached the forwarder.
//!
//! A receiver that waits for more data before it acknowledges (RFC 9293 3.8.6.3) is not the host's
//! fault. So only the newest segment that an acknowledgement covers counts, and only if it covers
//! at least two: these are acknowledged at once.

use std::collections::VecDeque;

use airpath_base::{Histogram, Instant};
use airpath_metrics::{SegmentHeader, SequenceSpace};

/// Most segments that wait for their acknowledgement: more than any window holds.
const MOST: usize = 1 << 16;

/// Segments that were passed to the receiving host of one direction of a TCP connection.
#[derive(Debug, Default)]
pub(super) struct HostShare {
    space: SequenceSpace,
    /// Ends of segments, in the order of the stream, and when they were last passed to the host.
    handed: VecDeque<(u64, Instant)>,
}

impl HostShare {
    /// A segment was passed to the host at `now`.
    pub(super) fn on_handed(&mut self, now: Instant, segment: &SegmentHeader) {
        if segment.payload == 0 {
            return;
        }
        let end = self.space.offset(segment.sequence) + segment.length;
        // Nearly always the newest: data that fills a gap precedes what is there.
        let place = match self.handed.back() {
            Some(&(last, _)) if end <= last => self.handed.partition_point(|&(at, _)| at < end),
            _ => self.handed.len(),
        };
        match self.handed.get_mut(place) {
            Some((known, at)) if *known == end => *at = now,
            _ => {
                if self.handed.len() == MOST {
                    self.handed.pop_front();
                }
                self.handed.insert(place.min(self.handed.len()), (end, now));
            }
        }
    }

    /// An acknowledgement arrived from the host at `now`.
    pub(super) fn on_acknowledged(&mut self, now: Instant, number: u32, shares: &mut Histogram) {
        let Some(&(first, _)) = self.handed.front() else { return };
        let mut space = self.space;
        let acknowledged = space.offset(number);
        if acknowledged < first {
            return;
        }
        let (mut covered, mut newest) = (0, Instant::ZERO);
        while let Some(&(_, at)) = self.handed.front().filter(|(end, _)| *end <= acknowledged) {
            self.handed.pop_front();
            covered += 1;
            newest = newest.max(at);
        }
        if covered > 1 {
            shares.record(now.saturating_since(newest));
        }
    }
}

#[cfg(test)]
mod tests {
    use airpath_base::Duration;

    use super::*;

    fn us(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    fn segment(sequence: u32) -> SegmentHeader {
        let (acknowledgement, syn, timestamps) = (None, false, true);
        SegmentHeader { sequence, acknowledgement, syn, timestamps, payload: 1000, length: 1000 }
    }

    /// The shares for these segments (at, sequence) and acknowledgements (at, number).
    fn shares(handed: &[(u64, u32)], acknowledged: &[(u64, u32)]) -> Vec<u64> {
        let mut share = HostShare::default();
        handed.iter().for_each(|&(at, sequence)| share.on_handed(us(at), &segment(sequence)));
        let mut seen = Vec::new();
        for &(at, number) in acknowledged {
            let mut one = Histogram::new();
            share.on_acknowledged(us(at), number, &mut one);
            seen.extend(one.max().map(|share| share.as_nanos() / 1000));
        }
        seen
    }

    #[test]
    fn it_counts_from_the_newest_segment_that_is_acknowledged() {
        assert_eq!(shares(&[(0, 0), (100, 1000), (900, 2000)], &[(130, 2000)]), [30]);
        // Sequence numbers wrap.
        let first = u32::MAX - 999;
        assert_eq!(shares(&[(0, first), (100, 0)], &[(150, 1000)]), [50]);
    }

    #[test]
    fn a_receiver_that_waits_for_a_second_segment_is_not_the_host() {
        assert!(shares(&[(0, 0)], &[(40_000, 1000)]).is_empty());
    }

    #[test]
    fn what_fills_a_gap_is_the_newest() {
        let handed = [(0, 0), (10, 2000), (20, 3000), (500, 1000)];
        assert_eq!(shares(&handed, &[(15, 1000), (540, 4000)]), [40]);
        // Retransmitted although it had arrived: the last time counts.
        assert_eq!(shares(&[(0, 0), (10, 1000), (90, 0)], &[(95, 2000)]), [5]);
    }

    #[test]
    fn an_acknowledgement_that_covers_nothing_new_says_nothing() {
        assert_eq!(shares(&[(0, 0), (1, 1000)], &[(5, 0), (9, 2000), (99, 2000)]), [8]);
    }
}
