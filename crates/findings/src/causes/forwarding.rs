//! Hosts on the path that forward packets in software, and drivers of modems.

use airpath_base::Duration;
use airpath_path::{Distribution, HostConfig, ModemConfig, StageConfig, Stalls};
use airpath_scenario::{Edit, KeyPath, NamedStage};

use super::path::PACKET;
use crate::candidate::Candidate;
use crate::cause::Cause;
use crate::evidence::Evidence;
use crate::observed::Observed;
use crate::subject::Subject;
use crate::text::{Count, Ms};

type Host<'a> = (&'a NamedStage, &'a HostConfig);
type Modem<'a> = (&'a NamedStage, &'a ModemConfig);

pub(super) fn add(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let hosts: Vec<Host<'_>> = (observed.stages())
        .filter_map(|stage| match &stage.stage {
            StageConfig::Host(host) => Some((stage, host)),
            _ => None,
        })
        .collect();
    let modems: Vec<Modem<'_>> = (observed.stages())
        .filter_map(|stage| match &stage.stage {
            StageConfig::Modem(modem) => Some((stage, modem)),
            _ => None,
        })
        .collect();
    stalls(observed, &hosts, all);
    moderation(observed, &hosts, all);
    timers(observed, &modems, all);
    for (stage, host) in &hosts {
        ring(observed, stage, (host.ring_packets, longest_stall_ms(host)), all);
    }
    for (stage, modem) in &modems {
        ring(observed, stage, (modem.ring_packets, modem.timer.as_millis_f64()), all);
        transfers(observed, stage, modem, all);
    }
    for (at, (_, host)) in hosts.iter().enumerate() {
        let same = |(_, other): &&Host<'_>| host.cpu.is_some() && other.cpu == host.cpu;
        // A CPU is tried once, in all of its stages.
        if hosts[..at].iter().any(|one| same(&one)) {
            continue;
        }
        let others = hosts[at + 1..].iter().filter(same);
        let sharing: Vec<Host<'_>> = std::iter::once(&hosts[at]).chain(others).copied().collect();
        processor(observed, &sharing, all);
    }
}

/// Adds one candidate for several stages, named after the one that stands for them; `edit` removes
/// the cause from each.
fn push<'a>(
    all: &mut Vec<Candidate>,
    cause: Cause,
    named: &NamedStage,
    evidence: Vec<Evidence>,
    stages: impl Iterator<Item = &'a NamedStage>,
    edit: impl Fn(KeyPath) -> Edit,
) {
    let removal = stages.map(|stage| edit(stage.id.key())).collect();
    all.push(Candidate::new(cause, Subject::Stage(named.id), evidence, vec![removal]));
}

/// Length in ms of stalls that have no effect. `stalls = "never"` would be refused together with the
/// other keys of stalls.
const NO_STALL: f64 = 0.001;

/// Adds all stalling hosts as one candidate: they are on one machine.
fn stalls(observed: &Observed<'_>, hosts: &[Host<'_>], all: &mut Vec<Candidate>) {
    let stalling =
        || hosts.iter().filter(|(_, host)| host.stalls != Stalls::None).map(|&(stage, _)| stage);
    let Some(first) = stalling().next() else { return };
    let lost: u64 = stalling().map(|one| observed.dropped(&one.name, "ring_full")).sum();
    let rings = match stalling().nth(1) {
        Some(_) => "the receive rings of all stalling hosts",
        None => "its receive ring",
    };
    let evidence = vec![Evidence::Stalled { stage: first.id, rings, dropped: Count(lost as f64) }];
    push(all, Cause::StallingHost, first, evidence, stalling(), |key| {
        key.set("stall_ms", NO_STALL)
    });
}

/// A ring that overflowed is enlarged at least by this factor.
const LONGER_RING: u64 = 16;

/// Adds a ring that overflowed. `holds` is the number of packets that it holds, and the longest time
/// in ms for which nothing empties it.
fn ring(
    observed: &Observed<'_>,
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
    let rate_mbps = observed.bottleneck(stage.id.direction).map_or(0.0, |link| link.capacity_mbps);
    let lasts_ms = observed.base_rtt_ms().unwrap_or(100.0) + pause_ms;
    let held = 2.0 * rate_mbps * 1e3 / 8.0 * lasts_ms / PACKET;
    let longer = (u64::from(ring) * LONGER_RING).max(held as u64);
    let dropped = observed.lost_by(&[stage.id], &["ring_full"]);
    let holds = Count(f64::from(ring));
    let evidence = vec![Evidence::RingFull { stage: stage.id, holds, dropped }];
    let longer = ring_size(longer);
    push(all, Cause::ReceiveRing, stage, evidence, [stage].into_iter(), |key| {
        key.set("ring_packets", longer)
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

/// Adds a processor that limits packets per second, whatever their size. `hosts` are the stages that
/// share it.
fn processor(observed: &Observed<'_>, hosts: &[Host<'_>], all: &mut Vec<Candidate>) {
    let times = hosts.iter().map(|(_, host)| host.processing);
    let each_s = times.fold(Duration::ZERO, Duration::max).as_secs_f64();
    let stages: Vec<&NamedStage> = hosts.iter().map(|&(stage, _)| stage).collect();
    if !limits(observed, &stages, each_s, each_s) {
        return;
    }
    let stage = stages[0];
    let (id, each, per_s) = (stage.id, Ms(1e3 * each_s), Count(1.0 / each_s));
    let mut evidence = vec![match hosts.len() {
        1 => Evidence::Processor { stage: id, each, per_s },
        _ => Evidence::SharedProcessor { stage: id, each, per_s },
    }];
    evidence.extend(load(observed, &stages));
    push(all, Cause::HostProcessor, stage, evidence, stages.iter().copied(), |key| {
        key.set("processing_ms", 0)
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
    stages.iter().filter_map(|stage| observed.packets_per_s(stage.id.direction)).sum()
}

/// The packets that reached these stages, and those that the ring of the first dropped.
fn load<'a>(
    observed: &'a Observed<'_>,
    stages: &'a [&NamedStage],
) -> impl Iterator<Item = Evidence> + 'a {
    let per_s = packets_per_s(observed, stages);
    let dropped = observed.lost_by(&[stages[0].id], &["ring_full"]);
    let sent = (per_s > 0.0).then_some(Evidence::SentThere { per_s: Count(per_s) });
    let full = (dropped.packets() > 0).then_some(Evidence::RingDropped { dropped });
    sent.into_iter().chain(full)
}

/// Adds the interrupt moderation of all network cards as one candidate, named after the card with the
/// longest delay.
fn moderation(observed: &Observed<'_>, hosts: &[Host<'_>], all: &mut Vec<Candidate>) {
    let moderated = || hosts.iter().filter(|(_, host)| host.coalescing > Duration::ZERO);
    if !matters(observed, moderated().map(|(_, host)| host.coalescing)) {
        return;
    }
    let Some((stage, host)) = moderated().rev().max_by_key(|(_, host)| host.coalescing) else {
        return;
    };
    let mut evidence = vec![Evidence::Moderated {
        stage: stage.id,
        delay: Ms(host.coalescing.as_millis_f64()),
        rx_usecs: Count(1e6 * host.coalescing.as_secs_f64()),
    }];
    evidence.extend(observed.packets_per_s(stage.id.direction).map(|per_s| {
        let packets = 1.0 + per_s * host.coalescing.as_secs_f64();
        Evidence::PerInterrupt { per_s: Count(per_s), packets }
    }));
    let stages = moderated().map(|&(stage, _)| stage);
    push(all, Cause::InterruptModeration, stage, evidence, stages, |key| {
        key.set("coalescing_ms", 0)
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
fn timers(observed: &Observed<'_>, modems: &[Modem<'_>], all: &mut Vec<Candidate>) {
    let waiting = || modems.iter().filter(|(_, modem)| modem.timer > Duration::ZERO);
    if !matters(observed, waiting().map(|(_, modem)| modem.timer)) {
        return;
    }
    let Some((stage, modem)) = waiting().rev().max_by_key(|(_, modem)| modem.timer) else {
        return;
    };
    let mut evidence =
        vec![Evidence::Aggregated { stage: stage.id, up_to: Ms(modem.timer.as_millis_f64()) }];
    evidence.extend(observed.packets_per_s(stage.id.direction).map(|per_s| {
        let packets = (1.0 + per_s * modem.timer.as_secs_f64()).min(block_packets(modem));
        Evidence::PerBlock { per_s: Count(per_s), packets }
    }));
    let stages = waiting().map(|&(stage, _)| stage);
    push(all, Cause::AggregationTimer, stage, evidence, stages, |key| key.set("timer_ms", 0));
}

/// The most packets of [`PACKET`] bytes that a block carries.
fn block_packets(modem: &ModemConfig) -> f64 {
    (f64::from(modem.block_bytes) / PACKET).floor().clamp(1.0, f64::from(modem.block_packets))
}

/// Adds a bus that limits transfers per second, whatever their size.
fn transfers(
    observed: &Observed<'_>,
    stage: &NamedStage,
    modem: &ModemConfig,
    all: &mut Vec<Candidate>,
) {
    let (each_s, most) = (modem.transfer.as_secs_f64(), block_packets(modem));
    if !limits(observed, &[stage], each_s / most, each_s) {
        return;
    }
    let mut evidence = vec![Evidence::Bus {
        stage: stage.id,
        each: Ms(1e3 * each_s),
        carries: Count(most),
        bytes: PACKET,
        per_s: Count(most / each_s),
    }];
    evidence.extend(load(observed, &[stage]));
    push(all, Cause::ModemCeiling, stage, evidence, [stage].into_iter(), |key| {
        key.set("transfer_ms", 0)
    });
}
