//! The pcap format (draft-ietf-opsawg-pcap).

use super::order::ByteOrder;

pub(super) const HEADER_BYTES: usize = 24;

/// The file's header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) order: ByteOrder,
    /// Nanoseconds in one unit of the timestamps' fractional part.
    unit: u64,
    /// Length of a packet's header, in bytes.
    pub(super) record_bytes: usize,
    pub(super) link_type: u16,
}

/// The header of a packet.
pub(super) struct Record {
    /// Nanoseconds since 1970.
    pub(super) time: u64,
    pub(super) captured: usize,
    pub(super) length: u32,
}

impl Header {
    /// Reads the header; `None` if it is not a pcap header.
    pub(super) fn read(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let magic = [bytes[0], bytes[1], bytes[2], bytes[3]];
        // Units of 10^-6 s, of 10^-9 s, and of 10^-6 s with eight more bytes for each packet
        // (Linux, about 1998).
        let known = [(0xa1b2_c3d4_u32, 1000, 16), (0xa1b2_3c4d, 1, 16), (0xa1b2_cd34, 1000, 24)];
        known.iter().find_map(|&(number, unit, record_bytes)| {
            let order = match magic {
                _ if magic == number.to_le_bytes() => ByteOrder::Little,
                _ if magic == number.to_be_bytes() => ByteOrder::Big,
                _ => return None,
            };
            // The upper bits tell whether frames end with a checksum.
            let link_type = order.word(&bytes[20..]) as u16;
            Some(Self { order, unit, record_bytes, link_type })
        })
    }

    /// Whether a file's header stands in the place of a packet's: the magic number as the packet's
    /// time, in 2055 or later, and the format's version, 2.4, as its fraction of a second.
    #[inline]
    pub(super) fn begins_again(&self, bytes: &[u8]) -> bool {
        let word = |at: usize| self.order.word(&bytes[at..]);
        let version = if self.order == ByteOrder::Little { 0x0004_0002 } else { 0x0002_0004 };
        word(4) == version && matches!(word(0), 0xa1b2_c3d4 | 0xa1b2_3c4d | 0xa1b2_cd34)
    }

    #[inline]
    pub(super) fn record(&self, bytes: &[u8]) -> Record {
        let word = |at: usize| self.order.word(&bytes[at..]);
        let fraction = u64::from(word(4)) * self.unit;
        let captured = word(8);
        Record {
            time: u64::from(word(0)) * 1_000_000_000 + fraction,
            captured: captured as usize,
            length: word(12).max(captured),
        }
    }
}
