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
use self::controller::Record;
use crate::{Config, Endpoint, Window};

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
        loop {
            buffer.clear();
            let transmit =
                random::lend(&mut self.random, || connection.poll_transmit(at, BATCH, buffer));
            let Some(transmit) = transmit else { break };
            let size = transmit.segment_size.unwrap_or(transmit.size).max(1);
            for datagram in buffer[..transmit.size].chunks(size) {
                send(ecn(transmit.ecn), datagram);
            }
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
}
