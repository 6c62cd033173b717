//! The NATs of a path in the kernel: one namespace each, between the forwarder and the server, with
//! nftables in it.
//!
//! Bindings are conntrack's; their lifetime is controlled by an nftables set, because conntrack
//! uses whole seconds only and always refreshes in both directions.

use std::net::Ipv4Addr;
use std::process::Command;

use airpath_path::{MiddleboxConfig, MiddleboxKind, MiddleboxSide, MiddleboxTimer, StageConfig};
use airpath_scenario::Scenario;
use serde::Serialize;

use crate::device::port::Io;
use crate::host::namespace::{
    DEVICE, IPV6_MTU, Namespace, Pool, QUEUE_PACKETS, Role, open_port, run_ip, run_with_input,
    write_sysctls,
};
use crate::host::profile::KernelProfile;
use crate::{EmuError, Port};

/// Most NATs; each has a third byte of the addresses.
const MOST: usize = 8;

/// Interface towards the server, in each NAT.
const OUTSIDE: &str = "outside";

/// Interface towards the UE, in all NATs except the innermost, which has the TUN device.
const INSIDE: &str = "inside";

/// A NAT of the path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Nat {
    /// The NAT's stage in `[[path.up]]`.
    pub(crate) stage: String,
    pub(crate) timer: MiddleboxTimer,
}

/// What a NAT did in a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NatReport {
    /// The NAT's name, for `ip netns exec`.
    pub name: String,
    /// The stage in `[[path.up]]` that the kernel replaced.
    pub stage: String,
    /// The address visible from outside.
    pub address: String,
    /// Lifetime of a binding without packets, in seconds.
    pub timeout_s: f64,
    /// Whether packets from outside refresh it.
    pub inward_refreshes: bool,
    /// Packets from outside for which there was no binding.
    pub no_binding: u64,
    /// Packets dropped before the forwarder read them.
    pub queue_dropped: u64,
}

/// Removes the NATs from a scenario's path, innermost first: the kernel takes their place.
pub(crate) fn take_out(scenario: &mut Scenario) -> Result<Vec<Nat>, EmuError> {
    let mut nats = Vec::new();
    for named in &scenario.up {
        if let StageConfig::Middlebox(MiddleboxConfig {
            kind: MiddleboxKind::Nat,
            side: MiddleboxSide::Outward(timer),
        }) = &named.stage
        {
            nats.push(Nat { stage: named.name.clone(), timer: *timer });
        }
    }
    for stages in [&mut scenario.down, &mut scenario.up] {
        stages.retain(|named| {
            !matches!(
                named.stage,
                StageConfig::Middlebox(MiddleboxConfig { kind: MiddleboxKind::Nat, .. })
            )
        });
    }
    if nats.len() > MOST {
        return Err(EmuError::Nats { nats: nats.len(), most: MOST });
    }
    Ok(nats)
}

/// `nat1`, `nat2`, …, innermost first.
pub(crate) fn name(index: usize) -> String {
    format!("nat{}", index + 1)
}

/// A row of NATs, with the server behind them.
pub(crate) struct Chain {
    pub(crate) server: Namespace,
    /// The NATs, innermost first.
    pub(crate) nats: Vec<(Namespace, Nat)>,
    /// The port of the innermost NAT.
    pub(crate) port: Port,
}

impl Chain {
    /// Sets up NATs from the UE's side to the server's, at least one. Links carry packets of `mtu`
    /// bytes, the server's routes only those of its profile.
    ///
    /// # Errors
    ///
    /// If `ip` or `nft` is missing, or the kernel lacks support.
    pub(crate) fn new(
        server: &str,
        nats: Vec<Nat>,
        profile: &KernelProfile,
        (pool, mtu): (Pool, u32),
        io: Io,
    ) -> Result<Self, EmuError> {
        let (first, last) = (name(0), nats.len());
        let mut made: Vec<(Namespace, Nat)> = Vec::new();
        let mut port = None;
        for (index, nat) in nats.into_iter().enumerate() {
            let name = name(index);
            let inner = made.last().map(|(inner, _)| inner.path());
            let (namespace, device) = Namespace::make(&name, Role::Between, || {
                let device = match &inner {
                    None => Some(open_port(io, mtu)?),
                    Some(_) => None,
                };
                set_up(&name, &nat)?;
                run_ip(&match &inner {
                    None => tun_batch(pool, mtu),
                    Some(inner) => veth_batch(INSIDE, inner, mtu) + &inside_batch(index, mtu),
                })?;
                Ok(device)
            })?;
            port = port.or(device);
            if let Some((inner, _)) = made.last() {
                inner.within(|| run_ip(&outside_batch(index - 1, false, mtu)))??;
            }
            made.push((namespace, nat));
        }
        let (Some(port), Some((outermost, _))) = (port, made.last()) else {
            return Err(EmuError::UnknownEnd { name: first, known: "no NAT".to_owned() });
        };
        let path = outermost.path();
        let (mut server, refused) = Namespace::make(server, Role::Server(pool), || {
            let refused = write_sysctls(&profile.sysctls);
            run_ip(&veth_batch(DEVICE, &path, mtu))?;
            Ok(refused)
        })?;
        server.refused = refused;
        // In this order nothing is sent to an end that is down.
        outermost.within(|| run_ip(&outside_batch(last - 1, true, mtu)))??;
        server.within(|| run_ip(&server_batch(pool, profile)))??;
        Ok(Self { server, nats: made, port })
    }
}

impl Nat {
    /// The NAT's report so far.
    pub(crate) fn report(&self, index: usize, outermost: bool, queue_dropped: u64) -> NatReport {
        NatReport {
            name: name(index),
            stage: self.stage.clone(),
            address: outside(index, outermost)[0].clone(),
            timeout_s: self.timer.timeout.as_secs_f64(),
            inward_refreshes: self.timer.inward_refreshes,
            no_binding: no_binding(),
            queue_dropped,
        }
    }
}

/// Enables forwarding, and translation of what leaves.
fn set_up(name: &str, nat: &Nat) -> Result<(), EmuError> {
    let mut sysctls = vec![
        ("net.ipv4.ip_forward", "1".to_owned()),
        ("net.ipv6.conf.all.forwarding", "1".to_owned()),
    ];
    run_with_input("nft", &["-f", "-"], &rules(&nat.timer))
        .map_err(|said| EmuError::Nft { name: name.to_owned(), said })?;
    // A segment outside the window is caused by the path or the sender; it is translated, too.
    sysctls.push(("net.netfilter.nf_conntrack_tcp_be_liberal", "1".to_owned()));
    let seconds = nat.timer.timeout.as_nanos().div_ceil(1_000_000_000) + 1;
    let seconds = seconds.min(LONGEST_S).to_string();
    for timer in TIMERS {
        sysctls.push((timer, seconds.clone()));
    }
    match write_sysctls(&sysctls).into_iter().next() {
        None => Ok(()),
        Some((setting, said)) => Err(EmuError::Sysctl { name: name.to_owned(), setting, said }),
    }
}

/// Conntrack's timers of established flows; they expire after those of the set.
const TIMERS: [&str; 6] = [
    "net.netfilter.nf_conntrack_tcp_timeout_established",
    "net.netfilter.nf_conntrack_udp_timeout",
    "net.netfilter.nf_conntrack_udp_timeout_stream",
    "net.netfilter.nf_conntrack_icmp_timeout",
    "net.netfilter.nf_conntrack_icmpv6_timeout",
    "net.netfilter.nf_conntrack_generic_timeout",
];

/// A sysctl in jiffies has 31 bits, with up to 1000 jiffies per second.
const LONGEST_S: u64 = i32::MAX as u64 / 1000;

/// Packets of a flow that the inside has opened pass until its timeout. IPv4 is translated (RFC
/// 4787, RFC 5382); IPv6 keeps its addresses, under the same timeout (RFC 4864 4.2).
fn rules(timer: &MiddleboxTimer) -> String {
    let timeout_ms = timer.timeout.as_nanos().div_ceil(1_000_000);
    let refresh = if timer.inward_refreshes { "update @bindings { ct id } " } else { "" };
    format!(
        r#"table inet nat {{
  counter no_binding {{ }}
  set bindings {{ typeof ct id; flags dynamic,timeout; timeout {timeout_ms}ms; size 65536; }}
  chain forward {{
    type filter hook forward priority filter; policy drop;
    iifname != "{OUTSIDE}" update @bindings {{ ct id }} accept
    ct state established,related ct id @bindings {refresh}accept
    counter name no_binding drop
  }}
  chain input {{
    type filter hook input priority filter; policy accept;
    iifname "{OUTSIDE}" meta nfproto ipv4 ct state != {{ established, related }} counter name no_binding drop
  }}
  chain postrouting {{
    type nat hook postrouting priority srcnat;
    oifname "{OUTSIDE}" meta nfproto ipv4 masquerade
  }}
}}
"#
    )
}

/// The outside addresses of a NAT, IPv4 and IPv6, and those of its neighbour there. Between NATs
/// they are from shared address space (RFC 6598).
fn outside(index: usize, outermost: bool) -> [String; 4] {
    if outermost {
        let v4 = outermost_v4().to_string();
        [v4, "fd77::2".to_owned(), "10.77.0.1".to_owned(), "fd77::1".to_owned()]
    } else {
        let link = index + 1;
        let v4 = |host: u8| format!("100.127.{link}.{host}");
        let v6 = |host: u8| format!("fd77:0:0:{link}::{host}");
        [v4(2), v6(2), v4(1), v6(1)]
    }
}

/// The outermost NAT's address.
pub(crate) const fn outermost_v4() -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, 2)
}

/// Both ends of a link, whose IPv6 neighbour discovery uses `fe80::1` and `fe80::2`: `name` here,
/// [`OUTSIDE`] in the namespace at `inner`.
fn veth_batch(name: &str, inner: &str, mtu: u32) -> String {
    format!("link add {name} mtu {mtu} type veth peer name {OUTSIDE} mtu {mtu} netns {inner}\n")
}

fn tun_batch(pool: Pool, mtu: u32) -> String {
    let mut lines = format!(
        "link set lo up\n\
         link set {DEVICE} mtu {mtu} txqueuelen {QUEUE_PACKETS} addrgenmode none\n\
         link set {DEVICE} up\n\
         route add {pool} dev {DEVICE}\n"
    );
    if mtu >= IPV6_MTU {
        lines += &format!("route add fd77::1:0/112 dev {DEVICE}\n");
    }
    lines
}

fn inside_batch(index: usize, mtu: u32) -> String {
    let [inner_v4, inner_v6, v4, v6] = outside(index - 1, false);
    let mut lines = format!(
        "link set lo up\n\
         link set {INSIDE} addrgenmode none\n\
         link set {INSIDE} up\n\
         address add {v4}/32 dev {INSIDE}\n\
         route add {inner_v4} dev {INSIDE}\n"
    );
    if mtu >= IPV6_MTU {
        lines += &format!(
            "address add fe80::1/64 dev {INSIDE} nodad\n\
             address add {v6}/128 dev {INSIDE} nodad\n\
             route add {inner_v6} dev {INSIDE}\n\
             route add fd77::1:0/112 via {inner_v6} dev {INSIDE}\n"
        );
    }
    lines
}

fn outside_batch(index: usize, outermost: bool, mtu: u32) -> String {
    let [v4, v6, next_v4, next_v6] = outside(index, outermost);
    let mut lines = format!(
        "link set {OUTSIDE} addrgenmode none\n\
         link set {OUTSIDE} up\n\
         address add {v4}/32 dev {OUTSIDE}\n\
         route add {next_v4} dev {OUTSIDE} src {v4}\n\
         route add default via {next_v4} dev {OUTSIDE}\n"
    );
    if mtu >= IPV6_MTU {
        lines += &format!(
            "address add fe80::2/64 dev {OUTSIDE} nodad\n\
             address add {v6}/128 dev {OUTSIDE} nodad\n\
             route add {next_v6} dev {OUTSIDE}\n\
             route add default via {next_v6} dev {OUTSIDE}\n"
        );
    }
    lines
}

/// Routes the UEs' own addresses to the NAT, which drops packets without a binding.
fn server_batch(pool: Pool, profile: &KernelProfile) -> String {
    let [nat_v4, nat_v6, v4, v6] = outside(0, true);
    let mtu = profile.mtu;
    let mut lines = format!(
        "link set lo up\n\
         link set {DEVICE} addrgenmode none\n\
         link set {DEVICE} up\n\
         address add {v4}/32 dev {DEVICE}\n"
    );
    lines += &profile.routes(&[
        format!("{nat_v4} dev {DEVICE} src {v4} mtu {mtu}"),
        format!("{pool} via {nat_v4} dev {DEVICE} src {v4} mtu {mtu}"),
    ]);
    if profile.mtu >= IPV6_MTU {
        lines += &format!(
            "address add fe80::1/64 dev {DEVICE} nodad\n\
             address add {v6}/128 dev {DEVICE} nodad\n\
             route add {nat_v6} dev {DEVICE}\n\
             route add fd77::1:0/112 via {nat_v6} dev {DEVICE} src {v6} mtu {mtu} {}\n",
            profile.route
        );
    }
    lines
}

/// The value of the counter `no_binding` in the calling thread's namespace.
fn no_binding() -> u64 {
    let output = Command::new("nft").args(["-j", "list", "counters"]).output().ok();
    let said = output.and_then(|output| {
        serde_json::from_slice::<serde_json::Value>(&output.stdout).ok()?["nftables"]
            .as_array()?
            .iter()
            .find_map(|item| item["counter"]["packets"].as_u64())
    });
    said.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use airpath_base::Duration;
    use airpath_scenario::{Source, parse, shipped};

    use super::*;

    #[test]
    fn nats_leave_the_model_and_nothing_else_does() {
        let text = shipped().iter().find(|(name, _)| *name == "double-nat").expect("it ships").1;
        let source = Source { name: "double-nat", text, directory: None };
        let whole = parse(&source, &[]).unwrap_or_else(|error| panic!("{error}")).scenario;
        let mut scenario = whole.clone();
        let nats = take_out(&mut scenario).unwrap();
        let said: Vec<_> = nats
            .iter()
            .map(|nat| (nat.stage.as_str(), nat.timer.timeout, nat.timer.inward_refreshes))
            .collect();
        let (long, short) = (Duration::from_secs(300), Duration::from_secs(30));
        assert_eq!(said, [("up.0.nat", long, true), ("up.2.nat", short, false)]);
        let left = |stages: &[airpath_scenario::NamedStage]| -> Vec<String> {
            stages.iter().map(|stage| stage.name.clone()).collect()
        };
        assert_eq!(left(&scenario.up), ["up.1.delay", "up.3.server"]);
        assert_eq!(left(&scenario.down), ["down.0.server", "down.2.delay"]);
        assert!(take_out(&mut scenario).unwrap().is_empty());
    }

    #[test]
    fn only_what_comes_in_may_not_refresh() {
        let timer =
            MiddleboxTimer { timeout: Duration::from_micros(1500), inward_refreshes: false };
        let rules = rules(&timer);
        assert!(rules.contains("timeout 2ms"), "{rules}");
        assert_eq!(rules.matches("update @bindings").count(), 1);
        let refreshing = super::rules(&MiddleboxTimer { inward_refreshes: true, ..timer });
        assert_eq!(refreshing.matches("update @bindings").count(), 2);
    }
}
