//! The encapsulation of a packet on S1-U and N3: GTP-U (TS 29.281), for NR with the PDU session
//! container (TS 38.415).

use airpath_base::Direction;

/// UDP port (TS 29.281 4.4.2).
pub const PORT: u16 = 2152;

/// Message type of a GTP-U message that carries a packet (TS 29.281 6.1).
pub(crate) const G_PDU: u8 = 255;

/// Version 1, protocol type GTP (TS 29.281 5.1).
const VERSION: u8 = 0x30;
const VERSION_BITS: u8 = 0xf0;

/// Header flags: an extension header follows; a sequence number; an N-PDU number.
const EXTENSION: u8 = 4;
const SEQUENCE: u8 = 2;
const N_PDU: u8 = 1;

/// Type of the extension header (TS 29.281 5.2.1).
const PDU_SESSION_CONTAINER: u8 = 0x85;

/// Length of the longest header that [`Header`] makes, in bytes.
pub const MOST_BYTES: usize = 16;

/// The GTP-U header between the UDP header and the packet.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    bytes: [u8; MOST_BYTES],
    length: usize,
}

/// The contents of a GTP-U datagram that carries a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gpdu<'a> {
    /// Tunnel endpoint identifier.
    pub teid: u32,
    /// QoS flow identifier, from the PDU session container.
    pub qfi: Option<u8>,
    /// The encapsulated packet.
    pub packet: &'a [u8],
}

impl Header {
    /// Makes the header for a packet of `length` bytes, with a PDU session container if there is a
    /// QoS flow.
    pub fn new(teid: u32, qfi: Option<u8>, direction: Direction, length: usize) -> Self {
        let mut bytes = [0; MOST_BYTES];
        (bytes[0], bytes[1]) = (VERSION, G_PDU);
        bytes[4..8].copy_from_slice(&teid.to_be_bytes());
        let mut header = 8;
        if let Some(qfi) = qfi {
            bytes[0] |= EXTENSION;
            bytes[11] = PDU_SESSION_CONTAINER;
            // Length in units of 4 bytes; PDU type 0 or 1 (TS 38.415 5.5.2.1 and 5.5.2.2); no
            // further extension header.
            bytes[12] = 1;
            bytes[13] = if direction == Direction::Uplink { 0x10 } else { 0 };
            bytes[14] = qfi & 0x3f;
            header = 16;
        }
        let after = (header - 8 + length) as u16;
        bytes[2..4].copy_from_slice(&after.to_be_bytes());
        Self { bytes, length: header }
    }

    /// The header's bytes, as they precede the packet.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Reads a datagram; `None` if it is not a G-PDU or is malformed.
pub fn read(datagram: &[u8]) -> Option<Gpdu<'_>> {
    let &[_, _, high, low, ..] = datagram.first_chunk::<8>()?;
    datagram.get(8..8 + usize::from(u16::from_be_bytes([high, low])))?;
    read_beginning(datagram)
}

/// Reads the beginning of a datagram, as a capture may hold it: the packet inside may be truncated.
/// `None` if it is not a G-PDU, or ends within its headers.
pub fn read_beginning(datagram: &[u8]) -> Option<Gpdu<'_>> {
    let &[flags, message, high, low, a, b, c, d] = datagram.first_chunk()?;
    if flags & VERSION_BITS != VERSION || message != G_PDU {
        return None;
    }
    let end = 8 + usize::from(u16::from_be_bytes([high, low]));
    let body = &datagram[8..end.min(datagram.len())];
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
    use etherparse::PacketBuilder;
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::*;

    #[test]
    fn headers_are_those_of_ts_29_281_and_ts_38_415() {
        let lte = Header::new(0x0102_0304, None, Direction::Downlink, 60);
        assert_eq!(lte.bytes(), [0x30, 0xff, 0, 60, 1, 2, 3, 4]);
        let nr = Header::new(0x0102_0304, Some(9), Direction::Uplink, 60);
        let expected = [0x34, 0xff, 0, 68, 1, 2, 3, 4, 0, 0, 0, 0x85, 1, 0x10, 9, 0];
        assert_eq!(nr.bytes(), expected);
        assert_eq!(Header::new(1, Some(9), Direction::Downlink, 60).bytes()[13], 0);
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        // An echo request (TS 29.281 7.2.1), another version, and datagrams that end too early.
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
            let direction = if up { Direction::Uplink } else { Direction::Downlink };
            let mut datagram = Header::new(teid, qfi, direction, packet.len()).bytes().to_vec();
            datagram.extend(&packet);
            prop_assert_eq!(read(&datagram), Some(Gpdu { teid, qfi, packet: &packet }));
        }
    }

    /// A valid G-PDU, and whether it was then changed.
    #[derive(Clone, Debug)]
    struct Drawn {
        datagram: Vec<u8>,
        /// The result that `read` must return if nothing was changed.
        expected: Option<(u32, Option<u8>, Vec<u8>)>,
    }

    impl Drawn {
        /// Whether version, protocol and message type are right, and the length field is present.
        fn has_a_header(&self) -> bool {
            let Some(&[flags, message, high, low, ..]) = self.datagram.first_chunk::<8>() else {
                return false;
            };
            let length = usize::from(u16::from_be_bytes([high, low]));
            flags >> 4 == 3 && message == 255 && self.datagram.len() >= 8 + length
        }
    }

    /// An IP packet to encapsulate: version 4 or 6, TCP, UDP, or anything.
    fn inner() -> impl Strategy<Value = Vec<u8>> {
        let payload = || prop::collection::vec(any::<u8>(), 0..200);
        let made = (any::<bool>(), any::<bool>(), payload()).prop_map(|(v6, tcp, payload)| {
            let builder = if v6 {
                PacketBuilder::ipv6([1; 16], [2; 16], 64)
            } else {
                PacketBuilder::ipv4([10, 77, 0, 1], [10, 77, 1, 1], 64)
            };
            let mut packet = Vec::new();
            let written = match tcp {
                true => builder.tcp(5201, 40_000, 7, 512).write(&mut packet, &payload),
                false => builder.udp(5201, 40_000).write(&mut packet, &payload),
            };
            written.expect("a vector takes it");
            packet
        });
        prop_oneof![4 => made, 1 => payload()]
    }

    /// Extension headers: type, and the content that precedes the next type.
    fn extensions() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
        // PDCP PDU number, UDP port, long PDCP PDU number, RAN container (TS 29.281 5.2.1).
        let kind =
            prop_oneof![Just(PDU_SESSION_CONTAINER), Just(0xc0), Just(0x40), Just(0x82), 1u8..];
        let content = (1usize..4, prop::collection::vec(any::<u8>(), 14));
        let content = content.prop_map(|(units, bytes)| bytes[..units * 4 - 2].to_vec());
        prop::collection::vec((kind, content), 0..4)
    }

    fn datagram(
        (teid, flags, options): (u32, u8, [u8; 3]),
        extensions: &[(u8, Vec<u8>)],
        packet: &[u8],
    ) -> Drawn {
        let next = |index: usize| extensions.get(index).map_or(0, |&(kind, _)| kind);
        let extension = if extensions.is_empty() { 0 } else { EXTENSION };
        let flags = flags & !EXTENSION | extension;
        let mut body = Vec::new();
        if flags & (EXTENSION | SEQUENCE | N_PDU) != 0 {
            body.extend(options);
            body.push(next(0));
        }
        for (index, (_, content)) in extensions.iter().enumerate() {
            body.push((content.len() as u8 + 2) / 4);
            body.extend(content);
            body.push(next(index + 1));
        }
        body.extend(packet);
        let mut datagram = vec![VERSION | flags, G_PDU];
        datagram.extend((body.len() as u16).to_be_bytes());
        datagram.extend(teid.to_be_bytes());
        datagram.extend(body);
        let mut containers = extensions.iter().filter(|(kind, _)| *kind == PDU_SESSION_CONTAINER);
        let qfi = containers.next_back().map(|(_, content)| content[1] & 0x3f);
        Drawn { datagram, expected: Some((teid, qfi, packet.to_vec())) }
    }

    /// Flips bits, cuts out bytes or inserts bytes.
    fn change(mut drawn: Drawn, changes: &[(usize, u8, u8)]) -> Drawn {
        for &(at, how, byte) in changes {
            drawn.expected = None;
            let length = drawn.datagram.len().max(1);
            // Half of the changes are in the header and just behind it.
            let at = if how & 8 == 0 { at % length.min(24) } else { at % length };
            match how & 7 {
                0..=3 if at < drawn.datagram.len() => drawn.datagram[at] ^= 1 << (byte & 7),
                4 if at < drawn.datagram.len() => drawn.datagram[at] = byte,
                5 => drawn.datagram.truncate(at),
                6 if at < drawn.datagram.len() => drop(drawn.datagram.remove(at)),
                _ => drawn.datagram.insert(at, byte),
            }
        }
        drawn
    }

    fn drawn() -> impl Strategy<Value = Drawn> {
        let fixed = (any::<u32>(), 0u8..8, any::<[u8; 3]>());
        let whole = (fixed, extensions(), inner())
            .prop_map(|(fixed, extensions, packet)| datagram(fixed, &extensions, &packet));
        let changes = prop::collection::vec((0usize..300, any::<u8>(), any::<u8>()), 1..4);
        let changes = prop_oneof![Just(Vec::new()), changes];
        (whole, changes).prop_map(|(drawn, changes)| change(drawn, &changes))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

        #[test]
        fn a_datagram_is_read_as_it_was_written_and_none_is_too_odd(drawn in drawn()) {
            let found = read(&drawn.datagram);
            if let Some((teid, qfi, packet)) = &drawn.expected {
                prop_assert_eq!(found, Some(Gpdu { teid: *teid, qfi: *qfi, packet }));
            }
            if let Some(found) = found {
                prop_assert!(drawn.has_a_header());
                prop_assert!(found.qfi.is_none_or(|qfi| qfi < 64));
                // The encapsulated packet ends where the length field says.
                let length = u16::from_be_bytes([drawn.datagram[2], drawn.datagram[3]]);
                let body = &drawn.datagram[8..8 + usize::from(length)];
                prop_assert!(body.ends_with(found.packet));
            }
        }
    }

    /// Random bytes never get past the header: the generated datagrams must.
    #[test]
    fn most_that_is_drawn_gets_past_the_header() {
        const CASES: usize = 20_000;
        let mut runner = TestRunner::new(ProptestConfig::default());
        let (mut header, mut read_well, mut changed, mut extended) = (0, 0, 0, 0);
        for _ in 0..CASES {
            let drawn = drawn().new_tree(&mut runner).unwrap().current();
            let found = read(&drawn.datagram);
            header += usize::from(drawn.has_a_header());
            read_well += usize::from(found.is_some());
            changed += usize::from(found.is_some() && drawn.expected.is_none());
            extended += usize::from(found.is_some() && drawn.datagram[0] & EXTENSION != 0);
        }
        let percent = |count: usize| count * 100 / CASES;
        let shares = [header, read_well, changed, extended].map(percent);
        let least = [70, 60, 10, 40];
        assert!(
            shares.iter().zip(least).all(|(&share, least)| share >= least),
            "{shares:?} % past the header, read, read though changed, with extension headers"
        );
    }
}
