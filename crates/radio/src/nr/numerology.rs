//! Subcarrier spacing and the quantities derived from it.

use airpath_base::Duration;

/// OFDM symbols per slot with normal cyclic prefix (TS 38.211 table 4.3.2-1).
pub const SYMBOLS_PER_SLOT: u32 = 14;

/// A subcarrier spacing with normal cyclic prefix (TS 38.211 table 4.2-1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Numerology {
    /// mu = 0.
    Khz15,
    /// mu = 1.
    Khz30,
    /// mu = 2.
    Khz60,
    /// mu = 3.
    Khz120,
}

impl Numerology {
    /// All numerologies, by mu.
    pub const ALL: [Self; 4] = [Self::Khz15, Self::Khz30, Self::Khz60, Self::Khz120];

    /// The numerology with this mu, 0 to 3.
    pub const fn from_mu(mu: u8) -> Option<Self> {
        match mu {
            0 => Some(Self::Khz15),
            1 => Some(Self::Khz30),
            2 => Some(Self::Khz60),
            3 => Some(Self::Khz120),
            _ => None,
        }
    }

    /// The numerology with this subcarrier spacing in kHz.
    pub const fn from_khz(khz: u32) -> Option<Self> {
        match khz {
            15 => Some(Self::Khz15),
            30 => Some(Self::Khz30),
            60 => Some(Self::Khz60),
            120 => Some(Self::Khz120),
            _ => None,
        }
    }

    /// The number of TS 38.211 4.2: the subcarrier spacing is 15 kHz times two to the power of mu.
    pub const fn mu(self) -> u32 {
        self as u32
    }

    /// Subcarrier spacing in kHz: 15 x 2^mu.
    pub const fn khz(self) -> u32 {
        15 << self.mu()
    }

    /// Length of a slot: 1 ms / 2^mu.
    pub const fn slot(self) -> Duration {
        Duration::from_nanos(1_000_000 >> self.mu())
    }

    /// Slots per subframe of 1 ms: 2^mu.
    pub const fn slots_per_subframe(self) -> u32 {
        1 << self.mu()
    }

    /// Slots per frame of 10 ms: 10 x 2^mu.
    pub const fn slots_per_frame(self) -> u32 {
        10 << self.mu()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_tables_4_2_1_and_4_3_2_1() {
        // TS 38.211: mu, kHz, slots per frame, slot in ns
        let rows = [
            (0, 15, 10, 1_000_000),
            (1, 30, 20, 500_000),
            (2, 60, 40, 250_000),
            (3, 120, 80, 125_000),
        ];
        for (mu, khz, slots, nanos) in rows {
            let numerology = Numerology::from_mu(mu).unwrap();
            assert_eq!(numerology.khz(), khz);
            assert_eq!(Numerology::from_khz(khz), Some(numerology));
            assert_eq!(numerology.slots_per_frame(), slots);
            assert_eq!(numerology.slot().as_nanos(), nanos);
        }
        assert_eq!(Numerology::from_mu(4), None);
    }
}
