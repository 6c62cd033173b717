//! Rate caps: a token bucket per UE.

use airpath_base::{Instant, Rate};

/// An upper bound on a UE's rate (AMBR).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateCap {
    /// Long-run rate.
    pub rate: Rate,
    /// What may pass at once after a pause, in bytes; 0 counts as 1. The averaging window of an
    /// AMBR is the bucket over the rate.
    pub bucket_bytes: u64,
}

/// Tokens, refilled when asked. The level may be negative: a debt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    cap: RateCap,
    /// In 10^-9 bits, so that rate × nanoseconds needs no rounding.
    level: i128,
    at: Instant,
}

const BYTE: i128 = 8_000_000_000;

impl Bucket {
    pub(super) fn new(cap: RateCap) -> Self {
        Self::full_at(cap, Instant::ZERO)
    }

    pub(super) fn full_at(cap: RateCap, now: Instant) -> Self {
        Self { cap, level: most(cap), at: now }
    }

    /// Whole bytes that may pass at `now`, which never decreases.
    pub(super) fn eligible(&mut self, now: Instant) -> u64 {
        let gained =
            i128::from(self.cap.rate.bps()) * i128::from(now.saturating_since(self.at).as_nanos());
        self.level = most(self.cap).min(self.level + gained);
        self.at = now;
        // At most `bucket_bytes`.
        (self.level.max(0) / BYTE) as u64
    }

    /// Bytes pass.
    pub(super) fn take(&mut self, bytes: u64) {
        self.level -= i128::from(bytes) * BYTE;
    }

    /// When a byte may pass, `now` or later.
    pub(super) fn eligible_at(&self, now: Instant) -> Instant {
        // Ceiling of a positive quotient; a debt is at most one block.
        let wait = (BYTE - self.level).max(0) as u128;
        let nanos = wait.div_ceil(u128::from(self.cap.rate.bps()));
        now.max(self.at + airpath_base::Duration::from_nanos(nanos as u64))
    }
}

fn most(cap: RateCap) -> i128 {
    i128::from(cap.bucket_bytes.max(1)) * BYTE
}
