//! What a user can do against a cause. Each is tried before it is advised.

use std::collections::BTreeSet;

use airpath_path::{StageConfig, TunnelEnd};
use airpath_radio::Generation;
use airpath_scenario::{FlowConfig, TcpConfig, Traffic};
use airpath_tcp::CongestionConfig;

use crate::candidate::Candidate;
use crate::cause::Cause;
use crate::causes::{count, everywhere, listed, managed, set};
use crate::observed::{Observed, direction_name, path_of};
use crate::words::{Buffers, about_reports};

/// Something to try against a cause.
pub(crate) struct Cure {
    /// What to do, as a sentence.
    pub(crate) advice: String,
    /// Settings, alternatives first to last.
    pub(crate) alternatives: Vec<Vec<String>>,
}

/// What may help, best first. `removal` takes the cause away; where the user can do just that, it
/// is among them.
pub(crate) fn cures(
    observed: &Observed<'_>,
    candidate: &Candidate,
    removal: &[String],
) -> Vec<Cure> {
    let subject = &candidate.subject;
    let itself = |advice: String| Cure { advice, alternatives: vec![removal.to_vec()] };
    let bbr = || Cure {
        advice: format!(
            "Use BBR at {} (sysctl net.ipv4.tcp_congestion_control=bbr): {}.",
            if observed.scenario.proxy.is_some() {
                "the sender and at the proxy"
            } else {
                "the sender"
            },
            match candidate.cause {
                Cause::Bufferbloat => "it keeps queues short",
                _ => "it does not take every loss for congestion",
            }
        ),
        alternatives: vec![congestion(observed, "bbr")],
    };
    match candidate.cause {
        Cause::OneWayPath => vec![itself(format!(
            "Let {subject} pass what comes from outside, or let the UE's side send first."
        ))],
        Cause::NatBinding => {
            let lifetime = |seconds: &str| format!(
                "Raise the lifetime of bindings at {subject} to {seconds} s (RFC 4787 REQ-5), or let the \
                 UE send something more often (keep-alive)."
            );
            vec![
                Cure {
                    advice: lifetime("300"),
                    alternatives: vec![vec![set(format!("{}.timeout_s", path_of(subject)), 300)]],
                },
                itself(lifetime("1,000,000")),
            ]
        }
        Cause::DoubleNat => vec![itself(format!(
            "Take {subject} away: one NAT is enough; bridge or route instead."
        ))],
        Cause::Mtu | Cause::Fragmentation => vec![
            clamped(observed, 1380),
            clamped(observed, 1240),
            clamped(observed, fitting(observed, subject)),
            itself(format!("Raise the MTU of {subject}.")),
        ],
        Cause::RandomLoss => vec![bbr()],
        Cause::Policer => vec![
            deeper_bucket(observed, subject),
            bbr(),
            paced(observed),
            itself(format!("Ask for a higher rate than that of {subject}, or for none.")),
        ],
        Cause::Shaper => vec![itself(format!(
            "Raise the rate of {subject}, or do not shape there."
        ))],
        Cause::Reordering => vec![
            itself(format!("Keep the order of packets at {subject} (one path for each flow).")),
            profile(observed),
        ],
        Cause::StallingHost => vec![itself(
            "Give the forwarding host CPUs of its own (pinning, no overcommitment), or forward in \
             hardware."
                .to_owned(),
        )],
        Cause::Proxy => vec![itself("Lead the flow around the proxy.".to_owned())],
        Cause::CrossTraffic => vec![itself(format!(
            "Take {subject} off this path, or shape it (tc qdisc … tbf, a QoS class of its own)."
        ))],
        Cause::ReceiveWindow | Cause::SendBuffer => windows(observed, candidate, removal),
        Cause::ApplicationLimited => {
            let flows = flows_of(observed, candidate, removal);
            vec![itself(format!("Let the application of {flows} read and write faster."))]
        }
        Cause::ShortQueue => vec![
            itself(format!(
                "Lengthen the queue of {subject} (tc qdisc … pfifo limit, the buffer of the router or \
                 of RLC)."
            )),
            bbr(),
        ],
        Cause::Bufferbloat => vec![
            itself(format!(
                "Manage the queue of {subject} with CoDel (tc qdisc replace dev … root codel, or \
                 the base station's AQM)."
            )),
            of_each(candidate, |stage| queue_for_each(observed, stage)),
            of_each(candidate, |stage| shorter_queue(observed, stage, 1.0)),
            of_each(candidate, |stage| shorter_queue(observed, stage, 2.0)),
            of_each(candidate, |stage| shorter_queue(observed, stage, 4.0)),
            bbr(),
        ],
        Cause::AckStarvation => {
            vec![thinner(observed, 8), itself(format!("Raise the rate of {subject}."))]
        }
        Cause::AckBatching => vec![bbr(), itself(format!("Do not batch at {subject}."))],
        Cause::Drx => drx(observed, removal),
        Cause::UplinkAccess => {
            let unasked = at_the_cell(
                observed,
                "Grant uplink unasked at the base station (proactive or configured grants).",
                &[("grants.proactive_period_ms", "1"), ("grants.proactive_bytes", "200")],
            );
            match about_reports(removal) {
                true => vec![
                    itself(
                        "Let the base station's scheduler grant again after a block that had no room for a \
                         report."
                            .to_owned(),
                    ),
                    shortest_retx_bsr_timer(observed),
                    unasked,
                ],
                false => vec![
                    unasked,
                    itself(
                        "Shorten the period of scheduling requests at the base station \
                         (SchedulingRequestResourceConfig)."
                            .to_owned(),
                    ),
                ],
            }
        }
        Cause::RadioLoss => radio_loss(observed).into_iter().chain([bbr()]).collect(),
        Cause::RrcPromotion => vec![itself(
            "Keep the UE connected: an RRC inactivity timer that is longer than its pauses, or \
             RRC_INACTIVE."
                .to_owned(),
        )],
        Cause::Handover => vec![
            Cure {
                advice: "Forward what waits in the old base station to the new one.".to_owned(),
                alternatives: vec![vec![set("radio.mobility.forwarding", "\"all\"")]],
            },
            itself(
                "Hand over without interruption (DAPS, TS 38.300 9.2.3.2), and forward what waits in \
                 the old base station."
                    .to_owned(),
            ),
        ],
        Cause::RadioLinkFailure => vec![
            Cure {
                advice: "Let the UE wait longer before it gives the link up (T310).".to_owned(),
                alternatives: [4000, 2000].map(|ms| vec![set("radio.mobility.t310_ms", ms)]).into(),
            },
            itself("Do not let the UE give the link up, or hand over earlier.".to_owned()),
        ],
        Cause::Placement => {
            vec![itself("Place the server beside the UPF (place = \"upf\").".to_owned())]
        }
        Cause::SlowStartExit => vec![
            itself(format!(
                "Let {} stay in slow start (hystart=0 of the kernel's tcp_cubic module).",
                flows_of(observed, candidate, removal)
            )),
            bbr(),
        ],
        Cause::SlowStart => vec![itself(format!(
            "Begin with larger windows at both ends of {} (ip route … initcwnd and initrwnd).",
            flows_of(observed, candidate, removal)
        ))],
        Cause::CongestionMix => {
            let all = "Use one congestion control for all flows that share this queue";
            let mut cures = vec![itself(format!("{all}."))];
            let runs_bbr = |(_, tcp): (&FlowConfig, &TcpConfig)| {
                let congestion = &tcp.sender.congestion;
                matches!(congestion, CongestionConfig::Bbr1 { .. } | CongestionConfig::Bbr3 { .. })
            };
            if observed.tcp_flows().any(runs_bbr) {
                let alternatives = vec![congestion(observed, "bbr")];
                cures.push(Cure { advice: format!("{all}, and let it be BBR."), alternatives });
            }
            let links = ["down", "up"].map(|way| observed.links(way)).into_iter().flatten();
            let busiest = links.max_by(|one, other| one.utilisation.total_cmp(&other.utilisation));
            cures.extend(busiest.map(|link| queue_for_each(observed, &link.id)));
            cures
        }
        Cause::CongestionControl => {
            let quoted = removal.first().and_then(|one| one.split('"').nth(1));
            let control = quoted.unwrap_or("bbr");
            vec![itself(format!(
                "Use {control} at the sender (sysctl net.ipv4.tcp_congestion_control={control})."
            ))]
        }
        Cause::TestTooShort => vec![itself(
            "Test for longer (iperf3 -t), or report the second half only (iperf3 -O): the average \
             measures the ramp."
                .to_owned(),
        )],
        Cause::EmulationHost | Cause::LinkCapacity | Cause::RadioCapacity => Vec::new(),
    }
}

/// Settings of a flow are those of all its streams; the sentence that says so, or nothing.
pub(crate) fn of_streams(observed: &Observed<'_>, sets: &Option<Vec<String>>) -> String {
    let flows = &observed.scenario.flows;
    let mut groups: Vec<String> = Vec::new();
    for one in sets.iter().flatten() {
        let Some(index) = flow_index(one) else { continue };
        let streams: Vec<_> = flows.iter().filter(|flow| flow.index == index).collect();
        let Some(group) = streams.first().and_then(|flow| flow.group.as_ref()) else { continue };
        let words = format!("all {} streams of {group}", streams.len());
        if streams.len() > 1 && !groups.contains(&words) {
            groups.push(words);
        }
    }
    if groups.is_empty() {
        return String::new();
    }
    format!(" The settings are those of {}.", groups.join(" and "))
}

/// A sentence, and settings of every UE.
fn at_the_cell(observed: &Observed<'_>, advice: &str, sets: &[(&str, &str)]) -> Cure {
    let sets: Vec<_> = sets.iter().map(|&(key, value)| (key, value.to_owned())).collect();
    Cure { advice: advice.to_owned(), alternatives: everywhere(observed, &sets) }
}

/// retxBSR-Timer at its shortest: sf10 in NR (TS 38.331 BSR-Config), sf320 in LTE (TS 36.331
/// MAC-MainConfig).
fn shortest_retx_bsr_timer(observed: &Observed<'_>) -> Cure {
    let mut ues = observed.scenario.radio.iter().flat_map(|radio| radio.ran.ues.iter());
    let is_lte =
        ues.any(|ue| ue.in_cell.iter().any(|ue| ue.bsr.format.generation == Generation::Lte));
    let shortest = if is_lte { "320" } else { "10" };
    let advice =
        format!("Shorten retxBSR-Timer at the base station (BSR-Config) to {shortest} ms.");
    at_the_cell(observed, &advice, &[("bsr.retx_timer_ms", shortest)])
}

/// The gentler ones first: a UE that sleeps less needs more power.
fn drx(observed: &Observed<'_>, removal: &[String]) -> Vec<Cure> {
    let ues = observed.scenario.radio.iter().flat_map(|radio| radio.ran.ues.iter());
    let cycles = ues.filter_map(|ue| ue.in_cell.first()?.drx.as_ref());
    let longest = cycles.map(|drx| drx.long_cycle.as_millis_f64()).fold(0.0, f64::max);
    let shorter = |cycle: f64| {
        let advice = format!(
            "Shorten the DRX cycle at the base station to {cycle:.0} ms (drx-LongCycle). The UE then sleeps \
             less and needs more power."
        );
        at_the_cell(observed, &advice, &[("drx.long_cycle_ms", &format!("{cycle:.0}"))])
    };
    vec![
        shorter(20.0),
        shorter((longest / 2.0).round()),
        Cure {
            advice: "Release DRX for UEs of this kind at the base station, or let the UE send something \
                     more often than its inactivity timer (keep-alive). The UE then needs more power."
                .to_owned(),
            alternatives: vec![removal.to_vec()],
        },
    ]
}

fn radio_loss(observed: &Observed<'_>) -> Vec<Cure> {
    vec![
        at_the_cell(
            observed,
            "Use RLC AM for this bearer: what HARQ gives up is sent again.",
            &[("rlc.mode", "\"am\""), ("rlc_up.mode", "\"am\"")],
        ),
        at_the_cell(
            observed,
            "Let HARQ send a block up to five times (maxHARQ-Tx).",
            &[("harq.max_transmissions", "5"), ("harq_up.max_transmissions", "5")],
        ),
        at_the_cell(
            observed,
            "Choose the MCS more carefully at the base station: a BLER target of 0.03.",
            &[("link_adaptation.bler_target", "0.03"), ("link_adaptation_up.bler_target", "0.03")],
        ),
    ]
}

/// All senders, that of a proxy included.
fn congestion(observed: &Observed<'_>, control: &str) -> Vec<String> {
    let control = format!("\"{control}\"");
    let mut sets = of_tcp(observed, "congestion", &control);
    if let Some(proxy) = &observed.scenario.proxy {
        for ends in [&proxy.down, &proxy.up] {
            sets.push(set(format!("{}.congestion", path_of(&ends.name)), &control));
        }
    }
    sets
}

/// Every TCP flow with a setting; the streams of a flow have theirs in common.
fn of_tcp(observed: &Observed<'_>, key: &str, value: &str) -> Vec<String> {
    let mut sets: Vec<String> = (observed.tcp_flows())
        .map(|(flow, _)| set(format!("flow.{}.{key}", flow.index), value))
        .collect();
    sets.dedup();
    sets
}

/// The MSS of segments that fit a stage's MTU, with the headers of the tunnel and of TCP: 20 or 40 bytes of IP,
/// 8 of UDP, up to 16 of GTP-U (TS 29.281 5.1); 52 of IP and TCP with timestamps.
fn fitting(observed: &Observed<'_>, stage: &str) -> u32 {
    let stages = observed.scenario.down.iter().chain(&observed.scenario.up);
    let mut mtus = stages.filter(|one| one.name == stage).filter_map(|one| match &one.stage {
        StageConfig::Mtu { bytes } => Some(*bytes),
        StageConfig::Gtpu(TunnelEnd::Enter(tunnel)) => tunnel.mtu.map(|mtu| mtu.saturating_sub(64)),
        _ => None,
    });
    mtus.next().unwrap_or(1240).saturating_sub(52).clamp(88, 1240)
}

fn clamped(observed: &Observed<'_>, mss: u32) -> Cure {
    let mut sets = of_tcp(observed, "mss_bytes", &mss.to_string());
    for flow in &observed.scenario.flows {
        if let Traffic::Udp { packet_bytes, .. } | Traffic::Ping { packet_bytes, .. } = flow.traffic
            && packet_bytes > mss + 52
        {
            sets.push(set(format!("flow.{}.packet_bytes", flow.index), mss + 52));
        }
    }
    sets.dedup();
    Cure {
        advice: format!(
            "Send smaller packets: clamp the MSS to {mss} bytes (nft … tcp option maxseg size set \
             {mss}), datagrams likewise."
        ),
        alternatives: vec![sets],
    }
}

fn deeper_bucket(observed: &Observed<'_>, stage: &str) -> Cure {
    let bdp = observed.run.flows.iter().filter_map(|flow| flow.rtt_ms.as_ref()).map(|rtt| rtt.p95);
    let rtt_ms = bdp.fold(50.0, f64::max);
    let rate_mbps = observed.scenario.down.iter().chain(&observed.scenario.up).find_map(|one| {
        match &one.stage {
            StageConfig::Policer(policer) if one.name == stage => {
                Some(policer.rate.bps() as f64 / 1e6)
            }
            _ => None,
        }
    });
    let burst = rate_mbps.unwrap_or(10.0) * 1e6 / 8.0 * 2.0 * rtt_ms / 1e3;
    Cure {
        advice: format!(
            "Let {stage} pass bursts of its rate × 2 RTT ({} bytes; RFC 2697 calls this the committed \
             burst size), or shape instead of policing.",
            count(burst)
        ),
        alternatives: vec![vec![set(format!("{}.burst_bytes", path_of(stage)), burst.round())]],
    }
}

fn paced(observed: &Observed<'_>) -> Cure {
    Cure {
        advice: "Pace at the sender (qdisc fq).".to_owned(),
        alternatives: vec![of_tcp(observed, "pacing.enabled", "true")],
    }
}

fn profile(observed: &Observed<'_>) -> Cure {
    Cure {
        advice: "Use a sender whose loss detection is RACK (Linux since 4.18).".to_owned(),
        alternatives: vec![of_tcp(observed, "profile", "\"linux-6.18\"")],
    }
}

/// Index of the flow that a setting is about.
fn flow_index(set: &str) -> Option<usize> {
    set.strip_prefix("flow.")?.split('.').next()?.parse().ok()
}

/// The flows that settings are about, in words: that of the candidate first, a group of streams as one.
fn flows_of(observed: &Observed<'_>, candidate: &Candidate, sets: &[String]) -> String {
    let of = |index: usize| {
        let mut streams = observed.scenario.flows.iter().filter(|flow| flow.index == index);
        let own = streams.clone().find(|flow| flow.id == candidate.subject);
        own.or_else(|| streams.next()).map(|flow| {
            if own.is_some() { &flow.id } else { flow.group.as_ref().unwrap_or(&flow.id) }
        })
    };
    let mut named: Vec<String> = Vec::new();
    for name in sets.iter().filter_map(|one| of(flow_index(one)?)) {
        if !named.contains(name) {
            named.push(name.clone());
        }
    }
    named.sort_by_key(|name| *name != candidate.subject);
    if named.is_empty() { candidate.subject.clone() } else { listed(&named) }
}

fn windows(observed: &Observed<'_>, candidate: &Candidate, removal: &[String]) -> Vec<Cure> {
    let flows = flows_of(observed, candidate, removal);
    let indices: Vec<usize> = removal.iter().filter_map(|one| flow_index(one)).collect();
    let how_many = indices.iter().collect::<BTreeSet<_>>().len();
    let raise = |size| Buffers::of(removal).raise(&flows, how_many, size);
    let largest = Cure { advice: raise(None), alternatives: vec![removal.to_vec()] };
    let held = || observed.tcp_flows().filter(|(flow, _)| indices.contains(&flow.index));
    // What the path holds, and as much again for what its queues hold.
    let bdps = held().filter_map(|(flow, _)| observed.bdp_bytes(direction_name(flow.direction)));
    let bdp = bdps.fold(0.0, f64::max);
    // Less than they have, or hardly more, would not help.
    let sizes = held().map(|(_, tcp)| match candidate.cause {
        Cause::SendBuffer => tcp.sender.send_buffer,
        _ => tcp.receiver.receive_buffer.max,
    });
    let has = sizes.max().unwrap_or(0);
    let sized = |factor: f64| {
        let wanted = (factor * bdp).max(factor * has as f64).max(65_536.0);
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
        Cure { advice: raise(Some(value)), alternatives: vec![sets] }
    };
    vec![with(2.0), with(6.0), largest]
}

/// What is done to one subject is done to all.
fn of_each(candidate: &Candidate, cure: impl Fn(&str) -> Cure) -> Cure {
    let cures = candidate.subjects().into_iter().map(cure);
    let both = |all: Cure, one: Cure| Cure {
        advice: format!("{} {}", all.advice, one.advice),
        alternatives: (all.alternatives.into_iter().zip(one.alternatives))
            .map(|(all, one)| [all, one].concat())
            .collect(),
    };
    cures.reduce(both).expect("a candidate is about something")
}

fn queue_for_each(observed: &Observed<'_>, stage: &str) -> Cure {
    let rate_mbps = observed.link(stage).map_or(100.0, |link| link.capacity_mbps);
    let part = if crate::observed::direction_of(stage) == "up" { "rlc_up" } else { "rlc" };
    Cure {
        advice: format!(
            "Give each flow a queue of its own at {stage}, with CoDel (tc qdisc replace dev … root \
             fq_codel)."
        ),
        alternatives: if stage.starts_with("radio.") {
            let keys =
                ["aqm", "codel_target_ms", "codel_interval_ms"].map(|key| format!("{part}.{key}"));
            let values = ["\"fq_codel\"", "30", "150"];
            let sets: Vec<_> = (keys.iter().zip(values))
                .map(|(key, value)| (key.as_str(), value.to_owned()))
                .collect();
            everywhere(observed, &sets)
        } else {
            vec![managed(
                &path_of(stage),
                "fq_codel",
                rate_mbps,
                observed.base_rtt_ms().unwrap_or(0.0),
            )]
        },
    }
}

fn shorter_queue(observed: &Observed<'_>, stage: &str, factor: f64) -> Cure {
    let direction = if crate::observed::direction_of(stage) == "up" { "up" } else { "down" };
    let bdp = (factor * observed.bdp_bytes(direction).unwrap_or(1e5)).max(15_000.0).round();
    let path = path_of(stage);
    let radio = stage.starts_with("radio.");
    let part = if direction == "up" { "rlc_up" } else { "rlc" };
    Cure {
        advice: format!(
            "Shorten the queue of {stage} to {} bytes ({factor} × rate × shortest RTT).",
            count(bdp)
        ),
        alternatives: if radio {
            everywhere(observed, &[(&format!("{part}.buffer_bytes"), bdp.to_string())])
        } else {
            vec![vec![set(format!("{path}.queue_bytes"), bdp)]]
        },
    }
}

fn thinner(observed: &Observed<'_>, segments: u32) -> Cure {
    Cure {
        advice: format!("Acknowledge every {segments} segments only (ACK thinning)."),
        alternatives: vec![of_tcp(observed, "ack.delayed_segments", &segments.to_string())],
    }
}
