//! The format for each CQI, by UE category (TS 25.214 6A.2.3).

use crate::scheme::Modulation::{self, Qam16, Qam64, Qpsk};

/// A row of TS 25.214 tables 7A to 7G.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HsFormat {
    /// Transport block size in bits.
    pub bits: u32,
    /// Number of HS-PDSCHs.
    pub codes: u32,
    /// The modulation for the CQI (TS 25.214 6A.2): QPSK, 16QAM or 64QAM.
    pub modulation: Modulation,
}

/// HS-DSCH physical layer category of a UE (TS 25.306 table 5.1a).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HsdpaCategory(u8);

impl HsdpaCategory {
    /// Category 5 to 10 or 12 to 14; `None` for others. 1 to 4 and 11 cannot receive in every TTI;
    /// those above 14 require MIMO or several carriers.
    pub const fn new(number: u8) -> Option<Self> {
        match number {
            5..=10 | 12..=14 => Some(Self(number)),
            _ => None,
        }
    }

    /// The number of the category in TS 25.306, from 1.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Rows of CQI 1 and up, as long as blocks grow. A higher CQI repeats the last row and only
    /// gives the possible power reduction (reference power adjustment).
    pub fn formats(self) -> &'static [HsFormat] {
        match self.0 {
            // Table 7A: 5 codes
            5 | 6 => &BIT_ALIGNED[..22],
            // Table 7B: 10 codes
            7 | 8 => &BIT_ALIGNED[..25],
            // Table 7C: blocks of at most 20,251 bits
            9 => &BIT_ALIGNED[..26],
            // Table 7D
            10 => &BIT_ALIGNED,
            // Table 7E: QPSK
            12 => &BIT_ALIGNED[..15],
            // Table 7F: blocks of at most 35,280 bits
            13 => &OCTET_ALIGNED[..29],
            // Table 7G
            _ => &OCTET_ALIGNED,
        }
    }
}

const fn row(bits: u32, codes: u32, modulation: Modulation) -> HsFormat {
    HsFormat { bits, codes, modulation }
}

/// Table 7D; tables 7A to 7C and 7E are prefixes of it.
const BIT_ALIGNED: [HsFormat; 30] = [
    row(137, 1, Qpsk),
    row(173, 1, Qpsk),
    row(233, 1, Qpsk),
    row(317, 1, Qpsk),
    row(377, 1, Qpsk),
    row(461, 1, Qpsk),
    row(650, 2, Qpsk),
    row(792, 2, Qpsk),
    row(931, 2, Qpsk),
    row(1_262, 3, Qpsk),
    row(1_483, 3, Qpsk),
    row(1_742, 3, Qpsk),
    row(2_279, 4, Qpsk),
    row(2_583, 4, Qpsk),
    row(3_319, 5, Qpsk),
    row(3_565, 5, Qam16),
    row(4_189, 5, Qam16),
    row(4_664, 5, Qam16),
    row(5_287, 5, Qam16),
    row(5_887, 5, Qam16),
    row(6_554, 5, Qam16),
    row(7_168, 5, Qam16),
    row(9_719, 7, Qam16),
    row(11_418, 8, Qam16),
    row(14_411, 10, Qam16),
    row(17_237, 12, Qam16),
    row(21_754, 15, Qam16),
    row(23_370, 15, Qam16),
    row(24_222, 15, Qam16),
    row(25_558, 15, Qam16),
];

/// Table 7G; table 7F is a prefix of it.
const OCTET_ALIGNED: [HsFormat; 30] = [
    row(136, 1, Qpsk),
    row(176, 1, Qpsk),
    row(232, 1, Qpsk),
    row(320, 1, Qpsk),
    row(376, 1, Qpsk),
    row(464, 1, Qpsk),
    row(648, 2, Qpsk),
    row(792, 2, Qpsk),
    row(928, 2, Qpsk),
    row(1_264, 3, Qpsk),
    row(1_488, 3, Qpsk),
    row(1_744, 3, Qpsk),
    row(2_288, 4, Qpsk),
    row(2_592, 4, Qpsk),
    row(3_328, 5, Qpsk),
    row(3_576, 5, Qam16),
    row(4_200, 5, Qam16),
    row(4_672, 5, Qam16),
    row(5_296, 5, Qam16),
    row(5_896, 5, Qam16),
    row(6_568, 5, Qam16),
    row(7_184, 5, Qam16),
    row(9_736, 7, Qam16),
    row(11_432, 8, Qam16),
    row(14_424, 10, Qam16),
    row(15_776, 10, Qam64),
    row(21_768, 12, Qam64),
    row(26_504, 13, Qam64),
    row(32_264, 14, Qam64),
    row(38_576, 15, Qam64),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adaptation::BlerModel;
    use crate::umts::SUBFRAME_CHIPS;

    /// TS 25.321 9.2.3.1: the block size of index k, 1 to 254.
    fn mac_hs_bits(k: i32) -> u32 {
        match k {
            ..40 => 125 + 12 * k as u32,
            _ => (296.0 * (2085.0f64 / 2048.0).powi(k)).floor() as u32,
        }
    }

    #[test]
    fn every_bit_aligned_size_is_one_that_mac_hs_can_name() {
        assert_eq!(mac_hs_bits(254), 27_952);
        for row in BIT_ALIGNED {
            assert!((1..255).any(|k| mac_hs_bits(k) == row.bits), "{row:?}");
        }
    }

    #[test]
    fn every_octet_aligned_size_is_whole_and_near_the_other() {
        for (bit, octet) in BIT_ALIGNED.iter().zip(OCTET_ALIGNED).take(25) {
            assert_eq!(octet.bits % 8, 0);
            assert!(octet.bits.abs_diff(bit.bits) <= 17, "{octet:?}");
            assert_eq!((octet.codes, octet.modulation), (bit.codes, bit.modulation));
        }
    }

    #[test]
    fn no_category_exceeds_what_its_ue_can_decode() {
        // TS 25.306 table 5.1a: codes, bits of a block
        for (number, codes, bits) in [
            (5, 5, 7_298),
            (6, 5, 7_298),
            (7, 10, 14_411),
            (8, 10, 14_411),
            (9, 15, 20_251),
            (10, 15, 27_952),
            (12, 5, 3_630),
            (13, 15, 35_280),
            (14, 15, 42_192),
        ] {
            let formats = HsdpaCategory::new(number).unwrap().formats();
            assert!(formats.iter().all(|row| row.codes <= codes && row.bits <= bits), "{number}");
            // One more row would exceed the category, or does not exist.
            let next = if number > 12 { OCTET_ALIGNED } else { BIT_ALIGNED };
            if let Some(next) = next.get(formats.len()) {
                let too_much = next.codes > codes || next.bits > bits;
                assert!(too_much || number == 12 && next.modulation != Qpsk, "{number}");
            }
        }
        assert!([1, 4, 11, 15].into_iter().all(|number| HsdpaCategory::new(number).is_none()));
    }

    #[test]
    fn no_code_rate_exceeds_one() {
        for row in BIT_ALIGNED.iter().chain(&OCTET_ALIGNED) {
            // 480 symbols of a code in a subframe (TS 25.211 5.3.3.13)
            let coded = row.codes * 480 * row.modulation.order();
            assert!(row.bits < coded, "{row:?}");
        }
    }

    #[test]
    fn thresholds_of_bits_per_chip_are_those_of_published_link_results() {
        // SNR of all HS-PDSCHs together for 10 %: 1.02 (CQI - 16.62) dB, the formula of the EURANE
        // extensions of ns-2 (SEACORN D3.2v2); <https://comtech.vsb.cz/qualmob/sinr.html> has the
        // same after the despreader, 12 dB more, to within 1 dB.
        for (cqi, row) in (1..).zip(BIT_ALIGNED) {
            let published = 1.02 * (f64::from(cqi) - 16.62);
            let efficiency = f64::from(row.bits) / f64::from(SUBFRAME_CHIPS);
            let found = BlerModel::default().threshold_db(efficiency);
            assert!((found - published).abs() < 3.0, "CQI {cqi}: {found} {published} dB");
        }
    }
}
