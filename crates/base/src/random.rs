//! Named random streams: the same seed and component name give the same numbers, whatever else
//! runs.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sha2::{Digest, Sha256};

/// The private random stream of one component.
///
/// ```
/// use airpath_base::Stream;
/// let mut loss = Stream::new(7, "path.down.0.loss");
/// let first = loss.unit();
/// assert!((0.0..1.0).contains(&first));
/// assert_eq!(Stream::new(7, "path.down.0.loss").unit(), first);
/// assert_ne!(Stream::new(7, "path.up.0.loss").unit(), first);
/// ```
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of `component` in the run with this `seed`.
    pub fn new(seed: u64, component: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(seed.to_le_bytes());
        hash.update(component.as_bytes());
        Self(Xoshiro256PlusPlus::from_seed(hash.finalize().into()))
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number uniform in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns true with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}
