//! LTE: from the data fields of PDUs, in order of SN but with gaps, back to SDUs.

use super::reassembly::Unit;
use crate::buffer::Sdus;

/// What RLC tells PDCP about, by COUNT. Reused.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Complete, in this order.
    pub(crate) complete: Vec<u64>,
    /// Not to be completed any more.
    pub(crate) lost: Vec<u64>,
}

/// Knows how far the last SDU got.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    /// An SDU of which everything up to this byte has been seen, and nothing after it.
    open: Option<(u64, u32)>,
}

impl Assembler {
    /// The data field of the next PDU that arrived.
    pub(crate) fn feed(&mut self, unit: Unit, sdus: &Sdus, outcome: &mut Outcome) {
        let continues = self.open == Some((unit.sdu, unit.sdu_offset));
        if let (Some((count, _)), false) = (self.open, continues) {
            outcome.lost.push(count);
        }
        self.open = None;
        let mut intact = continues || unit.sdu_offset == 0;
        let mut left = unit.len.unwrap_or(0);
        let (mut count, mut rest) = (unit.sdu, unit.sdu_size - unit.sdu_offset);
        let mut seen = unit.sdu_offset;
        while left >= rest {
            left -= rest;
            let heap = if intact { &mut outcome.complete } else { &mut outcome.lost };
            heap.push(count);
            count += 1;
            (intact, seen) = (true, 0);
            if left == 0 {
                return;
            }
            // An SDU of which no more is known was lost elsewhere: it is cut, so the last here.
            let Some(size) = sdus.size(count) else { return };
            rest = size;
        }
        if intact {
            self.open = Some((count, seen + left));
        } else {
            outcome.lost.push(count);
        }
    }

    /// Nothing continues what came before.
    pub(crate) fn reset(&mut self) {
        self.open = None;
    }
}
