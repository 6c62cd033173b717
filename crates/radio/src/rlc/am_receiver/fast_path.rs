//! Receives many SDUs at once.

use std::ops::Range;

use airpath_base::{Instant, fast_paths};

use super::{AmReceiver, Order};
use crate::rlc::block::Pdu;

impl AmReceiver {
    /// NR: does what [`on_pdu`](Self::on_pdu) does for the leading PDUs that bring consecutive
    /// whole SDUs without a poll while nothing is missing, which is the usual case. Returns their
    /// COUNTs, or `None` if there is no such PDU.
    pub(crate) fn take_run(&mut self, now: Instant, pdus: &[Pdu]) -> Option<Range<u64>> {
        let next = self.reassembly.base();
        let waits = self.timer.is_some() || !self.delayed_polls.is_empty();
        let runs = matches!(self.order, Order::Above) && self.next_highest == next;
        if waits || !runs || !fast_paths() {
            return None;
        }
        let first = pdus.first()?.sdu;
        let follows = |&(index, pdu): &(u64, &Pdu)| pdu.continues_run(next + index, first + index);
        let count = (0..).zip(pdus).take_while(follows).count() as u64;
        if count == 0 {
            return None;
        }
        self.end_prohibition(now);
        let end = next + count;
        self.reassembly.skip_to(end);
        self.highest_status = self.highest_status.max(end);
        self.next_highest = end;
        Some(first..first + count)
    }
}
