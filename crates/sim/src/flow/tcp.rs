//! A TCP flow: two endpoints, an application that writes for a time or a number of bytes.

use airpath_base::{Duration, Instant, Packet, Payload, Stream};
use airpath_network::{mbps, steady};
use airpath_record::{AckRow, FlowSummary, Quantiles, SampleRow};
use airpath_scenario::TcpConfig;
use airpath_tcp::Endpoint;

use super::notes::{Notes, Subject, limit_seconds, record_histogram, ssthresh, transmit};
use super::{Context, Identity};

/// What the application does.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Writes until `stop`, or until the run ends.
    Bulk { stop: Option<Instant> },
    /// Writes this many bytes.
    File { size: u64 },
}

pub(crate) struct TcpFlow {
    identity: Identity,
    config: TcpConfig,
    work: Work,
    ends: Option<Ends>,
    /// The application has stopped writing.
    stopped: bool,
    /// End of the measurement, and what was delivered and written then.
    measured: Option<Measured>,
    notes: Notes,
    /// Cumulative delivery at each sample: end of the interval, bytes.
    delivery: Vec<(Instant, u64)>,
}

/// The two endpoints of a flow that has started.
struct Ends {
    sender: Endpoint,
    receiver: Endpoint,
    /// Their next timers.
    sender_due: Instant,
    receiver_due: Instant,
}

#[derive(Clone, Copy)]
struct Measured {
    end: Instant,
    delivered: u64,
    written: u64,
}

impl TcpFlow {
    pub(crate) fn bulk(
        identity: Identity,
        tcp: &TcpConfig,
        seed: u64,
        duration: Option<Duration>,
    ) -> Self {
        let stop = duration.map(|duration| identity.start + duration);
        Self::new(identity, tcp, seed, Work::Bulk { stop })
    }

    pub(crate) fn file(identity: Identity, tcp: &TcpConfig, seed: u64, size: u64) -> Self {
        Self::new(identity, tcp, seed, Work::File { size })
    }

    fn new(identity: Identity, tcp: &TcpConfig, seed: u64, work: Work) -> Self {
        let mut config = tcp.clone();
        let mut random = Stream::new(seed, &format!("flow.{}.congestion", identity.id));
        config.sender.congestion = config.sender.congestion.with_seed(random.bits());
        Self {
            identity,
            config,
            work,
            ends: None,
            stopped: false,
            measured: None,
            notes: Notes::new(),
            delivery: Vec::new(),
        }
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    fn start(&mut self, context: &mut Context<'_>) {
        let TcpConfig { sender, receiver, sender_opens, .. } = &self.config;
        let now = context.now;
        let (mut sender, receiver) = if *sender_opens {
            (Endpoint::connect(now, sender), Endpoint::listen(now, receiver))
        } else {
            (Endpoint::listen(now, sender), Endpoint::connect(now, receiver))
        };
        match self.work {
            Work::Bulk { .. } => sender.offer(u64::MAX),
            Work::File { size } => {
                sender.offer(size);
                sender.close_when_written();
            }
        }
        let (sender_due, receiver_due) = (Instant::MAX, Instant::MAX);
        let ends = self.ends.insert(Ends { sender, receiver, sender_due, receiver_due });
        ends.transmit(&self.identity, context);
    }

    #[inline]
    pub(crate) fn on_packet(
        &mut self,
        direction: usize,
        packet: &Packet,
        context: &mut Context<'_>,
    ) {
        let (Payload::Tcp(segment), Some(ends)) = (&packet.payload, &mut self.ends) else {
            return;
        };
        if direction == self.identity.forward {
            ends.receiver.on_segment(context.now, segment, packet.ecn);
            ends.receiver_due =
                transmit(&mut ends.receiver, &self.identity, 1 - direction, context);
            let complete = matches!(self.work, Work::File { size }
                if self.measured.is_none() && ends.receiver.delivered() >= size);
            if complete {
                self.measure(context.now);
            }
            return;
        }
        ends.sender.on_segment(context.now, segment, packet.ecn);
        let rtt = ends.sender.take_rtt_sample();
        if let Some(rtt) = rtt {
            self.notes.rtt(rtt);
        }
        ends.sender_due = transmit(&mut ends.sender, &self.identity, 1 - direction, context);
        if context.ack_table {
            self.record_ack(rtt, context);
        }
        self.record_events(context);
    }

    pub(crate) fn on_wake(&mut self, context: &mut Context<'_>) {
        let now = context.now;
        if self.ends.is_none() {
            if now >= self.identity.start {
                self.start(context);
            }
            return;
        }
        if let Work::Bulk { stop: Some(stop) } = self.work
            && !self.stopped
            && now >= stop
        {
            self.measure(now);
            self.stopped = true;
            self.ends.iter_mut().for_each(|ends| ends.sender.close());
        }
        let Some(ends) = &mut self.ends else {
            return;
        };
        ends.sender.on_timer(now);
        ends.receiver.on_timer(now);
        ends.transmit(&self.identity, context);
        self.record_events(context);
    }

    #[inline]
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let Some(ends) = &self.ends else {
            return Some(self.identity.start);
        };
        let stop = match self.work {
            Work::Bulk { stop } if !self.stopped => stop,
            Work::Bulk { .. } | Work::File { .. } => None,
        };
        let due = ends.sender_due.min(ends.receiver_due).min(stop.unwrap_or(Instant::MAX));
        (due < Instant::MAX).then_some(due)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.ends.as_ref().is_some_and(|ends| ends.sender.is_finished())
    }

    fn measure(&mut self, now: Instant) {
        if let Some(ends) = &self.ends {
            self.measured = Some(Measured {
                end: now,
                delivered: ends.receiver.delivered(),
                written: ends.sender.written(),
            });
        }
    }

    pub(crate) fn sample(&mut self, context: &mut Context<'_>) {
        let Some(ends) = &self.ends else {
            return;
        };
        let (since, before) = self.delivery.last().copied().unwrap_or((self.identity.start, 0));
        let delivered = ends.receiver.delivered();
        let seconds = context.now.saturating_since(since).as_secs_f64();
        let Some(goodput_mbps) = mbps(delivered - before, seconds) else {
            return;
        };
        self.delivery.push((context.now, delivered));
        let window = ends.sender.window();
        context.tables.sample(SampleRow {
            time_ns: context.now.as_nanos() as i64,
            flow: self.identity.name,
            goodput_mbps,
            delivered_bytes: delivered,
            cwnd_segments: Some(window.segments()),
            ssthresh_segments: ssthresh(&window),
            srtt_ms: ends.sender.srtt().map(Duration::as_millis_f64),
            rtt_ms: self.notes.take_mean_rtt_ms(),
            inflight_segments: Some(ends.sender.in_flight()),
            receive_window_segments: Some(ends.sender.peer_window_segments()),
        });
    }

    fn record_ack(&self, rtt: Option<Duration>, context: &mut Context<'_>) {
        let Some(ends) = &self.ends else {
            return;
        };
        let window = ends.sender.window();
        context.tables.ack(AckRow {
            time_ns: context.now.as_nanos() as i64,
            flow: self.identity.name,
            acked_bytes: ends.sender.acknowledged(),
            cwnd_segments: window.segments(),
            ssthresh_segments: ssthresh(&window),
            srtt_ms: ends.sender.srtt().map(Duration::as_millis_f64),
            rtt_ms: rtt.map(Duration::as_millis_f64),
            inflight_segments: ends.sender.in_flight(),
        });
    }

    #[inline]
    fn record_events(&mut self, context: &mut Context<'_>) {
        let Self { identity, config, notes, ends: Some(ends), .. } = self else {
            return;
        };
        let subject = Subject::new(identity, identity.name, identity.forward, &config.sender);
        notes.events(&mut ends.sender, subject, context);
    }

    pub(crate) fn finish(mut self, context: &mut Context<'_>) -> FlowSummary {
        let now = context.now;
        let complete = self.measured.is_some();
        if !complete {
            self.measure(now);
        }
        record_histogram(&self.notes.rtt, self.identity.name, context);
        let started = self.ends.is_some();
        let measured = self.measured.filter(|measured| measured.end > self.identity.start);
        let seconds = measured.map_or(0.0, |measured| {
            measured.end.saturating_since(self.identity.start).as_secs_f64()
        });
        let end = measured.map_or(now, |measured| measured.end);
        let steady = steady(self.identity.start, end, &self.delivery);
        let ends = self.ends.as_ref();
        let counters = ends.map(|ends| ends.sender.counters()).unwrap_or_default();
        let rtt = Quantiles::of(&self.notes.rtt);
        let goodput_mbps = measured.and_then(|measured| mbps(measured.delivered, seconds));
        FlowSummary {
            id: self.identity.id,
            kind: self.identity.kind,
            ue: self.identity.ue,
            direction: self.identity.direction,
            congestion: Some(self.config.sender.congestion.name()),
            profile: Some(self.config.profile),
            start_ns: self.identity.start.as_nanos() as i64,
            end_ns: measured.map(|measured| measured.end.as_nanos() as i64),
            bytes_delivered: ends.map_or(0, |ends| ends.receiver.delivered()),
            goodput_mbps,
            written_mbps: measured.and_then(|measured| mbps(measured.written, seconds)),
            self_inflicted_delay_ms: rtt.as_ref().map(|rtt| rtt.p95 - rtt.min),
            power: goodput_mbps.zip(rtt.as_ref()).map(|(rate, rtt)| rate / (rtt.mean / 1e3)),
            rtt_ms: rtt,
            segments_sent: counters.segments,
            retransmitted_segments: started.then_some(counters.retransmitted),
            rto_count: started.then_some(counters.timeouts),
            undo_count: started.then_some(counters.undos),
            tail_loss_probes: started.then_some(counters.probes),
            ecn_reductions: started.then_some(counters.ecn_reductions),
            steady_mbps: steady.map(|(rate, _)| rate),
            converged_after_s: steady.and_then(|(_, after)| after),
            completed_s: (complete && matches!(self.work, Work::File { .. })).then_some(seconds),
            slow_start_exit: self.notes.exit,
            limited_s: ends.map(|ends| limit_seconds(&ends.sender, now)),
            ..FlowSummary::default()
        }
    }
}

impl Ends {
    /// Sends all that both have to send now.
    fn transmit(&mut self, identity: &Identity, context: &mut Context<'_>) {
        self.sender_due = transmit(&mut self.sender, identity, identity.forward, context);
        self.receiver_due = transmit(&mut self.receiver, identity, 1 - identity.forward, context);
    }
}
