//! A network namespace without a name, with one TUN device: it lives as long as a process or a
//! descriptor holds it.

use std::fs::{self, File};
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::thread;

use airpath_scenario::PacketIo;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::port::{PROGRAMS_ADDRESS, WIRE, WIRE_ADDRESS};
use crate::profile::KernelProfile;
use crate::sys::LARGEST;
use crate::{EmuError, PacketPort, Port, Tun, sys};

/// The interface's name in each namespace.
pub(crate) const DEVICE: &str = "air0";

/// TUN drops silently when its queue is full.
const QUEUE_PACKETS: u32 = 20_000;

/// Which end of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Server,
    /// The how manieth UE, from 0.
    Ue(u8),
}

/// One end.
#[derive(Debug)]
pub(crate) struct Namespace {
    pub(crate) name: String,
    pub(crate) place: Place,
    /// Its place in the scenario; `None`: the server's.
    pub(crate) ue: Option<usize>,
    /// Leads to it.
    pub(crate) file: File,
    /// What was asked for and not allowed, and why.
    pub(crate) refused: Vec<(String, String)>,
}

impl Place {
    /// 10.77.0.1, 10.77.1.1, 10.77.1.2, …
    pub(crate) fn v4(self) -> Ipv4Addr {
        match self {
            Self::Server => Ipv4Addr::new(10, 77, 0, 1),
            Self::Ue(index) => Ipv4Addr::new(10, 77, 1, index + 1),
        }
    }

    /// fd77::1, fd77::1:1, fd77::1:2, … (RFC 4193)
    pub(crate) fn v6(self) -> Ipv6Addr {
        match self {
            Self::Server => Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1),
            Self::Ue(index) => Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 1, u16::from(index) + 1),
        }
    }
}

impl Namespace {
    /// Makes it and its device.
    ///
    /// # Errors
    ///
    /// Without CAP_SYS_ADMIN, /dev/net/tun or `ip`.
    pub(crate) fn new(
        name: &str,
        place: Place,
        profile: &KernelProfile,
        io: PacketIo,
    ) -> Result<(Self, Port), EmuError> {
        // The namespace of a thread is its own, and the thread ends here.
        let made = thread::scope(|scope| {
            let make = || {
                let failed = |source| EmuError::Unshare { name: name.to_owned(), source };
                sys::unshare_network().map_err(failed)?;
                let file = File::open("/proc/thread-self/ns/net").map_err(failed)?;
                let tun = match io {
                    PacketIo::Tun => Some(Tun::open(DEVICE, true)?),
                    PacketIo::Auto => Tun::open(DEVICE, true).ok(),
                    PacketIo::Packet => None,
                };
                if tun.is_none() {
                    run_ip(&veth(profile.mtu))?;
                }
                let refused = write_sysctls(profile);
                run_ip(&batch(place, profile))?;
                let tun = match tun {
                    Some(tun) => Port::Tun(tun),
                    None => Port::Packet(PacketPort::open()?),
                };
                Ok((Self { name: name.to_owned(), place, ue: None, file, refused }, tun))
            };
            scope.spawn(make).join()
        });
        made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// The inode of `/proc/PID/ns/net`: no other namespace that is there has it.
    #[cfg(feature = "bpf")]
    pub(crate) fn inode(&self) -> Result<u32, EmuError> {
        let failed = |source| EmuError::Namespace { name: self.name.clone(), source };
        // The kernel counts them in 32 bits.
        let inode = |metadata: fs::Metadata| std::os::unix::fs::MetadataExt::ino(&metadata) as u32;
        self.file.metadata().map(inode).map_err(failed)
    }

    /// Does `work` in a thread that is inside.
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

/// Writes what can be written; the rest and why not.
fn write_sysctls(profile: &KernelProfile) -> Vec<(String, String)> {
    let mut refused = Vec::new();
    for (key, value) in &profile.sysctls {
        let file = format!("/proc/sys/{}", key.replace('.', "/"));
        if let Err(error) = fs::write(file, value) {
            refused.push((format!("{key}={value}"), error.to_string()));
        }
    }
    refused
}

/// Commands for `ip -batch`: a veth pair instead of a TUN device. Without ARP a frame goes to the
/// sender's own address, so the kernel behind the wire takes it for somebody else's and drops it,
/// once the packet socket has seen it.
fn veth(mtu: u32) -> String {
    let text = |address: [u8; 6]| address.map(|byte| format!("{byte:02x}")).join(":");
    let (programs, wire) = (text(PROGRAMS_ADDRESS), text(WIRE_ADDRESS));
    format!(
        "link add {DEVICE} address {programs} type veth peer name {WIRE} address {wire}\n\
         link set {DEVICE} arp off gso_max_size {LARGEST}\n\
         link set {WIRE} arp off addrgenmode none mtu {mtu} up\n"
    )
}

/// Commands for `ip -batch`. What a namespace's sysctls cannot say stands in its routes: the
/// congestion control, which a namespace may not choose freely, and the initial window.
fn batch(place: Place, profile: &KernelProfile) -> String {
    let (v4, v6, mtu) = (place.v4(), place.v6(), profile.mtu);
    let (to_v4, to_v6) = match place {
        Place::Server => ("10.77.0.0/16", "fd77::/64"),
        Place::Ue(_) => ("0.0.0.0/0", "::/0"),
    };
    let attributes = &profile.route;
    let mut lines = format!(
        "link set lo up\n\
         link set {DEVICE} mtu {mtu} txqueuelen {QUEUE_PACKETS} addrgenmode none\n\
         link set {DEVICE} up\n\
         address add {v4}/32 dev {DEVICE}\n\
         route add {to_v4} dev {DEVICE} src {v4} {attributes}\n"
    );
    if mtu >= IPV6_MTU {
        lines += &format!(
            "address add {v6}/128 dev {DEVICE} nodad\n\
             route add {to_v6} dev {DEVICE} src {v6} {attributes}\n"
        );
    }
    lines
}

/// RFC 8200 5: a link with a smaller MTU carries no IPv6.
pub(crate) const IPV6_MTU: u32 = 1280;

fn run_ip(batch: &str) -> Result<(), EmuError> {
    let failed = |said: String| EmuError::Ip { said };
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    // Dropped at once, which ends the batch.
    let input = child.stdin.take().map(|mut input| input.write_all(batch.as_bytes()));
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() && input.is_some_and(|written| written.is_ok()) {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}
