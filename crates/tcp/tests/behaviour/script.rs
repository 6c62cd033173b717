//! The test script: one endpoint, a hand-made peer, and a clock that the script moves.
//!
//! `send` passes a segment to the endpoint, `recv` takes what it sent, `tick` lets time pass.
//! Everything is in full segments of [`MSS`] bytes: segment 0 is the first data sent.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use airpath_base::{
    Duration, Ecn, Flags, FlowId, Instant, Payload, SackBlocks, Segment, Timestamps,
};
use airpath_tcp::{
    AckSample, BufferConfig, Congestion, CongestionConfig, CongestionControl, DelayedAckConfig,
    Endpoint, EndpointConfig, Event, EventKind, RtoConfig, RtoEstimator, SlowStartExit, Window,
    timestamp,
};

pub(crate) const MSS: u32 = 1000;
/// Round-trip time of the handshake: SRTT is 100 ms, RTO 100 + 4 × 50 ms (RFC 6298 2.2).
pub(crate) const RTT: Duration = Duration::from_millis(100);
pub(crate) const RTO: Duration = Duration::from_millis(300);
pub(crate) const NANO: Duration = Duration::from_nanos(1);
/// Window scale of the hand-made peer, which advertises 1,000 segments.
const PEER_SCALE: u8 = 4;
pub(crate) const PEER_WINDOW: u16 = 62_500;

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Reno, initial window 10, no timestamps, delayed ACKs of two segments or 40 ms.
pub(crate) fn config() -> EndpointConfig {
    EndpointConfig {
        mss: MSS,
        header: 40,
        initial_window: 10,
        congestion: CongestionConfig::RENO,
        rto: RtoConfig {
            initial: ms(1000),
            min: ms(200),
            max: ms(60_000),
            estimator: RtoEstimator::Rfc6298,
        },
        delayed_ack: DelayedAckConfig {
            timeout: ms(40),
            max_timeout: ms(40),
            ..DelayedAckConfig::default()
        },
        timestamps: false,
        sack: true,
        window_scaling: true,
        send_buffer: 1 << 30,
        receive_buffer: BufferConfig::fixed(1_000_000),
        ..EndpointConfig::default()
    }
}

/// A model-based congestion control that leaves cwnd as it is, and records whether the delivery
/// rates it receives were application-limited.
#[derive(Debug, Default)]
pub(crate) struct Noting(pub(crate) Arc<Mutex<Vec<bool>>>);

impl CongestionControl for Noting {
    fn on_ack(&mut self, ack: &AckSample, _: &mut Window) -> Option<SlowStartExit> {
        self.0.lock().unwrap().extend(ack.rate.map(|rate| rate.app_limited));
        None
    }

    fn on_congestion(&mut self, _: &Congestion, _: &mut Window) {}

    fn is_model_based(&self) -> bool {
        true
    }
}

/// An endpoint and its clock.
pub(crate) struct Script {
    pub(crate) end: Endpoint,
    pub(crate) now: Instant,
    sent: VecDeque<Segment>,
}

impl Deref for Script {
    type Target = Endpoint;
    fn deref(&self) -> &Endpoint {
        &self.end
    }
}

impl Script {
    /// An endpoint that opens the connection; its SYN waits to be taken.
    pub(crate) fn connect(config: &EndpointConfig) -> Self {
        Self::new(Endpoint::connect(Instant::ZERO, config))
    }

    /// An endpoint that waits for a SYN.
    pub(crate) fn listen(config: &EndpointConfig) -> Self {
        Self::new(Endpoint::listen(Instant::ZERO, config))
    }

    fn new(end: Endpoint) -> Self {
        let mut script = Self { end, now: Instant::ZERO, sent: VecDeque::new() };
        script.poll();
        script
    }

    /// An open connection at 100 ms whose application writes without end: the initial window
    /// waits to be taken.
    pub(crate) fn bulk(config: &EndpointConfig) -> Self {
        let mut script = Self::open(config);
        script.offer(u64::MAX);
        script
    }

    /// An open connection at 200 ms whose application writes without end. Acknowledgements of
    /// the initial window of ten segments can arrive.
    #[track_caller]
    pub(crate) fn flight(config: &EndpointConfig) -> Self {
        let mut script = Self::bulk(config);
        script.recv_segments(0..10);
        script.tick(RTT);
        script
    }

    /// An open connection at 100 ms whose application has written this many segments. All were sent.
    #[track_caller]
    pub(crate) fn file(config: &EndpointConfig, segments: u64) -> Self {
        let mut script = Self::open(config);
        script.offer(segments * u64::from(MSS));
        script.recv_segments(0..segments);
        script
    }

    /// An open connection at 100 ms, opened by the endpoint.
    pub(crate) fn open(config: &EndpointConfig) -> Self {
        Self::opened(Endpoint::connect(Instant::ZERO, config), config)
    }

    /// An open connection at 100 ms, for a given endpoint that connects.
    pub(crate) fn opened(end: Endpoint, config: &EndpointConfig) -> Self {
        let mut script = Self::new(end);
        let syn = script.recv();
        assert!(syn.flags.has(Flags::SYN));
        script.tick(RTT);
        let stamped = |echo| if config.timestamps { stamps(1, echo) } else { None };
        let echo = syn.timestamps.map_or(0, |own| own.value);
        script.send(Segment { timestamps: stamped(echo), ..syn_ack() });
        script.recv_ack(1);
        script.recv_nothing();
        // The window of the SYN was not scaled: advertise the whole one.
        script.send(Segment { timestamps: stamped(script.ts_val()), ..ack(0) });
        script.events();
        script
    }

    /// An open connection at 100 ms, opened by the peer.
    pub(crate) fn accepted(config: &EndpointConfig) -> Self {
        let mut script = Self::listen(config);
        let offered = if config.timestamps { stamp(1) } else { None };
        script.send(Segment { timestamps: offered, ..syn() });
        script.recv();
        script.tick(RTT);
        script.send(Segment { timestamps: offered.and(stamps(1, 1)), ..ack(0) });
        script.recv_nothing();
        script.events();
        script
    }

    /// Timestamp that the endpoint puts on segments sent now.
    pub(crate) fn ts_val(&self) -> u32 {
        timestamp(self.now)
    }

    /// The peer's segment arrives.
    pub(crate) fn send(&mut self, segment: Segment) {
        self.send_marked(segment, Ecn::NotEct);
    }

    /// The peer's full segments with these numbers arrive.
    pub(crate) fn send_data(&mut self, segments: impl IntoIterator<Item = u64>) {
        segments.into_iter().for_each(|segment| self.send(data(segment)));
    }

    /// The peer's segment arrives in a packet with this codepoint.
    pub(crate) fn send_marked(&mut self, segment: Segment, ecn: Ecn) {
        self.end.on_segment(self.now, &segment, ecn);
        self.poll();
    }

    /// The application reads, if the driver is its reader.
    pub(crate) fn read(&mut self, bytes: u64) {
        self.end.read(self.now, bytes);
        self.poll();
    }

    pub(crate) fn offer(&mut self, bytes: u64) {
        self.end.offer(bytes);
        self.poll();
    }

    pub(crate) fn close(&mut self) {
        self.end.close();
        self.poll();
    }

    pub(crate) fn close_when_written(&mut self) {
        self.end.close_when_written();
        self.poll();
    }

    /// Time passes; timers fire.
    pub(crate) fn tick(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.end.next_timer().filter(|&at| at <= end) {
            assert!(at >= self.now, "a timer in the past");
            self.now = at;
            self.end.on_timer(at);
            self.poll();
        }
        self.now = end;
    }

    /// Time passes; nothing is sent before its last nanosecond.
    #[track_caller]
    pub(crate) fn tick_in_silence(&mut self, time: Duration) {
        self.tick(time - NANO);
        self.recv_nothing();
        self.tick(NANO);
    }

    fn poll(&mut self) {
        self.end.transmit(self.now, FlowId(0), |packet| {
            let Payload::Tcp(segment) = packet.payload else { panic!("{packet:?}") };
            self.sent.push_back(segment);
        });
    }

    /// The next segment that the endpoint sent.
    #[track_caller]
    pub(crate) fn recv(&mut self) -> Segment {
        self.sent.pop_front().expect("nothing was sent")
    }

    #[track_caller]
    pub(crate) fn recv_nothing(&mut self) {
        assert!(self.sent.is_empty(), "was sent: {:?}", self.sent);
    }

    /// Asserts that exactly these full segments were sent, and nothing else.
    #[track_caller]
    pub(crate) fn recv_segments(&mut self, expected: impl IntoIterator<Item = u64>) {
        let sent: Vec<u64> = self.sent.drain(..).map(|segment| index(&segment)).collect();
        let expected: Vec<u64> = expected.into_iter().collect();
        assert_eq!(sent, expected);
    }

    /// How many segments were sent; discards them.
    pub(crate) fn recv_count(&mut self) -> usize {
        self.sent.drain(..).count()
    }

    /// How many segments wait to be taken.
    pub(crate) fn recv_len(&self) -> usize {
        self.sent.len()
    }

    /// Takes a segment and asserts that it is a pure acknowledgement of everything below `ack`.
    #[track_caller]
    pub(crate) fn recv_ack(&mut self, ack: u64) -> Segment {
        let segment = self.recv();
        assert!(segment.flags.has(Flags::ACK));
        assert_eq!((segment.ack, segment.sequence_len()), (ack, 0), "{segment:?}");
        segment
    }

    /// The events since the last call.
    pub(crate) fn events(&mut self) -> Vec<EventKind> {
        std::iter::from_fn(|| self.end.poll_event()).map(|Event { kind, .. }| kind).collect()
    }

    /// Names of the events since the last call.
    pub(crate) fn event_names(&mut self) -> Vec<&'static str> {
        self.events().iter().map(EventKind::name).collect()
    }

    /// cwnd in whole segments.
    pub(crate) fn cwnd(&self) -> u32 {
        self.end.window().segments()
    }
}

/// The number of a full segment.
#[track_caller]
fn index(segment: &Segment) -> u64 {
    assert_eq!((segment.len, (segment.seq - 1) % u64::from(MSS)), (MSS, 0), "{segment:?}");
    (segment.seq - 1) / u64::from(MSS)
}

/// Offset of the first byte of a full segment.
pub(crate) fn at(segment: u64) -> u64 {
    1 + segment * u64::from(MSS)
}

const BLANK: Segment = Segment {
    seq: 1,
    ack: 0,
    len: 0,
    timestamps: None,
    window: PEER_WINDOW,
    flags: Flags::NONE,
    window_scale: None,
    sack_permitted: false,
    retransmission: false,
    sack: SackBlocks::NONE,
};

/// A timestamps option that echoes nothing.
pub(crate) const fn stamp(value: u32) -> Option<Timestamps> {
    Some(Timestamps { value, echo: None })
}

/// A timestamps option.
pub(crate) const fn stamps(value: u32, echo: u32) -> Option<Timestamps> {
    Some(Timestamps { value, echo: Some(echo) })
}

/// The timestamp in a segment.
#[track_caller]
pub(crate) fn value_of(segment: &Segment) -> u32 {
    segment.timestamps.expect("a segment with timestamps").value
}

/// The peer's SYN.
pub(crate) fn syn() -> Segment {
    Segment {
        seq: 0,
        flags: Flags::SYN,
        window_scale: Some(PEER_SCALE),
        sack_permitted: true,
        ..BLANK
    }
}

/// The peer's SYN+ACK.
pub(crate) fn syn_ack() -> Segment {
    Segment { ack: 1, flags: syn().flags.with(Flags::ACK), ..syn() }
}

/// The peer's acknowledgement of everything before `segment`.
pub(crate) fn ack(segment: u64) -> Segment {
    Segment { ack: at(segment), flags: Flags::ACK, ..BLANK }
}

/// An acknowledgement with SACK blocks, in segments.
pub(crate) fn sack(segment: u64, blocks: &[(u64, u64)]) -> Segment {
    let mut acknowledgement = ack(segment);
    for &(start, end) in blocks {
        assert!(acknowledgement.sack.push(acknowledgement.ack, at(start), at(end)));
    }
    acknowledgement
}

/// The peer's data: one full segment.
pub(crate) fn data(segment: u64) -> Segment {
    Segment { seq: at(segment), len: MSS, ..ack(0) }
}

/// The blocks of an acknowledgement, in segments.
pub(crate) fn blocks(segment: &Segment) -> Vec<(u64, u64)> {
    let units = |offset: u64| (offset - 1) / u64::from(MSS);
    segment.sack.iter(segment.ack).map(|(start, end)| (units(start), units(end))).collect()
}
