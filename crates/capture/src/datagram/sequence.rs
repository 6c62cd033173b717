//! Numbers of datagrams: what is missing, late, or there twice, and how regularly they come.
//!
//! iperf3 puts its time and a number in front of each datagram; RTP has a header of its own
//! (RFC 3550 5.1). Those of iperf 2 and SRT begin with a number of 32 bits, and so do those of
//! airpath's emulated streams. Which of them it is shows after some datagrams: numbers go on, times too.

use airpath_base::{Duration, Instant};

use super::report::SequenceReport;

/// Datagrams after which the kind has to be known.
const PROBATION: u64 = 8;
/// Numbers between two datagrams in a row, at the most, of what counts.
const MOST_APART: u64 = 10_000;
/// By so many a bare number may be behind the highest one: other bytes go back as far as forward.
const MOST_BEHIND: u64 = 64;
/// Clocks of RTP's payload formats; a clock that is not one of them within 2 % is not known.
const CLOCKS: [u32; 8] = [8000, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000, 90_000];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Iperf3,
    Iperf3Wide,
    Rtp,
    /// A number of 32 bits comes first, and nothing that follows is known.
    Number,
}

/// What a datagram's header says.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    number: u64,
    /// The sender's time: nanoseconds, or ticks of RTP's clock.
    time: u64,
    /// What has to stay as it is.
    source: u32,
}

/// One sender's datagrams, each kind of header tried.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    candidates: Vec<Meter>,
    packets: u64,
}

impl Default for Numbers {
    fn default() -> Self {
        // Of those that fit as well the last is taken.
        let kinds = [Kind::Number, Kind::Iperf3Wide, Kind::Iperf3, Kind::Rtp];
        Self { candidates: kinds.map(Meter::new).to_vec(), packets: 0 }
    }
}

impl Numbers {
    /// A datagram's payload; false: these are none of the numbers that are known.
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

/// The datagrams as one kind of header has them.
#[derive(Clone, Debug)]
struct Meter {
    kind: Kind,
    /// Datagrams whose header fits to the one before.
    fitting: u64,
    unfitting: u64,
    source: u32,
    first: u64,
    highest: Option<u64>,
    received: u64,
    out_of_order: u64,
    duplicates: u64,
    longest_gap: u64,
    /// Which of the 64 numbers below the highest one have come.
    window: u64,
    last: Option<(Instant, u64)>,
    /// Of the first datagram, for the clock.
    began: Option<(Instant, u64)>,
    /// RFC 3550 A.8, in nanoseconds, with each clock that may be the sender's.
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

    /// False: it is not of this kind.
    fn add(&mut self, now: Instant, payload: &[u8]) -> bool {
        let read = self.kind.read(payload);
        let Some(read) = read.filter(|read| self.fits(read)) else {
            // A sender's first or last datagram may say something else.
            self.unfitting += 1;
            return self.unfitting <= 2 + self.fitting / 16;
        };
        self.fitting += 1;
        self.note_jitter(now, read.time);
        self.count(read);
        true
    }

    /// What stays the same is no number, even if a few come twice.
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
            // A second at the most from one to the next, either way.
            Kind::Iperf3 | Kind::Iperf3Wide => read.time.abs_diff(time) < 60_000_000_000,
            Kind::Rtp => true,
            // What stays the same is no number.
            Kind::Number => apart > 0 && (number > highest || apart <= MOST_BEHIND),
        });
        read.source == self.source && apart <= MOST_APART && goes_on
    }

    /// RTP's numbers have 16 bits.
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
            // Room below for what was overtaken by the first.
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

    /// The clock, from how far it went while the capture's did so.
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
                // It counts from 1; a number of 64 bits has nothing in its upper half for long.
                let is_one = micros < 1_000_000 && number > 0 && number < 1 << 40;
                let time = seconds * 1_000_000_000 + micros * 1000;
                is_one.then_some(Numbered { number, time, source: 0 })
            }
            Self::Number => Some(Numbered { number: word(0)?, time: 0, source: 0 }),
            Self::Rtp => {
                let &[first, second, high, low, ..] = payload else { return None };
                // Version 2; RTCP's types are none of RTP's (RFC 5761 4).
                let kind = second & 0x7f;
                let is_one = first >> 6 == 2 && !(64..=95).contains(&kind);
                let number = u64::from(u16::from_be_bytes([high, low]));
                let (time, source) = (word(4)?, word(8)? as u32);
                is_one.then_some(Numbered { number, time, source })
            }
        }
    }
}
