//! System calls for which there is no safe wrapper.
#![allow(unsafe_code)]

mod datagrams;
mod frames;
mod messages;
mod process;
mod ring;
mod signals;
mod socket;
mod terminal;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

pub(crate) use datagrams::{prepare_datagram_socket, receive_datagram, set_segment};
pub(crate) use frames::{Received, frame_socket, mtu, receive_frame};
pub(crate) use messages::{MOST_MESSAGES, prepare_tunnel_socket, receive_many, send_many};
pub(crate) use process::{
    Child, Container, Credentials, Failed, Program, ProgramEvent, ProgramEventKind, RUNNING,
    Streams, spawn_contained,
};
pub(crate) use ring::{
    Cut, LARGEST, Ring, is_down, is_gone, packet_socket, ring_blocks, take_dropped,
};
pub(crate) use signals::Signals;
pub(crate) use socket::{
    TcpInfo, send_queue, set_largest_segment, set_mark, set_window_clamp, tcp_info, window_clamp,
};
pub(crate) use terminal::{Guard, Modes};

/// Bytes of an interface name, including the final zero (IFNAMSIZ).
pub(crate) const NAME_BYTES: usize = libc::IFNAMSIZ;

/// Attaches an open `/dev/net/tun` to the interface `name`: IP packets, each preceded by a
/// `virtio_net_hdr`, without a packet information header. With `offload` the kernel leaves
/// checksums and the segmentation of TCP to the reader.
pub(crate) fn attach_tun(tun: BorrowedFd<'_>, name: &str, offload: bool) -> io::Result<()> {
    // SAFETY: ifreq is plain data, for which all zeros is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    for (to, from) in request.ifr_name[..NAME_BYTES - 1].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    let features: libc::c_uint = if offload {
        libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN
    } else {
        0
    };
    // SAFETY: the descriptor is open for the calls; TUNSETIFF reads and writes one ifreq,
    // TUNSETOFFLOAD takes its argument by value.
    let result = unsafe {
        match libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) {
            0 => libc::ioctl(
                tun.as_raw_fd(),
                libc::TUNSETOFFLOAD as _,
                libc::c_ulong::from(features),
            ),
            error => error,
        }
    };
    checked(result)
}

/// Gives the calling thread the real-time priority `priority` (SCHED_FIFO).
///
/// # Errors
///
/// If CAP_SYS_NICE or a limit that allows it is missing.
pub fn real_time_priority(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: 0 is the calling thread, and the call only reads `parameters`. RESET_ON_FORK:
    // children do not inherit it.
    let result = unsafe {
        let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
        libc::sched_setscheduler(0, policy, &raw const parameters)
    };
    checked(result)
}

/// Gives a pipe room for `bytes` bytes.
pub(crate) fn enlarge_pipe(pipe: impl AsFd, bytes: usize) -> io::Result<()> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    // SAFETY: the call takes numbers; the descriptor is open during the call.
    checked(unsafe { libc::fcntl(pipe.as_fd().as_raw_fd(), libc::F_SETPIPE_SZ, bytes) })
}

/// Removes real-time priority from the calling thread.
pub(crate) fn ordinary_priority() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread, and the call only reads `parameters`. It cannot fail:
    // lowering is always permitted.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters) };
}

/// Moves the calling thread into a new network namespace.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: the call takes a number, and changes nothing on which safe code relies.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNET) })
}

/// Makes this process root in a user namespace of its own, where it may have network and mount
/// namespaces: it gains nothing outside, and its files still belong to its user. Must be called
/// before any other thread starts.
///
/// # Errors
///
/// If the machine forbids it, or there are several threads.
pub fn enter_user_namespace() -> io::Result<()> {
    // SAFETY: the calls take no arguments and cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: the call takes a number, and changes nothing on which safe code relies.
    checked(unsafe { libc::unshare(libc::CLONE_NEWUSER) })?;
    // user_namespaces(7): required before an ordinary user may map a group.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// Turns the result of a call into the kernel's error.
fn checked(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
