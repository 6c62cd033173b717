//! Processing times of a UE of capability 1: between a PDSCH and its feedback, and between a grant
//! and its PUSCH.

use super::Numerology;
use airpath_base::Duration;

/// Positions of the DM-RS symbols in the PDSCH: later ones delay the UE's channel estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DmrsPosition {
    /// dmrs-AdditionalPosition is pos0 in both mapping types: front-loaded only.
    FrontLoaded,
    /// Another dmrs-AdditionalPosition, or none configured.
    Additional,
    /// Like [`Additional`](Self::Additional), with the additional symbol l_1 = 12 (TS 38.211
    /// 7.4.1.1.2).
    AdditionalAt12,
}

/// N_1: number of symbols for decoding a PDSCH. `numerology` is the smallest of those of PDCCH,
/// PDSCH and feedback.
// TS 38.214 table 5.3-1
pub const fn downlink_processing(numerology: Numerology, dmrs: DmrsPosition) -> u32 {
    match (numerology, dmrs) {
        (Numerology::Khz15, DmrsPosition::FrontLoaded) => 8,
        (Numerology::Khz30, DmrsPosition::FrontLoaded) => 10,
        (Numerology::Khz60, DmrsPosition::FrontLoaded) => 17,
        (Numerology::Khz120, DmrsPosition::FrontLoaded) => 20,
        (Numerology::Khz15, DmrsPosition::Additional) => 13,
        (Numerology::Khz15, DmrsPosition::AdditionalAt12) => 14,
        (Numerology::Khz30, _) => 13,
        (Numerology::Khz60, _) => 20,
        (Numerology::Khz120, _) => 24,
    }
}

/// N_2: number of symbols for preparing a PUSCH. `numerology` is the smaller of those of PDCCH and
/// PUSCH.
// TS 38.214 table 6.4-1
pub const fn uplink_processing(numerology: Numerology) -> u32 {
    match numerology {
        Numerology::Khz15 => 10,
        Numerology::Khz30 => 12,
        Numerology::Khz60 => 23,
        Numerology::Khz120 => 36,
    }
}

/// T_proc,1: time from the end of a PDSCH to the earliest start of its feedback, rounded up to 1
/// ns. `extra_symbols` is d_1,1 (0 for a PDSCH of mapping type A that ends in symbol 7 or later)
/// plus d_2 (0 unless a PUCCH of higher priority overlaps).
// TS 38.214 5.3: (N_1 + d_1,1 + d_2) (2048 + 144) kappa 2^-mu T_c, without T_ext
pub const fn downlink_processing_time(
    numerology: Numerology,
    dmrs: DmrsPosition,
    extra_symbols: u32,
) -> Duration {
    symbols(downlink_processing(numerology, dmrs) + extra_symbols, numerology)
}

/// T_proc,2: time from the end of a PDCCH with a grant to the earliest start of the PUSCH, rounded
/// up to 1 ns. `extra_symbols` is d_2,1 (0 if the first symbol of the PUSCH has DM-RS only, else 1)
/// plus d_2.
// TS 38.214 6.4: (N_2 + d_2,1 + d_2) (2048 + 144) kappa 2^-mu T_c, without T_ext, T_switch, d_2,2
pub const fn uplink_processing_time(numerology: Numerology, extra_symbols: u32) -> Duration {
    symbols(uplink_processing(numerology) + extra_symbols, numerology)
}

/// `count` symbols of 2192 kappa 2^-mu T_c, rounded up; kappa = 64, T_c = 1 / (480 kHz 4096).
const fn symbols(count: u32, numerology: Numerology) -> Duration {
    // In units of kappa T_c = 1 / 30.72 MHz: 1e9 / 30_720_000 = 15_625 / 480 ns
    let numerator = count as u64 * 2192 * 15_625;
    Duration::from_nanos(numerator.div_ceil(480 << numerology.mu()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use DmrsPosition::{Additional, AdditionalAt12, FrontLoaded};

    #[test]
    fn published_symbol_counts() {
        let n1 = Numerology::ALL.map(|mu| downlink_processing(mu, FrontLoaded));
        assert_eq!(n1, [8, 10, 17, 20]);
        assert_eq!(Numerology::ALL.map(uplink_processing), [10, 12, 23, 36]);
    }

    #[test]
    fn additional_dmrs_takes_longer() {
        // TS 38.214 table 5.3-1, right column
        let n1 = Numerology::ALL.map(|mu| downlink_processing(mu, Additional));
        assert_eq!(n1, [13, 13, 20, 24]);
        // N_1,0 = 14 when l_1 = 12
        assert_eq!(downlink_processing(Numerology::Khz15, AdditionalAt12), 14);
        assert_eq!(downlink_processing(Numerology::Khz30, AdditionalAt12), 13);
    }

    #[test]
    fn times_in_nanoseconds() {
        // 8 symbols of 2192 / 30.72 MHz at 15 kHz: 570.8333 us
        let time = downlink_processing_time(Numerology::Khz15, FrontLoaded, 0);
        assert_eq!(time.as_nanos(), 570_834);
        // 12 at 30 kHz: 428.125 us; one more symbol adds 35.677 us
        let time = uplink_processing_time(Numerology::Khz30, 0);
        assert_eq!(time.as_nanos(), 428_125);
        assert_eq!(uplink_processing_time(Numerology::Khz30, 1).as_nanos(), 463_803);
    }
}
