//! The ends: windows, buffers, applications, and the behaviour of their TCP.

use std::collections::BTreeMap;

use airpath_quic::Config as QuicConfig;
use airpath_record::FlowSummary;
use airpath_scenario::{Edit, FlowConfig, KeyPath, TcpConfig, Traffic};
use airpath_tcp::{CongestionConfig, ReaderConfig};

use crate::candidate::Candidate;
use crate::cause::Cause;
use crate::compare::LEAST;
use crate::evidence::{Controls, Evidence, Others, Window};
use crate::observed::Observed;
use crate::subject::Subject;
use crate::text::{Bytes, Mbps, Ms, Percent, Seconds};

/// A window that does not limit a flow: this many bandwidth-delay products, and at least these bytes.
const LARGE_BDPS: f64 = 8.0;
const LARGE_WINDOW: f64 = (1 << 26) as f64;

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
    for config in &observed.scenario.flows {
        if let (Traffic::Quic { quic, .. }, Some(flow)) = (&config.traffic, observed.flow(config)) {
            quic_windows(observed, config, quic, flow, all);
        }
    }
    congestion(observed, all);
}

/// What limits several flows in the same way is removed from all of them at once, and named after
/// the flow that it limited for the largest fraction of its time; among equals the first.
fn shared(each: Vec<(Candidate, f64)>) -> Vec<Candidate> {
    const ALIKE: &[Cause] = &[
        Cause::ReceiveWindow,
        Cause::SendBuffer,
        Cause::ApplicationLimited,
        Cause::KeptSsthresh,
        Cause::SlowStartExit,
        Cause::SlowStart,
        Cause::TestTooShort,
    ];
    let windows = |one: &Candidate| matches!(one.cause, Cause::ReceiveWindow | Cause::SendBuffer);
    let mut kept: Vec<(Candidate, f64)> = Vec::new();
    let mut others: Vec<Vec<Subject>> = Vec::new();
    let mut places: Vec<Vec<Places>> = Vec::new();
    for (mut candidate, waited) in each {
        let like = |(one, _): &(Candidate, f64)| {
            one.cause == candidate.cause && one.removals.len() == candidate.removals.len()
        };
        let Some(at) = kept.iter().position(like).filter(|_| ALIKE.contains(&candidate.cause))
        else {
            places.push(candidate.removals.iter().map(|edits| Places::new(edits)).collect());
            kept.push((candidate, waited));
            others.push(Vec::new());
            continue;
        };
        let (first, longest) = &mut kept[at];
        if windows(first) && waited > *longest {
            std::mem::swap(&mut first.subjects, &mut candidate.subjects);
            std::mem::swap(&mut first.evidence, &mut candidate.evidence);
            *longest = waited;
        }
        others[at].extend(candidate.subjects);
        let removals = first.removals.iter_mut().zip(&mut places[at]);
        for ((edits, places), other) in removals.zip(candidate.removals) {
            for edit in other {
                places.add_to(edits, edit);
            }
        }
    }
    let with_others = |((mut candidate, _), others): ((Candidate, f64), Vec<Subject>)| {
        if !others.is_empty() {
            candidate.evidence.push(Evidence::AlsoOf { others: Others(others) });
        }
        candidate
    };
    kept.into_iter().zip(others).map(with_others).collect()
}

/// Where edits are in a list, by their keys: edits of thousands of flows are not compared with each
/// other.
struct Places(BTreeMap<KeyPath, Vec<usize>>);

impl Places {
    fn new(edits: &[Edit]) -> Self {
        let mut places = Self(BTreeMap::new());
        for (at, edit) in edits.iter().enumerate() {
            places.0.entry(edit.key.clone()).or_default().push(at);
        }
        places
    }

    /// Adds an edit to the list unless it is present; of two lengths of the run, the longer one is
    /// kept.
    fn add_to(&mut self, edits: &mut Vec<Edit>, edit: Edit) {
        let same =
            |one: &Edit| *one == edit || run_length(one).is_some() && run_length(&edit).is_some();
        let places = self.0.entry(edit.key.clone()).or_default();
        match places.iter().find(|&&at| same(&edits[at])) {
            Some(&at) if run_length(&edit) > run_length(&edits[at]) => edits[at] = edit,
            Some(_) => {}
            None => {
                places.push(edits.len());
                edits.push(edit);
            }
        }
    }
}

/// The key of the length of the run.
const RUN_LENGTH: &str = "run.duration_s";

/// The length of the run that an edit sets, in seconds.
fn run_length(edit: &Edit) -> Option<f64> {
    edit.setting.number().filter(|_| edit.key == KeyPath::new(RUN_LENGTH))
}

/// Adds a candidate about a flow.
fn push(
    all: &mut Vec<Candidate>,
    cause: Cause,
    flow: &FlowConfig,
    evidence: Evidence,
    removals: Vec<Vec<Edit>>,
) {
    let subject = Subject::Flow(flow.id.clone());
    all.push(Candidate::new(cause, subject, vec![evidence], removals));
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
    let path = config.key();
    let bdp = observed.bdp_bytes(config.direction).unwrap_or(0.0);
    // If the application reads slowly, a large buffer would only hide that.
    let large = match tcp.receiver.reader {
        ReaderConfig::AtOnce | ReaderConfig::Driver => {
            (LARGE_BDPS * bdp).clamp(LARGE_WINDOW, f64::from(1 << 29)).round()
        }
        ReaderConfig::Rate(_) | ReaderConfig::After(_) => (2.0 * bdp).max(65_536.0).round(),
    };
    let scaled = path.set("options.window_scaling", true);
    let both = vec![path.set("window_bytes", large), scaled.clone()];
    let of_receiver = vec![path.set("receive_buffer_bytes", large), scaled];
    let of_sender = vec![path.set("send_buffer_bytes", large)];
    let (received, sent) = (limited.receive_window / lived, limited.send_buffer / lived);
    let sizes = (tcp.receiver.receive_buffer.max, tcp.sender.send_buffer);
    // If both are equal the sender reaches its own limit first; but the window is what people know.
    let of_window = received >= sent || sizes.0 == sizes.1;
    let (cause, share, by, mut removal, other) = if of_window {
        let by = if received >= sent { Window::Receiver } else { Window::Both };
        (Cause::ReceiveWindow, received.max(sent), by, of_receiver, of_sender)
    } else {
        (Cause::SendBuffer, sent, Window::Sender, of_sender, of_receiver)
    };
    if share <= RARELY {
        return;
    }
    // If the next limit is hardly larger, it would limit as much.
    let (own, next) = if of_window { sizes } else { (sizes.1, sizes.0) };
    if next < 2 * own {
        removal.extend(other);
    }
    let flow = config.id.clone();
    let evidence = Evidence::Limited { by, flow, share: Percent(share), bdp: Bytes(bdp) };
    push(all, cause, config, evidence, vec![removal, both]);
}

/// Flow control of QUIC, and what its sender keeps until it is acknowledged.
fn quic_windows(
    observed: &Observed<'_>,
    config: &FlowConfig,
    quic: &QuicConfig,
    flow: &FlowSummary,
    all: &mut Vec<Candidate>,
) {
    let Some(limited) = &flow.limited_s else { return };
    let (path, bdp) = (config.key(), observed.bdp_bytes(config.direction).unwrap_or(0.0));
    let raised = |key| path.set(key, (LARGE_BDPS * bdp).max(LARGE_WINDOW).round());
    let receiver = (Cause::ReceiveWindow, Window::Receiver, "receive_window_bytes");
    let sender = (Cause::SendBuffer, Window::QuicSender, "send_window_bytes");
    let sizes = (quic.receive_window, quic.send_window);
    let (seconds, (cause, by, key), (own, next), other) =
        if limited.receive_window >= limited.send_buffer {
            (limited.receive_window, receiver, sizes, sender.2)
        } else {
            (limited.send_buffer, sender, (sizes.1, sizes.0), receiver.2)
        };
    let share = seconds / lived_s(observed, flow);
    if share <= RARELY {
        return;
    }
    let mut removal = vec![raised(key)];
    if next < 2 * own {
        removal.push(raised(other));
    }
    let flow = config.id.clone();
    let evidence = Evidence::Limited { by, flow, share: Percent(share), bdp: Bytes(bdp) };
    push(all, cause, config, evidence, vec![removal]);
}

fn reader(config: &FlowConfig, tcp: &TcpConfig, all: &mut Vec<Candidate>) {
    let path = config.key();
    let flow = config.id.clone();
    let (evidence, faster) = match tcp.receiver.reader {
        ReaderConfig::Rate(rate) => (
            Evidence::ReadsAt { flow, rate: Mbps(rate.bps() as f64 / 1e6) },
            path.set("read_rate_mbps", 100_000),
        ),
        ReaderConfig::After(delay) => (
            Evidence::ReadsLate { flow, by: Ms(delay.as_millis_f64()) },
            path.set("application.read_delay_ms", 0),
        ),
        ReaderConfig::AtOnce | ReaderConfig::Driver => return,
    };
    push(all, Cause::ApplicationLimited, config, evidence, vec![vec![faster]]);
}

/// An application that does not have everything to send at once.
fn writer(config: &FlowConfig, all: &mut Vec<Candidate>) {
    let Traffic::File { writes, .. } = &config.traffic else { return };
    let Some(last) = writes.last().filter(|last| last.as_nanos() > 0) else { return };
    let after = Ms(last.as_millis_f64());
    let evidence = Evidence::Writes { flow: config.id.clone(), after };
    let at_once = config.key().set("write_times_s", "0");
    push(all, Cause::ApplicationLimited, config, evidence, vec![vec![at_once]]);
}

fn slow_start(
    observed: &Observed<'_>,
    config: &FlowConfig,
    flow: &FlowSummary,
    all: &mut Vec<Candidate>,
) {
    let path = config.key();
    let early = |reason| matches!(reason, "delay" | "falling_minimum" | "ack_train" | "css");
    if let Some(exit) = flow.slow_start_exit.as_ref().filter(|exit| early(exit.reason)) {
        let (flow, segments, reason) = (config.id.clone(), exit.cwnd_segments, exit.reason);
        let evidence = match exit.bdp_fraction.map(Percent) {
            None => Evidence::SlowStartEnded { flow, segments, reason },
            Some(bdp_share) => Evidence::SlowStartEndedAt { flow, segments, bdp_share, reason },
        };
        let stays = vec![vec![path.set("slow_start", "none")]];
        push(all, Cause::SlowStartExit, config, evidence, stays);
    }
    // The first slow start has no other ssthresh.
    if let Some(exit) = flow.slow_start_exit.as_ref().filter(|exit| exit.reason == "ssthresh") {
        let (flow, segments) = (config.id.clone(), exit.cwnd_segments);
        let forgets = vec![vec![path.set("route.metrics", "none")]];
        let evidence = Evidence::KeptSsthresh { flow, segments };
        push(all, Cause::KeptSsthresh, config, evidence, forgets);
    }
    let rtt_s = flow.rtt_ms.as_ref().map_or(0.1, |rtt| rtt.min / 1e3);
    if let Traffic::File { size, .. } = config.traffic
        && let Some(completed) = flow.completed_s
        && flow.slow_start_exit.as_ref().is_none_or(|exit| {
            exit.time_s > completed / 2.0 || completed < f64::from(FEW_ROUNDS) * rtt_s
        })
    {
        let bdp = observed.bdp_bytes(config.direction).unwrap_or(1e6);
        let segments = (bdp.min(size as f64) / 1448.0).ceil().clamp(20.0, 1000.0);
        let rounds = (completed / rtt_s).ceil();
        let evidence = Evidence::StillGrowing { flow: config.id.clone(), rounds };
        let window = path.set("initial_window_segments", segments);
        // The receiver's first window must hold the sender's.
        let both =
            vec![window.clone(), path.set("buffer.initial_receive_bytes", 4000.0 * segments)];
        push(all, Cause::SlowStart, config, evidence, vec![both, vec![window]]);
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
    let id = config.id.clone();
    let evidence = match flow.steady_mbps {
        Some(steady) if steady > 1.05 * goodput => {
            Evidence::Ramped { flow: id, second_half: Mbps(steady), mean: Mbps(goodput) }
        }
        None if rounds < FEW_ROUNDS_OF_TEST => {
            Evidence::Short { flow: id, lasted: Seconds(lived), rounds }
        }
        _ => return,
    };
    let longer = if lived < SHORT_S { 10.0 } else { 4.0 };
    let end = observed.scenario.run.duration.as_secs_f64();
    let mut sets = vec![Edit::new(RUN_LENGTH, (end + (longer - 1.0) * lived).ceil())];
    if let Some(duration) = duration {
        let lasts = (longer * duration.as_secs_f64()).ceil();
        sets.push(config.key().set("duration_s", lasts));
    }
    push(all, Cause::TestTooShort, config, evidence, vec![sets]);
}

/// Whether another flow of its direction ends, or would end in a longer test, and leaves its
/// capacity: a file of more than a tenth of what the flow itself has carried. What a longer test
/// gains then is not the ramp.
fn others_end(observed: &Observed<'_>, config: &FlowConfig, flow: &FlowSummary) -> bool {
    let much = LEAST * flow.bytes_delivered as f64;
    let end = |flow: &FlowConfig| match flow.traffic {
        Traffic::Bulk { duration: Some(duration), .. }
        | Traffic::Quic { duration: Some(duration), .. } => {
            Some(flow.start.as_secs_f64() + duration.as_secs_f64())
        }
        _ => None,
    };
    let own = end(config).unwrap_or(f64::INFINITY);
    observed.scenario.flows.iter().any(|other| {
        let ends = match other.traffic {
            Traffic::File { size, .. } | Traffic::Quic { size: Some(size), .. } => {
                size as f64 > much
            }
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
    let with = |control: &str| -> Vec<Edit> {
        let set_of =
            |(config, _): &(&FlowConfig, &TcpConfig)| config.key().set("congestion", control);
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
        let bdp = observed.bdp_bytes(config.direction).unwrap_or(1e6);
        let segments = (1.25 * bdp / f64::from(tcp.sender.mss)).ceil().max(10.0);
        control.then(|| config.key().set("fixed_window_segments", segments))
    };
    let (held, windows): (Vec<_>, Vec<_>) =
        flows.iter().filter_map(|flow| Some((flow.0, fixed(flow)?))).unzip();
    let (cause, evidence, removals) = if let Some(held) = held.first() {
        (Cause::CongestionControl, Evidence::FixedWindow { flow: held.id.clone() }, windows)
    } else if mixed {
        let runs = |(config, tcp): &(&FlowConfig, &TcpConfig)| (used(tcp), config.id.clone());
        let controls = Controls::of(flows.iter().map(runs));
        (Cause::CongestionMix, Evidence::Controls { controls }, with("cubic"))
    } else {
        let evidence = Evidence::Control { flow: first.id.clone(), control: used(tcp) };
        (Cause::CongestionControl, evidence, with(other))
    };
    push(all, cause, held.first().unwrap_or(first), evidence, vec![removals]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_added_once_and_of_two_lengths_the_longer_one_is_kept() {
        let window = |flow: usize| Edit::new(&format!("flow.{flow}.window_bytes"), 65_536.0);
        let length = |seconds: f64| Edit::new(RUN_LENGTH, seconds);
        let mut edits = vec![length(20.0), window(0)];
        let mut places = Places::new(&edits);
        for edit in [window(1), length(30.0), window(0), window(1), length(10.0)] {
            places.add_to(&mut edits, edit);
        }
        assert_eq!(edits, [length(30.0), window(0), window(1)]);
    }
}
