//! Settings and figures of a TCP socket that have no safe wrapper.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, socklen_t};

use super::checked;

/// `struct tcp_info` (linux/tcp.h).
pub(crate) type TcpInfo = libc::tcp_info;

/// Largest segment, TCP options included: what TCP_MAXSEG sets and the MSS option says.
pub(crate) fn set_largest_segment(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::TCP_MAXSEG, bytes)
}

/// The most that the receiver advertises.
pub(crate) fn set_window_clamp(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::TCP_WINDOW_CLAMP, bytes)
}

/// What the kernel knows of a connection. Fields that it does not know are 0.
pub(crate) fn tcp_info(socket: impl AsFd) -> io::Result<TcpInfo> {
    let mut info = MaybeUninit::<TcpInfo>::zeroed();
    let mut length = size_of::<TcpInfo>() as socklen_t;
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: there is room for `length` bytes, and zeros are a valid tcp_info.
    unsafe {
        let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
        let room = info.as_mut_ptr().cast();
        checked(libc::getsockopt(descriptor, level, name, room, &raw mut length))?;
        Ok(info.assume_init())
    }
}

fn set(socket: impl AsFd, name: c_int, value: u32) -> io::Result<()> {
    let value = c_int::try_from(value).unwrap_or(c_int::MAX);
    let length = size_of::<c_int>() as socklen_t;
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: the call reads one int.
    let result = unsafe {
        let value = (&raw const value).cast();
        libc::setsockopt(descriptor, libc::IPPROTO_TCP, name, value, length)
    };
    checked(result)
}
