//! The packets of a stretch of a run: when each was sent, and when it arrived if it did.

use std::collections::VecDeque;

use airpath_base::{Direction, Flags, Instant, Packet, Payload};
use airpath_scenario::Scenario;
use airpath_sim::{Passage, simulate_seen};
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::request::{Host, Progress};
use crate::tables::Streams;

/// One packet between the ends.
#[derive(Serialize)]
struct Crossed {
    sent_s: f64,
    /// Null: it was lost, or it is under way when the run ends.
    arrived_s: Option<f64>,
    flow: u32,
    down: bool,
    bytes: u32,
    /// What it is: `data`, `retransmission`, `ack`, `syn`, `fin`, `request`, `reply` or `datagram`.
    kind: &'static str,
    /// First byte of a segment, or the number of a datagram.
    sequence: u64,
    /// The next byte that the sender expects. Null: of datagrams and a first SYN.
    ack: Option<u64>,
}

/// A packet that was sent in the stretch.
struct Sent {
    packet: Packet,
    direction: Direction,
    row: usize,
}

/// Runs the scenario up to the end of the stretch, with the table `radio_log`.
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
    let (mut rows, mut sent, mut more) = (Vec::new(), VecDeque::<Sent>::new(), 0u64);
    let mut on_packet = |seen: &Passage| {
        let at_s = seen.at.as_secs_f64();
        let leaves = seen.at_server == (seen.direction == Direction::Downlink);
        if leaves && from_s <= at_s && at_s <= to_s {
            if rows.len() == most {
                more += 1;
                return;
            }
            let (packet, direction) = (seen.packet, seen.direction);
            sent.push_back(Sent { packet, direction, row: rows.len() });
            rows.push(crossed(at_s, direction, &packet));
        } else if !leaves && at_s >= from_s {
            let same = |one: &Sent| {
                one.direction == seen.direction
                    && one.packet.flow == seen.packet.flow
                    && one.packet.payload == seen.packet.payload
            };
            if let Some(found) = sent.iter().position(same).and_then(|at| sent.remove(at)) {
                rows[found.row].arrived_s = Some(at_s);
            }
        }
    };
    let mut told = |now: Instant| host(Progress::Run { time_s: now.as_secs_f64(), events: 0 });
    let run = simulate_seen(&scenario, seed, &mut told, &mut on_packet)?;
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
    Crossed { sent_s, arrived_s: None, flow, down, bytes, kind, sequence, ack }
}
