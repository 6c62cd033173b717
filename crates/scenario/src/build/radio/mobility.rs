//! `[radio.mobility]`, `[[radio.handover]]` and `[radio.split]`.

use airpath_base::Duration;
use airpath_radio::bearer::Forwarding;
use airpath_radio::cell::UeIndex;
use airpath_radio::ran::{
    A3Config, CellIndex, FailureConfig, HandoverConfig, Leg, MeasurementConfig, PlannedHandover,
    SplitConfig, SplitPolicy,
};

use crate::get::Get;
use crate::radio::Radio;
use crate::read::Fields;
use crate::spec::{DataForwarding, PrimaryPath};

/// How a handover is carried out.
pub(super) fn handover(mobility: Option<&Fields>) -> HandoverConfig {
    let Some(fields) = mobility else { return HandoverConfig::default() };
    let get = Get(fields);
    HandoverConfig {
        preparation: get.time("preparation_ms"),
        interruption: get.time("interruption_ms"),
        forwarding: match get.chosen() {
            DataForwarding::None => Forwarding::Nothing,
            DataForwarding::All => Forwarding::Buffer,
        },
        forwarding_delay: get.time("forwarding_delay_ms"),
        path_switch: get.time("path_switch_ms"),
    }
}

/// Handovers at fixed times.
pub(super) fn planned(radio: &Radio) -> Vec<PlannedHandover> {
    let place = |name: &str| radio.cells().position(|known| known == name);
    let handover = |fields: &Fields| PlannedHandover {
        at: fields.time("at_s").unwrap_or(Duration::ZERO),
        every: fields.time("every_s"),
        ue: fields.text("ue").and_then(|ue| radio.index(ue)).map(|ue| UeIndex(ue as u32)),
        to: CellIndex(fields.text("to").and_then(place).unwrap_or_default() as u32),
    };
    radio.handovers.iter().map(handover).collect()
}

/// What UEs measure and report.
pub(super) fn measurements(mobility: Option<&Fields>) -> Option<MeasurementConfig> {
    let get = Get(mobility?);
    let a3 = get.flag("a3").then(|| A3Config {
        offset_db: get.real("a3_offset_db"),
        hysteresis_db: get.real("a3_hysteresis_db"),
        time_to_trigger: get.time("time_to_trigger_ms"),
        // The key's range ends at 19.
        filter_coefficient: get.narrow("filter_coefficient") as u8,
    });
    let failure = get.flag("link_failure").then(|| FailureConfig {
        q_out_db: get.real("q_out_db"),
        q_in_db: get.real("q_in_db"),
        n310: get.narrow("n310"),
        n311: get.narrow("n311"),
        t310: get.time("t310_ms"),
        t304: get.time("t304_ms"),
        reestablishment: get.time("reestablishment_ms"),
    });
    let period = get.time("measurement_period_ms");
    (a3.is_some() || failure.is_some()).then_some(MeasurementConfig { period, a3, failure })
}

/// Bearers over two cells.
pub(super) fn split(radio: &Radio) -> Option<SplitConfig> {
    let get = Get(radio.split.as_ref()?);
    let secondary = get.text("secondary");
    get.flag("enabled").then(|| SplitConfig {
        ue: get.0.text("ue").and_then(|ue| radio.index(ue)).map(|ue| UeIndex(ue as u32)),
        secondary: CellIndex(
            radio.cells().position(|cell| cell == secondary).unwrap_or_default() as u32
        ),
        primary: match get.chosen() {
            PrimaryPath::Master => Leg::Master,
            PrimaryPath::Secondary => Leg::Secondary,
        },
        policy: match get.0.fraction("secondary_share") {
            Some(secondary) => SplitPolicy::Fixed { secondary },
            None => SplitPolicy::ShortestWait,
        },
        threshold: get.0.count("ul_data_split_threshold_bytes"),
        t_reordering: get.time("t_reordering_ms"),
        delay: get.time("delay_ms"),
        flow_control: get.flag("flow_control"),
    })
}
