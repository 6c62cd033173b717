//! The clock of the timestamps option.

use airpath_base::{Duration, Instant};

/// A run begins this long after a tick of the host's clock, as an emulated one does (ADR 106).
pub(crate) const AFTER_TICK: Duration = Duration::from_micros(250);

/// A timestamp clock of 1 µs (RFC 7323 5.4 allows 1 ms to 1 s; only differences matter here). Its
/// values are odd, because on the wire 0 reads as an absent echo (RFC 7323 3.2).
pub fn timestamp(now: Instant) -> u32 {
    ((now + AFTER_TICK).as_nanos() / 1_000) as u32 | 1
}
