//! The meaning of I_MCS and of CQI indices.

use crate::scheme::Modulation::{self, Qam16, Qam64, Qam256, Qpsk};
use crate::scheme::{Scheme, table};

/// Modulation and row of the transport block size table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mcs {
    /// Q_m as a modulation.
    pub modulation: Modulation,
    /// I_TBS, the row of TS 36.213 table 7.1.7.2.1-1.
    pub tbs_index: u8,
}

/// The table to which a downlink MCS index refers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DownlinkTable {
    /// TS 36.213 table 7.1.7.1-1: up to 64QAM.
    Qam64,
    /// TS 36.213 table 7.1.7.1-1A (altCQI-Table-r12): up to 256QAM.
    Qam256,
}

/// The downlink MCS `index`; `None` for the reserved ones (29 to 31, with 256QAM 28 to 31), which
/// give the modulation of a retransmission.
pub fn downlink_mcs(table: DownlinkTable, index: u8) -> Option<Mcs> {
    match table {
        DownlinkTable::Qam64 => pick(&DOWNLINK_64QAM, index),
        DownlinkTable::Qam256 => pick(&DOWNLINK_256QAM, index),
    }
}

/// The uplink MCS `index` (TS 36.213 table 8.6.1-1) of a UE that may send 64QAM; `None` for 29 to
/// 31, which give a redundancy version.
pub fn uplink_mcs(index: u8) -> Option<Mcs> {
    pick(&UPLINK, index)
}

/// The scheme for CQI `index` (1 to 15) of `table`; `None` for 0, out of range.
pub fn cqi_scheme(table: DownlinkTable, index: u8) -> Option<Scheme> {
    let rows = match table {
        DownlinkTable::Qam64 => &CQI_64QAM,
        DownlinkTable::Qam256 => &CQI_256QAM,
    };
    rows.get(usize::from(index).checked_sub(1)?).copied()
}

/// CQI 1 to 15 up to 64QAM (TS 36.213 table 7.2.3-1).
pub const CQI_64QAM: [Scheme; 15] = table(&[
    (Qpsk, &[78.0, 120.0, 193.0, 308.0, 449.0, 602.0]),
    (Qam16, &[378.0, 490.0, 616.0]),
    (Qam64, &[466.0, 567.0, 666.0, 772.0, 873.0, 948.0]),
]);

/// CQI 1 to 15 up to 256QAM (TS 36.213 table 7.2.3-2).
pub const CQI_256QAM: [Scheme; 15] = table(&[
    (Qpsk, &[78.0, 193.0, 449.0]),
    (Qam16, &[378.0, 490.0, 616.0]),
    (Qam64, &[466.0, 567.0, 666.0, 772.0, 873.0]),
    (Qam256, &[711.0, 797.0, 885.0, 948.0]),
]);

/// I_TBS of consecutive MCS indices, by modulation.
type Rows = [(Modulation, &'static [u8])];

// TS 36.213 table 7.1.7.1-1
const DOWNLINK_64QAM: [(Modulation, &[u8]); 3] = [
    (Qpsk, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    (Qam16, &[9, 10, 11, 12, 13, 14, 15]),
    (Qam64, &[15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26]),
];

// TS 36.213 table 7.1.7.1-1A
const DOWNLINK_256QAM: [(Modulation, &[u8]); 4] = [
    (Qpsk, &[0, 2, 4, 6, 8]),
    (Qam16, &[10, 11, 12, 13, 14, 15]),
    (Qam64, &[16, 17, 18, 19, 20, 21, 22, 23, 24]),
    (Qam256, &[25, 27, 28, 29, 30, 31, 32, 33]),
];

// TS 36.213 table 8.6.1-1
const UPLINK: [(Modulation, &[u8]); 3] = [
    (Qpsk, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    (Qam16, &[10, 11, 12, 13, 14, 15, 16, 17, 18, 19]),
    (Qam64, &[19, 20, 21, 22, 23, 24, 25, 26]),
];

fn pick(rows: &Rows, index: u8) -> Option<Mcs> {
    let mut rest = usize::from(index);
    for &(modulation, indices) in rows {
        match indices.get(rest) {
            Some(&tbs_index) => return Some(Mcs { modulation, tbs_index }),
            None => rest -= indices.len(),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downlink_rows_of_table_7_1_7_1_1() {
        let expected =
            [(0, Qpsk, 0), (9, Qpsk, 9), (10, Qam16, 9), (16, Qam16, 15), (17, Qam64, 15)];
        for (index, modulation, tbs_index) in expected {
            let found = downlink_mcs(DownlinkTable::Qam64, index);
            assert_eq!(found, Some(Mcs { modulation, tbs_index }), "MCS {index}");
        }
        assert_eq!(downlink_mcs(DownlinkTable::Qam64, 28).unwrap().tbs_index, 26);
        assert_eq!(downlink_mcs(DownlinkTable::Qam64, 29), None);
    }

    #[test]
    fn downlink_rows_of_table_7_1_7_1_1a() {
        // I_TBS 26 has no MCS index in that table.
        let indices: Vec<u8> = (0..28)
            .map(|index| downlink_mcs(DownlinkTable::Qam256, index).unwrap().tbs_index)
            .collect();
        let expected = [0, 2, 4, 6, 8].into_iter().chain(10..=25).chain(27..=33);
        assert_eq!(indices, expected.collect::<Vec<u8>>());
        assert_eq!(downlink_mcs(DownlinkTable::Qam256, 20).unwrap().modulation, Qam256);
        assert_eq!(downlink_mcs(DownlinkTable::Qam256, 28), None);
    }

    #[test]
    fn uplink_rows_of_table_8_6_1_1() {
        let expected = [(10, Qpsk, 10), (11, Qam16, 10), (20, Qam16, 19), (21, Qam64, 19)];
        for (index, modulation, tbs_index) in expected {
            assert_eq!(uplink_mcs(index), Some(Mcs { modulation, tbs_index }), "MCS {index}");
        }
        assert_eq!(uplink_mcs(28).unwrap().tbs_index, 26);
        assert_eq!(uplink_mcs(29), None);
    }

    #[test]
    fn cqi_efficiencies_as_printed() {
        // TS 36.213 tables 7.2.3-1 and 7.2.3-2, column efficiency
        let cases = [
            (DownlinkTable::Qam64, 1, 0.1523),
            (DownlinkTable::Qam64, 7, 1.4766),
            (DownlinkTable::Qam64, 15, 5.5547),
            (DownlinkTable::Qam256, 3, 0.8770),
            (DownlinkTable::Qam256, 12, 5.5547),
            (DownlinkTable::Qam256, 15, 7.4063),
        ];
        for (table, index, printed) in cases {
            let efficiency = cqi_scheme(table, index).unwrap().efficiency();
            assert!((efficiency - printed).abs() < 5.1e-5, "CQI {index}: {efficiency}");
        }
        assert_eq!(cqi_scheme(DownlinkTable::Qam64, 0), None);
        assert_eq!(cqi_scheme(DownlinkTable::Qam64, 16), None);
    }
}
