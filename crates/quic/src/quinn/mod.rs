//! quinn-proto as an [`Endpoint`].

mod certificate;
mod clock;
mod controller;
mod random;
mod setup;
mod tls;

use airpath_base::{Duration, Ecn, Instant, Stream};
use bytes::{Bytes, BytesMut};
use quinn_proto::{
    Connection, ConnectionError, ConnectionEvent, ConnectionHandle, DatagramEvent, Dir,
    EcnCodepoint, Endpoint as Stack, Event, StreamEvent, StreamId, VarInt,
};

use self::clock::Clock;
use self::controller::{Idle, Record};
use crate::{Config, Endpoint, Limited, Window};

/// Datagrams that quinn makes at once where the kernel segments them (`MAX_TRANSMIT_SEGMENTS` of
/// quinn 0.11).
const BATCH: usize = 10;

/// What the application writes at a time; its contents do not matter.
static PAYLOAD: [u8; 1 << 16] = [0; 1 << 16];

/// One end of a connection.
struct Quinn {
    stack: Stack,
    connection: Option<(ConnectionHandle, Connection)>,
    random: Stream,
    clock: Clock,
    record: Record,
    /// An answer of the stack that belongs to no connection.
    answers: Vec<Vec<u8>>,
    buffer: Vec<u8>,
    sending: Sending,
    delivered: u64,
    established: bool,
    closed: bool,
    failure: Option<String>,
}

/// What this end's application sends.
#[derive(Default)]
struct Sending {
    /// Whether it sends at all.
    sends: bool,
    stream: Option<StreamId>,
    /// Bytes offered and not yet written.
    left: u64,
    /// Whether the stream ends after them.
    ends: bool,
    ended: bool,
    written: u64,
    acknowledged: bool,
    limits: Limits,
}

/// What limits the sender, and for how long it did.
///
/// quinn says at each acknowledgement whether it had nothing to send since it sent last. If the
/// application has more, it was the receiver's window or the sender's own that was full. Of these,
/// only the receiver's makes quinn send STREAM_DATA_BLOCKED (RFC 9000 4.1).
#[derive(Default)]
struct Limits {
    total: Limited,
    /// The limit that counts since `since`; `None`: the application.
    current: Option<Limit>,
    /// Until when `total` counts; `None` before the stream is open.
    since: Option<Instant>,
    /// When a datagram was last sent.
    sent_at: Instant,
    /// Number of STREAM_DATA_BLOCKED frames sent.
    blocked_frames: u64,
    /// What had been written when the last one was sent.
    blocked_at: Option<u64>,
}

#[derive(Clone, Copy)]
enum Limit {
    Congestion,
    ReceiveWindow,
    SendWindow,
}

impl Limits {
    /// Notes that the sender has sent what it may.
    fn on_transmit(&mut self, now: Instant, has_sent: bool, blocked_frames: u64, written: u64) {
        self.since.get_or_insert(now);
        if has_sent {
            self.sent_at = now;
        }
        if blocked_frames > self.blocked_frames {
            self.blocked_frames = blocked_frames;
            self.blocked_at = Some(written);
        }
    }

    /// Counts the time until an acknowledgement. `waiting` is whether the application has more to
    /// write than the `written` bytes.
    fn on_acknowledged(&mut self, now: Instant, Idle(idle): Idle, waiting: bool, written: u64) {
        let Some(since) = self.since.replace(now) else { return };
        let idle_since = if idle { since.max(self.sent_at) } else { now };
        self.total.add(Some(Limit::Congestion), idle_since.saturating_since(since));
        let is_blocked = self.blocked_at == Some(written);
        let window = if is_blocked { Limit::ReceiveWindow } else { Limit::SendWindow };
        self.current = if idle { waiting.then_some(window) } else { Some(Limit::Congestion) };
        self.total.add(self.current, now.saturating_since(idle_since));
    }
}

impl Limited {
    fn add(&mut self, limit: Option<Limit>, time: Duration) {
        match limit {
            None => {}
            Some(Limit::Congestion) => self.congestion += time,
            Some(Limit::ReceiveWindow) => self.receive_window += time,
            Some(Limit::SendWindow) => self.send_window += time,
        }
    }
}

/// The end that opens the connection to a server whose random numbers come from the stream
/// `server`; it sends if `sends`. Its own random numbers come from `random`.
pub fn connect(
    now: Instant,
    config: &Config,
    sends: bool,
    random: Stream,
    server: Stream,
) -> Box<dyn Endpoint> {
    let mut end = Quinn::new(config, sends, random, None);
    let mut server = server;
    let client = setup::client(config, &mut server, end.record.clone());
    let (at, peer) = (end.clock.at(now), setup::PEER);
    let stack = &mut end.stack;
    let connected =
        random::lend(&mut end.random, || stack.connect(at, client, peer, tls::SERVER_NAME));
    end.connection = Some(connected.expect("nothing in the settings can be refused"));
    Box::new(end)
}

/// The end that waits for a connection; it sends if `sends`.
pub fn listen(config: &Config, sends: bool, random: Stream) -> Box<dyn Endpoint> {
    let server = random.clone();
    Box::new(Quinn::new(config, sends, random, Some(server)))
}

impl Quinn {
    fn new(config: &Config, sends: bool, mut random: Stream, server: Option<Stream>) -> Self {
        let record = Record::default();
        let server = server.map(|mut stream| {
            let server = setup::server(config, &mut stream, record.clone());
            random = stream;
            server
        });
        let stack = setup::stack(config, server, &mut random);
        Self {
            stack,
            connection: None,
            random,
            clock: Clock::new(),
            record,
            answers: Vec::new(),
            buffer: Vec::new(),
            sending: Sending { sends, ..Sending::default() },
            delivered: 0,
            established: false,
            closed: false,
            failure: None,
        }
    }

    /// Lets the stack's two halves and the application take note of what happened.
    fn proceed(&mut self, now: Instant) {
        let Some((handle, connection)) = &mut self.connection else {
            return;
        };
        while let Some(event) = connection.poll_endpoint_events() {
            random::lend(&mut self.random, || {
                if let Some(event) = self.stack.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            });
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.established = true,
                Event::Stream(StreamEvent::Readable { id }) => {
                    self.delivered += read(connection, id);
                }
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = connection.streams().accept(dir) {
                        self.delivered += read(connection, id);
                    }
                }
                Event::Stream(StreamEvent::Finished { .. }) => {
                    self.sending.acknowledged = true;
                    connection.close(self.clock.at(now), VarInt::from_u32(0), Bytes::new());
                }
                Event::ConnectionLost { reason } => {
                    self.closed = true;
                    self.failure = failure(&reason);
                }
                _ => {}
            }
        }
        self.write();
    }

    /// Writes what is offered, if the handshake is done.
    fn write(&mut self) {
        if let Some((_, connection)) = self.connection.as_mut().filter(|_| self.established) {
            self.sending.write(connection);
        }
    }

    fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref().map(|(_, connection)| connection)
    }
}

fn hand_over(
    connection: &mut Option<(ConnectionHandle, Connection)>,
    to: ConnectionHandle,
    event: ConnectionEvent,
) {
    if let Some((_, connection)) = connection.as_mut().filter(|(handle, _)| *handle == to) {
        connection.handle_event(event);
    }
}

const fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}

const fn ecn(codepoint: Option<EcnCodepoint>) -> Ecn {
    match codepoint {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}

/// Reads everything that is there in order; returns the number of bytes.
fn read(connection: &mut Connection, id: StreamId) -> u64 {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else {
        return 0;
    };
    let mut bytes = 0;
    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
        bytes += chunk.bytes.len() as u64;
    }
    // What it allows the peer to send leaves with the next transmission.
    let _ = chunks.finalize();
    bytes
}

/// Why a connection was lost; `None` if an application closed it.
fn failure(reason: &ConnectionError) -> Option<String> {
    match reason {
        ConnectionError::ApplicationClosed(_) | ConnectionError::LocallyClosed => None,
        other => Some(other.to_string()),
    }
}

impl Sending {
    /// Writes what fits into the send window.
    fn write(&mut self, connection: &mut Connection) {
        if !self.sends || self.ended {
            return;
        }
        if self.stream.is_none() {
            self.stream = connection.streams().open(Dir::Uni);
        }
        let Some(id) = self.stream else {
            return;
        };
        let mut stream = connection.send_stream(id);
        while self.left > 0 {
            let size = self.left.min(PAYLOAD.len() as u64) as usize;
            let Ok(written) = stream.write_chunks(&mut [Bytes::from_static(&PAYLOAD[..size])])
            else {
                break;
            };
            self.written += written.bytes as u64;
            // Without an end, there is always more.
            if self.left < u64::MAX {
                self.left -= written.bytes as u64;
            }
        }
        if self.ends && self.left == 0 {
            self.ended = true;
            // An error says that the connection is lost, which is reported otherwise.
            let _ = stream.finish();
        }
    }
}

impl Endpoint for Quinn {
    fn on_datagram(&mut self, now: Instant, ecn: Ecn, payload: &[u8]) {
        let (at, data) = (self.clock.at(now), BytesMut::from(payload));
        let Self { stack, connection, random, answers, .. } = self;
        random::lend(random, || {
            let mut answer = Vec::new();
            let event = stack.handle(at, setup::PEER, None, codepoint(ecn), data, &mut answer);
            match event {
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    hand_over(connection, handle, event);
                }
                Some(DatagramEvent::NewConnection(incoming)) if connection.is_none() => {
                    match stack.accept(incoming, at, &mut answer, None) {
                        Ok(accepted) => *connection = Some(accepted),
                        Err(error) if error.response.is_some() => answers.push(answer),
                        Err(_) => {}
                    }
                }
                Some(DatagramEvent::NewConnection(incoming)) => stack.ignore(incoming),
                Some(DatagramEvent::Response(_)) => answers.push(answer),
                None => {}
            }
        });
        let Sending { left, written, .. } = self.sending;
        if let Some(idle) = self.record.take_acknowledged() {
            self.sending.limits.on_acknowledged(now, idle, left > 0, written);
        }
        self.proceed(now);
    }

    fn on_timer(&mut self, now: Instant) {
        let at = self.clock.at(now);
        if let Some((_, connection)) = &mut self.connection
            && connection.poll_timeout().is_some_and(|due| due <= at)
        {
            random::lend(&mut self.random, || connection.handle_timeout(at));
            self.proceed(now);
        }
    }

    fn next_timer(&mut self) -> Option<Instant> {
        let (_, connection) = self.connection.as_mut()?;
        let due = self.clock.virtual_time(connection.poll_timeout()?);
        // A pause of pacing can round to nothing; on a real clock time passes all the same.
        Some(due.max(self.clock.last() + Duration::from_nanos(1)))
    }

    fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(Ecn, &[u8])) {
        for answer in self.answers.drain(..) {
            send(Ecn::NotEct, &answer);
        }
        let at = self.clock.at(now);
        let Some((_, connection)) = &mut self.connection else {
            return;
        };
        let buffer = &mut self.buffer;
        let mut has_sent = false;
        loop {
            buffer.clear();
            let transmit =
                random::lend(&mut self.random, || connection.poll_transmit(at, BATCH, buffer));
            let Some(transmit) = transmit else { break };
            has_sent = true;
            let size = transmit.segment_size.unwrap_or(transmit.size).max(1);
            for datagram in buffer[..transmit.size].chunks(size) {
                send(ecn(transmit.ecn), datagram);
            }
        }
        if self.sending.stream.is_some() {
            let Sending { limits, written, .. } = &mut self.sending;
            let blocked = connection.stats().frame_tx.stream_data_blocked;
            limits.on_transmit(now, has_sent, blocked, *written);
        }
        self.proceed(now);
    }

    fn offer(&mut self, bytes: u64) {
        self.sending.left = self.sending.left.saturating_add(bytes);
        self.write();
    }

    fn close(&mut self) {
        self.sending.left = 0;
        self.close_when_written();
    }

    fn close_when_written(&mut self) {
        self.sending.ends = true;
        self.write();
    }

    fn written(&self) -> u64 {
        self.sending.written
    }

    fn delivered(&self) -> u64 {
        self.delivered
    }

    fn is_established(&self) -> bool {
        self.established
    }

    fn is_finished(&self) -> bool {
        self.sending.acknowledged || self.closed
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.record.take_rtt().map(clock::duration)
    }

    fn srtt(&self) -> Option<Duration> {
        let rtt = self.connection().filter(|_| self.record.has_rtt())?.rtt();
        Some(clock::duration(rtt))
    }

    fn window(&self) -> Window {
        let Some(connection) = self.connection() else {
            return Window { bytes: 0, threshold: None, in_flight: 0, mtu: 0 };
        };
        let metrics = connection.congestion_state().metrics();
        Window {
            bytes: metrics.congestion_window,
            threshold: metrics.ssthresh.filter(|&threshold| threshold < u64::MAX),
            in_flight: self.record.in_flight(),
            mtu: connection.current_mtu(),
        }
    }

    fn datagrams_sent(&self) -> u64 {
        self.connection().map_or(0, |connection| connection.stats().udp_tx.datagrams)
    }

    fn packets_lost(&self) -> u64 {
        self.connection().map_or(0, |connection| connection.stats().path.lost_packets)
    }

    fn limited(&self, now: Instant) -> Limited {
        let Limits { mut total, current, since, .. } = self.sending.limits;
        if let Some(since) = since.filter(|_| !self.is_finished()) {
            total.add(current, now.saturating_since(since));
        }
        total
    }
}
