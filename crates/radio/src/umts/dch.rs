//! Dedicated channels of Release 99.

use airpath_base::Duration;

/// Rate of a DCH for packet data: interactive or background RABs of TS 34.108 6.10.2.4.1.
///
/// Every TTI carries up to [`blocks`](Self::blocks) RLC PDUs of 336 bits, 320 of them data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DchRate {
    /// 64 kb/s.
    Kbps64,
    /// 128 kb/s.
    Kbps128,
    /// 384 kb/s.
    Kbps384,
}

impl DchRate {
    /// The data rate in kb/s.
    pub const fn kbps(self) -> u32 {
        match self {
            Self::Kbps64 => 64,
            Self::Kbps128 => 128,
            Self::Kbps384 => 384,
        }
    }

    /// The DCH with this rate.
    pub const fn from_kbps(kbps: u64) -> Option<Self> {
        match kbps {
            64 => Some(Self::Kbps64),
            128 => Some(Self::Kbps128),
            384 => Some(Self::Kbps384),
            _ => None,
        }
    }

    /// Transmission time interval.
    pub const fn tti(self) -> Duration {
        match self {
            Self::Kbps64 | Self::Kbps128 => Duration::from_millis(20),
            Self::Kbps384 => Duration::from_millis(10),
        }
    }

    /// RLC PDUs per TTI.
    pub const fn blocks(self) -> u32 {
        match self {
            Self::Kbps64 => 4,
            Self::Kbps128 => 8,
            Self::Kbps384 => 12,
        }
    }

    /// Bits per TTI.
    pub const fn bits(self) -> u32 {
        336 * self.blocks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_all_blocks_are_the_rate() {
        for rate in [DchRate::Kbps64, DchRate::Kbps128, DchRate::Kbps384] {
            let bits = u64::from(320 * rate.blocks());
            assert_eq!(bits * 1_000_000 / rate.tti().as_nanos(), u64::from(rate.kbps()));
            assert_eq!(DchRate::from_kbps(rate.kbps().into()), Some(rate));
        }
        assert_eq!(DchRate::from_kbps(256), None);
    }
}
