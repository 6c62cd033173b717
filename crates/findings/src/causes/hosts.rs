//! The ends: windows, buffers, applications, and the behaviour of their TCP.

use airpath_record::FlowSummary;
use airpath_scenario::{FlowConfig, TcpConfig, Traffic};
use airpath_tcp::{CongestionConfig, ReaderConfig};

use super::{bytes, listed, mbps, ms, percent, seconds, set};
use crate::candidate::Candidate;
use crate::cause::Cause;
use crate::compare::LEAST;
use crate::observed::{Observed, direction_name};

/// A limit that held for a smaller fraction of the time is not worth a run.
const RARELY: f64 = 0.03;

pub(super) fn add(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let mut each = Vec::new();
    for (config, tcp) in observed.tcp_flows() {
        let Some(flow) = observed.flow(config) else { continue };
        let mut own = Vec::new();
        windows(observed, config, tcp, flow, &mut own);
        reader(config, tcp, &mut own);
        writer(config, &mut own);
        slow_start(observed, config, flow, &mut own);
        duration(observed, config, flow, &mut own);
        let waited = flow.limited_s.as_ref().map_or(0.0, |limited| {
            limited.receive_window.max(limited.send_buffer) / lived_s(observed, flow)
        });
        each.extend(own.into_iter().map(|candidate| (candidate, waited)));
    }
    all.extend(shared(each));
    congestion(observed, all);
}

/// What limits several flows in the same way is removed from all of them at once, and named after
/// the flow that it limited for the largest fraction of its time; among equals the first.
fn shared(each: Vec<(Candidate, f64)>) -> Vec<Candidate> {
    const ALIKE: &[Cause] = &[
        Cause::ReceiveWindow,
        Cause::SendBuffer,
        Cause::ApplicationLimited,
        Cause::SlowStartExit,
        Cause::SlowStart,
        Cause::TestTooShort,
    ];
    let windows = |one: &Candidate| matches!(one.cause, Cause::ReceiveWindow | Cause::SendBuffer);
    let mut kept: Vec<(Candidate, f64)> = Vec::new();
    let mut others: Vec<Vec<String>> = Vec::new();
    for (mut candidate, waited) in each {
        let like = |(one, _): &(Candidate, f64)| {
            one.cause == candidate.cause && one.removals.len() == candidate.removals.len()
        };
        let Some(at) = kept.iter().position(like).filter(|_| ALIKE.contains(&candidate.cause))
        else {
            kept.push((candidate, waited));
            others.push(Vec::new());
            continue;
        };
        let (first, longest) = &mut kept[at];
        if windows(first) && waited > *longest {
            std::mem::swap(&mut first.subject, &mut candidate.subject);
            std::mem::swap(&mut first.evidence, &mut candidate.evidence);
            *longest = waited;
        }
        others[at].push(candidate.subject);
        for (sets, other) in first.removals.iter_mut().zip(candidate.removals) {
            for set in other {
                add_to(sets, set);
            }
        }
    }
    let named = |((mut candidate, _), others): ((Candidate, f64), Vec<String>)| {
        if !others.is_empty() {
            candidate.evidence.push_str(&format!(" The same holds for {}.", listed(&others)));
        }
        candidate
    };
    kept.into_iter().zip(others).map(named).collect()
}

/// Adds a setting unless it is present; of two lengths of the run, the longer one is kept.
fn add_to(sets: &mut Vec<String>, set: String) {
    let length = |set: &str| set.strip_prefix("run.duration_s=")?.parse::<f64>().ok();
    let known = length(&set).and_then(|_| sets.iter().position(|one| length(one).is_some()));
    match known {
        Some(at) if length(&set) > length(&sets[at]) => sets[at] = set,
        None if !sets.contains(&set) => sets.push(set),
        _ => {}
    }
}

/// A transfer with fewer round trips ends before its window has opened.
const FEW_ROUNDS: u32 = 20;

/// Lifetime of a flow in seconds.
fn lived_s(observed: &Observed<'_>, flow: &FlowSummary) -> f64 {
    let end = flow.end_ns.map_or(observed.run.duration_s, |end| end as f64 / 1e9);
    (end - flow.start_ns as f64 / 1e9).max(1e-3)
}

fn windows(
    observed: &Observed<'_>,
    config: &FlowConfig,
    tcp: &TcpConfig,
    flow: &FlowSummary,
    all: &mut Vec<Candidate>,
) {
    let Some(limited) = &flow.limited_s else { return };
    let lived = lived_s(observed, flow);
    let path = format!("flow.{}", config.index);
    let bdp = observed.bdp_bytes(direction_name(config.direction)).unwrap_or(0.0);
    // If the application reads slowly, a large buffer would only hide that.
    let large = match tcp.receiver.reader {
        ReaderConfig::AtOnce | ReaderConfig::Driver => {
            (8.0 * bdp).clamp(f64::from(1 << 26), f64::from(1 << 29)).round()
        }
        ReaderConfig::Rate(_) | ReaderConfig::After(_) => (2.0 * bdp).max(65_536.0).round(),
    };
    let scaled = set(format!("{path}.options.window_scaling"), true);
    let both = vec![set(format!("{path}.window_bytes"), large), scaled.clone()];
    let of_receiver = vec![set(format!("{path}.receive_buffer_bytes"), large), scaled];
    let of_sender = vec![set(format!("{path}.send_buffer_bytes"), large)];
    let (received, sent) = (limited.receive_window / lived, limited.send_buffer / lived);
    let sizes = (tcp.receiver.receive_buffer.max, tcp.sender.send_buffer);
    // If both are equal the sender reaches its own limit first; but the window is what people know.
    let of_window = received >= sent || sizes.0 == sizes.1;
    let (cause, share, what, mut removal, other) = if of_window {
        let what = if received >= sent { "receiver's window" } else { "buffers at both ends" };
        (Cause::ReceiveWindow, received.max(sent), what, of_receiver, of_sender)
    } else {
        (Cause::SendBuffer, sent, "send buffer", of_sender, of_receiver)
    };
    if share <= RARELY {
        return;
    }
    // If the next limit is hardly larger, it would limit as much.
    let (own, next) = if of_window { sizes } else { (sizes.1, sizes.0) };
    if next < 2 * own {
        removal.extend(other);
    }
    all.push(Candidate {
        cause,
        subject: config.id.clone(),
        evidence: format!(
            "The {what} limited {} for {} of its time; the BDP is {}.",
            config.id,
            percent(share),
            bytes(bdp)
        ),
        removals: vec![removal, both],
    });
}

fn reader(config: &FlowConfig, tcp: &TcpConfig, all: &mut Vec<Candidate>) {
    let path = format!("flow.{}", config.index);
    let (what, faster) = match tcp.receiver.reader {
        ReaderConfig::Rate(rate) => (
            format!("reads at {}", mbps(rate.bps() as f64 / 1e6)),
            set(format!("{path}.read_rate_mbps"), 100_000),
        ),
        ReaderConfig::After(delay) => (
            format!("reads {} late", ms(delay.as_millis_f64())),
            set(format!("{path}.application.read_delay_ms"), 0),
        ),
        ReaderConfig::AtOnce | ReaderConfig::Driver => return,
    };
    all.push(Candidate {
        cause: Cause::ApplicationLimited,
        subject: config.id.clone(),
        evidence: format!("The application of {} {what}.", config.id),
        removals: vec![vec![faster]],
    });
}

/// An application that does not have everything to send at once.
fn writer(config: &FlowConfig, all: &mut Vec<Candidate>) {
    let Traffic::File { writes, .. } = &config.traffic else { return };
    let Some(last) = writes.last().filter(|last| last.as_nanos() > 0) else { return };
    all.push(Candidate {
        cause: Cause::ApplicationLimited,
        subject: config.id.clone(),
        evidence: format!(
            "The application of {} writes the last of its data {} after it starts.",
            config.id,
            ms(last.as_millis_f64())
        ),
        removals: vec![vec![set(format!("flow.{}.write_times_s", config.index), "\"0\"")]],
    });
}

fn slow_start(
    observed: &Observed<'_>,
    config: &FlowConfig,
    flow: &FlowSummary,
    all: &mut Vec<Candidate>,
) {
    let path = format!("flow.{}", config.index);
    let early = |reason| matches!(reason, "delay" | "falling_minimum" | "ack_train" | "css");
    if let Some(exit) = flow.slow_start_exit.as_ref().filter(|exit| early(exit.reason)) {
        let held = exit
            .bdp_fraction
            .map_or_else(String::new, |share| format!(", {} of the BDP", percent(share)));
        all.push(Candidate {
            cause: Cause::SlowStartExit,
            subject: config.id.clone(),
            evidence: format!(
                "Slow start of {} ended at {} segments{held} ({}).",
                config.id, exit.cwnd_segments, exit.reason
            ),
            removals: vec![vec![set(format!("{path}.slow_start"), "\"none\"")]],
        });
    }
    let rtt_s = flow.rtt_ms.as_ref().map_or(0.1, |rtt| rtt.min / 1e3);
    if let Traffic::File { size, .. } = config.traffic
        && let Some(completed) = flow.completed_s
        && flow.slow_start_exit.as_ref().is_none_or(|exit| {
            exit.time_s > completed / 2.0 || completed < f64::from(FEW_ROUNDS) * rtt_s
        })
    {
        let bdp = observed.bdp_bytes(direction_name(config.direction)).unwrap_or(1e6);
        let segments = (bdp.min(size as f64) / 1448.0).ceil().clamp(20.0, 1000.0);
        all.push(Candidate {
            cause: Cause::SlowStart,
            subject: config.id.clone(),
            evidence: format!(
                "{} completed in {:.0} round trips, while its window was still growing.",
                config.id,
                (completed / rtt_s).ceil()
            ),
            // The receiver's first window must hold the sender's.
            removals: vec![
                vec![
                    set(format!("{path}.initial_window_segments"), segments),
                    set(format!("{path}.buffer.initial_receive_bytes"), 4000.0 * segments),
                ],
                vec![set(format!("{path}.initial_window_segments"), segments)],
            ],
        });
    }
}

/// In a test with fewer round trips, the ramp is a considerable part.
const FEW_ROUNDS_OF_TEST: f64 = 150.0;

/// A test shorter than this is repeated at ten times its length, which is still short; others at
/// four times.
const SHORT_S: f64 = 3.0;

/// The fraction of a test that is the ramp.
fn duration(
    observed: &Observed<'_>,
    config: &FlowConfig,
    flow: &FlowSummary,
    all: &mut Vec<Candidate>,
) {
    let Traffic::Bulk { duration, .. } = &config.traffic else { return };
    let Some(goodput) = flow.goodput_mbps else { return };
    if others_end(observed, config, flow) {
        return;
    }
    let lived = lived_s(observed, flow);
    let rounds = lived * 1e3 / flow.rtt_ms.as_ref().map_or(100.0, |rtt| rtt.p50);
    let evidence = match flow.steady_mbps {
        Some(steady) if steady > 1.05 * goodput => format!(
            "{} reached {} in its second half and {} on average.",
            config.id,
            mbps(steady),
            mbps(goodput)
        ),
        None if rounds < FEW_ROUNDS_OF_TEST => {
            format!("{} lasted {}, which is {rounds:.0} round trips.", config.id, seconds(lived))
        }
        _ => return,
    };
    let longer = if lived < SHORT_S { 10.0 } else { 4.0 };
    let end = observed.scenario.run.duration.as_secs_f64();
    let mut sets = vec![set("run.duration_s", (end + (longer - 1.0) * lived).ceil())];
    if let Some(duration) = duration {
        let lasts = (longer * duration.as_secs_f64()).ceil();
        sets.push(set(format!("flow.{}.duration_s", config.index), lasts));
    }
    all.push(Candidate {
        cause: Cause::TestTooShort,
        subject: config.id.clone(),
        evidence,
        removals: vec![sets],
    });
}

/// Whether another flow of its direction ends, or would end in a longer test, and leaves its
/// capacity: a file of more than a tenth of what the flow itself has carried. What a longer test
/// gains then is not the ramp.
fn others_end(observed: &Observed<'_>, config: &FlowConfig, flow: &FlowSummary) -> bool {
    let much = LEAST * flow.bytes_delivered as f64;
    let end = |flow: &FlowConfig| match flow.traffic {
        Traffic::Bulk { duration: Some(duration), .. } => {
            Some(flow.start.as_secs_f64() + duration.as_secs_f64())
        }
        _ => None,
    };
    let own = end(config).unwrap_or(f64::INFINITY);
    observed.scenario.flows.iter().any(|other| {
        let ends = match other.traffic {
            Traffic::File { size, .. } => size as f64 > much,
            // Flows that end with the test also last longer in a longer test.
            _ => end(other).is_some_and(|end| end < own),
        };
        ends && other.id != config.id && other.direction == config.direction
    })
}

/// All TCP flows with another control, or all with the same one.
fn congestion(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let flows: Vec<_> = observed.tcp_flows().collect();
    let Some((first, tcp)) = flows.first() else { return };
    let used = |tcp: &TcpConfig| tcp.sender.congestion.name();
    let with = |control: &str| -> Vec<String> {
        let set_of = |(config, _): &(&FlowConfig, &TcpConfig)| {
            set(format!("flow.{}.congestion", config.index), format!("\"{control}\""))
        };
        flows.iter().map(set_of).collect()
    };
    let mixed = flows.iter().any(|(_, other)| used(other) != used(tcp));
    let other = match tcp.sender.congestion {
        CongestionConfig::Bbr1 { .. } | CongestionConfig::Bbr3 { .. } => "cubic",
        _ => "bbr",
    };
    // A window without control: as large as the path holds.
    let fixed = |(config, tcp): &(&FlowConfig, &TcpConfig)| {
        let control = matches!(tcp.sender.congestion, CongestionConfig::Fixed { .. });
        let bdp = observed.bdp_bytes(direction_name(config.direction)).unwrap_or(1e6);
        let segments = (1.25 * bdp / f64::from(tcp.sender.mss)).ceil().max(10.0);
        control.then(|| set(format!("flow.{}.fixed_window_segments", config.index), segments))
    };
    let (held, windows): (Vec<_>, Vec<_>) =
        flows.iter().filter_map(|flow| Some((flow.0, fixed(flow)?))).unzip();
    let (cause, evidence, removals) = if let Some(held) = held.first() {
        let evidence = format!("{} has a fixed window and no congestion control.", held.id);
        (Cause::CongestionControl, evidence, windows)
    } else if mixed {
        let runs = |(config, tcp): &(&FlowConfig, &TcpConfig)| (used(tcp), config.id.clone());
        let evidence =
            format!("Flows that share the path run {}.", each_with(flows.iter().map(runs)));
        (Cause::CongestionMix, evidence, with("cubic"))
    } else {
        let evidence = format!("{} runs {}.", first.id, used(tcp));
        (Cause::CongestionControl, evidence, with(other))
    };
    let subject = held.first().unwrap_or(first).id.clone();
    all.push(Candidate { cause, subject, evidence, removals: vec![removals] });
}

/// Each congestion control with the flows that use it, in their order.
fn each_with(flows: impl Iterator<Item = (&'static str, String)>) -> String {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for (control, flow) in flows {
        match groups.iter_mut().find(|(known, _)| *known == control) {
            Some((_, users)) => users.push(flow),
            None => groups.push((control, vec![flow])),
        }
    }
    let said = groups.iter().map(|(control, users)| format!("{control} ({})", listed(users)));
    listed(&said.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::each_with;

    #[test]
    fn controls_are_named_once_with_who_runs_them() {
        let flows = [("cubic", "file-0"), ("bbr", "bulk-1"), ("cubic", "bulk-2")];
        let said = each_with(flows.map(|(control, flow)| (control, flow.to_owned())).into_iter());
        assert_eq!(said, "cubic (file-0 and bulk-2) and bbr (bulk-1)");
    }
}
