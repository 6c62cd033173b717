//! Delivery traces in Mahimahi's format.
//!
//! Each line is an opportunity to deliver 1,500 bytes: a timestamp in whole milliseconds.
//! Timestamps do not decrease; several per millisecond are normal. At its end the trace restarts:
//! the last timestamp is the period. Blank lines are ignored. A gzip file is decompressed.

use std::path::{Path, PathBuf};

use airpath_base::Duration;
use airpath_base::recording::{quoted, read_stored, unpacked};

/// Bytes that one opportunity delivers.
pub const OPPORTUNITY_BYTES: u32 = 1500;

/// A recorded sequence of delivery opportunities; it has at least one, and the last is later than
/// zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    stamps: Vec<Duration>,
}

/// Why a trace cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened or read.
    #[error("cannot read trace {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file has no timestamp.
    #[error("trace {path} is empty: it must hold at least one time stamp in ms, one per line", path = path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A line that is not a whole number.
    #[error("trace {path}, line {line}: {text} is not a time stamp; a whole number of ms from 0 to 1e12 is allowed", path = path.display())]
    NotANumber {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// The line's text, as far as it may be quoted.
        text: String,
    },
    /// A timestamp smaller than the previous one.
    #[error("trace {path}, line {line}: time stamp {stamp} ms is before the previous one, {previous} ms; stamps must not decrease", path = path.display())]
    Backwards {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// The timestamp, in milliseconds since the start.
        stamp: u64,
        /// The previous timestamp.
        previous: u64,
    },
    /// All timestamps are 0: the period would be 0.
    #[error("trace {path}: its last time stamp is 0 ms, so it has no length to loop over; it must end after 0", path = path.display())]
    NoLength {
        /// The file.
        path: PathBuf,
    },
}

impl Trace {
    /// Reads a file, gzip or plain (recognised by its first bytes, not by its name).
    pub fn read(path: &Path) -> Result<Self, TraceError> {
        let fail = |source| TraceError::Read { path: path.to_owned(), source };
        let text = read_stored(path).and_then(unpacked).map_err(fail)?;
        Self::parse(&text, path)
    }

    /// Parses a trace's text; `path` is for messages.
    pub fn parse(text: &[u8], path: &Path) -> Result<Self, TraceError> {
        const MAX_MS: u64 = 1_000_000_000_000;
        let mut stamps = Vec::new();
        let mut previous = 0;
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line_text = line.trim_ascii();
            if line_text.is_empty() {
                continue;
            }
            let stamp = std::str::from_utf8(line_text)
                .ok()
                .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|text| text.parse::<u64>().ok())
                .filter(|&stamp| stamp <= MAX_MS)
                .ok_or_else(|| TraceError::NotANumber {
                    path: path.to_owned(),
                    line: index + 1,
                    text: quoted(&String::from_utf8_lossy(line_text)),
                })?;
            if stamp < previous {
                return Err(TraceError::Backwards {
                    path: path.to_owned(),
                    line: index + 1,
                    stamp,
                    previous,
                });
            }
            previous = stamp;
            stamps.push(Duration::from_millis(stamp));
        }
        match stamps.last() {
            None => Err(TraceError::Empty { path: path.to_owned() }),
            Some(&Duration::ZERO) => Err(TraceError::NoLength { path: path.to_owned() }),
            Some(_) => Ok(Self { stamps }),
        }
    }

    /// The opportunities of one period, in order.
    pub fn stamps(&self) -> &[Duration] {
        &self.stamps
    }

    /// Time after which the trace restarts.
    pub fn period(&self) -> Duration {
        // Invariant of `parse`: not empty.
        self.stamps[self.stamps.len() - 1]
    }

    /// Mean capacity over one period, in bits per second.
    pub fn mean_bps(&self) -> f64 {
        self.stamps.len() as f64 * f64::from(OPPORTUNITY_BYTES) * 8.0 / self.period().as_secs_f64()
    }

    /// Number of opportunities in `(0, time]`, over as many periods as needed; a timestamp of 0
    /// counts at the start of the first period.
    pub fn opportunities_until(&self, time: Duration) -> u64 {
        let period = self.period().as_nanos();
        let whole = time.as_nanos() / period;
        let rest = Duration::from_nanos(time.as_nanos() % period);
        let part = self.stamps.partition_point(|&stamp| stamp <= rest);
        whole * self.stamps.len() as u64 + part as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Trace, String> {
        Trace::parse(text.as_bytes(), Path::new("t")).map_err(|error| error.to_string())
    }

    #[test]
    fn counts_and_loops() {
        let trace = parse("0\n2\n2\n10\n").unwrap();
        assert_eq!(trace.period(), Duration::from_millis(10));
        assert_eq!(trace.opportunities_until(Duration::from_millis(2)), 3);
        assert_eq!(trace.opportunities_until(Duration::from_millis(22)), 11);
        assert_eq!(trace.mean_bps(), 4.8e6);
    }

    #[test]
    fn bad_traces_are_refused_with_their_line() {
        assert!(parse("\n\n").unwrap_err().contains("is empty"));
        assert!(parse("1\n2\n3\n4\n5\n6\nseven\n").unwrap_err().contains("line 7: this is not"));
        let secret = parse("root:$y$j9T$0123456789:20089:0:99999:7:::\n").unwrap_err();
        assert!(secret.contains("line 1: this is not a time stamp"), "{secret}");
        assert!(parse("1\n2.5\n").unwrap_err().contains("line 2: \"2.5\" is not"));
        assert!(parse("5\n4\n").unwrap_err().contains("line 2: time stamp 4 ms is before"));
        assert!(parse("0\n0\n").unwrap_err().contains("after 0"));
        assert!(parse("-1\n").unwrap_err().contains("line 1"));
    }
}
