//! Echo requests at an interval, answered at once by the other end.

use std::collections::BTreeMap;

use airpath_base::{
    Datagram, Direction, Duration, Ecn, Instant, Journey, Packet, Payload, Site, Tunnel,
};
use airpath_metrics::EchoMeter;
use airpath_network::Hop;
use airpath_record::Breakdown;

use super::context::{Context, Identity, Summary};
use super::spent::TimeSpent;

pub(crate) struct Ping {
    identity: Identity,
    interval: Duration,
    packet_bytes: u32,
    count: Option<u64>,
    next: Option<Instant>,
    meter: EchoMeter,
    /// If time is accounted for: where it went, and the journeys of requests whose replies are
    /// under way.
    spent: TimeSpent,
    answered: BTreeMap<u64, Journey>,
}

impl Ping {
    pub(crate) fn new(
        identity: Identity,
        interval: Duration,
        packet_bytes: u32,
        count: Option<u64>,
    ) -> Self {
        let next = (count != Some(0)).then_some(identity.start);
        let (meter, spent, answered) = (EchoMeter::new(), TimeSpent::default(), BTreeMap::new());
        Self { identity, interval, packet_bytes, count, next, meter, spent, answered }
    }

    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.next
    }

    pub(crate) fn on_wake(&mut self, context: &mut Context<'_>) {
        if self.next.is_none_or(|at| at > context.now) {
            return;
        }
        let datagram = Datagram { sequence: self.meter.sent(), sent_at: context.now, reply: false };
        self.send(self.identity.direction, datagram, context);
        self.meter.on_sent(context.now);
        let more = self.count.is_none_or(|count| self.meter.sent() < count);
        self.next = more.then(|| context.now + self.interval);
    }

    fn send(&self, direction: Direction, datagram: Datagram, context: &mut Context<'_>) {
        let packet = Packet {
            flow: self.identity.flow,
            size: self.packet_bytes,
            ecn: Ecn::NotEct,
            tunnel: Tunnel::default(),
            journey: None,
            payload: Payload::Datagram(datagram),
        };
        context.send(Hop::from_endpoint(direction), &packet);
    }

    pub(crate) fn on_packet(
        &mut self,
        direction: Direction,
        packet: &Packet,
        context: &mut Context<'_>,
    ) {
        let Payload::Datagram(datagram) = packet.payload else {
            return;
        };
        let journey = context.end_journey(packet);
        if !datagram.reply {
            if let Some(journey) = journey {
                self.answered.insert(datagram.sequence, journey);
            }
            self.send(direction.reverse(), Datagram { reply: true, ..datagram }, context);
            return;
        }
        if let Some(journey) = journey
            && let Some(request) = self.answered.remove(&datagram.sequence)
        {
            let rtt = context.now.saturating_since(datagram.sent_at);
            self.spent.add(rtt, &[&request, &journey], Duration::ZERO);
        }
        self.meter.on_reply(datagram.sequence, context.now);
    }

    /// Where the flow's time went.
    pub(super) fn breakdown(
        &self,
        name: &mut dyn FnMut(Site) -> Option<String>,
    ) -> Option<Breakdown> {
        let rtt_ms = Some(self.spent.breakdown(name)?);
        Some(Breakdown { id: self.identity.id.clone(), rtt_ms, delay_ms: None, goodput_mbps: None })
    }

    pub(crate) fn on_drop(&mut self, packet: &Packet) {
        if let Payload::Datagram(datagram) = packet.payload {
            self.meter.on_lost(datagram.sequence);
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        // Drops are only noticed at sample intervals: until then the flow waits for a lost request.
        self.next.is_none() && self.meter.is_settled()
    }

    pub(crate) fn finish(self, context: &mut Context<'_>) -> Summary {
        let Self { identity, meter, .. } = self;
        let Context { now, tables, .. } = context;
        let (ping, flow) = meter.finish(*now, identity.name, identity.summary(), tables);
        Summary::Ping(ping, Box::new(flow))
    }
}
