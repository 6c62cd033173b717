//! Datagrams at a constant rate.

use airpath_base::{Datagram, Duration, Ecn, Histogram, Instant, Packet, Payload, Rate, Tunnel};
use airpath_network::mbps;
use airpath_record::{FlowSummary, Quantiles, SampleRow};

use super::{Context, Identity};

/// IPv4 and UDP headers.
const HEADER_BYTES: u32 = 28;

/// How far the receiver is in asking for the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opening {
    /// It will send a datagram first.
    ByReceiver,
    /// That is on its way.
    Asked,
    /// Nothing is to wait for, or will ever come.
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
    sent: u64,
    received: u64,
    /// Of these, before `stop`.
    received_in_time: u64,
    lost: u64,
    /// Received until the last sample.
    sampled: (Instant, u64),
    delay: Histogram,
    last_delay: Option<Duration>,
    /// RFC 3550 6.4.1, in nanoseconds.
    jitter: f64,
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
        Self {
            identity,
            opening,
            rate,
            packet_bytes,
            stop: duration.map(|duration| start + duration),
            next: Some(start),
            carried: 0,
            sent: 0,
            received: 0,
            received_in_time: 0,
            lost: 0,
            sampled: (start, 0),
            delay: Histogram::new(),
            last_delay: None,
            jitter: 0.0,
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
            context.send(1 - self.identity.forward, packet);
            return;
        }
        let packet = self.packet(context.now, false);
        context.send(self.identity.forward, packet);
        self.sent += 1;
        let (gap, carried) = self.rate.transmission_time(self.packet_bytes, self.carried);
        self.carried = carried;
        let next = context.now + gap;
        self.next = self.before_stop(next);
    }

    /// The next datagram of the stream, or the receiver's that asks for it.
    fn packet(&self, now: Instant, asks: bool) -> Packet {
        let datagram = Datagram { sequence: self.sent, sent_at: now, reply: asks };
        Packet {
            flow: self.identity.flow,
            size: self.packet_bytes,
            ecn: Ecn::NotEct,
            tunnel: Tunnel::default(),
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
        if datagram.reply {
            self.opening = Opening::Done;
            self.next = self.before_stop(context.now);
            return;
        }
        let delay = context.now - datagram.sent_at;
        self.received += 1;
        self.received_in_time += u64::from(self.stop.is_none_or(|stop| context.now <= stop));
        self.delay.record(delay);
        if let Some(last) = self.last_delay {
            let difference = delay.as_nanos().abs_diff(last.as_nanos()) as f64;
            self.jitter += (difference - self.jitter) / 16.0;
        }
        self.last_delay = Some(delay);
    }

    pub(crate) fn on_drop(&mut self, packet: &Packet) {
        match packet.payload {
            // Nobody will ask again.
            Payload::Datagram(Datagram { reply: true, .. }) => self.opening = Opening::Done,
            _ => self.lost += 1,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        let sent = self.next.is_none() && self.opening == Opening::Done;
        sent && self.received + self.lost >= self.sent
    }

    fn payload(&self, packets: u64) -> u64 {
        packets * u64::from(self.packet_bytes.saturating_sub(HEADER_BYTES))
    }

    fn delivered_bytes(&self) -> u64 {
        self.payload(self.received)
    }

    pub(crate) fn sample(&mut self, context: &mut Context<'_>) {
        let (since, before) = self.sampled;
        let Some(goodput_mbps) = mbps(
            self.delivered_bytes() - before,
            context.now.saturating_since(since).as_secs_f64(),
        ) else {
            return;
        };
        self.sampled = (context.now, self.delivered_bytes());
        context.tables.sample(SampleRow {
            time_ns: context.now.as_nanos() as i64,
            flow: self.identity.name,
            goodput_mbps,
            delivered_bytes: self.delivered_bytes(),
            cwnd_segments: None,
            ssthresh_segments: None,
            srtt_ms: None,
            rtt_ms: None,
            inflight_segments: None,
            receive_window_segments: None,
        });
    }

    pub(crate) fn finish(self, now: Instant) -> FlowSummary {
        let end = self.stop.map_or(now, |stop| stop.min(now));
        let seconds = end.saturating_since(self.identity.start).as_secs_f64();
        FlowSummary {
            bytes_delivered: self.delivered_bytes(),
            goodput_mbps: mbps(self.payload(self.received_in_time), seconds),
            id: self.identity.id,
            kind: self.identity.kind,
            ue: self.identity.ue,
            direction: self.identity.direction,
            start_ns: self.identity.start.as_nanos() as i64,
            end_ns: (end > self.identity.start).then_some(end.as_nanos() as i64),
            segments_sent: self.sent,
            packets_sent: Some(self.sent),
            packets_lost: Some(self.lost),
            delay_ms: Quantiles::of(&self.delay),
            jitter_ms: self.last_delay.map(|_| self.jitter / 1e6),
            ..FlowSummary::default()
        }
    }
}
