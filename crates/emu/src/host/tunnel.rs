//! S1-U or N3 with real packets: the namespaces `core` and `ran`, a link between them, and a UDP
//! socket in each, through which everything passes between path and cell.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;

use airpath_base::{Direction, Duration, Histogram, Instant};
use airpath_capture::gtpu::{Header, MOST_BYTES, PORT};
use serde::Serialize;

use crate::device::slab::{SLOT_BYTES, Slab};
use crate::host::namespace::{Namespace, Role, run_ip};
use crate::observation::lateness::Lateness;
use crate::sys::{self, MOST_MESSAGES};
use crate::wire::packet::{fold, sum};
use crate::{Clock, EmuError};

/// Namespace of the gateway: an S-GW, or a UPF.
pub(crate) const CORE: &str = "core";
/// Namespace of the base stations.
pub(crate) const RAN: &str = "ran";

const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const BASE_STATION: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);

/// TEIDs of each end, to which the UE's number is added.
const TEIDS: [u32; 2] = [0x2000_0000, 0x1000_0000];

/// Bytes of the outer IP and UDP headers.
const OUTER: usize = 20 + 8;

/// Room for one datagram.
const DATAGRAM: usize = MOST_BYTES + SLOT_BYTES;

/// Size of a socket's buffers: enough for the longest absence of the forwarder.
const BUFFER_BYTES: usize = 1 << 26;

/// Both ends of the tunnels of all UEs.
pub(crate) struct Tunnel {
    /// Sockets of the gateway and of the base station.
    sockets: [UdpSocket; 2],
    /// QFI of each UE's end, from 1; `None` for LTE.
    qfi: Vec<Option<u8>>,
    /// Queues for downlink and uplink.
    queues: [Queue; 2],
}

/// What remains to be sent in one direction, and what was sent.
struct Queue {
    waiting: Vec<Waiting>,
    sent: u64,
    sends: u64,
    received: u64,
    ignored: u64,
    refused: u64,
    lateness: Histogram,
    in_transit: InTransit,
    transit: Histogram,
}

/// Packets inside the kernel, in order: what each is, and when it left the model.
#[derive(Debug, Default)]
struct InTransit {
    packets: VecDeque<(u64, Instant)>,
    /// Packets that did not come out, although much later ones did.
    lost: u64,
}

/// Reordering in the kernel (`tc netem`) stays below this, in time and in packets.
const OVERTAKEN: Duration = Duration::from_secs(1);
const OVERTAKEN_PACKETS: usize = 1024;

/// Most packets in transit: more than a socket's buffer holds.
const MOST_IN_TRANSIT: usize = 1 << 16;

impl InTransit {
    /// A packet is sent.
    #[inline]
    fn push(&mut self, packet: &[u8], at: Instant) {
        if self.packets.len() == MOST_IN_TRANSIT {
            self.packets.pop_front();
            self.lost += 1;
        }
        self.packets.push_back((identity(packet), at));
    }

    /// A packet came out: returns when it left the model. `None`: it was never sent.
    #[inline]
    fn take(&mut self, packet: &[u8]) -> Option<Instant> {
        let identity = identity(packet);
        let place = self.packets.iter().position(|(sent, _)| *sent == identity)?;
        let (_, at) = self.packets.remove(place)?;
        // Earlier packets are lost if they are too old, or too many.
        let old = self.packets.iter().take(place).take_while(|(_, sent)| *sent + OVERTAKEN < at);
        let lost = old.count().max(place.saturating_sub(OVERTAKEN_PACKETS));
        self.packets.drain(..lost);
        self.lost += lost as u64;
        Some(at)
    }
}

/// Identifies a packet: by its length and its headers, including the transport's checksum.
#[inline]
fn identity(packet: &[u8]) -> u64 {
    const HEADERS: usize = 80;
    let mut mixed = packet.len() as u64;
    for word in packet[..packet.len().min(HEADERS)].chunks(8) {
        let mut bytes = [0; 8];
        bytes[..word.len()].copy_from_slice(word);
        mixed = (mixed ^ u64::from_ne_bytes(bytes)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^= mixed >> 32;
    }
    mixed
}

struct Waiting {
    slot: u32,
    header: Header,
    /// When the packet left the model.
    at: Instant,
}

/// The setup of a tunnel, for the provenance.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TunnelSetup {
    /// Name of the interface in both namespaces: `s1u` or `n3`.
    pub interface: &'static str,
    /// MTU of the link; larger packets were fragmented.
    pub mtu: u32,
    /// Address in the namespace `core`.
    pub gateway: String,
    /// Address in the namespace `ran`.
    pub base_station: String,
    /// One session per UE.
    pub sessions: Vec<TunnelSession>,
}

/// A UE's tunnels.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TunnelSession {
    /// The UE's name.
    pub ue: String,
    /// TEID of the gateway, for uplink packets.
    pub teid_up: u32,
    /// TEID of the base station, for downlink packets.
    pub teid_down: u32,
    /// QoS flow identifier; `None` for LTE.
    pub qfi: Option<u8>,
}

/// Report of one direction of the tunnel.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TunnelReport {
    /// Packets that entered the tunnel.
    pub sent: u64,
    /// System calls used to send them.
    pub sends: u64,
    /// Packets that came out.
    pub received: u64,
    /// Packets that the kernel refused.
    pub refused: u64,
    /// Datagrams that were not a packet of a known tunnel, or that nobody sent there.
    pub ignored: u64,
    /// Packets that the kernel lost, although later ones came out.
    pub lost: u64,
    /// Lateness of sending relative to the logical time at which the packet left the model, in us.
    pub lateness_us: Option<Lateness>,
    /// Time from that logical time until the packet entered the model again, in us: it includes the
    /// kernel's time for the packet and for those of its burst before it.
    pub transit_us: Option<Lateness>,
}

/// Received datagrams.
pub(crate) struct Batch {
    bytes: Vec<u8>,
    lengths: [usize; MOST_MESSAGES],
}

/// The tunnel and the namespaces of its nodes.
pub(crate) struct Nodes {
    pub(crate) namespaces: [Namespace; 2],
    pub(crate) tunnel: Tunnel,
}

impl Nodes {
    /// Creates a link of `mtu` bytes between them, called `interface` at both ends.
    ///
    /// # Errors
    ///
    /// If `ip` is missing, or a socket cannot be opened.
    pub(crate) fn new(interface: &str, mtu: u32, qfi: Vec<Option<u8>>) -> Result<Self, EmuError> {
        let (core, ()) = Namespace::make(CORE, Role::Between, || run_ip("link set lo up\n"))?;
        let path = core.path();
        let (ran, base_station) = Namespace::make(RAN, Role::Between, || {
            run_ip(&format!(
                "link set lo up\n\
                 link add {interface} mtu {mtu} type veth peer name {interface} mtu {mtu} \
                 netns {path}\n\
                 link set {interface} addrgenmode none\n\
                 link set {interface} up\n\
                 address add {BASE_STATION}/24 dev {interface}\n"
            ))?;
            socket(BASE_STATION, GATEWAY)
        })?;
        let gateway = core.within(|| {
            run_ip(&format!(
                "link set {interface} addrgenmode none\n\
                 link set {interface} up\n\
                 address add {GATEWAY}/24 dev {interface}\n"
            ))?;
            socket(GATEWAY, BASE_STATION)
        })??;
        let queues = [Queue::new(), Queue::new()];
        let tunnel = Tunnel { sockets: [gateway, base_station], qfi, queues };
        Ok(Self { namespaces: [core, ran], tunnel })
    }
}

fn socket(here: Ipv4Addr, there: Ipv4Addr) -> Result<UdpSocket, EmuError> {
    let open = || {
        let socket = UdpSocket::bind((here, PORT))?;
        socket.connect((there, PORT))?;
        socket.set_nonblocking(true)?;
        sys::prepare_tunnel_socket(socket.as_fd(), BUFFER_BYTES)?;
        Ok(socket)
    };
    open().map_err(|source| EmuError::Tunnel { address: format!("{here}:{PORT}"), source })
}

impl Tunnel {
    /// The setup, for the result.
    pub(crate) fn setup(&self, interface: &'static str, mtu: u32, ues: &[String]) -> TunnelSetup {
        let sessions = ues.iter().zip(&self.qfi).zip(1..).map(|((ue, &qfi), end)| TunnelSession {
            ue: ue.clone(),
            teid_up: teid(Direction::Uplink, end),
            teid_down: teid(Direction::Downlink, end),
            qfi,
        });
        TunnelSetup {
            interface,
            mtu,
            gateway: GATEWAY.to_string(),
            base_station: BASE_STATION.to_string(),
            sessions: sessions.collect(),
        }
    }

    /// The header of a packet to or from a UE's end.
    #[inline]
    pub(crate) fn header(&self, direction: Direction, end: usize, length: usize) -> Header {
        Header::new(teid(direction, end), self.qfi[end - 1], direction, length)
    }

    /// The UE's end to which a tunnel belongs.
    #[inline]
    pub(crate) fn end_of(&self, direction: Direction, tunnel: u32) -> Option<usize> {
        let end = tunnel.checked_sub(TEIDS[direction])? as usize;
        (1..=self.qfi.len()).contains(&end).then_some(end)
    }

    /// Queues a packet that left the model at `at`.
    #[inline]
    pub(crate) fn push(&mut self, direction: Direction, slot: u32, header: Header, at: Instant) {
        self.queues[direction].waiting.push(Waiting { slot, header, at });
    }

    /// Sends what is queued; this frees the slots.
    #[inline]
    pub(crate) fn flush(&mut self, clock: &Clock, slab: &mut Slab) {
        let now = clock.now();
        for (socket, queue) in self.sockets.iter().zip(&mut self.queues) {
            if queue.waiting.is_empty() {
                continue;
            }
            for waiting in queue.waiting.chunks(MOST_MESSAGES) {
                let mut messages = [[IoSlice::new(&[]); 2]; MOST_MESSAGES];
                for (message, waiting) in messages.iter_mut().zip(waiting) {
                    *message = [
                        IoSlice::new(waiting.header.bytes()),
                        IoSlice::new(slab.bytes(waiting.slot)),
                    ];
                }
                let sent = sys::send_many(socket.as_fd(), &messages[..waiting.len()]);
                let sent = sent.unwrap_or(0);
                queue.sends += 1;
                queue.sent += sent as u64;
                queue.refused += (waiting.len() - sent) as u64;
                for waiting in waiting {
                    queue.lateness.record(now.saturating_since(waiting.at));
                }
                for waiting in &waiting[..sent] {
                    queue.in_transit.push(slab.bytes(waiting.slot), waiting.at);
                }
            }
            queue.waiting.drain(..).for_each(|waiting| slab.release(waiting.slot));
        }
    }

    /// Whether something was sent and not received yet.
    #[inline]
    pub(crate) fn expects_any(&self) -> bool {
        self.queues.iter().any(|queue| !queue.in_transit.packets.is_empty())
    }

    /// Receives what came out in one direction; returns the number of datagrams.
    #[inline]
    pub(crate) fn receive(&self, direction: Direction, batch: &mut Batch) -> usize {
        let socket = &self.sockets[direction.reverse()];
        let mut buffers = batch.bytes.chunks_exact_mut(DATAGRAM).map(IoSliceMut::new);
        let mut buffers: [IoSliceMut<'_>; MOST_MESSAGES] =
            std::array::from_fn(|_| buffers.next().expect("a batch has room for all messages"));
        // Nothing to read, or an earlier ICMP error: losses are counted.
        sys::receive_many(socket.as_fd(), &mut buffers, &mut batch.lengths).unwrap_or(0)
    }

    /// A packet of a known tunnel came out; returns whether it was sent there.
    #[inline]
    pub(crate) fn count(&mut self, direction: Direction, packet: &[u8], now: Instant) -> bool {
        let queue = &mut self.queues[direction];
        let Some(at) = queue.in_transit.take(packet) else { return false };
        queue.transit.record(now.saturating_since(at));
        queue.received += 1;
        true
    }

    /// A datagram came out that was never sent there.
    pub(crate) fn ignore(&mut self, direction: Direction) {
        self.queues[direction].ignored += 1;
    }

    /// Handles for waiting: readable when something comes out.
    pub(crate) fn sockets(&self) -> Result<[UdpSocket; 2], EmuError> {
        let [gateway, base_station] = &self.sockets;
        let copy = |socket: &UdpSocket| socket.try_clone().map_err(EmuError::Wait);
        Ok([copy(gateway)?, copy(base_station)?])
    }

    /// The report of one direction so far.
    pub(crate) fn report(&self, direction: Direction) -> TunnelReport {
        let queue = &self.queues[direction];
        TunnelReport {
            sent: queue.sent,
            sends: queue.sends,
            received: queue.received,
            refused: queue.refused,
            ignored: queue.ignored,
            lost: queue.in_transit.lost,
            lateness_us: Lateness::of(&queue.lateness),
            transit_us: Lateness::of(&queue.transit),
        }
    }
}

impl Queue {
    fn new() -> Self {
        Self {
            waiting: Vec::new(),
            sent: 0,
            sends: 0,
            received: 0,
            ignored: 0,
            refused: 0,
            lateness: Histogram::new(),
            in_transit: InTransit::default(),
            transit: Histogram::new(),
        }
    }
}

impl Batch {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; DATAGRAM * MOST_MESSAGES], lengths: [0; MOST_MESSAGES] }
    }

    /// The datagram with that index.
    #[inline]
    pub(crate) fn datagram(&self, index: usize) -> &[u8] {
        &self.bytes[index * DATAGRAM..][..self.lengths[index]]
    }
}

fn teid(direction: Direction, end: usize) -> u32 {
    TEIDS[direction] + end as u32
}

/// IP, UDP and GTP-U headers as they are on the wire before a packet of `length` bytes, for a
/// capture. The UDP checksum is 0, which means none (RFC 768).
pub(crate) fn outer(direction: Direction, header: &Header, length: usize) -> Vec<u8> {
    let (from, to) = match direction {
        Direction::Downlink => (GATEWAY, BASE_STATION),
        Direction::Uplink => (BASE_STATION, GATEWAY),
    };
    let udp = (8 + header.bytes().len() + length) as u16;
    let mut bytes = vec![0; OUTER];
    (bytes[0], bytes[8], bytes[9]) = (0x45, 64, crate::wire::packet::UDP);
    bytes[2..4].copy_from_slice(&(20 + udp).to_be_bytes());
    bytes[12..16].copy_from_slice(&from.octets());
    bytes[16..20].copy_from_slice(&to.octets());
    let checksum = !fold(sum(&bytes[..20]));
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    bytes[20..22].copy_from_slice(&PORT.to_be_bytes());
    bytes[22..24].copy_from_slice(&PORT.to_be_bytes());
    bytes[24..26].copy_from_slice(&udp.to_be_bytes());
    bytes.extend_from_slice(header.bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use airpath_base::Duration;

    use super::*;

    #[test]
    fn a_lost_datagram_is_no_delay_of_those_after_it() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let packet = |number: u8| [[0x45; 20].as_slice(), &[number; 1000]].concat();
        let mut in_transit = InTransit::default();
        (0..30).for_each(|number| in_transit.push(&packet(number), at(100 * u64::from(number))));
        assert_eq!(in_transit.take(&packet(0)), Some(at(0)));
        // The kernel has lost 1 and 2; 4 overtakes 3.
        assert_eq!(in_transit.take(&packet(4)), Some(at(400)));
        assert_eq!(in_transit.take(&packet(3)), Some(at(300)));
        assert_eq!((in_transit.take(&packet(77)), in_transit.lost), (None, 0));
        // A second later the lost ones are detected.
        assert_eq!(in_transit.take(&packet(12)), Some(at(1200)));
        assert_eq!(
            (in_transit.lost, in_transit.packets.front()),
            (1, Some(&(identity(&packet(2)), at(200))))
        );
        assert_eq!(in_transit.take(&packet(29)), Some(at(2900)));
        assert_eq!((in_transit.lost, in_transit.packets.len()), (15, 10));
    }

    #[test]
    fn what_never_comes_out_takes_bounded_memory() {
        let mut in_transit = InTransit::default();
        (0..100_000_u32).for_each(|n| in_transit.push(&n.to_be_bytes(), Instant::ZERO));
        assert_eq!((in_transit.packets.len(), in_transit.lost), (MOST_IN_TRANSIT, 34_464));
    }
}
