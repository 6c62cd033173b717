//! HyStart (Ha and Rhee, "Taming the elephants", 2011) as Linux has implemented it: each round trip
//! has two tests, one of the delay, one of the length of the ACK train. What Linux changed over the
//! years is data: [`HystartConfig`].

use airpath_base::{Duration, Instant};

use crate::congestion::{AckSample, HystartSnapshot, SenderSnapshot, SlowStartExit, Window};
use crate::event::SlowStartExitReason;
use crate::{AckTrain, HystartClock, HystartConfig, RoundStart};

/// Smallest cwnd in segments at which the tests are made.
const LOW_WINDOW: f64 = 16.0;
/// Acknowledgements further apart than this do not form a train.
const TRAIN_SPACING: Duration = Duration::from_millis(2);
/// RTT samples that determine a round's RTT.
const SAMPLES: u32 = 8;
/// The delay test's threshold is the minimum RTT divided by this, within bounds.
const THRESHOLD_DIVISOR: u64 = 8;
const MIN_THRESHOLD: Duration = Duration::from_millis(4);
const MAX_THRESHOLD: Duration = Duration::from_millis(16);
/// Four bursts of segmentation offload at the pacing rate, up to 1 ms.
const CUSHION_BYTES: f64 = 4.0 * 65_536.0;
const MAX_CUSHION: Duration = Duration::from_millis(1);

/// HyStart of one connection.
#[derive(Clone, Debug)]
pub(super) struct Hystart {
    config: HystartConfig,
    /// Smallest RTT of data segments.
    min_rtt: Option<Duration>,
    round: Round,
    /// Whether it has ended a slow start; after a time-out it may do so again.
    done: bool,
}

/// One round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    start: Instant,
    /// The last acknowledgement of the ACK train that began with the round.
    last_ack: Instant,
    /// End of what had been sent when the round began.
    end: u64,
    samples: u32,
    rtt: Option<Duration>,
    /// Smallest RTT of the connection when the samples were complete.
    min_rtt: Duration,
}

impl Hystart {
    pub(super) fn new(config: HystartConfig) -> Self {
        Self { config, min_rtt: None, round: Round::default(), done: false }
    }

    /// Starts over, as after a time-out.
    pub(super) fn restart(&mut self) {
        *self = Self {
            round: Round { end: self.round.end, ..Round::default() },
            ..Self::new(self.config)
        };
    }

    /// Processes an acknowledgement before cwnd grows by it.
    pub(super) fn on_ack(&mut self, ack: &AckSample, window: &Window) -> Option<SlowStartExit> {
        let exit = ack.rtt.and_then(|rtt| self.examine(rtt, ack, window));
        self.done |= exit.is_some();
        if exit.is_none()
            && self.config.round_start == RoundStart::Late
            && ack.cwnd_limited
            && window.in_slow_start()
        {
            self.follow_rounds(ack);
        }
        exit
    }

    fn examine(
        &mut self,
        rtt: Duration,
        ack: &AckSample,
        window: &Window,
    ) -> Option<SlowStartExit> {
        let rtt = self.config.clock.rtt(rtt);
        let min_rtt = self.min_rtt.map_or(rtt, |min| min.min(rtt));
        self.min_rtt = Some(min_rtt);
        if self.done || !window.in_slow_start() {
            return None;
        }
        let large = window.cwnd >= LOW_WINDOW;
        match self.config.round_start {
            RoundStart::Late => {}
            RoundStart::FromLowWindow if !large => {}
            RoundStart::FromLowWindow | RoundStart::Prompt => self.follow_rounds(ack),
        }
        if !large {
            return None;
        }
        let reason = self.train(min_rtt, ack, window).or_else(|| self.delay(rtt, min_rtt))?;
        let round_rtt = self.round.rtt.filter(|_| reason != SlowStartExitReason::AckTrain);
        Some(SlowStartExit { reason, round_rtt, base_rtt: Some(min_rtt) })
    }

    fn follow_rounds(&mut self, ack: &AckSample) {
        if ack.una > self.round.end {
            let now = self.config.clock.stamp(ack.now);
            self.round = Round { start: now, last_ack: now, end: ack.nxt, ..Round::default() };
        }
    }

    /// The ACK train test: a train as long as the path means that the queue begins to fill.
    fn train(
        &mut self,
        min_rtt: Duration,
        ack: &AckSample,
        window: &Window,
    ) -> Option<SlowStartExitReason> {
        let AckSample { mss, srtt, paced, .. } = *ack;
        let sender = SenderSnapshot { window: *window, mss, srtt, paced };
        let longest = self.longest_train(min_rtt, &sender)?;
        let now = self.config.clock.stamp(ack.now);
        if now.saturating_since(self.round.last_ack) > TRAIN_SPACING {
            return None;
        }
        self.round.last_ack = now;
        let longest = self.config.clock.floor(longest);
        (now.saturating_since(self.round.start) > longest).then_some(SlowStartExitReason::AckTrain)
    }

    /// Length above which an ACK train ends slow start; `None` if that test is not made.
    #[inline]
    fn longest_train(&self, min_rtt: Duration, sender: &SenderSnapshot) -> Option<Duration> {
        match self.config.ack_train {
            AckTrain::Off => None,
            AckTrain::Half => Some(min_rtt / 2),
            AckTrain::Cushioned if sender.paced => Some(min_rtt + cushion(sender)),
            AckTrain::Cushioned => Some((min_rtt + cushion(sender)) / 2),
        }
    }

    /// The delay test: even the smallest RTT of the round is well above that of the connection.
    fn delay(&mut self, rtt: Duration, min_rtt: Duration) -> Option<SlowStartExitReason> {
        if !self.config.delay {
            return None;
        }
        let round = &mut self.round;
        let complete = round.samples >= SAMPLES;
        if !complete || !self.config.falling_minimum_exits {
            round.rtt = Some(round.rtt.map_or(rtt, |round| round.min(rtt)));
        }
        if !complete {
            round.samples += 1;
            round.min_rtt = min_rtt;
            return None;
        }
        let round_rtt = round.rtt?;
        if round_rtt <= highest(min_rtt) {
            None
        } else if round_rtt <= highest(round.min_rtt) {
            Some(SlowStartExitReason::FallingMinimum)
        } else {
            Some(SlowStartExitReason::Delay)
        }
    }

    /// The state that the next acknowledgement meets; `None` before the first RTT.
    pub(super) fn snapshot(&self, sender: &SenderSnapshot) -> Option<HystartSnapshot> {
        let min_rtt = self.min_rtt?;
        let HystartConfig { clock, delay, .. } = self.config;
        let large = sender.window.cwnd >= LOW_WINDOW;
        let Round { start, last_ack, samples, rtt, .. } = self.round;
        let begun = large && start > Instant::ZERO;
        let limit = self.longest_train(min_rtt, sender).map(|longest| clock.floor(longest));
        Some(HystartSnapshot {
            active: !self.done && sender.window.in_slow_start(),
            round_min_rtt: rtt,
            threshold: delay.then(|| highest(min_rtt)),
            samples: (large && delay).then_some(samples),
            ack_train: limit.filter(|_| begun).map(|_| last_ack.saturating_since(start)),
            ack_train_limit: limit,
            css: None,
        })
    }
}

/// Highest RTT of a round that does not indicate a queue.
fn highest(min_rtt: Duration) -> Duration {
    min_rtt + (min_rtt / THRESHOLD_DIVISOR).clamp(MIN_THRESHOLD, MAX_THRESHOLD)
}

/// Time that segmentation offload may add. In slow start Linux paces, or would pace, at two windows
/// per smoothed RTT.
fn cushion(sender: &SenderSnapshot) -> Duration {
    let bytes_per_rtt = 2.0 * sender.window.cwnd * f64::from(sender.mss);
    let seconds = CUSHION_BYTES * sender.srtt.as_secs_f64() / bytes_per_rtt;
    Duration::from_secs_f64(seconds).min(MAX_CUSHION)
}

impl HystartClock {
    const fn tick(self) -> u64 {
        match self {
            Self::Millisecond => 1_000_000,
            Self::Microsecond => 1_000,
        }
    }

    fn floor(self, time: Duration) -> Duration {
        Duration::from_nanos(time.as_nanos() / self.tick() * self.tick())
    }

    fn stamp(self, now: Instant) -> Instant {
        Instant::from_nanos(now.as_nanos() / self.tick() * self.tick())
    }

    /// A sample in this unit, at least one.
    fn rtt(self, rtt: Duration) -> Duration {
        let unit = match self {
            Self::Millisecond => self.tick() / 8,
            Self::Microsecond => self.tick(),
        };
        Duration::from_nanos((rtt.as_nanos() / unit).max(1) * unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::cubic::tests::sample;

    /// When an ACK train ends slow start, in steps of 100 µs since the round's first
    /// acknowledgement; the RTT is 10 ms, with 100 segments.
    fn longest_train(config: HystartConfig, paced: bool) -> Duration {
        let mut hystart = Hystart::new(config);
        let window = Window { cwnd: 100.0, ssthresh: f64::INFINITY };
        let rtt = Duration::from_millis(10);
        let start = Instant::ZERO + rtt;
        for step in 0..1000 {
            let now = start + Duration::from_micros(100) * step;
            let ack = AckSample { una: 1 + step, nxt: 1000, paced, ..sample(now, 1, rtt) };
            if let Some(exit) = hystart.on_ack(&ack, &window) {
                assert_eq!(exit.reason, SlowStartExitReason::AckTrain);
                assert_eq!((exit.base_rtt, exit.round_rtt), (Some(rtt), None));
                return now - start;
            }
        }
        Duration::MAX
    }

    #[test]
    fn an_ack_train_may_last_half_the_rtt_or_the_rtt_if_paced() {
        let micros = Duration::from_micros;
        // Whole milliseconds, paced or not.
        let old = HystartConfig::LINUX_4_19;
        assert_eq!([false, true].map(|paced| longest_train(old, paced)), [micros(6000); 2]);
        // Half of the sum of 10 ms and 1 ms; the whole sum.
        for new in [HystartConfig::LINUX_5_6, HystartConfig::LINUX_6_14] {
            let trains = [false, true].map(|paced| longest_train(new, paced));
            assert_eq!(trains, [micros(5600), micros(11_100)]);
        }
        let off = HystartConfig { ack_train: AckTrain::Off, ..old };
        assert_eq!(longest_train(off, false), Duration::MAX);
    }

    #[test]
    fn the_cushion_is_four_bursts_at_twice_the_window_per_rtt() {
        let (srtt, paced) = (Duration::from_millis(1), false);
        let window = |cwnd| Window { cwnd, ssthresh: f64::INFINITY };
        let sender = SenderSnapshot { window: window(100.0), mss: 1000, srtt, paced };
        assert_eq!(cushion(&sender), MAX_CUSHION);
        // 262,144 bytes at 524,288 bytes/ms.
        let sender = SenderSnapshot { window: window(256.0), mss: 1024, ..sender };
        assert_eq!(cushion(&sender), Duration::from_micros(500));
    }

    #[test]
    fn samples_are_in_eighths_of_a_millisecond_until_5_6() {
        let rtt = Duration::from_nanos(1_260_999);
        assert_eq!(HystartClock::Millisecond.rtt(rtt), Duration::from_micros(1250));
        assert_eq!(HystartClock::Microsecond.rtt(rtt), Duration::from_micros(1260));
        assert_eq!(HystartClock::Millisecond.rtt(Duration::ZERO), Duration::from_micros(125));
    }
}
