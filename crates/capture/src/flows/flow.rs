//! One flow, while its packets are read.

use airpath_base::Instant;

use super::copies::{MOST_TIMES, Sight};
use super::key::Key;
use crate::datagram::{Echoes, IcmpErrors, Messages, UdpFlow};
use crate::decode::icmp::IcmpError;
use crate::report::{FlowReport, Volume};
use crate::tcp::Connection;

/// Share of a flow's packets that must be duplicated before the duplicates are attributed to the
/// capture and not to the network.
const NEARLY_ALL: f64 = 0.9;

/// Packets of one end, copies included, below which it is not judged without the other end.
const LEAST_COPIES: u64 = 40;

#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) key: Key,
    pub(super) id: u64,
    /// The end that sent the first packet.
    first_sender: usize,
    pub(super) began: Instant,
    pub(super) last: Instant,
    volumes: [Volume; 2],
    teids: [Option<u32>; 2],
    /// For each end, packets that came a second, third or fourth time shortly after the first; the
    /// first element counts packets that are alike without being the same frame: they come more
    /// often, or later.
    again: [[u32; MOST_TIMES]; 2],
    pub(super) tcp: Option<Box<Connection>>,
    pub(super) udp: Option<Box<UdpFlow>>,
    pub(super) echoes: Option<Box<Echoes>>,
    errors: Option<Box<(Messages, String)>>,
    /// The flow waits among those that are over.
    pub(super) is_over: bool,
}

impl Flow {
    pub(super) fn new(key: Key, id: u64, now: Instant, from: usize, tcp: bool) -> Self {
        Self {
            key,
            id,
            first_sender: from,
            began: now,
            last: now,
            volumes: [Volume::default(); 2],
            teids: [None; 2],
            again: [[0; MOST_TIMES]; 2],
            tcp: tcp.then(Box::default),
            udp: None,
            echoes: None,
            errors: None,
            is_over: false,
        }
    }

    #[inline]
    pub(super) fn count(&mut self, now: Instant, from: usize, bytes: u32, teid: Option<u32>) {
        (self.began, self.last) = (self.began.min(now), self.last.max(now));
        let volume = &mut self.volumes[from];
        volume.packets += 1;
        volume.bytes += u64::from(bytes);
        if teid.is_some() {
            self.teids[from] = teid;
        }
    }

    /// Notes that the packet just counted equals earlier ones.
    #[cold]
    pub(super) fn note_again(&mut self, from: usize, sight: Sight) {
        let place = match usize::from(sight.times) {
            times @ 2..=MOST_TIMES if sight.is_soon => times - 1,
            _ => 0,
        };
        self.again[from][place] += 1;
    }

    /// How many times nearly every packet of each end was captured, without a difference between the
    /// copies. If only one end's packets were, they must belong to TCP, and their receiver must not
    /// report duplicates (RFC 2883): otherwise the network may have made them.
    pub(super) fn times_captured(&self) -> [u8; 2] {
        let both =
            (2..=MOST_TIMES).take_while(|&times| [0, 1].iter().all(|&end| self.came(end, times)));
        if let Some(times) = both.last() {
            return [times as u8; 2];
        }
        [0, 1].map(|end| {
            let is_enough = self.volumes[end].packets >= LEAST_COPIES;
            let Some(tcp) = self.tcp.as_ref().filter(|_| is_enough) else { return 1 };
            // Half of the packets are copies; a quarter of those may be the network's.
            if tcp.duplicates(end) * 8 > self.volumes[end].packets {
                return 1;
            }
            (2..=MOST_TIMES).take_while(|&times| self.came(end, times)).last().unwrap_or(1) as u8
        })
    }

    /// Whether nearly every packet of an end came so many times.
    fn came(&self, end: usize, times: usize) -> bool {
        let (volume, again) = (&self.volumes[end], &self.again[end]);
        let repeated: u64 = again.iter().copied().map(u64::from).sum();
        let once = volume.packets.saturating_sub(repeated) as f64;
        let again_so_often = again[times - 1];
        f64::from(again_so_often) >= NEARLY_ALL * once
            && (again[0] < again_so_often || volume.packets == 0)
    }

    /// Notes an ICMP error that quotes a packet of this flow.
    pub(super) fn note_error(&mut self, error: &IcmpError<'_>, from: impl FnOnce() -> String) {
        if let Some(echoes) = &mut self.echoes {
            echoes.on_error(error.quoted.body);
        }
        let errors = self.errors.get_or_insert_with(|| Box::new((Messages::default(), from())));
        errors.0.add(error.name, error.mtu);
    }

    pub(super) fn packets(&self) -> u64 {
        self.volumes[0].packets + self.volumes[1].packets
    }

    pub(super) fn bytes(&self) -> u64 {
        self.volumes[0].bytes + self.volumes[1].bytes
    }

    pub(super) fn retransmitted(&self) -> u64 {
        self.tcp.as_ref().map_or(0, |tcp| tcp.retransmitted())
    }

    /// The end that opened the connection or sends the echo requests. Where the opening was not
    /// captured, the other end than the one with the lower port: services have known ports.
    pub(super) fn client(&self) -> usize {
        let [first, second] = self.key.ports;
        if let Some(tcp) = &self.tcp {
            let by_port = (first != second).then_some(usize::from(first < second));
            return tcp.opener().or(by_port).unwrap_or(self.first_sender);
        }
        self.echoes.as_ref().and_then(|echoes| echoes.asker()).unwrap_or(self.first_sender)
    }

    /// The row of the flow, in a capture that ended at `end`.
    pub(super) fn report(&self, epoch: Instant, end: Instant) -> FlowReport {
        let client = self.client();
        let server = 1 - client;
        let began = self.began.saturating_since(epoch);
        FlowReport {
            id: self.id,
            protocol: self.key.protocol_name(),
            client: self.key.address(client),
            client_port: self.key.ports[client],
            server: self.key.address(server),
            server_port: self.key.ports[server],
            interface: self.key.interface as usize,
            tunnel: self.key.tunnel,
            teids: [self.teids[client], self.teids[server]],
            times_captured: [client, server].map(|end| self.times_captured()[end]),
            same_as: Vec::new(),
            start_s: began.as_secs_f64(),
            duration_s: self.last.saturating_since(self.began).as_secs_f64(),
            from_client: self.volumes[client],
            from_server: self.volumes[server],
            tcp: self.tcp.as_ref().map(|tcp| tcp.report(client, epoch)),
            udp: self.udp.as_ref().map(|udp| udp.report(client)),
            icmp: self.echoes.as_ref().map(|echoes| echoes.report(end.max(self.last))),
            icmp_errors: self.errors.as_deref().map(|(messages, from)| IcmpErrors {
                messages: messages.names.clone(),
                mtu_bytes: messages.mtu,
                from: from.clone(),
            }),
        }
    }
}
