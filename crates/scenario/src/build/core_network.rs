//! Stages of the core network and beyond.

use airpath_base::{Duration, Instant};
use airpath_path::{
    DelayConfig, Distribution, Excess, GateConfig, GateKind, GateSide, GateTimer, GtpuConfig,
    HostConfig, OuterIp, PolicerConfig, StageConfig, Stalls, TooBig, TunnelEnd,
};

use super::Get;
use crate::pairs::is_outward;
use crate::spec::PLACES;

pub(super) fn stage_config(direction: &str, get: &Get<'_>) -> StageConfig {
    match get.variant() {
        "policer" => StageConfig::Policer(PolicerConfig {
            rate: get.rate("rate_mbps"),
            burst: get.count("burst_bytes"),
            excess: match get.text("excess") {
                "mark" => Excess::Mark,
                _ => Excess::Drop,
            },
        }),
        "gtpu" => StageConfig::Gtpu(tunnel_end(get)),
        "mtu" => StageConfig::Mtu { bytes: get.narrow("mtu_bytes") },
        "host" => StageConfig::Host(HostConfig {
            stalls: stalls(get),
            processing: get.time("processing_ms"),
            coalescing: get.time("coalescing_ms"),
            ring_packets: get.0.count("ring_packets").map(super::narrow),
            cpu: get.0.text("cpu").map(str::to_owned),
        }),
        "server" => StageConfig::Delay(DelayConfig { base: place(get), jitter: None }),
        kind => StageConfig::Gate(GateConfig {
            kind: if kind == "nat" { GateKind::Nat } else { GateKind::Firewall },
            side: if is_outward(direction) {
                GateSide::Outward(GateTimer {
                    timeout: get.time("timeout_s"),
                    inward_refreshes: get.flag("inward_refreshes"),
                })
            } else {
                GateSide::Inward
            },
        }),
    }
}

fn tunnel_end(get: &Get<'_>) -> TunnelEnd {
    if get.text("end") == "leave" {
        return TunnelEnd::Leave;
    }
    TunnelEnd::Enter(GtpuConfig {
        outer_ip: match get.text("outer_ip") {
            "ipv6" => OuterIp::V6,
            _ => OuterIp::V4,
        },
        pdu_session_container: get.flag("pdu_session_container"),
        mtu: get.0.count("mtu_bytes").map(super::narrow),
        too_big: match get.0.text("too_big") {
            Some("drop") => TooBig::Drop,
            _ => TooBig::Fragment,
        },
    })
}

fn stalls(get: &Get<'_>) -> Stalls {
    match get.text("stalls") {
        "at-intervals" => Stalls::Periodic {
            offset: Instant::ZERO + get.time("stall_offset_ms"),
            period: get.time("stall_period_ms"),
            duration: get.time("stall_ms"),
        },
        "at-random" => Stalls::Random {
            mean_between: get.time("stall_mean_between_ms"),
            duration: match get.text("stall_distribution") {
                "uniform" => Distribution::Uniform { max: get.time("stall_ms") },
                _ => Distribution::Exponential { mean: get.time("stall_ms") },
            },
        },
        _ => Stalls::None,
    }
}

fn place(get: &Get<'_>) -> Duration {
    let name = get.text("place");
    let place = PLACES.iter().find(|place| place.0 == name);
    let delay = place.expect("every choice has its delay");
    Duration::from_micros(delay.1)
}
