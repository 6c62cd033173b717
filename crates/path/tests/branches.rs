//! Tests parallel paths: together they do what each does alone.

mod common;

use std::cell::RefCell;
use std::rc::Rc;

use airpath_base::{Duration, Ecn, Instant};
use airpath_path::{Branches, Departure, Path, Stack, StageConfig, append};
use airpath_queue::Load;
use proptest::prelude::*;

use common::{packet, stage};

fn branch(index: usize, stages: &[StageConfig]) -> Stack {
    let names: Vec<String> = (0..stages.len()).map(|stage| format!("{index}.{stage}")).collect();
    append((None, 0), names.iter().map(String::as_str).zip(stages), 11, None)
}

/// Everything that leaves, polled at every event or only at the end.
fn run(path: &mut dyn Path, arrivals: &[(u64, u32, u32)], at_events: bool) -> Vec<Departure> {
    let (mut out, mut now, mut entered) = (Vec::new(), Instant::ZERO, Load::default());
    for (id, &(gap, size, flow)) in (0..).zip(arrivals) {
        let next = now + Duration::from_micros(gap);
        while at_events && let Some(at) = path.next_event().filter(|&at| at <= next) {
            out.extend(std::iter::from_fn(|| path.poll(at)));
        }
        now = next;
        path.enqueue(now, &packet(flow, size, Ecn::NotEct, id));
        entered.packets += 1;
        let inside = path.load().packets + out.len() as u64;
        let dropped = std::iter::from_fn(|| path.poll_drop()).count() as u64;
        entered.packets -= dropped;
        assert_eq!(inside, entered.packets, "in = out + dropped + still inside");
    }
    let end = now + Duration::from_secs(10_000);
    if at_events {
        while let Some(at) = path.next_event() {
            out.extend(std::iter::from_fn(|| path.poll(at)));
        }
    }
    out.extend(std::iter::from_fn(|| path.poll(end)));
    assert_eq!(path.load(), Load::default(), "nothing may be stuck");
    out
}

proptest! {
    #[test]
    fn a_packet_meets_the_stages_of_its_branch_alone(
        branches in proptest::collection::vec(proptest::collection::vec(stage(), 0..3), 1..4),
        arrivals in proptest::collection::vec((0u64..5_000, 40u32..1_500, 0u32..4), 0..60),
    ) {
        let flows: Vec<u32> = (0..4).map(|flow| flow % branches.len() as u32).collect();
        let build = || {
            let paths = (0..).zip(&branches).map(|(index, stages)| branch(index, stages)).collect();
            Branches::new(paths, Rc::new(RefCell::new(flows.clone())))
        };
        let together = run(&mut build(), &arrivals, true);
        prop_assert_eq!(&together, &run(&mut build(), &arrivals, false), "slicing");
        prop_assert!(together.is_sorted_by_key(|departure| departure.at));
        for (index, stages) in branches.iter().enumerate() {
            let mine = |flow: u32| flows[flow as usize] as usize == index;
            // The gaps of the other flows count, too.
            let (mut own, mut gap) = (Vec::new(), 0);
            for &(before, size, flow) in &arrivals {
                gap += before;
                if mine(flow) {
                    own.push((std::mem::take(&mut gap), size, flow));
                }
            }
            let alone = run(&mut branch(index, stages), &own, true);
            let of = |departures: &[Departure]| -> Vec<(Instant, u32, u32)> {
                let mine = departures.iter().filter(|each| mine(each.packet.flow.0));
                mine.map(|each| (each.at, each.packet.flow.0, each.packet.size)).collect()
            };
            prop_assert_eq!(of(&together), of(&alone), "branch {}", index);
        }
    }
}
