//! The tables of many runs: one row for each run, flow, group, ping and link.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::RecordBatch;

use crate::column::{AboutTable, Name, Names};
use crate::table::table;
use crate::tables::{Flows, Groups};
use crate::{FairnessSummary, RunSummary};

table! {
    /// The table has one row for each run.
    RunRow => Runs {
        /// `done` or `failed`.
        status: &'static str,
        /// Why the run failed. Null: if it is done.
        error: Option<String>,
        /// Length on the run's own clock. Null: if the run failed.
        duration_s: Option<f64>,
        /// Events that the simulator handled. Null: if the run failed.
        events: Option<u64>,
        /// Jain's index of the downlink's TCP flows. Null: with fewer than two flows, if nothing
        /// arrived, and if the run failed.
        jain_index_down: Option<f64>,
        /// Jain's index of the uplink's TCP flows. Null: as for the downlink.
        jain_index_up: Option<f64>,
    }
}

table! {
    /// The table has one row for each run and ping flow.
    PingsRow => PingFlows {
        /// Flow.
        flow: Name,
        /// Requests sent.
        packets_sent: u64,
        /// Requests that were dropped, or whose reply was.
        packets_lost: u64,
        /// Smallest RTT. Null: without a reply.
        rtt_ms_min: Option<f64>,
        /// Mean RTT. Null: without a reply.
        rtt_ms_mean: Option<f64>,
        /// Median RTT. Null: without a reply.
        rtt_ms_p50: Option<f64>,
        /// 95th percentile of the RTT. Null: without a reply.
        rtt_ms_p95: Option<f64>,
        /// 99th percentile of the RTT. Null: without a reply.
        rtt_ms_p99: Option<f64>,
    }
}

table! {
    /// The table has one row for each run and link. Radio buffers count as links.
    LinksRow => LinkTotals {
        /// Link.
        link: Name,
        /// What left over the run, headers included.
        throughput_mbps: f64,
        /// What could have left over the run.
        capacity_mbps: f64,
        /// Throughput over capacity.
        utilisation_fraction: f64,
        /// Mean time from arrival to departure of the packets that left. Null: if nothing left.
        queue_delay_ms_mean: Option<f64>,
        /// Median of this time. Null: if nothing left.
        queue_delay_ms_p50: Option<f64>,
        /// 95th percentile of this time. Null: if nothing left.
        queue_delay_ms_p95: Option<f64>,
        /// Packets dropped over the run, for any reason.
        dropped_packets: u64,
    }
}

/// The tables that only campaigns have, in the order of the reference.
pub(crate) const ABOUT: [(&str, AboutTable); 3] = [
    ("runs", Runs::ABOUT),
    ("pings (of a campaign)", PingFlows::ABOUT),
    ("links (of a campaign)", LinkTotals::ABOUT),
];

/// A table, and the run to which each of its rows belongs.
#[derive(Default, Debug)]
struct Of<T> {
    rows: T,
    runs: Vec<u64>,
}

/// Rows of many runs. A run is identified by its number in the campaign.
#[derive(Default, Debug)]
pub struct RunTables {
    names: Names,
    known: BTreeMap<String, Name>,
    runs: Of<Runs>,
    flows: Of<Flows>,
    groups: Of<Groups>,
    pings: Of<PingFlows>,
    links: Of<LinkTotals>,
}

impl RunTables {
    /// Appends the rows of a run that is done.
    pub fn done(&mut self, run: u64, summary: &RunSummary) {
        let jain = |direction| {
            let of = |entry: &&FairnessSummary| entry.id == direction;
            summary.fairness.iter().find(of).map(|entry| entry.jain_index)
        };
        self.runs.runs.push(run);
        self.runs.rows.push(RunRow {
            status: "done",
            error: None,
            duration_s: Some(summary.duration_s),
            events: Some(summary.events),
            jain_index_down: jain("down"),
            jain_index_up: jain("up"),
        });
        for flow in &summary.flows {
            let name = self.name(&flow.id);
            self.flows.runs.push(run);
            self.flows.rows.push(flow.row(name));
        }
        for group in &summary.groups {
            let name = self.name(&group.id);
            self.groups.runs.push(run);
            self.groups.rows.push(group.row(name));
        }
        for ping in &summary.pings {
            let (flow, rtt) = (self.name(&ping.id), ping.rtt_ms.as_ref());
            self.pings.runs.push(run);
            self.pings.rows.push(PingsRow {
                flow,
                packets_sent: ping.sent,
                packets_lost: ping.lost,
                rtt_ms_min: rtt.map(|rtt| rtt.min),
                rtt_ms_mean: rtt.map(|rtt| rtt.mean),
                rtt_ms_p50: rtt.map(|rtt| rtt.p50),
                rtt_ms_p95: rtt.map(|rtt| rtt.p95),
                rtt_ms_p99: rtt.map(|rtt| rtt.p99),
            });
        }
        for total in &summary.links {
            let (link, delay) = (self.name(&total.id), total.queue_delay_ms.as_ref());
            self.links.runs.push(run);
            self.links.rows.push(LinksRow {
                link,
                throughput_mbps: total.throughput_mbps,
                capacity_mbps: total.capacity_mbps,
                utilisation_fraction: total.utilisation,
                queue_delay_ms_mean: delay.map(|delay| delay.mean),
                queue_delay_ms_p50: delay.map(|delay| delay.p50),
                queue_delay_ms_p95: delay.map(|delay| delay.p95),
                dropped_packets: total.dropped_packets.values().sum(),
            });
        }
    }

    /// Appends the row of a run that failed.
    pub fn failed(&mut self, run: u64, error: String) {
        self.runs.runs.push(run);
        self.runs.rows.push(RunRow {
            status: "failed",
            error: Some(error),
            duration_s: None,
            events: None,
            jain_index_down: None,
            jain_index_up: None,
        });
    }

    /// Every table by name, in a fixed order; the first column is `run`.
    pub fn finish(mut self) -> Vec<(&'static str, RecordBatch)> {
        let names = &self.names;
        vec![
            ("runs", numbered(self.runs.rows.finish(names), self.runs.runs)),
            ("flows", numbered(self.flows.rows.finish(names), self.flows.runs)),
            ("groups", numbered(self.groups.rows.finish(names), self.groups.runs)),
            ("pings", numbered(self.pings.rows.finish(names), self.pings.runs)),
            ("links", numbered(self.links.rows.finish(names), self.links.runs)),
        ]
    }

    /// A name is stored once, however many runs have it.
    fn name(&mut self, name: &str) -> Name {
        if let Some(&known) = self.known.get(name) {
            return known;
        }
        let new = self.names.add(name);
        self.known.insert(name.to_owned(), new);
        new
    }
}

fn numbered(batch: RecordBatch, runs: Vec<u64>) -> RecordBatch {
    let (schema, mut columns, _) = batch.into_parts();
    let run: ArrayRef = Arc::new(UInt64Array::from(runs));
    let mut fields = vec![Arc::new(Field::new("run", run.data_type().clone(), false))];
    fields.extend(schema.fields().iter().cloned());
    columns.insert(0, run);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("a run for each row")
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::UInt64Type;

    use super::*;
    use crate::{FlowSummary, PingSummary};

    #[test]
    fn each_row_has_the_number_of_its_run() {
        let flow = |id: &str| FlowSummary { id: id.to_owned(), kind: "bulk", ..Default::default() };
        let ping = PingSummary { id: "ping".to_owned(), sent: 3, lost: 1, rtt_ms: None };
        let first = RunSummary {
            flows: vec![flow("a"), flow("b")],
            pings: vec![ping],
            ..Default::default()
        };
        let second = RunSummary { flows: vec![flow("a")], ..Default::default() };
        let mut tables = RunTables::default();
        tables.done(7, &first);
        tables.failed(8, "it broke".to_owned());
        tables.done(9, &second);
        let found: Vec<_> = tables
            .finish()
            .into_iter()
            .map(|(name, batch)| {
                let runs = batch.column(0).as_primitive::<UInt64Type>().values().to_vec();
                (name, runs)
            })
            .collect();
        let expected = vec![
            ("runs", vec![7, 8, 9]),
            ("flows", vec![7, 7, 9]),
            ("groups", vec![]),
            ("pings", vec![7]),
            ("links", vec![]),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_name_stands_once_in_the_dictionary() {
        let flow = FlowSummary { id: "a".to_owned(), kind: "bulk", ..Default::default() };
        let run = RunSummary { flows: vec![flow], ..Default::default() };
        let mut tables = RunTables::default();
        (0..5).for_each(|number| tables.done(number, &run));
        let tables = tables.finish();
        let flows = &tables.iter().find(|(name, _)| *name == "flows").unwrap().1;
        let names = flows.column_by_name("flow").unwrap();
        assert_eq!(names.as_any_dictionary().values().len(), 1);
    }
}
