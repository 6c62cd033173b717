//! Decibels and ratios.

// `libm` rather than the platform's functions: the result has the same bits on every machine.

/// Ten times the decimal logarithm of a power ratio; minus infinity for 0.
pub(crate) fn db(ratio: f64) -> f64 {
    10.0 * libm::log10(ratio)
}

/// The power ratio of `db`; 0 for minus infinity.
pub(crate) fn ratio(db: f64) -> f64 {
    libm::exp10(db / 10.0)
}
