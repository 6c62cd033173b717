//! Measures one direction of a TCP connection from the headers of passing segments.

use std::collections::{BTreeMap, VecDeque};

use airpath_base::{Duration, Instant};

/// The fields of a segment that the meter needs.
#[derive(Clone, Copy, Debug)]
pub struct SegmentHeader {
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number, if valid.
    pub acknowledgement: Option<u32>,
    /// Whether it opens the connection.
    pub syn: bool,
    /// Whether it has the timestamps option (RFC 7323).
    pub timestamps: bool,
    /// Bytes of payload.
    pub payload: u64,
    /// Length in sequence space: payload, SYN and FIN (RFC 9293 3.3.1).
    pub length: u64,
}

/// Meter of the data in one direction of a TCP connection. It is called for segments at the sender
/// ([`on_sent`](Self::on_sent)), for those that reach the receiver
/// ([`on_arrived`](Self::on_arrived)) and for acknowledgements that reach the sender
/// ([`on_acknowledged`](Self::on_acknowledged)); it only needs their headers.
#[derive(Debug, Default)]
pub struct StreamMeter {
    /// Segments with payload sent so far.
    sent: u64,
    retransmitted: u64,
    sender: SequenceSpace,
    /// Highest offset sent so far.
    highest: u64,
    receiver: SequenceSpace,
    stream: Reassembly,
    /// Segments in transit, in order.
    in_transit: VecDeque<InTransit>,
}

/// A segment that no acknowledgement has covered yet.
#[derive(Clone, Copy, Debug)]
struct InTransit {
    end: u64,
    /// When it was last sent.
    sent: Instant,
    retransmitted: bool,
}

/// Most segments whose round trip is awaited, and most ranges ahead of a gap: more than any window
/// holds.
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
            // The SYN's sequence number is not a byte.
            let from = from + u64::from(segment.syn);
            self.stream.add(from, from + segment.payload);
        }
    }

    /// An acknowledgement of this direction's data reaches the sender: returns the round trip that
    /// it ends. It is that of the first segment that it newly acknowledges; if any of them was
    /// retransmitted, it counts from the last transmission of that first segment, which is the one
    /// that the timestamp echoes (RFC 7323 4.3). Without `timestamps` there is then no sample (RFC
    /// 6298 3).
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

    /// Retransmissions among the segments sent.
    pub const fn retransmitted(&self) -> u64 {
        self.retransmitted
    }

    /// Payload that arrived in order, in bytes.
    pub const fn delivered(&self) -> u64 {
        self.stream.delivered
    }
}

/// Maps sequence numbers, which wrap, to offsets in 64 bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct SequenceSpace {
    /// The number with the highest offset, and that offset.
    highest: Option<(u32, u64)>,
}

/// Offsets begin in the middle, so that bytes before the first segment seen have one too.
const BASE: u64 = 1 << 40;

impl SequenceSpace {
    /// The offset with this number that is nearest to the highest one: forged numbers far behind it
    /// have no effect, however many there are.
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

/// The part of a byte stream that arrived.
#[derive(Debug, Default)]
struct Reassembly {
    /// Everything before this offset has arrived.
    edge: Option<u64>,
    /// Ranges beyond the edge, by their beginning.
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

    /// Moves the edge over what follows without a gap.
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

    /// Stops waiting for the first gap, which stays uncounted.
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
            // Each is as far behind the previous one as possible.
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
