//! Sequence numbers of datagrams: which are missing, late or duplicated, and how regularly they
//! arrive.
//!
//! iperf3 puts its time and a number in front of each datagram; RTP has a header of its own (RFC
//! 3550 5.1). Datagrams of iperf 2 and SRT begin with a 32-bit number, and so do those of airpath's
//! emulated streams. The kind shows after a few datagrams: numbers, and times where there are any,
//! advance.

use airpath_base::{Duration, Instant};

use super::report::SequenceReport;

/// The kind must be known after this many datagrams.
const PROBATION: u64 = 8;
/// Two consecutive datagrams may be at most this many numbers apart to count as a sequence.
const MOST_APART: u64 = 10_000;
/// A bare number may be at most this far behind the highest one: bytes that are no sequence number
/// go back as far as forward.
const MOST_BEHIND: u64 = 64;
/// Clock rates of RTP payload formats, in Hz; a clock is known only if it is within 2 % of one of
/// them.
const CLOCKS: [u32; 8] = [8000, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000, 90_000];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Iperf3,
    Iperf3Wide,
    Rtp,
    /// A 32-bit number comes first, and what follows it is unknown.
    Number,
}

/// The fields of a datagram's header.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    number: u64,
    /// The sender's time: nanoseconds, or ticks of RTP's clock.
    time: u64,
    /// A field that must not change from one datagram to the next.
    source: u32,
}

/// The datagrams of one sender, read with each kind of header.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    candidates: Vec<Meter>,
    packets: u64,
}

impl Default for Numbers {
    fn default() -> Self {
        // Of kinds that fit equally well, the last one is taken.
        let kinds = [Kind::Number, Kind::Iperf3Wide, Kind::Iperf3, Kind::Rtp];
        Self { candidates: kinds.map(Meter::new).to_vec(), packets: 0 }
    }
}

impl Numbers {
    /// Adds a datagram's payload; false if it carries none of the known kinds of numbers.
    pub(super) fn add(&mut self, now: Instant, payload: &[u8]) -> bool {
        self.packets += 1;
        self.candidates.retain_mut(|meter| meter.add(now, payload));
        !self.candidates.is_empty()
    }

    pub(super) fn report(&self) -> Option<SequenceReport> {
        let sure = self.candidates.iter().filter(|one| one.counts());
        Some(sure.max_by_key(|one| one.fitting)?.report())
    }
}

/// The datagrams as read with one kind of header.
#[derive(Clone, Debug)]
struct Meter {
    kind: Kind,
    /// Datagrams whose header fits the one before.
    fitting: u64,
    unfitting: u64,
    source: u32,
    first: u64,
    highest: Option<u64>,
    received: u64,
    out_of_order: u64,
    duplicates: u64,
    longest_gap: u64,
    /// Which of the 64 numbers below the highest one have arrived.
    window: u64,
    last: Option<(Instant, u64)>,
    /// Arrival time and sender's time of the first datagram, to find the clock.
    began: Option<(Instant, u64)>,
    /// Jitter in nanoseconds (RFC 3550 A.8), for each clock rate that the sender may have.
    jitters: Vec<(u32, f64)>,
}

impl Meter {
    fn new(kind: Kind) -> Self {
        let jitters = match kind {
            Kind::Rtp => CLOCKS.map(|clock| (clock, 0.0)).to_vec(),
            Kind::Iperf3 | Kind::Iperf3Wide => vec![(1_000_000_000, 0.0)],
            Kind::Number => Vec::new(),
        };
        Self {
            kind,
            fitting: 0,
            unfitting: 0,
            source: 0,
            first: 0,
            highest: None,
            received: 0,
            out_of_order: 0,
            duplicates: 0,
            longest_gap: 0,
            window: 0,
            last: None,
            began: None,
            jitters,
        }
    }

    /// Adds a payload; false if the flow does not have this kind of header.
    fn add(&mut self, now: Instant, payload: &[u8]) -> bool {
        let read = self.kind.read(payload);
        let Some(read) = read.filter(|read| self.fits(read)) else {
            // A sender's first or last datagram may carry something else.
            self.unfitting += 1;
            return self.unfitting <= 2 + self.fitting / 16;
        };
        self.fitting += 1;
        self.note_jitter(now, read.time);
        self.count(read);
        true
    }

    /// Whether this is a sequence. A constant is none, even if a few datagrams are duplicated.
    fn counts(&self) -> bool {
        self.received >= PROBATION && 2 * self.received >= self.fitting
    }

    fn fits(&mut self, read: &Numbered) -> bool {
        let Some(highest) = self.highest else {
            self.source = read.source;
            return true;
        };
        let number = self.unwrap(read.number, highest);
        let apart = number.abs_diff(highest);
        let goes_on = self.last.is_none_or(|(_, time)| match self.kind {
            // Consecutive datagrams are at most a second apart, either way.
            Kind::Iperf3 | Kind::Iperf3Wide => read.time.abs_diff(time) < 60_000_000_000,
            Kind::Rtp => true,
            // A constant is not a sequence number.
            Kind::Number => apart > 0 && (number > highest || apart <= MOST_BEHIND),
        });
        read.source == self.source && apart <= MOST_APART && goes_on
    }

    /// RTP sequence numbers have 16 bits.
    fn unwrap(&self, number: u64, highest: u64) -> u64 {
        match self.kind {
            Kind::Rtp => {
                let ahead = (number as u16).wrapping_sub(highest as u16) as i16;
                highest.saturating_add_signed(ahead.into())
            }
            Kind::Iperf3 | Kind::Iperf3Wide | Kind::Number => number,
        }
    }

    fn count(&mut self, read: Numbered) {
        let Some(highest) = self.highest else {
            // Leaves room below for datagrams that the first one overtook.
            let number = if self.kind == Kind::Rtp { (1 << 32) + read.number } else { read.number };
            (self.first, self.highest, self.received, self.window) = (number, Some(number), 1, 1);
            return;
        };
        let number = self.unwrap(read.number, highest);
        if number > highest {
            let ahead = number - highest;
            self.longest_gap = self.longest_gap.max(ahead - 1);
            self.window = if ahead < 64 { self.window << ahead | 1 } else { 1 };
            self.highest = Some(number);
            self.received += 1;
            return;
        }
        let behind = highest - number;
        let known = behind < 64 && self.window >> behind & 1 == 1;
        if known {
            self.duplicates += 1;
        } else {
            self.out_of_order += 1;
            self.received += 1;
            self.first = self.first.min(number);
            if behind < 64 {
                self.window |= 1 << behind;
            }
        }
    }

    /// RFC 3550 6.4.1: J += (|D| - J) / 16.
    fn note_jitter(&mut self, now: Instant, time: u64) {
        self.began.get_or_insert((now, time));
        if let Some((before, then)) = self.last.replace((now, time)) {
            let arrived = now.saturating_since(before).as_nanos() as f64;
            let ticks = match self.kind {
                Kind::Rtp => f64::from((time as u32).wrapping_sub(then as u32) as i32),
                Kind::Iperf3 | Kind::Iperf3Wide | Kind::Number => time as f64 - then as f64,
            };
            for (clock, jitter) in &mut self.jitters {
                let sent = ticks * 1e9 / f64::from(*clock);
                *jitter += ((arrived - sent).abs() - *jitter) / 16.0;
            }
        }
    }

    /// The clock rate, found by comparing the sender's timestamps with the capture's.
    fn clock(&self) -> Option<(u32, f64)> {
        let ((began, from), (ended, to)) = (self.began?, self.last?);
        let passed = ended.saturating_since(began);
        if self.kind != Kind::Rtp {
            return self.jitters.first().copied();
        }
        if passed < Duration::from_millis(500) {
            return None;
        }
        let ticks = f64::from((to as u32).wrapping_sub(from as u32));
        let hertz = ticks / passed.as_secs_f64();
        let near = |clock: u32| (hertz / f64::from(clock) - 1.0).abs() < 0.02;
        self.jitters.iter().copied().find(|&(clock, _)| near(clock))
    }

    fn report(&self) -> SequenceReport {
        let expected = self.highest.map_or(0, |highest| highest - self.first + 1);
        let clock = self.clock();
        SequenceReport {
            header: match self.kind {
                Kind::Iperf3 => "iperf3",
                Kind::Iperf3Wide => "iperf3-64",
                Kind::Rtp => "rtp",
                Kind::Number => "number",
            },
            expected,
            lost: expected.saturating_sub(self.received),
            out_of_order: self.out_of_order,
            duplicates: self.duplicates,
            longest_gap: self.longest_gap,
            jitter_ms: clock.map(|(_, jitter)| jitter / 1e6),
            clock_hz: clock.filter(|_| self.kind == Kind::Rtp).map(|(clock, _)| clock),
        }
    }
}

impl Kind {
    fn read(self, payload: &[u8]) -> Option<Numbered> {
        let word = |at: usize| {
            let bytes = payload.get(at..at + 4)?;
            Some(u64::from(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])))
        };
        match self {
            Self::Iperf3 | Self::Iperf3Wide => {
                let (seconds, micros) = (word(0)?, word(1 << 2)?);
                let wide = self == Self::Iperf3Wide;
                let number = if wide { word(8)? << 32 | word(12)? } else { word(8)? };
                // Numbers start at 1; the upper half of a 64-bit number stays zero for a long time.
                let is_one = micros < 1_000_000 && number > 0 && number < 1 << 40;
                let time = seconds * 1_000_000_000 + micros * 1000;
                is_one.then_some(Numbered { number, time, source: 0 })
            }
            Self::Number => Some(Numbered { number: word(0)?, time: 0, source: 0 }),
            Self::Rtp => {
                let &[first, second, high, low, ..] = payload else { return None };
                // Version 2; RTCP's packet types are not valid RTP payload types (RFC 5761 4).
                let kind = second & 0x7f;
                let is_one = first >> 6 == 2 && !(64..=95).contains(&kind);
                let number = u64::from(u16::from_be_bytes([high, low]));
                let (time, source) = (word(4)?, word(8)? as u32);
                is_one.then_some(Numbered { number, time, source })
            }
        }
    }
}
