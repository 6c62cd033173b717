//! Log-normal shadowing, correlated over the distance travelled.

use airpath_base::Stream;

/// Slow variation around the mean path loss.
///
/// TR 38.901 Tables 7.4.1-1 and 7.5-6 (standard deviation, correlation distance): UMa LOS 4 dB,
/// 37 m; UMa NLOS 6 dB, 50 m; UMi LOS 4 dB, 10 m; UMi NLOS 7.82 dB, 13 m; InH LOS 3 dB, 10 m;
/// InH NLOS 8.03 dB, 6 m.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ShadowingConfig {
    /// Standard deviation in dB.
    pub deviation_db: f64,
    /// Distance in m, above 0, over which the autocorrelation falls to 1/e.
    pub correlation_m: f64,
}

/// Shadowing in dB: Gaussian, with autocorrelation `exp(-Δx / d_corr)` (TR 38.901 7.4.4; Gudmundson
/// 1991).
///
/// The process has nodes on a fixed grid of the distance travelled, drawn one after another, and is
/// linear between them: its value at a distance does not depend on where it was evaluated before. A
/// UE that turns back does not meet the same shadows again.
#[derive(Clone, Debug)]
pub(super) struct Shadowing {
    deviation_db: f64,
    spacing_m: f64,
    stream: Stream,
    /// Number of the node before the current distance.
    node: u64,
    /// Values at `node` and at the next one; standard normal.
    before: f64,
    after: f64,
}

/// Nodes per correlation distance: interpolation loses 1.2 % of the variance on average.
const NODES: f64 = 20.0;

impl Shadowing {
    pub(super) fn new(config: ShadowingConfig, mut stream: Stream) -> Self {
        let before = normal(&mut stream);
        let mut new = Self {
            deviation_db: config.deviation_db,
            spacing_m: config.correlation_m / NODES,
            stream,
            node: 0,
            before,
            after: before,
        };
        new.draw();
        new
    }

    /// Shadowing in dB after `travelled_m`, which must not decrease.
    pub(super) fn at_db(&mut self, travelled_m: f64) -> f64 {
        let place = travelled_m / self.spacing_m;
        // A float-to-int cast rounds down here and saturates.
        let wanted = place as u64;
        while self.node < wanted {
            self.before = self.after;
            self.draw();
            self.node += 1;
        }
        let part = place - wanted as f64;
        self.deviation_db * (self.before + part * (self.after - self.before))
    }

    /// The node after the next: first-order autoregression.
    fn draw(&mut self) {
        let correlation = libm::exp(-1.0 / NODES);
        let rest = libm::sqrt(1.0 - correlation * correlation);
        self.after = correlation * self.after + rest * normal(&mut self.stream);
    }
}

/// A standard normal number: Box-Muller; one of the pair is used.
fn normal(stream: &mut Stream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - stream.unit()));
    radius * libm::cos(2.0 * core::f64::consts::PI * stream.unit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn autocorrelation_is_exponential_in_distance() {
        let config = ShadowingConfig { deviation_db: 4.0, correlation_m: 37.0 };
        let mut shadowing = Shadowing::new(config, Stream::new(1, "shadow"));
        // 400,000 samples, 3.7 m apart: 40,000 correlation distances.
        let samples: Vec<f64> =
            (0..400_000).map(|index| shadowing.at_db(f64::from(index) * 3.7)).collect();
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        assert!(mean.abs() < 0.1, "mean {mean}");
        for lag in [0, 5, 10, 20] {
            let pairs = samples.iter().zip(&samples[lag..]);
            let count = (samples.len() - lag) as f64;
            let correlation = pairs.map(|(a, b)| a * b).sum::<f64>() / count / 16.0;
            let expected = (-(lag as f64) * 3.7 / 37.0).exp();
            assert!((correlation - expected).abs() < 0.03, "lag {lag}: {correlation}");
        }
    }
}
