//! `[radio.rlc]`.

use airpath_radio::bearer::OneWayConfig;
use airpath_radio::buffer::{BufferConfig, CoDelConfig, Discipline, EcnCapable, EcnConfig};
use airpath_radio::pdcp::{PdcpConfig, Release, StatusReport};
use airpath_radio::rlc::{
    ArqConfig, LteMode, LteUmSn, NrAmSn, NrMode, NrUmSn, RlcConfig, UmtsAm, UmtsPdu,
};

use crate::build::queue;
use crate::get::Get;
use crate::spec::{AccessKind, BufferAqm, Chosen, RlcMode};

/// One direction of the bearer.
pub(super) fn bearer(get: &Get<'_>, plain: &RlcConfig) -> OneWayConfig {
    OneWayConfig {
        rlc: match AccessKind::of(get.variant()).expect("the variant is a value of `access`") {
            AccessKind::Lte => RlcConfig::Lte(lte_mode(get)),
            AccessKind::Umts | AccessKind::Evdo => RlcConfig::Umts(umts_am(get, plain)),
            AccessKind::Nr => RlcConfig::Nr { mode: nr_mode(get), release: release(get) },
        },
        pdcp: PdcpConfig {
            header_bytes: get.narrow("pdcp_header_bytes"),
            discard: get.0.time("discard_timer_ms"),
            status_report: match get.0.flag("status_report_required") {
                Some(false) => StatusReport::NotRequired,
                _ => StatusReport::Required,
            },
        },
        buffer: BufferConfig {
            // The key's range ends below 2^32.
            packets: get.0.count("buffer_packets").map(|packets| packets as u32),
            bytes: get.0.count("buffer_bytes"),
            discipline: discipline(get),
            ecn: EcnConfig {
                codel: match get.0.flag("ecn") {
                    Some(true) => EcnCapable::Marked,
                    _ => EcnCapable::Dropped,
                },
                l4s_step: get.0.time("l4s_step_ms"),
            },
        },
    }
}

fn nr_mode(get: &Get<'_>) -> NrMode {
    let (bits, t_reassembly) = (get.0.count("sn_bits"), get.time("t_reassembly_ms"));
    match get.chosen() {
        RlcMode::Um => NrMode::Um {
            sn: if bits == Some(6) { NrUmSn::Bits6 } else { NrUmSn::Bits12 },
            t_reassembly,
        },
        RlcMode::Am => NrMode::Am {
            sn: if bits == Some(12) { NrAmSn::Bits12 } else { NrAmSn::Bits18 },
            t_reassembly,
            arq: arq(get),
        },
    }
}

fn lte_mode(get: &Get<'_>) -> LteMode {
    let t_reordering = get.time("t_reordering_ms");
    match get.chosen() {
        RlcMode::Um => LteMode::Um {
            sn: if get.0.count("sn_bits") == Some(5) { LteUmSn::Bits5 } else { LteUmSn::Bits10 },
            t_reordering,
        },
        RlcMode::Am => LteMode::Am { t_reordering, arq: arq(get) },
    }
}

/// UMTS acknowledged mode. The size of the MAC header depends on the channel.
fn umts_am(get: &Get<'_>, plain: &RlcConfig) -> UmtsAm {
    let mac_header_bytes = match plain {
        RlcConfig::Umts(am) => am.mac_header_bytes,
        _ => 0,
    };
    UmtsAm {
        // The keys' ranges end at 126, 1,503 and 2,047.
        pdu: match get.0.count("pdu_bytes") {
            Some(bytes) => UmtsPdu::Fixed { bytes: bytes as u32 },
            None => UmtsPdu::Flexible {
                most: get.0.count("pdu_most_bytes").map_or(1_503, |bytes| bytes as u32),
            },
        },
        mac_header_bytes,
        window: get.0.count("window_pdus").map_or(2_047, |pdus| pdus as u32),
        t_reordering: get.time("t_reordering_ms"),
        arq: arq(get),
    }
}

fn release(get: &Get<'_>) -> Release {
    match get.flag("out_of_order_delivery") {
        true => Release::OutOfOrder,
        false => Release::InOrder { t_reordering: get.0.time("t_reordering_ms") },
    }
}

fn arq(get: &Get<'_>) -> ArqConfig {
    ArqConfig {
        t_poll_retransmit: get.time("t_poll_retransmit_ms"),
        // The key's range ends at 2^20.
        poll_pdu: get.0.count("poll_pdu").map(|pdus| pdus as u32),
        poll_bytes: get.0.count("poll_bytes"),
        t_status_prohibit: get.time("t_status_prohibit_ms"),
        max_retx_threshold: get.narrow("max_retx_threshold"),
    }
}

fn discipline(get: &Get<'_>) -> Discipline {
    let codel = || CoDelConfig {
        target: get.time("codel_target_ms"),
        interval: get.time("codel_interval_ms"),
    };
    match get.chosen() {
        BufferAqm::Codel => Discipline::CoDel(codel()),
        BufferAqm::FqCodel => Discipline::FqCoDel {
            codel: codel(),
            quantum: get.narrow("fq_codel_quantum_bytes"),
            isolation: queue::isolation(get),
        },
        BufferAqm::DropTail => Discipline::DropTail,
    }
}
