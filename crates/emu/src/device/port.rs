//! The source and destination of packets: a TUN device, or a packet socket at the other end of a
//! veth pair.

use std::fs::File;
use std::io::{self, IoSlice};
use std::sync::Arc;

use airpath_scenario::PacketIo;

use crate::offload::segments::BATCH_SEGMENTS;
use crate::sys::{self, Cut, Ring};
use crate::wire::packet::{OFFLOAD_BYTES, Offload, shift};
use crate::{EmuError, Tun};

/// The interface on the forwarder's side of the veth pair.
pub(crate) const WIRE: &str = "air0-wire";

/// Address of the programs' interface. Locally administered (IEEE 802, 8.4).
pub(crate) const PROGRAMS_ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Address of the forwarder's interface.
pub(crate) const WIRE_ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// The port for the packets of one end.
#[derive(Debug)]
pub enum Port {
    /// A TUN device.
    Tun(Tun),
    /// A packet socket.
    Packet(PacketPort),
}

/// How packets are exchanged with the kernel, and at how many ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Io {
    pub(crate) wanted: PacketIo,
    pub(crate) ends: usize,
}

/// A packet socket on `WIRE`.
#[derive(Debug)]
pub struct PacketPort {
    socket: Arc<File>,
    ring: Ring,
}

impl From<Tun> for Port {
    fn from(tun: Tun) -> Self {
        Self::Tun(tun)
    }
}

impl Port {
    /// The kind of port.
    pub const fn io(&self) -> PacketIo {
        match self {
            Self::Tun(_) => PacketIo::Tun,
            Self::Packet(_) => PacketIo::Packet,
        }
    }

    /// The next packet: its offload information, and its bytes; `None` if there is none now.
    #[inline]
    pub(crate) fn read<'a>(
        &mut self,
        buffer: &'a mut [u8],
    ) -> Result<Option<(Offload, &'a [u8])>, EmuError> {
        match self {
            Self::Tun(tun) => tun.read(buffer),
            Self::Packet(port) => Ok(port.read(buffer)),
        }
    }

    /// Passes a packet to the kernel, which may refuse it: first its [`Offload::bytes`], then its
    /// own.
    #[inline]
    pub(crate) fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        match self {
            Self::Tun(tun) => tun.write(parts),
            Self::Packet(port) => port.write(parts),
        }
    }

    /// Packets lost since the last call because they were not read in time, if the interface does
    /// not count them.
    pub(crate) fn take_dropped(&self) -> u64 {
        match self {
            Self::Tun(_) => 0,
            Self::Packet(port) => sys::take_dropped(&port.socket),
        }
    }

    /// Packets since the last call that were too large to be read whole, and the size of the
    /// largest in bytes.
    pub(crate) fn take_cut(&mut self) -> (u64, usize) {
        match self {
            Self::Tun(_) => (0, 0),
            Self::Packet(port) => {
                let Cut { packets, largest } = port.ring.take_cut();
                (packets, largest.saturating_sub(ETHERNET))
            }
        }
    }

    /// Whether the interface went down since the last call: it may be gone. For a TUN device, reads
    /// report this.
    pub(crate) fn went_down(&self) -> bool {
        match self {
            Self::Tun(_) => false,
            Self::Packet(port) => sys::is_down(&port.socket),
        }
    }

    /// Whether the interface no longer exists.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Self::Tun(_) => false,
            Self::Packet(port) => sys::is_gone(&port.socket),
        }
    }

    /// Another handle, for waiting for packets.
    pub(crate) fn file(&self) -> Arc<File> {
        match self {
            Self::Tun(tun) => tun.file(),
            Self::Packet(port) => Arc::clone(&port.socket),
        }
    }
}

impl PacketPort {
    /// Opens a socket on [`WIRE`] in the calling thread's network namespace, one of `ends`.
    ///
    /// # Errors
    ///
    /// Those of the kernel.
    pub(crate) fn open(ends: usize) -> Result<Self, EmuError> {
        let (socket, ring) =
            sys::packet_socket(WIRE, sys::ring_blocks(ends)).map_err(EmuError::PacketSocket)?;
        Ok(Self { socket: Arc::new(File::from(socket)), ring })
    }

    fn read<'a>(&mut self, buffer: &'a mut [u8]) -> Option<(Offload, &'a [u8])> {
        let length = self.ring.read(buffer)?;
        let (said, frame) = buffer[..length].split_first_chunk()?;
        let offload = Offload::read(shift(*said, -(ETHERNET as i16)));
        Some((offload, frame.get(ETHERNET..).unwrap_or_default()))
    }

    fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let short = || io::Error::from(io::ErrorKind::InvalidInput);
        let (said, packet) = parts.split_first().ok_or_else(short)?;
        let said: [u8; OFFLOAD_BYTES] = (**said).try_into().map_err(|_| short())?;
        let said = shift(said, ETHERNET as i16);
        let mut header = [0; ETHERNET];
        header[..6].copy_from_slice(&PROGRAMS_ADDRESS);
        header[6..12].copy_from_slice(&WIRE_ADDRESS);
        let is_v6 = packet.first().and_then(|part| part.first()).is_some_and(|byte| byte >> 4 == 6);
        let kind = if is_v6 { libc::ETH_P_IPV6 } else { libc::ETH_P_IP } as u16;
        header[12..].copy_from_slice(&kind.to_be_bytes());
        let mut all = [IoSlice::new(&[]); BATCH_SEGMENTS + 2];
        let count = packet.len() + 2;
        all[0] = IoSlice::new(&said);
        all[1] = IoSlice::new(&header);
        for (to, from) in all[2..].iter_mut().zip(packet) {
            *to = IoSlice::new(from);
        }
        io::Write::write_vectored(&mut &*self.socket, &all[..count]).map(|_| ())
    }
}
