//! Bodies of this crate's fuzz targets (`fuzz/`): whatever bytes arrive, nothing panics, and the
//! interpretation agrees with the bytes. Tests replay the corpora. This is not part of the library.

use airpath_base::Ecn;

use crate::observation::observer;
use crate::offload::segments::{GsoBatch, Segments};
use crate::wire::flows::Key;
use crate::wire::frame::{Content, ETHERNET, Frame};
use crate::wire::header;
use crate::wire::packet::{
    Checksum, Layout, OFFLOAD_BYTES, Offload, complete, fold, reopen_checksum, sum,
};

/// Takes a packet with its offload information: checks the positions of its headers, its mark and
/// its checksum.
pub fn packet(data: &[u8]) {
    let Some((said, packet)) = data.split_first_chunk::<OFFLOAD_BYTES>() else { return };
    let offload = Offload::read(*said);
    assert_eq!(Offload::read(offload.bytes()).bytes(), offload.bytes());

    header::ecn(packet);
    if let Some(Frame { content: Content::Packet(length), .. }) = Frame::of(packet) {
        let inside = &packet[ETHERNET..][..length];
        assert!(Layout::of(inside).is_some(), "what goes through the model is an IP packet");
    }
    let layout = Layout::of(packet);
    if let Some(layout) = layout {
        assert!(packet.len() >= layout.ip_bytes);
        Key::of(packet, &layout, 1, true).name("ue");
        let _ = header::destination(packet, &layout);
        Key::of_device(packet, &layout, 1, false).name_of_device("ue", packet, &layout, false);
        if let Some(bytes) = layout.tcp_header_bytes(packet) {
            assert!((layout.ip_bytes + 20..=packet.len()).contains(&bytes));
        }
    }

    let mut marked = packet.to_vec();
    let is_new = header::mark(&mut marked);
    if layout.is_some() {
        assert_eq!(header::ecn(&marked), Ecn::Ce);
        assert_eq!(is_new, marked != packet);
    }
    if let Some(Layout { v6: false, ip_bytes, .. }) = layout.filter(|_| is_new) {
        assert_eq!(fold(sum(&marked[..ip_bytes])), 0xffff, "the header's checksum is right");
    }
    complete(&mut marked, offload.checksum);
    reopen_and_complete(packet);
}

/// A correct checksum is correct again.
fn reopen_and_complete(packet: &[u8]) {
    let mut again = packet.to_vec();
    let checksum = reopen_checksum(&mut again);
    let Some(Checksum { start, field }) = checksum else {
        assert_eq!(again, packet, "a packet that stays as it is stays as it is");
        return;
    };
    complete(&mut again, checksum);
    // Zero has two forms (RFC 1071 1).
    let field = usize::from(start + field);
    if again[field..field + 2] == [0, 0] && packet[field..field + 2] == [0xff, 0xff] {
        again[field..field + 2].fill(0xff);
    }
    assert_eq!(again, packet);
}

/// Takes a packet with its offload information: checks into what it is cut, and what the pieces are
/// joined to. The lowest bit of the first byte corrects the checksum information.
pub fn segments(data: &[u8]) {
    let Some((&[how], data)) = data.split_first_chunk::<1>() else { return };
    let Some((said, packet)) = data.split_first_chunk::<OFFLOAD_BYTES>() else { return };
    let mut offload = Offload::read(*said);
    if let Some(layout) = Layout::of(packet).filter(|_| how & 1 == 1) {
        let field = if layout.protocol == crate::wire::packet::UDP { 6 } else { 16 };
        offload.checksum = Some(Checksum { start: layout.ip_bytes as u16, field });
    }
    let Some(segments) = Segments::of(packet, offload) else { return };
    let size = usize::from(offload.segment_bytes.expect("it is cut"));
    let mut out = vec![0; 1 << 17];
    let packets: Vec<Vec<u8>> = (0..segments.count())
        .map(|index| {
            let length = segments.write(packet, index, &mut out);
            out[..length].to_vec()
        })
        .collect();

    let layout = Layout::of(packet).expect("it was cut");
    let headers =
        layout.tcp_header_bytes(packet).unwrap_or(layout.ip_bytes + crate::wire::packet::UDP_BYTES);
    let payload: Vec<u8> =
        packets.iter().flat_map(|packet| packet[headers..].iter().copied()).collect();
    assert_eq!(payload, packet[headers..], "all of it, in order");
    let (last, others) = packets.split_last().expect("one at least");
    assert!(others.iter().all(|packet| packet.len() == headers + size));
    assert!((headers + 1..=headers + size).contains(&last.len()));
    for packet in &packets {
        assert_eq!(Layout::of(packet), Some(layout));
    }
    join(&packets, offload.checksum, packet.len());
}

/// Takes two consecutive packets: the length of the first, then both.
pub fn gso_batches(data: &[u8]) {
    let Some((&[high, low], packets)) = data.split_first_chunk::<2>() else { return };
    let first = usize::from(u16::from_be_bytes([high, low])).min(packets.len());
    let (first, second) = packets.split_at(first);
    let (mut first, mut second) = (first.to_vec(), second.to_vec());
    let checksum = reopen_checksum(&mut first);
    reopen_checksum(&mut second);
    join(&[first, second], checksum, usize::MAX);
}

/// Joins packets as far as they are consecutive.
fn join(packets: &[Vec<u8>], checksum: Option<Checksum>, length: usize) {
    let offload = Offload::single(checksum);
    let Some(mut batch) = GsoBatch::begin(&packets[0], offload) else { return };
    let joined =
        packets[1..].iter().take_while(|packet| batch.add(&packets[0], packet, offload, 65_535));
    let joined = 1 + joined.count();
    let headers = batch.header_bytes();
    let flags = batch.flags(&packets[joined - 1]);
    let mut whole = packets[0].clone();
    let said = batch.finish(&mut whole, flags, offload);
    whole.extend(packets[1..joined].iter().flat_map(|packet| packet[headers..].iter().copied()));
    assert!(whole.len() <= 65_535.max(packets[0].len()));
    assert!(joined < packets.len() || whole.len() == length || length == usize::MAX);
    assert_eq!(said.segment_bytes.is_some(), joined > 1);
    if joined > 1 {
        // What is passed to the kernel is cut into the original segments again.
        let again = Segments::of(&whole, Offload::read(said.bytes())).expect("it can be cut");
        assert_eq!(again.count(), joined);
        let mut out = vec![0; 1 << 17];
        for (index, packet) in packets[..joined].iter().enumerate() {
            let length = again.write(&whole, index, &mut out);
            let (made, header) = (&out[..length], headers);
            assert_eq!(made[header..], packet[header..], "payload of segment {index}");
        }
    }
}

/// Takes the kernel's answer about its sockets.
pub fn netlink(answer: &[u8]) {
    observer::note_answer(answer);
}

#[cfg(test)]
mod tests {
    use airpath_testing::replay;

    #[test]
    fn corpora_are_survived() {
        replay("packet", super::packet);
        replay("segments", super::segments);
        replay("gso_batches", super::gso_batches);
        replay("netlink", super::netlink);
    }
}
