//! A token bucket (the committed bucket of RFC 2697 3), exact to the bit and nanosecond.

use airpath_base::{Duration, Instant, Rate};

/// Tokens are bytes. The bucket starts full.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate: Rate,
    burst: u64,
    /// Level in 10^-9 bits; below zero after a packet larger than the bucket.
    level: i128,
    /// When it had that level; if a packet waits for tokens, when the packet will be sent.
    at: Instant,
    /// The level just before that.
    before: i128,
}

/// Units of the level per byte.
const UNITS_PER_BYTE: i128 = 8_000_000_000;

impl TokenBucket {
    /// A bucket that fills at `rate` up to `burst` bytes.
    pub fn new(rate: Rate, burst: u64) -> Self {
        Self::full_at(rate, burst, Instant::ZERO)
    }

    /// A bucket that fills at `rate` up to `burst` bytes, and is full at `now`.
    pub fn full_at(rate: Rate, burst: u64, now: Instant) -> Self {
        let level = i128::from(burst) * UNITS_PER_BYTE;
        Self { rate, burst, level, at: now, before: level }
    }

    /// Whole bytes for which there are tokens at `now`.
    #[inline]
    pub fn available(&mut self, now: Instant) -> u64 {
        self.fill(now);
        // At most the burst.
        (self.level.max(0) / UNITS_PER_BYTE) as u64
    }

    /// Takes the tokens of `bytes` at the time of the last call, whether there are enough or not:
    /// the rest is a debt.
    #[inline]
    pub fn spend(&mut self, bytes: u64) {
        self.level -= i128::from(bytes) * UNITS_PER_BYTE;
    }

    /// When there are tokens for one byte: `now` or later.
    pub fn next_byte(&self, now: Instant) -> Instant {
        let missing = u128::try_from(UNITS_PER_BYTE - self.level).unwrap_or(0);
        let wait = missing.div_ceil(u128::from(self.rate.bps()));
        // A debt is at most one block.
        now.max(self.at + Duration::from_nanos(wait as u64))
    }

    /// Takes the tokens of `size` bytes at `now`, if there are enough.
    #[inline]
    pub fn take(&mut self, now: Instant, size: u32) -> bool {
        self.fill(now);
        let cost = i128::from(size) * UNITS_PER_BYTE;
        let conforms = self.level >= cost;
        if conforms {
            self.level -= cost;
        }
        conforms
    }

    /// Takes the tokens of `size` bytes as soon after `now` as there are enough, and returns when
    /// that is. A packet larger than the bucket is sent when the bucket is full, and leaves a debt.
    #[inline]
    pub fn take_when_full_enough(&mut self, now: Instant, size: u32) -> Instant {
        self.fill(now);
        let cost = i128::from(size) * UNITS_PER_BYTE;
        let wanted = cost.min(i128::from(self.burst) * UNITS_PER_BYTE);
        let missing = u128::try_from(wanted - self.level).unwrap_or(0);
        let wait = missing.div_ceil(u128::from(self.rate.bps()));
        let at = now + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX));
        self.fill(at);
        self.before = self.level;
        self.level -= cost;
        at
    }

    /// Bytes for which there are tokens at `now`; negative for bytes that passed ahead of their
    /// tokens.
    pub fn tokens_bytes(&self, now: Instant) -> f64 {
        let came = |time: Duration| i128::from(time.as_nanos()) * i128::from(self.rate.bps());
        let level = match now < self.at {
            true => self.before - came(self.at - now),
            false => self.level + came(now - self.at),
        };
        level.min(i128::from(self.burst) * UNITS_PER_BYTE) as f64 / UNITS_PER_BYTE as f64
    }

    /// Rate at which the bucket fills.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Size of the bucket in bytes.
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    #[inline]
    fn fill(&mut self, now: Instant) {
        let elapsed = now.saturating_since(self.at).as_nanos();
        let full = i128::from(self.burst) * UNITS_PER_BYTE;
        self.level = (self.level + i128::from(elapsed) * i128::from(self.rate.bps())).min(full);
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn bucket(burst: u64) -> TokenBucket {
        // 8 Mb/s: 1,000 bytes per millisecond.
        TokenBucket::new(Rate::from_bps(8_000_000).unwrap(), burst)
    }

    #[test]
    fn starts_full_fills_at_its_rate_and_no_higher_than_its_burst() {
        let mut bucket = bucket(3_000);
        assert!(bucket.take(ms(0), 3_000));
        assert!(!bucket.take(ms(0), 1));
        assert!(!bucket.take(ms(1), 1_001), "what does not conform takes nothing");
        assert!(bucket.take(ms(1), 1_000));
        assert!(!bucket.take(ms(100), 3_001));
        assert!(bucket.take(ms(100), 3_000));
    }

    #[test]
    fn waits_for_exactly_what_is_missing() {
        let mut bucket = bucket(3_000);
        assert_eq!(bucket.take_when_full_enough(ms(0), 2_500), ms(0));
        assert_eq!(bucket.take_when_full_enough(ms(0), 1_500), ms(1));
        assert_eq!(bucket.take_when_full_enough(ms(1), 1_500), ms(1) + Duration::from_micros(1500));
    }

    #[test]
    fn what_is_spent_beyond_its_level_is_a_debt() {
        let mut bucket = bucket(1_000);
        assert_eq!(bucket.available(ms(0)), 1_000);
        bucket.spend(3_000);
        assert_eq!(bucket.available(ms(1)), 0);
        // 1,000 bytes of debt, plus the byte itself.
        assert_eq!(bucket.next_byte(ms(1)), ms(2) + Duration::from_micros(1));
        assert_eq!(bucket.next_byte(ms(9)), ms(9));
        assert_eq!(bucket.available(ms(3)), 1_000);
    }

    #[test]
    fn a_packet_larger_than_the_bucket_leaves_a_debt() {
        let mut bucket = bucket(1_000);
        assert_eq!(bucket.take_when_full_enough(ms(0), 5_000), ms(0));
        assert_eq!((bucket.tokens_bytes(ms(0)), bucket.tokens_bytes(ms(3))), (-4_000.0, -1_000.0));
        // 4,000 bytes of debt, then 1,000 for the packet.
        assert_eq!(bucket.take_when_full_enough(ms(0), 5_000), ms(5));
        // The second packet's debt begins when it is sent.
        let tokens = [0, 3, 4, 5, 6, 9, 99].map(|at| bucket.tokens_bytes(ms(at)));
        assert_eq!(tokens, [-4_000.0, -1_000.0, 0.0, -4_000.0, -3_000.0, 0.0, 1_000.0]);
    }
}
