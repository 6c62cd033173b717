//! Packet sockets with a receive ring (packet(7), the kernel's
//! Documentation/networking/packet_mmap), TPACKET_V2: version 3 would hold a packet back until its
//! block is full.

use std::io;
use std::mem::{size_of_val, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{NonNull, copy_nonoverlapping, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{c_int, c_uint, c_void};

use super::checked;
use crate::wire::packet::OFFLOAD_BYTES;

/// Size of a frame: [`LARGEST`], and what precedes the packet.
const FRAME: usize = 9_360;
const FRAMES_PER_BLOCK: usize = 14;
const BLOCK: usize = 131_072;

/// Most blocks of one ring, and of all rings together unless each has the minimum: 256 MiB that the
/// kernel keeps.
const MOST_BLOCKS: usize = 220;
const ALL_BLOCKS: usize = 2048;
const FEWEST_BLOCKS: usize = 8;

/// The largest packet, IP header included, that fits into a frame with room to spare. All frames
/// have this size, even for an acknowledgement, so larger ones would mean fewer: the forwarder of
/// an ordinary user is at times suspended for 30 ms.
pub(crate) const LARGEST: u32 = 8_192;

/// `struct tpacket2_hdr`: status, length, length in the frame, offset of the Ethernet header.
const LENGTH: usize = 4;
const SNAPLEN: usize = 8;
const MAC: usize = 12;

/// A packet socket bound to one interface.
#[derive(Debug)]
pub(crate) struct Ring {
    map: NonNull<u8>,
    blocks: usize,
    next: usize,
    cut: Cut,
}

/// Packets of which a frame holds only the beginning.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Cut {
    pub(crate) packets: u64,
    /// Size of the largest in bytes, including its Ethernet header.
    pub(crate) largest: usize,
}

// SAFETY: the mapping belongs to this value alone, and is not tied to a thread.
unsafe impl Send for Ring {}

/// Number of blocks for each of several rings. With many ends, each receives packets at a lower
/// rate.
pub(crate) fn ring_blocks(rings: usize) -> usize {
    (ALL_BLOCKS / rings.max(1)).clamp(FEWEST_BLOCKS, MOST_BLOCKS)
}

/// A packet socket on the interface `name` of the calling thread's network namespace: packets that
/// come out of it are in the ring, packets written to the socket go in. Both are preceded by a
/// `virtio_net_hdr`, and have Ethernet headers.
pub(crate) fn packet_socket(name: &str, blocks: usize) -> io::Result<(OwnedFd, Ring)> {
    // SAFETY: the descriptor is new, so nothing else owns it. Each option has its type, the mapping
    // is as long as the requested ring, and zeros are a valid sockaddr_ll.
    unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // Protocol 0: nothing is received before it is bound.
        let socket = libc::socket(libc::AF_PACKET, kind, 0);
        checked(socket)?;
        let socket = OwnedFd::from_raw_fd(socket);
        set(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as c_int))?;
        set(&socket, libc::PACKET_VNET_HDR, &(1 as c_int))?;
        set(&socket, libc::PACKET_IGNORE_OUTGOING, &(1 as c_int))?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as c_uint,
            tp_block_nr: blocks as c_uint,
            tp_frame_size: FRAME as c_uint,
            tp_frame_nr: (blocks * FRAMES_PER_BLOCK) as c_uint,
        };
        set(&socket, libc::PACKET_RX_RING, &request)?;
        let (read_write, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let map = libc::mmap(null_mut(), blocks * BLOCK, read_write, shared, socket.as_raw_fd(), 0);
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let map = NonNull::new(map.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let ring = Ring { map, blocks, next: 0, cut: Cut::default() };
        let mut address: libc::sockaddr_ll = zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        let name = std::ffi::CString::new(name)?;
        address.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as c_int;
        if address.sll_ifindex == 0 {
            return Err(io::Error::last_os_error());
        }
        let length = size_of_val(&address) as libc::socklen_t;
        checked(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length))?;
        Ok((socket, ring))
    }
}

/// Handles an error; returns whether it means that the socket's interface is down, and may come
/// back.
pub(crate) fn is_down(socket: &impl AsRawFd) -> bool {
    // SAFETY: the call writes a number.
    unsafe {
        let mut error: c_int = 0;
        let mut length = size_of_val(&error) as libc::socklen_t;
        let to = (&raw mut error).cast::<c_void>();
        let (level, option) = (libc::SOL_SOCKET, libc::SO_ERROR);
        libc::getsockopt(socket.as_raw_fd(), level, option, to, &raw mut length);
        error != 0
    }
}

/// Whether the socket's interface no longer exists.
pub(crate) fn is_gone(socket: &impl AsRawFd) -> bool {
    // SAFETY: the call writes a structure of plain numbers.
    unsafe {
        let mut address: libc::sockaddr_ll = zeroed();
        let mut length = size_of_val(&address) as libc::socklen_t;
        let to = (&raw mut address).cast();
        libc::getsockname(socket.as_raw_fd(), to, &raw mut length);
        address.sll_ifindex <= 0
    }
}

/// Packets since the last call for which there was no room.
pub(crate) fn take_dropped(socket: &impl AsRawFd) -> u64 {
    // SAFETY: the call writes a structure of plain numbers.
    unsafe {
        let mut counts: libc::tpacket_stats = zeroed();
        let mut length = size_of_val(&counts) as libc::socklen_t;
        let (level, option) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
        let to = (&raw mut counts).cast::<c_void>();
        match libc::getsockopt(socket.as_raw_fd(), level, option, to, &raw mut length) {
            0 => counts.tp_drops.into(),
            _ => 0,
        }
    }
}

impl Ring {
    /// Packets since the last call that were skipped.
    pub(crate) fn take_cut(&mut self) -> Cut {
        std::mem::take(&mut self.cut)
    }

    /// Copies the next packet, preceded by its `virtio_net_hdr` and its Ethernet header; returns
    /// the length. `None` if there is none. A packet larger than a frame is skipped.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Option<usize> {
        loop {
            let (length, whole) = self.read_frame(into)?;
            if whole <= length {
                return Some(length);
            }
            self.cut.packets += 1;
            self.cut.largest = self.cut.largest.max(whole - OFFLOAD_BYTES);
        }
    }

    /// Copies what a frame holds of the next packet; returns that length, and the packet's.
    fn read_frame(&mut self, into: &mut [u8]) -> Option<(usize, usize)> {
        let at = self.next / FRAMES_PER_BLOCK * BLOCK + self.next % FRAMES_PER_BLOCK * FRAME;
        // SAFETY: `next` is below the number of frames, so the frame lies inside the mapping. It
        // belongs to this side as long as its status says so, and then the kernel does not write to
        // it. Its fields are aligned, and what is copied ends inside the frame and inside `into`,
        // whatever they contain.
        unsafe {
            let frame = self.map.as_ptr().add(at);
            let status = AtomicU32::from_ptr(frame.cast());
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return None;
            }
            let whole = frame.add(LENGTH).cast::<u32>().read() as usize + OFFLOAD_BYTES;
            let length = frame.add(SNAPLEN).cast::<u32>().read() as usize + OFFLOAD_BYTES;
            let from =
                usize::from(frame.add(MAC).cast::<u16>().read()).saturating_sub(OFFLOAD_BYTES);
            let from = from.min(FRAME);
            let length = length.min(FRAME - from).min(into.len());
            copy_nonoverlapping(frame.add(from), into.as_mut_ptr(), length);
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % (self.blocks * FRAMES_PER_BLOCK);
            Some((length, whole))
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: `packet_socket` mapped this length, and no reference into it is left.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.blocks * BLOCK) };
    }
}

/// Sets an option of packet sockets.
///
/// # Safety
///
/// `T` must be the type that the kernel expects for this option.
unsafe fn set<T>(socket: &OwnedFd, option: c_int, value: &T) -> io::Result<()> {
    let length = size_of_val(value) as libc::socklen_t;
    // SAFETY: the call reads as many bytes as `value` has, which is of the type it expects.
    checked(unsafe {
        let value = std::ptr::from_ref(value).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, value, length)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rings_take_no_more_memory_than_a_few() {
        let bytes = |rings| rings * ring_blocks(rings) * BLOCK;
        assert_eq!(ring_blocks(2), MOST_BLOCKS);
        assert!((2..=255).all(|rings| bytes(rings) <= ALL_BLOCKS * BLOCK), "{}", bytes(255));
    }
}
