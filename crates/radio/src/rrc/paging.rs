//! Paging occasions: when an idle UE listens (TS 36.304 7.1, TS 38.304 7.1, TS 25.304 8.3).
//!
//! A downlink packet waits for the next one: on average half a paging cycle.

use airpath_base::Duration;

use crate::mac::Occasions;

const FRAME: Duration = Duration::from_millis(10);

/// Paging in an NR cell, for one UE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NrPaging {
    /// T, the paging cycle in radio frames: 32, 64, 128 or 256.
    pub cycle: u32,
    /// T/N, from nAndPagingFrameOffset: 1, 2, 4, 8 or 16 frames from one paging frame to the next.
    pub frames_between: u32,
    /// PF_offset in frames, below `frames_between`.
    pub frame_offset: u32,
    /// Offsets from the beginning of the paging frame to each of its Ns occasions: Ns is 1, 2 or 4.
    /// They follow from pagingSearchSpace and firstPDCCH-MonitoringOccasionOfPO.
    pub occasions: PagingOffsets,
    /// 5G-S-TMSI modulo 1024.
    pub ue_id: u32,
}

/// Offsets of the occasions in a paging frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PagingOffsets {
    /// Ns = 1.
    One(Duration),
    /// Ns = 2; with search space 0 they are 5 ms apart.
    Two([Duration; 2]),
    /// Ns = 4.
    Four([Duration; 4]),
}

impl NrPaging {
    /// The beginnings of this UE's paging occasions.
    pub fn occasions(&self) -> Occasions {
        let offsets: &[Duration] = match &self.occasions {
            PagingOffsets::One(offset) => core::slice::from_ref(offset),
            PagingOffsets::Two(offsets) => offsets,
            PagingOffsets::Four(offsets) => offsets,
        };
        let frames = self.cycle / self.frames_between;
        // TS 38.304 7.1: (SFN + PF_offset) mod T = (T div N) × (UE_ID mod N)
        let frame = self.frames_between * (self.ue_id % frames) + self.cycle - self.frame_offset;
        // i_s = floor(UE_ID / N) mod Ns
        let index = (self.ue_id / frames) as usize % offsets.len();
        in_frames(self.cycle, frame, offsets[index])
    }
}

/// Paging in an LTE cell, for one UE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LtePaging {
    /// T, the paging cycle in radio frames: 32, 64, 128 or 256.
    pub cycle: u32,
    /// nB: paging occasions per cycle.
    pub density: PagingDensity,
    /// Duplex mode, which determines the subframes that carry paging.
    pub duplex: Duplex,
    /// IMSI modulo 1024.
    pub ue_id: u32,
}

/// nB of TS 36.331 PCCH-Config.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PagingDensity {
    /// 4T
    FourT,
    /// 2T
    TwoT,
    /// T: one paging occasion in every radio frame.
    OneT,
    /// T/2
    HalfT,
    /// T/4
    QuarterT,
    /// T/8
    OneEighthT,
    /// T/16
    OneSixteenthT,
    /// T/32
    OneThirtySecondT,
}

/// How uplink and downlink share the carrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duplex {
    /// By frequency.
    Fdd,
    /// By time.
    Tdd,
}

impl LtePaging {
    /// The beginnings of this UE's paging occasions.
    pub fn occasions(&self) -> Occasions {
        // TS 36.304 7.1: N = min(T, nB), Ns = max(1, nB / T)
        let (frames_between, per_frame) = match self.density {
            PagingDensity::FourT => (1, 4),
            PagingDensity::TwoT => (1, 2),
            PagingDensity::OneT => (1, 1),
            PagingDensity::HalfT => (2, 1),
            PagingDensity::QuarterT => (4, 1),
            PagingDensity::OneEighthT => (8, 1),
            PagingDensity::OneSixteenthT => (16, 1),
            PagingDensity::OneThirtySecondT => (32, 1),
        };
        let frames = self.cycle / frames_between;
        // SFN mod T = (T div N) × (UE_ID mod N)
        let frame = frames_between * (self.ue_id % frames);
        // i_s = floor(UE_ID / N) mod Ns; subframes from the tables of TS 36.304 7.2
        let subframes: &[u64] = match (self.duplex, per_frame) {
            (Duplex::Fdd, 1) => &[9],
            (Duplex::Fdd, 2) => &[4, 9],
            (Duplex::Fdd, _) => &[0, 4, 5, 9],
            (Duplex::Tdd, 1) => &[0],
            (Duplex::Tdd, 2) => &[0, 5],
            (Duplex::Tdd, _) => &[0, 1, 5, 6],
        };
        let index = (self.ue_id / frames) as usize % subframes.len();
        in_frames(self.cycle, frame, Duration::from_millis(subframes[index]))
    }
}

/// Paging in a UMTS FDD cell, for one UE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UmtsPaging {
    /// k, 3 to 9: the DRX cycle is 2^k frames.
    pub cycle_coefficient: u32,
    /// IMSI div K, where K is the number of S-CCPCHs that carry a PCH.
    pub imsi_div_k: u64,
}

impl UmtsPaging {
    /// The beginnings of the frames of this UE's paging indicators.
    pub fn occasions(&self) -> Occasions {
        // TS 25.304 8.3: {(IMSI div K) mod (DRX cycle length div PBP)} × PBP + n × DRX cycle
        // length, PBP = 1 for FDD
        let cycle = 1u32 << self.cycle_coefficient;
        let frame = self.imsi_div_k % u64::from(cycle);
        in_frames(cycle, frame as u32, Duration::ZERO)
    }
}

fn in_frames(cycle: u32, frame: u32, within: Duration) -> Occasions {
    Occasions::new(FRAME * u64::from(cycle), FRAME * u64::from(frame % cycle) + within)
}

#[cfg(test)]
mod tests {
    use airpath_base::Instant;
    use proptest::prelude::*;

    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn first(occasions: Occasions) -> u64 {
        occasions.at_or_after(Instant::ZERO).as_nanos() / 1_000_000
    }

    #[test]
    fn lte_worked_example() {
        // T = 64, nB = T/4, UE_ID = 4: N = 16, SFN mod 64 = 4 × 4; Ns = 1, subframe 9.
        let density = PagingDensity::QuarterT;
        let mut paging = LtePaging { cycle: 64, density, duplex: Duplex::Fdd, ue_id: 4 };
        assert_eq!(first(paging.occasions()), 169);
        assert_eq!(paging.occasions().period(), ms(640));
        paging.duplex = Duplex::Tdd;
        assert_eq!(first(paging.occasions()), 160);
    }

    #[test]
    fn lte_several_occasions_in_a_frame() {
        let subframe = |density, duplex, ue_id| {
            first(LtePaging { cycle: 32, density, duplex, ue_id }.occasions())
        };
        // UE_ID = 32 i + 3: frame 3, i_s = i mod Ns.
        let all = |density, duplex| [0, 1, 2, 3].map(|i| subframe(density, duplex, 32 * i + 3));
        assert_eq!(all(PagingDensity::FourT, Duplex::Fdd), [30, 34, 35, 39]);
        assert_eq!(all(PagingDensity::TwoT, Duplex::Fdd), [34, 39, 34, 39]);
        assert_eq!(all(PagingDensity::FourT, Duplex::Tdd), [30, 31, 35, 36]);
        assert_eq!(all(PagingDensity::TwoT, Duplex::Tdd), [30, 35, 30, 35]);
    }

    proptest! {
        #[test]
        fn nr_frames_fulfil_the_formula(
            cycle in prop_oneof![Just(32u32), Just(64), Just(128), Just(256)],
            between in prop_oneof![Just(1u32), Just(2), Just(4), Just(8), Just(16)],
            offset in 0u32..16,
            ue_id in 0u32..1024,
            from in 0u64..20_480,
        ) {
            let (frames, offset) = (cycle / between, offset % between);
            let paging = NrPaging {
                cycle,
                frames_between: between,
                frame_offset: offset,
                occasions: PagingOffsets::Two([ms(0), ms(5)]),
                ue_id,
            };
            let at = paging.occasions().at_or_after(Instant::ZERO + ms(from));
            let at = at.as_nanos() / 1_000_000;
            prop_assert!(at >= from && at < from + u64::from(cycle) * 10);
            let sfn = (at / 10 % 1024) as u32;
            prop_assert_eq!((sfn + offset) % cycle, (cycle / frames) * (ue_id % frames));
            let index = ue_id / frames % 2;
            prop_assert_eq!(at % 10, u64::from(index) * 5);
        }
    }

    #[test]
    fn umts_worked_example() {
        // k = 6: 640 ms; 1000 mod 64 = 40.
        let paging = UmtsPaging { cycle_coefficient: 6, imsi_div_k: 1000 };
        assert_eq!(first(paging.occasions()), 400);
        assert_eq!(paging.occasions().period(), ms(640));
    }

    #[test]
    fn the_mean_wait_is_half_a_cycle() {
        let density = PagingDensity::OneT;
        let paging = LtePaging { cycle: 128, density, duplex: Duplex::Fdd, ue_id: 77 };
        let occasions = paging.occasions();
        let total: u64 = (0..12_800)
            .map(|tenth| {
                let now = Instant::ZERO + Duration::from_micros(100 * tenth);
                (occasions.at_or_after(now) - now).as_nanos()
            })
            .sum();
        // On that grid, half a cycle less half a step.
        assert_eq!(total / 12_800, 640_000_000 - 50_000);
    }
}
