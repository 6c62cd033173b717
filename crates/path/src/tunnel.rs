//! The ends of a GTP-U tunnel or of a VPN, and a hop with an MTU.

use airpath_base::{DropReason, Instant, Packet, Tunnel};

use crate::filter::Filter;
use crate::{OuterIp, TooBig, TunnelConfig, TunnelEnd, TunnelProtocol};

/// Bytes of a UDP header (RFC 768).
const UDP: u32 = 8;
/// Bytes of a GTP-U header without optional fields (TS 29.281 5.1).
const GTPU: u32 = 8;
/// Sequence number, N-PDU number and type of the next extension: all are present if any is (TS
/// 29.281 5.1).
const OPTIONAL_FIELDS: u32 = 4;
/// The PDU session container: length, two bytes of PDU type and QFI, type of the next extension
/// (TS 29.281 5.2.2.7, TS 38.415 5.5.2).
const PDU_SESSION_CONTAINER: u32 = 4;

/// A WireGuard data message without its packet: type and reserved, receiver, counter, and the
/// authentication tag (WireGuard paper 5.4.6).
const WIREGUARD: u32 = 4 + 4 + 8 + 16;
/// WireGuard pads packets to a multiple of this, but not beyond the MTU of its device.
const PADDING: u32 = 16;

/// Encapsulates packets as they enter a tunnel, decapsulates them as they leave it, or drops those
/// that do not fit through a hop.
///
/// A packet in a tunnel keeps its size; links also count its outer headers. A fragmented packet
/// stays one packet that has the headers of all its fragments: they travel one after another, and
/// at the other end the first would wait for the last anyway.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wrapper {
    /// One end of a tunnel.
    End(TunnelEnd),
    /// A hop that drops packets larger than this MTU.
    Mtu(u32),
}

impl Wrapper {
    /// The encapsulation of the packet from here on; `None` if it does not fit.
    #[inline]
    fn around(self, packet: &Packet) -> Option<Tunnel> {
        match self {
            Self::End(TunnelEnd::Enter(config)) => config.around(packet.size),
            Self::End(TunnelEnd::Leave) => Some(Tunnel::default()),
            Self::Mtu(mtu) => (packet.wire_size() <= mtu).then_some(packet.tunnel),
        }
    }
}

impl OuterIp {
    /// Bytes of the IP header (RFC 791 3.1, RFC 8200 3).
    const fn header(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }

    /// Bytes of headers in each fragment: IPv6 has an additional header for it (RFC 8200 4.5).
    const fn fragment_header(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 48,
        }
    }
}

impl TunnelConfig {
    /// Bytes that an unfragmented packet of this size gets on its way: the outer headers, padding and
    /// an authentication tag.
    pub const fn overhead(&self, size: u32) -> u32 {
        self.outer_ip.header() + self.added(size)
    }

    /// The largest packet that passes the device, and fits unfragmented into an outer packet of
    /// `outer` bytes.
    pub fn largest_packet(&self, outer: u32) -> u32 {
        let room = outer.saturating_sub(self.overhead(0));
        match self.protocol {
            TunnelProtocol::Gtpu { .. } => room,
            TunnelProtocol::WireGuard { device_mtu: Some(mtu) } if mtu <= room => mtu,
            TunnelProtocol::WireGuard { .. } => room / PADDING * PADDING,
        }
    }

    /// Bytes that the protocol adds below the outer IP header.
    const fn added(&self, size: u32) -> u32 {
        match self.protocol {
            TunnelProtocol::Gtpu { pdu_session_container: true } => {
                UDP + GTPU + OPTIONAL_FIELDS + PDU_SESSION_CONTAINER
            }
            TunnelProtocol::Gtpu { pdu_session_container: false } => UDP + GTPU,
            TunnelProtocol::WireGuard { device_mtu } => {
                let padded = size.next_multiple_of(PADDING);
                let padding = match device_mtu {
                    Some(mtu) if mtu < padded => mtu.saturating_sub(size),
                    _ => padded - size,
                };
                UDP + WIREGUARD + padding
            }
        }
    }

    /// The encapsulation of a packet of `size` bytes; `None` if it does not fit.
    #[inline]
    fn around(&self, size: u32) -> Option<Tunnel> {
        if let TunnelProtocol::WireGuard { device_mtu: Some(mtu) } = self.protocol
            && size > mtu
        {
            return None;
        }
        let headers = self.overhead(size);
        match self.mtu.filter(|&mtu| headers + size > mtu) {
            None => Some(tunnel(headers, 1)),
            Some(mtu) => match self.too_big {
                TooBig::Drop => None,
                TooBig::Fragment => Some(fragmented(self.outer_ip, self.added(size), size, mtu)),
            },
        }
    }
}

/// The encapsulation of a packet of `size` bytes that does not fit into `mtu` with its headers.
fn fragmented(ip: OuterIp, headers: u32, size: u32, mtu: u32) -> Tunnel {
    let payload = headers + size;
    // RFC 791 3.2, RFC 8200 4.5: all fragments except the last carry a multiple of 8 bytes.
    let last = mtu.saturating_sub(ip.fragment_header()).max(8);
    let fragments = 1 + payload.saturating_sub(last).div_ceil(last / 8 * 8);
    tunnel(headers + fragments * ip.fragment_header(), fragments)
}

fn tunnel(header_bytes: u32, fragments: u32) -> Tunnel {
    Tunnel {
        header_bytes: u16::try_from(header_bytes).unwrap_or(u16::MAX),
        further_fragments: u8::try_from(fragments - 1).unwrap_or(u8::MAX),
    }
}

impl Filter for Wrapper {
    fn apply(&mut self, _at: Instant, packet: &mut Packet) -> Result<(), DropReason> {
        packet.tunnel = self.around(packet).ok_or(DropReason::TooBig)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(ip: OuterIp, nr: bool, size: u32, mtu: u32) -> (u32, u32) {
        outer(ip, TunnelProtocol::Gtpu { pdu_session_container: nr }, size, mtu)
            .expect("it fragments")
    }

    /// Bytes of all outer headers, and the number of outer packets.
    fn outer(ip: OuterIp, protocol: TunnelProtocol, size: u32, mtu: u32) -> Option<(u32, u32)> {
        let config =
            TunnelConfig { outer_ip: ip, protocol, mtu: Some(mtu), too_big: TooBig::Fragment };
        let tunnel = config.around(size)?;
        Some((tunnel.header_bytes.into(), 1 + u32::from(tunnel.further_fragments)))
    }

    #[test]
    fn headers_are_those_of_ts_29_281_and_ts_38_415() {
        // 20 + 8 + 8, and 8 more with the PDU session container; 20 more over IPv6.
        assert_eq!(headers(OuterIp::V4, false, 1400, 1500), (36, 1));
        assert_eq!(headers(OuterIp::V4, true, 1400, 1500), (44, 1));
        assert_eq!(headers(OuterIp::V6, true, 1400, 1500), (64, 1));
    }

    #[test]
    fn one_byte_too_many_makes_two_fragments_with_a_header_each() {
        assert_eq!(headers(OuterIp::V4, true, 1456, 1500), (44, 1));
        assert_eq!(headers(OuterIp::V4, true, 1457, 1500), (64, 2));
        // 40 of IPv6 became 48 in each of two fragments (RFC 8200 4.5).
        assert_eq!(headers(OuterIp::V6, true, 1500, 1500), (24 + 96, 2));
        // Fragments of 1,480 bytes: 2,960 of UDP payload and header fit into two, and not a byte
        // more.
        assert_eq!(headers(OuterIp::V4, true, 2960 - 24, 1500).1, 2);
        assert_eq!(headers(OuterIp::V4, true, 2961 - 24, 1500).1, 3);
        // 1,494 leaves 1,474 for the last fragment and 1,472 for the others (RFC 791 3.2).
        assert_eq!(headers(OuterIp::V4, true, 1472 + 1474 - 24, 1494).1, 2);
        assert_eq!(headers(OuterIp::V4, true, 1472 + 1475 - 24, 1494).1, 3);
    }

    /// A VPN over IPv6 or IPv4 whose device has this MTU, on a path of 1,500 bytes.
    fn vpn(ip: OuterIp, device_mtu: Option<u32>, size: u32) -> Option<(u32, u32)> {
        outer(ip, TunnelProtocol::WireGuard { device_mtu }, size, 1500)
    }

    #[test]
    fn wireguard_adds_60_bytes_over_ipv4_and_80_over_ipv6() {
        // 20 or 40 of IP, 8 of UDP, 16 of the message's header and 16 of the tag.
        assert_eq!(vpn(OuterIp::V4, Some(1440), 1440), Some((60, 1)));
        assert_eq!(vpn(OuterIp::V6, Some(1420), 1420), Some((80, 1)));
        assert_eq!(vpn(OuterIp::V6, Some(1420), 1421), None, "it does not pass the device");
    }

    #[test]
    fn wireguard_pads_to_16_bytes_but_not_beyond_the_mtu_of_its_device() {
        assert_eq!(vpn(OuterIp::V4, Some(1420), 52), Some((60 + 12, 1)));
        assert_eq!(vpn(OuterIp::V4, Some(1420), 64), Some((60, 1)));
        // 1,424 is the next multiple; the device has room for 1,420.
        assert_eq!(vpn(OuterIp::V6, Some(1420), 1409), Some((80 + 11, 1)));
        // Without that MTU it makes 1,504 bytes: two fragments with 48 bytes of headers each.
        assert_eq!(vpn(OuterIp::V6, None, 1409), Some((40 + 15 + 2 * 48, 2)));
    }

    #[test]
    fn the_largest_packet_is_the_last_that_is_not_fragmented() {
        for ip in [OuterIp::V4, OuterIp::V6] {
            for outer in 576..1600 {
                for protocol in [
                    TunnelProtocol::Gtpu { pdu_session_container: true },
                    TunnelProtocol::WireGuard { device_mtu: None },
                    TunnelProtocol::WireGuard { device_mtu: Some(1420) },
                ] {
                    let config = TunnelConfig {
                        outer_ip: ip,
                        protocol,
                        mtu: Some(outer),
                        too_big: TooBig::Drop,
                    };
                    let largest = config.largest_packet(outer);
                    assert!(config.around(largest).is_some(), "{config:?} {largest}");
                    assert_eq!(config.around(largest + 1), None, "{config:?} {largest}");
                }
            }
        }
    }
}
