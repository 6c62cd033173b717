//! The host's kernel takes the programs, and keeps nothing of them. Root.
#![cfg(feature = "kernel")]
#![allow(clippy::print_stderr, reason = "a test that cannot run says so")]

use std::fs;

use airpath_bpf::{Cubic, Generation, Watch};

/// True if this machine can do it; else says why not.
fn allowed() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    let btf = fs::exists("/sys/kernel/btf/vmlinux").unwrap_or(false);
    match (is_root, btf) {
        (false, _) => eprintln!("SKIPPED: root is needed for BPF"),
        (_, false) => eprintln!("SKIPPED: the kernel has no BTF (CONFIG_DEBUG_INFO_BTF)"),
        _ => return true,
    }
    false
}

fn registered(name: &str) -> bool {
    let there = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    there.split_whitespace().any(|known| known == name)
}

#[test]
fn two_runs_have_congestion_controls_of_their_own() {
    if !allowed() {
        return;
    }
    let first = Cubic::load(4000).unwrap_or_else(|error| panic!("{error}"));
    let second = Cubic::load(4000).unwrap_or_else(|error| panic!("{error}"));
    let names = |cubic: &Cubic| Generation::ALL.map(|generation| cubic.name(generation));
    let (of_first, of_second) = (names(&first), names(&second));
    assert!(of_first.iter().chain(&of_second).all(|name| registered(name)));
    assert!(of_first.iter().all(|name| !of_second.contains(name)));
    drop(first);
    assert!(of_second.iter().all(|name| registered(name)));
    assert!(!of_first.iter().any(|name| registered(name)));
    drop(second);
    assert!(!of_second.iter().any(|name| registered(name)));
}

#[test]
fn a_namespace_without_senders_has_no_records() {
    if !allowed() {
        return;
    }
    // No namespace has the number 1.
    let mut watch = Watch::new(&[1]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(watch.take().unwrap_or_else(|error| panic!("{error}")), []);
    assert_eq!(watch.lost(), 0);
}
