//! Turns the tables of `[radio]` into the configuration.

mod bearer;
mod cell;
mod channel;
mod mobility;
mod procedures;
mod refused;

use airpath_path::{LinkConfig, ServiceConfig};
use airpath_radio::adaptation::{McsMode, OuterLoopConfig, ReportConfig, StepsConfig};
use airpath_radio::cell::{
    Access, CellConfig, UeCarrierConfig, UeConfig, UeLinkConfig, UeProcessing, UeRadioConfig,
};
use airpath_radio::channel::ChannelTrace;
use airpath_radio::harq::{Combining, Decoding, HarqConfig, HarqTiming};
use airpath_radio::ran::{MobileConfig, RanConfig};
use airpath_radio::rlc::Subheaders;
use airpath_radio::scheduler::RateCap;
use airpath_radio::scheduler::grants::PeriodicGrant;
use std::sync::Arc;

use crate::get::Get;
use crate::model::{HostLinkConfig, RadioConfig, UeHostConfig};
use crate::problem::Problems;
use crate::radio::{Carrier, Radio, Tables, Ue};
use crate::read::Fields;
use crate::spec::HarqCombining;

/// Builds the configuration from tables that have no problems, and reports what the model refuses.
pub(super) fn radio(radio: &Radio, problems: &mut Problems) -> RadioConfig {
    let all = || std::iter::once(&radio.cell).chain(radio.neighbours.iter().map(|each| &each.cell));
    let mut cells: Vec<_> = all().map(cell::cell).collect();
    cells[0].secondary = radio.carriers.iter().map(|each| cell::cell(&each.cell)).collect();
    let carriers: Vec<UeCarrierConfig> =
        radio.carriers.iter().zip(&cells[0].secondary).map(carrier).collect();
    let elsewhere: Vec<UeConfig> = radio
        .neighbours
        .iter()
        .zip(&cells[1..])
        .map(|(neighbour, cell)| ue(&neighbour.tables, &neighbour.cell, cell))
        .collect();
    let (mut names, mut ues, mut hosts) = (Vec::new(), Vec::new(), Vec::new());
    for each in &radio.ues {
        let host = host(each, &Get(&radio.fields));
        let mut in_cell = vec![ue(&each.tables, &radio.cell, &cells[0])];
        // The key's range ends at 7.
        let used = each.fields.count("carriers").map_or(carriers.len(), |used| used as usize);
        in_cell[0].secondary = carriers.iter().take(used).cloned().collect();
        in_cell.extend_from_slice(&elsewhere);
        for (own, cell) in in_cell.iter_mut().zip(radio.cells()) {
            channel::interrupt(own, &channel::outages(radio, cell));
        }
        for name in each.names() {
            names.push(name);
            ues.push(MobileConfig { in_cell: in_cell.clone() });
            hosts.push(host.clone());
        }
    }
    let config = RadioConfig {
        preset: Get(&radio.fields).text("preset").to_owned(),
        cells: radio.cells().map(str::to_owned).collect(),
        ues: names,
        hosts,
        ran: RanConfig {
            cells,
            ues,
            handover: mobility::handover(radio.mobility.as_ref()),
            planned: mobility::planned(radio),
            measurements: mobility::measurements(radio.mobility.as_ref()),
            split: mobility::split(radio),
        },
    };
    refused::check(radio, &config, problems);
    config
}

/// What lies between a UE's radio and its TCP.
fn host(ue: &Ue, radio: &Get<'_>) -> UeHostConfig {
    let time = |key: &str| ue.fields.time(key).unwrap_or_else(|| radio.time(key));
    let link = ["host_link", "host_link_up"].map(|part| {
        let get = Get(ue.tables.part(part));
        let limit = get.0.rate("rate_mbps").map(|rate| LinkConfig {
            service: ServiceConfig::Rate(rate),
            queue: crate::build::queue::config(&get),
        });
        HostLinkConfig { limit, delay: get.time("delay_ms") }
    });
    UeHostConfig { link, delay: time("host_delay_ms"), jitter: time("host_jitter_ms") }
}

/// What a UE has on a secondary carrier.
fn carrier((carrier, config): (&Carrier, &CellConfig)) -> UeCarrierConfig {
    let plain = UeConfig::plain(&config.access);
    let [down, up] = &carrier.tables.channels;
    let one_way = |suffix, trace: &Option<_>, plain| {
        let link = link(&carrier.tables, suffix, &carrier.cell, trace.as_ref(), plain);
        let UeLinkConfig { channel, mcs, report, harq, .. } = link;
        UeRadioConfig { channel, mcs, report, harq }
    };
    UeCarrierConfig {
        downlink: one_way("", down, &plain.downlink),
        uplink: one_way("_up", up, &plain.uplink),
        sends: Get(&carrier.fields).flag("uplink"),
    }
}

fn ue(ue: &Tables, cell: &Fields, config: &CellConfig) -> UeConfig {
    let access = &config.access;
    let plain = UeConfig::plain(access);
    let [down, up] = &ue.channels;
    let downlink = link(ue, "", cell, down.as_ref(), &plain.downlink);
    let uplink = link(ue, "_up", cell, up.as_ref(), &plain.uplink);
    let grants = Get(ue.part("grants"));
    let processing = ue.part("processing");
    let processing = UeProcessing {
        downlink: processing.time("down_ms").unwrap_or(plain.processing.downlink),
        uplink: processing.time("up_ms").unwrap_or(plain.processing.uplink),
    };
    if access.has_standing_grants() {
        let configured = plain.configured.map(|grant| PeriodicGrant {
            // The key's range ends at 2^20.
            bytes: grants
                .0
                .count("serving_grant_bytes")
                .map_or(grant.bytes, |bytes| grant.bytes.min(bytes as u32)),
            ..grant
        });
        let rrc = Get(ue.part("rrc"));
        let rrc = match access {
            Access::Umts(_) => procedures::umts_states(&rrc, &downlink.bearer.rlc),
            Access::Nr(_) | Access::Lte(_) | Access::Evdo => procedures::rrc(&rrc),
        };
        return UeConfig { downlink, uplink, configured, rrc, processing, ..plain };
    }
    let processes = downlink.harq.processes.max(uplink.harq.processes);
    UeConfig {
        downlink,
        uplink,
        sr: procedures::sr(ue.part("sr"), config),
        bsr: procedures::bsr(&Get(ue.part("bsr")), plain.bsr),
        estimate: procedures::estimate(&grants),
        proactive: procedures::periodic_grant(&grants, "proactive"),
        configured: procedures::periodic_grant(&grants, "configured"),
        random_access: procedures::random_access(&Get(ue.part("rach"))),
        alignment: procedures::alignment(&Get(ue.part("time_alignment"))),
        drx: procedures::drx(&Get(ue.part("drx")), access, processes),
        rrc: procedures::rrc(&Get(ue.part("rrc"))),
        processing,
        secondary: Vec::new(),
    }
}

/// One direction; `suffix` is the ending of its tables' names.
fn link(
    ue: &Tables,
    suffix: &str,
    cell: &Fields,
    trace: Option<&Arc<ChannelTrace>>,
    plain: &UeLinkConfig,
) -> UeLinkConfig {
    let part = |name: &str| Get(ue.part(&format!("{name}{suffix}")));
    let adaptation = part("link_adaptation");
    let ambr = Get(ue.part("ambr"));
    let cap = if suffix.is_empty() { "down_mbps" } else { "up_mbps" };
    UeLinkConfig {
        channel: channel::channel(&part("channel"), cell, trace),
        mcs: match adaptation.0.count("fixed_mcs") {
            // A key's range ends at 28.
            Some(mcs) => McsMode::Fixed(mcs as u8),
            None => adaptive(&adaptation),
        },
        report: ReportConfig {
            period: adaptation.time("cqi_period_ms"),
            offset: adaptation.time("cqi_offset_ms"),
            delay: adaptation.time("cqi_delay_ms"),
        },
        harq: harq(&part("harq"), &adaptation, &plain.harq),
        bearer: bearer::bearer(&part("rlc"), &plain.bearer.rlc),
        subheaders: match part("rlc").0.flag("long_mac_subheaders") {
            Some(true) => Subheaders::Long,
            _ => Subheaders::Shortest,
        },
        cap: ambr
            .0
            .rate(cap)
            .map(|rate| RateCap { rate, bucket_bytes: ambr.count("bucket_bytes") }),
    }
}

fn adaptive(adaptation: &Get<'_>) -> McsMode {
    match adaptation.0.time("step_window_ms") {
        Some(window) => McsMode::Steps(StepsConfig {
            window,
            lower_bler: adaptation.real("step_lower_bler"),
            upper_bler: adaptation.real("step_upper_bler"),
            memory: adaptation.fraction("step_memory"),
            // The key's range ends at 29.
            start: adaptation.count("step_start_mcs") as u8,
        }),
        None => McsMode::Adaptive(OuterLoopConfig {
            target_bler: adaptation.real("bler_target"),
            step_db: adaptation.real("outer_loop_step_db"),
            initial_db: adaptation.real("outer_loop_start_db"),
            lowest_db: adaptation.real("outer_loop_lowest_db"),
            highest_db: adaptation.real("outer_loop_highest_db"),
        }),
    }
}

fn harq(harq: &Get<'_>, adaptation: &Get<'_>, plain: &HarqConfig) -> HarqConfig {
    HarqConfig {
        // The ranges of both keys end far below 2^8.
        processes: harq.0.count("processes").map_or(plain.processes, |count| count as u8),
        max_transmissions: match plain.max_transmissions {
            // A DCH has no HARQ.
            1 => 1,
            most => harq.0.count("max_transmissions").map_or(most, |count| count as u8),
        },
        timing: match (plain.timing, harq.0.time("processing_ms")) {
            (HarqTiming::Asynchronous { .. }, Some(processing)) => {
                HarqTiming::Asynchronous { processing }
            }
            (timing, _) => timing,
        },
        decoding: match adaptation.0.fraction("fixed_bler") {
            Some(initial) => Decoding::Fixed {
                initial,
                retransmission: adaptation.fraction("fixed_bler_retransmission"),
            },
            None => Decoding::Curve(match harq.chosen() {
                HarqCombining::Discard => Combining::Discard,
                HarqCombining::Chase => Combining::Chase,
                HarqCombining::IncrementalRedundancy => {
                    Combining::IncrementalRedundancy { mother_rate: harq.real("mother_rate") }
                }
            }),
        },
        nack_to_ack: harq.fraction("nack_to_ack"),
    }
}
