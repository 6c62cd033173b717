//! The packet log: who passed when, kept in memory until the run is over.

use std::io::{self, Write};

use airpath_base::{DropReason, Instant};

use crate::header::{self, Tcp};

/// The first bytes of a log; the number is the format's.
pub const MAGIC: [u8; 8] = *b"airlog 1";

/// Bytes of a record: little endian, without gaps.
///
/// | bytes | field |
/// |---|---|
/// | 8 | time on the clock in ns: read, written or found dropped |
/// | 8 | logical time in ns |
/// | 4, 4 | sequence and acknowledgement numbers |
/// | 4, 4 | timestamp value and echo |
/// | 4, 4 | first SACK block |
/// | 2, 2 | payload bytes, window field |
/// | 1 | direction: 0 down, 1 up |
/// | 1 | [`Point`] |
/// | 1 | TCP flags; 0 of what is no TCP |
/// | 1 | number of SACK blocks |
pub const RECORD_BYTES: usize = 48;

/// Where a packet was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// It entered the path.
    In,
    /// It left the path.
    Out,
    /// It was dropped.
    Dropped(DropReason),
}

/// Records, as many as were ordered.
#[derive(Debug)]
pub struct Log {
    records: Vec<Record>,
    capacity: usize,
    /// Records that found no room.
    lost: u64,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    time: Instant,
    logical: Instant,
    direction: u8,
    point: Point,
    tcp: Tcp,
}

impl Log {
    /// Room for `capacity` records; nothing is allocated later.
    pub fn new(capacity: usize) -> Self {
        Self { records: Vec::with_capacity(capacity), capacity, lost: 0 }
    }

    /// Records kept, and those that found no room.
    pub fn counts(&self) -> (usize, u64) {
        (self.records.len(), self.lost)
    }

    #[inline]
    pub(crate) fn push(
        &mut self,
        time: Instant,
        logical: Instant,
        direction: usize,
        point: Point,
        packet: &[u8],
    ) {
        if self.records.len() == self.capacity {
            self.lost += 1;
            return;
        }
        let tcp = header::tcp(packet).unwrap_or_default();
        self.records.push(Record { time, logical, direction: direction as u8, point, tcp });
    }

    /// Writes [`MAGIC`], then all records.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&MAGIC)?;
        self.records.iter().try_for_each(|record| out.write_all(&record.bytes()))
    }
}

impl Point {
    const fn code(self) -> u8 {
        match self {
            Self::In => 0,
            Self::Out => 1,
            Self::Dropped(DropReason::Loss) => 2,
            Self::Dropped(DropReason::QueueFull) => 3,
            Self::Dropped(DropReason::Aqm) => 4,
            Self::Dropped(DropReason::Discarded) => 5,
            Self::Dropped(DropReason::RadioLink) => 6,
            Self::Dropped(DropReason::TooBig) => 7,
            Self::Dropped(DropReason::Policed) => 8,
            Self::Dropped(DropReason::NoBinding) => 9,
            Self::Dropped(DropReason::Blocked) => 10,
            Self::Dropped(DropReason::RingFull) => 11,
            Self::Dropped(DropReason::Handover) => 12,
        }
    }
}

impl Record {
    fn bytes(&self) -> [u8; RECORD_BYTES] {
        let Self { time, logical, direction, point, tcp } = self;
        let mut bytes = [0; RECORD_BYTES];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&time.as_nanos().to_le_bytes());
        put(&logical.as_nanos().to_le_bytes());
        for field in [tcp.seq, tcp.ack, tcp.ts_val, tcp.ts_ecr, tcp.sack.0, tcp.sack.1] {
            put(&field.to_le_bytes());
        }
        put(&tcp.payload.to_le_bytes());
        put(&tcp.window.to_le_bytes());
        put(&[*direction, point.code(), tcp.flags, tcp.sack_blocks]);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_fills_its_bytes_and_a_full_log_counts() {
        let mut log = Log::new(1);
        for point in [Point::Dropped(DropReason::Aqm), Point::In] {
            log.push(Instant::from_nanos(258), Instant::from_nanos(3), 1, point, b"no packet");
        }
        assert_eq!(log.counts(), (1, 1));
        let mut bytes = Vec::new();
        log.write(&mut bytes).unwrap();
        assert_eq!(bytes.len(), MAGIC.len() + RECORD_BYTES);
        assert_eq!(bytes[8..11], [2, 1, 0]);
        assert_eq!(bytes[bytes.len() - 4..], [1, 4, 0, 0]);
    }
}
