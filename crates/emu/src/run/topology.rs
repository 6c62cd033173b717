//! The namespaces of an emulation, and their names.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

use airpath_scenario::{ProgramPlace, Scenario};

use crate::device::port::Io;
use crate::host::congestion::Names;
use crate::host::core_network::CoreNetwork;
use crate::host::namespace::{IPV6_MTU, Namespace, Role};
use crate::host::nat::{self, Nat};
use crate::host::profile::KernelProfile;
use crate::host::session::UeSession;
use crate::host::tunnel::{Tunnel, TunnelSetup};
use crate::observation::observer::abort_connections;
use crate::run::programs::{At, c_strings};
use crate::{EmuError, Port, UeEnd};

/// The ends, and the nodes between them.
pub(super) struct Topology {
    /// The ends, server first.
    pub(super) ends: Vec<(Namespace, KernelProfile)>,
    /// NATs between the forwarder and the server, innermost first.
    pub(super) nats: Vec<(Namespace, Nat)>,
    /// Gateway and base station, if GTP-U goes between them.
    pub(super) nodes: Vec<Namespace>,
    /// IPv6 would bypass the addresses of the pool, or the NATs.
    pub(super) ipv4_first: bool,
}

/// The ports that the forwarder connects, and its tunnel.
pub(super) struct Ports {
    /// The port of the innermost NAT or, without NATs, of the server.
    pub(super) server: Port,
    pub(super) ues: Vec<UeEnd>,
    /// The tunnel between path and cell, and the name of the tunnel's interfaces.
    pub(super) tunnel: Option<(Tunnel, &'static str)>,
}

/// glibc's configuration of getaddrinfo.
const ADDRESS_ORDER: &str = "/etc/gai.conf";

/// The table of RFC 3484 2.1, which is glibc's own, with IPv4 before IPv6.
const IPV4_FIRST: &str = "precedence ::1/128 50\nprecedence ::/0 40\nprecedence 2002::/16 30\n\
                          precedence ::/96 20\nprecedence ::ffff:0:0/96 100\n";

impl Topology {
    /// Creates the namespaces. `ues` has the position in the scenario and the name of each UE.
    ///
    /// # Errors
    ///
    /// If something cannot be emulated, or is not permitted.
    pub(super) fn new(
        scenario: &Scenario,
        nats: Vec<Nat>,
        ues: Vec<(usize, String)>,
        names: &Names,
        sessions: &[UeSession],
    ) -> Result<(Self, Ports, Option<TunnelSetup>), EmuError> {
        let profile_of = |ue| KernelProfile::of(scenario, ue, names);
        let profile = profile_of(None)?;
        let profiles = ues.iter().map(|(ue, _)| profile_of(Some(*ue)));
        let profiles = profiles.collect::<Result<Vec<_>, EmuError>>()?;
        let mtu = profiles.iter().fold(profile.mtu, |mtu, profile| mtu.max(profile.mtu));
        let io = Io { wanted: scenario.emulation.io, ends: ues.len() + 1 };
        let core = CoreNetwork::new(scenario, nats, &profile, (mtu, io), &ues, sessions)?;
        let CoreNetwork { server, server_port, nats, nodes, tunnel, tunnel_setup } = core;
        // All ends use the same kind.
        let io = Io { wanted: server_port.io(), ..io };
        let mut ends = vec![(server, profile)];
        let mut ue_ends = Vec::new();
        for (index, ((ue, name), profile)) in (0u8..).zip(ues.into_iter().zip(profiles)) {
            let session = sessions.iter().find(|session| session.ue == ue);
            let role = session.map_or(Role::ue(index), |session| Role::Ue(index, session.address));
            let (mut namespace, tun) = Namespace::new(&name, role, &profile, io)?;
            namespace.ue = Some(ue);
            let addresses = vec![role.v4().into(), role.v6().into()];
            ue_ends.push(UeEnd { name, tun, ue, addresses });
            ends.push((namespace, profile));
        }
        let ipv4_first = scenario.core.is_some() || !nats.is_empty();
        let ports = Ports { server: server_port, ues: ue_ends, tunnel };
        Ok((Self { ends, nats, nodes, ipv4_first }, ports, tunnel_setup))
    }

    /// Where the command runs: at the first UE, unless a name is given.
    ///
    /// # Errors
    ///
    /// If there is no end of that name.
    pub(super) fn command_at(&self, name: Option<&str>) -> Result<At, EmuError> {
        name.map_or(Ok(&self.ends[1].0), |name| self.named(name)).map(at)
    }

    /// Where one of the scenario's programs runs.
    ///
    /// # Errors
    ///
    /// If the UE has no end.
    pub(super) fn program_at(&self, place: ProgramPlace) -> Result<At, EmuError> {
        match place {
            ProgramPlace::Server => Ok(at(&self.ends[0].0)),
            ProgramPlace::Ue(ue) => {
                let known = self.ends[1..].iter().find(|(end, _)| end.ue == Some(ue));
                known.map(|(end, _)| at(end)).ok_or(EmuError::Forwarder)
            }
        }
    }

    /// Files for `ip netns exec`, and the namespaces to which they refer.
    ///
    /// # Errors
    ///
    /// If a name is not a valid file name.
    pub(super) fn files(&self) -> Result<Vec<(CString, RawFd)>, EmuError> {
        let ends = self.ends.iter().enumerate().flat_map(|(index, (namespace, _))| {
            self.names(index).into_iter().map(move |name| (name, namespace))
        });
        let between = self.between().map(|namespace| (namespace.name.clone(), namespace));
        let files = ends.chain(between).map(|(name, namespace)| {
            let path = c_strings(&[format!("/run/netns/{name}")])?.remove(0);
            Ok((path, namespace.file.as_raw_fd()))
        });
        files.collect()
    }

    /// The content of `/etc/gai.conf`, if it matters which address of a name comes first.
    pub(super) fn address_order(&self) -> Option<&'static str> {
        (self.ipv4_first && Path::new(ADDRESS_ORDER).exists()).then_some(IPV4_FIRST)
    }

    /// The content of `/etc/hosts`: the host's, and the names of the ends. If IPv4 must come first
    /// and no configuration can ensure that, a name has no other address.
    pub(super) fn hosts(&self) -> String {
        let mut hosts = fs::read_to_string("/etc/hosts").unwrap_or_default();
        if !hosts.is_empty() && !hosts.ends_with('\n') {
            hosts.push('\n');
        }
        for (index, (namespace, profile)) in self.ends.iter().enumerate() {
            let names = self.names(index).join(" ");
            hosts += &format!("{} {names}\n", namespace.role.v4());
            let both = !self.ipv4_first || self.address_order().is_some();
            if profile.mtu >= IPV6_MTU && both {
                hosts += &format!("{} {names}\n", namespace.role.v6());
            }
        }
        hosts
    }

    /// The UEs' ends by address. Behind NATs the server sees their address, which belongs to a UE
    /// if there is only one; the NAT keeps the UE's ports.
    pub(super) fn addresses(&self) -> BTreeMap<IpAddr, usize> {
        let Self { ends, nats, .. } = self;
        let ues = ends.iter().enumerate().skip(1);
        let alone = !nats.is_empty() && ends.len() == 2;
        let outermost = alone.then(|| (nat::outermost_v4().into(), 1));
        let own = ues.flat_map(|(index, (end, _))| {
            [(end.role.v4().into(), index), (end.role.v6().into(), index)]
        });
        own.chain(outermost).collect()
    }

    /// Names of an end; the first UE is also called `ue`, unless another one has that name.
    fn names(&self, index: usize) -> Vec<String> {
        let mut names = vec![self.ends[index].0.name.clone()];
        if index == 1 && self.ends.iter().all(|(end, _)| end.name != "ue") {
            names.push("ue".to_owned());
        }
        names
    }

    fn named(&self, name: &str) -> Result<&Namespace, EmuError> {
        let found = self
            .ends
            .iter()
            .enumerate()
            .find(|(index, _)| self.names(*index).iter().any(|known| known == name));
        let between = || self.between().find(|node| node.name == name);
        let found = found.map(|(_, (end, _))| end).or_else(between);
        found.ok_or_else(|| {
            let ends = self.ends.iter().map(|(end, _)| end);
            let known: Vec<&str> =
                ends.chain(self.between()).map(|end| end.name.as_str()).collect();
            EmuError::UnknownEnd { name: name.to_owned(), known: known.join(", ") }
        })
    }

    /// The nodes that are neither the server nor a UE.
    fn between(&self) -> impl Iterator<Item = &Namespace> {
        self.nats.iter().map(|(nat, _)| nat).chain(&self.nodes)
    }
}

impl Drop for Topology {
    /// When the run is over its connections end too: none of them keeps a namespace, or a
    /// congestion control that was loaded for the run.
    fn drop(&mut self) {
        for (end, _) in &self.ends {
            // If the kernel does not support it, it gives them up itself after some minutes.
            let _ = abort_connections(end);
        }
    }
}

fn at(namespace: &Namespace) -> At {
    At { name: namespace.name.clone(), network: namespace.file.as_raw_fd() }
}
