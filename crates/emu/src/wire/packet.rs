//! Offsets in an IP packet, and the kernel's offload information about it.

/// Bytes of the `struct virtio_net_hdr` before each packet of a TUN device (Virtual I/O Device 1.2,
/// 5.1.6): flags, type of segmentation, length of the headers, size of a segment, start of the
/// checksummed part and, from there, offset of the field. In native byte order, as with TUN.
pub(crate) const OFFLOAD_BYTES: usize = 10;

/// VIRTIO_NET_HDR_F_NEEDS_CSUM.
const NEEDS_CHECKSUM: u8 = 1;
/// VIRTIO_NET_HDR_GSO_*.
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
/// Datagrams of one size, by an application that requests it; a TUN device is not told to leave
/// them whole.
const UDP_L4: u8 = 5;
const WITH_CWR: u8 = 0x80;

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMP_V4: u8 = 1;
pub(crate) const ICMP_V6: u8 = 58;

/// TCP flags (RFC 9293 3.1).
pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const PSH: u8 = 8;
pub(crate) const ACK: u8 = 16;
pub(crate) const ECE: u8 = 64;
pub(crate) const CWR: u8 = 128;

/// The offload information that a TUN device gives about a packet, and expects.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Offload {
    /// The checksum that remains to be computed.
    pub(crate) checksum: Option<Checksum>,
    /// Bytes of payload per segment; `None`: the packet is final.
    pub(crate) segment_bytes: Option<u16>,
    /// Length of all headers of a packet to be cut.
    header_bytes: u16,
    kind: u8,
}

/// A checksum that covers only the pseudo-header so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Checksum {
    /// Offset of the first byte that it covers: the transport header.
    pub(crate) start: u16,
    /// Offset of its field from there.
    pub(crate) field: u16,
}

impl Checksum {
    /// Offset of its field in the packet.
    pub(crate) const fn place(self) -> usize {
        self.start as usize + self.field as usize
    }
}

impl Offload {
    /// One packet that is not to be cut.
    pub(crate) fn single(checksum: Option<Checksum>) -> Self {
        Self { checksum, ..Self::default() }
    }

    /// A TCP segment that represents several of this many bytes.
    pub(crate) fn several(
        checksum: Checksum,
        layout: &Layout,
        header_bytes: u16,
        segment_bytes: u16,
    ) -> Self {
        let kind = if layout.v6 { TCP_V6 } else { TCP_V4 };
        let (checksum, segment_bytes) = (Some(checksum), Some(segment_bytes));
        Self { checksum, segment_bytes, header_bytes, kind }
    }

    pub(crate) fn read(bytes: [u8; OFFLOAD_BYTES]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let kind = bytes[1] & !WITH_CWR;
        let cut = matches!(kind, TCP_V4 | TCP_V6 | UDP_L4) && word(4) > 0;
        Self {
            checksum: (bytes[0] & NEEDS_CHECKSUM != 0)
                .then(|| Checksum { start: word(6), field: word(8) }),
            segment_bytes: cut.then(|| word(4)),
            header_bytes: word(2),
            kind,
        }
    }

    pub(crate) fn bytes(&self) -> [u8; OFFLOAD_BYTES] {
        let mut bytes = [0; OFFLOAD_BYTES];
        let mut put = |at: usize, word: u16| bytes[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        if let Some(checksum) = self.checksum {
            put(6, checksum.start);
            put(8, checksum.field);
        }
        if let Some(segment) = self.segment_bytes {
            put(2, self.header_bytes);
            put(4, segment);
            bytes[1] = self.kind;
        }
        bytes[0] = if self.checksum.is_some() { NEEDS_CHECKSUM } else { 0 };
        bytes
    }
}

/// The same information for a packet that begins this many bytes earlier, which shifts the offsets
/// of its headers.
pub(crate) fn shift(mut said: [u8; OFFLOAD_BYTES], bytes: i16) -> [u8; OFFLOAD_BYTES] {
    let mut add = |at: usize| {
        let word = u16::from_ne_bytes([said[at], said[at + 1]]).saturating_add_signed(bytes);
        said[at..at + 2].copy_from_slice(&word.to_ne_bytes());
    };
    // Start of the checksummed part; length of the headers of a packet to be cut.
    add(6);
    add(2);
    let [flags, kind, ..] = said;
    if flags & NEEDS_CHECKSUM == 0 {
        said[6..8].fill(0);
    }
    if kind == 0 {
        said[2..4].fill(0);
    }
    said
}

/// Position of the transport header in an IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(crate) v6: bool,
    /// IP protocol number; for IPv6 that of the first header after the fixed one.
    pub(crate) protocol: u8,
    /// Bytes of the IP header; for IPv6 the fixed one.
    pub(crate) ip_bytes: usize,
    /// Whether it contains the beginning of the transport header, and is not a later fragment.
    pub(crate) has_transport: bool,
}

impl Layout {
    /// The layout of a packet; `None` without a complete IP header.
    #[inline]
    pub(crate) fn of(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => {
                let ip_bytes = usize::from(packet[0] & 15) * 4;
                if ip_bytes < 20 || packet.len() < ip_bytes {
                    return None;
                }
                let offset = u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff;
                let has_transport = offset == 0;
                Some(Self { v6: false, protocol: packet[9], ip_bytes, has_transport })
            }
            6 if packet.len() >= 40 => {
                Some(Self { v6: true, protocol: packet[6], ip_bytes: 40, has_transport: true })
            }
            _ => None,
        }
    }

    /// What distinguishes flows in addition to addresses: ports, or the identifier of an echo.
    #[inline]
    pub(crate) fn ports(&self, packet: &[u8]) -> (u16, u16) {
        let word = |at: usize| {
            let at = self.ip_bytes + at;
            packet.get(at..at + 2).map_or(0, |word| u16::from_be_bytes([word[0], word[1]]))
        };
        match self.protocol {
            _ if !self.has_transport => (0, 0),
            TCP | UDP => (word(0), word(2)),
            ICMP_V4 | ICMP_V6 => (word(4), word(4)),
            _ => (0, 0),
        }
    }

    /// Bytes of IP and TCP headers; `None` unless it is a TCP segment with a complete header.
    #[inline]
    pub(crate) fn tcp_header_bytes(&self, packet: &[u8]) -> Option<usize> {
        if self.protocol != TCP || !self.has_transport {
            return None;
        }
        let words = packet.get(self.ip_bytes + 12)? >> 4;
        let bytes = self.ip_bytes + usize::from(words) * 4;
        (words >= 5 && packet.len() >= bytes).then_some(bytes)
    }
}

/// Bytes of a UDP header (RFC 768).
pub(crate) const UDP_BYTES: usize = 8;

/// Writes the packet's length into the IP header, and the checksums that depend on it: that of
/// IPv4's header, and the pseudo-header's part of the transport's (RFC 9293 3.1).
pub(crate) fn set_length(headers: &mut [u8], layout: &Layout, length: usize, checksum: Checksum) {
    let transport = length - layout.ip_bytes;
    let addresses = if layout.v6 {
        headers[4..6].copy_from_slice(&(transport as u16).to_be_bytes());
        8..40
    } else {
        headers[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        headers[10..12].fill(0);
        let sum = !fold(sum(&headers[..layout.ip_bytes]));
        headers[10..12].copy_from_slice(&sum.to_be_bytes());
        12..20
    };
    let pseudo = fold(sum(&headers[addresses]) + transport as u32 + u32::from(layout.protocol));
    let field = checksum.place();
    headers[field..field + 2].copy_from_slice(&pseudo.to_be_bytes());
}

/// Completes a checksum that covers only the pseudo-header so far.
pub(crate) fn complete(packet: &mut [u8], checksum: Option<Checksum>) {
    let Some(checksum) = checksum else { return };
    let (start, field) = (usize::from(checksum.start), checksum.place());
    if field + 2 > packet.len() || Layout::of(packet).is_none() {
        return;
    }
    let covered = &packet[start..];
    let (even, odd) = covered.split_at(covered.len() & !1);
    let last = odd.first().map_or(0, |&byte| u32::from(byte) << 8);
    let whole = !fold(sum(even) + last);
    packet[field..field + 2].copy_from_slice(&whole.to_be_bytes());
}

/// For a whole TCP segment with a correct checksum: reduces it to the pseudo-header's part, so that
/// segments can be joined again.
pub(crate) fn reopen_checksum(packet: &mut [u8]) -> Option<Checksum> {
    let layout = Layout::of(packet)?;
    layout.tcp_header_bytes(packet)?;
    let fragment = !layout.v6 && packet[6] & 0x20 != 0;
    let (start, addresses) = (layout.ip_bytes, if layout.v6 { 8..40 } else { 12..20 });
    let (even, odd) = packet[start..].split_at((packet.len() - start) & !1);
    let last = odd.first().map_or(0, |&byte| u32::from(byte) << 8);
    let length = (packet.len() - start) as u32;
    let pseudo = fold(sum(&packet[addresses]) + length + u32::from(layout.protocol));
    if fragment || fold(sum(even) + last + u32::from(pseudo)) != 0xffff {
        return None;
    }
    let checksum = Checksum { start: start as u16, field: 16 };
    packet[start + 16..start + 18].copy_from_slice(&pseudo.to_be_bytes());
    Some(checksum)
}

/// The sum of RFC 1071 over an even number of bytes, not folded.
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum()
}

/// One's complement addition of both halves.
pub(crate) fn fold(sum: u32) -> u16 {
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    #[test]
    fn a_checksum_that_was_reopened_completes_to_what_it_was() {
        for payload in [0, 1, 1000] {
            let mut packet = Vec::new();
            let builder = PacketBuilder::ipv4([1; 4], [2; 4], 64).tcp(1, 2, 3, 4);
            builder.write(&mut packet, &vec![7; payload]).unwrap();
            let before = packet.clone();
            let checksum = reopen_checksum(&mut packet);
            assert!(checksum.is_some() && packet != before);
            complete(&mut packet, checksum);
            assert_eq!(packet, before);
        }
    }

    /// Found by `make fuzz-coverage`: both offsets have 16 bits, but their sum may have more.
    #[test]
    fn a_checksum_that_is_said_to_be_far_outside_is_left_alone() {
        let mut packet = Vec::new();
        PacketBuilder::ipv4([1; 4], [2; 4], 64).tcp(1, 2, 3, 4).write(&mut packet, &[7]).unwrap();
        let before = packet.clone();
        complete(&mut packet, Some(Checksum { start: 65_535, field: 21 }));
        assert_eq!(packet, before);
    }

    #[test]
    fn what_is_no_ip_is_kept_as_it_is() {
        let mut packet = [1, 2, 3, 4, 5];
        complete(&mut packet, Some(Checksum { start: 0, field: 0 }));
        assert_eq!(packet, [1, 2, 3, 4, 5]);
    }
}
