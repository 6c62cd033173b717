//! Cures of packets that do not fit, or that offload breaks.

use std::collections::BTreeSet;

use airpath_path::{OffloadFault, StageConfig, TunnelConfig, TunnelEnd, TunnelProtocol};
use airpath_scenario::{Scenario, Traffic};
use airpath_tcp::EndpointConfig;

use super::Cure;
use crate::causes::set;
use crate::observed::{Observed, direction_name, direction_of, path_of};

/// Limits IP packets to `packet` bytes for a stage that drops or fragments larger ones. Flows in the
/// other direction, and those whose packets pass already, stay as they are.
pub(super) fn clamped(observed: &Observed<'_>, stage: &str, packet: u32) -> Option<Cure> {
    let direction = direction_of(stage);
    let mut sets: Vec<String> = Vec::new();
    let mut options: BTreeSet<u32> = BTreeSet::new();
    let mut datagrams = false;
    let mut segments_of = |path: String, end: &EndpointConfig| {
        let mss = packet.saturating_sub(end.header);
        if (1..end.mss).contains(&mss) {
            sets.push(set(format!("{path}.mss_bytes"), mss));
            // The option does not account for other options (RFC 6691).
            options.insert(mss + if end.timestamps { TIMESTAMPS } else { 0 });
        }
    };
    for (flow, tcp) in observed.tcp_flows() {
        if direction_name(flow.direction) == direction {
            segments_of(format!("flow.{}", flow.index), &tcp.sender);
        }
    }
    if let Some(proxy) = &observed.scenario.proxy {
        let ends = if direction == "down" { &proxy.down } else { &proxy.up };
        segments_of(path_of(&ends.name), &ends.endpoint);
    }
    for flow in &observed.scenario.flows {
        // A reply to a ping is as large as its request.
        let passes = match flow.traffic {
            Traffic::Udp { packet_bytes, .. } if direction_name(flow.direction) == direction => {
                packet_bytes <= packet
            }
            Traffic::Ping { packet_bytes, .. } => packet_bytes <= packet,
            _ => true,
        };
        if !passes {
            sets.push(set(format!("flow.{}.packet_bytes", flow.index), packet));
            datagrams = true;
        }
    }
    sets.dedup();
    let segments = options.first().map(|option| {
        format!("clamp the MSS to {option} bytes (nft … tcp option maxseg size set {option})")
    });
    let datagrams =
        datagrams.then(|| format!("limit datagrams to {packet} bytes including IP headers"));
    let what: Vec<String> = segments.into_iter().chain(datagrams).collect();
    (!what.is_empty()).then(|| Cure {
        advice: format!("Send smaller packets: {}.", what.join(", and ")),
        alternatives: vec![sets],
    })
}

/// Sets an MTU of the VPN's device with which no packet is fragmented or dropped. The MTU also bounds
/// the padding, so packets may use all of the room.
pub(super) fn vpn(observed: &Observed<'_>, stage: &str) -> Option<Cure> {
    let room = |tunnel: &TunnelConfig, outer: u32| outer.saturating_sub(tunnel.overhead(0));
    let mtu = largest_packet(observed, stage, room)?;
    let Cure { mut alternatives, .. } = clamped(observed, stage, mtu)?;
    for (path, one) in observed.stages() {
        if let StageConfig::Tunnel(TunnelEnd::Enter(tunnel)) = &one.stage
            && let TunnelProtocol::WireGuard { device_mtu } = tunnel.protocol
            && direction_of(&one.name) == direction_of(stage)
            && device_mtu != Some(mtu)
        {
            let own = set(format!("{path}.mtu_bytes"), mtu);
            alternatives.iter_mut().for_each(|sets| sets.push(own.clone()));
        }
    }
    Some(Cure {
        advice: format!(
            "Set the MTU of the VPN's device to {mtu} bytes at both ends (ip link set mtu {mtu} dev wg0), and clamp \
             the MSS to it where hosts behind the VPN send (nft … tcp option maxseg size set rt mtu)."
        ),
        alternatives,
    })
}

pub(super) fn offload(observed: &Observed<'_>, stage: &str) -> String {
    let joins = observed.stages().into_iter().any(|(_, one)| match &one.stage {
        StageConfig::Offload(offload) if one.name == stage => {
            matches!(offload.fault, OffloadFault::Joined { .. })
        }
        _ => false,
    });
    match joins {
        true => format!(
            "Switch GRO and LRO off on the card from which {stage} receives (ethtool -K eth0 gro off lro off)."
        ),
        false => format!(
            "Have the kernel compute the checksums of {stage} (ethtool -K uesimtun0 tx-checksum-ip-generic off)."
        ),
    }
}

/// Bytes of the timestamps option in each segment, padded (RFC 7323 A).
const TIMESTAMPS: u32 = 12;

/// The largest IP packet of a stage's direction that passes every MTU on its way unfragmented, with
/// the headers of its tunnels; `None` if every packet does. `inner` returns the largest packet that
/// fits into an outer packet of a size.
pub(super) fn largest_packet(
    observed: &Observed<'_>,
    stage: &str,
    inner: impl Fn(&TunnelConfig, u32) -> u32,
) -> Option<u32> {
    let Scenario { down, up, .. } = observed.scenario;
    let stages = if direction_of(stage) == "down" { down } else { up };
    let mut around: Option<&TunnelConfig> = None;
    let mut largest: Option<u32> = None;
    for one in stages {
        let outer = match &one.stage {
            StageConfig::Tunnel(TunnelEnd::Enter(tunnel)) => {
                around = Some(tunnel);
                if let TunnelProtocol::WireGuard { device_mtu } = tunnel.protocol {
                    largest = largest.into_iter().chain(device_mtu).min();
                }
                tunnel.mtu
            }
            StageConfig::Tunnel(TunnelEnd::Leave) => {
                around = None;
                None
            }
            StageConfig::Mtu { bytes } => Some(*bytes),
            _ => None,
        };
        let fits = |outer| around.map_or(outer, |tunnel| inner(tunnel, outer));
        largest = largest.into_iter().chain(outer.map(fits)).min();
    }
    largest
}
