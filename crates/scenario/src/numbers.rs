//! Numbers and times in one line of text: `"1, 40-45"`, `"0, 0.5, 2"`.

use std::collections::BTreeSet;
use std::sync::Arc;

use airpath_base::Duration;

/// Most numbers that a line may give.
const MOST: u64 = 1_000_000;

/// The numbers in `text`, ascending and without duplicates; or what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<Arc<[u64]>, String> {
    let mut numbers = BTreeSet::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            text.trim().parse::<u64>().ok().filter(|&number| number > 0).ok_or_else(|| {
                format!("{part:?} is neither a whole number from 1 nor a range such as 40-45")
            })
        };
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(format!("{part:?} ends before it begins"));
        }
        if last - first >= MOST {
            return Err(format!("{part:?} has more than {MOST} numbers"));
        }
        numbers.extend(first..=last);
    }
    Ok(numbers.into_iter().collect())
}

/// Most times that a line may give.
const MOST_TIMES: usize = 100_000;

/// The times in `text`, given in seconds, which must not decrease; or what is wrong with it.
pub(crate) fn times(text: &str) -> Result<Vec<Duration>, String> {
    let mut times: Vec<Duration> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let seconds = part
            .parse::<f64>()
            .ok()
            .filter(|seconds| (0.0..=1e6).contains(seconds))
            .ok_or_else(|| format!("{part:?} is not a time in seconds from 0 to a million"))?;
        let time = Duration::from_nanos((seconds * 1e9).round() as u64);
        if times.last().is_some_and(|&last| time < last) {
            return Err(format!("{part:?} is earlier than the time before it"));
        }
        times.push(time);
    }
    if times.len() > MOST_TIMES {
        return Err(format!("there are more than {MOST_TIMES} times"));
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_come_in_order_and_once() {
        assert_eq!(parse("7, 1,3-5, 4").as_deref(), Ok([1, 3, 4, 5, 7].as_slice()));
        assert_eq!(parse("12").as_deref(), Ok([12].as_slice()));
    }

    #[test]
    fn times_are_in_seconds_and_do_not_go_back() {
        let millis = |times: Vec<Duration>| -> Vec<_> {
            times.iter().map(|time| time.as_nanos() / 1_000_000).collect()
        };
        assert_eq!(times("0, 0.5,2").map(millis), Ok(vec![0, 500, 2000]));
        for text in ["", "x", "-1", "2, 1", "inf"] {
            assert!(times(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_named() {
        for (text, fault) in [
            ("", "\"\" is neither"),
            ("1, x", "\"x\" is neither"),
            ("0", "\"0\" is neither"),
            ("5-3", "ends before it begins"),
            ("1-99999999999", "has more than"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(fault), "{text}: {error}");
        }
    }
}
