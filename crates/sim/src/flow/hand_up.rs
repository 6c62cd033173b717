//! The time that a host takes to deliver to TCP what arrived together.

use std::collections::VecDeque;

use airpath_base::{Flags, Instant, Packet, Payload, Segment};
use airpath_scenario::HandUpConfig;

/// Delivers bursts that arrive at one instant one after another. A burst is a sequence of
/// consecutive segments up to one with PSH, as in [`airpath_tcp::AggregationConfig`].
#[derive(Debug)]
pub(super) struct HandUp {
    time: HandUpConfig,
    /// When the next burst can be delivered.
    free: Instant,
    /// When the last burst was delivered, and the sequence number at which it continues.
    open: Option<(Instant, u64)>,
    waiting: VecDeque<Packet>,
}

impl HandUp {
    pub(super) fn new(time: HandUpConfig) -> Self {
        Self { time, free: Instant::ZERO, open: None, waiting: VecDeque::new() }
    }

    /// `packet` arrived with `segment`. Returns false if it waits for those before it.
    pub(super) fn admits(&mut self, now: Instant, packet: &Packet, segment: &Segment) -> bool {
        let admitted = self.waiting.is_empty() && self.is_turn_of(now, segment);
        if admitted {
            self.note(now, segment);
        } else {
            self.waiting.push_back(*packet);
        }
        admitted
    }

    /// When the first waiting packet is delivered.
    pub(super) fn timer(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.free)
    }

    /// The next waiting packet, if its time has come.
    pub(super) fn take(&mut self, now: Instant) -> Option<Packet> {
        let Payload::Tcp(segment) = self.waiting.front()?.payload else { return None };
        if !self.is_turn_of(now, &segment) {
            return None;
        }
        self.note(now, &segment);
        self.waiting.pop_front()
    }

    fn is_turn_of(&self, now: Instant, segment: &Segment) -> bool {
        self.free <= now || self.goes_on(now, segment)
    }

    fn goes_on(&self, now: Instant, segment: &Segment) -> bool {
        self.open == Some((now, segment.seq))
    }

    fn note(&mut self, now: Instant, segment: &Segment) {
        if !self.goes_on(now, segment) {
            self.free = now + self.time.burst;
        }
        if segment.len > 0 {
            self.free += self.time.segment;
        }
        let ends = segment.len == 0 || segment.flags.has(Flags::PSH);
        self.open = (!ends).then(|| (now, segment.seq + u64::from(segment.len)));
    }
}

#[cfg(test)]
mod tests {
    use airpath_base::Duration;

    use super::*;

    const BARE: Segment = Segment { seq: 100, flags: Flags::ACK, ..Segment::BLANK };

    fn hand_up() -> HandUp {
        let [burst, segment] = [8, 1].map(Duration::from_micros);
        HandUp::new(HandUpConfig { burst, segment })
    }

    fn data(seq: u64, push: bool) -> Segment {
        let flags = if push { Flags::ACK.with(Flags::PSH) } else { Flags::ACK };
        Segment { seq, len: 100, flags, ..Segment::BLANK }
    }

    fn packet(segment: Segment) -> Packet {
        Packet {
            flow: airpath_base::FlowId(0),
            size: segment.len + 52,
            ecn: airpath_base::Ecn::NotEct,
            tunnel: airpath_base::Tunnel::default(),
            journey: None,
            payload: Payload::Tcp(segment),
        }
    }

    fn admits(hand_up: &mut HandUp, us: u64, segment: Segment) -> bool {
        hand_up.admits(Instant::from_nanos(us * 1000), &packet(segment), &segment)
    }

    /// When each of `segments`, which arrive at 0, is delivered, in microseconds, with its number.
    fn times(segments: &[Segment]) -> Vec<(u64, u64)> {
        let mut hand_up = hand_up();
        let mut times: Vec<_> = segments
            .iter()
            .filter(|segment| admits(&mut hand_up, 0, **segment))
            .map(|segment| (0, segment.seq))
            .collect();
        while let Some(at) = hand_up.timer() {
            assert!(hand_up.take(Instant::from_nanos(at.as_nanos() - 1)).is_none());
            while let Some(Packet { payload: Payload::Tcp(segment), .. }) = hand_up.take(at) {
                times.push((at.as_nanos() / 1000, segment.seq));
            }
        }
        times
    }

    #[test]
    fn bursts_of_one_instant_come_one_after_another() {
        let segments = [data(0, false), data(100, true), data(200, false), data(300, true)];
        assert_eq!(times(&segments), [(0, 0), (0, 100), (10, 200), (10, 300)]);
    }

    #[test]
    fn a_gap_and_an_acknowledgement_end_a_burst() {
        let segments = [data(0, false), data(200, false), BARE, BARE, data(300, true)];
        assert_eq!(times(&segments), [(0, 0), (9, 200), (18, 100), (26, 100), (34, 300)]);
    }

    #[test]
    fn a_burst_that_comes_later_does_not_wait_and_none_overtakes() {
        let mut hand_up = hand_up();
        assert!(admits(&mut hand_up, 0, data(0, true)));
        assert!(admits(&mut hand_up, 9, data(100, true)));
        assert!(!admits(&mut hand_up, 17, data(200, true)));
        assert!(!admits(&mut hand_up, 30, data(300, true)));
    }
}
