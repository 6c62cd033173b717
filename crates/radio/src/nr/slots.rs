//! Slot offsets between control, data and feedback.

use super::{Numerology, SYMBOLS_PER_SLOT};
use airpath_base::Duration;

/// Number of slots between a DCI and what it schedules. The cell's configuration sets them;
/// [`least_slots`](SlotOffsets::least_slots) computes what a UE supports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotOffsets {
    /// K_0: from the DCI to its PDSCH (TS 38.214 5.1.2.1), 0 to 32. 0 in most rows of the default
    /// table 5.1.2.1.1-2.
    pub k0: u32,
    /// K_1: from the PDSCH to its HARQ feedback (TS 38.213 9.2.3), 0 to 15; DCI format 1_0 can
    /// signal 1 to 8.
    pub k1: u32,
    /// K_2: from the grant to its PUSCH (TS 38.214 6.1.2.1), 0 to 32. For the default table see
    /// [`default_uplink_offset`].
    pub k2: u32,
}

impl SlotOffsets {
    /// The smallest offset in slots from something that ends with symbol `end` (exclusive, 1 to 14)
    /// of a slot to something that begins with symbol `start` (0 to 13), if `time` must pass in
    /// between: K_1 for T_proc,1, K_2 for T_proc,2. Timing advance is additional.
    pub fn least_slots(numerology: Numerology, end: u32, time: Duration, start: u32) -> u32 {
        let slot = numerology.slot().as_nanos();
        let symbols = u64::from(SYMBOLS_PER_SLOT);
        // In fourteenths of a nanosecond, so that symbols are whole numbers.
        let needed = u64::from(end) * slot + time.as_nanos() * symbols;
        let offset = u64::from(start) * slot;
        needed.saturating_sub(offset).div_ceil(slot * symbols) as u32
    }
}

/// j of TS 38.214 table 6.1.2.1.1-4: K_2 in the first rows of the default PUSCH allocation A.
pub const fn default_uplink_offset(numerology: Numerology) -> u32 {
    match numerology {
        Numerology::Khz15 | Numerology::Khz30 => 1,
        Numerology::Khz60 => 2,
        Numerology::Khz120 => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nr::{DmrsPosition, downlink_processing_time, uplink_processing_time};

    #[test]
    fn j_of_table_6_1_2_1_1_4() {
        assert_eq!(Numerology::ALL.map(default_uplink_offset), [1, 1, 2, 3]);
    }

    /// A PDCCH of one symbol and a PUSCH from symbol 0 on: j slots are enough for N_2 at 15 to 60
    /// kHz. At 120 kHz the 36 symbols and the PDCCH's one would also fit into 3 slots.
    #[test]
    fn the_default_k2_is_the_least_that_capability_1_meets() {
        for numerology in Numerology::ALL {
            let time = uplink_processing_time(numerology, 0);
            let least = SlotOffsets::least_slots(numerology, 1, time, 0);
            assert_eq!(least, default_uplink_offset(numerology), "{numerology:?}");
        }
    }

    #[test]
    fn feedback_waits_for_the_decoder() {
        let time = downlink_processing_time(Numerology::Khz30, DmrsPosition::FrontLoaded, 0);
        let least = |end, start| SlotOffsets::least_slots(Numerology::Khz30, end, time, start);
        // N_1 = 10 symbols: the feedback of a full slot fits into symbol 10 of the next, not into
        // symbol 9.
        assert_eq!(least(14, 10), 1);
        assert_eq!(least(14, 9), 2);
        // A short PDSCH can be answered in its own slot.
        assert_eq!(least(3, 13), 0);
    }
}
