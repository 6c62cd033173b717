//! Options and state of TCP sockets for which there is no safe wrapper.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, socklen_t};

use super::checked;

/// `struct tcp_info` (linux/tcp.h).
pub(crate) type TcpInfo = libc::tcp_info;

/// Sets the largest segment, including TCP options: TCP_MAXSEG, which the MSS option advertises.
pub(crate) fn set_largest_segment(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::TCP_MAXSEG, bytes)
}

/// Sets the largest window that the receiver advertises.
pub(crate) fn set_window_clamp(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::TCP_WINDOW_CLAMP, bytes)
}

/// The value set by [`set_window_clamp`].
pub(crate) fn window_clamp(socket: impl AsFd) -> io::Result<u32> {
    let (mut value, mut length) = (0 as c_int, size_of::<c_int>() as socklen_t);
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: the call writes at most one int.
    checked(unsafe {
        let (level, name) = (libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP);
        let room = (&raw mut value).cast();
        libc::getsockopt(descriptor, level, name, room, &raw mut length)
    })?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// Sets the mark by which routes are chosen (`ip rule`). Connections that the socket accepts
/// inherit it.
pub(crate) fn set_mark(socket: impl AsFd, mark: u32) -> io::Result<()> {
    set_at(socket, libc::SOL_SOCKET, libc::SO_MARK, mark)
}

/// The kernel's state of a connection. Fields that it does not know are 0.
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

/// Bytes that were written and are not acknowledged (SIOCOUTQ).
pub(crate) fn send_queue(socket: impl AsFd) -> io::Result<c_int> {
    let mut bytes: c_int = 0;
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: the call writes one int.
    checked(unsafe { libc::ioctl(descriptor, libc::TIOCOUTQ, &raw mut bytes) })?;
    Ok(bytes)
}

fn set(socket: impl AsFd, name: c_int, value: u32) -> io::Result<()> {
    set_at(socket, libc::IPPROTO_TCP, name, value)
}

fn set_at(socket: impl AsFd, level: c_int, name: c_int, value: u32) -> io::Result<()> {
    let value = c_int::try_from(value).unwrap_or(c_int::MAX);
    let length = size_of::<c_int>() as socklen_t;
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: the call reads one int.
    let result = unsafe {
        let value = (&raw const value).cast();
        libc::setsockopt(descriptor, level, name, value, length)
    };
    checked(result)
}
