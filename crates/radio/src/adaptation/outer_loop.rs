//! Outer loop link adaptation (OLLA).

/// Target and limits of the outer loop.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OuterLoopConfig {
    /// Fraction of initial transmissions that may fail, above 0 and below 1; 0.1 is usual.
    pub target_bler: f64,
    /// How much a NACK lowers the offset, in dB; 0.5 to 1 is usual.
    pub step_db: f64,
    /// Offset at the start, in dB.
    pub initial_db: f64,
    /// Smallest offset, in dB.
    pub lowest_db: f64,
    /// Largest offset, in dB.
    pub highest_db: f64,
}

impl Default for OuterLoopConfig {
    fn default() -> Self {
        Self { target_bler: 0.1, step_db: 0.5, initial_db: 0.0, lowest_db: -15.0, highest_db: 15.0 }
    }
}

/// The offset that keeps the block error rate at its target: it is stable where steps up and down
/// cancel, `(1 - BLER) up = BLER down` (Sampath et al., "On setting reverse link target SIR in a
/// CDMA system", 1997; Blanquez-Casado et al., "eOLLA", 2016).
#[derive(Clone, PartialEq, Debug)]
pub struct OuterLoop {
    config: OuterLoopConfig,
    offset_db: f64,
}

impl OuterLoop {
    /// A loop at its initial offset.
    pub fn new(config: OuterLoopConfig) -> Self {
        let mut new = Self { config, offset_db: 0.0 };
        new.set(config.initial_db);
        new
    }

    /// The offset that is added to the reported SINR, in dB.
    pub fn offset_db(&self) -> f64 {
        self.offset_db
    }

    /// Takes the HARQ feedback of an initial transmission.
    pub fn on_feedback(&mut self, acknowledged: bool) {
        let OuterLoopConfig { target_bler, step_db, .. } = self.config;
        let step =
            if acknowledged { step_db * target_bler / (1.0 - target_bler) } else { -step_db };
        self.set(self.offset_db + step);
    }

    fn set(&mut self, offset_db: f64) {
        // Not `clamp`, which panics if the bounds are reversed.
        self.offset_db = offset_db.min(self.config.highest_db).max(self.config.lowest_db);
    }
}
