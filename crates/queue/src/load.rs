//! An amount of packets and bytes.

use airpath_base::Packet;

/// A number of packets and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Load {
    /// Number of packets.
    pub packets: u64,
    /// Sum of their sizes in bytes, IP headers included.
    pub bytes: u64,
}

impl Load {
    /// Adds one packet.
    #[inline]
    pub fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.size);
    }

    /// Removes one packet that was added before.
    #[inline]
    pub fn remove(&mut self, packet: &Packet) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.size);
    }

    /// Adds one packet with its tunnel headers.
    #[inline]
    pub fn add_wire(&mut self, packet: &Packet) {
        self.add_bytes(packet.wire_size());
    }

    /// Adds one packet of this many bytes.
    #[inline]
    pub fn add_bytes(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    /// Removes one packet with its tunnel headers; the inverse of [`add_wire`](Self::add_wire).
    #[inline]
    pub fn remove_wire(&mut self, packet: &Packet) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.wire_size());
    }
}

impl core::ops::Add for Load {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl core::ops::Sub for Load {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { packets: self.packets - other.packets, bytes: self.bytes - other.bytes }
    }
}
