//! Transport block sizes (TS 36.213 7.1.7.2), for both directions. Not included: the rows that
//! later releases added (I_TBS 26A, 32A, 33A, 33B and from 34 on), and blocks over three or four
//! layers.

use super::tbs_table::TRANSPORT_BLOCK_SIZES;

/// The largest I_TBS.
pub const MAX_TBS_INDEX: u8 = 33;
/// The largest N_PRB of the table.
pub const MAX_RESOURCE_BLOCKS: u32 = 110;

/// Bits of a transport block on one layer; `None` outside I_TBS 0..=33 and N_PRB 1..=110.
// TS 36.213 7.1.7.2.1
pub fn transport_block_size(tbs_index: u8, resource_blocks: u32) -> Option<u32> {
    let row = TRANSPORT_BLOCK_SIZES.get(usize::from(tbs_index))?;
    row.get(resource_blocks.checked_sub(1)? as usize).copied()
}

/// Bits of one transport block (one codeword) spread over two layers; `None` outside I_TBS 0..=33
/// and N_PRB 1..=110. Two codewords on two layers are twice [`transport_block_size`] instead.
// TS 36.213 7.1.7.2.2
pub fn transport_block_size_two_layers(tbs_index: u8, resource_blocks: u32) -> Option<u32> {
    if resource_blocks <= MAX_RESOURCE_BLOCKS / 2 {
        return transport_block_size(tbs_index, 2 * resource_blocks);
    }
    let one_layer = transport_block_size(tbs_index, resource_blocks)?;
    let row = TWO_LAYERS.binary_search_by_key(&one_layer, |&(one, _)| one);
    // The translation has a row for every size from N_PRB 56 on; a test checks all of them.
    Some(TWO_LAYERS[row.expect("every size has a translation")].1)
}

// TS 36.213 table 7.1.7.2.2-1: TBS_L1, TBS_L2
#[rustfmt::skip]
const TWO_LAYERS: [(u32, u32); 120] = [
    (1544, 3112), (1608, 3240), (1672, 3368), (1736, 3496), (1800, 3624), (1864, 3752),
    (1928, 3880), (1992, 4008), (2024, 4008), (2088, 4136), (2152, 4264), (2216, 4392),
    (2280, 4584), (2344, 4776), (2408, 4776), (2472, 4968), (2536, 5160), (2600, 5160),
    (2664, 5352), (2728, 5544), (2792, 5544), (2856, 5736), (2984, 5992), (3112, 6200),
    (3240, 6456), (3368, 6712), (3496, 6968), (3624, 7224), (3752, 7480), (3880, 7736),
    (4008, 7992), (4136, 8248), (4264, 8504), (4392, 8760), (4584, 9144), (4776, 9528),
    (4968, 9912), (5160, 10296), (5352, 10680), (5544, 11064), (5736, 11448), (5992, 11832),
    (6200, 12576), (6456, 12960), (6712, 13536), (6968, 14112), (7224, 14688), (7480, 14688),
    (7736, 15264), (7992, 15840), (8248, 16416), (8504, 16992), (8760, 17568), (9144, 18336),
    (9528, 19080), (9912, 19848), (10296, 20616), (10680, 21384), (11064, 22152), (11448, 22920),
    (11832, 23688), (12216, 24496), (12576, 25456), (12960, 25456), (13536, 27376), (14112, 28336),
    (14688, 29296), (15264, 30576), (15840, 31704), (16416, 32856), (16992, 34008), (17568, 35160),
    (18336, 36696), (19080, 37888), (19848, 39232), (20616, 40576), (21384, 42368), (22152, 43816),
    (22920, 45352), (23688, 46888), (24496, 48936), (25456, 51024), (26416, 52752), (27376, 55056),
    (28336, 57336), (29296, 59256), (30576, 61664), (31704, 63776), (32856, 66592), (34008, 68808),
    (35160, 71112), (36696, 73712), (37888, 76208), (39232, 78704), (40576, 81176), (42368, 84760),
    (43816, 87936), (45352, 90816), (46888, 93800), (48936, 97896), (51024, 101840),
    (52752, 105528), (55056, 110136), (57336, 115040), (59256, 119816), (61664, 124464),
    (63776, 128496), (66592, 133208), (68808, 137792), (71112, 142248), (73712, 146856),
    (75376, 149776), (76208, 152976), (78704, 157432), (81176, 161760), (84760, 169544),
    (87936, 175600), (90816, 181656), (93800, 187712), (97896, 195816),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn row(tbs_index: u8, blocks: &[u32]) -> Vec<u32> {
        blocks.iter().map(|&prbs| transport_block_size(tbs_index, prbs).unwrap()).collect()
    }

    fn everywhere() -> impl Iterator<Item = (u8, u32)> {
        (0..=MAX_TBS_INDEX).flat_map(|index| (1..=MAX_RESOURCE_BLOCKS).map(move |n| (index, n)))
    }

    #[test]
    fn published_reference_rows() {
        let bandwidths = [1, 6, 15, 25, 50, 75, 100];
        assert_eq!(row(26, &bandwidths), [712, 4392, 11064, 18336, 36696, 55056, 75376]);
        assert_eq!(row(0, &[100]), [2792]);
        assert_eq!(row(13, &[100]), [25456]);
        assert_eq!(row(20, &[100]), [46888]);
        // Two codewords: 150.752 Mb/s at 20 MHz, 73.392 Mb/s at 10 MHz.
        assert_eq!(2 * transport_block_size(26, 100).unwrap(), 150_752);
        assert_eq!(2 * transport_block_size(26, 50).unwrap(), 73_392);
    }

    #[test]
    fn largest_blocks_of_the_ue_categories() {
        // TS 36.306 table 4.1-1: one layer, 256QAM; two layers, 64QAM and 256QAM
        assert_eq!(transport_block_size(33, 100), Some(97_896));
        assert_eq!(transport_block_size_two_layers(26, 100), Some(149_776));
        assert_eq!(transport_block_size_two_layers(33, 100), Some(195_816));
        // TS 36.306 table 4.1-2: uplink category 3 (16QAM, 75 blocks) and 5
        assert_eq!(transport_block_size(21, 100), Some(51_024));
        assert_eq!(transport_block_size(26, 110), Some(75_376));
    }

    #[test]
    fn outside_the_table_there_is_nothing() {
        assert_eq!(transport_block_size(34, 1), None);
        assert_eq!(transport_block_size(0, 0), None);
        assert_eq!(transport_block_size(0, 111), None);
        assert_eq!(transport_block_size_two_layers(0, 0), None);
        assert_eq!(transport_block_size_two_layers(0, 111), None);
    }

    #[test]
    fn more_blocks_never_carry_less() {
        for (index, prbs) in everywhere().filter(|&(_, prbs)| prbs > 1) {
            // The specification has 328 bits at I_TBS 6, N_PRB 1, for voice; 2 blocks carry 176.
            if (index, prbs) == (6, 2) {
                continue;
            }
            let (fewer, more) =
                (transport_block_size(index, prbs - 1), transport_block_size(index, prbs));
            assert!(fewer <= more, "I_TBS {index}, N_PRB {prbs}");
        }
    }

    #[test]
    fn a_higher_index_never_carries_less() {
        for (index, prbs) in everywhere().filter(|&(index, _)| index > 0) {
            // I_TBS 27 is sized for 120 resource elements per block, 26 for its own case.
            if index == 27 || (index, prbs) == (7, 1) {
                continue;
            }
            let (lower, higher) =
                (transport_block_size(index - 1, prbs), transport_block_size(index, prbs));
            assert!(lower <= higher, "I_TBS {index}, N_PRB {prbs}");
        }
        for prbs in 1..=MAX_RESOURCE_BLOCKS {
            assert!(transport_block_size(25, prbs) < transport_block_size(27, prbs));
        }
    }

    /// TS 36.212 5.1.2: all sizes were chosen so that they divide into code blocks of equal length
    /// without filler bits. A mistyped number hardly ever does.
    #[test]
    fn every_size_fills_equal_code_blocks() {
        let two = TWO_LAYERS.iter().map(|&(_, size)| size);
        for size in
            everywhere().map(|(index, prbs)| transport_block_size(index, prbs).unwrap()).chain(two)
        {
            assert_eq!(unfilled_bits(size), 0, "{size}");
        }
        // The check detects a wrong number: one published copy has 24264 in place of 22152.
        assert_ne!(unfilled_bits(24_264), 0);
    }

    #[test]
    fn translated_sizes_are_about_twice_as_large() {
        for &(one, two) in &TWO_LAYERS {
            assert!(two.abs_diff(2 * one) * 40 <= 2 * one, "{one} {two}");
        }
        assert!(TWO_LAYERS.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        for (index, prbs) in everywhere() {
            assert!(transport_block_size_two_layers(index, prbs).is_some());
        }
    }

    /// Number of bits by which `size` bits with their CRCs fail to fill equal code blocks (TS
    /// 36.212 5.1.2).
    fn unfilled_bits(size: u32) -> u32 {
        // TS 36.212 table 5.1.3-3: interleaver sizes
        let sizes: Vec<u32> = (40..=512)
            .step_by(8)
            .chain((528..=1024).step_by(16))
            .chain((1056..=2048).step_by(32))
            .chain((2112..=6144).step_by(64))
            .collect();
        let bits = size + 24;
        let blocks = if bits <= 6144 { 1 } else { bits.div_ceil(6144 - 24) };
        let bits = if blocks == 1 { bits } else { bits + 24 * blocks };
        let block = sizes[sizes.partition_point(|&k| blocks * k < bits)];
        blocks * block - bits
    }
}
