//! The server of a link: a constant rate, the opportunities of a trace, or tokens.

use std::sync::Arc;

use airpath_base::{Duration, Instant, Rate};

use crate::{OPPORTUNITY_BYTES, ServiceConfig, Trace};
use airpath_queue::TokenBucket;

/// The state of a server. For each packet `begin` says when it leaves the queue, `serve` when it
/// has been sent.
#[derive(Debug)]
pub(crate) enum Service {
    Rate(RateService),
    Trace(TraceService),
    Bucket(TokenBucket),
}

/// A constant rate. Packets of the same size take the same time, except for the carried remainder:
/// only the first packet of a size needs a division.
#[derive(Debug)]
pub(crate) struct RateService {
    rate: Rate,
    carried: u64,
    size: u32,
    /// Time to send a packet of that size with nothing carried over.
    time: Duration,
    rest: u64,
}

/// Position in a looping trace.
#[derive(Debug)]
pub(crate) struct TraceService {
    trace: Arc<Trace>,
    /// Start of the current period.
    base: Instant,
    /// The next unused opportunity.
    next: usize,
    /// Bytes left of the opportunity in use, valid only at the instant `at`.
    left: u32,
    at: Instant,
}

impl Service {
    pub(crate) fn new(config: &ServiceConfig) -> Self {
        match config {
            ServiceConfig::Rate(rate) => Self::Rate(RateService::new(*rate)),
            ServiceConfig::Trace(trace) => Self::Trace(TraceService {
                trace: trace.clone(),
                base: Instant::ZERO,
                next: 0,
                left: 0,
                at: Instant::ZERO,
            }),
            ServiceConfig::Bucket { rate, burst } => Self::Bucket(TokenBucket::new(*rate, *burst)),
        }
    }

    /// The packet at the head may start at `ready`; returns when it does. `continuing`: the server
    /// was busy until `ready`, so that the rest of an opportunity can be used.
    #[inline]
    pub(crate) fn begin(&mut self, ready: Instant, continuing: bool) -> Instant {
        match self {
            Self::Rate(service) => {
                if !continuing {
                    service.begin_anew();
                }
                ready
            }
            Self::Trace(trace) => trace.begin(ready, continuing),
            Self::Bucket(_) => ready,
        }
    }

    /// Sends `size` bytes from `start`, an instant that `begin` returned; returns when the last
    /// byte has left.
    #[inline]
    pub(crate) fn serve(&mut self, start: Instant, size: u32) -> Instant {
        match self {
            Self::Rate(service) => start + service.serve(size),
            Self::Trace(trace) => trace.serve(size),
            Self::Bucket(bucket) => bucket.take_when_full_enough(start, size),
        }
    }

    /// The part of the bytes that could have been served by `now` that could still be served at
    /// once.
    pub(crate) fn stored_bytes(&self, now: Instant) -> f64 {
        match self {
            Self::Rate(_) | Self::Trace(_) => 0.0,
            Self::Bucket(bucket) => bucket.tokens_bytes(now).max(0.0),
        }
    }

    /// Bytes that could have been served in `[0, now]`.
    pub(crate) fn capacity_bytes(&self, now: Instant) -> f64 {
        match self {
            Self::Rate(service) => fixed_capacity_bytes(service.rate, now),
            Self::Trace(TraceService { trace, .. }) => {
                let since_start = now.saturating_since(Instant::ZERO);
                trace.opportunities_until(since_start) as f64 * f64::from(OPPORTUNITY_BYTES)
            }
            // A packet larger than the bucket passes ahead of its tokens.
            Self::Bucket(bucket) => {
                bucket.burst() as f64
                    + fixed_capacity_bytes(bucket.rate(), now)
                    + (-bucket.tokens_bytes(now)).max(0.0)
            }
        }
    }
}

/// Bytes that could have been served at a constant rate in `[0, now]`.
pub(crate) fn fixed_capacity_bytes(rate: Rate, now: Instant) -> f64 {
    now.as_secs_f64() * rate.bps() as f64 / 8.0
}

impl RateService {
    pub(crate) const fn new(rate: Rate) -> Self {
        Self { rate, carried: 0, size: 0, time: Duration::ZERO, rest: 0 }
    }

    pub(crate) const fn rate(&self) -> Rate {
        self.rate
    }

    /// The server was idle: nothing is carried over.
    #[inline]
    pub(crate) const fn begin_anew(&mut self) {
        self.carried = 0;
    }

    /// Whether the last packet sent had this size.
    #[inline]
    pub(crate) const fn served_last(&self, size: u32) -> bool {
        size == self.size
    }

    /// How long it takes to send this many bytes.
    #[inline]
    pub(crate) fn serve(&mut self, size: u32) -> Duration {
        if size != self.size {
            self.size = size;
            (self.time, self.rest) = self.rate.transmission_time(size, 0);
        }
        // Both are less than the rate: together they add at most one nanosecond.
        let rest = self.rest + self.carried;
        let over = rest >= self.rate.bps();
        self.carried = if over { rest - self.rate.bps() } else { rest };
        self.time + Duration::from_nanos(u64::from(over))
    }
}

impl TraceService {
    fn begin(&mut self, ready: Instant, continuing: bool) -> Instant {
        if !continuing {
            self.seek_after(ready);
        }
        if self.left > 0 { self.at } else { self.next_time() }
    }

    fn serve(&mut self, size: u32) -> Instant {
        let mut rest = size;
        loop {
            if self.left == 0 {
                self.at = self.next_time();
                self.left = OPPORTUNITY_BYTES;
                self.next += 1;
                if self.next == self.trace.stamps().len() {
                    self.next = 0;
                    self.base += self.trace.period();
                }
            }
            let sent = rest.min(self.left);
            self.left -= sent;
            rest -= sent;
            if rest == 0 {
                return self.at;
            }
        }
    }

    /// Moves to the first opportunity after `ready`: a packet that arrives exactly at an
    /// opportunity has missed it.
    fn seek_after(&mut self, ready: Instant) {
        self.left = 0;
        let period = self.trace.period().as_nanos();
        let inside = ready.as_nanos() % period;
        self.base = Instant::from_nanos(ready.as_nanos() - inside);
        let inside = Duration::from_nanos(inside);
        // Always found: the last stamp is the period, and `inside` is less.
        self.next = self.trace.stamps().partition_point(|&stamp| stamp <= inside);
    }

    fn next_time(&self) -> Instant {
        self.base + self.trace.stamps()[self.next]
    }
}
