//! Bytes of the packets inside the path, in slots that are used again.

use crate::wire::packet::Checksum;

/// Largest packet that a slot takes, hence the largest MTU.
pub const SLOT_BYTES: usize = 2048;

/// From slot to slot. One cache line more than a slot: at a power of two all headers would be in
/// the same few sets of the cache and push each other out.
const STRIDE: usize = SLOT_BYTES + 64;

/// Slots of a block: half a megabyte, so that growing takes no time that a packet would feel.
const BLOCK_SLOTS: u32 = 256;

/// Slots of [`SLOT_BYTES`]. Grows by a block when more packets are inside than ever before; nothing
/// is moved.
#[derive(Debug)]
pub(crate) struct Slab {
    blocks: Vec<Box<[u8]>>,
    held: Vec<Held>,
    free: Vec<u32>,
}

/// What is in a slot.
#[derive(Clone, Copy, Default, Debug)]
struct Held {
    /// 0: nothing.
    length: u16,
    checksum: Option<Checksum>,
}

impl Slab {
    /// With room for `slots` packets.
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

    /// The whole of a slot.
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
        self.held[slot as usize] = Held { length, checksum };
        slot
    }

    /// The packet in a slot.
    #[inline]
    pub(crate) fn packet(&mut self, slot: u32) -> &mut [u8] {
        let length = usize::from(self.held[slot as usize].length);
        &mut self.slot(slot)[..length]
    }

    /// The packet in a slot, to be read.
    #[inline]
    pub(crate) fn bytes(&self, slot: u32) -> &[u8] {
        let (block, at) = place(slot);
        &self.blocks[block][at..at + usize::from(self.held[slot as usize].length)]
    }

    /// What of its checksum is still to be made.
    #[inline]
    pub(crate) fn checksum(&self, slot: u32) -> Option<Checksum> {
        self.held[slot as usize].checksum
    }

    /// The packet is gone.
    #[inline]
    pub(crate) fn release(&mut self, slot: u32) {
        debug_assert!(self.held[slot as usize].length > 0, "slot {slot} released twice");
        self.held[slot as usize] = Held::default();
        self.free.push(slot);
    }

    /// Slots that hold a packet.
    pub(crate) fn occupied(&self) -> usize {
        self.held.len() - self.free.len()
    }

    fn grow(&mut self) {
        let old = self.held.len() as u32;
        let new = old + BLOCK_SLOTS;
        self.blocks.push(vec![0; BLOCK_SLOTS as usize * STRIDE].into_boxed_slice());
        self.held.resize(new as usize, Held::default());
        // Low slots are used first: they are in the cache.
        self.free.extend((old..new).rev());
    }
}

/// The block of a slot, and where it begins there.
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
    fn a_slot_that_was_not_kept_is_vacant_again() {
        let mut slab = Slab::new(1);
        assert_eq!(slab.vacant(), slab.vacant());
        assert_eq!(slab.occupied(), 0);
    }
}
