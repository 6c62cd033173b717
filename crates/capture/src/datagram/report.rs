//! What is said of flows without TCP.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::distribution::Distribution;

/// A UDP flow.
#[derive(Clone, Debug, Serialize)]
pub struct UdpReport {
    /// The client's datagrams.
    pub from_client: UdpStreamReport,
    /// The server's datagrams.
    pub from_server: UdpStreamReport,
    /// What it tells as QUIC, if it began as such.
    pub quic: Option<QuicReport>,
}

/// One direction of a UDP flow.
#[derive(Clone, Debug, Serialize)]
pub struct UdpStreamReport {
    /// Datagrams.
    pub packets: u64,
    /// Bytes after their UDP headers.
    pub payload_bytes: u64,
    /// Most of them in one datagram.
    pub largest_payload_bytes: u32,
    /// Payload over the time from the first datagram to the last.
    pub rate_mbps: Option<f64>,
    /// What the numbers in their headers say; none where no such header is known.
    pub sequence: Option<SequenceReport>,
}

/// Datagrams with numbers. What is lost was lost before the capture point.
#[derive(Clone, Debug, Serialize)]
pub struct SequenceReport {
    /// Whose headers: `iperf3`, `iperf3-64` (with 64-bit counters), `rtp`, or `number`: 32 bits come first,
    /// as with iperf 2 and SRT.
    pub header: &'static str,
    /// Numbers from the first to the highest one.
    pub expected: u64,
    /// Numbers that did not come.
    pub lost: u64,
    /// Datagrams that came after later ones.
    pub out_of_order: u64,
    /// Datagrams that came again.
    pub duplicates: u64,
    /// Most numbers in a row that were missing when a later one came.
    pub longest_gap: u64,
    /// Interarrival jitter at the end (RFC 3550 6.4.1); none where the sender's clock is not known.
    pub jitter_ms: Option<f64>,
    /// The sender's clock as it was used for the jitter, in Hz.
    pub clock_hz: Option<u32>,
}

/// A QUIC connection, as its headers show it (RFC 8999, RFC 9000).
#[derive(Clone, Debug, Serialize)]
pub struct QuicReport {
    /// Versions of its long headers, in the order in which they came: `1`, `2`, `draft-29`, or the
    /// number in hexadecimal.
    pub versions: Vec<String>,
    /// The destination that the client made up for its first packet, in hexadecimal.
    pub original_destination_id: Option<String>,
    /// What the client and the server chose for themselves.
    pub client_id: Option<String>,
    /// See `client_id`.
    pub server_id: Option<String>,
    /// Datagrams that begin with each type of packet.
    pub packets: BTreeMap<&'static str, u64>,
    /// From the client's first packet to the server's first one: the server's side of the point.
    pub server_side_ms: Option<f64>,
    /// From the server's first packet to the client's answer to it: the client's side.
    pub client_side_ms: Option<f64>,
    /// From the client's first packet to its first one with a short header.
    pub handshake_ms: Option<f64>,
    /// The latency spin bit (RFC 9000 17.4).
    pub spin: SpinReport,
}

/// The latency spin bit.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SpinReport {
    /// `spins`; `constant`: an end does not take part; `random`: it changes with every few packets, as
    /// RFC 9000 17.4 has it for ends that do not take part; `unseen`: too few short headers.
    pub state: &'static str,
    /// Between two changes of the bit in one direction: the round trip from end to end.
    pub rtt_ms: Option<Distribution>,
    /// From a change of the server's bit to the client's: the client's side of the capture point.
    pub client_side_ms: Option<Distribution>,
    /// From a change of the client's bit to the server's.
    pub server_side_ms: Option<Distribution>,
}

/// ICMP between two ends.
#[derive(Clone, Debug, Serialize)]
pub struct EchoReport {
    /// Echo requests.
    pub requests: u64,
    /// Replies to requests that were seen, each counted once.
    pub replies: u64,
    /// Replies that came again.
    pub duplicates: u64,
    /// Replies to requests that were not seen.
    pub unasked: u64,
    /// Requests that had no reply until the capture's end.
    pub unanswered: u64,
    /// From a request to its reply: the round trip between the capture point and who replies.
    pub rtt_ms: Option<Distribution>,
    /// Other messages by kind, such as `fragmentation-needed`.
    pub messages: BTreeMap<&'static str, u64>,
    /// The least MTU that one of them said, in bytes (RFC 1191, RFC 4443 3.2).
    pub mtu_bytes: Option<u32>,
}

/// Errors of ICMP that quote packets of a flow.
#[derive(Clone, Debug, Serialize)]
pub struct IcmpErrors {
    /// How many by kind, such as `fragmentation-needed`.
    pub messages: BTreeMap<&'static str, u64>,
    /// The least MTU that one of them said, in bytes.
    pub mtu_bytes: Option<u32>,
    /// Who sent the first one.
    pub from: String,
}
