//! A run in one document, as `airpath run --json` prints it.

use std::collections::BTreeMap;

use airpath_base::{Duration, Histogram};
use serde::Serialize;

use crate::{Breakdown, FlowRow, GroupRow, Name, Tables};

/// A whole run.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunSummary {
    /// The run's seed.
    pub seed: u64,
    /// Length on the run's own clock.
    pub duration_s: f64,
    /// Events that the driver handled.
    pub events: u64,
    /// TCP, QUIC and UDP flows.
    pub flows: Vec<FlowSummary>,
    /// Sums over the flows of each `[[flow]]` with `streams`; left out if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupSummary>,
    /// Ping flows.
    pub pings: Vec<PingSummary>,
    /// Everything with a rate: link stages, and the buffers of a radio.
    pub links: Vec<LinkSummary>,
    /// How evenly TCP and QUIC flows share, for each direction with two or more of them.
    pub fairness: Vec<FairnessSummary>,
    /// TCP flows at the proxy in their path; empty without a proxy.
    pub proxies: Vec<ProxySummary>,
    /// The radio by UE, downlink before uplink; UEs without traffic are left out.
    pub radio: Vec<RadioSummary>,
    /// Packets lost, by place, reason and flow.
    pub drops: Vec<DropSummary>,
    /// Where the time went, by flow; only for a run that accounts for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub breakdowns: Vec<Breakdown>,
}

/// Packets of one flow that one place lost for one reason.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DropSummary {
    /// Stage or buffer: `down.1.loss`, `radio.ue-0.down`.
    pub place: String,
    /// Why they were lost.
    pub reason: &'static str,
    /// The flow; acknowledgements belong to the flow that they acknowledge.
    pub flow: String,
    /// Number of packets.
    pub packets: u64,
}

/// Sums over the flows of one `[[flow]]` with `streams`.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupSummary {
    /// The id of the `[[flow]]`; its flows are `ID.1`, `ID.2` and so on.
    pub id: String,
    /// bulk, file, quic or udp.
    pub kind: &'static str,
    /// down or up.
    pub direction: &'static str,
    /// Number of flows.
    pub streams: u64,
    /// In-order payload of all of them that arrived, in bytes.
    pub bytes_delivered: u64,
    /// Sum of their goodputs; null if none started.
    pub goodput_mbps: Option<f64>,
    /// Jain's index of their goodputs, without flows that did not start. Null if nothing arrived.
    pub jain_index: Option<f64>,
}

impl GroupSummary {
    /// Sums up these flows; there must be at least one.
    pub fn of(id: &str, flows: &[&FlowSummary]) -> Self {
        let goodputs: Vec<f64> = flows.iter().filter_map(|flow| flow.goodput_mbps).collect();
        let all: Vec<f64> = flows.iter().map(|flow| flow.goodput_mbps.unwrap_or(0.0)).collect();
        Self {
            id: id.to_owned(),
            kind: flows.first().map_or("", |flow| flow.kind),
            direction: flows.first().map_or("", |flow| flow.direction),
            streams: flows.len() as u64,
            bytes_delivered: flows.iter().map(|flow| flow.bytes_delivered).sum(),
            goodput_mbps: (!goodputs.is_empty()).then(|| goodputs.iter().sum()),
            jain_index: jain_index(&all),
        }
    }

    /// The row in the table `groups`.
    pub fn row(&self, group: Name) -> GroupRow {
        GroupRow {
            group,
            kind: self.kind,
            direction: self.direction,
            streams: self.streams,
            bytes_delivered: self.bytes_delivered,
            goodput_mbps: self.goodput_mbps,
            jain_index: self.jain_index,
        }
    }
}

/// Jain's index (Jain, Chiu and Hawe 1984); `None` if nothing arrived.
fn jain_index(goodputs: &[f64]) -> Option<f64> {
    let sum: f64 = goodputs.iter().sum();
    let squares: f64 = goodputs.iter().map(|goodput| goodput * goodput).sum();
    let count = goodputs.len() as f64;
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

/// How evenly the TCP and QUIC flows of one direction share it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FairnessSummary {
    /// down or up.
    pub id: &'static str,
    /// Number of flows.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub flows: u64,
    /// Jain's index of their goodputs: 1 means even, 1 / flows that one flow got everything (Jain,
    /// Chiu and Hawe 1984).
    pub jain_index: f64,
}

impl FairnessSummary {
    /// The fairness of these goodputs; `None` for fewer than two flows, or if nothing arrived.
    pub fn of(id: &'static str, goodputs: &[f64]) -> Option<Self> {
        let several = goodputs.len() >= 2;
        let jain_index = several.then(|| jain_index(goodputs)).flatten()?;
        Some(Self { id, flows: goodputs.len() as u64, jain_index })
    }
}

/// One TCP, QUIC or UDP flow.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowSummary {
    /// Name of the flow.
    pub id: String,
    /// bulk, file, quic, udp (ping in the table only); others: the flows of an emulation that have no row
    /// of their own, combined.
    pub kind: &'static str,
    /// down or up.
    pub direction: &'static str,
    /// Name of the flow's UE; null without a radio.
    pub ue: Option<String>,
    /// Congestion control; null for UDP.
    pub congestion: Option<&'static str>,
    /// Endpoint profile; null without TCP.
    pub profile: Option<String>,
    /// First action, in nanoseconds since the start of the run.
    #[serde(skip)]
    pub start_ns: i64,
    /// End of the measurement, in nanoseconds since the start of the run.
    #[serde(skip)]
    pub end_ns: Option<i64>,
    /// In-order payload that arrived, in bytes.
    pub bytes_delivered: u64,
    /// In-order payload over the time from start to end; null if it never started.
    pub goodput_mbps: Option<f64>,
    /// Payload that the application wrote to TCP over the same time.
    pub written_mbps: Option<f64>,
    /// RTT as the sender measured it; null without a sample.
    pub rtt_ms: Option<Quantiles>,
    /// 95th percentile of the RTT less its minimum: the delay that the flow, together with what
    /// shares its queues, causes itself; null without a sample.
    pub self_inflicted_delay_ms: Option<f64>,
    /// Goodput divided by mean RTT, in Mb/s per second (Kleinrock's power); null without a sample.
    pub power: Option<f64>,
    /// Segments or packets sent.
    pub segments_sent: u64,
    /// Retransmissions; null without TCP.
    pub retransmitted_segments: Option<u64>,
    /// Retransmission time-outs; null without TCP.
    pub rto_count: Option<u64>,
    /// Reductions of cwnd that were undone; null without TCP.
    pub undo_count: Option<u64>,
    /// Tail loss probes; null without TCP.
    pub tail_loss_probes: Option<u64>,
    /// Reductions of cwnd for ECN marks; null without TCP.
    pub ecn_reductions: Option<u64>,
    /// Median of the goodput over 1 s in the second half; null for less than 5 s.
    pub steady_mbps: Option<f64>,
    /// First time at which the goodput over 1 s reaches 90 % of `steady_mbps`.
    pub converged_after_s: Option<f64>,
    /// For file flows and QUIC flows with a size: time from the start to the last byte; null if it did not complete.
    pub completed_s: Option<f64>,
    /// End of the first slow start.
    pub slow_start_exit: Option<Exit>,
    /// Time limited by each limit; null for UDP.
    pub limited_s: Option<LimitSeconds>,
    /// Datagrams that the sender sent; null for TCP.
    pub packets_sent: Option<u64>,
    /// Datagrams lost; for QUIC, packets that the sender declared lost; null for TCP.
    pub packets_lost: Option<u64>,
    /// One-way delay; null for TCP.
    pub delay_ms: Option<Quantiles>,
    /// Interarrival jitter (RFC 3550 6.4.1); null for TCP.
    pub jitter_ms: Option<f64>,
}

/// A TCP flow at the proxy in its path. What reaches the proxy is sent on over another connection.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProxySummary {
    /// The flow's name.
    pub id: String,
    /// The proxy's name, e.g. `down.1.proxy`.
    pub proxy: String,
    /// down or up.
    pub direction: &'static str,
    /// Congestion control of the proxy's sender.
    pub congestion: &'static str,
    /// Profile of the proxy's ends.
    pub profile: String,
    /// In-order payload that reached the proxy.
    pub bytes_received: u64,
    /// The part of it that the next end has acknowledged.
    pub bytes_acked: u64,
    /// Largest difference of the two at any time.
    pub buffered_bytes_max: u64,
    /// RTT as the proxy's sender measured it; null without a sample.
    pub rtt_ms: Option<Quantiles>,
    /// Segments that the proxy sent, retransmissions included.
    pub segments_sent: u64,
    /// Segments that the proxy retransmitted.
    pub retransmitted_segments: u64,
    /// Retransmission time-outs.
    pub rto_count: u64,
    /// Reductions of cwnd that were undone.
    pub undo_count: u64,
    /// Tail loss probes sent (RFC 8985 7).
    pub tail_loss_probes: u64,
    /// Reductions of cwnd for ECN marks.
    pub ecn_reductions: u64,
    /// End of the first slow start, since the flow's start.
    pub slow_start_exit: Option<Exit>,
    /// Time limited by each limit of the proxy's sender; `application` is the wait for incoming
    /// data.
    pub limited_s: LimitSeconds,
}

/// One direction of one UE of a radio.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RadioSummary {
    /// UE and direction: `phone.down`.
    pub id: String,
    /// Rate of packets delivered by the radio.
    pub throughput_mbps: f64,
    /// Resource blocks per second, retransmissions included.
    pub prbs_per_s: f64,
    /// Mean MCS index of new blocks; null without one.
    pub mcs_mean: Option<f64>,
    /// Fraction of new blocks whose first transmission failed; null without one.
    pub bler: Option<f64>,
    /// Retransmitted transport blocks.
    pub harq_retransmissions: u64,
    /// Blocks that HARQ gave up.
    pub lost_blocks: u64,
    /// Retransmitted RLC PDUs.
    pub rlc_retransmissions: u64,
    /// Fraction of the new blocks' bytes that was padding; null without one.
    pub padding: Option<f64>,
    /// Grants for new data; zero in the downlink.
    pub grants: u64,
    /// Scheduling requests sent; zero in the downlink.
    pub scheduling_requests: u64,
    /// Buffer status reports sent; zero in the downlink.
    pub buffer_status_reports: u64,
    /// Random access procedures begun; zero in the downlink.
    pub random_accesses: u64,
    /// Packets marked CE in the buffer.
    pub marked_packets: u64,
    /// Fraction of the run spent in DRX Active Time; 1 without DRX.
    pub awake: f64,
}

/// How slow start ended.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SlowStartExit"))]
pub struct Exit {
    /// Time since the flow's start.
    pub time_s: f64,
    /// cwnd at that time, in segments.
    pub cwnd_segments: u32,
    /// Why slow start ended.
    pub reason: &'static str,
    /// cwnd divided by the bandwidth-delay product, which is the slowest link's capacity until then
    /// times the smallest RTT; null without a link.
    pub bdp_fraction: Option<f64>,
    /// Smallest RTT until then.
    pub min_rtt_ms: f64,
    /// The RTT that was compared with it; null if the reason is not one of delay.
    pub round_rtt_ms: Option<f64>,
}

/// Time limited by each limit, in seconds.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitSeconds {
    /// By the congestion window.
    pub cwnd: f64,
    /// By pacing: the time until the next segment may be sent. 0 for QUIC and in an emulation, where
    /// it counts with cwnd.
    pub pacing: f64,
    /// By the peer's window; for QUIC, by flow control (RFC 9000 4).
    pub receive_window: f64,
    /// By the sender's own buffer.
    pub send_buffer: f64,
    /// By the application, which had nothing to send.
    pub application: f64,
}

impl LimitSeconds {
    /// The parts of the time `total` in which cwnd, the receive window and the send buffer limited a
    /// sender that counts pacing with cwnd. The application takes the rest.
    pub fn without_pacing(total: Duration, [cwnd, receive, send]: [Duration; 3]) -> Self {
        Self {
            cwnd: cwnd.as_secs_f64(),
            pacing: 0.0,
            receive_window: receive.as_secs_f64(),
            send_buffer: send.as_secs_f64(),
            application: total.saturating_sub(cwnd + receive + send).as_secs_f64(),
        }
    }
}

/// A distribution in milliseconds.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quantiles {
    /// Smallest.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub mdev: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// One ping flow.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PingSummary {
    /// Name of the flow.
    pub id: String,
    /// Requests sent.
    pub sent: u64,
    /// Requests whose packet or reply was dropped.
    pub lost: u64,
    /// RTT of the answered requests; null without a reply.
    pub rtt_ms: Option<Quantiles>,
}

/// What a stage with a rate, or a buffer of the radio, carried.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkSummary {
    /// Name of the stage or buffer.
    pub id: String,
    /// Rate of departures over the whole run, headers included.
    pub throughput_mbps: f64,
    /// Rate at which packets could have left.
    pub capacity_mbps: f64,
    /// Throughput divided by capacity.
    pub utilisation: f64,
    /// Time from arrival to departure; null if nothing left.
    pub queue_delay_ms: Option<Quantiles>,
    /// Dropped packets by reason.
    pub dropped_packets: BTreeMap<&'static str, u64>,
}

impl Quantiles {
    /// The quantiles of a histogram; `None` if it is empty.
    pub fn of(histogram: &Histogram) -> Option<Self> {
        let at = |quantile| Some(histogram.quantile(quantile)?.as_millis_f64());
        Some(Self {
            min: histogram.min()?.as_millis_f64(),
            mean: histogram.mean()?.as_millis_f64(),
            mdev: histogram.deviation()?.as_millis_f64(),
            p50: at(0.5)?,
            p95: at(0.95)?,
            p99: at(0.99)?,
            max: histogram.max()?.as_millis_f64(),
        })
    }
}

impl Tables {
    /// Appends a flow to `flows`.
    pub fn flow(&mut self, flow: Name, summary: &FlowSummary) {
        self.flows.push(summary.row(flow));
    }
}

impl FlowSummary {
    pub(crate) fn row(&self, flow: Name) -> FlowRow {
        let rtt = self.rtt_ms.as_ref();
        let delay = self.delay_ms.as_ref();
        let exit = self.slow_start_exit.as_ref();
        let limited = self.limited_s.as_ref();
        FlowRow {
            flow,
            kind: self.kind,
            direction: self.direction,
            congestion: self.congestion,
            profile: self.profile.clone(),
            ue: self.ue.clone(),
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            bytes_delivered: self.bytes_delivered,
            goodput_mbps: self.goodput_mbps,
            written_mbps: self.written_mbps,
            segments_sent: self.segments_sent,
            retransmitted_segments: self.retransmitted_segments,
            rto_count: self.rto_count,
            rtt_ms_min: rtt.map(|rtt| rtt.min),
            rtt_ms_mean: rtt.map(|rtt| rtt.mean),
            rtt_ms_p50: rtt.map(|rtt| rtt.p50),
            rtt_ms_p95: rtt.map(|rtt| rtt.p95),
            rtt_ms_p99: rtt.map(|rtt| rtt.p99),
            steady_mbps: self.steady_mbps,
            converged_after_s: self.converged_after_s,
            slow_start_exit_s: exit.map(|exit| exit.time_s),
            slow_start_exit_cwnd_segments: exit.map(|exit| exit.cwnd_segments),
            slow_start_exit_reason: exit.map(|exit| exit.reason),
            slow_start_exit_bdp_fraction: exit.and_then(|exit| exit.bdp_fraction),
            self_inflicted_delay_ms: self.self_inflicted_delay_ms,
            power: self.power,
            undo_count: self.undo_count,
            tail_loss_probes: self.tail_loss_probes,
            ecn_reductions: self.ecn_reductions,
            cwnd_limited_s: limited.map(|limited| limited.cwnd),
            pacing_limited_s: limited.map(|limited| limited.pacing),
            receive_window_limited_s: limited.map(|limited| limited.receive_window),
            send_buffer_limited_s: limited.map(|limited| limited.send_buffer),
            application_limited_s: limited.map(|limited| limited.application),
            packets_sent: self.packets_sent,
            packets_lost: self.packets_lost,
            delay_ms_p50: delay.map(|delay| delay.p50),
            delay_ms_p95: delay.map(|delay| delay.p95),
            jitter_ms: self.jitter_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index() {
        let index = |goodputs: &[f64]| FairnessSummary::of("down", goodputs).map(|f| f.jain_index);
        assert_eq!(index(&[5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(index(&[9.0, 0.0, 0.0]), Some(1.0 / 3.0));
        assert_eq!(index(&[1.0, 3.0]), Some(0.8));
        assert_eq!((index(&[7.0]), index(&[0.0, 0.0])), (None, None));
    }
}
