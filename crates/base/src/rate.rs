//! Bit rates.

use crate::Duration;

/// A bit rate in bits per second, never zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rate(core::num::NonZeroU64);

impl Rate {
    /// `None` for zero: a link that never sends is an outage, and has no rate.
    pub const fn from_bps(bits_per_second: u64) -> Option<Self> {
        match core::num::NonZeroU64::new(bits_per_second) {
            Some(bps) => Some(Self(bps)),
            None => None,
        }
    }

    /// The rate in bits per second.
    pub const fn bps(self) -> u64 {
        self.0.get()
    }

    /// The rate in megabits (10^6) per second.
    pub fn mbps(self) -> f64 {
        self.bps() as f64 / 1e6
    }

    /// Time to send `bytes`, and the remainder of the division in units of 1/rate ns.
    ///
    /// A sender that carries the remainder over to the next packet keeps the long-run rate exact.
    pub const fn transmission_time(self, bytes: u32, carried: u64) -> (Duration, u64) {
        let work = bytes as u64 * 8_000_000_000 + carried;
        let rate = self.bps();
        (Duration::from_nanos(work / rate), work % rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carried_remainder_keeps_the_long_run_rate_exact() {
        let rate = Rate::from_bps(7_000_000).unwrap();
        let (mut carried, mut total) = (0, Duration::ZERO);
        for _ in 0..7_000 {
            let (time, rest) = rate.transmission_time(1500, carried);
            total += time;
            carried = rest;
        }
        // 7,000 packets × 12,000 bits at 7 Mb/s = 12 s.
        assert_eq!((total, carried), (Duration::from_secs(12), 0));
    }
}
