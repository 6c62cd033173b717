//! Memory for the packets inside the path, in reusable slots.

use crate::wire::packet::Checksum;

/// Largest packet that a slot holds, hence the largest MTU.
pub const SLOT_BYTES: usize = 2048;

/// Distance between slots: one cache line more than a slot, because at a power of two all headers
/// would fall into the same few sets of the cache and evict each other. The packet's link header is
/// kept there.
const STRIDE: usize = SLOT_BYTES + 64;

/// Slots per block: half a megabyte, so that growing does not delay packets.
const BLOCK_SLOTS: u32 = 256;

/// Slots of [`SLOT_BYTES`]. It grows by a block when it holds more packets than ever before;
/// nothing is moved.
#[derive(Debug)]
pub(crate) struct Slab {
    blocks: Vec<Box<[u8]>>,
    held: Vec<Held>,
    free: Vec<u32>,
}

/// The content of a slot.
#[derive(Clone, Copy, Default, Debug)]
struct Held {
    /// Length of the packet; 0 if the slot is empty.
    length: u16,
    /// Length of the packet's link header; 0 if it has none.
    link: u8,
    checksum: Option<Checksum>,
}

impl Slab {
    /// A slab with room for `slots` packets.
    pub(crate) fn new(slots: u32) -> Self {
        let mut slab = Self { blocks: Vec::new(), held: Vec::new(), free: Vec::new() };
        (0..slots.div_ceil(BLOCK_SLOTS).max(1)).for_each(|_| slab.grow());
        slab
    }

    /// A free slot; it stays free until [`Slab::keep`].
    #[inline]
    pub(crate) fn vacant(&mut self) -> u32 {
        if self.free.is_empty() {
            self.grow();
        }
        *self.free.last().expect("a slab that has grown has a free slot")
    }

    /// The memory of a slot.
    #[inline]
    pub(crate) fn slot(&mut self, slot: u32) -> &mut [u8] {
        let (block, at) = place(slot);
        &mut self.blocks[block][at..at + SLOT_BYTES]
    }

    /// The vacant slot now holds a packet of `length` bytes, at least one.
    #[inline]
    pub(crate) fn keep(&mut self, length: usize, checksum: Option<Checksum>) -> u32 {
        let slot = self.free.pop().expect("`vacant` came first");
        let length = length.clamp(1, SLOT_BYTES) as u16;
        self.held[slot as usize] = Held { length, link: 0, checksum };
        slot
    }

    /// The packet in a slot, for modification.
    #[inline]
    pub(crate) fn packet(&mut self, slot: u32) -> &mut [u8] {
        let length = usize::from(self.held[slot as usize].length);
        &mut self.slot(slot)[..length]
    }

    /// The packet in a slot, for reading.
    #[inline]
    pub(crate) fn bytes(&self, slot: u32) -> &[u8] {
        let (block, at) = place(slot);
        &self.blocks[block][at..at + usize::from(self.held[slot as usize].length)]
    }

    /// Keeps the link header with which the packet in a slot arrived.
    #[inline]
    pub(crate) fn keep_link(&mut self, slot: u32, header: &[u8]) {
        let (block, at) = place(slot);
        let from = at + SLOT_BYTES;
        self.blocks[block][from..from + header.len()].copy_from_slice(header);
        self.held[slot as usize].link = header.len() as u8;
    }

    /// The link header with which the packet in a slot arrived; empty if it had none.
    #[inline]
    pub(crate) fn link(&self, slot: u32) -> &[u8] {
        let ((block, at), from) = (place(slot), SLOT_BYTES);
        let length = usize::from(self.held[slot as usize].link);
        &self.blocks[block][at + from..at + from + length]
    }

    /// The part of the checksum that remains to be computed.
    #[inline]
    pub(crate) fn checksum(&self, slot: u32) -> Option<Checksum> {
        self.held[slot as usize].checksum
    }

    /// Frees the slot.
    #[inline]
    pub(crate) fn release(&mut self, slot: u32) {
        debug_assert!(self.held[slot as usize].length > 0, "slot {slot} released twice");
        self.held[slot as usize] = Held::default();
        self.free.push(slot);
    }

    /// Number of slots that hold a packet.
    pub(crate) fn occupied(&self) -> usize {
        self.held.len() - self.free.len()
    }

    fn grow(&mut self) {
        let old = self.held.len() as u32;
        let new = old + BLOCK_SLOTS;
        self.blocks.push(vec![0; BLOCK_SLOTS as usize * STRIDE].into_boxed_slice());
        self.held.resize(new as usize, Held::default());
        // Low slots are used first, because they are in the cache.
        self.free.extend((old..new).rev());
    }
}

/// The block of a slot, and its offset there.
const fn place(slot: u32) -> (usize, usize) {
    ((slot / BLOCK_SLOTS) as usize, (slot % BLOCK_SLOTS) as usize * STRIDE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(slab: &mut Slab, packet: &[u8]) -> u32 {
        let slot = slab.vacant();
        slab.slot(slot)[..packet.len()].copy_from_slice(packet);
        slab.keep(packet.len(), None)
    }

    #[test]
    fn packets_stay_as_they_are_while_others_come_and_go() {
        let mut slab = Slab::new(2);
        let packet = |n: u32| vec![n as u8; 40 + n as usize];
        let slots: Vec<u32> =
            (0..2 * BLOCK_SLOTS + 3).map(|n| put(&mut slab, &packet(n))).collect();
        assert_eq!(slab.occupied(), slots.len());
        assert!((0..).zip(&slots).all(|(n, &slot)| slab.bytes(slot) == packet(n)));
        slab.release(slots[3]);
        let again = put(&mut slab, b"again");
        assert_eq!(again, slots[3]);
        assert_eq!(slab.packet(again), b"again");
        assert_eq!(slab.packet(slots[8]), [8; 48]);
        for slot in slots {
            slab.release(slot);
        }
        assert_eq!(slab.occupied(), 0);
    }

    #[test]
    fn a_link_header_stays_with_its_packet() {
        let mut slab = Slab::new(1);
        let slots = [put(&mut slab, &[1; SLOT_BYTES]), put(&mut slab, &[2; SLOT_BYTES])];
        assert!(slab.link(slots[0]).is_empty());
        slab.keep_link(slots[0], &[9; 14]);
        assert_eq!(
            (slab.link(slots[0]), slab.bytes(slots[0])),
            (&[9; 14][..], &[1; SLOT_BYTES][..])
        );
        assert_eq!((slab.link(slots[1]), slab.bytes(slots[1])), (&[][..], &[2; SLOT_BYTES][..]));
        slab.release(slots[0]);
        let again = put(&mut slab, &[3; 20]);
        assert_eq!((again, slab.link(again)), (slots[0], &[][..]));
    }

    #[test]
    fn a_slot_that_was_not_kept_is_vacant_again() {
        let mut slab = Slab::new(1);
        assert_eq!(slab.vacant(), slab.vacant());
        assert_eq!(slab.occupied(), 0);
    }
}
