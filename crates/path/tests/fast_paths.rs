//! Tests that fast paths change nothing: runs random stacks of stages with and without them.

mod common;

use std::cell::RefCell;
use std::rc::Rc;

use airpath_base::{Drop, Duration, Ecn, Instant, Journey, Journeys, Packet, Tunnel};
use airpath_path::{
    Accounts, Branches, Departure, LinkMeter, Path, Stack, StageConfig, append,
    build_pair_accounted,
};
use airpath_queue::Load;
use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};

use common::{directions, packet, stage};

/// The stages of two stacks that share middleboxes, or of one stack with parallel branches.
#[derive(Clone, Debug)]
enum Stages {
    Pair { directions: [Vec<StageConfig>; 2], accounted: bool },
    Parallel(Vec<Vec<StageConfig>>),
}

/// What a driver does with one of the stacks.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Enter { flow: u32, size: u32, header_bytes: u16, ecn: Ecn },
    Poll,
    PollNext,
    PollAll,
    Observe,
}

/// Everything that can be seen of a stack after an operation.
#[derive(PartialEq, Debug, Default)]
struct Seen {
    departures: Vec<Departure>,
    packets: Vec<Packet>,
    journeys: Vec<Option<Journey>>,
    drops: Vec<Drop>,
    load: Load,
    next_event: Option<Instant>,
    meters: Vec<LinkMeter>,
}

/// Nanoseconds since the previous step, the number of the stack, and the operation.
type Step = (u64, usize, Operation);

fn stages() -> impl Strategy<Value = Stages> {
    let parallel = proptest::collection::vec(proptest::collection::vec(stage(), 0..3), 1..4);
    prop_oneof![
        3 => (directions(), any::<bool>())
            .prop_map(|(directions, accounted)| Stages::Pair { directions, accounted }),
        1 => parallel.prop_map(Stages::Parallel),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1)];
    // One size is frequent.
    let size = prop_oneof![Just(1000u32), 40u32..1501];
    let header_bytes = prop_oneof![4 => Just(0u16), 1 => 0u16..3];
    let enter = (0u32..4, size, header_bytes, ecn).prop_map(|(flow, size, header_bytes, ecn)| {
        Operation::Enter { flow, size, header_bytes, ecn }
    });
    let operation = prop_oneof![
        6 => enter,
        1 => Just(Operation::Poll),
        2 => Just(Operation::PollNext),
        1 => Just(Operation::PollAll),
        1 => Just(Operation::Observe),
    ];
    // On many links 1,000 bytes take 8 us or 1 ms, so that arrivals and departures coincide.
    let gap = prop_oneof![
        4 => Just(0u64),
        2 => prop_oneof![Just(8_000), Just(1_000_000)],
        2 => (0u64..3_000).prop_map(|us| us * 1_000),
        1 => 0u64..30_000,
        1 => 0u64..60_000_000,
    ];
    (gap, 0usize..2, operation)
}

fn named<'a>(
    names: &'a [String],
    stages: &'a [StageConfig],
) -> impl Iterator<Item = (&'a str, &'a StageConfig)> {
    names.iter().map(String::as_str).zip(stages)
}

/// Builds the stacks, performs the steps, and returns what is seen after each step. `rule` changes
/// packets as they enter.
fn run(stages: &Stages, steps: &[Step], rule: fn(&mut Packet)) -> Vec<Seen> {
    let names: Vec<String> = (0..40).map(|index| format!("stage.{index}")).collect();
    let journeys = Journeys::default();
    let mut stacks: Vec<Stack> = match stages {
        Stages::Pair { directions: [down, up], accounted } => {
            let accounts =
                Accounts { journeys: journeys.clone(), first: Default::default(), all: None };
            let accounts = [accounted.then_some(&accounts); 2];
            let (down, up) = (named(&names[..20], down), named(&names[20..], up));
            build_pair_accounted(down, up, 11, accounts).into()
        }
        Stages::Parallel(parallel) => {
            let build = |(names, stages): (&[String], &Vec<StageConfig>)| {
                append((None, 0), named(names, stages), 11, None)
            };
            let flows = (0..4).map(|flow| flow % parallel.len() as u32).collect();
            let paths = names.chunks(10).zip(parallel).map(build).collect();
            vec![Branches::new(paths, Rc::new(RefCell::new(flows))).into()]
        }
    };
    let mut now = Instant::ZERO;
    // In the last steps everything leaves.
    let last = (0..stacks.len()).map(|stack| (10_000_000_000_000, stack, Operation::Poll));
    let number = stacks.len();
    (0..)
        .zip(steps.iter().copied().chain(last))
        .map(|(id, (gap, stack, operation))| {
            now += Duration::from_nanos(gap);
            let stack = &mut stacks[stack % number];
            step_of(stack, &journeys, now, id, operation, rule)
        })
        .collect()
}

fn step_of(
    stack: &mut Stack,
    journeys: &Journeys,
    now: Instant,
    id: u64,
    operation: Operation,
    rule: fn(&mut Packet),
) -> Seen {
    let mut seen = Seen::default();
    match operation {
        Operation::Enter { flow, size, header_bytes, ecn } => {
            let (journey, tunnel) =
                (journeys.begin(now), Tunnel { header_bytes, ..Tunnel::default() });
            let mut packet = Packet { journey, tunnel, ..packet(flow, size, ecn, id) };
            rule(&mut packet);
            let before = stack.next_event();
            assert!(stack.enter(now, &packet) || stack.next_event() == before);
        }
        Operation::Poll => seen.departures.extend(std::iter::from_fn(|| stack.poll(now))),
        Operation::PollNext => {
            let mut next = Instant::ZERO;
            while let Some(packet) = stack.poll_next(now, &mut next) {
                seen.packets.push(packet);
                assert_eq!(next, stack.next_event().unwrap_or(Instant::MAX));
            }
            assert_eq!(next, stack.next_event().unwrap_or(Instant::MAX));
        }
        Operation::PollAll => {
            let any = stack.poll_all(now, &mut |packet| seen.packets.push(*packet));
            assert_eq!(any, !seen.packets.is_empty());
        }
        Operation::Observe => stack.observe(now, &mut |meter| seen.meters.push(meter.clone())),
    }
    let left = seen.departures.iter().map(|departure| &departure.packet).chain(&seen.packets);
    let ended = left.filter_map(|packet| Some(journeys.end(packet.journey?, now)));
    seen.journeys = ended.collect();
    seen.drops.extend(std::iter::from_fn(|| stack.poll_drop()));
    (seen.load, seen.next_event) = (stack.load(), stack.next_event());
    seen
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(), 0..200)
}

/// Compares what is seen of the stacks with fast paths, and without them under one more rule.
fn compare(
    stages: &Stages,
    steps: &[Step],
    only_clear: fn(&mut Packet),
) -> Result<(), TestCaseError> {
    let fast = run(stages, steps, |_| ());
    #[cfg(debug_assertions)]
    let clear = airpath_base::reference(|| run(stages, steps, only_clear));
    #[cfg(not(debug_assertions))]
    let clear = run(stages, steps, only_clear);
    let first = fast.iter().zip(&clear).position(|(fast, clear)| fast != clear);
    if let Some(step) = first {
        prop_assert_eq!(&fast[step], &clear[step], "step {}", step);
    }
    Ok(())
}

proptest! {
    #![proptest_config(match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(800),
    })]

    /// This test fails if only the verbs of a stage or only a fast path implement a rule.
    #[test]
    fn fast_paths_change_nothing(stages in stages(), steps in steps()) {
        compare(&stages, &steps, |_| ())?;
    }
}

/// The comparison finds a rule that only the clear way has: one that marks one packet in six hundred.
#[test]
fn a_rule_that_only_the_clear_way_has_is_found() {
    let config =
        ProptestConfig { max_shrink_iters: 0, failure_persistence: None, ..Default::default() };
    let found = TestRunner::new(config).run(&(stages(), steps()), |(stages, steps)| {
        compare(&stages, &steps, |packet| {
            if packet.size % 100 == 99 && packet.ecn == Ecn::Ect0 {
                packet.ecn = Ecn::Ce;
            }
        })
    });
    assert!(matches!(found, Err(TestError::Fail(..))), "{found:?}");
}
