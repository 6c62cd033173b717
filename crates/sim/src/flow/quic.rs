//! A QUIC flow: two endpoints of a stack, and the datagrams that are under way between them.

use std::collections::BTreeMap;

use airpath_base::{
    Datagram, Direction, Duration, Ecn, Histogram, Instant, Packet, Payload, Stream, Tunnel,
};
use airpath_metrics::{MeanRtt, TransferMeter, write_histogram};
use airpath_network::Hop;
use airpath_quic::{Config, Endpoint, HEADER_BYTES};
use airpath_record::{FlowSummary, LimitSeconds, Quantiles, SampleRow};

use super::context::{Context, Identity};

pub(crate) struct QuicFlow {
    identity: Identity,
    config: Config,
    /// Random numbers of the end that each direction arrives at.
    random: [Stream; 2],
    size: Option<u64>,
    /// When the application stops, for a flow without a size.
    stop: Option<Instant>,
    ends: Option<[End; 2]>,
    wire: Wire,
    meter: TransferMeter,
    rtt: Histogram,
    mean_rtt: MeanRtt,
}

/// The end that a direction arrives at: downlink the UE, uplink the server.
struct End {
    endpoint: Box<dyn Endpoint>,
    due: Instant,
}

/// Datagrams in the network, by the number that their packet carries.
#[derive(Default)]
struct Wire {
    under_way: BTreeMap<u64, Box<[u8]>>,
    sent: u64,
}

impl QuicFlow {
    pub(crate) fn new(
        identity: Identity,
        config: &Config,
        seed: u64,
        size: Option<u64>,
        duration: Option<Duration>,
    ) -> Self {
        let start = identity.start;
        let meter = size.map_or_else(
            || TransferMeter::bulk(start, duration),
            |size| TransferMeter::file(start, size),
        );
        let stream = |end| Stream::new(seed, &format!("flow.{}.quic.{end}", identity.id));
        Self {
            config: config.clone(),
            random: ["ue", "server"].map(stream),
            size,
            stop: duration.map(|duration| start + duration),
            ends: None,
            wire: Wire::default(),
            meter,
            rtt: Histogram::new(),
            mean_rtt: MeanRtt::default(),
            identity,
        }
    }

    /// The direction that arrives at the end that sends the data.
    const fn sender(&self) -> Direction {
        self.identity.direction.reverse()
    }

    fn start(&mut self, context: &mut Context<'_>) {
        let (now, sends) = (context.now, |at: Direction| self.sender() == at);
        let [ue, server] = self.random.clone();
        let (down, up) = (Direction::Downlink, Direction::Uplink);
        let mut ends = [
            airpath_quic::connect(now, &self.config, sends(down), ue, server.clone()),
            airpath_quic::listen(&self.config, sends(up), server),
        ];
        let sender = &mut ends[self.sender()];
        sender.offer(self.size.unwrap_or(u64::MAX));
        if self.size.is_some() {
            sender.close_when_written();
        }
        self.ends = Some(ends.map(|endpoint| End { endpoint, due: Instant::MAX }));
        self.transmit(down, context);
        self.transmit(up, context);
    }

    /// Sends what the end that `at` arrives at may send now.
    fn transmit(&mut self, at: Direction, context: &mut Context<'_>) {
        let Self { identity, ends: Some(ends), wire, .. } = self else {
            return;
        };
        let (now, path) = (context.now, Hop::from_endpoint(at.reverse()));
        let reply = at == identity.direction;
        let End { endpoint, due } = &mut ends[at];
        endpoint.transmit(now, &mut |ecn, payload| {
            context.send(path, &wire.packet(now, identity, ecn, reply, payload));
        });
        *due = endpoint.next_timer().unwrap_or(Instant::MAX);
    }

    pub(crate) fn on_packet(
        &mut self,
        direction: Direction,
        packet: &Packet,
        context: &mut Context<'_>,
    ) {
        // Nothing keeps an account of it.
        let _ = context.end_journey(packet);
        let Some(payload) = self.wire.take(packet) else { return };
        let Some(ends) = &mut self.ends else { return };
        ends[direction].endpoint.on_datagram(context.now, packet.ecn, &payload);
        self.transmit(direction, context);
        self.measure(context.now);
    }

    fn measure(&mut self, now: Instant) {
        let (sender, receiver) = (self.sender(), self.identity.direction);
        let Some(ends) = &mut self.ends else { return };
        while let Some(rtt) = ends[sender].endpoint.take_rtt_sample() {
            self.rtt.record(rtt);
            self.mean_rtt.record(rtt);
        }
        self.meter.on_delivered(now, ends[receiver].endpoint.delivered());
    }

    pub(crate) fn on_drop(&mut self, packet: &Packet) {
        self.wire.take(packet);
    }

    pub(crate) fn on_wake(&mut self, context: &mut Context<'_>) {
        let now = context.now;
        if self.ends.is_none() {
            if now >= self.identity.start {
                self.start(context);
            }
            return;
        }
        let sender = self.sender();
        let Some(ends) = &mut self.ends else { return };
        if self.stop.is_some_and(|stop| now >= stop) {
            self.stop = None;
            let endpoint = &mut ends[sender].endpoint;
            self.meter.on_written(endpoint.written());
            endpoint.close();
            self.meter.on_stop(now);
        }
        for at in Direction::BOTH {
            if let Some(ends) = &mut self.ends {
                ends[at].endpoint.on_timer(now);
            }
            self.transmit(at, context);
        }
        self.measure(now);
    }

    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let Some(ends) = &self.ends else {
            return Some(self.identity.start);
        };
        let stop = self.stop.unwrap_or(Instant::MAX);
        let due = ends.iter().fold(stop, |due, end| due.min(end.due));
        (due < Instant::MAX).then_some(due)
    }

    pub(crate) fn is_done(&self) -> bool {
        let sender = self.sender();
        self.ends.as_ref().is_some_and(|ends| ends[sender].endpoint.is_finished())
    }

    #[inline]
    pub(crate) const fn is_measured(&self) -> bool {
        self.meter.is_measured()
    }

    pub(crate) fn sample(&mut self, context: &mut Context<'_>) {
        let sender = self.sender();
        let Some(ends) = &self.ends else { return };
        let Some(goodput_mbps) = self.meter.sample(context.now) else { return };
        let endpoint = &ends[sender].endpoint;
        let window = endpoint.window();
        let packets = |bytes: u64| (bytes / u64::from(window.mtu.max(1))) as u32;
        context.tables.sample(SampleRow {
            time_ns: context.now.as_nanos() as i64,
            flow: self.identity.name,
            goodput_mbps,
            delivered_bytes: self.meter.delivered(),
            cwnd_segments: endpoint.is_established().then(|| packets(window.bytes)),
            ssthresh_segments: window.threshold.map(packets),
            srtt_ms: endpoint.srtt().map(Duration::as_millis_f64),
            rtt_ms: self.mean_rtt.take_millis(),
            inflight_segments: endpoint.is_established().then(|| packets(window.in_flight)),
            receive_window_segments: None,
        });
    }

    pub(crate) fn finish(self, context: &mut Context<'_>) -> FlowSummary {
        let sender = self.sender();
        let Self { identity, config, ends, mut meter, rtt, .. } = self;
        write_histogram(&rtt, identity.name, context.tables);
        let sender = ends.as_ref().map(|ends| &ends[sender].endpoint);
        // What a flow wrote until it stopped is known.
        if let Some(sender) = sender.filter(|_| !meter.is_measured() || self.size.is_some()) {
            meter.on_written(sender.written());
        }
        let flow = FlowSummary {
            congestion: Some(config.congestion.name()),
            rtt_ms: Quantiles::of(&rtt),
            segments_sent: sender.map_or(0, |sender| sender.datagrams_sent()),
            packets_sent: sender.map(|sender| sender.datagrams_sent()),
            packets_lost: sender.map(|sender| sender.packets_lost()),
            limited_s: sender.map(|sender| {
                let limited = sender.limited(context.now);
                let windows = [limited.congestion, limited.receive_window, limited.send_window];
                let lived = context.now.saturating_since(identity.start);
                LimitSeconds::without_pacing(lived, windows)
            }),
            ..identity.summary()
        };
        meter.summarise(context.now, flow)
    }
}

impl Wire {
    fn packet(
        &mut self,
        now: Instant,
        identity: &Identity,
        ecn: Ecn,
        reply: bool,
        payload: &[u8],
    ) -> Packet {
        let sequence = self.sent;
        self.sent += 1;
        self.under_way.insert(sequence, payload.into());
        Packet {
            flow: identity.flow,
            size: payload.len() as u32 + HEADER_BYTES,
            ecn,
            tunnel: Tunnel::default(),
            journey: None,
            payload: Payload::Datagram(Datagram { sequence, sent_at: now, reply }),
        }
    }

    /// The datagram of a packet that left the network.
    fn take(&mut self, packet: &Packet) -> Option<Box<[u8]>> {
        let Payload::Datagram(Datagram { sequence, .. }) = packet.payload else { return None };
        self.under_way.remove(&sequence)
    }
}
