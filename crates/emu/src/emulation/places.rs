//! The namespaces of an emulation, and the names that lead to them.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, RawFd};

use airpath_scenario::ProgramPlace;

use crate::EmuError;
use crate::namespace::{IPV6_MTU, Namespace};
use crate::nat::{self, Nat};
use crate::profile::KernelProfile;
use crate::programs::{At, c_strings};

/// Ends, and what is between them.
pub(super) struct Places {
    /// Server first.
    pub(super) ends: Vec<(Namespace, KernelProfile)>,
    /// Between the forwarder and the server, innermost first.
    pub(super) nats: Vec<(Namespace, Nat)>,
    /// Gateway and base station, if GTP-U goes between them.
    pub(super) nodes: Vec<Namespace>,
}

impl Places {
    /// Where the command runs: at the first UE unless a name says otherwise.
    ///
    /// # Errors
    ///
    /// A name that leads nowhere.
    pub(super) fn command_at(&self, name: Option<&str>) -> Result<At, EmuError> {
        name.map_or(Ok(&self.ends[1].0), |name| self.named(name)).map(at)
    }

    /// Where one of the scenario's programs runs.
    ///
    /// # Errors
    ///
    /// A UE that has no end.
    pub(super) fn program_at(&self, place: ProgramPlace) -> Result<At, EmuError> {
        match place {
            ProgramPlace::Server => Ok(at(&self.ends[0].0)),
            ProgramPlace::Ue(ue) => {
                let known = self.ends[1..].iter().find(|(end, _)| end.ue == Some(ue));
                known.map(|(end, _)| at(end)).ok_or(EmuError::Forwarder)
            }
        }
    }

    /// Files for `ip netns exec`, and the namespaces that they lead to.
    ///
    /// # Errors
    ///
    /// A name that no file can have.
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

    /// `/etc/hosts`: the host's, and the names of the ends.
    pub(super) fn hosts(&self) -> String {
        let mut hosts = fs::read_to_string("/etc/hosts").unwrap_or_default();
        if !hosts.is_empty() && !hosts.ends_with('\n') {
            hosts.push('\n');
        }
        for (index, (namespace, profile)) in self.ends.iter().enumerate() {
            let names = self.names(index).join(" ");
            hosts += &format!("{} {names}\n", namespace.place.v4());
            if profile.mtu >= IPV6_MTU {
                hosts += &format!("{} {names}\n", namespace.place.v6());
            }
        }
        hosts
    }

    /// The UEs' ends by address. Behind NATs the server sees theirs, which is that of one UE if
    /// there is no other; it keeps the UE's ports.
    pub(super) fn addresses(&self) -> BTreeMap<IpAddr, usize> {
        let Self { ends, nats, .. } = self;
        let ues = ends.iter().enumerate().skip(1);
        let alone = !nats.is_empty() && ends.len() == 2;
        let outermost = alone.then(|| (nat::outermost_v4().into(), 1));
        let own = ues.flat_map(|(index, (end, _))| {
            [(end.place.v4().into(), index), (end.place.v6().into(), index)]
        });
        own.chain(outermost).collect()
    }

    /// Names of an end; the first UE is also `ue`, unless another one is.
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
            EmuError::Place { name: name.to_owned(), known: known.join(", ") }
        })
    }

    /// What is neither the server nor a UE.
    fn between(&self) -> impl Iterator<Item = &Namespace> {
        self.nats.iter().map(|(nat, _)| nat).chain(&self.nodes)
    }
}

fn at(namespace: &Namespace) -> At {
    At { name: namespace.name.clone(), network: namespace.file.as_raw_fd() }
}
