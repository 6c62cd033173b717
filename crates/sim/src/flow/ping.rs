//! Echo requests at an interval, answered at once at the other end.

use airpath_base::{Datagram, Duration, Ecn, Histogram, Instant, Packet, Payload, Tunnel};
use airpath_record::{FlowSummary, PingRow, PingSummary, Quantiles};

use super::{Context, Identity, Summary};

#[derive(Clone, Copy)]
struct Probe {
    sent_at: Instant,
    rtt: Option<Duration>,
    lost: bool,
}

pub(crate) struct Ping {
    identity: Identity,
    interval: Duration,
    packet_bytes: u32,
    count: Option<u64>,
    next: Option<Instant>,
    probes: Vec<Probe>,
    answered: usize,
    rtt: Histogram,
}

impl Ping {
    pub(crate) fn new(
        identity: Identity,
        interval: Duration,
        packet_bytes: u32,
        count: Option<u64>,
    ) -> Self {
        let next = (count != Some(0)).then_some(identity.start);
        let probes = Vec::new();
        let rtt = Histogram::new();
        Self { identity, interval, packet_bytes, count, next, probes, answered: 0, rtt }
    }

    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.next
    }

    pub(crate) fn on_wake(&mut self, context: &mut Context<'_>) {
        if self.next.is_none_or(|at| at > context.now) {
            return;
        }
        let datagram =
            Datagram { sequence: self.probes.len() as u64, sent_at: context.now, reply: false };
        self.send(self.identity.forward, datagram, context);
        self.probes.push(Probe { sent_at: context.now, rtt: None, lost: false });
        let more = self.count.is_none_or(|count| (self.probes.len() as u64) < count);
        self.next = more.then(|| context.now + self.interval);
    }

    fn send(&self, direction: usize, datagram: Datagram, context: &mut Context<'_>) {
        let packet = Packet {
            flow: self.identity.flow,
            size: self.packet_bytes,
            ecn: Ecn::NotEct,
            tunnel: Tunnel::default(),
            payload: Payload::Datagram(datagram),
        };
        context.send(direction, packet);
    }

    pub(crate) fn on_packet(
        &mut self,
        direction: usize,
        packet: &Packet,
        context: &mut Context<'_>,
    ) {
        let Payload::Datagram(datagram) = packet.payload else {
            return;
        };
        if !datagram.reply {
            self.send(1 - direction, Datagram { reply: true, ..datagram }, context);
            return;
        }
        let rtt = context.now - datagram.sent_at;
        self.rtt.record(rtt);
        self.probes[datagram.sequence as usize].rtt = Some(rtt);
        self.answered += 1;
    }

    pub(crate) fn on_drop(&mut self, packet: &Packet) {
        if let Payload::Datagram(datagram) = packet.payload {
            self.probes[datagram.sequence as usize].lost = true;
        }
    }

    fn lost(&self) -> usize {
        self.probes.iter().filter(|probe| probe.lost).count()
    }

    pub(crate) fn is_done(&self) -> bool {
        // Drops are only noticed at sample intervals: until then a lost probe is waited for.
        self.next.is_none() && self.answered + self.lost() >= self.probes.len()
    }

    pub(crate) fn finish(self, context: &mut Context<'_>) -> Summary {
        for (sequence, probe) in self.probes.iter().enumerate() {
            context.tables.ping(PingRow {
                flow: self.identity.name,
                sequence: sequence as u64,
                sent_ns: probe.sent_at.as_nanos() as i64,
                rtt_ms: probe.rtt.map(Duration::as_millis_f64),
                lost: probe.lost,
            });
        }
        super::notes::record_histogram(&self.rtt, self.identity.name, context);
        let (sent, lost) = (self.probes.len() as u64, self.lost() as u64);
        let rtt_ms = Quantiles::of(&self.rtt);
        let flow = FlowSummary {
            id: self.identity.id.clone(),
            kind: self.identity.kind,
            ue: self.identity.ue.clone(),
            direction: self.identity.direction,
            start_ns: self.identity.start.as_nanos() as i64,
            end_ns: Some(context.now.as_nanos() as i64),
            rtt_ms: rtt_ms.clone(),
            segments_sent: sent,
            packets_sent: Some(sent),
            packets_lost: Some(lost),
            ..FlowSummary::default()
        };
        Summary::Ping(PingSummary { id: self.identity.id, sent, lost, rtt_ms }, Box::new(flow))
    }
}
