//! Cures of packets that do not fit, or that offload breaks.

use std::collections::BTreeSet;

use airpath_base::Direction;
use airpath_path::{OffloadFault, StageConfig, TunnelConfig, TunnelEnd, TunnelProtocol};
use airpath_scenario::{Edit, KeyPath, Scenario, StageId, Traffic};
use airpath_tcp::EndpointConfig;

use super::Cure;
use crate::observed::Observed;

/// Limits IP packets to `packet` bytes for a stage that drops or fragments larger ones. Flows in the
/// other direction, and those whose packets pass already, stay as they are.
pub(super) fn clamped(observed: &Observed<'_>, stage: StageId, packet: u32) -> Option<Cure> {
    let direction = stage.direction;
    let mut edits: Vec<Edit> = Vec::new();
    let mut options: BTreeSet<u32> = BTreeSet::new();
    let mut datagrams = false;
    let mut segments_of = |key: KeyPath, end: &EndpointConfig| {
        let mss = packet.saturating_sub(end.header);
        if (1..end.mss).contains(&mss) {
            edits.push(key.set("mss_bytes", mss));
            // The option does not account for other options (RFC 6691).
            options.insert(mss + if end.timestamps { TIMESTAMPS } else { 0 });
        }
    };
    for (flow, tcp) in observed.tcp_flows() {
        if flow.direction == direction {
            segments_of(flow.key(), &tcp.sender);
        }
    }
    if let Some(proxy) = &observed.scenario.proxy {
        let ends = match direction {
            Direction::Downlink => &proxy.down,
            Direction::Uplink => &proxy.up,
        };
        segments_of(ends.id.key(), &ends.endpoint);
    }
    for flow in &observed.scenario.flows {
        // A reply to a ping is as large as its request.
        let passes = match flow.traffic {
            Traffic::Udp { packet_bytes, .. } if flow.direction == direction => {
                packet_bytes <= packet
            }
            Traffic::Ping { packet_bytes, .. } => packet_bytes <= packet,
            _ => true,
        };
        if !passes {
            edits.push(flow.key().set("packet_bytes", packet));
            datagrams = true;
        }
    }
    edits.dedup();
    let segments = options.first().map(|option| {
        format!("clamp the MSS to {option} bytes (nft … tcp option maxseg size set {option})")
    });
    let datagrams =
        datagrams.then(|| format!("limit datagrams to {packet} bytes including IP headers"));
    let what: Vec<String> = segments.into_iter().chain(datagrams).collect();
    (!what.is_empty()).then(|| Cure {
        advice: format!("Send smaller packets: {}.", what.join(", and ")),
        alternatives: vec![edits],
    })
}

/// Sets an MTU of the VPN's device with which no packet is fragmented or dropped. The MTU also bounds
/// the padding, so packets may use all of the room.
pub(super) fn vpn(observed: &Observed<'_>, stage: StageId) -> Option<Cure> {
    let room = |tunnel: &TunnelConfig, outer: u32| outer.saturating_sub(tunnel.overhead(0));
    let mtu = largest_packet(observed, stage, room)?;
    let Cure { mut alternatives, .. } = clamped(observed, stage, mtu)?;
    for one in observed.stages() {
        if let StageConfig::Tunnel(TunnelEnd::Enter(tunnel)) = &one.stage
            && let TunnelProtocol::WireGuard { device_mtu } = tunnel.protocol
            && one.id.direction == stage.direction
            && device_mtu != Some(mtu)
        {
            let own = one.id.key().set("mtu_bytes", mtu);
            alternatives.iter_mut().for_each(|edits| edits.push(own.clone()));
        }
    }
    Some(Cure {
        advice: format!(
            "Set the MTU of the VPN's device to {mtu} bytes at both ends (ip link set mtu {mtu} dev wg0). If other \
             hosts send through it, clamp their MSS at both ends (nft … tcp option maxseg size set rt mtu)."
        ),
        alternatives,
    })
}

pub(super) fn offload(observed: &Observed<'_>, stage: StageId) -> String {
    let joins = observed.stages().any(|one| match &one.stage {
        StageConfig::Offload(offload) if one.id == stage => {
            matches!(offload.fault, OffloadFault::Joined { .. })
        }
        _ => false,
    });
    match joins {
        true => format!(
            "Switch LRO and GRO off at the interface where this traffic enters {stage} (ethtool -K eth0 lro off gro \
             off)."
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
    stage: StageId,
    inner: impl Fn(&TunnelConfig, u32) -> u32,
) -> Option<u32> {
    let Scenario { down, up, .. } = observed.scenario;
    let stages = match stage.direction {
        Direction::Downlink => down,
        Direction::Uplink => up,
    };
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
