//! Scripts for the stages of the core network and beyond: inject packets, expect departures.

mod common;

use std::iter::from_fn;

use airpath_base::{DropReason, Duration, Ecn, Instant, Rate, Stream};
use airpath_path::{
    Aqm, DelayConfig, Distribution, Excess, FqCoDelConfig, HostConfig, Isolation, LinkConfig,
    LossConfig, LossProcess, MiddleboxConfig, MiddleboxKind, MiddleboxSide, MiddleboxTimer,
    ModemConfig, OffloadConfig, OffloadFault, OuterIp, Path, PolicerConfig, QueueConfig,
    ServiceConfig, Stack, StageConfig, Stalls, TooBig, TunnelConfig, TunnelEnd, TunnelProtocol,
    build, build_pair,
};

use common::{opaque, packet};

const ENTER: TunnelConfig = TunnelConfig {
    outer_ip: OuterIp::V4,
    protocol: TunnelProtocol::Gtpu { pdu_session_container: true },
    mtu: Some(1500),
    too_big: TooBig::Fragment,
};

const HOST: HostConfig = HostConfig {
    stalls: Stalls::None,
    processing: Duration::ZERO,
    coalescing: Duration::ZERO,
    ring_packets: None,
    cpu: None,
};

fn us(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

fn mbps(mbps: u64) -> Rate {
    Rate::from_bps(mbps * 1_000_000).unwrap()
}

fn one_way(stages: &[StageConfig]) -> Stack {
    build(stages.iter().map(|stage| ("test", stage)), 1)
}

/// Which packet left, and when, in us.
type Left = (u64, u64);

/// Sends packets at these times in us; returns what left, and what was dropped and why.
fn script(stages: &[StageConfig], arrivals: &[(u64, u32)]) -> (Vec<Left>, Vec<(u64, DropReason)>) {
    let mut path = one_way(stages);
    for (id, &(at, size)) in arrivals.iter().enumerate() {
        path.enqueue(us(at), &packet(0, size, Ecn::NotEct, id as u64));
    }
    let left = from_fn(|| path.poll(us(10_000_000)))
        .map(|left| (opaque(&left.packet), left.at.as_nanos() / 1000))
        .collect();
    let dropped =
        from_fn(|| path.poll_drop()).map(|drop| (opaque(&drop.packet), drop.reason)).collect();
    (left, dropped)
}

fn link(service: ServiceConfig, queue_bytes: Option<u64>) -> StageConfig {
    let queue = QueueConfig { packets: None, bytes: queue_bytes, aqm: Aqm::DropTail };
    StageConfig::Link(LinkConfig { service, queue })
}

#[test]
fn a_link_inside_a_tunnel_sends_the_outer_headers_and_one_outside_does_not() {
    let link = || link(ServiceConfig::Rate(mbps(8)), None);
    let [enter, leave] = [TunnelEnd::Enter(ENTER), TunnelEnd::Leave].map(StageConfig::Tunnel);
    // 8 Mb/s: a byte takes 1 us. 44 bytes around a packet (TS 29.281 5.1), 64 around fragments.
    let (left, _) = script(&[enter.clone(), link(), leave.clone()], &[(0, 1000), (5000, 1500)]);
    assert_eq!(left, [(0, 1044), (1, 5000 + 1500 + 64)]);
    let (left, _) = script(&[enter, leave, link()], &[(0, 1000), (5000, 1500)]);
    assert_eq!(left, [(0, 1000), (1, 6500)]);
}

#[test]
fn a_tunnel_that_may_not_fragment_is_a_black_hole_for_what_does_not_fit() {
    let config = TunnelConfig { too_big: TooBig::Drop, ..ENTER };
    let enter = StageConfig::Tunnel(TunnelEnd::Enter(config));
    let (left, dropped) = script(&[enter], &[(0, 1456), (1, 1457)]);
    assert_eq!((left.len(), dropped), (1, vec![(1, DropReason::TooBig)]));
    let (left, dropped) = script(&[StageConfig::Mtu { bytes: 1400 }], &[(0, 1400), (1, 1401)]);
    assert_eq!((left.len(), dropped), (1, vec![(1, DropReason::TooBig)]));
}

#[test]
fn a_vpn_drops_what_its_device_does_not_take_and_links_inside_send_its_headers() {
    let link = link(ServiceConfig::Rate(mbps(8)), None);
    let protocol = TunnelProtocol::WireGuard { device_mtu: Some(1420) };
    let ends = [TunnelEnd::Enter(TunnelConfig { protocol, ..ENTER }), TunnelEnd::Leave];
    let [enter, leave] = ends.map(StageConfig::Tunnel);
    // 8 Mb/s: a byte takes 1 us. A packet of 52 bytes is padded to 64, and 60 are added.
    let arrivals = [(0, 52), (5000, 1420), (9000, 1421)];
    let (left, dropped) = script(&[enter, link, leave], &arrivals);
    assert_eq!(left, [(0, 64 + 60), (1, 5000 + 1420 + 60)]);
    assert_eq!(dropped, [(2, DropReason::TooBig)]);
}

#[test]
fn with_wrong_checksums_the_handshake_passes_and_data_do_not() {
    let offload = OffloadConfig { fault: OffloadFault::Checksum, min_bytes: 100 };
    let arrivals = [(0, 60), (10, 52), (20, 100), (30, 1500), (40, 52)];
    let (left, dropped) = script(&[StageConfig::Offload(offload)], &arrivals);
    assert_eq!(left, [(0, 0), (1, 10), (4, 40)]);
    assert_eq!(dropped, [2, 3].map(|id| (id, DropReason::Checksum)));
}

/// A card whose interrupt takes 50 us, before a hop with an MTU of 1,500 bytes.
fn joining() -> StageConfig {
    let fault = OffloadFault::Joined { window: Duration::from_micros(50), mtu: 1500 };
    StageConfig::Offload(OffloadConfig { fault, min_bytes: 100 })
}

#[test]
fn segments_that_arrive_together_are_lost_and_a_lone_one_passes() {
    let arrivals = [(0, 1500), (49, 1500), (50, 1500), (101, 52), (102, 1500), (103, 52)];
    let (left, dropped) = script(&[joining()], &arrivals);
    // The window of the first ends at 50 us; acknowledgements are not joined.
    assert_eq!(left, [(2, 100), (3, 151), (4, 151), (5, 151)]);
    assert_eq!(dropped, [0, 1].map(|id| (id, DropReason::TooBig)));
}

#[test]
fn what_fits_into_the_mtu_when_joined_passes() {
    // 1,500 = 770 + 770 - 40: the headers are there once (RFC 791, RFC 9293).
    let (left, dropped) = script(&[joining()], &[(0, 770), (1, 770)]);
    assert_eq!((left.len(), dropped.len()), (2, 0));
    let (left, dropped) = script(&[joining()], &[(0, 771), (1, 771)]);
    assert_eq!((left.len(), dropped.len()), (0, 2));
    // A larger segment begins another packet, and one after a shorter one too.
    let (left, dropped) = script(&[joining()], &[(0, 700), (1, 1500), (2, 200), (3, 200)]);
    assert_eq!(left, [(0, 50), (3, 50)]);
    assert_eq!(dropped, [1, 2].map(|id| (id, DropReason::TooBig)));
}

#[test]
fn a_joined_packet_has_at_most_65535_bytes() {
    // 44 segments of 1,460 bytes and 40 of headers are 64,280 bytes; the 45th begins another.
    let arrivals: Vec<(u64, u32)> = (0..45).map(|_| (0, 1500)).collect();
    let (left, dropped) = script(&[joining()], &arrivals);
    assert_eq!((left, dropped.len()), (vec![(44, 50)], 44));
}

#[test]
fn segments_of_two_flows_are_not_joined() {
    let mut path = one_way(&[joining()]);
    for (id, flow) in [(0, 0), (1, 1), (2, 2), (3, 1)] {
        path.enqueue(us(id), &packet(flow, 1500, Ecn::NotEct, id));
    }
    let left: Vec<u64> = from_fn(|| path.poll(us(1000))).map(|left| opaque(&left.packet)).collect();
    assert_eq!(left, [0, 2]);
}

#[test]
fn a_packet_is_lost_with_any_of_its_fragments() {
    let loss = StageConfig::Loss(LossConfig {
        process: LossProcess::Periodic { period: 3 },
        min_bytes: 0,
    });
    let stages =
        [StageConfig::Tunnel(TunnelEnd::Enter(ENTER)), loss, StageConfig::Tunnel(TunnelEnd::Leave)];
    // Fragments 0 0, 1, 2 2, 3 3: the third and the sixth are lost.
    let (left, dropped) = script(&stages, &[(0, 1500), (1, 100), (2, 1500), (3, 1500)]);
    assert_eq!(left.iter().map(|left| left.0).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(dropped, [(1, DropReason::Loss), (3, DropReason::Loss)]);
}

#[test]
fn a_policer_drops_or_marks_what_exceeds_its_burst_and_delays_nothing() {
    let policer = |excess| {
        let config = PolicerConfig { rate: mbps(8), burst: 3000, excess };
        StageConfig::Policer(config)
    };
    let arrivals = [(0, 1500), (0, 1500), (0, 1500), (1499, 1500), (1500, 1500)];
    let (left, dropped) = script(&[policer(Excess::Drop)], &arrivals);
    assert_eq!(left, [(0, 0), (1, 0), (4, 1500)]);
    assert_eq!(dropped, [(2, DropReason::Policed), (3, DropReason::Policed)]);

    let mut path = one_way(&[policer(Excess::Mark)]);
    let codepoints = [Ecn::Ect0, Ecn::Ect0, Ecn::Ect1, Ecn::NotEct];
    for (id, ecn) in codepoints.into_iter().enumerate() {
        path.enqueue(us(0), &packet(0, 1500, ecn, id as u64));
    }
    let left: Vec<Ecn> = from_fn(|| path.poll(us(0))).map(|left| left.packet.ecn).collect();
    // RFC 3168 5: what cannot be marked is dropped.
    assert_eq!(left, [Ecn::Ect0, Ecn::Ect0, Ecn::Ce]);
    assert_eq!(path.poll_drop().unwrap().reason, DropReason::Policed);
}

/// A packet larger than the bucket passes when the bucket is full, ahead of its tokens.
#[test]
fn a_shaper_carries_at_most_what_it_could() {
    let shaper = link(ServiceConfig::Bucket { rate: mbps(1), burst: 100 }, None);
    let mut path = one_way(&[shaper]);
    for id in 0..3 {
        path.enqueue(us(0), &packet(0, 1500, Ecn::NotEct, id));
    }
    // 11.2 ms of debt, then 0.8 ms for a full bucket, and again.
    for (at_us, sent, could) in [
        (0, 1500, 1500.0),
        (11_199, 1500, 1500.0),
        (11_600, 1500, 1550.0),
        (12_000, 3000, 3000.0),
        (24_000, 4500, 4500.0),
        (40_000, 4500, 5100.0),
    ] {
        while path.poll(us(at_us)).is_some() {}
        path.observe(us(at_us), &mut |meter| {
            let capacity = meter.capacity_bytes.round();
            assert_eq!((meter.departed.bytes, capacity), (sent, could), "{at_us} us");
        });
    }
}

#[test]
fn a_shaper_lets_a_burst_pass_and_queues_the_rest_at_its_rate() {
    let shaper = link(ServiceConfig::Bucket { rate: mbps(8), burst: 3000 }, Some(3000));
    let arrivals =
        [(0, 1500), (0, 1500), (0, 1500), (0, 1500), (0, 1500), (0, 1500), (20_000, 1500)];
    let (left, dropped) = script(&[shaper], &arrivals);
    // The packet at the head of the queue waits for tokens in the server.
    assert_eq!(left, [(0, 0), (1, 0), (2, 1500), (3, 3000), (4, 4500), (6, 20_000)]);
    assert_eq!(dropped, [(5, DropReason::QueueFull)]);
}

#[test]
fn what_comes_during_a_stall_leaves_in_a_burst_after_it() {
    let stalls = Stalls::Periodic {
        offset: us(1_000),
        period: Duration::from_millis(10),
        duration: Duration::from_millis(2),
    };
    let host = StageConfig::Host(HostConfig { stalls, ..HOST });
    let arrivals = [(0, 100), (999, 100), (1_000, 100), (2_500, 100), (3_000, 100), (11_001, 100)];
    let (left, _) = script(&[host], &arrivals);
    assert_eq!(left, [(0, 0), (1, 999), (2, 3_000), (3, 3_000), (4, 3_000), (5, 13_000)]);
}

#[test]
fn a_small_ring_overflows_during_a_stall() {
    let stalls = Stalls::Periodic {
        offset: us(1_000),
        period: Duration::from_secs(1),
        duration: Duration::from_millis(2),
    };
    let processing = Duration::from_micros(100);
    let host = HostConfig { stalls, processing, ring_packets: Some(2), ..HOST };
    // The first is half processed when the CPU goes away; two wait; the others find the ring full,
    // until the CPU has taken one out at 3,050.
    let arrivals =
        [(950, 100), (1_000, 100), (1_100, 100), (2_999, 100), (3_049, 100), (3_050, 100)];
    let (left, dropped) = script(&[StageConfig::Host(host)], &arrivals);
    assert_eq!(left, [(0, 3_050), (1, 3_150), (2, 3_250), (5, 3_350)]);
    assert_eq!(dropped, [(3, DropReason::RingFull), (4, DropReason::RingFull)]);
}

#[test]
fn an_interrupt_waits_for_more_packets_and_a_busy_cpu_needs_none() {
    let host = HostConfig {
        processing: Duration::from_micros(10),
        coalescing: Duration::from_micros(50),
        ..HOST
    };
    let arrivals = [(0, 100), (40, 100), (65, 100), (80, 100), (100, 100)];
    let (left, _) = script(&[StageConfig::Host(host)], &arrivals);
    // Interrupt at 50; 65 finds the CPU busy until 70; 80 finds it idle again.
    assert_eq!(left, [(0, 60), (1, 70), (2, 80), (3, 140), (4, 150)]);
}

#[test]
fn stages_of_one_cpu_stall_together() {
    let host = |cpu: Option<&str>| {
        let stalls = Stalls::Random {
            mean_between: Duration::from_millis(5),
            duration: Distribution::Exponential { mean: Duration::from_millis(5) },
        };
        StageConfig::Host(HostConfig { stalls, cpu: cpu.map(str::to_owned), ..HOST })
    };
    let departures = |name: &str, cpu: Option<&str>| {
        let host = host(cpu);
        let mut path = build([(name, &host)], 1);
        (0..1000).for_each(|ms| path.enqueue(us(ms * 1000), &packet(0, 100, Ecn::NotEct, ms)));
        from_fn(|| path.poll(us(10_000_000))).map(|left| left.at).collect::<Vec<_>>()
    };
    assert_eq!(departures("down", Some("vm")), departures("up", Some("vm")));
    assert_ne!(departures("down", None), departures("up", None));
}

/// A saturated host forwards 1 / `processing` packets per second.
#[test]
fn the_packets_per_second_of_a_processor_do_not_depend_on_their_size() {
    let processing = Duration::from_micros(125);
    let host = StageConfig::Host(HostConfig { processing, ..HOST });
    for size in [40, 576, 1500, 9000] {
        let mut path = one_way(std::slice::from_ref(&host));
        (0..20_000).for_each(|id| path.enqueue(us(10 * id), &packet(0, size, Ecn::NotEct, id)));
        let left = from_fn(|| path.poll(us(1_000_000))).count();
        assert_eq!(left, 8_000, "1 / 125 us, {size} bytes");
    }
}

/// Sends packets through both directions of a host for a second, at these intervals in us. Returns
/// how many have left each, polled in this order.
fn both_ways(host: &HostConfig, every: [u64; 2], polled: [usize; 2]) -> [usize; 2] {
    let stage = StageConfig::Host(host.clone());
    let mut paths = build_pair([("down", &stage)], [("up", &stage)], 1);
    for at in 0..1_000_000 {
        for (path, every) in paths.iter_mut().zip(every) {
            if at % every == 0 {
                path.enqueue(us(at), &packet(0, 100, Ecn::NotEct, at));
            }
        }
    }
    let mut left = [0; 2];
    for direction in polled {
        left[direction] = from_fn(|| paths[direction].poll(us(1_000_000))).count();
    }
    left
}

#[test]
fn directions_that_share_a_processor_share_its_packets_per_second() {
    let processing = Duration::from_micros(100);
    let own = HostConfig { processing, ..HOST };
    let shared = HostConfig { cpu: Some("upf".to_owned()), ..own.clone() };
    // Each alone could have all of it: 10,000 packets per second.
    assert_eq!(both_ways(&own, [100, 100], [0, 1]), [10_000, 10_000]);
    // Three quarters of what arrives is downlink.
    let halves = both_ways(&shared, [50, 150], [0, 1]);
    assert!(halves[0].abs_diff(7_500) <= 2 && halves[1].abs_diff(2_500) <= 2, "{halves:?}");
    assert_eq!(halves, both_ways(&shared, [50, 150], [1, 0]));
    // If it is not busy, each gets what it needs.
    assert_eq!(both_ways(&shared, [500, 250], [0, 1]), [2_000, 4_000]);
}

#[test]
fn an_uplink_packet_waits_for_a_downlink_packet_on_the_same_processor() {
    let processing = Duration::from_micros(100);
    let host = HostConfig { processing, cpu: Some("vpn".to_owned()), ..HOST };
    let stage = StageConfig::Host(host);
    let mut paths = build_pair([("down", &stage)], [("up", &stage)], 1);
    let send = |path: &mut Stack, at| path.enqueue(us(at), &packet(0, 100, Ecn::NotEct, at));
    send(&mut paths[0], 0);
    send(&mut paths[1], 40);
    send(&mut paths[0], 40);
    let left = |path: &mut Stack| {
        from_fn(|| path.poll(us(1_000))).map(|left| left.at.as_nanos()).collect::<Vec<_>>()
    };
    // A nanosecond decides which packet arrived first; at the same instant the uplink did.
    assert_eq!(left(&mut paths[1]), [200_001]);
    assert_eq!(left(&mut paths[0]), [100_001, 300_001]);
}

/// Interrupt moderation delays a lone packet by its time. Of Poisson arrivals at rate r, the first
/// of a batch waits for C, and r C others for C / 2 on average.
#[test]
fn moderation_delays_a_packet_by_as_much_as_the_closed_form_says() {
    let coalescing = Duration::from_micros(500);
    let host = StageConfig::Host(HostConfig { coalescing, ..HOST });
    for per_ms in [0.01, 0.5, 4.0, 40.0] {
        let mut stream = Stream::new(7, "arrivals");
        let mut path = one_way(std::slice::from_ref(&host));
        let (mut at, mut sum) = (0.0, 0.0);
        let packets = 100_000;
        for id in 0..packets {
            at -= (1.0 - stream.unit()).ln() / per_ms * 1e6;
            sum -= at.floor();
            let now = Instant::from_nanos(at as u64);
            path.enqueue(now, &packet(0, 100, Ecn::NotEct, id));
        }
        sum +=
            from_fn(|| path.poll(Instant::MAX)).map(|left| left.at.as_nanos() as f64).sum::<f64>();
        let mean_ms = sum / f64::from(packets as u32) / 1e6;
        let in_batch = 0.5 * per_ms;
        let expected = 0.5 * (1.0 + in_batch / 2.0) / (1.0 + in_batch);
        assert!((mean_ms / expected - 1.0).abs() < 0.01, "{per_ms}: {mean_ms} not {expected}");
    }
}

const MODEM: ModemConfig = ModemConfig {
    block_bytes: 16_384,
    block_packets: 40,
    timer: Duration::from_micros(1_200),
    transfer: Duration::from_micros(100),
    ring_packets: None,
};

#[test]
fn a_lone_packet_waits_for_the_timer_of_its_block() {
    let arrivals = [(0, 100), (5_000, 1_500)];
    let (left, _) = script(&[StageConfig::Modem(MODEM)], &arrivals);
    assert_eq!(left, [(0, 1_300), (1, 6_300)]);
    let at_once = StageConfig::Modem(ModemConfig { timer: Duration::ZERO, ..MODEM });
    let (left, _) = script(&[at_once], &arrivals);
    assert_eq!(left, [(0, 100), (1, 5_100)]);
}

#[test]
fn a_block_leaves_when_it_is_full_of_packets_or_of_bytes() {
    let by_packets = StageConfig::Modem(ModemConfig { block_packets: 2, ..MODEM });
    let (left, _) = script(&[by_packets], &[(0, 100), (300, 100), (310, 100)]);
    // The third waits for its own timer.
    assert_eq!(left, [(0, 400), (1, 400), (2, 1_610)]);
    let by_bytes = StageConfig::Modem(ModemConfig { block_bytes: 3_000, ..MODEM });
    let (left, _) = script(&[by_bytes], &[(0, 1_500), (300, 1_499), (700, 1_000), (800, 2_000)]);
    // The third does not fit, so the first two leave; the fourth fills the second block exactly.
    assert_eq!(left, [(0, 800), (1, 800), (2, 900), (3, 900)]);
    let small = StageConfig::Modem(ModemConfig { block_bytes: 1_000, ..MODEM });
    let (left, _) = script(&[small], &[(0, 1_500), (10, 1_500)]);
    assert_eq!(left, [(0, 100), (1, 200)]);
}

#[test]
fn a_block_grows_while_the_bus_is_busy() {
    let modem = ModemConfig { timer: Duration::ZERO, ..MODEM };
    let arrivals = [(0, 100), (10, 100), (99, 100), (100, 100), (150, 100)];
    let (left, _) = script(&[StageConfig::Modem(modem)], &arrivals);
    // A packet that arrives as the bus becomes free misses the block.
    assert_eq!(left, [(0, 100), (1, 200), (2, 200), (3, 300), (4, 300)]);
}

/// Of a stream with gap g, a block has n = ceil(T / g) packets, which wait for T, T - g, ….
#[test]
fn the_timer_delays_a_stream_by_as_much_as_the_closed_form_says() {
    for gap in [70, 150, 500, 1_000, 1_700] {
        let modem = ModemConfig { transfer: Duration::ZERO, ..MODEM };
        let in_block = 1_200_u64.div_ceil(gap);
        let packets = 1_000 * in_block;
        let arrivals: Vec<_> = (0..packets).map(|id| (id * gap, 100)).collect();
        let (left, _) = script(&[StageConfig::Modem(modem)], &arrivals);
        let waited: u64 = left.iter().map(|&(id, at)| at - id * gap).sum();
        let of_block = (0..in_block).map(|at| 1_200 - at * gap).sum::<u64>();
        assert_eq!(waited, 1_000 * of_block, "every {gap} us");
    }
}

/// The ceiling is packets per block times transfers per second.
#[test]
fn a_saturated_bus_carries_full_blocks_back_to_back() {
    for (size, block) in [(1_500, 10), (100, 40), (9_000, 1)] {
        let transfer = Duration::from_micros(500);
        let mut path = one_way(&[StageConfig::Modem(ModemConfig { transfer, ..MODEM })]);
        (0..100_000).for_each(|id| path.enqueue(us(id), &packet(0, size, Ecn::NotEct, id)));
        // The first block leaves when it is full.
        let _ = path.poll(us(100_000));
        let until = |path: &mut Stack, ms: u64| from_fn(|| path.poll(us(1_000 * ms))).count();
        until(&mut path, 100);
        assert_eq!(until(&mut path, 200), 200 * block, "{size} bytes");
    }
}

#[test]
fn a_modem_drops_what_its_ring_does_not_hold() {
    let transfer = Duration::from_micros(1_000);
    let modem = ModemConfig { block_packets: 1, ring_packets: Some(2), transfer, ..MODEM };
    let arrivals = [(0, 100), (10, 100), (20, 100), (30, 100), (1_000, 100)];
    let (left, dropped) = script(&[StageConfig::Modem(modem)], &arrivals);
    assert_eq!(left, [(0, 1_000), (1, 2_000), (2, 3_000), (4, 4_000)]);
    assert_eq!(dropped, [(3, DropReason::RingFull)]);
}

/// A NAT between two delays: the UE is 10 ms away, the server 20 ms.
struct World {
    paths: [Stack; 2],
}

impl World {
    fn new(middleboxes: &[(MiddleboxKind, MiddleboxTimer)]) -> Self {
        let delay = |ms| {
            let base = Duration::from_millis(ms);
            StageConfig::Delay(DelayConfig { base, jitter: None })
        };
        let middlebox = |kind, side| StageConfig::Middlebox(MiddleboxConfig { kind, side });
        let mut up = vec![delay(10)];
        up.extend(
            middleboxes.iter().map(|&(kind, timer)| middlebox(kind, MiddleboxSide::Outward(timer))),
        );
        up.push(delay(20));
        let mut down = vec![delay(20)];
        down.extend(
            middleboxes.iter().rev().map(|&(kind, _)| middlebox(kind, MiddleboxSide::Inward)),
        );
        down.push(delay(10));
        let named = |stages: Vec<StageConfig>| stages.into_iter().map(|stage| ("test", stage));
        let (down, up): (Vec<_>, Vec<_>) = (named(down).collect(), named(up).collect());
        let borrowed =
            |stages: &'static [(&'static str, StageConfig)]| stages.iter().map(|(n, s)| (*n, s));
        Self { paths: build_pair(borrowed(down.leak()), borrowed(up.leak()), 1) }
    }

    /// A packet of a flow goes up at this time in ms; nobody polls that direction.
    fn up(&mut self, ms: u64, flow: u32) {
        self.paths[1].enqueue(us(ms * 1000), &packet(flow, 100, Ecn::NotEct, 0));
    }

    /// A packet goes down at this time: returns when it arrives in ms, or why it does not.
    fn down(&mut self, ms: u64, flow: u32) -> Result<u64, DropReason> {
        self.paths[0].enqueue(us(ms * 1000), &packet(flow, 100, Ecn::NotEct, 0));
        match self.paths[0].poll(us(ms * 1000 + 30_001)) {
            Some(left) => Ok(left.at.as_nanos() / 1_000_000),
            None => Err(self.paths[0].poll_drop().expect("it left or was dropped").reason),
        }
    }
}

fn timer(ms: u64, inward_refreshes: bool) -> MiddleboxTimer {
    MiddleboxTimer { timeout: Duration::from_millis(ms), inward_refreshes }
}

#[test]
fn the_first_packet_up_makes_the_binding_and_silence_ends_it() {
    let mut world = World::new(&[(MiddleboxKind::Nat, timer(300_000, false))]);
    assert_eq!(world.down(0, 0), Err(DropReason::NoBinding));
    // It is at the NAT at 110; what the server sends at 90 is also there at 110, just in time.
    world.up(100, 0);
    assert_eq!(world.down(89, 0), Err(DropReason::NoBinding));
    assert_eq!(world.down(90, 0), Ok(120));
    assert_eq!(world.down(90, 1), Err(DropReason::NoBinding), "another flow's binding");
    // RFC 4787 REQ-6: inbound packets need not refresh: the pinhole closes 300 s after 110 ms.
    assert_eq!(world.down(300_090, 0), Ok(300_120));
    assert_eq!(world.down(300_091, 0), Err(DropReason::NoBinding));
    world.up(300_100, 0);
    assert_eq!(world.down(300_100, 0), Ok(300_130));
}

#[test]
fn a_nat_that_inward_packets_refresh_stays_open() {
    // RFC 4787 REQ-6 a).
    let mut world = World::new(&[(MiddleboxKind::Nat, timer(1_000, true))]);
    world.up(0, 0);
    for ms in [900, 1_800, 2_800] {
        assert_eq!(world.down(ms, 0), Ok(ms + 30));
    }
    assert_eq!(world.down(3_801, 0), Err(DropReason::NoBinding));
    assert_eq!(
        world.down(3_900, 0),
        Err(DropReason::NoBinding),
        "what was dropped refreshed nothing"
    );
}

#[test]
fn of_two_nats_the_shorter_timeout_decides() {
    let pairs = [[1_000, 300_000], [300_000, 1_000]];
    for [inner, outer] in pairs {
        let middleboxes =
            [(MiddleboxKind::Nat, timer(inner, false)), (MiddleboxKind::Nat, timer(outer, false))];
        let mut world = World::new(&middleboxes);
        world.up(0, 0);
        assert_eq!(world.down(989, 0), Ok(1_019));
        assert_eq!(world.down(991, 0), Err(DropReason::NoBinding));
    }
}

#[test]
fn a_firewall_lets_traffic_through_one_way_only() {
    let mut world = World::new(&[(MiddleboxKind::Firewall, timer(300_000, true))]);
    assert_eq!(world.down(0, 0), Err(DropReason::Blocked));
    world.up(0, 0);
    assert_eq!(world.paths[1].poll(us(30_000)).map(|left| left.at), Some(us(30_000)));
    assert_eq!(world.down(30, 0), Ok(60));
}

fn fair(limit: Option<u32>) -> StageConfig {
    let aqm = Aqm::FqCoDel(FqCoDelConfig {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        quantum: 1500,
        isolation: Isolation::Perfect,
    });
    let queue = QueueConfig { packets: limit, bytes: None, aqm };
    StageConfig::Link(LinkConfig { service: ServiceConfig::Rate(mbps(12)), queue })
}

/// Sends packets of flows: when in us, of which flow, how large. Returns what left when, and what
/// was dropped.
fn of_flows(stage: StageConfig, arrivals: &[(u64, u32, u32)]) -> (Vec<Left>, Vec<u64>) {
    let mut path = one_way(&[stage]);
    for (id, &(at, flow, size)) in arrivals.iter().enumerate() {
        path.enqueue(us(at), &packet(flow, size, Ecn::NotEct, id as u64));
    }
    let left = from_fn(|| path.poll(us(10_000_000)))
        .map(|left| (opaque(&left.packet), left.at.as_nanos() / 1000))
        .collect();
    let dropped = from_fn(|| path.poll_drop()).map(|drop| opaque(&drop.packet)).collect();
    (left, dropped)
}

/// RFC 8290 1: a flow that sends little waits for the packet in service, and not for another flow's
/// queue.
#[test]
fn on_a_link_with_a_queue_for_each_flow_a_sparse_flow_waits_for_one_packet() {
    // 12 Mb/s: 1,500 bytes take 1 ms.
    let mut arrivals = vec![(0, 0, 1500); 20];
    arrivals.push((5500, 1, 1500));
    let (left, _) = of_flows(fair(None), &arrivals);
    let sparse = left.iter().find(|left| left.0 == 20).expect("it left");
    assert_eq!(sparse.1, 7000);
    assert_eq!(left.last().map(|left| left.1), Some(21_000));
}

#[test]
fn two_flows_share_such_a_link_byte_by_byte() {
    // Three packets of 500 bytes per packet of 1,500.
    let mut arrivals = vec![(0, 0, 1500); 10];
    arrivals.extend([(0, 1, 500); 30]);
    let (left, _) = of_flows(fair(None), &arrivals);
    let of_first = left.iter().filter(|left| left.1 <= 10_000 && left.0 < 10).count();
    assert!((5..=6).contains(&of_first), "{of_first}");
    assert_eq!(left.len(), 40);
}

/// RFC 8290 4.1: half of the longest queue is dropped, at its head.
#[test]
fn over_its_limit_such_a_link_drops_of_the_longest_queue() {
    let mut arrivals = vec![(0, 1, 100)];
    arrivals.extend([(0, 0, 1500); 8]);
    // The first is in service; then flow 1 has one packet and flow 0 eight, of which four are
    // dropped.
    arrivals.insert(1, (0, 1, 100));
    let (left, dropped) = of_flows(fair(Some(8)), &arrivals);
    assert_eq!(dropped, [2, 3, 4, 5]);
    assert_eq!(left.iter().map(|left| left.0).collect::<Vec<_>>(), [0, 1, 6, 7, 8, 9]);
}
