//! The source and destination of packets: a TUN device, a packet socket at the other end of a veth
//! pair, or an interface of the host.

use std::fs::File;
use std::io::{self, IoSlice};
use std::sync::Arc;

use airpath_scenario::PacketIo;

use crate::offload::segments::BATCH_SEGMENTS;
use crate::sys::{self, Cut, Received, Ring};
use crate::wire::frame::ETHERNET;
use crate::wire::packet::{OFFLOAD_BYTES, Offload, shift};
use crate::{EmuError, Tun};

/// The interface on the forwarder's side of the veth pair.
pub(crate) const WIRE: &str = "air0-wire";

/// Address of the programs' interface. Locally administered (IEEE 802, 8.4).
pub(crate) const PROGRAMS_ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Address of the forwarder's interface.
pub(crate) const WIRE_ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// The port for the packets of one end.
#[derive(Debug)]
pub enum Port {
    /// A TUN device.
    Tun(Tun),
    /// A packet socket.
    Packet(PacketPort),
    /// An interface of the host.
    Frames(FramePort),
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

/// A packet socket on an interface of the host, with whole frames.
#[derive(Debug)]
pub struct FramePort {
    interface: String,
    socket: Arc<File>,
    cut: Cut,
    /// Frames lost since the last call of [`Port::take_joined`], because the kernel had joined them.
    joined: u64,
    /// Whether the interface went down since the last call of [`Port::went_down`].
    down: bool,
}

/// A frame from an interface of the host.
#[derive(Debug)]
pub(crate) struct ReadFrame<'a> {
    /// The frame's `virtio_net_hdr`, with offsets from the Ethernet header.
    pub(crate) said: [u8; OFFLOAD_BYTES],
    pub(crate) bytes: &'a [u8],
    /// Whether the frame is addressed to the host itself.
    pub(crate) for_host: bool,
    /// Whether the frame had a VLAN tag.
    pub(crate) tagged: bool,
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
            Self::Packet(_) | Self::Frames(_) => PacketIo::Packet,
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
            // `FramePort::read` reads whole frames.
            Self::Frames(_) => Ok(None),
        }
    }

    /// Passes a packet to the kernel, which may refuse it: first its [`Offload::bytes`], then its
    /// own. An interface of the host sends the packet with the Ethernet header `link`.
    #[inline]
    pub(crate) fn write(&self, link: &[u8], parts: &[IoSlice<'_>]) -> io::Result<()> {
        match self {
            Self::Tun(tun) => tun.write(parts),
            Self::Packet(port) => {
                let is_v6 = parts.get(1).and_then(|part| part.first());
                let is_v6 = is_v6.is_some_and(|byte| byte >> 4 == 6);
                write_frame(&port.socket, &wire_header(is_v6), parts)
            }
            Self::Frames(port) => write_frame(&port.socket, link, parts),
        }
    }

    /// Packets lost since the last call because they were not read in time, if the interface does
    /// not count them.
    pub(crate) fn take_dropped(&self) -> u64 {
        match self {
            Self::Tun(_) => 0,
            Self::Packet(PacketPort { socket, .. }) | Self::Frames(FramePort { socket, .. }) => {
                sys::take_dropped(socket)
            }
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
            Self::Frames(port) => {
                let Cut { packets, largest } = std::mem::take(&mut port.cut);
                (packets, largest.saturating_sub(ETHERNET))
            }
        }
    }

    /// Frames of an interface of the host that were lost since the last call, because the kernel had
    /// joined packets in a way that it cannot describe.
    pub(crate) fn take_joined(&mut self) -> u64 {
        match self {
            Self::Tun(_) | Self::Packet(_) => 0,
            Self::Frames(port) => std::mem::take(&mut port.joined),
        }
    }

    /// Whether the interface went down since the last call: it may be gone. For a TUN device, reads
    /// report this.
    pub(crate) fn went_down(&mut self) -> bool {
        match self {
            Self::Tun(_) => false,
            Self::Packet(port) => sys::is_down(&port.socket),
            Self::Frames(port) => std::mem::take(&mut port.down) || sys::is_down(&port.socket),
        }
    }

    /// Whether the interface no longer exists.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Self::Tun(_) => false,
            Self::Packet(PacketPort { socket, .. }) | Self::Frames(FramePort { socket, .. }) => {
                sys::is_gone(socket)
            }
        }
    }

    /// Another handle, for waiting for packets.
    pub(crate) fn file(&self) -> Arc<File> {
        match self {
            Self::Tun(tun) => tun.file(),
            Self::Packet(PacketPort { socket, .. }) | Self::Frames(FramePort { socket, .. }) => {
                Arc::clone(socket)
            }
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
}

impl FramePort {
    /// Opens a socket on an interface in the calling thread's network namespace. The interface
    /// receives the frames for all stations as long as the socket exists.
    ///
    /// # Errors
    ///
    /// If the interface does not exist, or CAP_NET_RAW is missing.
    pub fn open(interface: &str) -> Result<Self, EmuError> {
        let failed = |source| EmuError::Interface { name: interface.to_owned(), source };
        let socket = sys::frame_socket(interface).map_err(failed)?;
        let socket = Arc::new(File::from(socket));
        Ok(Self {
            interface: interface.to_owned(),
            socket,
            cut: Cut::default(),
            joined: 0,
            down: false,
        })
    }

    /// The MTU of the interface.
    pub(crate) fn mtu(&self) -> Result<u32, EmuError> {
        let failed = |source| EmuError::Interface { name: self.interface.clone(), source };
        sys::mtu(&self.socket, &self.interface).map_err(failed)
    }

    /// The next frame; `None` if there is none now. A frame that does not fit the buffer is skipped.
    #[inline]
    pub(crate) fn read<'a>(
        &mut self,
        buffer: &'a mut [u8],
    ) -> Result<Option<ReadFrame<'a>>, EmuError> {
        let received = match sys::receive_frame(&self.socket, buffer) {
            Ok(received) => received,
            Err(error) => return self.failed(error),
        };
        let Received { length, whole, for_host, tagged } = received;
        if whole > length {
            self.cut.packets += 1;
            self.cut.largest = self.cut.largest.max(whole - OFFLOAD_BYTES);
            return Ok(Some(ReadFrame::of(&[])));
        }
        let Some((&said, bytes)) = buffer[..length].split_first_chunk() else {
            return Ok(Some(ReadFrame::of(&[])));
        };
        Ok(Some(ReadFrame { said, bytes, for_host, tagged }))
    }

    #[cold]
    fn failed<'a>(&mut self, error: io::Error) -> Result<Option<ReadFrame<'a>>, EmuError> {
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => Ok(None),
            // Segments that the kernel joined in a way that no `virtio_net_hdr` can express.
            Some(libc::EINVAL) => {
                self.joined += 1;
                Ok(Some(ReadFrame::of(&[])))
            }
            // The interface may come up again.
            Some(libc::ENETDOWN) => {
                self.down = true;
                Ok(None)
            }
            _ => Err(EmuError::Read { device: self.interface.clone(), source: error }),
        }
    }

    /// Sends a frame as it was read.
    pub(crate) fn relay(&self, frame: &ReadFrame<'_>) -> io::Result<()> {
        let parts = [IoSlice::new(&frame.said), IoSlice::new(frame.bytes)];
        io::Write::write_vectored(&mut &*self.socket, &parts).map(|_| ())
    }
}

impl<'a> ReadFrame<'a> {
    /// A frame that nothing remains to be done for: no segmentation and no checksum.
    pub(crate) const fn of(bytes: &'a [u8]) -> Self {
        Self { said: [0; OFFLOAD_BYTES], bytes, for_host: false, tagged: false }
    }
}

/// The Ethernet header of a packet for the programs.
fn wire_header(is_v6: bool) -> [u8; ETHERNET] {
    let mut header = [0; ETHERNET];
    header[..6].copy_from_slice(&PROGRAMS_ADDRESS);
    header[6..12].copy_from_slice(&WIRE_ADDRESS);
    let kind = if is_v6 { libc::ETH_P_IPV6 } else { libc::ETH_P_IP } as u16;
    header[12..].copy_from_slice(&kind.to_be_bytes());
    header
}

/// Sends a packet with a link header. `parts` are the packet's [`Offload::bytes`], then its own.
fn write_frame(socket: &File, link: &[u8], parts: &[IoSlice<'_>]) -> io::Result<()> {
    let short = || io::Error::from(io::ErrorKind::InvalidInput);
    let (said, packet) = parts.split_first().ok_or_else(short)?;
    let said: [u8; OFFLOAD_BYTES] = (**said).try_into().map_err(|_| short())?;
    let said = shift(said, link.len() as i16);
    let mut all = [IoSlice::new(&[]); BATCH_SEGMENTS + 2];
    let count = packet.len() + 2;
    all[0] = IoSlice::new(&said);
    all[1] = IoSlice::new(link);
    for (to, from) in all[2..].iter_mut().zip(packet) {
        *to = IoSlice::new(from);
    }
    io::Write::write_vectored(&mut &*socket, &all[..count]).map(|_| ())
}
