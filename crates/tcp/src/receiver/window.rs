//! The receive window: what the buffer has room for, what the peer has been told, how it grows.

use airpath_base::{Duration, Instant, Rate, Segment};

use crate::sender::timestamp;
use crate::{BufferConfig, EndpointConfig, ReaderConfig};

/// The receive buffer and the window that it allows.
#[derive(Debug)]
pub(super) struct ReceiveWindow {
    mss: u32,
    max: u64,
    scale: u8,
    /// Bytes of window that the buffer has room for when it is empty.
    size: u64,
    /// The part of it that is offered: it grows with what arrives.
    offered: u64,
    /// Right edge of the window last advertised.
    edge: u64,
    /// Next byte that the application reads.
    read: u64,
    reader: Reader,
    tuning: Option<Tuning>,
}

#[derive(Debug)]
enum Reader {
    AtOnce,
    Driver,
    /// Has read until `at`; `carried` is what is left of a byte, in bits × 10^9.
    Rate {
        rate: Rate,
        at: Instant,
        carried: u64,
    },
}

impl ReceiveWindow {
    pub(super) fn new(config: &EndpointConfig) -> Self {
        let mut window = Self {
            mss: config.mss,
            max: 0,
            scale: 0,
            size: 0,
            offered: 0,
            edge: 0,
            read: 0,
            reader: match config.reader {
                ReaderConfig::AtOnce => Reader::AtOnce,
                ReaderConfig::Driver => Reader::Driver,
                ReaderConfig::Rate(rate) => Reader::Rate { rate, at: Instant::ZERO, carried: 0 },
            },
            tuning: None,
        };
        window.establish(config);
        window
    }

    /// What the two ends agreed on.
    pub(super) fn establish(&mut self, agreed: &EndpointConfig) {
        let BufferConfig { initial, max, tuned } = agreed.receive_buffer;
        self.scale = window_scale(agreed);
        self.max = max.min(u64::from(u16::MAX) << self.scale);
        // Less than the scale's unit would read as a closed window.
        let initial = initial.max(1 << self.scale).min(self.max);
        // A SYN offers 65,535 bytes at most (RFC 7323 2.2); a larger buffer is offered bit by bit.
        self.offered = if tuned { initial.min(u64::from(u16::MAX)) } else { initial };
        self.size = if tuned { initial } else { self.max };
        self.tuning = (self.size < self.max).then(|| Tuning::new(self.size, agreed));
    }

    /// Shift to offer in a SYN (RFC 7323 2.3).
    pub(super) fn scale(&self) -> u8 {
        self.scale
    }

    /// Window field of a SYN, which is never scaled (RFC 7323 2.2).
    pub(super) fn of_syn(&self) -> u16 {
        self.offered.min(u64::from(u16::MAX)) as u16
    }

    /// The peer's SYN arrived: the stream begins at `nxt`.
    pub(super) fn begin(&mut self, now: Instant, nxt: u64) {
        self.read = nxt;
        self.edge = nxt + u64::from(self.of_syn());
        if let Some(tuning) = &mut self.tuning {
            tuning.begin(now, nxt, self.edge);
        }
    }

    /// First byte that is not accepted.
    #[inline]
    pub(super) fn edge(&self) -> u64 {
        self.edge
    }

    /// Bytes offered when nothing is unread.
    pub(super) fn offered(&self) -> u64 {
        self.offered
    }

    /// Bytes before `nxt` that the application has not read.
    pub(super) fn unread(&self, nxt: u64) -> u64 {
        nxt.saturating_sub(self.read)
    }

    /// A segment arrived in order, full-sized or not, and took the stream to `nxt`. Returns whether
    /// the offered window grew.
    #[inline]
    pub(super) fn on_segment(
        &mut self,
        now: Instant,
        segment: &Segment,
        full: bool,
        nxt: u64,
    ) -> bool {
        let before = self.offered;
        if let Some(tuning) = &mut self.tuning {
            tuning.measure(now, segment, full, nxt, self.edge);
        }
        if full && self.offered < self.size {
            // Linux's rcv_ssthresh: faster than any slow start, which grows by what is acknowledged.
            self.offered = (self.offered + 2 * u64::from(segment.len)).min(self.size);
        }
        match self.reader {
            Reader::AtOnce => self.read_to(now, nxt),
            Reader::Driver | Reader::Rate { .. } => {}
        }
        self.offered > before
    }

    /// Moves the reader at a rate on to `now`, in a stream that reaches to `nxt`.
    #[inline]
    pub(super) fn advance(&mut self, now: Instant, nxt: u64) {
        if let Reader::Rate { .. } = &self.reader {
            self.read_on(now, nxt);
        }
    }

    #[cold]
    fn read_on(&mut self, now: Instant, nxt: u64) {
        let unread = self.unread(nxt);
        if let Reader::Rate { rate, at, carried } = &mut self.reader {
            let bits = u128::from((now - *at).as_nanos()) * u128::from(rate.bps());
            let work = bits + u128::from(*carried);
            *at = now;
            if work / BYTE >= u128::from(unread) {
                *carried = 0;
                self.read_to(now, nxt);
            } else {
                *carried = (work % BYTE) as u64;
                self.read_to(now, self.read + (work / BYTE) as u64);
            }
        }
    }

    /// The driver's application takes up to `bytes`.
    pub(super) fn take(&mut self, now: Instant, bytes: u64, nxt: u64) {
        self.read_to(now, nxt.min(self.read.saturating_add(bytes)));
    }

    #[inline]
    fn read_to(&mut self, now: Instant, read: u64) {
        self.read = read.max(self.read);
        if let Some(tuning) = &mut self.tuning {
            self.size = tuning.size(now, self.read, self.mss).clamp(self.size, self.max);
        }
    }

    /// Where the right edge could be.
    #[inline]
    fn target(&self) -> u64 {
        self.read + self.offered
    }

    /// RFC 9293 3.8.6.2.2: the right edge moves by this at least, which the field must resolve.
    #[inline]
    fn step(&self) -> u64 {
        u64::from(self.mss).min(self.offered / 2).max(1 << self.scale)
    }

    /// Reading has made so much room that it is worth an acknowledgement of its own: the window
    /// that the peer sees would at least double, as Linux has it.
    pub(super) fn update_is_due(&self, nxt: u64) -> bool {
        self.update_due_in(nxt) == 0
    }

    /// Bytes still to be read until then.
    fn update_due_in(&self, nxt: u64) -> u64 {
        let known = self.edge.saturating_sub(nxt);
        let target = (self.edge + self.step()).max(nxt + 2 * known);
        target.saturating_sub(self.target())
    }

    /// The peer knows of no room for a full segment, but there is some.
    #[inline]
    pub(super) fn is_starving(&self, nxt: u64, full: u32) -> bool {
        self.edge < nxt + u64::from(full) && self.target() >= self.edge + self.step()
    }

    /// When a reader at a rate makes an update due.
    #[inline]
    pub(super) fn timer(&self, nxt: u64) -> Option<Instant> {
        let Reader::Rate { rate, at, carried } = self.reader else {
            return None;
        };
        let bytes = self.update_due_in(nxt).max(1);
        if bytes > self.unread(nxt) {
            return None;
        }
        let work = u128::from(bytes) * BYTE - u128::from(carried);
        Some(at + Duration::from_nanos(work.div_ceil(u128::from(rate.bps())) as u64))
    }

    /// The window field of an acknowledgement of `nxt`. Its right edge is never left of the last
    /// one (RFC 9293 3.8.6).
    #[inline]
    pub(super) fn advertise(&mut self, nxt: u64) -> u16 {
        let unit = (1 << self.scale) - 1;
        let kept = (self.edge.saturating_sub(nxt) + unit) >> self.scale;
        let moves = self.target() >= self.edge + self.step();
        let room = if moves { self.target().saturating_sub(nxt) >> self.scale } else { 0 };
        let window = room.max(kept).min(u64::from(u16::MAX));
        self.edge = self.edge.max(nxt + (window << self.scale));
        window as u16
    }
}

/// One byte in the units of [`Reader::Rate`].
const BYTE: u128 = 8_000_000_000;

/// Dynamic right-sizing: M. Fisk and W. Feng, "Dynamic Right-Sizing in TCP", 2001. The buffer is to
/// hold twice what the application reads in a round trip, so that it never limits the sender; the
/// allowances above that are those of Linux (`tcp_moderate_rcvbuf`).
#[derive(Debug)]
struct Tuning {
    timestamps: bool,
    /// As the receiver sees it.
    rtt: Option<Duration>,
    /// Timestamp echoed last: the first segment that echoes another one is a measurement.
    echo: u32,
    /// Without timestamps: a right edge and the time at which it was known.
    edge: (u64, Instant),
    /// When the round began, and what was read by then.
    round: (Instant, u64),
    /// Bytes read in the largest round.
    copied: u64,
}

/// Room for a sender that starts.
const START_SEGMENTS: u64 = 16;

impl Tuning {
    fn new(initial: u64, config: &EndpointConfig) -> Self {
        let start = u64::from(config.initial_window) * u64::from(config.mss);
        Self {
            timestamps: config.timestamps,
            rtt: None,
            echo: 0,
            edge: (0, Instant::ZERO),
            round: (Instant::ZERO, 0),
            copied: start.min(initial).max(1),
        }
    }

    fn begin(&mut self, now: Instant, nxt: u64, edge: u64) {
        self.edge = (edge, now);
        self.round = (now, nxt);
    }

    /// Takes the round-trip time from a segment in order.
    fn measure(&mut self, now: Instant, segment: &Segment, full: bool, nxt: u64, edge: u64) {
        if self.timestamps {
            if full && segment.ts_ecr != 0 && segment.ts_ecr != self.echo {
                self.echo = segment.ts_ecr;
                let elapsed = timestamp(now).wrapping_sub(segment.ts_ecr);
                let sample = Duration::from_micros(u64::from(elapsed));
                // Smoothed as in RFC 6298 (2.3).
                self.rtt = Some(self.rtt.map_or(sample, |rtt| (rtt * 7 + sample) / 8));
            }
        } else if nxt >= self.edge.0 {
            // A sender that did not fill the window took longer: the shortest time counts.
            let sample = now - self.edge.1;
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt.min(sample)));
            self.edge = (edge.max(nxt), now);
        }
    }

    /// The application has read up to `read`: the size that the buffer should have.
    fn size(&mut self, now: Instant, read: u64, mss: u32) -> u64 {
        let (begun, before) = self.round;
        if self.rtt.is_none_or(|rtt| now - begun < rtt) {
            return 0;
        }
        self.round = (now, read);
        let (copied, last) = (read - before, self.copied);
        if copied <= last {
            return 0;
        }
        self.copied = copied;
        // What is read in this round was sent a round ago, and the window that is advertised now is
        // used in the next: growth goes on meanwhile.
        let steady = 2 * copied + START_SEGMENTS * u64::from(mss);
        steady.saturating_add(steady.saturating_mul(2 * (copied - last)) / last)
    }
}

/// RFC 7323 2.3
pub(crate) const MAX_WINDOW_SCALE: u8 = 14;

/// The smallest shift with which the largest buffer fits the 16-bit field.
fn window_scale(config: &EndpointConfig) -> u8 {
    if !config.window_scaling {
        return 0;
    }
    (0..MAX_WINDOW_SCALE)
        .find(|&shift| config.receive_buffer.max >> shift <= u64::from(u16::MAX))
        .unwrap_or(MAX_WINDOW_SCALE)
}
