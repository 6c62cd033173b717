//! Bodies of this crate's fuzz targets (`fuzz/`): whatever a file holds, it is a recording that can
//! be replayed, or an error that names the line. Tests replay the corpora. This is not part of the
//! library.

use std::path::Path;
use std::sync::Arc;

use airpath_base::{Duration, Instant};

use crate::channel::{
    AtEnd, ChannelTrace, ChannelTraceError, LogColumn, Missing, Quality, TraceCursor,
};

/// Takes a recording of a channel, as plain CSV or a drive log. The first byte selects the column
/// of a log, and how a row without a value is read.
pub fn drive_log(data: &[u8]) {
    let Some((&how, text)) = data.split_first() else { return };
    let column = if how & 1 == 0 { LogColumn::Snr } else { LogColumn::Cqi };
    let missing = if how & 2 == 0 { Missing::Hold } else { Missing::Outage };
    let lines = text.split(|&byte| byte == b'\n').count();
    let trace = match ChannelTrace::parse(text, Path::new("log"), column, missing) {
        Ok(trace) => Arc::new(trace),
        Err(error) => {
            assert!(error.to_string().starts_with("channel trace log"));
            if let ChannelTraceError::BadField { line, .. }
            | ChannelTraceError::Backwards { line, .. } = error
            {
                assert!((1..=lines).contains(&line));
            }
            return;
        }
    };
    assert!((1..=lines).contains(&trace.samples()));
    assert!(trace.samples() > 1 || trace.period() == Duration::ZERO);
    for at_end in [AtEnd::Hold, AtEnd::Loop] {
        let mut cursor = TraceCursor::new(trace.clone(), at_end);
        for eighth in 0..24 {
            let now = Duration::from_nanos(trace.period().as_nanos() / 8).saturating_mul(eighth);
            match cursor.quality(Instant::ZERO + now) {
                Quality::Sinr(sinr) => assert!(sinr.abs() <= 100.0),
                Quality::Cqi(cqi) => assert!(cqi <= 15),
                Quality::Mcs(mcs) => assert!(mcs <= 31),
                Quality::Outage => assert_eq!(missing, Missing::Outage),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use airpath_testing::replay;

    #[test]
    fn corpora_are_survived() {
        replay("drive_log", super::drive_log);
    }
}
