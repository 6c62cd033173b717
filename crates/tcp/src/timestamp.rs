//! The clock of the timestamps option.

use airpath_base::Instant;

/// A timestamp clock of 1 µs (RFC 7323 5.4 allows 1 ms to 1 s; only differences matter here). Its
/// values are odd: on the wire 0 is what an absent echo reads as (RFC 7323 3.2).
pub(crate) fn timestamp(now: Instant) -> u32 {
    (now.as_nanos() / 1_000) as u32 | 1
}
