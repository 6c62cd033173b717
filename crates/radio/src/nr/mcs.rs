//! The meaning of I_MCS and of CQI indices.

use crate::scheme::Modulation::{Pi2Bpsk, Qam16, Qam64, Qam256, Qpsk};
use crate::scheme::{Scheme, table};

/// The table to which an MCS index refers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum McsTable {
    /// TS 38.214 table 5.1.3.1-1 (qam64), for PDSCH and PUSCH.
    Qam64,
    /// TS 38.214 table 5.1.3.1-2 (qam256), for PDSCH and PUSCH.
    Qam256,
    /// TS 38.214 table 5.1.3.1-3 (qam64LowSE), for PDSCH and PUSCH.
    Qam64LowSe,
    /// TS 38.214 table 6.1.4.1-1, PUSCH with transform precoding, tp-pi2BPSK configured.
    Precoded,
    /// TS 38.214 table 6.1.4.1-2 (qam64LowSE), PUSCH with transform precoding and tp-pi2BPSK.
    PrecodedLowSe,
}

/// The table to which a CQI refers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CqiTable {
    /// TS 38.214 table 5.2.2.1-2 (table1), BLER 0.1.
    Qam64,
    /// TS 38.214 table 5.2.2.1-3 (table2), BLER 0.1.
    Qam256,
    /// TS 38.214 table 5.2.2.1-4 (table3), BLER 1e-5.
    Qam64LowSe,
}

/// The scheme of MCS `index`; `None` for the reserved ones, which give the modulation of a
/// retransmission.
pub fn mcs(table: McsTable, index: u8) -> Option<Scheme> {
    rows(table).get(usize::from(index)).copied()
}

/// Number of MCS indices of `table` that are not reserved.
pub fn mcs_count(table: McsTable) -> u8 {
    rows(table).len() as u8
}

/// The scheme of CQI `index` (1 to 15) of `table`; `None` for 0, out of range.
pub fn cqi_scheme(table: CqiTable, index: u8) -> Option<Scheme> {
    let rows = match table {
        CqiTable::Qam64 => &CQI_1,
        CqiTable::Qam256 => &CQI_2,
        CqiTable::Qam64LowSe => &CQI_3,
    };
    rows.get(usize::from(index).checked_sub(1)?).copied()
}

fn rows(table: McsTable) -> &'static [Scheme] {
    match table {
        McsTable::Qam64 => &MCS_1,
        McsTable::Qam256 => &MCS_2,
        McsTable::Qam64LowSe => &MCS_3,
        McsTable::Precoded => &PRECODED_1,
        McsTable::PrecodedLowSe => &PRECODED_2,
    }
}

// TS 38.214 table 5.1.3.1-1
const MCS_1: [Scheme; 29] = table(&[
    (Qpsk, &[120.0, 157.0, 193.0, 251.0, 308.0, 379.0, 449.0, 526.0, 602.0, 679.0]),
    (Qam16, &[340.0, 378.0, 434.0, 490.0, 553.0, 616.0, 658.0]),
    (Qam64, &[438.0, 466.0, 517.0, 567.0, 616.0, 666.0, 719.0, 772.0, 822.0, 873.0, 910.0, 948.0]),
]);

// TS 38.214 table 5.1.3.1-2
const MCS_2: [Scheme; 28] = table(&[
    (Qpsk, &[120.0, 193.0, 308.0, 449.0, 602.0]),
    (Qam16, &[378.0, 434.0, 490.0, 553.0, 616.0, 658.0]),
    (Qam64, &[466.0, 517.0, 567.0, 616.0, 666.0, 719.0, 772.0, 822.0, 873.0]),
    (Qam256, &[682.5, 711.0, 754.0, 797.0, 841.0, 885.0, 916.5, 948.0]),
]);

// TS 38.214 table 5.1.3.1-3
#[rustfmt::skip]
const MCS_3: [Scheme; 29] = table(&[
    (Qpsk, &[
        30.0, 40.0, 50.0, 64.0, 78.0, 99.0, 120.0, 157.0, 193.0, 251.0, 308.0, 379.0, 449.0, 526.0,
        602.0,
    ]),
    (Qam16, &[340.0, 378.0, 434.0, 490.0, 553.0, 616.0]),
    (Qam64, &[438.0, 466.0, 517.0, 567.0, 616.0, 666.0, 719.0, 772.0]),
]);

// TS 38.214 table 6.1.4.1-1 with q = 1
const PRECODED_1: [Scheme; 28] = table(&[
    (Pi2Bpsk, &[240.0, 314.0]),
    (Qpsk, &[193.0, 251.0, 308.0, 379.0, 449.0, 526.0, 602.0, 679.0]),
    (Qam16, &[340.0, 378.0, 434.0, 490.0, 553.0, 616.0, 658.0]),
    (Qam64, &[466.0, 517.0, 567.0, 616.0, 666.0, 719.0, 772.0, 822.0, 873.0, 910.0, 948.0]),
]);

// TS 38.214 table 6.1.4.1-2 with q = 1
const PRECODED_2: [Scheme; 28] = table(&[
    (Pi2Bpsk, &[60.0, 80.0, 100.0, 128.0, 156.0, 198.0]),
    (Qpsk, &[120.0, 157.0, 193.0, 251.0, 308.0, 379.0, 449.0, 526.0, 602.0, 679.0]),
    (Qam16, &[378.0, 434.0, 490.0, 553.0, 616.0, 658.0, 699.0, 772.0]),
    (Qam64, &[567.0, 616.0, 666.0, 772.0]),
]);

// TS 38.214 table 5.2.2.1-2
const CQI_1: [Scheme; 15] = table(&[
    (Qpsk, &[78.0, 120.0, 193.0, 308.0, 449.0, 602.0]),
    (Qam16, &[378.0, 490.0, 616.0]),
    (Qam64, &[466.0, 567.0, 666.0, 772.0, 873.0, 948.0]),
]);

// TS 38.214 table 5.2.2.1-3
const CQI_2: [Scheme; 15] = table(&[
    (Qpsk, &[78.0, 193.0, 449.0]),
    (Qam16, &[378.0, 490.0, 616.0]),
    (Qam64, &[466.0, 567.0, 666.0, 772.0, 873.0]),
    (Qam256, &[711.0, 797.0, 885.0, 948.0]),
]);

// TS 38.214 table 5.2.2.1-4
const CQI_3: [Scheme; 15] = table(&[
    (Qpsk, &[30.0, 50.0, 78.0, 120.0, 193.0, 308.0, 449.0, 602.0]),
    (Qam16, &[378.0, 490.0, 616.0]),
    (Qam64, &[466.0, 567.0, 666.0, 772.0]),
]);

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [McsTable; 5] = [
        McsTable::Qam64,
        McsTable::Qam256,
        McsTable::Qam64LowSe,
        McsTable::Precoded,
        McsTable::PrecodedLowSe,
    ];

    fn rates(table: McsTable) -> Vec<f64> {
        rows(table).iter().map(|scheme| scheme.rate.as_f64() * 1024.0).collect()
    }

    #[test]
    fn published_code_rates_of_table_1() {
        let published = "120 157 193 251 308 379 449 526 602 679 340 378 434 490 553 616 658 438 \
             466 517 567 616 666 719 772 822 873 910 948";
        assert_eq!(rates(McsTable::Qam64), numbers(published));
    }

    #[test]
    fn published_code_rates_of_table_2() {
        let published = "120 193 308 449 602 378 434 490 553 616 658 466 517 567 616 666 719 772 \
             822 873 682.5 711 754 797 841 885 916.5 948";
        assert_eq!(rates(McsTable::Qam256), numbers(published));
    }

    #[test]
    fn efficiencies_as_printed() {
        // TS 38.214 tables 5.1.3.1-1 to -3, 6.1.4.1-1 and -2, column spectral efficiency
        let printed = [
            (McsTable::Qam64, 0, 0.2344),
            (McsTable::Qam64, 16, 2.5703),
            (McsTable::Qam64, 17, 2.5664),
            (McsTable::Qam64, 28, 5.5547),
            (McsTable::Qam256, 19, 5.1152),
            (McsTable::Qam256, 20, 5.3320),
            (McsTable::Qam256, 27, 7.4063),
            (McsTable::Qam64LowSe, 0, 0.0586),
            (McsTable::Qam64LowSe, 15, 1.3281),
            (McsTable::Qam64LowSe, 28, 4.5234),
            (McsTable::Precoded, 0, 0.2344),
            (McsTable::Precoded, 27, 5.5547),
            (McsTable::PrecodedLowSe, 0, 0.0586),
            (McsTable::PrecodedLowSe, 27, 4.5234),
        ];
        for (table, index, efficiency) in printed {
            let found = mcs(table, index).unwrap().efficiency();
            assert!((found - efficiency).abs() < 5.1e-5, "{table:?} {index}: {found}");
        }
    }

    #[test]
    fn reserved_indices_have_no_scheme() {
        assert_eq!(ALL.map(mcs_count), [29, 28, 29, 28, 28]);
        for table in ALL {
            assert_eq!(mcs(table, mcs_count(table)), None);
            assert_eq!(mcs(table, 31), None);
        }
        assert_eq!(cqi_scheme(CqiTable::Qam64, 0), None);
        assert_eq!(cqi_scheme(CqiTable::Qam64, 16), None);
    }

    /// Efficiency does not fall as the index grows, except from 16QAM to 64QAM of table 1 and
    /// similar steps, where the ranges overlap by less than 1 %.
    #[test]
    fn efficiency_grows_with_the_index() {
        for table in ALL {
            for pair in rows(table).windows(2) {
                let (low, high) = (pair[0].efficiency(), pair[1].efficiency());
                assert!(high > low * 0.99, "{table:?} {pair:?}");
                assert!(pair[0].modulation <= pair[1].modulation);
            }
        }
        for table in [CqiTable::Qam64, CqiTable::Qam256, CqiTable::Qam64LowSe] {
            for index in 2..=15 {
                let [low, high] =
                    [index - 1, index].map(|i| cqi_scheme(table, i).unwrap().efficiency());
                assert!(high > low, "{table:?} {index}");
            }
        }
    }

    fn numbers(line: &str) -> Vec<f64> {
        line.split_whitespace().map(|number| number.parse().unwrap()).collect()
    }
}
