//! Tunnels: GTP-U, VXLAN, Geneve, IP in IP. Data that looks like a tunnel but holds no IP packet is
//! not a tunnel.

use super::{IpPacket, Tunnel, UDP, half, hash, ip, link};
use crate::gtpu;

const VXLAN: u16 = 4789;
/// The port that Linux uses by default, and with it the overlays of Kubernetes.
const VXLAN_LINUX: u16 = 8472;
const GENEVE: u16 = 6081;
const IPV4_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const UDP_BYTES: usize = 8;

/// The EtherType of an Ethernet frame within Geneve (RFC 8926 3.4).
const ETHERNET_FRAME: u16 = 0x6558;

/// The packet inside a packet; `None` if the packet carries none.
#[inline]
pub(super) fn inner<'a>(outer: &IpPacket<'a>) -> Option<IpPacket<'a>> {
    // Only the first fragment of a packet has the headers.
    if outer.fragment.is_some_and(|fragment| fragment.offset > 0) {
        return None;
    }
    let rest = outer.body_length as usize;
    let mut packet = match outer.protocol {
        UDP => through_udp(outer, rest)?,
        IPV4_IN_IP | IPV6_IN_IP => {
            let packet = ip::read(outer.body, rest).ok()?;
            IpPacket { tunnel: Tunnel::IpInIp, ..packet }
        }
        _ => return None,
    };
    let ends = outer.source ^ outer.destination.rotate_left(1);
    let tunnel = u64::from(packet.teid.unwrap_or_default()) << 8 | u64::from(outer.ttl);
    packet.place =
        [(ends >> 64) as u64, ends as u64, tunnel].into_iter().fold(outer.place, hash::word);
    Some(packet)
}

#[inline]
fn through_udp<'a>(outer: &IpPacket<'a>, rest: usize) -> Option<IpPacket<'a>> {
    let ports = [half(outer.body, 0)?, half(outer.body, 2)?];
    if ports.contains(&gtpu::PORT) {
        let datagram = outer.body.get(UDP_BYTES..)?;
        let inside = gtpu::read_beginning(datagram)?;
        let packet = ip::read(inside.packet, rest.saturating_sub(UDP_BYTES)).ok()?;
        return Some(IpPacket { tunnel: Tunnel::GtpU, teid: Some(inside.teid), ..packet });
    }
    let tunnel = match ports[1] {
        VXLAN | VXLAN_LINUX => Tunnel::Vxlan,
        GENEVE => Tunnel::Geneve,
        _ => return None,
    };
    let datagram = outer.body.get(UDP_BYTES..)?;
    let at = match tunnel {
        // RFC 7348 5: flags with a valid network identifier, then an Ethernet frame.
        Tunnel::Vxlan if datagram.first()? & 8 != 0 => {
            link::after(datagram, 22, half(datagram, 20)?)
        }
        Tunnel::Geneve => after_geneve(datagram),
        _ => return None,
    };
    let at = at.ok()?;
    let packet = ip::read(datagram.get(at..)?, rest.saturating_sub(UDP_BYTES + at)).ok()?;
    Some(IpPacket { tunnel, ..packet })
}

/// Whether a truncated datagram is GTP-U with a packet, of which too little was captured.
pub(super) fn is_cut(datagram: &[u8]) -> bool {
    let is_gtpu = half(datagram, 0) == Some(gtpu::PORT) || half(datagram, 2) == Some(gtpu::PORT);
    // The message type follows the flags. Only a G-PDU carries a packet.
    is_gtpu && datagram.get(UDP_BYTES + 1).is_none_or(|&kind| kind == gtpu::G_PDU)
}

/// The name of a GTP-U message that carries no packet (TS 29.281 6.1), from its UDP header on.
pub(crate) fn message(datagram: &[u8]) -> Option<&'static str> {
    let ports = [half(datagram, 0)?, half(datagram, 2)?];
    let &[flags, kind, ..] = datagram.get(UDP_BYTES..)? else { return None };
    // Version 1, and the protocol type of GTP (TS 29.281 5.1).
    if !ports.contains(&gtpu::PORT) || flags >> 4 != 3 {
        return None;
    }
    match kind {
        1 => Some("echo-request"),
        2 => Some("echo-response"),
        26 => Some("error-indication"),
        254 => Some("end-marker"),
        _ => None,
    }
}

/// RFC 8926 3.4: a header, options, then an Ethernet frame or a packet.
fn after_geneve(datagram: &[u8]) -> Result<usize, super::Skipped> {
    let short = super::Skipped::Truncated;
    let &first = datagram.first().ok_or(short)?;
    if first >> 6 != 0 {
        return Err(super::Skipped::Malformed);
    }
    let at = 8 + usize::from(first & 0x3f) * 4;
    match half(datagram, 2).ok_or(short)? {
        ETHERNET_FRAME => link::after(datagram, at + 14, half(datagram, at + 12).ok_or(short)?),
        kind => link::after(datagram, at, kind),
    }
}
