//! Delivery rate (draft-ietf-ccwg-bbr 4.1.2): the amount delivered between two acknowledgements,
//! divided by the time in which it was sent or acknowledged, whichever is longer. Amounts are in
//! segments.

use std::collections::VecDeque;

use airpath_base::{Duration, Instant};

use crate::congestion::{LostSegment, RateSample};

/// Keeps the connection's delivery state at each transmission, alongside the scoreboard.
#[derive(Debug, Default)]
pub(crate) struct RateSampler {
    /// One snapshot per segment of the scoreboard, in the same order.
    sent: VecDeque<Snapshot>,
    /// C.delivered, C.delivered_time, C.first_send_time, C.lost
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    lost: u64,
    /// C.app_limited: the bubble is gone once more than this is delivered.
    app_limited_until: Option<u64>,
    /// For the current acknowledgement: the snapshot of the segment sent last, and its transmission
    /// time.
    newest: Option<(Snapshot, Instant)>,
    /// Losses that have not been reported to the congestion control yet.
    unreported: VecDeque<LostSegment>,
}

#[derive(Clone, Copy, Debug)]
struct Snapshot {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    lost: u64,
    in_flight: u32,
    app_limited: bool,
}

impl RateSampler {
    /// A segment is sent for the first time; `in_flight` counts those before it.
    #[inline(never)]
    pub(crate) fn push(&mut self, now: Instant, in_flight: u32) {
        // Seen with Linux 6.18: only if everything is acknowledged. What is lost was sent before.
        if self.sent.is_empty() {
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        let snapshot = self.snapshot(in_flight);
        self.sent.push_back(snapshot);
    }

    /// The segment at `index` is retransmitted.
    pub(crate) fn repeat(&mut self, index: usize, in_flight: u32) {
        let snapshot = self.snapshot(in_flight);
        if let Some(slot) = self.sent.get_mut(index) {
            *slot = snapshot;
        }
    }

    fn snapshot(&self, in_flight: u32) -> Snapshot {
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            in_flight: in_flight + 1,
            app_limited: self.app_limited_until.is_some(),
        }
    }

    /// The first segment of the scoreboard leaves it.
    pub(crate) fn pop(&mut self) {
        self.sent.pop_front();
    }

    /// The segment at `index`, sent at `sent_at`, is newly known to be delivered.
    pub(crate) fn deliver(&mut self, index: usize, sent_at: Instant, now: Instant) {
        self.delivered += 1;
        self.delivered_at = now;
        let Some(&snapshot) = self.sent.get(index) else { return };
        let newer = self.newest.is_none_or(|(known, known_at)| {
            (sent_at, snapshot.delivered) >= (known_at, known.delivered)
        });
        if newer {
            self.newest = Some((snapshot, sent_at));
        }
    }

    /// The segment at `index`, bytes `[seq, end)`, is marked lost.
    pub(crate) fn lose(&mut self, index: usize, (seq, end): (u64, u64)) {
        self.lost += 1;
        let Some(snapshot) = self.sent.get(index) else { return };
        self.unreported.push_back(LostSegment {
            now: Instant::ZERO,
            seq,
            end,
            tx_in_flight: snapshot.in_flight,
            app_limited: snapshot.app_limited,
            total_delivered: self.delivered,
            total_lost: self.lost,
            prior_lost: snapshot.lost,
        });
    }

    /// The next loss that has not been reported to the congestion control.
    pub(crate) fn next_lost(&mut self, now: Instant) -> Option<LostSegment> {
        self.unreported.pop_front().map(|lost| LostSegment { now, ..lost })
    }

    /// The application, not the network, is the limit; `in_flight` counts the segments in flight.
    pub(crate) fn limited_by_application(&mut self, in_flight: u32) {
        self.app_limited_until = Some(self.delivered + u64::from(in_flight));
    }

    /// Whether what is sent now is application-limited.
    pub(crate) fn is_limited_by_application(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// The rate sample of the acknowledgement whose segments were passed in one by one.
    pub(crate) fn take(&mut self, prior_in_flight: u32, min_rtt: Duration) -> Option<RateSample> {
        self.app_limited_until = self.app_limited_until.filter(|&until| self.delivered <= until);
        let (snapshot, sent_at) = self.newest.take()?;
        self.first_sent_at = sent_at;
        let sending = sent_at.saturating_since(snapshot.first_sent_at);
        let acknowledging = self.delivered_at.saturating_since(snapshot.delivered_at);
        let interval = sending.max(acknowledging);
        Some(RateSample {
            total_delivered: self.delivered,
            prior_delivered: snapshot.delivered,
            // A shorter interval than the smallest RTT is impossible: a spurious retransmission.
            interval: (interval >= min_rtt).then_some(interval),
            app_limited: snapshot.app_limited,
            prior_in_flight,
            tx_in_flight: snapshot.in_flight,
            total_lost: self.lost,
            prior_lost: snapshot.lost,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_pause_until_a_time_out_is_a_part_of_the_interval() {
        // Linux 6.18: everything is lost, nothing is in flight, and the first segment is
        // retransmitted after 300 ms.
        let mut sampler = RateSampler::default();
        sampler.push(at(0), 0);
        sampler.push(at(0), 1);
        sampler.deliver(0, at(0), at(50));
        sampler.pop();
        sampler.take(2, Duration::ZERO);
        sampler.lose(0, (1, 2));
        sampler.repeat(0, 0);
        sampler.deliver(0, at(350), at(400));
        let sample = sampler.take(1, Duration::ZERO).unwrap();
        assert_eq!((sample.delivered(), sample.interval), (1, Some(Duration::from_millis(350))));
    }

    #[test]
    fn idling_is_no_part_of_the_interval() {
        let mut sampler = RateSampler::default();
        sampler.push(at(0), 0);
        sampler.deliver(0, at(0), at(50));
        sampler.pop();
        sampler.take(1, Duration::ZERO);
        sampler.push(at(350), 0);
        sampler.deliver(0, at(350), at(400));
        let sample = sampler.take(1, Duration::ZERO).unwrap();
        assert_eq!(sample.interval, Some(Duration::from_millis(50)));
    }
}
