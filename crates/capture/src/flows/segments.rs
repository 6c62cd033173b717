//! The segments of one TCP flow, one by one: when each was sent, and when it was acknowledged.
//!
//! [`analyse`](crate::analyse) keeps no packets. What wants them reads the file again, for one flow.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use airpath_base::Instant;
use airpath_metrics::SequenceSpace;
use serde::Serialize;

use super::key::Key;
use super::{Fragments, ports, tcp_header};
use crate::decode::{ACK, FIN, IpPacket, RST, SYN, TCP, TcpHeader, decode};
use crate::read::Reader;
use crate::{CaptureError, FlowReport};

/// Segments of a flow that are kept; what comes later is not.
const MOST_SEGMENTS: usize = 4_000_000;

/// The data of one end, and the other's acknowledgements. Times are nanoseconds after the capture's
/// first packet. The lists of one group have the same length.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Segments {
    /// When each segment with payload passed.
    pub sent_ns: Vec<u64>,
    /// Its first byte, after the first one of all.
    pub offset: Vec<u64>,
    /// Bytes after its headers.
    pub payload: Vec<u32>,
    /// Its bytes of IP.
    pub size: Vec<u32>,
    /// It was sent again before it was acknowledged: how often.
    pub sent_again: Vec<u32>,
    /// Some of its bytes had been sent before.
    pub is_again: Vec<bool>,
    /// It begins behind bytes that had not been seen then.
    pub after_gap: Vec<bool>,
    /// Its timestamp (RFC 7323), if it has one.
    pub timestamp: Vec<Option<u32>>,
    /// The other end's timestamp that it echoes.
    pub echo: Vec<Option<u32>>,
    /// When it was first acknowledged, also selectively; none for what was sent again itself.
    pub acked_ns: Vec<Option<u64>>,
    /// When each acknowledgement passed.
    pub ack_ns: Vec<u64>,
    /// Payload that the receiver has said to have until then, also above gaps.
    pub delivered: Vec<u64>,
    /// All before this byte is acknowledged, as `offset`.
    pub ack_offset: Vec<u64>,
    /// The window as it stands in the header.
    pub window: Vec<u16>,
    /// The acknowledgement's timestamp.
    pub ack_timestamp: Vec<Option<u32>>,
    /// Bytes of IP of the acknowledgement.
    pub ack_size: Vec<u32>,
    /// It has no payload.
    pub is_pure: Vec<bool>,
    /// The first SYN, the answer to it, and the answer to that.
    pub handshake_ns: [Option<u64>; 3],
    /// When the end with the data sent a FIN.
    pub fin_ns: Option<u64>,
    /// There are more segments than are kept.
    pub cut: bool,
}

/// Reads the segments of a flow of a file; `from_client` says whose data.
///
/// # Errors
///
/// As [`analyse`](crate::analyse).
pub fn segments(
    file: &Path,
    flow: &FlowReport,
    from_client: bool,
) -> Result<Segments, CaptureError> {
    let mut reader = Reader::open(file)?;
    let mut link_types: Vec<u16> = Vec::new();
    let mut fragments = Fragments::default();
    let mut collector = Collector::new(flow, from_client);
    let mut first = None;
    loop {
        let packet = match reader.packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => break,
            Err(error) if first.is_none() => return Err(error),
            // The report says where the file is broken.
            Err(_) => break,
        };
        let epoch = *first.get_or_insert(packet.time);
        let (interface, time, length) = (packet.interface, packet.time, packet.length);
        let known = link_types.get(interface).copied();
        let data;
        let (link_type, bytes) = match known {
            Some(known) => (known, packet.data),
            None => {
                data = packet.data.to_vec();
                link_types = reader.interfaces().iter().map(|one| one.link_type).collect();
                (link_types[interface], &data[..])
            }
        };
        if interface != flow.interface {
            continue;
        }
        let Ok(ip) = decode(link_type, bytes, length) else { continue };
        match ip.fragment {
            None => collector.add(&ip, interface, time, epoch),
            Some(fragment) => {
                let point = (interface as u64) << 8 | ip.tunnel as u64;
                if let Some(whole) = fragments.add(&ip, fragment, point) {
                    let body = &whole.header[..whole.kept];
                    let (length, body_length) = (whole.length, whole.body_length);
                    let ip = IpPacket { fragment: None, length, body_length, body, ..ip };
                    collector.add(&ip, interface, time, epoch);
                }
            }
        }
        if collector.segments.cut {
            break;
        }
    }
    Ok(collector.finish())
}

struct Collector<'a> {
    flow: &'a FlowReport,
    /// Client and server.
    addresses: [Option<u128>; 2],
    from_client: bool,
    /// Nanoseconds after the first packet of the capture between which the flow is alive.
    range: [f64; 2],
    space: SequenceSpace,
    /// The first byte of data, and the byte after the last that was seen.
    first: Option<u64>,
    highest: u64,
    acked: u64,
    delivered: u64,
    /// By first byte, the number of the segment that no acknowledgement has covered.
    outstanding: BTreeMap<u64, usize>,
    segments: Segments,
}

impl<'a> Collector<'a> {
    fn new(flow: &'a FlowReport, from_client: bool) -> Self {
        let address = |text: &str| {
            text.parse().ok().map(|address| match address {
                IpAddr::V4(address) => u128::from(u32::from(address)),
                IpAddr::V6(address) => u128::from(address),
            })
        };
        // A nanosecond is lost in seconds as a fraction.
        let range = [flow.start_s - 1e-6, flow.start_s + flow.duration_s + 1e-6];
        Self {
            flow,
            addresses: [address(&flow.client), address(&flow.server)],
            from_client,
            range: range.map(|seconds| seconds * 1e9),
            space: SequenceSpace::default(),
            first: None,
            highest: 0,
            acked: 0,
            delivered: 0,
            outstanding: BTreeMap::new(),
            segments: Segments::default(),
        }
    }

    fn add(&mut self, ip: &IpPacket<'_>, interface: usize, now: Instant, epoch: Instant) {
        if ip.protocol != TCP || ip.tunnel != self.flow.tunnel {
            return;
        }
        let Ok(pair) = ports(ip) else { return };
        let (key, _) = Key::of(ip, pair, interface);
        let ends = [Some(ip.source), Some(ip.destination)];
        let [client, server] = [self.flow.client_port, self.flow.server_port];
        let by_client = ends == self.addresses && pair == [client, server];
        let [there, back] = self.addresses;
        let by_server = ends == [back, there] && pair == [server, client];
        let at = now.saturating_since(epoch).as_nanos();
        let is_alive = self.range[0] <= at as f64 && at as f64 <= self.range[1];
        if key.protocol != TCP || !is_alive || !(by_client || by_server) {
            return;
        }
        let Ok(header) = tcp_header(ip) else { return };
        self.note_handshake(at, by_client, &header);
        if header.has(RST) {
            return;
        }
        if by_client == self.from_client {
            self.on_data(at, ip.length, &header);
        } else if header.has(ACK) {
            self.on_ack(at, ip.length, &header);
        }
    }

    fn note_handshake(&mut self, at: u64, by_client: bool, header: &TcpHeader) {
        let [syn, answer, last] = &mut self.segments.handshake_ns;
        match (header.has(SYN), by_client) {
            // What is sent again tells no round trip.
            (true, true) if answer.is_none() => *syn = Some(at),
            (true, false) if last.is_none() => *answer = Some(at),
            (false, true) if answer.is_some() => {
                last.get_or_insert(at);
            }
            _ => {}
        }
    }

    fn on_data(&mut self, at: u64, size: u32, header: &TcpHeader) {
        let from = self.space.offset(header.sequence);
        if header.has(FIN) {
            self.segments.fin_ns.get_or_insert(at);
        }
        if header.has(SYN) {
            (self.first, self.highest) = (Some(from + 1), from + 1);
            self.acked = self.acked.max(from + 1);
            return;
        }
        if header.payload == 0 {
            return;
        }
        if self.segments.sent_ns.len() == MOST_SEGMENTS {
            self.segments.cut = true;
            return;
        }
        if self.first.is_none() {
            (self.first, self.highest) = (Some(from), from);
        }
        let (first, to) = (self.first.unwrap_or(from), from + u64::from(header.payload));
        let is_again = from < self.highest;
        let index = self.segments.sent_ns.len();
        if is_again {
            for (_, &before) in self.outstanding.range(..to).rev().take(64) {
                let start = self.segments.offset[before] + first;
                if start + u64::from(self.segments.payload[before]) > from {
                    self.segments.sent_again[before] += 1;
                }
            }
        } else {
            self.outstanding.insert(from, index);
        }
        let segments = &mut self.segments;
        segments.sent_ns.push(at);
        segments.offset.push(from.saturating_sub(first));
        segments.payload.push(header.payload);
        segments.size.push(size);
        segments.sent_again.push(0);
        segments.is_again.push(is_again);
        segments.after_gap.push(from > self.highest);
        segments.timestamp.push(header.timestamps.map(|timestamps| timestamps.value));
        segments.echo.push(header.timestamps.map(|timestamps| timestamps.echo));
        segments.acked_ns.push(None);
        self.highest = self.highest.max(to);
    }

    fn on_ack(&mut self, at: u64, size: u32, header: &TcpHeader) {
        let Some(first) = self.first else { return };
        let offset = |number: u32| {
            // Only numbers of segments move the space on.
            let mut space = self.space;
            space.offset(number)
        };
        let number = offset(header.acknowledgement);
        let blocks: Vec<_> = header.sack[..header.sack_blocks]
            .iter()
            .map(|&(from, to)| (offset(from), offset(to)))
            .filter(|&(from, to)| number < from && from < to)
            .collect();
        if number > self.acked {
            self.acked = number;
            let behind = self.outstanding.split_off(&number);
            for index in std::mem::replace(&mut self.outstanding, behind).into_values() {
                self.deliver(index, at);
            }
        }
        for (from, to) in blocks {
            let covered: Vec<_> = (self.outstanding.range(from..to))
                .map(|(&start, &index)| (start, index))
                .filter(|&(start, index)| start + u64::from(self.segments.payload[index]) <= to)
                .collect();
            for (start, index) in covered {
                self.outstanding.remove(&start);
                self.deliver(index, at);
            }
        }
        if self.segments.ack_ns.len() == MOST_SEGMENTS {
            self.segments.cut = true;
            return;
        }
        let segments = &mut self.segments;
        segments.ack_ns.push(at);
        segments.delivered.push(self.delivered);
        segments.ack_offset.push(number.saturating_sub(first));
        segments.window.push(header.window);
        segments.ack_timestamp.push(header.timestamps.map(|timestamps| timestamps.value));
        segments.ack_size.push(size);
        segments.is_pure.push(header.payload == 0);
    }

    fn deliver(&mut self, index: usize, at: u64) {
        self.delivered += u64::from(self.segments.payload[index]);
        self.segments.acked_ns[index] = Some(at);
    }

    fn finish(self) -> Segments {
        self.segments
    }
}
