//! Segments that wait for an acknowledgement, and the round-trip times that it gives.

use std::collections::VecDeque;

use airpath_base::{Duration, Instant, SparseHistogram};

/// Round-trip times of a stream, between the capture point and the receiver.
#[derive(Clone, Default, Debug)]
pub(super) struct RoundTrips {
    /// Segments that no acknowledgement has covered, in order.
    outstanding: VecDeque<Outstanding>,
    times: SparseHistogram,
    by_timestamps: SparseHistogram,
    smoothed: Option<Duration>,
    /// Acknowledgements up to this byte give no round-trip time, because a gap was filled.
    silent_until: u64,
}

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    from: u64,
    to: u64,
    first: Instant,
    last: Instant,
    /// The first and the last timestamp of the segment.
    timestamps: [Option<u32>; 2],
    again: bool,
}

impl RoundTrips {
    /// The smallest and the smoothed one.
    pub(super) fn known(&self) -> Option<(Duration, Duration)> {
        Some((self.times.min()?, self.smoothed?))
    }

    pub(super) const fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// By segments that were sent once.
    pub(super) const fn times(&self) -> &SparseHistogram {
        &self.times
    }

    /// By the timestamps that acknowledgements echo.
    pub(super) const fn by_timestamps(&self) -> &SparseHistogram {
        &self.by_timestamps
    }

    /// Acknowledgements up to this byte say nothing of the round-trip time.
    pub(super) fn say_nothing_until(&mut self, byte: u64) {
        self.silent_until = self.silent_until.max(byte);
    }

    /// Adds a segment of new data.
    #[inline]
    pub(super) fn push(&mut self, now: Instant, (from, to): (u64, u64), stamp: Option<u32>) {
        let (timestamps, again) = ([stamp; 2], false);
        self.outstanding.push_back(Outstanding {
            from,
            to,
            first: now,
            last: now,
            timestamps,
            again,
        });
    }

    /// The segments in a range were sent again.
    pub(super) fn send_again(&mut self, now: Instant, (from, to): (u64, u64), stamp: Option<u32>) {
        let first = self.outstanding.partition_point(|segment| segment.to <= from);
        let last = self.outstanding.partition_point(|segment| segment.from < to);
        for segment in self.outstanding.range_mut(first..last.max(first)) {
            (segment.last, segment.timestamps[1], segment.again) = (now, stamp, true);
        }
    }

    /// The last segment has a part that was sent before.
    pub(super) fn distrust_last(&mut self) {
        if let Some(segment) = self.outstanding.back_mut() {
            segment.again = true;
        }
    }

    /// Forgets the oldest segment if there are more than `most`.
    pub(super) fn trim(&mut self, most: usize) {
        if self.outstanding.len() > most {
            self.outstanding.pop_front();
            if self.outstanding.capacity() > 4 * most {
                self.outstanding.shrink_to(2 * most);
            }
        }
    }

    /// Removes the segments below `number`, which were acknowledged, and notes the round-trip times.
    #[inline]
    pub(super) fn cover(&mut self, now: Instant, number: u64, sacked: u64, echo: Option<u32>) {
        let (mut last, mut again, mut echoed) = (None, false, None);
        while let Some(&segment) = self.outstanding.front().filter(|segment| segment.to <= number) {
            self.outstanding.pop_front();
            again |= segment.again;
            last = Some(segment.last);
            if echoed.is_none() && echo.is_some() {
                echoed = match segment.timestamps {
                    [first, _] if first == echo => Some(segment.first),
                    [_, last] if last == echo => Some(segment.last),
                    _ => None,
                };
            }
        }
        if let Some(sent) = echoed {
            self.by_timestamps.record(now.saturating_since(sent));
        }
        // RFC 6298 3; segments that were selectively acknowledged before arrived before.
        if let Some(sent) = last.filter(|_| !again && number > self.silent_until.max(sacked)) {
            let rtt = now.saturating_since(sent);
            self.times.record(rtt);
            // RFC 6298 2.3.
            self.smoothed = Some(self.smoothed.map_or(rtt, |smoothed| (smoothed * 7 + rtt) / 8));
        }
    }
}
