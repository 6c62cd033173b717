//! One end of a connection: the handshake, a sending and a receiving half, and three verbs.

use airpath_base::{Duration, Ecn, Flags, Instant, SackBlocks, Segment, Timestamps};

use crate::event::{Event, EventKind};
use crate::receiver::{CeCounters, MAX_WINDOW_SCALE, Receiver};
use crate::sender::{self, Activity, LimitTimes, Sender, SenderCounters};
use crate::timestamp::timestamp;
use crate::{
    CongestionControl, DelayedAckConfig, EcnConfig, EndpointConfig, HystartSnapshot, Window,
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
/// 2. then takes what is to be sent, until `None`: [`Endpoint::poll_transmit`];
/// 3. then asks when to call [`Endpoint::on_timer`]: [`Endpoint::next_timer`].
///
/// [`Endpoint::poll_event`] tells what happened, at any time.
#[derive(Debug)]
pub struct Endpoint {
    sender: Sender,
    receiver: Receiver,
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
            sender: Sender::new(config),
            receiver: Receiver::new(config),
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
        self.sender = Sender::with(&self.config, algorithm, window);
        self
    }

    /// The application has `bytes` more to send; `u64::MAX` means as much as TCP takes.
    pub fn offer(&mut self, bytes: u64) {
        self.sender.offer(bytes);
    }

    /// The application stops now: what has not entered the send buffer is withdrawn; the rest is
    /// still sent, followed by a FIN.
    pub fn close(&mut self) {
        self.sender.close();
    }

    /// The application stops at the end of its current write, where each write has `bytes` bytes.
    pub fn close_after_write(&mut self, bytes: u64) {
        self.sender.close_after_write(bytes);
    }

    /// Closes the stream after everything offered.
    pub fn close_when_written(&mut self) {
        self.sender.close_when_written();
    }

    /// Treats ECN as negotiated, whatever the handshake said.
    #[doc(hidden)]
    pub fn assume_ecn(&mut self) {
        self.sender.ecn = sender::Ecn::Negotiated;
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
                self.receiver.request_ack();
            }
            return;
        }
        if segment.flags.has(Flags::ACK) {
            if segment.ack > self.sender.next() {
                // RFC 9293 3.10.7.4: it acknowledges data that was not sent.
                self.receiver.request_ack();
                return;
            }
            let window = u64::from(segment.window) << self.peer_scale;
            self.sender.on_ack(now, segment, window);
        }
        if segment.sequence_len() > 0 {
            self.receiver.on_data(now, segment, ecn, &self.sender.rtt);
        } else {
            self.receiver.note_timestamp(now, segment);
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
                self.receiver.on_syn(now, segment);
                if !segment.flags.has(ECN_SETUP) {
                    self.config.ecn = EcnConfig::Off;
                }
                self.syn_pending |= self.answers_repeated(now);
            }
            State::SynSent if syn && ack => {
                self.learn(now, segment);
                self.established(now, segment);
                self.receiver.request_ack();
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
        self.receiver.establish(config);
        self.receiver.on_syn(now, segment);
        // The window of a SYN is never scaled (RFC 7323 2.2).
        self.sender.establish(config, u64::from(segment.window));
    }

    fn established(&mut self, now: Instant, segment: &Segment) {
        self.state = State::Established;
        self.receiver.on_established(now);
        if self.ecn_negotiated() {
            self.sender.ecn = sender::Ecn::Negotiated;
        }
        // An application wakes once everything that arrived together is processed.
        let DelayedAckConfig { handshake_at_once, wake, .. } = self.config.delayed_ack;
        let wakes = handshake_at_once && self.sender.has_work();
        self.handshake_timer = wakes.then_some(now + wake);
        self.sender.account_limit(now, Some(now));
        let timeouts = self.sender.rtt.backoff();
        // RFC 6298 (2.2): the handshake gives the first measurement, unless Karn's rule forbids it.
        if self.syns_sent == 1 {
            self.sender.rtt.sample(now - self.syn_sent_at);
        } else if let Some(rtt) = self.sender.rtt_by_timestamp(now, segment) {
            self.sender.rtt.sample(rtt);
        } else if timeouts > 0 {
            self.sender.rtt.start_after_syn_loss();
        }
        self.sender.rtt.end_back_off();
        self.sender.on_established();
        if timeouts > 1 && !self.first_syn_arrived(segment) {
            self.sender.start_after_syn_loss();
        }
        self.sender.events.push_back(Event { at: now, kind: EventKind::Established });
    }

    /// Whether the peer answers the first SYN, so that the other ones were spurious (RFC 3522 3.2,
    /// RFC 4015 3.1).
    fn first_syn_arrived(&self, segment: &Segment) -> bool {
        self.config.recovery.undo_by_timestamps
            && self.config.timestamps
            && segment.echo() == Some(timestamp(self.first_syn_at))
    }

    /// Whether [`poll_transmit`](Self::poll_transmit) would return `None` because nothing was ever
    /// offered here and no acknowledgement is due.
    #[inline(always)]
    pub fn rests(&self) -> bool {
        self.only_acknowledges() && !self.receiver.wants_ack()
    }

    /// Whether nothing was ever offered here: only acknowledgements can be sent.
    #[inline(always)]
    pub fn only_acknowledges(&self) -> bool {
        self.state == State::Established && self.sender.is_silent()
    }

    /// The next segment to send at `now`; call until it returns `None`.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        let mut segment = Segment::BLANK;
        self.fill_transmit(now, &mut segment).then_some(segment)
    }

    /// Like [`poll_transmit`](Self::poll_transmit), but writes the next segment into `segment`,
    /// which must be blank or filled in here before. Returns false if there is none.
    #[inline(always)]
    pub fn fill_transmit(&mut self, now: Instant, segment: &mut Segment) -> bool {
        if self.state != State::Established {
            let Some(first) = self.poll_handshake(now) else { return false };
            *segment = first;
            return true;
        }
        let piece = if self.handshake_timer.is_some() { None } else { self.sender.poll(now) };
        let (seq, len, flags, retransmission) = match piece {
            Some(piece) => (piece.seq, piece.len, piece.flags(), piece.again),
            None if self.receiver.wants_ack() => (self.sender.next(), 0, Flags::NONE, false),
            None => return false,
        };
        self.fill(now, segment, (seq, len, flags, retransmission));
        true
    }

    /// Like [`fill_transmit`](Self::fill_transmit), for an end that [only
    /// acknowledges](Self::only_acknowledges).
    #[inline(always)]
    pub fn fill_acknowledgement(&mut self, now: Instant, segment: &mut Segment) -> bool {
        debug_assert!(self.only_acknowledges());
        let wanted = self.receiver.wants_ack();
        if wanted {
            self.fill(now, segment, (self.sender.next(), 0, Flags::NONE, false));
        }
        wanted
    }

    /// Writes a segment with this sequence number, length and flags; one sent before is marked as a
    /// retransmission.
    #[inline(always)]
    fn fill(
        &mut self,
        now: Instant,
        segment: &mut Segment,
        (seq, len, flags, retransmission): (u64, u32, Flags, bool),
    ) {
        let ack = self.receiver.acknowledge(now);
        let stamps = Timestamps { value: timestamp(now), echo: Some(ack.ts_ecr) };
        segment.seq = seq;
        segment.ack = ack.ack;
        segment.len = len;
        segment.timestamps = self.config.timestamps.then_some(stamps);
        segment.window = ack.window;
        segment.flags = flags.with(ack.flags);
        segment.window_scale = None;
        segment.sack_permitted = false;
        segment.retransmission = retransmission;
        if self.receiver.has_blocks() {
            segment.sack = self.receiver.take_blocks();
        } else if !segment.sack.is_empty() {
            segment.sack = SackBlocks::NONE;
        }
    }

    /// Like [`fill_transmit`](Self::fill_transmit), if the next segment differs from `segment`,
    /// which was filled in here at `now`, only in its sequence number and flags, and not in size or
    /// codepoint. Returns false if that is not known.
    #[inline(always)]
    pub fn fill_following(&mut self, now: Instant, segment: &mut Segment) -> bool {
        if !segment.sack.is_empty() || self.receiver.has_blocks() {
            return false;
        }
        let Some(flags) = self.receiver.settled_flags() else { return false };
        let Some(piece) = self.sender.poll_run(now) else { return false };
        self.receiver.acks_sent += 1;
        segment.seq = piece.seq;
        segment.flags = piece.flags().with(flags);
        true
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
        self.handshake_timer = Some(self.sender.after_ticks(now, wait));
        let mut segment = self.blank(now);
        segment.flags = Flags::SYN;
        let ecn = self.config.ecn == EcnConfig::Classic;
        if self.state == State::SynReceived {
            self.receiver.fill_syn_ack(&mut segment);
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
        let own = match (self.sender.timer(), self.receiver.timer()) {
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
                self.sender.rtt.back_off();
                self.syn_pending = true;
            }
        }
        if self.sender.timer().is_some_and(|at| at <= now) {
            self.sender.on_timer(now);
        }
        if self.receiver.timer().is_some_and(|at| at <= now) {
            self.receiver.on_timer(now, &self.sender.rtt);
        }
    }

    /// Whether [`poll_event`](Self::poll_event) has something to return.
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.sender.events.is_empty()
    }

    /// The next event that has not been returned yet.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.sender.events.pop_front()
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
        self.receiver.take(now, bytes);
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
        self.sender.is_finished()
    }

    /// Whether the handshake is complete.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Congestion window and slow start threshold, in segments.
    pub fn window(&self) -> Window {
        self.sender.window
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
        self.sender.acknowledged()
    }

    /// Payload bytes that the application has written: acknowledged or in the send buffer.
    pub fn written(&self) -> u64 {
        self.sender.written() - 1
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
        self.sender.take_rtt_sample()
    }

    /// Totals of the sending half.
    pub fn counters(&self) -> SenderCounters {
        self.sender.counters
    }

    /// What the sender is doing.
    pub fn activity(&self) -> Activity {
        self.sender.activity()
    }

    /// How long each limit has limited the sender, until `now`.
    pub fn limit_times(&self, now: Instant) -> LimitTimes {
        self.sender.limit_times(now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::OffloadConfig;

    /// What the peer sends: how far its acknowledgement is behind what was sent, how much data it
    /// carries and how far above the expected byte, flags, and how many microseconds after the
    /// previous segment.
    type Received = (u64, u32, u64, Flags, u64);

    fn received() -> impl Strategy<Value = Received> {
        let behind = prop_oneof![4 => (0u64..8).prop_map(|n| n * 1000), 1 => 0u64..9000];
        let len = prop_oneof![3 => Just(0u32), 1 => 1u32..1000];
        let above = prop_oneof![3 => Just(0u64), 1 => 0u64..3000];
        let flags =
            prop_oneof![6 => Just(Flags::NONE), 1 => Just(Flags::ECE), 1 => Just(Flags::PSH)];
        (behind, len, above, flags, 0u64..20_000)
    }

    /// An end whose connection is open, with either unlimited data to send or none.
    fn opened(config: &EndpointConfig, offers: bool) -> Endpoint {
        let now = Instant::ZERO;
        let mut end = Endpoint::connect(now, config);
        let syn = end.poll_transmit(now).expect("it opens the connection");
        let flags = Flags::SYN.with(Flags::ACK).with(Flags::ECE);
        end.on_segment(now, &Segment { flags, ack: 1, window_scale: None, ..syn }, Ecn::NotEct);
        if offers {
            end.offer(u64::MAX);
        }
        end
    }

    proptest! {
        /// Segments that follow one another are written like any others, and so are
        /// acknowledgements of an end that has no data.
        #[test]
        fn what_follows_is_nothing_special(
            (bursts, dsack, timestamps, ecn) in any::<(bool, bool, bool, bool)>(),
            offers in any::<bool>(),
            all in proptest::collection::vec(received(), 1..80),
        ) {
            let mut config = EndpointConfig { mss: 1000, dsack, timestamps, ..EndpointConfig::default() };
            config.ecn = if ecn { EcnConfig::Classic } else { EcnConfig::Off };
            config.offload = bursts.then_some(OffloadConfig::SMALL);
            let (mut now, mut followed) = (Instant::ZERO, 0u32);
            let mut ways = [true, false].map(|short| (short, opened(&config, offers)));
            // At first nothing prevents a run.
            let all = std::iter::once((0, 0, 0, Flags::NONE, 0)).chain(all);
            for (behind, len, above, flags, pause) in all {
                now += Duration::from_micros(pause);
                let mut told = ways.each_mut().map(|(short, end)| {
                    if end.next_timer().is_some_and(|at| at <= now) {
                        end.on_timer(now);
                    }
                    let ack = end.sender.next() - behind.min(end.sender.next() - 1);
                    let seq = end.delivered() + 1 + above;
                    let value = timestamp(now);
                    let stamps = timestamps.then_some(Timestamps { value, echo: Some(value) });
                    let flags = flags.with(Flags::ACK);
                    let window = 60_000;
                    let told =
                        Segment { seq, ack, len, flags, window, timestamps: stamps, ..Segment::BLANK };
                    end.on_segment(now, &told, Ecn::NotEct);
                    let (mut sent, mut segment) = (Vec::new(), Segment::BLANK);
                    while match *short && end.only_acknowledges() {
                        true => end.fill_acknowledgement(now, &mut segment),
                        false => end.fill_transmit(now, &mut segment),
                    } {
                        let (size, codepoint) = (end.wire_size(&segment), end.ecn_codepoint(&segment));
                        sent.push((segment, size, codepoint));
                        while *short && end.fill_following(now, &mut segment) {
                            sent.push((segment, size, codepoint));
                            followed += 1;
                        }
                    }
                    (sent, end.next_timer(), format!("{end:?}"))
                });
                let [one, other] = &mut told;
                prop_assert_eq!(one, other);
            }
            prop_assert_eq!(followed > 0, offers, "a run was not taken for one");
        }
    }
}
