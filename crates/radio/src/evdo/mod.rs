//! EV-DO Rev. A (cdma2000 HRPD, 3GPP2 C.S0024-A): the packets that a DRC requests, and reverse
//! packets.
//!
//! ```
//! use airpath_radio::evdo::FORWARD;
//!
//! let best = FORWARD.last().expect("DRC 14");
//! assert_eq!((best.bits, best.slots, best.kbps()), (5_120, 1, 3_072.0));
//! ```

use airpath_base::Duration;

/// Length of a slot: 5/3 ms; rounding to whole nanoseconds is off by a third of one (0.2 ppm).
pub const SLOT: Duration = Duration::from_nanos(1_666_667);
/// Chips per slot at 1.2288 Mchip/s.
pub const SLOT_CHIPS: u32 = 2_048;
/// Chips per second.
pub const CHIP_RATE: u32 = 1_228_800;
/// Slots from one slot of a forward packet to its next: in between, the terminal reports whether it
/// needs one. Four packets take turns.
pub const FORWARD_INTERLACES: u32 = 4;
/// Slots of a reverse subframe, which carries one subpacket.
pub const SUBFRAME_SLOTS: u32 = 4;
/// Number of reverse packets that take turns.
pub const REVERSE_INTERLACES: u32 = 3;
/// Most subpackets of a reverse packet.
pub const REVERSE_SUBPACKETS: u32 = 4;

/// The format of a forward packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForwardFormat {
    /// Size of the packet in bits.
    pub bits: u32,
    /// Slots that it takes unless it is decoded earlier.
    pub slots: u32,
    /// Bits per modulation symbol: QPSK, 8PSK or 16QAM.
    pub modulation_bits: u8,
}

impl ForwardFormat {
    /// The nominal rate in kb/s, by which the format is known.
    pub fn kbps(self) -> f64 {
        let chips = f64::from(self.slots * SLOT_CHIPS);
        f64::from(self.bits) / chips * f64::from(CHIP_RATE) / 1_000.0
    }
}

/// The formats that DRC 1 to 14 request, by rate (C.S0024-A 10.3.1.3.3.2, Forward Traffic Channel
/// MAC): of two with the same rate the longer packet, which can end earlier, comes second.
pub const FORWARD: [ForwardFormat; 14] = [
    forward(1_024, 16, 2), // DRC 1
    forward(1_024, 8, 2),  // 2
    forward(1_024, 4, 2),  // 3
    forward(1_024, 2, 2),  // 4
    forward(2_048, 4, 2),  // 5
    forward(1_024, 1, 2),  // 6
    forward(2_048, 2, 2),  // 7
    forward(3_072, 2, 3),  // 8
    forward(2_048, 1, 2),  // 9
    forward(4_096, 2, 4),  // 10
    forward(5_120, 2, 4),  // 13
    forward(3_072, 1, 3),  // 11
    forward(4_096, 1, 4),  // 12
    forward(5_120, 1, 4),  // 14
];

const fn forward(bits: u32, slots: u32, modulation_bits: u8) -> ForwardFormat {
    ForwardFormat { bits, slots, modulation_bits }
}

/// Sizes of reverse packets in bits (subtype 2 physical layer).
pub const REVERSE_BITS: [u32; 12] =
    [128, 256, 512, 768, 1_024, 1_536, 2_048, 3_072, 4_096, 6_144, 8_192, 12_288];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adaptation::BlerModel;

    #[test]
    fn forward_rates_are_those_of_the_standard() {
        let rates = FORWARD.map(ForwardFormat::kbps);
        let expected = [
            38.4, 76.8, 153.6, 307.2, 307.2, 614.4, 614.4, 921.6, 1_228.8, 1_228.8, 1_536.0,
            1_843.2, 2_457.6, 3_072.0,
        ];
        for (rate, expected) in rates.into_iter().zip(expected) {
            assert!((rate - expected).abs() < 1e-9, "{rate} {expected}");
        }
    }

    #[test]
    fn reverse_rates_are_those_of_a_test_sets_table() {
        // Agilent 8960 user's guide, R-Data packet size: kb/s after 1 subpacket and after 4
        let kbps = |bits: u32, subpackets: u32| {
            f64::from(bits) / f64::from(subpackets * SUBFRAME_SLOTS * SLOT_CHIPS)
                * f64::from(CHIP_RATE)
                / 1_000.0
        };
        let after_one =
            [19.2, 38.4, 76.8, 115.2, 153.6, 230.4, 307.2, 460.8, 614.4, 921.6, 1_228.8, 1_843.2];
        for (bits, expected) in REVERSE_BITS.into_iter().zip(after_one) {
            assert!((kbps(bits, 1) - expected).abs() < 1e-9);
            assert!((kbps(bits, REVERSE_SUBPACKETS) - expected / 4.0).abs() < 1e-9);
        }
    }

    #[test]
    fn thresholds_of_bits_per_chip_are_those_of_the_inventors() {
        // Bender et al., CDMA/HDR, IEEE Communications Magazine, July 2000, table 1: SNR in dB for
        // 1 % packet error rate
        for (kbps, published) in [
            (38.4, -12.5),
            (76.8, -9.5),
            (153.6, -6.5),
            (307.2, -4.0),
            (614.4, -1.0),
            (921.6, 1.3),
            (1_228.8, 3.0),
            (1_843.2, 7.2),
            (2_457.6, 9.5),
        ] {
            let efficiency = kbps * 1_000.0 / f64::from(CHIP_RATE);
            let found = BlerModel::default().threshold_db(efficiency);
            assert!((found - published).abs() < 1.5, "{kbps}: {found} {published} dB");
        }
    }
}
