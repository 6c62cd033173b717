//! Fast fading: a sum of sinusoids that can be evaluated at any time.

use core::f64::consts::PI;

use airpath_base::{Instant, Stream};

/// Fading by multipath with isotropic scattering (Clarke), flat over the carrier.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FadingConfig {
    /// Speed of the UE, or of what moves around it, in m/s.
    pub speed_mps: f64,
    /// Independent branches whose powers are averaged: receive antennas, or coherence bandwidths
    /// in the carrier; 0 counts as 1. A wide carrier with several antennas fades little.
    pub branches: u8,
    /// Power of the direct path relative to that of the scattered ones, in dB; `None`: no direct
    /// path (Rayleigh).
    pub rician_k_db: Option<f64>,
}

/// Fading with a mean power of 1.
#[derive(Clone, Debug)]
pub(super) struct Fading {
    branches: Vec<Branch>,
}

/// One complex gain `h(t)`; each sinusoid has a Doppler shift and a phase.
#[derive(Clone, Debug)]
struct Branch {
    scattered: [Sinusoid; SINUSOIDS],
    scattered_amplitude: f64,
    direct: Option<(Sinusoid, f64)>,
}

#[derive(Clone, Copy, Debug)]
struct Sinusoid {
    shift_hz: f64,
    /// Phase in turns.
    phase: f64,
}

/// Enough for the distribution of the power to be close to exponential.
const SINUSOIDS: usize = 12;

impl Fading {
    /// Fading with the largest Doppler shift `doppler_hz`, which is speed × carrier / c.
    pub(super) fn new(config: FadingConfig, doppler_hz: f64, stream: &mut Stream) -> Self {
        let branch = |_| Branch::new(config.rician_k_db, doppler_hz, stream);
        Self { branches: (0..config.branches.max(1)).map(branch).collect() }
    }

    pub(super) fn power(&self, now: Instant) -> f64 {
        let power = |branch: &Branch| {
            let (re, im) = branch.gain(now);
            re * re + im * im
        };
        self.branches.iter().map(power).sum::<f64>() / self.branches.len() as f64
    }
}

impl Branch {
    /// Angles and phases as in Zheng and Xiao, "Simulation models with correct statistical
    /// properties for Rayleigh fading channels" (2003): the ensemble's autocorrelation is
    /// J0(2 π f_d τ) for any number of sinusoids.
    fn new(rician_k_db: Option<f64>, doppler_hz: f64, stream: &mut Stream) -> Self {
        let mut sinusoid =
            |angle: f64| Sinusoid { shift_hz: doppler_hz * libm::cos(angle), phase: stream.unit() };
        let direct = sinusoid(PI / 4.0);
        let scattered = core::array::from_fn(|index| {
            // The random part of the angle: uniform over one of the equal sectors.
            let within = sinusoid(0.0).phase;
            sinusoid(2.0 * PI * (index as f64 + within) / SINUSOIDS as f64)
        });
        let ratio = rician_k_db.map(crate::decibel::ratio);
        let scattered_power = ratio.map_or(1.0, |k| 1.0 / (1.0 + k));
        Self {
            scattered,
            scattered_amplitude: libm::sqrt(scattered_power / SINUSOIDS as f64),
            direct: ratio.map(|k| (direct, libm::sqrt(k / (1.0 + k)))),
        }
    }

    fn gain(&self, now: Instant) -> (f64, f64) {
        let seconds = now.as_secs_f64();
        let (mut re, mut im) = (0.0, 0.0);
        for sinusoid in &self.scattered {
            let (sin, cos) = sinusoid.at(seconds);
            re += cos;
            im += sin;
        }
        re *= self.scattered_amplitude;
        im *= self.scattered_amplitude;
        if let Some((sinusoid, amplitude)) = &self.direct {
            let (sin, cos) = sinusoid.at(seconds);
            re += amplitude * cos;
            im += amplitude * sin;
        }
        (re, im)
    }
}

impl Sinusoid {
    fn at(&self, seconds: f64) -> (f64, f64) {
        // Remove whole turns first, so that the argument stays small.
        let turns = self.shift_hz * seconds + self.phase;
        libm::sincos(2.0 * PI * (turns - libm::floor(turns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_base::Duration;

    const RAYLEIGH: FadingConfig = FadingConfig { speed_mps: 0.0, branches: 1, rician_k_db: None };

    fn ensemble(config: FadingConfig) -> Vec<Fading> {
        let mut stream = Stream::new(1, "fading");
        (0..4_000).map(|_| Fading::new(config, 100.0, &mut stream)).collect()
    }

    #[test]
    fn autocorrelation_is_the_bessel_function_of_clarke() {
        let ensemble = ensemble(RAYLEIGH);
        let start = Instant::ZERO + Duration::from_millis(1_234);
        // The first zero of J0 is at 2.405 / (2 π 100 Hz) = 3.83 ms.
        for lag_us in [0, 1_000, 2_000, 3_828, 6_000, 9_000] {
            let lag = Duration::from_micros(lag_us);
            let (mut re, mut im) = (0.0, 0.0);
            for fading in &ensemble {
                let (a, b) = fading.branches[0].gain(start);
                let (c, d) = fading.branches[0].gain(start + lag);
                re += (a * c + b * d) / ensemble.len() as f64;
                im += (a * d - b * c) / ensemble.len() as f64;
            }
            let expected = libm::j0(2.0 * PI * 100.0 * lag.as_secs_f64());
            assert!((re - expected).abs() < 0.04, "{lag:?}: {re}, {expected}");
            assert!(im.abs() < 0.04, "{lag:?}: as much Doppler up as down, {im}");
        }
    }

    #[test]
    fn rayleigh_power_is_exponential() {
        let powers: Vec<f64> =
            ensemble(RAYLEIGH).iter().map(|fading| fading.power(Instant::ZERO)).collect();
        for level in [0.1, 0.5, 1.0, 2.0] {
            let below = powers.iter().filter(|&&power| power < level).count() as f64;
            let share = below / powers.len() as f64;
            assert!((share - (1.0 - (-level).exp())).abs() < 0.025, "{level}: {share}");
        }
    }

    #[test]
    fn branches_and_a_direct_path_keep_the_mean_and_tame_the_variance() {
        let spread = |config| {
            let powers: Vec<f64> =
                ensemble(config).iter().map(|fading| fading.power(Instant::ZERO)).collect();
            let mean = powers.iter().sum::<f64>() / powers.len() as f64;
            let square = powers.iter().map(|power| power * power).sum::<f64>();
            (mean, square / powers.len() as f64 - mean * mean)
        };
        let (mean, variance) = spread(FadingConfig { branches: 4, ..RAYLEIGH });
        assert!((mean - 1.0).abs() < 0.03 && (variance - 0.25).abs() < 0.03, "{mean} {variance}");
        // Rice: (1 + 2 K) / (1 + K)² with K = 10.
        let (mean, variance) = spread(FadingConfig { rician_k_db: Some(10.0), ..RAYLEIGH });
        assert!((mean - 1.0).abs() < 0.03 && (variance - 0.174).abs() < 0.02, "{mean} {variance}");
    }
}
