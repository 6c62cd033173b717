//! Checks of hosts whose CPU is taken away.

use crate::problem::Problems;
use crate::stage::Stage;

/// Refuses a CPU that is taken away nearly all the time: the run would never end.
pub(crate) fn check(stages: &[Stage], problems: &mut Problems) {
    for stage in stages {
        let (length, period) =
            (stage.fields.time("stall_ms"), stage.fields.time("stall_period_ms"));
        if let (Some(length), Some(period)) = (length, period)
            && length + period / 100 > period
        {
            problems.add_with_help(
                stage.fields.origin_of("stall_ms"),
                "a stall leaves less than a hundredth of the time until the next",
                format!("`stall_period_ms` is {}", period.as_millis_f64()),
            );
        }
    }
}
