//! What a user can do against a cause. Each cure is tried before it is advised.

mod sizes;

use std::collections::BTreeSet;

use airpath_base::Direction;
use airpath_path::{HostConfig, ModemConfig, StageConfig, TunnelConfig};
use airpath_radio::Generation;
use airpath_scenario::{Edit, FlowConfig, KeyPath, Literal, StageId, TcpConfig, Traffic};
use airpath_tcp::CongestionConfig;

use crate::by_name::ByTable;
use crate::candidate::{Candidate, DROP_TAIL};
use crate::cause::Cause;
use crate::causes::{everywhere, managed, managed_buffer, ring_size, rlc_of};
use crate::observed::Observed;
use crate::subject::{Subject, named};
use crate::text::{count, listed, mbps, ms};
use crate::words::{Buffers, about_reports};
use sizes::{clamped, largest_packet, offload, vpn};

/// A cure to try against a cause.
pub(crate) struct Cure {
    /// What to do, as a sentence.
    pub(crate) advice: String,
    /// Alternative edits, in order.
    pub(crate) alternatives: Vec<Vec<Edit>>,
}

/// Cures that may help, best first. `removal` removes the cause; if the user can do just that, it
/// is among them.
pub(crate) fn cures(observed: &Observed<'_>, candidate: &Candidate, removal: &[Edit]) -> Vec<Cure> {
    let subject = named(&candidate.subjects);
    let stage = candidate.subject().stage();
    let at_the_stage = |cures: &dyn Fn(StageId) -> Vec<Cure>| stage.map_or_else(Vec::new, cures);
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
                _ => "it does not treat every loss as congestion",
            }
        ),
        alternatives: vec![congestion(observed, "bbr")],
    };
    match candidate.cause {
        Cause::OneWayPath => vec![itself(format!(
            "Let {subject} admit packets from outside, or have the UE send first."
        ))],
        Cause::NatBinding => {
            let lifetime = |seconds: &str| format!(
                "Raise the lifetime of bindings at {subject} to {seconds} s (RFC 4787 REQ-5), or have the \
                 UE send more often (keep-alives)."
            );
            vec![
                Cure {
                    advice: lifetime("300"),
                    alternatives: vec![stage.iter().map(|stage| stage.key().set("timeout_s", 300)).collect()],
                },
                itself(lifetime("1,000,000")),
            ]
        }
        Cause::DoubleNat => vec![itself(format!(
            "Remove {subject}: one NAT is enough; bridge or route instead."
        ))],
        Cause::Mtu | Cause::Fragmentation => stage
            .and_then(|stage| {
                let packet = largest_packet(observed, stage, TunnelConfig::largest_packet)?;
                clamped(observed, stage, packet)
            })
            .into_iter()
            .chain([itself(format!("Raise the MTU of {subject}."))])
            .collect(),
        Cause::Vpn => stage
            .and_then(|stage| vpn(observed, stage))
            .into_iter()
            .chain([itself(match stage.and_then(|stage| {
                largest_packet(observed, stage, TunnelConfig::largest_packet)
            }) {
                Some(_) => format!("Raise the MTU of the path outside the VPN of {subject}."),
                None => "Bypass the VPN for this traffic, or send larger packets.".to_owned(),
            })])
            .collect(),
        Cause::Offload => at_the_stage(&|stage| vec![itself(offload(observed, stage))]),
        Cause::RandomLoss => vec![bbr()],
        Cause::Policer => at_the_stage(&|stage| deeper_buckets(observed, stage))
            .into_iter()
            .chain([
                bbr(),
                paced(observed),
                itself(format!("Ask for a higher rate at {subject}, or for no policing.")),
            ])
            .collect(),
        Cause::Shaper => vec![itself(format!(
            "Raise the rate of {subject}, or do not shape there."
        ))],
        Cause::Reordering => vec![
            itself(format!("Keep packets in order at {subject} (one path per flow).")),
            profile(observed),
        ],
        Cause::StallingHost => vec![itself(
            "Give the forwarding host dedicated CPUs (pinning, no overcommitment), or forward in \
             hardware."
                .to_owned(),
        )],
        Cause::ReceiveRing => {
            let longer = at_the_stage(&|stage| longer_rings(observed, stage, removal));
            longer.into_iter().chain([bbr()]).collect()
        }
        Cause::HostProcessor => {
            at_the_stage(&|stage| faster_processors(observed, stage, removal))
        }
        Cause::InterruptModeration => vec![
            itself(
                "Switch interrupt moderation off where these packets are received (ethtool -C DEVICE adaptive-rx off \
                 rx-usecs 0). The host then takes more interrupts."
                    .to_owned(),
            ),
        ],
        Cause::AggregationTimer => vec![itself(
            "Let the modem's driver send at once. Blocks then carry fewer packets.\n\
             cdc_ncm, cdc_mbim: echo 5 > /sys/class/net/DEVICE/cdc_ncm/tx_timer_usecs\n\
             rmnet: ethtool -C DEVICE tx-aggr-max-frames 1"
                .to_owned(),
        )],
        Cause::ModemCeiling => at_the_stage(&|stage| faster_modems(observed, stage)),
        Cause::Proxy => vec![itself("Bypass the proxy.".to_owned())],
        Cause::CrossTraffic => vec![itself(format!(
            "Move {subject} off this path, or shape it (tc qdisc … tbf, or a QoS class of its own)."
        ))],
        Cause::ReceiveWindow | Cause::SendBuffer => windows(observed, candidate, removal),
        Cause::ApplicationLimited => {
            let flows = flows_of(observed, candidate, removal);
            vec![itself(format!("Make the application of {flows} read and write faster."))]
        }
        Cause::KeptSsthresh => vec![itself(format!(
            "Let the sender of {} keep no ssthresh (net.ipv4.tcp_no_ssthresh_metrics_save = 1), and forget what \
             it has kept (ip tcp_metrics flush).",
            flows_of(observed, candidate, removal)
        ))],
        Cause::ShortQueue => vec![
            itself(format!(
                "Lengthen the queue of {subject} (tc qdisc … pfifo limit, or the buffer of the router \
                 or of RLC)."
            )),
            bbr(),
        ],
        Cause::Bufferbloat => vec![
            itself(match stage {
                None => radio_aqm(candidate, removal),
                Some(_) => format!(
                    "Run CoDel where packets queue for {subject} (tc qdisc replace dev … root codel). To run it on \
                     a host upstream instead, first shape to that link's rate there."
                ),
            }),
            of_each(candidate, |queue| queue_for_each(observed, queue)),
            of_each(candidate, |queue| shorter_queue(observed, queue, 1.0)),
            of_each(candidate, |queue| shorter_queue(observed, queue, 2.0)),
            of_each(candidate, |queue| shorter_queue(observed, queue, 4.0)),
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
                "Use proactive or configured uplink grants at the base station.",
                &[
                    Edit::new("grants.proactive_period_ms", 1),
                    Edit::new("grants.proactive_bytes", 200),
                ],
            );
            match about_reports(removal) {
                true => vec![
                    itself(
                        "Have the base station's scheduler grant again after a transport block that had no \
                         room for a buffer status report."
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
        Cause::PdcpGap => vec![
            itself(
                "Shorten t-Reordering at the base station (PDCP-Config in NR, UM-RLC in LTE) to what HARQ \
                 needs for its retransmissions."
                    .to_owned(),
            ),
            acknowledged(observed),
        ],
        Cause::SplitBearer => vec![
            Cure {
                advice: "Have the base station send each packet on the leg where it waits less.".to_owned(),
                alternatives: vec![vec![Edit::new("radio.split.secondary_share", "shortest-wait")]],
            },
            Cure {
                advice: "Keep the bearer on one leg.".to_owned(),
                alternatives: vec![vec![Edit::new("radio.split.enabled", false)]],
            },
        ],
        Cause::RrcPromotion => vec![itself(
            "Keep the UE in RRC_CONNECTED: set the RRC inactivity timer longer than the gaps in its traffic. In \
             NR, RRC_INACTIVE helps too."
                .to_owned(),
        )],
        Cause::Handover => vec![
            Cure {
                advice: "Forward what the old base station has buffered to the new one.".to_owned(),
                alternatives: vec![vec![Edit::new("radio.mobility.forwarding", "all")]],
            },
            itself(
                "Hand over earlier and without interruption (DAPS, TS 38.300 9.2.3.2), and forward \
                 what the old base station has buffered. These settings are an ideal case: event A3 triggers \
                 at once, without hysteresis."
                    .to_owned(),
            ),
        ],
        Cause::CellOutage => vec![itself("Keep the cell in service.".to_owned())],
        Cause::RadioLinkFailure => vec![
            Cure {
                advice: "Let the UE wait longer before it declares radio link failure (T310).".to_owned(),
                alternatives: [4000, 2000]
                    .map(|ms| vec![Edit::new("radio.mobility.t310_ms", ms)])
                    .into(),
            },
            itself("Do not let the UE declare radio link failure, or hand over earlier.".to_owned()),
        ],
        Cause::Placement => {
            vec![itself(format!("Place the server next to the {}.", observed.edge()))]
        }
        Cause::SlowStartExit => vec![
            itself(format!(
                "Keep {} in slow start (hystart=0 of the kernel's tcp_cubic module).",
                flows_of(observed, candidate, removal)
            )),
            bbr(),
        ],
        Cause::SlowStart => vec![itself(format!(
            "Use larger initial windows at both ends of {} (ip route … initcwnd and initrwnd).",
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
                cures.push(Cure { advice: format!("{all}: BBR."), alternatives });
            }
            let queues = Direction::BOTH.into_iter().flat_map(|way| observed.queues_of(way));
            let busiest =
                queues.max_by(|(_, one), (_, other)| one.utilisation.total_cmp(&other.utilisation));
            cures.extend(busiest.map(|(queue, _)| queue_for_each(observed, queue)));
            cures
        }
        Cause::CongestionControl => {
            let control = removal.first().and_then(|edit| edit.setting.text()).unwrap_or("bbr");
            vec![itself(format!(
                "Use {control} at the sender (sysctl net.ipv4.tcp_congestion_control={control})."
            ))]
        }
        Cause::TestTooShort => vec![itself(
            "Run a longer test (iperf3 -t), or report only the second half (iperf3 -O): the average \
             mostly measures the ramp-up."
                .to_owned(),
        )],
        Cause::EmulationHost | Cause::LinkCapacity | Cause::RadioCapacity => Vec::new(),
    }
}

/// Which UEs the tables are that edits set, as a sentence; empty if they set none, or many.
pub(crate) fn of_ues(observed: &Observed<'_>, edits: &[Edit]) -> String {
    let Some(radio) = &observed.scenario.radio else { return String::new() };
    let list = KeyPath::new("radio.ue");
    let own = |ue: usize| {
        let table = list.at(ue);
        edits.iter().any(|edit| edit.key.is_in(&table))
    };
    let tables = observed.parsed.document.elements(&list);
    if tables != radio.ues.len() || !(1..=3).contains(&tables) || !(0..tables).any(own) {
        return String::new();
    }
    let names = radio.ues.iter().enumerate().map(|(ue, name)| format!("radio.ue.{ue} is {name}"));
    format!(" In the settings, {}.", listed(&names.collect::<Vec<_>>()))
}

/// Settings of a flow apply to all its streams; the sentence that says so, or an empty one.
pub(crate) fn of_streams(observed: &Observed<'_>, edits: &[Edit]) -> String {
    let flows = ByTable::new(&observed.scenario.flows);
    let mut groups: Vec<String> = Vec::new();
    for edit in edits {
        let streams = flows.edited_by(edit);
        let Some(group) = streams.first().and_then(|flow| flow.group.as_ref()) else { continue };
        let words = format!("all {} streams of {group}", streams.len());
        if streams.len() > 1 && !groups.contains(&words) {
            groups.push(words);
        }
    }
    if groups.is_empty() {
        return String::new();
    }
    format!(" The settings apply to {}.", listed(&groups))
}

/// A sentence, with settings for every UE.
fn at_the_cell(observed: &Observed<'_>, advice: &str, edits: &[Edit]) -> Cure {
    Cure { advice: advice.to_owned(), alternatives: everywhere(observed, edits) }
}

/// retxBSR-Timer at its shortest: sf10 in NR (TS 38.331 BSR-Config), sf320 in LTE (TS 36.331
/// MAC-MainConfig).
fn shortest_retx_bsr_timer(observed: &Observed<'_>) -> Cure {
    let mut ues = observed.scenario.radio.iter().flat_map(|radio| radio.ran.ues.iter());
    let is_lte =
        ues.any(|ue| ue.in_cell.iter().any(|ue| ue.bsr.format.generation == Generation::Lte));
    let shortest = if is_lte { 320 } else { 10 };
    let advice =
        format!("Shorten retxBSR-Timer at the base station (BSR-Config) to {shortest} ms.");
    at_the_cell(observed, &advice, &[Edit::new("bsr.retx_timer_ms", shortest)])
}

/// The gentler ones come first: a UE that sleeps less needs more power.
fn drx(observed: &Observed<'_>, removal: &[Edit]) -> Vec<Cure> {
    let ues = observed.scenario.radio.iter().flat_map(|radio| radio.ran.ues.iter());
    let cycles = ues.filter_map(|ue| ue.in_cell.first()?.drx.as_ref());
    let longest = cycles.map(|drx| drx.long_cycle.as_millis_f64()).fold(0.0, f64::max);
    let shorter = |cycle: f64| {
        let advice = format!(
            "Shorten the DRX cycle at the base station to {cycle:.0} ms (drx-LongCycle). The UE then sleeps \
             less and needs more power."
        );
        at_the_cell(observed, &advice, &[Edit::new("drx.long_cycle_ms", cycle)])
    };
    vec![
        shorter(20.0),
        shorter((longest / 2.0).round()),
        Cure {
            advice:
                "Release DRX for this UE at the base station (drx-Config), or have the UE send \
                     keep-alives before drx-InactivityTimer expires. The UE then needs more power."
                    .to_owned(),
            alternatives: vec![removal.to_vec()],
        },
    ]
}

fn acknowledged(observed: &Observed<'_>) -> Cure {
    at_the_cell(
        observed,
        "Use RLC AM for this bearer: it retransmits what HARQ gives up.",
        &[Edit::new("rlc.mode", "am"), Edit::new("rlc_up.mode", "am")],
    )
}

fn radio_loss(observed: &Observed<'_>) -> Vec<Cure> {
    vec![
        acknowledged(observed),
        at_the_cell(
            observed,
            "Let HARQ transmit a block up to five times (maxHARQ-Tx in the LTE uplink; otherwise a \
             setting of the base station's scheduler).",
            &[Edit::new("harq.max_transmissions", 5), Edit::new("harq_up.max_transmissions", 5)],
        ),
        at_the_cell(
            observed,
            "Choose a more conservative MCS at the base station: a BLER target of 0.03.",
            &[
                Edit::new("link_adaptation.bler_target", 0.03),
                Edit::new("link_adaptation_up.bler_target", 0.03),
            ],
        ),
    ]
}

/// All senders, including a proxy's.
fn congestion(observed: &Observed<'_>, control: &str) -> Vec<Edit> {
    let proxy = observed.scenario.proxy.iter().flat_map(|proxy| [&proxy.down, &proxy.up]);
    let proxy = proxy.map(|ends| ends.id.key().set("congestion", control));
    of_tcp(observed, "congestion", control).into_iter().chain(proxy).collect()
}

/// Every TCP flow with a setting; streams of a flow share theirs.
fn of_tcp(observed: &Observed<'_>, key: &str, setting: impl Into<Literal>) -> Vec<Edit> {
    let setting = setting.into();
    let set = |(flow, _): (&FlowConfig, _)| flow.key().set(key, setting.clone());
    let mut edits: Vec<Edit> = observed.tcp_flows().map(set).collect();
    edits.dedup();
    edits
}

/// What a policer's rate passes in one round trip, and in several; never less than a few packets.
fn deeper_buckets(observed: &Observed<'_>, stage: StageId) -> Vec<Cure> {
    let Some(StageConfig::Policer(policer)) = observed.stage(stage) else { return Vec::new() };
    let rate_mbps = policer.rate.bps() as f64 / 1e6;
    let in_a_round_trip = rate_mbps * 1e3 / 8.0 * observed.base_rtt_ms().unwrap_or(50.0);
    let size = |round_trips: f64| (round_trips * in_a_round_trip).max(FEW_PACKETS).round();
    let mut bursts = [1.0, 2.0, 8.0].map(size).to_vec();
    bursts.dedup();
    bursts.retain(|&burst| burst > policer.burst as f64);
    let deeper = |burst: f64| Cure {
        advice: format!(
            "Raise the burst of {stage} (RFC 2697: committed burst size) to {} bytes and leave its rate at {}, or \
             shape instead of policing.",
            count(burst),
            mbps(rate_mbps)
        ),
        alternatives: vec![vec![stage.key().set("burst_bytes", burst)]],
    };
    bursts.into_iter().map(deeper).collect()
}

/// A first window of ten segments (RFC 6928), in bytes.
const FEW_PACKETS: f64 = 15_000.0;

/// Longer rings, the shortest first; `removal` has the longest.
fn longer_rings(observed: &Observed<'_>, stage: StageId, removal: &[Edit]) -> Vec<Cure> {
    let longest = removal.first().and_then(|edit| edit.setting.number());
    let ring = match observed.stage(stage) {
        Some(StageConfig::Host(HostConfig { ring_packets, .. })) => *ring_packets,
        Some(StageConfig::Modem(ModemConfig { ring_packets, .. })) => *ring_packets,
        _ => None,
    };
    let has = ring.map(u64::from);
    let (Some(longest), Some(has)) = (longest, has) else { return Vec::new() };
    let mut sizes: Vec<u64> = [2, 4].map(|factor| ring_size(factor * has)).into();
    sizes.push(longest as u64);
    let to = |size: u64| Cure {
        advice: format!(
            "Lengthen the receive ring of {stage} to {size} packets (ring_packets; ethtool -G DEVICE rx {size}, or \
             for a TUN device ip link set DEVICE txqueuelen {size})."
        ),
        alternatives: vec![vec![stage.key().set("ring_packets", size)]],
    };
    sizes.dedup();
    sizes.into_iter().map(to).collect()
}

/// Faster processors, the slowest first; `removal` has the key of each stage that shares the processor.
fn faster_processors(observed: &Observed<'_>, stage: StageId, removal: &[Edit]) -> Vec<Cure> {
    let Some(StageConfig::Host(host)) = observed.stage(stage) else { return Vec::new() };
    let each = host.processing.as_millis_f64();
    let faster = |factor: f64| {
        // In whole nanoseconds, like the key.
        let each = ((each / factor * 1e6).round() / 1e6).max(1e-6);
        Cure {
            advice: format!(
                "Reduce the processor time at {stage} to {} per packet, which allows {} packets per second: spread flows \
                 over more processors (RPS: echo f > /sys/class/net/DEVICE/queues/rx-0/rps_cpus; or more workers of the \
                 UPF), forward packets in the kernel or with XDP or DPDK, or send larger packets (a larger MTU, GRO).",
                ms(each),
                count(1e3 / each)
            ),
            alternatives: vec![with(removal, each)],
        }
    };
    [2.0, 4.0, 16.0].map(faster).into()
}

/// Larger blocks, the smallest first, and a faster bus: a quarter of the time per transfer.
fn faster_modems(observed: &Observed<'_>, stage: StageId) -> Vec<Cure> {
    let Some(StageConfig::Modem(modem)) = observed.stage(stage) else { return Vec::new() };
    let larger = |factor: u32| {
        // cdc_ncm has NTBs of up to 64 KiB, rmnet aggregates of up to 32 KiB and 64 packets.
        let bytes = (factor * 16_384).max(modem.block_bytes);
        let packets = (factor * 16).max(40).max(modem.block_packets);
        let key = stage.key();
        Cure {
            advice: format!(
                "Let each transfer at {stage} carry up to {} bytes.\n\
                 cdc_ncm, cdc_mbim: echo {bytes} > /sys/class/net/DEVICE/cdc_ncm/tx_max (rx_max for the other \
                 direction)\n\
                 rmnet: ethtool -C DEVICE tx-aggr-max-bytes {} tx-aggr-max-frames {}\n\
                 qmi_wwan: ip link set DEVICE mtu {bytes} (which sets rx_urb_size)",
                count(f64::from(bytes)),
                bytes.min(32_768),
                packets.min(64),
            ),
            alternatives: vec![vec![
                key.set("block_bytes", bytes),
                key.set("block_packets", packets),
            ]],
        }
    };
    // In whole nanoseconds, like the key.
    let each = ((modem.transfer.as_millis_f64() / 4.0 * 1e6).round() / 1e6).max(1e-6);
    let faster = Cure {
        advice: format!(
            "Connect the modem of {stage} by a faster bus (USB 3, PCIe), so that a transfer takes {}.",
            ms(each)
        ),
        alternatives: vec![vec![stage.key().set("transfer_ms", each)]],
    };
    [1, 2, 4].map(larger).into_iter().chain([faster]).collect()
}

fn paced(observed: &Observed<'_>) -> Cure {
    Cure {
        advice: "Pace at the sender (qdisc fq).".to_owned(),
        alternatives: vec![of_tcp(observed, "pacing.enabled", true)],
    }
}

fn profile(observed: &Observed<'_>) -> Cure {
    Cure {
        advice: "Use a sender with RACK loss detection (Linux since 4.18).".to_owned(),
        alternatives: vec![of_tcp(observed, "profile", "linux-6.18")],
    }
}

/// The edits with another number in place of theirs.
fn with(edits: &[Edit], number: f64) -> Vec<Edit> {
    let of = |edit: &Edit| match edit.setting.number() {
        Some(_) => Edit { key: edit.key.clone(), setting: number.into() },
        None => edit.clone(),
    };
    edits.iter().map(of).collect()
}

/// The flows to which edits apply, in words: the candidate's first, a group of streams as one.
fn flows_of(observed: &Observed<'_>, candidate: &Candidate, edits: &[Edit]) -> String {
    let is_own = |name: &String| Subject::Flow(name.clone()) == *candidate.subject();
    let flows = ByTable::new(&observed.scenario.flows);
    let of = |edit: &Edit| {
        let streams = flows.edited_by(edit);
        let own = streams.iter().find(|flow| is_own(&flow.id)).map(|flow| &flow.id);
        own.or_else(|| streams.first().map(|flow| flow.group.as_ref().unwrap_or(&flow.id)))
    };
    let mut known = BTreeSet::new();
    let mut names: Vec<String> =
        edits.iter().filter_map(of).filter(|name| known.insert(*name)).cloned().collect();
    names.sort_by_key(|name| !is_own(name));
    if names.is_empty() { named(&candidate.subjects) } else { listed(&names) }
}

fn windows(observed: &Observed<'_>, candidate: &Candidate, removal: &[Edit]) -> Vec<Cure> {
    let flows = flows_of(observed, candidate, removal);
    let tables: BTreeSet<_> = removal.iter().flat_map(|edit| edit.key.tables()).collect();
    let is_edited = |flow: &FlowConfig| tables.contains(&flow.key());
    let edited = observed.scenario.flows.iter().filter(|flow| is_edited(flow));
    let how_many = edited.map(|flow| flow.index).collect::<BTreeSet<_>>().len();
    let raise = |size| Buffers::of(removal).raise(&flows, how_many, size);
    let largest = Cure { advice: raise(None), alternatives: vec![removal.to_vec()] };
    let held = || observed.scenario.flows.iter().filter(|flow| is_edited(flow));
    // What the path holds, and the same again for what its queues hold.
    let bdps = held().filter_map(|flow| observed.bdp_bytes(flow.direction));
    let bdp = bdps.fold(0.0, f64::max);
    // Sizes below the current ones, or hardly above, would not help.
    let sizes = held().filter_map(|flow| {
        let (receive, send) = match &flow.traffic {
            Traffic::Quic { quic, .. } => (quic.receive_window, quic.send_window),
            other => {
                let tcp = other.tcp()?;
                (tcp.receiver.receive_buffer.max, tcp.sender.send_buffer)
            }
        };
        Some(if candidate.cause == Cause::SendBuffer { send } else { receive })
    });
    let has = sizes.max().unwrap_or(0);
    let sized = |factor: f64| {
        let wanted = (factor * bdp).max(factor * has as f64).max(65_536.0);
        // A whole multiple of 64 KiB.
        (wanted / 65_536.0).ceil() * 65_536.0
    };
    let with = |factor: f64| {
        let value = sized(factor);
        Cure { advice: raise(Some(value)), alternatives: vec![self::with(removal, value)] }
    };
    vec![with(2.0), with(6.0), largest]
}

/// A cure for one subject is applied to all.
fn of_each(candidate: &Candidate, cure: impl Fn(&Subject) -> Cure) -> Cure {
    let cures = candidate.subjects.iter().map(cure);
    let both = |all: Cure, one: Cure| Cure {
        advice: format!("{} {}", all.advice, one.advice),
        alternatives: (all.alternatives.into_iter().zip(one.alternatives))
            .map(|(all, one)| [all, one].concat())
            .collect(),
    };
    cures.reduce(both).expect("a candidate is about something")
}

fn queue_for_each(observed: &Observed<'_>, queue: &Subject) -> Cure {
    let rate_mbps = observed.link(queue).map_or(100.0, |link| link.capacity_mbps);
    Cure {
        advice: format!(
            "Give each flow a queue of its own at {queue}, with CoDel (tc qdisc replace dev … root \
             fq_codel)."
        ),
        alternatives: in_queue(
            observed,
            queue,
            |stage| managed(stage, "fq_codel", rate_mbps, observed.base_rtt_ms().unwrap_or(0.0)),
            |direction| managed_buffer(direction, "fq_codel").into(),
        ),
    }
}

/// An AQM for the radio buffers of a candidate.
fn radio_aqm(candidate: &Candidate, removal: &[Edit]) -> String {
    let has = |way| candidate.subjects.iter().any(|subject| subject.direction() == Some(way));
    let buffers = match (has(Direction::Downlink), has(Direction::Uplink)) {
        (true, true) => "the buffers of the base station and of the UE",
        (_, true) => "the UE's uplink buffer",
        _ => "the base station's downlink buffer",
    };
    let keeps = removal.iter().any(|edit| edit.setting == DROP_TAIL.into());
    format!(
        "Use an AQM such as CoDel in {buffers} ({}).{}",
        named(&candidate.subjects),
        if keeps {
            " The uplink, which inherits the downlink's settings, keeps drop-tail."
        } else {
            ""
        }
    )
}

fn shorter_queue(observed: &Observed<'_>, queue: &Subject, factor: f64) -> Cure {
    let bdp = queue.direction().and_then(|direction| observed.bdp_bytes(direction));
    let bytes = (factor * bdp.unwrap_or(1e5)).max(15_000.0).round();
    Cure {
        advice: format!(
            "Shorten the queue of {queue} to {} bytes ({} at the smallest RTT).",
            count(bytes),
            match factor {
                1.0 => "one bandwidth-delay product".to_owned(),
                _ => format!("{factor} bandwidth-delay products"),
            }
        ),
        alternatives: in_queue(
            observed,
            queue,
            |stage| vec![stage.key().set("queue_bytes", bytes)],
            |direction| vec![rlc_of(direction).set("buffer_bytes", bytes)],
        ),
    }
}

/// Edits of a stage's queue, or of the radio buffers of one direction.
fn in_queue(
    observed: &Observed<'_>,
    queue: &Subject,
    of_stage: impl Fn(StageId) -> Vec<Edit>,
    of_radio: impl Fn(Direction) -> Vec<Edit>,
) -> Vec<Vec<Edit>> {
    match queue {
        Subject::Stage(stage) => vec![of_stage(*stage)],
        Subject::RadioBuffer { direction, .. } => everywhere(observed, &of_radio(*direction)),
        Subject::Flow(_) | Subject::Radio(_) => Vec::new(),
    }
}

fn thinner(observed: &Observed<'_>, segments: u32) -> Cure {
    Cure {
        advice: format!("Acknowledge only every {segments} segments (ACK thinning)."),
        alternatives: vec![of_tcp(observed, "ack.delayed_segments", segments)],
    }
}
