//! The segments of one TCP flow, one by one: when each was sent, and when it was acknowledged.
//!
//! [`analyse`](crate::analyse) keeps no packets. What wants them reads the file again, for one flow.

use std::collections::BTreeMap;
use std::path::Path;

use airpath_metrics::SequenceSpace;
use serde::Serialize;

use super::packets::{PacketCollector, Packets};
use super::tcp_header;
use super::walk::{Ends, MOST_PACKETS, Seen, walk};
use crate::column::column;
use crate::decode::{ACK, FIN, IpPacket, RST, SYN, TCP, TcpHeader};
use crate::read::Reader;
use crate::{CaptureError, FlowReport};

/// The data of one end, and the other's acknowledgements. Times are nanoseconds after the capture's
/// first packet. The lists of one group have the same length.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Segments {
    /// When each segment with payload passed.
    #[serde(serialize_with = "column")]
    pub sent_ns: Vec<u64>,
    /// Its number in the file, from 1 on.
    #[serde(serialize_with = "column")]
    pub frame: Vec<u64>,
    /// Its first byte, after the first one of all.
    #[serde(serialize_with = "column")]
    pub offset: Vec<u64>,
    /// Bytes after its headers.
    #[serde(serialize_with = "column")]
    pub payload: Vec<u32>,
    /// Its bytes of IP.
    #[serde(serialize_with = "column")]
    pub size: Vec<u32>,
    /// It was sent again before it was acknowledged: how often.
    #[serde(serialize_with = "column")]
    pub sent_again: Vec<u32>,
    /// Some of its bytes had been sent before.
    #[serde(serialize_with = "column")]
    pub is_again: Vec<bool>,
    /// It begins behind bytes that had not been seen then.
    #[serde(serialize_with = "column")]
    pub after_gap: Vec<bool>,
    /// Its timestamp (RFC 7323), if it has one.
    #[serde(serialize_with = "column")]
    pub timestamp: Vec<Option<u32>>,
    /// The other end's timestamp that it echoes.
    #[serde(serialize_with = "column")]
    pub echo: Vec<Option<u32>>,
    /// When it was first acknowledged, also selectively; none for what was sent again itself.
    #[serde(serialize_with = "column")]
    pub acked_ns: Vec<Option<u64>>,
    /// When each acknowledgement passed.
    #[serde(serialize_with = "column")]
    pub ack_ns: Vec<u64>,
    /// Payload that the receiver has said to have until then, also above gaps.
    #[serde(serialize_with = "column")]
    pub delivered: Vec<u64>,
    /// All before this byte is acknowledged, as `offset`.
    #[serde(serialize_with = "column")]
    pub ack_offset: Vec<u64>,
    /// The window as it stands in the header.
    #[serde(serialize_with = "column")]
    pub window: Vec<u16>,
    /// The acknowledgement's timestamp.
    #[serde(serialize_with = "column")]
    pub ack_timestamp: Vec<Option<u32>>,
    /// Bytes of IP of the acknowledgement.
    #[serde(serialize_with = "column")]
    pub ack_size: Vec<u32>,
    /// It has no payload.
    #[serde(serialize_with = "column")]
    pub is_pure: Vec<bool>,
    /// When each selective acknowledgement came (RFC 2018).
    #[serde(serialize_with = "column")]
    pub sack_ns: Vec<u64>,
    /// Its first byte, as `offset`.
    #[serde(serialize_with = "column")]
    pub sack_from: Vec<u64>,
    /// The byte behind its last one.
    #[serde(serialize_with = "column")]
    pub sack_to: Vec<u64>,
    /// The first SYN, the answer to it, and the answer to that.
    pub handshake_ns: [Option<u64>; 3],
    /// When the end with the data sent a FIN.
    pub fin_ns: Option<u64>,
    /// There are more segments than are kept.
    pub cut: bool,
}

/// What is wanted of a flow: the segments of one of its ends, or all of its packets.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// The data of the client (true) or of the server, and the other's acknowledgements.
    Segments(&'a FlowReport, bool),
    /// Every packet, of any protocol.
    Packets(&'a FlowReport),
}

/// What was wanted.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Found {
    /// Of TCP.
    Segments(Box<Segments>),
    /// Of any protocol.
    Packets(Packets),
}

/// Reads flows of a file again, packet by packet, in one pass; one answer for each that is wanted, with
/// the first `most` packets of each (4 million at the most).
///
/// # Errors
///
/// As [`analyse`](crate::analyse).
pub fn collect(
    file: &Path,
    wanted: &[Wanted<'_>],
    most: usize,
) -> Result<Vec<Found>, CaptureError> {
    collect_from(Reader::open(file)?, wanted, most)
}

/// The same of a capture that is open, at its beginning.
pub(crate) fn collect_from(
    reader: Reader,
    wanted: &[Wanted<'_>],
    most: usize,
) -> Result<Vec<Found>, CaptureError> {
    let mut collectors: Vec<_> = wanted.iter().map(|&one| AnyCollector::new(one, most)).collect();
    walk(reader, |ip, seen| {
        for one in &mut collectors {
            match one {
                AnyCollector::Segments(one) => one.add(ip, seen),
                AnyCollector::Packets(one) => one.add(ip, seen),
            }
        }
    })?;
    let found = |one: AnyCollector<'_>| match one {
        AnyCollector::Segments(one) => Found::Segments(Box::new(one.segments)),
        AnyCollector::Packets(one) => Found::Packets(one.finish()),
    };
    Ok(collectors.into_iter().map(found).collect())
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
    let mut collector = Collector::new(flow, from_client, MOST_PACKETS);
    walk(Reader::open(file)?, |ip, seen| collector.add(ip, seen))?;
    Ok(collector.segments)
}

enum AnyCollector<'a> {
    Segments(Box<Collector<'a>>),
    Packets(Box<PacketCollector<'a>>),
}

impl<'a> AnyCollector<'a> {
    fn new(wanted: Wanted<'a>, most: usize) -> Self {
        match wanted {
            Wanted::Segments(flow, from_client) => {
                Self::Segments(Box::new(Collector::new(flow, from_client, most)))
            }
            Wanted::Packets(flow) => Self::Packets(Box::new(PacketCollector::new(flow, most))),
        }
    }
}

struct Collector<'a> {
    ends: Ends<'a>,
    from_client: bool,
    /// So many segments, and so many acknowledgements, are kept.
    most: usize,
    space: SequenceSpace,
    latest: u64,
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
    fn new(flow: &'a FlowReport, from_client: bool, most: usize) -> Self {
        Self {
            ends: Ends::of(flow),
            from_client,
            most: most.min(MOST_PACKETS),
            space: SequenceSpace::default(),
            latest: 0,
            first: None,
            highest: 0,
            acked: 0,
            delivered: 0,
            outstanding: BTreeMap::new(),
            segments: Segments::default(),
        }
    }

    fn add(&mut self, ip: &IpPacket<'_>, seen: Seen) {
        if ip.protocol != TCP {
            return;
        }
        let Some(by_client) = self.ends.sent_by_client(ip, seen) else { return };
        let Ok(header) = tcp_header(ip) else { return };
        // Where times of the file go back the packet passed when the one before it did.
        let at = self.latest.max(seen.at_ns);
        self.latest = at;
        let seen = Seen { at_ns: at, ..seen };
        self.note_handshake(at, by_client, &header);
        if header.has(RST) || self.segments.cut {
            return;
        }
        if by_client == self.from_client {
            self.on_data(seen, ip.length, &header);
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

    fn on_data(&mut self, seen: Seen, size: u32, header: &TcpHeader) {
        let at = seen.at_ns;
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
        if self.segments.sent_ns.len() == self.most {
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
        segments.frame.push(seen.frame);
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
            if self.segments.sack_ns.len() < self.most {
                self.segments.sack_ns.push(at);
                self.segments.sack_from.push(from.saturating_sub(first));
                self.segments.sack_to.push(to.saturating_sub(first));
            }
            let covered: Vec<_> = (self.outstanding.range(from..to))
                .map(|(&start, &index)| (start, index))
                .filter(|&(start, index)| start + u64::from(self.segments.payload[index]) <= to)
                .collect();
            for (start, index) in covered {
                self.outstanding.remove(&start);
                self.deliver(index, at);
            }
        }
        if self.segments.ack_ns.len() == self.most {
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
}
