//! Sends and receives many datagrams with one system call.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::null_mut;

use libc::{c_int, c_void, mmsghdr, socklen_t};

use super::checked;

/// Most datagrams per call.
pub(crate) const MOST_MESSAGES: usize = 64;

/// Sets the size of the buffers, and allows packets to be fragmented if they do not fit.
pub(crate) fn prepare_tunnel_socket(socket: BorrowedFd<'_>, buffer: usize) -> io::Result<()> {
    let buffer = c_int::try_from(buffer).unwrap_or(c_int::MAX);
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, buffer)?;
    set(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, buffer)?;
    set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT)
}

fn set(socket: BorrowedFd<'_>, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    let length = size_of::<c_int>() as socklen_t;
    // SAFETY: the call reads one integer.
    checked(unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length)
    })
}

/// Sends to the address to which the socket is connected; returns how many were sent.
pub(crate) fn send_many(
    socket: BorrowedFd<'_>,
    messages: &[[IoSlice<'_>; 2]],
) -> io::Result<usize> {
    // SAFETY: all zeros is a valid mmsghdr.
    let mut headers: [mmsghdr; MOST_MESSAGES] = unsafe { zeroed() };
    let count = messages.len().min(MOST_MESSAGES);
    for (header, message) in headers.iter_mut().zip(messages) {
        // IoSlice has the layout of iovec, and sending does not write.
        header.msg_hdr.msg_iov = message.as_ptr().cast_mut().cast();
        header.msg_hdr.msg_iovlen = message.len();
    }
    // SAFETY: each header points to two slices that live as long as the call.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT,
        )
    };
    checked(sent)?;
    Ok(sent as usize)
}

/// Receives into one buffer each; returns how many arrived, and their lengths.
pub(crate) fn receive_many(
    socket: BorrowedFd<'_>,
    buffers: &mut [IoSliceMut<'_>],
    lengths: &mut [usize],
) -> io::Result<usize> {
    // SAFETY: all zeros is a valid mmsghdr.
    let mut headers: [mmsghdr; MOST_MESSAGES] = unsafe { zeroed() };
    let count = buffers.len().min(lengths.len()).min(MOST_MESSAGES);
    for (header, buffer) in headers.iter_mut().zip(buffers) {
        header.msg_hdr.msg_iov = std::ptr::from_mut(buffer).cast();
        header.msg_hdr.msg_iovlen = 1;
    }
    // SAFETY: each header points to one buffer, which nothing else uses during the call.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT,
            null_mut::<c_void>().cast(),
        )
    };
    checked(received)?;
    for (length, header) in lengths.iter_mut().zip(&headers[..received as usize]) {
        *length = header.msg_len as usize;
    }
    Ok(received as usize)
}
