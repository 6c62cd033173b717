//! Enumerations of the timers and counters that RRC can configure: the allowed values, and the one
//! nearest to a value that is not allowed.
//!
//! ```
//! use airpath_radio::Generation;
//! use airpath_radio::rrc::enumerations::allowed;
//!
//! let timer = allowed(Generation::Nr, "t-Reassembly").expect("a name of TS 38.331");
//! assert!(timer.contains(35_000_000));
//! assert!(!timer.contains(37_000_000));
//! assert_eq!(timer.nearest(37_000_000), 35_000_000);
//! ```

mod lte;
mod nr;

use crate::Generation;
use crate::nr::Numerology;

/// The unit of an enumeration's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Nanoseconds (the specification prints milliseconds, subframes or 1/32 ms).
    Time,
    /// Slots of the bandwidth part.
    Slots,
    /// OFDM symbols of the bandwidth part.
    Symbols,
    /// LTE subframes in which the UE monitors the PDCCH: 1 ms each in FDD.
    PdcchSubframes,
    /// Periods of another parameter: the scheduling request's, or the short DRX cycle.
    Periods,
    /// Bytes; kB is 1000 and MB 1 000 000 of them.
    Bytes,
    /// RLC PDUs.
    Pdus,
    /// Transmissions.
    Count,
}

/// A parameter of RRC with its allowed values, including later releases' extensions.
#[derive(PartialEq, Eq, Debug)]
pub struct Enumeration {
    /// Name as in the specification, without the release suffix.
    pub name: &'static str,
    /// The information element that contains it (TS 36.331 and 38.331, 6.3.2).
    pub element: &'static str,
    /// Unit of the values.
    pub unit: Unit,
    /// Allowed values, ascending, without infinity.
    pub values: &'static [u64],
    /// Whether infinity is allowed too: the timer never expires, the counter is never reached.
    pub infinity: bool,
}

/// The parameter `name` in the RRC of `generation`; `None` if there is no such parameter.
pub fn allowed(generation: Generation, name: &str) -> Option<&'static Enumeration> {
    all(generation).iter().find(|each| each.name == name)
}

/// All parameters of one generation.
pub fn all(generation: Generation) -> &'static [Enumeration] {
    match generation {
        Generation::Lte => &lte::LTE,
        Generation::Nr => &nr::NR,
    }
}

impl Enumeration {
    /// Whether `value`, in [`unit`](Self::unit), is allowed.
    pub fn contains(&self, value: u64) -> bool {
        self.values.binary_search(&value).is_ok()
    }

    /// The allowed value nearest to `value`; of two the smaller.
    pub fn nearest(&self, value: u64) -> u64 {
        let above = self.values.partition_point(|&each| each < value);
        match (above.checked_sub(1).map(|below| self.values[below]), self.values.get(above)) {
            (Some(below), Some(&above)) if value - below > above - value => above,
            (Some(below), _) => below,
            // No enumeration is empty.
            (None, above) => above.copied().unwrap_or(value),
        }
    }

    const fn new(
        name: &'static str,
        element: &'static str,
        unit: Unit,
        values: &'static [u64],
    ) -> Self {
        Self { name, element, unit, values, infinity: false }
    }

    const fn or_infinity(self) -> Self {
        Self { infinity: true, ..self }
    }
}

/// Allowed periods in slots of an NR scheduling request with `numerology` (TS 38.331
/// SchedulingRequestResourceConfig); periods of 2 and 7 symbols exist in addition.
pub fn sr_periods(numerology: Numerology) -> &'static [u32] {
    match numerology {
        Numerology::Khz15 => &[1, 2, 4, 5, 8, 10, 16, 20, 40, 80],
        Numerology::Khz30 => &[1, 2, 4, 8, 10, 16, 20, 40, 80, 160],
        Numerology::Khz60 => &[1, 2, 4, 8, 16, 20, 40, 80, 160, 320],
        Numerology::Khz120 => &[1, 2, 4, 8, 16, 40, 80, 160, 320, 640],
    }
}

/// Milliseconds in nanoseconds.
macro_rules! ms {
    ($($value:literal),* $(,)?) => { &[$($value * 1_000_000),*] };
}
/// Kilobytes in bytes.
macro_rules! kb {
    ($($value:literal),* $(,)?) => { &[$($value * 1_000),*] };
}
use {kb, ms};

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    fn get(generation: Generation, name: &str) -> &'static Enumeration {
        allowed(generation, name).unwrap()
    }

    #[test]
    fn enumerations_are_ascending_and_named_once() {
        for generation in [Generation::Lte, Generation::Nr] {
            for each in all(generation) {
                assert!(each.values.is_sorted_by(|a, b| a < b), "{}", each.name);
                assert!(!each.values.is_empty());
                // The first enumeration with that name is this one.
                assert!(core::ptr::eq(get(generation, each.name), each), "{}", each.name);
            }
        }
    }

    /// Values that differ between the two generations (TS 36.331, TS 38.331 6.3.2).
    #[test]
    fn lte_and_nr_differ() {
        let both = |name| [Generation::Lte, Generation::Nr].map(|each| get(each, name));
        assert_eq!(both("t-PollRetransmit").map(|each| each.contains(MILLISECOND)), [false, true]);
        assert_eq!(both("pollPDU").map(|each| each.contains(65_536)), [false, true]);
        assert_eq!(
            both("retxBSR-Timer").map(|each| each.values[0]),
            [320, 10].map(|n| n * MILLISECOND)
        );
        assert_eq!(allowed(Generation::Lte, "t-Reassembly"), None);
        assert_eq!(allowed(Generation::Nr, "dsr-TransMax"), None);
    }

    #[test]
    fn sizes_of_the_enumerations() {
        // Counted without spares, extensions included: TS 38.331 and TS 36.331 6.3.2
        let sizes = [
            (Generation::Nr, "t-PollRetransmit", 63),
            (Generation::Nr, "pollPDU", 23),
            (Generation::Nr, "pollByte", 43),
            (Generation::Nr, "t-Reassembly", 31 + 8),
            (Generation::Nr, "t-StatusProhibit", 62 + 4),
            (Generation::Nr, "sr-TransMax", 5),
            (Generation::Nr, "drx-onDurationTimer", 31 + 24),
            (Generation::Nr, "drx-LongCycle", 20),
            (Generation::Lte, "t-PollRetransmit", 59),
            (Generation::Lte, "pollPDU", 7 + 8),
            (Generation::Lte, "pollByte", 14 + 32),
            (Generation::Lte, "t-Reordering", 32),
            (Generation::Lte, "t-StatusProhibit", 62),
            (Generation::Lte, "longDRX-Cycle", 16 + 2),
        ];
        for (generation, name, size) in sizes {
            assert_eq!(get(generation, name).values.len(), size, "{generation:?} {name}");
        }
    }

    #[test]
    fn the_nearest_value_is_named() {
        let timer = get(Generation::Nr, "sr-ProhibitTimer");
        let nearest = |ms: u64| timer.nearest(ms * MILLISECOND) / MILLISECOND;
        assert_eq!([0, 3, 5, 7, 8, 100, 5_000].map(nearest), [1, 2, 4, 8, 8, 128, 1_082]);
        assert!(get(Generation::Nr, "drx-onDurationTimer").contains(31_250));
    }

    /// Every period of a numerology is in the enumeration, and the longest is 80 ms.
    #[test]
    fn sr_periods_reach_80_ms() {
        let enumeration = get(Generation::Nr, "sr-Periodicity");
        for numerology in Numerology::ALL {
            let periods = sr_periods(numerology);
            assert!(periods.iter().all(|&slots| enumeration.contains(slots.into())));
            assert_eq!(periods.last(), Some(&(80 * numerology.slots_per_subframe())));
        }
    }
}
