//! What is around a packet on S1-U and N3: GTP-U (TS 29.281), for NR with the PDU session container
//! (TS 38.415).

/// UDP port (TS 29.281 4.4.2).
pub(crate) const PORT: u16 = 2152;

/// Message type of what carries a packet (TS 29.281 6.1).
const G_PDU: u8 = 255;

/// Version 1, protocol type GTP (TS 29.281 5.1).
const VERSION: u8 = 0x30;
const VERSION_BITS: u8 = 0xf0;

/// Flags: an extension header follows; a sequence number; an N-PDU number.
const EXTENSION: u8 = 4;
const SEQUENCE: u8 = 2;
const N_PDU: u8 = 1;

/// Type of the extension header (TS 29.281 5.2.1).
const PDU_SESSION_CONTAINER: u8 = 0x85;

/// Bytes of the longest header that is made here.
pub(crate) const MOST_BYTES: usize = 16;

/// Which way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Down,
    Up,
}

/// A header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    bytes: [u8; MOST_BYTES],
    length: usize,
}

/// What a datagram says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gpdu<'a> {
    pub(crate) teid: u32,
    pub(crate) qfi: Option<u8>,
    pub(crate) packet: &'a [u8],
}

impl Header {
    /// Before a packet of `length` bytes; with a PDU session container if there is a QoS flow.
    pub(crate) fn new(teid: u32, qfi: Option<u8>, way: Way, length: usize) -> Self {
        let mut bytes = [0; MOST_BYTES];
        (bytes[0], bytes[1]) = (VERSION, G_PDU);
        bytes[4..8].copy_from_slice(&teid.to_be_bytes());
        let mut header = 8;
        if let Some(qfi) = qfi {
            bytes[0] |= EXTENSION;
            bytes[11] = PDU_SESSION_CONTAINER;
            // In units of 4 bytes; PDU type 0 or 1 (TS 38.415 5.5.2.1 and 5.5.2.2); no further one.
            bytes[12] = 1;
            bytes[13] = if way == Way::Up { 0x10 } else { 0 };
            bytes[14] = qfi & 0x3f;
            header = 16;
        }
        let after = (header - 8 + length) as u16;
        bytes[2..4].copy_from_slice(&after.to_be_bytes());
        Self { bytes, length: header }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Reads a datagram; `None` if it is no G-PDU, or broken.
pub(crate) fn read(datagram: &[u8]) -> Option<Gpdu<'_>> {
    let &[flags, message, high, low, a, b, c, d] = datagram.first_chunk()?;
    if flags & VERSION_BITS != VERSION || message != G_PDU {
        return None;
    }
    let body = datagram.get(8..8 + usize::from(u16::from_be_bytes([high, low])))?;
    let teid = u32::from_be_bytes([a, b, c, d]);
    if flags & (EXTENSION | SEQUENCE | N_PDU) == 0 {
        return Some(Gpdu { teid, qfi: None, packet: body });
    }
    let mut next = if flags & EXTENSION == 0 { 0 } else { *body.get(3)? };
    let (mut rest, mut qfi) = (body.get(4..)?, None);
    while next != 0 {
        let length = usize::from(*rest.first()?) * 4;
        let extension = rest.get(..length).filter(|extension| extension.len() >= 4)?;
        if next == PDU_SESSION_CONTAINER {
            qfi = Some(extension[2] & 0x3f);
        }
        next = extension[length - 1];
        rest = &rest[length..];
    }
    Some(Gpdu { teid, qfi, packet: rest })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headers_are_those_of_ts_29_281_and_ts_38_415() {
        let lte = Header::new(0x0102_0304, None, Way::Down, 60);
        assert_eq!(lte.bytes(), [0x30, 0xff, 0, 60, 1, 2, 3, 4]);
        let nr = Header::new(0x0102_0304, Some(9), Way::Up, 60);
        let expected = [0x34, 0xff, 0, 68, 1, 2, 3, 4, 0, 0, 0, 0x85, 1, 0x10, 9, 0];
        assert_eq!(nr.bytes(), expected);
        assert_eq!(Header::new(1, Some(9), Way::Down, 60).bytes()[13], 0);
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        // An echo request (TS 29.281 7.2.1), another version, and what ends too early.
        assert_eq!(read(&[0x32, 1, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0]), None);
        assert_eq!(read(&[0x50, 255, 0, 0, 0, 0, 0, 1]), None);
        assert_eq!(read(&[0x30, 255, 0, 4, 0, 0, 0, 1, 0]), None);
        assert_eq!(read(&[0x34, 255, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0x85, 0, 0, 0, 0]), None);
        assert_eq!(read(&[0x30]), None);
    }

    proptest! {
        #[test]
        fn what_was_put_in_comes_out(
            teid in any::<u32>(),
            qfi in prop::option::of(0u8..64),
            up in any::<bool>(),
            packet in prop::collection::vec(any::<u8>(), 0..2000),
        ) {
            let way = if up { Way::Up } else { Way::Down };
            let mut datagram = Header::new(teid, qfi, way, packet.len()).bytes().to_vec();
            datagram.extend(&packet);
            prop_assert_eq!(read(&datagram), Some(Gpdu { teid, qfi, packet: &packet }));
        }

        #[test]
        fn no_datagram_is_too_odd(datagram in prop::collection::vec(any::<u8>(), 0..64)) {
            read(&datagram);
        }
    }
}
