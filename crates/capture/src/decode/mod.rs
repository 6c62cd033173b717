//! From a captured frame to the innermost packet of IP: link layers, tunnels, extension headers.
//!
//! Lengths come from the headers, so a packet of which only the beginning was kept counts in full.

mod fragments;
pub(crate) mod hash;
pub(crate) mod icmp;
mod ip;
mod link;
mod tcp;
mod tunnel;

pub(crate) use fragments::Fragments;
pub(crate) use ip::Fragment;
pub use link::link_type_name;
pub(crate) use tcp::{ACK, FIN, RST, SYN, TO_WINDOW, TcpHeader};

use serde::Serialize;

/// Tunnels within tunnels, and headers in front of one IP header, at the most.
const MOST_LAYERS: usize = 16;

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMP_V4: u8 = 1;
pub(crate) const ICMP_V6: u8 = 58;

/// What is around the innermost IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tunnel {
    /// Nothing.
    #[default]
    None,
    /// TS 29.281.
    GtpU,
    /// RFC 7348.
    Vxlan,
    /// RFC 8926.
    Geneve,
    /// RFC 2003, RFC 2473, RFC 4213.
    IpInIp,
}

/// Why a packet belongs to no flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Skipped {
    /// The link type is none of those that are read.
    LinkType,
    /// It carries something else than IP.
    NoIp,
    /// Too little of it was kept.
    Truncated,
    /// A header contradicts itself.
    Malformed,
    /// Too many headers before the transport's.
    TooDeep,
    /// A fragment without the beginning of its packet, or one that waits for the others.
    Fragment,
    /// A copy of a packet that was captured before.
    Copy,
}

/// The innermost packet of IP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpPacket<'a> {
    pub(crate) source: u128,
    pub(crate) destination: u128,
    /// The addresses are IPv4's, in the lower 32 bits.
    pub(crate) v4: bool,
    pub(crate) protocol: u8,
    /// Identification (RFC 791); 0 in IPv6.
    pub(crate) id: u16,
    /// Time to live, or hop limit.
    pub(crate) ttl: u8,
    /// A hash of what stands before this header and belongs to where the packet was seen: link layer,
    /// ends of tunnels.
    pub(crate) place: u64,
    pub(crate) fragment: Option<Fragment>,
    /// Bytes on the wire, from this IP header on.
    pub(crate) length: u32,
    /// Of these, bytes after the IP headers.
    pub(crate) body_length: u32,
    /// What was kept of them.
    pub(crate) body: &'a [u8],
    pub(crate) tunnel: Tunnel,
    /// Tunnel endpoint identifier of the innermost GTP-U.
    pub(crate) teid: Option<u32>,
}

/// Decodes a frame of `length` bytes of which `data` was kept.
#[inline]
pub(crate) fn decode(link_type: u16, data: &[u8], length: u32) -> Result<IpPacket<'_>, Skipped> {
    let at = link::ip_at(link_type, data)?;
    let rest = (length as usize).max(data.len()) - at;
    let mut packet = ip::read(&data[at..], rest)?;
    packet.place = hash::bytes(0, &data[..at]);
    for _ in 0..MOST_LAYERS {
        match tunnel::inner(&packet) {
            None => return Ok(packet),
            Some(inner) => packet = inner,
        }
    }
    Err(Skipped::TooDeep)
}

/// The longest headers of TCP and IPv6, and what a tunnel through UDP adds: GTP-U with an extension.
const MOST_OF_TCP: usize = 60;
const MOST_OF_IP: usize = 40;
const MOST_OF_UDP_TUNNEL: usize = 8 + 16;

/// Bytes of a frame that have to be kept for all of its headers, if they were cut.
pub(crate) fn headers_need(
    link_type: u16,
    data: &[u8],
    decoded: &Result<IpPacket<'_>, Skipped>,
) -> Option<usize> {
    let ip = match decoded {
        Ok(ip) => ip,
        Err(Skipped::Truncated) => {
            let at = link::ip_at(link_type, data).unwrap_or(data.len());
            return Some(at + MOST_OF_IP + MOST_OF_TCP);
        }
        Err(_) => return None,
    };
    // What was cut ends where the frame does.
    let (kept, at) = (ip.body.len(), data.len() - ip.body.len());
    if kept >= ip.body_length as usize || ip.fragment.is_some_and(|part| part.offset > 0) {
        return None;
    }
    match ip.protocol {
        TCP => {
            let header = ip.body.get(12).map_or(MOST_OF_TCP, |words| usize::from(words >> 4) * 4);
            (kept < header).then_some(at + MOST_OF_TCP)
        }
        UDP if tunnel::is_cut(ip.body) => Some(at + MOST_OF_UDP_TUNNEL + MOST_OF_IP + MOST_OF_TCP),
        UDP | ICMP_V4 | ICMP_V6 => (kept < 8).then_some(at + 8),
        _ => None,
    }
}

/// The 16 bits at a place, in network order.
#[inline]
fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// The 32 bits at a place, in network order.
#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}
