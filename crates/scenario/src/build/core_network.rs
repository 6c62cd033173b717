//! Builds the core network, and the stages inside it and beyond.

use airpath_base::{Direction, Instant};
use airpath_path::{
    DelayConfig, Distribution, Excess, HostConfig, MiddleboxConfig, MiddleboxKind, MiddleboxSide,
    MiddleboxTimer, ModemConfig, OffloadConfig, OffloadFault, OuterIp, PolicerConfig, StageConfig,
    Stalls, TooBig, TunnelConfig, TunnelEnd, TunnelProtocol,
};

use crate::get::{Get, narrow};
use crate::model::{CoreConfig, Usim};
use crate::radio::Radio;
use crate::read::Fields;
use crate::spec::{
    AccessKind, Chosen, OffloadFaultKind, OuterHeader, PolicerExcess, StageKind, StallDistribution,
    StallTimes, TooBigPacket, TunnelSide,
};
use crate::stage::{is_outward, server_delay};
use crate::subscription::{Core, network};

pub(super) fn policer(get: &Get<'_>) -> StageConfig {
    StageConfig::Policer(PolicerConfig {
        rate: get.rate("rate_mbps"),
        burst: get.count("burst_bytes"),
        excess: match get.chosen() {
            PolicerExcess::Mark => Excess::Mark,
            PolicerExcess::Drop => Excess::Drop,
        },
    })
}

pub(super) fn host(get: &Get<'_>) -> StageConfig {
    StageConfig::Host(HostConfig {
        stalls: stalls(get),
        processing: get.time("processing_ms"),
        coalescing: get.time("coalescing_ms"),
        ring_packets: get.0.count("ring_packets").map(narrow),
        cpu: get.0.text("cpu").map(str::to_owned),
    })
}

pub(super) fn modem(get: &Get<'_>) -> StageConfig {
    StageConfig::Modem(ModemConfig {
        block_bytes: get.narrow("block_bytes"),
        block_packets: get.narrow("block_packets"),
        timer: get.time("timer_ms"),
        transfer: get.time("transfer_ms"),
        ring_packets: get.0.count("ring_packets").map(narrow),
    })
}

/// One direction of a NAT or a firewall; only the outward direction has the timer.
pub(super) fn middlebox(kind: MiddleboxKind, direction: Direction, get: &Get<'_>) -> StageConfig {
    let side = if is_outward(direction) {
        MiddleboxSide::Outward(MiddleboxTimer {
            timeout: get.time("timeout_s"),
            inward_refreshes: get.flag("inward_refreshes"),
        })
    } else {
        MiddleboxSide::Inward
    };
    StageConfig::Middlebox(MiddleboxConfig { kind, side })
}

pub(super) fn tunnel_end(kind: StageKind, get: &Get<'_>) -> StageConfig {
    match get.chosen() {
        TunnelSide::Leave => return StageConfig::Tunnel(TunnelEnd::Leave),
        TunnelSide::Enter => {}
    }
    let mtu = |name| get.0.count(name).map(narrow);
    let (protocol, mtu) = match kind {
        StageKind::Vpn => {
            (TunnelProtocol::WireGuard { device_mtu: mtu("mtu_bytes") }, mtu("outer_mtu_bytes"))
        }
        _ => {
            let pdu_session_container = get.flag("pdu_session_container");
            (TunnelProtocol::Gtpu { pdu_session_container }, mtu("mtu_bytes"))
        }
    };
    StageConfig::Tunnel(TunnelEnd::Enter(TunnelConfig {
        outer_ip: match get.chosen() {
            OuterHeader::Ipv6 => OuterIp::V6,
            OuterHeader::Ipv4 => OuterIp::V4,
        },
        protocol,
        mtu,
        too_big: match get.0.chosen() {
            Some(TooBigPacket::Drop) => TooBig::Drop,
            // Without an MTU no packet is too big.
            Some(TooBigPacket::Fragment) | None => TooBig::Fragment,
        },
    }))
}

pub(super) fn offload(get: &Get<'_>) -> StageConfig {
    StageConfig::Offload(OffloadConfig {
        fault: match get.chosen() {
            OffloadFaultKind::Checksum => OffloadFault::Checksum,
            OffloadFaultKind::Joined => {
                OffloadFault::Joined { window: get.time("join_ms"), mtu: get.narrow("mtu_bytes") }
            }
        },
        min_bytes: get.narrow("min_packet_bytes"),
    })
}

fn stalls(get: &Get<'_>) -> Stalls {
    match get.chosen() {
        StallTimes::AtIntervals => Stalls::Periodic {
            offset: Instant::ZERO + get.time("stall_offset_ms"),
            period: get.time("stall_period_ms"),
            duration: get.time("stall_ms"),
        },
        StallTimes::AtRandom => Stalls::Random {
            mean_between: get.time("stall_mean_between_ms"),
            duration: match get.chosen() {
                StallDistribution::Uniform => Distribution::Uniform { max: get.time("stall_ms") },
                StallDistribution::Exponential => {
                    Distribution::Exponential { mean: get.time("stall_ms") }
                }
            },
        },
        StallTimes::Never => Stalls::None,
    }
}

pub(super) fn server(get: &Get<'_>) -> StageConfig {
    let base = server_delay(get.chosen());
    StageConfig::Delay(DelayConfig { base, jitter: None })
}

/// The configuration that the drivers take, built from checked tables.
pub(super) fn core(core: &Core, radio: Option<&Radio>) -> CoreConfig {
    let get = Get(&core.fields);
    let (network, prefix) = network(get.text("pool")).expect("it was checked");
    CoreConfig {
        subscribers: core.file.clone(),
        keys: core.keys.clone(),
        access: radio.and_then(|radio| radio.cell.variant).unwrap_or(AccessKind::Lte.text()),
        network,
        prefix,
        apn: get.text("apn").to_owned(),
        rrc_setup: get.time("rrc_setup_ms"),
        attach: get.time("attach_ms"),
        session: get.time("session_ms"),
        usims: radio
            .map_or(&[][..], |radio| &radio.ues)
            .iter()
            .map(|ue| usim(&ue.fields))
            .collect(),
    }
}

fn usim(ue: &Fields) -> Usim {
    let secret = |key| ue.text(key).map(str::to_lowercase);
    Usim {
        imsi: Get(ue).text("imsi").to_owned(),
        key: secret("key"),
        opc: secret("opc"),
        apn: ue.text("apn").map(str::to_owned),
    }
}
