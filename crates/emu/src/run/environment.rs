//! What is needed to interpret a run's result: the machine, its kernel, and the settings and
//! counters of each end.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;

use super::forwarder_thread::Machine;
use super::topology::Topology;
use crate::host::congestion::{ChosenCongestion, CongestionControls};
use crate::host::counters::{counters, queue_dropped, texts};
use crate::host::namespace::{IPV6_MTU, Namespace};
use crate::host::nat::{Nat, NatReport};
use crate::host::profile::KernelProfile;
use crate::host::tunnel::TunnelSetup;
use crate::{EmuError, ObserverReport, Settings};

/// The machine and its settings.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Environment {
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// How packets were exchanged with the kernel: `tun`, `packet`.
    pub io: &'static str,
    /// Whether there was no root: everything is inside a user namespace.
    pub user_namespace: bool,
    /// Whether the forwarder's thread had real-time scheduling (SCHED_FIFO).
    pub real_time: bool,
    /// Whether idle processors were kept awake.
    pub awake: bool,
    /// Why they were not, although they should have been.
    pub asleep_because: Option<String>,
    /// Bytes passed to the kernel at once; see [`Settings`].
    pub coalesce_bytes: usize,
    /// Polling time before a departure; see [`Settings`].
    pub spin_us: f64,
    /// Parameters of tcp_cubic, which apply to the whole machine.
    pub tcp_cubic: BTreeMap<String, String>,
    /// How the senders were observed.
    pub observer: ObserverReport,
    /// CUBIC with the slow start of a generation, also available to programs: names in the kernel.
    pub slow_starts: Vec<String>,
    /// Congestion controls that the user chose instead of the scenario's.
    pub congestion: Vec<ChosenCongestion>,
    /// The ends, server first.
    pub ends: Vec<EndEnvironment>,
    /// GTP-U between gateway and base station.
    pub tunnel: Option<TunnelSetup>,
    /// NATs of the path that were the kernel's and not the model's, innermost first.
    pub nats: Vec<NatReport>,
}

/// The namespace of the server or of a UE, and its settings.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndEnvironment {
    /// The end's name, for `ip netns exec` and in `/etc/hosts`.
    pub name: String,
    /// IPv4 addresses, and IPv6 addresses if the MTU allows it.
    pub addresses: Vec<String>,
    /// MTU of its device.
    pub mtu: u32,
    /// Congestion control of its routes.
    pub congestion: String,
    /// Other attributes of its routes.
    pub route: String,
    /// Sysctls that could not be set, and why.
    pub refused: BTreeMap<String, String>,
    /// Packets that the kernel dropped before the forwarder read them, because its queue was full.
    pub queue_dropped: u64,
    /// net.ipv4.tcp_* at the end of the run.
    pub sysctls: BTreeMap<String, String>,
    /// TCP counters of `nstat` that are not 0; they started at 0.
    pub counters: BTreeMap<String, u64>,
    /// Slow starts that HyStart ended, by test, and the sum of their cwnd; including zeros.
    pub hystart: BTreeMap<&'static str, u64>,
}

impl Environment {
    /// Gathers the environment at the end of a run, except for the tunnel's.
    ///
    /// # Errors
    ///
    /// If a namespace cannot be entered.
    pub(super) fn gather(
        topology: &Topology,
        ends: Vec<EndEnvironment>,
        settings: &Settings,
        machine: (Machine, &'static str),
        observer: ObserverReport,
        congestion: &CongestionControls,
    ) -> Result<Self, EmuError> {
        Ok(Self {
            slow_starts: congestion.names().ours.values().cloned().collect(),
            congestion: congestion.chosen().to_vec(),
            ends,
            nats: nat_reports(&topology.nats)?,
            ..Self::of_machine(settings, machine, observer)
        })
    }

    /// The environment of a run without namespaces.
    pub(super) fn of_machine(
        settings: &Settings,
        (Machine { real_time, awake }, io): (Machine, &'static str),
        observer: ObserverReport,
    ) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        Self {
            kernel: read("/proc/sys/kernel/osrelease"),
            io,
            user_namespace: in_user_namespace(),
            real_time,
            awake: awake == Ok(true),
            asleep_because: awake.err(),
            coalesce_bytes: settings.coalesce_bytes,
            spin_us: settings.spin.as_nanos() as f64 / 1e3,
            tcp_cubic: texts("/sys/module/tcp_cubic/parameters"),
            observer,
            slow_starts: Vec::new(),
            congestion: Vec::new(),
            ends: Vec::new(),
            tunnel: None,
            nats: Vec::new(),
        }
    }
}

impl EndEnvironment {
    /// The current environment of each end's namespace.
    ///
    /// # Errors
    ///
    /// If a namespace cannot be entered.
    pub(super) fn of_all(topology: &Topology) -> Result<Vec<Self>, EmuError> {
        let of = |(namespace, profile): &(Namespace, KernelProfile)| Self::of(namespace, profile);
        topology.ends.iter().map(of).collect()
    }

    fn of(namespace: &Namespace, profile: &KernelProfile) -> Result<Self, EmuError> {
        let (sysctls, counters, queue_dropped) = namespace.within(|| {
            let mut sysctls = texts("/proc/sys/net/ipv4");
            sysctls.retain(|name, _| name.starts_with("tcp_"));
            (sysctls, counters(), queue_dropped())
        })?;
        let mut addresses = vec![namespace.role.v4().to_string()];
        if profile.mtu >= IPV6_MTU {
            addresses.push(namespace.role.v6().to_string());
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

fn nat_reports(nats: &[(Namespace, Nat)]) -> Result<Vec<NatReport>, EmuError> {
    let each = nats.iter().enumerate().map(|(index, (namespace, nat))| {
        let outermost = index + 1 == nats.len();
        namespace.within(|| nat.report(index, outermost, queue_dropped()))
    });
    each.collect()
}

/// Whether root here is not root outside: only the first user namespace maps all numbers.
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
