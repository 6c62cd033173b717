//! Two endpoints joined by a random channel that loses, duplicates, delays and reorders; random
//! configurations, random applications. Whatever happens, each stream arrives once and in order,
//! and the connection ends.

use std::collections::BTreeMap;

use airpath_base::{Duration, Ecn, Flags, FlowId, Instant, Packet, Payload, Rate, Segment, Stream};
use airpath_tcp::{
    AggregationConfig, BufferConfig, CongestionConfig, CubicArithmetic, CubicConfig,
    DelayedAckConfig, EarlyExit, EcnConfig, Endpoint, EndpointConfig, Event, EventKind, GrowthUnit,
    Halved, HystartConfig, IdleRestart, LimitTimes, LossDetection, OffloadConfig, PacingConfig,
    ReaderConfig, RecoveryConfig, Reduction, RenoConfig, RightSizing, RouteConfig, RouteMetrics,
    RouteRule, RtoConfig, RtoEstimator, SackCompressionConfig, SendMemoryConfig, SenderCounters,
    SlowStartConfig, ValidationConfig,
};
use proptest::prelude::*;
#[cfg(debug_assertions)]
use proptest::test_runner::{Reason, TestError, TestRunner};

/// What an application does, in order.
#[derive(Clone, Debug)]
enum Operation {
    Wait(Duration),
    Offer(u64),
    /// Reads what has arrived, unless the configured reader does.
    Read(u64),
    /// Offers data without end; only [`Operation::Close`] ends it.
    OfferWithoutEnd,
    Close,
}

#[derive(Clone, Copy, Debug)]
struct Channel {
    loss: f64,
    duplication: f64,
    /// Probability of marking an ECN-capable packet.
    marking: f64,
    delay: Duration,
    jitter: Duration,
}

#[derive(Clone, Debug)]
struct Connection {
    seed: u64,
    ends: [EndpointConfig; 2],
    applications: [Vec<Operation>; 2],
    /// The channels towards end 1 and towards end 0.
    channels: [Channel; 2],
}

/// One end, and what is known about it from outside.
struct End {
    endpoint: Endpoint,
    mss: u32,
    operations: std::vec::IntoIter<Operation>,
    /// When the next operation is due.
    wakes: Option<Instant>,
    /// Right edge of the window last received from the peer, and of the one last sent.
    may_send: u64,
    advertised: u64,
    peer_scale: Option<u8>,
    scale: u8,
    sent_end: u64,
    delivered: u64,
    read_by_hand: bool,
    dsack: bool,
    offered: u64,
    in_recovery: bool,
    slow_start_exits: u32,
    established: u32,
    finished: u32,
    last_event: Instant,
    events: Vec<Event>,
    /// When the connection was open: from the end of the handshake to the end of the stream.
    open: (Instant, Instant),
}

/// What must be the same when the run is repeated, and when no fast path is taken.
#[derive(Debug, PartialEq)]
struct Outcome {
    at: Instant,
    /// What each end sent, and when.
    sent: Vec<(Instant, usize, Packet)>,
    events: [Vec<Event>; 2],
    counters: [SenderCounters; 2],
    delivered: [u64; 2],
    acks: [u64; 2],
}

impl End {
    fn new(endpoint: Endpoint, config: &EndpointConfig, operations: Vec<Operation>) -> Self {
        Self {
            endpoint,
            mss: config.mss,
            operations: operations.into_iter(),
            wakes: Some(Instant::ZERO),
            may_send: 0,
            advertised: 0,
            peer_scale: None,
            scale: 0,
            sent_end: 0,
            delivered: 0,
            dsack: config.dsack,
            read_by_hand: config.reader == ReaderConfig::Driver,
            offered: 0,
            in_recovery: false,
            slow_start_exits: 0,
            established: 0,
            finished: 0,
            last_event: Instant::ZERO,
            events: Vec::new(),
            open: (Instant::MAX, Instant::MAX),
        }
    }

    fn due(&self) -> Option<Instant> {
        self.wakes.into_iter().chain(self.endpoint.next_timer()).min()
    }

    /// Performs the application's operations that are due.
    fn operate(&mut self, now: Instant) {
        while self.wakes.is_some_and(|at| at <= now) {
            match self.operations.next() {
                // Continues to read until the end.
                None if self.read_by_hand && !self.endpoint.is_closed_by_peer() => {
                    self.endpoint.read(now, u64::MAX);
                    self.wakes = Some(now + READ_INTERVAL);
                }
                None => {
                    self.endpoint.read(now, u64::MAX);
                    self.wakes = None;
                }
                Some(Operation::Read(bytes)) => self.endpoint.read(now, bytes),
                Some(Operation::Wait(time)) => self.wakes = Some(now + time),
                Some(Operation::Offer(bytes)) => {
                    self.offered += bytes;
                    self.endpoint.offer(bytes);
                }
                Some(Operation::OfferWithoutEnd) => {
                    self.offered = u64::MAX;
                    self.endpoint.offer(u64::MAX);
                }
                Some(Operation::Close) if self.offered == u64::MAX => self.endpoint.close(),
                Some(Operation::Close) => self.endpoint.close_when_written(),
            }
        }
    }

    /// Checks a segment of this end.
    fn check_sent(&mut self, segment: &Segment, peer_sent_end: u64) {
        let written = 1 + self.endpoint.written();
        assert!(segment.len <= self.mss);
        let data_end = segment.seq + u64::from(segment.len);
        assert!(segment.len == 0 || data_end <= written, "{segment:?} beyond {written}");
        if segment.flags.has(Flags::FIN) {
            assert_eq!(segment.end(), written + 1, "a FIN amid the stream");
        }
        if segment.flags.has(Flags::SYN) {
            self.scale = segment.window_scale.unwrap_or(0);
            assert_eq!(segment.len, 0);
        } else {
            // A pure acknowledgement has the sequence number after a probe.
            let probe = segment.sequence_len() <= 1;
            assert!(segment.end() <= self.may_send || probe, "beyond the window: {segment:?}");
        }
        self.sent_end = self.sent_end.max(segment.end());
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        assert!(segment.ack <= peer_sent_end);
        let shift = match segment.flags.has(Flags::SYN) || self.peer_scale.is_none() {
            true => 0,
            false => self.scale,
        };
        let edge = segment.ack + (u64::from(segment.window) << shift);
        assert!(edge >= self.advertised, "the window shrank: {segment:?}");
        self.advertised = edge;
        let mut blocks: Vec<_> = segment.sack.iter(segment.ack).collect();
        // RFC 2883 4: a first block below the acknowledgement or within the second is a duplicate.
        if let Some(&(start, end)) = blocks.first() {
            let within = |other: &(u64, u64)| other.0 <= start && end <= other.1;
            if start < segment.ack || blocks.get(1).is_some_and(within) {
                assert!(self.dsack && start < end && end <= peer_sent_end, "{segment:?}");
                blocks.remove(0);
            }
        }
        blocks.sort_unstable();
        let mut last = segment.ack;
        for (start, end) in blocks {
            assert!(start > last && start < end && end <= peer_sent_end, "{segment:?}");
            last = end;
        }
    }

    fn receive(&mut self, now: Instant, segment: &Segment, ecn: Ecn) {
        let before = self.endpoint.is_established();
        self.endpoint.on_segment(now, segment, ecn);
        if segment.flags.has(Flags::SYN) {
            self.peer_scale = segment.window_scale;
        }
        if segment.flags.has(Flags::ACK) && (before || self.endpoint.is_established()) {
            let scaled = !segment.flags.has(Flags::SYN) && self.scale_is_agreed();
            let shift = if scaled { self.peer_scale.unwrap_or(0) } else { 0 };
            let edge = segment.ack + (u64::from(segment.window) << shift);
            self.may_send = self.may_send.max(edge);
        }
    }

    fn scale_is_agreed(&self) -> bool {
        self.peer_scale.is_some()
    }

    fn check(&mut self, now: Instant, config: &EndpointConfig) {
        let delivered = self.endpoint.delivered();
        assert!(delivered >= self.delivered);
        self.delivered = delivered;
        let unread = self.endpoint.unread();
        // An aggregate being held has not been delivered yet.
        let held = config.aggregation.map_or(0, |aggregation| u64::from(aggregation.max_bytes));
        assert!(unread <= delivered && (unread <= held || config.reader != ReaderConfig::AtOnce));
        let window = self.endpoint.window();
        assert!(window.cwnd >= 1.0 && window.ssthresh >= 1.0, "{window:?}");
        let outstanding = self.endpoint.written() - self.endpoint.acknowledged();
        // If it accounts for memory, the last piece of a write and what is filled up may exceed it.
        let above = config.send_memory.map_or(0, |_| 2 * 65_160.max(u64::from(config.mss)));
        assert!(outstanding <= config.send_buffer + above);
        let counters = self.endpoint.counters();
        assert!(counters.retransmitted <= counters.segments);
        let in_flight = self.endpoint.in_flight();
        // What was retransmitted without being lost is in flight twice.
        assert!(
            u64::from(in_flight) <= 2 * (outstanding + 1),
            "{in_flight} in {outstanding} bytes"
        );
        let LimitTimes { cwnd, pacing, receive_window, send_buffer, application } =
            self.endpoint.limit_times(now);
        let accounted = cwnd + pacing + receive_window + send_buffer + application;
        while let Some(event) = self.endpoint.poll_event() {
            self.events.push(event);
            let Event { at, kind } = event;
            assert!(at >= self.last_event && at <= now);
            self.last_event = at;
            assert_eq!(self.finished, 0, "{kind:?} after the end");
            match kind {
                EventKind::Established => {
                    self.established += 1;
                    self.open.0 = at;
                }
                EventKind::SlowStartExit { .. } => self.slow_start_exits += 1,
                EventKind::RecoveryStart { .. } => {
                    assert!(!self.in_recovery, "recovery within recovery");
                    self.in_recovery = true;
                }
                EventKind::RecoveryEnd { .. } => {
                    assert!(self.in_recovery, "an end without a start");
                    self.in_recovery = false;
                }
                EventKind::RetransmissionTimeout { backoff, rto } => {
                    assert!(backoff >= 1 && rto <= config.rto.max);
                    self.in_recovery = true;
                }
                EventKind::WindowProbe
                | EventKind::TailLossProbe
                | EventKind::Reduction { .. }
                | EventKind::Undo { .. } => {}
                EventKind::Finished => {
                    self.finished += 1;
                    self.open.1 = at;
                }
            }
            assert!(self.established == 1 && self.slow_start_exits <= 1);
        }
        let (since, until) = self.open;
        assert_eq!(accounted, until.min(now).saturating_since(since));
    }
}

/// Time between reads after the last operation.
const READ_INTERVAL: Duration = Duration::from_millis(50);
/// Long enough for any connection that does not hang.
const TIME_LIMIT: Duration = Duration::from_secs(100_000);
const PACKET_LIMIT: u64 = 200_000;
const STEP_LIMIT: u64 = 4 * PACKET_LIMIT;

fn run(connection: &Connection) -> Outcome {
    let [first, second] = &connection.ends;
    let mut ends = [
        End::new(
            Endpoint::connect(Instant::ZERO, first),
            first,
            connection.applications[0].clone(),
        ),
        End::new(
            Endpoint::listen(Instant::ZERO, second),
            second,
            connection.applications[1].clone(),
        ),
    ];
    let mut random = Stream::new(connection.seed, "channel");
    let mut arrivals: BTreeMap<(Instant, u64), (usize, Segment, Ecn)> = BTreeMap::new();
    let (mut now, mut packets, mut steps) = (Instant::ZERO, 0, 0);
    let mut sent = Vec::new();
    loop {
        for index in 0..2 {
            ends[index].operate(now);
            let mut leaving = Vec::new();
            ends[index].endpoint.transmit(now, FlowId(0), |packet| leaving.push(*packet));
            for packet in leaving {
                let Payload::Tcp(segment) = packet.payload else { panic!("{packet:?}") };
                sent.push((now, index, packet));
                let peer_sent_end = ends[1 - index].sent_end;
                ends[index].check_sent(&segment, peer_sent_end);
                let channel = &connection.channels[index];
                let codepoint = packet.ecn;
                let copies = 1 + u32::from(random.chance(channel.duplication));
                for _ in 0..copies {
                    packets += 1;
                    assert!(packets < PACKET_LIMIT, "storms: {:?}", ends[index].endpoint);
                    if random.chance(channel.loss) {
                        continue;
                    }
                    let jitter = random.unit() * channel.jitter.as_secs_f64();
                    let at = now + channel.delay + Duration::from_secs_f64(jitter);
                    let marked = codepoint != Ecn::NotEct && random.chance(channel.marking);
                    let ecn = if marked { Ecn::Ce } else { codepoint };
                    arrivals.insert((at, packets), (1 - index, segment, ecn));
                }
            }
            ends[index].check(now, &connection.ends[index]);
        }
        for index in 0..2 {
            assert!(ends[1 - index].delivered <= ends[index].endpoint.written());
        }
        let due = ends.iter().filter_map(End::due);
        let Some(next) = due.chain(arrivals.keys().next().map(|key| key.0)).min() else {
            break;
        };
        assert!(next >= now, "time goes back from {now:?} to {next:?}");
        now = next;
        assert!(now < Instant::ZERO + TIME_LIMIT, "hangs: {:?}", ends.map(|end| end.endpoint));
        steps += 1;
        assert!(
            packets < PACKET_LIMIT && steps < STEP_LIMIT,
            "storms at {now:?}, {packets} packets, {steps} steps: {:?}",
            ends.map(|end| end.endpoint)
        );
        match arrivals.first_entry().filter(|entry| entry.key().0 <= now) {
            Some(entry) => {
                let (to, segment, ecn) = entry.remove();
                ends[to].receive(now, &segment, ecn);
            }
            None => ends.iter_mut().for_each(|end| end.endpoint.on_timer(now)),
        }
    }
    for (index, end) in ends.iter().enumerate() {
        let peer = &ends[1 - index];
        assert!(end.endpoint.is_finished(), "silent, not finished: {:?}", end.endpoint);
        assert!(peer.endpoint.is_closed_by_peer());
        assert_eq!(peer.delivered, end.endpoint.written());
        assert_eq!(end.endpoint.acknowledged(), end.endpoint.written());
        assert!(end.offered == u64::MAX || end.offered == end.endpoint.written());
        assert_eq!((end.finished, end.in_recovery, end.endpoint.in_flight()), (1, false, 0));
        let RouteConfig { rule, known } = connection.ends[index].route;
        let kept = end.endpoint.route_metrics(known);
        assert!(rule.is_some() || kept == known, "{kept:?}");
        assert!(kept.ssthresh.is_none_or(|kept| kept >= 1.0 && kept.is_finite()), "{kept:?}");
        assert!(kept.rtt.is_some() || known.rtt.is_none(), "{kept:?}");
    }
    let [delivered, acks] = [Endpoint::delivered, Endpoint::acks_sent]
        .map(|count| [count(&ends[0].endpoint), count(&ends[1].endpoint)]);
    let counters = ends.each_ref().map(|end| end.endpoint.counters());
    let events = ends.map(|end| end.events);
    Outcome { at: now, sent, events, counters, delivered, acks }
}

fn micros(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_micros)
}

fn endpoint() -> impl Strategy<Value = EndpointConfig> {
    let congestion = prop_oneof![
        (any::<bool>(), any::<bool>()).prop_map(|(cwnd, acknowledgements)| {
            let halves = if cwnd { Halved::Cwnd } else { Halved::Flight };
            let grows_by =
                if acknowledgements { GrowthUnit::Acknowledgements } else { GrowthUnit::Segments };
            CongestionConfig::Reno(RenoConfig { halves, grows_by })
        }),
        (any::<bool>(), any::<bool>(), 0.01f64..10.0, 0.1f64..0.99).prop_map(
            |(fast_convergence, linux, c, beta)| {
                let arithmetic =
                    if linux { CubicArithmetic::Linux } else { CubicArithmetic::Rfc9438 };
                CongestionConfig::Cubic(CubicConfig { fast_convergence, arithmetic, c, beta })
            }
        ),
        any::<u64>().prop_map(|seed| CongestionConfig::Bbr1 { seed }),
        any::<u64>().prop_map(|seed| CongestionConfig::Bbr3 { seed }),
        (1u32..60).prop_map(|segments| CongestionConfig::Fixed { segments }),
    ];
    let slow_start = (proptest::option::of(1u32..4), early_exit())
        .prop_map(|(limit, exit)| SlowStartConfig { limit, exit });
    let sizes = (prop_oneof![1u32..1500, Just(1448)], 1u32..20, slow_start);
    // In thousandths of a segment.
    let buffer = || prop_oneof![1u64..4_000, 4_000u64..300_000];
    let estimator = prop_oneof![Just(RtoEstimator::Rfc6298), Just(RtoEstimator::Linux)];
    let times = (micros(100_000..2_000_000), micros(1_000..400_000), micros(2_000_000..20_000_000));
    let rto = (times, estimator).prop_map(|((initial, min, max), estimator)| RtoConfig {
        initial,
        min,
        max,
        estimator,
    });
    let options = (any::<bool>(), proptest::bool::weighted(0.7), any::<bool>());
    let buffers = (buffer(), buffer(), proptest::option::of(1u32..4), send_memory());
    let ends = (recovery(), leaving(), receiving(), route());
    (sizes, congestion, rto, options, buffers, ends).prop_map(
        |(sizes, congestion, rto, options, buffers, (recovery, leaving, receiving, route))| {
            let (send_buffer, receive_buffer, send_buffer_factor, send_memory) = buffers;
            let (pacing, offload, validation) = leaving;
            let (acks, aggregation, (dsack, ecn), initial, reader) = receiving;
            let (delayed_ack, sack_compression) = acks;
            let (mss, initial_window, slow_start) = sizes;
            let (timestamps, sack, window_scaling) = options;
            let estimator = rto.estimator;
            let bytes = |thousandths: u64| (thousandths * u64::from(mss)).div_ceil(1000);
            EndpointConfig {
                mss,
                header: 40,
                initial_window,
                slow_start,
                congestion,
                rto,
                delayed_ack,
                sack_compression,
                aggregation,
                timestamps,
                syn_linear_timeouts: initial_window % 3,
                timestamp_tick: match estimator {
                    RtoEstimator::Linux => Duration::from_millis(1),
                    RtoEstimator::Rfc6298 => Duration::ZERO,
                },
                sack,
                dsack,
                ecn: if ecn { EcnConfig::Classic } else { EcnConfig::Off },
                window_scaling,
                send_buffer: bytes(send_buffer),
                receive_buffer: BufferConfig {
                    initial: bytes(initial.map_or(receive_buffer, |share| receive_buffer / share)),
                    max: bytes(receive_buffer),
                    tuned: sack,
                },
                right_sizing: match timestamps {
                    true => RightSizing::Linux6_16,
                    false => RightSizing::Linux4_19,
                },
                send_buffer_factor,
                send_memory,
                recovery,
                pacing,
                offload,
                validation,
                reader: match reader {
                    None => ReaderConfig::AtOnce,
                    Some(0) => ReaderConfig::Driver,
                    Some(tenths @ 1..=20) => {
                        ReaderConfig::After(Duration::from_micros(tenths * 100))
                    }
                    Some(rate) => {
                        let bits = u64::from(mss) * 8 * rate;
                        Rate::from_bps(bits).map_or(ReaderConfig::AtOnce, ReaderConfig::Rate)
                    }
                },
                route,
            }
        },
    )
}

fn route() -> impl Strategy<Value = RouteConfig> {
    let rule = prop_oneof![
        Just(None),
        Just(Some(RouteRule::Linux)),
        Just(Some(RouteRule::LinuxSsthresh)),
        Just(Some(RouteRule::Bsd)),
    ];
    let time = || proptest::option::of(micros(1..4_000_000));
    let known = (proptest::option::of(1.0f64..100.0), time(), time())
        .prop_map(|(ssthresh, rtt, rttvar)| RouteMetrics { ssthresh, rtt, rttvar });
    (rule, known).prop_map(|(rule, known)| RouteConfig { rule, known })
}

fn recovery() -> impl Strategy<Value = RecoveryConfig> {
    let detection = prop_oneof![Just(LossDetection::Sack), Just(LossDetection::Rack)];
    let reduction = prop_oneof![Just(Reduction::Immediate), Just(Reduction::Prr)];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let tick = prop_oneof![Just(Duration::ZERO), micros(1..10_000)];
    (detection, tick, reduction, flags).prop_map(|(detection, timer_tick, reduction, flags)| {
        let (tail_loss_probe, frto, undo_by_timestamps, undo_by_dsack) = flags;
        RecoveryConfig {
            detection,
            tail_loss_probe,
            timer_tick,
            reduction,
            frto,
            undo_by_timestamps,
            undo_by_dsack,
        }
    })
}

/// When segments are sent, and how an unused window changes.
fn leaving()
-> impl Strategy<Value = (Option<PacingConfig>, Option<OffloadConfig>, ValidationConfig)> {
    let pacing = proptest::option::of(Just(PacingConfig::LINUX));
    let waits = (0u32..4, prop_oneof![Just(Duration::ZERO), micros(0..2_000)]);
    let offload = (1u32..70_000, micros(0..2_000), 1u32..4, waits, any::<bool>()).prop_map(
        |(max_bytes, time, min_segments, (window_divisor, ack_within), push)| OffloadConfig {
            max_bytes,
            time,
            min_segments,
            window_divisor,
            ack_within,
            push,
        },
    );
    let idle =
        prop_oneof![Just(IdleRestart::Keep), Just(IdleRestart::Restart), Just(IdleRestart::Decay)];
    let validation = (any::<[bool; 3]>(), idle).prop_map(
        |([half_used_grows, delivered_grows, decays], idle)| ValidationConfig {
            half_used_grows,
            delivered_grows,
            decays,
            idle,
        },
    );
    (pacing, proptest::option::of(offload), validation)
}

/// A send buffer, with or without memory accounting.
fn send_memory() -> impl Strategy<Value = Option<SendMemoryConfig>> {
    proptest::option::of((0u32..3000, 1u32..5000, 1u32..6).prop_map(
        |(burst_overhead, segment, wake_divisor)| SendMemoryConfig {
            burst_overhead,
            segment,
            wake_divisor,
        },
    ))
}

type Acks = (DelayedAckConfig, SackCompressionConfig);
type Receiving = (Acks, Option<AggregationConfig>, (bool, bool), Option<u64>, Option<u64>);

/// Acknowledgements, aggregation, D-SACK and ECN, the initial part of the buffer, and reading: 0
/// means by the driver, other numbers are segments per second.
fn receiving() -> impl Strategy<Value = Receiving> {
    let quick = prop_oneof![Just(0u32), 1u32..20];
    let longer = prop_oneof![Just(Duration::ZERO), micros(0..300_000)];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let delayed_ack = (1u32..5, micros(0..300_000), longer, flags, quick).prop_map(
        |(segments, timeout, longer, flags, quick_segments)| {
            let (ticking, pushed_at_once, handshake_at_once) = flags;
            DelayedAckConfig {
                segments,
                timeout,
                max_timeout: timeout + longer,
                ticking,
                quick_segments,
                pushed_at_once,
                handshake_at_once,
                ..DelayedAckConfig::default()
            }
        },
    );
    let compression =
        (prop_oneof![Just(Duration::ZERO), micros(1..20_000)], 1u32..60, micros(0..500))
            .prop_map(|(delay, acks, slack)| SackCompressionConfig { delay, acks, slack });
    let time = prop_oneof![Just(Duration::ZERO), micros(0..20_000)];
    let aggregation =
        (time, 1u32..70_000).prop_map(|(time, max_bytes)| AggregationConfig { time, max_bytes });
    let reader = prop_oneof![2 => Just(None), 1 => Just(Some(0)), 2 => (1u64..2000).prop_map(Some)];
    let aggregation = proptest::option::of(aggregation);
    let initial = proptest::option::of(1u64..50);
    ((delayed_ack, compression), aggregation, any::<(bool, bool)>(), initial, reader)
}

fn early_exit() -> impl Strategy<Value = EarlyExit> {
    prop_oneof![
        Just(EarlyExit::None),
        Just(EarlyExit::HystartPlusPlus),
        Just(EarlyExit::Hystart(HystartConfig::LINUX_4_19)),
        Just(EarlyExit::Hystart(HystartConfig::LINUX_5_6)),
        Just(EarlyExit::Hystart(HystartConfig::LINUX_5_8)),
        Just(EarlyExit::Hystart(HystartConfig::LINUX_5_16)),
        Just(EarlyExit::Hystart(HystartConfig::LINUX_6_14)),
    ]
}

/// `unit` is the largest segment that can be sent.
fn application(unit: u64) -> impl Strategy<Value = Vec<Operation>> {
    let step = prop_oneof![
        micros(0..3_000_000).prop_map(Operation::Wait),
        (0..=unit * 30).prop_map(Operation::Offer),
        (0..=unit).prop_map(Operation::Offer),
        (0..=unit * 10).prop_map(Operation::Read),
    ];
    let end = prop_oneof![
        2 => Just(vec![]),
        1 => micros(0..400_000)
            .prop_map(|time| vec![Operation::OfferWithoutEnd, Operation::Wait(time)]),
    ];
    (proptest::collection::vec(step, 0..6), end).prop_map(|(mut steps, end)| {
        steps.extend(end);
        steps.push(Operation::Close);
        steps
    })
}

fn channel() -> impl Strategy<Value = Channel> {
    let share = |most: f64| prop_oneof![1 => Just(0.0), 2 => 0.0..most];
    let jitter = prop_oneof![Just(Duration::ZERO), micros(0..200_000)];
    (share(0.3), share(0.2), share(0.3), micros(2_000..200_000), jitter).prop_map(
        |(loss, duplication, marking, delay, jitter)| Channel {
            loss,
            duplication,
            marking,
            delay,
            jitter,
        },
    )
}

fn connection() -> impl Strategy<Value = Connection> {
    (any::<u64>(), endpoint(), endpoint(), channel(), channel()).prop_flat_map(
        |(seed, mut first, mut second, there, back)| {
            let unit = |from: &EndpointConfig, to: &EndpointConfig| {
                u64::from(from.mss).min(from.send_buffer).min(to.receive_buffer.initial)
            };
            // The content of a full buffer must not take ages to pass through a window of a few
            // bytes.
            first.send_buffer = first.send_buffer.min(300 * unit(&first, &second));
            second.send_buffer = second.send_buffer.min(300 * unit(&second, &first));
            let applications =
                (application(unit(&first, &second)), application(unit(&second, &first)));
            applications.prop_map(move |(one, other)| Connection {
                seed,
                ends: [first.clone(), second.clone()],
                applications: [one, other],
                channels: [there, back],
            })
        },
    )
}

/// Runs a connection, and once more by all the rules where that can be had.
fn twice(connection: &Connection) -> [Outcome; 2] {
    let outcome = run(connection);
    #[cfg(debug_assertions)]
    let again = airpath_base::reference(|| run(connection));
    #[cfg(not(debug_assertions))]
    let again = run(connection);
    [outcome, again]
}

proptest! {
    #[test]
    fn every_stream_arrives_once_in_order_and_ends(connection in connection()) {
        let [outcome, again] = twice(&connection);
        let first = outcome.sent.iter().zip(&again.sent).find(|(one, other)| one != other);
        prop_assert_eq!(first, None);
        prop_assert_eq!(again, outcome);
    }
}

/// The comparison finds a rule that was added to a clear way and not to the fast path beside it.
#[cfg(debug_assertions)]
#[test]
fn a_rule_that_only_a_clear_way_has_is_found() {
    for rule in ["acknowledge all data at once", "keep cwnd"] {
        let config =
            ProptestConfig { max_shrink_iters: 0, failure_persistence: None, ..Default::default() };
        let found = TestRunner::new(config).run(&connection(), |connection| {
            let [fast, clear] = airpath_base::with_rule(rule, || twice(&connection));
            if fast == clear { Ok(()) } else { Err(TestCaseError::fail("differs")) }
        });
        let differs = |reason: &Reason| reason.message() == "differs";
        let found = matches!(&found, Err(TestError::Fail(reason, _)) if differs(reason));
        assert_eq!(found, airpath_base::fast_paths(), "{rule}");
    }
}

/// Found by `make fuzz`: a slow reader, and a peer with the smallest windows.
#[test]
fn a_slow_reader_never_wakes_in_the_past() {
    let base = EndpointConfig {
        header: 40,
        timestamps: false,
        sack: false,
        dsack: true,
        window_scaling: false,
        pacing: Some(PacingConfig::LINUX),
        recovery: RecoveryConfig {
            detection: LossDetection::Rack,
            tail_loss_probe: true,
            reduction: Reduction::Prr,
            ..RecoveryConfig::default()
        },
        ..EndpointConfig::default()
    };
    let times = |initial, min, max, estimator| RtoConfig {
        initial: Duration::from_micros(initial),
        min: Duration::from_micros(min),
        max: Duration::from_micros(max),
        estimator,
    };
    let first = EndpointConfig {
        initial_window: 1,
        slow_start: SlowStartConfig::default(),
        congestion: CongestionConfig::RENO,
        rto: times(100_000, 1_000, 2_000_000, RtoEstimator::Rfc6298),
        recovery: RecoveryConfig { undo_by_dsack: true, ..base.recovery },
        validation: ValidationConfig {
            half_used_grows: true,
            delivered_grows: true,
            ..ValidationConfig::default()
        },
        delayed_ack: DelayedAckConfig {
            segments: 1,
            timeout: Duration::from_micros(213_686),
            max_timeout: Duration::from_micros(408_136),
            quick_segments: 10,
            ..DelayedAckConfig::default()
        },
        aggregation: Some(AggregationConfig {
            time: Duration::from_micros(19_385),
            max_bytes: 34_331,
        }),
        send_buffer: 406,
        receive_buffer: BufferConfig { initial: 29, max: 711, tuned: false },
        ..base.clone()
    };
    let second = EndpointConfig {
        mss: 455,
        initial_window: 17,
        slow_start: SlowStartConfig {
            limit: Some(1),
            exit: EarlyExit::Hystart(HystartConfig::LINUX_4_19),
        },
        congestion: CongestionConfig::Bbr1 { seed: 12_913_496_458_180_993_840 },
        rto: times(288_049, 22_741, 2_526_912, RtoEstimator::Linux),
        recovery: RecoveryConfig { undo_by_timestamps: true, ..base.recovery },
        validation: ValidationConfig {
            half_used_grows: true,
            decays: true,
            idle: IdleRestart::Restart,
            ..ValidationConfig::default()
        },
        delayed_ack: DelayedAckConfig {
            segments: 1,
            timeout: Duration::from_micros(74_659),
            max_timeout: Duration::from_micros(74_659),
            quick_segments: 18,
            ..DelayedAckConfig::default()
        },
        timestamps: true,
        sack: true,
        send_buffer: 8_700,
        receive_buffer: BufferConfig { initial: 1_737, max: 83_342, tuned: true },
        reader: ReaderConfig::Rate(Rate::from_bps(10_920).expect("above zero")),
        ..base
    };
    run(&Connection {
        seed: 0,
        ends: [first, second],
        applications: [
            vec![Operation::Offer(2_437), Operation::Close],
            vec![
                Operation::Wait(Duration::from_micros(894_641)),
                Operation::Offer(1),
                Operation::Wait(Duration::from_micros(2_887_149)),
                Operation::Read(272),
                Operation::OfferWithoutEnd,
                Operation::Wait(Duration::from_micros(1)),
                Operation::Close,
            ],
        ],
        channels: [
            Channel {
                loss: 0.149_674_860_096_288_5,
                duplication: 0.156_035_220_756_271,
                marking: 0.044_788_649_077_594_68,
                delay: Duration::from_micros(28_017),
                jitter: Duration::ZERO,
            },
            Channel {
                loss: 0.273_167_688_967_334_45,
                duplication: 0.0,
                marking: 0.165_153_825_334_242_1,
                delay: Duration::from_micros(163_326),
                jitter: Duration::from_micros(158_970),
            },
        ],
    });
}
