//! Hand-made captures: frames, and files of them.

#![allow(dead_code)]

use std::io::Cursor;

use airpath_capture::{CaptureError, CaptureReport, FlowReport, Reader, TcpReport, analyse};

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

pub(crate) const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 40_000);
pub(crate) const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 443);

/// Options of a SYN from Linux: MSS 1460, SACK permitted, timestamps 0 and 0, window scale 7.
pub(crate) const SYN_OPTIONS: [u8; 20] =
    [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 3, 7];

/// A TCP segment of either end.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) up: bool,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) options: Vec<u8>,
    pub(crate) payload: usize,
}

impl Segment {
    pub(crate) fn new(
        up: bool,
        flags: u8,
        sequence: u32,
        acknowledgement: u32,
        payload: usize,
    ) -> Self {
        let (window, options) = (500, Vec::new());
        Self { up, sequence, acknowledgement, flags, window, options, payload }
    }

    pub(crate) fn window(mut self, window: u16) -> Self {
        self.window = window;
        self
    }

    pub(crate) fn options(mut self, options: &[u8]) -> Self {
        self.options = options.to_vec();
        self.options.resize(options.len().next_multiple_of(4), 1);
        self
    }

    pub(crate) fn timestamps(self, value: u32, echo: u32) -> Self {
        let mut options = vec![1, 1, 8, 10];
        options.extend(value.to_be_bytes());
        options.extend(echo.to_be_bytes());
        self.options(&options)
    }

    pub(crate) fn sack(self, blocks: &[(u32, u32)]) -> Self {
        let mut options = vec![1, 1, 5, 2 + 8 * blocks.len() as u8];
        for (from, to) in blocks {
            options.extend(from.to_be_bytes());
            options.extend(to.to_be_bytes());
        }
        self.options(&options)
    }

    /// The segment's bytes, without an IP header.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let (from, to) = if self.up { (CLIENT.1, SERVER.1) } else { (SERVER.1, CLIENT.1) };
        let mut bytes = [from.to_be_bytes(), to.to_be_bytes()].concat();
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.acknowledgement.to_be_bytes());
        bytes.extend([(5 + self.options.len() as u8 / 4) << 4, self.flags]);
        bytes.extend(self.window.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(&self.options);
        bytes.resize(bytes.len() + self.payload, 0x5a);
        bytes
    }

    /// The segment in an IPv4 packet.
    pub(crate) fn packet(&self) -> Vec<u8> {
        let (from, to) = if self.up { (CLIENT.0, SERVER.0) } else { (SERVER.0, CLIENT.0) };
        ipv4(from, to, 6, &self.bytes())
    }
}

pub(crate) fn ipv4(from: [u8; 4], to: [u8; 4], protocol: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + body.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    packet.extend(from);
    packet.extend(to);
    packet.extend(body);
    packet
}

pub(crate) fn ipv6(next: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((body.len() as u16).to_be_bytes());
    packet.extend([next, 64]);
    packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    packet.extend(body);
    packet
}

pub(crate) fn udp(ports: [u16; 2], body: &[u8]) -> Vec<u8> {
    let mut datagram = [ports[0].to_be_bytes(), ports[1].to_be_bytes()].concat();
    datagram.extend((8 + body.len() as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(body);
    datagram
}

pub(crate) fn ethernet(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    frame.extend(kind.to_be_bytes());
    frame.extend(body);
    frame
}

/// A pcap file, in microseconds and little-endian byte order.
#[derive(Clone)]
pub(crate) struct Pcap {
    pub(crate) bytes: Vec<u8>,
    /// Bytes of each packet that are captured.
    pub(crate) snap: usize,
}

impl Pcap {
    pub(crate) fn new(link_type: u32) -> Self {
        let mut bytes = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
        bytes.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(65_535_u32.to_le_bytes());
        bytes.extend(link_type.to_le_bytes());
        Self { bytes, snap: usize::MAX }
    }

    /// A file of IP packets without a link layer.
    pub(crate) fn raw() -> Self {
        Self::new(101)
    }

    pub(crate) fn frame(&mut self, micros: u64, frame: &[u8]) -> &mut Self {
        let kept = frame.len().min(self.snap);
        for word in [micros / 1_000_000, micros % 1_000_000, kept as u64, frame.len() as u64] {
            self.bytes.extend((word as u32).to_le_bytes());
        }
        self.bytes.extend(&frame[..kept]);
        self
    }

    pub(crate) fn segment(&mut self, micros: u64, segment: &Segment) -> &mut Self {
        self.frame(micros, &segment.packet())
    }

    /// Adds a handshake between time 0 and 30 ms: the server is 20 ms away, the client 10 ms.
    /// Sequence numbers start at 0, so that data begins at 1.
    pub(crate) fn handshake(&mut self) -> &mut Self {
        self.segment(0, &Segment::new(true, SYN, 0, 0, 0).options(&SYN_OPTIONS));
        self.segment(20_000, &Segment::new(false, SYN | ACK, 0, 1, 0).options(&SYN_OPTIONS));
        self.segment(30_000, &Segment::new(true, ACK, 1, 1, 0))
    }

    pub(crate) fn report(&self) -> CaptureReport {
        read(&self.bytes).unwrap()
    }

    /// The report on the only flow in the file.
    pub(crate) fn flow(&self) -> FlowReport {
        let mut report = self.report();
        assert_eq!((report.flows.len(), report.damaged), (1, None));
        report.flows.remove(0)
    }

    pub(crate) fn tcp(&self) -> TcpReport {
        self.flow().tcp.unwrap()
    }
}

pub(crate) fn read(bytes: &[u8]) -> Result<CaptureReport, CaptureError> {
    analyse(Reader::new(Box::new(Cursor::new(bytes.to_vec())), "file".to_owned())?)
}
