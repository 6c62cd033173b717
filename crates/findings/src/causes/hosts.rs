//! The ends: windows, buffers, applications, and how their TCP behaves.

use airpath_record::FlowSummary;
use airpath_scenario::{FlowConfig, TcpConfig, Traffic};
use airpath_tcp::{CongestionConfig, ReaderConfig};

use super::{bytes, mbps, ms, percent, set};
use crate::candidate::Candidate;
use crate::cause::Cause;
use crate::facts::{Facts, direction_name};

/// A limit that held for less of the time is not worth a run.
const SELDOM: f64 = 0.03;

pub(super) fn add(facts: &Facts<'_>, all: &mut Vec<Candidate>) {
    for (config, tcp) in facts.tcp_flows() {
        let Some(flow) = facts.flow(config) else { continue };
        windows(facts, config, flow, all);
        reader(config, tcp, all);
        slow_start(facts, config, flow, all);
        duration(facts, config, flow, all);
    }
    congestion(facts, all);
}

/// Time that a flow lived, s.
fn lived_s(facts: &Facts<'_>, flow: &FlowSummary) -> f64 {
    let end = flow.end_ns.map_or(facts.run.simulated_s, |end| end as f64 / 1e9);
    (end - flow.start_ns as f64 / 1e9).max(1e-3)
}

fn windows(facts: &Facts<'_>, config: &FlowConfig, flow: &FlowSummary, all: &mut Vec<Candidate>) {
    let Some(limited) = &flow.limited_s else { return };
    let lived = lived_s(facts, flow);
    let path = format!("flow.{}", config.index);
    let bdp = facts.bdp_bytes(direction_name(config.direction)).unwrap_or(0.0);
    let large = (8.0 * bdp).clamp(f64::from(1 << 26), f64::from(1 << 29)).round();
    let removals = vec![
        vec![
            set(format!("{path}.receive_buffer_bytes"), large),
            set(format!("{path}.send_buffer_bytes"), large),
            set(format!("{path}.window_scaling"), true),
        ],
        vec![
            set(format!("{path}.window_bytes"), large),
            set(format!("{path}.window_scaling"), true),
        ],
    ];
    let (received, sent) = (limited.receive_window / lived, limited.send_buffer / lived);
    let (cause, share, what) = if received >= sent {
        (Cause::ReceiveWindow, received, "receiver's window")
    } else {
        (Cause::SendBuffer, sent, "send buffer")
    };
    if share > SELDOM {
        all.push(Candidate {
            cause,
            subject: config.id.clone(),
            evidence: format!(
                "The {what} held {} back for {} of its time; the path holds {}.",
                config.id,
                percent(share),
                bytes(bdp)
            ),
            removals,
        });
    }
}

fn reader(config: &FlowConfig, tcp: &TcpConfig, all: &mut Vec<Candidate>) {
    let path = format!("flow.{}", config.index);
    let (what, faster) = match tcp.receiver.reader {
        ReaderConfig::Rate(rate) => (
            format!("reads {}", mbps(rate.bps() as f64 / 1e6)),
            set(format!("{path}.read_rate_mbps"), 100_000),
        ),
        ReaderConfig::After(delay) => (
            format!("reads {} late", ms(delay.as_millis_f64())),
            set(format!("{path}.read_delay_ms"), 0),
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

fn slow_start(
    facts: &Facts<'_>,
    config: &FlowConfig,
    flow: &FlowSummary,
    all: &mut Vec<Candidate>,
) {
    let path = format!("flow.{}", config.index);
    let early = |reason| matches!(reason, "delay" | "falling_minimum" | "ack_train" | "css");
    if let Some(exit) = flow.slow_start_exit.as_ref().filter(|exit| early(exit.reason)) {
        let held = exit.bdp_fraction.map_or_else(String::new, |share| {
            format!(", {} of what the path holds", percent(share))
        });
        all.push(Candidate {
            cause: Cause::SlowStartExit,
            subject: config.id.clone(),
            evidence: format!(
                "Slow start of {} ended at {} segments{held} ({}).",
                config.id, exit.cwnd_segments, exit.reason
            ),
            removals: vec![vec![set(format!("{path}.slow_start"), "\"none\"")]],
        });
    } else if let Traffic::File { size, .. } = config.traffic
        && let Some(completed) = flow.completed_s
        && flow.slow_start_exit.as_ref().is_none_or(|exit| exit.time_s > completed / 2.0)
    {
        let bdp = facts.bdp_bytes(direction_name(config.direction)).unwrap_or(1e6);
        let segments = (bdp.min(size as f64) / 1448.0).ceil().clamp(20.0, 1000.0);
        all.push(Candidate {
            cause: Cause::SlowStart,
            subject: config.id.clone(),
            evidence: format!("{} spent most of its time in slow start.", config.id),
            removals: vec![vec![set(format!("{path}.initial_window_segments"), segments)]],
        });
    }
}

/// The ramp's share of a test.
fn duration(facts: &Facts<'_>, config: &FlowConfig, flow: &FlowSummary, all: &mut Vec<Candidate>) {
    let Traffic::Bulk { duration, .. } = &config.traffic else { return };
    let (Some(steady), Some(goodput)) = (flow.steady_mbps, flow.goodput_mbps) else { return };
    if steady < 1.05 * goodput {
        return;
    }
    let longer = 4.0;
    let end = facts.scenario.run.duration.as_secs_f64();
    let lived = lived_s(facts, flow);
    let mut sets = vec![set("run.duration_s", (end + (longer - 1.0) * lived).ceil())];
    if let Some(duration) = duration {
        let lasts = (longer * duration.as_secs_f64()).ceil();
        sets.push(set(format!("flow.{}.duration_s", config.index), lasts));
    }
    all.push(Candidate {
        cause: Cause::TestTooShort,
        subject: config.id.clone(),
        evidence: format!(
            "{} reached {} in its second half and {} on average.",
            config.id,
            mbps(steady),
            mbps(goodput)
        ),
        removals: vec![sets],
    });
}

/// All TCP flows with another control, or with one and the same.
fn congestion(facts: &Facts<'_>, all: &mut Vec<Candidate>) {
    let flows: Vec<_> = facts.tcp_flows().collect();
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
    let (cause, evidence, removals) = if mixed {
        let names: Vec<_> = flows.iter().map(|(_, tcp)| used(tcp)).collect();
        let evidence = format!("Flows share the path with {}.", names.join(" and "));
        (Cause::CongestionMix, evidence, with("cubic"))
    } else {
        let evidence = format!("{} runs {}.", first.id, used(tcp));
        (Cause::CongestionControl, evidence, with(other))
    };
    all.push(Candidate { cause, subject: first.id.clone(), evidence, removals: vec![removals] });
}
