//! A TCP flow through a proxy: two connections, from one end to the proxy and from the proxy to the
//! other end (RFC 3135 2.4).

use airpath_base::{Direction, Duration, Instant, Packet, Payload, Site, Stream};
use airpath_network::Hop;
use airpath_record::{Breakdown, Name, ProxyRow, ProxySummary, Quantiles};
use airpath_scenario::ProxyEnds;
use airpath_tcp::{Activity, Endpoint};

use super::context::{Context, Identity};
use super::sender::{RecordedSender, SenderRecorder, limit_seconds, ssthresh, transmit};
use super::spent::RoundTrips;
use super::tcp::TcpFlow;
use crate::goodput::Activities;

/// The flow's own two ends, and the proxy's two ends between them.
pub(crate) struct SplitFlow {
    flow: TcpFlow,
    ends: ProxyEnds,
    /// Name of the proxy's sender in tables.
    name: Name,
    /// The proxy's ends; they exist once a segment has reached the proxy.
    relay: Option<Relay>,
    recorder: SenderRecorder,
    /// Round trips of the proxy's sender; `None` if they are not accounted for, or none has begun.
    round_trips: Option<Box<RoundTrips>>,
}

/// The proxy's ends of one flow.
struct Relay {
    /// Receives what the flow's sender sends.
    inlet: Endpoint,
    /// Sends it on to the flow's receiver.
    outlet: Endpoint,
    /// Payload that was offered to the outlet, and that was read from the inlet.
    offered: u64,
    read: u64,
    /// Whether the stream has ended and the outlet has been told.
    closed: bool,
    most_buffered: u64,
}

impl SplitFlow {
    pub(crate) fn new(flow: TcpFlow, ends: &ProxyEnds, name: Name, seed: u64) -> Self {
        let mut ends = ends.clone();
        let stream = format!("flow.{}.proxy.congestion", flow.identity().id);
        let drawn = Stream::new(seed, &stream).bits();
        ends.endpoint.congestion = ends.endpoint.congestion.with_seed(drawn);
        let recorder = SenderRecorder::new();
        Self { flow, ends, name, relay: None, recorder, round_trips: None }
    }

    /// A packet reached one of the flow's own ends.
    #[inline]
    pub(crate) fn on_packet(
        &mut self,
        direction: Direction,
        packet: &Packet,
        context: &mut Context<'_>,
    ) {
        if direction == self.flow.identity().direction
            && let (Payload::Tcp(segment), Some(journey)) =
                (&packet.payload, context.end_journey(packet))
        {
            self.round_trips.get_or_insert_default().on_arrival(segment, journey);
        }
        self.flow.on_packet(direction, packet, context);
    }

    /// A packet reached the proxy.
    pub(crate) fn on_packet_at_proxy(
        &mut self,
        direction: Direction,
        packet: &Packet,
        context: &mut Context<'_>,
    ) {
        let Payload::Tcp(segment) = &packet.payload else {
            return;
        };
        let with_data = direction == self.flow.identity().direction;
        let now = context.now;
        let relay = self.relay.get_or_insert_with(|| Relay::new(now, &self.ends, with_data));
        if with_data {
            self.flow.on_arrival_at_proxy(packet, context);
            relay.inlet.on_segment(now, segment, packet.ecn);
        } else {
            relay.outlet.on_segment(now, segment, packet.ecn);
            let rtt = relay.outlet.take_rtt_sample();
            if let Some(rtt) = rtt {
                self.recorder.rtt(rtt);
            }
            if let Some(journey) = context.end_journey(packet) {
                self.round_trips.get_or_insert_default().on_ack(segment, &journey, rtt);
            }
        }
        self.go_on(context);
    }

    pub(crate) fn on_wake(&mut self, context: &mut Context<'_>) {
        self.flow.on_wake(context);
        if let Some(relay) = &mut self.relay {
            relay.inlet.on_timer(context.now);
            relay.outlet.on_timer(context.now);
            self.go_on(context);
        }
    }

    /// Copies data from one connection to the other, and sends everything that may be sent.
    fn go_on(&mut self, context: &mut Context<'_>) {
        let Some(relay) = &mut self.relay else {
            return;
        };
        relay.copy(context.now);
        let identity = self.flow.identity();
        let there = Hop::from_proxy(identity.direction);
        let back = Hop::from_proxy(identity.direction.reverse());
        transmit(&mut relay.outlet, identity, there, context);
        transmit(&mut relay.inlet, identity, back, context);
        let recorded = RecordedSender::new(identity, self.name, there, &self.ends.endpoint);
        self.recorder.events(&mut relay.outlet, recorded, context);
        self.note_activity(context.now);
    }

    /// If the flow is accounted for: notes what the proxy's sender does, unless it waits for data.
    fn note_activity(&mut self, now: Instant) {
        if self.round_trips.is_none() {
            return;
        }
        let Some(relay) = &self.relay else { return };
        let activity = match relay.outlet.activity() {
            Activity::Application | Activity::Handshake => self.flow.activity(),
            other => Some(other),
        };
        if let Some(activity) = activity {
            self.flow.note_proxy_activity(now, activity);
        }
    }

    /// Whether the end of its measurement is known.
    pub(super) const fn is_measured(&self) -> bool {
        self.flow.is_measured()
    }

    /// What its senders did; `None` if it is not accounted for.
    pub(super) fn activities(&self) -> Option<Activities> {
        let mut activities = self.flow.activities()?;
        activities.time_outs.extend(&self.recorder.time_outs);
        Some(activities)
    }

    #[inline]
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let relay = self.relay.as_ref();
        let timers = relay.map(|relay| [relay.inlet.next_timer(), relay.outlet.next_timer()]);
        timers.into_iter().flatten().flatten().chain(self.flow.next_wake()).min()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.flow.is_done() && self.relay.as_ref().is_some_and(|relay| relay.outlet.is_finished())
    }

    /// Whether the congestion control of its sender is to decide now; the proxy's never is.
    pub(crate) fn decision_due(&self) -> bool {
        self.flow.decision_due()
    }

    pub(crate) fn decide(&mut self, context: &mut Context<'_>) {
        self.flow.decide(context);
    }

    /// Why the congestion control of its sender, or of the proxy's, cannot go on.
    pub(crate) fn failure(&self) -> Option<&str> {
        let proxy = || self.relay.as_ref().and_then(|relay| relay.outlet.failure());
        self.flow.failure().or_else(proxy)
    }

    pub(crate) fn sample(&mut self, context: &mut Context<'_>) {
        self.flow.sample(context);
        let Some(relay) = &self.relay else {
            return;
        };
        let window = relay.outlet.window();
        context.tables.proxy(ProxyRow {
            time_ns: context.now.as_nanos() as i64,
            flow: self.flow.identity().name,
            received_bytes: relay.inlet.delivered(),
            acked_bytes: relay.outlet.acknowledged(),
            buffered_bytes: relay.buffered(),
            cwnd_segments: window.segments(),
            ssthresh_segments: ssthresh(&window),
            srtt_ms: relay.outlet.srtt().map(Duration::as_millis_f64),
            rtt_ms: self.recorder.take_mean_rtt_ms(),
            inflight_segments: relay.outlet.in_flight(),
        });
    }

    /// Where the time of the flow's sender and of the proxy's sender went.
    pub(super) fn breakdowns(
        &self,
        name: &mut dyn FnMut(Site) -> Option<String>,
    ) -> Vec<Breakdown> {
        let proxy = self.round_trips.as_ref().map(|trips| Breakdown {
            id: format!("{}@proxy", self.flow.identity().id),
            rtt_ms: trips.spent().breakdown(name),
            delay_ms: None,
            goodput_mbps: None,
        });
        self.flow.breakdown(name).into_iter().chain(proxy).collect()
    }

    /// The flow, and the proxy's summary; `None` if no segment reached the proxy.
    pub(crate) fn finish(self, now: Instant) -> (TcpFlow, Option<ProxySummary>) {
        let Self { flow, ends, relay, recorder, .. } = self;
        let Identity { id, direction, .. } = flow.identity();
        let summary = relay.map(|relay| {
            let counters = relay.outlet.counters();
            ProxySummary {
                id: id.clone(),
                proxy: ends.name,
                direction: direction.name(),
                congestion: ends.endpoint.congestion.name(),
                profile: ends.profile,
                bytes_received: relay.inlet.delivered(),
                bytes_acked: relay.outlet.acknowledged(),
                buffered_bytes_max: relay.most_buffered,
                rtt_ms: Quantiles::of(&recorder.rtt),
                segments_sent: counters.segments,
                retransmitted_segments: counters.retransmitted,
                rto_count: counters.timeouts,
                undo_count: counters.undos,
                tail_loss_probes: counters.probes,
                ecn_reductions: counters.ecn_reductions,
                slow_start_exit: recorder.exit,
                limited_s: limit_seconds(&relay.outlet, now),
            }
        });
        (flow, summary)
    }
}

impl Relay {
    /// The flow's first segment is a SYN: the proxy answers it itself, and at the same time opens
    /// the other connection. `with_data`: it came from the end that sends the data.
    fn new(now: Instant, ends: &ProxyEnds, with_data: bool) -> Self {
        let answers = Endpoint::listen(now, &ends.endpoint);
        let opens = Endpoint::connect(now, &ends.endpoint);
        let (inlet, outlet) = if with_data { (answers, opens) } else { (opens, answers) };
        Self { inlet, outlet, offered: 0, read: 0, closed: false, most_buffered: 0 }
    }

    /// Offers the outlet what has arrived, and reads from the inlet as much as the outlet's send
    /// buffer has room for. The rest stays in the receive buffer, so that its window closes:
    /// back-pressure.
    fn copy(&mut self, now: Instant) {
        self.most_buffered = self.most_buffered.max(self.buffered());
        // Nothing can be written before the connection is established.
        if !self.outlet.is_established() {
            return;
        }
        let arrived = self.inlet.delivered();
        if arrived > self.offered {
            self.outlet.offer(arrived - self.offered);
            self.offered = arrived;
        }
        let written = self.outlet.written();
        if written > self.read {
            self.inlet.read(now, written - self.read);
            self.read = written;
        }
        // The end of the stream follows all of its data.
        if self.inlet.is_closed_by_peer() && !self.closed {
            self.outlet.close_when_written();
            self.closed = true;
        }
    }

    /// Payload that the proxy has acknowledged and the flow's receiver has not.
    fn buffered(&self) -> u64 {
        self.inlet.delivered() - self.outlet.acknowledged()
    }
}
