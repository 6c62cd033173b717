//! What an AM transmitter stores about a unit until it is acknowledged.

use super::block::Pdu;
use super::framing::LtePacking;
use super::pieces::Piece;
use crate::buffer::Sdus;

/// A unit that was sent at least in part: an SDU in NR, the data field of a PDU in LTE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentUnit {
    pub(crate) sdu: u64,
    pub(crate) sdu_size: u32,
    pub(crate) sdu_offset: u32,
    pub(crate) len: u32,
    /// Number of bytes sent at least once, from the start.
    pub(crate) sent: u32,
    /// RETX_COUNT; `None`: never considered for retransmission.
    pub(crate) retx_count: Option<u32>,
    pub(crate) acknowledged: bool,
}

impl SentUnit {
    pub(crate) const fn pdu(&self, sn: u64, start: u32, end: u32) -> Pdu {
        let Self { sdu, sdu_offset, sdu_size, .. } = *self;
        Pdu { sn, sdu, sdu_offset, sdu_size, start, end, last: end == self.len, poll: false }
    }

    /// LTE: packs elements of `piece` until the PDU is full.
    pub(crate) fn pack(&self, mut packing: LtePacking, piece: Piece, sdus: &Sdus) -> LtePacking {
        let mut element = 0;
        let (mut count, mut rest) = (self.sdu, self.sdu_size - self.sdu_offset);
        while element < piece.end {
            let from = element.max(piece.start);
            let to = (element + rest).min(piece.end);
            if from < to {
                let room = packing.room();
                if room == 0 {
                    break;
                }
                packing.add((to - from).min(room));
                if to - from > room {
                    break;
                }
            }
            element += rest;
            count += 1;
            rest = sdus.size(count).unwrap_or(u32::MAX - element);
        }
        packing
    }

    /// LTE: every SDU that ends in this unit has arrived. The caller will
    /// [forget](Sdus::forget_run) them.
    pub(crate) fn confirm(&self, sdus: &mut Sdus) {
        let (mut end, mut left) = (self.sdu, self.len);
        let mut rest = self.sdu_size - self.sdu_offset;
        while left >= rest {
            left -= rest;
            end += 1;
            match sdus.size(end) {
                Some(size) if left > 0 => rest = size,
                _ => break,
            }
        }
        sdus.note_confirmed(self.sdu..end);
    }
}
