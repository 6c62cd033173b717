//! Echo requests, which the other end's kernel answers, and datagrams at a constant rate.

use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use airpath_base::{Duration, Instant, Rate};
use airpath_scenario::{FlowConfig, Traffic};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketType, ipproto, recvfrom, sendto};

use super::pace::{Pace, Woken};
use super::{End, Failure, Job, Opened, identifier, start_of};
use crate::sys::ordinary_priority;
use crate::wire::packet::{fold, sum};

/// Bytes of the IPv4 and ICMP or UDP headers.
pub(super) const HEADER_BYTES: u32 = 28;

/// RFC 792.
const ECHO_REQUEST: u8 = 8;
const ECHO_HEADER_BYTES: usize = 8;

/// Opens a flow of pings.
pub(super) fn open_ping(
    flow: &FlowConfig,
    index: u16,
    sender: End<'_>,
    receiver: End<'_>,
) -> Opened<Vec<Job>> {
    let Traffic::Ping { interval, packet_bytes, count } = flow.traffic else {
        return Ok(Vec::new());
    };
    let socket = sender.socket(SocketType::RAW, Some(ipproto::ICMP))?;
    let pings = Pings {
        to: SocketAddrV4::new(*receiver.address.ip(), 0),
        identifier: identifier(index),
        payload_bytes: packet_bytes.saturating_sub(HEADER_BYTES) as usize,
        interval,
        count: count.unwrap_or(u64::MAX),
        start: start_of(flow),
    };
    Ok(vec![Job::new(flow, sender, true, move |pace| pings.run(&socket, pace))?])
}

/// Opens a flow of UDP.
pub(super) fn open_udp(flow: &FlowConfig, sender: End<'_>, receiver: End<'_>) -> Opened<Vec<Job>> {
    let Traffic::Udp { rate, packet_bytes, duration, receiver_opens } = flow.traffic else {
        return Ok(Vec::new());
    };
    let socket = |end: End<'_>| end.socket(SocketType::DGRAM, Some(ipproto::UDP));
    let (from, to) = (socket(sender)?, socket(receiver)?);
    let start = start_of(flow);
    let stream = Datagrams {
        to: (!receiver_opens).then_some(receiver.address),
        rate,
        packet_bytes,
        start,
        stop: duration.map(|duration| start + duration),
    };
    let asks = receiver_opens.then_some(sender.address);
    let bytes = packet_bytes.saturating_sub(HEADER_BYTES) as usize;
    Ok(vec![
        Job::new(flow, sender, true, move |pace| stream.run(&from, pace))?,
        Job::new(flow, receiver, false, move |pace| {
            if let Some(to_sender) = asks {
                if !pace.until(start).map_err(waiting)? {
                    return Ok(());
                }
                send(&to, &vec![0; bytes], to_sender)?;
            }
            read_all(&to, pace)
        })?,
    ])
}

struct Pings {
    to: SocketAddrV4,
    identifier: u16,
    payload_bytes: usize,
    interval: Duration,
    count: u64,
    start: Instant,
}

/// Pings at shorter intervals than this do not poll in order to be punctual.
const PUNCTUAL: Duration = Duration::from_millis(10);

impl Pings {
    /// Returns when all requests have been answered, otherwise at the end of the run.
    fn run(&self, socket: &OwnedFd, pace: &Pace) -> Result<(), Failure> {
        let (mut sent, mut answered, mut next) = (0, 0, self.start);
        if !pace.punctually(self.start).map_err(waiting)? {
            return Ok(());
        }
        while sent < self.count || answered < sent {
            let ahead = Pace::ahead_of(next).filter(|_| self.interval >= PUNCTUAL).unwrap_or(next);
            let due = (sent < self.count).then_some(ahead);
            match pace.ready(socket, PollFlags::IN, due).map_err(waiting)? {
                Woken::Over => return Ok(()),
                Woken::Ready => answered += self.replies(socket)?,
                Woken::Time => {}
            }
            if sent < self.count && pace.clock.now() >= ahead {
                if !pace.punctually(next).map_err(waiting)? {
                    return Ok(());
                }
                send(socket, &self.request(sent as u16), self.to)?;
                sent += 1;
                next += self.interval;
            }
        }
        Ok(())
    }

    fn request(&self, sequence: u16) -> Vec<u8> {
        let mut message = vec![0; ECHO_HEADER_BYTES + self.payload_bytes];
        message[0] = ECHO_REQUEST;
        message[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        message[6..8].copy_from_slice(&sequence.to_be_bytes());
        let checksum = !fold(sum(&message));
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        message
    }

    /// Number of replies received. A raw socket also delivers the IP header, and all other ICMP.
    fn replies(&self, socket: &OwnedFd) -> Result<u64, Failure> {
        let (mut replies, mut buffer) = (0, [0_u8; 64]);
        loop {
            match recvfrom(socket, &mut buffer[..], RecvFlags::empty()) {
                Ok((_, bytes, _)) => {
                    let at = usize::from(buffer[0] & 15) * 4;
                    let header = buffer.get(at..at + ECHO_HEADER_BYTES).filter(|_| bytes >= at + 8);
                    let is_ours = header.is_some_and(|header| {
                        header[0] == 0 && header[4..6] == self.identifier.to_be_bytes()
                    });
                    replies += u64::from(is_ours);
                }
                Err(Errno::AGAIN) => return Ok(replies),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Failure::Step("receiving", error.into())),
            }
        }
    }
}

/// How much a sender may lag at its end: lateness because others had the processor.
const PATIENCE: Duration = Duration::from_millis(20);

/// How much a flow that has lasted this long may lag.
fn patience(lasted: Duration) -> Duration {
    PATIENCE.max(lasted / 100)
}

/// A sender that is this late loses its priority, because it never sleeps.
const HOPELESS: Duration = Duration::from_millis(100);

/// Interval at which a late sender checks for the end of the run.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// A sender that lags.
#[derive(Default)]
struct Late {
    looked: Instant,
    ordinary: bool,
}

impl Late {
    /// Whether it is time to check for the end; a sender that waits for its time notices it anyway.
    fn is_to_be_looked_at(&mut self, now: Instant, due: Instant) -> bool {
        let behind = now.saturating_since(due);
        if behind < CHECK_INTERVAL || now.saturating_since(self.looked) < CHECK_INTERVAL {
            return false;
        }
        self.looked = now;
        if behind > HOPELESS && !self.ordinary {
            ordinary_priority();
            self.ordinary = true;
        }
        true
    }
}

struct Datagrams {
    /// The receiver; `None`: whoever requests the stream.
    to: Option<SocketAddrV4>,
    rate: Rate,
    packet_bytes: u32,
    start: Instant,
    stop: Option<Instant>,
}

impl Datagrams {
    fn run(&self, socket: &OwnedFd, pace: &Pace) -> Result<(), Failure> {
        if !pace.until(self.start).map_err(waiting)? {
            return Ok(());
        }
        let (to, mut next) = match self.to {
            Some(to) => (to, self.start),
            None => match self.asked(socket, pace)? {
                Some(from) => (from, pace.clock.now()),
                None => return Ok(()),
            },
        };
        let mut payload = vec![0; self.packet_bytes.saturating_sub(HEADER_BYTES) as usize];
        let (begin, mut carried, mut sequence) = (next, 0, 0_u32);
        let mut late = Late::default();
        while self.stop.is_none_or(|stop| next < stop) {
            if !pace.until(next).map_err(waiting)? {
                return Ok(());
            }
            let now = pace.clock.now();
            if late.is_to_be_looked_at(now, next) {
                let ends = pace.is_ending() || self.stop.is_some_and(|stop| now > stop + PATIENCE);
                if ends && now.saturating_since(next) > patience(now - begin) {
                    return Err(self.too_slow(next - begin, now - begin));
                }
            }
            // If there is room, each datagram contains its number, from which its delay is
            // computed.
            if let Some(number) = payload.first_chunk_mut() {
                *number = sequence.to_be_bytes();
            }
            send(socket, &payload, to).map_err(|failure| {
                let hopeless = now.saturating_since(next) > patience(now - begin);
                // Without a network nothing can be sent any more.
                let ends = hopeless && pace.is_ending();
                if ends { self.too_slow(next - begin, now - begin) } else { failure }
            })?;
            sequence = sequence.wrapping_add(1);
            let (gap, rest) = self.rate.transmission_time(self.packet_bytes, carried);
            carried = rest;
            next += gap;
        }
        Ok(())
    }

    /// The failure of a sender that sent by `whole` only what was due by `sent`.
    fn too_slow(&self, sent: Duration, whole: Duration) -> Failure {
        let asked_mbps = self.rate.mbps();
        let got_mbps = asked_mbps * (sent.as_secs_f64() / whole.as_secs_f64());
        Failure::Rate { asked_mbps, got_mbps }
    }

    /// The address that requests the stream; `None`: nobody until the end of the run, or until it
    /// is too late.
    fn asked(&self, socket: &OwnedFd, pace: &Pace) -> Result<Option<SocketAddrV4>, Failure> {
        loop {
            if pace.ready(socket, PollFlags::IN, self.stop).map_err(waiting)? != Woken::Ready {
                return Ok(None);
            }
            match recvfrom(socket, &mut [0_u8; 1][..], RecvFlags::empty()) {
                Ok((_, _, from)) => {
                    let from = from.and_then(|from| SocketAddr::try_from(from).ok());
                    if let Some(SocketAddr::V4(from)) = from {
                        return Ok(Some(from));
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(Failure::Step("receiving", error.into())),
            }
        }
    }
}

/// Reads until the end of the run.
fn read_all(socket: &OwnedFd, pace: &Pace) -> Result<(), Failure> {
    loop {
        match recvfrom(socket, &mut [0_u8; 1][..], RecvFlags::empty()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                if pace.ready(socket, PollFlags::IN, None).map_err(waiting)? == Woken::Over {
                    return Ok(());
                }
            }
            Err(error) => return Err(Failure::Step("receiving", error.into())),
        }
    }
}

fn send(socket: &OwnedFd, bytes: &[u8], to: SocketAddrV4) -> Result<(), Failure> {
    match sendto(socket, bytes, SendFlags::NOSIGNAL, &to) {
        // A full device drops, like a full queue.
        Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS) => Ok(()),
        Err(error) => Err(Failure::Step("sending", error.into())),
    }
}

fn waiting(error: std::io::Error) -> Failure {
    Failure::Step("waiting", error)
}
