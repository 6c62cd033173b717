//! ICMP errors, which quote the packet that they are about (RFC 792, RFC 1191 4, RFC 4443 3).

use super::{ICMP_V4, ICMP_V6, IpPacket, half, ip, tunnel, word};

/// Bytes in front of the quoted packet.
const HEADER_BYTES: usize = 8;

/// An error and the packet that it is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IcmpError<'a> {
    pub(crate) name: &'static str,
    /// The MTU of the next hop.
    pub(crate) mtu: Option<u32>,
    /// The packet, as far as the error quotes it.
    pub(crate) quoted: IpPacket<'a>,
}

impl<'a> IcmpError<'a> {
    /// Reads a message; `None` if it is not an error or quotes too little.
    pub(crate) fn read(packet: &IpPacket<'a>) -> Option<Self> {
        let v4 = packet.protocol == ICMP_V4;
        let &[kind, code, ..] = packet.body else { return None };
        if !matches!((packet.protocol, kind), (ICMP_V4, 3 | 11 | 12) | (ICMP_V6, 1..=4)) {
            return None;
        }
        let rest = (packet.body_length as usize).saturating_sub(HEADER_BYTES);
        let outer = ip::read(packet.body.get(HEADER_BYTES..)?, rest).ok()?;
        // An error seen within a tunnel is about a packet in the tunnel; it may also be about the
        // tunnel.
        let quoted = tunnel::inner(&outer).unwrap_or(IpPacket { tunnel: packet.tunnel, ..outer });
        Some(Self { name: name(v4, kind, code), mtu: mtu(packet), quoted })
    }
}

/// The MTU of the next hop, if the message reports it: routers older than RFC 1191 do not.
pub(crate) fn mtu(packet: &IpPacket<'_>) -> Option<u32> {
    let mtu = match (packet.protocol, packet.body) {
        (ICMP_V4, [3, 4, ..]) => u32::from(half(packet.body, 6)?),
        (ICMP_V6, [2, ..]) => word(packet.body, 4)?,
        _ => 0,
    };
    (mtu > 0).then_some(mtu)
}

/// A message's name (RFC 792, RFC 1191 4, RFC 4443 3, RFC 4861 4).
pub(crate) fn name(v4: bool, kind: u8, code: u8) -> &'static str {
    match (v4, kind, code) {
        (true, 3, 4) => "fragmentation-needed",
        (false, 2, _) => "packet-too-big",
        (true, 3, 3) | (false, 1, 4) => "port-unreachable",
        (true, 3, _) | (false, 1, _) => "destination-unreachable",
        (true, 11, _) | (false, 3, _) => "time-exceeded",
        (true, 12, _) | (false, 4, _) => "parameter-problem",
        (true, 5, _) | (false, 137, _) => "redirect",
        (false, 133..=136, _) => "neighbour-discovery",
        _ => "other",
    }
}
