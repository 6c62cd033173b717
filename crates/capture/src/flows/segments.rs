//! The segments of one TCP flow, one by one: when each was sent, and when it was acknowledged.
//!
//! [`analyse`](crate::analyse) keeps no packets. To see them, the file is read again for one flow.

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
use crate::{CaptureError, CaptureReport, FlowReport};

/// The data of one end, and the other end's acknowledgements. Times are nanoseconds after the
/// capture's first packet. The lists of one group have the same length.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = crate::column::columns))]
pub struct Segments {
    /// When each segment with payload passed.
    #[serde(serialize_with = "column")]
    pub sent_ns: Vec<u64>,
    /// Frame number of each segment in the file, from 1.
    #[serde(serialize_with = "column")]
    pub frame: Vec<u64>,
    /// First byte of each segment, relative to the first byte of the stream.
    #[serde(serialize_with = "column")]
    pub offset: Vec<u64>,
    /// Bytes after the segment's headers.
    #[serde(serialize_with = "column")]
    pub payload: Vec<u32>,
    /// IP length of the segment, in bytes.
    #[serde(serialize_with = "column")]
    pub size: Vec<u32>,
    /// How often the segment was retransmitted before it was acknowledged.
    #[serde(serialize_with = "column")]
    pub sent_again: Vec<u32>,
    /// Whether some of the segment's bytes had been sent before.
    #[serde(serialize_with = "column")]
    pub is_again: Vec<bool>,
    /// Whether the segment begins behind bytes that had not been seen by then.
    #[serde(serialize_with = "column")]
    pub after_gap: Vec<bool>,
    /// Timestamp of the segment (RFC 7323), if it has one.
    #[serde(serialize_with = "column")]
    pub timestamp: Vec<Option<u32>>,
    /// The other end's timestamp that the segment echoes.
    #[serde(serialize_with = "column")]
    pub echo: Vec<Option<u32>>,
    /// When the segment was first acknowledged, cumulatively or selectively; none for a
    /// retransmission.
    #[serde(serialize_with = "column")]
    pub acked_ns: Vec<Option<u64>>,
    /// When each acknowledgement passed.
    #[serde(serialize_with = "column")]
    pub ack_ns: Vec<u64>,
    /// Payload that the receiver had acknowledged until then, including data above gaps.
    #[serde(serialize_with = "column")]
    pub delivered: Vec<u64>,
    /// Cumulative acknowledgement: all bytes before this one are acknowledged; counted as `offset`
    /// is.
    #[serde(serialize_with = "column")]
    pub ack_offset: Vec<u64>,
    /// The window as it stands in the header, not scaled.
    #[serde(serialize_with = "column")]
    pub window: Vec<u16>,
    /// Timestamp of the acknowledgement.
    #[serde(serialize_with = "column")]
    pub ack_timestamp: Vec<Option<u32>>,
    /// Whether the acknowledgement carries no payload.
    #[serde(serialize_with = "column")]
    pub is_pure: Vec<bool>,
    /// When each selective acknowledgement (RFC 2018) passed.
    #[serde(serialize_with = "column")]
    pub sack_ns: Vec<u64>,
    /// First byte of the selectively acknowledged block; counted as `offset` is.
    #[serde(serialize_with = "column")]
    pub sack_from: Vec<u64>,
    /// The byte after the last one of the block.
    #[serde(serialize_with = "column")]
    pub sack_to: Vec<u64>,
    /// Times of the first SYN, of the answer to it, and of the answer to that.
    pub handshake_ns: [Option<u64>; 3],
    /// When the end that sends the data sent a FIN.
    pub fin_ns: Option<u64>,
    /// The flow has more segments than were kept.
    pub cut: bool,
}

/// What to collect of a flow: the segments of one of its ends, or all of its packets.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// The data of the client (true) or of the server, and the other end's acknowledgements.
    Segments(&'a FlowReport, bool),
    /// Every packet, of any protocol.
    Packets(&'a FlowReport),
}

/// What was collected.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Found {
    /// Answer to [`Wanted::Segments`].
    Segments(Box<Segments>),
    /// Answer to [`Wanted::Packets`].
    Packets(Packets),
}

/// Reads flows of a file again, packet by packet, in one pass that ends when nothing more can be
/// added. Returns one answer for each entry in `wanted`, with the first `most` packets of each (at
/// most 4 million).
///
/// # Errors
///
/// As [`analyse`](crate::analyse).
pub fn collect(
    file: &Path,
    report: &CaptureReport,
    wanted: &[Wanted<'_>],
    most: usize,
) -> Result<Vec<Found>, CaptureError> {
    collect_from(open_again(file, report)?, wanted, most)
}

/// Opens the file of a report, to read its packets in the order of their times.
fn open_again(file: &Path, report: &CaptureReport) -> Result<Reader, CaptureError> {
    let is_in_order = report.backward_times == 0 && report.sorted_packets == 0;
    if is_in_order { Reader::open(file) } else { Reader::open_sorted(file) }
}

/// Like [`collect`], for a capture that is open and at its beginning.
pub(crate) fn collect_from(
    reader: Reader,
    wanted: &[Wanted<'_>],
    most: usize,
) -> Result<Vec<Found>, CaptureError> {
    let mut collectors: Vec<_> = wanted.iter().map(|&one| AnyCollector::new(one, most)).collect();
    walk(reader, |ip, seen| {
        collectors.iter_mut().for_each(|one| one.add(ip, seen));
        collectors.iter().all(AnyCollector::is_complete)
    })?;
    let found = |one: AnyCollector<'_>| match one {
        AnyCollector::Segments(one) => Found::Segments(Box::new(one.segments)),
        AnyCollector::Packets(one) => Found::Packets(one.finish()),
    };
    Ok(collectors.into_iter().map(found).collect())
}

/// Reads the segments of a flow of a file; `from_client` selects whose data.
///
/// # Errors
///
/// As [`analyse`](crate::analyse).
pub fn segments(
    file: &Path,
    report: &CaptureReport,
    flow: &FlowReport,
    from_client: bool,
) -> Result<Segments, CaptureError> {
    let mut collector = Collector::new(flow, from_client, MOST_PACKETS);
    walk(open_again(file, report)?, |ip, seen| {
        collector.add(ip, seen);
        collector.is_complete()
    })?;
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

    fn add(&mut self, ip: &IpPacket<'_>, seen: Seen) {
        match self {
            Self::Segments(one) => one.add(ip, seen),
            Self::Packets(one) => one.add(ip, seen),
        }
    }

    /// Whether no further packet can change what was collected.
    fn is_complete(&self) -> bool {
        match self {
            Self::Segments(one) => one.is_complete(),
            Self::Packets(one) => one.is_complete(),
        }
    }
}

struct Collector<'a> {
    ends: Ends<'a>,
    from_client: bool,
    /// Whether the flow has a SYN of either end.
    has_opening: bool,
    /// Most segments, and most acknowledgements, that are kept.
    most: usize,
    space: SequenceSpace,
    latest: u64,
    /// The first byte of data, and the byte after the last one that was seen.
    first: Option<u64>,
    highest: u64,
    acked: u64,
    delivered: u64,
    /// The last window of the other end was zero.
    is_closed: bool,
    /// The byte after the last one that probed a closed window.
    probed: u64,
    /// Index of each segment that no acknowledgement has covered, by its first byte.
    outstanding: BTreeMap<u64, usize>,
    segments: Segments,
}

impl<'a> Collector<'a> {
    fn new(flow: &'a FlowReport, from_client: bool, most: usize) -> Self {
        Self {
            ends: Ends::of(flow),
            from_client,
            has_opening: (flow.tcp.as_ref()).is_some_and(|tcp| {
                tcp.from_client.options.is_some() || tcp.from_server.options.is_some()
            }),
            most: most.min(MOST_PACKETS),
            space: SequenceSpace::default(),
            latest: 0,
            first: None,
            highest: 0,
            acked: 0,
            delivered: 0,
            is_closed: false,
            probed: 0,
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
        // Where times in the file go backwards, a packet gets the time of the one before it.
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
            self.on_ack(at, &header);
        }
    }

    /// Whether no further packet can change what was collected.
    fn is_complete(&self) -> bool {
        let [_, _, last] = self.segments.handshake_ns;
        self.segments.cut && (last.is_some() || !self.has_opening)
    }

    fn note_handshake(&mut self, at: u64, by_client: bool, header: &TcpHeader) {
        let [syn, answer, last] = &mut self.segments.handshake_ns;
        match (header.has(SYN), by_client) {
            // A retransmission gives no round-trip time.
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
        if self.is_closed && header.payload == 1 && from == self.acked && from == self.highest {
            // It probes a closed window (RFC 9293 3.8.6.1).
            self.probed = from + 1;
            return;
        }
        if header.payload == 1 && from + 1 == self.highest && self.acked == self.highest {
            // It keeps the connection alive (RFC 9293 3.8.4).
            return;
        }
        if self.segments.sent_ns.len() == self.most {
            self.segments.cut = true;
            return;
        }
        if from > self.highest && from == self.probed {
            // The receiver took the byte of a probe.
            (self.highest, self.delivered) = (from, self.delivered + 1);
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

    fn on_ack(&mut self, at: u64, header: &TcpHeader) {
        let Some(first) = self.first else { return };
        let offset = |number: u32| {
            // Only sequence numbers of segments advance the sequence space.
            let mut space = self.space;
            space.offset(number)
        };
        let number = offset(header.acknowledgement);
        self.is_closed = header.window == 0;
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
        segments.is_pure.push(header.payload == 0);
    }

    fn deliver(&mut self, index: usize, at: u64) {
        self.delivered += u64::from(self.segments.payload[index]);
        self.segments.acked_ns[index] = Some(at);
    }
}
