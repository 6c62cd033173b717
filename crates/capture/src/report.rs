//! The report on a capture. It contains no payload.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::datagram::{EchoReport, IcmpErrors, UdpReport};
use crate::decode::Skipped;
pub use crate::distribution::Distribution;
use crate::read::{Compression, FileFormat};
use crate::{CaptureError, Tunnel};

/// What a capture holds. Times are in seconds; those with `time` in their name count from 1970.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureReport {
    /// Format of the file.
    pub format: FileFormat,
    /// Compression of the file, if it is compressed.
    pub compression: Option<Compression>,
    /// Interfaces at which packets were captured, in file order.
    pub interfaces: Vec<InterfaceReport>,
    /// Packets in the file.
    pub packets: u64,
    /// Bytes on the wire, including link-layer headers.
    pub bytes: u64,
    /// Packets that were truncated by the capture.
    pub cut_packets: u64,
    /// Packets that were truncated within their headers.
    pub cut_headers: Option<CutHeaders>,
    /// Packets that were a few places off the order of their times in the file, and were sorted. A
    /// stream is not sorted, because it cannot be read again.
    pub sorted_packets: u64,
    /// Step of the capture's clock, if all times are multiples of one that is longer than a radio
    /// link's slots: what took less time is not known.
    pub clock_step_s: Option<f64>,
    /// Packets whose time is before that of the packet before them, apart from those that were
    /// sorted: the clock was set back, or files were appended.
    pub backward_times: u64,
    /// Largest such step back in time.
    pub largest_step_back_s: f64,
    /// When the first packet was captured.
    pub first_time_s: Option<f64>,
    /// Time from the earliest to the latest packet.
    pub duration_s: f64,
    /// Packets that belong to no flow, by reason.
    pub skipped: BTreeMap<Skipped, u64>,
    /// Fragmented packets of which not every fragment was captured.
    pub incomplete_packets: u64,
    /// Packets that the capture itself missed, as far as this can be seen.
    pub missed: Missed,
    /// Flows, in the order in which they began; only the largest ones if there are very many.
    pub flows: Vec<FlowReport>,
    /// Flows that are not in `flows`.
    pub others: Others,
    /// Where and why reading stopped before the end of the file.
    pub damaged: Option<String>,
}

/// Packets that were cut within their headers.
#[derive(Clone, Copy, Default, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CutHeaders {
    /// How many packets were truncated within their headers.
    pub packets: u64,
    /// Bytes of each packet that must be captured to have all headers (`tcpdump -s`): link layer,
    /// tunnels, and the longest TCP header.
    pub snap_bytes: u64,
}

/// An interface at which packets were captured.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterfaceReport {
    /// The interface's name in the file.
    pub name: Option<String>,
    /// LINKTYPE_ number of the interface's packets.
    pub link_type: u16,
    /// The link type in words; `None` if its packets cannot be read.
    pub link: Option<&'static str>,
    /// Packets of this interface in the file.
    pub packets: u64,
    /// Packets that the interface or its system dropped, according to the file.
    pub dropped: u64,
}

/// Evidence that the capture lacks packets that passed.
#[derive(Clone, Copy, Default, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missed {
    /// Dropped packets, according to the file.
    pub dropped_packets: u64,
    /// Acknowledgements of bytes that the capture does not hold.
    pub acks_of_unseen: u64,
    /// Bytes that were acknowledged and that the capture does not hold.
    pub unseen_bytes: u64,
    /// TCP flows with such acknowledgements.
    pub flows: u64,
}

/// Flows that have no row of their own.
#[derive(Clone, Copy, Default, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Others {
    /// How many flows these are.
    pub flows: u64,
    /// Packets of these flows.
    pub packets: u64,
    /// IP bytes of these flows.
    pub bytes: u64,
    /// Retransmitted packets of these flows.
    pub retransmissions: u64,
}

/// One flow at one point of the path. The client is the end that opened it, or else the end that
/// sent first.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowReport {
    /// Number of the flow, from 0, in the order in which flows began.
    pub id: u64,
    /// `tcp`, `udp`, `icmp`, or the number of an IP protocol.
    pub protocol: String,
    /// Address of the client.
    pub client: String,
    /// Port of the client; 0 where there is none.
    pub client_port: u16,
    /// Address of the server.
    pub server: String,
    /// Port of the server; 0 where there is none.
    pub server_port: u16,
    /// Index of the interface at which the flow was captured.
    pub interface: usize,
    /// The encapsulation of the flow's packets.
    pub tunnel: Tunnel,
    /// GTP-U tunnel endpoint identifiers of the client's and the server's packets.
    pub teids: [Option<u32>; 2],
    /// How many identical copies of each packet of the client, and of the server, were captured at
    /// the flow's point: a mirror port may copy one direction only. Copies are left
    /// out (they count as skipped), unless the capture was a stream, which cannot be read again.
    pub times_captured: [u8; 2],
    /// Other flows of the list with the same ends and times: the same packets at other points.
    pub same_as: Vec<u64>,
    /// Time of the flow's first packet, after the capture's first.
    pub start_s: f64,
    /// Time from the flow's first to its last packet.
    pub duration_s: f64,
    /// What the client sent.
    pub from_client: Volume,
    /// What the server sent.
    pub from_server: Volume,
    /// What the TCP headers show.
    pub tcp: Option<TcpReport>,
    /// What the UDP headers show, and the headers of known protocols behind them.
    pub udp: Option<UdpReport>,
    /// What the ICMP messages show.
    pub icmp: Option<EchoReport>,
    /// ICMP errors about the flow's packets, whoever sent them.
    pub icmp_errors: Option<IcmpErrors>,
}

/// What one end sent.
#[derive(Clone, Copy, Default, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Volume {
    /// Packets that passed.
    pub packets: u64,
    /// IP bytes of these packets.
    pub bytes: u64,
}

/// A TCP connection.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpReport {
    /// Whether a SYN of the client was captured, which shows that it is the client.
    pub opening_seen: bool,
    /// Time from the first SYN to the last segment of the handshake.
    pub handshake_ms: Option<f64>,
    /// `open`, `closed` by a FIN from each end, or `reset`.
    pub state: &'static str,
    /// Times without a packet while data was outstanding.
    pub stalls: Stalls,
    /// Longest time without a packet, whether or not data was outstanding; 0 if it is below 200 ms.
    pub longest_silence_s: f64,
    /// Start of that time, after the capture's first packet.
    pub longest_silence_at_s: Option<f64>,
    /// The client's data, and the server's acknowledgements of it.
    pub from_client: StreamReport,
    /// The server's data, and the client's acknowledgements of it.
    pub from_server: StreamReport,
}

/// Times without any packet while data was outstanding. Each lasted at least four round trips and
/// 200 ms.
#[derive(Clone, Copy, Default, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stalls {
    /// How many stalls there were.
    pub count: u64,
    /// Duration of all stalls together.
    pub total_s: f64,
    /// Duration of the longest stall.
    pub longest_s: f64,
    /// Start of the longest stall, after the capture's first packet.
    pub longest_at_s: Option<f64>,
}

/// One direction of a TCP connection.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamReport {
    /// Options of the SYN in this direction.
    pub options: Option<SynOptions>,
    /// Packets with payload.
    pub data_packets: u64,
    /// Payload, including retransmissions.
    pub data_bytes: u64,
    /// Bytes that were acknowledged.
    pub acked_bytes: u64,
    /// Acknowledged bytes divided by the time from the first data to the last acknowledgement.
    pub goodput_mbps: Option<f64>,
    /// Time from a segment to its acknowledgement, both at the capture point: the round trip on the
    /// receiver's side of it.
    pub rtt_ms: Option<Distribution>,
    /// Round-trip time on the same side from timestamps, which includes retransmitted segments.
    pub rtt_timestamps_ms: Option<Distribution>,
    /// Retransmitted packets and their reasons.
    pub retransmissions: Retransmissions,
    /// Packets that arrived after later ones without being retransmissions.
    pub out_of_order_packets: u64,
    /// The latest of these packets: its time after the first packet that had overtaken it.
    pub out_of_order_ms: Option<f64>,
    /// Duplicate acknowledgements of this direction's data.
    pub duplicate_acks: u64,
    /// Bytes sent and not acknowledged, as seen at the capture point.
    pub in_flight_bytes: Option<InFlight>,
    /// The receive window for this direction.
    pub window: Option<WindowReport>,
    /// Largest payload of a packet.
    pub largest_payload_bytes: u32,
    /// Packets with more payload than the receiver's MSS: captured before segmentation offload
    /// split them, or after receive offload merged them. Sizes and times then differ from those on
    /// the wire.
    pub larger_than_mss: u64,
    /// Keep-alive probes (RFC 9293 3.8.4).
    pub keep_alives: u64,
    /// Keep-alive probes after which nothing came from the other end any more.
    pub unanswered_keep_alives: u64,
    /// Segments that probed a closed window (RFC 9293 3.8.6.1); no other count includes them.
    pub window_probes: u64,
    /// How the acknowledgements of this direction's data arrived.
    pub acks: Option<AckReport>,
    /// How new data was sent, or passed the capture point.
    pub sending: Option<SendingReport>,
    /// What limited the sender, and for how long; none where the receiver is much nearer than the
    /// sender.
    pub limits: Option<LimitsReport>,
    /// The first round trips of this direction's data; none where the receiver is much nearer than
    /// the sender.
    pub slow_start: Option<SlowStart>,
    /// Acknowledgements of bytes that the capture does not hold.
    pub acks_of_unseen: u64,
    /// Bytes that were acknowledged and that the capture does not hold.
    pub unseen_bytes: u64,
}

/// Options of a SYN (RFC 9293 3.2, RFC 7323, RFC 2018).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SynOptions {
    /// Maximum segment size that this end receives.
    pub mss: Option<u16>,
    /// Number of bits by which this end's windows are shifted.
    pub window_scale: Option<u8>,
    /// Whether this end understands selective acknowledgements.
    pub sack_permitted: bool,
    /// Whether the SYN has the timestamps option (RFC 7323 3).
    pub timestamps: bool,
    /// The capture holds only a part of the options: an option missing here may have been sent.
    pub cut: bool,
}

/// Retransmissions, in packets. Each packet has exactly one of the five reasons `fast` to
/// `unclear`; several proofs that it was spurious may apply.
#[derive(Clone, Copy, Default, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Retransmissions {
    /// All retransmitted packets.
    pub packets: u64,
    /// Payload of the retransmitted packets.
    pub bytes: u64,
    /// The retransmitted packets counted in segments of the MSS, where offload had merged them.
    pub segments: u64,
    /// Retransmissions after duplicate or selective acknowledgements (RFC 6675, RFC 8985 6).
    pub fast: u64,
    /// Retransmissions of the last segment after a silence (RFC 8985 7).
    pub tail_loss_probe: u64,
    /// Retransmissions after a time-out, including those that followed from it (RFC 6298 5).
    pub timeout: u64,
    /// Retransmitted SYN or SYN-ACK.
    pub handshake: u64,
    /// Retransmissions without an apparent reason.
    pub unclear: u64,
    /// Retransmissions whose original was lost before the capture point.
    pub original_unseen: u64,
    /// Retransmissions that were not needed.
    pub spurious: u64,
    /// Proof: the acknowledgement had already passed the capture point.
    pub spurious_by_ack: u64,
    /// Proof: the receiver reports a duplicate (RFC 2883, RFC 3708).
    pub spurious_by_dsack: u64,
    /// Proof: the acknowledgement echoes the original's timestamp (RFC 3522).
    pub spurious_by_timestamp: u64,
}

/// Bytes sent and not acknowledged.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InFlight {
    /// Mean over the packets with data.
    pub mean: f64,
    /// The most.
    pub max: u64,
}

/// The window of a receiver.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowReport {
    /// Number of bits by which windows are shifted; `None` without the options of both SYNs (RFC
    /// 7323 2.2): the window in bytes is then unknown.
    pub scale: Option<u8>,
    /// Largest window, in bytes.
    pub max_bytes: Option<u64>,
    /// Smallest window after the handshake.
    pub min_bytes: Option<u64>,
    /// Time during which the window had no room for one more segment.
    pub limited_s: Option<f64>,
    /// How often the window became zero.
    pub zero_windows: u64,
}

/// How acknowledgements arrived.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AckReport {
    /// Acknowledgements without payload that acknowledged new data.
    pub count: u64,
    /// Batches: groups of acknowledgements with less than 1 ms between consecutive ones.
    pub batches: u64,
    /// Mean number of acknowledgements in a batch.
    pub per_batch: f64,
    /// Median time from one batch to the next.
    pub batch_interval_ms: Option<f64>,
    /// Mean amount of data acknowledged by one acknowledgement, in bytes.
    pub bytes_per_ack: f64,
}

/// How new data left its sender, as far as the capture point shows it.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SendingReport {
    /// Bursts: groups of packets with new data, with less than 0.1 ms between consecutive ones.
    pub bursts: u64,
    /// Mean number of segments in a burst.
    pub per_burst: f64,
    /// Segments in the largest burst.
    pub largest_burst: u64,
    /// Share of the bursts that began 0.5 ms or more after the last acknowledgement, among those
    /// that began while data was outstanding: a timer (pacing) or the application triggered them.
    /// `None` next to the receiver.
    pub unprompted: Option<f64>,
}

/// What limited the sender, in seconds from its first data to the last acknowledgement.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitsReport {
    /// Data was outstanding and none of the other limits applied: the path, or the congestion
    /// window.
    pub path_s: f64,
    /// The receive window had no room for one more segment.
    pub receive_window_s: f64,
    /// All data was acknowledged, and no new data had been sent.
    pub nothing_to_send_s: f64,
    /// Lost data, and what was sent before the loss was repaired, was not yet acknowledged.
    pub recovery_s: f64,
}

/// The first round trips that carry data.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlowStart {
    /// Maximum of the bytes in flight in each round.
    pub rounds_bytes: Vec<u64>,
    /// When each round ended, after this direction's first data.
    pub rounds_end_s: Vec<f64>,
    /// The round (from 0) in which growth ended; `None` if it had not ended.
    pub exit_round: Option<usize>,
    /// When growth ended, after this direction's first data.
    pub exit_s: Option<f64>,
    /// What ended growth: `retransmission`, `receive-window`, `sender-idle` or `no-growth`.
    pub ended_by: Option<&'static str>,
}

impl CaptureReport {
    /// Notes why reading stopped.
    pub(crate) fn note_damage(&mut self, error: &CaptureError) {
        self.damaged = Some(format!("after packet {}: {error}", self.packets));
    }
}
