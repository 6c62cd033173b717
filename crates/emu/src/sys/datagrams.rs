//! UDP sockets: the ECN field of what arrives, and datagrams that the kernel segments.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, c_void, iovec, msghdr, socklen_t};

use super::checked;

/// Room for one control message with an integer.
const CONTROL_BYTES: usize = 64;

/// Control messages must be aligned like their header.
#[repr(align(8))]
struct Control([u8; CONTROL_BYTES]);

/// Prepares a socket for [`receive_datagram`]: what is sent must not be fragmented, whatever the
/// kernel believes the path's MTU to be (RFC 8899 3).
pub(crate) fn prepare_datagram_socket(socket: impl AsFd) -> io::Result<()> {
    set(&socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
    set(&socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)
}

/// Sets the size into which the kernel cuts what is sent; 0: it is one datagram (UDP_SEGMENT).
pub(crate) fn set_segment(socket: impl AsFd, bytes: u16) -> io::Result<()> {
    set(&socket, libc::SOL_UDP, libc::UDP_SEGMENT, c_int::from(bytes))
}

fn set(socket: &impl AsFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    let (descriptor, length) = (socket.as_fd().as_raw_fd(), size_of::<c_int>() as socklen_t);
    // SAFETY: the call reads one int.
    checked(unsafe { libc::setsockopt(descriptor, level, name, (&raw const value).cast(), length) })
}

/// Receives one datagram; returns its length and the last byte of its type of service.
pub(crate) fn receive_datagram(socket: impl AsFd, into: &mut [u8]) -> io::Result<(usize, u8)> {
    let mut control = Control([0; CONTROL_BYTES]);
    let mut slice = iovec { iov_base: into.as_mut_ptr().cast::<c_void>(), iov_len: into.len() };
    // SAFETY: all zeros is a valid msghdr.
    let mut header: msghdr = unsafe { zeroed() };
    header.msg_iov = &raw mut slice;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL_BYTES as _;
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: the header points to one slice and one control buffer that outlive the call.
    let length = unsafe { libc::recvmsg(descriptor, &raw mut header, libc::MSG_DONTWAIT) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    Ok((length, type_of_service(&header)))
}

/// The type of service among the control messages; 0 if there is none.
fn type_of_service(header: &msghdr) -> u8 {
    // SAFETY: the kernel filled in the control buffer, which `header` still points to; the macros
    // stay within its length, and the data of an IP_TOS message is at least one byte.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while let Some(found) = message.as_ref() {
            if (found.cmsg_level, found.cmsg_type) == (libc::IPPROTO_IP, libc::IP_TOS) {
                return *libc::CMSG_DATA(found);
            }
            message = libc::CMSG_NXTHDR(header, found);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use rustix::net::sockopt::set_ip_tos;

    use super::*;

    #[test]
    fn datagrams_arrive_as_they_were_cut_with_their_ecn_field() {
        let [from, to] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        prepare_datagram_socket(&to).unwrap();
        set_ip_tos(&from, 2).unwrap();
        set_segment(&from, 1000).unwrap();
        from.send_to(&[7; 2500], to.local_addr().unwrap()).unwrap();
        let mut room = [0; 4000];
        let got = [(); 3].map(|()| receive_datagram(&to, &mut room).unwrap());
        assert_eq!(got, [(1000, 2), (1000, 2), (500, 2)]);
        let none = receive_datagram(&to, &mut room).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
    }
}
