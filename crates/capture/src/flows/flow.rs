//! One flow while its packets are read.

use airpath_base::Instant;

use super::key::Key;
use crate::datagram::{Echoes, UdpFlow};
use crate::report::{FlowReport, Volume};
use crate::tcp::Connection;

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
    pub(super) tcp: Option<Box<Connection>>,
    pub(super) udp: Option<Box<UdpFlow>>,
    pub(super) echoes: Option<Box<Echoes>>,
    /// It waits among those that are over.
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
            tcp: tcp.then(Box::default),
            udp: None,
            echoes: None,
            is_over: false,
        }
    }

    #[inline]
    pub(super) fn count(&mut self, now: Instant, from: usize, bytes: u32, teid: Option<u32>) {
        self.last = self.last.max(now);
        let volume = &mut self.volumes[from];
        volume.packets += 1;
        volume.bytes += u64::from(bytes);
        if teid.is_some() {
            self.teids[from] = teid;
        }
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

    pub(super) fn report(&self, epoch: Instant) -> FlowReport {
        let client = self.tcp.as_ref().and_then(|tcp| tcp.opener()).unwrap_or(self.first_sender);
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
            same_as: Vec::new(),
            start_s: began.as_secs_f64(),
            duration_s: self.last.saturating_since(self.began).as_secs_f64(),
            from_client: self.volumes[client],
            from_server: self.volumes[server],
            tcp: self.tcp.as_ref().map(|tcp| tcp.report(client, epoch)),
            udp: self.udp.as_ref().map(|udp| udp.report(client)),
            icmp: self.echoes.as_ref().map(|echoes| echoes.report()),
        }
    }
}
