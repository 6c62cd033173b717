//! IPv4 (RFC 791) and IPv6 (RFC 8200) with its extension headers.

use super::{IpPacket, MOST_LAYERS, Skipped, Tunnel, half, word};

/// A fragment of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fragment {
    pub(crate) id: u32,
    /// Bytes of the whole packet's body in front of this fragment.
    pub(crate) offset: u32,
    pub(crate) more: bool,
}

/// Extension headers (RFC 8200 4, RFC 4302, RFC 6275, RFC 7401, RFC 5533).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
const HIP: u8 = 139;
const SHIM6: u8 = 140;

/// The longest packet whose header may omit its length: what Linux lets a device segment (its
/// GSO_MAX_SIZE is 8 times 65535 bytes).
const MOST_UNCUT: usize = 8 * 65_535;

/// Reads a packet that has at most `rest` bytes on the wire.
#[inline]
pub(super) fn read(bytes: &[u8], rest: usize) -> Result<IpPacket<'_>, Skipped> {
    match bytes.first().ok_or(Skipped::Truncated)? >> 4 {
        4 => read_v4(bytes, rest),
        6 => read_v6(bytes, rest),
        _ => Err(Skipped::NoIp),
    }
}

#[inline]
fn read_v4(bytes: &[u8], rest: usize) -> Result<IpPacket<'_>, Skipped> {
    let header: &[u8; 20] = bytes.first_chunk().ok_or(Skipped::Truncated)?;
    let header_bytes = usize::from(header[0] & 15) * 4;
    let length = match u16::from_be_bytes([header[2], header[3]]) {
        // The length is left to the device, which segments the packet (segmentation offload).
        0 => rest,
        length => usize::from(length),
    };
    if header_bytes < 20 || length < header_bytes || length > MOST_UNCUT {
        return Err(Skipped::Malformed);
    }
    let parts = u16::from_be_bytes([header[6], header[7]]);
    let fragment = (parts & 0x3fff != 0).then(|| Fragment {
        id: u32::from(u16::from_be_bytes([header[4], header[5]])),
        offset: u32::from(parts & 0x1fff) * 8,
        more: parts & 0x2000 != 0,
    });
    let address = |at: usize| word(header, at).map_or(0, u128::from);
    Ok(IpPacket {
        source: address(12),
        destination: address(16),
        v4: true,
        protocol: header[9],
        id: u16::from_be_bytes([header[4], header[5]]),
        ttl: header[8],
        place: 0,
        fragment,
        length: length as u32,
        body_length: (length - header_bytes) as u32,
        body: bytes.get(header_bytes..length.min(bytes.len())).unwrap_or_default(),
        tunnel: Tunnel::None,
        teid: None,
    })
}

fn read_v6(bytes: &[u8], rest: usize) -> Result<IpPacket<'_>, Skipped> {
    let header: &[u8; 40] = bytes.first_chunk().ok_or(Skipped::Truncated)?;
    let length = match u16::from_be_bytes([header[4], header[5]]) {
        0 => rest.max(40),
        payload => 40 + usize::from(payload),
    };
    if length > MOST_UNCUT {
        return Err(Skipped::Malformed);
    }
    let address = |at: usize| {
        header[at..].first_chunk().map_or(0, |address: &[u8; 16]| u128::from_be_bytes(*address))
    };
    let mut packet = IpPacket {
        source: address(8),
        destination: address(24),
        v4: false,
        protocol: header[6],
        id: 0,
        ttl: header[7],
        place: 0,
        fragment: None,
        length: length as u32,
        body_length: (length - 40) as u32,
        body: &bytes[40..length.min(bytes.len())],
        tunnel: Tunnel::None,
        teid: None,
    };
    for _ in 0..MOST_LAYERS {
        let body = packet.body;
        let bytes = match packet.protocol {
            HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY | HIP | SHIM6 => {
                8 + 8 * usize::from(*body.get(1).ok_or(Skipped::Truncated)?)
            }
            AUTHENTICATION => 8 + 4 * usize::from(*body.get(1).ok_or(Skipped::Truncated)?),
            FRAGMENT => {
                let parts = half(body, 2).ok_or(Skipped::Truncated)?;
                let id = word(body, 4).ok_or(Skipped::Truncated)?;
                let (offset, more) = (u32::from(parts & 0xfff8), parts & 1 == 1);
                // An atomic fragment is the whole packet (RFC 6946).
                if offset > 0 || more {
                    packet.fragment = Some(Fragment { id, offset, more });
                }
                8
            }
            _ => return Ok(packet),
        };
        if bytes as u32 > packet.body_length {
            return Err(Skipped::Malformed);
        }
        packet.protocol = *body.first().ok_or(Skipped::Truncated)?;
        packet.body_length -= bytes as u32;
        packet.body = body.get(bytes..).unwrap_or_default();
        if packet.fragment.is_some_and(|fragment| fragment.offset > 0) {
            return Ok(packet);
        }
    }
    Err(Skipped::TooDeep)
}
