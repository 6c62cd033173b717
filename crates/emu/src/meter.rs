//! What a capture at both ends would tell about each flow: payload in order, retransmissions, round
//! trips.

mod way;

use std::collections::BTreeMap;

use airpath_base::{Duration, FlowId, Instant};
use airpath_network::mbps;
use airpath_record::{FlowSummary, Name, Quantiles, RunSummary, SampleRow, Tables};

use self::way::{Seen, Way};
use crate::flows::Key;
use crate::live::FlowLook;
use crate::packet::{TCP, UDP};
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
    key: Key,
    first: Option<Instant>,
    last: Instant,
    /// Down and up.
    ways: [Way; 2],
    /// At the last sample.
    sampled: [u64; 2],
    /// What the sender's socket says.
    sender: Option<SenderWindow>,
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
    pub(crate) fn add(&mut self, name: Name, id: String, key: Key) {
        let ways = [Way::new(), Way::new()];
        let (first, last, sampled) = (None, Instant::ZERO, [0; 2]);
        let sender = None;
        self.flows.push(Meter { name, id, key, first, last, ways, sampled, sender });
    }

    /// A packet of a flow enters.
    pub(crate) fn on_sent(&mut self, flow: u32, direction: usize, now: Instant, packet: &[u8]) {
        let Some(seen) = Seen::of(packet) else { return };
        let meter = &mut self.flows[flow as usize];
        meter.first.get_or_insert(now);
        meter.last = now;
        let way = &mut meter.ways[direction];
        if meter.key.protocol == TCP {
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
        if meter.key.protocol != TCP {
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
        meter.ways[direction].bytes(meter.key.protocol)
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
                key: meter.key,
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
            look.bytes = way.bytes(meter.key.protocol);
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
            let delivered = way.bytes(meter.key.protocol);
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
            if !matches!(meter.key.protocol, TCP | UDP) {
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
        let [down, up] = [0, 1].map(|way| self.ways[way].bytes(self.key.protocol));
        usize::from(up > down)
    }

    fn summary(&self) -> FlowSummary {
        let direction = self.direction();
        let way = &self.ways[direction];
        let bytes = way.bytes(self.key.protocol);
        let first = self.first.unwrap_or(Instant::ZERO);
        let seconds = self.last.saturating_since(first).as_secs_f64();
        let tcp = self.key.protocol == TCP;
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
        meters.add(Name(0), "tcp".to_owned(), Key::tcp(1, false, 40_000, 5201));
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
