//! What is said of a capture: documents, without a byte of payload.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::datagram::{EchoReport, IcmpErrors, UdpReport};
use crate::decode::Skipped;
pub use crate::distribution::Distribution;
use crate::read::{Compression, FileFormat};
use crate::{CaptureError, Tunnel};

/// What a capture holds. Times are in seconds, those with `time` in their name since 1970.
#[derive(Debug, Serialize)]
pub struct CaptureReport {
    /// How the file is built.
    pub format: FileFormat,
    /// How it is compressed.
    pub compression: Option<Compression>,
    /// Where packets were captured, in the order of the file.
    pub interfaces: Vec<InterfaceReport>,
    /// How many the file holds.
    pub packets: u64,
    /// Their bytes on the wire, link-layer headers included.
    pub bytes: u64,
    /// Packets of which not all bytes were kept.
    pub cut_packets: u64,
    /// Those of which not even all headers were kept.
    pub cut_headers: Option<CutHeaders>,
    /// Packets that are earlier than the one before them.
    pub backward_times: u64,
    /// By how much at the most.
    pub largest_step_back_s: f64,
    /// When the first packet was captured.
    pub first_time_s: Option<f64>,
    /// From the earliest to the latest packet.
    pub duration_s: f64,
    /// Packets that belong to no flow, by reason.
    pub skipped: BTreeMap<Skipped, u64>,
    /// Packets that the capture itself missed, as far as they show.
    pub missed: Missed,
    /// Flows, in the order in which they began; the largest ones, if there are very many.
    pub flows: Vec<FlowReport>,
    /// Flows that are not among these.
    pub others: Others,
    /// Where the file ends before its end, and why.
    pub damaged: Option<String>,
}

/// Packets that were cut within their headers.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub struct CutHeaders {
    /// How many.
    pub packets: u64,
    /// Bytes of each packet that have to be kept so that all headers are there (`tcpdump -s`): link layer,
    /// tunnels, and the longest header of TCP.
    pub snap_bytes: u64,
}

/// Where packets were captured.
#[derive(Debug, Serialize)]
pub struct InterfaceReport {
    /// What the file calls it.
    pub name: Option<String>,
    /// LINKTYPE_ number.
    pub link_type: u16,
    /// The link type in words; `None` if its packets are not read.
    pub link: Option<&'static str>,
    /// Packets of it in the file.
    pub packets: u64,
    /// Packets that it or its system dropped, as the file says.
    pub dropped: u64,
}

/// Evidence that the capture has not all that passed.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub struct Missed {
    /// Packets that were dropped, as the file says.
    pub dropped_packets: u64,
    /// Acknowledgements of bytes that the capture does not hold.
    pub acks_of_unseen: u64,
    /// Such bytes.
    pub unseen_bytes: u64,
    /// TCP flows with such acknowledgements.
    pub flows: u64,
}

/// Flows that have no row of their own.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub struct Others {
    /// How many.
    pub flows: u64,
    /// Their packets.
    pub packets: u64,
    /// Their bytes of IP.
    pub bytes: u64,
    /// Their retransmitted packets.
    pub retransmissions: u64,
}

/// One flow at one point of the path. The client is the end that opened it, or else that spoke first.
#[derive(Clone, Debug, Serialize)]
pub struct FlowReport {
    /// Number, from 0, in the order in which flows began.
    pub id: u64,
    /// `tcp`, `udp`, `icmp`, or the number of an IP protocol.
    pub protocol: String,
    /// Address of the client.
    pub client: String,
    /// Its port; 0 where there is none.
    pub client_port: u16,
    /// Address of the server.
    pub server: String,
    /// Its port; 0 where there is none.
    pub server_port: u16,
    /// Index of the interface.
    pub interface: usize,
    /// What was around its packets.
    pub tunnel: Tunnel,
    /// Tunnel endpoint identifiers of GTP-U, client's and server's packets.
    pub teids: [Option<u32>; 2],
    /// How often each of its packets was captured at its point, one like the other. Copies are left out
    /// (they count as skipped), unless the capture was a stream, which cannot be read again.
    pub times_captured: u8,
    /// Other flows of the list with the same ends and times: the same packets at other points.
    pub same_as: Vec<u64>,
    /// Its first packet, after the capture's first.
    pub start_s: f64,
    /// From its first to its last packet.
    pub duration_s: f64,
    /// What the client sent.
    pub from_client: Volume,
    /// What the server sent.
    pub from_server: Volume,
    /// What TCP's headers say.
    pub tcp: Option<TcpReport>,
    /// What UDP's headers say, and those of known protocols behind them.
    pub udp: Option<UdpReport>,
    /// What ICMP's messages say.
    pub icmp: Option<EchoReport>,
    /// Errors of ICMP about its packets, whoever sent them.
    pub icmp_errors: Option<IcmpErrors>,
}

/// What one end sent.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub struct Volume {
    /// How many passed.
    pub packets: u64,
    /// Bytes of IP.
    pub bytes: u64,
}

/// A TCP connection.
#[derive(Clone, Debug, Serialize)]
pub struct TcpReport {
    /// Whether its SYN was captured, so that the client is known.
    pub opening_seen: bool,
    /// From the first SYN to the handshake's last segment.
    pub handshake_ms: Option<f64>,
    /// `open`, `closed` by a FIN of each end, or `reset`.
    pub state: &'static str,
    /// Times without a packet while data was outstanding.
    pub stalls: Stalls,
    /// The client's data, and the server's acknowledgements of it.
    pub from_client: StreamReport,
    /// The server's data, and the client's acknowledgements of it.
    pub from_server: StreamReport,
}

/// Times without any packet for four round trips and 200 ms at least, while data was outstanding.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub struct Stalls {
    /// How many.
    pub count: u64,
    /// All together.
    pub total_s: f64,
    /// Seconds of the longest one.
    pub longest_s: f64,
    /// When that began, after the capture's first packet.
    pub longest_at_s: Option<f64>,
}

/// One direction of a TCP connection.
#[derive(Clone, Debug, Serialize)]
pub struct StreamReport {
    /// Its SYN's options.
    pub options: Option<SynOptions>,
    /// Packets with payload.
    pub data_packets: u64,
    /// Payload, retransmissions included.
    pub data_bytes: u64,
    /// Bytes that were acknowledged.
    pub acked_bytes: u64,
    /// Acknowledged bytes over the time from the first data to the last acknowledgement.
    pub goodput_mbps: Option<f64>,
    /// From a segment here to its acknowledgement here: the receiver's side of the capture point.
    pub rtt_ms: Option<Distribution>,
    /// The same by timestamps, also of segments that were sent twice.
    pub rtt_timestamps_ms: Option<Distribution>,
    /// What was sent again.
    pub retransmissions: Retransmissions,
    /// Packets that came after later ones, without having been sent twice.
    pub out_of_order_packets: u64,
    /// The latest of them, after the first packet that had overtaken it.
    pub out_of_order_ms: Option<f64>,
    /// Duplicate acknowledgements that came back.
    pub duplicate_acks: u64,
    /// Bytes sent and not acknowledged, as seen here.
    pub in_flight_bytes: Option<InFlight>,
    /// The receiver's window for this direction.
    pub window: Option<WindowReport>,
    /// Largest payload of a packet.
    pub largest_payload_bytes: u32,
    /// Packets with more payload than the receiver's MSS: captured before segmentation offload cut
    /// them, or after it had joined them. Sizes and times are not those on the wire then.
    pub larger_than_mss: u64,
    /// Keep-alive probes.
    pub keep_alives: u64,
    /// How the acknowledgements of this direction's data came.
    pub acks: Option<AckReport>,
    /// How new data left, or came by.
    pub sending: Option<SendingReport>,
    /// What held the sender back, and for how long; none where `slow_start` is told of none.
    pub limits: Option<LimitsReport>,
    /// The first round trips of this direction's data; none where the receiver is much nearer than
    /// the sender.
    pub slow_start: Option<SlowStart>,
    /// Acknowledgements of bytes that the capture does not hold.
    pub acks_of_unseen: u64,
    /// Such bytes.
    pub unseen_bytes: u64,
}

/// What a SYN says (RFC 9293 3.2, RFC 7323, RFC 2018).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct SynOptions {
    /// Largest segment that this end receives.
    pub mss: Option<u16>,
    /// Its windows are shifted by so many bits.
    pub window_scale: Option<u8>,
    /// It understands selective acknowledgements.
    pub sack_permitted: bool,
    /// It has the option of RFC 7323 3.
    pub timestamps: bool,
    /// The capture holds only a part of the options: one that is not here may have been sent.
    pub cut: bool,
}

/// What was sent again, in packets. Each counts for one of the first five; proofs may be several.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub struct Retransmissions {
    /// All of them.
    pub packets: u64,
    /// Their payload.
    pub bytes: u64,
    /// The packets as segments of the MSS, where offload had joined them.
    pub segments: u64,
    /// After duplicate or selective acknowledgements (RFC 6675, RFC 8985 6).
    pub fast: u64,
    /// The last segment after a silence (RFC 8985 7).
    pub tail_loss_probe: u64,
    /// After a time-out, and what followed from it (RFC 6298 5).
    pub timeout: u64,
    /// SYN or SYN-ACK.
    pub handshake: u64,
    /// Without a sign of why.
    pub unclear: u64,
    /// Of all, those whose original was lost before the capture point.
    pub original_unseen: u64,
    /// Of all, those that were not needed.
    pub spurious: u64,
    /// Proof: the acknowledgement had passed here before.
    pub spurious_by_ack: u64,
    /// Proof: the receiver reports a duplicate (RFC 2883, RFC 3708).
    pub spurious_by_dsack: u64,
    /// Proof: the acknowledgement echoes the original's timestamp (RFC 3522).
    pub spurious_by_timestamp: u64,
}

/// Bytes sent and not acknowledged.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct InFlight {
    /// Mean over the packets with data.
    pub mean: f64,
    /// The most.
    pub max: u64,
}

/// A receiver's window.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WindowReport {
    /// Windows are shifted by so many bits; `None` without the options of both SYNs (RFC 7323 2.2): then
    /// nobody knows a window in bytes.
    pub scale: Option<u8>,
    /// Largest window, in bytes.
    pub max_bytes: Option<u64>,
    /// Smallest window after the handshake.
    pub min_bytes: Option<u64>,
    /// Time in which the window had no room for one more segment.
    pub limited_s: Option<f64>,
    /// How often it became zero.
    pub zero_windows: u64,
}

/// How acknowledgements came.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AckReport {
    /// Those without payload that acknowledged something new.
    pub count: u64,
    /// Batches: acknowledgements with less than 1 ms between one and the next.
    pub batches: u64,
    /// Acknowledgements in a batch, mean.
    pub per_batch: f64,
    /// Median time from one batch to the next.
    pub batch_interval_ms: Option<f64>,
    /// Data acknowledged by one of them, mean, in bytes.
    pub bytes_per_ack: f64,
}

/// How new data left its sender, as far as it shows at the capture point.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SendingReport {
    /// Bursts: packets with new data with less than 0.1 ms between one and the next.
    pub bursts: u64,
    /// Segments in a burst, mean.
    pub per_burst: f64,
    /// Segments of the largest burst.
    pub largest_burst: u64,
    /// Of the bursts that began while data was outstanding, the share that came 0.5 ms or more after the
    /// last acknowledgement: a timer set them off (pacing), or the application. `None` next to the
    /// receiver.
    pub unprompted: Option<f64>,
}

/// What held the sender back, in seconds from its first data to the last acknowledgement.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LimitsReport {
    /// Data was outstanding, and none of the following: the path, or the congestion window.
    pub path_s: f64,
    /// The receive window had no room for one more segment.
    pub receive_window_s: f64,
    /// All was acknowledged, until there was new data.
    pub nothing_to_send_s: f64,
    /// What was lost, and what was sent until then, was not yet acknowledged.
    pub recovery_s: f64,
}

/// The first round trips with data.
#[derive(Clone, Debug, Serialize)]
pub struct SlowStart {
    /// Most bytes in flight in each round.
    pub rounds_bytes: Vec<u64>,
    /// When each round ended, after this direction's first data.
    pub rounds_end_s: Vec<f64>,
    /// The round (from 0) in which growth had ended; `None` if it had not.
    pub exit_round: Option<usize>,
    /// When, after this direction's first data.
    pub exit_s: Option<f64>,
    /// What it ended with: `retransmission`, `receive-window`, `sender-idle` or `no-growth`.
    pub ended_by: Option<&'static str>,
}

impl CaptureReport {
    /// Notes why the file was not read on.
    pub(crate) fn note_damage(&mut self, error: &CaptureError) {
        self.damaged = Some(format!("after packet {}: {error}", self.packets));
    }
}
