//! Which flow a packet belongs to: the model tells them apart by number.

use std::collections::BTreeMap;

use airpath_base::FlowId;

use crate::packet::{ICMP_V4, ICMP_V6, Layout, TCP, UDP};

/// Flows in the order in which they were first seen.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    known: BTreeMap<Key, FlowId>,
    /// The packet before was of this one.
    last: Option<(Key, FlowId)>,
}

/// A flow, the same for both directions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    /// Place of the UE's end.
    pub(crate) end: usize,
    /// IPv6.
    v6: bool,
    pub(crate) protocol: u8,
    ue_port: u16,
    server_port: u16,
}

impl Key {
    /// The flow of a packet, which goes up or down.
    #[inline]
    pub(crate) fn of(packet: &[u8], layout: &Layout, end: usize, up: bool) -> Self {
        let (source, destination) = layout.ports(packet);
        let (ue_port, server_port) = if up { (source, destination) } else { (destination, source) };
        Self { end, v6: layout.v6, protocol: layout.protocol, ue_port, server_port }
    }

    /// The flow of a TCP connection.
    pub(crate) const fn tcp(end: usize, v6: bool, ue_port: u16, server_port: u16) -> Self {
        Self { end, v6, protocol: TCP, ue_port, server_port }
    }

    /// The flow of sockets that are bound to these ports, over IPv4.
    pub(crate) const fn planned(end: usize, protocol: u8, ue_port: u16, server_port: u16) -> Self {
        Self { end, v6: false, protocol, ue_port, server_port }
    }

    /// For tables: `tcp phone:40312 server:5201`.
    pub(crate) fn name(&self, ue: &str) -> String {
        let version = if self.v6 { "6" } else { "" };
        let (inner, outer) = (self.ue_port, self.server_port);
        match self.protocol {
            TCP => format!("tcp{version} {ue}:{inner} server:{outer}"),
            UDP => format!("udp{version} {ue}:{inner} server:{outer}"),
            ICMP_V4 | ICMP_V6 => format!("icmp{version} {ue} {inner}"),
            other => format!("ip{version}-{other} {ue}"),
        }
    }
}

impl Flows {
    /// All flows.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (Key, FlowId)> {
        self.known.iter().map(|(&key, &flow)| (key, flow))
    }

    /// The flow's number, if it was seen before.
    #[inline]
    pub(crate) fn known(&self, key: &Key) -> Option<FlowId> {
        match &self.last {
            Some((last, flow)) if last == key => Some(*flow),
            _ => self.known.get(key).copied(),
        }
    }

    /// The flow's number, and whether it is new.
    #[inline]
    pub(crate) fn number(&mut self, key: Key) -> (FlowId, bool) {
        if let Some((last, flow)) = self.last
            && last == key
        {
            return (flow, false);
        }
        let next = FlowId(self.known.len() as u32);
        let flow = *self.known.entry(key).or_insert(next);
        self.last = Some((key, flow));
        (flow, flow == next)
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    const SERVER: [u8; 4] = [10, 77, 0, 1];
    const UE: [u8; 4] = [10, 77, 1, 1];

    fn key(packet: &[u8], end: usize, up: bool) -> Key {
        Key::of(packet, &Layout::of(packet).unwrap(), end, up)
    }

    #[test]
    fn a_flow_has_one_number_both_ways() {
        let udp = |from, to, source, destination| {
            let mut packet = Vec::new();
            let builder = PacketBuilder::ipv4(from, to, 64).udp(source, destination);
            builder.write(&mut packet, &[0; 10]).unwrap();
            packet
        };
        let up = key(&udp(UE, SERVER, 4000, 53), 1, true);
        let down = key(&udp(SERVER, UE, 53, 4000), 1, false);
        let mut flows = Flows::default();
        assert_eq!(flows.number(up), (FlowId(0), true));
        assert_eq!(flows.number(down), (FlowId(0), false));
        assert_eq!(flows.number(key(&udp(UE, SERVER, 4001, 53), 1, true)), (FlowId(1), true));
        assert_eq!(flows.number(Key { end: 2, ..up }), (FlowId(2), true));
        assert_eq!(flows.number(up), (FlowId(0), false));
        assert_eq!(up.name("phone"), "udp phone:4000 server:53");
    }

    #[test]
    fn an_echo_and_its_reply_are_one_flow() {
        let echo = |reply: bool, from, to| {
            let builder = PacketBuilder::ipv4(from, to, 64);
            let builder = if reply {
                builder.icmpv4_echo_reply(77, 1)
            } else {
                builder.icmpv4_echo_request(77, 1)
            };
            let mut packet = Vec::new();
            builder.write(&mut packet, &[]).unwrap();
            packet
        };
        let (request, reply) = (echo(false, UE, SERVER), echo(true, SERVER, UE));
        assert_eq!(key(&request, 1, true), key(&reply, 1, false));
        assert_eq!(key(&request, 1, true).name("ue"), "icmp ue 77");
    }
}
