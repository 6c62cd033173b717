//! Tests slicing and conservation of two directions that share middleboxes.

mod common;

use airpath_base::{Drop, Duration, Ecn, Instant};
use airpath_path::{
    Departure, MiddleboxKind, MiddleboxTimer, Path, Stack, StageConfig, build_pair,
};
use airpath_queue::Load;
use proptest::prelude::*;

use common::{directions, middlebox, packet, sorted};

const DOWN: usize = 0;
const UP: usize = 1;

/// A packet: gap in microseconds, direction, flow, size.
type Arrival = (u64, usize, u32, u32);

/// What left, and what was dropped.
type Outcome = (Vec<Departure>, Vec<Drop>);

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![Just(0), 0u64..3_000, 0u64..60_000];
    prop::collection::vec((gap, 0usize..2, 0u32..3, 40u32..1501), 1..100)
}

#[derive(Clone, Copy, PartialEq)]
enum Polls {
    EveryEvent,
    /// This direction at each of its events, the other one only at the end.
    Mostly(usize),
    /// The direction into which a packet goes, just before it.
    BeforeEnqueue,
    AtTheEnd,
}

struct Run {
    paths: [Stack; 2],
    entered: [Load; 2],
    outcomes: [Outcome; 2],
}

impl Run {
    fn poll(&mut self, direction: usize, now: Instant) {
        let (out, _) = &mut self.outcomes[direction];
        while let Some(departure) = self.paths[direction].poll(now) {
            assert!(departure.at <= now, "left after it was polled");
            out.push(departure);
        }
        // Polling one direction may change the other: both must add up.
        for direction in [DOWN, UP] {
            let (out, drops) = &mut self.outcomes[direction];
            let path = &mut self.paths[direction];
            drops.extend(std::iter::from_fn(|| path.poll_drop()));
            let gone = out.iter().map(|departure| departure.packet);
            let total = gone.chain(drops.iter().map(|drop| drop.packet)).fold(
                path.load(),
                |sum, packet| Load {
                    packets: sum.packets + 1,
                    bytes: sum.bytes + u64::from(packet.size),
                },
            );
            assert_eq!(total, self.entered[direction], "in = out + dropped + still inside");
        }
    }

    /// Polls these directions at their events until `end`.
    fn events(&mut self, directions: &[usize], end: Instant) {
        loop {
            let next = directions
                .iter()
                .filter_map(|&direction| Some((self.paths[direction].next_event()?, direction)));
            let Some((at, direction)) = next.min().filter(|&(at, _)| at <= end) else { break };
            self.poll(direction, at);
        }
    }
}

fn run(stages: &[Vec<StageConfig>; 2], arrivals: &[Arrival], polls: Polls) -> [Outcome; 2] {
    let names: Vec<String> = (0..20).map(|index| format!("stage.{index}")).collect();
    let named = |direction: usize| {
        names[10 * direction..].iter().map(String::as_str).zip(&stages[direction])
    };
    let mut run = Run {
        paths: build_pair(named(DOWN), named(UP), 11),
        entered: Default::default(),
        outcomes: Default::default(),
    };
    let mut now = Instant::ZERO;
    for (index, &(gap, direction, flow, size)) in arrivals.iter().enumerate() {
        now += Duration::from_micros(gap);
        match polls {
            Polls::EveryEvent => run.events(&[DOWN, UP], now),
            Polls::Mostly(direction) => run.events(&[direction], now),
            Polls::BeforeEnqueue => run.poll(direction, now),
            Polls::AtTheEnd => {}
        }
        run.paths[direction].enqueue(now, &packet(flow, size, Ecn::NotEct, index as u64));
        run.entered[direction].packets += 1;
        run.entered[direction].bytes += u64::from(size);
    }
    match polls {
        Polls::EveryEvent => run.events(&[DOWN, UP], Instant::MAX),
        Polls::Mostly(direction) => {
            run.events(&[direction], Instant::MAX);
            run.events(&[1 - direction], Instant::MAX);
        }
        Polls::BeforeEnqueue | Polls::AtTheEnd => {}
    }
    // Collect drops, which may occur without a departure.
    for direction in [DOWN, UP] {
        run.poll(direction, now + Duration::from_secs(10_000));
    }
    for path in &run.paths {
        assert_eq!(path.load(), Load::default(), "nothing may be stuck");
    }
    run.outcomes
}

proptest! {
    #![proptest_config(match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(2000),
    })]

    /// It makes no difference when each direction is polled, and no packet vanishes.
    #[test]
    fn slicing_and_conservation_of_both_directions(
        stages in directions(),
        arrivals in arrivals(),
    ) {
        let reference = run(&stages, &arrivals, Polls::EveryEvent);
        let others =
            [Polls::Mostly(DOWN), Polls::Mostly(UP), Polls::BeforeEnqueue, Polls::AtTheEnd];
        for polls in others {
            let other = run(&stages, &arrivals, polls);
            for (reference, other) in reference.iter().zip(other) {
                prop_assert_eq!(&reference.0, &other.0);
                prop_assert_eq!(sorted(reference.1.clone()), sorted(other.1));
            }
        }
    }

    /// A restatement of a middlebox alone: it is open for a flow that sent something less than a
    /// timeout ago.
    #[test]
    fn a_middlebox_lets_in_what_was_spoken_to_within_the_timeout(
        timeout in 0u64..40_000,
        inward_refreshes: bool,
        arrivals in arrivals(),
    ) {
        let timer = MiddleboxTimer { timeout: Duration::from_micros(timeout), inward_refreshes };
        let stages = middlebox(MiddleboxKind::Nat, timer).map(|side| vec![side]);
        let [(down, _), (up, refused)] = run(&stages, &arrivals, Polls::AtTheEnd);
        let (mut now, mut expected) = (0, Vec::new());
        let mut sent: Vec<(u64, u32)> = Vec::new();
        for (index, &(gap, direction, flow, _)) in arrivals.iter().enumerate() {
            now += gap;
            // A packet that leaves at this very instant, even after it, opens a pinhole for it.
            let later = arrivals[index + 1..].iter().scan(now, |at, arrival| {
                *at += arrival.0;
                Some((*at, arrival))
            });
            let mut twins = later.take_while(|&(at, _)| at == now);
            let open = sent.iter().any(|&(at, other)| other == flow && now - at <= timeout)
                || twins.any(|(_, &(_, direction, other, _))| direction == UP && other == flow);
            if direction == UP {
                sent.push((now, flow));
            } else if open {
                expected.push(index as u64);
                if inward_refreshes {
                    sent.push((now, flow));
                }
            }
        }
        let came: Vec<u64> = down.iter().map(|left| common::opaque(&left.packet)).collect();
        prop_assert_eq!(came, expected);
        prop_assert_eq!(up.len(), arrivals.iter().filter(|arrival| arrival.1 == UP).count());
        prop_assert!(refused.is_empty());
    }
}
