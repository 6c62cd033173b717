//! `[radio.cell]`.

use airpath_path::radio::adaptation::{BlerModel, Threshold};
use airpath_path::radio::cell::{
    BaseStationConfig, CellConfig, LteCarrier, LteDuplex, LteLayers, NrCarrier, NrDuplex, NrLink,
    UmtsCarrier, UmtsDownlink, UmtsUplink,
};
use airpath_path::radio::evdo;
use airpath_path::radio::lte::{CellPorts, DownlinkTable, tdd};
use airpath_path::radio::nr::{McsTable, SlotOffsets};
use airpath_path::radio::scheduler::{Policy, SchedulerConfig};
use airpath_path::radio::umts::{self, DchRate, EdchCategory, HsdpaCategory};

use super::super::check;
use crate::build::Get;
use crate::read::Fields;

/// The cell.
pub(super) fn cell(fields: &Fields) -> CellConfig {
    let get = Get(fields);
    let plain = match get.variant() {
        "lte" => CellConfig::lte(lte_carrier(&get)),
        "umts" => CellConfig::umts(umts_carrier(&get)),
        "evdo" => CellConfig::evdo(),
        _ => CellConfig::nr(nr_carrier(&get)),
    };
    let time = |name, plain| fields.time(name).unwrap_or(plain);
    let base_station = match get.variant() {
        "umts" => {
            let through = get.time("rnc_ms") + get.time("iub_ms") + get.time("node_b_ms");
            BaseStationConfig { downlink: through, uplink: through, grant: through }
        }
        "evdo" => {
            let through = get.time("access_network_ms");
            BaseStationConfig { downlink: through, uplink: through, grant: through }
        }
        _ => BaseStationConfig {
            downlink: time("processing_down_ms", plain.base_station.downlink),
            uplink: time("processing_up_ms", plain.base_station.uplink),
            grant: time("processing_grant_ms", plain.base_station.grant),
        },
    };
    let down = get.text("scheduler");
    CellConfig {
        downlink_scheduler: scheduler(&get, down),
        uplink_scheduler: scheduler(&get, fields.text("scheduler_up").unwrap_or(down)),
        base_station,
        bler: BlerModel {
            threshold: match get.text("bler_curve") {
                "shannon_gap" => Threshold::ShannonGap { gap_db: get.real("shannon_gap_db") },
                _ => Threshold::Published,
            },
            steepness_per_db: get.real("bler_steepness_per_db"),
        },
        ..plain
    }
}

/// Hertz of all resource blocks; chips per second where there are none.
pub(super) fn bandwidth_hz(fields: &Fields) -> f64 {
    match fields.variant {
        Some("umts") => return f64::from(umts::CHIP_RATE),
        Some("evdo") => return f64::from(evdo::CHIP_RATE),
        _ => {}
    }
    let blocks = check::resource_blocks(fields).expect("a channel of the specification");
    let khz = check::numerology(fields).map_or(15, |numerology| numerology.khz());
    f64::from(blocks * 12 * khz) * 1000.0
}

fn scheduler(get: &Get<'_>, policy: &str) -> SchedulerConfig {
    SchedulerConfig {
        policy: match policy {
            "round_robin" => Policy::RoundRobin,
            "max_rate" => Policy::MaxRate,
            _ => Policy::ProportionalFair { time_constant: get.time("proportional_fair_ms") },
        },
        // The key's range ends at 10,000.
        ues_per_slot: get.0.count("ues_per_slot").map(|count| count as u32),
    }
}

fn umts_carrier(get: &Get<'_>) -> UmtsCarrier {
    let dch = |name| DchRate::from_kbps(get.count(name)).expect("64, 128 or 384");
    UmtsCarrier {
        downlink: match get.text("downlink") {
            "dch" => UmtsDownlink::Dch(dch("dch_down_kbps")),
            _ => UmtsDownlink::HsDsch {
                category: HsdpaCategory::new(get.narrow("hsdpa_category") as u8)
                    .expect("a category that was checked"),
                codes: get.narrow("hs_codes"),
            },
        },
        uplink: match get.text("uplink") {
            "dch" => UmtsUplink::Dch(dch("dch_up_kbps")),
            _ => UmtsUplink::EDch {
                category: EdchCategory::new(get.narrow("edch_category") as u8)
                    .expect("the key's range is 1 to 7"),
                tti: check::edch_tti(get.time("edch_tti_ms")).expect("2 or 10 ms"),
            },
        },
    }
}

fn nr_carrier(get: &Get<'_>) -> NrCarrier {
    let numerology = check::numerology(get.0).expect("15, 30, 60 or 120 kHz");
    let duplex = match get.text("duplex") {
        "tdd" => NrDuplex::Tdd(check::tdd_pattern(get.0).expect("a pattern that was parsed")),
        _ => NrDuplex::Fdd,
    };
    let all = check::resource_blocks(get.0).expect("a channel of the specification");
    let control_symbols = get.narrow("control_symbols");
    let least = NrCarrier::least_offsets(numerology, control_symbols);
    // Ranges of these keys end at 32.
    let slots = |name, least| get.0.count(name).map_or(least, |slots| slots as u32);
    let link = |direction: &str| {
        let key = |name: &str| format!("{name}_{direction}");
        NrLink {
            // The key's range ends at 275.
            prbs: get.0.count(&key("prbs")).map_or(all, |prbs| prbs as u32),
            layers: get.narrow(&key("layers")),
            mcs_table: match get.text(&key("mcs_table")) {
                "qam64" => McsTable::Qam64,
                "qam64_low_se" => McsTable::Qam64LowSe,
                _ => McsTable::Qam256,
            },
            dmrs_per_prb: get.narrow(&key("dmrs")),
            overhead_per_prb: get.narrow(&key("overhead")),
            least_symbols: get.narrow(&key("least_symbols")),
        }
    };
    NrCarrier {
        numerology,
        duplex,
        downlink: link("down"),
        uplink: link("up"),
        control_symbols,
        feedback_symbols: get.narrow("feedback_symbols"),
        offsets: SlotOffsets {
            k0: get.narrow("k0_slots"),
            k1: slots("k1_slots", least.k1),
            k2: slots("k2_slots", least.k2),
        },
    }
}

fn lte_carrier(get: &Get<'_>) -> LteCarrier {
    let all = check::resource_blocks(get.0).expect("a channel of the specification");
    // The keys' ranges end at 275.
    let prbs = |name| get.0.count(name).map_or(all, |prbs| prbs as u32);
    LteCarrier {
        duplex: match get.text("duplex") {
            "tdd" => LteDuplex::Tdd {
                configuration: tdd::Configuration::new(get.narrow("tdd_configuration") as u8)
                    .expect("the key's range is 0 to 6"),
                special: get.narrow("special_subframe_configuration") as u8,
            },
            _ => LteDuplex::Fdd,
        },
        downlink_prbs: prbs("prbs_down"),
        uplink_prbs: prbs("prbs_up"),
        control_symbols: get.narrow("cfi"),
        ports: match get.count("antenna_ports") {
            1 => CellPorts::One,
            2 => CellPorts::Two,
            _ => CellPorts::Four,
        },
        downlink_table: match get.text("mcs_table_down") {
            "qam256" => DownlinkTable::Qam256,
            _ => DownlinkTable::Qam64,
        },
        layers: match get.count("layers_down") {
            1 => LteLayers::One,
            _ => LteLayers::Two,
        },
    }
}
