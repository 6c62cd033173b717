//! Figures in sentences, with three significant digits.

use std::fmt;

/// A number with at most three significant digits; a whole number from 100 on.
pub(crate) fn digits(value: f64) -> String {
    let places = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size if size >= 0.1 => 3,
        _ => 4,
    };
    let text = format!("{value:.places$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A rate: `4.36 Mb/s`, `430 kb/s`, `1.24 Gb/s`.
pub(crate) fn mbps(rate: f64) -> String {
    match rate.abs() {
        size if size >= 999.5 => format!("{} Gb/s", digits(rate / 1e3)),
        size if size >= 0.9995 || size == 0.0 => format!("{} Mb/s", digits(rate)),
        _ => format!("{} kb/s", digits(rate * 1e3)),
    }
}

/// A time: `61.5 ms`, `1.24 s`.
pub(crate) fn ms(time: f64) -> String {
    if time >= 999.5 { seconds(time / 1e3) } else { format!("{} ms", digits(time)) }
}

/// A longer time, in seconds.
pub(crate) fn seconds(time: f64) -> String {
    format!("{} s", digits(time))
}

/// A fraction in percent.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", digits(share * 100.0))
}

/// A number of bytes.
pub(crate) fn bytes(count: f64) -> String {
    if count >= 1e6 { format!("{:.1} MB", count / 1e6) } else { format!("{:.0} kB", count / 1e3) }
}

/// A whole number with commas: `524,288`.
pub(crate) fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Names in a sentence; if there are more than three, the first two and the number of others.
pub(crate) fn listed(names: &[String]) -> String {
    let (said, last): (&[String], String) = match names {
        [] => return String::new(),
        [only] => return only.clone(),
        [said @ .., last] if names.len() <= 3 => (said, last.clone()),
        [_, _, others @ ..] => (&names[..2], format!("{} more", others.len())),
    };
    format!("{} and {last}", said.join(", "))
}

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident = $written:path;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub(crate) struct $name(pub(crate) f64);

        impl fmt::Display for $name {
            fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str(&$written(self.0))
            }
        }
    )*};
}

figures! {
    /// A rate.
    Mbps = mbps;
    /// A time.
    Ms = ms;
    /// A longer time.
    Seconds = seconds;
    /// A fraction, in percent.
    Percent = percent;
    /// A number of bytes, in kB or MB.
    Bytes = bytes;
    /// A whole number.
    Count = count;
}

#[cfg(test)]
mod tests {
    use super::{count, listed, mbps, ms};

    #[test]
    fn many_names_are_counted() {
        let names: Vec<String> = ["a", "b", "c", "d", "e"].map(str::to_owned).into();
        let said = [1, 2, 3, 5].map(|count| listed(&names[..count]));
        assert_eq!(said, ["a", "a and b", "a, b and c", "a, b and 3 more"]);
    }

    #[test]
    fn units_fit_the_figure() {
        assert_eq!(
            [0.0, 0.491, 7.38, 1476.0].map(mbps),
            ["0 Mb/s", "491 kb/s", "7.38 Mb/s", "1.48 Gb/s"]
        );
        assert_eq!([0.25, 61.5, 1206.0].map(ms), ["0.25 ms", "61.5 ms", "1.21 s"]);
    }

    #[test]
    fn thousands_have_commas() {
        let counted = [7.0, 999.0, 1000.0, 524_288.0, 1_000_000.4].map(count);
        assert_eq!(counted, ["7", "999", "1,000", "524,288", "1,000,000"]);
    }
}
