//! The tables of a run.

use arrow::array::{AsArray, UInt64Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;

use crate::acks::{AckRow, AckTable, BareAckRow};
use crate::column::{AboutColumn, AboutTable, Name, Names};
use crate::table::table;

table! {
    /// The table has one row for each sample interval and each TCP or UDP flow, from the flow's
    /// start to its end.
    SampleRow => Samples {
        /// End of the interval.
        time_ns: i64,
        /// Flow.
        flow: Name,
        /// Rate of the in-order payload that arrived in the interval.
        goodput_mbps: f64,
        /// In-order payload since the start.
        delivered_bytes: u64,
        /// Congestion window at the end of the interval. Null: for UDP, and in an emulation that
        /// does not observe the sender.
        cwnd_segments: Option<u32>,
        /// Slow start threshold. Null: before the first congestion event, for UDP, and in an
        /// emulation that does not observe the sender.
        ssthresh_segments: Option<u32>,
        /// Smoothed RTT. Null: before the first RTT, for UDP, and in an emulation that does not
        /// observe the sender.
        srtt_ms: Option<f64>,
        /// Mean RTT of the interval's acknowledgements. Null: if none of them gave an RTT, and for
        /// UDP.
        rtt_ms: Option<f64>,
        /// Segments in flight (RFC 6675 pipe). Null: for UDP, and in an emulation that does not
        /// observe the sender.
        inflight_segments: Option<u32>,
        /// Receive window that the peer advertised last, in whole segments. Null: for UDP, and in
        /// an emulation that does not observe the sender.
        receive_window_segments: Option<u32>,
    }
}

table! {
    /// The table has one row for each sample interval and each link, from the start to the end of
    /// the run. Radio buffers count as links.
    LinkRow => Links {
        /// End of the interval.
        time_ns: i64,
        /// Link.
        link: Name,
        /// What left in the interval, headers included.
        throughput_mbps: f64,
        /// What could have left in the interval.
        capacity_mbps: f64,
        /// Packets waiting at the end of the interval.
        queue_packets: u64,
        /// Bytes waiting at the end of the interval.
        queue_bytes: u64,
        /// Mean time from arrival to departure of the packets that left. Null: if nothing left.
        queue_delay_ms: Option<f64>,
        /// Packets dropped in the interval.
        dropped_packets: u64,
    }
}

table! {
    /// The table has one row for each echo request, written when the flow ends.
    PingRow => Pings {
        /// Flow.
        flow: Name,
        /// Sequence number, from 0.
        sequence: u64,
        /// Time at which the request was sent.
        sent_ns: i64,
        /// Time from the request to its reply. Null: if no reply came.
        rtt_ms: Option<f64>,
        /// True if the request or its reply was dropped; false with a null RTT: still in flight.
        lost: bool,
    }
}

table! {
    /// The table has one row for each event. Drops are summed for each sample interval, stage and
    /// reason.
    EventRow => Events {
        /// Time of the event; for drops the end of the interval.
        time_ns: i64,
        /// Flow; `ID@proxy` is the proxy's sender of the flow ID. Null: for drops and for events of
        /// a UE or a subscriber.
        flow: Option<Name>,
        /// For a drop the link or loss stage; for the mobility of a UE its downlink; for an attach
        /// the UE, with its address once it has one; for a subscriber the IMSI. Null: for events of
        /// a TCP sender.
        link: Option<Name>,
        /// What happened: `drop`; at a TCP sender `established`, `slow_start_exit`,
        /// `recovery_start`, `recovery_end`, `retransmission_timeout`, `reduction`, `undo`,
        /// `tail_loss_probe`, `window_probe`, `finished`; at a UE `handover_command`,
        /// `handover_complete`, `path_switch`, `handover_failed`, `radio_link_failure`,
        /// `radio_link_failure_rlc`, `cell_reselection`; in an emulation with a core
        /// `attach_start`, `attach_complete`, `session_established`, `detach`; with `--edit`
        /// `subscriber_added`, `subscriber_changed`, `subscriber_removed`.
        kind: &'static str,
        /// Reason for a drop, the end of slow start, a reduction or an undo. Null: for other kinds.
        reason: Option<&'static str>,
        /// cwnd before the event (`recovery_start`, `reduction`) or at its time. Null: for kinds
        /// without one.
        cwnd_segments: Option<u32>,
        /// ssthresh after (`recovery_start`, `reduction`), srtt in ms (`slow_start_exit`), RTO in
        /// ms (`retransmission_timeout`), interruption in ms (`handover_complete`). Null: for other
        /// kinds.
        value: Option<f64>,
        /// Packets dropped (`drop`) or marked lost (`recovery_start`). Null: for other kinds.
        packets: Option<u64>,
        /// The cell to which a UE moves, or in which its link failed. Null: for other kinds.
        cell: Option<Name>,
    }
}

table! {
    /// The table has one row for each flow and each non-empty bucket of its RTTs, written when the
    /// flow ends. Buckets are narrower than 0.8 % of their value.
    HistogramRow => Histograms {
        /// Flow.
        flow: Name,
        /// Lower edge, inclusive.
        low_ms: f64,
        /// Upper edge.
        high_ms: f64,
        /// Number of samples.
        count: u64,
    }
}

table! {
    /// If there is a proxy, the table has one row for each sample interval and each TCP flow
    /// through the proxy. A row describes the connection that the proxy opened to send the flow's
    /// data onward.
    ProxyRow => Proxies {
        /// End of the interval.
        time_ns: i64,
        /// Flow.
        flow: Name,
        /// In-order payload that reached the proxy since the start.
        received_bytes: u64,
        /// How many of these bytes the next end has acknowledged.
        acked_bytes: u64,
        /// The difference between the two: bytes in the proxy's receive and send buffers, or in
        /// flight.
        buffered_bytes: u64,
        /// Congestion window of the proxy's sender.
        cwnd_segments: u32,
        /// Slow start threshold. Null: before the first congestion event.
        ssthresh_segments: Option<u32>,
        /// Smoothed RTT. Null: before the first RTT.
        srtt_ms: Option<f64>,
        /// Mean RTT of the interval's acknowledgements. Null: if none of them gave an RTT.
        rtt_ms: Option<f64>,
        /// Segments in flight (RFC 6675 pipe).
        inflight_segments: u32,
    }
}

table! {
    /// If there is a radio, the table has one row for each sample interval, UE and direction, from
    /// the start to the end of the run. UEs without traffic are left out.
    RadioRow => Radios {
        /// End of the interval.
        time_ns: i64,
        /// Name of the UE.
        ue: Name,
        /// The cell that the UE is in, or moving to, at the end of the interval.
        cell: Name,
        /// down or up.
        direction: &'static str,
        /// Rate of the packets that the radio delivered in the interval.
        throughput_mbps: f64,
        /// Resource blocks times slots, retransmissions included.
        prbs: u64,
        /// New transport blocks.
        blocks: u64,
        /// Bytes of the new blocks.
        block_bytes: u64,
        /// Bytes of the new blocks that are not padding.
        used_bytes: u64,
        /// Mean MCS index of the new blocks. Null: without a new block.
        mcs: Option<f64>,
        /// Share of the new blocks whose first transmission failed. Null: without a new block.
        bler: Option<f64>,
        /// HARQ retransmissions.
        harq_retransmissions: u64,
        /// Blocks that HARQ gave up.
        lost_blocks: u64,
        /// RLC PDUs retransmitted.
        rlc_retransmissions: u64,
        /// Packets waiting at the end of the interval.
        queue_packets: u64,
        /// Bytes waiting at the end of the interval.
        queue_bytes: u64,
        /// Mean time in the radio of the packets that left. Null: if nothing left.
        queue_delay_ms: Option<f64>,
        /// Grants for new data (up).
        grants: u64,
        /// Bytes of these grants (up).
        granted_bytes: u64,
        /// Bytes of these grants that carried padding (up).
        wasted_bytes: u64,
        /// Scheduling requests sent (up).
        scheduling_requests: u64,
        /// Buffer status reports sent (up).
        buffer_status_reports: u64,
        /// Random access procedures started (up).
        random_accesses: u64,
        /// Share of the interval in DRX Active Time; 1 without DRX.
        awake: f64,
    }
}

table! {
    /// If `run.radio_log` is set, the table has one row for each event on the radio, slot by slot.
    /// UEs without traffic are left out.
    RadioLogRow => RadioLogs {
        /// Time of the event; for a block or a grant the beginning of its slot.
        time_ns: i64,
        /// Name of the UE.
        ue: Name,
        /// `packet_enters`, `packet_leaves`, `sr`, `bsr`, `grant`, `block`, `block_lost`,
        /// `preamble`, `random_access`, `drx` or `rrc`.
        event: &'static str,
        /// down or up. Null: for drx and rrc.
        direction: Option<&'static str>,
        /// Flow of a packet. Null: for other events.
        flow: Option<Name>,
        /// End of a block's slot; for a grant the beginning of its PUSCH. Null: for other events.
        until_ns: Option<i64>,
        /// Size of a packet, a block or a grant; for bsr the base station's new estimate of the
        /// buffer. Null: for other events.
        bytes: Option<u64>,
        /// Bytes of a block that are not padding. Null: for other events.
        used_bytes: Option<u64>,
        /// For a block the number of the transmission, from 1; for sr and preamble their counter.
        /// Null: for other events.
        transmission: Option<u32>,
        /// For a block, whether it was decoded; for an sr, whether it was detected. Null: for other
        /// events.
        received: Option<bool>,
        /// MCS index of a block. Null: for other events.
        mcs: Option<u32>,
        /// Resource blocks of a block. Null: for other events.
        prbs: Option<u32>,
        /// SINR of the channel in the slot of a block. Null: for other events, and without a
        /// channel.
        sinr_db: Option<f64>,
        /// New state (drx, rrc), or reason (grant). Null: for other events.
        state: Option<&'static str>,
    }
}

table! {
    /// The table has one row for each flow, written at the end of the run.
    /// [Metrics](../concepts/metrics.md) defines the figures.
    FlowRow => Flows {
        /// Flow.
        flow: Name,
        /// bulk, file, ping or udp; others: one row for all flows of an emulation that have no row
        /// of their own.
        kind: &'static str,
        /// down or up.
        direction: &'static str,
        /// UE. Null: without a radio.
        ue: Option<String>,
        /// Congestion control. Null: for UDP and ping.
        congestion: Option<&'static str>,
        /// Endpoint profile. Null: for UDP and ping.
        profile: Option<String>,
        /// Time of the first action.
        start_ns: i64,
        /// End of the measurement. Null: if the flow did not start.
        end_ns: Option<i64>,
        /// In-order payload that arrived.
        bytes_delivered: u64,
        /// In-order payload over the time from start to end. Null: for ping, and if the flow did
        /// not start.
        goodput_mbps: Option<f64>,
        /// Payload that the application wrote to TCP over the same time; senders such as iperf3
        /// report this figure. Null: for UDP and ping, if the flow did not start, and for programs
        /// in an emulation.
        written_mbps: Option<f64>,
        /// Data segments or packets sent, retransmissions included.
        segments_sent: u64,
        /// Retransmissions. Null: for UDP and ping, for a TCP flow that did not start, and in an
        /// emulation that does not count them.
        retransmitted_segments: Option<u64>,
        /// Retransmission time-outs. Null: for UDP and ping, for a TCP flow that did not start, and
        /// in an emulation that does not count them.
        rto_count: Option<u64>,
        /// Smallest RTT. Null: without a sample.
        rtt_ms_min: Option<f64>,
        /// Mean RTT. Null: without a sample.
        rtt_ms_mean: Option<f64>,
        /// Median RTT. Null: without a sample.
        rtt_ms_p50: Option<f64>,
        /// 95th percentile of the RTT. Null: without a sample.
        rtt_ms_p95: Option<f64>,
        /// 99th percentile of the RTT. Null: without a sample.
        rtt_ms_p99: Option<f64>,
        /// Median, over the second half of the flow's time, of the goodput over 1 s. Null: if that
        /// time is below 5 s.
        steady_mbps: Option<f64>,
        /// First time since the start at which the goodput over 1 s reaches 90 % of `steady_mbps`.
        /// Null: without a steady goodput.
        converged_after_s: Option<f64>,
        /// Time from the flow's start to the end of the first slow start. Null: if it did not end.
        slow_start_exit_s: Option<f64>,
        /// cwnd at the end of the first slow start. Null: if it did not end.
        slow_start_exit_cwnd_segments: Option<u32>,
        /// Reason for the end of the first slow start. Null: if it did not end.
        slow_start_exit_reason: Option<&'static str>,
        /// cwnd at the end of the first slow start over the bandwidth-delay product. Null: if it
        /// did not end, or without a link.
        slow_start_exit_bdp_fraction: Option<f64>,
        /// 95th percentile of the RTT minus its minimum. Null: without a sample.
        self_inflicted_delay_ms: Option<f64>,
        /// Goodput over mean RTT, in Mb/s per second. Null: without a sample.
        power: Option<f64>,
        /// Reductions of cwnd that were undone. Null: for UDP and ping, for a TCP flow that did not
        /// start, and in an emulation that does not count them.
        undo_count: Option<u64>,
        /// Tail loss probes sent. Null: for UDP and ping, for a TCP flow that did not start, and in
        /// an emulation that does not count them.
        tail_loss_probes: Option<u64>,
        /// Reductions of cwnd because of ECN marks. Null: for UDP and ping, for a TCP flow that did
        /// not start, and in an emulation that does not count them.
        ecn_reductions: Option<u64>,
        /// Time limited by the congestion window. Null: for UDP and ping, for a flow that did
        /// not start, and in an emulation that does not count them.
        cwnd_limited_s: Option<f64>,
        /// Time limited by pacing; 0 for QUIC and in an emulation, where it counts with cwnd. Null:
        /// for UDP and ping, for a flow that did not start, and in an emulation that does not count
        /// them.
        pacing_limited_s: Option<f64>,
        /// Time limited by the peer's receive window. Null: for UDP and ping, for a flow that
        /// did not start, and in an emulation that does not count them.
        receive_window_limited_s: Option<f64>,
        /// Time limited by the send buffer. Null: for UDP and ping, for a flow that did not
        /// start, and in an emulation that does not count them.
        send_buffer_limited_s: Option<f64>,
        /// Time with nothing to send. Null: for UDP and ping, for a flow that did not start,
        /// and in an emulation that does not count them.
        application_limited_s: Option<f64>,
        /// Datagrams sent (ping, udp). Null: for TCP.
        packets_sent: Option<u64>,
        /// Datagrams lost (ping, udp). Null: for TCP.
        packets_lost: Option<u64>,
        /// One-way delay, median (udp). Null: for TCP and ping, and if nothing arrived.
        delay_ms_p50: Option<f64>,
        /// One-way delay, 95th percentile (udp). Null: for TCP and ping, and if nothing arrived.
        delay_ms_p95: Option<f64>,
        /// Interarrival jitter at the end (RFC 3550 6.4.1; udp). Null: for TCP and ping, and with
        /// fewer than two arrivals.
        jitter_ms: Option<f64>,
    }
}

table! {
    /// If a `[[flow]]` has `streams`, the table has one row for each such `[[flow]]`, which sums up
    /// its streams.
    GroupRow => Groups {
        /// The id of the `[[flow]]`. Its streams are the flows `ID.1`, `ID.2` and so on.
        group: Name,
        /// bulk, file or udp.
        kind: &'static str,
        /// down or up.
        direction: &'static str,
        /// Number of streams.
        streams: u64,
        /// In-order payload of all streams that arrived.
        bytes_delivered: u64,
        /// Sum of the streams' goodputs. Null: if none started.
        goodput_mbps: Option<f64>,
        /// Jain's index of the streams' goodputs: 1 means equal shares, 1 over `streams` that one
        /// stream got everything. Null: if nothing arrived.
        jain_index: Option<f64>,
    }
}

/// Every table, in the order of the reference.
pub(crate) const ABOUT: [(&str, AboutTable); 11] = [
    ("flows", Flows::ABOUT),
    ("groups", Groups::ABOUT),
    ("samples", Samples::ABOUT),
    ("links", Links::ABOUT),
    ("pings", Pings::ABOUT),
    ("events", Events::ABOUT),
    ("rtt_histogram", Histograms::ABOUT),
    ("proxies", Proxies::ABOUT),
    ("radio", Radios::ABOUT),
    ("radio_log", RadioLogs::ABOUT),
    ("acks", AckTable::ABOUT),
];

/// Every table that a run can have, with its columns.
pub fn columns() -> impl Iterator<Item = (&'static str, &'static [AboutColumn])> {
    ABOUT.into_iter().map(|(name, about)| (name, about.columns))
}

/// All tables of a run, as columnar buffers.
#[derive(Default, Debug)]
pub struct Tables {
    /// Names of flows and links.
    pub names: Names,
    samples: Samples,
    links: Links,
    acks: AckTable,
    pings: Pings,
    events: Events,
    histograms: Histograms,
    proxies: Proxies,
    radios: Radios,
    radio_logs: RadioLogs,
    pub(crate) flows: Flows,
    groups: Groups,
}

macro_rules! push {
    ($($(#[$doc:meta])* $name:ident($row:ident) -> $field:ident;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(&mut self, row: $row) {
            self.$field.push(row);
        }
    )*};
}

impl EventRow {
    /// An event of which only the time and the kind are known.
    pub const fn new(time_ns: i64, kind: &'static str) -> Self {
        Self {
            time_ns,
            flow: None,
            link: None,
            kind,
            reason: None,
            cwnd_segments: None,
            value: None,
            packets: None,
            cell: None,
        }
    }
}

impl Tables {
    push! {
        /// Appends to `samples`.
        sample(SampleRow) -> samples;
        /// Appends to `links`.
        link(LinkRow) -> links;
        /// Appends to `acks`.
        ack(AckRow) -> acks;
        /// Appends to `pings`.
        ping(PingRow) -> pings;
        /// Appends to `events`.
        event(EventRow) -> events;
        /// Appends to `proxies`.
        proxy(ProxyRow) -> proxies;
        /// Appends to `radio`.
        radio(RadioRow) -> radios;
        /// Appends to `radio_log`.
        radio_log(RadioLogRow) -> radio_logs;
        /// Appends to `rtt_histogram`.
        histogram(HistogramRow) -> histograms;
        /// Appends to `groups`.
        group(GroupRow) -> groups;
    }

    /// Appends to `acks`.
    #[inline]
    pub fn bare_ack(&mut self, row: BareAckRow) {
        self.acks.push_bare(row);
    }

    /// Ends recording: every table by name, in a fixed order; events by time. `acks` only if
    /// requested, `groups`, `proxies`, `radio` and `radio_log` only if they have rows. A table is
    /// one batch; `acks` is one or more.
    pub fn finish(mut self, acks: bool) -> Vec<(&'static str, Vec<RecordBatch>)> {
        let names = &self.names;
        let mut tables = vec![
            ("flows", vec![self.flows.finish(names)]),
            ("samples", vec![self.samples.finish(names)]),
            ("links", vec![self.links.finish(names)]),
            ("pings", vec![self.pings.finish(names)]),
            ("events", vec![in_order(self.events.finish(names))]),
            ("rtt_histogram", vec![self.histograms.finish(names)]),
        ];
        let groups = self.groups.finish(names);
        if groups.num_rows() > 0 {
            tables.push(("groups", vec![groups]));
        }
        let proxies = self.proxies.finish(names);
        if proxies.num_rows() > 0 {
            tables.push(("proxies", vec![proxies]));
        }
        let radios = self.radios.finish(names);
        if radios.num_rows() > 0 {
            tables.push(("radio", vec![radios]));
        }
        let log = self.radio_logs.finish(names);
        if log.num_rows() > 0 {
            tables.push(("radio_log", vec![log]));
        }
        if acks {
            tables.push(("acks", self.acks.finish(names)));
        }
        tables
    }
}

/// Rows by time; those of one instant keep their order. An emulation's observers write theirs
/// separately.
fn in_order(events: RecordBatch) -> RecordBatch {
    let times = events.column(0).as_primitive::<Int64Type>().values();
    if times.is_sorted() {
        return events;
    }
    let mut order: Vec<u64> = (0..events.num_rows() as u64).collect();
    order.sort_by_key(|&row| times[row as usize]);
    take_record_batch(&events, &UInt64Array::from(order)).expect("rows of the table itself")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_in_order_of_time() {
        let mut tables = Tables::default();
        for (time_ns, kind) in [(20, "b"), (10, "a"), (20, "c"), (0, "first")] {
            tables.event(EventRow::new(time_ns, kind));
        }
        let tables = tables.finish(false);
        let (_, events) = tables.iter().find(|(name, _)| *name == "events").unwrap();
        let kinds = events[0].column_by_name("kind").unwrap();
        let kinds: Vec<_> = kinds.as_string::<i32>().iter().flatten().collect();
        assert_eq!(kinds, ["first", "a", "b", "c"]);
    }
}
