//! Reads recordings from files: plain CSV, and G-NetTrack Pro drive logs.

use std::path::{Path, PathBuf};

use airpath_base::Duration;

use super::{ChannelTrace, Quality};
use airpath_base::recording::{quoted, read_stored, unpacked};

/// Which column of a G-NetTrack Pro log gives the quality.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogColumn {
    /// `SNR` in dB. For a non-standalone 5G connection it is the LTE anchor's.
    Snr,
    /// The channel quality that the UE reported, 0 to 15 (TS 38.214 5.2.2.1).
    Cqi,
}

/// How a log's row without a value (`-`) is read: G-NetTrack has no SNR or CQI on 2G and 3G.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// The previous value holds; before the first value, the first.
    Hold,
    /// There is no LTE or NR channel.
    Outage,
}

/// Why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ChannelTraceError {
    /// The file cannot be opened or read.
    #[error("cannot read channel trace {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The first line names no usable columns.
    #[error(
        "channel trace {path}: its first line must name the columns: `time_s` and one of `sinr_db`, `cqi` and \
         `mcs`, or those of a G-NetTrack Pro log (`Timestamp`, `SNR`, `CQI`, ...); it lacks {column:?}", path = path.display()
    )]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The missing column.
        column: &'static str,
    },
    /// A field that is not what its column needs.
    #[error("channel trace {path}, line {line}: {text} is not a {column}: {allowed}", path = path.display())]
    BadField {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// The column's name.
        column: &'static str,
        /// The field's text, as far as it may be quoted.
        text: String,
        /// Which values are allowed.
        allowed: &'static str,
    },
    /// A time before that of the previous line.
    #[error("channel trace {path}, line {line}: its time is earlier than that of the previous row; times must not \
             decrease", path = path.display())]
    Backwards {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
    },
    /// No row with a value.
    #[error("channel trace {path} has no value in column {column:?}", path = path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// The column's name.
        column: &'static str,
    },
}

impl ChannelTrace {
    /// Reads a file, gzip or plain (recognised by its first bytes). `column` and `missing` apply to
    /// G-NetTrack Pro logs.
    pub fn read(
        path: &Path,
        column: LogColumn,
        missing: Missing,
    ) -> Result<Self, ChannelTraceError> {
        let fail = |source| ChannelTraceError::Read { path: path.to_owned(), source };
        let text = read_stored(path).and_then(unpacked).map_err(fail)?;
        Self::parse(&text, path, column, missing)
    }

    /// Parses a recording's text; `path` is for messages.
    pub fn parse(
        text: &[u8],
        path: &Path,
        column: LogColumn,
        missing: Missing,
    ) -> Result<Self, ChannelTraceError> {
        let mut lines = (1..).zip(text.split(|&byte| byte == b'\n').map(|line| line.trim_ascii()));
        let (_, header) = lines.next().unwrap_or((1, &[]));
        let layout = Layout::of(header, path, column)?;
        let mut samples = Vec::new();
        let (mut previous, mut held) = (None, None);
        for (line, text) in lines.filter(|(_, text)| !text.is_empty()) {
            let row = Row { path, line, text };
            let at = layout.time.read(&row)?;
            if previous.is_some_and(|previous| at < previous) {
                return Err(ChannelTraceError::Backwards { path: path.to_owned(), line });
            }
            previous = Some(at);
            let quality = layout.value.read(&row)?;
            held = quality.or(held);
            let gap = match missing {
                Missing::Hold => held,
                Missing::Outage => Some(Quality::Outage),
            };
            samples.push((at, quality.or(gap)));
        }
        let empty =
            || ChannelTraceError::Empty { path: path.to_owned(), column: layout.value.name() };
        // Rows before the first value get that value; `held` says that there is one.
        held.ok_or_else(empty)?;
        let first = samples.iter().find_map(|(_, quality)| *quality).ok_or_else(empty)?;
        Self::new(samples.into_iter().map(|(at, quality)| (at, quality.unwrap_or(first))))
            .ok_or_else(empty)
    }
}

/// Positions of time and value in a row.
struct Layout {
    time: TimeField,
    value: ValueField,
}

/// Seconds from any origin.
enum TimeField {
    Seconds(usize),
    /// Timestamps such as `2020.02.14_12.58.17`.
    Stamp(usize),
}

struct ValueField {
    index: usize,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Sinr,
    Cqi,
    Mcs,
    LogSnr,
    LogCqi,
}

struct Row<'a> {
    path: &'a Path,
    line: usize,
    text: &'a [u8],
}

impl Layout {
    fn of(header: &[u8], path: &Path, column: LogColumn) -> Result<Self, ChannelTraceError> {
        let find = |name: &str| {
            header
                .split(|&byte| byte == b',')
                .position(|field| field.trim_ascii() == name.as_bytes())
        };
        let missing = |column| ChannelTraceError::NoColumn { path: path.to_owned(), column };
        if let Some(time) = find("Timestamp") {
            let kind = match column {
                LogColumn::Snr => Kind::LogSnr,
                LogColumn::Cqi => Kind::LogCqi,
            };
            let index = find(kind.name()).ok_or_else(|| missing(kind.name()))?;
            return Ok(Self { time: TimeField::Stamp(time), value: ValueField { index, kind } });
        }
        let time = TimeField::Seconds(find("time_s").ok_or_else(|| missing("time_s"))?);
        let value = [Kind::Sinr, Kind::Cqi, Kind::Mcs]
            .into_iter()
            .find_map(|kind| Some(ValueField { index: find(kind.name())?, kind }))
            .ok_or_else(|| missing("sinr_db"))?;
        Ok(Self { time, value })
    }
}

impl TimeField {
    fn read(&self, row: &Row) -> Result<Duration, ChannelTraceError> {
        match *self {
            Self::Seconds(index) => {
                let seconds = row.number(index).filter(|seconds| (0.0..=1e9).contains(seconds));
                seconds.map(Duration::from_secs_f64).ok_or_else(|| {
                    row.bad(index, "time_s", "a number of seconds from 0 to 1e9 is allowed")
                })
            }
            Self::Stamp(index) => row.field(index).and_then(seconds_of_stamp).ok_or_else(|| {
                row.bad(index, "Timestamp", "a date and time as in 2020.02.14_12.58.17 is allowed")
            }),
        }
    }
}

impl ValueField {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// The value of a row; `None` if it has none.
    fn read(&self, row: &Row) -> Result<Option<Quality>, ChannelTraceError> {
        if self.kind.may_be_missing() && row.field(self.index) == Some("-") {
            return Ok(None);
        }
        let whole = |value: f64, most: u8| {
            (value >= 0.0 && value <= f64::from(most) && value.fract() == 0.0)
                .then_some(value as u8)
        };
        let number = row.number(self.index);
        let quality = match self.kind {
            Kind::Sinr | Kind::LogSnr => {
                number.filter(|value| value.abs() <= 100.0).map(Quality::Sinr)
            }
            Kind::Cqi | Kind::LogCqi => number.and_then(|value| whole(value, 15)).map(Quality::Cqi),
            Kind::Mcs => number.and_then(|value| whole(value, 31)).map(Quality::Mcs),
        };
        quality.map(Some).ok_or_else(|| row.bad(self.index, self.name(), self.kind.allowed()))
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Sinr => "sinr_db",
            Self::Cqi => "cqi",
            Self::Mcs => "mcs",
            Self::LogSnr => "SNR",
            Self::LogCqi => "CQI",
        }
    }

    fn may_be_missing(self) -> bool {
        matches!(self, Self::LogSnr | Self::LogCqi)
    }

    fn allowed(self) -> &'static str {
        match self {
            Self::Sinr => "a number of dB from -100 to 100 is allowed",
            Self::LogSnr => "a number of dB from -100 to 100 or `-` is allowed",
            Self::Cqi => "a whole number from 0 to 15 is allowed",
            Self::LogCqi => "a whole number from 0 to 15 or `-` is allowed",
            Self::Mcs => "a whole number from 0 to 31 is allowed",
        }
    }
}

impl Row<'_> {
    fn field(&self, index: usize) -> Option<&str> {
        let field = self.text.split(|&byte| byte == b',').nth(index)?;
        std::str::from_utf8(field.trim_ascii()).ok()
    }

    fn number(&self, index: usize) -> Option<f64> {
        self.field(index)?.parse().ok().filter(|number: &f64| number.is_finite())
    }

    fn bad(&self, index: usize, column: &'static str, allowed: &'static str) -> ChannelTraceError {
        ChannelTraceError::BadField {
            path: self.path.to_owned(),
            line: self.line,
            column,
            text: quoted(self.field(index).unwrap_or("")),
            allowed,
        }
    }
}

/// Seconds since 1970, without leap seconds.
fn seconds_of_stamp(text: &str) -> Option<Duration> {
    let (date, time) = text.split_once('_')?;
    let [year, month, day] = three(date)?;
    let [hour, minute, second] = three(time)?;
    let valid = (1970..=2400).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !valid {
        return None;
    }
    // Years begin in March, so that the leap day is the last day of a year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let months = (month * 153 + 2) / 5;
    // 719,468 days since the 1st of March of the year 0.
    let days = year * 365 + year / 4 - year / 100 + year / 400 + months + day - 1 - 719_468;
    Some(Duration::from_secs(days * 86_400 + hour * 3_600 + minute * 60 + second))
}

fn three(text: &str) -> Option<[u64; 3]> {
    let mut parts = text.split('.').map(|part| {
        (!part.is_empty() && part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| part.parse().ok())
            .flatten()
    });
    let three = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(three)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_cross_days_and_leap_years() {
        let seconds = |from, to| {
            (seconds_of_stamp(to).unwrap() - seconds_of_stamp(from).unwrap()).as_nanos()
                / 1_000_000_000
        };
        assert_eq!(seconds("2020.02.14_12.58.17", "2020.02.14_13.00.00"), 103);
        assert_eq!(seconds("2020.02.28_23.59.59", "2020.03.01_00.00.00"), 86_401);
        assert_eq!(seconds("2019.12.31_23.59.59", "2020.01.01_00.00.01"), 2);
        assert_eq!(seconds_of_stamp("2020.02.14 12.58.17"), None);
        assert_eq!(seconds_of_stamp("2020.13.14_12.58.17"), None);
    }
}
