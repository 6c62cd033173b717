//! What the tests of both BBR versions share: a closed loop of an algorithm, a pacing sender and
//! one bottleneck with a buffer. The test of rounding is here, too.

use std::collections::VecDeque;

use airpath_base::{Duration, Instant, Stream};
use proptest::prelude::{any, prop_assert, proptest};

use super::{ceil, floor};
use crate::congestion::{
    AckSample, Congestion, CongestionControl, LostSegment, RateSample, SlowStartExit, State, Window,
};

pub(super) const MSS: u32 = 1000;
/// Number of later arrivals that indicate a loss.
const REORDERING: u64 = 3;

/// The path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// Segments per second.
    pub(super) rate: f64,
    /// Round trip without queueing and serialisation.
    pub(super) rtt: Duration,
    /// Most segments that wait.
    pub(super) buffer: f64,
    /// Fraction of segments that are lost at random.
    pub(super) loss: f64,
    /// Acknowledgements arrive together, at multiples of this time.
    pub(super) ack_grid: Option<Duration>,
}

impl Path {
    /// Bandwidth-delay product in segments.
    pub(super) fn bdp(&self) -> f64 {
        self.rate * self.rtt.as_secs_f64() + 1.0
    }
}

pub(super) const PATH: Path = Path {
    rate: 2_000.0,
    rtt: Duration::from_millis(50),
    buffer: 400.0,
    loss: 0.0,
    ack_grid: None,
};

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    lost: u64,
    in_flight: u32,
    app_limited: bool,
    gone: bool,
}

/// Sender and path. Each transmission has its own number, as in QUIC; there is no byte stream.
#[derive(Debug)]
pub(super) struct Loop<C> {
    pub(super) bbr: C,
    pub(super) path: Path,
    pub(super) now: Instant,
    pub(super) window: Window,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    pub(super) sent: u64,
    pub(super) in_flight: u32,
    pub(super) timeouts: u32,
    pub(super) exit: Option<(Instant, SlowStartExit)>,
    /// Whether the application has something to send.
    pub(super) busy: bool,
    random: Stream,
    link_free: Instant,
    next_send: Instant,
    outstanding: VecDeque<Sent>,
    first: u64,
    acks: VecDeque<(Instant, u64)>,
    state: State,
    recovery_end: u64,
    /// Number at which the retransmissions of the current recovery end.
    repaired: u64,
    limited_until: u64,
    app_limited_until: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    srtt: Duration,
    min_rtt: Duration,
    last_progress: Instant,
}

impl<C: CongestionControl> Loop<C> {
    pub(super) fn new(bbr: C, path: Path) -> Self {
        Self {
            bbr,
            path,
            now: Instant::ZERO,
            window: Window { cwnd: 10.0, ssthresh: f64::INFINITY },
            delivered: 0,
            lost: 0,
            sent: 0,
            in_flight: 0,
            timeouts: 0,
            exit: None,
            busy: true,
            random: Stream::new(1, "link"),
            link_free: Instant::ZERO,
            next_send: Instant::ZERO,
            outstanding: VecDeque::new(),
            first: 0,
            acks: VecDeque::new(),
            state: State::Open,
            recovery_end: 0,
            repaired: 0,
            limited_until: 0,
            app_limited_until: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            srtt: Duration::ZERO,
            min_rtt: Duration::MAX,
            last_progress: Instant::ZERO,
        }
    }

    /// Segments waiting at the bottleneck, the one in service included.
    pub(super) fn queue(&self) -> f64 {
        self.link_free.saturating_since(self.now).as_secs_f64() * self.path.rate
    }

    /// Runs for `seconds`; `observe` sees the state after each acknowledgement. Returns the
    /// utilisation of the link.
    pub(super) fn run(&mut self, seconds: f64, mut observe: impl FnMut(&Self)) -> f64 {
        let (end, before) = (self.now + Duration::from_secs_f64(seconds), self.delivered);
        loop {
            let timeout = self.last_progress + Duration::from_secs(1);
            let ack = self.acks.front().map(|&(at, _)| at);
            let send = (self.busy && self.has_room()).then_some(self.next_send.max(self.now));
            let timer = (self.in_flight > 0).then_some(timeout);
            let next = [ack, send, timer].into_iter().flatten().min();
            let Some(next) = next.filter(|&at| at <= end) else { break };
            self.now = next;
            if ack == Some(next) {
                self.acknowledge();
                observe(self);
            } else if send == Some(next) {
                self.send();
            } else {
                self.time_out();
            }
        }
        self.now = end;
        (self.delivered - before) as f64 / (seconds * self.path.rate)
    }

    /// Pauses the application for `seconds`, then resumes it.
    pub(super) fn idle(&mut self, seconds: f64) {
        self.busy = false;
        self.app_limited_until = self.delivered + u64::from(self.in_flight).max(1);
        self.run(seconds, |_| {});
        self.busy = true;
    }

    fn has_room(&mut self) -> bool {
        let room = self.in_flight < self.window.segments();
        if !room {
            self.limited_until = self.sent;
        }
        room
    }

    fn send(&mut self) {
        if self.in_flight == 0 && self.sent > 0 {
            self.bbr.on_restart(self.now, self.last_progress, &mut self.window);
        }
        let burst = self.bbr.burst().unwrap_or(1);
        let mut count = 0;
        while count < burst && self.has_room() {
            self.transmit();
            count += 1;
        }
        let rate = self.bbr.pacing_rate().expect("BBR paces") / f64::from(MSS);
        assert!(rate > 0.0);
        self.next_send = self.now + Duration::from_secs_f64(f64::from(count) / rate);
    }

    fn transmit(&mut self) {
        if self.in_flight == 0 {
            (self.first_sent_at, self.delivered_at) = (self.now, self.now);
            self.last_progress = self.now;
        }
        self.in_flight += 1;
        self.outstanding.push_back(Sent {
            at: self.now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            in_flight: self.in_flight,
            app_limited: self.app_limited_until > 0,
            gone: false,
        });
        let number = self.sent;
        self.sent += 1;
        if self.queue() > self.path.buffer || self.random.chance(self.path.loss) {
            return;
        }
        let service = Duration::from_secs_f64(1.0 / self.path.rate);
        self.link_free = self.link_free.max(self.now) + service;
        let mut at = self.link_free + self.path.rtt;
        if let Some(grid) = self.path.ack_grid {
            let grid = grid.as_nanos();
            at = Instant::from_nanos(at.as_nanos().div_ceil(grid) * grid);
        }
        self.acks.push_back((at, number));
    }

    fn acknowledge(&mut self) {
        let prior_in_flight = self.in_flight;
        let mut delivered = 0;
        let mut newest = 0;
        while self.acks.front().is_some_and(|&(at, _)| at <= self.now) {
            let Some((_, number)) = self.acks.pop_front() else { break };
            newest = number;
            // Too late: it was already marked lost.
            let gone = number < self.first || self.at(number).gone;
            if !gone {
                self.at_mut(number).gone = true;
                self.in_flight -= 1;
                self.delivered += 1;
                delivered += 1;
            }
        }
        if delivered == 0 {
            return;
        }
        (self.delivered_at, self.last_progress) = (self.now, self.now);
        let sent = *self.at(newest);
        let rtt = self.now - sent.at;
        self.min_rtt = self.min_rtt.min(rtt);
        self.srtt = if self.srtt == Duration::ZERO { rtt } else { self.srtt / 8 * 7 + rtt / 8 };
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        self.first_sent_at = sent.at;
        let interval = (sent.at - sent.first_sent_at).max(self.now - sent.delivered_at);
        let lost = self.lose_before(newest.saturating_sub(REORDERING - 1));
        let rate = RateSample {
            total_delivered: self.delivered,
            prior_delivered: sent.delivered,
            interval: (interval >= self.min_rtt).then_some(interval),
            app_limited: sent.app_limited,
            prior_in_flight,
            tx_in_flight: sent.in_flight,
            total_lost: self.lost,
            prior_lost: sent.lost,
        };
        if self.state != State::Open && self.first >= self.recovery_end.max(self.repaired) {
            self.state = State::Open;
            self.bbr.on_recovered(self.now, &mut self.window);
        }
        if lost > 0 && self.state == State::Open {
            self.state = State::Recovery;
            (self.recovery_end, self.repaired) = (self.sent, self.sent + 1);
            let congestion = Congestion { now: self.now, flight: self.in_flight };
            self.bbr.on_congestion(&congestion, &mut self.window);
        }
        let ack = AckSample {
            now: self.now,
            una: self.first * u64::from(MSS),
            nxt: self.sent * u64::from(MSS),
            mss: MSS,
            acked: delivered,
            delivered,
            lost,
            ecn_echo: false,
            rtt: Some(rtt),
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            in_flight: self.in_flight,
            cwnd_limited: newest <= self.limited_until,
            paced: true,
            pacing_wait: self.next_send.saturating_since(self.now),
            state: self.state,
            rate: Some(rate),
        };
        if let Some(exit) = self.bbr.on_ack(&ack, &mut self.window) {
            assert!(self.exit.replace((self.now, exit)).is_none(), "twice");
        }
    }

    /// Marks all transmissions before `number` lost.
    fn lose_before(&mut self, number: u64) -> u32 {
        let mut lost = 0;
        while self.first < number {
            let Some(sent) = self.outstanding.pop_front() else { break };
            let seq = self.first * u64::from(MSS);
            self.first += 1;
            if sent.gone {
                continue;
            }
            if self.first <= self.recovery_end {
                self.repaired = self.sent + 1;
            }
            lost += 1;
            self.lost += 1;
            self.in_flight -= 1;
            let segment = LostSegment {
                now: self.now,
                seq,
                end: seq + u64::from(MSS),
                tx_in_flight: sent.in_flight,
                app_limited: sent.app_limited,
                total_delivered: self.delivered,
                total_lost: self.lost,
                prior_lost: sent.lost,
            };
            self.bbr.on_lost(&segment, &mut self.window);
        }
        lost
    }

    fn time_out(&mut self) {
        self.timeouts += 1;
        self.last_progress = self.now;
        self.lose_before(self.sent);
        self.state = State::Loss;
        self.recovery_end = self.sent;
        let congestion = Congestion { now: self.now, flight: 0 };
        self.bbr.on_timeout(&congestion, &mut self.window);
        self.next_send = self.now;
    }

    fn at(&self, number: u64) -> &Sent {
        &self.outstanding[(number - self.first) as usize]
    }

    fn at_mut(&mut self, number: u64) -> &mut Sent {
        &mut self.outstanding[(number - self.first) as usize]
    }
}

proptest! {
    #[test]
    fn rounding_is_that_of_the_library(bits in any::<u64>(), small in -1e6..1e6, whole in -9i32..9) {
        for x in [f64::from_bits(bits), small, f64::from(whole), f64::from(whole) + 0.5] {
            prop_assert!(floor(x) == x.floor() || x.is_nan() && floor(x).is_nan());
            prop_assert!(ceil(x) == x.ceil() || x.is_nan() && ceil(x).is_nan());
        }
    }
}
