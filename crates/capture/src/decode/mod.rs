//! From a captured frame to the innermost IP packet: link layers, tunnels, extension headers.
//!
//! Lengths come from the headers, so a truncated packet counts in full.

mod fragments;
pub(crate) mod hash;
pub(crate) mod icmp;
mod ip;
mod link;
mod tcp;
pub(crate) mod tunnel;

pub(crate) use fragments::Fragments;
pub(crate) use ip::Fragment;
pub use link::link_type_name;
pub(crate) use tcp::{ACK, FIN, RST, SYN, TO_WINDOW, TcpHeader};

use serde::Serialize;

/// Most nested tunnels, and most headers in front of one IP header.
const MOST_LAYERS: usize = 16;

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMP_V4: u8 = 1;
pub(crate) const ICMP_V6: u8 = 58;

/// The encapsulation around the innermost IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Skipped {
    /// The link type cannot be read.
    LinkType,
    /// The frame does not carry IP.
    NoIp,
    /// Too little of the packet was captured.
    Truncated,
    /// A header contradicts itself.
    Malformed,
    /// Too many headers precede the transport header.
    TooDeep,
    /// A fragment without the beginning of its packet, or one that waits for the others.
    Fragment,
    /// A copy of a packet that was captured before.
    Copy,
}

/// The innermost IP packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpPacket<'a> {
    pub(crate) source: u128,
    pub(crate) destination: u128,
    /// The addresses are IPv4 addresses, in the lower 32 bits.
    pub(crate) v4: bool,
    pub(crate) protocol: u8,
    /// Identification (RFC 791); 0 for IPv6.
    pub(crate) id: u16,
    /// Time to live (IPv4) or hop limit (IPv6).
    pub(crate) ttl: u8,
    /// A hash of what precedes this header and identifies the place where the packet was seen: link
    /// layer, tunnel endpoints.
    pub(crate) place: u64,
    pub(crate) fragment: Option<Fragment>,
    /// Bytes on the wire, from this IP header on.
    pub(crate) length: u32,
    /// The part of `length` after the IP headers.
    pub(crate) body_length: u32,
    /// The bytes of the body that were captured.
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

/// The longest TCP and IPv6 headers, and what a tunnel over UDP adds: GTP-U with an extension
/// header.
const MOST_OF_TCP: usize = 60;
const MOST_OF_IP: usize = 40;
const MOST_OF_UDP_TUNNEL: usize = 8 + 16;

/// How many bytes of a frame must be captured to have all of its headers, if they were truncated.
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
    // Truncated data ends where the frame does.
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

/// The 16 bits at `at`, in network byte order.
#[inline]
fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// The 32 bits at `at`, in network byte order.
#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}
