//! One end of a connection: the handshake, a sending and a receiving half, and three verbs.

mod fast_path;

use airpath_base::{
    Duration, Ecn, Flags, FlowId, Instant, Memo, Packet, Payload, SackBlocks, Segment, Timestamps,
    Tunnel,
};

use crate::event::{Event, EventKind};
use crate::receiver::{CeCounters, MAX_WINDOW_SCALE, Receiver, Repeated};
use crate::sender::{self, Activity, Ahead, LimitTimes, Sender, SenderCounters};
use crate::timestamp::timestamp;
use crate::{
    CongestionControl, DelayedAckConfig, EcnConfig, EndpointConfig, HystartSnapshot, RouteMetrics,
    Window,
};

/// Options of a SYN: MSS, SACK permitted, timestamps, window scale (RFC 9293, 2018, 7323).
const SYN_OPTIONS: u32 = 20;
/// IPv4 and TCP headers without options.
const BASE_HEADER: u32 = 40;

/// Flags of a SYN that requests ECN (RFC 3168 6.1.1).
const ECN_SETUP: Flags = Flags::ECE.with(Flags::CWR);

/// One end of a TCP connection, without sockets or clock.
///
/// A driver
/// 1. hands in what arrives: [`Endpoint::on_segment`], [`Endpoint::on_timer`], [`Endpoint::offer`];
/// 2. then sends what is to be sent: [`Endpoint::transmit`];
/// 3. then asks when to call [`Endpoint::on_timer`]: [`Endpoint::next_timer`].
///
/// [`Endpoint::poll_event`] tells what happened, at any time.
#[derive(Debug)]
pub struct Endpoint {
    sender: Memo<Sender, Ahead>,
    receiver: Memo<Receiver, Repeated>,
    state: State,
    /// The configuration, without options that the peer refused.
    config: EndpointConfig,
    /// Shift of the peer's window field.
    peer_scale: u8,
    /// The SYN's retransmission timer; after the handshake, the time at which the application wakes
    /// to write.
    handshake_timer: Option<Instant>,
    syn_sent_at: Instant,
    first_syn_at: Instant,
    syns_sent: u32,
    syn_pending: bool,
    /// When a repeated SYN or SYN+ACK was last answered.
    repeated_at: Option<Instant>,
    /// A SYN without ECN was sent: our data is not ECN-capable (RFC 3168 6.1.1).
    plain_syn: bool,
}

/// The states of RFC 9293 3.3.2 that a simulation of data transfer needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Listen,
    SynSent,
    SynReceived,
    Established,
}

impl Endpoint {
    /// An end that opens the connection: its first segment is a SYN.
    pub fn connect(now: Instant, config: &EndpointConfig) -> Self {
        Self { state: State::SynSent, syn_pending: true, ..Self::listen(now, config) }
    }

    /// An end that waits for a SYN.
    pub fn listen(now: Instant, config: &EndpointConfig) -> Self {
        Self {
            sender: Memo::new(Sender::new(config)),
            receiver: Memo::new(Receiver::new(config)),
            state: State::Listen,
            config: config.clone(),
            peer_scale: 0,
            handshake_timer: None,
            syn_sent_at: now,
            first_syn_at: now,
            syns_sent: 0,
            syn_pending: false,
            repeated_at: None,
            plain_syn: false,
        }
    }

    /// Replaces the configured congestion control with the caller's. Must be called before anything
    /// else. cwnd begins at the initial window, without an ssthresh.
    #[must_use]
    pub fn with_congestion_control(mut self, algorithm: Box<dyn CongestionControl>) -> Self {
        let window = Window::initial(self.config.initial_window);
        self.sender = Memo::new(Sender::with(&self.config, algorithm, window));
        self
    }

    /// The application has `bytes` more to send; `u64::MAX` means as much as TCP takes.
    pub fn offer(&mut self, bytes: u64) {
        self.sender.touch().offer(bytes);
    }

    /// The application stops now: what has not entered the send buffer is withdrawn; the rest is
    /// still sent, followed by a FIN.
    pub fn close(&mut self) {
        self.sender.touch().stream.close();
    }

    /// The application stops at the end of its current write, where each write has `bytes` bytes.
    pub fn close_after_write(&mut self, bytes: u64) {
        self.sender.touch().stream.close_after_write(bytes);
    }

    /// Closes the stream after everything offered.
    pub fn close_when_written(&mut self) {
        self.sender.touch().stream.close_when_written();
    }

    /// Treats ECN as negotiated, whatever the handshake said.
    #[doc(hidden)]
    pub fn assume_ecn(&mut self) {
        self.sender.touch().ecn = sender::Ecn::Negotiated;
    }

    /// A segment arrived in a packet with this ECN codepoint.
    #[inline(always)]
    pub fn on_segment(&mut self, now: Instant, segment: &Segment, ecn: Ecn) {
        let opens = self.state != State::Established;
        if opens {
            self.on_handshake(now, segment);
        }
        if self.state != State::Established {
            return;
        }
        if segment.flags.has(Flags::SYN) {
            // A repeated SYN+ACK: our ACK of it was lost.
            if !opens && self.answers_repeated(now) {
                self.receiver.touch().request_ack();
            }
            return;
        }
        if segment.flags.has(Flags::ACK) {
            if segment.ack > self.sender.stream.nxt() {
                // RFC 9293 3.10.7.4: it acknowledges data that was not sent.
                self.receiver.touch().request_ack();
                return;
            }
            let window = u64::from(segment.window) << self.peer_scale;
            fast_path::on_ack(&mut self.sender, now, segment, window);
        }
        if segment.sequence_len() > 0 {
            self.receiver.touch().on_data(now, segment, ecn, &self.sender.rtt);
        } else {
            self.receiver.aside().note_timestamp(now, segment);
        }
    }

    #[cold]
    fn on_handshake(&mut self, now: Instant, segment: &Segment) {
        let syn = segment.flags.has(Flags::SYN);
        let ack = segment.flags.has(Flags::ACK);
        match self.state {
            State::Listen if syn && !ack => {
                self.learn(now, segment);
                self.state = State::SynReceived;
                self.syn_pending = true;
            }
            State::SynReceived if syn && !ack => {
                self.receiver.touch().on_syn(now, segment);
                if !segment.flags.has(ECN_SETUP) {
                    self.config.ecn = EcnConfig::Off;
                }
                self.syn_pending |= self.answers_repeated(now);
            }
            State::SynSent if syn && ack => {
                self.learn(now, segment);
                self.established(now, segment);
                self.receiver.touch().request_ack();
            }
            State::SynReceived if ack && segment.ack >= 1 => self.established(now, segment),
            _ => {}
        }
    }

    /// Whether a repeated SYN or SYN+ACK is answered now: answers are rate-limited.
    #[cold]
    fn answers_repeated(&mut self, now: Instant) -> bool {
        let limit = self.config.delayed_ack.repeat_limit;
        let over = self.repeated_at.is_none_or(|last| now.saturating_since(last) >= limit);
        if over {
            self.repeated_at = Some(now);
        }
        over
    }

    /// Adopts what the peer's SYN offers.
    fn learn(&mut self, now: Instant, segment: &Segment) {
        let config = &mut self.config;
        config.window_scaling &= segment.window_scale.is_some();
        config.timestamps &= segment.timestamps.is_some();
        config.sack &= segment.sack_permitted;
        // RFC 3168 6.1.1: a SYN has both flags, a SYN+ACK only the first.
        let asks = match segment.flags.has(Flags::ACK) {
            true => segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::CWR),
            false => segment.flags.has(ECN_SETUP),
        };
        if !asks {
            config.ecn = EcnConfig::Off;
        }
        if let Some(scale) = segment.window_scale.filter(|_| config.window_scaling) {
            // RFC 7323 2.3
            self.peer_scale = scale.min(MAX_WINDOW_SCALE);
        }
        self.receiver.touch().establish(config);
        self.receiver.touch().on_syn(now, segment);
        // The window of a SYN is never scaled (RFC 7323 2.2).
        self.sender.touch().establish(config, u64::from(segment.window));
    }

    fn established(&mut self, now: Instant, segment: &Segment) {
        self.state = State::Established;
        self.receiver.touch().on_established(now);
        if self.ecn_negotiated() {
            self.sender.touch().ecn = sender::Ecn::Negotiated;
        }
        // An application wakes once everything that arrived together is processed.
        let DelayedAckConfig { handshake_at_once, wake, .. } = self.config.delayed_ack;
        let wakes = handshake_at_once && self.sender.stream.has_work();
        self.handshake_timer = wakes.then_some(now + wake);
        let first_syn_arrived = self.first_syn_arrived(segment);
        let sender = self.sender.touch();
        sender.limits.count(now, Some(now));
        let timeouts = sender.rtt.backoff();
        // RFC 6298 (2.2): the handshake gives the first measurement, unless Karn's rule forbids it.
        if self.syns_sent == 1 {
            sender.rtt.sample(now - self.syn_sent_at);
        } else if let Some(rtt) = sender.rtt_by_timestamp(now, segment) {
            sender.rtt.sample(rtt);
        } else if timeouts > 0 {
            sender.rtt.start_after_syn_loss();
        }
        sender.rtt.end_back_off();
        sender.rtt.end_handshake();
        sender.on_established();
        if timeouts > 1 && !first_syn_arrived {
            sender.congestion.start_after_syn_loss();
        }
        sender.telemetry.record(now, EventKind::Established);
        sender.skip_slow_start(now);
    }

    /// Whether the peer answers the first SYN, so that the other ones were spurious (RFC 3522 3.2,
    /// RFC 4015 3.1).
    fn first_syn_arrived(&self, segment: &Segment) -> bool {
        self.config.recovery.undo_by_timestamps
            && self.config.timestamps
            && segment.echo() == Some(timestamp(self.first_syn_at))
    }

    /// Sends all that may be sent at `now`, as packets of this flow. `emit` takes each of them: a segment with its
    /// size on the wire in bytes, headers and options included, and its ECN codepoint.
    #[inline(always)]
    pub fn transmit(&mut self, now: Instant, flow: FlowId, emit: impl FnMut(&Packet)) {
        if !self.only_acknowledges() {
            self.transmit_all(now, flow, emit);
        } else if self.receiver.wants_ack() {
            self.transmit_ack(now, flow, emit);
        }
    }

    fn transmit_all(&mut self, now: Instant, flow: FlowId, mut emit: impl FnMut(&Packet)) {
        let mut packet = blank(flow);
        // Segments are written in their packet: a copy of what was just written stalls the processor.
        while let Payload::Tcp(segment) = &mut packet.payload
            && self.write_next(now, segment)
        {
            packet.size = self.wire_size(segment);
            packet.ecn = self.ecn_codepoint(segment);
            emit(&packet);
            while let Payload::Tcp(segment) = &mut packet.payload
                && self.write_following(now, segment)
            {
                emit(&packet);
            }
        }
    }

    /// Writes the next segment into `segment`, which is blank or the one before it. False: there is none.
    #[inline(always)]
    fn write_next(&mut self, now: Instant, segment: &mut Segment) -> bool {
        if self.state != State::Established {
            let Some(first) = self.poll_handshake(now) else { return false };
            *segment = first;
            return true;
        }
        let piece = match self.handshake_timer {
            Some(_) => None,
            None => fast_path::poll(&mut self.sender, now),
        };
        let (seq, len, flags, retransmission) = match piece {
            Some(piece) => (piece.seq, piece.len, piece.flags(), piece.again),
            None if self.receiver.wants_ack() => (self.sender.stream.nxt(), 0, Flags::NONE, false),
            None => return false,
        };
        self.write(now, segment, (seq, len, flags, retransmission));
        true
    }

    /// Writes a segment with this place in the stream, length and flags, and whether it is a retransmission.
    #[inline(always)]
    fn write(
        &mut self,
        now: Instant,
        segment: &mut Segment,
        (seq, len, flags, retransmission): (u64, u32, Flags, bool),
    ) {
        let told = fast_path::acknowledge(&mut self.receiver, now);
        let stamps = Timestamps { value: timestamp(now), echo: Some(self.receiver.echo()) };
        segment.seq = seq;
        segment.ack = self.receiver.next();
        segment.len = len;
        segment.timestamps = self.config.timestamps.then_some(stamps);
        segment.window = told.window;
        segment.flags = flags.with(told.flags);
        segment.window_scale = None;
        segment.sack_permitted = false;
        segment.retransmission = retransmission;
        if self.receiver.has_blocks() {
            segment.sack = self.receiver.aside().take_blocks();
        } else if !segment.sack.is_empty() {
            segment.sack = SackBlocks::NONE;
        }
    }

    #[cold]
    fn poll_handshake(&mut self, now: Instant) -> Option<Segment> {
        if !std::mem::take(&mut self.syn_pending) {
            return None;
        }
        self.syn_sent_at = now;
        if self.syns_sent == 0 {
            self.first_syn_at = now;
        }
        self.syns_sent += 1;
        // ip-sysctl, tcp_syn_linear_timeouts
        let linear = match self.state {
            State::SynSent => self.config.syn_linear_timeouts,
            _ => 0,
        };
        let wait = self.sender.rtt.rto_doubled_after(linear);
        self.handshake_timer = Some(self.sender.timers.after(now, wait));
        let mut segment = self.blank(now);
        segment.flags = Flags::SYN;
        let ecn = self.config.ecn == EcnConfig::Classic;
        if self.state == State::SynReceived {
            self.receiver.touch().fill_syn_ack(&mut segment);
            if ecn {
                segment.flags = segment.flags.with(Flags::ECE);
            }
        } else if ecn && self.syns_sent == 1 {
            segment.flags = segment.flags.with(ECN_SETUP);
        } else {
            // RFC 3168 6.1.1.1: the path may drop SYNs that request ECN.
            self.plain_syn = true;
        }
        segment.sack_permitted = self.config.sack;
        segment.window = self.receiver.syn_window();
        segment.window_scale = self.config.window_scaling.then(|| self.receiver.scale());
        Some(segment)
    }

    fn blank(&self, now: Instant) -> Segment {
        let stamps = Timestamps { value: timestamp(now), echo: None };
        Segment { timestamps: self.config.timestamps.then_some(stamps), ..Segment::BLANK }
    }

    /// When to call [`Endpoint::on_timer`] next; every other call may change it.
    #[inline(always)]
    pub fn next_timer(&self) -> Option<Instant> {
        let own = match (
            fast_path::sender_timer(&self.sender),
            fast_path::receiver_timer(&self.receiver),
        ) {
            (Some(first), Some(second)) => Some(first.min(second)),
            (first, second) => first.or(second),
        };
        match self.handshake_timer {
            None => own,
            Some(at) => Some(own.map_or(at, |other| other.min(at))),
        }
    }

    /// Advances time to `now` and does what is due.
    pub fn on_timer(&mut self, now: Instant) {
        if self.handshake_timer.is_some_and(|at| at <= now) {
            self.handshake_timer = None;
            if self.state != State::Established {
                self.sender.touch().rtt.back_off();
                self.syn_pending = true;
            }
        }
        if fast_path::sender_timer(&self.sender).is_some_and(|at| at <= now) {
            self.sender.touch().on_timer(now);
        }
        if fast_path::receiver_timer(&self.receiver).is_some_and(|at| at <= now) {
            self.receiver.touch().on_timer(now, &self.sender.rtt);
        }
    }

    /// Whether [`poll_event`](Self::poll_event) has something to return.
    #[inline]
    pub fn has_events(&self) -> bool {
        self.sender.telemetry.has_events()
    }

    /// The next event that has not been returned yet.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.sender.aside().telemetry.poll_event()
    }

    /// Size on the wire in bytes of a segment from this end, headers and options included.
    #[inline]
    pub fn wire_size(&self, segment: &Segment) -> u32 {
        let sack = match segment.sack.len() {
            0 => 0,
            blocks => 4 + 8 * blocks as u32, // two NOPs, kind, length (RFC 2018 3)
        };
        if segment.flags.has(Flags::SYN) {
            return BASE_HEADER + SYN_OPTIONS;
        }
        self.config.header + segment.len + sack
    }

    /// The application reads up to `bytes` of what arrived in order; with
    /// [`ReaderConfig::Driver`](crate::ReaderConfig::Driver) this is the only way to read.
    pub fn read(&mut self, now: Instant, bytes: u64) {
        self.receiver.touch().take(now, bytes);
    }

    /// Payload bytes that arrived in order and have not been read.
    pub fn unread(&self) -> u64 {
        self.receiver.unread()
    }

    /// Whether both ends agreed on ECN: new data may be marked, and ECE signals congestion.
    #[inline]
    pub fn ecn_negotiated(&self) -> bool {
        self.config.ecn == EcnConfig::Classic && !self.plain_syn && self.is_established()
    }

    /// The ECN codepoint for a packet with this segment from this end: ECT(0) for new data only
    /// (RFC 3168 6.1.1, 6.1.4, 6.1.5).
    #[inline]
    pub fn ecn_codepoint(&self, segment: &Segment) -> Ecn {
        let new = segment.len > 0 && !segment.retransmission;
        if new && self.ecn_negotiated() { Ecn::Ect0 } else { Ecn::NotEct }
    }

    /// Counters of packets that arrived with the CE mark.
    pub fn ce_counters(&self) -> CeCounters {
        self.receiver.ce_counters()
    }

    /// Payload bytes that arrived in order.
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered()
    }

    /// Pure and piggybacked acknowledgements sent.
    pub fn acks_sent(&self) -> u64 {
        self.receiver.acks_sent
    }

    /// Whether the peer's stream has ended and all of it has arrived.
    pub fn is_closed_by_peer(&self) -> bool {
        self.receiver.is_closed()
    }

    /// Whether all data and the FIN of this end's stream are acknowledged.
    pub fn is_finished(&self) -> bool {
        self.sender.stream.is_finished()
    }

    /// Whether the handshake is complete.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Congestion window and slow start threshold, in segments.
    pub fn window(&self) -> Window {
        self.sender.congestion.window()
    }

    /// What the host knows about the destination once this connection has ended, if it knew
    /// `known` before.
    pub fn route_metrics(&self, known: RouteMetrics) -> RouteMetrics {
        self.config.route.keep(known, &self.sender.ended(self.config.send_buffer))
    }

    /// Whether the congestion control is to decide now ([`Self::decide`]).
    pub fn decision_due(&self) -> bool {
        self.sender.decision_due()
    }

    /// Lets the congestion control decide; what it then allows is sent by [`Self::transmit`].
    pub fn decide(&mut self) {
        self.sender.touch().decide();
    }

    /// Why the congestion control cannot go on, if it cannot.
    pub fn failure(&self) -> Option<&str> {
        self.sender.failure()
    }

    /// Segments in flight (RFC 6675's pipe).
    pub fn in_flight(&self) -> u32 {
        self.sender.in_flight()
    }

    /// The receive window that the peer last advertised, in whole segments.
    pub fn peer_window_segments(&self) -> u32 {
        self.sender.peer_window_segments()
    }

    /// Payload bytes acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sender.stream.acknowledged()
    }

    /// Payload bytes that the application has written: acknowledged or in the send buffer.
    pub fn written(&self) -> u64 {
        self.sender.stream.written() - 1
    }

    /// Smoothed RTT.
    pub fn srtt(&self) -> Option<Duration> {
        self.sender.rtt.srtt()
    }

    /// The state of HyStart or HyStart++ that the next acknowledgement meets, for tables. `None`:
    /// there is no such algorithm, or no RTT yet.
    pub fn hystart(&self) -> Option<HystartSnapshot> {
        self.sender.hystart()
    }

    /// RTT sample of the last acknowledgement; each sample is returned once, then `None`.
    #[inline]
    pub fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.sender.aside().telemetry.take_rtt_sample()
    }

    /// Totals of the sending half.
    pub fn counters(&self) -> SenderCounters {
        self.sender.telemetry.counters()
    }

    /// What the sender is doing.
    pub fn activity(&self) -> Activity {
        self.sender.activity()
    }

    /// How long each limit has limited the sender, until `now`.
    pub fn limit_times(&self, now: Instant) -> LimitTimes {
        self.sender.limits.times(now)
    }
}

/// A packet of this flow with a blank segment.
#[inline(always)]
fn blank(flow: FlowId) -> Packet {
    Packet {
        flow,
        size: 0,
        ecn: Ecn::NotEct,
        tunnel: Tunnel::default(),
        journey: None,
        payload: Payload::Tcp(Segment::BLANK),
    }
}
