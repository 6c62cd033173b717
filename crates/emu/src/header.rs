//! What the forwarder reads and writes of a packet's headers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airpath_base::Ecn;
use etherparse::{SlicedPacket, TcpOptionElement, TransportSlice};

use crate::packet::{Layout, fold, sum};

/// ECN codepoint of an IP packet (RFC 3168 5); `NotEct` if it is none.
#[inline]
pub(crate) fn ecn(packet: &[u8]) -> Ecn {
    let bits = match packet {
        [first, second, ..] => match first >> 4 {
            4 => second & 3,
            6 => second >> 4 & 3,
            _ => 0,
        },
        _ => 0,
    };
    match bits {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

/// Where an IP packet goes.
#[inline]
pub(crate) fn destination(packet: &[u8], layout: &Layout) -> IpAddr {
    if layout.v6 {
        let mut address = [0; 16];
        address.copy_from_slice(&packet[24..40]);
        Ipv6Addr::from(address).into()
    } else {
        Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]).into()
    }
}

/// Marks a packet that the model has marked. Returns whether it was not marked before.
pub(crate) fn mark(packet: &mut [u8]) -> bool {
    let is_new = ecn(packet) != Ecn::Ce;
    if is_new {
        mark_congestion(packet);
    }
    is_new
}

/// Sets "congestion experienced" and corrects IPv4's checksum.
fn mark_congestion(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let length = usize::from(packet[0] & 15) * 4;
            let Some(header) = packet.get_mut(..length).filter(|header| header.len() >= 20) else {
                return;
            };
            header[1] |= 3;
            header[10..12].fill(0);
            let sum = !fold(sum(header));
            header[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        Some(6) if packet.len() >= 40 => packet[1] |= 0x30,
        _ => {}
    }
}

/// What the packet log keeps of a TCP segment, as on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Tcp {
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) payload: u16,
    pub(crate) window: u16,
    /// FIN 1, SYN 2, RST 4, PSH 8, ACK 16, ECE 64, CWR 128 (RFC 9293 3.1).
    pub(crate) flags: u8,
    pub(crate) ts_val: u32,
    pub(crate) ts_ecr: u32,
    /// Number of SACK blocks, and the first one.
    pub(crate) sack_blocks: u8,
    pub(crate) sack: (u32, u32),
}

/// The TCP segment in an IP packet.
pub(crate) fn tcp(packet: &[u8]) -> Option<Tcp> {
    let Some(TransportSlice::Tcp(segment)) = SlicedPacket::from_ip(packet).ok()?.transport else {
        return None;
    };
    let mut tcp = Tcp {
        seq: segment.sequence_number(),
        ack: segment.acknowledgment_number(),
        payload: segment.payload().len() as u16,
        window: segment.window_size(),
        flags: segment.slice()[13],
        ..Tcp::default()
    };
    for option in segment.options_iterator().flatten() {
        match option {
            TcpOptionElement::Timestamp(value, echo) => (tcp.ts_val, tcp.ts_ecr) = (value, echo),
            TcpOptionElement::SelectiveAcknowledgement(first, rest) => {
                tcp.sack = first;
                tcp.sack_blocks = 1 + rest.iter().flatten().count() as u8;
            }
            _ => {}
        }
    }
    Some(tcp)
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use etherparse::TcpOptionElement::{Noop, SelectiveAcknowledgement, Timestamp};
    use proptest::prelude::*;

    use super::*;

    fn segment() -> Vec<u8> {
        let options = [
            Noop,
            Noop,
            Timestamp(77, 88),
            Noop,
            Noop,
            SelectiveAcknowledgement((5000, 6448), [Some((9000, 10_448)), None, None]),
        ];
        let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .tcp(5001, 40_000, 1234, 512)
            .ack(4000)
            .options(&options)
            .unwrap();
        let mut packet = Vec::new();
        builder.write(&mut packet, &[0; 100]).unwrap();
        packet
    }

    #[test]
    fn a_segment_is_read() {
        let expected = Tcp {
            seq: 1234,
            ack: 4000,
            payload: 100,
            window: 512,
            flags: 16,
            ts_val: 77,
            ts_ecr: 88,
            sack_blocks: 2,
            sack: (5000, 6448),
        };
        assert_eq!(tcp(&segment()), Some(expected));
    }

    #[test]
    fn a_mark_keeps_the_checksum_right() {
        let mut packet = segment();
        packet[1] = 0xb8 | 2;
        assert_eq!(ecn(&packet), Ecn::Ect0);
        mark_congestion(&mut packet);
        assert_eq!((ecn(&packet), packet[1] & 0xfc), (Ecn::Ce, 0xb8));
        // RFC 1071: the sum over a header with a right checksum is all ones.
        assert_eq!(fold(sum(&packet[..20])), 0xffff);
    }

    #[test]
    fn a_mark_in_ipv6() {
        let mut packet = vec![0; 40];
        packet[0] = 0x60;
        mark_congestion(&mut packet);
        assert_eq!((ecn(&packet), &packet[..2]), (Ecn::Ce, &[0x60, 0x30][..]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(mut packet in prop::collection::vec(any::<u8>(), 0..100)) {
            ecn(&packet);
            tcp(&packet);
            mark_congestion(&mut packet);
        }
    }
}
