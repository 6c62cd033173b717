//! The kernel's counters and settings in a network namespace.

use std::collections::BTreeMap;
use std::fs;

use airpath_base::Duration;

use crate::host::namespace::DEVICE;

/// Files of a directory with their content, each on one line.
pub(crate) fn texts(directory: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path()).ok()?;
            let words: Vec<&str> = text.split_whitespace().collect();
            Some((entry.file_name().to_string_lossy().into_owned(), words.join(" ")))
        })
        .collect()
}

/// Packets that the device in the calling thread's network namespace should have sent but dropped.
pub(crate) fn queue_dropped() -> u64 {
    const COLUMN: usize = 11;
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let device = text.lines().find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':'));
    device.and_then(|counts| counts.split_whitespace().nth(COLUMN)?.parse().ok()).unwrap_or(0)
}

/// How long the calling thread was ready to run while others had the processor; `None` if the
/// kernel does not count it (CONFIG_SCHED_INFO).
pub(crate) fn waited_to_run() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// TCP counters of the calling thread's network namespace.
pub(crate) fn counters() -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for file in ["/proc/thread-self/net/snmp", "/proc/thread-self/net/netstat"] {
        let text = fs::read_to_string(file).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.chunks_exact(2) {
            let (names, values) = (pair[0].split_whitespace(), pair[1].split_whitespace());
            if !pair[0].starts_with("Tcp") {
                continue;
            }
            let numbers = names.zip(values).filter_map(|(name, value)| {
                Some((name.to_owned(), value.parse::<u64>().ok().filter(|&value| value > 0)?))
            });
            counters.extend(numbers);
        }
    }
    counters
}
