//! The ends of a GTP-U tunnel, and a hop with an MTU.

use airpath_base::{DropReason, Instant, Packet, Tunnel};

use crate::filter::Filter;
use crate::{GtpuConfig, OuterIp, TooBig, TunnelEnd};

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

/// Encapsulates packets as they enter a tunnel, decapsulates them as they leave it, or drops those
/// that do not fit through a hop.
///
/// A packet in a tunnel keeps its size; links also count its outer headers. A fragmented packet
/// stays one packet that has the headers of all its fragments: they travel one after another, and
/// at the other end the first would wait for the last anyway.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wrapper {
    /// Packets enter a tunnel.
    Enter {
        ip: OuterIp,
        /// Bytes between the outer and the inner IP header.
        headers: u32,
        mtu: Option<u32>,
        too_big: TooBig,
    },
    /// Packets leave a tunnel.
    Leave,
    /// A hop that drops packets larger than this MTU.
    Mtu(u32),
}

impl Wrapper {
    /// One end of a tunnel.
    pub(crate) fn of(end: &TunnelEnd) -> Self {
        match end {
            TunnelEnd::Enter(config) => {
                let GtpuConfig { outer_ip: ip, mtu, too_big, .. } = *config;
                Self::Enter { ip, headers: gtpu_headers(config), mtu, too_big }
            }
            TunnelEnd::Leave => Self::Leave,
        }
    }

    /// The encapsulation of the packet from here on; `None` if it does not fit.
    #[inline]
    fn around(self, packet: &Packet) -> Option<Tunnel> {
        match self {
            Self::Enter { ip, headers, mtu, too_big } => {
                let whole = ip.header() + headers + packet.size;
                match mtu.filter(|&mtu| whole > mtu) {
                    None => Some(tunnel(ip.header() + headers, 1)),
                    Some(mtu) => match too_big {
                        TooBig::Drop => None,
                        TooBig::Fragment => Some(fragmented(ip, headers, packet.size, mtu)),
                    },
                }
            }
            Self::Leave => Some(Tunnel::default()),
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

impl GtpuConfig {
    /// Bytes of the headers around a packet that is not fragmented, the outer IP header included.
    pub const fn header_bytes(&self) -> u32 {
        self.outer_ip.header() + gtpu_headers(self)
    }
}

/// Bytes between the outer and the inner IP header.
const fn gtpu_headers(config: &GtpuConfig) -> u32 {
    let extension =
        if config.pdu_session_container { OPTIONAL_FIELDS + PDU_SESSION_CONTAINER } else { 0 };
    UDP + GTPU + extension
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
        let config = GtpuConfig {
            outer_ip: ip,
            pdu_session_container: nr,
            mtu: Some(mtu),
            too_big: TooBig::Fragment,
        };
        let wrapper = Wrapper::of(&TunnelEnd::Enter(config));
        let packet = Packet {
            flow: airpath_base::FlowId(0),
            size,
            ecn: airpath_base::Ecn::NotEct,
            tunnel: Tunnel::default(),
            journey: None,
            payload: airpath_base::Payload::Opaque(0),
        };
        let tunnel = wrapper.around(&packet).expect("it fragments");
        (tunnel.header_bytes.into(), 1 + u32::from(tunnel.further_fragments))
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
}
