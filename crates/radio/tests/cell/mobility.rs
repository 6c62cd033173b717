//! UEs that change cells: what it costs, what is lost, and when it happens.

use std::sync::Arc;

use airpath_base::{DropReason, Duration, Instant};
use airpath_radio::bearer::Forwarding;
use airpath_radio::cell::*;
use airpath_radio::channel::{AtEnd, ChannelConfig, ChannelTrace, Quality};
use airpath_radio::ran::*;
use airpath_radio::rrc::connection::ConnectionConfig;
use airpath_radio::rrc::{RrcConfig, RrcState};

use crate::common::*;

const UE: UeIndex = UeIndex(0);

/// A cell of `carrier` and a UE whose HARQ never fails, in AM.
fn acknowledged(cell: CellConfig) -> (CellConfig, UeConfig) {
    let mut ue = UeConfig::plain(&cell.access);
    bler(&mut ue, 0.0, 0.0);
    (cell, ue)
}

fn lte_am() -> (CellConfig, UeConfig) {
    acknowledged(CellConfig::lte(LteCarrier::fdd_20_mhz()))
}

/// One UE, with a handover to the second cell after 100 ms.
fn network(cells: [(CellConfig, UeConfig); 2]) -> RanConfig {
    let [(first, here), (second, there)] = cells;
    RanConfig {
        cells: vec![first, second],
        ues: vec![MobileConfig { in_cell: vec![here, there] }],
        handover: HandoverConfig {
            preparation: ms(20),
            interruption: ms(50),
            forwarding: Forwarding::Buffer,
            forwarding_delay: ms(5),
            path_switch: ms(20),
        },
        planned: vec![PlannedHandover { at: ms(100), every: None, ue: None, to: CellIndex(1) }],
        measurements: None,
        split: None,
    }
}

/// What became of packets 0 to 199, sent one per millisecond.
struct Outcome {
    /// Packet number and time in ms.
    delivered: Vec<(u64, f64)>,
    dropped: Vec<(u64, DropReason)>,
    events: Vec<(f64, &'static str, u32)>,
}

fn send_200(config: &RanConfig, direction: airpath_base::Direction) -> Outcome {
    let mut network = Ran::new(config, 3);
    let mut delivered = Vec::new();
    let run = |network: &mut Ran, end: Instant, delivered: &mut Vec<(u64, f64)>| {
        while let Some(next) = network.next_event().filter(|&next| next <= end) {
            while let Some(left) = network.poll(next) {
                assert_eq!(left.direction, direction);
                delivered.push((opaque(&left.packet), left.at.as_secs_f64() * 1e3));
            }
        }
    };
    for number in 0..200 {
        let now = Instant::ZERO + ms(number);
        run(&mut network, now, &mut delivered);
        network.enqueue(now, direction, UE, &packet(number, 1_000));
    }
    run(&mut network, Instant::ZERO + ms(5_000), &mut delivered);
    assert_eq!(network.load().packets, 0);
    let drops = std::iter::from_fn(|| network.poll_drop());
    let mut dropped: Vec<_> = drops.map(|drop| (opaque(&drop.packet), drop.reason)).collect();
    dropped.sort_by_key(|&(number, _)| number);
    let events = std::iter::from_fn(|| network.poll_mobility())
        .map(|event| (event.at.as_secs_f64() * 1e3, event.kind.name(), event.to.0))
        .collect();
    Outcome { delivered, dropped, events }
}

fn in_order(delivered: &[(u64, f64)]) -> bool {
    delivered.iter().map(|&(number, _)| number).is_sorted()
}

/// The longest time without a delivery, in ms.
fn gap_ms(delivered: &[(u64, f64)]) -> f64 {
    delivered.windows(2).map(|pair| pair[1].1 - pair[0].1).fold(0.0, f64::max)
}

fn nr_am() -> (CellConfig, UeConfig) {
    acknowledged(CellConfig::nr(NrCarrier::n78_100_mhz()))
}

#[test]
fn with_forwarding_nothing_is_lost_and_the_gap_is_the_interruption() {
    for cells in [[lte_am(), lte_am()], [nr_am(), nr_am()]] {
        for direction in [DOWN, UP] {
            let outcome = send_200(&network(cells.clone()), direction);
            assert_eq!(outcome.delivered.len(), 200);
            assert!(in_order(&outcome.delivered) && outcome.dropped.is_empty());
            // Before the gap a packet every millisecond; after it one block. The uplink must send a
            // request first: at most every 10 ms, and then it waits for the answer.
            let gap = gap_ms(&outcome.delivered);
            let longest = if direction == DOWN { 54.0 } else { 75.0 };
            assert!((50.0..longest).contains(&gap), "{direction:?}: {gap} ms");
            assert_eq!(
                outcome.events,
                [
                    (100.0, "handover_command", 1),
                    (150.0, "handover_complete", 1),
                    (170.0, "path_switch", 1),
                ]
            );
        }
    }
}

#[test]
fn without_forwarding_all_is_lost_until_the_path_is_switched() {
    let mut config = network([lte_am(), lte_am()]);
    config.handover.forwarding = Forwarding::Nothing;
    let outcome = send_200(&config, DOWN);
    let numbers: Vec<u64> = outcome.dropped.iter().map(|&(number, _)| number).collect();
    assert!(outcome.dropped.iter().all(|&(_, reason)| reason == DropReason::Handover));
    // The packets that arrived between the command and the switch, and the last few that were not
    // received.
    assert_eq!(numbers.last(), Some(&169));
    assert!((96..=100).contains(&numbers[0]), "{}", numbers[0]);
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
    assert!(in_order(&outcome.delivered));
    // The source has no uplink data to forward.
    assert!(send_200(&config, UP).dropped.is_empty());
}

#[test]
fn unacknowledged_mode_loses_what_was_on_its_way_only() {
    let (cell, mut ue) = lte_am();
    um(&mut ue);
    let outcome = send_200(&network([(cell.clone(), ue.clone()), (cell, ue)]), DOWN);
    assert_eq!(outcome.dropped.len(), 1, "one slot");
    assert!(outcome.dropped.iter().all(|&(_, reason)| reason == DropReason::Handover));
    assert!(in_order(&outcome.delivered));
}

/// EN-DC: the bearer goes to the NR leg and comes back.
#[test]
fn a_leg_of_another_technology_is_added_and_dropped_without_loss() {
    let mut config = network([lte_am(), nr_am()]);
    config.handover.interruption = ms(15);
    config.planned.push(PlannedHandover { at: ms(150), to: CellIndex(0), ..config.planned[0] });
    for direction in [DOWN, UP] {
        let outcome = send_200(&config, direction);
        assert_eq!((outcome.delivered.len(), outcome.dropped.len()), (200, 0));
        assert!(in_order(&outcome.delivered));
        assert_eq!(outcome.events.len(), 6);
    }
}

/// Between a 3G cell and the others; packets wait for the slower one.
#[test]
fn a_bearer_goes_to_3g_and_comes_back_without_loss() {
    let third =
        [acknowledged(CellConfig::umts(UmtsCarrier::hspa())), acknowledged(CellConfig::evdo())];
    for third in third {
        for other in [lte_am(), nr_am()] {
            for mut config in
                [network([third.clone(), other.clone()]), network([other, third.clone()])]
            {
                let back = PlannedHandover { at: ms(700), to: CellIndex(0), ..config.planned[0] };
                config.planned.push(back);
                for direction in [DOWN, UP] {
                    let outcome = send_200(&config, direction);
                    assert_eq!((outcome.delivered.len(), outcome.dropped.len()), (200, 0));
                    assert!(in_order(&outcome.delivered));
                }
            }
        }
    }
}

/// Data between the source's first packet and the path switch arrives in the order in which the
/// core sent it, although only part of it passes through the source.
#[test]
fn the_end_marker_keeps_the_order() {
    let mut config = network([nr_am(), nr_am()]);
    (config.handover.forwarding_delay, config.handover.path_switch) = (ms(40), ms(1));
    let outcome = send_200(&config, DOWN);
    assert_eq!(outcome.delivered.len(), 200);
    assert!(in_order(&outcome.delivered));
}

/// SINR in dB, valid from each of these milliseconds on.
fn trace(points: &[(u64, f64)]) -> ChannelConfig {
    let points = points.iter().map(|&(at, sinr_db)| (ms(at), Quality::Sinr(sinr_db)));
    let trace = ChannelTrace::new(points).expect("in order");
    ChannelConfig::Trace { trace: Arc::new(trace), at_end: AtEnd::Hold }
}

fn with_channel(
    (cell, mut ue): (CellConfig, UeConfig),
    points: &[(u64, f64)],
) -> (CellConfig, UeConfig) {
    for link in [&mut ue.downlink, &mut ue.uplink] {
        link.channel = trace(points);
    }
    (cell, ue)
}

fn measured(config: &mut RanConfig, a3: bool, failure: bool) {
    config.planned.clear();
    config.measurements = Some(MeasurementConfig {
        period: ms(10),
        a3: a3.then_some(A3Config {
            offset_db: 3.0,
            hysteresis_db: 1.0,
            time_to_trigger: ms(40),
            filter_coefficient: 0,
        }),
        failure: failure.then_some(FailureConfig {
            q_out_db: -8.0,
            q_in_db: -6.0,
            n310: 1,
            n311: 1,
            t310: ms(50),
            t304: ms(70),
            reestablishment: ms(200),
        }),
    });
}

#[test]
fn event_a3_moves_the_ue_after_time_to_trigger_and_preparation() {
    let mut config = network([
        with_channel(lte_am(), &[(0, 20.0), (60, 10.0)]),
        with_channel(lte_am(), &[(0, 10.0), (60, 20.0)]),
    ]);
    measured(&mut config, true, false);
    let outcome = send_200(&config, DOWN);
    // The condition holds at 60 ms, is reported 40 ms later, and prepared in 20 ms.
    let commands: Vec<_> = outcome.events.iter().map(|&(at, name, _)| (at, name)).collect();
    assert_eq!(commands[0], (120.0, "handover_command"));
    assert_eq!((outcome.delivered.len(), commands.len()), (200, 3));
}

#[test]
fn the_ue_begins_in_the_best_cell() {
    let mut config =
        network([with_channel(lte_am(), &[(0, 5.0)]), with_channel(lte_am(), &[(0, 15.0)])]);
    measured(&mut config, true, false);
    assert_eq!(Ran::new(&config, 1).cell_of(UE), CellIndex(1));
    assert!(send_200(&config, DOWN).events.is_empty());
}

#[test]
fn a_link_that_fails_is_established_again_where_it_is_best() {
    let mut config = network([
        with_channel(nr_am(), &[(0, 20.0), (60, -20.0)]),
        with_channel(nr_am(), &[(0, 0.0)]),
    ]);
    measured(&mut config, false, true);
    let outcome = send_200(&config, DOWN);
    // Out of sync at 60 ms; T310; 200 ms.
    let told: Vec<_> = outcome.events.iter().take(2).copied().collect();
    assert_eq!(told, [(110.0, "radio_link_failure", 0), (310.0, "handover_complete", 1)]);
    assert_eq!((outcome.delivered.len(), outcome.dropped.len()), (200, 0));
}

#[test]
fn a_ue_without_any_cell_goes_on_looking() {
    let points = [(0, 20.0), (60, -20.0), (900, 20.0)];
    let mut config = network([with_channel(lte_am(), &points), with_channel(lte_am(), &points)]);
    measured(&mut config, false, true);
    let outcome = send_200(&config, DOWN);
    // First after 110 ms, then every 200 ms until 900 ms have passed.
    assert_eq!(outcome.events[1], (910.0, "handover_complete", 0));
    assert_eq!(outcome.delivered.len(), 200);
}

#[test]
fn a_handover_to_a_cell_out_of_reach_fails_with_t304() {
    let mut config = network([lte_am(), with_channel(lte_am(), &[(0, -20.0)])]);
    let planned = config.planned.clone();
    measured(&mut config, false, true);
    config.planned = planned;
    let outcome = send_200(&config, DOWN);
    assert_eq!(
        outcome.events,
        [
            (100.0, "handover_command", 1),
            // 70 ms after the command; then 200 ms.
            (170.0, "handover_failed", 1),
            (370.0, "handover_complete", 0),
        ]
    );
    assert_eq!(outcome.delivered.len(), 200);
}

#[test]
fn rlc_that_gives_up_is_a_failure() {
    let better = with_channel(lte_am(), &[(0, 31.0)]);
    let mut config = network([with_channel(lte_am(), &[(0, 30.0)]), better]);
    measured(&mut config, false, true);
    // Never decoded in the first cell.
    bler(&mut config.ues[0].in_cell[0], 1.0, 1.0);
    let outcome = send_200(&config, DOWN);
    let told: Vec<_> = outcome.events.iter().map(|&(_, name, to)| (name, to)).collect();
    assert_eq!(told[..2], [("radio_link_failure_rlc", 0), ("handover_complete", 1)]);
    assert_eq!(outcome.delivered.len(), 200);
}

#[test]
fn an_idle_ue_reselects_without_interruption() {
    let idle = |(cell, mut ue): (CellConfig, UeConfig)| {
        ue.rrc = Some(RrcConfig::Connection(ConnectionConfig {
            initial: RrcState::Idle,
            setup: ms(60),
            inactivity: Some(ms(10_000)),
            inactive: None,
            paging: airpath_radio::mac::Occasions::new(ms(320), ms(0)),
            paging_delay: Duration::ZERO,
        }));
        (cell, ue)
    };
    let config = network([idle(lte_am()), idle(lte_am())]);
    let mut network = Ran::new(&config, 1);
    let _ = network.poll(Instant::ZERO + ms(200));
    let event = network.poll_mobility().expect("it moves");
    assert_eq!((event.kind, event.to), (MobilityEventKind::Reselection, CellIndex(1)));
    assert!(network.poll_mobility().is_none());
    network.enqueue(Instant::ZERO + ms(200), DOWN, UE, &packet(0, 100));
    let mut left = None;
    while left.is_none() {
        left = network.poll(network.next_event().expect("it is paged"));
    }
    // Paged at 320 ms, connected 60 ms later.
    let at = left.expect("it was paged").at.as_secs_f64() * 1e3;
    assert!((380.0..390.0).contains(&at), "{at} ms");
}

#[test]
fn one_cell_is_a_cell_alone() {
    let (cell, ue) = nr_am();
    let mut alone = Cell::new(&cell, std::slice::from_ref(&ue), 9);
    let mut network = Ran::new(&RanConfig::alone(&cell, &[ue]), 9);
    for number in 0..300 {
        let now = Instant::ZERO + us(number * 170);
        let direction = if number % 3 == 0 { UP } else { DOWN };
        alone.enqueue(now, direction, UE, &packet(number, 1_500));
        network.enqueue(now, direction, UE, &packet(number, 1_500));
    }
    let end = Instant::ZERO + ms(1_000);
    let expected: Vec<_> = std::iter::from_fn(|| alone.poll(end)).collect();
    let departures: Vec<_> = std::iter::from_fn(|| network.poll(end)).collect();
    assert_eq!((departures.len(), &departures), (300, &expected));
}
