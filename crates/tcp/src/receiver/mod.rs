//! The receiving half of an endpoint: reassembly, acknowledgements, window, congestion echo.

mod compress;
mod delay;
mod ecn;
mod fast_path;
mod reassembly;
mod window;

pub use ecn::CeCounters;
pub(crate) use window::MAX_WINDOW_SCALE;

use airpath_base::{Duration, Ecn, Flags, Instant, SackBlocks, Segment, is_planted};

use crate::{EcnConfig, EndpointConfig, RttEstimator};
use compress::Compression;
use delay::{Delay, Part, Room, Waiting};
use ecn::{Change, Echo};
pub(crate) use fast_path::Repeated;
use reassembly::{Arrival, Reassembly};
use window::ReceiveWindow;

/// Receives a stream and decides when to acknowledge.
#[derive(Debug)]
pub(crate) struct Receiver {
    mss: u32,
    /// Payload of the peer's full-sized segments, as seen so far.
    full: u32,
    sack: bool,
    timestamps: bool,
    /// Data in order is read at once, and affects only what is acknowledged, and when.
    plain: bool,
    /// Data in order is delivered segment by segment and read at once, and no congestion is echoed.
    alone: bool,
    reassembly: Reassembly,
    delay: Delay,
    compression: Compression,
    window: ReceiveWindow,
    echo: Echo,
    /// Timestamp to echo (RFC 7323 4.3, TS.Recent).
    ts_recent: u32,
    ts_recent_at: Instant,
    /// RCV.NXT in the last acknowledgement sent (Last.ACK.sent).
    last_ack_sent: u64,
    fin_at: Option<u64>,
    pub(crate) acks_sent: u64,
}

/// Payload assumed for a full-sized segment until a larger one is seen (RFC 9293 3.7.1).
const SMALLEST_FULL: u32 = 536;

/// Acknowledgements sent without delay after a CE mark: as in Linux.
const QUICK_AFTER_CE: u32 = 2;

impl Receiver {
    pub(crate) fn new(config: &EndpointConfig) -> Self {
        Self {
            mss: config.mss,
            full: config.mss.min(SMALLEST_FULL),
            sack: config.sack,
            timestamps: config.timestamps,
            plain: false,
            alone: false,
            reassembly: Reassembly::new(),
            delay: Delay::new(config),
            compression: Compression::new(config.sack_compression),
            window: ReceiveWindow::new(config),
            echo: Echo::new(),
            ts_recent: 0,
            ts_recent_at: Instant::ZERO,
            last_ack_sent: 0,
            fin_at: None,
            acks_sent: 0,
        }
    }

    /// Adopts what the two ends agreed on.
    pub(crate) fn establish(&mut self, agreed: &EndpointConfig) {
        self.sack = agreed.sack;
        self.timestamps = agreed.timestamps;
        self.reassembly.dsack = agreed.sack && agreed.dsack;
        self.window.establish(agreed);
        let echoes = agreed.ecn == EcnConfig::Classic;
        self.echo.enable(echoes);
        self.choose_fast_paths(echoes);
    }

    /// The SYN arrived.
    pub(crate) fn on_syn(&mut self, now: Instant, segment: &Segment) {
        self.reassembly.nxt = segment.end();
        self.window.begin(now, segment.end());
        if let Some(timestamps) = segment.timestamps.filter(|_| self.timestamps) {
            self.ts_recent = timestamps.value;
            self.ts_recent_at = now;
        }
    }

    /// The handshake is complete.
    pub(crate) fn on_established(&mut self, now: Instant) {
        self.window.on_established(now);
    }

    /// Window scale to offer in a SYN (RFC 7323 2.3).
    pub(crate) fn scale(&self) -> u8 {
        self.window.scale()
    }

    /// Window field of a SYN.
    pub(crate) fn syn_window(&self) -> u16 {
        self.window.of_syn()
    }

    /// Payload bytes delivered in order.
    pub(crate) fn delivered(&self) -> u64 {
        let fin = u64::from(self.is_closed());
        self.reassembly.nxt.saturating_sub(1 + fin)
    }

    /// Payload bytes delivered in order that the application has not read.
    pub(crate) fn unread(&self) -> u64 {
        self.window.unread(self.reassembly.nxt - u64::from(self.is_closed()))
    }

    /// Counters of packets that arrived with the CE mark.
    pub(crate) fn ce_counters(&self) -> CeCounters {
        self.echo.counters
    }

    /// Whether the end of the stream has been reached.
    pub(crate) fn is_closed(&self) -> bool {
        self.fin_at.is_some_and(|fin| self.reassembly.nxt > fin)
    }

    /// A segment that occupies sequence space arrived in a packet with this codepoint.
    #[inline(always)]
    pub(crate) fn on_data(
        &mut self,
        now: Instant,
        segment: &Segment,
        ecn: Ecn,
        rtt: &RttEstimator,
    ) {
        if self.alone && self.expects(segment, ecn) {
            self.on_expected(now, segment, rtt);
        } else {
            self.on_any_data(now, segment, ecn, rtt);
        }
    }

    /// Processes any segment that occupies sequence space, by all the rules.
    #[inline(never)]
    fn on_any_data(&mut self, now: Instant, segment: &Segment, ecn: Ecn, rtt: &RttEstimator) {
        let nxt = self.reassembly.nxt;
        if self.window.advance(now, nxt) {
            self.acknowledge_read();
        }
        self.echo.count(segment, ecn);
        // RFC 9293 3.10.7.4: what lies beyond the window is cut off; a FIN needs no window.
        let limit = self.window.edge();
        let data_end = segment.seq + u64::from(segment.len);
        let start = segment.seq;
        let end = if data_end > limit { limit } else { segment.end() };
        self.note_timestamp(now, segment);
        if end <= start || start >= limit && start > nxt {
            // Beyond the window: say what is expected (RFC 9293 3.10.7.4).
            self.repeat_at_once();
            return;
        }
        if end > data_end {
            self.fin_at = Some(data_end);
        }
        self.full = self.full.max(segment.len.min(self.mss));
        let arrival = self.reassembly.accept(start, end);
        if matches!(arrival, Arrival::InOrder | Arrival::FillsGap) {
            self.delay.note_arrival(now, self.room(), rtt);
        }
        if arrival != Arrival::Duplicate {
            self.note_congestion(segment, ecn);
        }
        if arrival == Arrival::Duplicate {
            self.repeat_at_once();
        } else {
            self.on_new(now, segment, arrival, rtt);
        }
        if is_planted("acknowledge all data at once") {
            self.delay.at_once();
        }
    }

    /// A segment brought new data: it is delivered now, or together with what follows.
    #[inline]
    fn on_new(&mut self, now: Instant, segment: &Segment, arrival: Arrival, rtt: &RttEstimator) {
        if let Some(held) = self.delay.interrupt(segment.seq, self.full) {
            self.hand_up(now, held, rtt);
        }
        if arrival == Arrival::OutOfOrder {
            self.note_above(now, segment);
        } else {
            self.read(now, segment, arrival == Arrival::FillsGap);
        }
        if arrival == Arrival::FillsGap || self.is_closed() {
            // Data that waited above the gap was delivered before.
            self.window.hand_up(now, self.reassembly.nxt);
        }
        if self.is_closed() {
            self.delay.at_once();
            return;
        }
        let Segment { seq, len, .. } = *segment;
        let push = segment.flags.has(Flags::PSH);
        let part = Part { seq, len, full: self.full, push, arrival };
        match self.delay.hold(now, part) {
            Some(Arrival::InOrder) => self.hand_up_in_order(now, rtt),
            Some(arrival) => self.hand_up(now, arrival, rtt),
            None => {}
        }
    }

    /// Delivers data that arrived together to TCP, and what is in order to the application.
    #[inline(never)]
    fn hand_up(&mut self, now: Instant, arrival: Arrival, rtt: &RttEstimator) {
        match arrival {
            Arrival::InOrder => self.hand_up_in_order(now, rtt),
            // RFC 5681 4.2: at once when a gap is filled, wholly or in part.
            Arrival::FillsGap => {
                self.count_filled();
                self.delay.at_once();
            }
            // RFC 5681 4.2: at once, so that the sender sees duplicates.
            Arrival::OutOfOrder | Arrival::Duplicate => {
                let (nxt, shortest) = (self.reassembly.nxt, self.rtt(rtt));
                let at_once = !self.sack || self.delay.is_quick();
                let crowded = self.reassembly.is_crowded();
                if at_once || self.compression.admits(now, nxt, shortest, crowded) {
                    self.delay.at_once();
                }
            }
        }
    }

    /// Seen with Linux 6.18: while a gap remains, the acknowledgement that moves RCV.NXT is the
    /// first of the three that are sent at once, unless another rule asks for it.
    #[cold]
    fn count_filled(&mut self) {
        let nxt = self.reassembly.nxt;
        let new = nxt - self.last_ack_sent;
        let due = new > u64::from(self.full) && !self.window.shrinks_by(new);
        if self.sack && self.reassembly.above() > 0 && !due && !self.delay.is_quick() {
            self.compression.counts(nxt);
        }
    }

    #[inline(always)]
    fn hand_up_in_order(&mut self, now: Instant, rtt: &RttEstimator) {
        let has_read = self.window.hand_up(now, self.reassembly.nxt);
        self.delay.decide(now, self.waiting(), rtt);
        if has_read && self.delay.is_pushed_at_once() {
            self.delay.at_once();
        }
    }

    /// Updates the window for data that arrived in order, which may fill a gap.
    #[inline(always)]
    fn read(&mut self, now: Instant, segment: &Segment, fills: bool) {
        let full = segment.len >= self.full;
        let left = fills.then(|| (self.reassembly.above(), self.reassembly.reach()));
        if self.window.on_segment(now, segment, full, self.reassembly.nxt, left) {
            // Seen with Linux 6.18: every segment is acknowledged while the window grows, and the
            // initial quick acknowledgements come after that.
            self.delay.quicken_once();
        }
    }

    /// Linux lets the window grow for data above a gap, too, and acknowledges at once while it
    /// does. Without SACK it does not: an acknowledgement with a different window is not a
    /// duplicate.
    #[cold]
    fn note_above(&mut self, now: Instant, segment: &Segment) {
        let grows = self.sack && segment.len >= self.full;
        if grows && self.window.on_segment_above(now, segment, self.reassembly.nxt) {
            self.delay.quicken_once();
        }
        self.window.note_above(self.reassembly.above(), self.reassembly.reach());
    }

    /// An acknowledgement may have been lost: several are sent without delay, as in Linux.
    #[cold]
    fn repeat_at_once(&mut self) {
        self.delay.at_once();
        self.delay.quicken(u32::MAX, self.room());
    }

    #[inline]
    fn note_congestion(&mut self, segment: &Segment, ecn: Ecn) {
        match self.echo.on_segment(segment, ecn) {
            Change::None => {}
            Change::Ended => self.delay.at_once(),
            Change::Began => {
                self.delay.at_once();
                self.delay.quicken(QUICK_AFTER_CE, self.room());
            }
        }
    }

    #[inline(always)]
    fn waiting(&self) -> Waiting {
        let nxt = self.reassembly.nxt;
        Waiting {
            bytes: nxt - self.last_ack_sent,
            full: self.full,
            starved: self.window.is_starving(nxt, self.full),
            unread: self.window.waits_for_reader(nxt),
        }
    }

    /// The shortest round trip known: the receiver's own estimate, or that of the sender at this
    /// end.
    fn rtt(&self, estimator: &RttEstimator) -> Option<Duration> {
        [self.window.rtt(), estimator.srtt()].into_iter().flatten().min()
    }

    #[inline]
    fn room(&self) -> Room {
        Room { bytes: self.window.offered(), full: self.full }
    }

    /// RFC 7323 4.3 (2), for every segment, with or without data; the comparison is modulo 2^32.
    /// 5.5: not with a value that the clock has outrun.
    #[inline(always)]
    pub(crate) fn note_timestamp(&mut self, now: Instant, segment: &Segment) {
        let Some(timestamps) = segment.timestamps.filter(|_| self.timestamps) else { return };
        if segment.seq > self.last_ack_sent {
            return;
        }
        let outdated = now.saturating_since(self.ts_recent_at) > TIMESTAMP_HORIZON;
        if outdated || timestamps.value.wrapping_sub(self.ts_recent) as i32 >= 0 {
            self.ts_recent = timestamps.value;
            self.ts_recent_at = now;
        }
    }

    /// The driver's application reads up to `bytes`.
    pub(crate) fn take(&mut self, now: Instant, bytes: u64) {
        let before = self.unread();
        self.window.advance(now, self.reassembly.nxt);
        self.window.take(now, bytes, self.reassembly.nxt);
        self.announce(before);
    }

    /// RFC 9293 3.8.6.2.2: advertises the room that reading has made since `before` bytes were
    /// unread, if it is large enough.
    fn announce(&mut self, before: u64) {
        let read = self.unread() < before && !self.is_closed();
        if read && self.window.update_is_due(self.reassembly.nxt) {
            self.delay.at_once();
        }
    }

    /// A woken application has read everything.
    fn acknowledge_read(&mut self) {
        let waiting = self.reassembly.nxt - self.last_ack_sent;
        if waiting > u64::from(self.full) || waiting > 0 && self.delay.is_pushed() {
            self.delay.at_once();
        }
    }

    #[inline(always)]
    pub(crate) fn timer(&self) -> Option<Instant> {
        if self.delay.is_due() {
            return None;
        }
        let update = match self.is_closed() {
            true => None,
            false => self.window.timer(self.reassembly.nxt),
        };
        let first = match (self.delay.timer(), update) {
            (Some(first), Some(second)) => Some(first.min(second)),
            (first, second) => first.or(second),
        };
        match self.compression.timer() {
            None => first,
            Some(at) => Some(first.map_or(at, |first| first.min(at))),
        }
    }

    pub(crate) fn on_timer(&mut self, now: Instant, rtt: &RttEstimator) {
        let before = self.unread();
        if self.window.advance(now, self.reassembly.nxt) {
            self.acknowledge_read();
        }
        self.announce(before);
        self.delay.on_timer(now, rtt);
        if self.compression.timer().is_some_and(|at| at <= now) {
            self.delay.at_once();
        }
        if let Some(arrival) = self.delay.release(now, self.full) {
            self.hand_up(now, arrival, rtt);
        }
    }

    /// Whether an acknowledgement must be sent now.
    #[inline]
    pub(crate) fn wants_ack(&self) -> bool {
        self.delay.is_due()
    }

    /// Requests an acknowledgement.
    pub(crate) fn request_ack(&mut self) {
        self.delay.at_once();
    }

    /// Acknowledges what has arrived. Also returns what is known of the next acknowledgement.
    #[inline]
    pub(crate) fn acknowledge(&mut self, now: Instant) -> (Repeated, Option<Repeated>) {
        let nxt = self.reassembly.nxt;
        if self.plain {
            self.delay.end();
        } else {
            self.window.advance(now, nxt);
            if self.delay.is_aggregating() {
                self.window.hand_up(now, nxt);
            }
            self.delay.on_sent();
        }
        self.compression.on_sent();
        self.last_ack_sent = nxt;
        let told = Repeated { window: self.window.advertise(nxt), flags: self.echo.flags() };
        let rests = self.plain || self.delay.rests() && self.window.rests();
        (told, rests.then_some(told))
    }

    /// Next byte expected (RCV.NXT).
    #[inline(always)]
    pub(crate) fn next(&self) -> u64 {
        self.reassembly.nxt
    }

    /// Timestamp to echo (RFC 7323 4.3, TS.Recent).
    #[inline(always)]
    pub(crate) fn echo(&self) -> u32 {
        self.ts_recent
    }

    /// Whether there is something to report in SACK blocks.
    #[inline]
    pub(crate) fn has_blocks(&self) -> bool {
        self.sack && self.reassembly.has_blocks()
    }

    /// The SACK blocks of the next segment.
    pub(crate) fn take_blocks(&mut self) -> SackBlocks {
        self.reassembly.take_blocks()
    }

    /// Fills in the acknowledgement of a SYN+ACK, whose window is not scaled and holds nothing yet.
    pub(crate) fn fill_syn_ack(&mut self, segment: &mut Segment) {
        segment.flags = segment.flags.with(Flags::ACK);
        segment.ack = self.reassembly.nxt;
        if let Some(timestamps) = &mut segment.timestamps {
            timestamps.echo = Some(self.ts_recent);
        }
        self.last_ack_sent = self.reassembly.nxt;
        self.acks_sent += 1;
    }
}

/// Half of the range of a timestamp in microseconds: an older one compares the wrong way.
const TIMESTAMP_HORIZON: Duration = Duration::from_micros(1 << 31);
