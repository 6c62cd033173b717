//! Random stages and traffic, for the tests of laws.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::Path as FilePath;
use std::sync::Arc;

use airpath_base::{Duration, Ecn, FlowId, Instant, Packet, Payload, Rate, Tunnel};
use airpath_path::{
    Aqm, DelayConfig, Distribution, Excess, FqCoDelConfig, HostConfig, Jitter, LinkConfig,
    LossConfig, LossProcess, MiddleboxConfig, MiddleboxKind, MiddleboxSide, MiddleboxTimer,
    ModemConfig, OffloadConfig, OffloadFault, OuterIp, PolicerConfig, QueueConfig, ServiceConfig,
    StageConfig, Stalls, TooBig, Trace, TunnelConfig, TunnelEnd, TunnelProtocol,
};
use airpath_queue::Isolation;
use proptest::prelude::*;

pub(crate) fn packet(flow: u32, size: u32, ecn: Ecn, id: u64) -> Packet {
    let payload = Payload::Opaque(id);
    Packet { flow: FlowId(flow), size, ecn, tunnel: Tunnel::default(), journey: None, payload }
}

pub(crate) fn millis() -> impl Strategy<Value = Duration> {
    (0u64..40_000).prop_map(Duration::from_micros)
}

pub(crate) fn delay() -> impl Strategy<Value = StageConfig> {
    let distribution = prop_oneof![
        millis().prop_map(|max| Distribution::Uniform { max }),
        millis().prop_map(|mean| Distribution::Exponential { mean }),
        millis().prop_map(|sd| Distribution::HalfNormal { sd }),
    ];
    let jitter = (distribution, any::<bool>()).prop_map(|(distribution, keep_order)| Jitter {
        distribution,
        keep_order,
        together: keep_order,
    });
    (millis(), proptest::option::of(jitter))
        .prop_map(|(base, jitter)| StageConfig::Delay(DelayConfig { base, jitter }))
}

pub(crate) fn queue() -> impl Strategy<Value = QueueConfig> {
    let aqm = prop_oneof![
        2 => Just(Aqm::DropTail),
        1 => (1u64..8, 5u64..60).prop_map(|(target, interval)| Aqm::CoDel {
            target: Duration::from_millis(target),
            interval: Duration::from_millis(interval),
        }),
        1 => (1u64..8, 5u64..60, 1u32..4000, 0u32..4).prop_map(|(target, interval, quantum, queues)| {
            Aqm::FqCoDel(FqCoDelConfig {
                target: Duration::from_millis(target),
                interval: Duration::from_millis(interval),
                quantum,
                isolation: match queues {
                    0 => Isolation::Perfect,
                    queues => Isolation::Hashed { queues },
                },
            })
        }),
    ];
    (proptest::option::of(0u32..30), proptest::option::of(0u64..40_000), aqm)
        .prop_map(|(packets, bytes, aqm)| QueueConfig { packets, bytes, aqm })
}

pub(crate) fn service() -> impl Strategy<Value = ServiceConfig> {
    let trace = proptest::collection::vec(0u64..20, 1..40).prop_map(|gaps| {
        let mut at = 0;
        let lines: String = gaps
            .iter()
            .map(|gap| {
                at += gap;
                format!("{at}\n")
            })
            .chain([format!("{}\n", gaps.iter().sum::<u64>() + 1)])
            .collect();
        let trace = Trace::parse(lines.as_bytes(), FilePath::new("random")).unwrap();
        ServiceConfig::Trace(Arc::new(trace))
    });
    // At 8 Mb/s a byte takes a microsecond, so that arrivals and departures coincide.
    let bps =
        prop_oneof![2 => Just(8_000_000u64), 1 => Just(1_000_000_000), 3 => 100_000u64..50_000_000];
    let rate = bps.prop_map(|bps| ServiceConfig::Rate(Rate::from_bps(bps).unwrap()));
    let bucket = (100_000u64..50_000_000, 1u64..20_000).prop_map(|(bps, burst)| {
        ServiceConfig::Bucket { rate: Rate::from_bps(bps).unwrap(), burst }
    });
    prop_oneof![1 => trace, 2 => rate, 1 => bucket]
}

pub(crate) fn stage() -> impl Strategy<Value = StageConfig> {
    let link = (service(), queue())
        .prop_map(|(service, queue)| StageConfig::Link(LinkConfig { service, queue }));
    let numbered = proptest::collection::btree_set(1u64..200, 0..20).prop_map(|numbers| {
        LossProcess::Numbered { numbers: numbers.into_iter().collect::<Vec<_>>().into() }
    });
    let process = prop_oneof![
        numbered,
        (0.0..0.5).prop_map(|probability| LossProcess::Random { probability }),
        (1u64..20).prop_map(|period| LossProcess::Periodic { period }),
        (0.0..0.3, 0.1..1.0, 0.0..0.1, 0.3..1.0).prop_map(
            |(good_to_bad, bad_to_good, loss_good, loss_bad)| LossProcess::GilbertElliott {
                good_to_bad,
                bad_to_good,
                loss_good,
                loss_bad,
            }
        ),
    ];
    let loss = (process, prop_oneof![Just(0u32), 0u32..1600])
        .prop_map(|(process, min_bytes)| StageConfig::Loss(LossConfig { process, min_bytes }));
    let batch =
        (1u64..30_000).prop_map(|us| StageConfig::Batch { interval: Duration::from_micros(us) });
    prop_oneof![2 => delay(), 3 => link, 1 => loss, 1 => batch, 1 => policer(), 2 => host(), 1 => modem(), 1 => tunnel(), 1 => offload()]
}

fn policer() -> impl Strategy<Value = StageConfig> {
    let excess = prop_oneof![Just(Excess::Drop), Just(Excess::Mark)];
    (100_000u64..50_000_000, 0u64..20_000, excess).prop_map(|(bps, burst, excess)| {
        let rate = Rate::from_bps(bps).unwrap();
        StageConfig::Policer(PolicerConfig { rate, burst, excess })
    })
}

fn tunnel() -> impl Strategy<Value = StageConfig> {
    let outer_ip = prop_oneof![Just(OuterIp::V4), Just(OuterIp::V6)];
    let too_big = prop_oneof![Just(TooBig::Drop), Just(TooBig::Fragment)];
    let gtpu = any::<bool>()
        .prop_map(|pdu_session_container| TunnelProtocol::Gtpu { pdu_session_container });
    let wireguard = proptest::option::of(500u32..1600)
        .prop_map(|device_mtu| TunnelProtocol::WireGuard { device_mtu });
    let protocol = prop_oneof![gtpu, wireguard];
    let enter = (outer_ip, protocol, proptest::option::of(576u32..1600), too_big).prop_map(
        |(outer_ip, protocol, mtu, too_big)| {
            let config = TunnelConfig { outer_ip, protocol, mtu, too_big };
            StageConfig::Tunnel(TunnelEnd::Enter(config))
        },
    );
    let mtu = (500u32..1600).prop_map(|bytes| StageConfig::Mtu { bytes });
    prop_oneof![3 => enter, 2 => Just(StageConfig::Tunnel(TunnelEnd::Leave)), 1 => mtu]
}

fn offload() -> impl Strategy<Value = StageConfig> {
    let joined = (0u64..3_000, 500u32..9_000).prop_map(|(window, mtu)| OffloadFault::Joined {
        window: Duration::from_micros(window),
        mtu,
    });
    let fault = prop_oneof![1 => Just(OffloadFault::Checksum), 3 => joined];
    (fault, 0u32..1600)
        .prop_map(|(fault, min_bytes)| StageConfig::Offload(OffloadConfig { fault, min_bytes }))
}

fn host() -> impl Strategy<Value = StageConfig> {
    let micros = |most: u64| (0..most).prop_map(Duration::from_micros);
    let periodic =
        (0u64..30_000, 1u64..30_000, 1u64..30_000).prop_map(|(offset, on, off)| Stalls::Periodic {
            offset: Instant::ZERO + Duration::from_micros(offset),
            period: Duration::from_micros(on + off),
            duration: Duration::from_micros(off),
        });
    let random = (100u64..30_000, 0u64..30_000).prop_map(|(between, mean)| Stalls::Random {
        mean_between: Duration::from_micros(between),
        duration: Distribution::Exponential { mean: Duration::from_micros(mean) },
    });
    let stalls = prop_oneof![Just(Stalls::None), periodic, random];
    (stalls, micros(2_000), micros(3_000), proptest::option::of(1u32..20), any::<bool>()).prop_map(
        |(stalls, processing, coalescing, ring_packets, shared)| {
            let cpu = shared.then(|| "cpu".to_owned());
            StageConfig::Host(HostConfig { stalls, processing, coalescing, ring_packets, cpu })
        },
    )
}

fn modem() -> impl Strategy<Value = StageConfig> {
    let micros = |most: u64| (0..most).prop_map(Duration::from_micros);
    let limits = (1u32..6_000, 1u32..8, proptest::option::of(1u32..20));
    (limits, micros(3_000), micros(2_000)).prop_map(
        |((block_bytes, block_packets, ring_packets), timer, transfer)| {
            let config = ModemConfig { block_bytes, block_packets, timer, transfer, ring_packets };
            StageConfig::Modem(config)
        },
    )
}

pub(crate) fn middlebox(kind: MiddleboxKind, timer: MiddleboxTimer) -> [StageConfig; 2] {
    [MiddleboxSide::Inward, MiddleboxSide::Outward(timer)]
        .map(|side| StageConfig::Middlebox(MiddleboxConfig { kind, side }))
}

fn any_middlebox() -> impl Strategy<Value = [StageConfig; 2]> {
    let kind = prop_oneof![Just(MiddleboxKind::Nat), Just(MiddleboxKind::Firewall)];
    (kind, 0u64..40_000, any::<bool>()).prop_map(|(kind, timeout, inward_refreshes)| {
        let timeout = Duration::from_micros(timeout);
        middlebox(kind, MiddleboxTimer { timeout, inward_refreshes })
    })
}

/// Both directions, with up to two middleboxes at random places.
pub(crate) fn directions() -> impl Strategy<Value = [Vec<StageConfig>; 2]> {
    let few = || proptest::collection::vec(stage(), 0..2);
    let part = (few(), few(), proptest::option::of(any_middlebox()));
    (proptest::collection::vec(part, 1..3), few(), few()).prop_map(|(parts, mut down, up)| {
        let mut inside = up;
        for (down_part, up_part, middlebox) in parts {
            // Outwards from the UE: the last stage in the file for down, the first for up.
            if let Some([inward, outward]) = middlebox {
                down.insert(0, inward);
                inside.push(outward);
            }
            down.splice(0..0, down_part);
            inside.extend(up_part);
        }
        [down, inside]
    })
}

/// Packets: gaps in microseconds and sizes.
pub(crate) fn arrivals() -> impl Strategy<Value = Vec<(u64, u32)>> {
    proptest::collection::vec(
        (prop_oneof![Just(0), 0u64..3_000, 0u64..60_000], 40u32..1501),
        1..120,
    )
}

pub(crate) fn sorted(
    mut drops: Vec<airpath_base::Drop>,
) -> Vec<(Instant, u64, airpath_base::DropReason)> {
    drops.sort_by_key(|drop| (drop.at, opaque(&drop.packet)));
    drops.iter().map(|drop| (drop.at, opaque(&drop.packet), drop.reason)).collect()
}

pub(crate) fn opaque(packet: &Packet) -> u64 {
    match packet.payload {
        Payload::Opaque(value) => value,
        _ => unreachable!("only opaque packets were sent"),
    }
}
