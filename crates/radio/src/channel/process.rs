//! A seeded channel: path loss, shadowing and fading of a UE on a straight line.

use airpath_base::{Duration, Instant, Stream};

use super::fading::Fading;
use super::path_loss::LIGHT_MPS;
use super::shadowing::Shadowing;
use super::{FadingConfig, Heights, PathLoss, ShadowingConfig};
use crate::decibel::db;

/// Configuration of a seeded channel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProcessConfig {
    /// Carrier frequency in Hz.
    pub carrier_hz: f64,
    /// Mean loss over distance.
    pub path_loss: PathLoss,
    /// Heights of the antennas.
    pub heights: Heights,
    /// Transmit power, gains, noise and interference.
    pub budget: LinkBudget,
    /// Position of the UE over time.
    pub movement: Movement,
    /// Slow variation; `None`: no shadowing.
    pub shadowing: Option<ShadowingConfig>,
    /// Fast variation; `None`: no fading.
    pub fading: Option<FadingConfig>,
    /// The channel is constant for this long; 1 ns if zero. 1 ms or a slot is usual: a shorter step
    /// takes more computing time, and one longer than a tenth of c / (speed × carrier) misses
    /// fades.
    pub step: Duration,
    /// Upper bound in dB due to distortion in the transmitter; `None`: no bound.
    pub sinr_ceiling_db: Option<f64>,
}

/// Powers within one bandwidth.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkBudget {
    /// Transmit power in dBm.
    pub transmit_dbm: f64,
    /// Gains of both antennas less losses in cables and bodies, in dB.
    pub gain_db: f64,
    /// Noise at the receiver in dBm; see [`LinkBudget::thermal_noise_dbm`].
    pub noise_dbm: f64,
    /// Interference and noise relative to noise alone, in dB; 0: no interference.
    pub interference_db: f64,
}

impl LinkBudget {
    /// Thermal noise in dBm at 290 K, -174 dBm/Hz, plus the noise figure of the receiver.
    pub fn thermal_noise_dbm(bandwidth_hz: f64, noise_figure_db: f64) -> f64 {
        -174.0 + db(bandwidth_hz) + noise_figure_db
    }
}

/// A straight road past the base station, and a UE on it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Movement {
    /// Ground distance of the base station from the road in m.
    pub beside_m: f64,
    /// Position of the UE on the road at the start, in m from the point nearest to the base
    /// station.
    pub start_m: f64,
    /// Speed in m/s; negative: towards smaller positions, without turning.
    pub speed_mps: f64,
    /// Position at which the UE turns and drives back to its start, repeatedly, in m; `None`:
    /// never.
    pub turn_m: Option<f64>,
}

impl Movement {
    /// Ground distance from the base station at `now`, in m.
    pub fn distance_m(&self, now: Instant) -> f64 {
        let place = match self.turn_m {
            None => self.start_m + self.speed_mps * now.as_secs_f64(),
            Some(turn_m) => {
                let length = turn_m - self.start_m;
                let there_and_back = 2.0 * length.abs();
                let within = if there_and_back > 0.0 {
                    libm::fmod(self.travelled_m(now), there_and_back)
                } else {
                    0.0
                };
                let away = within.min(there_and_back - within);
                self.start_m + libm::copysign(away, length)
            }
        };
        libm::sqrt(place * place + self.beside_m * self.beside_m)
    }

    /// Distance travelled until `now`, in m.
    pub fn travelled_m(&self, now: Instant) -> f64 {
        self.speed_mps.abs() * now.as_secs_f64()
    }
}

/// The channel of one UE as a random process.
#[derive(Clone, Debug)]
pub struct Process {
    config: ProcessConfig,
    shadowing: Option<Shadowing>,
    fading: Option<Fading>,
    /// The step evaluated last, and the result.
    last: Option<(u64, f64)>,
}

impl Process {
    /// A process that draws from `stream`.
    pub fn new(config: &ProcessConfig, mut stream: Stream) -> Self {
        // Fading draws first, because it draws a fixed number; shadowing draws as the UE moves.
        let fading = config.fading.map(|fading| {
            let doppler_hz = fading.speed_mps.abs() * config.carrier_hz / LIGHT_MPS;
            Fading::new(fading, doppler_hz, &mut stream)
        });
        let shadowing = config.shadowing.map(|shadowing| Shadowing::new(shadowing, stream));
        Self { config: *config, shadowing, fading, last: None }
    }

    /// SINR in dB at `now`, which must not decrease: the value at the start of its step.
    pub fn sinr_db(&mut self, now: Instant) -> f64 {
        let step = self.config.step.as_nanos().max(1);
        let number = now.as_nanos() / step;
        match self.last {
            Some((last, sinr_db)) if last == number => sinr_db,
            _ => {
                let sinr_db = self.evaluate(Instant::from_nanos(number * step));
                self.last = Some((number, sinr_db));
                sinr_db
            }
        }
    }

    fn evaluate(&mut self, at: Instant) -> f64 {
        let ProcessConfig { carrier_hz, path_loss, heights, budget, movement, .. } = self.config;
        let loss_db = path_loss.loss_db(movement.distance_m(at), carrier_hz, heights);
        let travelled_m = movement.travelled_m(at);
        let shadow_db = self.shadowing.as_mut().map_or(0.0, |shadow| shadow.at_db(travelled_m));
        let fading_db = self.fading.as_ref().map_or(0.0, |fading| db(fading.power(at)));
        let sinr_db = budget.transmit_dbm + budget.gain_db - loss_db - shadow_db + fading_db
            - budget.noise_dbm
            - budget.interference_db;
        self.config.sinr_ceiling_db.map_or(sinr_db, |ceiling| sinr_db.min(ceiling))
    }
}
