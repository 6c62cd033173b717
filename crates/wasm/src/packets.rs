//! The packets in a time window of a run: when each was sent, was at the base station, and arrived,
//! if it did.

use std::collections::{BTreeMap, VecDeque};

use airpath_base::{Direction, Flags, Instant, Packet, Payload};
use airpath_scenario::Scenario;
use airpath_sim::{Options, Passage, SeenAt, simulate_with};
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::request::{Host, Progress};
use crate::tables::Streams;

/// One packet between the ends.
#[derive(Serialize)]
struct Crossed {
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

/// Runs the scenario with the table `radio_log`. Shows the packets to which something happened in
/// the time window: they were sent, were at the base station, or arrived.
pub(crate) fn packets(
    mut scenario: Scenario,
    seed: Option<u64>,
    [from_s, to_s]: [f64; 2],
    most: usize,
    host: Host<'_>,
    streams: &mut Streams,
) -> Result<Value, Failure> {
    if !(from_s >= 0.0 && to_s > from_s) {
        return Err(Failure::Error(format!("there is no time from {from_s} s to {to_s} s")));
    }
    scenario.run.radio_log = scenario.radio.is_some();
    let seed = seed.unwrap_or(scenario.run.seed);
    let (mut rows, mut ways) = (Vec::new(), Ways::new());
    let mut on_packet = |seen: &Passage| {
        let at_s = seen.at.as_secs_f64();
        let shown = from_s <= at_s && at_s <= to_s;
        let new = crossed(at_s, seen.direction, &seen.packet);
        let key = (new.down, new.flow, new.sequence, new.ack.unwrap_or(0));
        let passes = seen.place == SeenAt::BaseStation;
        if !passes && (seen.place == SeenAt::Server) == new.down {
            let packet = seen.packet;
            ways.entry(key).or_default().push_back(UnderWay { packet, row: new, shown });
            return;
        }
        let Some(here) = ways.get_mut(&key) else { return };
        let same = |one: &UnderWay| {
            one.packet.payload == seen.packet.payload && !(passes && one.row.base_s.is_some())
        };
        let Some(index) = here.iter().position(same) else { return };
        here[index].shown |= shown;
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
    rows.extend(lost);
    rows.sort_by(|one, other| one.sent_s.total_cmp(&other.sent_s));
    let more = rows.len().saturating_sub(most);
    rows.truncate(most);
    let flows: Vec<&str> = scenario.flows.iter().map(|flow| flow.id.as_str()).collect();
    let log: Vec<_> =
        run.tables.finish(false).into_iter().filter(|(name, _)| *name == "radio_log").collect();
    let tables = streams.write(&log)?;
    Ok(json!({ "packets": rows, "more": more, "flows": flows, "tables": tables }))
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
    Crossed { sent_s, base_s: None, arrived_s: None, flow, down, bytes, kind, sequence, ack }
}
