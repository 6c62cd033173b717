//! No configuration leaves uplink data stranded: whatever is lost, the procedures ask again.
//!
//! One UE is driven from event to event, by the `next_event` of the procedures alone, while
//! scheduling requests, preambles and transport blocks get lost.

use std::collections::VecDeque;

use airpath_base::{Direction, Duration, Instant, Stream};
use airpath_radio::Generation;
use airpath_radio::mac::Occasions;
use airpath_radio::mac::bsr::{
    BsrConfig, BsrFormat, BsrTables, BufferStatus, LogicalChannel, Piggyback, RegularTrigger,
    UplinkResource,
};
use airpath_radio::mac::drx::{
    Drx, DrxConfig, ShortCycle, Transmission, TransmissionKind, UplinkStart,
};
use airpath_radio::mac::rach::{Preamble, RachConfig, RachEvent, RandomAccess};
use airpath_radio::mac::sr::{SchedulingRequest, SrConfig, SrEvent};
use airpath_radio::scheduler::grants::{BufferEstimate, EstimateConfig};
use proptest::prelude::*;

const K2: Duration = Duration::from_millis(2);
const LARGEST_BLOCK: u64 = 3_000;
/// Longest time that a report can cost: retxBSR-Timer, a long cycle, and random access.
const PATIENCE: Duration = Duration::from_millis(60_000);
/// Consecutive reports that may get lost: four in ten do, so one case in 10^12 has as many.
const LOST_REPORTS: u64 = 30;

const TABLE: &[u32] = &[0, 10, 100, 1_000, 10_000, 100_000];
const FORMAT: BsrFormat =
    BsrFormat { generation: Generation::Nr, tables: BsrTables { short: TABLE, long: TABLE } };

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[derive(Clone, Debug)]
struct Configuration {
    drx: DrxConfig,
    sr: SrConfig,
    bsr: BsrConfig,
    rach: RachConfig,
    block_loss: f64,
    seed: u64,
}

struct Cell {
    drx: Drx,
    sr: SchedulingRequest,
    bsr: BufferStatus,
    rach: RandomAccess,
    estimate: BufferEstimate,
    /// Grants that were not used yet: when, and how many bytes.
    grants: VecDeque<(Instant, u32)>,
    /// Data that the MAC does not see yet: when it will, and how many bytes.
    arrivals: VecDeque<(Instant, u64)>,
    block_loss: f64,
    losses: Stream,
}

impl Configuration {
    /// How long it may take until everything is sent: where no scheduling request arrives, each
    /// report waits for all requests that may be sent before random access.
    fn patience(&self) -> Duration {
        let apart = self.sr.occasions.map_or(Duration::ZERO, |occasions| {
            self.sr.prohibit.unwrap_or(Duration::ZERO) + occasions.period()
        });
        PATIENCE + apart * (u64::from(self.sr.transmissions_max) * LOST_REPORTS)
    }
}

impl Cell {
    fn new(configuration: &Configuration, arrivals: VecDeque<(Instant, u64)>) -> Self {
        let stream = |name| Stream::new(configuration.seed, name);
        let estimate = EstimateConfig { request_grant: 40, ..EstimateConfig::default() };
        Self {
            drx: Drx::new(&configuration.drx),
            sr: SchedulingRequest::new(&configuration.sr, stream("sr")),
            bsr: BufferStatus::new(&configuration.bsr),
            rach: RandomAccess::new(&configuration.rach, stream("rach")),
            estimate: BufferEstimate::new(estimate, FORMAT),
            grants: VecDeque::new(),
            arrivals,
            block_loss: configuration.block_loss,
            losses: stream("losses"),
        }
    }

    /// Whether everything is sent.
    fn is_done(&self) -> bool {
        self.bsr.available() == 0 && self.arrivals.is_empty()
    }

    fn next_event(&mut self, now: Instant) -> Option<Instant> {
        let wanted = self.estimate.wanted(now) > 0;
        [
            self.arrivals.front().map(|&(at, _)| at),
            self.grants.front().map(|&(at, _)| at),
            self.bsr.next_event(),
            self.sr.next_event(),
            self.rach.next_event(),
            wanted.then(|| self.drx.next_active(now)),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn step(&mut self, now: Instant) {
        while let Some((_, bytes)) = pop_due(&mut self.arrivals, now) {
            self.bsr.on_available(now, 0, self.bsr.available() + bytes);
        }
        while let Some((_, bytes)) = pop_due(&mut self.grants, now) {
            self.send(now, bytes);
        }
        let resource =
            if self.grants.is_empty() { UplinkResource::None } else { UplinkResource::Granted };
        if self.bsr.wants_request(now, resource) && !self.rach.is_ongoing() {
            self.sr.trigger(now);
        }
        while let Some(event) = self.sr.poll(now) {
            match event {
                SrEvent::Transmitted { received: true, .. } => self.estimate.on_request(now),
                SrEvent::Transmitted { .. } => {}
                SrEvent::RandomAccess { .. } => self.rach.start(now, Preamble::ContentionBased),
            }
        }
        self.drx.on_scheduling_request(now, self.sr.is_sent_and_pending());
        while let Some(event) = self.rach.poll(now) {
            match event {
                RachEvent::Preamble { window, .. } => {
                    self.drx.on_random_access(now, window.0, window.1);
                }
                RachEvent::Msg3 { until, .. } => self.drx.on_random_access(now, now, until),
                RachEvent::Complete { .. } => {
                    self.sr.restore(now);
                    self.estimate.on_request(now);
                }
                RachEvent::Problem { .. } => self.rach.start(now, Preamble::ContentionBased),
                _ => {}
            }
        }
        if self.estimate.wanted(now) > 0 && self.drx.is_active(now) {
            self.grant(now);
        }
    }

    fn grant(&mut self, now: Instant) {
        let bytes = (self.estimate.wanted(now) + 2).min(LARGEST_BLOCK) as u32;
        self.estimate.on_grant(now, bytes);
        let transmission = Transmission {
            direction: Direction::Uplink,
            kind: TransmissionKind::New,
            process: (self.grants.len() % 16) as u8,
            harq_rtt_starts: now + K2,
        };
        self.drx.on_transmission(now, &transmission);
        self.bsr.on_grant(now);
        self.grants.push_back((now + K2, bytes));
    }

    /// Sends a transport block, which may get lost.
    fn send(&mut self, now: Instant, bytes: u32) {
        let waiting = self.bsr.available();
        let plan = self.bsr.plan(now, bytes, waiting);
        let room = u64::from(bytes - plan.map_or(0, |plan| plan.bytes));
        self.bsr.on_available(now, 0, waiting.saturating_sub(room));
        let report = plan.map(|plan| self.bsr.assemble(now, plan));
        if report.is_some() {
            self.sr.on_pdu(now);
        }
        if self.bsr.available() == 0 {
            self.sr.cancel();
        }
        match report.filter(|_| !self.losses.chance(self.block_loss)) {
            Some(report) => self.estimate.on_report(now, bytes, now, &report),
            None => self.estimate.on_transport_block(now, bytes),
        }
    }
}

fn pop_due<T: Copy>(queue: &mut VecDeque<(Instant, T)>, now: Instant) -> Option<(Instant, T)> {
    let due = queue.front().is_some_and(|&(at, _)| at <= now);
    if due { queue.pop_front() } else { None }
}

fn drx() -> impl Strategy<Value = DrxConfig> {
    let rule = prop_oneof![
        Just(UplinkStart::AtOnce),
        Just(UplinkStart::InActiveTime),
        Just(UplinkStart::InOnDuration),
    ];
    let short = proptest::option::of((prop_oneof![Just(10u64), Just(20)], 1u32..5));
    let long = prop_oneof![Just(40u64), Just(60), Just(70), Just(320), Just(2_560)];
    (rule, short, long, 1u64..20, 1u64..60, 0u64..40).prop_map(
        |(uplink_start, short, long, on_duration, inactivity, offset)| DrxConfig {
            on_duration: ms(on_duration),
            slot_offset: Duration::from_micros(250),
            inactivity: ms(inactivity),
            long_cycle: ms(long),
            start_offset: ms(offset),
            short_cycle: short.map(|(cycle, timer)| ShortCycle { cycle: ms(cycle), timer }),
            harq_rtt_downlink: ms(4),
            harq_rtt_uplink: ms(4),
            retransmission_downlink: ms(2),
            retransmission_uplink: ms(2),
            pdcch: Duration::from_micros(71),
            harq_processes: 16,
            uplink_start,
        },
    )
}

fn configuration() -> impl Strategy<Value = Configuration> {
    let period = prop_oneof![Just(1u64), Just(5), Just(20), Just(80)];
    let sr = (
        proptest::option::weighted(0.9, (period, 0u64..80)),
        proptest::option::of(1u64..128),
        prop_oneof![Just(4u32), Just(64)],
        prop_oneof![Just(0.0), Just(0.5), Just(1.0)],
    )
        .prop_map(|(resource, prohibit, transmissions_max, miss_probability)| SrConfig {
            occasions: resource.map(|(period, offset)| Occasions::new(ms(period), ms(offset))),
            prohibit: prohibit.map(ms),
            transmissions_max,
            preparation: Duration::from_micros(300),
            miss_probability,
        });
    let bsr = (proptest::option::of(5u64..80), 10u64..640, any::<bool>(), any::<bool>()).prop_map(
        |(periodic, retransmission, delays_request, always)| BsrConfig {
            regular: RegularTrigger::NewData,
            format: FORMAT,
            channels: vec![LogicalChannel {
                group: 0,
                priority: 1,
                delays_request,
                masks_request: false,
            }],
            periodic: periodic.map(ms),
            retransmission: ms(retransmission),
            request_delay: ms(40),
            piggyback: if always { Piggyback::Always } else { Piggyback::Padding },
        },
    );
    let rach = (0.0..0.6, 0.0..0.6, 0u64..100).prop_map(|(miss, contention, backoff)| RachConfig {
        occasions: Occasions::new(ms(10), ms(4)),
        preparation: ms(1),
        preamble: ms(1),
        response_window_after: ms(1),
        response_window: ms(10),
        response_delay: ms(2),
        msg3_delay: ms(5),
        contention_resolution: ms(48),
        resolution_delay: ms(6),
        backoff: ms(backoff),
        preambles_max: 10,
        miss_probability: miss,
        contention_probability: contention,
    });
    (drx(), sr, bsr, rach, prop_oneof![Just(0.0), Just(0.4)], any::<u64>()).prop_map(
        |(drx, sr, bsr, rach, block_loss, seed)| Configuration {
            drx,
            sr,
            bsr,
            rach,
            block_loss,
            seed,
        },
    )
}

proptest! {
    #[test]
    fn all_data_is_sent(
        configuration in configuration(),
        arrivals in proptest::collection::vec((0u64..2_000_000, 1u64..20_000), 1..12),
    ) {
        let (mut at, mut visible) = (Instant::ZERO, VecDeque::new());
        let mut until = Instant::ZERO;
        for (gap_micros, bytes) in arrivals {
            at += Duration::from_micros(gap_micros);
            // What an idle UE would do; the data is never shown to the MAC earlier.
            until = until.max(Drx::new(&configuration.drx).uplink_start(at));
            visible.push_back((until, bytes));
        }
        let mut cell = Cell::new(&configuration, visible);
        let (mut now, mut events) = (Instant::ZERO, 0);
        while !cell.is_done() {
            let next = cell.next_event(now);
            prop_assert!(next.is_some(), "stalled at {:?} with {}", now, cell.bsr.available());
            now = next.unwrap().max(now);
            prop_assert!(now < until + configuration.patience(), "{} left at {:?}", cell.bsr.available(), now);
            cell.step(now);
            events += 1;
            prop_assert!(events < 100_000, "no progress at {:?}", now);
        }
        // A UE without data has nothing to request.
        cell.sr.cancel();
        prop_assert_eq!((cell.bsr.next_event(), cell.sr.next_event()), (None, None));
    }
}
