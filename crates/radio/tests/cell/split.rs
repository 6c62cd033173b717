//! Split bearers: what two legs carry, which leg a packet takes, and what a gap costs.

use std::sync::Arc;

use airpath_base::{Direction, DropReason, Instant};
use airpath_radio::bearer::OneWayConfig;
use airpath_radio::cell::*;
use airpath_radio::channel::{AtEnd, ChannelConfig, ChannelTrace, Quality};
use airpath_radio::harq::{Combining, Decoding};
use airpath_radio::ran::*;
use airpath_radio::rlc::RlcConfig;

use crate::common::*;

const UE: UeIndex = UeIndex(0);

/// LTE and NR, in AM, where HARQ never fails: EN-DC without a delay between the base stations.
fn en_dc() -> RanConfig {
    let lte = CellConfig::lte(LteCarrier::fdd_20_mhz());
    let nr = CellConfig::nr(NrCarrier::fdd_20_mhz());
    let ue = |cell: &CellConfig| {
        let mut ue = UeConfig::plain(&cell.access);
        bler(&mut ue, 0.0, 0.0);
        ue
    };
    RanConfig {
        ues: vec![MobileConfig { in_cell: vec![ue(&lte), ue(&nr)] }],
        cells: vec![lte, nr],
        handover: HandoverConfig::default(),
        planned: Vec::new(),
        measurements: None,
        split: Some(SplitConfig {
            ue: None,
            secondary: CellIndex(1),
            primary: Leg::Master,
            policy: SplitPolicy::ShortestWait,
            threshold: None,
            t_reordering: ms(100),
            delay: ms(0),
            flow_control: true,
        }),
    }
}

fn split(config: &mut RanConfig) -> &mut SplitConfig {
    config.split.as_mut().unwrap()
}

/// A bearer in one direction and one cell.
fn bearer(config: &mut RanConfig, cell: usize, direction: Direction) -> &mut OneWayConfig {
    let ue = &mut config.ues[0].in_cell[cell];
    match direction {
        DOWN => &mut ue.downlink.bearer,
        UP => &mut ue.uplink.bearer,
    }
}

/// What became of packets 0 to n - 1, sent `every` so many microseconds: number and time in ms of
/// those delivered, and what was dropped.
struct Outcome {
    delivered: Vec<(u64, f64)>,
    dropped: Vec<(u64, DropReason)>,
    /// Bytes of new blocks in each cell.
    blocks: Vec<u64>,
}

fn send(config: &RanConfig, direction: Direction, n: u64, every: u64) -> Outcome {
    let mut network = Ran::new(config, 3);
    let mut delivered = Vec::new();
    let mut run = |network: &mut Ran, end: Instant| {
        while let Some(next) = network.next_event().filter(|&next| next <= end) {
            while let Some(left) = network.poll(next) {
                assert_eq!((left.direction, left.ue), (direction, UE));
                delivered.push((opaque(&left.packet), left.at.as_secs_f64() * 1e3));
            }
        }
    };
    for number in 0..n {
        run(&mut network, at(number * every));
        network.enqueue(at(number * every), direction, UE, &packet(number, 1_000));
    }
    let end = at(n * every + 20_000_000);
    run(&mut network, end);
    assert_eq!(network.load().packets, 0);
    let drops = std::iter::from_fn(|| network.poll_drop());
    let mut dropped: Vec<_> = drops.map(|drop| (opaque(&drop.packet), drop.reason)).collect();
    dropped.sort_by_key(|&(number, _)| number);
    let blocks = network.cells(end).iter_mut().map(|cell| {
        let mut bytes = 0;
        cell.observe_ue(end, UE, &mut |meter| {
            if meter.direction == direction {
                bytes += meter.radio.used_bytes;
            }
        });
        bytes
    });
    let blocks = blocks.collect();
    Outcome { delivered, dropped, blocks }
}

/// Rate in Mbit/s at which the packets from `first` on were delivered.
fn rate(outcome: &Outcome, first: usize) -> f64 {
    let (begin, end) = (outcome.delivered[first].1, outcome.delivered.last().unwrap().1);
    (outcome.delivered.len() - first) as f64 * 8e3 / (end - begin) / 1e3
}

#[test]
fn two_good_legs_carry_the_sum() {
    // 400 Mbit/s is more than both carry.
    let mut both = en_dc();
    (0..2).for_each(|cell| *bearer_limit(&mut both, cell) = None);
    let alone = |secondary: f64| {
        let mut config = both.clone();
        split(&mut config).policy = SplitPolicy::Fixed { secondary };
        rate(&send(&config, DOWN, 20_000, 20), 10_000)
    };
    let (master, secondary) = (alone(0.0), alone(1.0));
    let outcome = send(&both, DOWN, 20_000, 20);
    assert!(outcome.delivered.iter().map(|it| it.0).eq(0..20_000));
    let sum = rate(&outcome, 10_000);
    assert!(
        (sum / (master + secondary) - 1.0).abs() < 0.05,
        "{sum} of {master} and {secondary} Mbit/s"
    );
}

fn bearer_limit(config: &mut RanConfig, cell: usize) -> &mut Option<u64> {
    &mut bearer(config, cell, DOWN).buffer.bytes
}

#[test]
fn a_fixed_part_goes_to_the_secondary_leg() {
    let mut config = en_dc();
    split(&mut config).policy = SplitPolicy::Fixed { secondary: 0.25 };
    let outcome = send(&config, DOWN, 1_000, 1_000);
    let part = outcome.blocks[1] as f64 / outcome.blocks.iter().sum::<u64>() as f64;
    assert!((part - 0.25).abs() < 0.01, "{part}");
}

#[test]
fn below_the_threshold_the_uplink_uses_the_primary_path() {
    for (primary, cell) in [(Leg::Master, 0), (Leg::Secondary, 1)] {
        let mut config = en_dc();
        split(&mut config).primary = primary;
        let outcome = send(&config, UP, 500, 50);
        assert_eq!(outcome.blocks[1 - cell], 0, "without a threshold");
        split(&mut config).threshold = Some(10_000);
        let outcome = send(&config, UP, 100, 50_000);
        assert_eq!(outcome.blocks[1 - cell], 0, "one packet at a time");
        let outcome = send(&config, UP, 500, 50);
        assert!(outcome.blocks[1 - cell] > 0, "more than the threshold waits");
    }
}

#[test]
fn a_packet_on_the_slower_leg_delays_those_behind_it() {
    let mut config = en_dc();
    split(&mut config).policy = SplitPolicy::Fixed { secondary: 0.5 };
    split(&mut config).delay = ms(30);
    // Packets 0 and 1 enter together; 1 travels 30 ms to its leg.
    let outcome = send(&config, DOWN, 20, 0);
    let times: Vec<f64> = outcome.delivered.iter().map(|it| it.1).collect();
    assert!(outcome.delivered.iter().map(|it| it.0).eq(0..20), "in order");
    assert!(times[0] < 10.0 && times[1] > 30.0, "{times:?}");
    assert!(times[19] < 40.0, "{times:?}");
}

#[test]
fn a_packet_that_a_leg_drops_stalls_the_others_for_t_reordering() {
    let mut config = en_dc();
    // Every second packet; the secondary leg has room for five, and PDCP does not know.
    split(&mut config).flow_control = false;
    split(&mut config).policy = SplitPolicy::Fixed { secondary: 0.5 };
    for t_reordering in [60, 200] {
        split(&mut config).t_reordering = ms(t_reordering);
        let mut alike = config.clone();
        *bearer_limit(&mut alike, 1) = Some(5_000);
        let outcome = send(&alike, DOWN, 100, 0);
        assert!(!outcome.dropped.is_empty());
        assert!(outcome.dropped.iter().all(|&(_, reason)| reason == DropReason::QueueFull));
        let stall = longest_stall(&outcome);
        let expected = t_reordering as f64;
        assert!((expected - 10.0..=expected).contains(&stall), "{stall} ms for {expected} ms");
    }
    let outcome = send(&config, DOWN, 100, 0);
    assert!(outcome.dropped.is_empty() && longest_stall(&outcome) < 10.0);
}

#[test]
fn with_flow_control_a_leg_without_room_leaves_no_gap() {
    let mut config = en_dc();
    split(&mut config).policy = SplitPolicy::Fixed { secondary: 0.5 };
    for delay in [0, 3] {
        split(&mut config).delay = ms(delay);
        *bearer_limit(&mut config, 1) = Some(5_000);
        let outcome = send(&config, DOWN, 100, 0);
        assert!(!outcome.dropped.is_empty());
        assert!(outcome.dropped.iter().all(|&(_, reason)| reason == DropReason::QueueFull));
        assert!(longest_stall(&outcome) < 10.0);
    }
}

/// The longest time in ms between two deliveries.
fn longest_stall(outcome: &Outcome) -> f64 {
    outcome.delivered.windows(2).map(|two| two[1].1 - two[0].1).fold(0.0, f64::max)
}

#[test]
fn a_lost_packet_in_um_is_a_gap_too() {
    let mut config = en_dc();
    config.ues[0].in_cell.iter_mut().for_each(um);
    split(&mut config).policy = SplitPolicy::Fixed { secondary: 0.5 };
    config.ues[0].in_cell[1].downlink.harq.max_transmissions = 1;
    bler(&mut config.ues[0].in_cell[1], 0.2, 0.0);
    let outcome = send(&config, DOWN, 400, 1_000);
    assert!(outcome.dropped.iter().all(|&(_, reason)| reason == DropReason::RadioLink));
    assert!(outcome.dropped.len() > 10);
    let stall = longest_stall(&outcome);
    // The gap shows with the packet after it, 1 or 2 ms later.
    assert!((100.0..=104.0).contains(&stall), "{stall}");
}

#[test]
fn configurations_that_cannot_work_are_refused() {
    let mut config = en_dc();
    split(&mut config).secondary = CellIndex(0);
    assert_eq!(config.check(), Err(RanConfigError::Legs));
    split(&mut config).secondary = CellIndex(2);
    assert_eq!(config.check(), Err(RanConfigError::Legs));
    let mut config = en_dc();
    config.planned.push(PlannedHandover { at: ms(1), every: None, ue: None, to: CellIndex(1) });
    assert_eq!(config.check(), Err(RanConfigError::SplitMoves));
    let mut config = en_dc();
    let is_nr = |rlc: &RlcConfig| matches!(rlc, RlcConfig::Nr { .. });
    assert!(is_nr(&bearer(&mut config, 1, DOWN).rlc));
    um(&mut config.ues[0].in_cell[1]);
    assert_eq!(config.check(), Err(RanConfigError::Mode { ue: 0, cell: 1 }));
}

#[test]
fn a_leg_in_a_fade_gets_little_until_it_recovers() {
    let mut config = en_dc();
    let faded = [(0, 30.0), (500, -30.0), (1_500, 30.0)];
    let faded = faded.map(|(at, sinr_db)| (ms(at), Quality::Sinr(sinr_db)));
    let trace = Arc::new(ChannelTrace::new(faded).expect("in order"));
    let nr = &mut config.ues[0].in_cell[1];
    for link in [&mut nr.downlink, &mut nr.uplink] {
        link.channel = ChannelConfig::Trace { trace: trace.clone(), at_end: AtEnd::Hold };
        link.harq.decoding =
            Decoding::Curve(Combining::IncrementalRedundancy { mother_rate: 1.0 / 3.0 });
    }
    // 40 Mbit/s: the LTE leg can carry that alone.
    let outcome = send(&config, DOWN, 15_000, 200);
    let within = |from: f64, until: f64| {
        let times = outcome.delivered.iter().map(|it| it.1);
        times.filter(|time| (from..until).contains(time)).count()
    };
    // 5,000 packets enter in a second. Those on the leg when it fades may arrive after
    // t-Reordering, too late.
    assert!(outcome.dropped.iter().all(|&(_, reason)| reason == DropReason::RadioLink));
    assert!(outcome.dropped.len() < 200, "{}", outcome.dropped.len());
    assert!(within(700.0, 1_500.0) > 3_800, "{}", within(700.0, 1_500.0));
    assert!(within(2_000.0, 3_000.0) > 4_900, "{}", within(2_000.0, 3_000.0));
}
