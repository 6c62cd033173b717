//! Path loss over distance.

use crate::decibel::db;

/// Speed of light in m/s as used by TR 38.901 7.4.1.
pub(super) const LIGHT_MPS: f64 = 3.0e8;

/// Mean loss between base station and UE as a function of their distance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PathLoss {
    /// Urban macro, in line of sight (TR 38.901 Table 7.4.1-1, UMa LOS).
    UrbanMacroLos,
    /// Urban macro, not in line of sight (UMa NLOS).
    UrbanMacroNlos,
    /// Urban micro street canyon, in line of sight (UMi LOS).
    UrbanMicroLos,
    /// Urban micro street canyon, not in line of sight (UMi NLOS).
    UrbanMicroNlos,
    /// Indoor office, in line of sight (InH LOS).
    IndoorOfficeLos,
    /// Indoor office, not in line of sight (InH NLOS).
    IndoorOfficeNlos,
    /// `reference_db + 10 exponent log10(d / 1 m)`, independent of the carrier.
    Exponent {
        /// Loss at 1 m, in dB.
        reference_db: f64,
        /// Exponent: 2 in free space, 3 to 4 in towns.
        exponent: f64,
    },
}

/// Heights of the antennas above the ground.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Heights {
    /// Height of the base station's antenna in m; above 1 m for the urban models (25 m in UMa, 10 m
    /// in UMi, 3 m in InH).
    pub base_station_m: f64,
    /// Height of the UE's antenna in m; above 1 m and below 13 m for the urban models (1.5 m on
    /// foot).
    pub ue_m: f64,
}

impl PathLoss {
    /// Loss in dB at a ground distance of `distance_m`. Below the model's shortest distance (10 m
    /// outdoors, 1 m indoors and for the exponent) it is the loss at that distance; above its
    /// longest (5 km, 150 m indoors) the formula is extrapolated.
    pub fn loss_db(self, distance_m: f64, carrier_hz: f64, heights: Heights) -> f64 {
        let shortest = match self {
            Self::UrbanMacroLos
            | Self::UrbanMacroNlos
            | Self::UrbanMicroLos
            | Self::UrbanMicroNlos => 10.0,
            Self::IndoorOfficeLos | Self::IndoorOfficeNlos | Self::Exponent { .. } => 1.0,
        };
        let flat = distance_m.max(shortest);
        let height = heights.base_station_m - heights.ue_m;
        let d = db(libm::sqrt(flat * flat + height * height)) / 10.0;
        let f = db(carrier_hz / 1e9) / 10.0;
        let geometry = Geometry { flat, height, d, f, carrier_hz, heights };
        // TR 38.901 Table 7.4.1-1
        match self {
            Self::UrbanMacroLos => geometry.two_slopes(28.0, 22.0, 9.0),
            Self::UrbanMacroNlos => {
                let nlos = 13.54 + 39.08 * d + 20.0 * f - 0.6 * (heights.ue_m - 1.5);
                nlos.max(geometry.two_slopes(28.0, 22.0, 9.0))
            }
            Self::UrbanMicroLos => geometry.two_slopes(32.4, 21.0, 9.5),
            Self::UrbanMicroNlos => {
                let nlos = 22.4 + 35.3 * d + 21.3 * f - 0.3 * (heights.ue_m - 1.5);
                nlos.max(geometry.two_slopes(32.4, 21.0, 9.5))
            }
            Self::IndoorOfficeLos => 32.4 + 17.3 * d + 20.0 * f,
            Self::IndoorOfficeNlos => (17.3 + 38.3 * d + 24.9 * f).max(32.4 + 17.3 * d + 20.0 * f),
            Self::Exponent { reference_db, exponent } => reference_db + 10.0 * exponent * d,
        }
    }
}

/// Distances in m; `d` and `f` are the decimal logarithms of the 3D distance in m and of the
/// carrier frequency in GHz.
struct Geometry {
    flat: f64,
    height: f64,
    d: f64,
    f: f64,
    carrier_hz: f64,
    heights: Heights,
}

impl Geometry {
    /// Line of sight outdoors: a second slope of 40 dB per decade beyond the breakpoint.
    fn two_slopes(&self, constant: f64, slope: f64, breakpoint_factor: f64) -> f64 {
        // Note 1 of Table 7.4.1-1: effective heights, 1 m of environment below a UE under 13 m.
        let effective = |height: f64| height - 1.0;
        let breakpoint = 4.0
            * effective(self.heights.base_station_m)
            * effective(self.heights.ue_m)
            * self.carrier_hz
            / LIGHT_MPS;
        if self.flat <= breakpoint {
            return constant + slope * self.d + 20.0 * self.f;
        }
        let bend = breakpoint * breakpoint + self.height * self.height;
        constant + 40.0 * self.d + 20.0 * self.f - breakpoint_factor * db(bend) / 10.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACRO: Heights = Heights { base_station_m: 25.0, ue_m: 1.5 };
    const MICRO: Heights = Heights { base_station_m: 10.0, ue_m: 1.5 };
    const OFFICE: Heights = Heights { base_station_m: 3.0, ue_m: 1.0 };

    #[test]
    fn tr_38_901_table_7_4_1_1_by_hand() {
        let near = |value: f64, expected: f64| assert!((value - expected).abs() < 2e-3, "{value}");
        // d3D = 102.7241 m: 28 + 22 × 2.01167 + 20 × 0.54407.
        near(PathLoss::UrbanMacroLos.loss_db(100.0, 3.5e9, MACRO), 83.138);
        // 13.54 + 39.08 × 2.01167 + 10.881.
        near(PathLoss::UrbanMacroNlos.loss_db(100.0, 3.5e9, MACRO), 103.038);
        // Breakpoint 560 m: 28 + 40 × 3.00012 + 10.881 - 9 log10(560² + 23.5²).
        near(PathLoss::UrbanMacroLos.loss_db(1000.0, 3.5e9, MACRO), 109.410);
        // d3D = 100.3606 m: 32.4 + 21 × 2.00156 + 10.881.
        near(PathLoss::UrbanMicroLos.loss_db(100.0, 3.5e9, MICRO), 85.314);
        // d3D = 20.0998 m: 32.4 + 17.3 × 1.30319 + 28.943.
        near(PathLoss::IndoorOfficeLos.loss_db(20.0, 28.0e9, OFFICE), 83.888);
        let plain = PathLoss::Exponent { reference_db: 40.0, exponent: 3.0 };
        near(plain.loss_db(100.0, 2e9, Heights { base_station_m: 2.0, ue_m: 2.0 }), 100.0);
    }

    #[test]
    fn loss_grows_with_distance_and_is_continuous_at_the_breakpoint() {
        for (model, heights) in [
            (PathLoss::UrbanMacroLos, MACRO),
            (PathLoss::UrbanMacroNlos, MACRO),
            (PathLoss::UrbanMicroLos, MICRO),
            (PathLoss::UrbanMicroNlos, MICRO),
            (PathLoss::IndoorOfficeLos, OFFICE),
            (PathLoss::IndoorOfficeNlos, OFFICE),
        ] {
            let at = |metres: i32| model.loss_db(f64::from(metres), 3.5e9, heights);
            for metres in 10..5_000 {
                let step = at(metres + 1) - at(metres);
                assert!(step > 0.0 && step < 2.0, "{model:?} at {metres} m: {step} dB");
            }
        }
    }
}
