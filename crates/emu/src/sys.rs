//! The two system calls that have no safe wrapper.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Bytes of an interface name, the final zero included (IFNAMSIZ).
pub(crate) const NAME_BYTES: usize = libc::IFNAMSIZ;

/// Attaches an open `/dev/net/tun` to the interface `name`: IP packets as they are, without a
/// packet information header and without segmentation offload.
pub(crate) fn attach_tun(tun: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    // SAFETY: ifreq is plain data, for which all zeros is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    for (to, from) in request.ifr_name[..NAME_BYTES - 1].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the descriptor is open for the call, and TUNSETIFF reads and writes one ifreq.
    let result = unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives the calling thread the real-time priority `priority`, first in first out.
///
/// # Errors
///
/// Without CAP_SYS_NICE or a limit that allows it.
pub fn real_time_priority(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: 0 is the calling thread, and the call only reads `parameters`.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
