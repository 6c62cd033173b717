//! Integers in either byte order.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    #[inline]
    pub(super) fn half(self, bytes: &[u8]) -> u16 {
        let bytes = [bytes[0], bytes[1]];
        if self == Self::Little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) }
    }

    #[inline]
    pub(super) fn word(self, bytes: &[u8]) -> u32 {
        let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if self == Self::Little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
    }

    pub(super) fn long(self, bytes: &[u8]) -> u64 {
        let (first, second) = (u64::from(self.word(bytes)), u64::from(self.word(&bytes[4..])));
        if self == Self::Little { second << 32 | first } else { first << 32 | second }
    }
}
