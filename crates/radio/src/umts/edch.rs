//! E-DCH: the enhanced uplink.

use airpath_base::Duration;

use super::{FRAME, SUBFRAME};

/// E-DCH transmission time interval (TS 25.211 5.2.1.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdchTti {
    /// One subframe.
    Ms2,
    /// One frame.
    Ms10,
}

impl EdchTti {
    /// The length of the TTI.
    pub const fn duration(self) -> Duration {
        match self {
            Self::Ms2 => SUBFRAME,
            Self::Ms10 => FRAME,
        }
    }

    /// HARQ processes: synchronous, one after the other (TS 25.321 11.8.1.1.1).
    pub const fn processes(self) -> u8 {
        match self {
            Self::Ms2 => 8,
            Self::Ms10 => 4,
        }
    }
}

/// E-DCH physical layer category of a UE (TS 25.306 table 5.1g).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EdchCategory(u8);

impl EdchCategory {
    /// Category 1 to 7; `None` for others, which require several carriers or 64QAM.
    pub const fn new(number: u8) -> Option<Self> {
        match number {
            1..=7 => Some(Self(number)),
            _ => None,
        }
    }

    /// The number of the category in TS 25.306, from 1.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The largest transport block in bits; `None` if the UE does not support the TTI.
    pub const fn most_bits(self, tti: EdchTti) -> Option<u32> {
        match (tti, self.0) {
            (EdchTti::Ms10, 1) => Some(7_110),
            (EdchTti::Ms10, 2 | 3) => Some(14_484),
            (EdchTti::Ms10, _) => Some(20_000),
            (EdchTti::Ms2, 2) => Some(2_798),
            (EdchTti::Ms2, 4) => Some(5_772),
            (EdchTti::Ms2, 6) => Some(11_484),
            (EdchTti::Ms2, 7) => Some(22_996),
            (EdchTti::Ms2, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_that_categories_are_known_by() {
        // kb/s at the physical layer: 711, 1448, 2000 with 10 ms; 1399, 2886, 5742, 11498 with 2 ms
        let kbps = |tti: EdchTti, number| {
            let bits = EdchCategory::new(number)?.most_bits(tti)?;
            Some(u64::from(bits) * 1_000_000 / tti.duration().as_nanos())
        };
        let ten = [1, 2, 3, 4, 5, 6, 7].map(|number| kbps(EdchTti::Ms10, number).unwrap());
        assert_eq!(ten, [711, 1448, 1448, 2000, 2000, 2000, 2000]);
        let two = [2, 4, 6, 7].map(|number| kbps(EdchTti::Ms2, number).unwrap());
        assert_eq!(two, [1399, 2886, 5742, 11_498]);
        assert!([1, 3, 5, 8].into_iter().all(|number| kbps(EdchTti::Ms2, number).is_none()));
    }

    #[test]
    fn round_trips_are_16_and_40_ms() {
        let round = |tti: EdchTti| tti.duration() * u64::from(tti.processes());
        assert_eq!(round(EdchTti::Ms2), Duration::from_millis(16));
        assert_eq!(round(EdchTti::Ms10), Duration::from_millis(40));
    }
}
