//! The scenarios that ship with the program.

/// Name and text of each shipped scenario, in the suggested order of reading.
pub fn shipped() -> &'static [(&'static str, &'static str)] {
    SHIPPED
}

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../scenarios/", $name, ".toml")))),*]
    };
}

// A test compares this list with the directory.
const SHIPPED: &[(&str, &str)] = scenarios![
    "wire",
    "small-window",
    "bufferbloat",
    "codel",
    "random-loss",
    "bursty-loss",
    "jitter-reorder",
    "two-flows",
    "ping-under-load",
    "udp",
    "file-download",
    "asymmetric-3g",
    "trace-driven",
    "proxy",
    "edge-proxy",
    "gtpu-fragmentation",
    "vpn-mtu",
    "gro-forwarding",
    "policer",
    "one-way-firewall",
    "double-nat",
    "hypervisor",
    "upf-cpu",
    "modem-blocks",
    "wifi-like",
    "lte-private",
    "nr-n78",
    "usb-module",
    "lte-20",
    "nr-drx",
    "lte-2012",
    "umts-hspa",
    "evdo",
    "handover",
    "pdcp-gap",
    "split-bearer",
    "carrier-aggregation",
    "nsa",
];
