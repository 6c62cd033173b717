//! Decides whether a block is decoded, given all its transmissions.

use airpath_base::{Stream, fast_paths};

use crate::adaptation::{BlerModel, combined, energy};

/// When a block is decoded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Decoding {
    /// With given probabilities, whatever the SINR: for comparison with closed forms.
    Fixed {
        /// Probability that the first transmission fails.
        initial: f64,
        /// Probability that a retransmission fails if all transmissions before it have failed.
        retransmission: f64,
    },
    /// By the BLER curve at the SINR that the receiver has accumulated.
    Curve(Combining),
}

/// How the receiver combines the transmissions of a block.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Combining {
    /// It discards failed ones.
    Discard,
    /// It adds identical ones: their SINRs add up.
    Chase,
    /// Each has new coded bits while there are any: their SINRs add up, and the code rate falls
    /// down to the mother code's, below which bits repeat.
    IncrementalRedundancy {
        /// Lowest code rate: 1/3 of LTE's turbo code (TS 36.212 5.1.3.2) and of NR's base graph 1,
        /// 1/5 of base graph 2 (TS 38.212 5.3.2).
        mother_rate: f64,
    },
}

/// The properties of a block that determine how robust it is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Block {
    /// Bits per resource element and layer of the first transmission.
    pub efficiency: f64,
    /// Bits per symbol: 2 for QPSK, 4, 6 or 8 for QAM.
    pub modulation_bits: u8,
    /// Most transmissions of this block, if fewer than the entity's maximum; 0: the entity's.
    pub transmissions: u8,
}

/// A BLER curve that caches its last result: the MCS rarely changes, and the SINR not always.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    model: BlerModel,
    efficiency: f64,
    threshold_db: f64,
    margin_db: f64,
    bler: f64,
}

impl Curve {
    pub(super) fn new(model: BlerModel) -> Self {
        // NaN equals nothing.
        let none = f64::NAN;
        Self { model, efficiency: none, threshold_db: none, margin_db: none, bler: none }
    }

    /// [`BlerModel::bler`]
    #[inline]
    fn bler(&mut self, efficiency: f64, sinr_db: f64) -> f64 {
        if efficiency != self.efficiency || !fast_paths() {
            self.efficiency = efficiency;
            self.threshold_db = self.model.threshold_db(efficiency);
        }
        let margin_db = sinr_db - self.threshold_db;
        if margin_db != self.margin_db || !fast_paths() {
            self.margin_db = margin_db;
            self.bler = self.model.bler_at(margin_db);
        }
        self.bler
    }
}

/// What the receiver has of one block.
///
/// A random number, uniform in [0, 1), is drawn once per block: the block fails as long as its
/// probability of failure, given everything received, is above that number. So a block that fails
/// after n transmissions has also failed after every smaller number, the residual error is that of
/// the curve at the combined SINR, and more SINR never hurts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct SoftBuffer {
    luck: Option<f64>,
    received: f64,
    energy: f64,
    failure: f64,
}

impl Default for SoftBuffer {
    fn default() -> Self {
        Self { luck: None, received: 0.0, energy: 0.0, failure: 1.0 }
    }
}

impl SoftBuffer {
    /// Adds a transmission; returns whether the block is now decoded. Without a channel, which is an
    /// SINR of minus infinity, nothing arrives, also where failures are fixed.
    pub(super) fn receive(
        &mut self,
        decoding: &Decoding,
        curve: &mut Curve,
        block: Block,
        sinr_db: f64,
        stream: &mut Stream,
    ) -> bool {
        if sinr_db == f64::NEG_INFINITY && matches!(decoding, Decoding::Fixed { .. }) {
            return false;
        }
        self.received += 1.0;
        self.failure = match *decoding {
            Decoding::Fixed { initial, .. } if self.received == 1.0 => initial,
            Decoding::Fixed { retransmission, .. } => self.failure * retransmission,
            Decoding::Curve(_) if self.received == 1.0 => curve.bler(block.efficiency, sinr_db),
            Decoding::Curve(Combining::Discard) => {
                self.luck = None;
                curve.bler(block.efficiency, sinr_db)
            }
            Decoding::Curve(combining) => {
                let spread = match combining {
                    Combining::IncrementalRedundancy { mother_rate } => {
                        let rate = block.efficiency / f64::from(block.modulation_bits.max(1));
                        self.received.min(rate / mother_rate).max(1.0)
                    }
                    Combining::Chase | Combining::Discard => 1.0,
                };
                let energy = self.energy + energy(sinr_db);
                let (sinr_db, efficiency) = combined(energy, block.efficiency, spread);
                curve.bler(efficiency, sinr_db)
            }
        };
        let luck = *self.luck.get_or_insert_with(|| stream.unit());
        let decoded = luck >= self.failure;
        if !decoded {
            self.energy += energy(sinr_db);
        }
        decoded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QPSK: Block = Block { efficiency: 1.1758, modulation_bits: 2, transmissions: 0 };

    /// Fractions of blocks that fail after 1, 2, 3, … transmissions at `sinr_db`.
    fn failures(decoding: Decoding, block: Block, sinr_db: f64, times: usize) -> Vec<f64> {
        const BLOCKS: u32 = 100_000;
        let mut stream = Stream::new(1, "harq");
        let mut curve = Curve::new(BlerModel::default());
        let mut failed = vec![0u32; times];
        for _ in 0..BLOCKS {
            let mut soft = SoftBuffer::default();
            for count in &mut failed {
                if soft.receive(&decoding, &mut curve, block, sinr_db, &mut stream) {
                    break;
                }
                *count += 1;
            }
        }
        failed.into_iter().map(|count| f64::from(count) / f64::from(BLOCKS)).collect()
    }

    fn near(shares: &[f64], expected: &[f64]) {
        for (share, expected) in shares.iter().zip(expected) {
            let deviation = (expected * (1.0 - expected) / 1e5).sqrt();
            assert!((share - expected).abs() <= 4.0 * deviation + 1e-12, "{shares:?} {expected}");
        }
    }

    #[test]
    fn fixed_probabilities_multiply() {
        let decoding = Decoding::Fixed { initial: 0.3, retransmission: 0.2 };
        near(&failures(decoding, QPSK, 0.0, 4), &[0.3, 0.06, 0.012, 0.0024]);
    }

    #[test]
    fn nothing_arrives_without_a_channel() {
        let mut curve = Curve::new(BlerModel::default());
        let (mut stream, outage) = (Stream::new(1, "harq"), f64::NEG_INFINITY);
        for decoding in [
            Decoding::Fixed { initial: 0.0, retransmission: 0.0 },
            Decoding::Curve(Combining::Chase),
        ] {
            let mut soft = SoftBuffer::default();
            let mut receive =
                |sinr_db| soft.receive(&decoding, &mut curve, QPSK, sinr_db, &mut stream);
            assert!(!receive(outage) && !receive(outage));
            assert!(receive(30.0), "{decoding:?}");
        }
        // What arrives first after an outage fails as often as a first transmission.
        let fixed = Decoding::Fixed { initial: 1.0, retransmission: 0.0 };
        let mut soft = SoftBuffer::default();
        let mut receive = |sinr_db| soft.receive(&fixed, &mut curve, QPSK, sinr_db, &mut stream);
        assert!(!receive(outage) && !receive(0.0) && receive(0.0));
    }

    #[test]
    fn chase_combining_adds_sinr() {
        // CQI 6 has its 10 % point at 4.3 dB: n transmissions at 0.1 dB are 0.1 + 10 log10(n) dB.
        let model = BlerModel::default();
        let at = |n: f64| model.bler(QPSK.efficiency, 0.1 + 10.0 * n.log10());
        let expected = [at(1.0), at(2.0), at(3.0)];
        assert!(expected[1] > 0.99 && expected[2] < 0.01, "{expected:?}");
        near(&failures(Decoding::Curve(Combining::Chase), QPSK, 0.1, 3), &expected);
        // 4.3 - 3.01 dB: two transmissions fail with a probability of 10 %.
        near(&failures(Decoding::Curve(Combining::Chase), QPSK, 1.29, 2)[1..], &[0.1]);
    }

    #[test]
    fn incremental_redundancy_stops_gaining_at_the_mother_rate() {
        let ir = |mother_rate| Decoding::Curve(Combining::IncrementalRedundancy { mother_rate });
        // Rate 0.588: the second transmission extends the bits to 1.76 times, those of mother rate
        // 1/3.
        let model = BlerModel::default();
        let rate: f64 = 1.1758 / 2.0;
        let (spread, sinr_db) = (rate * 3.0, 1.0);
        let expected = model.bler(1.1758 / spread, sinr_db + 10.0 * (2.0f64 / spread).log10());
        near(&failures(ir(1.0 / 3.0), QPSK, sinr_db, 2)[1..], &[expected]);
        // A block at or below the mother rate is already chase combined.
        let low = Block { efficiency: 0.377, modulation_bits: 2, transmissions: 0 };
        let chase = failures(Decoding::Curve(Combining::Chase), low, -5.4, 2);
        assert_eq!(failures(ir(1.0 / 3.0), low, -5.4, 2), chase);
    }

    #[test]
    fn without_combining_every_transmission_is_the_first() {
        let shares = failures(Decoding::Curve(Combining::Discard), QPSK, 4.3, 3);
        near(&shares, &[0.1, 0.01, 0.001]);
    }
}
