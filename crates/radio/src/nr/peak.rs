//! The peak data rate that a UE supports (TS 38.306 4.1.2).

use super::{FrequencyRange, Numerology, SYMBOLS_PER_SLOT};
use crate::scheme::Modulation;
use airpath_base::Direction;

/// One term of the sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carrier {
    /// v_Layers.
    pub layers: u32,
    /// The highest modulation, for Q_m.
    pub modulation: Modulation,
    /// f, the scaling factor in percent: 100, 80, 75 or 40.
    pub scaling_percent: u32,
    /// N_PRB of the widest channel.
    pub prbs: u32,
    /// Numerology, for mu.
    pub numerology: Numerology,
    /// OH in percent: see [`Carrier::overhead_percent_of`].
    pub overhead_percent: u32,
}

impl Carrier {
    /// OH of TS 38.306 4.1.2 in percent.
    pub const fn overhead_percent_of(range: FrequencyRange, direction: Direction) -> u32 {
        match (range, direction) {
            (FrequencyRange::Fr1, Direction::Downlink) => 14,
            (FrequencyRange::Fr2, Direction::Downlink) => 18,
            (FrequencyRange::Fr1, Direction::Uplink) => 8,
            (FrequencyRange::Fr2, Direction::Uplink) => 10,
        }
    }
}

/// Bits per second over all `carriers`, each rounded down. Every slot counts in one direction: a
/// TDD carrier reaches its fraction of that.
pub fn peak_rate_bps(carriers: &[Carrier]) -> u64 {
    carriers.iter().map(|carrier| carrier.peak_rate_bps()).sum()
}

impl Carrier {
    fn peak_rate_bps(&self) -> u64 {
        // v Q_m f R_max 12 N_PRB / T_s (1 - OH), R_max = 948/1024, T_s = 1 ms / (14 2^mu)
        let symbols_per_second = SYMBOLS_PER_SLOT * 1000 * self.numerology.slots_per_subframe();
        let layers = self.layers * self.modulation.order() * self.scaling_percent;
        let elements = u64::from(12 * self.prbs) * u64::from(symbols_per_second);
        let used = u64::from(100 - self.overhead_percent);
        u64::from(layers) * elements * used * 948 / (1024 * 100 * 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nr::resource_blocks;
    use Direction::{Downlink, Uplink};
    use FrequencyRange::{Fr1, Fr2};
    use Modulation::{Qam64, Qam256};

    /// The rate of one carrier in Mb/s.
    fn peak(
        (range, mhz, khz): (FrequencyRange, u32, u32),
        direction: Direction,
        layers: u32,
        modulation: Modulation,
    ) -> f64 {
        let numerology = Numerology::from_khz(khz).unwrap();
        let carrier = Carrier {
            layers,
            modulation,
            scaling_percent: 100,
            prbs: resource_blocks(range, mhz, numerology).unwrap(),
            numerology,
            overhead_percent: Carrier::overhead_percent_of(range, direction),
        };
        peak_rate_bps(&[carrier]) as f64 / 1e6
    }

    /// Compares with published figures, which are rounded to 0.01 Mb/s.
    #[test]
    fn published_peak_rates() {
        let n78 = (Fr1, 100, 30);
        let rows = [
            (peak(n78, Downlink, 4, Qam256), 2337.00),
            (peak(n78, Downlink, 2, Qam256), 1168.50),
            (peak(n78, Uplink, 1, Qam64), 468.76),
            (peak(n78, Uplink, 2, Qam256), 1250.02),
            (peak((Fr1, 20, 15), Downlink, 2, Qam256), 226.85),
            (peak((Fr1, 40, 30), Downlink, 4, Qam256), 907.41),
            (peak((Fr2, 100, 120), Downlink, 2, Qam64), 808.07),
            (8.0 * peak((Fr2, 100, 120), Downlink, 2, Qam64), 6464.53),
        ];
        for (found, published) in rows {
            assert!((found - published).abs() < 0.01, "{found} for {published}");
        }
    }

    #[test]
    fn carriers_add_up_and_scale() {
        let carrier = Carrier {
            layers: 2,
            modulation: Qam64,
            scaling_percent: 100,
            prbs: 66,
            numerology: Numerology::Khz120,
            overhead_percent: 18,
        };
        let one = peak_rate_bps(&[carrier]);
        assert_eq!(peak_rate_bps(&[carrier; 8]), 8 * one);
        let scaled = Carrier { scaling_percent: 40, ..carrier };
        assert_eq!(peak_rate_bps(&[scaled]), one * 2 / 5);
    }
}
