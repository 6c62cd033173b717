//! A network namespace without a name: it exists as long as a process or a descriptor holds it. An
//! end has one TUN device in it, or a link to the outermost NAT.

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};
use std::thread;

use airpath_scenario::PacketIo;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::device::port::{Io, PROGRAMS_ADDRESS, WIRE, WIRE_ADDRESS};
use crate::host::profile::KernelProfile;
use crate::sys::LARGEST;
use crate::{EmuError, PacketPort, Port, Tun, sys};

/// The interface's name in each namespace.
pub(crate) const DEVICE: &str = "air0";

/// Length of the queue: TUN drops silently when it is full.
pub(crate) const QUEUE_PACKETS: u32 = 20_000;

/// The part that a namespace plays in the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// The server, which reaches the UEs in that network.
    Server(Pool),
    /// A UE: its index, from 0, and its address.
    Ue(u8, Ipv4Addr),
    /// A node between them, which runs no flow's program.
    Between,
}

/// The UEs' IPv4 network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pool {
    pub(crate) network: Ipv4Addr,
    pub(crate) prefix: u8,
}

/// The namespace of one end.
#[derive(Debug)]
pub(crate) struct Namespace {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// The UE's position in the scenario; `None` for the server.
    pub(crate) ue: Option<usize>,
    /// A descriptor of the namespace.
    pub(crate) file: File,
    /// Settings that were refused, and why.
    pub(crate) refused: Vec<(String, String)>,
}

impl Role {
    /// A UE with a default address: 10.77.1.1, 10.77.1.2, …
    pub(crate) fn ue(index: u8) -> Self {
        Self::Ue(index, Ipv4Addr::new(10, 77, 1, index + 1))
    }

    /// The IPv4 address: 10.77.0.1, and those of the UEs.
    pub(crate) fn v4(self) -> Ipv4Addr {
        match self {
            Self::Server(_) => Ipv4Addr::new(10, 77, 0, 1),
            Self::Ue(_, address) => address,
            Self::Between => Ipv4Addr::UNSPECIFIED,
        }
    }

    /// The IPv6 address: fd77::1, fd77::1:1, fd77::1:2, … (RFC 4193)
    pub(crate) fn v6(self) -> Ipv6Addr {
        match self {
            Self::Server(_) => Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1),
            Self::Ue(index, _) => Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 1, u16::from(index) + 1),
            Self::Between => Ipv6Addr::UNSPECIFIED,
        }
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self { network: Ipv4Addr::new(10, 77, 1, 0), prefix: 24 }
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.network, self.prefix)
    }
}

impl Namespace {
    /// An end with its TUN device.
    ///
    /// # Errors
    ///
    /// If CAP_SYS_ADMIN, /dev/net/tun or `ip` is missing.
    pub(crate) fn new(
        name: &str,
        role: Role,
        profile: &KernelProfile,
        io: Io,
    ) -> Result<(Self, Port), EmuError> {
        let (mut namespace, (port, refused)) = Self::make(name, role, || {
            let port = open_port(io, profile.mtu)?;
            let refused = write_sysctls(&profile.sysctls);
            run_ip(&batch(role, profile))?;
            Ok((port, refused))
        })?;
        namespace.refused = refused;
        Ok((namespace, port))
    }

    /// Creates a namespace, and runs `work` inside.
    ///
    /// # Errors
    ///
    /// If CAP_SYS_ADMIN is missing; those of `work`.
    pub(crate) fn make<T: Send>(
        name: &str,
        role: Role,
        work: impl FnOnce() -> Result<T, EmuError> + Send,
    ) -> Result<(Self, T), EmuError> {
        // A thread has its own namespace, and the thread ends here.
        let made = thread::scope(|scope| {
            let make = || {
                let failed = |source| EmuError::Unshare { name: name.to_owned(), source };
                sys::unshare_network().map_err(failed)?;
                let file = File::open("/proc/thread-self/ns/net").map_err(failed)?;
                let refused = Vec::new();
                Ok((Self { name: name.to_owned(), role, ue: None, file, refused }, work()?))
            };
            scope.spawn(make).join()
        });
        made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// The inode of `/proc/PID/ns/net`, which is unique among existing namespaces.
    #[cfg(feature = "bpf")]
    pub(crate) fn inode(&self) -> Result<u32, EmuError> {
        let failed = |source| EmuError::Namespace { name: self.name.clone(), source };
        // The kernel uses 32 bits for these inodes.
        let inode = |metadata: fs::Metadata| std::os::unix::fs::MetadataExt::ino(&metadata) as u32;
        self.file.metadata().map(inode).map_err(failed)
    }

    /// A path to the namespace for `ip`, valid as long as this process holds it.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Runs `work` in a thread inside the namespace.
    pub(crate) fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, EmuError> {
        let failed = |source| EmuError::Namespace { name: self.name.clone(), source };
        let done = thread::scope(|scope| {
            let inside = || {
                let network = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(self.file.as_fd(), network).map(|()| work())
            };
            scope.spawn(inside).join()
        });
        let done = done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        done.map_err(|error| failed(error.into()))
    }
}

/// Writes sysctls; returns those that could not be written, with the reason.
pub(crate) fn write_sysctls(sysctls: &[(&str, String)]) -> Vec<(String, String)> {
    let mut refused = Vec::new();
    for (key, value) in sysctls {
        let file = format!("/proc/sys/{}", key.replace('.', "/"));
        if let Err(error) = fs::write(file, value) {
            refused.push((format!("{key}={value}"), error.to_string()));
        }
    }
    refused
}

/// Creates [`DEVICE`] in the calling thread's network namespace.
pub(crate) fn open_port(io: Io, mtu: u32) -> Result<Port, EmuError> {
    let tun = match io.wanted {
        PacketIo::Tun => Some(Tun::open(DEVICE, true)?),
        PacketIo::Auto => Tun::open(DEVICE, true).ok(),
        PacketIo::Packet => None,
    };
    if let Some(tun) = tun {
        return Ok(Port::Tun(tun));
    }
    run_ip(&veth(mtu))?;
    Ok(Port::Packet(PacketPort::open(io.ends)?))
}

/// Commands for `ip -batch`: a veth pair instead of a TUN device. Without ARP a frame is addressed
/// to its sender, so the kernel behind the wire takes it for someone else's and drops it, once the
/// packet socket has seen it.
fn veth(mtu: u32) -> String {
    let text = |address: [u8; 6]| address.map(|byte| format!("{byte:02x}")).join(":");
    let (programs, wire) = (text(PROGRAMS_ADDRESS), text(WIRE_ADDRESS));
    format!(
        "link add {DEVICE} address {programs} type veth peer name {WIRE} address {wire}\n\
         link set {DEVICE} arp off gso_max_size {LARGEST}\n\
         link set {WIRE} arp off addrgenmode none mtu {mtu} up\n"
    )
}

/// Commands for `ip -batch`. Routes contain what a namespace's sysctls cannot set: the congestion
/// control, which a namespace may not choose freely, and the initial window.
fn batch(role: Role, profile: &KernelProfile) -> String {
    let (v4, v6, mtu) = (role.v4(), role.v6(), profile.mtu);
    let (to_v4, to_v6) = match role {
        Role::Server(pool) => (pool.to_string(), "fd77::/64"),
        Role::Ue(..) | Role::Between => ("0.0.0.0/0".to_owned(), "::/0"),
    };
    let mut lines = format!(
        "link set lo up\n\
         link set {DEVICE} mtu {mtu} txqueuelen {QUEUE_PACKETS} addrgenmode none\n\
         link set {DEVICE} up\n\
         address add {v4}/32 dev {DEVICE}\n"
    );
    lines += &profile.routes(&[format!("{to_v4} dev {DEVICE} src {v4}")]);
    if mtu >= IPV6_MTU {
        lines += &format!(
            "address add {v6}/128 dev {DEVICE} nodad\n\
             route add {to_v6} dev {DEVICE} src {v6} {}\n",
            profile.route
        );
    }
    lines
}

/// RFC 8200 5: a link with a smaller MTU does not support IPv6.
pub(crate) const IPV6_MTU: u32 = 1280;

/// Runs the lines of a batch in the calling thread's namespace.
pub(crate) fn run_ip(batch: &str) -> Result<(), EmuError> {
    run_with_input("ip", &["-batch", "-"], batch).map_err(|said| EmuError::Ip { said })
}

/// Runs a program that reads commands from standard input; returns its message if it fails.
pub(crate) fn run_with_input(program: &str, words: &[&str], input: &str) -> Result<(), String> {
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    // Dropped at once, which closes the input.
    let written = child.stdin.take().map(|mut pipe| pipe.write_all(input.as_bytes()));
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() && written.is_some_and(|written| written.is_ok()) {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}
