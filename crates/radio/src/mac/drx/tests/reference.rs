//! TS 38.321 5.7 implemented literally, slot by slot, with timers that count down.

use airpath_base::{Direction, Duration, Instant};
use proptest::prelude::*;

use crate::mac::drx::{
    Drx, DrxCommand, DrxConfig, ShortCycle, Transmission, TransmissionKind, UplinkStart,
};

/// Half a millisecond; every timer is a multiple of it.
const SLOT: u64 = 500_000;
const PROCESSES: usize = 3;

#[derive(Clone, Copy, Debug)]
struct Timers {
    on_duration: u32,
    slot_offset: u32,
    inactivity: u32,
    /// In milliseconds, as are the following three.
    long_cycle: u32,
    start_offset: u32,
    short_cycle: Option<u32>,
    short_timer: u32,
    rtt: [u32; 2],
    retransmission: [u32; 2],
    pdcch: u32,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Transmission { direction: Direction, kind: TransmissionKind, process: u8, rtt_after: u32 },
    Decoded(u8),
    Acknowledged(u8),
    SchedulingRequest(bool),
    RandomAccess { after: u32, length: u32 },
    ContentionFreeResponse,
    Command(DrxCommand),
}

/// Timers; zero means not running.
#[derive(Clone, Debug, Default)]
struct Reference {
    slot: u64,
    on_duration: u32,
    on_duration_after: Option<u32>,
    inactivity: u32,
    short_timer: u32,
    rtt: [[u32; PROCESSES]; 2],
    /// Whether a retransmission is expected: the data is not decoded, or the direction is uplink.
    expects: [[bool; PROCESSES]; 2],
    retransmission: [[u32; PROCESSES]; 2],
    /// Slots until the window begins, and its length after that.
    random_access: (u32, u32),
    pdcch: u32,
    scheduling_request: bool,
    awaits: bool,
}

fn count_down(timer: &mut u32) -> bool {
    let ran = *timer > 0;
    *timer = timer.saturating_sub(1);
    ran && *timer == 0
}

impl Reference {
    /// Begins the next slot: timers expire.
    fn next_slot(&mut self, timers: &Timers) {
        self.slot += 1;
        count_down(&mut self.on_duration);
        match &mut self.random_access {
            (0, length) => drop(count_down(length)),
            (after, _) => *after -= 1,
        }
        count_down(&mut self.pdcch);
        for direction in 0..2 {
            for process in 0..PROCESSES {
                count_down(&mut self.retransmission[direction][process]);
                if count_down(&mut self.rtt[direction][process]) && self.expects[direction][process]
                {
                    self.retransmission[direction][process] = timers.retransmission[direction];
                }
            }
        }
        let inactivity_expired = count_down(&mut self.inactivity);
        count_down(&mut self.short_timer);
        if inactivity_expired && timers.short_cycle.is_some() {
            self.short_timer = timers.short_timer;
        }
    }

    fn apply(&mut self, timers: &Timers, operation: Operation) {
        match operation {
            Operation::Transmission { direction, kind, process, rtt_after } => {
                let (d, p) = (direction as usize, usize::from(process));
                self.rtt[d][p] = rtt_after + timers.rtt[d];
                self.expects[d][p] = true;
                self.retransmission[d][p] = 0;
                if kind != TransmissionKind::Configured {
                    self.pdcch = timers.pdcch;
                }
                if kind == TransmissionKind::New {
                    self.inactivity = timers.pdcch + timers.inactivity;
                    self.awaits = false;
                }
            }
            Operation::Decoded(process) => self.expect_no_more(0, process),
            Operation::Acknowledged(process) => self.expect_no_more(1, process),
            Operation::SchedulingRequest(pending) => self.scheduling_request = pending,
            Operation::RandomAccess { after, length } => self.random_access = (after, length),
            Operation::ContentionFreeResponse => {
                self.random_access = (0, 0);
                self.awaits = true;
            }
            Operation::Command(command) => {
                self.on_duration = 0;
                self.inactivity = 0;
                self.short_timer = match command {
                    DrxCommand::Drx if timers.short_cycle.is_some() => timers.short_timer,
                    _ => 0,
                };
            }
        }
    }

    fn expect_no_more(&mut self, direction: usize, process: u8) {
        self.expects[direction][usize::from(process)] = false;
        self.retransmission[direction][usize::from(process)] = 0;
    }

    /// After everything else in this slot: starts drx-onDurationTimer.
    fn start_on_duration(&mut self, timers: &Timers) {
        if self.slot.is_multiple_of(2) {
            let (sfn, subframe) = (self.slot / 20 % 1024, self.slot / 2 % 10);
            let now = sfn * 10 + subframe;
            let starts = match timers.short_cycle.filter(|_| self.short_timer > 0) {
                Some(cycle) => now % u64::from(cycle) == u64::from(timers.start_offset % cycle),
                None => now % u64::from(timers.long_cycle) == u64::from(timers.start_offset),
            };
            if starts {
                self.on_duration_after = Some(timers.slot_offset);
            }
        }
        self.on_duration_after = match self.on_duration_after {
            Some(0) => {
                self.on_duration = timers.on_duration;
                None
            }
            Some(slots) => Some(slots - 1),
            None => None,
        };
    }

    fn is_active(&self) -> bool {
        self.on_duration > 0
            || self.inactivity > 0
            || self.retransmission.iter().flatten().any(|&timer| timer > 0)
            || (self.random_access.0 == 0 && self.random_access.1 > 0)
            || self.scheduling_request
            || self.awaits
            || self.pdcch > 0
    }

    /// The first slot from now on in which `is_active` is `active`.
    fn first(&self, timers: &Timers, active: bool) -> Option<u64> {
        let mut ahead = self.clone();
        for _ in 0..1500 {
            if ahead.is_active() == active {
                return Some(ahead.slot);
            }
            ahead.next_slot(timers);
            ahead.start_on_duration(timers);
        }
        None
    }
}

fn slots(count: u64) -> Duration {
    Duration::from_nanos(count * SLOT)
}

fn config(timers: &Timers) -> DrxConfig {
    let ms = |millis: u32| Duration::from_millis(u64::from(millis));
    let of = |count: u32| slots(u64::from(count));
    DrxConfig {
        on_duration: of(timers.on_duration),
        slot_offset: of(timers.slot_offset),
        inactivity: of(timers.inactivity),
        long_cycle: ms(timers.long_cycle),
        start_offset: ms(timers.start_offset),
        short_cycle: timers
            .short_cycle
            .map(|cycle| ShortCycle { cycle: ms(cycle), timer: timers.short_timer / (2 * cycle) }),
        harq_rtt_downlink: of(timers.rtt[0]),
        harq_rtt_uplink: of(timers.rtt[1]),
        retransmission_downlink: of(timers.retransmission[0]),
        retransmission_uplink: of(timers.retransmission[1]),
        pdcch: of(timers.pdcch),
        harq_processes: PROCESSES as u8,
        uplink_start: UplinkStart::AtOnce,
    }
}

fn apply(drx: &mut Drx, now: Instant, operation: Operation) {
    match operation {
        Operation::Transmission { direction, kind, process, rtt_after } => {
            let harq_rtt_starts = now + slots(u64::from(rtt_after));
            drx.on_transmission(now, &Transmission { direction, kind, process, harq_rtt_starts });
        }
        Operation::Decoded(process) => drx.on_decoded(now, process),
        Operation::Acknowledged(process) => drx.on_acknowledged(now, process),
        Operation::SchedulingRequest(pending) => drx.on_scheduling_request(now, pending),
        Operation::RandomAccess { after, length } => {
            let start = now + slots(u64::from(after));
            drx.on_random_access(now, start, start + slots(u64::from(length)));
        }
        Operation::ContentionFreeResponse => drx.on_contention_free_response(now),
        Operation::Command(command) => drx.on_command(now, command),
    }
}

fn timers() -> impl Strategy<Value = Timers> {
    // 40 and 80 ms divide 10240 ms; 60 and 70 ms do not.
    let cycles = (
        prop_oneof![Just(20u32), Just(40), Just(60), Just(70), Just(80)],
        0u32..80,
        prop_oneof![Just(None), Just(Some(2u32)), Just(Some(5)), Just(Some(10))],
        1u32..5,
    );
    ((1u32..30, 0u32..2, 1u32..60, 0u32..3), cycles, [1u32..12, 1..12], [1u32..12, 1..12]).prop_map(
        |(one, (long_cycle, offset, short_cycle, periods), rtt, retransmission)| Timers {
            on_duration: one.0,
            slot_offset: one.1,
            inactivity: one.2,
            long_cycle,
            start_offset: offset % long_cycle,
            short_cycle,
            short_timer: periods * 2 * short_cycle.unwrap_or(1),
            rtt,
            retransmission,
            pdcch: one.3,
        },
    )
}

fn operation() -> impl Strategy<Value = Operation> {
    let process = 0u8..PROCESSES as u8;
    let direction = prop_oneof![Just(Direction::Downlink), Just(Direction::Uplink)];
    let kind = prop_oneof![
        3 => Just(TransmissionKind::New),
        2 => Just(TransmissionKind::Retransmission),
        1 => Just(TransmissionKind::Configured),
    ];
    prop_oneof![
        8 => (direction, kind, process.clone(), 0u32..8).prop_map(
            |(direction, kind, process, rtt_after)| Operation::Transmission {
                direction, kind, process, rtt_after,
            }
        ),
        3 => process.clone().prop_map(Operation::Decoded),
        3 => process.prop_map(Operation::Acknowledged),
        2 => any::<bool>().prop_map(Operation::SchedulingRequest),
        // A pending request ends all sleep, so mostly it is removed at once.
        4 => Just(Operation::SchedulingRequest(false)),
        1 => (0u32..6, 0u32..20)
            .prop_map(|(after, length)| Operation::RandomAccess { after, length }),
        1 => Just(Operation::ContentionFreeResponse),
        2 => Just(Operation::Command(DrxCommand::Drx)),
        1 => Just(Operation::Command(DrxCommand::LongDrx)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Compares Active Time, its next beginning and end, and the time awake, slot by slot, across
    /// the wrap of the SFN; also for a copy that receives events and is never queried.
    #[test]
    fn every_slot_is_as_the_clause_says(
        timers in timers(),
        begin in 19_000u64..20_600,
        script in proptest::collection::vec((0u64..200, operation()), 0..25),
    ) {
        let mut reference = Reference::default();
        let mut drx = Drx::new(&config(&timers));
        let mut unasked = drx.clone();
        let mut awake = 0;
        let mut due: Vec<(u64, Operation)> = Vec::new();
        let mut at = begin;
        for (gap, operation) in script {
            at += gap;
            due.push((at, operation));
        }
        let mut due = due.into_iter().peekable();
        let end = at + 300;
        loop {
            let now = Instant::ZERO + slots(reference.slot);
            let mut changed = false;
            while let Some((_, operation)) = due.next_if(|&(slot, _)| slot == reference.slot) {
                reference.apply(&timers, operation);
                apply(&mut drx, now, operation);
                apply(&mut unasked, now, operation);
                changed = true;
            }
            reference.start_on_duration(&timers);
            // Skip the idle beginning in one step.
            if reference.slot + 50 >= begin {
                prop_assert_eq!(drx.is_active(now), reference.is_active(), "{:?}", now);
                prop_assert_eq!(drx.awake(now), slots(awake), "{:?}", now);
            }
            if changed {
                let next = reference.first(&timers, true).unwrap();
                prop_assert_eq!(drx.next_active(now), Instant::ZERO + slots(next));
                if let Some(change) = reference.first(&timers, !reference.is_active()) {
                    prop_assert_eq!(drx.next_change(now), Some(Instant::ZERO + slots(change)));
                }
            }
            awake += u64::from(reference.is_active());
            if reference.slot == end {
                break;
            }
            reference.next_slot(&timers);
        }
        let end = Instant::ZERO + slots(end + 1);
        prop_assert_eq!(unasked.awake(end), slots(awake));
    }
}
