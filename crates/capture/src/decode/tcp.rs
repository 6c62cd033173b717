//! A TCP header and its options (RFC 9293 3.1, RFC 7323, RFC 2018).

use super::word;

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

/// Most SACK blocks that fit into a header (RFC 2018 3).
const MOST_BLOCKS: usize = 4;

/// Bytes of a header up to and including its window; a checksum and the urgent pointer follow.
pub(crate) const TO_WINDOW: usize = 16;

/// The fields of a TCP header.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct TcpHeader {
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) flags: u8,
    /// The window field as it stands in the header, not scaled.
    pub(crate) window: u16,
    /// Bytes of payload on the wire.
    pub(crate) payload: u32,
    pub(crate) mss: Option<u16>,
    pub(crate) window_scale: Option<u8>,
    pub(crate) sack_permitted: bool,
    pub(crate) timestamps: Option<Timestamps>,
    pub(crate) sack: [(u32, u32); MOST_BLOCKS],
    pub(crate) sack_blocks: usize,
    /// Not all options were captured: an option that is missing here may have been present.
    pub(crate) is_cut: bool,
}

/// The timestamps option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Timestamps {
    pub(crate) value: u32,
    pub(crate) echo: u32,
}

impl TcpHeader {
    /// Reads a segment of `length` bytes on the wire; `None` if its fixed header was not captured
    /// up to the window, or if the header length is impossible. Options count as far as they were
    /// captured.
    #[inline]
    pub(crate) fn read(segment: &[u8], length: u32) -> Option<Self> {
        let fixed: &[u8; TO_WINDOW] = segment.first_chunk()?;
        let header_bytes = u32::from(fixed[12] >> 4) * 4;
        if header_bytes < 20 || header_bytes > length {
            return None;
        }
        let mut header = Self {
            sequence: word(fixed, 4)?,
            acknowledgement: word(fixed, 8)?,
            flags: fixed[13],
            window: u16::from_be_bytes([fixed[14], fixed[15]]),
            payload: length - header_bytes,
            is_cut: segment.len() < header_bytes as usize,
            ..Self::default()
        };
        let options = segment.get(20..(header_bytes as usize).min(segment.len()));
        let options = options.unwrap_or_default();
        // Two no-operations and the timestamps: the options of most segments that Linux sends (RFC
        // 7323 A).
        if let &[1, 1, 8, 10, a, b, c, d, e, f, g, h] = options {
            let (value, echo) =
                (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
            header.timestamps = Some(Timestamps { value, echo });
        } else if !options.is_empty() {
            header.read_options(options);
        }
        Some(header)
    }

    fn read_options(&mut self, mut rest: &[u8]) {
        while let &[kind, ..] = rest {
            match kind {
                0 => return,
                1 => {
                    rest = &rest[1..];
                    continue;
                }
                _ => {}
            }
            let Some(&length) = rest.get(1) else { return };
            let Some(value) = rest.get(2..usize::from(length)) else { return };
            self.read_option(kind, value);
            rest = &rest[usize::from(length).max(2)..];
        }
    }

    fn read_option(&mut self, kind: u8, value: &[u8]) {
        match (kind, value) {
            (2, &[high, low]) => self.mss = Some(u16::from_be_bytes([high, low])),
            // RFC 7323 2.3: a shift above 14 counts as 14.
            (3, &[scale]) => self.window_scale = Some(scale.min(14)),
            (4, []) => self.sack_permitted = true,
            (5, blocks) => {
                self.sack_blocks = 0;
                for block in blocks.chunks_exact(8).take(MOST_BLOCKS) {
                    let (Some(from), Some(to)) = (word(block, 0), word(block, 4)) else { return };
                    self.sack[self.sack_blocks] = (from, to);
                    self.sack_blocks += 1;
                }
            }
            (8, _) => {
                if let (Some(value), Some(echo)) = (word(value, 0), word(value, 4)) {
                    self.timestamps = Some(Timestamps { value, echo });
                }
            }
            _ => {}
        }
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Length of the segment in sequence space (RFC 9293 3.3.1).
    #[inline]
    pub(crate) fn sequence_length(&self) -> u64 {
        u64::from(self.payload) + u64::from(self.has(SYN)) + u64::from(self.has(FIN))
    }
}
