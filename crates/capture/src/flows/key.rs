//! What distinguishes flows.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::Tunnel;
use crate::decode::{ICMP_V4, ICMP_V6, IpPacket, TCP, UDP, hash};

/// The ends, the protocol, and the point of the path where they were seen. The lower end comes
/// first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key {
    pub(super) addresses: [u128; 2],
    pub(super) ports: [u16; 2],
    pub(super) v4: bool,
    pub(super) protocol: u8,
    pub(super) tunnel: Tunnel,
    pub(super) interface: u32,
}

impl Key {
    /// The flow of a packet with these ports, and which of its ends sent the packet.
    #[inline]
    pub(super) fn of(packet: &IpPacket<'_>, ports: [u16; 2], interface: usize) -> (Self, usize) {
        let (source, destination) = (packet.source, packet.destination);
        let first = (source, ports[0]) <= (destination, ports[1]);
        let key = Self {
            addresses: if first { [source, destination] } else { [destination, source] },
            ports: if first { ports } else { [ports[1], ports[0]] },
            v4: packet.v4,
            protocol: packet.protocol,
            tunnel: packet.tunnel,
            interface: interface as u32,
        };
        (key, usize::from(!first))
    }

    /// Whether another key has equal ends and protocol, wherever they were seen.
    pub(super) fn same_ends(&self, other: &Self) -> bool {
        self.addresses == other.addresses
            && self.ports == other.ports
            && self.protocol == other.protocol
    }

    #[inline]
    pub(super) fn hash(&self) -> u64 {
        let [first, second] = self.addresses;
        let ports = u64::from(self.ports[0]) << 16 | u64::from(self.ports[1]);
        let point = u64::from(self.interface) << 32 | (self.tunnel as u64) << 8;
        let mut hash = 0x9e37_79b9_7f4a_7c15;
        for part in [
            first as u64,
            second as u64,
            (first >> 64) as u64 ^ ((second >> 64) as u64).rotate_left(32),
            ports << 32 ^ point | u64::from(self.protocol),
        ] {
            hash = hash::word(hash, part);
        }
        hash
    }

    pub(super) fn address(&self, end: usize) -> String {
        address(self.addresses[end], self.v4)
    }

    pub(super) fn protocol_name(&self) -> String {
        match self.protocol {
            TCP => "tcp".to_owned(),
            UDP => "udp".to_owned(),
            ICMP_V4 | ICMP_V6 => "icmp".to_owned(),
            other => format!("ip-{other}"),
        }
    }
}

/// An address as text.
pub(super) fn address(address: u128, v4: bool) -> String {
    if v4 {
        Ipv4Addr::from(address as u32).to_string()
    } else {
        Ipv6Addr::from(address).to_string()
    }
}
