//! Block error rate as a function of SINR.

use crate::decibel::{db, ratio};

/// Efficiency, in bits per resource element and layer, of CQI 1 to 15 (TS 36.213 Table 7.2.3-1,
/// TS 38.214 Table 5.2.2.1-2).
pub const CQI_64QAM_EFFICIENCY: [f64; 15] = [
    0.1523, 0.2344, 0.3770, 0.6016, 0.8770, 1.1758, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223, 3.9023,
    4.5234, 5.1152, 5.5547,
];

/// SINR in dB of these CQIs at 10 % BLER. Source: <https://comtech.vsb.cz/qualmob/sinr_lte.html>, a
/// list in wide use for LTE and NR.
const CQI_64QAM_SINR_DB: [f64; 15] =
    [-6.7, -4.7, -2.3, 0.2, 2.4, 4.3, 5.9, 8.1, 10.3, 11.7, 14.1, 16.3, 18.7, 21.0, 22.7];

/// How the curves are placed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Threshold {
    /// Through the published 10 % points of CQI 1 to 15, interpolated linearly in dB over
    /// efficiency; beyond the ends, at the same distance from Shannon's bound as there.
    Published,
    /// At this distance from Shannon's bound: `efficiency = log2(1 + SINR / gap)` at 10 % BLER.
    ShannonGap {
        /// The gap in dB, not negative; 1 to 2 for LDPC codes with an ideal receiver, 3 to 6 as
        /// published for receivers that estimate their channel.
        gap_db: f64,
    },
}

/// Probability that a block is not decoded: one waterfall curve per efficiency.
///
/// A curve is logistic in dB: `1 / (1 + exp(steepness (SINR - centre)))`, placed by its 10 % point.
/// It is the same for all block sizes, although a real curve is steeper for longer blocks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BlerModel {
    /// How the curves are placed.
    pub threshold: Threshold,
    /// Steepness of the curves, per dB. 12, the default, is near the middle of link-level results
    /// for NR LDPC blocks of 4,000 to 8,000 bits (10 to 15 per dB; Lagen et al., "New radio
    /// physical layer abstraction for system-level simulations of 5G networks", 2020): from 90 % to
    /// 10 % within 0.37 dB.
    pub steepness_per_db: f64,
}

impl Default for BlerModel {
    fn default() -> Self {
        Self { threshold: Threshold::Published, steepness_per_db: 12.0 }
    }
}

impl BlerModel {
    /// SINR in dB at which a block with `efficiency` bits per resource element and layer fails with
    /// a probability of 10 %. Minus infinity for 0.
    pub fn threshold_db(&self, efficiency: f64) -> f64 {
        match self.threshold {
            Threshold::Published => published_db(efficiency),
            Threshold::ShannonGap { gap_db } => shannon_db(efficiency) + gap_db,
        }
    }

    /// Probability that a block of this efficiency fails at `sinr_db`.
    pub fn bler(&self, efficiency: f64, sinr_db: f64) -> f64 {
        self.bler_at(sinr_db - self.threshold_db(efficiency))
    }

    /// Probability that a block fails at `margin_db` above its 10 % point.
    pub fn bler_at(&self, margin_db: f64) -> f64 {
        // exp(x) = 1/9 gives 10 %: 1 / (1 + 9 exp(-x)) with the signs reversed.
        1.0 / (1.0 + 9.0 * libm::exp(self.steepness_per_db * margin_db))
    }
}

/// Shannon's bound: the SINR in dB for `efficiency`.
fn shannon_db(efficiency: f64) -> f64 {
    // expm1, because 2^x - 1 loses precision for the small x of repeated codes.
    db(libm::expm1(efficiency * core::f64::consts::LN_2))
}

fn published_db(efficiency: f64) -> f64 {
    let (x, y) = (&CQI_64QAM_EFFICIENCY, &CQI_64QAM_SINR_DB);
    let after = x.partition_point(|&known| known <= efficiency);
    let end = match after {
        0 => 0,
        15 => 14,
        _ => {
            let part = (efficiency - x[after - 1]) / (x[after] - x[after - 1]);
            return y[after - 1] + part * (y[after] - y[after - 1]);
        }
    };
    y[end] + shannon_db(efficiency) - shannon_db(x[end])
}

/// Effective SINR in dB and efficiency of a block after several transmissions.
///
/// `energy` is the sum of their SINRs as power ratios. `spread` is the ratio of coded bits to those
/// of the first transmission: 1 if all repeat the same bits (chase combining), the number of
/// transmissions if each brings new ones.
pub(crate) fn combined(energy: f64, efficiency: f64, spread: f64) -> (f64, f64) {
    (db(energy / spread), efficiency / spread)
}

/// Power ratio of a SINR in dB.
pub(crate) fn energy(sinr_db: f64) -> f64 {
    ratio(sinr_db)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_block_of_each_cqi_fails_with_10_percent_at_its_published_sinr() {
        let model = BlerModel::default();
        for (efficiency, sinr_db) in CQI_64QAM_EFFICIENCY.into_iter().zip(CQI_64QAM_SINR_DB) {
            assert!((model.bler(efficiency, sinr_db) - 0.1).abs() < 1e-9);
            assert!(model.bler(efficiency, sinr_db - 0.37) > 0.89);
            assert!(model.bler(efficiency, sinr_db + 1.0) < 1e-5);
        }
    }

    #[test]
    fn other_link_level_results_are_within_2_db() {
        // NR LDPC, base graph 1, 3,840 to 8,192 bits, 10 % points read from the curves of Lagen
        // et al. 2020: MCS 4, 6 and 8 of TS 38.214 Table 5.1.3.1-1.
        for (efficiency, sinr_db) in [(0.6016, 1.95), (0.8770, 3.5), (1.1758, 4.85)] {
            let difference = BlerModel::default().threshold_db(efficiency) - sinr_db;
            assert!(difference.abs() < 2.0, "{efficiency}: {difference} dB");
        }
    }

    #[test]
    fn the_gap_to_shannon_is_positive_and_stays_beyond_the_ends() {
        let gap =
            |efficiency| BlerModel::default().threshold_db(efficiency) - shannon_db(efficiency);
        for efficiency in CQI_64QAM_EFFICIENCY {
            assert!((2.0..6.5).contains(&gap(efficiency)), "{efficiency}: {} dB", gap(efficiency));
        }
        assert!((gap(0.05) - gap(0.1523)).abs() < 1e-9);
        // 256QAM 948/1024, TS 38.214 Table 5.2.2.1-3.
        assert!((gap(7.4063) - gap(5.5547)).abs() < 1e-9);
        let model =
            BlerModel { threshold: Threshold::ShannonGap { gap_db: 3.0 }, ..BlerModel::default() };
        // log2(1 + 15) = 4.
        assert!((model.threshold_db(4.0) - (db(15.0) + 3.0)).abs() < 1e-9);
    }

    fn model() -> impl Strategy<Value = BlerModel> {
        let threshold = prop_oneof![
            Just(Threshold::Published),
            (0.0..8.0).prop_map(|gap_db| Threshold::ShannonGap { gap_db }),
        ];
        (threshold, 1.0..20.0)
            .prop_map(|(threshold, steepness_per_db)| BlerModel { threshold, steepness_per_db })
    }

    proptest! {
        #[test]
        fn bler_falls_with_sinr_and_grows_with_efficiency(
            model in model(), efficiency in 0.01..8.0f64, more in 0.001..1.0f64,
            sinr_db in -20.0..40.0f64, better_db in 0.0..5.0f64,
        ) {
            let bler = model.bler(efficiency, sinr_db);
            prop_assert!((0.0..=1.0).contains(&bler));
            prop_assert!(model.bler(efficiency, sinr_db + better_db) <= bler);
            prop_assert!(model.bler(efficiency + more, sinr_db) >= bler);
            prop_assert!(model.threshold_db(efficiency + more) > model.threshold_db(efficiency));
        }

        #[test]
        fn new_bits_are_worth_at_least_repeated_ones(
            model in model(), efficiency in 0.05..8.0f64, times in 2u8..5, sinr_db in -15.0..30.0f64,
        ) {
            let times = f64::from(times);
            let margin = |spread| {
                let (sinr_db, efficiency) = combined(times * energy(sinr_db), efficiency, spread);
                sinr_db - model.threshold_db(efficiency)
            };
            prop_assert!(margin(times) >= margin(1.0) - 1e-9);
            // Shannon's bound: 3 dB for two.
            let first = sinr_db - model.threshold_db(efficiency);
            prop_assert!((margin(1.0) - first - db(times)).abs() < 1e-9);
        }
    }
}
