//! Resource blocks of channel bandwidths.

use super::Numerology;

/// A frequency range of TS 38.104 5.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrequencyRange {
    /// 410 to 7125 MHz.
    Fr1,
    /// 24.25 to 52.6 GHz.
    Fr2,
}

/// N_RB of a channel of `bandwidth_mhz`; `None` if the specification has no such channel.
// TS 38.101-1 table 5.3.2-1 (FR1), TS 38.101-2 table 5.3.2-1 (FR2)
pub fn resource_blocks(
    range: FrequencyRange,
    bandwidth_mhz: u32,
    numerology: Numerology,
) -> Option<u32> {
    let row: &[(u32, u32)] = match (range, numerology) {
        (FrequencyRange::Fr1, Numerology::Khz15) => &FR1_15,
        (FrequencyRange::Fr1, Numerology::Khz30) => &FR1_30,
        (FrequencyRange::Fr1, Numerology::Khz60) => &FR1_60,
        (FrequencyRange::Fr2, Numerology::Khz60) => &FR2_60,
        (FrequencyRange::Fr2, Numerology::Khz120) => &FR2_120,
        (FrequencyRange::Fr1, Numerology::Khz120)
        | (FrequencyRange::Fr2, Numerology::Khz15 | Numerology::Khz30) => &[],
    };
    row.iter().find(|&&(mhz, _)| mhz == bandwidth_mhz).map(|&(_, blocks)| blocks)
}

// MHz, N_RB
#[rustfmt::skip]
const FR1_15: [(u32, u32); 11] = [
    (3, 15), (5, 25), (10, 52), (15, 79), (20, 106), (25, 133), (30, 160), (35, 188), (40, 216),
    (45, 242), (50, 270),
];
#[rustfmt::skip]
const FR1_30: [(u32, u32); 15] = [
    (5, 11), (10, 24), (15, 38), (20, 51), (25, 65), (30, 78), (35, 92), (40, 106), (45, 119),
    (50, 133), (60, 162), (70, 189), (80, 217), (90, 245), (100, 273),
];
#[rustfmt::skip]
const FR1_60: [(u32, u32); 14] = [
    (10, 11), (15, 18), (20, 24), (25, 31), (30, 38), (35, 44), (40, 51), (45, 58), (50, 65),
    (60, 79), (70, 93), (80, 107), (90, 121), (100, 135),
];
const FR2_60: [(u32, u32); 3] = [(50, 66), (100, 132), (200, 264)];
const FR2_120: [(u32, u32); 4] = [(50, 32), (100, 66), (200, 132), (400, 264)];

#[cfg(test)]
mod tests {
    use super::*;
    use FrequencyRange::{Fr1, Fr2};

    #[test]
    fn channels_of_the_specifications() {
        let rows = [
            (Fr1, 100, Numerology::Khz30, Some(273)),
            (Fr1, 40, Numerology::Khz30, Some(106)),
            (Fr1, 20, Numerology::Khz15, Some(106)),
            (Fr1, 100, Numerology::Khz60, Some(135)),
            (Fr2, 100, Numerology::Khz120, Some(66)),
            (Fr2, 400, Numerology::Khz120, Some(264)),
            (Fr1, 100, Numerology::Khz15, None),
            (Fr1, 5, Numerology::Khz60, None),
            (Fr2, 100, Numerology::Khz30, None),
            (Fr2, 400, Numerology::Khz60, None),
        ];
        for (range, mhz, numerology, blocks) in rows {
            let found = resource_blocks(range, mhz, numerology);
            assert_eq!(found, blocks, "{range:?} {mhz} MHz {numerology:?}");
        }
    }

    /// The blocks fit the channel, and the guard bands (TS 38.101-1 table 5.3.3-1) take less than
    /// 22 % of it.
    #[test]
    fn blocks_fit_their_channel() {
        for range in [Fr1, Fr2] {
            for numerology in Numerology::ALL {
                for mhz in 1..=400 {
                    let Some(blocks) = resource_blocks(range, mhz, numerology) else { continue };
                    let khz = blocks * 12 * numerology.khz();
                    assert!(khz < 1000 * mhz, "{range:?} {mhz} MHz {numerology:?}");
                    assert!(khz > 780 * mhz, "{range:?} {mhz} MHz {numerology:?}");
                }
            }
        }
    }
}
