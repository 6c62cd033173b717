//! A TCP flow: two endpoints, and an application that writes for a time or a number of bytes.

use std::collections::VecDeque;

use airpath_base::{Direction, Duration, Instant, Packet, Payload, Segment, Site, Stream};
use airpath_metrics::{TransferMeter, write_histogram};
use airpath_network::Hop;
use airpath_record::{AckRow, BareAckRow, Breakdown, FlowSummary, Quantiles, SampleRow};
use airpath_scenario::TcpConfig;
use airpath_tcp::{Activity, Endpoint};

use super::context::{Context, Identity};
use super::hand_up::HandUp;
use super::sender::{RecordedSender, SenderRecorder, limit_seconds, ssthresh, transmit};
use super::spent::RoundTrips;
use crate::goodput::Activities;

/// What the application does.
#[derive(Clone, Debug)]
enum Work {
    /// Writes until `stop`, or until the run ends; the write in progress at `stop`, of this many
    /// bytes, is completed.
    Bulk { stop: Option<Instant>, write: Option<u64> },
    /// Writes these numbers of bytes at these times, earliest first.
    File { writes: VecDeque<(Instant, u64)> },
}

impl Work {
    /// When it next has something to do.
    fn due(&self) -> Instant {
        let due = match self {
            Self::Bulk { stop, .. } => *stop,
            Self::File { writes } => writes.front().map(|&(at, _)| at),
        };
        due.unwrap_or(Instant::MAX)
    }
}

pub(crate) struct TcpFlow {
    identity: Identity,
    config: TcpConfig,
    work: Work,
    ends: Option<Ends>,
    /// Whether the application has stopped writing.
    stopped: bool,
    meter: TransferMeter,
    recorder: SenderRecorder,
    /// Delivery at the two hosts, by direction; `None`: everything is delivered at once.
    hand_ups: Option<Box<[HandUp; 2]>>,
    /// Round trips; `None` if they are not accounted for, or none has begun.
    round_trips: Option<Box<RoundTrips>>,
}

/// Writes what is due at `now`; closes after the last write.
fn write_due(writes: &mut VecDeque<(Instant, u64)>, now: Instant, sender: &mut Endpoint) {
    while let Some(&(_, bytes)) = writes.front().filter(|(at, _)| *at <= now) {
        writes.pop_front();
        sender.offer(bytes);
        if writes.is_empty() {
            sender.close_when_written();
        }
    }
}

/// The two endpoints of a flow that has started.
struct Ends {
    sender: Endpoint,
    receiver: Endpoint,
    /// When their timers are next due.
    sender_due: Instant,
    receiver_due: Instant,
    /// [`Work::due`].
    application_due: Instant,
}

impl TcpFlow {
    pub(crate) fn bulk(
        identity: Identity,
        tcp: &TcpConfig,
        seed: u64,
        duration: Option<Duration>,
        write: Option<u64>,
    ) -> Self {
        let stop = duration.map(|duration| identity.start + duration);
        let meter = TransferMeter::bulk(identity.start, duration);
        Self::new(identity, tcp, seed, Work::Bulk { stop, write }, meter)
    }

    /// A flow that sends a file; for `writes` see [`airpath_scenario::Traffic::File`].
    pub(crate) fn file(
        identity: Identity,
        tcp: &TcpConfig,
        seed: u64,
        size: u64,
        writes: &[Duration],
    ) -> Self {
        let meter = TransferMeter::file(identity.start, size);
        let parts = writes.len().max(1) as u64;
        let first = [Duration::ZERO];
        let times = if writes.is_empty() { &first[..] } else { writes };
        let mut left = size;
        let writes = (1..)
            .zip(times)
            .map(|(number, &after)| {
                let bytes = if number == parts { left } else { size / parts };
                left -= bytes;
                (identity.start + after, bytes)
            })
            .collect();
        Self::new(identity, tcp, seed, Work::File { writes }, meter)
    }

    fn new(
        identity: Identity,
        tcp: &TcpConfig,
        seed: u64,
        work: Work,
        meter: TransferMeter,
    ) -> Self {
        let mut config = tcp.clone();
        let mut random = Stream::new(seed, &format!("flow.{}.congestion", identity.id));
        config.sender.congestion = config.sender.congestion.with_seed(random.bits());
        Self {
            identity,
            config,
            work,
            ends: None,
            stopped: false,
            meter,
            recorder: SenderRecorder::new(),
            hand_ups: tcp.hand_up.map(|time| Box::new([(); 2].map(|()| HandUp::new(time)))),
            round_trips: None,
        }
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    fn start(&mut self, context: &mut Context<'_>) {
        if let Some(&known) = context.routes.get(&self.identity.route()) {
            self.config.sender.route.known = known;
        }
        let TcpConfig { sender, receiver, sender_opens, .. } = &self.config;
        let now = context.now;
        let (sender, receiver) = if *sender_opens {
            (Endpoint::connect(now, sender), Endpoint::listen(now, receiver))
        } else {
            (Endpoint::listen(now, sender), Endpoint::connect(now, receiver))
        };
        let (sender_due, receiver_due) = (Instant::MAX, Instant::MAX);
        let application_due = Instant::MAX;
        let ends = Ends { sender, receiver, sender_due, receiver_due, application_due };
        let ends = self.ends.insert(ends);
        match &mut self.work {
            Work::Bulk { .. } => ends.sender.offer(u64::MAX),
            Work::File { writes } => write_due(writes, now, &mut ends.sender),
        }
        ends.application_due = self.work.due();
        ends.transmit(&self.identity, context);
    }

    /// Returns when the flow is due, unless that time was known before.
    #[inline]
    pub(crate) fn on_packet(
        &mut self,
        direction: Direction,
        packet: &Packet,
        context: &mut Context<'_>,
    ) -> Instant {
        if self.hand_ups.is_some() && !self.is_handed_up(direction, packet, context.now) {
            return self.next_wake().unwrap_or(Instant::MAX);
        }
        let due = self.on_handed_up(direction, packet, context);
        match self.hand_ups {
            None => due,
            Some(_) => self.next_wake().unwrap_or(Instant::MAX),
        }
    }

    /// Whether a packet is delivered now and not later, at a host that takes time to deliver.
    #[inline(never)]
    fn is_handed_up(&mut self, direction: Direction, packet: &Packet, now: Instant) -> bool {
        let (Some(hosts), Payload::Tcp(segment)) = (&mut self.hand_ups, &packet.payload) else {
            return true;
        };
        hosts[direction].admits(now, packet, segment)
    }

    /// Processes a delivered packet. Returns the next timer of the end that received it.
    #[inline(always)]
    fn on_handed_up(
        &mut self,
        direction: Direction,
        packet: &Packet,
        context: &mut Context<'_>,
    ) -> Instant {
        let (Payload::Tcp(segment), Some(ends)) = (&packet.payload, &mut self.ends) else {
            return Instant::MAX;
        };
        let back = Hop::from_endpoint(direction.reverse());
        if direction == self.identity.direction {
            if packet.journey.is_some() {
                end_journey_of_data(&mut self.round_trips, packet, segment, context);
            }
            ends.receiver.on_segment(context.now, segment, packet.ecn);
            ends.receiver_due = transmit(&mut ends.receiver, &self.identity, back, context);
            self.meter.on_delivered(context.now, ends.receiver.delivered());
            return ends.receiver_due;
        }
        ends.sender.on_segment(context.now, segment, packet.ecn);
        let rtt = ends.sender.take_rtt_sample();
        if let Some(rtt) = rtt {
            self.recorder.rtt(rtt);
        }
        if packet.journey.is_some()
            && let Some(journey) = context.end_journey(packet)
        {
            self.round_trips.get_or_insert_default().on_ack(segment, &journey, rtt);
        }
        let due = transmit(&mut ends.sender, &self.identity, back, context);
        ends.sender_due = due;
        if context.ack_table {
            self.record_ack(rtt, context);
        }
        self.record_events(context);
        self.note_activity(context.now);
        due
    }

    /// If the flow is accounted for: notes what its sender does.
    #[inline]
    fn note_activity(&mut self, now: Instant) {
        if let (Some(trips), Some(ends)) = (&mut self.round_trips, &self.ends) {
            trips.activities.note(now, ends.sender.activity());
        }
    }

    /// What the flow's sender is doing.
    pub(super) fn activity(&self) -> Option<Activity> {
        Some(self.ends.as_ref()?.sender.activity())
    }

    /// Notes that the proxy's sender does something other than wait for the flow's.
    pub(super) fn note_proxy_activity(&mut self, now: Instant, activity: Activity) {
        if let Some(trips) = &mut self.round_trips {
            trips.activities.note(now, activity);
        }
    }

    /// Whether the end of its measurement is known.
    #[inline]
    pub(crate) const fn is_measured(&self) -> bool {
        self.meter.is_measured()
    }

    /// What its sender did; `None` if it is not accounted for.
    pub(super) fn activities(&self) -> Option<Activities> {
        let mut activities = self.round_trips.as_ref()?.activities.clone();
        activities.time_outs.clone_from(&self.recorder.time_outs);
        Some(activities)
    }

    pub(crate) fn on_wake(&mut self, context: &mut Context<'_>) {
        let now = context.now;
        if self.ends.is_none() {
            if now >= self.identity.start {
                self.start(context);
            }
            return;
        }
        // Arrivals come before timers.
        for direction in Direction::BOTH {
            while let Some(packet) =
                self.hand_ups.as_mut().and_then(|hosts| hosts[direction].take(now))
            {
                self.on_handed_up(direction, &packet, context);
            }
        }
        if let &Work::Bulk { stop: Some(stop), write } = &self.work
            && now >= stop
        {
            self.stopped = true;
            self.work = Work::Bulk { stop: None, write };
            if let Some(ends) = &mut self.ends {
                self.meter.on_written(ends.sender.written());
                match write {
                    None => ends.sender.close(),
                    Some(bytes) => ends.sender.close_after_write(bytes),
                }
            }
            self.meter.on_stop(now);
        }
        let Some(ends) = &mut self.ends else {
            return;
        };
        if let Work::File { writes } = &mut self.work {
            write_due(writes, now, &mut ends.sender);
        }
        ends.application_due = self.work.due();
        ends.sender.on_timer(now);
        ends.receiver.on_timer(now);
        ends.transmit(&self.identity, context);
        self.record_events(context);
        self.note_activity(now);
    }

    #[inline]
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let Some(ends) = &self.ends else {
            return Some(self.identity.start);
        };
        let mut due = ends.sender_due.min(ends.receiver_due).min(ends.application_due);
        if let Some(hosts) = &self.hand_ups {
            due = hosts.iter().filter_map(HandUp::timer).fold(due, Instant::min);
        }
        (due < Instant::MAX).then_some(due)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.ends.as_ref().is_some_and(|ends| ends.sender.is_finished())
    }

    /// Whether its congestion control is to decide now.
    pub(crate) fn decision_due(&self) -> bool {
        self.ends.as_ref().is_some_and(|ends| ends.sender.decision_due())
    }

    /// Lets its congestion control decide, and sends what it then allows.
    pub(crate) fn decide(&mut self, context: &mut Context<'_>) {
        let Some(ends) = &mut self.ends else {
            return;
        };
        ends.sender.decide();
        ends.transmit(&self.identity, context);
        self.record_events(context);
        self.note_activity(context.now);
    }

    /// Why its congestion control cannot go on, if it cannot.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.ends.as_ref().and_then(|ends| ends.sender.failure())
    }

    pub(crate) fn sample(&mut self, context: &mut Context<'_>) {
        let Some(ends) = &self.ends else {
            return;
        };
        let Some(goodput_mbps) = self.meter.sample(context.now) else {
            return;
        };
        let window = ends.sender.window();
        context.tables.sample(SampleRow {
            time_ns: context.now.as_nanos() as i64,
            flow: self.identity.name,
            goodput_mbps,
            delivered_bytes: self.meter.delivered(),
            cwnd_segments: Some(window.segments()),
            ssthresh_segments: ssthresh(&window),
            srtt_ms: ends.sender.srtt().map(Duration::as_millis_f64),
            rtt_ms: self.recorder.take_mean_rtt_ms(),
            inflight_segments: Some(ends.sender.in_flight()),
            receive_window_segments: Some(ends.sender.peer_window_segments()),
        });
    }

    #[inline(never)]
    fn record_ack(&mut self, rtt: Option<Duration>, context: &mut Context<'_>) {
        let Some(ends) = &self.ends else {
            return;
        };
        let window = ends.sender.window();
        let row = BareAckRow {
            time_ns: context.now.as_nanos() as i64,
            flow: self.identity.name,
            acked_bytes: ends.sender.acknowledged(),
            cwnd_segments: window.segments(),
            ssthresh_segments: ssthresh(&window),
            srtt: ends.sender.srtt(),
            rtt,
            inflight_segments: ends.sender.in_flight(),
        };
        let Some(hystart) = self.recorder.hystart(&ends.sender) else {
            context.tables.bare_ack(row);
            return;
        };
        context.tables.ack(AckRow {
            round_min_rtt_ms: hystart.round_min_rtt.map(Duration::as_millis_f64),
            round_rtt_threshold_ms: hystart.threshold.map(Duration::as_millis_f64),
            round_samples: hystart.samples,
            ack_train_ms: hystart.ack_train.map(Duration::as_millis_f64),
            ack_train_limit_ms: hystart.ack_train_limit.map(Duration::as_millis_f64),
            css: hystart.css,
            ..AckRow::from(row)
        });
    }

    #[inline]
    fn record_events(&mut self, context: &mut Context<'_>) {
        let Self { identity, config, recorder, ends: Some(ends), .. } = self else {
            return;
        };
        if !ends.sender.has_events() {
            return;
        }
        let recorded =
            RecordedSender::new(identity, identity.name, identity.forward(), &config.sender);
        recorder.events(&mut ends.sender, recorded, context);
        // The last event is that all is acknowledged.
        if ends.sender.is_finished() && config.sender.route.rule.is_some() {
            let route = config.sender.route;
            let known = context.routes.entry(identity.route()).or_insert(route.known);
            *known = ends.sender.route_metrics(*known);
        }
    }

    /// A segment of the flow's sender arrived at the proxy, where it ends.
    pub(super) fn on_arrival_at_proxy(&mut self, packet: &Packet, context: &mut Context<'_>) {
        if let Payload::Tcp(segment) = &packet.payload {
            end_journey_of_data(&mut self.round_trips, packet, segment, context);
        }
    }

    /// Where the flow's time went.
    pub(super) fn breakdown(
        &self,
        name: &mut dyn FnMut(Site) -> Option<String>,
    ) -> Option<Breakdown> {
        let rtt_ms = self.round_trips.as_ref()?.spent().breakdown(name);
        Some(Breakdown { id: self.identity.id.clone(), rtt_ms, delay_ms: None, goodput_mbps: None })
    }

    pub(crate) fn finish(self, context: &mut Context<'_>) -> FlowSummary {
        let Self { identity, config, ends, stopped, mut meter, recorder, .. } = self;
        let now = context.now;
        write_histogram(&recorder.rtt, identity.name, context.tables);
        if let Some(ends) = ends.as_ref().filter(|_| !stopped) {
            meter.on_written(ends.sender.written());
        }
        let started = ends.is_some();
        let counters = ends.as_ref().map(|ends| ends.sender.counters()).unwrap_or_default();
        let flow = FlowSummary {
            congestion: Some(config.sender.congestion.name()),
            profile: Some(config.profile),
            rtt_ms: Quantiles::of(&recorder.rtt),
            segments_sent: counters.segments,
            retransmitted_segments: started.then_some(counters.retransmitted),
            rto_count: started.then_some(counters.timeouts),
            undo_count: started.then_some(counters.undos),
            tail_loss_probes: started.then_some(counters.probes),
            ecn_reductions: started.then_some(counters.ecn_reductions),
            slow_start_exit: recorder.exit,
            limited_s: ends.map(|ends| limit_seconds(&ends.sender, now)),
            ..identity.summary()
        };
        meter.summarise(now, flow)
    }
}

/// Keeps where a data segment spent its time until its acknowledgement arrives.
#[cold]
fn end_journey_of_data(
    round_trips: &mut Option<Box<RoundTrips>>,
    packet: &Packet,
    segment: &Segment,
    context: &mut Context<'_>,
) {
    if let Some(journey) = context.end_journey(packet) {
        round_trips.get_or_insert_default().on_arrival(segment, journey);
    }
}

impl Ends {
    /// Sends everything that both ends may send now.
    fn transmit(&mut self, identity: &Identity, context: &mut Context<'_>) {
        self.sender_due = transmit(&mut self.sender, identity, identity.forward(), context);
        self.receiver_due = transmit(&mut self.receiver, identity, identity.back(), context);
    }
}
