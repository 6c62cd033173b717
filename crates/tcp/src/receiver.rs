//! The receiving half of an endpoint: reassembly and acknowledgements.

use airpath_base::{Duration, Flags, Instant, MAX_SACK_BLOCKS, SackBlocks, Segment};

use crate::ranges::Ranges;
use crate::{DelayedAckConfig, EndpointConfig};

/// Receives a stream and decides when to acknowledge. Its application reads at once.
#[derive(Debug)]
pub(crate) struct Receiver {
    mss: u32,
    delayed_ack: DelayedAckConfig,
    buffer: u64,
    scale: u8,
    sack: bool,
    timestamps: bool,
    /// Next byte expected (RCV.NXT).
    nxt: u64,
    out_of_order: Ranges,
    /// One offset in each of the ranges that grew last, newest first (RFC 2018 4).
    recent: [u64; MAX_SACK_BLOCKS],
    /// Full-sized segments since the last acknowledgement.
    unacknowledged: u32,
    ack: AckState,
    /// Timestamp to echo (RFC 7323 4.3, TS.Recent).
    ts_recent: u32,
    ts_recent_at: Instant,
    /// RCV.NXT in the last acknowledgement sent (Last.ACK.sent).
    last_ack_sent: u64,
    fin_at: Option<u64>,
    pub(crate) acks_sent: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AckState {
    None,
    Delayed(Instant),
    Now,
}

impl Receiver {
    pub(crate) fn new(config: &EndpointConfig) -> Self {
        Self {
            mss: config.mss,
            delayed_ack: config.delayed_ack,
            buffer: config.receive_buffer,
            scale: window_scale(config),
            sack: config.sack,
            timestamps: config.timestamps,
            nxt: 0,
            out_of_order: Ranges::default(),
            recent: [u64::MAX; MAX_SACK_BLOCKS],
            unacknowledged: 0,
            ack: AckState::None,
            ts_recent: 0,
            ts_recent_at: Instant::ZERO,
            last_ack_sent: 0,
            fin_at: None,
            acks_sent: 0,
        }
    }

    /// What the two ends agreed on.
    pub(crate) fn establish(&mut self, agreed: &EndpointConfig) {
        self.sack = agreed.sack;
        self.timestamps = agreed.timestamps;
        self.scale = window_scale(agreed);
    }

    /// The SYN arrived.
    pub(crate) fn on_syn(&mut self, now: Instant, segment: &Segment) {
        self.nxt = segment.end();
        if self.timestamps {
            self.ts_recent = segment.ts_val;
            self.ts_recent_at = now;
        }
    }

    /// Shift to offer in a SYN (RFC 7323 2.3).
    pub(crate) fn scale(&self) -> u8 {
        self.scale
    }

    /// Payload bytes delivered in order to the application.
    pub(crate) fn delivered(&self) -> u64 {
        let fin = u64::from(self.fin_at.is_some_and(|fin| self.nxt > fin));
        self.nxt.saturating_sub(1 + fin)
    }

    /// The stream's end has been reached.
    pub(crate) fn is_closed(&self) -> bool {
        self.fin_at.is_some_and(|fin| self.nxt > fin)
    }

    /// A segment that takes sequence space arrived.
    #[inline]
    pub(crate) fn on_data(&mut self, now: Instant, segment: &Segment) {
        // RFC 9293 3.10.7.4: what lies beyond the window is cut off; a FIN needs no room.
        let limit = self.nxt + self.buffer.max(1);
        let data_end = segment.seq + u64::from(segment.len);
        let start = segment.seq;
        let end = if data_end > limit { limit } else { segment.end() };
        if end > data_end {
            self.fin_at = Some(data_end);
        }
        if self.timestamps && start <= self.last_ack_sent {
            self.note_timestamp(now, segment.ts_val);
        }
        if end <= self.nxt || start >= limit {
            // Duplicate, or beyond the window: say what is expected (RFC 9293 3.10.7.4).
            self.ack = AckState::Now;
        } else if start > self.nxt {
            // RFC 5681 4.2: at once, so that the sender sees duplicates.
            self.out_of_order.insert(start, end, |_, _| {});
            self.note_recent(start);
            self.ack = AckState::Now;
        } else {
            self.nxt = end;
            if self.out_of_order.is_empty() {
                self.acknowledge_in_order(now, segment);
            } else {
                self.close_gap();
                // RFC 5681 4.2: at once when a gap is filled, wholly or in part.
                self.ack = AckState::Now;
            }
            if self.is_closed() {
                self.ack = AckState::Now;
            }
        }
    }

    #[inline]
    fn acknowledge_in_order(&mut self, now: Instant, segment: &Segment) {
        self.unacknowledged += u32::from(segment.len >= self.mss);
        if self.unacknowledged >= self.delayed_ack.segments || self.delayed_ack.segments == 1 {
            self.ack = AckState::Now;
        } else if self.ack == AckState::None {
            self.ack = AckState::Delayed(self.delayed_until(now));
        }
    }

    fn delayed_until(&self, now: Instant) -> Instant {
        let timeout = self.delayed_ack.timeout;
        if self.delayed_ack.ticking && timeout.as_nanos() > 0 {
            let tick = now.as_nanos() / timeout.as_nanos() + 1;
            return Instant::from_nanos(tick * timeout.as_nanos());
        }
        now + timeout
    }

    /// RFC 7323 4.3 (2), the comparison modulo 2^32; 5.5: not with what the clock has outrun.
    #[inline]
    fn note_timestamp(&mut self, now: Instant, ts_val: u32) {
        let outdated = now.saturating_since(self.ts_recent_at) > TIMESTAMP_HORIZON;
        if outdated || ts_val.wrapping_sub(self.ts_recent) as i32 >= 0 {
            self.ts_recent = ts_val;
            self.ts_recent_at = now;
        }
    }

    fn close_gap(&mut self) {
        self.out_of_order.remove_below(self.nxt);
        while let Some((start, end)) = self.out_of_order.first() {
            if start > self.nxt {
                break;
            }
            self.nxt = self.nxt.max(end);
            self.out_of_order.remove_below(self.nxt);
        }
    }

    fn note_recent(&mut self, start: u64) {
        let Some((low, high)) = self.out_of_order.containing(start) else {
            return;
        };
        // It may have joined others that are listed.
        let others = self.recent.iter().filter(|&&other| other < low || other >= high);
        let mut recent = [u64::MAX; MAX_SACK_BLOCKS];
        recent[0] = start;
        recent[1..].iter_mut().zip(others).for_each(|(slot, &other)| *slot = other);
        self.recent = recent;
    }

    #[inline]
    pub(crate) fn timer(&self) -> Option<Instant> {
        match self.ack {
            AckState::Delayed(at) => Some(at),
            AckState::None | AckState::Now => None,
        }
    }

    pub(crate) fn on_timer(&mut self) {
        self.ack = AckState::Now;
    }

    /// An acknowledgement must go out now.
    #[inline]
    pub(crate) fn wants_ack(&self) -> bool {
        self.ack == AckState::Now
    }

    /// Asks for one.
    pub(crate) fn request_ack(&mut self) {
        self.ack = AckState::Now;
    }

    /// Fills in the acknowledgement part of an outgoing segment.
    #[inline]
    pub(crate) fn fill_ack(&mut self, segment: &mut Segment) {
        segment.flags = segment.flags.with(Flags::ACK);
        segment.ack = self.nxt;
        segment.ts_ecr = self.ts_recent;
        segment.window = (self.buffer >> self.scale).min(u64::from(u16::MAX)) as u16;
        if self.sack && !self.out_of_order.is_empty() {
            segment.sack = self.sack_blocks();
        }
        self.ack = AckState::None;
        self.unacknowledged = 0;
        self.last_ack_sent = self.nxt;
        self.acks_sent += 1;
    }

    fn sack_blocks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::NONE;
        for &recent in &self.recent {
            if let Some((start, end)) = self.out_of_order.containing(recent) {
                blocks.push(self.nxt, start, end);
            }
        }
        blocks
    }
}

/// Half of the range of a timestamp in microseconds: older ones compare the wrong way.
const TIMESTAMP_HORIZON: Duration = Duration::from_micros(1 << 31);

/// RFC 7323 2.3
pub(crate) const MAX_WINDOW_SCALE: u8 = 14;

/// The smallest shift with which the buffer fits the 16-bit field.
fn window_scale(config: &EndpointConfig) -> u8 {
    if !config.window_scaling {
        return 0;
    }
    (0..MAX_WINDOW_SCALE)
        .find(|&shift| config.receive_buffer >> shift <= u64::from(u16::MAX))
        .unwrap_or(MAX_WINDOW_SCALE)
}
