//! Packet sockets on an interface of the host (packet(7)), which receive every frame that arrives and
//! send frames.

use std::io;
use std::mem::{MaybeUninit, size_of, size_of_val, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::{c_int, c_void, socklen_t};

use super::checked;

/// Room for frames that were not yet read, and for frames that the card has not yet sent. The kernel
/// counts the memory of whole pages, and a segment that it joined takes up to 130 kB.
const BUFFER_BYTES: c_int = 64 << 20;

/// A frame that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// Bytes of the `virtio_net_hdr` and of the frame that were copied.
    pub(crate) length: usize,
    /// Bytes of both; larger than `length` if there was no room.
    pub(crate) whole: usize,
    /// Whether the frame is addressed to the host itself.
    pub(crate) for_host: bool,
    /// Whether the card or the kernel removed a VLAN tag from the frame.
    pub(crate) tagged: bool,
}

/// Opens a socket on the interface `name` of the calling thread's network namespace, which receives
/// the frames for all stations as long as the socket exists (promiscuous mode). Each frame is
/// preceded by a `virtio_net_hdr`.
pub(crate) fn frame_socket(name: &str) -> io::Result<OwnedFd> {
    // SAFETY: the descriptor is new, so nothing else owns it. Each option has its type, and zeros
    // are a valid sockaddr_ll.
    unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // Protocol 0: nothing is received before it is bound.
        let socket = libc::socket(libc::AF_PACKET, kind, 0);
        checked(socket)?;
        let socket = OwnedFd::from_raw_fd(socket);
        set(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &(1 as c_int))?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, &(1 as c_int))?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &(1 as c_int))?;
        set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &BUFFER_BYTES)?;
        set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &BUFFER_BYTES)?;
        let name = std::ffi::CString::new(name)?;
        let index = libc::if_nametoindex(name.as_ptr()) as c_int;
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        let mut address: libc::sockaddr_ll = zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index;
        let length = size_of_val(&address) as socklen_t;
        checked(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length))?;
        let mut membership: libc::packet_mreq = zeroed();
        membership.mr_ifindex = index;
        membership.mr_type = libc::PACKET_MR_PROMISC as u16;
        set(&socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)?;
        Ok(socket)
    }
}

/// The MTU of the interface `name` in the socket's network namespace.
pub(crate) fn mtu(socket: &impl AsRawFd, name: &str) -> io::Result<u32> {
    // SAFETY: ifreq is plain data, for which all zeros is a valid value; the call reads the name and
    // writes the MTU.
    unsafe {
        let mut request: libc::ifreq = zeroed();
        // The last byte stays zero.
        for (to, from) in request.ifr_name[..super::NAME_BYTES - 1].iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        checked(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request))?;
        Ok(u32::try_from(request.ifr_ifru.ifru_mtu).unwrap_or(0))
    }
}

/// Receives the next frame, preceded by its `virtio_net_hdr`.
pub(crate) fn receive_frame(socket: &impl AsRawFd, into: &mut [u8]) -> io::Result<Received> {
    let mut control = MaybeUninit::<[u64; 16]>::uninit();
    // SAFETY: all pointers are valid during the call, with the lengths that are given; zeros are
    // valid for both structures. The control messages that are read end inside `control`, because
    // CMSG_NXTHDR checks that, and the data of PACKET_AUXDATA is a tpacket_auxdata.
    unsafe {
        let mut from: libc::sockaddr_ll = zeroed();
        let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let mut message: libc::msghdr = zeroed();
        message.msg_name = (&raw mut from).cast();
        message.msg_namelen = size_of_val(&from) as socklen_t;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let whole = libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_TRUNC);
        let whole = usize::try_from(whole).map_err(|_| io::Error::last_os_error())?;
        let mut tagged = false;
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while let Some(said) = header.as_ref() {
            let is_auxdata =
                said.cmsg_level == libc::SOL_PACKET && said.cmsg_type == libc::PACKET_AUXDATA;
            let whole_auxdata = libc::CMSG_LEN(size_of::<libc::tpacket_auxdata>() as _) as _;
            if is_auxdata && said.cmsg_len >= whole_auxdata {
                let auxdata = libc::CMSG_DATA(header).cast::<libc::tpacket_auxdata>();
                tagged = auxdata.read_unaligned().tp_status & libc::TP_STATUS_VLAN_VALID != 0;
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
        let for_host = from.sll_pkttype == libc::PACKET_HOST;
        Ok(Received { length: whole.min(into.len()), whole, for_host, tagged })
    }
}

/// Sets an option.
///
/// # Safety
///
/// `T` must be the type that the kernel expects for this option.
unsafe fn set<T>(socket: &OwnedFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    let length = size_of_val(value) as socklen_t;
    let value = std::ptr::from_ref(value).cast::<c_void>();
    // SAFETY: the call reads as many bytes as `value` has, which is of the type it expects.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) })
}
