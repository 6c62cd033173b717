//! Writes the observations to the tables of a run.

use std::collections::BTreeMap;
use std::net::IpAddr;

use airpath_base::Direction;
use airpath_record::{AckRow, EventRow, Exit, FlowSummary, Name, RunSummary, SampleRow, Tables};

use super::track::{Happened, Point, SlowStartExit, Track};
use super::{Observed, ObserverReport};
use crate::wire::flows::Key;

/// What is needed to match senders to the flows of a run.
pub(crate) struct Run<'a> {
    /// CLOCK_MONOTONIC in nanoseconds at the model's time 0.
    pub(crate) origin_ns: u64,
    /// Names of the ends, server first.
    pub(crate) ends: &'a [String],
    /// MTU of each end in bytes, server first.
    pub(crate) mtu: &'a [u32],
    /// Ends by address.
    pub(crate) addresses: &'a BTreeMap<IpAddr, usize>,
    /// Names in tables of the summary's flows.
    pub(crate) names: &'a [Name],
    /// Flows that the model knows, by their indices in the summary.
    pub(crate) flows: &'a BTreeMap<Key, usize>,
}

impl Observed {
    /// Adds windows to samples, rows of acknowledgements and events, and a sender's own counters to
    /// the summary of its flow.
    pub(crate) fn complete(
        mut self,
        run: &Run<'_>,
        samples: &mut [SampleRow],
        summary: &mut RunSummary,
        tables: &mut Tables,
    ) -> ObserverReport {
        self.report.sockets = self.tracks.len() as u64;
        let capacities: Vec<(String, f64)> =
            summary.links.iter().map(|link| (link.id.clone(), link.capacity_mbps)).collect();
        let (mut acks, mut events) = (Vec::new(), Vec::new());
        for track in self.tracks.values() {
            let key = track.key(run.addresses);
            let Some((key, &index)) = key.and_then(|key| Some((key, run.flows.get(&key)?))) else {
                self.report.unmatched_sockets += 1;
                continue;
            };
            let (name, flow) = (run.names[index], &mut summary.flows[index]);
            // Of a flow's two ends, the one that sends most of the data counts.
            if (flow.direction == Direction::Downlink.name()) != (track.first.end == 0) {
                continue;
            }
            let rows = samples.iter_mut().filter(|row| row.flow == name);
            rows.for_each(|row| fill(row, &track.points, run.origin_ns));
            acks.extend(track.acks.iter().flatten().map(|point| (name, point)));
            events.extend(track.events.iter().map(|event| (name, event)));
            let capacity = slowest(&capacities, &run.ends[key.end], flow.direction);
            let mtu = run.mtu[track.first.end];
            complete_summary(flow, track, run.origin_ns, capacity, mtu, self.report.by == "bpf");
        }
        acks.sort_by_key(|(_, point)| point.time_ns);
        for (name, point) in acks {
            tables.ack(ack_row(name, point, run.origin_ns));
        }
        events.sort_by_key(|(_, event)| event.time_ns);
        for (name, event) in events {
            tables.event(event_row(name, event, run.origin_ns));
        }
        self.report
    }
}

impl Track {
    /// The flow to which the end belongs; `addresses` has the ends of UEs.
    pub(super) fn key(&self, addresses: &BTreeMap<IpAddr, usize>) -> Option<Key> {
        let first = &self.first;
        let (end, ue_port, server_port) = if first.end == 0 {
            (*addresses.get(&first.remote)?, first.remote_port, first.local_port)
        } else {
            (first.end, first.local_port, first.remote_port)
        };
        Some(Key::tcp(end, first.v6, ue_port, server_port))
    }
}

fn time(time_ns: u64, origin_ns: u64) -> i64 {
    time_ns as i64 - origin_ns as i64
}

/// A sample gets the last state before it, if the sender existed.
fn fill(row: &mut SampleRow, points: &[Point], origin_ns: u64) {
    let before = points.partition_point(|point| time(point.time_ns, origin_ns) <= row.time_ns);
    let Some(point) = before.checked_sub(1).map(|last| &points[last]) else { return };
    row.cwnd_segments = Some(point.state.cwnd);
    row.ssthresh_segments = point.state.ssthresh;
    row.srtt_ms = point.state.srtt_us.map(millis);
    row.inflight_segments = Some(point.state.in_flight);
    row.receive_window_segments = point.state.receive_window;
}

fn ack_row(flow: Name, point: &Point, origin_ns: u64) -> AckRow {
    let hystart = point.hystart.unwrap_or_default();
    AckRow {
        time_ns: time(point.time_ns, origin_ns),
        flow,
        acked_bytes: point.state.acked_bytes,
        cwnd_segments: point.state.cwnd,
        ssthresh_segments: point.state.ssthresh,
        srtt_ms: point.state.srtt_us.map(millis),
        rtt_ms: point.rtt_us.map(millis),
        inflight_segments: point.state.in_flight,
        round_min_rtt_ms: hystart.round_min_rtt_us.map(millis),
        round_rtt_threshold_ms: hystart.threshold_us.map(millis),
        round_samples: hystart.samples,
        ack_train_ms: hystart.ack_train_us.map(millis),
        ack_train_limit_ms: hystart.ack_train_limit_us.map(millis),
        css: hystart.css,
    }
}

fn event_row(flow: Name, event: &Happened, origin_ns: u64) -> EventRow {
    EventRow {
        flow: Some(flow),
        reason: event.reason,
        cwnd_segments: event.cwnd,
        value: event.value,
        packets: event.packets,
        ..EventRow::new(time(event.time_ns, origin_ns), event.kind)
    }
}

fn complete_summary(
    flow: &mut FlowSummary,
    track: &Track,
    origin_ns: u64,
    capacity_mbps: Option<f64>,
    mtu: u32,
    every_ack: bool,
) {
    flow.congestion.get_or_insert(track.congestion);
    flow.rto_count = Some(track.timeouts);
    // Between two polls an undo may go unnoticed.
    flow.undo_count = every_ack.then_some(track.undos);
    if !every_ack && flow.slow_start_exit.is_some() {
        // The flow's own socket reports the same.
        return;
    }
    flow.slow_start_exit = track.exit.map(|exit| {
        let SlowStartExit { time_ns, cwnd, reason, min_rtt_us, round_rtt_us } = exit;
        let since = time(time_ns, origin_ns) - flow.start_ns;
        let window_bits = f64::from(cwnd) * f64::from(mtu) * 8.0;
        Exit {
            time_s: since as f64 / 1e9,
            cwnd_segments: cwnd,
            reason,
            // Mb/s times us gives bits.
            bdp_fraction: capacity_mbps
                .map(|capacity| window_bits / (capacity * f64::from(min_rtt_us)))
                .filter(|fraction| fraction.is_finite()),
            min_rtt_ms: millis(min_rtt_us),
            round_rtt_ms: round_rtt_us.map(millis),
        }
    });
}

/// Mean capacity of the slowest link in a direction, in Mb/s.
fn slowest(capacities: &[(String, f64)], ue: &str, direction: &str) -> Option<f64> {
    let here =
        |id: &str| id.starts_with(&format!("{direction}.")) || id == format!("{ue}.{direction}");
    let mine = capacities.iter().filter(|(id, _)| here(id)).map(|(_, capacity)| *capacity);
    mine.min_by(f64::total_cmp)
}

fn millis(micros: u32) -> f64 {
    f64::from(micros) / 1e3
}
