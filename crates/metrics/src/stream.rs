//! One direction of a TCP connection, by the headers of the segments that pass.

use std::collections::{BTreeMap, VecDeque};

use airpath_base::{Duration, Instant};

/// What of a segment's header the meter needs.
#[derive(Clone, Copy, Debug)]
pub struct SegmentHeader {
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number, if the segment has one.
    pub acknowledgement: Option<u32>,
    /// It opens the connection.
    pub syn: bool,
    /// It has the timestamps option (RFC 7323).
    pub timestamps: bool,
    /// Bytes of payload.
    pub payload: u64,
    /// Length in sequence space: payload, SYN and FIN (RFC 9293 3.3.1).
    pub length: u64,
}

/// Meter of the data that one direction of a TCP connection carries. It is told of segments at the
/// sender ([`on_sent`](Self::on_sent)), of those that reach the receiver
/// ([`on_arrived`](Self::on_arrived)) and of acknowledgements that reach the sender
/// ([`on_acknowledged`](Self::on_acknowledged)); all it needs is their headers.
#[derive(Debug, Default)]
pub struct StreamMeter {
    /// Segments with payload that were sent.
    sent: u64,
    retransmitted: u64,
    sender: SequenceSpace,
    /// Highest offset that was sent.
    highest: u64,
    receiver: SequenceSpace,
    stream: Reassembly,
    /// Segments under way, in order.
    in_transit: VecDeque<InTransit>,
}

/// A segment that no acknowledgement has covered yet.
#[derive(Clone, Copy, Debug)]
struct InTransit {
    end: u64,
    /// When it was sent last.
    sent: Instant,
    retransmitted: bool,
}

/// Segments whose round trip is awaited, and ranges ahead of a gap: more than any window holds.
const MOST_IN_TRANSIT: usize = 1 << 16;
const MOST_AHEAD: usize = 1 << 16;

impl StreamMeter {
    /// A segment is sent.
    pub fn on_sent(&mut self, now: Instant, segment: &SegmentHeader) {
        if segment.payload == 0 {
            return;
        }
        self.sent += 1;
        let from = self.sender.offset(segment.sequence);
        let end = from + segment.length;
        if end <= self.highest {
            self.retransmitted += 1;
            let first = self.in_transit.partition_point(|segment| segment.end <= from);
            let again = self.in_transit.iter_mut().skip(first);
            for segment in again.take_while(|segment| segment.end <= end) {
                (segment.sent, segment.retransmitted) = (now, true);
            }
        } else {
            self.highest = end;
            if self.in_transit.len() == MOST_IN_TRANSIT {
                self.in_transit.pop_front();
            }
            self.in_transit.push_back(InTransit { end, sent: now, retransmitted: false });
        }
    }

    /// A segment reaches the receiver.
    pub fn on_arrived(&mut self, segment: &SegmentHeader) {
        if segment.length > 0 {
            let from = self.receiver.offset(segment.sequence);
            // The SYN's number is no byte.
            let from = from + u64::from(segment.syn);
            self.stream.add(from, from + segment.payload);
        }
    }

    /// An acknowledgement of this direction's data reaches the sender: the round trip that it ends.
    /// That is the one of the first segment that it newly acknowledges; if one of them was sent
    /// twice, since that one was sent last, which is what the timestamp echoes (RFC 7323 4.3).
    /// Without `timestamps` there is none then (RFC 6298 3).
    pub fn on_acknowledged(
        &mut self,
        now: Instant,
        number: u32,
        timestamps: bool,
    ) -> Option<Duration> {
        if self.highest == 0 {
            return None;
        }
        let mut space = self.sender;
        let acknowledged = space.offset(number);
        let (mut first, mut retransmitted) = (None, false);
        while let Some(&segment) =
            self.in_transit.front().filter(|segment| segment.end <= acknowledged)
        {
            self.in_transit.pop_front();
            first.get_or_insert(segment.sent);
            retransmitted |= segment.retransmitted;
        }
        let sent = first.filter(|_| timestamps || !retransmitted)?;
        Some(now.saturating_since(sent))
    }

    /// Segments with payload that were sent, retransmissions included.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Of these, retransmissions.
    pub const fn retransmitted(&self) -> u64 {
        self.retransmitted
    }

    /// Payload that arrived in order, in bytes.
    pub const fn delivered(&self) -> u64 {
        self.stream.delivered
    }
}

/// Sequence numbers, which wrap, as offsets in 64 bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct SequenceSpace {
    /// The number with the highest offset.
    highest: Option<(u32, u64)>,
}

/// Offsets begin in the middle, so that what came before the first segment seen has one too.
const BASE: u64 = 1 << 40;

impl SequenceSpace {
    /// The offset with this number that is nearest to the highest one: forged numbers far behind it
    /// lead nowhere, however many there are.
    pub fn offset(&mut self, number: u32) -> u64 {
        let offset = match self.highest {
            None => BASE,
            Some((highest, offset)) => {
                offset.saturating_add_signed(i64::from(number.wrapping_sub(highest) as i32))
            }
        };
        if self.highest.is_none_or(|(_, highest)| offset > highest) {
            self.highest = Some((number, offset));
        }
        offset
    }
}

/// What arrived of a byte stream.
#[derive(Debug, Default)]
struct Reassembly {
    /// All before is there.
    edge: Option<u64>,
    /// Ranges beyond it, by their beginning.
    ahead: BTreeMap<u64, u64>,
    delivered: u64,
}

impl Reassembly {
    /// Bytes `[from, to)` arrived.
    fn add(&mut self, from: u64, to: u64) {
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
    use proptest::prelude::*;

    use super::*;

    fn segment(sequence: u32, payload: u64) -> SegmentHeader {
        SegmentHeader {
            sequence,
            acknowledgement: None,
            syn: false,
            timestamps: false,
            payload,
            length: payload,
        }
    }

    #[test]
    fn forged_numbers_never_lead_below_zero() {
        let mut space = SequenceSpace::default();
        assert_eq!(space.offset(7), BASE);
        for n in 1..2000_u32 {
            // Each is as far behind the one before as can be.
            let number = 7_u32.wrapping_sub(n.wrapping_mul(1 << 31));
            assert!(space.offset(number) >= BASE - (1 << 31));
        }
        assert_eq!(space.offset(8), BASE + 1);
    }

    #[test]
    fn forged_segments_take_no_more_memory_than_a_window() {
        let mut meter = StreamMeter::default();
        for n in 0..200_000_u32 {
            let segment = segment(n.wrapping_mul(3000), 1000);
            meter.on_sent(Instant::ZERO, &segment);
            meter.on_arrived(&segment);
        }
        assert_eq!(meter.in_transit.len(), MOST_IN_TRANSIT);
        assert!(meter.stream.ahead.len() <= MOST_AHEAD);
        assert!(meter.delivered() > 100_000_000);
    }

    proptest! {
        #[test]
        fn every_byte_counts_once_whatever_the_order(
            first in any::<u32>(),
            order in Just((1..40usize).collect::<Vec<_>>()).prop_shuffle(),
            again in prop::collection::vec(0usize..40, 0..20),
        ) {
            let mut meter = StreamMeter::default();
            for index in std::iter::once(0).chain(order).chain(again) {
                meter.on_arrived(&segment(first.wrapping_add(index as u32 * 700), 700));
            }
            prop_assert_eq!(meter.delivered(), 40 * 700);
            prop_assert!(meter.stream.ahead.is_empty());
        }
    }
}
