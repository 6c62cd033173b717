//! Tunnels and hops that packets do not fit through, and offload that joins segments or breaks
//! checksums.

use airpath_base::Direction;
use airpath_path::{
    OffloadConfig, OffloadFault, StageConfig, TooBig, TunnelConfig, TunnelEnd, TunnelProtocol,
};
use airpath_quic::HEADER_BYTES;
use airpath_scenario::{NamedStage, Traffic};

use crate::candidate::Candidate;
use crate::cause::Cause;
use crate::evidence::Evidence;
use crate::observed::Observed;
use crate::subject::Subject;
use crate::text::{Count, Ms};

/// Name of the reason for which stages drop packets that do not fit.
const TOO_BIG: &str = "too_big";
/// An MTU in bytes that every packet fits.
const ENOUGH: u32 = 9000;

pub(super) fn add(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    for stages in [&observed.scenario.down, &observed.scenario.up] {
        let mut around: Option<&TunnelConfig> = None;
        for stage in stages {
            match &stage.stage {
                StageConfig::Tunnel(TunnelEnd::Enter(tunnel)) => {
                    around = Some(tunnel);
                    match tunnel.protocol {
                        TunnelProtocol::Gtpu { .. } => gtpu(observed, stage, tunnel, all),
                        TunnelProtocol::WireGuard { device_mtu } => {
                            vpn(observed, stage, tunnel, device_mtu, all);
                        }
                    }
                }
                StageConfig::Tunnel(TunnelEnd::Leave) => around = None,
                StageConfig::Mtu { bytes } => hop(observed, stage, *bytes, around, all),
                StageConfig::Offload(config) => offload(observed, stage, config, all),
                _ => {}
            }
        }
    }
    overhead(observed, all);
}

/// Adds a GTP-U tunnel that drops or fragments packets.
fn gtpu(
    observed: &Observed<'_>,
    stage: &NamedStage,
    tunnel: &TunnelConfig,
    all: &mut Vec<Candidate>,
) {
    let Some(mtu) = tunnel.mtu else { return };
    let cause = match tunnel.too_big {
        TooBig::Drop if observed.dropped(&stage.name, TOO_BIG) == 0 => return,
        TooBig::Drop => Cause::Mtu,
        TooBig::Fragment => Cause::Fragmentation,
    };
    let evidence = vec![Evidence::OuterMtuOf { stage: stage.id, mtu: Count(f64::from(mtu)) }];
    let removal = vec![stage.id.key().set("mtu_bytes", ENOUGH)];
    all.push(Candidate::new(cause, Subject::Stage(stage.id), evidence, vec![removal]));
}

/// Adds a VPN that drops or fragments packets, because the MTU of its device or of the path outside
/// is too small for them.
fn vpn(
    observed: &Observed<'_>,
    stage: &NamedStage,
    tunnel: &TunnelConfig,
    device_mtu: Option<u32>,
    all: &mut Vec<Candidate>,
) {
    let sent = largest_sent(observed, stage.id.direction);
    let fits = tunnel.mtu.is_none_or(|mtu| sent <= tunnel.largest_packet(mtu));
    let dropped = observed.dropped(&stage.name, TOO_BIG);
    if fits && dropped == 0 {
        return;
    }
    let (bytes, packet) = (tunnel.overhead(sent), Count(f64::from(sent)));
    let mut evidence = vec![Evidence::AddsHeaders { stage: stage.id, bytes, packet }];
    let mut edits = Vec::new();
    if let Some(mtu) = device_mtu {
        evidence.push(Evidence::DeviceMtu { mtu: Count(f64::from(mtu)) });
        edits.push(stage.id.key().set("mtu_bytes", ENOUGH));
    }
    if let Some(mtu) = tunnel.mtu {
        evidence.push(Evidence::OuterMtu { mtu: Count(f64::from(mtu)) });
        edits.push(stage.id.key().set("outer_mtu_bytes", ENOUGH));
    }
    evidence.push(match dropped {
        0 => Evidence::Fragmented {},
        _ => Evidence::Dropped { dropped: observed.lost_by(&[stage.id], &[TOO_BIG]) },
    });
    all.push(Candidate::new(Cause::Vpn, Subject::Stage(stage.id), evidence, vec![edits]));
}

/// Adds a hop that drops packets larger than its MTU. Inside a VPN, the VPN is the cause if packets fit
/// without its headers.
fn hop(
    observed: &Observed<'_>,
    stage: &NamedStage,
    bytes: u32,
    around: Option<&TunnelConfig>,
    all: &mut Vec<Candidate>,
) {
    if observed.dropped(&stage.name, TOO_BIG) == 0 {
        return;
    }
    let dropped = observed.lost_by(&[stage.id], &[TOO_BIG]);
    let mut evidence = vec![Evidence::TooLarge { stage: stage.id, dropped, mtu: bytes }];
    let sent = largest_sent(observed, stage.id.direction);
    let is_vpn = |tunnel: &&TunnelConfig| {
        sent <= bytes && matches!(tunnel.protocol, TunnelProtocol::WireGuard { .. })
    };
    let cause = match around.filter(is_vpn) {
        Some(tunnel) => {
            evidence.push(Evidence::VpnAdds { bytes: tunnel.overhead(sent) });
            Cause::Vpn
        }
        None => Cause::Mtu,
    };
    let removals = vec![vec![stage.id.key().set("enabled", false)]];
    all.push(Candidate::new(cause, Subject::Stage(stage.id), evidence, removals));
}

fn offload(
    observed: &Observed<'_>,
    stage: &NamedStage,
    config: &OffloadConfig,
    all: &mut Vec<Candidate>,
) {
    let of = |reason| match observed.dropped(&stage.name, reason) {
        0 => None,
        _ => Some(observed.lost_by(&[stage.id], &[reason])),
    };
    let evidence = match config.fault {
        OffloadFault::Checksum => of("checksum").map(|lost| {
            let min_bytes = config.min_bytes;
            Evidence::WrongChecksums { stage: stage.id, lost, min_bytes }
        }),
        OffloadFault::Joined { window, mtu } => of(TOO_BIG).map(|lost| {
            let (within, mtu) = (Ms(window.as_millis_f64()), Count(f64::from(mtu)));
            Evidence::Joined { stage: stage.id, within, mtu, lost }
        }),
    };
    let Some(evidence) = evidence else { return };
    let removals = vec![vec![stage.id.key().set("enabled", false)]];
    let subject = Subject::Stage(stage.id);
    all.push(Candidate::new(Cause::Offload, subject, vec![evidence], removals));
}

/// Adds VPNs through which all packets fit, because of the bytes that their headers take.
fn overhead(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let vpns = || observed.stages().filter(|stage| stage.id.kind == "vpn");
    let enters = vpns().find_map(|stage| match &stage.stage {
        StageConfig::Tunnel(TunnelEnd::Enter(tunnel)) => Some((stage, tunnel)),
        _ => None,
    });
    let Some((stage, tunnel)) = enters else { return };
    if all.iter().any(|candidate| candidate.cause == Cause::Vpn) {
        return;
    }
    let sent = largest_sent(observed, stage.id.direction);
    let (bytes, packet) = (tunnel.overhead(sent), Count(f64::from(sent)));
    let evidence = vec![Evidence::VpnHeaders { bytes, packet }];
    let off = vpns().map(|stage| stage.id.key().set("enabled", false)).collect();
    all.push(Candidate::new(Cause::Vpn, Subject::Stage(stage.id), evidence, vec![off]));
}

/// Bytes of the largest packet that flows send in a direction.
fn largest_sent(observed: &Observed<'_>, direction: Direction) -> u32 {
    let of = observed.scenario.flows.iter().filter_map(|flow| {
        let ours = flow.direction == direction;
        match &flow.traffic {
            Traffic::Bulk { tcp, .. } | Traffic::File { tcp, .. } => {
                Some(tcp.sender.header + if ours { tcp.sender.mss } else { 0 })
            }
            Traffic::Udp { packet_bytes, .. } => ours.then_some(*packet_bytes),
            Traffic::Quic { quic, .. } => {
                ours.then_some(u32::from(quic.max_mtu.max(quic.initial_mtu)) + HEADER_BYTES)
            }
            // A reply is as large as its request.
            Traffic::Ping { packet_bytes, .. } => Some(*packet_bytes),
        }
    });
    of.max().unwrap_or(0)
}
