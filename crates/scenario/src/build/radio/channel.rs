//! `[radio.channel]`.

use std::sync::Arc;

use airpath_radio::channel::{
    AtEnd, ChannelConfig, ChannelTrace, FadingConfig, Heights, LinkBudget, Movement, PathLoss,
    ProcessConfig, Quality, ShadowingConfig,
};

use super::cell::bandwidth_hz;
use crate::get::Get;
use crate::read::Fields;
use crate::spec::{ChannelModel, Fading, PathLossModel, TraceEnd};

/// The channel of one direction.
pub(super) fn channel(
    get: &Get<'_>,
    cell: &Fields,
    trace: Option<&Arc<ChannelTrace>>,
) -> ChannelConfig {
    match get.chosen() {
        ChannelModel::Trace => ChannelConfig::Trace {
            trace: trace.cloned().expect("loaded, or a problem"),
            at_end: match get.chosen() {
                TraceEnd::Hold => AtEnd::Hold,
                TraceEnd::Loop => AtEnd::Loop,
            },
        },
        ChannelModel::Process => ChannelConfig::Process(process(get, cell)),
        ChannelModel::Constant => ChannelConfig::Constant(Quality::Sinr(get.real("sinr_db"))),
    }
}

fn process(get: &Get<'_>, cell: &Fields) -> ProcessConfig {
    let metres_per_second = |kmh: f64| kmh / 3.6;
    let speed = metres_per_second(get.real("speed_kmh"));
    let fading = |rician_k_db| FadingConfig {
        speed_mps: get.0.real("fading_kmh").map_or(speed, metres_per_second),
        // The key's range ends at 64.
        branches: get.narrow("fading_branches") as u8,
        rician_k_db,
    };
    let (start, turn) = (get.real("distance_m"), get.0.real("turn_m"));
    ProcessConfig {
        carrier_hz: get.real("carrier_mhz") * 1e6,
        path_loss: path_loss(get),
        heights: Heights {
            base_station_m: get.real("base_station_height_m"),
            ue_m: get.real("ue_height_m"),
        },
        budget: LinkBudget {
            transmit_dbm: get.real("transmit_dbm"),
            gain_db: get.real("gain_db"),
            noise_dbm: LinkBudget::thermal_noise_dbm(
                bandwidth_hz(cell),
                get.real("noise_figure_db"),
            ),
            interference_db: get.real("interference_db"),
        },
        movement: Movement {
            beside_m: get.real("beside_m"),
            start_m: start,
            speed_mps: speed,
            turn_m: turn,
        },
        shadowing: match get.real("shadowing_db") {
            deviation_db if deviation_db > 0.0 => Some(ShadowingConfig {
                deviation_db,
                correlation_m: get.real("shadowing_correlation_m"),
            }),
            _ => None,
        },
        fading: match get.chosen() {
            Fading::None => None,
            Fading::Rayleigh => Some(fading(None)),
            Fading::Rician => Some(fading(Some(get.real("rician_k_db")))),
        },
        step: get.time("step_ms"),
        sinr_ceiling_db: get.0.real("sinr_ceiling_db"),
    }
}

fn path_loss(get: &Get<'_>) -> PathLoss {
    match get.chosen() {
        PathLossModel::UmaLos => PathLoss::UrbanMacroLos,
        PathLossModel::UmaNlos => PathLoss::UrbanMacroNlos,
        PathLossModel::UmiLos => PathLoss::UrbanMicroLos,
        PathLossModel::UmiNlos => PathLoss::UrbanMicroNlos,
        PathLossModel::InhLos => PathLoss::IndoorOfficeLos,
        PathLossModel::InhNlos => PathLoss::IndoorOfficeNlos,
        PathLossModel::Exponent => PathLoss::Exponent {
            reference_db: get.real("path_loss_at_1_m_db"),
            exponent: get.real("path_loss_exponent"),
        },
    }
}
