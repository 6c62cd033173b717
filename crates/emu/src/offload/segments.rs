//! Cuts large TCP segments from the kernel, and datagrams sent as one, to the size that a link
//! carries, as a network card does for a sender (segmentation offload).

use crate::wire::packet::{ACK, CWR, FIN, Layout, Offload, PSH, UDP, UDP_BYTES, set_length};

/// Most segments that one packet from the kernel may represent: its own have at least 8 bytes of
/// payload (TCP_MIN_GSO_SIZE), raw ones may have one.
pub(crate) const MOST_SEGMENTS: usize = 65_535 / 8;

/// How a packet is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segments {
    /// Whether it contains datagrams, not segments.
    is_udp: bool,
    layout: Layout,
    offload: Offload,
    /// Bytes of IP and TCP headers.
    header_bytes: usize,
    segment_bytes: usize,
    payload_bytes: usize,
}

impl Segments {
    /// How to cut a packet; `None` if it stays as it is.
    pub(crate) fn of(packet: &[u8], offload: Offload) -> Option<Self> {
        let segment_bytes = usize::from(offload.segment_bytes?);
        let layout = Layout::of(packet)?;
        let is_udp = layout.protocol == UDP && layout.has_transport;
        let (header_bytes, field) = match is_udp {
            true => (layout.ip_bytes + UDP_BYTES, 6),
            false => (layout.tcp_header_bytes(packet)?, 16),
        };
        let fits = offload.checksum.is_some_and(|checksum| {
            usize::from(checksum.start) == layout.ip_bytes && checksum.field == field
        });
        let payload_bytes = packet.len().checked_sub(header_bytes)?;
        (fits && payload_bytes > 0).then_some(Self {
            is_udp,
            layout,
            offload,
            header_bytes,
            segment_bytes,
            payload_bytes,
        })
    }

    /// Number of pieces.
    pub(crate) fn count(&self) -> usize {
        self.payload_bytes.div_ceil(self.segment_bytes)
    }

    /// Bytes of the largest piece, including its headers.
    pub(crate) fn largest(&self) -> usize {
        self.header_bytes + self.segment_bytes.min(self.payload_bytes)
    }

    /// Writes one piece, counted from 0, to the beginning of `out`; returns its length.
    #[inline]
    pub(crate) fn write(&self, packet: &[u8], index: usize, out: &mut [u8]) -> usize {
        let skipped = index * self.segment_bytes;
        let payload = (self.payload_bytes - skipped).min(self.segment_bytes);
        let from = self.header_bytes + skipped;
        let length = self.header_bytes + payload;
        let (headers, body) = out[..length].split_at_mut(self.header_bytes);
        headers.copy_from_slice(&packet[..self.header_bytes]);
        body.copy_from_slice(&packet[from..from + payload]);
        if !self.layout.v6 {
            let id = u16::from_be_bytes([headers[4], headers[5]]).wrapping_add(index as u16);
            headers[4..6].copy_from_slice(&id.to_be_bytes());
        }
        let transport = &mut headers[self.layout.ip_bytes..];
        if self.is_udp {
            let length = (UDP_BYTES + payload) as u16;
            transport[4..6].copy_from_slice(&length.to_be_bytes());
        } else {
            self.set_tcp(transport, index, skipped);
        }
        if let Some(checksum) = self.offload.checksum {
            set_length(headers, &self.layout, length, checksum);
        }
        length
    }

    fn set_tcp(&self, tcp: &mut [u8], index: usize, skipped: usize) {
        let seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(skipped as u32);
        tcp[4..8].copy_from_slice(&seq.to_be_bytes());
        if index > 0 {
            tcp[13] &= !CWR;
        }
        if index + 1 < self.count() {
            tcp[13] &= !(FIN | PSH);
        }
    }
}

/// Most segments of a batch.
pub(crate) const BATCH_SEGMENTS: usize = 64;

/// Consecutive segments of one connection that are passed to the kernel as one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GsoBatch {
    layout: Layout,
    header_bytes: usize,
    /// Payload of each segment except the last.
    segment_bytes: usize,
    /// Payload of all segments.
    payload_bytes: usize,
    next_seq: u32,
    /// Whether nothing may follow.
    closed: bool,
    count: usize,
}

/// TCP flags that may differ between the segments of a batch.
const PLAIN: u8 = ACK | PSH | crate::wire::packet::ECE;

impl GsoBatch {
    /// Begins a batch; `None` if the packet has to be sent alone.
    #[inline]
    pub(crate) fn begin(packet: &[u8], offload: Offload) -> Option<Self> {
        let layout = Layout::of(packet)?;
        let header_bytes = layout.tcp_header_bytes(packet)?;
        let checksum = offload.checksum?;
        let tcp = &packet[layout.ip_bytes..];
        let plain = tcp[13] & !PLAIN == 0 && tcp[13] & ACK != 0;
        let whole = layout.v6 || packet[6] & 0x20 == 0;
        let payload = packet.len() - header_bytes;
        let partial = usize::from(checksum.start) == layout.ip_bytes && checksum.field == 16;
        (plain && whole && partial && payload > 0).then(|| Self {
            layout,
            header_bytes,
            segment_bytes: payload,
            payload_bytes: payload,
            next_seq: seq(tcp).wrapping_add(payload as u32),
            closed: tcp[13] & PSH != 0,
            count: 1,
        })
    }

    /// Adds `packet` if it is consecutive and the whole stays within `limit` bytes. `first` is the
    /// batch's first packet.
    #[inline]
    pub(crate) fn add(
        &mut self,
        first: &[u8],
        packet: &[u8],
        offload: Offload,
        limit: usize,
    ) -> bool {
        let Some(next) = Self::begin(packet, offload) else { return false };
        let (ip, tcp) = (self.layout.ip_bytes, &packet[self.layout.ip_bytes..]);
        let (mine, yours) = (&first[..self.header_bytes], packet.get(..self.header_bytes));
        let Some(yours) = yours.filter(|_| next.header_bytes == self.header_bytes) else {
            return false;
        };
        let same = |range: std::ops::Range<usize>| mine[range.clone()] == yours[range];
        // Everything except lengths, IPv4's identification and checksum.
        let same_ip = next.layout == self.layout
            && if self.layout.v6 {
                same(0..4) && same(6..40)
            } else {
                same(0..2) && same(6..10) && same(12..ip)
            };
        // Ports; acknowledgement and data offset; ECE; window; urgent pointer and options.
        let same_tcp = same(ip..ip + 4)
            && same(ip + 8..ip + 13)
            && (mine[ip + 13] ^ yours[ip + 13]) & !PSH == 0
            && same(ip + 14..ip + 16)
            && same(ip + 18..self.header_bytes);
        let fits = self.header_bytes + self.payload_bytes + next.payload_bytes <= limit
            && next.payload_bytes <= self.segment_bytes;
        if self.closed || !same_ip || !same_tcp || !fits || seq(tcp) != self.next_seq {
            return false;
        }
        self.payload_bytes += next.payload_bytes;
        self.next_seq = next.next_seq;
        self.closed = next.closed || next.payload_bytes < self.segment_bytes;
        self.count += 1;
        true
    }

    /// TCP flags of one of its packets.
    pub(crate) fn flags(&self, packet: &[u8]) -> u8 {
        packet[self.layout.ip_bytes + 13]
    }

    /// Bytes before the payload, the same in all packets.
    pub(crate) const fn header_bytes(&self) -> usize {
        self.header_bytes
    }

    /// Turns the first packet's headers into those of the whole, and returns what the kernel must
    /// know.
    pub(crate) fn finish(&self, first: &mut [u8], last_flags: u8, offload: Offload) -> Offload {
        let Some(checksum) = offload.checksum.filter(|_| self.count > 1) else { return offload };
        let length = self.header_bytes + self.payload_bytes;
        let headers = &mut first[..self.header_bytes];
        headers[self.layout.ip_bytes + 13] |= last_flags & PSH;
        set_length(headers, &self.layout, length, checksum);
        Offload::several(
            checksum,
            &self.layout,
            self.header_bytes as u16,
            self.segment_bytes as u16,
        )
    }
}

fn seq(tcp: &[u8]) -> u32 {
    u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]])
}

#[cfg(test)]
mod tests {
    use etherparse::{PacketBuilder, SlicedPacket, TcpOptionElement, TransportSlice};
    use proptest::prelude::*;

    use super::*;
    use crate::wire::packet::{Checksum, fold, sum};

    /// A segment as the kernel passes it: its checksum covers only the pseudo-header.
    fn segment(
        v6: bool,
        seq: u32,
        flags: u8,
        timestamps: bool,
        payload: &[u8],
    ) -> (Vec<u8>, Offload) {
        let builder = if v6 {
            PacketBuilder::ipv6([1; 16], [2; 16], 64)
        } else {
            PacketBuilder::ipv4([10, 77, 0, 1], [10, 77, 1, 1], 64)
        };
        let options =
            [TcpOptionElement::Noop, TcpOptionElement::Noop, TcpOptionElement::Timestamp(7, 8)];
        let builder = builder.tcp(5201, 40_000, seq, 512).ack(4000);
        let builder = builder.options(if timestamps { &options } else { &options[..0] }).unwrap();
        let mut packet = Vec::new();
        builder.write(&mut packet, payload).unwrap();
        let layout = Layout::of(&packet).unwrap();
        packet[layout.ip_bytes + 13] = flags;
        let checksum = Checksum { start: layout.ip_bytes as u16, field: 16 };
        let length = packet.len();
        set_length(&mut packet, &layout, length, checksum);
        (packet, Offload::single(Some(checksum)))
    }

    /// The same segment with a complete checksum, as a card would send it.
    fn completed(packet: &[u8]) -> Vec<u8> {
        let mut packet = packet.to_vec();
        let layout = Layout::of(&packet).unwrap();
        let mut tail = packet[layout.ip_bytes..].to_vec();
        if tail.len() % 2 == 1 {
            tail.push(0);
        }
        let field = layout.ip_bytes + 16;
        packet[field..field + 2].copy_from_slice(&(!fold(sum(&tail))).to_be_bytes());
        packet
    }

    fn checksums_are_right(packet: &[u8]) -> bool {
        let packet = completed(packet);
        let sliced = SlicedPacket::from_ip(&packet).unwrap();
        let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { return false };
        let (header, payload) = (tcp.to_header(), tcp.payload());
        match sliced.net.unwrap() {
            etherparse::NetSlice::Ipv4(ip) => {
                let ip = ip.header();
                header.calc_checksum_ipv4_raw(ip.source(), ip.destination(), payload).unwrap()
                    == header.checksum
                    && ip.to_header().calc_header_checksum() == ip.header_checksum()
                    && usize::from(ip.total_len()) == packet.len()
            }
            etherparse::NetSlice::Ipv6(ip) => {
                let ip = ip.header();
                header.calc_checksum_ipv6_raw(ip.source(), ip.destination(), payload).unwrap()
                    == header.checksum
                    && usize::from(ip.payload_length()) + 40 == packet.len()
            }
            _ => false,
        }
    }

    fn cut(packet: &[u8], offload: Offload, size: u16) -> Vec<Vec<u8>> {
        let layout = Layout::of(packet).unwrap();
        let headers = layout.tcp_header_bytes(packet).unwrap() as u16;
        let several = Offload::several(offload.checksum.unwrap(), &layout, headers, size);
        let segments = Segments::of(packet, several).unwrap();
        let write = |index| {
            let mut out = vec![0; 70_000];
            let length = segments.write(packet, index, &mut out);
            out.truncate(length);
            out
        };
        (0..segments.count()).map(write).collect()
    }

    proptest! {
        #[test]
        fn what_was_cut_is_whole_and_goes_together_again(
            v6 in any::<bool>(),
            timestamps in any::<bool>(),
            seq in any::<u32>(),
            length in 1usize..60_000,
            size in 500u16..1448,
            flags in prop::sample::select(vec![ACK, ACK | PSH, ACK | crate::wire::packet::ECE]),
        ) {
            let payload: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
            let (packet, offload) = segment(v6, seq, flags, timestamps, &payload);
            let packets = cut(&packet, offload, size);
            prop_assert_eq!(packets.len(), length.div_ceil(usize::from(size)));
            let headers = packet.len() - length;
            let carried: Vec<u8> = packets.iter().flat_map(|packet| packet[headers..].to_vec()).collect();
            prop_assert_eq!(&carried, &payload);
            prop_assert!(packets.iter().all(|packet| checksums_are_right(packet)));

            let mut batch = GsoBatch::begin(&packets[0], offload).unwrap();
            for packet in &packets[1..] {
                prop_assert!(batch.add(&packets[0], packet, offload, 65_535));
            }
            let mut first = packets[0].clone();
            let said = batch.finish(&mut first, batch.flags(&packets[packets.len() - 1]), offload);
            first.truncate(headers);
            first.extend(payload);
            prop_assert_eq!(first, packet);
            prop_assert_eq!(said.segment_bytes.is_some(), packets.len() > 1);
            prop_assert_eq!(Offload::read(said.bytes()), said);
        }
    }

    #[test]
    fn datagrams_are_cut_too() {
        let payload: Vec<u8> = (0..2500).map(|byte| byte as u8).collect();
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4([10, 77, 0, 1], [10, 77, 1, 1], 64).udp(4000, 53);
        builder.write(&mut packet, &payload).unwrap();
        // VIRTIO_NET_HDR_F_NEEDS_CSUM, VIRTIO_NET_HDR_GSO_UDP_L4, and the offsets.
        let mut said = [1, 5, 0, 0, 0, 0, 0, 0, 0, 0];
        for (at, word) in [(2, 28u16), (4, 1000), (6, 20), (8, 6)] {
            said[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        }
        let segments = Segments::of(&packet, Offload::read(said)).unwrap();
        let mut carried = Vec::new();
        for index in 0..segments.count() {
            let mut out = vec![0; 2000];
            let length = segments.write(&packet, index, &mut out);
            out.truncate(length);
            let field = 20 + 6;
            let pseudo = sum(&out[20..]);
            out[field..field + 2].copy_from_slice(&(!fold(pseudo)).to_be_bytes());
            let sliced = SlicedPacket::from_ip(&out).unwrap();
            let Some(TransportSlice::Udp(udp)) = &sliced.transport else { panic!("no UDP") };
            let (header, body) = (udp.to_header(), udp.payload());
            let made = header.calc_checksum_ipv4_raw([10, 77, 0, 1], [10, 77, 1, 1], body);
            assert_eq!(made.unwrap(), header.checksum);
            carried.extend_from_slice(body);
        }
        assert_eq!((segments.count(), carried), (3, payload));
    }

    #[test]
    fn the_largest_segment_is_known_before_it_is_cut() {
        let (packet, offload) = segment(false, 1, ACK, true, &[0; 30_000]);
        let layout = Layout::of(&packet).unwrap();
        let largest = |size| {
            let several = Offload::several(offload.checksum.unwrap(), &layout, 52, size);
            Segments::of(&packet, several).unwrap().largest()
        };
        assert_eq!((largest(1448), largest(8948), largest(60_000)), (1500, 9000, 30_052));
    }

    #[test]
    fn flags_stand_where_a_card_would_put_them() {
        let (packet, offload) = segment(false, 1, ACK | PSH | FIN | CWR, false, &[0; 3000]);
        let flags: Vec<u8> = cut(&packet, offload, 1000).iter().map(|packet| packet[33]).collect();
        // RFC 3168 6.1.2: CWR is on the first segment; push and end are on the last.
        assert_eq!(flags, [ACK | CWR, ACK, ACK | PSH | FIN]);
        let ids: Vec<u8> = cut(&packet, offload, 1000).iter().map(|packet| packet[5]).collect();
        assert_eq!(ids, [0, 1, 2]);
    }

    #[test]
    fn what_does_not_follow_stays_apart() {
        let (first, offload) = segment(false, 1000, ACK, true, &[0; 1000]);
        let joins = |packet: &[u8], limit| {
            GsoBatch::begin(&first, offload).unwrap().add(&first, packet, offload, limit)
        };
        let next = |seq, flags, bytes: usize| segment(false, seq, flags, true, &vec![0; bytes]).0;
        assert!(joins(&next(2000, ACK | PSH, 1000), 65_535));
        assert!(!joins(&next(2000, ACK, 1000), 2000), "larger than the limit");
        assert!(!joins(&next(2001, ACK, 1000), 65_535), "a gap");
        assert!(!joins(&next(2000, ACK, 1001), 65_535), "longer than the first");
        assert!(!joins(&next(2000, ACK, 0), 65_535), "nothing in it");
        assert!(!joins(&next(2000, ACK | FIN, 1000), 65_535), "the end");
        assert!(!joins(&segment(false, 2000, ACK, false, &[0; 1000]).0, 65_535), "other options");
        for byte in [1, 8, 12, 20, 28, 34] {
            let mut other = next(2000, ACK, 1000);
            other[byte] ^= 1;
            assert!(!joins(&other, 65_535), "byte {byte} differs");
        }
        let mut batch = GsoBatch::begin(&first, offload).unwrap();
        assert!(batch.add(&first, &next(2000, ACK, 10), offload, 65_535));
        assert!(
            !batch.add(&first, &next(2010, ACK, 10), offload, 65_535),
            "a short one was the last"
        );
    }
}
