//! `[radio.cell]`.

use airpath_radio::adaptation::{BlerModel, Threshold};
use airpath_radio::cell::{
    BaseStationConfig, CellConfig, Granting, LteCarrier, LteDuplex, LteLayers, NrCarrier, NrDuplex,
    NrLink, UmtsCarrier, UmtsDownlink, UmtsUplink,
};
use airpath_radio::evdo;
use airpath_radio::lte::{CellPorts, DownlinkTable, tdd};
use airpath_radio::nr::{McsTable, SlotOffsets};
use airpath_radio::scheduler::{Policy, SchedulerConfig};
use airpath_radio::umts::{self, DchRate, EdchCategory, HsdpaCategory};

use crate::get::Get;
use crate::radio::check;
use crate::read::Fields;
use crate::spec::{
    AccessKind, BlerCurve, Chosen, Duplex, LteMcsTable, NrMcsTable, Scheduler, UmtsDown, UmtsUp,
};

/// Builds the cell's configuration.
pub(super) fn cell(fields: &Fields) -> CellConfig {
    let get = Get(fields);
    let access = AccessKind::of(get.variant()).expect("the variant is a value of `access`");
    let plain = match access {
        AccessKind::Lte => CellConfig::lte(lte_carrier(&get)),
        AccessKind::Umts => CellConfig::umts(umts_carrier(&get)),
        AccessKind::Evdo => CellConfig::evdo(),
        AccessKind::Nr => CellConfig::nr(nr_carrier(&get)),
    };
    let time = |name, plain| fields.time(name).unwrap_or(plain);
    let base_station = match access {
        AccessKind::Umts => {
            let through = get.time("rnc_ms") + get.time("iub_ms") + get.time("node_b_ms");
            BaseStationConfig { downlink: through, uplink: through, grant: through }
        }
        AccessKind::Evdo => {
            let through = get.time("access_network_ms");
            BaseStationConfig { downlink: through, uplink: through, grant: through }
        }
        AccessKind::Nr | AccessKind::Lte => BaseStationConfig {
            downlink: time("processing_down_ms", plain.base_station.downlink),
            uplink: time("processing_up_ms", plain.base_station.uplink),
            grant: time("processing_grant_ms", plain.base_station.grant),
        },
    };
    let down: Scheduler = get.chosen();
    CellConfig {
        downlink_scheduler: scheduler(&get, down),
        uplink_scheduler: scheduler(&get, fields.choice_of("scheduler_up").unwrap_or(down)),
        base_station,
        bler: BlerModel {
            threshold: match get.chosen() {
                BlerCurve::ShannonGap => {
                    Threshold::ShannonGap { gap_db: get.real("shannon_gap_db") }
                }
                BlerCurve::Published => Threshold::Published,
            },
            steepness_per_db: get.real("bler_steepness_per_db"),
        },
        ..plain
    }
}

/// Bandwidth of all resource blocks in Hz; for access without resource blocks, the chip rate.
pub(super) fn bandwidth_hz(fields: &Fields) -> f64 {
    match fields.variant.and_then(AccessKind::of) {
        Some(AccessKind::Umts) => return f64::from(umts::CHIP_RATE),
        Some(AccessKind::Evdo) => return f64::from(evdo::CHIP_RATE),
        Some(AccessKind::Nr | AccessKind::Lte) | None => {}
    }
    let blocks = check::resource_blocks(fields).expect("a channel of the specification");
    let khz = check::numerology(fields).map_or(15, |numerology| numerology.khz());
    f64::from(blocks * 12 * khz) * 1000.0
}

fn scheduler(get: &Get<'_>, policy: Scheduler) -> SchedulerConfig {
    SchedulerConfig {
        policy: match policy {
            Scheduler::RoundRobin => Policy::RoundRobin,
            Scheduler::MaxRate => Policy::MaxRate,
            Scheduler::ProportionalFair => {
                Policy::ProportionalFair { time_constant: get.time("proportional_fair_ms") }
            }
        },
        // The key's range ends at 10,000.
        ues_per_slot: get.0.count("ues_per_slot").map(|count| count as u32),
    }
}

fn umts_carrier(get: &Get<'_>) -> UmtsCarrier {
    let dch = |name| DchRate::from_kbps(get.count(name)).expect("64, 128 or 384");
    UmtsCarrier {
        downlink: match get.chosen() {
            UmtsDown::Dch => UmtsDownlink::Dch(dch("dch_down_kbps")),
            UmtsDown::HsDsch => UmtsDownlink::HsDsch {
                category: HsdpaCategory::new(get.narrow("hsdpa_category") as u8)
                    .expect("a category that was checked"),
                codes: get.narrow("hs_codes"),
            },
        },
        uplink: match get.chosen() {
            UmtsUp::Dch => UmtsUplink::Dch(dch("dch_up_kbps")),
            UmtsUp::EDch => UmtsUplink::EDch {
                category: EdchCategory::new(get.narrow("edch_category") as u8)
                    .expect("the key's range is 1 to 7"),
                tti: check::edch_tti(get.time("edch_tti_ms")).expect("2 or 10 ms"),
            },
        },
    }
}

fn nr_carrier(get: &Get<'_>) -> NrCarrier {
    let numerology = check::numerology(get.0).expect("15, 30, 60 or 120 kHz");
    let duplex = match get.chosen() {
        Duplex::Tdd => NrDuplex::Tdd(check::tdd_pattern(get.0).expect("a pattern that was parsed")),
        Duplex::Fdd => NrDuplex::Fdd,
    };
    let all = check::resource_blocks(get.0).expect("a channel of the specification");
    let control_symbols = get.narrow("control_symbols");
    let least = NrCarrier::least_offsets(numerology, control_symbols);
    // The ranges of these keys end at 32.
    let slots = |name, least| get.0.count(name).map_or(least, |slots| slots as u32);
    let link = |direction: &str| {
        let key = |name: &str| format!("{name}_{direction}");
        NrLink {
            // The key's range ends at 275.
            prbs: get.0.count(&key("prbs")).map_or(all, |prbs| prbs as u32),
            layers: get.narrow(&key("layers")),
            mcs_table: match get.choice_of(&key("mcs_table")) {
                NrMcsTable::Qam64 => McsTable::Qam64,
                NrMcsTable::Qam64LowSe => McsTable::Qam64LowSe,
                NrMcsTable::Qam256 => McsTable::Qam256,
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
        granting: Granting {
            exact_k2: get.flag("exact_k2"),
            in_special: get.flag("pdcch_in_special"),
        },
    }
}

fn lte_carrier(get: &Get<'_>) -> LteCarrier {
    let all = check::resource_blocks(get.0).expect("a channel of the specification");
    // The keys' ranges end at 275.
    let prbs = |name| get.0.count(name).map_or(all, |prbs| prbs as u32);
    LteCarrier {
        duplex: match get.chosen() {
            Duplex::Tdd => LteDuplex::Tdd {
                configuration: tdd::Configuration::new(get.narrow("tdd_configuration") as u8)
                    .expect("the key's range is 0 to 6"),
                special: get.narrow("special_subframe_configuration") as u8,
            },
            Duplex::Fdd => LteDuplex::Fdd,
        },
        downlink_prbs: prbs("prbs_down"),
        uplink_prbs: prbs("prbs_up"),
        control_symbols: get.narrow("cfi"),
        ports: match get.count("antenna_ports") {
            1 => CellPorts::One,
            2 => CellPorts::Two,
            _ => CellPorts::Four,
        },
        downlink_table: match get.chosen() {
            LteMcsTable::Qam256 => DownlinkTable::Qam256,
            LteMcsTable::Qam64 => DownlinkTable::Qam64,
        },
        layers: match get.count("layers_down") {
            1 => LteLayers::One,
            _ => LteLayers::Two,
        },
    }
}
