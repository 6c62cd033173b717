//! Tunnels and hops that packets do not fit through, and offload that joins segments or breaks
//! checksums.

use airpath_path::{
    OffloadConfig, OffloadFault, StageConfig, TooBig, TunnelConfig, TunnelEnd, TunnelProtocol,
};
use airpath_scenario::{NamedStage, Traffic};

use super::{count, ms, set};
use crate::candidate::Candidate;
use crate::cause::Cause;
use crate::observed::{Observed, direction_name, direction_of, path_of};

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
    let evidence = format!(
        "Outer packets of {} may be at most {} bytes long.",
        stage.name,
        count(f64::from(mtu))
    );
    all.push(Candidate {
        cause,
        subject: stage.name.clone(),
        evidence,
        removals: vec![vec![set(format!("{}.mtu_bytes", path_of(&stage.name)), ENOUGH)]],
    });
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
    let sent = largest_sent(observed, direction_of(&stage.name));
    let fits = tunnel.mtu.is_none_or(|mtu| sent <= tunnel.largest_packet(mtu));
    let dropped = observed.dropped(&stage.name, TOO_BIG);
    if fits && dropped == 0 {
        return;
    }
    let mut said = vec![format!(
        "{} adds {} bytes to a packet of {}.",
        stage.name,
        tunnel.overhead(sent),
        count(f64::from(sent))
    )];
    let mut sets = Vec::new();
    let mut limit = |key: &str, what: &str, mtu: Option<u32>| {
        let Some(mtu) = mtu else { return };
        said.push(format!("{what} may be at most {} bytes long.", count(f64::from(mtu))));
        sets.push(set(format!("{}.{key}", path_of(&stage.name)), ENOUGH));
    };
    limit("mtu_bytes", "Packets that enter its device", device_mtu);
    limit("outer_mtu_bytes", "Outer packets", tunnel.mtu);
    said.push(match dropped {
        0 => "Larger ones are fragmented, and each is lost if any of its fragments is.".to_owned(),
        _ => format!("It dropped {}.", observed.lost_by(&[&stage.name], &[TOO_BIG])),
    });
    let (subject, evidence) = (stage.name.clone(), said.join(" "));
    all.push(Candidate { cause: Cause::Vpn, subject, evidence, removals: vec![sets] });
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
    let lost = observed.lost_by(&[&stage.name], &[TOO_BIG]);
    let mut evidence = format!("{} dropped {lost}, each larger than {bytes} bytes.", stage.name);
    let sent = largest_sent(observed, direction_of(&stage.name));
    let is_vpn = |tunnel: &&TunnelConfig| {
        sent <= bytes && matches!(tunnel.protocol, TunnelProtocol::WireGuard { .. })
    };
    let cause = match around.filter(is_vpn) {
        Some(tunnel) => {
            evidence += &format!(" The VPN adds {} bytes to a packet.", tunnel.overhead(sent));
            Cause::Vpn
        }
        None => Cause::Mtu,
    };
    let removals = vec![vec![set(format!("{}.enabled", path_of(&stage.name)), false)]];
    all.push(Candidate { cause, subject: stage.name.clone(), evidence, removals });
}

fn offload(
    observed: &Observed<'_>,
    stage: &NamedStage,
    config: &OffloadConfig,
    all: &mut Vec<Candidate>,
) {
    let name = &stage.name;
    let of = |reason| match observed.dropped(name, reason) {
        0 => None,
        _ => Some(observed.lost_by(&[name], &[reason])),
    };
    let evidence = match config.fault {
        OffloadFault::Checksum => of("checksum").map(|lost| {
            format!(
                "{name} wrote wrong checksums into {lost}, which the receiver discarded (TcpInCsumErrors of \
                 nstat); packets of less than {} bytes pass.",
                config.min_bytes
            )
        }),
        OffloadFault::Joined { window, mtu } => of(TOO_BIG).map(|lost| {
            format!(
                "{name} joined segments that arrived within {} into packets larger than the next hop's MTU of {} \
                 bytes, which dropped {lost}.",
                ms(window.as_millis_f64()),
                count(f64::from(mtu))
            )
        }),
    };
    let Some(evidence) = evidence else { return };
    let removals = vec![vec![set(format!("{}.enabled", path_of(name)), false)]];
    all.push(Candidate { cause: Cause::Offload, subject: name.clone(), evidence, removals });
}

/// Adds VPNs through which all packets fit, because of the bytes that their headers take.
fn overhead(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let vpns = || observed.stages().into_iter().filter(|(_, stage)| stage.name.ends_with(".vpn"));
    let enters = vpns().find_map(|(_, stage)| match &stage.stage {
        StageConfig::Tunnel(TunnelEnd::Enter(tunnel)) => Some((stage, tunnel)),
        _ => None,
    });
    let Some((stage, tunnel)) = enters else { return };
    if all.iter().any(|candidate| candidate.cause == Cause::Vpn) {
        return;
    }
    let sent = largest_sent(observed, direction_of(&stage.name));
    all.push(Candidate {
        cause: Cause::Vpn,
        subject: stage.name.clone(),
        evidence: format!(
            "The VPN adds {} bytes to a packet of {}.",
            tunnel.overhead(sent),
            count(f64::from(sent))
        ),
        removals: vec![vpns().map(|(path, _)| set(format!("{path}.enabled"), false)).collect()],
    });
}

/// Bytes of the largest packet that flows send in a direction.
fn largest_sent(observed: &Observed<'_>, direction: &str) -> u32 {
    let of = observed.scenario.flows.iter().filter_map(|flow| {
        let ours = direction_name(flow.direction) == direction;
        match &flow.traffic {
            Traffic::Bulk { tcp, .. } | Traffic::File { tcp, .. } => {
                Some(tcp.sender.header + if ours { tcp.sender.mss } else { 0 })
            }
            Traffic::Udp { packet_bytes, .. } => ours.then_some(*packet_bytes),
            // A reply is as large as its request.
            Traffic::Ping { packet_bytes, .. } => Some(*packet_bytes),
        }
    });
    of.max().unwrap_or(0)
}
