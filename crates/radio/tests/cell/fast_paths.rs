//! Tests that cells with and without fast paths show the same behaviour.

use airpath_base::{Direction, Drop, Duration, FlowId, Instant};
use airpath_queue::Load;
use airpath_radio::cell::*;
use airpath_radio::ran::*;
use proptest::prelude::*;
use proptest::test_runner::{Reason, TestError, TestRunner};

use crate::common::*;
use crate::laws::{Arrival, aggregated, traffic, wide_world, world};

/// The meter of one direction of a UE.
#[derive(PartialEq, Debug)]
struct Counted {
    at: Instant,
    ue: UeIndex,
    direction: Direction,
    radio: RadioCounters,
    access: AccessCounters,
    delivered: Load,
    sojourn: Duration,
    marked: u64,
    rlc_retransmissions: u64,
    awake: Duration,
    capacity_bytes: f64,
    queued: Load,
}

impl Counted {
    fn new(at: Instant, meter: &UeMeter<'_>) -> Self {
        Self {
            at,
            ue: meter.ue,
            direction: meter.direction,
            radio: meter.radio,
            access: meter.access,
            delivered: meter.sojourn.delivered,
            sojourn: meter.sojourn.sum,
            marked: meter.marked,
            rlc_retransmissions: meter.rlc_retransmissions,
            awake: meter.awake,
            capacity_bytes: meter.capacity_bytes,
            queued: meter.queued,
        }
    }
}

/// What must be the same with and without fast paths.
#[derive(PartialEq, Debug, Default)]
struct Outcome {
    departures: Vec<CellDeparture>,
    /// In order of time, then of packet.
    drops: Vec<Drop>,
    log: Vec<RadioEvent>,
    counted: Vec<Counted>,
    /// Drops that are known each time the meters have been read.
    dropped: Vec<usize>,
}

/// The UE of a packet. Traffic names one of three UEs; `number` selects the three.
fn ue_of(number: u64, ue: u32) -> u32 {
    3 * number as u32 + ue
}

/// Runs a network and polls it at each event. The meters are read at each arrival and at the end.
fn run(config: &RanConfig, traffic: &[Arrival], logged: bool) -> Outcome {
    let mut ran = Ran::new(config, 7);
    if logged {
        ran.keep_log();
    }
    let mut outcome = Outcome::default();
    let mut now = Instant::ZERO;
    let ues = config.ues.len() as u32;
    let poll = |ran: &mut Ran, end: Instant, outcome: &mut Outcome| {
        while let Some(at) = ran.next_event().filter(|&at| at <= end) {
            outcome.departures.extend(core::iter::from_fn(|| ran.poll(at)));
            outcome.drops.extend(core::iter::from_fn(|| ran.poll_drop()));
            // DRX changes do not count: they are logged when they are evaluated. The meters have
            // the time awake.
            let events = core::iter::from_fn(|| ran.poll_event());
            outcome.log.extend(events.filter(|it| !matches!(it.kind, RadioEventKind::Drx(_))));
        }
        for ue in 0..ues {
            let counted = &mut outcome.counted;
            ran.observe_ue(end, UeIndex(ue), &mut |meter| counted.push(Counted::new(end, meter)));
        }
        outcome.drops.extend(core::iter::from_fn(|| ran.poll_drop()));
        outcome.dropped.push(outcome.drops.len());
    };
    for (number, &(gap, ue, direction, size)) in (0..).zip(traffic) {
        now += us(gap);
        poll(&mut ran, now, &mut outcome);
        let mut packet = packet(number, size);
        packet.flow = FlowId(number as u32 % 3);
        ran.enqueue(now, direction, UeIndex(ue_of(number, ue) % ues), &packet);
    }
    let end = now + ms(1_500);
    poll(&mut ran, end, &mut outcome);
    // A packet that finds no room is dropped when the buffer is next accessed.
    while let Some(at) = ran.next_event().filter(|&at| at <= end + ms(5_000)) {
        while ran.poll(at).is_some() {}
        outcome.drops.extend(core::iter::from_fn(|| ran.poll_drop()));
    }
    outcome.drops.retain(|drop| drop.at <= end);
    outcome.drops.sort_by_key(|drop| (drop.at, opaque(&drop.packet)));
    outcome
}

fn twice(config: &RanConfig, traffic: &[Arrival], logged: bool) -> [Outcome; 2] {
    let fast = run(config, traffic, logged);
    [fast, airpath_base::reference(|| run(config, traffic, logged))]
}

fn the_clear_way_is_the_same(config: &RanConfig, traffic: &[Arrival], logged: bool) {
    let [fast, clear] = twice(config, traffic, logged);
    // The first difference is easier to read than two whole outcomes.
    for (at, (one, other)) in fast.log.iter().zip(&clear.log).enumerate() {
        assert_eq!(one, other, "after {:#?}", &fast.log[at.saturating_sub(10)..at]);
    }
    for (fast, clear) in fast.departures.iter().zip(&clear.departures) {
        assert_eq!(fast, clear);
    }
    for (fast, clear) in fast.counted.iter().zip(&clear.counted) {
        assert_eq!(fast, clear);
    }
    assert_eq!(fast, clear);
}

/// With `curves`, errors follow from the channel; without, they keep the generated fixed rates.
fn with_curves(mut config: RanConfig, curves: bool) -> RanConfig {
    for mobile in config.ues.iter_mut().filter(|_| curves) {
        for (ue, cell) in mobile.in_cell.iter_mut().zip(&config.cells) {
            let plain = UeConfig::plain(&cell.access);
            ue.downlink.harq.decoding = plain.downlink.harq.decoding;
            ue.uplink.harq.decoding = plain.uplink.harq.decoding;
        }
    }
    config
}

proptest! {
    #![proptest_config(match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(256),
    })]

    #[test]
    fn a_cell_does_the_same_without_fast_paths(
        config in world(1..9), traffic in traffic(), logged: bool, curves: bool,
    ) {
        the_clear_way_is_the_same(&with_curves(config, curves), &traffic, logged);
    }

    #[test]
    fn carriers_do_the_same_without_fast_paths(
        config in aggregated(), traffic in traffic(), logged: bool, curves: bool,
    ) {
        the_clear_way_is_the_same(&with_curves(config, curves), &traffic, logged);
    }

    #[test]
    fn a_network_does_the_same_without_fast_paths(
        config in wide_world(), traffic in traffic(), logged: bool, curves: bool,
    ) {
        the_clear_way_is_the_same(&with_curves(config, curves), &traffic, logged);
    }
}

/// The comparison finds a rule that was added to a clear way and not to the fast path beside it.
#[test]
fn a_rule_that_only_a_clear_way_has_is_found() {
    for rule in ["rest every second millisecond", "answer every PDU"] {
        let proptest =
            ProptestConfig { max_shrink_iters: 0, failure_persistence: None, ..Default::default() };
        let found =
            TestRunner::new(proptest).run(&(world(1..9), traffic()), |(config, traffic)| {
                let [fast, clear] =
                    airpath_base::with_rule(rule, || twice(&config, &traffic, false));
                if fast == clear { Ok(()) } else { Err(TestCaseError::fail("differs")) }
            });
        let differs = |reason: &Reason| reason.message() == "differs";
        let found = matches!(&found, Err(TestError::Fail(reason, _)) if differs(reason));
        assert_eq!(found, airpath_base::fast_paths(), "{rule}");
    }
}
