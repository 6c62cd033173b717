//! Delivers many SDUs at once.

use std::ops::Range;

use airpath_base::{Instant, Packet, fast_paths};

use super::{Cause, PdcpOrder, PdcpReceiver};
use crate::buffer::Sdus;

impl PdcpReceiver {
    /// PDCP data PDUs arrived one after the other: has the effect of [`receive`](Self::receive) for
    /// each.
    #[inline]
    pub(crate) fn receive_run(
        &mut self,
        now: Instant,
        mut counts: Range<u64>,
        cause: Cause,
        sdus: &mut Sdus,
        deliver: &mut impl FnMut(Instant, &Packet),
    ) {
        let ordered = match self.order {
            PdcpOrder::Restored(_) => true,
            PdcpOrder::FromBelow => cause == Cause::Reception,
            PdcpOrder::Ignored => false,
        };
        // Nothing is held or awaited.
        let in_order = ordered && [self.deliv, self.next] == [counts.start; 2];
        if in_order && self.timer.is_none() && fast_paths() {
            counts.start += sdus.deliver_run(now, counts.clone(), deliver);
            (self.deliv, self.next) = (counts.start, counts.start);
        }
        for count in counts {
            self.receive(now, count, cause, sdus, deliver);
        }
    }
}
