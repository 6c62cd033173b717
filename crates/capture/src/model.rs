//! Captures of simulated packets: headers made from the model's state, without payload.
//!
//! The server is 10.77.0.1 and UEs are 10.77.1.1, 10.77.1.2, …, as in an emulation. Time 0 of the
//! model is the beginning of the year 2000 (UTC). Ports are 40000, 40001, … by flow at a UE, and
//! 5201 at the server. A datagram begins like one of iperf3, with the time at which it was sent and
//! a number that counts from 1. Checksums of IP and ICMP are right; those of TCP and UDP would
//! cover payload that does not exist.

use std::io;
use std::path::Path;

use airpath_base::{Direction, Ecn, Flags, Instant, Packet, Payload, Segment};

use crate::pcapng::{Captured, Writer};

/// 2000-01-01T00:00:00Z in nanoseconds since 1970.
const EPOCH: u64 = 946_684_800_000_000_000;

const SERVER: [u8; 4] = [10, 77, 0, 1];
const SERVER_PORT: u32 = 5201;
const UE_PORT: u32 = 40_000;
/// After this many flows the ports at the UEs start over, and the server's port is the next one.
const UE_PORTS: u32 = 20_000;

const IP_BYTES: usize = 20;
/// The longest header of TCP.
const MOST_TCP_BYTES: usize = 60;
/// Bytes of the timestamps option (RFC 7323) with two NOPs.
const TIMESTAMPS_BYTES: u32 = 12;
const NOP: u8 = 1;

/// What the headers of a flow need to know besides its packets.
#[derive(Clone, Copy, Debug)]
pub struct ModelFlow {
    /// Direction of the flow's data.
    pub direction: Direction,
    /// Index of the flow's UE, from 0.
    pub ue: usize,
    /// For the sender and the receiver: payload of a full segment and bytes of its headers. `None`:
    /// the flow is not TCP.
    pub segments: Option<[(u32, u32); 2]>,
    /// Whether a flow that is not TCP is an ICMP echo rather than UDP.
    pub is_echo: bool,
}

/// Writes the packets that pass the ends of a simulation: interface 0 is the server, the others are
/// UEs.
#[derive(Debug)]
pub struct ModelWriter {
    writer: Writer,
    flows: Vec<ModelFlow>,
}

impl ModelWriter {
    /// Creates the file; `ues` are the names of the interfaces after `server`. No packet is dropped
    /// if the disk is slow: the caller waits.
    ///
    /// # Errors
    ///
    /// If the file or its thread cannot be created.
    pub fn create(file: &Path, ues: &[String], flows: Vec<ModelFlow>) -> io::Result<Self> {
        let places: Vec<_> =
            std::iter::once("server").chain(ues.iter().map(String::as_str)).collect();
        let places: Vec<_> = places.into_iter().map(str::to_owned).collect();
        let mut writer = Writer::create(file, &places)?;
        writer.begin(EPOCH);
        writer.wait_for_the_disk();
        Ok(Self { writer, flows })
    }

    /// Writes a packet that is at the server, or at the UE of its flow.
    pub fn packet(&mut self, at: Instant, at_server: bool, direction: Direction, packet: &Packet) {
        let Some(flow) = self.flows.get(packet.flow.0 as usize) else { return };
        let headers = Headers::of(flow, packet.flow.0, direction, packet);
        let place = if at_server { 0 } else { 1 + flow.ue };
        self.writer.headers(place, at, headers.bytes(), headers.length);
    }

    /// Closes the file and returns the counts.
    pub fn finish(self) -> Captured {
        self.writer.finish()
    }
}

/// The headers of a packet, and its length with payload.
struct Headers {
    bytes: [u8; IP_BYTES + MOST_TCP_BYTES],
    used: usize,
    length: u32,
}

impl Headers {
    fn of(flow: &ModelFlow, index: u32, direction: Direction, packet: &Packet) -> Self {
        let mut headers = Self { bytes: [0; IP_BYTES + MOST_TCP_BYTES], used: IP_BYTES, length: 0 };
        let ue_port = (UE_PORT + index % UE_PORTS) as u16;
        let ports = match direction {
            Direction::Downlink => [(SERVER_PORT + index / UE_PORTS) as u16, ue_port],
            Direction::Uplink => [ue_port, (SERVER_PORT + index / UE_PORTS) as u16],
        };
        let (protocol, payload) = match (&packet.payload, flow.segments) {
            (Payload::Tcp(segment), Some(sizes)) => {
                headers.add_tcp(flow, index, direction, ports, segment, packet.size, sizes);
                (6, segment.len)
            }
            (Payload::Datagram(datagram), _) => {
                let number = datagram.sequence.wrapping_add(1) as u32;
                // The bytes behind the header, of which 12 are written.
                let payload = packet.size.saturating_sub(28);
                if flow.is_echo {
                    let kind = if datagram.reply { 0 } else { 8 };
                    let identifier = (index as u16).wrapping_add(1);
                    headers.push(&[kind, 0, 0, 0]);
                    headers.push(&identifier.to_be_bytes());
                    headers.push(&(number as u16).to_be_bytes());
                    headers.check(IP_BYTES, IP_BYTES + 2);
                    (1, payload)
                } else {
                    ports.iter().for_each(|port| headers.push(&port.to_be_bytes()));
                    headers.push(&(payload as u16 + 8).to_be_bytes());
                    headers.push(&[0, 0]);
                    let told = if datagram.reply { 0 } else { payload.min(12) as usize };
                    let sent = EPOCH + datagram.sent_at.as_nanos();
                    let time = [sent / 1_000_000_000, sent % 1_000_000_000 / 1000];
                    let words = [time[0] as u32, time[1] as u32, number].map(u32::to_be_bytes);
                    headers.push(&words.as_flattened()[..told]);
                    (17, payload - told as u32)
                }
            }
            (Payload::Tcp(_) | Payload::Opaque(_), _) => (255, 0),
        };
        headers.length = headers.used as u32 + payload;
        headers.finish_ip(flow, direction, packet.ecn, protocol);
        headers
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
    }

    fn finish_ip(&mut self, flow: &ModelFlow, direction: Direction, ecn: Ecn, protocol: u8) {
        let [high, low] = (flow.ue as u16).wrapping_add(1).to_be_bytes();
        let ue = [10, 77, high.wrapping_add(1), low];
        let ends = match direction {
            Direction::Downlink => [SERVER, ue],
            Direction::Uplink => [ue, SERVER],
        };
        self.bytes[0] = 0x45;
        self.bytes[1] = ecn.bits();
        self.bytes[2..4].copy_from_slice(&(self.length as u16).to_be_bytes());
        // Don't fragment.
        (self.bytes[6], self.bytes[8], self.bytes[9]) = (0x40, 64, protocol);
        self.bytes[12..20].copy_from_slice(ends.as_flattened());
        let used = std::mem::replace(&mut self.used, IP_BYTES);
        self.check(0, 10);
        self.used = used;
    }

    /// Writes the Internet checksum (RFC 1071) of the bytes between two positions.
    fn check(&mut self, from: usize, to: usize) {
        let words = self.bytes[from..self.used].chunks(2);
        let sum: u32 = words.map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        let checksum = !(folded + (folded >> 16)) as u16;
        self.bytes[to..to + 2].copy_from_slice(&checksum.to_be_bytes());
    }

    #[expect(clippy::too_many_arguments)]
    fn add_tcp(
        &mut self,
        flow: &ModelFlow,
        index: u32,
        direction: Direction,
        ports: [u16; 2],
        segment: &Segment,
        size: u32,
        sizes: [(u32, u32); 2],
    ) {
        let [ours, theirs] = initial_numbers(index, direction);
        let from = self.used;
        ports.iter().for_each(|port| self.push(&port.to_be_bytes()));
        self.push(&ours.wrapping_add(segment.seq as u32).to_be_bytes());
        let has_ack = segment.flags.has(Flags::ACK);
        let ack = if has_ack { theirs.wrapping_add(segment.ack as u32) } else { 0 };
        self.push(&ack.to_be_bytes());
        self.push(&[0, flags(segment.flags)]);
        self.push(&segment.window.to_be_bytes());
        self.push(&[0; 4]);
        if segment.flags.has(Flags::SYN) {
            let (payload, header) = sizes[usize::from(direction != flow.direction)];
            // RFC 9293 3.7.1: the options that full segments carry are subtracted.
            let options = if segment.timestamps.is_some() { TIMESTAMPS_BYTES } else { 0 };
            let mss = payload + header.saturating_sub(40).min(options);
            let [high, low] = (mss.min(0xffff) as u16).to_be_bytes();
            self.push(&[2, 4, high, low]);
            if segment.sack_permitted {
                self.push(&[4, 2]);
            }
            if let Some(scale) = segment.window_scale {
                self.push(&[3, 3, scale]);
            }
        }
        if let Some(timestamps) = segment.timestamps {
            if !segment.flags.has(Flags::SYN) {
                self.push(&[NOP, NOP]);
            }
            self.push(&[8, 10]);
            self.push(&timestamps.value.to_be_bytes());
            self.push(&timestamps.echo.unwrap_or(0).to_be_bytes());
        }
        if !segment.sack.is_empty() {
            self.push(&[NOP, NOP, 5, (2 + 8 * segment.sack.len()) as u8]);
            for (start, end) in segment.sack.iter(segment.ack) {
                for edge in [start, end] {
                    self.push(&theirs.wrapping_add(edge as u32).to_be_bytes());
                }
            }
        }
        // Options end at a 32-bit boundary, and the packet has the model's length where possible.
        let wanted = size.saturating_sub(segment.len) as usize;
        let wanted = wanted.clamp(self.used.next_multiple_of(4), IP_BYTES + MOST_TCP_BYTES) & !3;
        while self.used < wanted {
            self.push(&[NOP]);
        }
        self.bytes[from + 12] = ((self.used - from) as u8 / 4) << 4;
    }
}

/// Initial sequence numbers, which should differ (RFC 9293 3.4.1); the one of the end that sends in
/// this direction comes first.
fn initial_numbers(index: u32, direction: Direction) -> [u32; 2] {
    let server = (2 * index + 1).wrapping_mul(0x9e37_79b9);
    let ue = (2 * index + 2).wrapping_mul(0x9e37_79b9);
    match direction {
        Direction::Downlink => [server, ue],
        Direction::Uplink => [ue, server],
    }
}

fn flags(flags: Flags) -> u8 {
    let bits = [
        (Flags::FIN, 1),
        (Flags::SYN, 2),
        (Flags::PSH, 8),
        (Flags::ACK, 16),
        (Flags::ECE, 64),
        (Flags::CWR, 128),
    ];
    bits.iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, bit)| bit).sum()
}

#[cfg(test)]
mod tests {
    use airpath_base::{Datagram, Duration, FlowId, SackBlocks, Timestamps, Tunnel as ModelTunnel};

    use super::*;
    use crate::{Reader, analyse};

    fn segment(seq: u64, ack: u64, len: u32, flags: Flags) -> Segment {
        Segment {
            seq,
            ack,
            len,
            timestamps: Some(Timestamps { value: 7, echo: Some(5) }),
            window: 1000,
            flags,
            window_scale: flags.has(Flags::SYN).then_some(7),
            sack_permitted: flags.has(Flags::SYN),
            retransmission: false,
            sack: SackBlocks::NONE,
        }
    }

    fn packet(flow: u32, size: u32, payload: Payload) -> Packet {
        let (flow, tunnel) = (FlowId(flow), ModelTunnel::default());
        Packet { flow, size, ecn: Ecn::NotEct, tunnel, journey: None, payload }
    }

    #[test]
    fn what_is_written_is_read_with_the_same_lengths() {
        let file =
            std::env::temp_dir().join(format!("airpath-model-{}.pcapng", std::process::id()));
        let tcp = ModelFlow {
            direction: Direction::Downlink,
            ue: 0,
            segments: Some([(1448, 52); 2]),
            is_echo: false,
        };
        let echo = ModelFlow { segments: None, is_echo: true, ue: 1, ..tcp };
        let ues = ["one".to_owned(), "two".to_owned()];
        let mut writer = ModelWriter::create(&file, &ues, vec![tcp, echo]).unwrap();
        let (down, up) = (Direction::Downlink, Direction::Uplink);
        let ack = Flags::SYN.with(Flags::ACK);
        let mut sacked = segment(1, 1, 0, Flags::ACK);
        assert!(sacked.sack.push(1, 1449, 2897));
        let segments = [
            (0, up, 60, segment(0, 0, 0, Flags::SYN)),
            (0, down, 60, segment(0, 1, 0, ack)),
            (20, up, 52, segment(1, 1, 0, Flags::ACK)),
            (20, down, 1500, segment(1449, 1, 1448, Flags::ACK)),
            (40, up, 64, sacked),
        ];
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        for (ms, direction, size, segment) in segments {
            writer.packet(at(ms), true, direction, &packet(0, size, Payload::Tcp(segment)));
        }
        for reply in [false, true] {
            let datagram = Datagram { sequence: 3, sent_at: at(50), reply };
            let packet = packet(1, 84, Payload::Datagram(datagram));
            writer.packet(at(50), false, if reply { up } else { down }, &packet);
        }
        assert_eq!(writer.finish().written, 7);
        let report = analyse(Reader::open(&file).unwrap()).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!((report.packets, report.bytes), (7, 60 + 60 + 52 + 1500 + 64 + 2 * 84 + 7 * 14));
        assert_eq!(report.first_time_s, Some(946_684_800.0));
        let names: Vec<_> = report.interfaces.iter().flat_map(|one| one.name.clone()).collect();
        assert_eq!(names, ["server", "one", "two"]);
        let [tcp, echo] = &report.flows[..] else { panic!("{:?}", report.flows) };
        assert_eq!((tcp.client.as_str(), tcp.client_port), ("10.77.1.1", 40_000));
        let stream = &tcp.tcp.as_ref().unwrap().from_server;
        assert_eq!(stream.options.unwrap().mss, Some(1460));
        assert_eq!((stream.data_packets, stream.largest_payload_bytes), (1, 1448));
        assert_eq!((echo.protocol.as_str(), echo.server.as_str()), ("icmp", "10.77.1.2"));
    }
}
