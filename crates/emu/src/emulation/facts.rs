//! What is needed to understand a run's result: the machine, its kernel, what each end was told and
//! counted.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;

use super::places::Places;
use super::plane::Machine;
use crate::congestion::SlowStarts;
use crate::namespace::{DEVICE, IPV6_MTU, Namespace};
use crate::nat::{Nat, NatFacts};
use crate::profile::KernelProfile;
use crate::tunnel::TunnelFacts;
use crate::{EmuError, Settings, WatchFacts};

/// The machine, and what it was told.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// `uname -r`.
    pub kernel: String,
    /// How packets came and went: `tun`, `packet`.
    pub io: &'static str,
    /// Without root: everything is inside a user namespace.
    pub user_namespace: bool,
    /// The forwarder's thread was scheduled first in first out.
    pub real_time: bool,
    /// Idle processors did not sleep.
    pub awake: bool,
    /// Why they did, although they should not have.
    pub asleep_because: Option<String>,
    /// Bytes handed to the kernel at once; see [`Settings`].
    pub coalesce_bytes: usize,
    /// See [`Settings`].
    pub spin_us: f64,
    /// Parameters of tcp_cubic, the same for the whole machine.
    pub tcp_cubic: BTreeMap<String, String>,
    /// How the senders were watched.
    pub watch: WatchFacts,
    /// CUBIC with the slow start of a generation, for programs too: names in the kernel.
    pub slow_starts: Vec<String>,
    /// Server first.
    pub ends: Vec<EndFacts>,
    /// GTP-U between gateway and base station.
    pub tunnel: Option<TunnelFacts>,
    /// The path's NATs, which the kernel was and not the model, innermost first.
    pub nats: Vec<NatFacts>,
}

/// One end.
#[derive(Clone, Debug, Serialize)]
pub struct EndFacts {
    /// Its name, for `ip netns exec` and in `/etc/hosts`.
    pub name: String,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// Of its device.
    pub mtu: u32,
    /// Congestion control of its routes.
    pub congestion: String,
    /// Other attributes of its routes.
    pub route: String,
    /// Sysctls that could not be set, and why.
    pub refused: BTreeMap<String, String>,
    /// Packets that the kernel dropped before the forwarder read them: its queue was full.
    pub queue_dropped: u64,
    /// net.ipv4.tcp_*, at the end.
    pub sysctls: BTreeMap<String, String>,
    /// TCP counters of `nstat`, those that are not 0; they began at 0.
    pub counters: BTreeMap<String, u64>,
    /// Of these, slow starts that HyStart ended, by its test, and their cwnd added up; 0 too.
    pub hystart: BTreeMap<&'static str, u64>,
}

impl Facts {
    /// At the end of a run, but for the tunnel's.
    ///
    /// # Errors
    ///
    /// When a namespace cannot be entered.
    pub(super) fn gather(
        places: &Places,
        settings: &Settings,
        (Machine { real_time, awake }, io): (Machine, &'static str),
        watch: WatchFacts,
        slow_starts: &SlowStarts,
    ) -> Result<Self, EmuError> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let ends = places.ends.iter().map(|(namespace, profile)| EndFacts::of(namespace, profile));
        Ok(Self {
            kernel: read("/proc/sys/kernel/osrelease"),
            io,
            user_namespace: in_user_namespace(),
            real_time,
            awake: awake == Ok(true),
            asleep_because: awake.err(),
            coalesce_bytes: settings.coalesce_bytes,
            spin_us: settings.spin.as_nanos() as f64 / 1e3,
            tcp_cubic: texts("/sys/module/tcp_cubic/parameters"),
            watch,
            slow_starts: slow_starts.names().ours.values().cloned().collect(),
            ends: ends.collect::<Result<_, EmuError>>()?,
            tunnel: None,
            nats: nat_facts(&places.nats)?,
        })
    }
}

impl EndFacts {
    fn of(namespace: &Namespace, profile: &KernelProfile) -> Result<Self, EmuError> {
        let (sysctls, counters, queue_dropped) = namespace.within(|| {
            let mut sysctls = texts("/proc/sys/net/ipv4");
            sysctls.retain(|name, _| name.starts_with("tcp_"));
            (sysctls, counters(), queue_dropped())
        })?;
        let mut addresses = vec![namespace.place.v4().to_string()];
        if profile.mtu >= IPV6_MTU {
            addresses.push(namespace.place.v6().to_string());
        }
        Ok(Self {
            name: namespace.name.clone(),
            addresses,
            mtu: profile.mtu,
            congestion: profile.congestion.clone(),
            route: profile.route.clone(),
            refused: namespace.refused.iter().cloned().collect(),
            queue_dropped,
            sysctls,
            hystart: hystart(&counters),
            counters,
        })
    }
}

fn nat_facts(nats: &[(Namespace, Nat)]) -> Result<Vec<NatFacts>, EmuError> {
    let each = nats.iter().enumerate().map(|(index, (namespace, nat))| {
        let outermost = index + 1 == nats.len();
        namespace.within(|| nat.facts(index, outermost, queue_dropped()))
    });
    each.collect()
}

/// Whether root here is nobody elsewhere: the first user namespace maps all numbers.
fn in_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().nth(2).is_some_and(|count| count != "4294967295")
}

/// The counters of HyStart.
fn hystart(counters: &BTreeMap<String, u64>) -> BTreeMap<&'static str, u64> {
    let names = [
        "TCPHystartTrainDetect",
        "TCPHystartTrainCwnd",
        "TCPHystartDelayDetect",
        "TCPHystartDelayCwnd",
    ];
    names.map(|name| (name, counters.get(name).copied().unwrap_or(0))).into()
}

/// Files of a directory and what they say, on one line each.
fn texts(directory: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path()).ok()?;
            let words: Vec<&str> = text.split_whitespace().collect();
            Some((entry.file_name().to_string_lossy().into_owned(), words.join(" ")))
        })
        .collect()
}

/// Of the device in the calling thread's network namespace: `drop` of what it should have sent.
fn queue_dropped() -> u64 {
    const COLUMN: usize = 11;
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let device = text.lines().find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':'));
    device.and_then(|counts| counts.split_whitespace().nth(COLUMN)?.parse().ok()).unwrap_or(0)
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
