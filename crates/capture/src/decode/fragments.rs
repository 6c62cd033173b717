//! Fragmented packets: the headers of the first fragment wait until all fragments were seen.

use std::collections::VecDeque;

use super::{Fragment, IpPacket};

/// Most packets that wait for fragments; a further one displaces the oldest.
const MOST_WAITING: usize = 256;
/// Bytes of a transport header that are kept: the longest TCP header.
const HEADER_BYTES: usize = 60;

/// Packets of which not all fragments were seen.
#[derive(Default, Debug)]
pub(crate) struct Fragments {
    waiting: VecDeque<Waiting>,
    /// Packets that were displaced.
    displaced: u64,
}

/// A complete packet: its beginning and its length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    pub(crate) header: [u8; HEADER_BYTES],
    pub(crate) kept: usize,
    /// Bytes after the IP header.
    pub(crate) body_length: u32,
    /// Bytes including the first fragment's IP header.
    pub(crate) length: u32,
}

#[derive(Debug)]
struct Waiting {
    key: (u128, u128, u32, u8, u64),
    whole: Whole,
    has_first: bool,
    /// Bytes seen so far.
    seen: u32,
    /// Bytes of the whole body, known once the last fragment was seen.
    total: Option<u32>,
}

impl Fragments {
    /// Packets of which fragments are missing.
    pub(crate) fn incomplete(&self) -> u64 {
        self.displaced + self.waiting.len() as u64
    }

    /// Adds a fragment that was captured at a point. Returns the whole packet if this was the last
    /// fragment missing.
    pub(crate) fn add(
        &mut self,
        packet: &IpPacket<'_>,
        part: Fragment,
        point: u64,
    ) -> Option<Whole> {
        let key = (packet.source, packet.destination, part.id, packet.protocol, point);
        let at = self.waiting.iter().position(|waiting| waiting.key == key).unwrap_or_else(|| {
            if self.waiting.len() == MOST_WAITING {
                self.waiting.pop_front();
                self.displaced += 1;
            }
            let whole = Whole { header: [0; HEADER_BYTES], kept: 0, body_length: 0, length: 0 };
            let (has_first, seen, total) = (false, 0, None);
            self.waiting.push_back(Waiting { key, whole, has_first, seen, total });
            self.waiting.len() - 1
        });
        let waiting = &mut self.waiting[at];
        waiting.seen = waiting.seen.saturating_add(packet.body_length);
        if part.offset == 0 {
            let kept = packet.body.len().min(HEADER_BYTES);
            waiting.whole.header[..kept].copy_from_slice(&packet.body[..kept]);
            (waiting.whole.kept, waiting.has_first) = (kept, true);
            waiting.whole.length = packet.length - packet.body_length;
        }
        if !part.more {
            waiting.total = Some(part.offset.saturating_add(packet.body_length));
        }
        let total = waiting.total?;
        if !waiting.has_first || waiting.seen < total {
            return None;
        }
        let mut whole = self.waiting.remove(at)?.whole;
        whole.body_length = total;
        whole.length = whole.length.saturating_add(total);
        Some(whole)
    }
}
