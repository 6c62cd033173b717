//! The packets of one flow of any protocol, one by one.

use serde::Serialize;

use super::walk::{Ends, MOST_PACKETS, Seen};
use crate::FlowReport;
use crate::column::column;
use crate::decode::{ICMP_V4, ICMP_V6, IpPacket};

/// Every packet of a flow. Times are nanoseconds after the capture's first packet. The lists have
/// the same length.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = crate::column::columns))]
pub struct Packets {
    /// When each packet passed.
    #[serde(serialize_with = "column")]
    pub time_ns: Vec<u64>,
    /// Frame number of each packet in the file, from 1.
    #[serde(serialize_with = "column")]
    pub frame: Vec<u64>,
    /// Whether the client sent each packet.
    #[serde(serialize_with = "column")]
    pub from_client: Vec<bool>,
    /// IP length of each packet, in bytes.
    #[serde(serialize_with = "column")]
    pub size: Vec<u32>,
    /// For an echo request or reply, its sequence number (RFC 792).
    #[serde(serialize_with = "column")]
    pub echo: Vec<Option<u16>>,
    /// The flow has more packets than were kept.
    pub cut: bool,
}

pub(super) struct PacketCollector<'a> {
    ends: Ends<'a>,
    most: usize,
    packets: Packets,
}

impl<'a> PacketCollector<'a> {
    pub(super) fn new(flow: &'a FlowReport, most: usize) -> Self {
        Self { ends: Ends::of(flow), most: most.min(MOST_PACKETS), packets: Packets::default() }
    }

    pub(super) fn add(&mut self, ip: &IpPacket<'_>, seen: Seen) {
        let Some(by_client) = self.ends.sent_by_client(ip, seen) else { return };
        let packets = &mut self.packets;
        if packets.time_ns.len() == self.most {
            packets.cut = true;
            return;
        }
        let echo = match (ip.protocol, ip.body) {
            (ICMP_V4, &[0 | 8, _, _, _, _, _, high, low, ..])
            | (ICMP_V6, &[128 | 129, _, _, _, _, _, high, low, ..]) => {
                Some(u16::from_be_bytes([high, low]))
            }
            _ => None,
        };
        // Where times in the file go backwards, a packet gets the time of the one before it.
        packets.time_ns.push(packets.time_ns.last().copied().unwrap_or(0).max(seen.at_ns));
        packets.frame.push(seen.frame);
        packets.from_client.push(by_client);
        packets.size.push(ip.length);
        packets.echo.push(echo);
    }

    /// Whether no further packet can change what was collected.
    pub(super) const fn is_complete(&self) -> bool {
        self.packets.cut
    }

    pub(super) fn finish(self) -> Packets {
        self.packets
    }
}
