//! LTE TDD: the direction of each subframe, and the timing of HARQ feedback and grants.

/// An uplink-downlink configuration, 0 to 6 (TS 36.211 table 4.2-2).
///
/// ```
/// use airpath_radio::lte::tdd::{Configuration, Subframe};
///
/// let configuration = Configuration::new(1).expect("1 is one of the seven");
/// assert_eq!(configuration.subframe(7), Subframe::Uplink);
/// assert_eq!(configuration.feedback_delay(0), Some(7));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Configuration(u8);

/// What a subframe is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subframe {
    /// Downlink only.
    Downlink,
    /// DwPTS, guard period, UpPTS: see [`special_symbols`].
    Special,
    /// Uplink only.
    Uplink,
}

/// Symbols of a special subframe with normal cyclic prefix; their sum is 14.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpecialSymbols {
    /// DwPTS.
    pub downlink: u8,
    /// Guard period.
    pub guard: u8,
    /// UpPTS. It carries no PUSCH unless it is 6 symbols long.
    pub uplink: u8,
}

impl Configuration {
    /// Configuration `number`, 0 to 6.
    pub const fn new(number: u8) -> Option<Self> {
        if number <= 6 { Some(Self(number)) } else { None }
    }

    /// The configuration's number in the specification.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The direction of `subframe`, counted from the start of any frame.
    pub fn subframe(self, subframe: u64) -> Subframe {
        match DIRECTIONS[usize::from(self.0)][(subframe % 10) as usize] {
            b'D' => Subframe::Downlink,
            b'S' => Subframe::Special,
            _ => Subframe::Uplink,
        }
    }

    /// K: the downlink subframes n - k whose feedback is sent in uplink subframe `subframe` (n), in
    /// the order of the table; empty if there is none.
    pub fn feedback_set(self, subframe: u64) -> &'static [u8] {
        FEEDBACK[usize::from(self.0)][(subframe % 10) as usize]
    }

    /// Subframes from a transport block in downlink or special subframe `subframe` to its HARQ
    /// feedback; `None` in an uplink subframe.
    pub fn feedback_delay(self, subframe: u64) -> Option<u32> {
        // K has delays of up to 13 subframes.
        (4..=13).find(|&delay| {
            let set = self.feedback_set(subframe + u64::from(delay));
            set.iter().any(|&k| u32::from(k) == delay)
        })
    }

    /// k: subframes from a grant, or a negative PHICH, in `subframe` to its PUSCH; empty if none
    /// can be sent. Configuration 0 has more uplink than downlink subframes: its grants select one
    /// or both of two delays with the uplink index.
    pub fn grant_delays(self, subframe: u64) -> &'static [u8] {
        GRANT[usize::from(self.0)][(subframe % 10) as usize]
    }

    /// k_PHICH: subframes from a PUSCH in uplink subframe `subframe` to its PHICH; `None` if there
    /// is no PUSCH.
    pub fn phich_delay(self, subframe: u64) -> Option<u32> {
        match PHICH[usize::from(self.0)][(subframe % 10) as usize] {
            0 => None,
            delay => Some(u32::from(delay)),
        }
    }

    /// Downlink HARQ processes (TS 36.213 table 7-1).
    pub fn downlink_harq_processes(self) -> u32 {
        [4, 7, 10, 9, 12, 15, 6][usize::from(self.0)]
    }

    /// Uplink HARQ processes without subframe bundling (TS 36.213 table 8-1).
    pub fn uplink_harq_processes(self) -> u32 {
        [7, 4, 2, 3, 2, 1, 6][usize::from(self.0)]
    }
}

/// Symbols of special subframe configuration `number`, 0 to 10, with normal cyclic prefix in both
/// directions (TS 36.211 table 4.2-1).
pub fn special_symbols(number: u8) -> Option<SpecialSymbols> {
    let &(downlink, uplink) = SPECIAL.get(usize::from(number))?;
    Some(SpecialSymbols { downlink, guard: 14 - downlink - uplink, uplink })
}

/// N_PRB for looking up a DwPTS transport block when `allocated` blocks are granted in special
/// subframe configuration `number` (normal cyclic prefix); `None` if DwPTS carries no PDSCH.
// TS 36.213 7.1.7; 7.1: no PDSCH in DwPTS of configurations 0 and 5
pub fn special_resource_blocks(number: u8, allocated: u32) -> Option<u32> {
    match number {
        0 | 5 => None,
        9 | 10 => Some((allocated * 3 / 8).max(1)),
        1..=8 => Some((allocated * 3 / 4).max(1)),
        _ => None,
    }
}

// TS 36.211 table 4.2-2
const DIRECTIONS: [&[u8; 10]; 7] = [
    b"DSUUUDSUUU",
    b"DSUUDDSUUD",
    b"DSUDDDSUDD",
    b"DSUUUDDDDD",
    b"DSUUDDDDDD",
    b"DSUDDDDDDD",
    b"DSUUUDSUUD",
];

// TS 36.211 table 4.2-1, in symbols of 2192 Ts: DwPTS, UpPTS
const SPECIAL: [(u8, u8); 11] =
    [(3, 1), (9, 1), (10, 1), (11, 1), (12, 1), (3, 2), (9, 2), (10, 2), (11, 2), (6, 2), (6, 6)];

// TS 36.213 table 10.1.3.1-1: downlink association set by uplink subframe
#[rustfmt::skip]
const FEEDBACK: [[&[u8]; 10]; 7] = [
    [&[], &[], &[6], &[], &[4], &[], &[], &[6], &[], &[4]],
    [&[], &[], &[7, 6], &[4], &[], &[], &[], &[7, 6], &[4], &[]],
    [&[], &[], &[8, 7, 4, 6], &[], &[], &[], &[], &[8, 7, 4, 6], &[], &[]],
    [&[], &[], &[7, 6, 11], &[6, 5], &[5, 4], &[], &[], &[], &[], &[]],
    [&[], &[], &[12, 8, 7, 11], &[6, 5, 4, 7], &[], &[], &[], &[], &[], &[]],
    [&[], &[], &[13, 12, 9, 8, 7, 5, 4, 11, 6], &[], &[], &[], &[], &[], &[], &[]],
    [&[], &[], &[7], &[7], &[5], &[], &[], &[7], &[7], &[]],
];

// TS 36.213 table 8-2; 8.0: in configuration 0 the uplink index can select 7 instead, or in
// addition
#[rustfmt::skip]
const GRANT: [[&[u8]; 10]; 7] = [
    [&[4, 7], &[6, 7], &[], &[], &[], &[4, 7], &[6, 7], &[], &[], &[]],
    [&[], &[6], &[], &[], &[4], &[], &[6], &[], &[], &[4]],
    [&[], &[], &[], &[4], &[], &[], &[], &[], &[4], &[]],
    [&[4], &[], &[], &[], &[], &[], &[], &[], &[4], &[4]],
    [&[], &[], &[], &[], &[], &[], &[], &[], &[4], &[4]],
    [&[], &[], &[], &[], &[], &[], &[], &[], &[4], &[]],
    [&[7], &[7], &[], &[], &[], &[7], &[7], &[], &[], &[5]],
];

// TS 36.213 table 9.1.2-1, 0 if there is no PUSCH
const PHICH: [[u8; 10]; 7] = [
    [0, 0, 4, 7, 6, 0, 0, 4, 7, 6],
    [0, 0, 4, 6, 0, 0, 0, 4, 6, 0],
    [0, 0, 6, 0, 0, 0, 0, 6, 0, 0],
    [0, 0, 6, 6, 6, 0, 0, 0, 0, 0],
    [0, 0, 6, 6, 0, 0, 0, 0, 0, 0],
    [0, 0, 6, 0, 0, 0, 0, 0, 0, 0],
    [0, 0, 4, 6, 6, 0, 0, 4, 7, 0],
];

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = Configuration> {
        (0..7).map(|number| Configuration::new(number).unwrap())
    }

    fn subframes(configuration: Configuration, kind: Subframe) -> Vec<u64> {
        (0..10).filter(|&n| configuration.subframe(n) == kind).collect()
    }

    #[test]
    fn there_are_seven_configurations() {
        assert_eq!(Configuration::new(7), None);
        let uplink = all().map(|c| subframes(c, Subframe::Uplink).len()).collect::<Vec<_>>();
        // TS 36.211 table 4.2-2
        assert_eq!(uplink, [6, 4, 2, 3, 2, 1, 5]);
    }

    /// TS 36.211 4.2: subframes 0 and 5 are downlink, 2 is uplink, and every change from downlink
    /// to uplink has a special subframe in between.
    #[test]
    fn every_turn_to_uplink_goes_through_a_special_subframe() {
        for configuration in all() {
            assert_eq!(configuration.subframe(0), Subframe::Downlink);
            assert_eq!(configuration.subframe(5), Subframe::Downlink);
            assert_eq!(configuration.subframe(1), Subframe::Special);
            assert_eq!(configuration.subframe(2), Subframe::Uplink);
            for n in 0..10 {
                if configuration.subframe(n) == Subframe::Downlink {
                    assert_ne!(configuration.subframe(n + 1), Subframe::Uplink);
                }
            }
        }
    }

    /// TS 36.213 10.1.3.1: each downlink subframe is acknowledged once, in an uplink subframe, and
    /// at least 4 subframes later.
    #[test]
    fn every_downlink_subframe_is_acknowledged_exactly_once() {
        for configuration in all() {
            let mut acknowledged = [0; 10];
            for n in 0..10 {
                for &k in configuration.feedback_set(n) {
                    assert_eq!(configuration.subframe(n), Subframe::Uplink);
                    assert!(k >= 4);
                    acknowledged[(20 + n as usize - usize::from(k)) % 10] += 1;
                }
            }
            for n in 0..10 {
                let is_downlink = configuration.subframe(n) != Subframe::Uplink;
                assert_eq!(acknowledged[n as usize], i32::from(is_downlink), "{configuration:?}");
                assert_eq!(configuration.feedback_delay(n).is_some(), is_downlink);
            }
        }
    }

    /// TS 36.213 8.0, 9.1.2: grants lead to uplink subframes, and reach all of them; the PHICH of
    /// each is in a downlink or special subframe from which the same subframe is granted again.
    #[test]
    fn grants_reach_every_uplink_subframe_and_phich_returns() {
        for configuration in all() {
            let mut reached = [false; 10];
            for n in 0..10 {
                for &k in configuration.grant_delays(n) {
                    assert_ne!(configuration.subframe(n), Subframe::Uplink);
                    let to = n + u64::from(k);
                    assert_eq!(configuration.subframe(to), Subframe::Uplink);
                    reached[(to % 10) as usize] = true;
                }
            }
            for n in 0..10 {
                let is_uplink = configuration.subframe(n) == Subframe::Uplink;
                assert_eq!(reached[n as usize], is_uplink, "{configuration:?} {n}");
                assert_eq!(configuration.phich_delay(n).is_some(), is_uplink);
                if let Some(delay) = configuration.phich_delay(n) {
                    let phich = n + u64::from(delay);
                    assert!(!configuration.grant_delays(phich).is_empty(), "{configuration:?} {n}");
                }
            }
        }
    }

    /// TS 36.213 8: the round trip of a synchronous process (grant to PUSCH to PHICH) takes a whole
    /// number of uplink subframes, which is the number of processes in table 8-1. In configurations
    /// 0 and 6 a process moves through the subframes, so they are not of this form.
    #[test]
    fn uplink_round_trips_give_the_number_of_processes() {
        for number in [1, 2, 3, 4, 5] {
            let configuration = Configuration::new(number).unwrap();
            for n in subframes(configuration, Subframe::Uplink) {
                let phich = n + u64::from(configuration.phich_delay(n).unwrap());
                let again = phich + u64::from(configuration.grant_delays(phich)[0]);
                let uplink =
                    (n..again).filter(|&n| configuration.subframe(n) == Subframe::Uplink).count();
                assert_eq!(uplink as u32, configuration.uplink_harq_processes());
            }
        }
    }

    /// TS 36.213 table 7-1: there are as many downlink processes as subframes can be sent before
    /// the first one's retransmission, 4 subframes after its feedback at the earliest.
    #[test]
    fn downlink_processes_cover_the_longest_round_trip() {
        for configuration in all() {
            let longest = (0..10)
                .filter_map(|n| {
                    let again = n + u64::from(configuration.feedback_delay(n)?) + 4;
                    let sent =
                        (n..again).filter(|&n| configuration.subframe(n) != Subframe::Uplink);
                    Some(sent.count() as u32)
                })
                .max();
            assert_eq!(longest, Some(configuration.downlink_harq_processes()), "{configuration:?}");
        }
    }

    #[test]
    fn special_subframes_of_table_4_2_1() {
        let symbols = |number| {
            special_symbols(number).map(|special| (special.downlink, special.guard, special.uplink))
        };
        // DwPTS 6592, 24144, 13168 Ts; UpPTS 2192, 4384 Ts
        assert_eq!(symbols(0), Some((3, 10, 1)));
        assert_eq!(symbols(7), Some((10, 2, 2)));
        assert_eq!(symbols(8), Some((11, 1, 2)));
        assert_eq!(symbols(9), Some((6, 6, 2)));
        assert_eq!(symbols(11), None);
    }

    #[test]
    fn dwpts_counts_three_quarters_of_its_blocks() {
        assert_eq!(special_resource_blocks(7, 100), Some(75));
        assert_eq!(special_resource_blocks(9, 100), Some(37));
        assert_eq!(special_resource_blocks(7, 1), Some(1));
        assert_eq!(special_resource_blocks(5, 100), None);
    }
}
