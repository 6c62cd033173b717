//! `[radio.channel]` and `[[radio.outage]]`.

use std::sync::Arc;

use airpath_base::{Duration, Instant};
use airpath_radio::cell::UeConfig;
use airpath_radio::channel::{
    AtEnd, ChannelConfig, ChannelTrace, FadingConfig, Heights, LinkBudget, Movement, Outage,
    PathLoss, ProcessConfig, Quality, ShadowingConfig,
};

use super::cell::bandwidth_hz;
use crate::get::Get;
use crate::radio::Radio;
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

/// When a cell is out of service.
pub(super) fn outages(radio: &Radio, cell: &str) -> Arc<[Outage]> {
    let mine =
        |fields: &&Fields| fields.enabled() && fields.text("cell").is_none_or(|only| only == cell);
    let outage = |fields: &Fields| {
        let time = |key: &str| fields.time(key).unwrap_or(Duration::ZERO);
        let from = Instant::ZERO + time("at_s");
        Outage { from, until: from + time("duration_s") }
    };
    radio.outages.iter().filter(mine).map(outage).collect()
}

/// Adds outages to all channels of a UE in one cell.
pub(super) fn interrupt(ue: &mut UeConfig, outages: &Arc<[Outage]>) {
    if outages.is_empty() {
        return;
    }
    let first = [&mut ue.downlink.channel, &mut ue.uplink.channel];
    let others = ue
        .secondary
        .iter_mut()
        .flat_map(|carrier| [&mut carrier.downlink.channel, &mut carrier.uplink.channel]);
    for channel in first.into_iter().chain(others) {
        *channel = ChannelConfig::Interrupted {
            source: Box::new(channel.clone()),
            outages: Arc::clone(outages),
        };
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
