//! Measures one direction of a flow from passing packets.

use airpath_base::Instant;
use airpath_metrics::{MeanRtt, SegmentHeader, StreamMeter};

use super::rtts::{RttPool, Rtts};
use crate::observation::host_share::HostShare;
use crate::wire::packet::{ACK, FIN, Layout, SYN, TCP, UDP};

/// One direction of a flow.
#[derive(Debug, Default)]
pub(super) struct DirectionMeter {
    /// The byte stream of TCP.
    pub(super) stream: StreamMeter,
    /// For other protocols: packets that entered, and payload that left.
    pub(super) packets: u64,
    pub(super) payload: u64,
    /// Packets dropped in this direction.
    pub(super) dropped: u64,
    pub(super) rtt: Rtts,
    /// The share of the receiving host.
    pub(super) host: HostShare,
    /// Mean RTT since the last sample.
    pub(super) mean_rtt: MeanRtt,
}

impl DirectionMeter {
    /// An acknowledgement of this direction's data reached the sender.
    pub(super) fn on_acknowledged(
        &mut self,
        at: Instant,
        number: u32,
        timestamps: bool,
        pool: &mut RttPool,
    ) {
        if let Some(rtt) = self.stream.on_acknowledged(at, number, timestamps) {
            self.rtt.record(rtt, pool);
            self.mean_rtt.record(rtt);
        }
    }

    /// Payload that arrived; for TCP, in order.
    pub(super) const fn bytes(&self, protocol: u8) -> u64 {
        if protocol == TCP { self.stream.delivered() } else { self.payload }
    }

    /// Packets that were sent; for TCP, those with payload.
    pub(super) const fn sent(&self, protocol: u8) -> u64 {
        if protocol == TCP { self.stream.sent() } else { self.packets }
    }
}

/// NOP, NOP, kind 8, length 10: the usual form of the option in established connections (RFC 7323
/// A).
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];

/// The fields of a packet that are metered; for protocols other than TCP, only the payload.
pub(super) fn segment_header(packet: &[u8]) -> Option<SegmentHeader> {
    let layout = Layout::of(packet)?;
    if let Some(header) = layout.tcp_header_bytes(packet) {
        let tcp = &packet[layout.ip_bytes..];
        let word = |at: usize| u32::from_be_bytes([tcp[at], tcp[at + 1], tcp[at + 2], tcp[at + 3]]);
        let (flags, payload) = (tcp[13], (packet.len() - header) as u64);
        let syn = flags & SYN != 0;
        return Some(SegmentHeader {
            sequence: word(4),
            acknowledgement: (flags & ACK != 0).then(|| word(8)),
            syn,
            timestamps: tcp[20..].starts_with(&TIMESTAMPS),
            payload,
            length: payload + u64::from(syn) + u64::from(flags & FIN != 0),
        });
    }
    let headers = layout.ip_bytes + if layout.protocol == UDP { 8 } else { 0 };
    let payload = packet.len().saturating_sub(headers) as u64;
    let (sequence, acknowledgement, syn, timestamps) = (0, None, false, false);
    Some(SegmentHeader { sequence, acknowledgement, syn, timestamps, payload, length: payload })
}
