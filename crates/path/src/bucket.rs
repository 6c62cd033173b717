//! A token bucket (RFC 2697 3 calls one its committed bucket), exact to the bit and nanosecond.

use airpath_base::{Duration, Instant, Rate};

/// Tokens are bytes. The bucket starts full.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    rate: Rate,
    burst: u64,
    /// In 10^-9 bits; below zero after a packet larger than the bucket.
    level: i128,
    /// When it had that level.
    at: Instant,
}

/// Units of the level in a byte.
const UNITS_PER_BYTE: i128 = 8_000_000_000;

impl TokenBucket {
    /// Fills at `rate` up to `burst` bytes.
    pub(crate) fn new(rate: Rate, burst: u64) -> Self {
        Self { rate, burst, level: i128::from(burst) * UNITS_PER_BYTE, at: Instant::ZERO }
    }

    /// Takes the tokens of `size` bytes at `now`, if they are there.
    #[inline]
    pub(crate) fn take(&mut self, now: Instant, size: u32) -> bool {
        self.fill(now);
        let cost = i128::from(size) * UNITS_PER_BYTE;
        let conforms = self.level >= cost;
        if conforms {
            self.level -= cost;
        }
        conforms
    }

    /// Takes the tokens of `size` bytes as soon after `now` as they are there, and says when that
    /// is. A packet larger than the bucket goes when that is full, and leaves a debt.
    #[inline]
    pub(crate) fn take_when_full_enough(&mut self, now: Instant, size: u32) -> Instant {
        self.fill(now);
        let cost = i128::from(size) * UNITS_PER_BYTE;
        let wanted = cost.min(i128::from(self.burst) * UNITS_PER_BYTE);
        let missing = u128::try_from(wanted - self.level).unwrap_or(0);
        let wait = missing.div_ceil(u128::from(self.rate.bps()));
        let at = now + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX));
        self.fill(at);
        self.level -= cost;
        at
    }

    /// Rate at which it fills.
    pub(crate) const fn rate(&self) -> Rate {
        self.rate
    }

    /// Bytes that it holds.
    pub(crate) const fn burst(&self) -> u64 {
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
        // 8 Mb/s: 1,000 bytes a millisecond.
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
    fn a_packet_larger_than_the_bucket_leaves_a_debt() {
        let mut bucket = bucket(1_000);
        assert_eq!(bucket.take_when_full_enough(ms(0), 5_000), ms(0));
        // 4,000 bytes of debt, then 1,000 for the packet.
        assert_eq!(bucket.take_when_full_enough(ms(0), 5_000), ms(5));
    }
}
