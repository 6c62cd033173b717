//! What is reported of flows other than TCP.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::distribution::Distribution;

/// A UDP flow.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UdpReport {
    /// The datagrams that the client sent.
    pub from_client: UdpStreamReport,
    /// The datagrams that the server sent.
    pub from_server: UdpStreamReport,
    /// GTP-U's messages that carry no packet, counted by name, such as `error-indication`.
    pub gtpu: BTreeMap<&'static str, u64>,
    /// What the QUIC headers show, if the flow began as QUIC.
    pub quic: Option<QuicReport>,
}

/// One direction of a UDP flow.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UdpStreamReport {
    /// Datagrams.
    pub packets: u64,
    /// Bytes after their UDP headers.
    pub payload_bytes: u64,
    /// Largest UDP payload of a datagram.
    pub largest_payload_bytes: u32,
    /// Payload divided by the time from the first datagram to the last.
    pub rate_mbps: Option<f64>,
    /// What the sequence numbers in the datagrams show; none where no known header was found.
    pub sequence: Option<SequenceReport>,
}

/// Datagrams with sequence numbers. Datagrams reported as lost were lost before the capture point.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SequenceReport {
    /// Kind of header: `iperf3`, `iperf3-64` (with 64-bit counters), `rtp`, or `number`: a 32-bit
    /// number comes first, as with iperf 2 and SRT.
    pub header: &'static str,
    /// How many numbers there are from the first to the highest one.
    pub expected: u64,
    /// Numbers that did not arrive.
    pub lost: u64,
    /// Datagrams that arrived after later ones.
    pub out_of_order: u64,
    /// Datagrams that arrived again.
    pub duplicates: u64,
    /// Most consecutive numbers that were missing when a later one arrived.
    pub longest_gap: u64,
    /// Interarrival jitter at the end of the flow (RFC 3550 6.4.1); none where the sender's clock
    /// is not known.
    pub jitter_ms: Option<f64>,
    /// Frequency of the sender's clock that the jitter is computed with, in Hz.
    pub clock_hz: Option<u32>,
}

/// A QUIC connection, as far as its headers show it (RFC 8999, RFC 9000).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuicReport {
    /// Versions of the long headers, in order of appearance: `1`, `2`, `draft-29`, or the number in
    /// hexadecimal.
    pub versions: Vec<String>,
    /// The destination connection ID that the client made up for its first packet, in hexadecimal.
    pub original_destination_id: Option<String>,
    /// The connection IDs that the client and the server chose for themselves.
    pub client_id: Option<String>,
    /// See `client_id`.
    pub server_id: Option<String>,
    /// Datagrams by the type of their first packet.
    pub packets: BTreeMap<&'static str, u64>,
    /// Time from the client's first packet to the server's first one: the round trip on the
    /// server's side of the capture point.
    pub server_side_ms: Option<f64>,
    /// Time from the server's first packet to the client's answer to it: the round trip on the
    /// client's side of the capture point.
    pub client_side_ms: Option<f64>,
    /// Time from the client's first packet to its first one with a short header.
    pub handshake_ms: Option<f64>,
    /// The latency spin bit (RFC 9000 17.4).
    pub spin: SpinReport,
}

/// The latency spin bit.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpinReport {
    /// `spins`; `constant`: an end does not take part; `random`: it changes every few packets, as
    /// RFC 9000 17.4 specifies for ends that do not take part; `unseen`: too few short headers.
    pub state: &'static str,
    /// Time between two changes of the bit in one direction: the end-to-end round-trip time.
    pub rtt_ms: Option<Distribution>,
    /// Time from a change of the server's bit to a change of the client's: the client's side of the
    /// capture point.
    pub client_side_ms: Option<Distribution>,
    /// Time from a change of the client's bit to a change of the server's: the server's side of the
    /// capture point.
    pub server_side_ms: Option<Distribution>,
}

/// ICMP messages between two ends.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EchoReport {
    /// Echo requests.
    pub requests: u64,
    /// Replies to captured requests, each counted once.
    pub replies: u64,
    /// Replies that arrived again.
    pub duplicates: u64,
    /// Replies to requests that were not captured.
    pub unasked: u64,
    /// Requests that neither a reply nor an ICMP error answered although there was time.
    pub unanswered: u64,
    /// Requests that an ICMP error answered, such as `time-exceeded` to a traceroute.
    pub refused: u64,
    /// Requests without a reply that were sent so shortly before the end of the capture that their
    /// reply may have come later.
    pub outstanding: u64,
    /// Time from a request to its reply: the round trip between the capture point and the end that
    /// replies.
    pub rtt_ms: Option<Distribution>,
    /// Other messages, counted by kind, such as `fragmentation-needed`.
    pub messages: BTreeMap<&'static str, u64>,
    /// The smallest MTU that a message reported, in bytes (RFC 1191, RFC 4443 3.2).
    pub mtu_bytes: Option<u32>,
}

/// ICMP errors that quote packets of a flow.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IcmpErrors {
    /// Errors counted by kind, such as `fragmentation-needed`.
    pub messages: BTreeMap<&'static str, u64>,
    /// The smallest MTU that an error reported, in bytes.
    pub mtu_bytes: Option<u32>,
    /// Address of the sender of the first error.
    pub from: String,
}
