//! Scripts: inject blocks, expect results.

mod buffer;
mod efficiency;
mod lte_am;
mod nr_am;
mod nr_status;
mod pdcp;
mod um;
mod umts;

use airpath_base::{DropReason, Duration, Ecn, FlowId, Instant, Packet, Payload, Tunnel};

use super::config::*;
use super::one_way::{Forwarding, OneWay};
use crate::buffer::*;
use crate::pdcp::*;
use crate::rlc::*;

const ARQ: ArqConfig = ArqConfig {
    t_poll_retransmit: Duration::from_millis(40),
    poll_pdu: None,
    poll_bytes: None,
    t_status_prohibit: Duration::ZERO,
    max_retx_threshold: 4,
};
const T_REASSEMBLY: Duration = Duration::from_millis(20);
const T_REORDERING: Duration = Duration::from_millis(100);

const UNLIMITED: BufferConfig = BufferConfig {
    packets: None,
    bytes: None,
    discipline: Discipline::DropTail,
    ecn: EcnConfig { codel: EcnCapable::Dropped, l4s_step: None },
};
const PDCP: PdcpConfig =
    PdcpConfig { header_bytes: 2, discard: None, status_report: StatusReport::Required };

const fn nr_am(sn: NrAmSn, arq: ArqConfig) -> RlcConfig {
    RlcConfig::Nr {
        mode: NrMode::Am { sn, t_reassembly: T_REASSEMBLY, arq },
        release: Release::InOrder { t_reordering: Some(T_REORDERING) },
    }
}

const fn nr_um(sn: NrUmSn) -> RlcConfig {
    RlcConfig::Nr {
        mode: NrMode::Um { sn, t_reassembly: T_REASSEMBLY },
        release: Release::InOrder { t_reordering: Some(T_REORDERING) },
    }
}

const fn lte_am(arq: ArqConfig) -> RlcConfig {
    RlcConfig::Lte(LteMode::Am { t_reordering: T_REASSEMBLY, arq })
}

const fn lte_um(sn: LteUmSn) -> RlcConfig {
    RlcConfig::Lte(LteMode::Um { sn, t_reordering: T_REASSEMBLY })
}

/// A bearer direction on a script's clock, in milliseconds.
struct Script {
    one_way: OneWay,
    now: Instant,
    sent: u64,
    /// Deliveries: (ms, number of the packet).
    delivered: Vec<(u64, u64)>,
}

impl Script {
    fn new(rlc: RlcConfig) -> Self {
        Self::with(OneWayConfig { rlc, pdcp: PDCP, buffer: UNLIMITED })
    }

    fn with(config: OneWayConfig) -> Self {
        let one_way = OneWay::new(&config, 0);
        Self { one_way, now: Instant::ZERO, sent: 0, delivered: Vec::new() }
    }

    /// Advances to `ms`, handling expired timers.
    fn at(&mut self, ms: u64) -> &mut Self {
        self.now = self::ms(ms);
        let delivered = &mut self.delivered;
        self.one_way.on_timer(self.now, &mut |at, packet| delivered.push(arrival(at, *packet)));
        self
    }

    /// Enqueues packets of these sizes; they are numbered from 0.
    fn packets(&mut self, sizes: &[u32]) {
        for &size in sizes {
            self.packet(FlowId(0), size, Ecn::NotEct);
        }
    }

    fn packet(&mut self, flow: FlowId, size: u32, ecn: Ecn) {
        let packet = self.next_packet(flow, size, ecn);
        self.one_way.enqueue(self.now, &packet);
    }

    fn next_packet(&mut self, flow: FlowId, size: u32, ecn: Ecn) -> Packet {
        let payload = Payload::Opaque(self.sent);
        self.sent += 1;
        Packet { flow, size, ecn, tunnel: Tunnel::default(), journey: None, payload }
    }

    fn block(&mut self, room: u32) -> TransportBlock {
        let mut block = TransportBlock::new();
        self.one_way.fill(self.now, room, &mut block);
        block
    }

    fn arrives(&mut self, block: &TransportBlock) {
        let delivered = &mut self.delivered;
        let deliver = &mut |at, packet: &Packet| delivered.push(arrival(at, *packet));
        self.one_way.on_block(self.now, block, deliver);
    }

    fn is_lost(&mut self, block: &TransportBlock) {
        self.one_way.on_loss(self.now, block);
    }

    /// Takes the STATUS that is due.
    fn status(&mut self) -> Option<Status> {
        let mut status = Status::default();
        (self.one_way.build_status(self.now, 1_000, &mut status) > 0).then_some(status)
    }

    /// Carries a STATUS from the receiver to the transmitter.
    fn exchange_status(&mut self) -> Status {
        let status = self.status().expect("a STATUS is due");
        self.one_way.on_status(self.now, &status);
        status
    }

    fn reestablish(&mut self, forwarding: Forwarding) {
        let delivered = &mut self.delivered;
        let deliver = &mut |at, packet: &Packet| delivered.push(arrival(at, *packet));
        self.one_way.reestablish(self.now, forwarding, deliver);
    }

    /// Drops: (ms, number of the packet, reason).
    fn drops(&mut self) -> Vec<(u64, u64, DropReason)> {
        core::iter::from_fn(|| self.one_way.poll_drop())
            .map(|drop| {
                let (at, id) = arrival(drop.at, drop.packet);
                (at, id, drop.reason)
            })
            .collect()
    }
}

fn arrival(at: Instant, packet: Packet) -> (u64, u64) {
    let Payload::Opaque(id) = packet.payload else { unreachable!("scripts send opaque packets") };
    (at.as_nanos() / 1_000_000, id)
}

/// PDUs as `sn start..end`, with `/` if the unit ends and `P` if it polls.
fn show(block: &TransportBlock) -> Vec<String> {
    let mark = |yes: bool, mark: &'static str| if yes { mark } else { "" };
    let show = |pdu: &Pdu| {
        let Pdu { sn, start, end, last, poll, .. } = pdu;
        format!("{sn} {start}..{end}{}{}", mark(*last, "/"), mark(*poll, "P"))
    };
    block.pdus.iter().map(show).collect()
}

fn units(sn: u64, count: u32) -> Nack {
    Nack::Units { sn, count }
}

fn bytes(sn: u64, start: u32, end: impl Into<Option<u32>>) -> Nack {
    Nack::Bytes { sn, start, end: end.into() }
}

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}
