//! The header fields that the forwarder reads and writes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airpath_base::Ecn;

use crate::wire::packet::{Layout, fold, sum};

/// ECN codepoint of an IP packet (RFC 3168 5); `NotEct` for anything else.
#[inline]
pub(crate) fn ecn(packet: &[u8]) -> Ecn {
    Ecn::from_bits(match packet {
        [first, second, ..] => match first >> 4 {
            4 => *second,
            6 => second >> 4,
            _ => 0,
        },
        _ => 0,
    })
}

/// Destination address of an IP packet.
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

/// Sets the CE codepoint and corrects IPv4's checksum.
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
    fn a_mark_keeps_the_checksum_right() {
        let mut packet = segment();
        packet[1] = 0xb8 | 2;
        assert_eq!(ecn(&packet), Ecn::Ect0);
        mark_congestion(&mut packet);
        assert_eq!((ecn(&packet), packet[1] & 0xfc), (Ecn::Ce, 0xb8));
        // RFC 1071: the sum over a header with a correct checksum is all ones.
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
            mark_congestion(&mut packet);
        }
    }
}
