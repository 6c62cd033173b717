//! Hosts on the path that forward packets in software, and drivers of modems.

use airpath_base::Duration;
use airpath_path::{Distribution, HostConfig, ModemConfig, StageConfig, Stalls};
use airpath_scenario::NamedStage;

use super::path::PACKET;
use super::{count, ms, set};
use crate::candidate::Candidate;
use crate::cause::Cause;
use crate::observed::{Observed, direction_of};

pub(super) fn add(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let hosts: Vec<(String, &NamedStage, &HostConfig)> = (observed.stages().into_iter())
        .filter_map(|(path, stage)| match &stage.stage {
            StageConfig::Host(host) => Some((path, stage, host)),
            _ => None,
        })
        .collect();
    let modems: Vec<(String, &NamedStage, &ModemConfig)> = (observed.stages().into_iter())
        .filter_map(|(path, stage)| match &stage.stage {
            StageConfig::Modem(modem) => Some((path, stage, modem)),
            _ => None,
        })
        .collect();
    stalls(observed, &hosts, all);
    moderation(observed, &hosts, all);
    timers(observed, &modems, all);
    for (path, stage, host) in &hosts {
        ring(observed, path, stage, (host.ring_packets, longest_stall_ms(host)), all);
    }
    for (path, stage, modem) in &modems {
        ring(observed, path, stage, (modem.ring_packets, modem.timer.as_millis_f64()), all);
        transfers(observed, path, stage, modem, all);
    }
    for (at, (_, stage, host)) in hosts.iter().enumerate() {
        let same = |(_, _, other): &&(String, &NamedStage, &HostConfig)| {
            host.cpu.is_some() && other.cpu == host.cpu
        };
        // A CPU is tried once, in all of its stages.
        if hosts[..at].iter().any(|one| same(&one)) {
            continue;
        }
        let others = hosts[at + 1..].iter().filter(same).collect::<Vec<_>>();
        processor(observed, (&hosts[at].0, stage, host), &others, all);
    }
}

/// Length in ms of stalls that have no effect. `stalls = "never"` would be refused together with the
/// other keys of stalls.
const NO_STALL: &str = "0.001";

/// Adds all stalling hosts as one candidate: they are on one machine.
fn stalls(
    observed: &Observed<'_>,
    hosts: &[(String, &NamedStage, &HostConfig)],
    all: &mut Vec<Candidate>,
) {
    let stalling = || hosts.iter().filter(|(_, _, host)| host.stalls != Stalls::None);
    let Some((_, first, _)) = stalling().next() else { return };
    let lost: u64 = stalling().map(|(_, one, _)| observed.dropped(&one.name, "ring_full")).sum();
    all.push(Candidate {
        cause: Cause::StallingHost,
        subject: first.name.clone(),
        evidence: format!(
            "The host of {} stalls now and then; its ring dropped {} packets.",
            first.name,
            count(lost as f64)
        ),
        removals: vec![
            stalling().map(|(path, _, _)| set(format!("{path}.stall_ms"), NO_STALL)).collect(),
        ],
    });
}

/// A ring that overflowed is enlarged at least by this factor.
const LONGER_RING: u64 = 16;

/// Adds a ring that overflowed. `holds` is the number of packets that it holds, and the longest time
/// in ms for which nothing empties it.
fn ring(
    observed: &Observed<'_>,
    path: &str,
    stage: &NamedStage,
    holds: (Option<u32>, f64),
    all: &mut Vec<Candidate>,
) {
    let full = observed.dropped(&stage.name, "ring_full");
    let (Some(ring), pause_ms) = holds else { return };
    if full == 0 {
        return;
    }
    // What the path holds, plus what arrives during a stall.
    let direction = if direction_of(&stage.name) == "up" { "up" } else { "down" };
    let rate_mbps = observed.bottleneck(direction).map_or(0.0, |link| link.capacity_mbps);
    let lasts_ms = observed.base_rtt_ms().unwrap_or(100.0) + pause_ms;
    let held = 2.0 * rate_mbps * 1e3 / 8.0 * lasts_ms / PACKET;
    let longer = (u64::from(ring) * LONGER_RING).max(held as u64);
    all.push(Candidate {
        cause: Cause::ReceiveRing,
        subject: stage.name.clone(),
        evidence: format!(
            "The receive ring of {} holds {} packets; it was full and dropped {}.",
            stage.name,
            count(f64::from(ring)),
            observed.lost_by(&[&stage.name], &["ring_full"])
        ),
        removals: vec![vec![set(format!("{path}.ring_packets"), ring_size(longer))]],
    });
}

/// The size of a ring for this many packets: a power of two.
pub(crate) fn ring_size(packets: u64) -> u64 {
    packets.clamp(64, 1 << 31).next_power_of_two()
}

/// Length in ms that few stalls exceed.
fn longest_stall_ms(host: &HostConfig) -> f64 {
    match host.stalls {
        Stalls::None => 0.0,
        Stalls::Periodic { duration, .. } => duration.as_millis_f64(),
        Stalls::Random { duration, .. } => match duration {
            Distribution::Exponential { mean } => 3.0 * mean.as_millis_f64(),
            Distribution::Uniform { max } => max.as_millis_f64(),
            Distribution::HalfNormal { sd } => 3.0 * sd.as_millis_f64(),
        },
    }
}

/// Adds a processor that limits packets per second, whatever their size. `others` are the other
/// stages that share it.
fn processor(
    observed: &Observed<'_>,
    (path, stage, host): (&str, &NamedStage, &HostConfig),
    others: &[&(String, &NamedStage, &HostConfig)],
    all: &mut Vec<Candidate>,
) {
    let times = others.iter().map(|(_, _, other)| other.processing);
    let each_s = times.fold(host.processing, Duration::max).as_secs_f64();
    let stages: Vec<_> =
        [stage].into_iter().chain(others.iter().map(|(_, stage, _)| *stage)).collect();
    if !limits(observed, &stages, each_s, each_s) {
        return;
    }
    let removal = others.iter().map(|(path, _, _)| path.as_str());
    let removal: Vec<String> = std::iter::once(path)
        .chain(removal)
        .map(|path| set(format!("{path}.processing_ms"), 0))
        .collect();
    let together = if others.is_empty() { "" } else { " of both directions together" };
    all.push(Candidate {
        cause: Cause::HostProcessor,
        subject: stage.name.clone(),
        evidence: format!(
            "The processor of {} takes {} per packet, so it forwards at most {} packets per second{together}.{}{}",
            stage.name,
            ms(1e3 * each_s),
            count(1.0 / each_s),
            sent(observed, &stages),
            ring_dropped(observed, stage),
        ),
        removals: vec![removal],
    });
}

/// A processor or bus that is busy for less than this fraction of the time is not a limit. The fraction
/// is far below 1: TCP uses three quarters of a limit (Reno without a queue, RFC 5681 3.1), and flows
/// pause.
const LEAST_BUSY: f64 = 0.25;

/// The time that a single packet takes does not matter below this fraction of the RTT.
const LEAST_TIME: f64 = 0.1;

/// Whether stages can limit the packets that reached them: by load, where each packet takes `each_s`,
/// or by delay, where a lone packet takes `lone_s`.
fn limits(observed: &Observed<'_>, stages: &[&NamedStage], each_s: f64, lone_s: f64) -> bool {
    each_s > 0.0
        && (packets_per_s(observed, stages) * each_s >= LEAST_BUSY
            || 1e3 * lone_s >= LEAST_TIME * observed.base_rtt_ms().unwrap_or(0.0))
}

/// Packets per second that reached these stages, not counting acknowledgements.
fn packets_per_s(observed: &Observed<'_>, stages: &[&NamedStage]) -> f64 {
    stages.iter().filter_map(|stage| observed.packets_per_s(direction_of(&stage.name))).sum()
}

/// A sentence about the packets that reached these stages, or an empty one.
fn sent(observed: &Observed<'_>, stages: &[&NamedStage]) -> String {
    let packets = packets_per_s(observed, stages);
    if packets <= 0.0 {
        return String::new();
    }
    format!(" Flows sent it {} packets per second, not counting acknowledgements.", count(packets))
}

/// A sentence about the packets that the ring of a stage dropped, or an empty one.
fn ring_dropped(observed: &Observed<'_>, stage: &NamedStage) -> String {
    match observed.dropped(&stage.name, "ring_full") {
        0 => String::new(),
        _ => format!(" Its ring dropped {}.", observed.lost_by(&[&stage.name], &["ring_full"])),
    }
}

/// Adds the interrupt moderation of all network cards as one candidate, named after the card with the
/// longest delay.
fn moderation(
    observed: &Observed<'_>,
    hosts: &[(String, &NamedStage, &HostConfig)],
    all: &mut Vec<Candidate>,
) {
    let moderated = || hosts.iter().filter(|(_, _, host)| host.coalescing > Duration::ZERO);
    if !matters(observed, moderated().map(|(_, _, host)| host.coalescing)) {
        return;
    }
    let Some((_, stage, host)) = moderated().rev().max_by_key(|(_, _, host)| host.coalescing)
    else {
        return;
    };
    let packets =
        observed.packets_per_s(direction_of(&stage.name)).map_or_else(String::new, |packets| {
            format!(
                " At {} packets per second that is {:.1} packets per interrupt.",
                count(packets),
                1.0 + packets * host.coalescing.as_secs_f64()
            )
        });
    all.push(Candidate {
        cause: Cause::InterruptModeration,
        subject: stage.name.clone(),
        evidence: format!(
            "The network card of {} delays an interrupt by {} (rx-usecs {}).{packets}",
            stage.name,
            ms(host.coalescing.as_millis_f64()),
            count(1e6 * host.coalescing.as_secs_f64()),
        ),
        removals: vec![
            moderated().map(|(path, _, _)| set(format!("{path}.coalescing_ms"), 0)).collect(),
        ],
    });
}

/// Delays that together are shorter than this fraction of the RTT are not worth a run.
const LEAST_DELAY: f64 = 0.02;

fn matters(observed: &Observed<'_>, delays: impl Iterator<Item = Duration>) -> bool {
    let sum_ms: f64 = delays.map(|delay| delay.as_millis_f64()).sum();
    sum_ms > LEAST_DELAY * observed.base_rtt_ms().unwrap_or(0.0)
}

/// Adds the aggregation timers of all modems as one candidate, named after the modem with the longest
/// timer.
fn timers(
    observed: &Observed<'_>,
    modems: &[(String, &NamedStage, &ModemConfig)],
    all: &mut Vec<Candidate>,
) {
    let waiting = || modems.iter().filter(|(_, _, modem)| modem.timer > Duration::ZERO);
    if !matters(observed, waiting().map(|(_, _, modem)| modem.timer)) {
        return;
    }
    let Some((_, stage, modem)) = waiting().rev().max_by_key(|(_, _, modem)| modem.timer) else {
        return;
    };
    let packets =
        observed.packets_per_s(direction_of(&stage.name)).map_or_else(String::new, |packets| {
            let block = (1.0 + packets * modem.timer.as_secs_f64()).min(block_packets(modem));
            format!(
                " At {} packets per second that is {block:.1} packets per block.",
                count(packets)
            )
        });
    all.push(Candidate {
        cause: Cause::AggregationTimer,
        subject: stage.name.clone(),
        evidence: format!(
            "The driver of {} holds a packet back for up to {} to fill a block.{packets}",
            stage.name,
            ms(modem.timer.as_millis_f64()),
        ),
        removals: vec![waiting().map(|(path, _, _)| set(format!("{path}.timer_ms"), 0)).collect()],
    });
}

/// The most packets of [`PACKET`] bytes that a block carries.
fn block_packets(modem: &ModemConfig) -> f64 {
    (f64::from(modem.block_bytes) / PACKET).floor().clamp(1.0, f64::from(modem.block_packets))
}

/// Adds a bus that limits transfers per second, whatever their size.
fn transfers(
    observed: &Observed<'_>,
    path: &str,
    stage: &NamedStage,
    modem: &ModemConfig,
    all: &mut Vec<Candidate>,
) {
    let (each_s, most) = (modem.transfer.as_secs_f64(), block_packets(modem));
    if !limits(observed, &[stage], each_s / most, each_s) {
        return;
    }
    all.push(Candidate {
        cause: Cause::ModemCeiling,
        subject: stage.name.clone(),
        evidence: format!(
            "A transfer of {} takes {} and carries {} packets of {PACKET} bytes, so at most {} packets per second \
             cross the bus.{}{}",
            stage.name,
            ms(1e3 * each_s),
            count(most),
            count(most / each_s),
            sent(observed, &[stage]),
            ring_dropped(observed, stage),
        ),
        removals: vec![vec![set(format!("{path}.transfer_ms"), 0)]],
    });
}
