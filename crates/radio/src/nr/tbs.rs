//! Transport block size (TS 38.214 5.1.3.2), and how LDPC coding divides a block. All numbers are
//! integers: N_info is kept as its numerator over 2048.

use crate::scheme::{CodeRate, Scheme};

/// The part of a slot allocated to one transport block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// n_PRB, resource blocks.
    pub prbs: u32,
    /// N_symb, OFDM symbols, 1 to 14.
    pub symbols: u32,
    /// N_DMRS, resource elements per block lost to DM-RS with its data-free CDM groups: 12 for one
    /// front-loaded symbol of two groups.
    pub dmrs_per_prb: u32,
    /// N_oh, resource elements per block counted as overhead (xOverhead): 0, 6, 12 or 18.
    pub overhead_per_prb: u32,
}

/// An LDPC base graph (TS 38.212 7.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BaseGraph {
    /// For large blocks and high rates; code blocks of at most 8448 bits.
    One,
    /// For small blocks or low rates; code blocks of at most 3840 bits.
    Two,
}

impl Allocation {
    /// N_RE: number of resource elements that count for the transport block.
    pub fn resource_elements(self) -> u32 {
        // TS 38.214 5.1.3.2 step 1
        let lost = self.dmrs_per_prb + self.overhead_per_prb;
        (12 * self.symbols).saturating_sub(lost).min(156) * self.prbs
    }
}

/// Bits of a transport block on `resource_elements` (N_RE) and `layers`; 0 without resource
/// elements. Valid for user data: the scaling S of paging and random access responses is 1 here.
pub fn transport_block_size(resource_elements: u32, scheme: Scheme, layers: u32) -> u32 {
    // TS 38.214 5.1.3.2 step 2: N_info = N_RE R Q_m v
    let efficiency = u64::from(scheme.efficiency_2048ths());
    let info = u64::from(resource_elements) * efficiency * u64::from(layers);
    match info {
        0 => 0,
        1..=SMALL => small(info),
        _ => large(info, scheme.rate),
    }
}

/// The base graph of a transport block of `size` bits.
pub fn base_graph(size: u32, rate: CodeRate) -> BaseGraph {
    // TS 38.212 7.2.2
    let at_most_067 = 100 * rate.per_2048() <= 67 * 2048;
    if size <= 292 || (size <= 3824 && at_most_067) || at_most_quarter(rate) {
        BaseGraph::Two
    } else {
        BaseGraph::One
    }
}

/// C: number of code blocks into which a transport block of `size` bits is divided.
pub fn code_blocks(size: u32, rate: CodeRate) -> u32 {
    // TS 38.212 7.2.1, 5.2.2
    let bits = size + if size > 3824 { 24 } else { 16 };
    let largest = match base_graph(size, rate) {
        BaseGraph::One => 8448,
        BaseGraph::Two => 3840,
    };
    if bits <= largest { 1 } else { bits.div_ceil(largest - 24) }
}

/// Denominator of N_info.
const SCALE: u64 = 2048;
/// N_info = 3824, the boundary between steps 3 and 4.
const SMALL: u64 = 3824 * SCALE;

fn small(info: u64) -> u32 {
    // Step 3: N'_info = max(24, 2^n floor(N_info / 2^n)), n = max(3, floor(log2 N_info) - 6)
    let n = floor_log2(info).saturating_sub(6).max(3);
    let quantised = ((info / (SCALE << n)) << n).max(24) as u16;
    let index = SIZES.partition_point(|&size| size < quantised);
    // N_info <= 3824, which is the last size.
    u32::from(SIZES[index])
}

fn large(info: u64, rate: CodeRate) -> u32 {
    // Step 4: N'_info = max(3840, 2^n round((N_info - 24) / 2^n)), n = floor(log2(N_info - 24)) - 5,
    // "ties in the round function are broken towards the next largest integer"
    let rest = info - 24 * SCALE;
    let step = SCALE << (floor_log2(rest) - 5);
    let quantised = ((rest + step / 2) / step * (step / SCALE)).max(3840);
    let blocks = if at_most_quarter(rate) {
        (quantised + 24).div_ceil(3816)
    } else if quantised > 8424 {
        (quantised + 24).div_ceil(8424)
    } else {
        1
    };
    (8 * blocks * (quantised + 24).div_ceil(8 * blocks) - 24) as u32
}

/// floor(log2) of a number of at least 1 over [`SCALE`]; 0 below.
fn floor_log2(scaled: u64) -> u32 {
    (scaled / SCALE).checked_ilog2().unwrap_or(0)
}

fn at_most_quarter(rate: CodeRate) -> bool {
    4 * rate.per_2048() <= 2048
}

// TS 38.214 table 5.1.3.2-1
#[rustfmt::skip]
const SIZES: [u16; 93] = [
    24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176, 184,
    192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 408, 432, 456, 480, 504, 528,
    552, 576, 608, 640, 672, 704, 736, 768, 808, 848, 888, 928, 984, 1032, 1064, 1128, 1160, 1192,
    1224, 1256, 1288, 1320, 1352, 1416, 1480, 1544, 1608, 1672, 1736, 1800, 1864, 1928, 2024, 2088,
    2152, 2216, 2280, 2408, 2472, 2536, 2600, 2664, 2728, 2792, 2856, 2976, 3104, 3240, 3368, 3496,
    3624, 3752, 3824,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nr::{McsTable, mcs, mcs_count};
    use crate::scheme::Modulation;
    use proptest::prelude::*;

    fn scheme(rate_1024ths: u16) -> Scheme {
        Scheme { modulation: Modulation::Qpsk, rate: CodeRate::from_1024ths(rate_1024ths) }
    }

    #[test]
    fn step_1_counts_resource_elements() {
        let slot = Allocation { prbs: 10, symbols: 12, dmrs_per_prb: 12, overhead_per_prb: 6 };
        assert_eq!(slot.resource_elements(), 1260);
        // At most 156 per block
        let full = Allocation { prbs: 10, symbols: 14, dmrs_per_prb: 6, overhead_per_prb: 0 };
        assert_eq!(full.resource_elements(), 1560);
        let none = Allocation { prbs: 10, symbols: 1, dmrs_per_prb: 12, overhead_per_prb: 6 };
        assert_eq!(none.resource_elements(), 0);
        assert_eq!(transport_block_size(0, scheme(120), 1), 0);
    }

    #[test]
    fn step_3_rounds_down_then_up_to_the_table() {
        // N_info = 48 * 2 * 120/1024 = 11.25: N'_info = 24
        assert_eq!(transport_block_size(48, scheme(120), 1), 24);
        // N_info = 240 * 2 * 602/1024 = 282.2, n = 3: N'_info = 280, TBS = 288
        assert_eq!(transport_block_size(240, scheme(602), 1), 288);
        // N_info = 1912 * 2 = 3824, n = 5: N'_info = 3808, TBS = 3824
        assert_eq!(transport_block_size(1912, scheme(1024), 1), 3824);
    }

    #[test]
    fn step_4_has_a_base_graph_2_branch_for_rates_to_a_quarter() {
        // N_info = 60000 * 2 * 193/1024 = 22617.2, n = 9: N'_info = 512 * 44 = 22528,
        // C = ceil(22552 / 3816) = 6, TBS = 48 * ceil(22552 / 48) - 24
        assert_eq!(transport_block_size(60_000, scheme(193), 1), 22_536);
        // N_info = 12000 * 2 * 449/1024 = 10523.4, n = 8: N'_info = 256 * 41 = 10496,
        // C = ceil(10520 / 8424) = 2, TBS = 16 * ceil(10520 / 16) - 24
        assert_eq!(transport_block_size(12_000, scheme(449), 1), 10_504);
        // N_info = 5262, n = 7: N'_info = 128 * 41 = 5248, C = 1
        assert_eq!(transport_block_size(6_000, scheme(449), 1), 5_248);
    }

    #[test]
    fn step_4_breaks_ties_upwards() {
        // N_info = 2 * 2060 = 4120, n = 7, (4120 - 24) / 128 = 32
        assert_eq!(transport_block_size(2_060, scheme(1024), 1), 4_096);
        // N_info = 4184, (4184 - 24) / 128 = 32.5, rounds to 33 and not to the even 32
        assert_eq!(transport_block_size(2_092, scheme(1024), 1), 4_224);
    }

    #[test]
    fn code_blocks_of_both_base_graphs() {
        // TS 38.212 7.2.2
        let rates = [128, 686, 687].map(CodeRate::from_1024ths);
        assert_eq!(rates.map(|rate| base_graph(292, rate)), [BaseGraph::Two; 3]);
        assert_eq!(
            rates.map(|rate| base_graph(3824, rate)),
            [BaseGraph::Two, BaseGraph::Two, BaseGraph::One]
        );
        assert_eq!(base_graph(3840, rates[0]), BaseGraph::Two);
        assert_eq!(base_graph(3840, rates[1]), BaseGraph::One);
        // 8424 + 24 bits exactly fit into one code block of 8448.
        assert_eq!(code_blocks(8_424, rates[1]), 1);
        assert_eq!(code_blocks(8_432, rates[1]), 2);
        assert_eq!(code_blocks(3_816, rates[0]), 1);
        assert_eq!(code_blocks(3_840, rates[0]), 2);
    }

    fn any_scheme() -> impl Strategy<Value = Scheme> {
        let tables = [McsTable::Qam64, McsTable::Qam256, McsTable::Qam64LowSe];
        (0..tables.len(), 0..29u8).prop_map(move |(table, index)| {
            mcs(tables[table], index % mcs_count(tables[table])).unwrap()
        })
    }

    proptest! {
        /// A size is a whole number of octets, and all its code blocks have the same length. Up to
        /// 3824 bits it is the next size of the table above N_info, or below it by less than a step
        /// (1/64 of it, at least 8 bits). Beyond that, quantisation changes it by less than 1/32 of
        /// N_info plus the code blocks' octets.
        #[test]
        fn a_size_is_near_what_the_resources_carry(
            elements in 12u32..42_588,
            scheme in any_scheme(),
            layers in 1u32..=4,
        ) {
            let size = transport_block_size(elements, scheme, layers);
            let info = f64::from(elements * layers) * scheme.efficiency();
            prop_assert_eq!(size % 8, 0);
            let blocks = code_blocks(size, scheme.rate);
            prop_assert_eq!((size + 24) % (8 * blocks) * u32::from(blocks > 1), 0);
            let bits = f64::from(size);
            if info <= 3824.0 {
                let next = SIZES.iter().find(|&&size| f64::from(size) >= info);
                prop_assert!(next.is_some_and(|&next| size <= next.into()), "{} for {}", size, info);
                prop_assert!(bits > info - (info / 64.0).max(8.0), "{} for {}", size, info);
            } else {
                let slack = info / 32.0 + f64::from(8 * blocks);
                prop_assert!((bits - info).abs() <= slack, "{} for {}", size, info);
            }
        }

        /// More resource elements or layers never carry less.
        #[test]
        fn a_size_grows_with_its_resources(
            elements in 1u32..42_588,
            scheme in any_scheme(),
            layers in 1u32..4,
        ) {
            let size = transport_block_size(elements, scheme, layers);
            prop_assert!(size <= transport_block_size(elements + 1, scheme, layers));
            prop_assert!(size <= transport_block_size(elements, scheme, layers + 1));
        }
    }
}
