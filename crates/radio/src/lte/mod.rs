//! LTE: bandwidths, MCS and CQI tables, transport block sizes, TDD configurations and HARQ timing.
//!
//! ```
//! use airpath_radio::lte::{self, DownlinkTable};
//!
//! let prbs = lte::resource_blocks(20_000).expect("20 MHz is an LTE bandwidth");
//! let mcs = lte::downlink_mcs(DownlinkTable::Qam64, 28).expect("28 is not reserved");
//! assert_eq!(lte::transport_block_size(mcs.tbs_index, prbs), Some(75_376));
//! ```

mod allocation;
mod mcs;
mod tbs;
mod tbs_table;
pub mod tdd;

pub use allocation::{CellPorts, UPLINK_ELEMENTS, downlink_elements, uplink_blocks};
pub use mcs::{CQI_64QAM, CQI_256QAM, DownlinkTable, Mcs, cqi_scheme, downlink_mcs, uplink_mcs};
pub use tbs::{
    MAX_RESOURCE_BLOCKS, MAX_TBS_INDEX, transport_block_size, transport_block_size_two_layers,
};

use airpath_base::Duration;

/// A subframe, which is the TTI: 1 ms (TS 36.211 4).
pub const SUBFRAME: Duration = Duration::from_millis(1);
/// FDD: subframes from a downlink transport block to its HARQ feedback (TS 36.213 10.1.2.1: n-4).
pub const FDD_FEEDBACK_DELAY: u32 = 4;
/// FDD: subframes from an uplink grant, or a negative PHICH, to the PUSCH (TS 36.213 8.0: n+4).
pub const FDD_GRANT_DELAY: u32 = 4;
/// FDD: subframes from the PUSCH to its PHICH (TS 36.213 9.1.2: k_PHICH = 4).
pub const FDD_PHICH_DELAY: u32 = 4;
/// FDD: HARQ processes in each direction (TS 36.213 7 and 8).
pub const FDD_HARQ_PROCESSES: u32 = 8;

/// N_RB of a channel bandwidth in kHz: 1400, 3000, 5000, 10000, 15000 or 20000
/// (TS 36.101 table 5.6-1).
pub const fn resource_blocks(bandwidth_khz: u32) -> Option<u32> {
    match bandwidth_khz {
        1_400 => Some(6),
        3_000 => Some(15),
        5_000 => Some(25),
        10_000 => Some(50),
        15_000 => Some(75),
        20_000 => Some(100),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::resource_blocks;

    #[test]
    fn bandwidths_of_table_5_6_1() {
        let found = [1_400, 3_000, 5_000, 10_000, 15_000, 20_000].map(resource_blocks);
        assert_eq!(found, [6, 15, 25, 50, 75, 100].map(Some));
        assert_eq!(resource_blocks(40_000), None);
    }
}
