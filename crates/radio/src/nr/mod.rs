//! NR: numerology, bandwidths, MCS and CQI tables, transport block sizes, peak rate, UE processing
//! times, slot offsets and TDD patterns.
//!
//! ```
//! use airpath_radio::nr::{self, Allocation, FrequencyRange, McsTable, Numerology};
//!
//! let mu = Numerology::Khz30;
//! let prbs = nr::resource_blocks(FrequencyRange::Fr1, 100, mu).expect("a channel of table 5.3.2-1");
//! let scheme = nr::mcs(McsTable::Qam256, 27).expect("27 is not reserved");
//! let slot = Allocation { prbs, symbols: 13, dmrs_per_prb: 12, overhead_per_prb: 0 };
//! assert_eq!(nr::transport_block_size(slot.resource_elements(), scheme, 4), 1_179_864);
//! ```

mod bandwidth;
mod mcs;
mod numerology;
mod peak;
mod processing;
mod slots;
mod tbs;
mod tdd;

pub use bandwidth::{FrequencyRange, resource_blocks};
pub use mcs::{CqiTable, McsTable, cqi_scheme, mcs, mcs_count};
pub use numerology::{Numerology, SYMBOLS_PER_SLOT};
pub use peak::{Carrier, peak_rate_bps};
pub use processing::{
    DmrsPosition, downlink_processing, downlink_processing_time, uplink_processing,
    uplink_processing_time,
};
pub use slots::{SlotOffsets, default_uplink_offset};
pub use tbs::{Allocation, BaseGraph, base_graph, code_blocks, transport_block_size};
pub use tdd::{PatternError, SlotFormat, TddPattern};
