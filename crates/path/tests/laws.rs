//! Tests slicing and conservation for every stage and random compositions of stages.

mod common;

use std::path::Path as FilePath;
use std::sync::Arc;

use airpath_base::{Duration, Ecn, Instant, Rate};
use airpath_path::{
    Aqm, DelayConfig, Departure, Distribution, Jitter, LinkConfig, Path, QueueConfig,
    ServiceConfig, Stack, StageConfig, Trace, build,
};
use airpath_queue::Load;
use proptest::prelude::*;

use common::{arrivals, opaque, packet, sorted, stage};

/// Packets that arrive at one instant leave at one instant.
#[test]
fn packets_that_come_together_are_delayed_alike() {
    let distribution = Distribution::Exponential { mean: Duration::from_millis(1) };
    let leaves = |together| {
        let jitter = Jitter { distribution, keep_order: false, together };
        let delay = DelayConfig { base: Duration::from_millis(5), jitter: Some(jitter) };
        let mut path = path(&[StageConfig::Delay(delay)]);
        (0..8).for_each(|id| {
            path.enqueue(
                Instant::ZERO + Duration::from_millis(id / 4),
                &packet(0, 1000, Ecn::NotEct, id),
            )
        });
        let mut times = Vec::new();
        while let Some(at) = path.next_event() {
            times.extend(std::iter::from_fn(|| path.poll(at)).map(|departure| departure.at));
        }
        times.dedup();
        times.len()
    };
    assert_eq!((leaves(true), leaves(false) > 4), (2, true));
}

fn path(stages: &[StageConfig]) -> Stack {
    let names: Vec<String> = (0..stages.len()).map(|index| format!("down.{index}")).collect();
    build(names.iter().map(String::as_str).zip(stages), 11)
}

/// Runs the arrivals through the path, polling at every event and additionally as `extra` says.
/// Checks conservation at every step. Returns departures and drops.
fn run(
    stages: &[StageConfig],
    arrivals: &[(u64, u32)],
    polls: Polls,
) -> (Vec<Departure>, Vec<airpath_base::Drop>) {
    let mut path = path(stages);
    let (mut out, mut drops) = (Vec::new(), Vec::new());
    let mut entered = Load::default();
    let mut now = Instant::ZERO;
    let mut check = |path: &mut Stack,
                     out: &mut Vec<Departure>,
                     entered: Load,
                     now: Option<Instant>| {
        if let Some(now) = now {
            while let Some(departure) = path.poll(now) {
                assert!(departure.at <= now, "left after it was polled");
                out.push(departure);
            }
        }
        drops.extend(std::iter::from_fn(|| path.poll_drop()));
        let gone = out.iter().map(|departure| departure.packet);
        let total =
            gone.chain(drops.iter().map(|drop| drop.packet)).fold(path.load(), |sum, packet| {
                Load { packets: sum.packets + 1, bytes: sum.bytes + u64::from(packet.size) }
            });
        assert_eq!(total, entered, "in = out + dropped + still inside");
    };
    for (index, &(gap, size)) in arrivals.iter().enumerate() {
        let next = now + Duration::from_micros(gap);
        if polls == Polls::EveryEvent {
            while let Some(at) = path.next_event().filter(|&at| at <= next) {
                check(&mut path, &mut out, entered, Some(at));
            }
        }
        now = next;
        if polls == Polls::Observing {
            path.observe(now, &mut |_| {});
        }
        let ecn = if index % 3 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        // Three flows.
        path.enqueue(now, &packet(index as u32 % 3, size, ecn, index as u64));
        entered = Load { packets: entered.packets + 1, bytes: entered.bytes + u64::from(size) };
        let when = (polls == Polls::AfterEachEnqueue).then_some(now);
        check(&mut path, &mut out, entered, when);
    }
    if polls == Polls::OnceAtTheEnd {
        now += Duration::from_secs(10_000);
        check(&mut path, &mut out, entered, Some(now));
    }
    let mut wakes = 0;
    while let Some(at) = path.next_event() {
        check(&mut path, &mut out, entered, Some(at));
        wakes += 1;
        assert!(wakes < 100_000, "polled at its own events, the path must run empty");
    }
    assert_eq!(path.load(), Load::default(), "nothing may be stuck");
    (out, drops)
}

#[derive(Clone, Copy, PartialEq)]
enum Polls {
    EveryEvent,
    AfterEachEnqueue,
    OnceAtTheEnd,
    Observing,
}

proptest! {
    #![proptest_config(match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(3000),
    })]

    /// Laws 2 and 4: the times of polling change nothing, and no packet vanishes.
    #[test]
    fn slicing_and_conservation(
        stages in proptest::collection::vec(stage(), 0..5),
        arrivals in arrivals(),
    ) {
        let reference = run(&stages, &arrivals, Polls::EveryEvent);
        for polls in [Polls::AfterEachEnqueue, Polls::OnceAtTheEnd, Polls::Observing] {
            let other = run(&stages, &arrivals, polls);
            prop_assert_eq!(&reference.0, &other.0);
            prop_assert_eq!(sorted(reference.1.clone()), sorted(other.1));
        }
    }

    /// Departures are in order of time.
    #[test]
    fn departures_are_in_order(
        stages in proptest::collection::vec(stage(), 1..5),
        arrivals in arrivals(),
    ) {
        let (out, _) = run(&stages, &arrivals, Polls::OnceAtTheEnd);
        prop_assert!(out.windows(2).all(|pair| pair[0].at <= pair[1].at));
    }
}

fn link(service: ServiceConfig, packets: Option<u32>) -> StageConfig {
    let queue = QueueConfig { packets, bytes: None, aqm: Aqm::DropTail };
    StageConfig::Link(LinkConfig { service, queue })
}

fn departures_ms(stages: &[StageConfig], arrivals: &[(u64, u32)]) -> Vec<f64> {
    let (out, _) = run(stages, arrivals, Polls::EveryEvent);
    out.iter().map(|departure| departure.at.as_secs_f64() * 1e3).collect()
}

#[test]
fn a_rate_link_sends_one_after_another_and_its_queue_excludes_the_packet_in_service() {
    let link = link(ServiceConfig::Rate(Rate::from_bps(1_200_000).unwrap()), Some(2));
    // 1,500 bytes take 10 ms. Four at once: one in service, two wait, one is dropped.
    let (out, drops) =
        run(&[link], &[(0, 1500), (0, 1500), (0, 1500), (0, 1500)], Polls::EveryEvent);
    let at: Vec<_> = out.iter().map(|departure| departure.at.as_nanos() / 1_000_000).collect();
    assert_eq!((at, drops.len()), (vec![10, 20, 30], 1));
}

#[test]
fn a_batch_leaves_together_and_in_order_at_the_next_multiple() {
    let batch = StageConfig::Batch { interval: Duration::from_millis(10) };
    // 0 and 10 are multiples themselves, so they are missed.
    let arrivals = [(0, 100), (3_000, 100), (6_999, 100), (1, 100), (5_000, 100), (30_000, 100)];
    let at = departures_ms(std::slice::from_ref(&batch), &arrivals);
    assert_eq!(at, [10.0, 10.0, 10.0, 20.0, 20.0, 50.0]);
    let (out, _) = run(&[batch], &arrivals, Polls::OnceAtTheEnd);
    assert!(out.iter().map(|departure| opaque(&departure.packet)).eq(0..6));
}

#[test]
fn a_trace_carries_bytes_over_and_wastes_what_nobody_uses() {
    let trace = Trace::parse(b"5\n10\n10\n20\n", FilePath::new("t")).unwrap();
    let link = link(ServiceConfig::Trace(Arc::new(trace)), None);
    // 1,000 B leave at 5 with 500 B to spare, which carry half of the next 1,000 B; its other half
    // leaves at 10, and 1,000 B are left for the third, all at the same timestamp.
    let three = [(0, 1000), (0, 1000), (0, 1000)];
    assert_eq!(departures_ms(std::slice::from_ref(&link), &three), [5.0, 10.0, 10.0]);
    // Alone, the second of two opportunities at 10 is wasted; a packet that arrives at 10 has
    // missed both: it leaves at 20, where the next period begins.
    let late = [(10_000, 1500), (10_000, 1500)];
    assert_eq!(departures_ms(std::slice::from_ref(&link), &late), [20.0, 25.0]);
}

#[test]
fn a_looping_trace_delivers_its_mean_rate() {
    let trace = Trace::parse(b"0\n1\n3\n7\n10\n", FilePath::new("t")).unwrap();
    let link = link(ServiceConfig::Trace(Arc::new(trace)), None);
    let arrivals = vec![(0, 1500); 5_001];
    let last = *departures_ms(&[link], &arrivals).last().unwrap();
    // Five opportunities every 10 ms; a packet that arrives at 0 misses the one at 0.
    assert_eq!(last, 10_000.0 + 1.0);
}

/// A slow restatement of Mahimahi's link: at each opportunity, spend 1,500 bytes on what arrived
/// before it. Returns departure times in ms.
fn opportunity_by_opportunity(stamps: &[u64], arrivals: &[(u64, u32)]) -> Vec<u64> {
    let period = *stamps.last().unwrap();
    let (mut left, mut head, mut sent) = (Vec::new(), 0, 0);
    for lap in 0.. {
        for &stamp in stamps {
            let now = lap * period + stamp;
            let mut budget = 1500;
            while let Some(&(arrived, size)) = arrivals.get(head) {
                if arrived >= now || budget == 0 {
                    break;
                }
                let part = budget.min(size - sent);
                sent += part;
                budget -= part;
                if sent == size {
                    left.push(now);
                    (head, sent) = (head + 1, 0);
                }
            }
        }
        if head == arrivals.len() {
            return left;
        }
    }
    unreachable!("laps do not end")
}

proptest! {
    /// Replay is exact to the nanosecond, over several periods, idle times and packets of any size.
    #[test]
    fn a_trace_link_replays_as_mahimahi_does(
        gaps in proptest::collection::vec(0u64..12, 1..30),
        arrivals in proptest::collection::vec((0u64..40, 40u32..1501), 1..60),
    ) {
        let stamps: Vec<u64> = gaps
            .iter()
            .scan(0, |at, gap| { *at += gap; Some(*at) })
            .chain([gaps.iter().sum::<u64>() + 1])
            .collect();
        let lines: String = stamps.iter().map(|stamp| format!("{stamp}\n")).collect();
        let trace = Trace::parse(lines.as_bytes(), FilePath::new("random")).unwrap();
        let link = link(ServiceConfig::Trace(Arc::new(trace)), None);
        let micros: Vec<_> = arrivals.iter().map(|&(gap, size)| (gap * 1000, size)).collect();
        let absolute: Vec<_> = arrivals
            .iter()
            .scan(0, |at, &(gap, size)| { *at += gap; Some((*at, size)) })
            .collect();
        let (out, _) = run(&[link], &micros, Polls::EveryEvent);
        let ours: Vec<_> = out.iter().map(|departure| departure.at.as_nanos()).collect();
        let model: Vec<_> =
            opportunity_by_opportunity(&stamps, &absolute).iter().map(|ms| ms * 1_000_000).collect();
        prop_assert_eq!(ours, model);
    }
}
