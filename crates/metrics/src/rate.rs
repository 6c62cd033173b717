//! Bytes over time.

/// Rate in Mb/s (10^6 bits per second); `None` over no time.
pub fn mbps(bytes: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds / 1e6)
}
