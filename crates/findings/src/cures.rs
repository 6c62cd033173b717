//! What a user can do against a cause. Each is tried before it is advised.

use airpath_scenario::Traffic;

use crate::candidate::Candidate;
use crate::cause::Cause;
use crate::causes::{everywhere, set};
use crate::facts::{Facts, direction_name, path_of};

/// Something to try against a cause.
pub(crate) struct Cure {
    /// What to do, as a sentence.
    pub(crate) advice: String,
    /// Settings, alternatives first to last.
    pub(crate) alternatives: Vec<Vec<String>>,
}

/// What may help, best first. `removal` takes the cause away; where the user can do just that, it
/// is among them.
pub(crate) fn cures(facts: &Facts<'_>, candidate: &Candidate, removal: &[String]) -> Vec<Cure> {
    let subject = &candidate.subject;
    let itself = |advice: String| Cure { advice, alternatives: vec![removal.to_vec()] };
    let bbr = || Cure {
        advice: "Use BBR at the sender: it does not take every loss for congestion \
                 (net.ipv4.tcp_congestion_control=bbr)."
            .to_owned(),
        alternatives: vec![congestion(facts, "bbr")],
    };
    match candidate.cause {
        Cause::OneWayPath => vec![itself(format!(
            "Let {subject} pass what comes from outside, or let the UE's side send first."
        ))],
        Cause::NatBinding => vec![itself(format!(
            "Raise the binding's lifetime at {subject}, or let the UE send something more often \
             (keep-alive)."
        ))],
        Cause::DoubleNat => {
            vec![itself(format!(
                "Take {subject} away: one NAT is enough, bridge or route instead."
            ))]
        }
        Cause::Mtu | Cause::Fragmentation => {
            vec![clamped(facts, 1380), clamped(facts, 1240), itself("Raise the MTU.".to_owned())]
        }
        Cause::RandomLoss => vec![bbr()],
        Cause::Policer => vec![deeper_bucket(facts, subject), bbr(), paced(facts)],
        Cause::Shaper => vec![bbr()],
        Cause::Reordering => vec![
            itself(format!("Keep the order of packets at {subject} (one path a flow).")),
            profile(facts),
        ],
        Cause::StallingHost => vec![itself(
            "Give the forwarding host CPUs of its own (pinning, no overcommitment), or forward in \
             hardware."
                .to_owned(),
        )],
        Cause::Proxy => vec![itself("Lead the flow around the proxy.".to_owned())],
        Cause::CrossTraffic => vec![itself(format!("Take {subject} off this path, or shape it."))],
        Cause::ReceiveWindow | Cause::SendBuffer => windows(facts, candidate, removal),
        Cause::ApplicationLimited => {
            vec![itself("Let the application read and write faster.".to_owned())]
        }
        Cause::ShortQueue => vec![itself(format!("Lengthen the queue of {subject}.")), bbr()],
        Cause::Bufferbloat => vec![
            itself(format!("Manage the queue of {subject} (CoDel).")),
            shorter_queue(facts, subject, 1.0),
            shorter_queue(facts, subject, 2.0),
            bbr(),
        ],
        Cause::AckStarvation => {
            vec![thinner(facts, 8), itself(format!("Give {subject} more rate."))]
        }
        Cause::AckBatching => vec![bbr(), itself(format!("Do not batch at {subject}."))],
        Cause::Drx => vec![itself(
            "Switch DRX off for UEs of this kind, or lengthen drx-InactivityTimer.".to_owned(),
        )],
        Cause::UplinkAccess => vec![itself(
            "Grant uplink unasked (proactive or configured grants), or shorten the period of \
             scheduling requests."
                .to_owned(),
        )],
        Cause::RadioLoss => vec![bbr()],
        Cause::RrcPromotion => vec![itself(
            "Keep UEs connected for longer (RRC inactivity timer), or use RRC_INACTIVE.".to_owned(),
        )],
        Cause::Handover => vec![itself(
            "Shorten the interruption and forward what waits in the old base station.".to_owned(),
        )],
        Cause::RadioLinkFailure => vec![itself(
            "Hand over earlier, or let the UE wait longer before it gives the link up (T310)."
                .to_owned(),
        )],
        Cause::Placement => {
            vec![itself("Place the server beside the UPF (place = \"upf\").".to_owned())]
        }
        Cause::SlowStartExit => vec![
            itself(format!(
                "Let {subject} stay in slow start (hystart=0 of the kernel's tcp_cubic module)."
            )),
            bbr(),
        ],
        Cause::SlowStart => vec![itself(format!(
            "Begin with a larger window at the sender of {subject} (ip route … initcwnd)."
        ))],
        Cause::CongestionMix => vec![itself(
            "Use one congestion control for all flows that share this queue, or a queue for each \
             (FQ-CoDel)."
                .to_owned(),
        )],
        Cause::CongestionControl => vec![itself(
            "Use the other congestion control at the sender (net.ipv4.tcp_congestion_control)."
                .to_owned(),
        )],
        Cause::TestTooShort => vec![itself(
            "Test for longer, or report the second half only: the average measures the ramp."
                .to_owned(),
        )],
        Cause::LinkCapacity | Cause::RadioCapacity => Vec::new(),
    }
}

fn congestion(facts: &Facts<'_>, control: &str) -> Vec<String> {
    let flows = facts.tcp_flows();
    flows
        .map(|(flow, _)| set(format!("flow.{}.congestion", flow.index), format!("\"{control}\"")))
        .collect()
}

/// Every TCP flow with a setting.
fn of_tcp(facts: &Facts<'_>, key: &str, value: &str) -> Vec<String> {
    facts.tcp_flows().map(|(flow, _)| set(format!("flow.{}.{key}", flow.index), value)).collect()
}

fn clamped(facts: &Facts<'_>, mss: u32) -> Cure {
    let mut sets = of_tcp(facts, "mss_bytes", &mss.to_string());
    for flow in &facts.scenario.flows {
        if let Traffic::Udp { packet_bytes, .. } | Traffic::Ping { packet_bytes, .. } = flow.traffic
            && packet_bytes > mss + 52
        {
            sets.push(set(format!("flow.{}.packet_bytes", flow.index), mss + 52));
        }
    }
    Cure {
        advice: format!(
            "Send smaller packets: clamp the MSS to {mss} bytes (nft … tcp option maxseg size set \
             {mss}), datagrams likewise."
        ),
        alternatives: vec![sets],
    }
}

fn deeper_bucket(facts: &Facts<'_>, stage: &str) -> Cure {
    let bdp = facts.run.flows.iter().filter_map(|flow| flow.rtt_ms.as_ref()).map(|rtt| rtt.p95);
    let rtt_ms = bdp.fold(50.0, f64::max);
    let rate_mbps =
        facts.scenario.down.iter().chain(&facts.scenario.up).find_map(|one| match &one.stage {
            airpath_path::StageConfig::Policer(policer) if one.name == stage => {
                Some(policer.rate.bps() as f64 / 1e6)
            }
            _ => None,
        });
    let burst = rate_mbps.unwrap_or(10.0) * 1e6 / 8.0 * 2.0 * rtt_ms / 1e3;
    Cure {
        advice: format!(
            "Allow {stage} a burst of rate × 2 RTT ({burst:.0} bytes), as RFC 2697's committed burst \
             size, or shape instead of policing."
        ),
        alternatives: vec![vec![set(format!("{}.burst_bytes", path_of(stage)), burst.round())]],
    }
}

fn paced(facts: &Facts<'_>) -> Cure {
    Cure {
        advice: "Pace at the sender (qdisc fq).".to_owned(),
        alternatives: vec![of_tcp(facts, "pacing", "true")],
    }
}

fn profile(facts: &Facts<'_>) -> Cure {
    Cure {
        advice: "Use a sender whose loss detection is RACK (Linux since 4.18).".to_owned(),
        alternatives: vec![of_tcp(facts, "profile", "\"linux-6.18\"")],
    }
}

fn windows(facts: &Facts<'_>, candidate: &Candidate, removal: &[String]) -> Vec<Cure> {
    let direction = facts
        .scenario
        .flows
        .iter()
        .find(|flow| flow.id == candidate.subject)
        .map_or("down", |flow| direction_name(flow.direction));
    // What the path holds, and as much again for what its queues hold.
    let bdp = facts.bdp_bytes(direction).unwrap_or(0.0);
    let sized = |factor: f64| {
        let wanted = (factor * bdp).max(65_536.0);
        // A whole number of 64 KiB.
        (wanted / 65_536.0).ceil() * 65_536.0
    };
    let with = |factor: f64| {
        let value = sized(factor);
        let sets: Vec<String> = removal
            .iter()
            .map(|one| match one.split_once('=') {
                Some((key, _)) if key.ends_with("_bytes") => set(key, value),
                _ => one.clone(),
            })
            .collect();
        Cure {
            advice: format!(
                "Raise the buffers of {} to {value:.0} bytes (net.ipv4.tcp_rmem and tcp_wmem, third \
                 value; SO_RCVBUF, iperf3 -w).",
                candidate.subject
            ),
            alternatives: vec![sets],
        }
    };
    vec![with(2.0), with(6.0)]
}

fn shorter_queue(facts: &Facts<'_>, stage: &str, factor: f64) -> Cure {
    let direction = if crate::facts::direction_of(stage) == "up" { "up" } else { "down" };
    let bdp = (factor * facts.bdp_bytes(direction).unwrap_or(1e5)).max(15_000.0).round();
    let path = path_of(stage);
    let radio = stage.starts_with("radio.");
    let part = if direction == "up" { "rlc_up" } else { "rlc" };
    Cure {
        advice: format!(
            "Shorten the queue of {stage} to {bdp:.0} bytes ({factor} × bandwidth × shortest RTT)."
        ),
        alternatives: if radio {
            everywhere(facts, &[(&format!("{part}.buffer_bytes"), bdp.to_string())])
        } else {
            vec![vec![set(format!("{path}.queue_bytes"), bdp)]]
        },
    }
}

fn thinner(facts: &Facts<'_>, segments: u32) -> Cure {
    Cure {
        advice: format!("Acknowledge every {segments} segments only (ACK thinning)."),
        alternatives: vec![of_tcp(facts, "delayed_ack_segments", &segments.to_string())],
    }
}
