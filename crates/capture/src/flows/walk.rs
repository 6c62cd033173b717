//! Reads a file once more, for some of its flows.

use std::net::IpAddr;

use super::copies::{Copies, Sight};
use super::{Fragments, ports};
use crate::decode::{ICMP_V4, ICMP_V6, IpPacket, TCP, UDP, decode};
use crate::read::Reader;
use crate::{CaptureError, FlowReport};

/// Most packets of a flow that are kept; later ones are not.
pub(super) const MOST_PACKETS: usize = 4_000_000;

/// Where and when a packet passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) interface: usize,
    /// Frame number in the file, from 1.
    pub(super) frame: u64,
    /// Nanoseconds after the capture's first packet.
    pub(super) at_ns: u64,
    pub(super) sight: Sight,
}

/// Calls `each` with every IP packet, and with fragmented ones once they are whole, until it
/// returns true.
pub(super) fn walk(
    mut reader: Reader,
    mut each: impl FnMut(&IpPacket<'_>, Seen) -> bool,
) -> Result<(), CaptureError> {
    let mut link_types: Vec<u16> = Vec::new();
    let (mut fragments, mut copies) = (Fragments::default(), Copies::default());
    let mut first = None;
    loop {
        let packet = match reader.packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => return Ok(()),
            Err(error) if first.is_none() => return Err(error),
            // The report says where the file is broken.
            Err(_) => return Ok(()),
        };
        let epoch = *first.get_or_insert(packet.time);
        let (interface, frame) = (packet.interface, packet.frame);
        let (time, length) = (packet.time, packet.length);
        let at_ns = time.saturating_since(epoch).as_nanos();
        let known = link_types.get(interface).copied();
        let data;
        let (link_type, bytes) = match known {
            Some(known) => (known, packet.data),
            None => {
                data = packet.data.to_vec();
                link_types = reader.interfaces().iter().map(|one| one.link_type).collect();
                (link_types[interface], &data[..])
            }
        };
        let Ok(ip) = decode(link_type, bytes, length) else { continue };
        let sight = copies.see(time, interface, &ip);
        if sight.is_copy || (ip.fragment.is_some() && sight.times > 1) {
            continue;
        }
        let seen = Seen { interface, frame, at_ns, sight };
        let is_over = match ip.fragment {
            None => each(&ip, seen),
            Some(fragment) => {
                let point = (interface as u64) << 8 | ip.tunnel as u64;
                fragments.add(&ip, fragment, point).is_some_and(|whole| {
                    let body = &whole.header[..whole.kept];
                    let (length, body_length) = (whole.length, whole.body_length);
                    each(&IpPacket { fragment: None, length, body_length, body, ..ip }, seen)
                })
            }
        };
        if is_over {
            return Ok(());
        }
    }
}

/// The two ends of a flow, its point, and the time during which it is alive.
pub(super) struct Ends<'a> {
    flow: &'a FlowReport,
    /// Protocol numbers of the flow; for ICMP, those of both versions.
    protocols: [u8; 2],
    /// Addresses of client and server.
    addresses: [Option<u128>; 2],
    /// The flow is alive between these times, in nanoseconds after the capture's first packet.
    range: [f64; 2],
}

impl<'a> Ends<'a> {
    pub(super) fn of(flow: &'a FlowReport) -> Self {
        let address = |text: &str| {
            text.parse().ok().map(|address| match address {
                IpAddr::V4(address) => u128::from(u32::from(address)),
                IpAddr::V6(address) => u128::from(address),
            })
        };
        // Fractional seconds lose nanoseconds.
        let end = flow.start_s + flow.duration_s;
        let lost = 1e-6 + 4.0 * f64::EPSILON * end;
        let range = [flow.start_s - lost, end + lost];
        let protocols = match flow.protocol.as_str() {
            "tcp" => [TCP; 2],
            "udp" => [UDP; 2],
            "icmp" => [ICMP_V4, ICMP_V6],
            other => {
                let number = other.strip_prefix("ip-").and_then(|number| number.parse().ok());
                // Protocol number 255 is reserved.
                [number.unwrap_or(u8::MAX); 2]
            }
        };
        Self {
            flow,
            protocols,
            addresses: [address(&flow.client), address(&flow.server)],
            range: range.map(|seconds| seconds * 1e9),
        }
    }

    /// Whether the client sent the packet; `None` if it does not belong to this flow.
    pub(super) fn sent_by_client(&self, ip: &IpPacket<'_>, seen: Seen) -> Option<bool> {
        if seen.interface != self.flow.interface || ip.tunnel != self.flow.tunnel {
            return None;
        }
        // Two protocols may use the same ports.
        if !self.protocols.contains(&ip.protocol) {
            return None;
        }
        let pair = ports(ip).ok()?;
        let ends = [Some(ip.source), Some(ip.destination)];
        let [client, server] = [self.flow.client_port, self.flow.server_port];
        let by_client = ends == self.addresses && pair == [client, server];
        let [there, back] = self.addresses;
        let by_server = ends == [back, there] && pair == [server, client];
        let at = seen.at_ns as f64;
        let is_alive = self.range[0] <= at && at <= self.range[1];
        let times = self.flow.times_captured[usize::from(!by_client)];
        let is_one = is_alive && (by_client || by_server) && !seen.sight.is_left_out(times);
        is_one.then_some(by_client)
    }
}
