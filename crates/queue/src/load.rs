//! How much there is of something.

use airpath_base::Packet;

/// A number of packets and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Load {
    /// How many wait.
    pub packets: u64,
    /// Their sizes added up, IP headers included.
    pub bytes: u64,
}

impl Load {
    /// One packet more.
    #[inline]
    pub fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.size);
    }

    /// One packet less, which was added before.
    #[inline]
    pub fn remove(&mut self, packet: &Packet) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.size);
    }

    /// Like `add`, with what a tunnel put around the packet.
    #[inline]
    pub fn add_wire(&mut self, packet: &Packet) {
        self.add_bytes(packet.wire_size());
    }

    /// One packet of so many bytes more.
    #[inline]
    pub fn add_bytes(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    /// Takes back an `add_wire`.
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
