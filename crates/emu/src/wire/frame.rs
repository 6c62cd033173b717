//! Ethernet frames (IEEE 802.3 3), and which of them go through the model.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::wire::packet::{ICMP_V6, Layout, UDP};

/// Bytes of an Ethernet header without a VLAN tag.
pub(crate) const ETHERNET: usize = 14;

const IP_V4: u16 = 0x0800;
const IP_V6: u16 = 0x86dd;
/// Tag protocol identifiers of customer and service VLAN tags (IEEE 802.1Q 9.6).
const VLAN: [u16; 2] = [0x8100, 0x88a8];
/// EtherType of MAC control (IEEE 802.3 31): a pause is for the link on which it arrives.
const MAC_CONTROL: u16 = 0x8808;

/// Ports of DHCP (RFC 2131 4.1) and DHCPv6 (RFC 8415 7.2).
const DHCP: [u16; 4] = [67, 68, 546, 547];
/// ICMPv6 types of router and neighbour discovery (RFC 4861 4).
const DISCOVERY: std::ops::RangeInclusive<u8> = 133..=137;
/// Hop limit of discovery (RFC 4861 6.1, 7.1).
const FROM_NEIGHBOUR: u8 = 255;

/// MAC address of a station.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Mac(pub(crate) [u8; 6]);

impl Mac {
    /// Whether the address is that of a group of stations: multicast or broadcast.
    pub(crate) const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(formatter, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

impl std::str::FromStr for Mac {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut bytes = [0; 6];
        let mut parts = text.split([':', '-']);
        for byte in &mut bytes {
            let valid =
                |part: &&str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
            let part = parts.next().filter(valid).ok_or(())?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| ())?;
        }
        if parts.next().is_some() { Err(()) } else { Ok(Self(bytes)) }
    }
}

/// What a frame contains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    /// A unicast IP packet of this many bytes, without padding. The frame goes through the model.
    Packet(usize),
    /// Address resolution, discovery, DHCP, or a protocol other than IP. The frame bypasses the model.
    Control,
    /// Content for a group of stations. The frame bypasses the model.
    Group,
    /// Content behind a VLAN tag.
    Tagged,
    /// Content for this link alone, which a bridge does not forward.
    Link,
}

/// The addresses and the content of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    pub(crate) destination: Mac,
    pub(crate) source: Mac,
    pub(crate) content: Content,
}

impl Frame {
    /// Reads a frame; `None` without a complete header.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let (header, body) = bytes.split_first_chunk::<ETHERNET>()?;
        let [a, b, c, d, e, f, g, h, i, j, k, l, high, low] = *header;
        let (destination, source) = (Mac([a, b, c, d, e, f]), Mac([g, h, i, j, k, l]));
        let content = match u16::from_be_bytes([high, low]) {
            kind if VLAN.contains(&kind) => Content::Tagged,
            MAC_CONTROL => Content::Link,
            _ if destination.is_group() => Content::Group,
            IP_V4 | IP_V6 => packet(body),
            _ => Content::Control,
        };
        Some(Self { destination, source, content })
    }
}

/// The content of a unicast frame with an IP packet.
fn packet(body: &[u8]) -> Content {
    let Some(layout) = Layout::of(body) else { return Content::Control };
    let said = if layout.v6 {
        // RFC 2675 3: the length is 0 in a packet that is too large for the field.
        match u16::from_be_bytes([body[4], body[5]]) {
            0 => body.len(),
            payload => usize::from(payload) + layout.ip_bytes,
        }
    } else {
        usize::from(u16::from_be_bytes([body[2], body[3]]))
    };
    if said < layout.ip_bytes || is_control(body, &layout) {
        return Content::Control;
    }
    Content::Packet(said.min(body.len()))
}

fn is_control(packet: &[u8], layout: &Layout) -> bool {
    match layout.protocol {
        UDP => {
            let (source, destination) = layout.ports(packet);
            DHCP.contains(&source) && DHCP.contains(&destination)
        }
        ICMP_V6 if layout.v6 => {
            let kind = packet.get(layout.ip_bytes).copied().unwrap_or(0);
            DISCOVERY.contains(&kind) && packet[7] == FROM_NEIGHBOUR
        }
        _ => false,
    }
}

/// Source and destination addresses of an IP packet.
pub(crate) fn addresses(packet: &[u8], layout: &Layout) -> (IpAddr, IpAddr) {
    if layout.v6 {
        let address = |at: usize| {
            let mut address = [0; 16];
            address.copy_from_slice(&packet[at..at + 16]);
            IpAddr::from(Ipv6Addr::from(address))
        };
        (address(8), address(24))
    } else {
        let address = |at: usize| {
            Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]).into()
        };
        (address(12), address(16))
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{PacketBuilder, PacketBuilderStep};
    use proptest::prelude::*;

    use super::*;

    const DEVICE: [u8; 6] = [2, 0, 0, 0, 0, 7];
    const SERVER: [u8; 6] = [2, 0, 0, 0, 0, 9];

    fn ethernet(destination: [u8; 6]) -> PacketBuilderStep<etherparse::Ethernet2Header> {
        PacketBuilder::ethernet2(DEVICE, destination)
    }

    fn udp(destination: [u8; 6], ports: (u16, u16), payload: usize) -> Vec<u8> {
        let mut frame = Vec::new();
        let builder = ethernet(destination).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        builder.udp(ports.0, ports.1).write(&mut frame, &vec![7; payload]).unwrap();
        frame
    }

    fn content(frame: &[u8]) -> Content {
        Frame::of(frame).unwrap().content
    }

    #[test]
    fn a_packet_loses_the_padding_of_its_frame() {
        let mut frame = udp(SERVER, (4000, 5000), 1);
        frame.resize(60, 0);
        let read = Frame::of(&frame).unwrap();
        assert_eq!((read.source, read.destination), (Mac(DEVICE), Mac(SERVER)));
        assert_eq!(read.content, Content::Packet(29));
        // A length that exceeds the frame ends with it.
        frame[16..18].copy_from_slice(&1000u16.to_be_bytes());
        assert_eq!(content(&frame), Content::Packet(46));
    }

    #[test]
    fn what_configures_a_network_passes_beside_the_model() {
        assert_eq!(content(&udp(SERVER, (68, 67), 300)), Content::Control);
        assert_eq!(content(&udp(SERVER, (4000, 67), 300)), Content::Packet(328));
        assert_eq!(content(&udp([0xff; 6], (68, 67), 300)), Content::Group);
        assert_eq!(content(&udp([1, 0, 0x5e, 0, 0, 1], (1, 2), 9)), Content::Group);
        let mut frame = udp(SERVER, (1, 2), 9);
        for (kind, expected) in [
            (0x0806, Content::Control),
            (0x888e, Content::Control),
            (0x8808, Content::Link),
            (0x8100, Content::Tagged),
            (0x88a8, Content::Tagged),
        ] {
            frame[12..14].copy_from_slice(&u16::to_be_bytes(kind));
            assert_eq!(content(&frame), expected, "{kind:04x}");
        }
    }

    #[test]
    fn neighbour_discovery_is_not_an_echo() {
        let frame = |kind: u8, hops: u8| {
            let mut frame = Vec::new();
            let builder = ethernet(SERVER).ipv6([1; 16], [2; 16], hops);
            builder.icmpv6_raw(kind, 0, [0; 4]).write(&mut frame, &[0; 20]).unwrap();
            frame
        };
        // 133 to 137 (RFC 4861 4), which no router forwards.
        for kind in 133..=137 {
            assert_eq!(content(&frame(kind, 255)), Content::Control);
            assert_eq!(content(&frame(kind, 64)), Content::Packet(68));
        }
        assert_eq!(content(&frame(128, 255)), Content::Packet(68));
    }

    #[test]
    fn a_station_is_written_as_it_is_read() {
        let mac: Mac = "02:00:aB:00:00:0c".parse().unwrap();
        assert_eq!(
            (mac, mac.to_string().as_str()),
            (Mac([2, 0, 171, 0, 0, 12]), "02:00:ab:00:00:0c")
        );
        assert_eq!("02-00-ab-00-00-0c".parse(), Ok(mac));
        for wrong in
            ["", "02:00:ab:00:00", "02:00:ab:00:00:0c:01", "2:0:ab:0:0:c", "+1:00:ab:00:00:0c"]
        {
            assert!(wrong.parse::<Mac>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(
            kind in prop::sample::select(vec![0x0800u16, 0x86dd, 0x0806]),
            mut frame in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            if let Some(field) = frame.get_mut(12..14) {
                field.copy_from_slice(&kind.to_be_bytes());
            }
            if let Some(Frame { content: Content::Packet(length), .. }) = Frame::of(&frame) {
                let packet = &frame[ETHERNET..ETHERNET + length];
                let layout = Layout::of(packet).expect("it was an IP packet");
                addresses(packet, &layout);
            }
        }
    }
}
