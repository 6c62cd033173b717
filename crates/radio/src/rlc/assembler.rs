//! LTE: reassembles SDUs from the data fields of PDUs, which are in order of SN but may have gaps.

use super::reassembly::Unit;
use crate::buffer::Sdus;

/// What RLC reports to PDCP, by COUNT. It is reused.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// SDUs that are complete, in this order.
    pub(crate) complete: Vec<u64>,
    /// SDUs that will not be completed any more.
    pub(crate) lost: Vec<u64>,
}

/// Knows how much of the last SDU has arrived.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    /// An SDU that has been received up to this byte, and not beyond.
    open: Option<(u64, u32)>,
}

impl Assembler {
    /// Processes the data field of the next PDU that arrived.
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
            // An SDU about which nothing more is known was lost elsewhere: it was cut, so it is the
            // last one here.
            let Some(size) = sdus.size(count) else { return };
            rest = size;
        }
        if intact {
            self.open = Some((count, seen + left));
        } else {
            outcome.lost.push(count);
        }
    }

    /// Nothing continues the previous data.
    pub(crate) fn reset(&mut self) {
        self.open = None;
    }
}
