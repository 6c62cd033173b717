//! TDD slot patterns: the direction of each symbol of each slot (TS 38.213 11.1).

use super::{Numerology, SYMBOLS_PER_SLOT};
use airpath_base::Duration;
use core::fmt;
use core::str::FromStr;
use thiserror::Error;

/// A repeating pattern of slots: one or two of the specification's patterns in sequence.
///
/// It is written as D, U and S, one letter per slot, followed by a space and the symbols of the
/// special slot as downlink:guard:uplink; `+` joins two patterns.
///
/// ```
/// use airpath_radio::nr::TddPattern;
///
/// let pattern: TddPattern = "DDDSU 10:2:2".parse()?;
/// assert_eq!(pattern.slot(3).downlink, 10);
/// assert_eq!(pattern.slot(9).uplink, 14);
/// let pattern: TddPattern = "DDDSU 10:2:2 + DDSUU 6:4:4".parse()?;
/// assert_eq!(pattern.slots(), 10);
/// # Ok::<(), airpath_radio::nr::PatternError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TddPattern {
    slots: Box<[SlotFormat]>,
    /// Number of slots of the first of two patterns; if there is one pattern, all of them.
    first: usize,
}

/// Symbols of one slot: downlink, then guard, then uplink. Their sum is 14.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotFormat {
    /// Downlink symbols, from the start of the slot.
    pub downlink: u8,
    /// Flexible symbols in between, which are not used.
    pub guard: u8,
    /// Uplink symbols, up to the end of the slot.
    pub uplink: u8,
}

/// Why a pattern was refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PatternError {
    /// There is no slot.
    #[error("the pattern has no slots; write one such as 'DDDSU 10:2:2'")]
    Empty,
    /// A letter other than D, S and U.
    #[error("'{0}' is not a slot type: use D (downlink), S (special) and U (uplink)")]
    UnknownSlot(char),
    /// There is an S, but its symbols are missing.
    #[error("'{0}' has a special slot: add its symbols, such as '{0} 10:2:2'")]
    SpecialMissing(String),
    /// There are symbols for an S, but no S.
    #[error("'{0}' has no special slot for the symbols '{1}'")]
    SpecialUnused(String, String),
    /// The symbols do not have the form D:G:U.
    #[error("'{0}' is not downlink:guard:uplink symbols, such as 10:2:2")]
    NotSymbols(String),
    /// The symbols of a special slot do not fill it.
    #[error("'{0}' has {1} symbols; a slot has 14")]
    SymbolSum(String, u32),
    /// Uplink follows the downlink of a special slot without a guard.
    #[error("'{0}' switches from downlink to uplink without a guard symbol")]
    NoGuard(String),
    /// More than two patterns.
    #[error("{0} patterns are joined; at most two can be")]
    TooManyPatterns(usize),
    /// No downlink can ever be sent.
    #[error("the pattern has no downlink symbol")]
    NoDownlink,
    /// No uplink can ever be sent.
    #[error("the pattern has no uplink symbol")]
    NoUplink,
    /// A period that is not a value of dl-UL-TransmissionPeriodicity.
    #[error(
        "{0} slots of {1} kHz are {2} us, which is not a TDD period: use 500, 625, 1000, 1250, 2000, \
             2500, 3000, 4000, 5000 or 10000 us"
    )]
    Period(usize, u32, u64),
    /// Two periods whose sum does not divide 20 ms.
    #[error("the two patterns last {0} us together, which does not divide 20 ms")]
    TwoPeriods(u64),
}

impl SlotFormat {
    /// All symbols downlink.
    pub const DOWNLINK: Self = Self { downlink: SYMBOLS_PER_SLOT as u8, guard: 0, uplink: 0 };
    /// All symbols uplink.
    pub const UPLINK: Self = Self { downlink: 0, guard: 0, uplink: SYMBOLS_PER_SLOT as u8 };
}

impl TddPattern {
    /// Slots until the pattern repeats.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The format of slot `slot`, counted from the start of the run.
    pub fn slot(&self, slot: u64) -> SlotFormat {
        self.slots[(slot % self.slots.len() as u64) as usize]
    }

    /// The first slot at or after `from` with at least `symbols` downlink symbols; `None` if the
    /// pattern has none.
    pub fn next_downlink(&self, from: u64, symbols: u8) -> Option<u64> {
        self.next(from, |format| format.downlink >= symbols)
    }

    /// The first slot at or after `from` with at least `symbols` uplink symbols; `None` if the
    /// pattern has none.
    pub fn next_uplink(&self, from: u64, symbols: u8) -> Option<u64> {
        self.next(from, |format| format.uplink >= symbols)
    }

    /// Downlink and uplink symbols of one period.
    pub fn symbols(&self) -> (u32, u32) {
        self.slots.iter().fold((0, 0), |(downlink, uplink), format| {
            (downlink + u32::from(format.downlink), uplink + u32::from(format.uplink))
        })
    }

    /// Length of the pattern.
    pub fn period(&self, numerology: Numerology) -> Duration {
        numerology.slot() * self.slots.len() as u64
    }

    /// Checks whether a cell of `numerology` can be configured with this pattern: each period is
    /// one of dl-UL-TransmissionPeriodicity, and the sum of two divides 20 ms.
    // TS 38.213 11.1, TS 38.331 TDD-UL-DL-ConfigCommon
    pub fn check_period(&self, numerology: Numerology) -> Result<(), PatternError> {
        for slots in [self.first, self.slots.len() - self.first] {
            let micros = (numerology.slot() * slots as u64).as_nanos() / 1000;
            if slots > 0 && !PERIODS_US.contains(&micros) {
                return Err(PatternError::Period(slots, numerology.khz(), micros));
            }
        }
        let micros = self.period(numerology).as_nanos() / 1000;
        if self.first < self.slots.len() && 20_000 % micros != 0 {
            return Err(PatternError::TwoPeriods(micros));
        }
        Ok(())
    }

    fn next(&self, from: u64, fits: impl Fn(SlotFormat) -> bool) -> Option<u64> {
        (from..from + self.slots.len() as u64).find(|&slot| fits(self.slot(slot)))
    }
}

/// dl-UL-TransmissionPeriodicity and its v1530 extension in microseconds.
const PERIODS_US: [u64; 10] = [500, 625, 1000, 1250, 2000, 2500, 3000, 4000, 5000, 10_000];

impl FromStr for TddPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let parts = text.split('+').count();
        if parts > 2 {
            return Err(PatternError::TooManyPatterns(parts));
        }
        let (mut slots, mut first) = (Vec::new(), 0);
        for part in text.split('+') {
            parse_pattern(part, &mut slots)?;
            first = if first == 0 { slots.len() } else { first };
        }
        if slots.iter().all(|format| format.downlink == 0) {
            return Err(PatternError::NoDownlink);
        }
        if slots.iter().all(|format| format.uplink == 0) {
            return Err(PatternError::NoUplink);
        }
        Ok(Self { slots: slots.into(), first })
    }
}

impl FromStr for SlotFormat {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let numbers: Result<Vec<u8>, _> = text.split(':').map(str::parse).collect();
        let Ok(&[downlink, guard, uplink]) = numbers.as_deref() else {
            return Err(PatternError::NotSymbols(text.to_owned()));
        };
        let sum = u32::from(downlink) + u32::from(guard) + u32::from(uplink);
        if sum != SYMBOLS_PER_SLOT {
            return Err(PatternError::SymbolSum(text.to_owned(), sum));
        }
        if guard == 0 && downlink > 0 && uplink > 0 {
            return Err(PatternError::NoGuard(text.to_owned()));
        }
        Ok(Self { downlink, guard, uplink })
    }
}

fn parse_pattern(text: &str, slots: &mut Vec<SlotFormat>) -> Result<(), PatternError> {
    let text = text.trim();
    let (letters, special) = match text.split_once(char::is_whitespace) {
        Some((letters, special)) => (letters, Some(special.trim())),
        None => (text, None),
    };
    if letters.is_empty() {
        return Err(PatternError::Empty);
    }
    if let (Some(special), false) = (special, letters.contains('S')) {
        return Err(PatternError::SpecialUnused(letters.to_owned(), special.to_owned()));
    }
    let format = special.map(str::parse).transpose()?;
    for letter in letters.chars() {
        slots.push(match letter {
            'D' => SlotFormat::DOWNLINK,
            'U' => SlotFormat::UPLINK,
            'S' => format.ok_or_else(|| PatternError::SpecialMissing(letters.to_owned()))?,
            other => return Err(PatternError::UnknownSlot(other)),
        });
    }
    Ok(())
}

/// The format in the form in which it is parsed: `10:2:2`.
impl fmt::Display for SlotFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.downlink, self.guard, self.uplink)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(text: &str) -> TddPattern {
        text.parse().unwrap()
    }

    #[test]
    fn slots_have_the_symbols_that_the_letters_say() {
        let pattern = pattern("DDDSU 10:2:2");
        assert_eq!(pattern.slots(), 5);
        assert_eq!(pattern.symbols(), (52, 16));
        assert_eq!(pattern.slot(5), SlotFormat::DOWNLINK);
        assert_eq!(pattern.slot(8), SlotFormat { downlink: 10, guard: 2, uplink: 2 });
        assert_eq!(pattern.slot(9), SlotFormat::UPLINK);
        assert_eq!(pattern.slot(8).to_string(), "10:2:2");
    }

    #[test]
    fn two_patterns_follow_each_other() {
        let both = pattern("DDDSU 10:2:2 + DDSUU 6:4:4");
        assert_eq!(both.slot(3).downlink, 10);
        assert_eq!(both.slot(7).downlink, 6);
        assert_eq!(both.symbols(), (52 + 34, 16 + 32));
        assert_eq!(both.period(Numerology::Khz30), Duration::from_millis(5));
    }

    #[test]
    fn the_next_slot_with_room_is_found_past_the_end() {
        let pattern = pattern("DDDSU 10:2:2");
        assert_eq!(pattern.next_uplink(5, 14), Some(9));
        assert_eq!(pattern.next_uplink(5, 2), Some(8));
        assert_eq!(pattern.next_uplink(9, 14), Some(9));
        assert_eq!(pattern.next_downlink(4, 14), Some(5));
        assert_eq!(super::TddPattern::next_uplink(&"S 10:2:2".parse().unwrap(), 0, 3), None);
    }

    /// TS 38.331 TDD-UL-DL-ConfigCommon, TS 38.213 11.1
    #[test]
    fn periods_are_those_of_the_enumeration() {
        let common = pattern("DDDSU 10:2:2");
        assert_eq!(common.check_period(Numerology::Khz30), Ok(()));
        assert_eq!(common.check_period(Numerology::Khz120), Ok(()));
        assert_eq!(pattern("DDDDDDDSUU 6:4:4").check_period(Numerology::Khz30), Ok(()));
        assert_eq!(pattern("DSU 6:4:4 + DD").check_period(Numerology::Khz15), Ok(()));
        assert_eq!(
            pattern("DDDDDDSU 6:4:4").check_period(Numerology::Khz15),
            Err(PatternError::Period(8, 15, 8000))
        );
        assert_eq!(
            pattern("DSU 6:4:4 + DSUU 6:4:4").check_period(Numerology::Khz15),
            Err(PatternError::TwoPeriods(7000))
        );
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        let refused = [
            ("", "the pattern has no slots; write one such as 'DDDSU 10:2:2'"),
            ("DU +", "the pattern has no slots; write one such as 'DDDSU 10:2:2'"),
            ("DDXU", "'X' is not a slot type: use D (downlink), S (special) and U (uplink)"),
            ("DSU", "'DSU' has a special slot: add its symbols, such as 'DSU 10:2:2'"),
            ("DDU 10:2:2", "'DDU' has no special slot for the symbols '10:2:2'"),
            ("DSU 10:4", "'10:4' is not downlink:guard:uplink symbols, such as 10:2:2"),
            ("DSU 10:2:3", "'10:2:3' has 15 symbols; a slot has 14"),
            ("DSU 10:0:4", "'10:0:4' switches from downlink to uplink without a guard symbol"),
            ("D+U+D", "3 patterns are joined; at most two can be"),
            ("UU", "the pattern has no downlink symbol"),
            ("DDD", "the pattern has no uplink symbol"),
        ];
        for (text, message) in refused {
            assert_eq!(text.parse::<TddPattern>().unwrap_err().to_string(), message);
        }
    }

    proptest! {
        /// Slots are of their letter's kind in every period, and the next slot that fits is the
        /// first.
        #[test]
        fn a_pattern_repeats_its_letters(
            letters in "D[DSU]{0,8}U",
            from in 0u64..100,
            symbols in 1u8..=14,
        ) {
            let special = if letters.contains('S') { " 6:4:4" } else { "" };
            let parsed = pattern(&format!("{letters}{special}"));
            let slot = |index: u64| match letters.as_bytes()[(index % letters.len() as u64) as usize] {
                b'D' => (14, 0),
                b'U' => (0, 14),
                _ => (6, 4),
            };
            for index in 0..40 {
                let format = parsed.slot(index);
                prop_assert_eq!((format.downlink, format.uplink), slot(index));
            }
            let first = |fits: &dyn Fn(u64) -> bool| (from..from + 20).find(|&index| fits(index));
            let downlink = first(&|index| slot(index).0 >= symbols);
            prop_assert_eq!(parsed.next_downlink(from, symbols), downlink);
            let uplink = first(&|index| slot(index).1 >= symbols);
            prop_assert_eq!(parsed.next_uplink(from, symbols), uplink);
        }
    }
}
