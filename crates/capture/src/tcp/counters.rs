//! What is counted of a stream.

use airpath_base::{Duration, Instant};

use crate::report::InFlight;

/// Packets with data.
#[derive(Clone, Default, Debug)]
pub(super) struct Data {
    /// When the first one was sent.
    pub(super) first: Option<Instant>,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) largest: u32,
    pub(super) larger_than_mss: u64,
}

impl Data {
    #[inline]
    pub(super) fn add(&mut self, now: Instant, payload: u32, mss: Option<u16>) {
        self.packets += 1;
        self.bytes += u64::from(payload);
        self.largest = self.largest.max(payload);
        self.larger_than_mss += u64::from(mss.is_some_and(|mss| payload > u32::from(mss)));
        self.first.get_or_insert(now);
    }
}

/// Bytes in flight, whenever data was sent.
#[derive(Clone, Default, Debug)]
pub(super) struct Flight {
    sum: u64,
    count: u64,
    max: u64,
}

impl Flight {
    #[inline]
    pub(super) fn add(&mut self, bytes: u64) {
        self.sum += bytes;
        self.count += 1;
        self.max = self.max.max(bytes);
    }

    pub(super) fn report(&self) -> Option<InFlight> {
        let Self { sum, count, max } = *self;
        (count > 0).then(|| InFlight { mean: sum as f64 / count as f64, max })
    }
}

/// Packets that later ones overtook.
#[derive(Clone, Default, Debug)]
pub(super) struct Late {
    pub(super) packets: u64,
    longest: Duration,
}

impl Late {
    pub(super) fn add(&mut self, late: Duration) {
        self.packets += 1;
        self.longest = self.longest.max(late);
    }

    pub(super) fn longest_ms(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.longest.as_millis_f64())
    }
}

/// Segments that ask only for an answer.
#[derive(Clone, Default, Debug)]
pub(super) struct Probes {
    pub(super) keep_alives: u64,
    /// Keep-alives since the other end's last segment.
    pub(super) unanswered: u64,
    /// Probes of a closed window.
    pub(super) of_windows: u64,
    /// The byte after the last one that probed a closed window.
    pub(super) end: u64,
}

/// Acknowledged data that was not captured.
#[derive(Clone, Default, Debug)]
pub(super) struct Unseen {
    /// Acknowledgements of such data.
    pub(super) acks: u64,
    pub(super) bytes: u64,
}

impl Unseen {
    pub(super) fn add(&mut self, bytes: u64) {
        self.acks += 1;
        self.bytes += bytes;
    }
}
