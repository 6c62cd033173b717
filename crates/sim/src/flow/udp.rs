//! Datagrams at a constant rate.

use airpath_base::{Datagram, Duration, Ecn, Instant, Packet, Payload, Rate, Site, Tunnel};
use airpath_metrics::DatagramMeter;
use airpath_record::{Breakdown, FlowSummary, SampleRow};

use super::context::{Context, Identity};
use super::spent::TimeSpent;

/// Bytes of IPv4 and UDP headers.
const HEADER_BYTES: u32 = 28;

/// The progress of the receiver's request for the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opening {
    /// It will send a datagram first.
    ByReceiver,
    /// That datagram is on its way.
    Asked,
    /// There is nothing to wait for, or it will never arrive.
    Done,
}

pub(crate) struct Udp {
    identity: Identity,
    opening: Opening,
    rate: Rate,
    packet_bytes: u32,
    stop: Option<Instant>,
    next: Option<Instant>,
    carried: u64,
    meter: DatagramMeter,
    /// Where the time of arriving datagrams went, if it is accounted for.
    spent: TimeSpent,
}

impl Udp {
    pub(crate) fn new(
        identity: Identity,
        rate: Rate,
        packet_bytes: u32,
        duration: Option<Duration>,
        opening: Opening,
    ) -> Self {
        let start = identity.start;
        let payload_bytes = packet_bytes.saturating_sub(HEADER_BYTES);
        Self {
            identity,
            opening,
            rate,
            packet_bytes,
            stop: duration.map(|duration| start + duration),
            next: Some(start),
            carried: 0,
            meter: DatagramMeter::new(start, duration, payload_bytes),
            spent: TimeSpent::default(),
        }
    }

    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.next
    }

    pub(crate) fn on_wake(&mut self, context: &mut Context<'_>) {
        if self.next.is_none_or(|at| at > context.now) {
            return;
        }
        if self.opening == Opening::ByReceiver {
            self.opening = Opening::Asked;
            self.next = None;
            let packet = self.packet(context.now, true);
            context.send(self.identity.back(), &packet);
            return;
        }
        let packet = self.packet(context.now, false);
        context.send(self.identity.forward(), &packet);
        self.meter.on_sent();
        let (gap, carried) = self.rate.transmission_time(self.packet_bytes, self.carried);
        self.carried = carried;
        let next = context.now + gap;
        self.next = self.before_stop(next);
    }

    /// The next datagram of the stream, or the receiver's request for it.
    fn packet(&self, now: Instant, asks: bool) -> Packet {
        let datagram = Datagram { sequence: self.meter.sent(), sent_at: now, reply: asks };
        Packet {
            flow: self.identity.flow,
            size: self.packet_bytes,
            ecn: Ecn::NotEct,
            tunnel: Tunnel::default(),
            journey: None,
            payload: Payload::Datagram(datagram),
        }
    }

    fn before_stop(&self, at: Instant) -> Option<Instant> {
        self.stop.is_none_or(|stop| at < stop).then_some(at)
    }

    pub(crate) fn on_packet(&mut self, packet: &Packet, context: &mut Context<'_>) {
        let Payload::Datagram(datagram) = packet.payload else {
            return;
        };
        let journey = context.end_journey(packet);
        if datagram.reply {
            self.opening = Opening::Done;
            self.next = self.before_stop(context.now);
            return;
        }
        if let Some(journey) = journey {
            let delay = context.now.saturating_since(datagram.sent_at);
            self.spent.add(delay, &[&journey], Duration::ZERO);
        }
        self.meter.on_received(context.now, Some(datagram.sent_at));
    }

    /// Where the flow's time went.
    pub(super) fn breakdown(
        &self,
        name: &mut dyn FnMut(Site) -> Option<String>,
    ) -> Option<Breakdown> {
        let delay_ms = Some(self.spent.breakdown(name)?);
        Some(Breakdown { id: self.identity.id.clone(), rtt_ms: None, delay_ms, goodput_mbps: None })
    }

    pub(crate) fn on_drop(&mut self, packet: &Packet) {
        match packet.payload {
            // The request will not be repeated.
            Payload::Datagram(Datagram { reply: true, .. }) => self.opening = Opening::Done,
            _ => self.meter.on_lost(),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        let sent = self.next.is_none() && self.opening == Opening::Done;
        sent && self.meter.is_settled()
    }

    pub(crate) fn sample(&mut self, context: &mut Context<'_>) {
        let Some(goodput_mbps) = self.meter.sample(context.now) else {
            return;
        };
        context.tables.sample(SampleRow {
            time_ns: context.now.as_nanos() as i64,
            flow: self.identity.name,
            goodput_mbps,
            delivered_bytes: self.meter.delivered(),
            cwnd_segments: None,
            ssthresh_segments: None,
            srtt_ms: None,
            rtt_ms: None,
            inflight_segments: None,
            receive_window_segments: None,
        });
    }

    pub(crate) fn finish(self, now: Instant) -> FlowSummary {
        self.meter.summarise(now, self.identity.summary())
    }
}
