//! What a capture at both ends would show about each flow: payload in order, retransmissions, round
//! trips.

mod direction;
mod rtts;

use std::collections::BTreeMap;

use airpath_base::{Direction, Duration, Histogram, Instant};
use airpath_metrics::{mbps, write_histogram};
use airpath_record::{FlowSummary, Name, Quantiles, RunSummary, SampleRow, Tables};

use self::direction::{DirectionMeter, segment_header};
use self::rtts::RttPool;
use crate::observation::live::FlowSnapshot;
use crate::traffic::{QuicSample, SenderWindow};
use crate::wire::flows::{Key, MOST_FLOWS};
use crate::wire::packet::{TCP, UDP};

/// Most flows that have a row of their own. The others share one.
pub(crate) const MOST_ROWS: usize = 1000;

/// With more rows in use, idle flows that carried least lose theirs.
const CROWDED: usize = MOST_ROWS / 4 * 3;

/// A flow without packets for longer than this is idle.
const IDLE: Duration = Duration::from_secs(1);

/// Idle time after which its histograms are folded, if histograms are scarce.
const ASLEEP: Duration = Duration::from_secs(10);

/// In [`FlowMeters::places`]: there is no row; a further bit says whether its packets are, or were,
/// among those of others.
const NO_ROW: u16 = 0x7fff;
const AMONG_OTHERS: u16 = 0x8000;

/// Meters of the flows that have a row, and one for all others.
#[derive(Debug)]
pub(crate) struct FlowMeters {
    /// Index of each flow's meter.
    places: Vec<u16>,
    meters: Vec<Meter>,
    /// Meters that are not in use.
    free: Vec<u16>,
    others: Others,
    pool: RttPool,
    /// Downlink and uplink: the receiving hosts' share of round trips.
    host_shares: [Histogram; 2],
    /// Rows without windows, which the senders know.
    samples: Vec<SampleRow>,
}

/// Sums over flows without a row.
#[derive(Debug, Default)]
struct Others {
    /// Flows whose packets are counted here, all or some.
    flows: u32,
    first: Option<Instant>,
    last: Instant,
    /// Downlink and uplink: payload that arrived, including retransmissions.
    payload: [u64; 2],
    sent: [u64; 2],
    retransmitted: [u64; 2],
    dropped: [u64; 2],
}

/// The meter of one flow.
#[derive(Debug)]
struct Meter {
    flow: u32,
    name: Name,
    id: String,
    key: Key,
    /// It keeps its row, because it is a flow of the scenario.
    pinned: bool,
    /// The flow's receiver reads at once: the time that it takes is the host's share.
    measures_host: bool,
    /// The meter is not in use.
    free: bool,
    first: Option<Instant>,
    last: Instant,
    /// Downlink and uplink.
    directions: [DirectionMeter; 2],
    /// Bytes at the last sample.
    sampled: [u64; 2],
    /// The state of the sender's socket.
    sender: Option<SenderWindow>,
    /// What the ends of a QUIC flow have delivered, and the mean RTT of the interval.
    quic: Option<(u64, Option<f64>)>,
}

/// Results of the meters, to be completed before they are written to tables.
#[derive(Debug)]
pub(crate) struct Metered {
    /// Names of the summary's flows.
    pub(crate) names: Vec<Name>,
    /// Indices in the summary.
    pub(crate) flows: BTreeMap<Key, usize>,
    pub(crate) samples: Vec<SampleRow>,
}

impl Metered {
    /// Writes the results to the tables.
    pub(crate) fn record(self, summary: &RunSummary, tables: &mut Tables) {
        self.samples.into_iter().for_each(|row| tables.sample(row));
        for (flow, &name) in summary.flows.iter().zip(&self.names) {
            tables.flow(name, flow);
        }
    }
}

impl FlowMeters {
    /// Whether a row is available.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty() || self.meters.len() < MOST_ROWS
    }

    /// Whether the flow has a row.
    #[inline]
    pub(crate) fn has_row(&self, flow: u32) -> bool {
        self.place(flow).is_some()
    }

    /// Gives the flow a row; what passed before is counted among the others. A flow of the scenario
    /// keeps its row.
    pub(crate) fn open(&mut self, flow: u32, name: Name, id: String, key: Key, pinned: bool) {
        self.know(flow);
        let place = self.free.pop().unwrap_or(self.meters.len() as u16);
        let (directions, first, last) = (<[DirectionMeter; 2]>::default(), None, Instant::ZERO);
        let meter = Meter {
            flow,
            name,
            id,
            key,
            pinned,
            measures_host: false,
            free: false,
            first,
            last,
            directions,
            sampled: [0; 2],
            sender: None,
            quic: None,
        };
        match self.meters.get_mut(usize::from(place)) {
            Some(old) => *old = meter,
            None => self.meters.push(meter),
        }
        let among_others = self.places[flow as usize] & AMONG_OTHERS;
        self.places[flow as usize] = place | among_others;
    }

    /// Notes that the receiver of a flow reads at once, so that the time that it takes is the
    /// host's share of round trips.
    pub(crate) fn measure_host(&mut self, flow: u32) {
        if let Some(place) = self.place(flow) {
            self.meters[place].measures_host = true;
        }
    }

    /// Makes the flow one of the others.
    pub(crate) fn join_others(&mut self, flow: u32) {
        self.know(flow);
        let place = &mut self.places[flow as usize];
        self.others.flows += u32::from(*place & AMONG_OTHERS == 0);
        *place = NO_ROW | AMONG_OTHERS;
    }

    fn know(&mut self, flow: u32) {
        if self.places.len() <= flow as usize {
            self.places.resize(flow as usize + 1, NO_ROW);
        }
    }

    #[inline]
    fn place(&self, flow: u32) -> Option<usize> {
        let place = self.places[flow as usize] & !AMONG_OTHERS;
        (place != NO_ROW).then_some(usize::from(place))
    }

    /// A packet of a flow enters.
    pub(crate) fn on_sent(&mut self, flow: u32, direction: Direction, now: Instant, packet: &[u8]) {
        let Some(seen) = segment_header(packet) else { return };
        let Some(place) = self.place(flow) else {
            self.others.first.get_or_insert(now);
            self.others.last = now;
            self.others.sent[direction] += 1;
            return;
        };
        let meter = &mut self.meters[place];
        meter.first.get_or_insert(now);
        meter.last = now;
        let one = &mut meter.directions[direction];
        if meter.key.protocol != TCP {
            one.packets += 1;
            return;
        }
        one.stream.on_sent(now, &seen);
        if let Some(number) = seen.acknowledgement.filter(|_| meter.measures_host) {
            let back = direction.reverse();
            let host = &mut meter.directions[back].host;
            host.on_acknowledged(now, number, &mut self.host_shares[back]);
        }
    }

    /// A packet of a flow left at `at`, and had been passed to its end by `handed`.
    pub(crate) fn on_left(
        &mut self,
        flow: u32,
        direction: Direction,
        (at, handed): (Instant, Instant),
        packet: &[u8],
    ) {
        let Some(seen) = segment_header(packet) else { return };
        let Some(place) = self.place(flow) else {
            self.others.last = self.others.last.max(at);
            self.others.payload[direction] += seen.payload;
            return;
        };
        let meter = &mut self.meters[place];
        meter.last = meter.last.max(at);
        let one = &mut meter.directions[direction];
        if meter.key.protocol != TCP {
            one.payload += seen.payload;
            return;
        }
        one.stream.on_arrived(&seen);
        if meter.measures_host {
            one.host.on_handed(handed, &seen);
        }
        if let Some(number) = seen.acknowledgement {
            let one = &mut meter.directions[direction.reverse()];
            one.on_acknowledged(at, number, seen.timestamps, &mut self.pool);
        }
    }

    /// Names in tables of the scenario's flows, which were opened first.
    pub(crate) fn names(&self) -> Vec<Name> {
        self.meters.iter().map(|meter| meter.name).collect()
    }

    /// The receiving hosts' share of round trips, downlink and uplink.
    pub(crate) const fn host_shares(&self) -> &[Histogram; 2] {
        &self.host_shares
    }

    /// Payload of a flow that arrived.
    pub(crate) fn delivered(&self, flow: u32, direction: Direction) -> u64 {
        let meter = self.place(flow).map(|place| &self.meters[place]);
        meter.map_or(0, |meter| meter.directions[direction].bytes(meter.key.protocol))
    }

    /// Stores the last state of a flow's sending socket.
    pub(crate) fn sender(&mut self, flow: u32, window: SenderWindow) {
        if let Some(place) = self.place(flow) {
            self.meters[place].sender = Some(window);
        }
    }

    /// Stores what the ends of a QUIC flow report, whose packets are encrypted.
    pub(crate) fn quic(&mut self, flow: u32, sample: QuicSample) {
        if let Some(place) = self.place(flow) {
            let meter = &mut self.meters[place];
            meter.quic = Some((sample.delivered, sample.rtt_ms));
            meter.sender = sample.window.or(meter.sender);
        }
    }

    /// A packet of a flow was dropped.
    pub(crate) fn on_drop(&mut self, flow: u32, direction: Direction) {
        match self.place(flow) {
            Some(place) => self.meters[place].directions[direction].dropped += 1,
            None => self.others.dropped[direction] += 1,
        }
    }

    /// Number of flows that share the others' row, at least for part of their packets.
    pub(crate) const fn others(&self) -> u32 {
        self.others.flows
    }

    /// Round trips that are in no distribution.
    pub(crate) const fn missed_rtts(&self) -> u64 {
        self.pool.missed
    }

    /// Updates the snapshots of all flows that have a row; one without a name is not in use.
    pub(crate) fn update(&self, flows: &mut Vec<FlowSnapshot>) {
        for (place, meter) in self.meters.iter().enumerate() {
            if flows.len() == place {
                flows.push(FlowSnapshot::of(meter.key, &meter.id));
            }
            let shown = &mut flows[place];
            if shown.key != meter.key {
                *shown = FlowSnapshot::of(meter.key, &meter.id);
            }
            shown.free = meter.free;
            let direction = meter.direction();
            let one = &meter.directions[direction];
            shown.direction = direction.name();
            shown.bytes = one.bytes(meter.key.protocol);
            shown.retransmissions = one.stream.retransmitted();
            shown.rtt_ms = one.mean_rtt.millis();
            shown.cwnd_segments = meter.sender.map(|sender| sender.cwnd_segments);
        }
    }

    /// Ends a sample interval that began at `since`; a flow's first interval begins with its first
    /// packet.
    pub(crate) fn sample(&mut self, now: Instant, since: Instant) {
        let crowded = self.meters.len() - self.free.len() > CROWDED;
        for meter in self.meters.iter_mut().filter(|meter| !meter.free) {
            let direction = meter.direction();
            let one = &mut meter.directions[direction];
            let (delivered, rtt_ms) = match meter.quic.take() {
                Some(quic) => quic,
                None => (one.bytes(meter.key.protocol), one.mean_rtt.take_millis()),
            };
            let before = meter.sampled[direction];
            meter.sampled[direction] = delivered;
            let since = since.max(meter.first.unwrap_or(since));
            let seconds = now.saturating_since(since).as_secs_f64();
            let Some(goodput_mbps) = mbps(delivered - before, seconds) else { continue };
            if delivered == before && now.saturating_since(meter.last) > QUIET {
                continue;
            }
            // Many short flows would fill the table.
            let short = meter.first.is_none_or(|first| meter.last < first + IDLE);
            if crowded && short && !meter.pinned {
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
                rtt_ms,
                inflight_segments: meter.sender.map(|sender| sender.inflight_segments),
                receive_window_segments: meter
                    .sender
                    .and_then(|sender| sender.receive_window_segments),
            });
        }
        if crowded {
            self.make_room(now);
        }
        if self.pool.is_short() {
            self.fold(now);
        }
    }

    /// Takes back rows, down to half of them, from idle flows that carried least.
    fn make_room(&mut self, now: Instant) {
        let idle = |meter: &&Meter| {
            !(meter.free || meter.pinned) && now.saturating_since(meter.last) > IDLE
        };
        let mut idle: Vec<(u64, u32)> =
            self.meters.iter().filter(idle).map(|meter| (meter.payload(), meter.flow)).collect();
        idle.sort_unstable();
        let used = self.meters.len() - self.free.len();
        for (_, flow) in idle.into_iter().take(used.saturating_sub(MOST_ROWS / 2)) {
            self.close(flow);
        }
    }

    /// Moves a flow's row to the others.
    fn close(&mut self, flow: u32) {
        let Some(place) = self.place(flow) else { return };
        let Self { meters, others, pool, .. } = self;
        let meter = &mut meters[place];
        others.first = others.first.min(meter.first).or(meter.first);
        others.last = others.last.max(meter.last);
        for (direction, one) in Direction::BOTH.into_iter().zip(&mut meter.directions) {
            others.payload[direction] += one.bytes(meter.key.protocol);
            others.sent[direction] += one.sent(meter.key.protocol);
            others.retransmitted[direction] += one.stream.retransmitted();
            others.dropped[direction] += one.dropped;
            one.rtt.clear(pool);
            *one = DirectionMeter::default();
        }
        (meter.free, meter.id) = (true, String::new());
        self.free.push(place as u16);
        self.join_others(flow);
    }

    /// Folds the round trips of flows that have been idle for long.
    fn fold(&mut self, now: Instant) {
        let Self { meters, pool, .. } = self;
        for meter in meters.iter_mut().filter(|meter| now.saturating_since(meter.last) > ASLEEP) {
            meter.directions.iter_mut().for_each(|one| one.rtt.fold(pool));
        }
        pool.refill();
    }

    /// Ends the run: summaries of the flows, in the order in which they were first seen, and one of
    /// the others, called `name` in tables.
    ///
    /// `complete` is passed the number of a flow and adds what else is known of it.
    pub(crate) fn summarise(
        &mut self,
        summary: &mut RunSummary,
        name: Option<Name>,
        at_least: bool,
        tables: &mut Tables,
        complete: &mut dyn FnMut(usize, FlowSummary) -> FlowSummary,
    ) -> Metered {
        let (mut names, mut flows) = (Vec::new(), BTreeMap::new());
        let is_one = |meter: &&Meter| !meter.free && matches!(meter.key.protocol, TCP | UDP);
        let mut meters: Vec<&Meter> = self.meters.iter().filter(is_one).collect();
        meters.sort_unstable_by_key(|meter| meter.flow);
        for meter in meters {
            flows.insert(meter.key, names.len());
            names.push(meter.name);
            let rtts = meter.directions[meter.direction()].rtt.histogram();
            if let Some(rtts) = rtts.filter(|_| meter.key.protocol == TCP) {
                write_histogram(&rtts, meter.name, tables);
            }
            summary.flows.push(complete(meter.flow as usize, meter.summary()));
        }
        if let Some(name) = name {
            names.push(name);
            summary.flows.push(self.others.summary(at_least));
        }
        Metered { names, flows, samples: std::mem::take(&mut self.samples) }
    }
}

impl Default for FlowMeters {
    fn default() -> Self {
        Self {
            places: Vec::with_capacity(MOST_FLOWS as usize),
            meters: Vec::with_capacity(MOST_ROWS),
            free: Vec::with_capacity(MOST_ROWS),
            others: Others::default(),
            pool: RttPool::default(),
            host_shares: <[Histogram; 2]>::default(),
            samples: Vec::new(),
        }
    }
}

/// A flow without packets for longer than this has no more samples.
const QUIET: Duration = Duration::from_secs(1);

impl Others {
    fn summary(&self, at_least: bool) -> FlowSummary {
        let [down, up] = self.payload;
        let direction = if up > down { Direction::Uplink } else { Direction::Downlink };
        let first = self.first.unwrap_or(Instant::ZERO);
        let seconds = self.last.saturating_since(first).as_secs_f64();
        let more = if at_least { "at least " } else { "" };
        FlowSummary {
            id: format!("others ({more}{} flows)", self.flows),
            kind: "others",
            direction: direction.name(),
            start_ns: first.as_nanos() as i64,
            end_ns: Some(self.last.as_nanos() as i64),
            bytes_delivered: self.payload[direction],
            goodput_mbps: mbps(self.payload[direction], seconds),
            segments_sent: self.sent[direction],
            packets_sent: Some(self.sent[direction]),
            packets_lost: Some(self.dropped[direction]),
            ..FlowSummary::default()
        }
    }
}

impl Meter {
    /// The direction of most of its data.
    fn direction(&self) -> Direction {
        let bytes = Direction::BOTH.map(|it| self.directions[it].bytes(self.key.protocol));
        if bytes[Direction::Uplink] > bytes[Direction::Downlink] {
            Direction::Uplink
        } else {
            Direction::Downlink
        }
    }

    /// Payload that arrived, in both directions.
    fn payload(&self) -> u64 {
        self.directions.iter().map(|one| one.bytes(self.key.protocol)).sum()
    }

    fn summary(&self) -> FlowSummary {
        let direction = self.direction();
        let one = &self.directions[direction];
        let bytes = one.bytes(self.key.protocol);
        let first = self.first.unwrap_or(Instant::ZERO);
        let seconds = self.last.saturating_since(first).as_secs_f64();
        let tcp = self.key.protocol == TCP;
        let rtt = one.rtt.histogram().and_then(|rtts| Quantiles::of(&rtts));
        FlowSummary {
            id: self.id.clone(),
            kind: if tcp { "bulk" } else { "udp" },
            direction: direction.name(),
            start_ns: first.as_nanos() as i64,
            end_ns: Some(self.last.as_nanos() as i64),
            bytes_delivered: bytes,
            goodput_mbps: mbps(bytes, seconds),
            self_inflicted_delay_ms: rtt.as_ref().map(|rtt| rtt.p95 - rtt.min),
            rtt_ms: rtt,
            segments_sent: one.sent(self.key.protocol),
            retransmitted_segments: tcp.then_some(one.stream.retransmitted()),
            packets_sent: (!tcp).then_some(one.packets),
            packets_lost: (!tcp).then_some(one.dropped),
            ..FlowSummary::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    const DOWN: Direction = Direction::Downlink;
    const UP: Direction = Direction::Uplink;

    fn packet(seq: u32, ack: u32, payload: usize) -> Vec<u8> {
        let builder = PacketBuilder::ipv4([1; 4], [2; 4], 64).tcp(1, 2, seq, 100).ack(ack);
        let mut packet = Vec::new();
        builder.write(&mut packet, &vec![0; payload]).unwrap();
        packet
    }

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn tcp() -> FlowMeters {
        let mut meters = FlowMeters::default();
        meters.open(0, Name(0), "tcp".to_owned(), Key::tcp(1, false, 40_000, 5201), false);
        meters
    }

    #[test]
    fn a_retransmission_is_counted_and_gives_no_round_trip() {
        let mut meters = tcp();
        // Sequence numbers wrap in the middle of it.
        let seq = |offset: u32| (u32::MAX - 1500).wrapping_add(offset);
        meters.on_sent(0, DOWN, ms(0), &packet(seq(0), 9, 1000));
        meters.on_sent(0, DOWN, ms(1), &packet(seq(1000), 9, 1000));
        meters.on_left(0, DOWN, (ms(10), ms(10)), &packet(seq(0), 9, 1000));
        meters.on_left(0, UP, (ms(20), ms(20)), &packet(9, seq(1000), 0));
        // The second is lost, and retransmitted.
        meters.on_drop(0, DOWN);
        meters.on_sent(0, DOWN, ms(50), &packet(seq(1000), 9, 1000));
        meters.on_left(0, DOWN, (ms(60), ms(60)), &packet(seq(1000), 9, 1000));
        meters.on_left(0, UP, (ms(70), ms(70)), &packet(9, seq(2000), 0));
        let flow = meters.meters[0].summary();
        assert_eq!((flow.direction, flow.bytes_delivered), ("down", 2000));
        assert_eq!((flow.segments_sent, flow.retransmitted_segments), (3, Some(1)));
        let rtt = flow.rtt_ms.unwrap();
        assert_eq!((rtt.min, rtt.max), (20.0, 20.0));
        // 2000 bytes in 70 ms.
        assert!((flow.goodput_mbps.unwrap() - 0.228_571).abs() < 1e-6);
    }

    fn datagram(payload: usize) -> Vec<u8> {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4([1; 4], [2; 4], 64).udp(1, 2);
        builder.write(&mut packet, &vec![0; payload]).unwrap();
        packet
    }

    /// A flow is seen, as by the forwarder.
    fn seen(meters: &mut FlowMeters, flow: u32, at: Instant) {
        let known = (flow as usize) < meters.places.len();
        if (!known || !meters.has_row(flow)) && meters.has_room() {
            let key = Key::planned(1, UDP, flow as u16, (flow >> 16) as u16);
            meters.open(flow, Name(flow), format!("flow {flow}"), key, false);
        } else if !known {
            meters.join_others(flow);
        }
        let packet = datagram(100);
        meters.on_sent(flow, UP, at, &packet);
        meters.on_left(flow, UP, (at, at), &packet);
    }

    fn summary(meters: &mut FlowMeters) -> RunSummary {
        let mut summary = RunSummary::default();
        let mut tables = Tables::default();
        meters.summarise(&mut summary, Some(Name(0)), false, &mut tables, &mut |_, seen| seen);
        summary
    }

    #[test]
    fn a_port_scan_takes_the_rows_that_there_are_and_no_more() {
        const FLOWS: u32 = 100_000;
        let mut meters = tcp();
        meters.meters[0].pinned = true;
        // A second passes per thousand; every tenth of a second is a sample.
        for flow in 1..=FLOWS {
            seen(&mut meters, flow, ms(u64::from(flow)));
            if flow % 100 == 0 {
                meters.sample(ms(u64::from(flow)), ms(u64::from(flow) - 100));
            }
        }
        assert_eq!(meters.meters.len(), MOST_ROWS);
        assert_eq!(meters.meters.capacity(), MOST_ROWS);
        assert!(meters.samples.len() < 20_000, "{} rows of samples", meters.samples.len());
        // A transfer that begins now has a row at the end.
        let late = ms(u64::from(FLOWS) + 2000);
        meters.sample(late, ms(u64::from(FLOWS)));
        (0..50).for_each(|_| seen(&mut meters, FLOWS + 1, late));
        meters.sample(late + Duration::from_secs(5), late);
        let summary = summary(&mut meters);
        let others = summary.flows.last().unwrap();
        assert_eq!(others.id, format!("others ({} flows)", meters.others()));
        let own = &summary.flows[..summary.flows.len() - 1];
        assert!(own.iter().any(|flow| flow.bytes_delivered == 5000));
        let all: u64 = summary.flows.iter().map(|flow| flow.bytes_delivered).sum();
        assert_eq!(all, u64::from(FLOWS + 50) * 100, "every byte is in one row");
    }

    #[test]
    fn the_hosts_share_is_that_of_flows_whose_readers_wait_for_nothing() {
        for measures in [true, false] {
            let mut meters = tcp();
            if measures {
                meters.measure_host(0);
            }
            for offset in [0, 1000] {
                meters.on_sent(0, DOWN, ms(0), &packet(1 + offset, 9, 1000));
                // Due after 10 ms, and a millisecond late.
                meters.on_left(0, DOWN, (ms(10), ms(11)), &packet(1 + offset, 9, 1000));
            }
            meters.on_sent(0, UP, ms(14), &packet(9, 2001, 0));
            let [down, up] = [DOWN, UP].map(|direction| &meters.host_shares()[direction]);
            let share = down.max().map(|share| share.as_nanos() / 1_000_000);
            assert_eq!((share, up.max()), (measures.then_some(3), None));
        }
    }

    #[test]
    fn a_flow_that_wakes_up_has_the_round_trips_of_before() {
        let mut meters = tcp();
        let trip = |meters: &mut FlowMeters, from: u32, at: u64, rtt: u64| {
            meters.on_sent(0, DOWN, ms(at), &packet(from, 9, 1000));
            meters.on_left(0, UP, (ms(at + rtt), ms(at + rtt)), &packet(9, from + 1000, 0));
        };
        trip(&mut meters, 1, 0, 20);
        meters.fold(ms(20_000));
        assert!(meters.meters[0].directions[DOWN].rtt.histogram().is_some());
        trip(&mut meters, 1001, 30_000, 40);
        let rtt = meters.meters[0].summary().rtt_ms.unwrap();
        assert_eq!((rtt.min, rtt.max), (20.0, 40.0));
    }

    #[test]
    fn round_trips_without_a_histogram_are_counted() {
        let mut meters = FlowMeters::default();
        for flow in 0..=rtts::MOST as u32 {
            let key = Key::tcp(1, false, flow as u16, 80);
            meters.open(flow, Name(flow), String::new(), key, false);
            meters.on_sent(flow, DOWN, ms(0), &packet(1, 9, 1000));
            meters.on_left(flow, UP, (ms(10), ms(10)), &packet(9, 1001, 0));
        }
        assert_eq!(meters.missed_rtts(), 1);
        meters.fold(ms(20_000));
        meters.on_sent(rtts::MOST as u32, DOWN, ms(20_000), &packet(1001, 9, 1000));
        meters.on_left(rtts::MOST as u32, UP, (ms(20_010), ms(20_010)), &packet(9, 2001, 0));
        assert_eq!(meters.missed_rtts(), 1);
    }
}
