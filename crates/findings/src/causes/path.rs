//! What lies on the path between UE and server.

use airpath_path::{Aqm, Excess, LinkConfig, MiddleboxKind, MiddleboxSide, StageConfig};
use airpath_scenario::NamedStage;

use super::{bytes, count, mbps, ms, percent, set};
use crate::candidate::Candidate;
use crate::cause::Cause;
use crate::observed::{Observed, direction_name, direction_of, is_shaper, path_of};

/// Bytes of the largest packet that airpath sends unless configured otherwise.
pub(super) const PACKET: f64 = 1500.0;

pub(super) fn add(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    middleboxes(observed, all);
    for (path, stage) in observed.stages() {
        let off = vec![vec![set(format!("{path}.enabled"), false)]];
        let mut try_without = |cause, evidence: String| {
            let subject = stage.name.clone();
            all.push(Candidate { cause, subject, evidence, removals: off.clone() });
        };
        let lost = |reason| observed.dropped(&stage.name, reason);
        match &stage.stage {
            StageConfig::Loss(_) if lost("loss") > 0 => try_without(
                Cause::RandomLoss,
                format!("{} lost {}.", stage.name, observed.lost_by(&[&stage.name], &["loss"])),
            ),
            StageConfig::Policer(policer) => {
                let excess = policer.excess;
                if lost("policed") > 0 || excess == Excess::Mark {
                    let rate = mbps(policer.rate.bps() as f64 / 1e6);
                    let burst = count(policer.burst as f64);
                    let dropped = observed.lost_by(&[&stage.name], &["policed"]);
                    try_without(
                        Cause::Policer,
                        format!(
                            "{} polices to {rate}, with bursts of at most {burst} bytes, and dropped {dropped}.",
                            stage.name
                        ),
                    );
                }
            }
            StageConfig::Batch { interval } => try_without(
                Cause::AckBatching,
                format!(
                    "{} releases packets only every {}.",
                    stage.name,
                    ms(interval.as_millis_f64())
                ),
            ),
            StageConfig::Link(link) => self::link(observed, &path, stage, link, all),
            StageConfig::Delay(delay)
                if delay.jitter.as_ref().is_some_and(|jitter| !jitter.keep_order) =>
            {
                all.push(Candidate {
                    cause: Cause::Reordering,
                    subject: stage.name.clone(),
                    evidence: format!("{} reorders packets.", stage.name),
                    removals: vec![vec![set(format!("{path}.keep_order"), true)]],
                });
            }
            _ => {}
        }
    }
    servers(observed, all);
    proxy(observed, all);
}

/// A queue is too short if it holds less than this fraction of what the path, or a first window,
/// holds.
const SHORTER: f64 = 0.9;

/// A queue is too long if it holds more than this many times what the path holds.
pub(super) const LONGER: f64 = 1.15;

/// Rate of acknowledgements relative to the data: 52 bytes per two segments of 1,500.
const ACKNOWLEDGEMENTS: f64 = 52.0 / 3000.0;

/// Candidates of a link: a queue too short or too long, a shaper's rate.
fn link(
    observed: &Observed<'_>,
    path: &str,
    stage: &NamedStage,
    link: &LinkConfig,
    all: &mut Vec<Candidate>,
) {
    let Some(seen) = observed.link(&stage.name) else { return };
    let subject = stage.name.clone();
    if is_shaper(link) && seen.utilisation > 0.5 {
        all.push(Candidate {
            cause: Cause::Shaper,
            subject: subject.clone(),
            evidence: format!(
                "{subject} limits the rate to {}; it was {} busy.",
                mbps(seen.capacity_mbps),
                percent(seen.utilisation)
            ),
            removals: vec![vec![set(format!("{path}.enabled"), false)]],
        });
    }
    let queue = &link.queue;
    let in_bytes = queue.bytes.map(|bytes| bytes as f64);
    let in_packets = queue.packets.map(|packets| f64::from(packets) * PACKET);
    let limit = in_bytes.into_iter().chain(in_packets).min_by(f64::total_cmp);
    let full = observed.dropped(&stage.name, "queue_full");
    let bdp = seen.capacity_mbps * 1e6 / 8.0 * observed.base_rtt_ms().unwrap_or(100.0) / 1e3;
    if let Some(limit) = limit.filter(|&limit| full > 0 && limit < SHORTER * bdp.max(10.0 * PACKET))
    {
        let wanted = (2.0 * bdp).max(4.0 * limit).max(30.0 * PACKET);
        let mut sets = Vec::new();
        if queue.bytes.is_some() {
            sets.push(set(format!("{path}.queue_bytes"), wanted.round()));
        }
        if queue.packets.is_some() {
            sets.push(set(format!("{path}.queue_packets"), (wanted / PACKET).ceil()));
        }
        all.push(Candidate {
            cause: Cause::ShortQueue,
            subject: subject.clone(),
            evidence: format!(
                "The queue of {subject} holds {}, and the BDP is {}; {} packets found it full.",
                bytes(limit),
                bytes(bdp),
                count(full as f64)
            ),
            removals: vec![sets],
        });
    }
    let wait = seen.queue_delay_ms.as_ref().map_or(0.0, |delay| delay.p95);
    let long = limit.is_none_or(|limit| limit > LONGER * bdp.max(10.0 * PACKET));
    if long && queue.aqm == Aqm::DropTail && wait > 0.1 * observed.late_rtt_ms().unwrap_or(f64::MAX)
    {
        all.push(Candidate {
            cause: Cause::Bufferbloat,
            subject: subject.clone(),
            evidence: format!("One packet in twenty waits {} or longer in {subject}.", ms(wait)),
            removals: vec![managed(
                path,
                "codel",
                seen.capacity_mbps,
                observed.base_rtt_ms().unwrap_or(0.0),
            )],
        });
    }
    let back = direction_of(&stage.name);
    let forth = if back == "up" { "down" } else { "up" };
    let data = observed.tcp_flows().any(|(flow, _)| direction_name(flow.direction) == forth);
    let fast = observed.bottleneck(forth).map_or(f64::MAX, |link| link.capacity_mbps);
    if data
        && ACKNOWLEDGEMENTS * fast > 0.1 * seen.capacity_mbps
        && seen.utilisation > 0.5
        && matches!(link.service, airpath_path::ServiceConfig::Rate(_))
    {
        // Ten times the rate, or as much as makes acknowledgements take a tenth of the link if that
        // is more.
        let enough = (10.0 * ACKNOWLEDGEMENTS * fast).max(10.0 * seen.capacity_mbps);
        let enough = if fast < f64::MAX { enough } else { 10.0 * seen.capacity_mbps };
        all.push(Candidate {
            cause: Cause::AckStarvation,
            subject: subject.clone(),
            evidence: format!(
                "{subject}, which carries acknowledgements, was {} busy.",
                percent(seen.utilisation)
            ),
            removals: vec![vec![set(format!("{path}.rate_mbps"), (1e3 * enough).ceil() / 1e3)]],
        });
    }
}

/// A queue with this AQM. On a slow link a single packet takes longer than CoDel's usual target of
/// 5 ms (RFC 8289 4.4). The interval is no shorter than a round trip (RFC 8289 4.3).
pub(crate) fn managed(path: &str, aqm: &str, rate_mbps: f64, rtt_ms: f64) -> Vec<String> {
    let packet_ms = PACKET * 8.0 / 1e3 / rate_mbps.max(1e-3);
    let mut sets = vec![set(format!("{path}.aqm"), format!("\"{aqm}\""))];
    let target = (1.5 * packet_ms).max(rtt_ms / 20.0).ceil();
    if target > 5.0 {
        let interval = (10.0 * target).max(rtt_ms).round();
        sets.push(set(format!("{path}.codel_target_ms"), target));
        sets.push(set(format!("{path}.codel_interval_ms"), interval.max(100.0)));
    }
    sets
}

/// NATs and firewalls exist in both directions: the first of the uplink is the last of the
/// downlink.
fn middleboxes(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let of = |stages: &[NamedStage], wanted: MiddleboxKind| -> Vec<(String, NamedStage)> {
        let middleboxes = stages.iter().filter(
            |stage| matches!(&stage.stage, StageConfig::Middlebox(middlebox) if middlebox.kind == wanted),
        );
        middleboxes.map(|stage| (path_of(&stage.name), stage.clone())).collect()
    };
    for kind in [MiddleboxKind::Firewall, MiddleboxKind::Nat] {
        let up = of(&observed.scenario.up, kind);
        let down = of(&observed.scenario.down, kind);
        let both_off = |index: usize| {
            let mirror = down.len().checked_sub(1 + index).and_then(|at| down.get(at));
            let both = up.get(index).into_iter().chain(mirror);
            both.map(|(path, _)| set(format!("{path}.enabled"), false)).collect::<Vec<_>>()
        };
        let lost = |index: usize| {
            let mirror = down.len().checked_sub(1 + index).and_then(|at| down.get(at));
            let both = up.get(index).into_iter().chain(mirror);
            both.map(|(_, stage)| {
                observed.dropped(&stage.name, "no_binding")
                    + observed.dropped(&stage.name, "blocked")
            })
            .sum::<u64>()
        };
        for (index, (path, stage)) in up.iter().enumerate() {
            let lost = lost(index);
            if lost == 0 {
                continue;
            }
            let mirror = down.len().checked_sub(1 + index).and_then(|at| down.get(at));
            let both: Vec<&str> = [Some(stage), mirror.map(|(_, stage)| stage)]
                .into_iter()
                .flatten()
                .map(|stage| stage.name.as_str())
                .collect();
            let whose = observed.lost_by(&both, &["no_binding", "blocked"]);
            let evidence = format!("{} blocked {whose}.", stage.name);
            if kind == MiddleboxKind::Firewall {
                all.push(Candidate {
                    cause: Cause::OneWayPath,
                    subject: stage.name.clone(),
                    evidence,
                    removals: vec![both_off(index)],
                });
                continue;
            }
            if up.len() > 1 {
                all.push(Candidate {
                    cause: Cause::DoubleNat,
                    subject: stage.name.clone(),
                    evidence: format!("{evidence} It is one of {} NATs in a row.", up.len()),
                    removals: vec![both_off(index)],
                });
            }
            if let StageConfig::Middlebox(middlebox) = &stage.stage
                && let MiddleboxSide::Outward(timer) = middlebox.side
            {
                all.push(Candidate {
                    cause: Cause::NatBinding,
                    subject: stage.name.clone(),
                    evidence: format!(
                        "{evidence} Its bindings expire after {:.0} s.",
                        timer.timeout.as_secs_f64()
                    ),
                    removals: vec![vec![set(format!("{path}.timeout_s"), 1_000_000)]],
                });
            }
        }
    }
}

/// The path between the UPF and the server.
fn servers(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let far: Vec<(String, &NamedStage, f64)> = (observed.stages().into_iter())
        .filter_map(|(path, stage)| match &stage.stage {
            StageConfig::Delay(delay) if stage.name.ends_with(".server") => {
                Some((path, stage, delay.base.as_millis_f64()))
            }
            _ => None,
        })
        .collect();
    let away: f64 = far.iter().map(|(_, _, delay)| delay).sum();
    let Some((_, first, _)) =
        far.first().filter(|_| away >= 0.1 * observed.base_rtt_ms().unwrap_or(10.0))
    else {
        return;
    };
    all.push(Candidate {
        cause: Cause::Placement,
        subject: first.name.clone(),
        evidence: format!("The round trip between the UPF and the server takes {}.", ms(away)),
        removals: vec![
            far.iter().map(|(path, _, _)| set(format!("{path}.place"), "\"upf\"")).collect(),
            far.iter().map(|(path, _, _)| set(format!("{path}.enabled"), false)).collect(),
        ],
    });
}

fn proxy(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let Some(proxy) = &observed.scenario.proxy else { return };
    let names = [&proxy.down.name, &proxy.up.name];
    all.push(Candidate {
        cause: Cause::Proxy,
        subject: proxy.down.name.clone(),
        evidence: "A proxy splits the TCP connection in two.".to_owned(),
        removals: vec![
            names.iter().map(|name| set(format!("{}.enabled", path_of(name)), false)).collect(),
        ],
    });
}
