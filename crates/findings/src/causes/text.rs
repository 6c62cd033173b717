//! Figures in sentences.

/// A rate.
pub(crate) fn mbps(rate: f64) -> String {
    if rate >= 100.0 { format!("{rate:.0} Mb/s") } else { format!("{rate:.3} Mb/s") }
}

/// A time.
pub(crate) fn ms(time: f64) -> String {
    if time >= 100.0 { format!("{time:.0} ms") } else { format!("{time:.1} ms") }
}

/// A share of one.
pub(crate) fn percent(share: f64) -> String {
    if share >= 0.1 { format!("{:.0} %", share * 100.0) } else { format!("{:.2} %", share * 100.0) }
}

/// A number of bytes.
pub(crate) fn bytes(count: f64) -> String {
    if count >= 1e6 { format!("{:.1} MB", count / 1e6) } else { format!("{:.0} kB", count / 1e3) }
}
