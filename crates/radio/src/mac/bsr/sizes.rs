//! Buffer size levels: how a buffer size is coded in a few bits, and how the base station
//! interprets them.

/// A table of buffer size levels. Levels count from 0, which means an empty buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferSizeTable {
    /// TS 36.321 table 6.1.3.1-1: 6 bits, up to 150 000 bytes.
    Lte,
    /// TS 36.321 table 6.1.3.1-2 (extendedBSR-Sizes): 6 bits, up to 3 000 000 bytes.
    LteExtended,
    /// TS 38.321 table 6.1.3.1-1, the short BSR: 5 bits, up to 150 000 bytes.
    NrShort,
    /// TS 38.321 table 6.1.3.1-2, the long BSR: 8 bits, up to 81 338 368 bytes.
    NrLong,
}

impl BufferSizeTable {
    /// Number of levels in use; the last one has no upper bound.
    pub fn levels(self) -> usize {
        self.bounds().len() + 1
    }

    /// The level that reports a buffer of `bytes` bytes.
    pub fn quantise(self, bytes: u64) -> u8 {
        self.bounds().partition_point(|&bound| u64::from(bound) < bytes) as u8
    }

    /// The most bytes that `level` represents; `None` for the last level, which has no bound, and
    /// for values not in use.
    pub fn upper_bound(self, level: u8) -> Option<u32> {
        self.bounds().get(usize::from(level)).copied()
    }

    /// Bytes that a base station assumes for `level`: its upper bound, and for the last level the
    /// bound that it exceeds. Reserved values count as the last level.
    pub fn estimate(self, level: u8) -> u32 {
        let bounds = self.bounds();
        bounds[usize::from(level).min(bounds.len() - 1)]
    }

    /// Upper bounds in bytes of all levels except the last, ascending.
    pub const fn bounds(self) -> &'static [u32] {
        match self {
            Self::Lte => &LTE,
            Self::LteExtended => &LTE_EXTENDED,
            Self::NrShort => &NR_SHORT,
            Self::NrLong => &NR_LONG,
        }
    }
}

// TS 36.321 table 6.1.3.1-1
#[rustfmt::skip]
const LTE: [u32; 63] = [
    0, 10, 12, 14, 17, 19, 22, 26, 31, 36, 42, 49, 57, 67, 78, 91, 107, 125, 146, 171, 200, 234,
    274, 321, 376, 440, 515, 603, 706, 826, 967, 1132, 1326, 1552, 1817, 2127, 2490, 2915, 3413,
    3995, 4677, 5476, 6411, 7505, 8787, 10287, 12043, 14099, 16507, 19325, 22624, 26487, 31009,
    36304, 42502, 49759, 58255, 68201, 79846, 93479, 109439, 128125, 150000,
];

// TS 36.321 table 6.1.3.1-2
#[rustfmt::skip]
const LTE_EXTENDED: [u32; 63] = [
    0, 10, 13, 16, 19, 23, 29, 35, 43, 53, 65, 80, 98, 120, 147, 181, 223, 274, 337, 414, 509, 625,
    769, 945, 1162, 1429, 1757, 2161, 2657, 3267, 4017, 4940, 6074, 7469, 9185, 11294, 13888, 17077,
    20999, 25822, 31752, 39045, 48012, 59039, 72598, 89272, 109774, 134986, 165989, 204111, 250990,
    308634, 379519, 466683, 573866, 705666, 867737, 1067031, 1312097, 1613447, 1984009, 2439678,
    3000000,
];

// TS 38.321 table 6.1.3.1-1
#[rustfmt::skip]
const NR_SHORT: [u32; 31] = [
    0, 10, 14, 20, 28, 38, 53, 74, 102, 142, 198, 276, 384, 535, 745, 1038, 1446, 2014, 2806, 3909,
    5446, 7587, 10570, 14726, 20516, 28581, 39818, 55474, 77284, 107669, 150000,
];

// TS 38.321 table 6.1.3.1-2; 255 is reserved
#[rustfmt::skip]
const NR_LONG: [u32; 254] = [
    0, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 23, 25, 26, 28, 30, 32, 34, 36, 38, 40, 43,
    46, 49, 52, 55, 59, 62, 66, 71, 75, 80, 85, 91, 97, 103, 110, 117, 124, 132, 141, 150, 160, 170,
    181, 193, 205, 218, 233, 248, 264, 281, 299, 318, 339, 361, 384, 409, 436, 464, 494, 526, 560,
    597, 635, 677, 720, 767, 817, 870, 926, 987, 1051, 1119, 1191, 1269, 1351, 1439, 1532, 1631,
    1737, 1850, 1970, 2098, 2234, 2379, 2533, 2698, 2873, 3059, 3258, 3469, 3694, 3934, 4189, 4461,
    4751, 5059, 5387, 5737, 6109, 6506, 6928, 7378, 7857, 8367, 8910, 9488, 10104, 10760, 11458,
    12202, 12994, 13838, 14736, 15692, 16711, 17795, 18951, 20181, 21491, 22885, 24371, 25953,
    27638, 29431, 31342, 33376, 35543, 37850, 40307, 42923, 45709, 48676, 51836, 55200, 58784,
    62599, 66663, 70990, 75598, 80505, 85730, 91295, 97221, 103532, 110252, 117409, 125030, 133146,
    141789, 150992, 160793, 171231, 182345, 194182, 206786, 220209, 234503, 249725, 265935, 283197,
    301579, 321155, 342002, 364202, 387842, 413018, 439827, 468377, 498780, 531156, 565634, 602350,
    641449, 683087, 727427, 774645, 824928, 878475, 935498, 996222, 1060888, 1129752, 1203085,
    1281179, 1364342, 1452903, 1547213, 1647644, 1754595, 1868488, 1989774, 2118933, 2256475,
    2402946, 2558924, 2725027, 2901912, 3090279, 3290873, 3504487, 3731968, 3974215, 4232186,
    4506902, 4799451, 5110989, 5442750, 5796046, 6172275, 6572925, 6999582, 7453933, 7937777,
    8453028, 9001725, 9586039, 10208280, 10870913, 11576557, 12328006, 13128233, 13980403, 14887889,
    15854280, 16883401, 17979324, 19146385, 20389201, 21712690, 23122088, 24622972, 26221280,
    27923336, 29735875, 31666069, 33721553, 35910462, 38241455, 40723756, 43367187, 46182206,
    49179951, 52372284, 55771835, 59392055, 63247269, 67352729, 71724679, 76380419, 81338368,
];

#[cfg(test)]
mod tests {
    use super::BufferSizeTable::{self, Lte, LteExtended, NrLong, NrShort};
    use proptest::prelude::*;

    #[test]
    fn rows_of_the_specifications() {
        // (table, level, least bytes, most bytes)
        let rows = [
            (Lte, 0, 0, Some(0)),
            (Lte, 1, 1, Some(10)),
            (Lte, 45, 8_788, Some(10_287)),
            (Lte, 46, 10_288, Some(12_043)),
            (Lte, 62, 128_126, Some(150_000)),
            (Lte, 63, 150_001, None),
            (LteExtended, 2, 11, Some(13)),
            (LteExtended, 40, 25_823, Some(31_752)),
            (LteExtended, 63, 3_000_001, None),
            (NrShort, 1, 1, Some(10)),
            (NrShort, 13, 385, Some(535)),
            (NrShort, 31, 150_001, None),
            (NrLong, 28, 56, Some(59)),
            (NrLong, 129, 31_343, Some(33_376)),
            (NrLong, 253, 76_380_420, Some(81_338_368)),
            (NrLong, 254, 81_338_369, None),
        ];
        for (table, level, least, most) in rows {
            assert_eq!(table.quantise(least), level, "{table:?}");
            assert_eq!(table.upper_bound(level), most, "{table:?} level {level}");
            if let Some(most) = most {
                assert_eq!(table.quantise(u64::from(most)), level, "{table:?}");
            }
        }
    }

    #[test]
    fn field_widths() {
        // TS 36.321 6.1.3.1, TS 38.321 6.1.3.1 (8 bits: 255 is reserved)
        let levels = [Lte, LteExtended, NrShort, NrLong].map(BufferSizeTable::levels);
        assert_eq!(levels, [64, 64, 32, 255]);
    }

    #[test]
    fn the_estimate_is_the_bound_that_the_last_level_exceeds() {
        assert_eq!(Lte.estimate(63), 150_000);
        assert_eq!(NrLong.estimate(254), 81_338_368);
        assert_eq!(NrLong.estimate(255), 81_338_368);
        assert_eq!(NrShort.estimate(0), 0);
    }

    proptest! {
        /// The estimate is never less than the actual size, unless the level is the last; and the
        /// bounds grow by less than half a level, so it is never twice the actual size.
        #[test]
        fn belief_covers_the_buffer(bytes in 11u64..150_000) {
            for table in [Lte, LteExtended, NrShort, NrLong] {
                let estimate = u64::from(table.estimate(table.quantise(bytes)));
                prop_assert!(bytes <= estimate && estimate < 2 * bytes, "{table:?} {estimate}");
            }
        }
    }
}
