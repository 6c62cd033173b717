//! The packets in a time window of a run: when each was sent, was at the base station, and arrived,
//! if it did.

use std::collections::{BTreeMap, VecDeque};

use airpath_base::{Direction, Flags, Instant, Packet, Payload};
use airpath_scenario::Scenario;
use airpath_sim::{Options, Passage, SeenAt, simulate_with};
use arrow::array::{AsArray, BooleanArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::request::{Host, Progress};
use crate::tables::Streams;

/// Which packets to return.
pub(crate) struct Window {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    /// The largest number of packets.
    pub(crate) most: usize,
    /// Whether they are an even sample of all packets, not the first ones.
    pub(crate) sampled: bool,
    /// Whether packets that are in flight during the whole window belong to it.
    pub(crate) in_flight: bool,
}

/// One packet between the ends.
#[derive(Serialize)]
struct Crossed {
    /// Number within its flow and direction.
    #[serde(skip)]
    number: u64,
    sent_s: f64,
    /// When it was at the base station. Null: there is no radio, or it did not get that far.
    base_s: Option<f64>,
    /// When it arrived. Null: it was lost, or it is in transit when the run ends.
    arrived_s: Option<f64>,
    flow: u32,
    down: bool,
    bytes: u32,
    /// Kind: `data`, `retransmission`, `ack`, `syn`, `fin`, `request`, `reply` or `datagram`.
    kind: &'static str,
    /// First byte of a segment, or the number of a datagram.
    sequence: u64,
    /// The next byte that the sender expects. Null for datagrams and a first SYN.
    ack: Option<u64>,
}

/// A packet in transit.
struct UnderWay {
    packet: Packet,
    row: Crossed,
    /// Whether something happened to it in the time window.
    shown: bool,
}

/// Packets in transit by direction, flow, sequence, acknowledgement. Among equal ones the first
/// sent comes first.
type Ways = BTreeMap<(bool, u32, u64, u64), VecDeque<UnderWay>>;

/// The rows to return. A sample keeps every packet whose number in its flow is a multiple of `every`.
struct Rows {
    rows: Vec<Crossed>,
    every: u64,
    most: usize,
    sampled: bool,
}

impl Rows {
    fn push(&mut self, row: Crossed) {
        if !row.number.is_multiple_of(self.every) {
            return;
        }
        self.rows.push(row);
        while self.sampled && self.rows.len() > self.most && self.every < 1 << 62 {
            self.every *= 2;
            self.rows.retain(|row| row.number.is_multiple_of(self.every));
        }
    }
}

/// Runs the scenario with the table `radio_log`. Shows the packets to which something happened in
/// the time window: they were sent, were at the base station, or arrived.
pub(crate) fn packets(
    mut scenario: Scenario,
    seed: Option<u64>,
    window: &Window,
    host: Host<'_>,
    streams: &mut Streams,
) -> Result<Value, Failure> {
    let &Window { from_s, to_s, most, sampled, in_flight } = window;
    if !(from_s >= 0.0 && to_s > from_s) {
        return Err(Failure::Error(format!("there is no time from {from_s} s to {to_s} s")));
    }
    scenario.run.radio_log = scenario.radio.is_some() && !sampled;
    let seed = seed.unwrap_or(scenario.run.seed);
    let mut rows = Rows { rows: Vec::new(), every: 1, most, sampled };
    let (mut ways, mut numbers) = (Ways::new(), BTreeMap::<(bool, u32), u64>::new());
    let mut on_packet = |seen: &Passage| {
        let at_s = seen.at.as_secs_f64();
        let shown = from_s <= at_s && at_s <= to_s;
        let mut new = crossed(at_s, seen.direction, &seen.packet);
        let key = (new.down, new.flow, new.sequence, new.ack.unwrap_or(0));
        let passes = seen.place == SeenAt::BaseStation;
        if !passes && (seen.place == SeenAt::Server) == new.down {
            let number = numbers.entry((new.down, new.flow)).or_default();
            new.number = *number;
            *number += 1;
            let packet = seen.packet;
            ways.entry(key).or_default().push_back(UnderWay { packet, row: new, shown });
            return;
        }
        let Some(here) = ways.get_mut(&key) else { return };
        let same = |one: &UnderWay| {
            one.packet.payload == seen.packet.payload && !(passes && one.row.base_s.is_some())
        };
        let Some(index) = here.iter().position(same) else { return };
        let spans = in_flight && here[index].row.sent_s < from_s && at_s > to_s;
        here[index].shown |= shown || spans;
        if passes {
            here[index].row.base_s = Some(at_s);
            return;
        }
        if let Some(mut one) = here.remove(index).filter(|one| one.shown) {
            one.row.arrived_s = Some(at_s);
            rows.push(one.row);
        }
        if here.is_empty() {
            ways.remove(&key);
        }
    };
    let mut told =
        |now: Instant, _: u64| host(Progress::Run { time_s: now.as_secs_f64(), events: 0 });
    let options = Options { on_packet: Some(&mut on_packet), ..Options::default() };
    let run = simulate_with(&scenario, seed, options, &mut told)?;
    let lost = ways.into_values().flatten().filter(|one| one.shown).map(|one| one.row);
    lost.for_each(|row| rows.push(row));
    let Rows { mut rows, every, .. } = rows;
    rows.sort_by(|one, other| one.sent_s.total_cmp(&other.sent_s));
    let more = rows.len().saturating_sub(most);
    rows.truncate(most);
    let flows: Vec<&str> = scenario.flows.iter().map(|flow| flow.id.as_str()).collect();
    let log = run.tables.finish(false).into_iter().filter(|(name, _)| *name == "radio_log");
    let log = log.map(|(name, rows)| {
        let shown = rows.iter().map(|batch| events(batch, [from_s, to_s]));
        Ok((name, shown.collect::<Result<Vec<_>, ArrowError>>()?))
    });
    let log = log.collect::<Result<Vec<_>, ArrowError>>();
    let log = log.map_err(|error| Failure::Error(format!("table radio_log: {error}")))?;
    let tables = streams.write(&log)?;
    Ok(json!({ "packets": rows, "more": more, "every": every, "flows": flows, "tables": tables }))
}

/// The rows of `radio_log` within the window, without those of packets, which the packets themselves
/// show. States of DRX and RRC are kept from the whole run: one lasts until the next.
fn events(log: &RecordBatch, [from_s, to_s]: [f64; 2]) -> Result<RecordBatch, ArrowError> {
    let column = |name| log.column_by_name(name).expect("radio_log has these columns");
    let times = column("time_ns").as_primitive::<Int64Type>();
    let kept = column("event").as_string::<i32>().iter().zip(times.values());
    let kept = kept.map(|(event, time_ns)| match event.unwrap_or_default() {
        "drx" | "rrc" => true,
        "packet_enters" | "packet_leaves" => false,
        _ => (from_s..=to_s).contains(&Instant::from_nanos(time_ns.cast_unsigned()).as_secs_f64()),
    });
    filter_record_batch(log, &kept.map(Some).collect::<BooleanArray>())
}

fn crossed(sent_s: f64, direction: Direction, packet: &Packet) -> Crossed {
    let (kind, sequence, ack) = match &packet.payload {
        Payload::Tcp(segment) => {
            let kind = match segment {
                one if one.flags.has(Flags::SYN) => "syn",
                one if one.flags.has(Flags::FIN) => "fin",
                one if one.retransmission => "retransmission",
                one if one.len > 0 => "data",
                _ => "ack",
            };
            (kind, segment.seq, segment.flags.has(Flags::ACK).then_some(segment.ack))
        }
        Payload::Datagram(datagram) if datagram.reply => ("reply", datagram.sequence, None),
        Payload::Datagram(datagram) => ("request", datagram.sequence, None),
        Payload::Opaque(number) => ("datagram", *number, None),
    };
    let down = direction == Direction::Downlink;
    let (flow, bytes) = (packet.flow.0, packet.size);
    Crossed {
        number: 0,
        sent_s,
        base_s: None,
        arrived_s: None,
        flow,
        down,
        bytes,
        kind,
        sequence,
        ack,
    }
}
