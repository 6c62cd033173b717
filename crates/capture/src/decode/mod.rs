//! From a captured frame to the innermost packet of IP: link layers, tunnels, extension headers.
//!
//! Lengths come from the headers, so a packet of which only the beginning was kept counts in full.

mod fragments;
mod ip;
mod link;
mod tcp;
mod tunnel;

pub(crate) use fragments::Fragments;
pub(crate) use ip::Fragment;
pub use link::link_type_name;
pub(crate) use tcp::{ACK, FIN, RST, SYN, TcpHeader};

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
}

/// The innermost packet of IP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpPacket<'a> {
    pub(crate) source: u128,
    pub(crate) destination: u128,
    /// The addresses are IPv4's, in the lower 32 bits.
    pub(crate) v4: bool,
    pub(crate) protocol: u8,
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
    for _ in 0..MOST_LAYERS {
        match tunnel::inner(&packet) {
            None => return Ok(packet),
            Some(inner) => packet = inner,
        }
    }
    Err(Skipped::TooDeep)
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
