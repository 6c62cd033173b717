//! Rate caps: one token bucket per UE.

use airpath_base::{Instant, Rate};
use airpath_queue::TokenBucket;

/// An upper bound on a UE's rate (AMBR).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateCap {
    /// Long-run rate.
    pub rate: Rate,
    /// Bytes that may pass at once after a pause; 0 counts as 1. The averaging window of an AMBR is
    /// the bucket divided by the rate.
    pub bucket_bytes: u64,
}

impl RateCap {
    /// The bucket, full at `now`.
    pub(super) fn bucket(self, now: Instant) -> TokenBucket {
        TokenBucket::full_at(self.rate, self.bucket_bytes.max(1), now)
    }
}
