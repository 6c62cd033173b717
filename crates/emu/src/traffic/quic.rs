//! A QUIC flow: the stack of simulated flows over the kernel's UDP, one thread for each end.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airpath_base::{Direction, Duration, Ecn, Histogram, Instant, Stream};
use airpath_metrics::{MeanRtt, TransferMeter};
use airpath_quic::{Config, Endpoint, Limited};
use airpath_record::{FlowSummary, LimitSeconds, Quantiles};
use airpath_scenario::FlowConfig;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketType, ipproto, sendto, sockopt};

use super::pace::{Pace, Woken};
use super::tcp::SenderWindow;
use super::{End, Failure, Job, Opened, start_of};
use crate::sys::{prepare_datagram_socket, receive_datagram, set_segment};

/// Buffers of a socket: more than a thread that waits for its processor misses.
const BUFFER_BYTES: usize = 8 << 20;

/// The largest datagram.
const LARGEST: usize = 1 << 16;

/// Most bytes that the kernel segments at once, and most segments (UDP_MAX_SEGMENTS of Linux 4.18).
const MOST_BYTES: usize = 65_000;
const MOST_SEGMENTS: usize = 64;

/// What both ends report of their flow.
#[derive(Debug)]
pub(crate) struct QuicMeter {
    transfer: TransferMeter,
    rtt: Histogram,
    mean_rtt: MeanRtt,
    window: Option<SenderWindow>,
    datagrams_sent: u64,
    packets_lost: u64,
    limited: Option<Limited>,
}

/// What a sample interval shows.
pub(crate) struct QuicSample {
    pub(crate) delivered: u64,
    pub(crate) rtt_ms: Option<f64>,
    pub(crate) window: Option<SenderWindow>,
}

/// A flow's transfer: its size, or how long its application writes.
#[derive(Clone, Copy)]
pub(super) struct Transfer {
    pub(super) size: Option<u64>,
    pub(super) duration: Option<Duration>,
}

impl QuicMeter {
    pub(super) fn new(flow: &FlowConfig, transfer: Transfer) -> Arc<Mutex<Self>> {
        let start = start_of(flow);
        let transfer = transfer.size.map_or_else(
            || TransferMeter::bulk(start, transfer.duration),
            |size| TransferMeter::file(start, size),
        );
        Arc::new(Mutex::new(Self {
            transfer,
            rtt: Histogram::new(),
            mean_rtt: MeanRtt::default(),
            window: None,
            datagrams_sent: 0,
            packets_lost: 0,
            limited: None,
        }))
    }

    /// Ends a sample interval.
    pub(super) fn sample(&mut self, now: Instant) -> QuicSample {
        self.transfer.sample(now);
        let rtt_ms = self.mean_rtt.take_millis();
        QuicSample { delivered: self.transfer.delivered(), rtt_ms, window: self.window }
    }

    /// Round trips, as the sender measured them.
    pub(super) const fn rtt(&self) -> &Histogram {
        &self.rtt
    }

    /// The flow's summary at the end of the run.
    pub(super) fn summarise(
        &self,
        now: Instant,
        congestion: &'static str,
        flow: FlowSummary,
    ) -> FlowSummary {
        let lived = Duration::from_nanos(now.as_nanos().saturating_sub(flow.start_ns as u64));
        let flow = FlowSummary {
            congestion: Some(congestion),
            rtt_ms: Quantiles::of(&self.rtt),
            segments_sent: self.datagrams_sent,
            packets_sent: Some(self.datagrams_sent),
            packets_lost: Some(self.packets_lost),
            limited_s: self.limited.map(|limited| {
                let windows = [limited.congestion, limited.receive_window, limited.send_window];
                LimitSeconds::without_pacing(lived, windows)
            }),
            ..flow
        };
        self.transfer.summarise(now, flow)
    }

    fn on_sender(&mut self, now: Instant, endpoint: &mut dyn Endpoint) {
        while let Some(rtt) = endpoint.take_rtt_sample() {
            self.rtt.record(rtt);
            self.mean_rtt.record(rtt);
        }
        self.transfer.on_written(endpoint.written());
        self.datagrams_sent = endpoint.datagrams_sent();
        self.packets_lost = endpoint.packets_lost();
        self.limited = Some(endpoint.limited(now));
        self.window = window(endpoint);
    }
}

/// The window of an established sender that has measured a round trip.
fn window(endpoint: &dyn Endpoint) -> Option<SenderWindow> {
    let srtt = endpoint.srtt().filter(|_| endpoint.is_established())?;
    let window = endpoint.window();
    let packets = |bytes: u64| (bytes / u64::from(window.mtu.max(1))) as u32;
    Some(SenderWindow {
        cwnd_segments: packets(window.bytes),
        ssthresh_segments: window.threshold.map(packets),
        srtt_ms: srtt.as_millis_f64(),
        inflight_segments: packets(window.in_flight),
        receive_window_segments: None,
    })
}

/// Opens both ends; the UE connects to the server. `sends` is the end that sends.
pub(super) fn open(
    flow: &FlowConfig,
    config: &Config,
    transfer: Transfer,
    seed: u64,
    [server, ue]: [End<'_>; 2],
    meter: &Arc<Mutex<QuicMeter>>,
) -> Opened<Vec<Job>> {
    let start = start_of(flow);
    let down = flow.direction == Direction::Downlink;
    // The streams of a simulation with this seed.
    let [of_ue, of_server] =
        ["ue", "server"].map(|end| Stream::new(seed, &format!("flow.{}.quic.{end}", flow.id)));
    let listens = airpath_quic::listen(config, down, of_server.clone());
    let connects = airpath_quic::connect(start, config, !down, of_ue, of_server);
    let mut jobs = Vec::new();
    let sockets = [Arc::new(socket(server)?), Arc::new(socket(ue)?)];
    let ends = [(listens, server, ue, down), (connects, ue, server, !down)];
    for ((place, (mut endpoint, end, peer, sends)), socket) in (0..).zip(ends).zip(&sockets) {
        if sends {
            endpoint.offer(transfer.size.unwrap_or(u64::MAX));
        }
        if sends && transfer.size.is_some() {
            endpoint.close_when_written();
        }
        let driver = Driver {
            endpoint,
            socket: Arc::clone(socket),
            // The kernel answers what comes to a closed socket.
            _other: Arc::clone(&sockets[1 - place]),
            peer: peer.address,
            sends,
            start,
            stop: transfer.duration.map(|duration| start + duration).filter(|_| sends),
            meter: Arc::clone(meter),
            outgoing: Outgoing::default(),
        };
        jobs.push(Job::new(flow, end, sends, move |pace| driver.run(pace))?);
    }
    Ok(jobs)
}

fn socket(end: End<'_>) -> Opened<OwnedFd> {
    let socket = end.socket(SocketType::DGRAM, Some(ipproto::UDP))?;
    prepare_datagram_socket(&socket).map_err(|error| ("a UDP socket", error))?;
    // Without the right to exceed the host's limit, its default stays.
    let _ = sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES);
    let _ = sockopt::set_socket_send_buffer_size(&socket, BUFFER_BYTES);
    Ok(socket)
}

/// Runs one end on the real clock.
struct Driver {
    endpoint: Box<dyn Endpoint>,
    socket: Arc<OwnedFd>,
    _other: Arc<OwnedFd>,
    peer: SocketAddrV4,
    sends: bool,
    start: Instant,
    /// When the application stops.
    stop: Option<Instant>,
    meter: Arc<Mutex<QuicMeter>>,
    outgoing: Outgoing,
}

impl Driver {
    /// Runs until everything is acknowledged, otherwise until the end of the run.
    fn run(mut self, pace: &Pace) -> Result<(), Failure> {
        if !pace.punctually(self.start).map_err(waiting)? {
            return Ok(());
        }
        let mut buffer = vec![0; LARGEST];
        loop {
            self.transmit(pace.clock.now())?;
            self.receive(&mut buffer, pace)?;
            let now = pace.clock.now();
            if self.stop.is_some_and(|stop| now >= stop) {
                self.stop = None;
                self.endpoint.close();
            }
            self.endpoint.on_timer(now);
            self.transmit(now)?;
            self.report(now);
            if self.sends && self.endpoint.is_finished() {
                return self.finish();
            }
            let due = self.endpoint.next_timer().into_iter().chain(self.stop).min();
            if pace.ready(&*self.socket, PollFlags::IN, due).map_err(waiting)? == Woken::Over {
                self.report(pace.clock.now());
                return Ok(());
            }
        }
    }

    fn report(&mut self, now: Instant) {
        if self.sends {
            meter(&self.meter).on_sender(now, &mut *self.endpoint);
        }
    }

    /// The end of a sender that has nothing left to do.
    fn finish(&self) -> Result<(), Failure> {
        match self.endpoint.failure() {
            Some(why) => Err(Failure::Step("QUIC", io::Error::other(why.to_owned()))),
            None => Ok(()),
        }
    }

    /// Passes what has arrived to the stack, one datagram at a time, as in a simulation.
    fn receive(&mut self, buffer: &mut [u8], pace: &Pace) -> Result<(), Failure> {
        loop {
            let (bytes, service) = match receive_datagram(&*self.socket, buffer) {
                Ok(datagram) => datagram,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // ICMP told of an earlier datagram; the stack finds out by itself.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(Failure::Step("receiving", error)),
            };
            let now = pace.clock.now();
            self.endpoint.on_datagram(now, Ecn::from_bits(service), &buffer[..bytes]);
            self.transmit(now)?;
            if !self.sends {
                let delivered = self.endpoint.delivered();
                meter(&self.meter).transfer.on_delivered(now, delivered);
            }
        }
    }

    /// Sends what the stack may send now.
    fn transmit(&mut self, now: Instant) -> Result<(), Failure> {
        let Self { endpoint, outgoing, socket, peer, .. } = self;
        let mut failed = None;
        endpoint.transmit(now, &mut |ecn, payload| {
            if !outgoing.has_room(ecn, payload.len()) {
                failed = failed.take().or(outgoing.flush(socket, *peer).err());
            }
            outgoing.push(ecn, payload);
        });
        let flushed = outgoing.flush(socket, *peer);
        failed.map_or(flushed, Err).map_err(|error| Failure::Step("sending", error))
    }
}

fn meter(shared: &Mutex<QuicMeter>) -> MutexGuard<'_, QuicMeter> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Datagrams of one size, the last of which may be smaller: the kernel takes them as one.
#[derive(Default)]
struct Outgoing {
    bytes: Vec<u8>,
    segment: usize,
    count: usize,
    ecn: Ecn,
    /// A datagram smaller than the others is there: it is the last.
    complete: bool,
    /// What the socket was told last: the size of segments, and the ECN field.
    told: (usize, Ecn),
    /// The kernel cannot segment what leaves through this device.
    alone: bool,
}

impl Outgoing {
    fn has_room(&self, ecn: Ecn, bytes: usize) -> bool {
        let fits = !self.complete
            && bytes <= self.segment
            && self.count < MOST_SEGMENTS
            && self.bytes.len() + bytes <= MOST_BYTES;
        self.count == 0 || (fits && ecn == self.ecn && !self.alone)
    }

    fn push(&mut self, ecn: Ecn, payload: &[u8]) {
        if self.count == 0 {
            (self.segment, self.ecn) = (payload.len(), ecn);
        }
        self.bytes.extend_from_slice(payload);
        self.count += 1;
        self.complete = payload.len() < self.segment;
    }

    /// Sends what is there.
    fn flush(&mut self, socket: &OwnedFd, to: SocketAddrV4) -> io::Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let segment = if self.count > 1 { self.segment } else { 0 };
        if self.told.1 != self.ecn {
            sockopt::set_ip_tos(socket, self.ecn.bits())?;
        }
        if self.told.0 != segment {
            set_segment(socket, segment as u16)?;
        }
        self.told = (segment, self.ecn);
        match send(socket, &self.bytes, to) {
            // Without checksum offload (Linux: `udp_send_skb`).
            Err(Errno::IO) if segment > 0 => {
                self.alone = true;
                self.told.0 = 0;
                set_segment(socket, 0)?;
                for payload in self.bytes.chunks(segment) {
                    send(socket, payload, to)?;
                }
            }
            sent => sent?,
        }
        self.bytes.clear();
        (self.count, self.complete) = (0, false);
        Ok(())
    }
}

fn send(socket: &OwnedFd, bytes: &[u8], to: SocketAddrV4) -> Result<(), Errno> {
    match sendto(socket, bytes, SendFlags::NOSIGNAL, &to) {
        // A full device drops, like a full queue; what is too large for it is lost as well, as a
        // probe of path MTU discovery must be. ICMP may have told of an earlier datagram.
        Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::MSGSIZE | Errno::CONNREFUSED) => Ok(()),
        Err(error) => Err(error),
    }
}

fn waiting(error: io::Error) -> Failure {
    Failure::Step("waiting", error)
}
