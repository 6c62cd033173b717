//! The receive window: how much the buffer holds, what is advertised to the peer, how it grows.

use airpath_base::{Duration, Instant, Rate, Segment};

use crate::timestamp::timestamp;
use crate::{BufferConfig, EndpointConfig, ReaderConfig, RightSizing};

/// The receive buffer and the window derived from it.
#[derive(Debug)]
pub(super) struct ReceiveWindow {
    mss: u32,
    max: u64,
    scale: u8,
    /// Bytes of window that the empty buffer provides.
    size: u64,
    /// The part of it on offer, which grows with what arrives (Linux's rcv_ssthresh).
    offered: u64,
    /// Right edge of the window last advertised.
    edge: u64,
    /// Bytes of the window last advertised.
    told: u64,
    /// Next byte that the application reads.
    read: u64,
    /// Bytes that wait above a gap, where they use up room.
    above: u64,
    counts_above: bool,
    reader: Reader,
    tuning: Option<Tuning>,
}

#[derive(Debug)]
enum Reader {
    AtOnce,
    Driver,
    /// Reads this long after the first arrival.
    After {
        delay: Duration,
        waking: Option<Waking>,
    },
    /// Has read until `at`; `carried` is the remaining part of a byte, in bits × 10^9.
    Rate {
        rate: Rate,
        at: Instant,
        carried: u64,
    },
}

/// A reader that is being woken for data that arrived.
#[derive(Clone, Copy, Debug)]
struct Waking {
    at: Instant,
    /// End of what it reads first: the segments that were delivered together.
    first: u64,
    /// Whether more may be added to them.
    open: bool,
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
            told: 0,
            read: 0,
            above: 0,
            counts_above: false,
            reader: match config.reader {
                ReaderConfig::AtOnce => Reader::AtOnce,
                ReaderConfig::Driver => Reader::Driver,
                ReaderConfig::After(delay) => Reader::After { delay, waking: None },
                ReaderConfig::Rate(rate) => Reader::Rate { rate, at: Instant::ZERO, carried: 0 },
            },
            tuning: None,
        };
        window.establish(config);
        window
    }

    /// Adopts what the two ends agreed on.
    pub(super) fn establish(&mut self, agreed: &EndpointConfig) {
        let BufferConfig { initial, max, tuned } = agreed.receive_buffer;
        self.scale = window_scale(agreed);
        self.max = max.min(u64::from(u16::MAX) << self.scale);
        // Less than one unit of the scale would read as a closed window.
        let initial = initial.max(1 << self.scale).min(self.max);
        // A SYN advertises at most 65,535 bytes (RFC 7323 2.2); more of a larger buffer is offered
        // gradually.
        self.offered = if tuned { initial.min(u64::from(u16::MAX)) } else { initial };
        self.size = if tuned { initial } else { self.max };
        self.counts_above = initial < self.max;
        self.tuning = (self.size < self.max).then(|| Tuning::new(self.size, agreed));
    }

    /// Whether the whole buffer is on offer, does not grow, and is read at once.
    pub(super) fn is_fixed(&self) -> bool {
        self.tuning.is_none() && self.offered >= self.size && self.is_read_at_once()
    }

    /// Whether data in order is read at once.
    pub(super) const fn is_read_at_once(&self) -> bool {
        matches!(self.reader, Reader::AtOnce)
    }

    /// The round trip as estimated by right-sizing.
    pub(super) fn rtt(&self) -> Option<Duration> {
        self.tuning.as_ref()?.rtt
    }

    /// Window scale to offer in a SYN (RFC 7323 2.3).
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
        self.told = u64::from(self.of_syn());
        self.edge = nxt + self.told;
        if let Some(tuning) = &mut self.tuning {
            tuning.begin(now, nxt, self.edge);
        }
    }

    /// The handshake is complete: reading counts from here.
    pub(super) fn on_established(&mut self, now: Instant) {
        if let Some(tuning) = &mut self.tuning {
            tuning.round.0 = now;
        }
    }

    /// First byte that is not accepted.
    #[inline]
    pub(super) fn edge(&self) -> u64 {
        self.edge
    }

    /// Bytes on offer when nothing is unread.
    pub(super) fn offered(&self) -> u64 {
        self.offered
    }

    /// Bytes before `nxt` that the application has not read.
    pub(super) fn unread(&self, nxt: u64) -> u64 {
        nxt.saturating_sub(self.read)
    }

    /// A segment, full-sized or not, arrived in order and advanced the stream to `nxt`; `left`: it
    /// filled a gap, above which this much remains (see [`note_above`](Self::note_above)). Returns
    /// whether the window on offer grew.
    #[inline(always)]
    pub(super) fn on_segment(
        &mut self,
        now: Instant,
        segment: &Segment,
        full: bool,
        nxt: u64,
        left: Option<(u64, u64)>,
    ) -> bool {
        // Data that waited above the gap is read after the segment that filled it.
        let first = nxt.min(segment.seq + u64::from(segment.len));
        let unread = self.waiting(first);
        if let Some(tuning) = &mut self.tuning {
            let idle = unread <= u64::from(segment.len);
            tuning.measure(now, segment, full, (nxt, self.edge), idle);
        }
        // Seen with Linux 6.18: the segment itself uses up room in which the window may grow; above
        // a gap it does not. Data above a gap that it fills still does.
        let grew = full && self.grow(segment.len, unread.max(u64::from(segment.len)));
        if let Some((above, reach)) = left {
            self.note_above(above, reach);
        }
        if let Reader::AtOnce = self.reader {
            if first < nxt {
                self.resize(now, first, nxt - first);
            }
        } else if let Reader::After { delay, waking } = &mut self.reader {
            match waking {
                None => *waking = Some(Waking { at: now + *delay, first, open: true }),
                Some(waking) if waking.open => waking.first = first,
                Some(_) => {}
            }
        }
        grew
    }

    /// `bytes` wait above a gap, and reach `reach` bytes beyond the next one expected. Seen with
    /// Linux 6.18 (24 Mb/s, 50 ms, a loss of 10 %): they use up the room below the gap, so that
    /// neither the right edge moves nor the window on offer grows once they fill the rest of the
    /// buffer.
    #[inline]
    pub(super) fn note_above(&mut self, bytes: u64, reach: u64) {
        if self.counts_above {
            self.above = bytes;
        }
        if let Some(tuning) = &mut self.tuning {
            self.size = tuning.reach(reach).clamp(self.size, self.max);
        }
    }

    /// A full-sized segment arrived above a gap at `nxt`. Returns whether the window on offer grew.
    #[inline]
    pub(super) fn on_segment_above(&mut self, now: Instant, segment: &Segment, nxt: u64) -> bool {
        let unread = self.waiting(nxt);
        if let Some(tuning) = &mut self.tuning {
            tuning.measure_above(now, segment, unread == 0);
        }
        self.grow(segment.len, unread)
    }

    /// Whether the window would be smaller than advertised while `unread` bytes wait for the
    /// reader.
    pub(super) fn shrinks_by(&self, unread: u64) -> bool {
        let room = self.size.saturating_sub(unread + self.above);
        room.min(self.offered) < self.told
    }

    /// Bytes before `nxt` that wait for a reader.
    #[inline]
    fn waiting(&self, nxt: u64) -> u64 {
        if let Reader::AtOnce = self.reader { 0 } else { self.unread(nxt) }
    }

    /// Grows Linux's rcv_ssthresh: faster than any slow start, which grows by what is acknowledged.
    #[inline]
    fn grow(&mut self, len: u32, unread: u64) -> bool {
        let free = self.size.saturating_sub(unread + self.above);
        let grows = self.offered < free;
        if grows {
            self.offered = (self.offered + 2 * u64::from(len)).min(free);
        }
        grows
    }

    /// Advances the reader to `now`, in a stream that reaches to `nxt`. Returns whether a reader
    /// that had to be woken has read.
    #[inline(always)]
    pub(super) fn advance(&mut self, now: Instant, nxt: u64) -> bool {
        match self.reader {
            Reader::AtOnce | Reader::Driver => false,
            Reader::After { .. } | Reader::Rate { .. } => self.advance_reader(now, nxt),
        }
    }

    fn advance_reader(&mut self, now: Instant, nxt: u64) -> bool {
        match &mut self.reader {
            Reader::AtOnce | Reader::Driver => false,
            Reader::After { waking, .. } => {
                let Some(woken) = waking.take_if(|waking| waking.at <= now) else { return false };
                self.resize(now, woken.first, nxt - woken.first);
                self.read_to(now, nxt);
                true
            }
            Reader::Rate { .. } => {
                self.read_on(now, nxt);
                false
            }
        }
    }

    /// Delivers what has arrived; what arrives from now on is delivered separately. Returns whether
    /// the application has read it.
    #[inline]
    pub(super) fn hand_up(&mut self, now: Instant, nxt: u64) -> bool {
        if let Reader::AtOnce = self.reader {
            self.read_to(now, nxt);
            return true;
        }
        if let Reader::After { waking: Some(waking), .. } = &mut self.reader {
            waking.open = false;
        }
        false
    }

    /// Whether unread data would make the window smaller than advertised, but a reader is being
    /// woken. Seen with Linux 6.18: the reader then sends the acknowledgement.
    #[inline]
    pub(super) fn waits_for_reader(&self, nxt: u64) -> bool {
        let wakes = matches!(self.reader, Reader::After { waking: Some(_), .. });
        wakes && self.target(nxt) < nxt + self.told
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
        self.resize(now, self.read, 0);
    }

    /// Everything up to `nxt` arrived in order and is read, from a buffer that [is
    /// fixed](Self::is_fixed).
    #[inline]
    pub(super) fn read_at_once(&mut self, nxt: u64) {
        self.read = nxt;
    }

    /// A full segment, the next one of a stream without a gap, arrived and is [read at
    /// once](Self::is_read_at_once). Returns whether the window on offer grew.
    #[inline]
    pub(super) fn read_next(&mut self, now: Instant, segment: &Segment) -> bool {
        let nxt = segment.seq + u64::from(segment.len);
        if let Some(tuning) = &mut self.tuning {
            tuning.measure(now, segment, true, (nxt, self.edge), true);
        }
        let grew = self.grow(segment.len, u64::from(segment.len));
        self.read = nxt;
        self.resize(now, nxt, 0);
        grew
    }

    /// The application has read up to `read`, and `unread` bytes are left.
    #[inline]
    fn resize(&mut self, now: Instant, read: u64, unread: u64) {
        if let Some(tuning) = &mut self.tuning {
            let size = tuning.size(now, read, unread, self.mss);
            if size > self.size {
                self.size = size.min(self.max);
            }
        }
    }

    /// Where the right edge could be: unread data and data above a gap use up room in the buffer,
    /// not the window on offer.
    #[inline]
    fn target(&self, nxt: u64) -> u64 {
        (self.read + self.size).saturating_sub(self.above).min(nxt + self.offered)
    }

    /// RFC 9293 3.8.6.2.2: the smallest step of the right edge, at least one unit of the window
    /// field.
    #[inline]
    fn step(&self) -> u64 {
        u64::from(self.mss).min(self.offered / 2).max(1 << self.scale)
    }

    /// Whether reading has made enough room to justify a window update: the peer's window would at
    /// least double, as in Linux.
    pub(super) fn update_is_due(&self, nxt: u64) -> bool {
        self.update_due_in(nxt) == 0
    }

    /// Bytes still to be read until an update is due.
    fn update_due_in(&self, nxt: u64) -> u64 {
        let known = self.edge.saturating_sub(nxt);
        let target = (self.edge + self.step()).max(nxt + 2 * known);
        target.saturating_sub(self.target(nxt))
    }

    /// Whether the peer knows of no room for a full segment although there is some.
    #[inline(always)]
    pub(super) fn is_starving(&self, nxt: u64, full: u32) -> bool {
        self.edge < nxt + u64::from(full) && self.target(nxt) >= self.edge + self.step()
    }

    /// When reading makes an update due.
    #[inline]
    pub(super) fn timer(&self, nxt: u64) -> Option<Instant> {
        let (rate, at, carried) = match self.reader {
            Reader::AtOnce | Reader::Driver => return None,
            Reader::After { waking, .. } => return waking.map(|waking| waking.at),
            Reader::Rate { rate, at, carried } => (rate, at, carried),
        };
        let bytes = self.update_due_in(nxt).max(1);
        if bytes > self.unread(nxt) {
            return None;
        }
        let work = u128::from(bytes) * BYTE - u128::from(carried);
        Some(at + Duration::from_nanos(work.div_ceil(u128::from(rate.bps())) as u64))
    }

    /// Whether nobody reads until something arrives or the driver reads: the window stays as it is.
    #[inline]
    pub(super) const fn rests(&self) -> bool {
        match &self.reader {
            Reader::AtOnce | Reader::Driver => true,
            Reader::After { waking, .. } => waking.is_none(),
            Reader::Rate { .. } => false,
        }
    }

    /// The window field of an acknowledgement of `nxt`. The right edge never moves left (RFC 9293
    /// 3.8.6).
    #[inline]
    pub(super) fn advertise(&mut self, nxt: u64) -> u16 {
        let unit = (1 << self.scale) - 1;
        let kept = (self.edge.saturating_sub(nxt) + unit) >> self.scale;
        let target = self.target(nxt);
        let moves = target >= self.edge + self.step();
        let room = if moves { target.saturating_sub(nxt) >> self.scale } else { 0 };
        let window = room.max(kept).min(u64::from(u16::MAX));
        self.told = window << self.scale;
        self.edge = self.edge.max(nxt + self.told);
        window as u16
    }
}

/// One byte in the units of [`Reader::Rate`].
const BYTE: u128 = 8_000_000_000;

/// Dynamic right-sizing: M. Fisk and W. Feng, "Dynamic Right-Sizing in TCP", 2001. The buffer
/// should hold twice what the application reads in a round trip, so that it never limits the
/// sender; the allowances on top of that are Linux's (`tcp_moderate_rcvbuf`).
#[derive(Debug)]
struct Tuning {
    rule: RightSizing,
    timestamps: bool,
    /// Round trip as the receiver measures it.
    rtt: Option<Duration>,
    /// Timestamp echoed last, in its unit: the first segment that echoes a different one gives a
    /// measurement.
    echo: Option<u32>,
    /// Without timestamps: a right edge and when it was set.
    edge: (u64, Instant),
    /// When the round began, and what had been read by then.
    round: (Instant, u64),
    /// Bytes read in the largest round.
    copied: u64,
    /// How far data above a gap reaches beyond the next byte expected.
    reach: u64,
}

/// One tick of Linux's timestamp clock, in microseconds.
const TICK_US: u32 = 1000;

/// Room for a sender in its start, in segments.
const START_SEGMENTS: u64 = 16;

impl Tuning {
    fn new(initial: u64, config: &EndpointConfig) -> Self {
        let start = u64::from(config.initial_window) * u64::from(config.mss);
        Self {
            rule: config.right_sizing,
            timestamps: config.timestamps,
            rtt: None,
            echo: None,
            edge: (0, Instant::ZERO),
            round: (Instant::ZERO, 0),
            copied: start.min(initial).max(1),
            reach: 0,
        }
    }

    fn begin(&mut self, now: Instant, nxt: u64, edge: u64) {
        self.edge = (edge, now);
        self.round = (now, nxt);
    }

    /// Measures the round trip from a segment in order that advanced the stream to `nxt`, while
    /// `edge` was the right edge; `idle`: nothing before it is unread.
    fn measure(
        &mut self,
        now: Instant,
        segment: &Segment,
        full: bool,
        (nxt, edge): (u64, u64),
        idle: bool,
    ) {
        if self.timestamps {
            let Some(echo) = segment.echo().filter(|_| full) else { return };
            match self.rule {
                RightSizing::Linux4_19 => self.take_echo(now, echo),
                RightSizing::Linux6_16 => self.take_ticks(now, echo, idle),
            }
        } else if nxt >= self.edge.0 {
            // A sender that did not fill the window took longer: the shortest time counts.
            let sample = now - self.edge.1;
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt.min(sample)));
            self.edge = (edge.max(nxt), now);
        }
    }

    /// Measures the round trip from a segment above a gap. Seen with Linux 6.18: right-sizing's
    /// estimate follows the queue during a recovery, too.
    fn measure_above(&mut self, now: Instant, segment: &Segment, idle: bool) {
        if self.timestamps
            && self.rule == RightSizing::Linux6_16
            && let Some(echo) = segment.echo()
        {
            self.take_ticks(now, echo, idle);
        }
    }

    fn take_echo(&mut self, now: Instant, echo: u32) {
        if self.echo == Some(echo) {
            return;
        }
        self.echo = Some(echo);
        let elapsed = timestamp(now).wrapping_sub(echo);
        self.smooth(Duration::from_micros(u64::from(elapsed)));
    }

    /// Takes a sample in ticks: Linux's timestamp clock ticks each millisecond. Seen with 6.18
    /// (tracepoint `tcp:tcp_rcvbuf_grow`): a shorter time takes effect at once; a longer one is
    /// smoothed, and not used while something is unread.
    fn take_ticks(&mut self, now: Instant, echo: u32, idle: bool) {
        let tick = echo / TICK_US;
        if self.echo == Some(tick) {
            return;
        }
        self.echo = Some(tick);
        let ticks = (timestamp(now) / TICK_US).wrapping_sub(tick);
        let sample = Duration::from_micros(u64::from(ticks) * u64::from(TICK_US));
        if sample.as_nanos() == 0 {
            return;
        }
        if self.rtt.is_none_or(|rtt| sample < rtt) {
            self.rtt = Some(sample);
        } else if idle {
            self.smooth(sample);
        }
    }

    /// RFC 6298 (2.3).
    fn smooth(&mut self, sample: Duration) {
        self.rtt = Some(self.rtt.map_or(sample, |rtt| (rtt * 7 + sample) / 8));
    }

    /// Data above a gap reaches this far: returns the size that the buffer should have. Seen with
    /// Linux 6.18 (tracepoint `tcp:tcp_rcvbuf_grow`): room for it is added, at once and when a
    /// round ends.
    fn reach(&mut self, reach: u64) -> u64 {
        if self.rule == RightSizing::Linux4_19 {
            return 0;
        }
        self.reach = reach;
        if reach == 0 { 0 } else { 2 * self.copied + reach }
    }

    /// The application has read up to `read`, and `unread` bytes are left: returns the size that
    /// the buffer should have.
    fn size(&mut self, now: Instant, read: u64, unread: u64, mss: u32) -> u64 {
        let (begun, before) = self.round;
        let Some(rtt) = self.rtt else { return 0 };
        // Times of whole slots are sometimes equal. Seen with Linux 6.18 over LTE: a reader is
        // woken some microseconds later for data after a silence, so that 49 ms were 48.988.
        let over = match self.rule {
            RightSizing::Linux4_19 => now - begun >= rtt,
            RightSizing::Linux6_16 => now - begun > rtt,
        };
        if !over {
            return 0;
        }
        self.round = (now, read);
        let (unread, room) = match self.rule {
            RightSizing::Linux4_19 => (0, START_SEGMENTS * u64::from(mss)),
            RightSizing::Linux6_16 => (unread, 0),
        };
        let (copied, last) = ((read - before).saturating_sub(unread), self.copied);
        if copied <= last {
            return 0;
        }
        self.copied = copied;
        // What is read in this round was sent a round ago, and the window advertised now is used in
        // the next one: growth continues in the meantime.
        let steady = 2 * copied + room;
        let grown = steady.saturating_add(steady.saturating_mul(2 * (copied - last)) / last);
        grown.saturating_add(self.reach)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::AFTER_TICK;

    #[test]
    fn sizes_are_those_of_linux_6_18() {
        // Tracepoint tcp:tcp_rcvbuf_grow of 6.18.44: bytes copied less unread ones, those of the
        // largest previous round, and the resulting window_clamp. The kernel converts it to memory
        // and back, which loses some bytes.
        let seen = [
            (31_856, 0, 14_480, 0, 216_619),
            (57_920, 2_896, 17_376, 0, 586_921),
            (214_304, 0, 76_304, 0, 1_978_929),
            // With data above a gap that reaches this far (seed 7112).
            (28_960, 1_448, 18_824, 73_848, 179_661),
            (70_952, 0, 27_512, 4_344, 594_363),
        ];
        for (read, unread, copied, reach, clamp) in seen {
            let config = EndpointConfig {
                right_sizing: RightSizing::Linux6_16,
                ..EndpointConfig::default()
            };
            let mut tuning = Tuning::new(81_920, &config);
            (tuning.copied, tuning.rtt) = (copied, Some(Duration::from_millis(40)));
            tuning.reach(reach);
            let at = Instant::ZERO + Duration::from_millis(40);
            assert_eq!(tuning.size(at, read, unread, 1448), 0, "the round trip is just over");
            let size = tuning.size(at + Duration::from_micros(1), read, unread, 1448);
            assert!(size.abs_diff(clamp) <= 8, "{size} for {clamp}");
        }
    }

    /// Seen with Linux 6.18 at 6.8 Mb/s and 85 ms, one segment each 1.77 ms (seed 4802 of `make
    /// twin-kept`, tracepoint `tcp:tcp_rcvbuf_grow`): a round was over after 87.338 ms where the
    /// estimate was 87 ms, and after 89.141 where it was 88.125. The window then grows a segment
    /// later, and so does the run of single acknowledgements that HyStart takes for a train: slow
    /// start ended at 66, 105 or 170 segments.
    #[test]
    fn the_phase_of_a_millisecond_decides_which_segment_ends_a_round() {
        let us = Duration::from_micros;
        let (path, next) = (us(87_340), us(1_770));
        let ends = |phase: Duration| {
            let config = EndpointConfig {
                right_sizing: RightSizing::Linux6_16,
                ..EndpointConfig::default()
            };
            let sent = Instant::ZERO + (us(1_000_000) - AFTER_TICK) + phase;
            let begun = sent + path;
            [path, path + next].map(|after| {
                let mut tuning = Tuning::new(81_920, &config);
                tuning.take_ticks(begun, timestamp(sent), true);
                tuning.begin(begun, 0, 0);
                tuning.size(begun + after, 28_960, 0, 1448) > 0
            })
        };
        assert_eq!(ends(us(600)), [true, true], "87 whole milliseconds");
        assert_eq!(ends(us(700)), [false, true], "88");
    }

    #[test]
    fn what_reaches_far_above_a_gap_has_room_at_once() {
        // 53 segments, after 13 in the largest round: window_clamp 114,391 in 6.18.44.
        let of_rule = |rule| {
            let config = EndpointConfig { right_sizing: rule, ..EndpointConfig::default() };
            let mut tuning = Tuning::new(81_920, &config);
            tuning.copied = 13 * 1448;
            [tuning.reach(53 * 1448), tuning.reach(0)]
        };
        let [size, without] = of_rule(RightSizing::Linux6_16);
        assert!(size.abs_diff(114_391) <= 8, "{size}");
        assert_eq!(without, 0);
        assert_eq!(of_rule(RightSizing::Linux4_19), [0, 0]);
    }

    #[test]
    fn what_waits_above_a_gap_still_takes_room_of_what_fills_it() {
        // Linux 6.18, a BBR upload at 2.3 Mb/s and 75 ms (seed 7104): the acknowledgement of the
        // filled gap advertised 130,048 bytes, that of the next segment, sent at once, 151,552.
        let receive_buffer = BufferConfig { initial: 80_000, max: 4_000_000, tuned: true };
        let mut window = ReceiveWindow::new(&EndpointConfig {
            mss: 1000,
            receive_buffer,
            ..EndpointConfig::default()
        });
        let segment = |seq| Segment { seq, len: 1000, ..Segment::BLANK };
        window.begin(Instant::ZERO, 1);
        window.note_above(20_000, 21_000);
        assert!(!window.on_segment(Instant::ZERO, &segment(1), true, 22_001, Some((0, 0))));
        assert!(window.on_segment(Instant::ZERO, &segment(22_001), true, 23_001, None));
    }
}
