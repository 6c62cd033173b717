//! One direction of a flow: what of a byte stream was sent, arrived and was acknowledged.

use std::collections::{BTreeMap, VecDeque};

use airpath_base::{Duration, Instant};

use super::pool::{Pool, Rtts};
use crate::packet::{ACK, FIN, Layout, SYN, TCP, UDP};

/// One direction of a flow.
#[derive(Debug)]
pub(super) struct Way {
    /// Packets with payload that entered.
    pub(super) sent: u64,
    pub(super) retransmitted: u64,
    /// Packets that left, and those dropped.
    pub(super) arrived: u64,
    pub(super) dropped: u64,
    /// Highest offset that was sent, and what of it arrived.
    sender: Offsets,
    highest: u64,
    pub(super) receiver: Offsets,
    pub(super) stream: Stream,
    /// UDP: payload that arrived.
    pub(super) payload: u64,
    /// Segments under way, in order.
    under_way: VecDeque<Segment>,
    pub(super) rtt: Rtts,
    /// Since the last sample.
    pub(super) rtt_sum: Duration,
    pub(super) rtt_count: u64,
}

/// A segment that was not acknowledged when it was last asked for.
#[derive(Clone, Copy, Debug)]
struct Segment {
    end: u64,
    /// When it was sent last.
    sent: Instant,
    again: bool,
}

impl Way {
    pub(super) fn new() -> Self {
        Self {
            sent: 0,
            retransmitted: 0,
            arrived: 0,
            dropped: 0,
            sender: Offsets::default(),
            highest: 0,
            receiver: Offsets::default(),
            stream: Stream::default(),
            payload: 0,
            under_way: VecDeque::new(),
            rtt: Rtts::default(),
            rtt_sum: Duration::ZERO,
            rtt_count: 0,
        }
    }

    pub(super) fn on_sent(&mut self, now: Instant, seen: &Seen) {
        if seen.payload == 0 {
            return;
        }
        self.sent += 1;
        let from = self.sender.of(seen.seq);
        let end = from + seen.length;
        if end <= self.highest {
            self.retransmitted += 1;
            let first = self.under_way.partition_point(|segment| segment.end <= from);
            let again = self.under_way.iter_mut().skip(first);
            for segment in again.take_while(|segment| segment.end <= end) {
                (segment.sent, segment.again) = (now, true);
            }
        } else {
            self.highest = end;
            if self.under_way.len() == MOST_UNDER_WAY {
                self.under_way.pop_front();
            }
            self.under_way.push_back(Segment { end, sent: now, again: false });
        }
    }

    /// An acknowledgement of this direction's data reached the sender. The round trip is that of the
    /// first segment that it newly acknowledges; if one of them was sent twice, since that one was
    /// sent last, which is what the timestamp echoes (RFC 7323 4.3). Without `timestamps` nothing
    /// tells then (RFC 6298 3).
    pub(super) fn on_ack(&mut self, now: Instant, ack: u32, timestamps: bool, pool: &mut Pool) {
        if self.highest == 0 {
            return;
        }
        let mut offsets = self.sender;
        let ack = offsets.of(ack);
        let (mut first, mut again) = (None, false);
        while let Some(&segment) = self.under_way.front().filter(|segment| segment.end <= ack) {
            self.under_way.pop_front();
            first.get_or_insert(segment.sent);
            again |= segment.again;
        }
        if let Some(sent) = first.filter(|_| timestamps || !again) {
            let rtt = now.saturating_since(sent);
            self.rtt.record(rtt, pool);
            self.rtt_sum += rtt;
            self.rtt_count += 1;
        }
    }

    /// Payload that arrived; TCP's in order.
    pub(super) const fn bytes(&self, protocol: u8) -> u64 {
        if protocol == TCP { self.stream.delivered } else { self.payload }
    }
}

/// What of a packet matters here.
pub(super) struct Seen {
    pub(super) seq: u32,
    pub(super) ack: Option<u32>,
    pub(super) syn: bool,
    /// It has that option.
    pub(super) timestamps: bool,
    pub(super) payload: u64,
    /// Sequence space.
    pub(super) length: u64,
}

/// NOP, NOP, kind 8, length 10: where the option stands in established connections (RFC 7323 A).
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];

impl Seen {
    pub(super) fn of(packet: &[u8]) -> Option<Self> {
        let layout = Layout::of(packet)?;
        if let Some(header) = layout.tcp_header_bytes(packet) {
            let tcp = &packet[layout.ip_bytes..];
            let word =
                |at: usize| u32::from_be_bytes([tcp[at], tcp[at + 1], tcp[at + 2], tcp[at + 3]]);
            let (flags, payload) = (tcp[13], (packet.len() - header) as u64);
            let syn = flags & SYN != 0;
            return Some(Self {
                seq: word(4),
                ack: (flags & ACK != 0).then(|| word(8)),
                syn,
                timestamps: tcp[20..].starts_with(&TIMESTAMPS),
                payload,
                length: payload + u64::from(syn) + u64::from(flags & FIN != 0),
            });
        }
        let headers = layout.ip_bytes + if layout.protocol == UDP { 8 } else { 0 };
        let payload = packet.len().saturating_sub(headers) as u64;
        Some(Self { seq: 0, ack: None, syn: false, timestamps: false, payload, length: payload })
    }
}

/// Sequence numbers as offsets in 64 bits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Offsets {
    /// The number with the highest offset.
    highest: Option<(u32, u64)>,
}

/// Segments whose round trip is awaited, and ranges ahead of a gap: more than any window holds.
const MOST_UNDER_WAY: usize = 1 << 16;
const MOST_AHEAD: usize = 1 << 16;

/// Offsets begin in the middle, so that what came before the first packet seen has one too.
const BASE: u64 = 1 << 40;

impl Offsets {
    /// The offset nearest to the highest one: forged numbers far behind it lead nowhere, however many
    /// there are.
    pub(super) fn of(&mut self, seq: u32) -> u64 {
        let offset = match self.highest {
            None => BASE,
            Some((highest, offset)) => {
                offset.saturating_add_signed(i64::from(seq.wrapping_sub(highest) as i32))
            }
        };
        if self.highest.is_none_or(|(_, highest)| offset > highest) {
            self.highest = Some((seq, offset));
        }
        offset
    }
}

/// What arrived of a byte stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// All before is there.
    edge: Option<u64>,
    /// Ranges beyond it, by their beginning.
    pub(super) ahead: BTreeMap<u64, u64>,
    pub(super) delivered: u64,
}

impl Stream {
    /// Bytes `[from, to)` arrived.
    pub(super) fn add(&mut self, from: u64, to: u64) {
        let edge = *self.edge.get_or_insert(from);
        if to <= edge {
            return;
        }
        if from > edge {
            if self.ahead.len() >= MOST_AHEAD {
                self.skip_gap();
            }
            let end = self.ahead.entry(from).or_insert(to);
            *end = to.max(*end);
            return;
        }
        self.edge = Some(to);
        self.delivered += to - edge;
        self.join();
    }

    /// Takes what follows without a gap.
    fn join(&mut self) {
        let Some(edge) = &mut self.edge else { return };
        while let Some(entry) = self.ahead.first_entry()
            && *entry.key() <= *edge
        {
            let end = entry.remove().max(*edge);
            self.delivered += end - *edge;
            *edge = end;
        }
    }

    /// The first gap is not waited for any more: it stays uncounted.
    #[cold]
    fn skip_gap(&mut self) {
        if let Some((&from, _)) = self.ahead.first_key_value() {
            self.edge = Some(from);
            self.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forged_numbers_never_lead_below_zero() {
        let mut offsets = Offsets::default();
        assert_eq!(offsets.of(7), BASE);
        for n in 1..2000_u32 {
            // Each is as far behind the one before as can be.
            assert!(offsets.of(7_u32.wrapping_sub(n.wrapping_mul(1 << 31))) >= BASE - (1 << 31));
        }
        assert_eq!(offsets.of(8), BASE + 1);
    }

    #[test]
    fn forged_segments_take_no_more_memory_than_a_window() {
        let mut way = Way::new();
        for n in 0..200_000_u32 {
            let (seq, length) = (n.wrapping_mul(3000), 1000);
            let seen =
                Seen { seq, ack: None, syn: false, timestamps: false, payload: 1000, length };
            way.on_sent(Instant::ZERO, &seen);
            let from = way.receiver.of(seq);
            way.stream.add(from, from + 1000);
        }
        assert_eq!(way.under_way.len(), MOST_UNDER_WAY);
        assert!(way.stream.ahead.len() <= MOST_AHEAD);
        assert!(way.stream.delivered > 100_000_000);
    }
}
