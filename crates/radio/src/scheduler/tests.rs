use airpath_base::{Duration, Rate};
use proptest::prelude::*;

use super::*;

/// Block sizes from the bytes per PRB of each UE.
struct Linear(Vec<u32>);

impl BlockSizes for Linear {
    fn bytes(&self, ue: UeId, prbs: u32) -> u32 {
        self.0[ue.0 as usize] * prbs
    }
    fn prbs_for(&self, ue: UeId, bytes: u64) -> u32 {
        bytes.div_ceil(u64::from(self.0[ue.0 as usize])) as u32
    }
}

const FAIR: Policy = Policy::ProportionalFair { time_constant: Duration::from_millis(200) };
const POLICIES: [Policy; 3] = [Policy::RoundRobin, FAIR, Policy::MaxRate];

fn scheduler(policy: Policy, ues: u32) -> Scheduler {
    limited(policy, ues, None)
}

fn limited(policy: Policy, ues: u32, ues_per_slot: Option<u32>) -> Scheduler {
    let mut scheduler = Scheduler::new(SchedulerConfig { policy, ues_per_slot });
    for _ in 0..ues {
        scheduler.add_ue(None);
    }
    scheduler
}

fn wants(ue: u32, backlog: u64, sizes: &Linear) -> Candidate {
    let bits_per_prb = sizes.0[ue as usize] * 8;
    Candidate { ue: UeId(ue), backlog, bits_per_prb, retransmission: None }
}

fn fails(ue: u32, prbs: u32, since: u64, sizes: &Linear) -> Candidate {
    let since = Instant::from_nanos(since);
    Candidate {
        retransmission: Some(Retransmission { prbs, since }),
        ..wants(ue, 1_000_000, sizes)
    }
}

fn slot_start(slot: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(500) * slot
}

/// Bytes that each UE gets in `slots` slots while all always have more to send.
fn full_buffer(scheduler: &mut Scheduler, prbs: u32, sizes: &Linear, slots: u64) -> Vec<u64> {
    let candidates: Vec<_> =
        (0..sizes.0.len() as u32).map(|ue| wants(ue, 10_000_000, sizes)).collect();
    let mut served = vec![0; sizes.0.len()];
    for slot in 0..slots {
        for allocation in scheduler.allocate(slot_start(slot), prbs, &candidates, sizes) {
            let ue = allocation.ue.0 as usize;
            served[ue] += u64::from(sizes.bytes(allocation.ue, allocation.prbs));
        }
    }
    served
}

#[test]
fn equal_ues_get_equal_shares_at_any_number_of_prbs() {
    for policy in POLICIES {
        for (ues, prbs, ues_per_slot) in [
            (2, 25, None),
            (3, 100, None),
            (4, 25, Some(2)),
            (7, 6, None),
            (10, 273, None),
            (40, 51, Some(16)),
        ] {
            let mut scheduler = limited(policy, ues, ues_per_slot);
            let sizes = Linear(vec![50; ues as usize]);
            let slots = 4_000;
            let served = full_buffer(&mut scheduler, prbs, &sizes, slots);
            let fair = 50.0 * f64::from(prbs) * slots as f64 / f64::from(ues);
            for bytes in &served {
                let ratio = *bytes as f64 / fair;
                assert!((ratio - 1.0).abs() < 0.02, "{policy:?} {ues} {prbs}: {served:?}");
            }
        }
    }
}

#[test]
fn round_robin_shares_prbs_proportional_fair_time_and_max_rate_nothing() {
    let sizes = Linear(vec![20, 60]);
    let share = |policy| {
        let served = full_buffer(&mut scheduler(policy, 2), 50, &sizes, 4_000);
        served[0] as f64 / (served[0] + served[1]) as f64
    };
    // Equal PRBs at 20 and 60 bytes each: a quarter.
    assert!((share(Policy::RoundRobin) - 0.25).abs() < 0.005);
    // With constant channels, proportional fair gives equal time as well.
    assert!((share(FAIR) - 0.25).abs() < 0.005);
    assert_eq!(share(Policy::MaxRate), 0.0);
}

#[test]
fn proportional_fair_serves_a_ue_when_its_channel_is_better_than_usual() {
    // UE 0 alternates between 20 and 60 bytes per PRB, UE 1 has 40, in blocks of 20 slots.
    let mut scheduler = scheduler(FAIR, 2);
    let mut good = [0u32; 2];
    for slot in 0..4_000 {
        let is_good = slot / 20 % 2 == 0;
        let sizes = Linear(vec![if is_good { 60 } else { 20 }, 40]);
        let candidates = [wants(0, 10_000_000, &sizes), wants(1, 10_000_000, &sizes)];
        let allocations = scheduler.allocate(slot_start(slot), 50, &candidates, &sizes);
        let first = allocations.iter().filter(|allocation| allocation.ue == UeId(0)).count();
        good[usize::from(is_good)] += first as u32;
    }
    assert!(good[1] > 1_900 && good[0] < 100, "{good:?}");
}

#[test]
fn a_ue_that_had_nothing_for_long_comes_first() {
    let sizes = Linear(vec![50, 50]);
    let mut scheduler = scheduler(FAIR, 2);
    let busy = wants(0, 10_000_000, &sizes);
    for slot in 0..100 {
        scheduler.allocate(slot_start(slot), 50, &[busy], &sizes);
    }
    let ping = wants(1, 100, &sizes);
    let allocations = scheduler.allocate(slot_start(100), 50, &[busy, ping], &sizes);
    let new = AllocationKind::New;
    let expected = [
        Allocation { ue: UeId(1), prbs: 2, kind: new },
        Allocation { ue: UeId(0), prbs: 48, kind: new },
    ];
    assert_eq!(allocations, expected);
}

#[test]
fn proportional_fair_forgets_what_was_long_ago() {
    let sizes = Linear(vec![50, 50]);
    let both = [wants(0, 10_000_000, &sizes), wants(1, 10_000_000, &sizes)];
    // UE 0 has had the cell to itself for 1 s; UE 1 arrives at once, or 10 time constants later.
    let share = |pause_slots: u64| {
        let mut scheduler = scheduler(FAIR, 2);
        for slot in 0..2_000 {
            scheduler.allocate(slot_start(slot), 50, &both[..1], &sizes);
        }
        let mut mine = 0;
        for slot in 0..200 {
            let now = slot_start(2_000 + pause_slots + slot);
            let allocations = scheduler.allocate(now, 50, &both, &sizes);
            mine += u32::from(allocations[0].ue == UeId(0));
        }
        mine
    };
    assert_eq!(share(0), 0);
    assert!((95..=105).contains(&share(4_000)), "{}", share(4_000));
}

#[test]
fn failed_blocks_go_first_the_oldest_first_and_whole() {
    let sizes = Linear(vec![50; 4]);
    for policy in POLICIES {
        let candidates = [
            wants(0, 100, &sizes),
            fails(1, 30, 9, &sizes),
            fails(2, 50, 5, &sizes),
            fails(3, 10, 7, &sizes),
        ];
        let mut scheduler = scheduler(policy, 4);
        let allocations = scheduler.allocate(slot_start(0), 80, &candidates, &sizes);
        let again = AllocationKind::Retransmission;
        let expected = [
            Allocation { ue: UeId(2), prbs: 50, kind: again },
            Allocation { ue: UeId(3), prbs: 10, kind: again },
            // UE 1 needs 30 of the 20 that are left: its block waits, new data does not.
            Allocation { ue: UeId(0), prbs: 2, kind: AllocationKind::New },
        ];
        assert_eq!(allocations, expected);
    }
}

#[test]
fn a_failed_block_wider_than_the_slot_takes_all_of_it() {
    let sizes = Linear(vec![50]);
    let mut scheduler = scheduler(FAIR, 1);
    let allocations = scheduler.allocate(slot_start(0), 6, &[fails(0, 25, 0, &sizes)], &sizes);
    assert_eq!(allocations.iter().map(|allocation| allocation.prbs).collect::<Vec<_>>(), [6]);
}

#[test]
fn a_cap_holds_within_its_bucket_and_leaves_the_rest_to_others() {
    for policy in POLICIES {
        let mut scheduler = Scheduler::new(SchedulerConfig { policy, ues_per_slot: None });
        let cap = RateCap { rate: Rate::from_bps(5_000_000).unwrap(), bucket_bytes: 10_000 };
        scheduler.add_ue(Some(cap));
        scheduler.add_ue(None);
        let sizes = Linear(vec![60, 50]);
        let candidates = [wants(0, 10_000_000, &sizes), wants(1, 10_000_000, &sizes)];
        let mut capped = 0;
        for slot in 0..8_000 {
            let now = slot_start(slot);
            let mut prbs = 0;
            for allocation in scheduler.allocate(now, 100, &candidates, &sizes) {
                prbs += allocation.prbs;
                if allocation.ue == UeId(0) {
                    capped += u64::from(sizes.bytes(allocation.ue, allocation.prbs));
                }
            }
            assert_eq!(prbs, 100, "{policy:?}: UE 1 takes what UE 0 may not");
            // Bucket, plus rate × time, plus what the last PRB carries.
            let most = 10_000 + now.as_nanos() / 1_600 + 60;
            assert!(capped <= most, "{policy:?}: {capped} of {most} bytes at {now:?}");
        }
        // 5 Mb/s for 4 s.
        assert!(capped >= 2_500_000, "{policy:?}: {capped}");
    }
}

#[test]
fn a_capped_ue_says_when_to_come_back() {
    let cap = RateCap { rate: Rate::from_bps(8_000_000).unwrap(), bucket_bytes: 100 };
    let mut scheduler = Scheduler::new(SchedulerConfig { policy: FAIR, ues_per_slot: None });
    let ue = scheduler.add_ue(Some(cap));
    let sizes = Linear(vec![60]);
    let candidates = [wants(0, 10_000, &sizes)];
    assert_eq!(scheduler.eligible_at(ue, slot_start(1)), slot_start(1));
    // 100 bytes may pass; two PRBs carry 120: 20 µs of debt at one byte per µs, plus one byte.
    assert_eq!(scheduler.allocate(slot_start(1), 50, &candidates, &sizes).len(), 1);
    let due = slot_start(1) + Duration::from_micros(21);
    assert_eq!(scheduler.eligible_at(ue, slot_start(1)), due);
    let early = Instant::from_nanos(due.as_nanos() - 1);
    assert!(scheduler.allocate(early, 50, &candidates, &sizes).is_empty());
    assert_eq!(scheduler.eligible_at(ue, early), due);
    assert_eq!(scheduler.allocate(due, 50, &candidates, &sizes).len(), 1);
}

fn policy() -> impl Strategy<Value = Policy> {
    proptest::sample::select(&POLICIES[..])
}

/// Backlog, bytes per PRB, and the PRBs of a failed block.
type Wish = (u64, u32, Option<u32>);

fn wishes() -> impl Strategy<Value = Vec<Wish>> {
    let backlog = prop_oneof![Just(0u64), 1u64..500, 1u64..200_000];
    proptest::collection::vec(
        (backlog, 1u32..120, proptest::option::weighted(0.2, 1u32..150)),
        1..40,
    )
}

proptest! {
    #[test]
    fn slots_are_filled_and_never_overfilled(
        policy in policy(),
        ues_per_slot in proptest::option::of(1u32..20),
        slots in proptest::collection::vec((1u32..280, wishes()), 1..20),
    ) {
        let mut scheduler = limited(policy, 40, ues_per_slot);
        for (number, (prbs, wishes)) in slots.into_iter().enumerate() {
            let sizes = Linear(wishes.iter().map(|wish| wish.1).collect());
            let candidates: Vec<_> = wishes.iter().zip(0..).map(|(wish, ue)| {
                let retransmission = wish.2.map(|prbs| Retransmission {
                    prbs, since: Instant::from_nanos(u64::from(ue) * 7 % 11),
                });
                Candidate { retransmission, ..wants(ue, wish.0, &sizes) }
            }).collect();
            let now = slot_start(number as u64);
            let given = scheduler.allocate(now, prbs, &candidates, &sizes).to_vec();
            let used: u32 = given.iter().map(|allocation| allocation.prbs).sum();
            prop_assert!(used <= prbs);
            prop_assert!(given.len() as u32 <= ues_per_slot.unwrap_or(u32::MAX));
            for candidate in &candidates {
                let mut own = given.iter().filter(|allocation| allocation.ue == candidate.ue);
                let (first, second) = (own.next(), own.next());
                prop_assert_eq!(second, None, "one block per UE and slot");
                let size = |prbs| u64::from(sizes.bytes(candidate.ue, prbs));
                match (first, candidate.retransmission) {
                    (Some(first), Some(again)) => {
                        prop_assert_eq!(first.kind, AllocationKind::Retransmission);
                        prop_assert_eq!(first.prbs, again.prbs.min(prbs));
                    }
                    (Some(first), None) => {
                        prop_assert_eq!(first.kind, AllocationKind::New);
                        prop_assert!(first.prbs > 0);
                        // Not one PRB more than the backlog needs.
                        prop_assert!(size(first.prbs - 1) < candidate.backlog);
                    }
                    (None, _) => {}
                }
                // Work conserving: a PRB is left over only if no UE could use it.
                let full = given.len() as u32 == ues_per_slot.unwrap_or(u32::MAX);
                if used < prbs && candidate.retransmission.is_none() {
                    match first {
                        Some(first) => prop_assert!(size(first.prbs) >= candidate.backlog),
                        None => prop_assert!(candidate.backlog == 0 || full),
                    }
                }
            }
        }
    }
}
