//! Bytes of the packets inside the path, in slots that are used again.

use crate::packet::Checksum;

/// Largest packet that a slot takes, hence the largest MTU.
pub(crate) const SLOT_BYTES: usize = 2048;

/// Slots of [`SLOT_BYTES`]. Grows when more packets are inside than ever before.
#[derive(Debug)]
pub(crate) struct Slab {
    bytes: Vec<u8>,
    kept: Vec<Kept>,
    free: Vec<u32>,
}

/// What is in a slot.
#[derive(Clone, Copy, Default, Debug)]
struct Kept {
    /// 0: nothing.
    length: u16,
    checksum: Option<Checksum>,
}

impl Slab {
    /// With room for `slots` packets.
    pub(crate) fn new(slots: u32) -> Self {
        let mut slab = Self { bytes: Vec::new(), kept: Vec::new(), free: Vec::new() };
        slab.grow(slots.max(1));
        slab
    }

    /// A free slot; it stays free until [`Slab::keep`].
    #[inline]
    pub(crate) fn vacant(&mut self) -> u32 {
        if self.free.is_empty() {
            self.grow(self.kept.len() as u32);
        }
        *self.free.last().expect("a slab that has grown has a free slot")
    }

    /// The whole of a slot.
    #[inline]
    pub(crate) fn slot(&mut self, slot: u32) -> &mut [u8] {
        let at = slot as usize * SLOT_BYTES;
        &mut self.bytes[at..at + SLOT_BYTES]
    }

    /// The vacant slot now holds a packet of `length` bytes, at least one.
    #[inline]
    pub(crate) fn keep(&mut self, length: usize, checksum: Option<Checksum>) -> u32 {
        let slot = self.free.pop().expect("`vacant` came first");
        let length = length.clamp(1, SLOT_BYTES) as u16;
        self.kept[slot as usize] = Kept { length, checksum };
        slot
    }

    /// The packet in a slot.
    #[inline]
    pub(crate) fn packet(&mut self, slot: u32) -> &mut [u8] {
        let length = usize::from(self.kept[slot as usize].length);
        &mut self.slot(slot)[..length]
    }

    /// The packet in a slot, to be read.
    #[inline]
    pub(crate) fn bytes(&self, slot: u32) -> &[u8] {
        let at = slot as usize * SLOT_BYTES;
        &self.bytes[at..at + usize::from(self.kept[slot as usize].length)]
    }

    /// What of its checksum is still to be made.
    #[inline]
    pub(crate) fn checksum(&self, slot: u32) -> Option<Checksum> {
        self.kept[slot as usize].checksum
    }

    /// The packet is gone.
    #[inline]
    pub(crate) fn release(&mut self, slot: u32) {
        debug_assert!(self.kept[slot as usize].length > 0, "slot {slot} released twice");
        self.kept[slot as usize] = Kept::default();
        self.free.push(slot);
    }

    /// Slots that hold a packet.
    pub(crate) fn occupied(&self) -> usize {
        self.kept.len() - self.free.len()
    }

    fn grow(&mut self, by: u32) {
        let old = self.kept.len() as u32;
        let new = old + by;
        self.bytes.resize(new as usize * SLOT_BYTES, 0);
        self.kept.resize(new as usize, Kept::default());
        self.free.reserve(new as usize);
        // Low slots are used first: they are in the cache.
        self.free.extend((old..new).rev());
    }
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
        let slots: Vec<u32> = (0..9).map(|n| put(&mut slab, &vec![n; 40 + n as usize])).collect();
        assert_eq!(slab.occupied(), 9);
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
