//! Link layers: where the IP header begins.

use super::{MOST_LAYERS, Skipped, half};

/// LINKTYPE_ numbers from the registry of draft-ietf-opsawg-pcaplinktype.
const NULL: u16 = 0;
const ETHERNET: u16 = 1;
const PPP: u16 = 9;
const RAW: u16 = 101;
const LOOP: u16 = 108;
const LINUX_SLL: u16 = 113;
const IPV4: u16 = 228;
const IPV6: u16 = 229;
const LINUX_SLL2: u16 = 276;
/// DLT_RAW, which some systems write instead.
const RAW_BSD: u16 = 12;
const RAW_OPENBSD: u16 = 14;

const VLAN: u16 = 0x8100;
const PROVIDER_VLAN: u16 = 0x88a8;
const OLD_PROVIDER_VLAN: u16 = 0x9100;
const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
const PPPOE: u16 = 0x8864;
const MPLS: u16 = 0x8847;

/// A link type in words; `None` for one that cannot be read.
pub fn link_type_name(link_type: u16) -> Option<&'static str> {
    Some(match link_type {
        NULL | LOOP => "loopback",
        ETHERNET => "Ethernet",
        PPP => "PPP",
        RAW | RAW_BSD | RAW_OPENBSD | IPV4 | IPV6 => "raw IP",
        LINUX_SLL => "Linux cooked, version 1",
        LINUX_SLL2 => "Linux cooked, version 2",
        _ => return None,
    })
}

/// Where the IP header begins in a frame; never behind the frame's end.
#[inline]
pub(super) fn ip_at(link_type: u16, frame: &[u8]) -> Result<usize, Skipped> {
    let at = match link_type {
        ETHERNET => return after_type(frame, 12),
        RAW | RAW_BSD | RAW_OPENBSD | IPV4 | IPV6 => 0,
        LINUX_SLL => return after_type(frame, 14),
        LINUX_SLL2 => {
            let kind = half(frame, 0).ok_or(Skipped::Truncated)?;
            return if frame.len() < 20 { Err(Skipped::Truncated) } else { after(frame, 20, kind) };
        }
        // Each system numbers the address family differently; the IP header has the version.
        NULL | LOOP => 4,
        PPP => {
            let skipped = if frame.starts_with(&[0xff, 3]) { 2 } else { 0 };
            return after_ppp(frame, skipped);
        }
        _ => return Err(Skipped::LinkType),
    };
    if frame.len() < at { Err(Skipped::Truncated) } else { Ok(at) }
}

/// The EtherType is at `at`, and the data that it describes comes after it.
#[inline]
fn after_type(frame: &[u8], at: usize) -> Result<usize, Skipped> {
    let kind = half(frame, at).ok_or(Skipped::Truncated)?;
    after(frame, at + 2, kind)
}

/// Where the IP header is in data that has this EtherType and begins at `at`.
pub(super) fn after(frame: &[u8], mut at: usize, mut kind: u16) -> Result<usize, Skipped> {
    for _ in 0..MOST_LAYERS {
        match kind {
            TYPE_IPV4 | TYPE_IPV6 => {
                return if at <= frame.len() { Ok(at) } else { Err(Skipped::Truncated) };
            }
            VLAN | PROVIDER_VLAN | OLD_PROVIDER_VLAN => {
                kind = half(frame, at + 2).ok_or(Skipped::Truncated)?;
                at += 4;
            }
            PPPOE => return after_ppp(frame, at + 6),
            MPLS => return after_mpls(frame, at),
            _ => return Err(Skipped::NoIp),
        }
    }
    Err(Skipped::TooDeep)
}

/// RFC 1661 2, RFC 1332 2, RFC 5072 3.
fn after_ppp(frame: &[u8], at: usize) -> Result<usize, Skipped> {
    match half(frame, at).ok_or(Skipped::Truncated)? {
        0x21 | 0x57 => Ok(at + 2),
        _ => Err(Skipped::NoIp),
    }
}

/// Skips the label stack to its bottom (RFC 3032 2.1).
fn after_mpls(frame: &[u8], mut at: usize) -> Result<usize, Skipped> {
    for _ in 0..MOST_LAYERS {
        let bottom = *frame.get(at + 2).ok_or(Skipped::Truncated)? & 1 == 1;
        at += 4;
        if bottom {
            return if at <= frame.len() { Ok(at) } else { Err(Skipped::Truncated) };
        }
    }
    Err(Skipped::TooDeep)
}
