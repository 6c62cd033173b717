//! Identifies the flow of a packet: the model distinguishes flows by number.

use std::fmt::Display;
use std::net::IpAddr;

use airpath_base::FlowId;

use crate::wire::frame;
use crate::wire::packet::{ICMP_V4, ICMP_V6, Layout, TCP, UDP};

/// Most flows that are distinguished. New ones beyond that share one number per end.
pub(crate) const MOST_FLOWS: u32 = 1 << 17;

/// Size of the table: half of it stays free, so that a lookup takes two steps on average.
const PLACES: usize = 2 * MOST_FLOWS as usize;

/// Flows in the order in which they were first seen. All memory is allocated at the start.
#[derive(Debug)]
pub(crate) struct Flows {
    /// The packed key of each place; 0: free.
    keys: Box<[u64]>,
    numbers: Box<[u32]>,
    /// Number of flows in the table.
    placed: u32,
    /// Numbers assigned, including shared ones.
    given: u32,
    /// For each end, the number of all flows that are not distinguished.
    shared: Vec<Option<FlowId>>,
    /// The flow of the previous packet.
    last: Option<(Key, FlowId)>,
}

/// A flow, the same for both directions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    /// Index of the UE's end.
    pub(crate) end: usize,
    /// Whether it is IPv6.
    v6: bool,
    pub(crate) protocol: u8,
    ue_port: u16,
    server_port: u16,
    /// A 15-bit hash of the pair of addresses; 0 where each end has one address.
    peers: u16,
}

impl Key {
    /// The flow of a packet in either direction.
    #[inline]
    pub(crate) fn of(packet: &[u8], layout: &Layout, end: usize, up: bool) -> Self {
        let (source, destination) = layout.ports(packet);
        let (ue_port, server_port) = if up { (source, destination) } else { (destination, source) };
        Self { end, v6: layout.v6, protocol: layout.protocol, ue_port, server_port, peers: 0 }
    }

    /// The flow of a packet of a real device. Devices behind one UE differ by their addresses.
    #[inline]
    pub(crate) fn of_device(packet: &[u8], layout: &Layout, end: usize, up: bool) -> Self {
        let width = if layout.v6 { 16 } else { 4 };
        let from = if layout.v6 { 8 } else { 12 };
        let hash = |at: usize| {
            packet[at..at + width].chunks_exact(4).fold(0u64, |hash, word| {
                mix(hash ^ u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]])))
            })
        };
        let (source, destination) = (hash(from), hash(from + width));
        let (ue, server) = if up { (source, destination) } else { (destination, source) };
        let peers = (mix(ue.rotate_left(1) ^ server) & 0x7fff) as u16;
        Self { peers, ..Self::of(packet, layout, end, up) }
    }

    /// The flow of a TCP connection.
    pub(crate) const fn tcp(end: usize, v6: bool, ue_port: u16, server_port: u16) -> Self {
        Self { end, v6, protocol: TCP, ue_port, server_port, peers: 0 }
    }

    /// The flow of sockets bound to these ports, over IPv4.
    pub(crate) const fn planned(end: usize, protocol: u8, ue_port: u16, server_port: u16) -> Self {
        Self { end, v6: false, protocol, ue_port, server_port, peers: 0 }
    }

    /// The packed key; never 0, because the UEs' ends begin with 1.
    #[inline]
    const fn packed(&self) -> u64 {
        (self.peers as u64) << 49
            | (self.end as u64) << 41
            | (self.v6 as u64) << 40
            | (self.protocol as u64) << 32
            | (self.ue_port as u64) << 16
            | self.server_port as u64
    }

    /// The flow's name in tables: `tcp phone:40312 server:5201`.
    pub(crate) fn name(&self, ue: &str) -> String {
        match self.protocol {
            TCP | UDP => self.between(ue, "server"),
            ICMP_V4 | ICMP_V6 => format!("icmp{} {ue} {}", self.version(), self.ue_port),
            other => format!("ip{}-{other} {ue}", self.version()),
        }
    }

    /// The flow's name in tables, from one of its packets: `tcp phone/192.168.1.20:40312
    /// 192.0.2.7:443`.
    pub(crate) fn name_of_device(
        &self,
        ue: &str,
        packet: &[u8],
        layout: &Layout,
        up: bool,
    ) -> String {
        let (source, destination) = frame::addresses(packet, layout);
        let (device, server) = if up { (source, destination) } else { (destination, source) };
        let text = |address| match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let (device, server) = (format!("{ue}/{}", text(device)), text(server));
        match self.protocol {
            TCP | UDP => self.between(device, server),
            ICMP_V4 | ICMP_V6 => {
                format!("icmp{} {device} {server} {}", self.version(), self.ue_port)
            }
            other => format!("ip{}-{other} {device} {server}", self.version()),
        }
    }

    fn between(&self, ue: impl Display, server: impl Display) -> String {
        let (protocol, version) =
            (if self.protocol == TCP { "tcp" } else { "udp" }, self.version());
        format!("{protocol}{version} {ue}:{} {server}:{}", self.ue_port, self.server_port)
    }

    const fn version(&self) -> &'static str {
        if self.v6 { "6" } else { "" }
    }
}

/// A flow's number, and its status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Numbered {
    pub(crate) flow: FlowId,
    /// Whether the flow is new.
    pub(crate) new: bool,
    /// Whether other flows have the same number.
    pub(crate) shared: bool,
}

impl Flows {
    /// Numbers assigned so far.
    pub(crate) const fn given(&self) -> u32 {
        self.given
    }

    /// Whether there are more flows than can be distinguished.
    pub(crate) fn is_full(&self) -> bool {
        self.shared.iter().any(Option::is_some)
    }

    /// The flow's number, if it was seen before.
    #[inline]
    pub(crate) fn known(&self, key: &Key) -> Option<FlowId> {
        if let Some((last, flow)) = &self.last
            && last == key
        {
            return Some(*flow);
        }
        let place = self.place(key.packed());
        let placed = (self.keys[place] != 0).then(|| FlowId(self.numbers[place]));
        placed.or_else(|| self.shared.get(key.end).copied().flatten())
    }

    /// The flow's number, which is assigned if necessary.
    #[inline]
    pub(crate) fn number(&mut self, key: Key) -> Numbered {
        if let Some((last, flow)) = self.last
            && last == key
        {
            return Numbered { flow, new: false, shared: false };
        }
        let packed = key.packed();
        let place = self.place(packed);
        if self.keys[place] != 0 {
            let flow = FlowId(self.numbers[place]);
            self.last = Some((key, flow));
            return Numbered { flow, new: false, shared: false };
        }
        if self.placed == MOST_FLOWS {
            return self.number_shared(key.end);
        }
        let flow = FlowId(self.given);
        (self.keys[place], self.numbers[place]) = (packed, flow.0);
        self.placed += 1;
        self.given += 1;
        self.last = Some((key, flow));
        Numbered { flow, new: true, shared: false }
    }

    #[cold]
    fn number_shared(&mut self, end: usize) -> Numbered {
        if self.shared.len() <= end {
            self.shared.resize(end + 1, None);
        }
        let new = self.shared[end].is_none();
        let flow = *self.shared[end].get_or_insert(FlowId(self.given));
        self.given += u32::from(new);
        Numbered { flow, new, shared: true }
    }

    /// Where a key is, or would be.
    #[inline]
    fn place(&self, packed: u64) -> usize {
        let mut place = mix(packed) as usize % PLACES;
        while self.keys[place] != 0 && self.keys[place] != packed {
            place = (place + 1) % PLACES;
        }
        place
    }
}

/// The finaliser of MurmurHash3: every bit of the input affects every bit of the result.
#[inline]
fn mix(mut mixed: u64) -> u64 {
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        mixed = (mixed ^ mixed >> 33).wrapping_mul(factor);
    }
    mixed ^ mixed >> 33
}

impl Default for Flows {
    fn default() -> Self {
        Self {
            keys: vec![0; PLACES].into_boxed_slice(),
            numbers: vec![0; PLACES].into_boxed_slice(),
            placed: 0,
            given: 0,
            shared: Vec::new(),
            last: None,
        }
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
        let mut number = |key| {
            let numbered = flows.number(key);
            (numbered.flow, numbered.new)
        };
        assert_eq!(number(up), (FlowId(0), true));
        assert_eq!(number(down), (FlowId(0), false));
        assert_eq!(number(key(&udp(UE, SERVER, 4001, 53), 1, true)), (FlowId(1), true));
        assert_eq!(number(Key { end: 2, ..up }), (FlowId(2), true));
        assert_eq!(number(up), (FlowId(0), false));
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

    #[test]
    fn devices_behind_one_ue_have_flows_of_their_own() {
        let udp = |from: [u8; 4], to: [u8; 4], ports: (u16, u16)| {
            let mut packet = Vec::new();
            let builder = PacketBuilder::ipv4(from, to, 64).udp(ports.0, ports.1);
            builder.write(&mut packet, &[0; 10]).unwrap();
            packet
        };
        let key = |packet: &[u8], up| Key::of_device(packet, &Layout::of(packet).unwrap(), 1, up);
        let up = udp(UE, SERVER, (4000, 53));
        let down = udp(SERVER, UE, (53, 4000));
        assert_eq!(key(&up, true), key(&down, false));
        // 15 bits distinguish 200 devices: 20,000 pairs and 32,768 values give 0.6 collisions.
        let devices = (1..=200).map(|last| key(&udp([10, 77, 1, last], SERVER, (4000, 53)), true));
        let distinct: std::collections::BTreeSet<Key> = devices.collect();
        assert!(distinct.len() >= 195, "{}", distinct.len());
        let layout = Layout::of(&down).unwrap();
        let name = key(&down, false).name_of_device("phone", &down, &layout, false);
        assert_eq!(name, "udp phone/10.77.1.1:4000 10.77.0.1:53");
    }

    #[test]
    fn more_flows_than_are_told_apart_share_a_number() {
        let key = |n: u32, end| Key::planned(end, TCP, n as u16, (n >> 16) as u16);
        let mut flows = Flows::default();
        for n in 0..MOST_FLOWS {
            assert_eq!(flows.number(key(n, 1)).flow, FlowId(n));
        }
        assert!(!flows.is_full());
        let first = flows.number(key(MOST_FLOWS, 1));
        assert_eq!(first, Numbered { flow: FlowId(MOST_FLOWS), new: true, shared: true });
        let other = flows.number(key(MOST_FLOWS + 1, 1));
        assert_eq!(other, Numbered { new: false, ..first });
        assert_eq!(flows.number(key(7, 2)).flow, FlowId(MOST_FLOWS + 1));
        assert_eq!(flows.known(&key(MOST_FLOWS + 9, 1)), Some(first.flow));
        let old = Numbered { flow: FlowId(7), new: false, shared: false };
        assert_eq!(flows.number(key(7, 1)), old);
        assert!(flows.is_full());
    }
}
