//! Bodies of this crate's fuzz targets (`fuzz/`): whatever a file holds, it is a recording that can
//! be replayed, or an error that names the line. Tests replay the corpora. This is not part of the
//! library.

use std::path::Path;

use airpath_base::Duration;

use crate::{Trace, TraceError};

/// Takes a delivery trace.
pub fn trace(text: &[u8]) {
    let lines = text.split(|&byte| byte == b'\n').count();
    let trace = match Trace::parse(text, Path::new("trace")) {
        Ok(trace) => trace,
        Err(TraceError::NotANumber { line, .. } | TraceError::Backwards { line, .. }) => {
            assert!((1..=lines).contains(&line));
            return;
        }
        Err(error) => return assert!(error.to_string().starts_with("trace trace")),
    };
    let (stamps, period) = (trace.stamps(), trace.period());
    assert!(stamps.is_sorted() && stamps.last() == Some(&period) && period > Duration::ZERO);
    assert!(trace.mean_bps() > 0.0 && trace.mean_bps().is_finite());
    let at_zero = stamps.iter().filter(|&&stamp| stamp == Duration::ZERO).count() as u64;
    assert_eq!(trace.opportunities_until(Duration::ZERO), at_zero);
    let mut before = 0;
    for &time in stamps.iter().chain([&(period * 2), &(period * 3), &Duration::MAX]) {
        let now = trace.opportunities_until(time);
        assert!(now >= before);
        before = now;
    }
}

#[cfg(test)]
mod tests {
    use airpath_testing::replay;

    #[test]
    fn corpora_are_survived() {
        replay("trace", super::trace);
    }
}
