//! One direction of a connection: its segments, and the acknowledgements that come back.

use airpath_base::{Duration, Instant};
use airpath_metrics::{SequenceSpace, mbps};

use super::acks::AckSpacing;
use super::bursts::Bursts;
use super::counters::{Data, Flight, Late, Probes, Unseen};
use super::holes::{Hole, Holes};
use super::limits::{Limit, Limits};
use super::retransmission::{Circumstances, DUPLICATE_ACKS, Recovery};
use super::round_trips::RoundTrips;
use super::rounds::Rounds;
use super::window::Window;
use crate::decode::{FIN, SYN, TcpHeader};
use crate::report::{Distribution, StreamReport, SynOptions};

/// Default MSS without the option (RFC 9293 3.7.1).
const DEFAULT_MSS: u64 = 536;

/// The MSS assumed if the handshake was not captured: Ethernet's 1500 bytes less the headers of
/// IPv4 and TCP.
const ETHERNET_MSS: u16 = 1460;

/// If no round-trip time is known, a segment that arrives this long after the one that overtook it
/// was lost and retransmitted.
const REORDERING: Duration = Duration::from_millis(3);

/// What a stream needs to know besides the segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) now: Instant,
    /// Smallest and smoothed round-trip time of the other direction: the sender's side of the
    /// capture point.
    pub(super) other_rtt: Option<(Duration, Duration)>,
    /// Most segments that wait for an acknowledgement.
    pub(super) most_outstanding: usize,
}

#[derive(Clone, Default, Debug)]
pub(super) struct Stream {
    space: SequenceSpace,
    /// The first byte, as soon as anything of the stream was seen.
    first: Option<u64>,
    /// The byte after the last one that was sent.
    highest: u64,
    /// The byte after the last one that was acknowledged, or the first one that could be.
    acked: u64,
    has_acks: bool,
    /// The byte after the FIN.
    end: Option<u64>,
    /// The byte after the last one that was selectively acknowledged.
    sacked: u64,
    holes: Holes,
    recovery: Recovery,
    round_trips: RoundTrips,
    rounds: Rounds,
    acks: AckSpacing,
    bursts: Bursts,
    limits: Limits,
    window: Window,
    options: Option<SynOptions>,
    /// The MSS of the other end: the largest segment in this direction.
    mss: Option<u16>,
    data: Data,
    flight: Flight,
    late: Late,
    probes: Probes,
    unseen: Unseen,
    last: Last,
    /// Duplicate acknowledgements since the last one of new data.
    duplicates: u32,
    duplicate_acks: u64,
}

/// The last segment, and the last acknowledgements.
#[derive(Clone, Default, Debug)]
struct Last {
    sent: Instant,
    acked: Instant,
    /// When new data was acknowledged.
    progress: Option<Instant>,
    /// The window field.
    window: u16,
}

impl Stream {
    /// Whether data is outstanding.
    pub(super) fn is_outstanding(&self) -> bool {
        self.highest > self.acked
    }

    /// Smallest and smoothed round-trip time to the receiver.
    pub(super) fn rtt(&self) -> Option<(Duration, Duration)> {
        self.round_trips.known()
    }

    pub(super) fn retransmitted(&self) -> u64 {
        self.recovery.counts().packets
    }

    /// Segments that the receiver reports to have got twice (RFC 2883).
    pub(super) fn duplicates(&self) -> u64 {
        self.recovery.counts().spurious_by_dsack
    }

    pub(super) fn unseen(&self) -> (u64, u64) {
        (self.unseen.acks, self.unseen.bytes)
    }

    /// Takes the segment size and the window scale of this direction from the other end's SYN.
    pub(super) fn set_receiver(&mut self, options: &SynOptions, scale: Option<u8>) {
        self.mss = options.mss.or((!options.cut).then_some(DEFAULT_MSS as u16));
        if let Some(scale) = scale {
            self.window.set_scale(scale);
        }
    }

    pub(super) fn set_options(&mut self, options: SynOptions) {
        self.options = Some(options);
    }

    pub(super) fn options(&self) -> Option<SynOptions> {
        self.options
    }

    /// A segment of this direction.
    #[inline]
    pub(super) fn on_segment(&mut self, context: &Context, header: &TcpHeader) {
        let length = header.sequence_length();
        let from = self.space.offset(header.sequence);
        if self.first.is_none() {
            (self.first, self.highest) = (Some(from), from);
            if !self.has_acks {
                self.acked = from;
            }
        }
        if length == 0 {
            if from > self.highest {
                self.on_gap(context.now, from);
            } else if self.is_keep_alive(header, from) {
                self.note_keep_alive();
            }
            return;
        }
        let to = from + length;
        if self.is_window_probe(header, from) {
            self.probes.of_windows += 1;
            self.probes.end = to;
            return;
        }
        if self.is_keep_alive(header, from) {
            self.note_keep_alive();
            return;
        }
        if from > self.highest && from == self.probes.end {
            // The receiver took the byte of a probe.
            self.highest = from;
        }
        if header.has(FIN) {
            self.end = Some(to);
        }
        if header.payload > 0 {
            self.count_payload(context.now, header.payload);
        }
        if self.data.packets == 1 && self.options.is_none() {
            // What precedes the first data of a capture was sent before the capture began.
            self.highest = self.highest.max(from);
        }
        if from >= self.highest {
            self.on_new(context.now, header, from, to);
        } else {
            self.on_old(context, header, from, to);
        }
        self.last.sent = context.now;
        self.round_trips.trim(context.most_outstanding);
        self.note_limit(context.now);
    }

    /// Notes what limits the sender from now on.
    #[inline]
    fn note_limit(&mut self, now: Instant) {
        let segment = u64::from(self.mss.unwrap_or(ETHERNET_MSS));
        let needed = match self.end {
            _ if self.highest > self.acked => segment,
            Some(_) => 0,
            None => self.window.least(segment),
        };
        let is_full = self.window.note(now, self.highest, needed);
        if is_full {
            self.rounds.on_window_limited();
        }
        if self.data.first.is_some() {
            // The FIN is not data that the sender could still send.
            let data_end = self.end.map_or(self.highest, |end| self.highest.min(end - 1));
            let recovers_until = self.recovery.until();
            let is_closed = (is_full || self.window.is_closed()) && self.end.is_none();
            let limit = Limit::of(data_end, self.acked, recovers_until, !is_full, is_closed);
            self.limits.note(now, limit);
        }
    }

    #[inline]
    fn count_payload(&mut self, now: Instant, payload: u32) {
        if self.data.first.is_none() && self.options.is_none() {
            // What was acknowledged until now was in flight when the capture began.
            self.unseen = Unseen::default();
            self.holes = Holes::default();
        }
        self.data.add(now, payload, self.mss);
    }

    /// Whether this is a keep-alive: one byte, or none, before the expected one (RFC 9293 3.8.4).
    fn is_keep_alive(&self, header: &TcpHeader, from: u64) -> bool {
        header.payload <= 1
            && header.flags & (SYN | FIN) == 0
            && from + 1 == self.highest
            && self.acked == self.highest
    }

    #[cold]
    fn note_keep_alive(&mut self) {
        // Behind a closed window it is a probe of Linux, and not an idle connection's.
        if self.window.is_closed() {
            self.probes.of_windows += 1;
        } else {
            self.probes.keep_alives += 1;
            self.probes.unanswered += 1;
        }
    }

    /// Whether this is a byte that probes a closed window (RFC 9293 3.8.6.1): the receiver does not
    /// take it, and it is sent again until the window opens.
    fn is_window_probe(&self, header: &TcpHeader, from: u64) -> bool {
        header.payload == 1
            && header.flags & (SYN | FIN) == 0
            && self.window.is_closed()
            && from == self.acked
            && self.acked == self.highest
    }

    #[inline]
    fn on_new(&mut self, now: Instant, header: &TcpHeader, from: u64, to: u64) {
        if from > self.highest {
            self.on_gap(now, from);
        }
        if header.payload > 0 {
            let segments = self.segments(header.payload);
            self.bursts.add(now, segments, self.last.acked, self.highest > self.acked);
        }
        if self.acked >= self.highest && self.window.exceeds(to) {
            // All that it had fits the window, so it had nothing before.
            self.limits.had_nothing();
            self.window.did_not_limit();
        }
        self.highest = to;
        if to > self.acked {
            self.round_trips.push(now, (from, to), stamp_of(header));
        }
        if header.payload > 0 {
            let in_flight = to.saturating_sub(self.acked);
            self.flight.add(in_flight);
            self.rounds.on_sent(now, to, in_flight);
        }
    }

    /// Notes that a later byte was sent: the bytes before it are late, lost, or not captured.
    #[cold]
    fn on_gap(&mut self, now: Instant, to: u64) {
        self.holes.push(Hole { from: self.highest, to, since: now, acknowledged: false });
        self.highest = to;
    }

    /// Handles a segment that begins before the end of what was sent.
    fn on_old(&mut self, context: &Context, header: &TcpHeader, from: u64, to: u64) {
        let now = context.now;
        let hole = self.holes.fill(from, to.min(self.highest));
        if let Some(hole) = hole {
            self.round_trips.say_nothing_until(self.highest);
            let late = now.saturating_since(hole.since);
            let is_early =
                late < context.other_rtt.map_or(REORDERING, |(min, _)| min.max(REORDERING));
            // A retransmission cannot arrive here before its sender learnt of the loss.
            if hole.acknowledged || is_early && self.duplicates < DUPLICATE_ACKS {
                self.late.add(late);
                return;
            }
        }
        let silence_from = self.last.sent.max(self.last.acked);
        let srtt = match (self.round_trips.smoothed(), context.other_rtt) {
            (Some(here), Some((_, there))) => Some(here + there),
            (here, there) => here.or(there.map(|(_, smoothed)| smoothed)),
        };
        let stamp = stamp_of(header);
        self.recovery.add(&Circumstances {
            from,
            to,
            highest: self.highest,
            acked: self.acked,
            sacked: self.sacked,
            duplicate_acks: self.duplicates,
            silence: now.saturating_since(silence_from),
            srtt,
            syn: header.has(SYN),
            payload: header.payload.into(),
            segments: self.segments(header.payload),
            timestamp: stamp,
            original_unseen: hole.is_some(),
        });
        if header.payload > 0 {
            self.rounds.on_retransmitted();
        }
        self.round_trips.send_again(now, (from, to), stamp);
        if to > self.highest {
            self.on_new(now, header, self.highest, to);
            self.round_trips.distrust_last();
        }
    }

    /// How many segments a packet holds, if offload merged some.
    fn segments(&self, payload: u32) -> u64 {
        u64::from(payload).div_ceil(self.mss.map_or(u64::MAX, u64::from).max(1)).max(1)
    }

    /// Handles a segment of the other direction, which acknowledges this one.
    #[inline]
    pub(super) fn on_ack(&mut self, context: &Context, header: &TcpHeader) {
        let now = context.now;
        let mut space = self.space;
        let number = space.offset(header.acknowledgement);
        if self.first.is_none() {
            // Nothing in this direction was captured yet.
            (self.space, self.first, self.highest) = (space, Some(number), number);
            self.acked = number;
        }
        if !self.has_acks {
            self.has_acks = true;
            self.acked = self.acked.max(self.first.unwrap_or_default());
        }
        if number > self.highest && number == self.probes.end {
            // The receiver took the byte of a probe.
            self.highest = number;
        }
        if number > self.highest {
            self.on_ack_of_unseen(now, number, space);
        }
        let before = self.acked;
        if let Some(first) = self.data.first.filter(|_| self.highest > before) {
            self.bursts.on_acked(now.saturating_since(self.last.acked.max(first)));
        }
        let echo = header.timestamps.map(|timestamps| timestamps.echo);
        if header.sack_blocks > 0 {
            self.on_sack(header, number);
        }
        if number > before {
            self.acked = number;
            let missing = self.holes.acknowledge(number);
            if missing > 0 {
                self.unseen.add(missing);
            }
            self.duplicates = 0;
            self.recovery.on_acked(before, number, echo);
            self.round_trips.cover(now, number, self.sacked, echo);
            self.rounds.on_acked(now, number, self.highest);
            self.last.progress = Some(now);
            if header.payload == 0 && header.flags & (SYN | FIN) == 0 && self.data.first.is_some() {
                self.acks.add(now, number - before);
            }
        } else if self.is_duplicate(header, number) {
            self.duplicates += 1;
            self.duplicate_acks += 1;
        }
        self.last.window = header.window;
        self.last.acked = now;
        self.probes.unanswered = 0;
        if number >= before {
            self.window.on_ack(number, header.window, header.has(SYN));
        }
        self.note_limit(now);
    }

    /// RFC 5681 2.
    fn is_duplicate(&self, header: &TcpHeader, number: u64) -> bool {
        number == self.acked
            && header.sequence_length() == 0
            && self.highest > self.acked
            && (header.window == self.last.window || header.sack_blocks > 0)
    }

    /// Handles an acknowledgement of bytes that were not captured, or that come after their
    /// acknowledgement.
    #[cold]
    fn on_ack_of_unseen(&mut self, now: Instant, number: u64, space: SequenceSpace) {
        self.unseen.add(number - self.highest);
        let (from, to) = (self.highest, number);
        self.holes.push(Hole { from, to, since: now, acknowledged: true });
        (self.space, self.highest) = (space, number);
        self.round_trips.say_nothing_until(number);
    }

    fn on_sack(&mut self, header: &TcpHeader, number: u64) {
        let blocks = &header.sack[..header.sack_blocks];
        let offset = |number: u32| {
            let mut space = self.space;
            space.offset(number)
        };
        let blocks_at = |index: usize| {
            let (from, to) = blocks[index];
            (offset(from), offset(to))
        };
        let first = blocks_at(0);
        // RFC 2883 4: the first block is below the acknowledgement, or within the second block.
        let within = blocks.len() > 1 && {
            let second = blocks_at(1);
            second.0 <= first.0 && first.1 <= second.1
        };
        if first.0 < first.1 && (first.1 <= number || within) {
            self.recovery.on_duplicate(first.0, first.1);
        }
        for index in 0..blocks.len() {
            let (from, to) = blocks_at(index);
            if from < to && to <= self.highest && to > number {
                self.sacked = self.sacked.max(to);
            }
        }
    }

    /// Reports the stream; `sender_side` is the smallest round-trip time between the capture point
    /// and the sender.
    pub(super) fn report(&self, end: Instant, sender_side: Option<Duration>) -> StreamReport {
        let lasted = self.data.first.zip(self.last.progress);
        let lasted = lasted.map(|(first, last)| last.saturating_since(first));
        let acked_bytes = self.acked_payload();
        let in_flight_bytes = self.flight.report();
        let sees_rounds = self.sees_rounds(sender_side);
        StreamReport {
            options: self.options,
            data_packets: self.data.packets,
            data_bytes: self.data.bytes,
            acked_bytes,
            goodput_mbps: lasted
                .filter(|&lasted| lasted > Duration::ZERO && acked_bytes > 0)
                .and_then(|lasted| mbps(acked_bytes, lasted.as_secs_f64())),
            rtt_ms: Distribution::of(self.round_trips.times()),
            rtt_timestamps_ms: Distribution::of(self.round_trips.by_timestamps()),
            retransmissions: self.recovery.counts(),
            out_of_order_packets: self.late.packets,
            out_of_order_ms: self.late.longest_ms(),
            duplicate_acks: self.duplicate_acks,
            in_flight_bytes,
            window: self.window.report(end),
            largest_payload_bytes: self.data.largest,
            larger_than_mss: self.data.larger_than_mss,
            keep_alives: self.probes.keep_alives,
            unanswered_keep_alives: self.probes.unanswered,
            window_probes: self.probes.of_windows,
            acks: self.acks.report(),
            sending: self.bursts.report(sees_rounds),
            limits: (sees_rounds && self.has_acks && in_flight_bytes.is_some())
                .then(|| self.limits.report()),
            slow_start: self.rounds.report(self.bursts.is_paced()).filter(|_| sees_rounds),
            acks_of_unseen: self.unseen.acks,
            unseen_bytes: self.unseen.bytes,
        }
    }

    /// Whether rounds can be seen. Next to the receiver everything is acknowledged at once, and the
    /// bytes in flight cannot be seen.
    fn sees_rounds(&self, sender_side: Option<Duration>) -> bool {
        let receiver_side = self.round_trips.times().min().unwrap_or_default();
        sender_side.is_none_or(|sender_side| receiver_side * 3 >= sender_side)
    }

    /// Payload that was acknowledged: excludes the SYN and, once it is acknowledged, the FIN.
    fn acked_payload(&self) -> u64 {
        if !self.has_acks {
            return 0;
        }
        let numbers = self.acked.saturating_sub(self.first.unwrap_or_default());
        let syn = u64::from(self.options.is_some());
        let fin = u64::from(self.end.is_some_and(|end| end <= self.acked));
        numbers.saturating_sub(syn + fin).min(self.data.bytes + self.unseen.bytes)
    }
}

/// The sender's timestamp.
fn stamp_of(header: &TcpHeader) -> Option<u32> {
    header.timestamps.map(|timestamps| timestamps.value)
}
