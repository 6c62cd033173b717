//! What a capture at both ends would tell about each flow: payload in order, retransmissions, round
//! trips.

use std::collections::{BTreeMap, VecDeque};

use airpath_base::{Duration, FlowId, Histogram, Instant};
use airpath_network::mbps;
use airpath_record::{FlowSummary, Name, Quantiles, RunSummary, SampleRow, Tables};

use crate::flows::Key;
use crate::live::FlowLook;
use crate::packet::{ACK, FIN, Layout, SYN, TCP, UDP};
use crate::traffic::SenderWindow;

/// Flows by number.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    flows: Vec<Meter>,
    /// Rows without windows: the senders know those.
    samples: Vec<SampleRow>,
}

/// One flow.
#[derive(Debug)]
struct Meter {
    name: Name,
    id: String,
    protocol: u8,
    first: Option<Instant>,
    last: Instant,
    /// Down and up.
    ways: [Way; 2],
    /// At the last sample.
    sampled: [u64; 2],
    /// What the sender's socket says.
    sender: Option<SenderWindow>,
}

/// One direction of a flow.
#[derive(Debug)]
struct Way {
    /// Packets with payload that entered.
    sent: u64,
    retransmitted: u64,
    /// Packets that left, and those dropped.
    arrived: u64,
    dropped: u64,
    /// Highest offset that was sent, and what of it arrived.
    sender: Offsets,
    highest: u64,
    receiver: Offsets,
    stream: Stream,
    /// UDP: payload that arrived.
    payload: u64,
    /// Segments under way, in order.
    under_way: VecDeque<Segment>,
    rtt: Histogram,
    /// Since the last sample.
    rtt_sum: Duration,
    rtt_count: u64,
}

/// A segment that was not acknowledged when it was last asked for.
#[derive(Clone, Copy, Debug)]
struct Segment {
    end: u64,
    /// When it was sent last.
    sent: Instant,
    again: bool,
}

/// Sequence numbers as offsets in 64 bits.
#[derive(Clone, Copy, Debug, Default)]
struct Offsets {
    last: Option<(u32, u64)>,
}

/// What arrived of a byte stream.
#[derive(Debug, Default)]
struct Stream {
    /// All before is there.
    edge: Option<u64>,
    /// Ranges beyond it, by their beginning.
    ahead: BTreeMap<u64, u64>,
    delivered: u64,
}

/// What of a packet matters here.
struct Seen {
    seq: u32,
    ack: Option<u32>,
    syn: bool,
    /// It has that option.
    timestamps: bool,
    payload: u64,
    /// Sequence space.
    length: u64,
}

/// NOP, NOP, kind 8, length 10: where the option stands in established connections (RFC 7323 A).
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];

/// Offsets begin in the middle, so that what came before the first packet seen has one too.
const BASE: u64 = 1 << 40;

impl Offsets {
    /// The offset nearest to the last one.
    fn of(&mut self, seq: u32) -> u64 {
        let offset = match self.last {
            None => BASE,
            Some((last, offset)) => {
                offset.wrapping_add(i64::from(seq.wrapping_sub(last) as i32) as u64)
            }
        };
        self.last = Some((seq, offset));
        offset
    }
}

impl Stream {
    /// Bytes `[from, to)` arrived.
    fn add(&mut self, from: u64, to: u64) {
        let edge = self.edge.get_or_insert(from);
        if to <= *edge {
            return;
        }
        if from > *edge {
            let end = self.ahead.entry(from).or_insert(to);
            *end = to.max(*end);
            return;
        }
        let before = *edge;
        *edge = to;
        while let Some(entry) = self.ahead.first_entry()
            && *entry.key() <= *edge
        {
            *edge = entry.remove().max(*edge);
        }
        self.delivered += *edge - before;
    }
}

impl Way {
    fn new() -> Self {
        Self {
            sent: 0,
            retransmitted: 0,
            arrived: 0,
            dropped: 0,
            sender: Offsets::default(),
            highest: 0,
            receiver: Offsets::default(),
            stream: Stream::default(),
            payload: 0,
            under_way: VecDeque::new(),
            rtt: Histogram::new(),
            rtt_sum: Duration::ZERO,
            rtt_count: 0,
        }
    }

    fn on_sent(&mut self, now: Instant, seen: &Seen) {
        if seen.payload == 0 {
            return;
        }
        self.sent += 1;
        let from = self.sender.of(seen.seq);
        let end = from + seen.length;
        if end <= self.highest {
            self.retransmitted += 1;
            let first = self.under_way.partition_point(|segment| segment.end <= from);
            let again = self.under_way.iter_mut().skip(first);
            for segment in again.take_while(|segment| segment.end <= end) {
                (segment.sent, segment.again) = (now, true);
            }
        } else {
            self.highest = end;
            self.under_way.push_back(Segment { end, sent: now, again: false });
        }
    }

    /// An acknowledgement of this direction's data reached the sender. The round trip is that of the
    /// first segment that it newly acknowledges; if one of them was sent twice, since that one was
    /// sent last, which is what the timestamp echoes (RFC 7323 4.3). Without `timestamps` nothing
    /// tells then (RFC 6298 3).
    fn on_ack(&mut self, now: Instant, ack: u32, timestamps: bool) {
        if self.highest == 0 {
            return;
        }
        let mut offsets = self.sender;
        let ack = offsets.of(ack);
        let (mut first, mut again) = (None, false);
        while let Some(&segment) = self.under_way.front().filter(|segment| segment.end <= ack) {
            self.under_way.pop_front();
            first.get_or_insert(segment.sent);
            again |= segment.again;
        }
        if let Some(sent) = first.filter(|_| timestamps || !again) {
            let rtt = now.saturating_since(sent);
            self.rtt.record(rtt);
            self.rtt_sum += rtt;
            self.rtt_count += 1;
        }
    }

    /// Payload that arrived; TCP's in order.
    const fn bytes(&self, protocol: u8) -> u64 {
        if protocol == TCP { self.stream.delivered } else { self.payload }
    }
}

impl Seen {
    fn of(packet: &[u8]) -> Option<Self> {
        let layout = Layout::of(packet)?;
        if let Some(header) = layout.tcp_header_bytes(packet) {
            let tcp = &packet[layout.ip_bytes..];
            let word =
                |at: usize| u32::from_be_bytes([tcp[at], tcp[at + 1], tcp[at + 2], tcp[at + 3]]);
            let (flags, payload) = (tcp[13], (packet.len() - header) as u64);
            let syn = flags & SYN != 0;
            return Some(Self {
                seq: word(4),
                ack: (flags & ACK != 0).then(|| word(8)),
                syn,
                timestamps: tcp[20..].starts_with(&TIMESTAMPS),
                payload,
                length: payload + u64::from(syn) + u64::from(flags & FIN != 0),
            });
        }
        let headers = layout.ip_bytes + if layout.protocol == UDP { 8 } else { 0 };
        let payload = packet.len().saturating_sub(headers) as u64;
        Some(Self { seq: 0, ack: None, syn: false, timestamps: false, payload, length: payload })
    }
}

/// What the meters leave, to be completed before it goes into tables.
#[derive(Debug)]
pub(crate) struct Metered {
    /// Of the summary's flows.
    pub(crate) names: Vec<Name>,
    /// Places in the summary.
    pub(crate) flows: BTreeMap<Key, usize>,
    pub(crate) samples: Vec<SampleRow>,
}

impl Metered {
    /// Ends up in the tables.
    pub(crate) fn record(self, summary: &RunSummary, tables: &mut Tables) {
        self.samples.into_iter().for_each(|row| tables.sample(row));
        for (flow, &name) in summary.flows.iter().zip(&self.names) {
            tables.flow(name, flow);
        }
    }
}

impl Meters {
    /// The next flow.
    pub(crate) fn add(&mut self, name: Name, id: String, protocol: u8) {
        let ways = [Way::new(), Way::new()];
        let (first, last, sampled) = (None, Instant::ZERO, [0; 2]);
        let sender = None;
        self.flows.push(Meter { name, id, protocol, first, last, ways, sampled, sender });
    }

    /// A packet of a flow enters.
    pub(crate) fn on_sent(&mut self, flow: u32, direction: usize, now: Instant, packet: &[u8]) {
        let Some(seen) = Seen::of(packet) else { return };
        let meter = &mut self.flows[flow as usize];
        meter.first.get_or_insert(now);
        meter.last = now;
        let way = &mut meter.ways[direction];
        if meter.protocol == TCP {
            way.on_sent(now, &seen);
        } else {
            way.sent += 1;
        }
    }

    /// A packet of a flow left.
    pub(crate) fn on_left(&mut self, flow: u32, direction: usize, at: Instant, packet: &[u8]) {
        let Some(seen) = Seen::of(packet) else { return };
        let meter = &mut self.flows[flow as usize];
        meter.last = meter.last.max(at);
        let way = &mut meter.ways[direction];
        way.arrived += 1;
        if meter.protocol != TCP {
            way.payload += seen.payload;
            return;
        }
        if seen.length > 0 {
            let from = way.receiver.of(seen.seq);
            // The SYN's number is no byte.
            let from = from + u64::from(seen.syn);
            way.stream.add(from, from + seen.payload);
        }
        if let Some(ack) = seen.ack {
            meter.ways[1 - direction].on_ack(at, ack, seen.timestamps);
        }
    }

    /// Of all flows, in tables.
    pub(crate) fn names(&self) -> Vec<Name> {
        self.flows.iter().map(|meter| meter.name).collect()
    }

    /// Payload of a flow that arrived.
    pub(crate) fn delivered(&self, flow: u32, direction: usize) -> u64 {
        let meter = &self.flows[flow as usize];
        meter.ways[direction].bytes(meter.protocol)
    }

    /// What a flow's sending socket said last.
    pub(crate) fn sender(&mut self, flow: u32, window: SenderWindow) {
        self.flows[flow as usize].sender = Some(window);
    }

    /// A packet of a flow was dropped.
    pub(crate) fn on_drop(&mut self, flow: u32, direction: usize) {
        self.flows[flow as usize].ways[direction].dropped += 1;
    }

    /// Fills in looks at all flows.
    pub(crate) fn update(&self, flows: &mut Vec<FlowLook>) {
        for meter in &self.flows[flows.len()..] {
            flows.push(FlowLook {
                id: meter.id.as_str().into(),
                direction: "down",
                bytes: 0,
                retransmissions: 0,
                rtt_ms: None,
                cwnd_segments: None,
            });
        }
        for (meter, look) in self.flows.iter().zip(flows) {
            let direction = meter.direction();
            let way = &meter.ways[direction];
            look.direction = if direction == 0 { "down" } else { "up" };
            look.bytes = way.bytes(meter.protocol);
            look.retransmissions = way.retransmitted;
            let count = way.rtt_count;
            look.rtt_ms = (count > 0).then(|| (way.rtt_sum / count).as_millis_f64());
            look.cwnd_segments = meter.sender.map(|sender| sender.cwnd_segments);
        }
    }

    /// A sample interval of so many seconds ends.
    pub(crate) fn sample(&mut self, now: Instant, seconds: f64) {
        for meter in &mut self.flows {
            let direction = meter.direction();
            let way = &mut meter.ways[direction];
            let delivered = way.bytes(meter.protocol);
            let before = meter.sampled[direction];
            let rtt = way.rtt_sum;
            let count = std::mem::take(&mut way.rtt_count);
            way.rtt_sum = Duration::ZERO;
            meter.sampled[direction] = delivered;
            let Some(goodput_mbps) = mbps(delivered - before, seconds) else { continue };
            if delivered == before && now.saturating_since(meter.last) > QUIET {
                continue;
            }
            self.samples.push(SampleRow {
                time_ns: now.as_nanos() as i64,
                flow: meter.name,
                goodput_mbps,
                delivered_bytes: delivered,
                cwnd_segments: meter.sender.map(|sender| sender.cwnd_segments),
                ssthresh_segments: meter.sender.and_then(|sender| sender.ssthresh_segments),
                srtt_ms: meter.sender.map(|sender| sender.srtt_ms),
                rtt_ms: (count > 0).then(|| (rtt / count).as_millis_f64()),
                inflight_segments: meter.sender.map(|sender| sender.inflight_segments),
            });
        }
    }

    /// The run is over: summaries of the flows.
    ///
    /// `complete` adds what else is known of the how manieth flow.
    pub(crate) fn summarise(
        &mut self,
        summary: &mut RunSummary,
        keys: impl Iterator<Item = (Key, FlowId)>,
        complete: &dyn Fn(usize, FlowSummary) -> FlowSummary,
    ) -> Metered {
        let keys: BTreeMap<u32, Key> = keys.map(|(key, flow)| (flow.0, key)).collect();
        let (mut names, mut flows) = (Vec::new(), BTreeMap::new());
        for (index, meter) in (0..).zip(&self.flows) {
            if !matches!(meter.protocol, TCP | UDP) {
                continue;
            }
            flows.extend(keys.get(&index).map(|&key| (key, names.len())));
            names.push(meter.name);
            summary.flows.push(complete(index as usize, meter.summary()));
        }
        Metered { names, flows, samples: std::mem::take(&mut self.samples) }
    }
}

/// A flow without packets for longer has no more samples.
const QUIET: Duration = Duration::from_secs(1);

impl Meter {
    /// The way of most of its data.
    fn direction(&self) -> usize {
        let [down, up] = [0, 1].map(|way| self.ways[way].bytes(self.protocol));
        usize::from(up > down)
    }

    fn summary(&self) -> FlowSummary {
        let direction = self.direction();
        let way = &self.ways[direction];
        let bytes = way.bytes(self.protocol);
        let first = self.first.unwrap_or(Instant::ZERO);
        let seconds = self.last.saturating_since(first).as_secs_f64();
        let tcp = self.protocol == TCP;
        let rtt = Quantiles::of(&way.rtt);
        FlowSummary {
            id: self.id.clone(),
            kind: if tcp { "bulk" } else { "udp" },
            direction: if direction == 0 { "down" } else { "up" },
            start_ns: first.as_nanos() as i64,
            end_ns: Some(self.last.as_nanos() as i64),
            bytes_delivered: bytes,
            goodput_mbps: mbps(bytes, seconds),
            self_inflicted_delay_ms: rtt.as_ref().map(|rtt| rtt.p95 - rtt.min),
            rtt_ms: rtt,
            segments_sent: way.sent,
            retransmitted_segments: tcp.then_some(way.retransmitted),
            packets_sent: (!tcp).then_some(way.sent),
            packets_lost: (!tcp).then_some(way.dropped),
            ..FlowSummary::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    use super::*;

    fn packet(seq: u32, ack: u32, payload: usize) -> Vec<u8> {
        let builder = PacketBuilder::ipv4([1; 4], [2; 4], 64).tcp(1, 2, seq, 100).ack(ack);
        let mut packet = Vec::new();
        builder.write(&mut packet, &vec![0; payload]).unwrap();
        packet
    }

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn tcp() -> Meters {
        let mut meters = Meters::default();
        meters.add(Name(0), "tcp".to_owned(), TCP);
        meters
    }

    #[test]
    fn a_retransmission_is_counted_and_gives_no_round_trip() {
        let mut meters = tcp();
        // Numbers wrap in the middle of it.
        let seq = |offset: u32| (u32::MAX - 1500).wrapping_add(offset);
        meters.on_sent(0, 0, ms(0), &packet(seq(0), 9, 1000));
        meters.on_sent(0, 0, ms(1), &packet(seq(1000), 9, 1000));
        meters.on_left(0, 0, ms(10), &packet(seq(0), 9, 1000));
        meters.on_left(0, 1, ms(20), &packet(9, seq(1000), 0));
        // The second is lost, and sent again.
        meters.on_drop(0, 0);
        meters.on_sent(0, 0, ms(50), &packet(seq(1000), 9, 1000));
        meters.on_left(0, 0, ms(60), &packet(seq(1000), 9, 1000));
        meters.on_left(0, 1, ms(70), &packet(9, seq(2000), 0));
        let flow = meters.flows[0].summary();
        assert_eq!((flow.direction, flow.bytes_delivered), ("down", 2000));
        assert_eq!((flow.segments_sent, flow.retransmitted_segments), (3, Some(1)));
        let rtt = flow.rtt_ms.unwrap();
        assert_eq!((rtt.min, rtt.max), (20.0, 20.0));
        // 2000 bytes in 70 ms.
        assert!((flow.goodput_mbps.unwrap() - 0.228_571).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn every_byte_counts_once_whatever_the_order(
            first in any::<u32>(),
            order in Just((1..40usize).collect::<Vec<_>>()).prop_shuffle(),
            again in prop::collection::vec(0usize..40, 0..20),
        ) {
            let mut meters = tcp();
            for index in std::iter::once(0).chain(order).chain(again) {
                let seq = first.wrapping_add(index as u32 * 700);
                meters.on_left(0, 1, ms(1), &packet(seq, 0, 700));
            }
            prop_assert_eq!(meters.flows[0].ways[1].stream.delivered, 40 * 700);
            prop_assert!(meters.flows[0].ways[1].stream.ahead.is_empty());
        }
    }
}
